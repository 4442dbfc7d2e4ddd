package host

import (
	"encoding/json"
	"errors"
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
	// Large are the values that are kept beside the journal, by their place. A row that was read has nothing else of them.
	Large map[int]Blob
	// Beside are fields of values that are kept beside them, in the order of their positions, by the place of the value.
	Beside map[int][]Beside
	// Told is what readers need to know about the row besides its facts.
	Told []Told
	// Stored is the size of the body of a row that was read.
	Stored int
	// Closed says that the row ends an execution that cannot be folded: no engine has decided it, and none goes on after it.
	Closed bool
	// Unreadable is why only the number and time of a row in the journal are known; nil for all others.
	Unreadable error
}

// IsUnreadable says whether an error is about recorded data, and not about the disk or the store: reading it again gives the same.
func IsUnreadable(err error) bool { return errors.Is(err, errUnreadable) }

var (
	errUnreadable  = fault.New(fault.Unreadable, "it cannot be read")
	errUnsupported = fault.New(fault.Unsupported, "this version cannot read it")
)

// loadError is an error of the loader of a fold.
type loadError struct{ error }

// Unwrap lets errors.Is and errors.As see the error.
func (e loadError) Unwrap() error { return e.error }

// Unreadable turns an error while recorded data was folded or written into one about that data, unless it comes from the disk or
// from data of a newer version of Tandem. The last verb of the format is for the error.
func Unreadable(err error, format string, args ...any) error {
	code := fault.Unreadable
	if _, loading := errors.AsType[loadError](err); errors.Is(err, errUnsupported) || loading && !IsUnreadable(err) {
		code = fault.Internal
	}
	return fault.Newf(code, format, append(args, err)...)
}

// Blob names a large value by its content.
type Blob struct {
	Hash string `json:"hash"`
	Size int64  `json:"size"`
}

// MaxInline is how large a value in a row may be. A larger one is kept beside the journal.
const MaxInline = 32 << 10

// Spill stores the large values of the row beside the journal.
func (r *Row) Spill(put func(json.RawMessage) (Blob, error)) error {
	for n, value := range r.Values {
		if len(value) <= MaxInline || len(r.Beside[n]) > 0 { // what is left of one that shares its fields stays in the row
			continue
		}
		blob, err := put(value)
		if err != nil {
			return fmt.Errorf("keep value %d of row %d: %w", n, r.Seq, err)
		}
		if r.Large == nil {
			r.Large = map[int]Blob{}
		}
		r.Large[n] = blob
	}
	return nil
}

// Spilled is the size of the values that are kept beside the journal and that this row does not share with another.
func (r *Row) Spilled() int {
	size := 0
	for _, blob := range r.Large { // order does not matter: a sum
		size += int(blob.Size)
	}
	return size
}

// Encode returns the stored form of the row's body; sequence number and time stand beside it. It is written by hand:
// every step of every execution comes through here.
func (r *Row) Encode() ([]byte, error) {
	size := 256 + 128*len(r.Facts) + 56*len(r.Told) // of what stands around the values, mostly
	for i, value := range r.Values {
		if _, large := r.Large[i]; !large {
			size += len(value)
		}
	}
	out := make([]byte, 0, size)
	out = append(out, `{"facts":[`...)
	var err error
	for i, f := range r.Facts {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = engine.AppendFact(out, f); err != nil {
			return nil, fmt.Errorf("encode row %d: %w", r.Seq, err)
		}
	}
	out = append(out, ']')
	for i, value := range r.Values {
		out = append(out, engine.Following(i, `,"values":[`)...)
		if _, large := r.Large[i]; large || value == nil {
			value = json.RawMessage("null")
		}
		out = append(out, value...)
	}
	if len(r.Values) > 0 {
		out = append(out, ']')
	}
	if len(r.Large) > 0 {
		large, err := json.Marshal(r.Large)
		if err != nil {
			return nil, fmt.Errorf("encode row %d: %w", r.Seq, err)
		}
		out = append(append(out, `,"large":`...), large...)
	}
	if len(r.Beside) > 0 {
		beside, err := json.Marshal(r.Beside)
		if err != nil {
			return nil, fmt.Errorf("encode row %d: %w", r.Seq, err)
		}
		out = append(append(out, `,"beside":`...), beside...)
	}
	for i := range r.Told {
		out = append(out, engine.Following(i, `,"told":[`)...)
		if out, err = r.Told[i].append(out); err != nil {
			return nil, fmt.Errorf("encode row %d: %w", r.Seq, err)
		}
	}
	if len(r.Told) > 0 {
		out = append(out, ']')
	}
	if r.Closed {
		out = append(out, `,"closed":true`...)
	}
	return append(out, '}'), nil
}

// DecodeRow reads the stored form.
func DecodeRow(seq uint64, time int64, body []byte) (Row, error) {
	if row, ok := decodePlainRow(seq, time, body); ok {
		return row, nil
	}
	return decodeRow(seq, time, body)
}

// ReadRow reads the stored form of a row of a journal. For one that cannot be read it returns a row with Unreadable set.
func ReadRow(seq uint64, time int64, body []byte) Row {
	row, err := DecodeRow(seq, time, body)
	if err != nil { // reading it again gives the same
		return Row{Seq: seq, Time: time, Stored: len(body), Unreadable: err}
	}
	return row
}

// decodeRow reads the stored form of any row, and says what is wrong with one that cannot be read.
func decodeRow(seq uint64, time int64, body []byte) (Row, error) {
	var stored struct {
		Facts  []json.RawMessage `json:"facts"`
		Values []json.RawMessage `json:"values"`
		Large  map[int]Blob      `json:"large"`
		Beside map[int][]Beside  `json:"beside"`
		Told   []Told            `json:"told"`
		Closed bool              `json:"closed"`
	}
	if err := json.Unmarshal(body, &stored); err != nil {
		return Row{}, fmt.Errorf("decode row %d: %w", seq, err)
	}
	row := Row{Seq: seq, Time: time, Facts: make([]engine.Fact, len(stored.Facts)), Values: stored.Values, Large: stored.Large,
		Beside: stored.Beside, Told: stored.Told, Closed: stored.Closed, Stored: len(body)}
	for i, raw := range stored.Facts {
		fact, err := engine.DecodeFact(raw)
		if err != nil {
			return Row{}, fmt.Errorf("decode row %d: %w", seq, err)
		}
		row.Facts[i] = fact
	}
	return row, nil
}

// Place is where a value is: in a row of a journal. Level says in which journal: an execution that was forked shares the
// past of its source, so its values may be in the rows of the source (one level below its own), of the source's source,
// and so on. An execution that was not forked is at level 0.
type Place struct {
	Level int
	Seq   uint64
	N     int
}

// Ref is the reference that names the place.
func (p Place) Ref() engine.Ref {
	if p.Level == 0 {
		return engine.Ref("r" + strconv.FormatUint(p.Seq, 10) + "." + strconv.Itoa(p.N))
	}
	return engine.Ref("r" + strconv.Itoa(p.Level) + ":" + strconv.FormatUint(p.Seq, 10) + "." + strconv.Itoa(p.N))
}

// ParseRef returns the place that a reference names.
func ParseRef(ref engine.Ref) (p Place, err error) {
	text, ok := strings.CutPrefix(string(ref), "r")
	level, rest, leveled := strings.Cut(text, ":")
	if leveled {
		p.Level, err = strconv.Atoi(level)
		ok = ok && err == nil && p.Level > 0
	} else {
		rest = text
	}
	row, place, dotted := strings.Cut(rest, ".")
	if ok && dotted {
		if p.Seq, err = strconv.ParseUint(row, 10, 64); err == nil {
			if p.N, err = strconv.Atoi(place); err == nil && p.N >= 0 {
				return p, nil
			}
		}
	}
	return Place{}, fault.Newf(fault.Internal, "%q is not a reference to a value", ref)
}
