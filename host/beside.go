package host

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"tandem/engine"
	"tandem/payload"
)

// A body of a loop that returns its input would write the same large fields again with every iteration. So a row may keep such fields of a
// value beside it, by the names of large values: the first row that has one stores it, and the others name it.

// Beside is a field of a value that is kept beside it.
type Beside struct {
	// At is its position among all fields of the value, Key its name.
	At  int    `json:"at"`
	Key string `json:"key"`
	// Blob names what it holds. A row that is being written has the value itself too.
	Blob
	value json.RawMessage
}

// part is the field as it is in the value, which get reads unless it is at hand.
func (b *Beside) part(get func(Blob) (json.RawMessage, error)) (payload.Part, error) {
	value := b.value
	if value == nil {
		var err error
		if value, err = get(b.Blob); err != nil {
			return payload.Part{}, err
		}
	}
	return payload.Part{At: b.At, Member: payload.Member{Key: b.Key, Value: value}}, nil
}

// Parts are the fields that are kept beside a value of the row, which get reads unless they are at hand; nil if there are none.
func (r *Row) Parts(n int, get func(Blob) (json.RawMessage, error)) ([]payload.Part, error) {
	var parts []payload.Part
	for i := range r.Beside[n] {
		p, err := r.Beside[n][i].part(get)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// Shown is a value of the row as readers see it: fields that are kept beside it are shown by their names.
func (r *Row) Shown(n int) json.RawMessage {
	if len(r.Beside[n]) == 0 {
		return r.Values[n]
	}
	parts, err := r.Parts(n, Blob.shown)
	if err != nil {
		return r.Values[n] // naming cannot fail
	}
	return payload.Join(r.Values[n], parts)
}

// shown is a large value as readers see it: by its name.
func (b Blob) shown() (json.RawMessage, error) {
	return fmt.Appendf(nil, `{"$blob":%q,"size":%d}`, b.Hash, b.Size), nil
}

// SpillBeside stores the fields that are kept beside the values of the row as large values.
func (r *Row) SpillBeside(put func(json.RawMessage) (Blob, error)) error {
	if len(r.Beside) == 0 { // as most rows are
		return nil
	}
	for _, n := range slices.Sorted(maps.Keys(r.Beside)) {
		for i := range r.Beside[n] {
			b := &r.Beside[n][i]
			if b.Hash != "" {
				continue
			}
			blob, err := put(b.value)
			if err != nil {
				return fmt.Errorf("keep field %q of value %d of row %d: %w", b.Key, n, r.Seq, err)
			}
			b.Blob = blob
		}
	}
	return nil
}

// Cut drops all values but the first so many: nothing refers to the others.
func (r *Row) Cut(kept int) {
	r.Values = r.Values[:kept]
	maps.DeleteFunc(r.Beside, func(n int, _ []Beside) bool { return n >= kept })
}

// stripBeside drops the fields beside the values from memory.
func (r *Row) stripBeside() {
	if len(r.Beside) == 0 {
		return
	}
	named := make(map[int][]Beside, len(r.Beside))
	gives := r.gives()              // what an execution begins with is needed to read the rest
	for n, list := range r.Beside { // order does not matter: one entry per value
		if gives && n == givenValue {
			named[n] = list
			continue
		}
		list = slices.Clone(list)
		for i := range list {
			list[i].value = nil
		}
		named[n] = list
	}
	r.Beside = named
}

// shared caches large fields by the hash of their content, so that a journal whose rows share them reads them once.
type shared struct {
	held  map[string]json.RawMessage
	bytes int
}

// maxShared bounds the cache, in bytes.
const maxShared = 32 << 20

func (s *shared) load(get func(Blob) (json.RawMessage, error)) func(Blob) (json.RawMessage, error) {
	return func(b Blob) (json.RawMessage, error) {
		if value, ok := s.held[b.Hash]; ok {
			return value, nil
		}
		value, err := get(b)
		if err != nil {
			return nil, loadError{err}
		}
		if s.held == nil || s.bytes+len(value) > maxShared {
			s.held, s.bytes = map[string]json.RawMessage{}, 0
		}
		s.held[b.Hash], s.bytes = value, s.bytes+len(value)
		return value, nil
	}
}

// joins are the values that several connections bring to a run, by their fields, if large fields are kept beside them; none if they were
// edited.
func (f *Fold) joins(run engine.RunNode) (map[engine.Ref][]payload.Member, error) {
	if len(run.Inputs) < 2 || run.Input != "" || run.Step != nil || run.Cause.Kind != engine.CauseRun {
		return nil, nil
	}
	var fields map[engine.Ref][]payload.Member
	for _, in := range run.Inputs {
		value, parts, err := f.fetch(in.Ref)
		if err != nil {
			return nil, err
		}
		if len(parts) > 0 {
			if fields == nil {
				fields = map[engine.Ref][]payload.Member{}
			}
			fields[in.Ref] = payload.JoinedMembers(value, parts)
		}
	}
	if fields == nil {
		return nil, nil
	}
	edits, of, err := f.edits(run)
	if err != nil || len(edits) > 0 || len(of) > 0 {
		return nil, err
	}
	return fields, nil
}

// Size is how large the fields are that a run may get besides its values.
func (d *Data) Size() int {
	size := 0
	for _, field := range d.Entry {
		size += len(field.Value)
	}
	for _, fields := range d.Joined { // order does not matter: a sum
		for _, field := range fields {
			size += len(field.Value)
		}
	}
	return size
}

// handed is what the only connection of a run brings, by its fields, if large fields are kept beside it; none if it was edited.
func (f *Fold) handed(run engine.RunNode) ([]payload.Member, error) {
	if len(run.Inputs) != 1 || run.Inputs[0].Ref == "" || run.Input != "" || run.Step != nil || run.Cause.Kind != engine.CauseRun {
		return nil, nil
	}
	value, parts, err := f.fetch(run.Inputs[0].Ref)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	edits, of, err := f.edits(run)
	if err != nil || len(edits) > 0 || len(of) > 0 {
		return nil, err
	}
	return payload.JoinedMembers(value, parts), nil
}
