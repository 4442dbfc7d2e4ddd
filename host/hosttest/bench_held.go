package hosttest

import (
	"fmt"

	"tandem/engine"
)

// held waits until runs of a node are held.
func (b *bench) held(name string) {
	b.t.Helper()
	b.heldMore(name, 0)
}

// heldMore waits until more runs of a node are, or were, held than there have been, and returns how many.
func (b *bench) heldMore(name string, been int) (runs int) {
	b.t.Helper()
	b.await(fmt.Sprintf("node %q to be held", name), func() bool {
		b.world.mu.Lock()
		defer b.world.mu.Unlock()
		runs = b.world.began[name]
		return runs > been
	})
	return runs
}

// question waits for a question and returns its id.
func (b *bench) question(id, purpose string) engine.AskID {
	b.t.Helper()
	var ask engine.AskID
	b.await(fmt.Sprintf("a question of %q", id), func() bool {
		if b.summary(id).ID == "" {
			return false
		}
		view, _ := b.view(id)
		for a, q := range view.Questions { // order does not matter: there is one
			if q.Purpose == purpose {
				ask = a
				return true
			}
		}
		return false
	})
	return ask
}
