package host

import (
	"encoding/json"

	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
)

// values holds what was read or written last, so that a chain of nodes passes its payloads on without going to disk. It
// is bounded; what it has dropped is read from the journal again. So it is never the only place of a value: those of a
// row that is not written yet are found in the row itself ([Fold.Value]).
type values struct {
	held  map[engine.Ref]json.RawMessage
	order []engine.Ref // oldest first
	bytes int
	// beside are the fields that are kept beside a value that is held. They are in memory anyway, since many have them in common.
	beside map[engine.Ref][]payload.Part
}

// What a fold keeps in memory.
const (
	maxHeldValues = 1_000
	maxHeldBytes  = 4 << 20
)

func newValues() *values {
	return &values{held: map[engine.Ref]json.RawMessage{}, beside: map[engine.Ref][]payload.Part{}}
}

func (v *values) getValue(ref engine.Ref) (json.RawMessage, bool) {
	value, ok := v.held[ref]
	return value, ok
}

func (v *values) putValue(ref engine.Ref, value json.RawMessage, beside ...payload.Part) {
	delete(v.beside, ref)
	if len(beside) > 0 {
		v.beside[ref] = beside
	}
	// A row that was begun and not written leaves references behind that the next row uses again.
	if old, ok := v.held[ref]; ok {
		v.bytes += len(value) - len(old)
		v.held[ref] = value
		return
	}
	v.held[ref] = value
	v.order = append(v.order, ref)
	v.bytes += len(value)
	for len(v.order) > 1 && (len(v.order) > maxHeldValues || v.bytes > maxHeldBytes) {
		oldest := v.order[0]
		v.order = v.order[1:]
		v.bytes -= len(v.held[oldest])
		delete(v.held, oldest)
		delete(v.beside, oldest)
	}
}

func (v *values) addRow(level int, row *Row) {
	for n, value := range row.Values {
		if _, large := row.Large[n]; !large && len(row.Beside[n]) == 0 {
			v.putValue(Place{level, row.Seq, n}.Ref(), value)
		}
	}
}

// Value returns a value by its reference; nil for an empty one.
func (f *Fold) Value(ref engine.Ref) (json.RawMessage, error) {
	value, parts, err := f.fetch(ref)
	return payload.Join(value, parts), err
}

// fetch returns a value without the fields that are kept beside it, and these.
func (f *Fold) fetch(ref engine.Ref) (json.RawMessage, []payload.Part, error) {
	if ref == "" {
		return nil, nil, nil
	}
	if v, ok := f.values.getValue(ref); ok {
		return v, f.values.beside[ref], nil
	}
	place, err := ParseRef(ref)
	if err != nil {
		return nil, nil, err
	}
	row, begun := f.begun(place)
	if !begun {
		execution, err := f.start.owner(f.id, place)
		if err != nil {
			return nil, nil, err
		}
		if row, err = f.load.Row(execution, place.Seq); err != nil {
			return nil, nil, loadError{err}
		}
		f.values.addRow(place.Level, &row)
	}
	if place.N >= len(row.Values) {
		return nil, nil, fault.Newf(fault.Unreadable, "row %d has no value %d", place.Seq, place.N)
	}
	if len(row.Beside[place.N]) > 0 {
		parts, err := row.Parts(place.N, f.shared.load(f.load.Blob))
		if err == nil {
			f.values.putValue(ref, row.Values[place.N], parts...)
		}
		return row.Values[place.N], parts, err
	}
	blob, large := row.Large[place.N]
	if !large {
		return row.Values[place.N], nil, nil
	}
	value, err := f.load.Blob(blob)
	if err != nil {
		return nil, nil, loadError{err}
	}
	f.values.putValue(ref, value)
	return value, nil, nil
}

// begun returns the row that was begun last if a value is in it. The large values of one that is being written are in it as
// well; of one that was read, only their names are.
func (f *Fold) begun(place Place) (Row, bool) {
	if f.turn == nil || place.Seq != f.turn.row.Seq || place.Level != f.start.Level() {
		return Row{}, false
	}
	row := f.turn.row
	if !f.turn.read {
		row.Large = nil
	}
	return row, true
}
