package database

import (
	"context"
	"encoding/json"
	"strconv"

	"tandem/fault"
	"tandem/payload"
)

// mode is what a transaction may do.
type mode uint8

const (
	readOnly mode = iota
	readWrite
)

// session is one connection in the hands of one node. It belongs to one goroutine.
type session interface {
	dialect() dialect
	// begin begins a transaction.
	begin(ctx context.Context, m mode) error
	// run runs one statement. Rows go to the sink as they come; when it has enough, the rest is not read.
	run(ctx context.Context, b bound, to *sink) (outcome, error)
	// commit ends the transaction. An error that is not a [lostError] means that nothing was done.
	commit(ctx context.Context) error
	rollback(ctx context.Context) error
	// close gives the connection back, or ends it if it is not to be used again.
	close(reuse bool)
	// table finds a table by its name in the server's catalogue.
	table(ctx context.Context, name string) (*table, error)
	// explain turns an error of the driver into what a user reads.
	explain(err error) *fault.Error
	// returning says what of INSERT, UPDATE and DELETE can return rows.
	returning(operation string) bool
}

// outcome is what a statement did.
type outcome struct {
	affected int64
	lastID   json.RawMessage
}

// lostError is a connection that ended while its answer was waited for: what was asked may have been done.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// Column is a column of a result.
type Column struct {
	Name string `json:"name"`
	// Type is what the server calls it.
	Type string `json:"type"`
}

// Limits of a result.
const (
	// MaxBytes is how many bytes the rows of a node may have, written as JSON.
	MaxBytes = 10 << 20
	// maxWire is how many bytes one statement may bring over a connection before reading stops.
	maxWire = 64 << 20
)

// sink takes the rows of a result. It holds them as the JSON that they will be, so what they take is bounded.
type sink struct {
	maxRows int
	arrays  bool
	// maxBytes is what rows may take.
	maxBytes int

	columns   []Column
	keys      [][]byte // of objects, quoted, with colon
	rows      []byte
	count     int
	truncated bool
	// keep makes the rows of several statements one list.
	keep bool
	// last is the value of the column called watch in the last row; that column is not part of the rows.
	watch int
	last  json.RawMessage
}

func newSink(maxRows int, arrays bool) *sink {
	return &sink{maxRows: maxRows, arrays: arrays, maxBytes: MaxBytes, watch: -1}
}

// beginRows names the columns. A name that stands twice gets a number.
func (s *sink) beginRows(columns []Column) {
	if s.keep && len(s.columns) == len(columns) {
		return
	}
	taken := map[string]bool{}
	for _, c := range columns {
		taken[c.Name] = true
	}
	seen := map[string]bool{}
	s.columns, s.keys, s.rows, s.count, s.truncated = make([]Column, len(columns)), make([][]byte, len(columns)), nil, 0, false
	for i, c := range columns {
		name := c.Name
		for n := 2; seen[name]; n++ {
			if next := c.Name + "_" + strconv.Itoa(n); !taken[next] {
				name = next
				break
			}
		}
		for n := 2; seen[name]; n++ { // names that look like numbered ones
			name = c.Name + "__" + strconv.Itoa(n)
		}
		seen[name] = true
		s.columns[i] = Column{Name: name, Type: c.Type}
		s.keys[i] = append(payload.AppendText(nil, name), ':')
	}
}

// full says, before a row is added, that there is no room for it: it is what tells that more would have come.
func (s *sink) full() bool {
	if s.count < s.maxRows {
		return false
	}
	s.truncated = true
	return true
}

// addRow adds a row; value appends the value of a column.
func (s *sink) addRow(value func(dst []byte, column int) []byte) error {
	if s.count > 0 {
		s.rows = append(s.rows, ',')
	}
	opening, closing := byte('{'), byte('}')
	if s.arrays {
		opening, closing = '[', ']'
	}
	s.rows = append(s.rows, opening)
	first := true
	for i := range s.columns {
		if i == s.watch {
			s.last = value(nil, i)
			continue
		}
		if !first {
			s.rows = append(s.rows, ',')
		}
		first = false
		if !s.arrays {
			s.rows = append(s.rows, s.keys[i]...)
		}
		s.rows = value(s.rows, i)
	}
	s.rows = append(s.rows, closing)
	s.count++
	if len(s.rows) > s.maxBytes {
		return fault.Newf(fault.TooLarge, "the rows have more than %d bytes; ask for fewer rows or columns", s.maxBytes).With("limit", s.maxBytes)
	}
	return nil
}

// list is all rows.
func (s *sink) list() json.RawMessage {
	return json.RawMessage("[" + string(s.rows) + "]")
}

// shown are the columns without the one that is watched.
func (s *sink) shown() []Column {
	out := make([]Column, 0, len(s.columns))
	for i, c := range s.columns {
		if i != s.watch {
			out = append(out, c)
		}
	}
	return out
}
