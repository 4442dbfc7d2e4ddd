package host

import (
	"encoding/json"

	"tandem/engine"
)

// values holds what was read or written last, so that a chain of nodes hands its payloads on without going to disk. It
// is bounded; what it has let go is read from the journal again. So it is never the only place of a value: those of a row
// that is not written yet are found in the row itself ([Fold.Value]).
type values struct {
	held  map[engine.Ref]json.RawMessage
	order []engine.Ref // oldest first
	bytes int
}

// What a fold keeps at hand.
const (
	maxHeldValues = 1_000
	maxHeldBytes  = 4 << 20
)

func newValues() *values { return &values{held: map[engine.Ref]json.RawMessage{}} }

func (v *values) getValue(ref engine.Ref) (json.RawMessage, bool) {
	value, ok := v.held[ref]
	return value, ok
}

func (v *values) putValue(ref engine.Ref, value json.RawMessage) {
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
	}
}

func (v *values) addRow(level int, row *Row) {
	for n, value := range row.Values {
		if _, large := row.Large[n]; !large {
			v.putValue(Place{level, row.Seq, n}.Ref(), value)
		}
	}
}
