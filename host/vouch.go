package host

import "tandem/engine"

// Vouch says that the value that was put last has been checked: it is JSON that can be kept.
func (t *Turn) Vouch() { t.vouched++ }

// Vouched says that the row can be read again when it has been written, without a look at what was written: all of its values have been
// checked, and what else is in it is written by this package and the engine, and holds no JSON that somebody else has made.
func (t *Turn) Vouched() bool {
	if t.vouched != len(t.row.Values) || !t.row.Plain() {
		return false
	}
	for _, f := range t.row.Facts {
		switch f := f.(type) {
		case engine.NodeCompleted:
			if f.Reply != nil {
				return false
			}
			for i := range f.Settled {
				if f.Settled[i].Error != nil {
					return false
				}
			}
		case engine.ExecutionCreated, engine.ExecutionStarted, engine.NodeStarted:
		default:
			return false
		}
	}
	return true
}
