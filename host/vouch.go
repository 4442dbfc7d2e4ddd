package host

import "tandem/engine"

// Vouch is called when the value that was put last has been checked: it is JSON that can be stored.
func (t *Turn) Vouch() { t.vouched++ }

// Vouched says whether the row is certain to be readable, so that it need not be checked: all of its values have been checked, and
// everything else is written by this package and the engine, without JSON from elsewhere.
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
