package hosttest

import (
	"encoding/json"
	"fmt"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/store"
)

func isConflict(err error) bool { return fault.CodeOf(err) == fault.Conflict }

func onNode(name string) func(*host.Request) { return func(r *host.Request) { r.Node = name } }

func onActivation(id engine.ActivationID) func(*host.Request) {
	return func(r *host.Request) { r.Activation = id }
}

func withValue(v string) func(*host.Request) {
	return func(r *host.Request) { r.Value = json.RawMessage(v) }
}

func withDedup(d string) func(*host.Request) { return func(r *host.Request) { r.Dedup = d } }

// signal sends a signal that is kept over crashes.
func (b *bench) signal(id, node, name, dedup string) {
	b.t.Helper()
	b.act(id, host.ActionSignal, onNode(node), withValue(`{"n":3}`), withDedup("signal "+dedup), func(r *host.Request) { r.Signal = name })
}

func failureCases() []Case {
	return []Case{
		{Name: "Failure/RetriesWithBackoff", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {fail: 2, effect: idempotent}", "b WORK"}, []string{"a -> b"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			b.wantRuns("x", "a", 3)
			view, _ := b.view("x")
			if took := view.Ended - view.Created; took < 2_300 && b.deaths() == 0 { // 1 s and 2 s, a fifth less at most
				b.t.Errorf("two retries took %d ms", took)
			}
			if n := view.Nodes["a"]; n.Retries != 2 && b.deaths() == 0 {
				b.t.Errorf("a was retried %d times", n.Retries)
			}
		}},
		{Name: "Failure/RetriesAreUsedUp", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {fail: -1, max_retries: 1}", "b WORK"}, []string{"a -> b"}))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.wantRuns("x", "a", 2)
			b.wantRuns("x", "b", 0)
			b.wantError("x", "network_error", "a")
		}},
		{Name: "Failure/Handled", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {fail: -1, final: true, on_error: continue}", "e WORK", "r WORK", "d WORK {fail: -1, final: true, on_error: default_output, default_output: {n: 9}}", "j WORK"},
				[]string{"a.error -> e", "a -> r", "e -> d", "d -> j"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			if e, r := b.status("x", "e"), b.status("x", "r"); e != engine.NodeDone || r != engine.NodeSkip {
				b.t.Errorf("e is %s, r is %s", e, r)
			}
			b.wantOutput("x", `{"j":{"j":10}}`)
		}},
		{Name: "Failure/Panic", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a PANIC"}, nil))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.wantError("x", "internal", "a")
		}},
		{Name: "Failure/CancelsSiblings", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {fail: -1, final: true, ms: 1}", "h WORK {hold: true, effect: idempotent}", "w WAIT {seconds: 500}"}, nil))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			if h, w := b.status("x", "h"), b.status("x", "w"); h != engine.NodeCanceled || w != engine.NodeCanceled {
				b.t.Errorf("h is %s, w is %s", h, w)
			}
		}},
		{Name: "Failure/AttemptTimeout", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {hold: true, timeout: 0.05, max_retries: 1, effect: idempotent}"}, nil))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.wantError("x", "timeout", "a")
			b.wantRuns("x", "a", 2)
		}},
		{Name: "Failure/OnceAttemptTimeout", Crashes: false, run: func(b *bench) {
			b.manual = true
			b.save(flow("f", []string{"a WORK {hold: true, late: true, timeout: 0.05, effect: once}"}, nil))
			b.start("x", "f")
			ask := b.question("x", engine.PurposeOutcomeUnknown)
			b.act("x", host.ActionAnswer, withValue(`{"n":1}`),
				func(r *host.Request) { r.Ask, r.Outcome, r.Choice = ask, engine.AskDone, engine.ChoiceDone })
			b.ends("x", engine.StatusSuccess)
			b.wantRuns("x", "a", 1)
		}},
		{Name: "Failure/ExecutionTimeout", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WAIT {seconds: 500}", "h WORK {hold: true, effect: idempotent}"}, nil))
			b.start("x", "f", func(r *host.StartRequest) { r.TimeoutMS = 200 })
			b.ends("x", engine.StatusTimeout)
			view, _ := b.view("x")
			if took := view.Ended - view.Created; took < 200 {
				b.t.Errorf("timed out after %d ms", took)
			}
		}},
	}
}

func operatorCases() []Case {
	return []Case{
		{Name: "Operator/PauseHoldsWhatIsNew", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"h WORK {hold: true, effect: idempotent}", "b WORK"}, []string{"h -> b"}))
			b.start("x", "f")
			b.held("h")
			b.act("x", host.ActionPause)
			b.world.release("h")
			if b.deaths() == 0 {
				b.await("h to end", func() bool { return b.status("x", "h") == engine.NodeDone || b.deaths() > 0 })
				if n := b.world.count(b.world.runs, b.at("x", "b")); n > 0 {
					b.t.Error("b began during the pause")
				}
			}
			if e := b.summary("x"); e.Status != engine.StatusPaused {
				b.t.Errorf("the status is %s", e.Status)
			}
			b.act("x", host.ActionResume)
			b.ends("x", engine.StatusSuccess)
		}},
		{Name: "Operator/WhatComesDuringAPauseActsOnResume", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"t WAIT {seconds: 0.3}", "s WAIT {signal: go}", "q ASK", "d WORK"}, []string{"t -> d", "s -> d", "q -> d"}))
			b.start("x", "f")
			ask := b.question("x", "approval")
			b.act("x", host.ActionPause)
			b.signal("x", "s", "go", "1")
			b.act("x", host.ActionAnswer, withDedup("a"), withValue(`{"n":2}`), func(r *host.Request) { r.Ask, r.Outcome = ask, engine.AskDone })
			b.await("the timer", func() bool {
				left, err := b.rig.Stores().Timers.Upcoming(b.ctx, b.who, store.Timer{}, 10)
				return err == nil && len(left) == 0
			})
			if e := b.summary("x"); e.Status != engine.StatusPaused {
				b.t.Errorf("the status is %s", e.Status)
			}
			if b.world.count(b.world.runs, b.at("x", "d")) > 0 {
				b.t.Error("d began during the pause")
			}
			b.act("x", host.ActionResume)
			b.ends("x", engine.StatusSuccess)
			b.wantRuns("x", "d", 1)
		}},
		{Name: "Operator/CancelReachesWhatRuns", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"h WORK {hold: true, effect: idempotent}", "w WAIT {seconds: 900}", "b WORK"}, []string{"h -> b", "w -> b"}))
			b.start("x", "f")
			b.held("h")
			b.act("x", host.ActionCancel, func(r *host.Request) { r.Reason = "enough" })
			b.ends("x", engine.StatusCanceled)
			if b.deaths() == 0 {
				b.await("the run to stop", func() bool {
					b.world.mu.Lock()
					defer b.world.mu.Unlock()
					return b.world.stopped[b.at("x", "h")]
				})
			}
			b.wantRuns("x", "b", 0)
		}},
		{Name: "Operator/CancelWaitsForWhatMustNotBeCut", Crashes: false, run: func(b *bench) {
			b.manual = true
			b.save(flow("f", []string{"o WORK {hold: true, late: true, effect: once}", "b WORK"}, []string{"o -> b"}))
			b.start("x", "f")
			b.held("o")
			b.act("x", host.ActionCancel)
			b.ends("x", engine.StatusCanceled)
			if n := b.world.count(b.world.effects, b.at("x", "o")); n != 1 {
				b.t.Errorf("the effect happened %d times", n)
			}
			b.wantRuns("x", "b", 0)
		}},
		{Name: "Operator/CancelBeforeItBegins", Crashes: true, MaxRunning: 1, run: func(b *bench) {
			b.save(flow("f", []string{"h WORK {hold: true, effect: idempotent}"}, nil))
			b.start("x", "f")
			b.start("y", "f")
			b.held("h")
			b.act("y", host.ActionCancel)
			b.ends("y", engine.StatusCanceled)
			b.world.release("h")
			b.ends("x", engine.StatusSuccess)
			b.wantRuns("y", "h", 0)
		}},
		{Name: "Operator/RetryNode", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"s WORK {effect: once}", "a WORK {fail: 1, final: true, ms: 2}", "h WAIT {seconds: 2}", "d WORK"}, []string{"s -> a", "s -> h", "a -> d", "h -> d"}))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			if h := b.status("x", "h"); h != engine.NodeCanceled {
				b.t.Errorf("h is %s", h)
			}
			b.act("x", host.ActionRetry, onNode("a"))
			b.ends("x", engine.StatusSuccess)
			view, _ := b.view("x")
			if a, h := view.Nodes["a"], view.Nodes["h"]; a.Generation != 1 || h.Generation != 1 || view.Error != nil {
				b.t.Errorf("a is of generation %d, h of %d, the error is %v", a.Generation, h.Generation, view.Error)
			}
		}},
		{Name: "Operator/RetryNodeInALoop", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"l EACH {count: 3}", "w WORK {fail: 1, final: true}", "d WORK"}, []string{"l.iteration -> w", "w -> l", "l.completed -> d"}))
			b.start("x", "f")
			for i := range 3 {
				b.ends("x", engine.StatusError)
				b.act("x", host.ActionRetry, onActivation(engine.ActivationID(fmt.Sprintf("l[%d]/w", i))))
			}
			b.ends("x", engine.StatusSuccess)
		}},
		{Name: "Operator/SkipNode", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {fail: -1, final: true}", "b WORK", "c WORK"}, []string{"a -> b", "b -> c"}))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.act("x", host.ActionSkip, onNode("a"))
			b.ends("x", engine.StatusSuccess)
			if a, c := b.status("x", "a"), b.status("x", "c"); a != engine.NodeSkip || c != engine.NodeSkip {
				b.t.Errorf("a is %s, c is %s", a, c)
			}
		}},
		{Name: "Operator/SkipNodeWithAnOutput", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK {fail: -1, final: true}", "b WORK"}, []string{"a -> b"}))
			b.start("x", "f")
			b.ends("x", engine.StatusError)
			b.act("x", host.ActionSkip, onNode("a"), withValue(`{"n":41}`))
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"b":{"b":42}}`)
			if a := b.status("x", "a"); a != engine.NodeDone {
				b.t.Errorf("a is %s", a)
			}
		}},
		{Name: "Operator/SkipWhatWaits", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"q ASK", "w WAIT {seconds: 900}", "b WORK"}, []string{"q -> b", "w -> b"}))
			b.start("x", "f")
			b.question("x", "approval")
			b.act("x", host.ActionSkip, onNode("q"), withValue(`{"n":1}`))
			b.act("x", host.ActionSkip, onNode("w"))
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"b":{"b":2}}`)
		}},
		{Name: "Operator/WhatCannotBeDone", Crashes: false, run: func(b *bench) {
			b.save(flow("f", []string{"a WORK", "w WAIT {signal: go}"}, []string{"a -> w"}))
			b.start("x", "f")
			b.reaches("x", engine.StatusWaiting)
			b.refused("x", fault.Conflict, host.ActionResume)
			b.refused("x", fault.Conflict, host.ActionRetry, onNode("a"))
			b.refused("x", fault.Conflict, host.ActionSkip, onNode("a"))
			b.refused("x", fault.Conflict, host.ActionRetry, onNode("w"))
			b.refused("x", fault.Conflict, host.ActionAnswer, func(r *host.Request) { r.Ask, r.Outcome = "w#ask.1", engine.AskDone })
			b.refused("x", fault.NotFound, host.ActionRetry, onNode("nobody"))
			b.refused("x", fault.NotFound, host.ActionSkip, onNode("nobody"))
			b.refused("x", fault.NotFound, host.ActionSkip, onActivation("l[7]/w"))
			b.refused("x", fault.NotFound, host.ActionSignal, onNode("nobody"), func(r *host.Request) { r.Signal = "go" })
			b.refused("x", fault.Invalid, host.Action("dance"))
			b.refused("y", fault.NotFound, host.ActionPause)
			b.signal("x", "w", "go", "1")
			b.ends("x", engine.StatusSuccess)
			for _, a := range []host.Action{host.ActionPause, host.ActionResume, host.ActionCancel} {
				b.refused("x", fault.Conflict, a)
			}
			b.refused("x", fault.Conflict, host.ActionRetry, onNode("a"))
			if err := b.tryStart("x", "f"); !isConflict(err) {
				b.t.Errorf("a second start: %v", err)
			}
			if err := b.tryStart("z", "nothing"); fault.CodeOf(err) != fault.NotFound {
				b.t.Errorf("a start of nothing: %v", err)
			}
			if _, err := b.host.Fork(b.ctx, b.who, host.ForkRequest{Source: "y", ID: "z", Node: "a"}); fault.CodeOf(err) != fault.NotFound {
				b.t.Errorf("a fork of nothing: %v", err)
			}
			if _, err := b.host.Fork(b.ctx, b.who, host.ForkRequest{Source: "x", ID: "z", Node: "nobody"}); fault.CodeOf(err) != fault.NotFound {
				b.t.Errorf("a fork from nowhere: %v", err)
			}
			_, err := b.host.Act(b.ctx, principal("two"), host.Request{Execution: "x", Action: host.ActionPause})
			if fault.CodeOf(err) != fault.NotFound {
				b.t.Errorf("an action of another workspace: %v", err)
			}
		}},
	}
}

// refused expects that something cannot be done, and that trying changes nothing.
func (b *bench) refused(id string, code fault.Code, action host.Action, change ...func(*host.Request)) {
	b.t.Helper()
	before := b.seq(id)
	if _, err := b.tryAct(id, action, change...); fault.CodeOf(err) != code {
		b.t.Errorf("%s of %q: %v, want %s", action, id, err, code)
	}
	if after := b.seq(id); after != before {
		b.t.Errorf("%s of %q was refused and wrote %d rows", action, id, after-before)
	}
}

func (b *bench) seq(id string) (n int) {
	b.t.Helper()
	for _, err := range b.rig.Stores().Journal.Rows(b.ctx, b.who, id, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		n++
	}
	return n
}
