package hosttest

import (
	"fmt"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

// stopCases are about processes that are told to stop, and about which runs the death of one is blamed on.
func stopCases() []Case {
	once := "WORK {effect: once, hold: true}"
	held := "WORK {effect: idempotent, hold: true}"
	return []Case{
		{Name: "Stop/WhatRunsEndsAndNothingNewBegins", run: func(b *bench) {
			b.save(flow("f", []string{"o " + once, "p WORK {effect: once}", "k CHILD {workflow: kid}", "w WAIT {seconds: 0.01}"}, []string{"o -> p", "p -> w", "o -> k"}), flow("kid", []string{"a WORK"}, nil))
			b.start("x", "f")
			b.held("o")
			b.stop(time.Hour, func() { b.world.release("o") }, func() {
				b.wantRuns("x", "o", 1)
				b.wantRuns("x", "p", 0)
				if s := b.status("x", "o"); s != engine.NodeDone {
					b.t.Errorf("what ran is %s", s)
				}
			})
			b.ends("x", engine.StatusSuccess) // nobody answers questions here
			b.wantRuns("x", "o", 1)
			b.wantRuns("x", "p", 1)
		}},
		{Name: "Stop/WhatWaitsForAWorkerHasNotBegun", before: func(b *bench) { b.workers = 1 }, run: func(b *bench) {
			b.save(flow("f", []string{"o " + once}, nil), flow("g", []string{"o WORK {effect: once}"}, nil))
			b.start("x", "f")
			b.held("o")
			for i := range 3 {
				b.start(fmt.Sprint("y", i), "g")
			}
			b.stop(time.Hour, func() { b.world.release("o") }, nil)
			b.ends("x", engine.StatusSuccess)
			for i := range 3 {
				b.ends(fmt.Sprint("y", i), engine.StatusSuccess)
				b.wantRuns(fmt.Sprint("y", i), "o", 1)
			}
		}},
		{Name: "Stop/AfterTheGraceItIsAsAfterACrash", run: func(b *bench) {
			b.manual = true
			b.save(flow("f", []string{"o " + once}, nil))
			b.start("x", "f")
			b.held("o")
			b.stop(time.Millisecond, nil, nil)
			b.question("x", engine.PurposeOutcomeUnknown)
			b.loose = true
		}},
		{Name: "Stop/NeverCounts", run: func(b *bench) {
			b.save(flow("f", []string{"h " + held}, nil))
			b.start("x", "f")
			runs := 0
			for range 6 {
				runs = b.heldMore("h", runs)
				b.stop(time.Millisecond, nil, nil)
			}
			b.world.release("h")
			b.ends("x", engine.StatusSuccess)
			if view, _ := b.view("x"); view.Nodes["h"].Attempt != 7 {
				b.t.Errorf("the attempt is %d", view.Nodes["h"].Attempt)
			}
		}},
		{Name: "Stop/RequestsAreKept", run: func(b *bench) {
			b.save(flow("f", []string{"h " + held, "s WAIT {signal: go}", "q ASK", "d WORK"}, []string{"h -> d", "s -> d", "q -> d"}), flow("g", []string{"o WORK {effect: once}"}, nil))
			b.start("x", "f")
			b.held("h")
			ask := b.question("x", "approval")
			b.stop(time.Hour, func() {
				b.signal("x", "s", "go", "1")
				b.answer("x", ask, `{"n":1}`)
				b.start("y", "g")
				b.world.release("h")
			}, func() {
				b.wantRuns("x", "d", 0)
				b.wantRuns("y", "o", 0)
			})
			b.ends("x", engine.StatusSuccess)
			b.ends("y", engine.StatusSuccess)
		}},
		{Name: "Stop/ARestingHostOnlyRecords", run: func(b *bench) {
			b.save(flow("f", []string{"q ASK", "o WORK {effect: once}", "w WAIT {seconds: 0.01}"}, []string{"q -> o", "w -> o"}))
			b.start("x", "f")
			ask := b.question("x", "approval")
			b.start("y", "f")
			b.question("y", "approval")
			b.resting = true
			b.stop(time.Hour, nil, nil)
			b.answer("x", ask, `{"n":1}`)
			b.act("y", host.ActionCancel)
			b.ends("y", engine.StatusCanceled)
			b.resting = false
			b.stop(time.Hour, nil, func() {
				b.wantRuns("x", "o", 0)
				if s := b.summary("x").Status; s != engine.StatusRunning {
					b.t.Errorf("the status is %s", s)
				}
			})
			b.ends("x", engine.StatusSuccess)
		}},
		{Name: "Blame/ManyDeathsBesideOthers", run: func(b *bench) {
			b.save(flow("f", []string{"h " + held}, nil))
			for _, id := range []string{"x", "y"} {
				b.start(id, "f")
			}
			deaths := 8
			if b.rig.Shared { // each takes time
				deaths = engine.MaxBlamed + 1
			}
			for n := range deaths {
				b.await("both to run", func() bool {
					b.world.mu.Lock()
					defer b.world.mu.Unlock()
					return b.world.began["h"] == 2*(n+1)
				})
				if b.rig.Shared { // what has come back is not tried any more
					b.idle(2 * time.Second << n)
				}
				b.crash()
			}
			b.world.release("h")
			for _, id := range []string{"x", "y"} {
				b.ends(id, engine.StatusSuccess)
			}
		}},
		{Name: "Blame/PoisonAmongOthers", run: func(b *bench) {
			b.save(flow("f", []string{"h " + held, "i WORK"}, []string{"h -> i"}), flow("g", []string{"k WORK {effect: idempotent, kill: -1}"}, nil))
			for i := range 5 {
				b.start(fmt.Sprint("x", i), "f")
			}
			b.await("all to run", func() bool {
				b.world.mu.Lock()
				defer b.world.mu.Unlock()
				return b.world.began["h"] == 5
			})
			b.start("p", "g")
			b.ends("p", engine.StatusError)
			b.wantError("p", string(fault.Interrupted), "k")
			if n := b.deaths(); n > 8 { // six ran: at most three, one and one before it runs alone
				b.t.Errorf("it took %d deaths to find it", n)
			}
			b.start("y", "f")
			b.world.release("h")
			for i := range 5 {
				b.ends(fmt.Sprint("x", i), engine.StatusSuccess)
			}
			b.ends("y", engine.StatusSuccess)
		}},
	}
}
