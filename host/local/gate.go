package local

import (
	"container/list"
	"context"
	"sync"

	"tandem/store"
)

// gate lets so many runs go on at once. What has to wait is served in turns: workspace by workspace, within it execution
// by execution, within that in order. So one that fans out to a thousand does not keep another waiting.
type gate struct {
	mu   sync.Mutex
	size int
	// busy counts the runs that go on, those on trial too.
	busy    int
	waiting turns[*turns[*list.List]] // of tickets, by workspace and execution
	// closed says that nobody is let in while runs are tried, shut that nobody is any more.
	closed, shut bool
}

// ticket is one run's place in the line.
type ticket struct {
	ref   store.Ref
	begin func()
	// drop is called instead when the gate is shut.
	drop func()
}

func newGate(size int) *gate { return &gate{size: size} }

// pass runs a function in a goroutine of its own when there is room. When the context ends before that, or the gate is shut,
// dropped is called instead.
func (g *gate) pass(ctx context.Context, ref store.Ref, run, dropped func()) {
	begin := func() {
		run()
		g.leave()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		go dropped()
		return
	}
	if g.open() {
		g.busy++
		go begin()
		return
	}
	line := g.waiting.at(ref.Workspace, newTurns).at(ref.Execution, list.New)
	place := line.PushBack(ticket{ref, begin, dropped})
	context.AfterFunc(ctx, func() {
		if g.withdraw(ref, place) {
			dropped()
		}
	})
}

// open says that there is room for one more.
func (g *gate) open() bool { return !g.closed && !g.shut && g.busy < g.size }

// leave makes room for the next.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.admit()
}

// admit lets those in for whom there is room.
func (g *gate) admit() {
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
func (g *gate) next() (ticket, bool) {
	workspace, ok := g.waiting.turn()
	if !ok {
		return ticket{}, false
	}
	line, _ := workspace.turn() // a workspace without a line is not among those that wait
	next := line.Front().Value.(ticket)
	g.remove(next.ref, line.Front())
	return next, true
}

// withdraw takes a place back, unless its turn has come.
func (g *gate) withdraw(ref store.Ref, place *list.Element) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.remove(ref, place)
}

// shutDown lets nobody in any more. Those who wait are dropped; what goes on goes on.
func (g *gate) shutDown() {
	g.mu.Lock()
	g.shut = true
	var dropped []func()
	for next, ok := g.next(); ok; next, ok = g.next() {
		dropped = append(dropped, next.drop)
	}
	g.mu.Unlock()
	for _, drop := range dropped {
		drop()
	}
}

// close keeps all out who do not come by try.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// reopen lets others in again.
func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
	g.admit()
}

// try runs a function past those who wait.
func (g *gate) try(run func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy++
	go func() {
		run()
		g.leave()
	}()
}

func newTurns() *turns[*list.List] { return &turns[*list.List]{} }

// remove takes a place out of its line, and an empty line out of those that wait.
func (g *gate) remove(ref store.Ref, place *list.Element) bool {
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
