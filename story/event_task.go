package story

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/workflow"
)

// What the flow vocabulary says of a task: its calls are the steps, and decisions are told only as far as they make, hold up or end
// one. The flow starts when its risk was judged, or when anything else has to be told first.

// taskWords is what a teller of a task has to know besides the journal's state.
type taskWords struct {
	node string
	// begun says that the start of the flow was told.
	begun bool
	// name is what the task is called, told from the value nameRef.
	name    string
	nameRef engine.Ref
}

// taskTeller makes a teller one of a task. Whether the start of the flow was told follows from the rows before: once the risk was
// judged it was; until then there are few, and they are gone through.
func (s *subject) taskTeller(ctx context.Context, t *teller, node string) error {
	t.task = &taskWords{node: node}
	if t.Seq() == 0 {
		return nil
	}
	if t.riskJudged() {
		t.task.begun = true
		return nil
	}
	first, err := s.teller(ctx, t.words, 0)
	if err != nil {
		return err
	}
	for row, err := range s.journal.Rows(ctx, 0) {
		if err != nil {
			return err
		}
		if row.Seq > t.Seq() {
			break
		}
		if _, err := first.tellRow(ctx, &row); err != nil {
			return err
		}
	}
	t.task.begun = first.task.begun
	return nil
}

// riskJudged says that the judgement of the task has ended.
func (t *teller) riskJudged() bool {
	risk := t.View().Nodes[agent.KindFlowRisk]
	return risk != nil && risk.Ended != 0
}

// taskStep is a step of the program: what it is, and what the program says about it.
type taskStep struct {
	name, kind string
	about      agent.About
	values     []engine.Ref
}

func taskStepOf(run engine.RunNode) (taskStep, bool, error) {
	if run.Step == nil || run.Node >= 0 {
		return taskStep{}, false, nil
	}
	s := taskStep{name: run.Step.Name, kind: run.Step.Kind, values: run.Step.Values}
	if err := json.Unmarshal(run.Step.Config, &s.about); err != nil {
		return s, false, fault.Newf(fault.Internal, "what the task says about %q cannot be read: %w", run.Activation, err)
	}
	if s.kind == agent.KindPlan {
		s.about.Step, s.about.Tool = "", "" // of the step that has failed, which is over
	}
	return s, true, nil
}

// opens says that the step of the task that it is about begins with it.
func (s taskStep) opens() bool {
	return s.kind == agent.KindParams && s.about.Arguments == 0 && s.about.Class == "" && s.about.Code == ""
}

// knownSteps are the steps that changes are about and that have begun before. It is asked before the row is taken in.
func (t *teller) knownSteps(list []change) (map[engine.ActivationID]taskStep, error) {
	steps := map[engine.ActivationID]taskStep{}
	for i := range list {
		id := list[i].node.ID
		run, ok := t.Run(id)
		if !ok {
			continue
		}
		step, ok, err := taskStepOf(run)
		if err != nil {
			return nil, err
		}
		if ok {
			steps[id] = step
		}
	}
	return steps, nil
}

// taskRow is a row of a task while it is told.
type taskRow struct {
	t        *teller
	ctx      context.Context
	row      *host.Row
	commands []engine.Command
	steps    map[engine.ActivationID]taskStep
	// forked says that the row begins a fork: what it begins is new to those who read it.
	forked bool
	events []api.Event
	// over are the steps whose end the row has told: an operator may end a decision and with it the step.
	over map[string]bool
}

// tellTask tells the changes of a row.
func (t *teller) tellTask(ctx context.Context, row *host.Row, list []change, steps map[engine.ActivationID]taskStep,
	commands []engine.Command) ([]api.Event, error) {
	r := &taskRow{t: t, ctx: ctx, row: row, commands: commands, steps: steps, over: map[string]bool{}}
	for _, c := range commands {
		run, ok := c.(engine.RunNode)
		if !ok {
			continue
		}
		step, ok, err := taskStepOf(run)
		if err != nil {
			return nil, err
		}
		if ok {
			steps[run.Activation] = step
		}
	}
	r.forked = slices.ContainsFunc(row.Facts, func(f engine.Fact) bool {
		_, forked := f.(engine.ExecutionForked)
		return forked
	})
	if err := t.learnName(ctx, row); err != nil {
		return nil, err
	}
	for i := range list {
		if err := r.change(&list[i]); err != nil {
			return nil, err
		}
	}
	return r.events, nil
}

// learnName finds out what the task is called.
func (t *teller) learnName(ctx context.Context, row *host.Row) error {
	named := t.View().Nodes[agent.KindFlowName]
	if named == nil {
		return nil
	}
	ref := resultRefOf(&named.ActivationView)
	if ref == t.task.nameRef {
		return nil
	}
	value, err := t.value(ctx, row, ref)
	if err != nil {
		return err
	}
	t.task.nameRef, t.task.name = ref, gjson.GetBytes(value, "flow_name").String()
	return nil
}

// resultRefOf refers to what a step has left.
func resultRefOf(a *host.ActivationView) engine.Ref {
	for _, o := range a.Outputs {
		if o.Key == workflow.DefaultKey {
			return o.Ref
		}
	}
	return ""
}

// addEvent adds an event to the frames of the row. The first event is the start of the flow.
func (r *taskRow) addEvent(status engine.Status, name string, data any, step *api.FlowStep) error {
	if !r.t.task.begun && name != flowStart {
		if err := r.addEvent(status, flowStart, struct{}{}, nil); err != nil {
			return err
		}
	}
	r.t.task.begun = true
	raw, err := json.Marshal(data)
	if err != nil {
		return fault.Newf(fault.Internal, "encode %s: %w", name, err)
	}
	executor := r.t.subject.executor(status)
	executor.ExecutorName = cmp.Or(r.t.task.name, executor.ExecutorName)
	r.events = append(r.events, api.Event{EventType: name, Data: raw, Executor: executor, Step: step})
	return nil
}

// start tells the start of the flow, with its risk if that was judged.
func (r *taskRow) start(c *change, judged *host.ActivationView) error {
	if r.t.task.begun {
		return nil
	}
	var data any = struct{}{}
	if judged != nil {
		value, err := r.t.value(r.ctx, r.row, resultRefOf(judged))
		if err != nil {
			return err
		}
		if risk := riskOf(value); risk != nil {
			data = risk
		}
	}
	return r.addEvent(c.status, flowStart, data, nil)
}

func (r *taskRow) change(c *change) error {
	nothing := struct{}{}
	switch c.what {
	case executionStarted:
		if r.t.riskJudged() { // a fork goes on behind it
			return r.start(c, &r.t.View().Nodes[agent.KindFlowRisk].ActivationView)
		}
		return nil
	case executionResumed:
		return r.addEvent(c.status, flowResume, flowReason{c.reason}, nil)
	case executionPaused:
		return r.addEvent(c.status, flowStop, flowReason{c.reason}, nil)
	case executionEnded:
		switch c.status {
		case engine.StatusSuccess:
			return r.addEvent(c.status, flowSuccess, nothing, nil)
		case engine.StatusCanceled:
			return r.addEvent(c.status, flowCancel, nothing, nil)
		}
		return r.addEvent(c.status, flowFailed, nothing, nil)
	}
	s, ok := r.step(c.node.ID)
	if !ok {
		return r.node(c)
	}
	switch c.what {
	case nodeStarted:
		return r.began(c, s)
	case nodeCompleted:
		return r.completed(c, s)
	case nodeFailed:
		return r.failed(c, s)
	case nodeSkipped:
		return r.skipped(c, s)
	case nodeCanceled:
		if s.about.Step != "" || s.kind == agent.KindConfirmFlow {
			return r.ended(c, s, stepCancel)
		}
	case nodeRetrying:
		if s.kind == agent.KindCall {
			return r.addEvent(c.status, stepRetry, flowRetry{int(c.told.Attempt), c.told.Time}, r.flowStep(s, stepStatus(c.node.Status, "")))
		}
	case inputRequired:
		return r.asked(c, r.flowStep(s, stepStatus(c.node.Status, c.told.Purpose)))
	}
	return nil
}

// step is the step of the program that an activation is. A call that never began is known by the step whose decision ended with it.
func (r *taskRow) step(id engine.ActivationID) (taskStep, bool) {
	if s, ok := r.steps[id]; ok {
		return s, true
	}
	_, name := id.Split()
	part := agent.PartOf(name)
	if part.Kind != agent.KindCall {
		return taskStep{}, false
	}
	s := taskStep{name: name, kind: agent.KindCall, about: agent.About{Step: part.Step}}
	for _, other := range r.steps { // order does not matter: they agree
		if other.about.Step == part.Step {
			s.about.Tool = other.about.Tool
		}
	}
	return s, true
}

// node tells of the nodes around the task: the one that leads it, as long as it has not begun to, and the trigger.
func (r *taskRow) node(c *change) error {
	if c.node.Node != r.t.task.node {
		return nil
	}
	step := func(status string) *api.FlowStep {
		return &api.FlowStep{StepID: c.node.Node, StepName: cmp.Or(r.t.task.name, r.t.subject.name),
			StepType: agent.TaskKind, StepStatus: status}
	}
	switch c.what {
	case inputRequired:
		return r.asked(c, step(stepStatus(c.node.Status, c.told.Purpose)))
	case nodeFailed:
		if r.t.View().Nodes[agent.KindFlowName] == nil { // otherwise the step that it failed with was told
			data, err := flowErrorOf(c.err)
			if err != nil {
				return err
			}
			return r.addEvent(c.status, stepError, data, step(stepStatus(c.node.Status, "")))
		}
	}
	return nil
}

// flowStep is a step in the words of flows: a call and all that is decided about it are one, everything else goes by its own name.
func (r *taskRow) flowStep(s taskStep, status string) *api.FlowStep {
	switch {
	case s.about.Step != "":
		return &api.FlowStep{StepID: s.about.Step, StepName: s.about.Tool, StepType: s.about.Tool, StepStatus: status}
	case s.kind == agent.KindSummary:
		return summaryStep(status)
	}
	return &api.FlowStep{StepID: s.name, StepName: cmp.Or(r.t.task.name, r.t.subject.name), StepType: agent.TaskKind, StepStatus: status}
}

// summaryStep is the step that writes the answer.
func summaryStep(status string) *api.FlowStep {
	return &api.FlowStep{StepID: agent.KindSummary, StepName: finalStep, StepType: finalStep, StepStatus: status}
}

// began tells that a step of the task begins, and that its call does.
func (r *taskRow) began(c *change, s taskStep) error {
	if s.opens() || r.forked && s.about.Step != "" {
		data := struct {
			Inactive     json.RawMessage `json:"inactive_servers,omitempty"`
			Unregistered json.RawMessage `json:"unregistered_servers,omitempty"`
		}{}
		if n := int(s.about.Choice); n > 0 && n <= len(s.values) {
			choice, err := r.t.value(r.ctx, r.row, s.values[n-1])
			if err != nil {
				return err
			}
			if list := gjson.GetBytes(choice, "inactive_servers"); list.IsArray() && len(list.Array()) > 0 {
				data.Inactive = json.RawMessage(list.Raw)
			}
			if list := gjson.GetBytes(choice, "unregistered_servers"); list.IsArray() && len(list.Array()) > 0 {
				data.Unregistered = json.RawMessage(list.Raw)
			}
		}
		if err := r.addEvent(c.status, stepInit, data, r.flowStep(s, stepStatus(engine.NodePending, ""))); err != nil {
			return err
		}
	}
	if s.kind != agent.KindCall {
		return nil
	}
	input, ok, err := r.t.input(c.node.ID, r.commands)
	if err != nil {
		return err
	}
	if !ok {
		input = json.RawMessage("{}")
	}
	return r.addEvent(c.status, stepInput, input, r.flowStep(s, stepStatus(engine.NodeRunning, "")))
}

func (r *taskRow) completed(c *change, s taskStep) error {
	switch s.kind {
	case agent.KindFlowRisk:
		return r.start(c, &c.node)
	case agent.KindConfirmFlow:
		if c.status == engine.StatusCanceled {
			return r.ended(c, s, stepCancel)
		}
	case agent.KindSummary:
		return r.answered(c)
	case agent.KindCall:
		values, err := r.t.values(r.ctx, r.row, c.node.Outputs)
		if err != nil {
			return err
		}
		output, err := outputOf(outputsByKey(c.node.Outputs, values))
		if err != nil {
			return err
		}
		return r.addEvent(c.status, stepOutput, output, r.flowStep(s, stepStatus(engine.NodeDone, "")))
	}
	return nil
}

// answered tells the answer whole, for those who have not read it while it was written.
func (r *taskRow) answered(c *change) error {
	value, err := r.t.value(r.ctx, r.row, resultRefOf(&c.node))
	if err != nil {
		return err
	}
	if value, err = wholeValue(r.ctx, r.t.subject.journal, value); err != nil {
		return err
	}
	text, offset := gjson.GetBytes(value, "answer").String(), 0
	if len(text) > maxAnswer {
		for offset = len(text) - maxAnswer; !utf8.RuneStart(text[offset]); {
			offset++
		}
	}
	data := flowText{text[offset:], string(c.node.ID), int(max(c.node.Attempt, 1)), int64(offset), true, false}
	return r.addEvent(c.status, textAdd, data, summaryStep(stepStatus(engine.NodeDone, "")))
}

// failed tells the failure of a step: of its call, of what was to be its arguments, or of a decision that the task ends with.
func (r *taskRow) failed(c *change, s taskStep) error {
	switch {
	case s.kind == agent.KindCall, s.kind == agent.KindParams, s.kind == agent.KindFill, r.endsWith(c.node.ID):
	case s.kind == agent.KindFlowRisk:
		return r.start(c, nil)
	default:
		return nil
	}
	data, err := flowErrorOf(c.err)
	if err != nil {
		return err
	}
	return r.addEvent(c.status, stepError, data, r.flowStep(s, stepStatus(engine.NodeFailure, "")))
}

// endsWith says that the execution ends because of an activation, and not of what the program made of its end.
func (r *taskRow) endsWith(id engine.ActivationID) bool {
	return slices.ContainsFunc(r.row.Told, func(t host.Told) bool { return t.What == host.ToldExecution && t.Activation == id })
}

func (r *taskRow) skipped(c *change, s taskStep) error {
	switch {
	case s.kind == agent.KindFlowRisk:
		return r.start(c, nil)
	case s.about.Step != "" || s.kind == agent.KindConfirmFlow:
		return r.ended(c, s, stepSkip)
	}
	return nil
}

// ended tells the end of a step that has no outcome, once.
func (r *taskRow) ended(c *change, s taskStep, name string) error {
	step := r.flowStep(s, "CANCELLED")
	if name == stepSkip {
		step.StepStatus = "SKIPPED"
	}
	if r.over[step.StepID] {
		return nil
	}
	r.over[step.StepID] = true
	return r.addEvent(c.status, name, struct{}{}, step)
}

// asked tells that somebody has to say something.
func (r *taskRow) asked(c *change, step *api.FlowStep) error {
	value, err := r.t.value(r.ctx, r.row, c.told.Ref)
	if err != nil {
		return err
	}
	id := interactionOf(r.t.subject.journal, c.told.Ask)
	if asksForData(c.told.Purpose) {
		return r.addEvent(c.status, stepWaitingForParam, paramsOf(id, c.told, value), step)
	}
	return r.addEvent(c.status, stepWaitingForStart, decisionOf(id, c.told, withSent(r.row, c.told, value)), step)
}

// answers says that an activation writes the answer of a task, which is for the user while it is written.
func (s *subject) answers(id engine.ActivationID) bool {
	task, ok := taskNode(s.journal.Graph)
	scope, name := id.Split()
	return ok && scope == task+"[0]" && name == agent.KindSummary
}

// nameTool gives a call of a task the name of its tool, in the execution vocabulary.
func (t *teller) nameTool(ctx context.Context, row *host.Row, e *api.NodeExecution) error {
	task, ok := taskNode(t.subject.journal.Graph)
	if !ok || e.NodeType != agent.ToolType {
		return nil
	}
	walked := trailOf(t.View(), task, func(*host.ActivationView) json.RawMessage { return nil })
	step := walked.of[e.NodeID]
	for step != nil {
		choice, err := t.value(ctx, row, resultRefOf(step.choice))
		if err != nil {
			return err
		}
		if tool := gjson.GetBytes(choice, "tool_id").String(); tool != "" {
			e.NodeName = tool
			return nil
		}
		i := slices.Index(walked.steps, step)
		if i == 0 || step.rung != agent.Repaired {
			return nil
		}
		step = walked.steps[i-1] // it was mended with the same tool
	}
	return nil
}
