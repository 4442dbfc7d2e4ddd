package turns

import (
	"container/list"
	"context"
	"sync"

	"tandem/store"
)

// Gate lets so many runs go on at once. What has to wait is served in turns: workspace by workspace, within it execution
// by execution, within that in order. So one that fans out to a thousand does not keep another waiting. An execution may have a
// limit of its own; what is beyond it is held back and does not stand in line.
type Gate struct {
	mu   sync.Mutex
	size int
	// busy counts the runs that go on, those on trial too.
	busy    int
	waiting turns[*turns[*list.List]] // of tickets, by workspace and execution
	shares  map[store.Ref]*share
	// closed says that nothing is let in while runs are tried, shut that nothing is let in any more.
	closed, shut bool
}

// share is what one execution has of the gate.
type share struct {
	// in counts its runs that go on or stand in line; held are those beyond its limit.
	in   int
	held list.List // of *ticket
}

// ticket is one run's place in the line, or among those that are held back.
type ticket struct {
	ref   store.Ref
	begin func()
	// drop is called instead when the gate is shut.
	drop  func()
	place *list.Element
	held  bool
}

// NewGate lets so many runs go on at once.
func NewGate(size int) *Gate { return &Gate{size: size, shares: map[store.Ref]*share{}} }

// Pass runs a function in a goroutine of its own when there is room, for all and within the limit of its execution; no limit is 0.
// When the context ends before that, or the gate is shut, dropped is called instead.
func (g *Gate) Pass(ctx context.Context, ref store.Ref, limit int, run, dropped func()) {
	t := &ticket{ref: ref, drop: dropped, begin: func() {
		run()
		g.leave(ref)
	}}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		go dropped()
		return
	}
	s := g.shares[ref]
	if s == nil {
		s = &share{}
		g.shares[ref] = s
	}
	switch {
	case limit > 0 && s.in >= limit:
		t.held, t.place = true, s.held.PushBack(t)
	case g.open():
		s.in++
		g.busy++
		go t.begin()
		return
	default:
		s.in++
		g.queue(t)
	}
	context.AfterFunc(ctx, func() {
		if g.withdraw(t) {
			dropped()
		}
	})
}

// queue puts a ticket in line.
func (g *Gate) queue(t *ticket) {
	t.held, t.place = false, g.waiting.at(t.ref.Workspace, newLines).at(t.ref.Execution, list.New).PushBack(t)
}

// release gives up a place within the limit of an execution, which what it holds back may take.
func (g *Gate) release(ref store.Ref) {
	s := g.shares[ref]
	if first := s.held.Front(); first != nil {
		g.queue(s.held.Remove(first).(*ticket))
		return
	}
	if s.in--; s.in == 0 {
		delete(g.shares, ref)
	}
}

// open says that there is room for one more.
func (g *Gate) open() bool { return !g.closed && !g.shut && g.busy < g.size }

// leave makes room for the next.
func (g *Gate) leave(ref store.Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.release(ref)
	g.admit()
}

// admit lets those in for whom there is room.
func (g *Gate) admit() {
	for g.open() {
		next, ok := g.next()
		if !ok {
			return
		}
		g.busy++
		go next.begin()
	}
}

// next takes the ticket whose turn it is out of the line.
func (g *Gate) next() (*ticket, bool) {
	workspace, ok := g.waiting.turn()
	if !ok {
		return nil, false
	}
	line, _ := workspace.turn() // a workspace without a line is not among those that wait
	next := line.Front().Value.(*ticket)
	g.remove(next.ref, line.Front())
	return next, true
}

// withdraw takes a place back, unless its turn has come.
func (g *Gate) withdraw(t *ticket) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.held {
		s := g.shares[t.ref]
		if s == nil { // the gate is shut, and it was dropped
			return false
		}
		before := s.held.Len()
		s.held.Remove(t.place)
		return s.held.Len() < before
	}
	if !g.remove(t.ref, t.place) {
		return false
	}
	g.release(t.ref)
	g.admit()
	return true
}

// ShutDown lets nobody in any more. Those who wait are dropped; what goes on goes on.
func (g *Gate) ShutDown() {
	g.mu.Lock()
	g.shut = true
	var dropped []func()
	for next, ok := g.next(); ok; next, ok = g.next() {
		dropped = append(dropped, next.drop)
	}
	for _, s := range g.shares { // order does not matter: all are dropped
		for e := s.held.Front(); e != nil; e = e.Next() {
			dropped = append(dropped, e.Value.(*ticket).drop)
		}
		s.held.Init()
	}
	g.mu.Unlock()
	for _, drop := range dropped {
		drop()
	}
}

// Close keeps all out who do not come by try.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Reopen lets others in again.
func (g *Gate) Reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
	g.admit()
}

// Try runs a function past those who wait.
func (g *Gate) Try(run func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy++
	go func() {
		run()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.busy--
		g.admit()
	}()
}

func newLines() *turns[*list.List] { return &turns[*list.List]{} }

// remove takes a place out of its line, and an empty line out of those that wait.
func (g *Gate) remove(ref store.Ref, place *list.Element) bool {
	workspace, ok := g.waiting.get(ref.Workspace)
	if !ok {
		return false
	}
	line, ok := workspace.get(ref.Execution)
	if !ok {
		return false
	}
	before := line.Len()
	line.Remove(place) // does nothing to one that is no longer in it
	if line.Len() == 0 {
		workspace.remove(ref.Execution)
	}
	if workspace.empty() {
		g.waiting.remove(ref.Workspace)
	}
	return line.Len() < before
}

// turns are things by name that take turns. The zero value is empty.
type turns[T any] struct {
	order list.List // of named[T], whose turn it is first
	names map[string]*list.Element
}

type named[T any] struct {
	name  string
	thing T
}

func (t *turns[T]) at(name string, make func() T) T {
	if thing, ok := t.get(name); ok {
		return thing
	}
	if t.names == nil {
		t.names = map[string]*list.Element{}
	}
	thing := make()
	t.names[name] = t.order.PushBack(named[T]{name, thing})
	return thing
}

func (t *turns[T]) get(name string) (thing T, ok bool) {
	if e := t.names[name]; e != nil {
		return e.Value.(named[T]).thing, true
	}
	return thing, false
}

// turn returns whose turn it is; the next turn is another's.
func (t *turns[T]) turn() (thing T, ok bool) {
	e := t.order.Front()
	if e == nil {
		return thing, false
	}
	t.order.MoveToBack(e)
	return e.Value.(named[T]).thing, true
}

func (t *turns[T]) remove(name string) {
	if e := t.names[name]; e != nil {
		t.order.Remove(e)
		delete(t.names, name)
	}
}

func (t *turns[T]) empty() bool { return t.order.Len() == 0 }
