package story

import (
	"context"
	"encoding/json"

	"tandem/api"
	"tandem/dataflow"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
)

// The words of the flow vocabulary.
const (
	flowStart           = "flow.start"
	flowResume          = "flow.resume"
	flowStop            = "flow.stop"
	flowSuccess         = "flow.success"
	flowFailed          = "flow.failed"
	flowCancel          = "flow.cancel"
	stepInit            = "step.init"
	stepInput           = "step.input"
	stepUpdate          = "step.update"
	stepOutput          = "step.output"
	stepError           = "step.error"
	stepSkip            = "step.skip"
	stepRetry           = "step.retry"
	stepCancel          = "step.cancel"
	stepWaitingForStart = "step.waiting_for_start"
	stepWaitingForParam = "step.waiting_for_param"
	textAdd             = "text.add"
)

// FlowEvents lists them, for the documentation.
func FlowEvents() []string {
	return []string{
		flowStart, flowResume, flowStop, flowSuccess, flowFailed, flowCancel, stepInit, stepInput, stepUpdate, stepOutput, stepError,
		stepSkip, stepRetry, stepCancel, stepWaitingForStart, stepWaitingForParam, textAdd,
	}
}

type (
	flowReason struct {
		Reason string `json:"reason,omitempty"`
	}
	flowText struct {
		Text         string `json:"text"`
		ActivationID string `json:"activation_id,omitempty"`
		Attempt      int    `json:"attempt,omitempty"`
		Offset       int64  `json:"offset"`
		Snapshot     bool   `json:"snapshot,omitempty"`
		Missed       bool   `json:"missed,omitempty"`
	}
	flowRetry struct {
		Attempt int   `json:"attempt"`
		NextAt  int64 `json:"next_at"`
	}
	flowError struct {
		Message string        `json:"err_msg"`
		Data    flowErrorData `json:"data"`
	}
	flowErrorData struct {
		Type          string          `json:"error_type"`
		MissingFields json.RawMessage `json:"missing_fields,omitempty"`
		Details       json.RawMessage `json:"details,omitempty"`
	}
	// flowDecision asks whether a step may start, flowParams for what it is to start with.
	flowDecision struct {
		Risk          string          `json:"risk"`
		Reason        string          `json:"reason"`
		InteractionID string          `json:"interaction_id"`
		Arguments     json.RawMessage `json:"arguments,omitempty"`
		Warning       string          `json:"warning,omitempty"`
	}
	flowParams struct {
		Message       string          `json:"message"`
		Params        json.RawMessage `json:"params"`
		InteractionID string          `json:"interaction_id"`
		Schema        json.RawMessage `json:"schema,omitempty"`
	}
)

// flow tells a change in the flow vocabulary. Commands are what the row wanted done.
func (t *teller) flow(ctx context.Context, row *host.Row, c *change, commands []engine.Command) ([]api.Event, error) {
	executor := t.subject.executor(c.status)
	event := func(name string, data any) ([]api.Event, error) {
		raw, err := json.Marshal(data)
		if err != nil {
			return nil, fault.Newf(fault.Internal, "encode %s: %w", name, err)
		}
		e := api.Event{EventType: name, Data: raw, Executor: executor}
		switch c.what {
		case executionStarted, executionResumed, executionPaused, executionEnded:
		default:
			purpose := ""
			if c.told != nil {
				purpose = c.told.Purpose
			}
			e.Step = t.flowStep(c.node.ID, stepStatus(c.node.Status, purpose))
		}
		return []api.Event{e}, nil
	}
	nothing := struct{}{}
	switch c.what {
	case executionStarted:
		return event(flowStart, nothing)
	case executionResumed:
		return event(flowResume, flowReason{c.reason})
	case executionPaused:
		return event(flowStop, flowReason{c.reason})
	case executionEnded:
		switch c.status {
		case engine.StatusSuccess:
			return event(flowSuccess, nothing)
		case engine.StatusCanceled:
			return event(flowCancel, nothing)
		}
		return event(flowFailed, nothing)
	case nodeStarted:
		events, err := event(stepInit, nothing)
		if err != nil {
			return nil, err
		}
		events[0].Step.StepStatus = stepStatus(engine.NodePending, "")
		input, ok, err := t.input(c.node.ID, commands)
		if err != nil || !ok {
			return events, err
		}
		more, err := event(stepInput, input)
		return append(events, more...), err
	case nodeCompleted:
		values, err := t.values(ctx, row, c.node.Outputs)
		if err != nil {
			return nil, err
		}
		output, err := outputOf(outputsByKey(c.node.Outputs, values))
		if err != nil {
			return nil, err
		}
		return event(stepOutput, output)
	case nodeFailed:
		data, err := flowErrorOf(c.err)
		if err != nil {
			return nil, err
		}
		return event(stepError, data)
	case nodeSkipped:
		return event(stepSkip, nothing)
	case nodeCanceled:
		return event(stepCancel, nothing)
	case nodeRetrying:
		return event(stepRetry, flowRetry{int(c.told.Attempt), c.told.Time})
	case inputRequired:
		value, err := t.asked(ctx, row, c)
		if err != nil {
			return nil, err
		}
		if asksForData(c.told.Purpose) {
			return event(stepWaitingForParam, paramsOf(t.interaction(c), c.told, value))
		}
		return event(stepWaitingForStart, decisionOf(t.interaction(c), c.told, withSent(row, c.told, value)))
	}
	return nil, nil
}

// asked is what a question asks, as far as the execution knows it.
func (t *teller) asked(ctx context.Context, row *host.Row, c *change) (json.RawMessage, error) {
	if c.below == nil {
		return t.value(ctx, row, c.told.Ref)
	}
	return json.Marshal(map[string]string{"title": c.below.Title, "interaction_type": c.below.Type})
}

// interaction is the id by which people know the question that a change tells of.
func (t *teller) interaction(c *change) string {
	if c.below != nil {
		return c.below.Interaction
	}
	return interactionOf(t.subject.journal, c.told.Ask)
}

// input is what a run that begins is given. There is none when it cannot be made, which is then what the step fails with.
func (t *teller) input(id engine.ActivationID, commands []engine.Command) (json.RawMessage, bool, error) {
	for _, command := range commands {
		run, ok := command.(engine.RunNode)
		if !ok || run.Activation != id || run.Cause.Kind != engine.CauseRun || run.Cause.Wake != nil {
			continue
		}
		input, err := t.Input(run)
		if err != nil {
			if f := fault.From(err); f.Code.Class() == fault.ClassInternal || f.Code.Class() == fault.ClassUnavailable {
				return nil, false, err // it could not be read: that is about the reading, not about the run
			}
			return nil, false, nil
		}
		if len(input) > host.MaxInline {
			input = host.Omitted(len(input))
		}
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		return input, true, nil
	}
	return nil, false, nil
}

// outputOf is the output of an activation; plain text is wrapped.
func outputOf(outputs map[string]json.RawMessage) (any, error) {
	if len(outputs) == 0 {
		return struct{}{}, nil
	}
	output, err := dataflow.Output(outputs)
	if err != nil {
		return struct{}{}, nil // it cannot be read, which is what the execution was ended for
	}
	if len(output) > 0 && output[0] == '"' {
		return map[string]json.RawMessage{"text": output}, nil
	}
	return output, nil
}

func flowErrorOf(e *fault.Error) (flowError, error) {
	if e == nil {
		e = fault.New(fault.Internal, "the step failed and did not say why; the operator's log may")
	}
	out := flowError{Message: messageOf(e), Data: flowErrorData{Type: string(e.Code)}}
	raw, err := detailsOf(e)
	if err != nil || raw == nil {
		return out, err
	}
	var details map[string]json.RawMessage
	if err := json.Unmarshal(raw, &details); err != nil {
		return out, fault.Newf(fault.Internal, "encode the details of %q: %w", e.Code, err)
	}
	out.Data.MissingFields = details["missing_fields"]
	delete(details, "missing_fields")
	if len(details) > 0 {
		out.Data.Details, err = json.Marshal(details)
	}
	return out, err
}

// asksForData says that a question wants something to be filled in, and not a decision.
func asksForData(purpose string) bool {
	return stepStatus(engine.NodeWaitingInput, purpose) == "PARAM"
}

// question is what the flow vocabulary takes from a question.
type question struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Message     string          `json:"message"`
	Reason      string          `json:"reason"`
	Risk        string          `json:"risk"`
	Warning     string          `json:"warning"`
	Arguments   json.RawMessage `json:"arguments"`
	Params      json.RawMessage `json:"params"`
	Schema      json.RawMessage `json:"schema"`
}

func readQuestion(value json.RawMessage) question {
	var q question
	if len(value) > 0 && json.Unmarshal(value, &q) != nil {
		q = question{Arguments: value} // not in the form of a question; it is shown as it is
	}
	return q
}

func decisionOf(id string, t *host.Told, value json.RawMessage) flowDecision {
	q := readQuestion(value)
	return flowDecision{q.Risk, firstText(q.Reason, q.Description, q.Title, q.Message, t.Purpose), id, q.Arguments, q.Warning}
}

func paramsOf(id string, t *host.Told, value json.RawMessage) flowParams {
	q := readQuestion(value)
	if q.Params == nil {
		q.Params = json.RawMessage("null")
	}
	return flowParams{firstText(q.Message, q.Description, q.Title, t.Purpose), q.Params, id, q.Schema}
}

func firstText(list ...string) string {
	for _, text := range list {
		if text != "" {
			return text
		}
	}
	return ""
}

// flowOutput tells of output while it is made, in the flow vocabulary: text is added, an object replaces the one before. A
// snapshot that has both is told by its text, which alone cannot be had otherwise before the step has ended.
func (s *subject) flowOutput(e *api.Event, part *api.PartialOutput) any {
	id := engine.ActivationID(part.ActivationID)
	e.Step, e.Executor = s.step(id, stepStatus(engine.NodeRunning, "")), s.executor(engine.StatusRunning)
	if s.answers(id) {
		e.Step = summaryStep(stepStatus(engine.NodeRunning, ""))
	}
	if part.Text == "" && part.Data != nil {
		e.EventType = stepUpdate
		return part.Data
	}
	e.EventType = textAdd
	return flowText{part.Text, part.ActivationID, part.Attempt, part.Offset, part.Snapshot, part.Missed}
}

func (s *subject) executor(status engine.Status) *api.FlowExecutor {
	return &api.FlowExecutor{ExecutorID: s.journal.Execution, ExecutorName: s.name, ExecutorStatus: executorStatus(status)}
}

func (s *subject) step(id engine.ActivationID, status string) *api.FlowStep {
	node := host.NodeOf(s.journal.Graph, id)
	step := &api.FlowStep{StepID: string(id), StepName: node, StepStatus: status}
	if i, ok := s.journal.Graph.Node(node); ok {
		step.StepName, step.StepType = s.journal.Graph.Nodes[i].Name, s.journal.Graph.Nodes[i].Kind
	}
	if step.NodeID, step.InnerStep = host.Shown(s.journal.Graph, id); step.InnerStep != "" {
		if i, ok := s.journal.Graph.Node(step.NodeID); ok {
			step.StepType = s.journal.Graph.Nodes[i].Kind
		}
	}
	return step
}
