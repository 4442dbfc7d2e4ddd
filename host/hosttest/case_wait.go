package hosttest

import (
	"encoding/json"
	"strings"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

// answer answers a question of a node.
func (b *bench) answer(id string, ask engine.AskID, value string) {
	b.t.Helper()
	b.act(id, host.ActionAnswer, withDedup("answer "+string(ask)), withValue(value),
		func(r *host.Request) { r.Ask, r.Outcome = ask, engine.AskDone })
}

func waitCases() []Case {
	return []Case{
		{Name: "Wait/Timer", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"w WAIT {seconds: 0.2}", "d WORK"}, []string{"w -> d"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			view, _ := b.view("x")
			if took := view.Ended - view.Created; took < 200 {
				b.t.Errorf("a wait of 200 ms took %d", took)
			}
			b.wantRuns("x", "w", 1)
		}},
		{Name: "Wait/LateSignal", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"w WAIT {signal: go, seconds: 5000}", "d WORK"}, []string{"w -> d"}))
			b.start("x", "f")
			b.reaches("x", engine.StatusWaiting)
			b.signal("x", "w", "go", "1")
			b.signal("x", "w", "go", "1")
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"d":{"d":5}}`)
		}},
		{Name: "Wait/EarlySignal", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"h WORK {hold: true, effect: idempotent}", "w WAIT {signal: go}", "v WAIT {signal: go}"}, []string{"h -> w", "w -> v"}))
			b.start("x", "f")
			b.held("h")
			b.signal("x", "w", "go", "1")
			b.signal("x", "v", "go", "2")
			b.world.release("h")
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"v":{"v":9}}`)
		}},
		{Name: "Wait/Answer", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"q ASK", "d WORK"}, []string{"q -> d"}))
			b.start("x", "f")
			ask := b.question("x", "approval")
			b.reaches("x", engine.StatusWaitingForHuman)
			b.answer("x", ask, `{"n":7}`)
			b.answer("x", ask, `{"n":70}`)
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"d":{"d":9}}`)
		}},
		{Name: "Wait/LargeSignalAndAnswer", Crashes: true, run: func(b *bench) {
			b.save(flow("f", []string{"w WAIT {signal: go}", "q ASK", "d WORK"}, []string{"w -> q", "q -> d"}))
			b.start("x", "f")
			big := `{"n":"` + strings.Repeat("y", 60_000) + `"}`
			b.act("x", host.ActionSignal, onNode("w"), withValue(big), withDedup("s"), func(r *host.Request) { r.Signal = "go" })
			b.answer("x", b.question("x", "approval"), big)
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"d":{"d":120003}}`)
		}},
		{Name: "Wait/UnknownOutcomeDone", run: func(b *bench) {
			b.unknown(engine.ChoiceDone, `{"n":10}`)
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"d":{"d":11}}`)
			b.wantRuns("x", "o", 1)
		}},
		{Name: "Wait/UnknownOutcomeNotDone", run: func(b *bench) {
			b.world.release("o")
			b.unknown(engine.ChoiceNotDone, "")
			b.ends("x", engine.StatusSuccess)
			if n := b.world.count(b.world.effects, b.at("x", "o")); n != 1 {
				b.t.Errorf("the effect happened %d times", n)
			}
		}},
		{Name: "Wait/UnknownOutcomeStop", run: func(b *bench) {
			b.unknown(engine.ChoiceStop, "")
			b.ends("x", engine.StatusError)
			b.wantError("x", string(fault.OutcomeUnknown), "o")
			b.act("x", host.ActionSkip, onNode("o"), withValue(`{"n":1}`))
			b.ends("x", engine.StatusSuccess)
		}},
		{Name: "Wait/UnknownOutcomeByPolicy", run: func(b *bench) {
			b.manual = true
			b.save(flow("f", []string{"o WORK {effect: once, kill: 1, on_unknown: retry}"}, nil), flow("g", []string{"p WORK {effect: once, kill: 1, on_unknown: fail}"}, nil))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			b.start("y", "g")
			b.ends("y", engine.StatusError)
			b.wantError("y", string(fault.OutcomeUnknown), "p")
			b.wantRuns("x", "o", 2)
			b.wantRuns("y", "p", 1)
		}},
		{Name: "Wait/UnknownOutcomeThatTheServiceKnows", run: func(b *bench) {
			b.save(flow("f", []string{"o SEND {effect: once, hold: true, late: true}", "d WORK"}, []string{"o -> d"}))
			b.start("x", "f")
			b.held("o")
			b.crash()
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"d":{"d":2}}`)
			b.wantRuns("x", "o", 1)
		}},
		{Name: "Wait/UnknownOutcomeThatTheServiceDenies", run: func(b *bench) {
			b.save(flow("f", []string{"o SEND {effect: once, kill: 1}", "d WORK"}, []string{"o -> d"}))
			b.start("x", "f")
			b.ends("x", engine.StatusSuccess)
			b.wantRuns("x", "o", 2)
			if n := b.world.count(b.world.effects, b.at("x", "o")); n != 1 {
				b.t.Errorf("the effect happened %d times", n)
			}
		}},
		{Name: "Wait/UnknownOutcomeThatTheServiceCannotTell", run: func(b *bench) {
			b.manual = true
			b.save(flow("f", []string{"o SEND {effect: once, away: true, hold: true, late: true}", "d WORK"}, []string{"o -> d"}))
			b.start("x", "f")
			b.held("o")
			b.crash()
			ask := b.question("x", engine.PurposeOutcomeUnknown)
			b.act("x", host.ActionAnswer, func(r *host.Request) {
				r.Ask, r.Outcome, r.Choice, r.Value = ask, engine.AskDone, engine.ChoiceDone, json.RawMessage(`{"n":10}`)
			})
			b.ends("x", engine.StatusSuccess)
			b.wantOutput("x", `{"d":{"d":11}}`)
			b.wantRuns("x", "o", 1)
		}},
	}
}

// unknown brings an execution to where nobody knows whether a once node had its effect, and decides.
func (b *bench) unknown(choice, value string) {
	b.t.Helper()
	b.manual = true
	config := "{effect: once, hold: true, late: true}"
	if choice == engine.ChoiceNotDone {
		config = "{effect: once, kill: 1}"
	}
	b.save(flow("f", []string{"o WORK " + config, "d WORK"}, []string{"o -> d"}))
	b.start("x", "f")
	if choice != engine.ChoiceNotDone {
		b.held("o")
		b.crash()
	}
	ask := b.question("x", engine.PurposeOutcomeUnknown)
	if e := b.summary("x"); e.Status != engine.StatusWaitingForHuman {
		b.t.Errorf("the status is %s", e.Status)
	}
	b.crash() // it is asked once, however often the process dies
	b.refused("x", fault.Invalid, host.ActionAnswer, func(r *host.Request) { r.Ask, r.Outcome, r.Choice = ask, engine.AskDone, "perhaps" })
	b.act("x", host.ActionAnswer, func(r *host.Request) {
		r.Ask, r.Outcome, r.Choice = ask, engine.AskDone, choice
		if value != "" {
			r.Value = json.RawMessage(value)
		}
	})
}
