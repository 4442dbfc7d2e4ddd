package story

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/human"
	"tandem/store"
	"tandem/text"
)

// What is told of a task besides what is told of every execution.

// finalStep is the step that writes the answer, in the words of steps.
const finalStep = agent.FinalTool

// decisionTitle is what people call a step of a task.
func decisionTitle(kind, language string) string {
	titles := map[string]text.Text{
		agent.KindFlowName:    text.Of("Name of the task"),
		agent.KindFlowRisk:    text.Of("Risk of the task"),
		agent.KindConfirmFlow: text.Of("May the task begin?"),
		agent.KindPlan:        text.Of("Plan the next step"),
		agent.KindParams:      text.Of("Derive arguments"),
		agent.KindToolRisk:    text.Of("Risk of the call"),
		agent.KindConfirm:     text.Of("May it be called?"),
		agent.KindCall:        text.Of("Call a tool"),
		agent.KindAnalyze:     text.Of("Look at the failure"),
		agent.KindMissing:     text.Of("What is missing"),
		agent.KindAskParams:   text.Of("Ask for parameters"),
		agent.KindFill:        text.Of("Fill in parameters"),
		agent.KindAlternative: text.Of("Look for another tool"),
		agent.KindRepair:      text.Of("Repair the step"),
		agent.KindReplan:      text.Of("Plan the rest anew"),
		agent.KindSummary:     text.Of("Write the answer"),
	}
	title, ok := titles[kind]
	if !ok {
		return kind
	}
	return title.In(language)
}

// tellTaskStep tells what a step of a task is. The tool of a call is added by the code that knows it.
func tellTaskStep(a *host.ActivationView, language string, e *api.NodeExecution) {
	_, name := a.ID.Split()
	kind := agent.PartOf(name).Kind
	e.NodeName = decisionTitle(kind, language)
	if kind == agent.KindCall {
		e.NodeName = name
	}
	e.NodeType, e.NodeSubtype, _ = strings.Cut(agent.StepKind(name), ".")
	e.Iteration = nil // it is not an iteration of anything
}

// nameCall gives a call the name of its tool.
func nameCall(t *trail, e *api.NodeExecution) {
	if s := t.of[e.NodeID]; s != nil && s.tool != "" && agent.PartOf(e.NodeID).Kind == agent.KindCall {
		e.NodeName = s.tool
	}
}

// taskTrail is the trail of the execution, if it is a task. Values are what its activations have left.
func (r *Reading) taskTrail(values map[engine.Ref]json.RawMessage) (*trail, bool) {
	task, ok := taskNode(r.Graph)
	if !ok || r.View == nil {
		return nil, false
	}
	return trailOf(r.View, task, func(a *host.ActivationView) json.RawMessage { return resultIn(a, values) }), true
}

// resultIn is what an activation has left under the key that steps use.
func resultIn(a *host.ActivationView, values map[engine.Ref]json.RawMessage) json.RawMessage {
	if a == nil {
		return nil
	}
	return values[resultRefOf(a)]
}

// readTrail is the trail of the execution, with the tools of its steps; ok is false when it is not a task.
func (r *Reading) readTrail(ctx context.Context) (_ *trail, ok bool, err error) {
	task, ok := taskNode(r.Graph)
	if !ok || r.trail != nil {
		return r.trail, ok, nil
	}
	if r.View == nil {
		if r.View, r.Start, err = r.Journal.View(ctx); err != nil {
			return nil, true, err
		}
	}
	results := map[*host.ActivationView]json.RawMessage{}
	result := func(a *host.ActivationView) json.RawMessage {
		if _, known := results[a]; !known {
			results[a] = nil
		}
		return results[a]
	}
	trailOf(r.View, task, result) // tells which decisions are to be read
	var refs []engine.Ref
	for a := range results { // order does not matter: the reader sorts them
		if ref := resultRefOf(a); ref != "" {
			refs = append(refs, ref)
		}
	}
	values, err := r.values(ctx, refs)
	if err != nil {
		return nil, true, err
	}
	for a := range results { // order does not matter: one entry each
		results[a] = resultIn(a, values)
	}
	r.trail = trailOf(r.View, task, result)
	return r.trail, true, nil
}

// nameCalls gives the calls among activations the names of their tools.
func (r *Reading) nameCalls(ctx context.Context, list []api.NodeExecution) error {
	if !slices.ContainsFunc(list, func(e api.NodeExecution) bool { return e.NodeType == agent.ToolType }) {
		return nil
	}
	t, ok, err := r.readTrail(ctx)
	if err != nil || !ok {
		return err
	}
	for i := range list {
		nameCall(t, &list[i])
	}
	return nil
}

// task tells the execution as a task; nil when it is not a task.
func (r *Reading) task(ctx context.Context, e *api.Execution, values map[engine.Ref]json.RawMessage) (*api.Task, error) {
	t, ok := r.taskTrail(values)
	if !ok {
		return nil, nil
	}
	r.trail = t
	for id, n := range e.NodeExecutions { // order does not matter: each by itself
		nameCall(t, &n)
		e.NodeExecutions[id] = n
	}
	request := agent.ReadAsked(r.Start.Trigger, r.Start.Initial)
	task := &api.Task{
		ConversationID: request.ConversationID, SessionID: request.SessionID, Question: request.Question,
		Language:  cmp.Or(request.Language, r.Start.Language, text.English),
		Documents: request.Documents, PlanID: t.planID(), StepCount: stepCount(t), FailureCount: t.failures, Facts: []string{},
		Steps: make([]api.TaskStep, len(t.steps)),
	}
	task.AgentID, _ = agent.IDOf(r.Summary.WorkflowID)
	task.FlowName = gjson.GetBytes(resultIn(t.flow[agent.KindFlowName], values), "flow_name").String()
	task.FlowRisk = riskOf(resultIn(t.flow[agent.KindFlowRisk], values))
	if err := r.answered(ctx, task, resultIn(t.flow[agent.KindSummary], values)); err != nil {
		return nil, err
	}
	if f := r.View.Error; f != nil && r.View.Status == engine.StatusError {
		if n, told := wholeNumber(f.Details["failures"]); told {
			task.FailureCount = n // the last of them is not told by what followed it, since nothing did
		}
	}
	purposes := purposesOf(e.Questions)
	slots := map[string]json.RawMessage{}
	for i, s := range t.steps {
		task.Steps[i] = tellTrailStep(s, purposes[string(s.last.ID)], r.View.Status, values)
		if filled := filledIn(s, values); filled != nil {
			slots[s.id] = filled
		}
	}
	if len(slots) > 0 {
		var err error
		if task.FilledSlots, err = json.Marshal(slots); err != nil {
			return nil, fault.Newf(fault.Internal, "what was filled in for execution %q cannot be told: %w", r.Summary.ID, err)
		}
	}
	return task, nil
}

// stepCount is how many places a tool was chosen for.
func stepCount(t *trail) int {
	n := 0
	for _, s := range t.steps {
		n = max(n, s.place)
	}
	return n
}

func wholeNumber(v any) (int, bool) {
	switch v := v.(type) {
	case float64:
		return int(v), true
	case int:
		return v, true
	case int64:
		return int(v), true
	}
	return 0, false
}

func riskOf(value json.RawMessage) *api.TaskRisk {
	var risk api.TaskRisk
	if len(value) == 0 || json.Unmarshal(value, &risk) != nil || risk.Risk == "" {
		return nil
	}
	return &risk
}

// maxAnswer is how large an answer may be to be told whole; a larger one is read by its name.
const maxAnswer = 1 << 20

// answered tells what the summary has left.
func (r *Reading) answered(ctx context.Context, task *api.Task, value json.RawMessage) error {
	value, err := wholeValue(ctx, r.Journal, value)
	if err != nil || len(value) == 0 {
		return err
	}
	var said struct {
		Answer    string   `json:"answer"`
		Reasoning string   `json:"reasoning"`
		Facts     []string `json:"facts"`
	}
	if json.Unmarshal(value, &said) != nil {
		return nil // an operator has put something else in its place, which the node shows
	}
	task.FullAnswer, task.Reasoning = said.Answer, said.Reasoning
	if said.Facts != nil {
		task.Facts = said.Facts
	}
	return nil
}

// TaskAnswer is what a task that has ended has come to; empty if it has not, or if the answer is too large to be told whole.
func (r *Reading) TaskAnswer(ctx context.Context) (string, error) {
	outputs, err := r.Outputs(ctx)
	if err != nil {
		return "", err
	}
	result, err := wholeValue(ctx, r.Journal, outputs[agent.TaskNode])
	return gjson.GetBytes(result, "answer").Str, err
}

// wholeValue is a value that may be told by its name, as long as it is not too large.
func wholeValue(ctx context.Context, journal host.Journal, value json.RawMessage) (json.RawMessage, error) {
	hash, size := gjson.GetBytes(value, "$blob"), gjson.GetBytes(value, "size")
	if hash.Type != gjson.String || size.Type != gjson.Number {
		return value, nil
	}
	if size.Int() > maxAnswer {
		return nil, nil
	}
	return journal.Source.Blob(ctx, journal.Principal, host.Blob{Hash: hash.Str, Size: size.Int()})
}

// purposesOf are what the open questions are for, by activation.
func purposesOf(list []api.UserInputRequest) map[string]string {
	purposes := map[string]string{}
	for _, q := range list {
		if q.ExecutionID == "" {
			purposes[q.ActivationID] = q.Purpose
		}
	}
	return purposes
}

func tellTrailStep(s *trailStep, asked string, execution engine.Status, values map[engine.Ref]json.RawMessage) api.TaskStep {
	told := api.TaskStep{
		StepID: s.id, Tool: s.tool, Description: gjson.GetBytes(resultIn(s.choice, values), "description").String(),
		Status: s.statusOf(asked, execution),
		PlanID: agent.PlanID(s.plan), Rung: string(s.rung), Arguments: resultIn(s.arguments, values),
		Risk: riskOf(resultIn(s.risk, values)),
	}
	if s.call != nil && s.call.Status == engine.NodeDone {
		told.Result = resultIn(s.call, values)
	}
	if s.failed && s.fault != nil {
		told.Error = messageOf(s.fault)
	}
	return told
}

// filledIn is what people have filled in for a step; what was given later is over what was given before.
func filledIn(s *trailStep, values map[engine.Ref]json.RawMessage) json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, a := range s.given {
		var content map[string]json.RawMessage
		raw := gjson.GetBytes(resultIn(a, values), "content").Raw
		if raw == "" || json.Unmarshal([]byte(raw), &content) != nil {
			continue // a description alone fills nothing in
		}
		maps.Copy(all, content)
	}
	if len(all) == 0 {
		return nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil // it was decoded from JSON, so it cannot be
	}
	return raw
}

// taskCheckpoint tells where a task stands in the words of executors and steps.
func (r *Reading) taskCheckpoint(c *api.Checkpoint, e *api.Execution) {
	task, t := e.Task, r.trail
	c.AppID, c.ExecutorName = cmp.Or(task.AgentID, e.WorkflowID), cmp.Or(task.FlowName, e.WorkflowName)
	c.StepID, c.StepName, c.StepType, c.StepStatus = "", "", "", ""
	delete(c.Data, "input")
	switch step := t.current(); {
	case step != nil:
		told := &task.Steps[len(task.Steps)-1]
		c.StepID, c.StepName, c.StepType, c.StepStatus = step.id, step.tool, step.tool, told.Status
		if len(told.Arguments) > 0 {
			c.Data["input"] = told.Arguments
		}
		if c.ErrorMessage == nil && step.failed {
			c.ErrorMessage = checkpointError(step.fault)
		}
	case t.flow[agent.KindSummary] != nil:
		c.StepID, c.StepName, c.StepType = agent.KindSummary, finalStep, finalStep
		c.StepStatus = stepStatus(t.flow[agent.KindSummary].Status, "")
	case t.flow[agent.KindConfirmFlow] != nil:
		a := t.flow[agent.KindConfirmFlow]
		c.StepID, c.StepName, c.StepType, c.StepStatus = agent.KindConfirmFlow, c.ExecutorName, agent.TaskKind,
			stepStatus(a.Status, human.PurposeConfirm)
		if e.Status == string(engine.StatusCanceled) {
			c.StepStatus = stepStatus(engine.NodeCanceled, "")
		}
	case t.last != nil:
		c.StepID, c.StepName, c.StepType, c.StepStatus = t.last.Node, decisionTitle(agent.PartOf(t.last.Node).Kind, task.Language),
			agent.TaskKind, stepStatus(t.last.Status, "")
	}
}

// How many executions below a node are shown, and how many of their steps.
const (
	maxTasksBelow = 20
	maxStepsBelow = 100
)

// tasksBelow tells the steps of the tasks that nodes have given to agents, with the nodes that have: they are what these do.
func (r *Reading) tasksBelow(ctx context.Context, e *api.Execution) error {
	var nodes []string
	for i := range r.Graph.Nodes {
		n := &r.Graph.Nodes[i]
		if v := r.View.Nodes[n.ID]; n.Plan.Traits.GivesTasks && v != nil && len(nodes) < maxTasksBelow {
			nodes = append(nodes, n.ID)
		}
	}
	r.beyond = r.beyond || len(nodes) > 0
	for _, id := range nodes {
		v := r.View.Nodes[id]
		child := engine.ChildID(r.Summary.ID, v.ID, v.Generation)
		steps, err := r.lib.taskBelow(ctx, r, child)
		if errors.Is(err, store.ErrNotFound) {
			continue // it has not begun, or is no longer kept
		}
		if err != nil {
			return err
		}
		n := e.NodeExecutions[id]
		n.AttachedExecutions = map[string][]api.NodeExecution{child: steps}
		e.NodeExecutions[id] = n
	}
	return nil
}

// taskBelow tells the steps of a task that the execution has started: the last call of each, or what is done to make one.
func (l *Library) taskBelow(ctx context.Context, above *Reading, child string) ([]api.NodeExecution, error) {
	r, err := l.OpenExecution(ctx, above.p, child)
	if err != nil {
		return nil, err
	}
	t, ok, err := r.readTrail(ctx)
	if err != nil {
		return nil, err
	}
	list := []api.NodeExecution{}
	if !ok {
		return list, nil
	}
	steps := t.steps[max(0, len(t.steps)-maxStepsBelow):]
	var refs []engine.Ref
	for _, step := range steps {
		if step.call != nil {
			refs = append(refs, outputRefs([]host.ActivationView{*step.call})...)
		}
	}
	values, err := r.values(ctx, refs)
	if err != nil {
		return nil, err
	}
	for _, step := range steps {
		a := cmp.Or(step.end, step.call, step.last)
		told, err := tellActivation(r.Graph, r.Start.Language, a, values)
		if err != nil {
			return nil, err
		}
		told.NodeID, told.NodeName, told.NodeType, told.NodeSubtype = step.id, cmp.Or(step.tool, step.id), agent.ToolType, agent.ToolSubtype
		if a != step.end && a != step.call { // a decision about it, which is not its output
			told.OutputData, told.ExecutionDetails = nil, nil
			if told.Status == string(engine.NodeDone) {
				told.Status = string(engine.NodePending)
			}
		}
		list = append(list, told)
	}
	return list, nil
}

// stepTarget is the activation that somebody means who names a part of a task: of a step the one that was done about it last.
func (r *Reading) stepTarget(ctx context.Context, node string) (_ engine.ActivationID, ok bool, err error) {
	t, ok, err := r.readTrail(ctx)
	if err != nil || !ok {
		return "", false, err
	}
	if i := slices.IndexFunc(t.steps, func(s *trailStep) bool { return s.id == node }); i >= 0 {
		return t.steps[i].last.ID, true, nil
	}
	if _, whole := r.Graph.Node(node); whole {
		return "", false, nil // the trigger, or the task as a whole
	}
	n := r.View.Nodes[node]
	if n == nil {
		return "", false, nil
	}
	return n.ID, true, nil
}

// confirmationOf is the question whose answer has let a call be made; not ok: nobody was asked.
func (r *Reading) confirmationOf(call string) (_ engine.ActivationID, ok bool) {
	task, _ := taskNode(r.Graph)
	if agent.PartOf(call).Kind != agent.KindCall {
		return "", false
	}
	list := begunInOrder(r.View, task)
	at := slices.IndexFunc(list, func(a *host.ActivationView) bool { return a.Node == call })
	for i := at - 1; i >= 0; i-- {
		switch agent.PartOf(list[i].Node).Kind {
		case agent.KindConfirm:
			return list[i].ID, true
		case agent.KindParams, agent.KindFill: // what came before was about other arguments
			return "", false
		}
	}
	return "", false
}

// isAbout says that an activation is about a step of the task.
func (r *Reading) isAbout(id engine.ActivationID, step string) bool {
	if r.trail == nil {
		return false
	}
	_, name := id.Split()
	s := r.trail.of[name]
	return s != nil && s.id == step
}

// hasStep says that the task has a step of that id.
func (r *Reading) hasStep(id string) bool {
	return r.trail != nil && slices.ContainsFunc(r.trail.steps, func(s *trailStep) bool { return s.id == id })
}
