package turns

import "sync"

// Group lets those who come while another is at work be dealt with together. Who comes joins, then waits for its turn by other means. Who
// has the turn takes all that have joined and deals with them; the others find theirs done when their turn comes. The zero Group is empty.
type Group[T any] struct {
	mu     sync.Mutex
	joined []T
}

// Join adds one that is to be dealt with.
func (g *Group[T]) Join(one T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined = append(g.joined, one)
}

// Take takes those that have joined, the first ones first and at most so many.
func (g *Group[T]) Take(most int) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(most, len(g.joined))
	list := g.joined[:n:n]
	if g.joined = g.joined[n:]; len(g.joined) == 0 {
		g.joined = nil
	}
	return list
}
