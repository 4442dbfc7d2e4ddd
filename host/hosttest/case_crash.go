package hosttest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

func crashCases() []Case {
	return []Case{
		{Name: "Crash/ANodeThatKillsItsProcess", run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {kill: -1, effect: idempotent}", "b WORK"}, []string{"a -> b"}))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.wantError("x", string(fault.Interrupted), "a")
			want := b.deadly()
			if n := b.world.count(b.world.runs, b.at("x", "a")); n != want || b.deaths() != want {
				b.t.Errorf("it ran %d times, with %d deaths", n, b.deaths())
			}
		}},
		{Name: "Crash/ANodeThatKillsItsProcessTwice", run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {kill: 2, effect: idempotent}", "b WORK"}, []string{"a -> b"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			if n := b.world.count(b.world.effects, b.at("x", "a")); n != 1 {
				b.t.Errorf("the effect happened %d times", n)
			}
		}},
		{Name: "Crash/EverythingGoesOn", run: func(b *bench) {
			b.save(flow("f", []string{"h WORK {hold: true, effect: idempotent}", "w WAIT {seconds: 0.2}", "s WAIT {signal: go}", "q ASK", "r WORK {fail: 1}", "d WORK"},
				[]string{"h -> d", "w -> d", "s -> d", "q -> d", "r -> d"}))
			for i := range 3 {
				b.start(fmt.Sprint("x", i), "f")
			}
			b.held("h")
			ask := b.question("x1", "approval")
			b.crash()
			for i := range 3 {
				id := fmt.Sprint("x", i)
				b.signal(id, "s", "go", "1")
				if i < 2 { // with a fourth crash the node that is held would be given up
					b.crash()
				}
				b.answer(id, b.question(id, "approval"), `{"n":1}`)
			}
			b.world.release("h")
			for i := range 3 {
				b.ends(fmt.Sprint("x", i), engine.StatusSuccess)
			}
			if ask == "" {
				b.t.Error("a question without an id")
			}
		}},
		{Name: "Crash/IsToldOnce", run: func(b *bench) {
			b.save(flow("f", []string{"h WORK {hold: true, effect: idempotent}", "r WORK {fail: 1}", "q ASK"}, nil))
			b.start("x", "f")
			b.held("h")
			ask := b.question("x", "approval")
			b.node("x", "r", func(n *host.NodeView) bool { return n.Status == engine.NodeRetrying })
			before, _ := b.view("x")
			b.crash()
			b.node("x", "h", func(n *host.NodeView) bool { return n.Attempt == 2 })
			after, _ := b.view("x")
			if a, r := after.Nodes["r"], before.Nodes["r"]; !b.rig.Shared && // else the retry may have come meanwhile
				(a.Retries != r.Retries || a.Attempt != r.Attempt || a.Error == nil || a.Row != r.Row) {
				b.t.Errorf("what waits for its retry is %+v, and was %+v before the crash", a, r)
			}
			if after.Questions[ask] != before.Questions[ask] {
				b.t.Errorf("the question is %+v, and was %+v before the crash", after.Questions[ask], before.Questions[ask])
			}
			b.world.release("h")
			b.answer("x", ask, `{"n":1}`)
			b.ends("x", engine.StatusSuccess)
			told := map[engine.NodeStatus]int{}
			for row, err := range b.journal("x").Rows(b.ctx, 0) {
				if err != nil {
					b.t.Fatal(err)
				}
				for _, t := range row.Told {
					told[t.Node]++
				}
			}
			if told[engine.NodeRetrying] != 1 || told[engine.NodeWaitingInput] != 1 {
				b.t.Errorf("a retry and a question were told %d and %d times", told[engine.NodeRetrying], told[engine.NodeWaitingInput])
			}
		}},
		{Name: "Crash/ALongOneKeepsNobodyWaiting", before: func(b *bench) { b.workers = 1 }, run: func(b *bench) {
			for _, id := range []string{"x", "y"} {
				b.save(flow("f"+id, []string{id + "1 WORK {hold: true, effect: idempotent}", id + "2 WORK {hold: true, effect: idempotent}"}, []string{id + "1 -> " + id + "2"}))
			}
			b.start("x", "fx")
			b.held("x1")
			b.start("y", "fy")
			b.crash()
			b.world.release("x1")
			b.world.release("y1")
			if b.rig.Shared { // nothing comes back: whoever has a worker runs it
				b.world.release("x2")
				b.world.release("y2")
				b.ends("x", engine.StatusSuccess)
				b.ends("y", engine.StatusSuccess)
				return
			}
			for _, id := range []string{"x", "y"} { // one of them is held, with the only worker
				b.node(id, id+"1", func(n *host.NodeView) bool { return n.Attempt == 2 })
				if view, _ := b.view(id); view.Updated-view.Created > 60_000 {
					b.t.Errorf("%q came back after %d ms, when the other had parked", id, view.Updated-view.Created)
				}
			}
			b.world.release("x2")
			b.world.release("y2")
			b.ends("x", engine.StatusSuccess)
			b.ends("y", engine.StatusSuccess)
		}},
		{Name: "Crash/DuringAPause", run: func(b *bench) {
			b.save(flow("f", []string{"h WORK {hold: true, effect: idempotent}", "b WORK"}, []string{"h -> b"}))
			b.start("x", "f")
			b.held("h")
			b.act("x", host.ActionPause)
			b.crash()
			if e := b.summary("x"); e.Status != engine.StatusPaused {
				b.t.Errorf("the status is %s", e.Status)
			}
			b.world.release("h")
			b.act("x", host.ActionResume)
			b.ends("x", engine.StatusSuccess)
		}},
	}
}

func admissionCases() []Case {
	one := flow("f", []string{"a WORK {effect: idempotent}"}, nil)
	held := flow("g", []string{"h WORK {hold: true, effect: idempotent}"}, nil)
	// began lists executions in the order they began.
	began := func(b *bench) (list []string) {
		b.world.mu.Lock()
		defer b.world.mu.Unlock()
		for _, c := range b.world.order {
			if c.activation == "a" {
				list = append(list, c.execution)
			}
		}
		return list
	}
	fill := func(b *bench) {
		b.t.Helper()
		b.save(one, held)
		b.start("first", "g")
		b.held("h")
	}
	return []Case{
		{Name: "Admission/PriorityThenAge", MaxRunning: 1, run: func(b *bench) {
			fill(b)
			for i, p := range []int{5, 3, 1, 3, 1, 0} {
				b.start(fmt.Sprint("x", i), "f", func(r *host.StartRequest) { r.Priority = p })
				if e := b.summary(fmt.Sprint("x", i)); e.Status != engine.StatusPending {
					b.t.Errorf("%q is %s", e.ID, e.Status)
				}
			}
			b.world.release("h")
			for i := range 6 {
				b.ends(fmt.Sprint("x", i), engine.StatusSuccess)
			}
			if got, want := began(b), []string{"x2", "x4", "x1", "x3", "x5", "x0"}; !slices.Equal(got, want) {
				b.t.Errorf("they began as %v, want %v", got, want)
			}
		}},
		{Name: "Admission/PriorityOverACrash", MaxRunning: 1, run: func(b *bench) {
			fill(b)
			for i, p := range []int{5, 3, 1} {
				b.start(fmt.Sprint("x", i), "f", func(r *host.StartRequest) { r.Priority = p })
			}
			b.crash()
			b.world.release("h")
			for i := range 3 {
				b.ends(fmt.Sprint("x", i), engine.StatusSuccess)
			}
			if got, want := began(b), []string{"x2", "x1", "x0"}; !slices.Equal(got, want) {
				b.t.Errorf("they began as %v, want %v", got, want)
			}
		}},
		{Name: "Admission/AnEarlySignalIsKept", MaxRunning: 1, run: func(b *bench) {
			b.save(flow("w", []string{"w WAIT {signal: go}", "v WAIT {signal: go}"}, []string{"w -> v"}))
			fill(b)
			b.start("x", "w")
			b.signal("x", "w", "go", "1")
			b.crash()
			b.signal("x", "v", "go", "2")
			b.world.release("h")
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"v":{"v":8}}`)
		}},
		{Name: "Admission/WorkspacesTakeTurns", MaxRunning: 1, run: func(b *bench) {
			fill(b)
			for i := range 4 {
				b.start(fmt.Sprint("x", i), "f")
			}
			b.who = principal("two")
			for i := range 2 {
				b.start(fmt.Sprint("y", i), "f")
			}
			b.world.release("h")
			for i := range 2 {
				b.ends(fmt.Sprint("y", i), engine.StatusSuccess)
			}
			b.who = principal("one")
			for i := range 4 {
				b.ends(fmt.Sprint("x", i), engine.StatusSuccess)
			}
			got := began(b)
			if i := slices.Index(got, "y1"); i > 3 {
				b.t.Errorf("they began as %v: the second workspace waits for the first", got)
			}
		}},
		{Name: "Admission/WhatWaitsMakesRoom", Crashes: true, MaxRunning: 1, run: func(b *bench) {
			b.save(one, flow("w", []string{"w WAIT {signal: go}", "a WORK"}, []string{"w -> a"}))
			b.start("x", "w")
			b.start("y", "f")
			b.ends("y", engine.StatusSuccess)
			b.signal("x", "w", "go", "1")
			b.ends("x", engine.StatusSuccess)
		}},
		{Name: "Admission/ChildrenBelongToTheirParent", Crashes: true, MaxRunning: 1, run: func(b *bench) {
			b.save(one, flow("p", []string{"k CHILD {workflow: f}"}, nil))
			b.start("x", "p")
			b.start("y", "p")
			b.start("z", "f")
			for _, id := range []string{"x", "y", "z"} {
				b.ends(id, engine.StatusSuccess)
			}
		}},
	}
}

// taskCases are about the executions of which only so many run, whatever else does.
func taskCases() []Case {
	one := flow("task", []string{"a WORK {effect: idempotent}"}, nil)
	held := flow("task-held", []string{"h WORK {hold: true, effect: idempotent}"}, nil)
	other := flow("f", []string{"a WORK {effect: idempotent}"}, nil)
	pending := func(b *bench, id string) {
		b.t.Helper()
		if e := b.summary(id); e.Status != engine.StatusPending {
			b.t.Errorf("%q is %s, want %s", id, e.Status, engine.StatusPending)
		}
	}
	return []Case{
		{Name: "Tasks/WaitForEachOtherOnly", MaxTasks: 1, run: func(b *bench) {
			b.save(one, held, other)
			b.start("first", "task-held")
			b.held("h")
			b.start("x", "task", func(r *host.StartRequest) { r.Priority = 5 })
			b.start("y", "task", func(r *host.StartRequest) { r.Priority = 1 })
			b.start("z", "f")
			b.ends("z", engine.StatusSuccess)
			pending(b, "x")
			pending(b, "y")
			b.crash()
			b.start("w", "f")
			b.ends("w", engine.StatusSuccess)
			pending(b, "x")
			pending(b, "y")
			b.world.release("h")
			b.ends("x", engine.StatusSuccess)
			b.ends("y", engine.StatusSuccess)
			b.ends("first", engine.StatusSuccess)
			if x, y := b.summary("x"), b.summary("y"); x.Started < y.Started {
				b.t.Errorf("x began at %d, before y at %d, which comes first", x.Started, y.Started)
			}
		}},
		{Name: "Tasks/WhatWaitsMakesRoom", Crashes: true, MaxTasks: 1, run: func(b *bench) {
			b.save(one, flow("task-w", []string{"w WAIT {signal: go}", "a WORK"}, []string{"w -> a"}))
			b.start("x", "task-w")
			b.start("y", "task")
			b.ends("y", engine.StatusSuccess)
			b.signal("x", "w", "go", "1")
			b.ends("x", engine.StatusSuccess)
		}},
		{Name: "Tasks/AShortWaitMakesNoRoom", MaxTasks: 1, run: func(b *bench) {
			b.save(one, flow("task-s", []string{"w WAIT {seconds: 1}", "h WORK {hold: true, effect: idempotent}"}, []string{"w -> h"}))
			b.start("x", "task-s")
			b.start("y", "task")
			b.held("h")
			pending(b, "y")
			b.world.release("h")
			b.ends("x", engine.StatusSuccess)
			b.ends("y", engine.StatusSuccess)
		}},
		{Name: "Tasks/AnAnsweredOneGoesOnBeforeNewOnes", MaxTasks: 1, run: func(b *bench) {
			b.save(one, held, flow("task-w", []string{"w WAIT {signal: go}", "a WORK"}, []string{"w -> a"}))
			b.start("x", "task-w")
			b.reaches("x", engine.StatusWaiting)
			b.start("first", "task-held")
			b.held("h")
			b.start("y", "task")
			b.signal("x", "w", "go", "1")
			b.ends("x", engine.StatusSuccess)
			pending(b, "y")
			b.world.release("h")
			b.ends("y", engine.StatusSuccess)
		}},
		{Name: "Tasks/ChildrenAreTasksToo", Crashes: true, MaxTasks: 1, run: func(b *bench) {
			b.save(one, flow("p", []string{"k CHILD {workflow: task}", "l CHILD {workflow: task}", "m CHILD {workflow: task}"}, nil))
			b.start("x", "p")
			b.start("y", "p")
			b.ends("x", engine.StatusSuccess)
			b.ends("y", engine.StatusSuccess)
		}},
		{Name: "Tasks/AChildWaitsForRoomAndIsCanceledWithItsParent", MaxTasks: 1, run: func(b *bench) {
			b.save(one, held, flow("p", []string{"k CHILD {workflow: task}"}, nil))
			b.start("first", "task-held")
			b.held("h")
			b.start("x", "p")
			child := engine.ChildID("x", "k", 0)
			b.reaches("x", engine.StatusWaiting)
			b.reaches(child, engine.StatusPending)
			b.crash()
			b.reaches(child, engine.StatusPending)
			b.act("x", host.ActionCancel)
			b.ends(child, engine.StatusCanceled)
			b.ends("x", engine.StatusCanceled)
			b.start("y", "task")
			b.world.release("h")
			b.ends("y", engine.StatusSuccess)
			b.wantRuns(child, "a", 0)
		}},
		{Name: "Tasks/BothLimits", Crashes: true, MaxTasks: 1, MaxRunning: 2, run: func(b *bench) {
			b.save(one, other, flow("p", []string{"k CHILD {workflow: task}", "a WORK"}, []string{"k -> a"}))
			for i := range 3 {
				b.start(fmt.Sprint("x", i), "task")
				b.start(fmt.Sprint("y", i), "f")
				b.start(fmt.Sprint("z", i), "p")
			}
			for i := range 3 {
				b.ends(fmt.Sprint("x", i), engine.StatusSuccess)
				b.ends(fmt.Sprint("y", i), engine.StatusSuccess)
				b.ends(fmt.Sprint("z", i), engine.StatusSuccess)
			}
		}},
	}
}

// ClockCases are two halves of a case: what the first leaves behind on the disk, the second brings to its end. Between
// them the clock may be set back.
func ClockCases() (before, after Case) {
	texts := []string{
		flow("f", []string{"h WORK {hold: true, effect: idempotent}", "w WAIT {seconds: 10}", "r WORK {fail: 1}", "k CHILD {workflow: kid}", "v WAIT {seconds: 1}", "d WORK {fail: 1}"},
			[]string{"h -> d", "w -> d", "r -> d", "k -> d", "d -> v"}),
		flow("kid", []string{"a WAIT {seconds: 5}"}, nil),
	}
	save := func(b *bench) { b.save(texts...) }
	before = Case{Name: "Clock/Before", before: save, run: func(b *bench) {
		b.idle(3 * time.Hour)
		b.start("x", "f")
		b.held("h")
		b.reaches(engine.ChildID("x", "k", 0), engine.StatusWaiting)
		b.node("x", "r", func(n *host.NodeView) bool { return n.Status == engine.NodeRetrying })
	}}
	after = Case{Name: "Clock/After", before: save, run: func(b *bench) {
		b.world.release("h")
		b.ends("x", engine.StatusSuccess)
	}}
	return before, after
}

// Leave plays the case and then kills the process, so that what is on the disk is all there is.
func (c Case) Leave(t *testing.T, rig Rig) {
	t.Helper()
	b := c.bench(t, rig, Fate{})
	c.run(b)
	b.fuse.Kill()
	b.host.Close()
}
