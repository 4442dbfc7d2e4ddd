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
	mu      sync.Mutex
	free    int
	waiting turns[*turns[*list.List]] // of tickets, by workspace and execution
}

// ticket is one run's place in the line.
type ticket struct {
	ref   store.Ref
	begin func()
}

func newGate(size int) *gate { return &gate{free: size} }

// pass runs a function in a goroutine of its own when there is room. When the context ends before that, dropped is
// called instead.
func (g *gate) pass(ctx context.Context, ref store.Ref, run, dropped func()) {
	begin := func() {
		run()
		g.leave()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		go begin()
		return
	}
	line := g.waiting.at(ref.Workspace, newTurns).at(ref.Execution, list.New)
	place := line.PushBack(ticket{ref, begin})
	context.AfterFunc(ctx, func() {
		if g.withdraw(ref, place) {
			dropped()
		}
	})
}

func newTurns() *turns[*list.List] { return &turns[*list.List]{} }

// leave makes room for the next.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	workspace, ok := g.waiting.turn()
	if !ok {
		g.free++
		return
	}
	line, _ := workspace.turn() // a workspace without a line is not among those that wait
	next := line.Front().Value.(ticket)
	g.remove(next.ref, line.Front())
	go next.begin()
}

// withdraw takes a place back, unless its turn has come.
func (g *gate) withdraw(ref store.Ref, place *list.Element) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.remove(ref, place)
}

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
