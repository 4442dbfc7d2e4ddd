package host

import (
	"encoding/json"
	"slices"

	"tandem/engine"
	"tandem/workflow"
)

// Seen is an execution as its rows describe it, for a reader that got every row from the first on: what [Journal.View] would read, without
// reading. It must not be used by several goroutines at once. After a row was missed, or when the values are too large for memory, it
// cannot be used any more and the journal has to be read.
type Seen struct {
	View *View

	values map[engine.Ref]json.RawMessage
	size   int
	broken bool
}

// NewSeen returns an execution of which no row was seen.
func NewSeen(graph *workflow.Graph) *Seen {
	return &Seen{View: NewView(graph), values: map[engine.Ref]json.RawMessage{}}
}

// Seen returns what is known of an execution that has ended. The fold must not be used after that.
func (f *Fold) Seen() *Seen {
	for ref := range f.values.beside { // order does not matter: each is left out
		delete(f.values.held, ref)
	}
	return &Seen{View: f.View(), values: f.values.held}
}

// Plain says whether a row is in memory as it is in the journal, with all of its values.
func (r *Row) Plain() bool {
	return len(r.Large) == 0 && len(r.Beside) == 0 &&
		!slices.ContainsFunc(r.Told, func(t Told) bool { return t.Error != nil || t.Detail != nil })
}

// Add adds a row, which must not be changed afterwards. Rows must come in order; one that was added before is ignored.
func (s *Seen) Add(row *Row) {
	if s.broken || row.Seq <= s.View.Seq || len(row.Facts) == 0 {
		return
	}
	if row.Seq != s.View.Seq+1 {
		s.Break()
		return
	}
	// Values of a fork may be in rows of other executions.
	if _, created := row.Facts[0].(engine.ExecutionCreated); row.Seq == 1 && !created {
		s.Break()
		return
	}
	stored, err := row.asStored()
	if err != nil {
		s.Break()
		return
	}
	s.View.Apply(&stored)
	for n, value := range row.Values {
		if _, large := row.Large[n]; large || len(row.Beside[n]) > 0 {
			continue // it is shown by its name, which the row has; readers that need it read the row
		}
		s.values[Place{Seq: row.Seq, N: n}.Ref()] = value
		s.size += len(value) + 64
	}
	if s.size > maxSeen {
		s.Break()
	}
}

// asStored returns a row as it is read from the journal. What is told of it may hold errors and notes that are written down in
// another way than they are in memory; all else is the same in both.
func (r *Row) asStored() (Row, error) {
	out := *r
	for i := range r.Told {
		if r.Told[i].Error == nil && r.Told[i].Detail == nil {
			continue
		}
		body, err := r.Told[i].append(nil)
		if err != nil {
			return Row{}, err
		}
		var told Told
		if err := json.Unmarshal(body, &told); err != nil {
			return Row{}, err
		}
		if &out.Told[0] == &r.Told[0] {
			out.Told = slices.Clone(r.Told)
		}
		out.Told[i] = told
	}
	return out, nil
}

// Break notes that rows were missed.
func (s *Seen) Break() { s.broken, s.values = true, nil }

// Whole says whether everything was seen so far.
func (s *Seen) Whole() bool { return !s.broken && s.View.Seq > 0 }

// Value returns a value by its reference, if it is in memory. Large ones never are.
func (s *Seen) Value(ref engine.Ref) (json.RawMessage, bool) {
	value, ok := s.values[ref]
	return value, ok
}

// maxSeen bounds the values that are kept for a waiting reader, in bytes.
const maxSeen = 64 << 10
