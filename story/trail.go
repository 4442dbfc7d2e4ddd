package story

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/workflow"
)

// What a task has done is told from its activations: their names say what they were about, and the order in which they began says
// the rest. So a view is enough, and no task has to be led again to be looked at.

// taskNode is the node that leads the task which an execution is; ok is false for an execution that is not a task.
func taskNode(graph *workflow.Graph) (id string, ok bool) {
	if graph == nil {
		return "", false
	}
	for i := range graph.Nodes {
		if n := &graph.Nodes[i]; n.Plan.Whole && n.Kind == agent.TaskKind {
			return n.ID, true
		}
	}
	return "", false
}

// trail is a task as its activations tell it.
type trail struct {
	// flow are the activations that happen once, by name.
	flow  map[string]*host.ActivationView
	steps []*trailStep
	// plans counts the plans, failures what counts on the task.
	plans, failures int
	// last is the activation that began last; of is the step that one is about, by its name.
	last *host.ActivationView
	of   map[string]*trailStep
}

// trailStep is a step of a task.
type trailStep struct {
	id, tool string
	rung     agent.Rung
	plan     int
	place    int
	// choice is the decision for the tool; arguments and risk are the present ones, call is the last. Each may be missing.
	choice, arguments, risk, call *host.ActivationView
	// given are the answers of people who were asked for arguments.
	given []*host.ActivationView
	// last is what was done about it last, end a call that never began and never will.
	last, end *host.ActivationView
	// failed says that it has failed and was not mended since, class and fault are why. Left says that an operator has left it out.
	failed, left bool
	class        agent.Class
	fault        *fault.Error
	// settled says that it was given up for something else, counted that it is on the task's counter.
	settled, counted bool
}

// trailOf reads a task. Result tells what an activation has left; nil where that is not known.
func trailOf(view *host.View, task string, result func(*host.ActivationView) json.RawMessage) *trail {
	b := trailBuilder{trail: trail{flow: map[string]*host.ActivationView{}, plans: 1, of: map[string]*trailStep{}}, result: result}
	for _, a := range begunInOrder(view, task) {
		b.addActivation(a)
	}
	for _, s := range b.steps {
		b.close(view, task, s)
	}
	return &b.trail
}

// begunInOrder are the activations of a task in the order in which they began.
func begunInOrder(view *host.View, task string) []*host.ActivationView {
	place := make(map[string]int, len(view.Sequence))
	for i, name := range view.Sequence {
		place[name] = i + 1
	}
	var list []*host.ActivationView
	for _, n := range view.Nodes { // order does not matter: sorted below
		if scope, _ := n.ID.Split(); scope == task+"[0]" && n.Started != 0 {
			list = append(list, &n.ActivationView)
		}
	}
	// What the sequence no longer has began before what it has.
	slices.SortFunc(list, func(a, b *host.ActivationView) int {
		return cmp.Or(cmp.Compare(place[a.Node], place[b.Node]), cmp.Compare(a.Started, b.Started),
			cmp.Compare(a.Row, b.Row), cmp.Compare(a.Node, b.Node))
	})
	return list
}

// trailBuilder goes through a task.
type trailBuilder struct {
	trail
	result func(*host.ActivationView) json.RawMessage
	// step is the present one. Choice is a decision that may have chosen a tool, until it is known whether it has; replanned that
	// the rest was thought over and not yet planned, climbed the places in which a way out was looked for.
	step      *trailStep
	choice    *host.ActivationView
	replanned bool
	climbed   int
}

func (b *trailBuilder) addActivation(a *host.ActivationView) {
	_, name := a.ID.Split()
	part := agent.PartOf(name)
	b.last = a
	switch part.Kind {
	case agent.KindFlowName, agent.KindFlowRisk, agent.KindConfirmFlow:
		b.flow[name] = a
		return
	case agent.KindSummary:
		b.flow[name] = a
		if b.choice == nil { // otherwise the rest was planned anew, and the plan is that nothing is left to do
			b.abandon()
		}
		return
	case agent.KindPlan:
		if b.replanned && b.step != nil && part.Place == b.step.place {
			b.plans++
		}
		if b.step != nil && part.Place > b.step.place {
			b.abandon()
			b.step = nil
		}
		b.replanned, b.choice = false, a
		return
	case agent.KindParams:
		if b.choice != nil {
			b.choose(part.Place)
		}
	}
	if b.step == nil {
		return // nothing that a task of ours does
	}
	b.of[name], b.step.last = b.step, a
	b.inStep(part, a)
	if a.Status == engine.NodeSkip {
		b.step.left = true
	}
}

// inStep is what happens to the present step.
func (b *trailBuilder) inStep(part agent.Part, a *host.ActivationView) {
	s := b.step
	switch part.Kind {
	case agent.KindParams, agent.KindFill:
		switch a.Status {
		case engine.NodeDone:
			s.arguments, s.risk = a, nil
		case engine.NodeFailure:
			s.fails(agent.Parameters, a)
		}
	case agent.KindToolRisk:
		if a.Status == engine.NodeDone {
			s.risk = a
		}
	case agent.KindCall:
		s.call, s.failed = a, false
		if a.Status == engine.NodeFailure && a.Error != nil {
			s.fails(agent.ClassOf(a.Error), a)
		}
	case agent.KindAnalyze:
		if a.Status == engine.NodeDone || a.Status == engine.NodeFailure {
			s.class = agent.Other
			if gjson.GetBytes(b.result(a), "is_param_error").Bool() {
				s.class = agent.Parameters
			}
		}
	case agent.KindAskParams:
		if a.Status == engine.NodeDone {
			s.given = append(s.given, a)
		}
	case agent.KindAlternative, agent.KindRepair, agent.KindReplan:
		b.climbed = part.Place
		if s.failed && !s.settled && s.class != agent.Connection && s.class != agent.Permission && s.class != agent.TimedOut {
			b.count()
		}
		s.settled = true
		b.replanned = part.Kind == agent.KindReplan
		if b.choice = a; b.replanned {
			b.choice = nil
		}
	}
}

func (s *trailStep) fails(class agent.Class, a *host.ActivationView) {
	s.failed, s.class, s.fault = true, class, a.Error
}

func (b *trailBuilder) count() {
	b.step.counted = true
	b.failures++
}

// abandon ends the present step for good. One that has failed, and for which there was no way out, counts.
func (b *trailBuilder) abandon() {
	if s := b.step; s != nil && s.failed && !s.counted && !s.left {
		b.count()
	}
}

// choose begins a step with what was chosen.
func (b *trailBuilder) choose(place int) {
	_, name := b.choice.ID.Split()
	result := b.result(b.choice)
	s := &trailStep{tool: gjson.GetBytes(result, "tool_id").String(), plan: b.plans, place: place, choice: b.choice}
	switch agent.PartOf(name).Kind {
	case agent.KindAlternative:
		s.rung = agent.Alternative
	case agent.KindRepair:
		s.rung = agent.Repaired
		if s.tool == "" && b.step != nil {
			s.tool = b.step.tool
		}
	case agent.KindPlan:
		if b.climbed == place {
			s.rung = agent.Replanned
		}
	}
	tried := 1
	for _, earlier := range b.steps {
		if earlier.place == place {
			tried++
		}
	}
	s.id = agent.StepID(place, tried)
	b.step, b.choice = s, nil
	b.steps = append(b.steps, s)
}

// close notes what became of a step beside what was done about it.
func (b *trailBuilder) close(view *host.View, task string, s *trailStep) {
	for name, n := range view.Nodes { // order does not matter: one of them at most never began
		if scope, _ := n.ID.Split(); scope != task+"[0]" || n.Started != 0 || n.Ended == 0 || agent.PartOf(name).Step != s.id {
			continue
		}
		s.end = &n.ActivationView
		b.of[name] = s
		s.left = s.left || n.Status == engine.NodeSkip
	}
}

// current is the step that the task is at, nil before the first and for the summary.
func (t *trail) current() *trailStep {
	if t.last == nil || len(t.steps) == 0 || t.flow[agent.KindSummary] != nil {
		return nil
	}
	return t.steps[len(t.steps)-1]
}

// planID is the plan that the task follows.
func (t *trail) planID() string { return agent.PlanID(t.plans) }

// statusOf is a step's status in the words of steps. Asked is the purpose of the question that its last activation waits for.
func (s *trailStep) statusOf(asked string, execution engine.Status) string {
	if s.end != nil {
		return stepStatus(s.end.Status, "")
	}
	if s.left {
		return stepStatus(engine.NodeSkip, "")
	}
	a := s.last
	_, name := a.ID.Split()
	switch a.Status {
	case engine.NodeWaitingInput, engine.NodeCanceled:
		return stepStatus(a.Status, asked)
	}
	kind := agent.PartOf(name).Kind
	switch {
	case kind == agent.KindCall:
		return stepStatus(a.Status, "")
	case s.call != nil && s.call.Status == engine.NodeDone:
		return stepStatus(engine.NodeDone, "")
	case a.Status == engine.NodeFailure:
		return stepStatus(engine.NodeFailure, "")
	case kind == agent.KindParams || kind == agent.KindFill || kind == agent.KindToolRisk || kind == agent.KindConfirm:
		if execution.Final() {
			return stepStatus(engine.NodeFailure, "") // the task has ended, and this is where
		}
		return stepStatus(engine.NodePending, "")
	}
	return stepStatus(engine.NodeFailure, "") // a way out of its failure is looked for
}
