package agent_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
	"tandem/workflow"
)

// chance is a runtime, a person and an operator who say anything.
type chance struct {
	*sim
	r *rapid.T
	// dice are seeded by r: its own draws are mostly small, which ends tasks early.
	dice *rand.Rand
	// mended counts what operators did about failures, so that they do not go on for ever.
	mended int
}

// TestTask_AlwaysEnds also lets sim check on every path that no call is made without the consent that exactly its arguments
// need, that no name comes twice and that a restored state goes on as the live one.
func TestTask_AlwaysEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		config := agent.Config{
			Auto: rapid.Bool().Draw(r, "auto"), Language: "en",
			Limits:      agent.Limits{Steps: 1 + dice.IntN(6), PlanTries: 1 + dice.IntN(3), InnerCalls: 1 + dice.IntN(3), Failures: 1 + dice.IntN(8)},
			AutoApprove: rapid.SliceOfDistinct(rapid.SampledFrom([]agent.Risk{agent.Low, agent.Medium, agent.High}), rapid.ID[agent.Risk]).Draw(r, "approve"),
		}
		c := &chance{sim: newSim(r, config), r: r, dice: dice}
		bound := bound(config.Limits)
		for c.finish == nil || c.mend() {
			if c.runs > bound {
				r.Fatalf("%d steps, more than %d, and no end", c.runs, bound)
			}
			c.move()
		}
		c.check()
	})
}

// one picks one of a list.
func one[T any](c *chance, list ...T) T { return list[c.dice.IntN(len(list))] }

// bound is how many steps a program can run at most.
func bound(l agent.Limits) int {
	versions := 1 + 2*l.InnerCalls                               // of a step's arguments
	step := (1 + l.InnerCalls) + 3*l.InnerCalls + 4*versions + 2 // derived, asked for; judged, confirmed, called, analyzed; one call repeated
	place := 4*step + 2*l.PlanTries + 3                          // with everything that is tried in its stead
	return l.Steps*place + 4
}

// move ends whatever is open, somehow.
func (c *chance) move() {
	c.r.Helper()
	for _, id := range c.asks {
		c.asks = nil
		choice := one(c, engine.ChoiceDone, engine.ChoiceNotDone, engine.ChoiceStop)
		c.do(engine.AskAnswered{Ask: id, Outcome: engine.AskDone, Choice: choice, Ref: "answer"})
		return
	}
	for _, id := range c.timers {
		c.timers = nil
		c.now += 1_000_000
		c.do(engine.TimerFired{Timer: id})
		return
	}
	for id, run := range c.running { // there is one
		name := string(id)
		switch p := c.dice.IntN(100); {
		case p < 1:
			c.do(engine.NodeSkipped{Activation: id})
		case p < 2:
			c.do(engine.ExecutionRecovered{})
		case p < 4 && run.Cause.Kind == engine.CauseRun && run.Cause.Wake == nil:
			c.do(engine.NodeSuspended{Attempt: run.Attempt, Ask: &engine.Question{Purpose: "confirm"}})
		case p < 6 && run.Step.Effect == workflow.Once:
			c.do(engine.NodeStarted{Attempt: run.Attempt})
			c.do(engine.ExecutionRecovered{})
		case p < 7, p < 70 && run.Step.Kind == agent.KindCall:
			c.fail(name, c.failure())
		default:
			c.reply(name, c.words(run.Step.Kind))
		}
		return
	}
	c.r.Fatalf("nothing is open, and the task has not ended: %s", c.live.Status())
}

func (c *chance) failure() *fault.Error {
	code := one(c,
		fault.ToolError, fault.InvalidInput, fault.InvalidInput, fault.NetworkError, fault.Timeout, fault.Forbidden, fault.Internal, fault.OutputInvalid,
		fault.ModelRefused, fault.Canceled, fault.OutcomeUnknown,
	)
	err := fault.New(code, "it went wrong")
	if c.dice.IntN(10) > 0 {
		err = err.Final()
	}
	if c.dice.IntN(2) == 0 {
		class := one(c, agent.Connection, agent.Parameters, agent.Parameters, agent.Unclear, agent.Permission, agent.TimedOut, agent.Other)
		err = agent.Failure(err, class, c.dice.IntN(2) == 0)
	}
	return err
}

// words draws a reply; mostly one that goes on.
func (c *chance) words(kind string) string {
	var list []string
	switch kind {
	case agent.KindFlowRisk, agent.KindToolRisk:
		list = []string{"low", "medium", "high", "low", `{"risk":"?"}`, ""}
	case agent.KindConfirm, agent.KindConfirmFlow:
		list = []string{"no", ""}
		list = append(list, slices.Repeat([]string{"yes"}, 40)...)
	case agent.KindAskParams:
		list = []string{"nothing", ""}
		list = append(list, slices.Repeat([]string{"given"}, 30)...)
	case agent.KindPlan, agent.KindAlternative, agent.KindRepair, agent.KindReplan:
		list = []string{"tool:a", "once:b", "tool:c", "tool:a", "once:b", "tool:a", "none", "unknown:x", "FINAL", "", `{"tool":"d"}`, `{"tool":"b","effect":"once","on_unknown":"retry"}`}
	case agent.KindAnalyze:
		list = []string{"param_error", "param_error", "no_param_error", ""}
	default:
		list = []string{""}
	}
	if c.dice.IntN(500) == 0 {
		return `[]`
	}
	return words(one(c, list...))
}

// mend lets an operator go on from a step that has failed. It says whether there was something to do.
func (c *chance) mend() bool {
	if c.live.Status() != engine.StatusError || c.mended > 5 || c.dice.IntN(5) == 0 {
		return false
	}
	for _, a := range c.live.Activations() {
		if a.Status != engine.NodeFailure {
			continue
		}
		c.mended++
		if c.dice.IntN(2) == 0 {
			c.do(engine.NodeSkipped{Activation: a.ID})
		} else {
			c.do(engine.NodeRetried{Activation: a.ID})
		}
		return c.finish == nil || c.mend()
	}
	return false
}

var repeatedRung = regexp.MustCompile(`^(alternative|repair|replan)_\d+_`)

// check looks at a task that has ended.
func (c *chance) check() {
	c.r.Helper()
	for name := range c.names {
		if repeatedRung.MatchString(name) {
			c.r.Fatalf("a rung was taken twice: %q", name)
		}
	}
	if len(c.finish.Result) == 0 { // a failure went outwards
		if c.finish.Status != engine.StatusError {
			c.r.Fatalf("no result: %+v", c.finish)
		}
		return
	}
	var end agent.End
	if err := json.Unmarshal(c.finish.Result, &end); err != nil {
		c.r.Fatal(err)
	}
	limits := c.config.Limits
	switch {
	case end.Steps > limits.Steps || end.Failures > limits.Failures:
		c.r.Fatalf("end %+v, limits %+v", end, limits)
	case end.Failures == limits.Failures && c.finish.Status != engine.StatusError:
		c.r.Fatalf("%s after %d failures", c.finish.Status, end.Failures)
	case (end.Final != "") != (c.finish.Status == engine.StatusSuccess), end.Canceled != (c.finish.Status == engine.StatusCanceled):
		c.r.Fatalf("%s with %+v", c.finish.Status, end)
	case c.finish.Status == engine.StatusCanceled && c.finish.Error.Code != fault.Canceled:
		c.r.Fatalf("canceled with %v", c.finish.Error)
	}
	done := 0
	for _, e := range end.Log {
		if e.Status == agent.Succeeded {
			done++
		}
	}
	if done > end.Steps || !slices.IsSortedFunc(end.Log, func(a, b agent.Entry) int { return place(a.Step) - place(b.Step) }) {
		c.r.Fatalf("log %q of %d steps", lines(end.Log), end.Steps)
	}
}

// place is the number of the place of a step.
func place(step string) (n int) {
	for _, d := range step[len("step_"):] {
		if d < '0' || d > '9' {
			break
		}
		n = n*10 + int(d-'0')
	}
	return n
}
