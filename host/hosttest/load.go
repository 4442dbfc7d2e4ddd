package hosttest

import (
	"fmt"

	"tandem/engine"
	"tandem/host"
)

// Load is a case of so many executions at once, with effects that must not be repeated, timers, children, questions and failures. While all
// of them are in the midst of it something befalls what is outside of the processes; befall returns when it is over. Meanwhile it can wait
// until a run has come back that was under way before, and let all runs end.
func Load(size int, befall func(again, end func())) Case {
	return Case{Name: "Load", before: func(b *bench) { b.workers = 4 * size }, run: func(b *bench) {
		b.obliging, b.repeats, b.world.repeats = true, true, true
		b.save(flow("f", []string{
			"h WORK {hold: true, effect: idempotent}", "o WORK {hold: true, late: true, effect: once}", "w WAIT {seconds: 0.2}", "k CHILD {workflow: kid}", "q ASK",
			"r WORK {fail: 1}", "p WORK {effect: once}", "d WORK {effect: once}",
		}, []string{"p -> h", "p -> o", "h -> d", "o -> d", "w -> d", "k -> d", "q -> d", "r -> d"}), flow("kid", []string{"a WORK {effect: once}", "w WAIT {seconds: 0.1}"}, []string{"a -> w"}))
		for i := range size {
			b.start(fmt.Sprint("x", i), "f")
		}
		began := func(name string) int {
			b.world.mu.Lock()
			defer b.world.mu.Unlock()
			return b.world.began[name]
		}
		b.await("all to be under way", func() bool { return began("h") >= size && began("o") >= size })
		end := func() {
			b.world.release("h")
			b.world.release("o")
		}
		befall(func() {
			b.t.Helper()
			b.heldMore("h", began("h"))
		}, end)
		end()
		for i := range size {
			b.start(fmt.Sprint("y", i), "f") // it works as before
		}
		for i := range size {
			b.ends(fmt.Sprint("x", i), engine.StatusSuccess)
			b.ends(fmt.Sprint("y", i), engine.StatusSuccess)
		}
	}}
}

// Packed is a case of a process that has as much to run as it can, with so many workers, which are held: canceling reaches all that runs,
// and what comes then runs as always.
func Packed(workers, runs int) Case {
	return Case{Name: "Packed", before: func(b *bench) { b.workers = workers }, run: func(b *bench) {
		var nodes []string
		for i := range runs {
			nodes = append(nodes, fmt.Sprintf("h%d WORK {hold: true, effect: idempotent}", i))
		}
		b.save(flow("f", nodes, nil), flow("g", []string{"a WORK"}, nil))
		b.start("x", "f")
		for i := range runs {
			b.held(fmt.Sprint("h", i))
		}
		b.act("x", host.ActionCancel)
		b.ends("x", engine.StatusCanceled)
		b.await("all runs to stop", func() bool {
			b.world.mu.Lock()
			defer b.world.mu.Unlock()
			for i := range runs {
				if !b.world.stopped[b.at("x", engine.ActivationID(fmt.Sprint("h", i)))] {
					return false
				}
			}
			return true
		})
		b.start("y", "g")
		b.ends("y", engine.StatusSuccess)
	}}
}

// Chain is a case of so many executions of so many pure steps each. It is for measuring: begun is called when the processes are ready.
func Chain(executions, steps int, begun func()) Case {
	return Case{Name: "Chain", run: func(b *bench) {
		var nodes, edges []string
		for i := range steps {
			nodes = append(nodes, fmt.Sprintf("n%d WORK", i))
			if i > 0 {
				edges = append(edges, fmt.Sprintf("n%d -> n%d", i-1, i))
			}
		}
		b.save(flow("f", nodes, edges))
		begun()
		for i := range executions {
			b.start(fmt.Sprint("x", i), "f")
		}
		for i := range executions {
			b.ends(fmt.Sprint("x", i), engine.StatusSuccess)
		}
	}}
}

// Wide is a case of one execution of so many nodes side by side. It is for measuring: begun is called when the processes are
// ready.
func Wide(width int, begun func()) Case {
	return Case{Name: "Wide", run: func(b *bench) {
		var nodes []string
		for i := range width {
			nodes = append(nodes, fmt.Sprintf("n%d WORK {effect: idempotent}", i))
		}
		b.save(flow("f", nodes, nil))
		begun()
		b.start("x", "f")
		b.ends("x", engine.StatusSuccess)
	}}
}
