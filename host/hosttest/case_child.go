package hosttest

import (
	"encoding/json"
	"slices"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

func childCases() []Case {
	parent := func(config string) string {
		return flow("par", []string{"s WORK", "k CHILD {workflow: kid" + config + "}", "d WORK"}, []string{"s -> k", "k -> d"})
	}
	return []Case{
		{Name: "Child/IsWaitedFor", Crashes: true, run: func(b *bench) {
			b.save(parent(""), flow("kid", []string{"a WORK {effect: once}", "w WAIT {seconds: 0.05}", "c WORK"}, []string{"a -> w", "w -> c"}))
			b.start("x", "par")
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"d":{"d":6}}`)
			e := b.summary(engine.ChildID("x", "k", 0))
			if e.Status != engine.StatusSuccess || e.Parent != "x" || e.TriggerType != "PARENT" {
				b.t.Errorf("the child is %+v", e)
			}
		}},
		{Name: "Child/OneAfterTheOther", Crashes: true, run: func(b *bench) {
			b.save(parent(", children: 3"), flow("kid", []string{"a WORK"}, nil))
			b.start("x", "par")
			b.ends("x", engine.StatusSuccess)
			if n := len(b.all()); n != 4 {
				b.t.Errorf("%d executions", n)
			}
		}},
		{Name: "Child/SharedFields", Crashes: true, run: (*bench).childrenShare},
		{Name: "Child/Detached", Crashes: true, run: func(b *bench) {
			b.save(parent(", detached: true"), flow("kid", []string{"a WAIT {seconds: 0.2}"}, nil))
			b.start("x", "par")
			b.ends("x", engine.StatusSuccess)
			kid := engine.ChildID("x", "k", 0)
			b.ends(kid, engine.StatusSuccess)
			if e := b.summary(kid); e.Parent != "" {
				b.t.Errorf("the parent of a detached child is %q", e.Parent)
			}
		}},
		{Name: "Child/DetachedIsTheLastThing", Crashes: true, run: func(b *bench) {
			b.save(flow("par", []string{"k CHILD {workflow: kid, detached: true}"}, nil), flow("kid", []string{"a WORK"}, nil))
			b.start("x", "par")
			b.ends("x", engine.StatusSuccess)
			b.ends(engine.ChildID("x", "k", 0), engine.StatusSuccess)
		}},
		{Name: "Child/Fails", Crashes: true, run: func(b *bench) {
			b.save(parent(""), flow("kid", []string{"a WORK {fail: -1, final: true}"}, nil))
			b.start("x", "par")
			b.ends("x", engine.StatusError)
			b.wantError("x", "remote_rejected", "k")
			b.wantRuns("x", "k", 1)
		}},
		{Name: "Child/CannotBeStarted", Crashes: true, run: func(b *bench) {
			b.save(flow("par", []string{"k CHILD {workflow: nothing}"}, nil))
			b.start("x", "par")
			b.ends("x", engine.StatusError)
			b.wantError("x", string(fault.NotFound), "k")
		}},
		{Name: "Child/DetachedCannotBeStarted", Crashes: true, run: func(b *bench) {
			b.save(flow("par", []string{"k CHILD {workflow: nothing, detached: true}", "d WORK"}, []string{"k -> d"}))
			b.start("x", "par")
			b.ends("x", engine.StatusSuccess)
		}},
		{Name: "Child/IsCanceledWithItsParent", Crashes: true, run: func(b *bench) {
			b.save(parent(""), flow("kid", []string{"h WORK {hold: true, effect: idempotent}"}, nil))
			b.start("x", "par")
			b.held("h")
			b.act("x", host.ActionCancel)
			b.ends("x", engine.StatusCanceled)
			b.ends(engine.ChildID("x", "k", 0), engine.StatusCanceled)
		}},
		{Name: "Child/IsPausedWithItsParent", Crashes: true, run: func(b *bench) {
			b.save(parent(""), flow("kid", []string{"w WAIT {signal: go}", "v WORK"}, []string{"w -> v"}))
			kid := engine.ChildID("x", "k", 0)
			b.start("x", "par")
			b.reaches(kid, engine.StatusWaiting)
			b.act("x", host.ActionPause)
			b.reaches(kid, engine.StatusPaused)
			b.signal(kid, "w", "go", "1")
			b.act("x", host.ActionResume)
			b.ends("x", engine.StatusSuccess)
			b.ends(kid, engine.StatusSuccess)
		}},
		{Name: "Child/LargeInputAndOutput", run: func(b *bench) {
			b.save(flow("par", []string{"a WORK {pad: 50000}", "k CHILD {workflow: kid}", "d WORK"}, []string{"a -> k", "k -> d"}),
				flow("kid", []string{"t MANUAL", "c WORK {pad: 60000}"}, []string{"t -> c"}))
			b.start("x", "par")
			b.ends("x", engine.StatusSuccess)
		}},
		{Name: "Child/InALoop", Crashes: true, run: func(b *bench) {
			b.save(flow("par", []string{"l EACH {count: 3, concurrency: 2}", "k CHILD {workflow: kid}", "d WORK"}, []string{"l.iteration -> k", "k -> l", "l.completed -> d"}),
				flow("kid", []string{"t MANUAL", "c WORK {effect: idempotent, ms: 1}"}, []string{"t -> c"}))
			b.start("x", "par")
			b.ends("x", engine.StatusSuccess)
		}},
	}
}

func forkCases() []Case {
	chain := flow("f", []string{"a WORK {effect: once}", "b WORK {effect: once}", "c WORK"}, []string{"a -> b", "b -> c"})
	return []Case{
		{Name: "Fork/RepeatsNothingThatIsDone", Crashes: true, run: func(b *bench) {
			b.save(chain)
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			b.fork(host.ForkRequest{Source: "x", ID: "y", Node: "c"})
			b.ends("y", engine.StatusSuccess)
			b.wantRuns("y", "a", 0)
			b.wantRuns("y", "b", 0)
			b.wantRuns("y", "c", 1)
			b.wantOutput("y", `{"c":{"c":3}}`)
			if e := b.summary("y"); e.ForkedFrom != "x" {
				b.t.Errorf("the fork is %+v", e)
			}
			if view, _ := b.view("y"); view.Nodes["c"].Count != 1 || !slices.Equal(view.Sequence, []string{"a", "b", "c"}) {
				b.t.Errorf("the last node has begun %d times, in the order %v", view.Nodes["c"].Count, view.Sequence)
			}
		}},
		{Name: "Fork/EditedInput", Crashes: true, run: func(b *bench) {
			b.save(chain)
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			b.fork(host.ForkRequest{Source: "x", ID: "y", Node: "b", Input: json.RawMessage(`{"a":100}`)})
			b.ends("y", engine.StatusSuccess)
			b.wantOutput("y", `{"c":{"c":102}}`)
			b.wantOutput("x", `{"c":{"c":3}}`)
		}},
		{Name: "Fork/OfAFailure", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK", "b WORK {fail: -1, final: true}", "w WAIT {seconds: 0.5}", "c WORK"}, []string{"a -> b", "a -> w", "b -> c", "w -> c"}))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.fork(host.ForkRequest{Source: "x", ID: "y", Activation: "b"})
			b.ends("y", engine.StatusError)
			b.act("y", host.ActionSkip, onNode("b"), withValue(`{"n":1}`))
			b.ends("y", engine.StatusSuccess)
		}},
		{Name: "Fork/InsideALoop", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"l EACH {count: 4}", "w WORK {effect: idempotent}", "v WORK", "d WORK"},
				[]string{"l.iteration -> w", "w -> v", "v -> l", "l.completed -> d"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			b.fork(host.ForkRequest{Source: "x", ID: "y", Activation: "l[3]/v"})
			b.ends("y", engine.StatusSuccess)
			b.wantRuns("y", "l[0]/w", 0)
			b.wantRuns("y", "l[3]/v", 1)
			b.same("y", "output", b.outputs("y"), b.outputs("x"))
		}},
		{Name: "Fork/OfAFork", Crashes: true, run: func(b *bench) {
			b.save(chain)
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			b.fork(host.ForkRequest{Source: "x", ID: "y", Node: "b", Input: json.RawMessage(`{"a":10}`)})
			b.ends("y", engine.StatusSuccess)
			b.fork(host.ForkRequest{Source: "y", ID: "z", Node: "c"})
			b.ends("z", engine.StatusSuccess)
			b.wantOutput("z", `{"c":{"c":12}}`)
			b.wantRuns("z", "b", 0)
		}},
		{Name: "Fork/WithALargePast", run: func(b *bench) {
			b.save(flow("f", []string{"t MANUAL", "a WORK {pad: 50000}", "b WORK", "w WAIT {seconds: 0.05}", "c WORK"}, []string{"t -> a", "a -> b", "b -> w", "w -> c"}))
			b.start("x", "f", func(r *host.StartRequest) {
				r.Initial = json.RawMessage(`{"big":"` + strings.Repeat("x", 70_000) + `"}`)
			})
			b.ends("x", engine.StatusSuccess)
			b.fork(host.ForkRequest{Source: "x", ID: "y", Node: "b"})
			b.crash()
			b.ends("y", engine.StatusSuccess)
			b.same("y", "output", b.outputs("y"), b.outputs("x"))
		}},
		{Name: "Fork/OfWhatStillRuns", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK", "k CHILD {workflow: kid}", "q ASK", "d WORK"}, []string{"a -> k", "a -> q", "k -> d", "q -> d"}),
				flow("kid", []string{"w WAIT {signal: go}"}, nil))
			b.start("x", "f")
			b.reaches(engine.ChildID("x", "k", 0), engine.StatusWaiting)
			b.question("x", "approval")
			b.fork(host.ForkRequest{Source: "x", ID: "y", Node: "q"})
			for _, id := range []string{"y", "x"} {
				kid := engine.ChildID(id, "k", 0)
				b.reaches(kid, engine.StatusWaiting)
				b.signal(kid, "w", "go", "1")
				b.answer(id, b.question(id, "approval"), `{"n":1}`)
				b.ends(id, engine.StatusSuccess)
			}
			b.same("y", "output", b.outputs("y"), b.outputs("x"))
		}},
		{Name: "Fork/AmongSeveralChildren", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"k CHILD {workflow: kid, children: 3}", "g WAIT {signal: later}", "q ASK", "d WORK"}, []string{"g -> q", "k -> d", "q -> d"}),
				flow("kid", []string{"w WAIT {signal: go}"}, nil))
			b.start("x", "f")
			first := engine.NthChildID("x", "k", 0, 0)
			b.reaches(first, engine.StatusWaiting)
			b.signal(first, "w", "go", "1")
			b.reaches(engine.NthChildID("x", "k", 0, 1), engine.StatusWaiting)
			b.signal("x", "g", "later", "1")
			b.question("x", "approval")
			b.fork(host.ForkRequest{Source: "x", ID: "y", Node: "q"})
			for _, id := range []string{"y", "x"} {
				b.answer(id, b.question(id, "approval"), `{"n":1}`)
				for !b.summary(id).Status.Final() {
					b.hasten(id)
				}
				b.ends(id, engine.StatusSuccess)
			}
		}},
	}
}

// hasten lets a child that waits go on.
func (b *bench) hasten(id string) {
	b.t.Helper()
	b.await("a child that waits", func() bool {
		if b.summary(id).Status.Final() {
			return true
		}
		for _, e := range b.all() {
			if e.Parent == id && e.Status == engine.StatusWaiting {
				b.signal(e.ID, "w", "go", "1")
				b.ends(e.ID, engine.StatusSuccess)
				return true
			}
		}
		return false
	})
}

func (b *bench) outputs(id string) any {
	b.t.Helper()
	fold, err := b.journal(id).Fold(b.ctx)
	if err != nil {
		b.t.Fatalf("fold of %q: %v", id, err)
	}
	outputs, err := fold.Outputs()
	if err != nil {
		b.t.Fatal(err)
	}
	return outputs
}
