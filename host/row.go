package host

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tandem/engine"
	"tandem/fault"
)

// Row is one append to an execution's journal: facts, and the values that they name by reference.
type Row struct {
	Seq  uint64
	Time int64
	// Facts happened together, in this order.
	Facts []engine.Fact
	// Values are what the facts refer to. The reference of the n-th is ValueRef(Seq, n).
	Values []json.RawMessage
}

// rowJSON is the stored form of a row's body.
type rowJSON struct {
	Facts  []engine.Event    `json:"facts"`
	Values []json.RawMessage `json:"values,omitempty"`
}

// Encode returns the stored form of the row's body; sequence number and time stand beside it.
func (r *Row) Encode() ([]byte, error) {
	stored := rowJSON{Facts: make([]engine.Event, len(r.Facts)), Values: r.Values}
	for i, f := range r.Facts {
		stored.Facts[i] = engine.Event{Seq: r.Seq, Time: r.Time, Fact: f}
	}
	body, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encode row %d: %w", r.Seq, err)
	}
	return body, nil
}

// DecodeRow reads the stored form.
func DecodeRow(seq uint64, time int64, body []byte) (Row, error) {
	var stored rowJSON
	if err := json.Unmarshal(body, &stored); err != nil {
		return Row{}, fmt.Errorf("decode row %d: %w", seq, err)
	}
	row := Row{Seq: seq, Time: time, Facts: make([]engine.Fact, len(stored.Facts)), Values: stored.Values}
	for i, e := range stored.Facts {
		row.Facts[i] = e.Fact
	}
	return row, nil
}

// ValueRef is the reference of the n-th value of a row.
func ValueRef(seq uint64, n int) engine.Ref {
	return engine.Ref("r" + strconv.FormatUint(seq, 10) + "." + strconv.Itoa(n))
}

// ParseRef returns the row and the place of a value.
func ParseRef(ref engine.Ref) (seq uint64, n int, err error) {
	text, ok := strings.CutPrefix(string(ref), "r")
	row, place, dotted := strings.Cut(text, ".")
	if ok && dotted {
		if seq, err = strconv.ParseUint(row, 10, 64); err == nil {
			if n, err = strconv.Atoi(place); err == nil && n >= 0 {
				return seq, n, nil
			}
		}
	}
	return 0, 0, fault.Newf(fault.Internal, "%q is no reference to a value", ref)
}
