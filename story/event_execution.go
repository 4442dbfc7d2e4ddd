package story

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/human"
	"tandem/workflow"
)

// The words of the execution vocabulary.
const (
	eventExecutionStarted   = "execution_started"
	eventExecutionResumed   = "execution_resumed"
	eventExecutionPaused    = "execution_paused"
	eventExecutionCompleted = "execution_completed"
	eventExecutionFailed    = "execution_failed"
	eventExecutionCanceled  = "execution_canceled"
	eventExecutionTimeout   = "execution_timeout"
	eventNodeStarted        = "node_started"
	eventNodeOutput         = "node_output_update"
	eventNodeLogs           = "node_logs_update"
	eventNodeCompleted      = "node_completed"
	eventNodeFailed         = "node_failed"
	eventNodeSkipped        = "node_skipped"
	eventNodeCanceled       = "node_canceled"
	eventNodeRetrying       = "node_retrying"
	eventNodeWaiting        = "node_waiting"
	eventInputRequired      = "user_input_required"
)

// ExecutionEvents lists them, for the documentation.
func ExecutionEvents() []string {
	return []string{
		eventExecutionStarted, eventExecutionResumed, eventExecutionPaused, eventExecutionCompleted, eventExecutionFailed,
		eventExecutionCanceled, eventExecutionTimeout,
		eventNodeStarted, eventNodeOutput, eventNodeLogs, eventNodeCompleted, eventNodeFailed, eventNodeSkipped, eventNodeCanceled,
		eventNodeRetrying, eventNodeWaiting, eventInputRequired,
	}
}

// execution tells a change in the execution vocabulary.
func (t *teller) execution(ctx context.Context, row *host.Row, c *change) ([]api.Event, error) {
	update := api.ExecutionUpdate{}
	name := ""
	switch c.what {
	case executionStarted:
		name = eventExecutionStarted
	case executionResumed:
		name, update.Reason = eventExecutionResumed, c.reason
	case executionPaused:
		name, update.Reason = eventExecutionPaused, c.reason
	case executionEnded:
		name = endEvent(c.status)
		update.Error = executionErrorOf(t.subject.journal.Graph, c.err, c.node.ID, row.Time)
	case nodeStarted:
		name, update.Iterations = eventNodeStarted, iterationsOf(row, c.node.ID)
	case nodeCompleted:
		name = eventNodeCompleted
	case nodeFailed:
		name = eventNodeFailed
	case nodeSkipped:
		name = eventNodeSkipped
	case nodeCanceled:
		name = eventNodeCanceled
	case nodeRetrying:
		name = eventNodeRetrying
	case nodeWaiting:
		name = eventNodeWaiting
	case inputRequired:
		name = eventInputRequired
		value, err := t.asked(ctx, row, c)
		if err != nil {
			return nil, err
		}
		node, _ := host.Shown(t.subject.journal.Graph, c.node.ID)
		request := questionOf(t.subject.journal, c.told, node, row.Time, withSent(row, c.told, value))
		request.Fork = human.ForkOf(t.Start().Told())
		if c.below != nil {
			request.InteractionID, request.ExecutionID = c.below.Interaction, c.below.Execution
		}
		update.Kind, update.UserInputRequest = request.Purpose, &request
	}
	switch c.what {
	case executionStarted, executionResumed, executionPaused, executionEnded:
		update.ExecutionStatus = string(c.status)
	default:
		values, err := t.values(ctx, row, c.node.Outputs)
		if err != nil {
			return nil, err
		}
		node, err := tellActivation(t.subject.journal.Graph, t.Start().Language, &c.node, values)
		if err != nil {
			return nil, err
		}
		if node.Error, err = nodeErrorOf(c.node.Error, row.Time); err != nil {
			return nil, err
		}
		if err := t.nameTool(ctx, row, &node); err != nil {
			return nil, err
		}
		if err := t.subject.address.addAddress(&node, &c.node); err != nil {
			return nil, err
		}
		update.NodeID, update.InnerStep, update.NodeExecution = node.NodeID, node.InnerStep, &node
	}
	data, err := json.Marshal(update)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "encode %s: %w", name, err)
	}
	return []api.Event{{EventType: name, Data: data}}, nil
}

// iterationsOf is how many iterations a loop has that the row opens around an activation; zero when it opens none, or when
// only the turns tell.
func iterationsOf(row *host.Row, id engine.ActivationID) int64 {
	scope, _ := id.Split()
	owner := scope[:max(strings.LastIndexByte(scope, '['), 0)]
	for _, fact := range row.Facts {
		if opened, ok := fact.(engine.ScopeOpened); ok && string(opened.Activation) == owner {
			return max(opened.Count, 0)
		}
	}
	return 0
}

// endEvent is what the end of an execution is called.
func endEvent(status engine.Status) string {
	switch status {
	case engine.StatusSuccess:
		return eventExecutionCompleted
	case engine.StatusCanceled:
		return eventExecutionCanceled
	case engine.StatusTimeout:
		return eventExecutionTimeout
	default:
		return eventExecutionFailed
	}
}

// nodeErrorOf is why a node failed, as everybody may read it.
func nodeErrorOf(e *fault.Error, at int64) (*api.NodeError, error) {
	if e == nil {
		return nil, nil
	}
	details, err := detailsOf(e)
	return &api.NodeError{ErrorCode: string(e.Code), ErrorMessage: messageOf(e), ErrorDetails: details,
		IsRetryable: e.Retryable, Timestamp: at}, err
}

// detailsOf encodes the facts of an error the same, whether it was just made or read: the journal has numbers and objects of
// JSON only.
func detailsOf(e *fault.Error) (json.RawMessage, error) {
	if len(e.Details) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(e.Details)
	if err != nil {
		return nil, fault.Newf(fault.Internal, "encode the details of %q: %w", e.Code, err)
	}
	var plain map[string]any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, fault.Newf(fault.Internal, "encode the details of %q: %w", e.Code, err)
	}
	return json.Marshal(plain)
}

// messageOf is what a user reads of an error; never nothing.
func messageOf(e *fault.Error) string {
	if e.Message != "" {
		return e.Message
	}
	return e.Error()
}

// executionErrorOf is why an execution, or the activation in it, failed.
func executionErrorOf(graph *workflow.Graph, e *fault.Error, activation engine.ActivationID, at int64) *api.ExecutionError {
	if e == nil {
		return nil
	}
	out := &api.ExecutionError{ErrorCode: string(e.Code), ErrorMessage: messageOf(e), Timestamp: at, IsRetryable: e.Retryable}
	if activation != "" {
		out.ErrorNodeID, out.InnerStep = host.Shown(graph, activation)
	}
	return out
}

// questionOf is a question that a row asked at a time. What the kind has put into it fills the fields that it knows.
func questionOf(journal host.Journal, t *host.Told, node string, asked int64, value json.RawMessage) api.UserInputRequest {
	var body struct {
		api.UserInputRequest
		TimeoutSeconds int64 `json:"timeout_seconds"`
	}
	if len(value) > 0 && json.Unmarshal(value, &body) != nil {
		body.UserInputRequest = api.UserInputRequest{Arguments: value} // not in the form of a question; it is shown as it is
	}
	request := body.UserInputRequest
	request.InteractionID, request.NodeID, request.ActivationID, request.Purpose = interactionOf(journal, t.Ask), node,
		string(t.Activation), t.Purpose
	if body.TimeoutSeconds > 0 {
		request.TimeoutAt = asked + 1000*body.TimeoutSeconds
	}
	if request.InteractionType == "" {
		request.InteractionType = "input"
	}
	if t.Purpose == engine.PurposeOutcomeUnknown {
		askOutcome(&request)
	}
	return request
}

// withSent is what a question asks; about an unknown outcome, what was sent, which the row that asks has recorded.
func withSent(row *host.Row, t *host.Told, value json.RawMessage) json.RawMessage {
	if t.Purpose != engine.PurposeOutcomeUnknown {
		return value
	}
	for i := range row.Told {
		if d := &row.Told[i]; d.What == host.ToldDetail && d.Activation == t.Activation {
			if sent := gjson.GetBytes(d.Detail, "sent"); sent.Exists() {
				return json.RawMessage(`{"arguments":` + sent.Raw + `}`)
			}
		}
	}
	return nil
}

// interactionOf is the id by which people know a question.
func interactionOf(journal host.Journal, ask engine.AskID) string {
	return host.InteractionID(journal.Principal.Workspace, journal.Execution, ask)
}

// output tells of output while it is made.
func (s *subject) output(words Vocabulary, o *host.Output, mark outputMark, now int64) (Frame, bool, error) {
	node, step := host.Shown(s.journal.Graph, o.Activation)
	part := api.PartialOutput{
		ActivationID: string(o.Activation), Attempt: int(o.Attempt.Attempt), Offset: o.Offset, Text: o.Text, Data: o.Data,
		Snapshot: mark != outputPiece, Missed: mark == outputMissed,
	}
	e := api.Event{EventType: eventNodeOutput, ExecutionID: s.journal.Execution, Timestamp: now}
	var data any = api.ExecutionUpdate{NodeID: node, InnerStep: step, PartialOutput: &part}
	if words == VocabularyFlow {
		if !s.toUser[worksFor(s.journal.Graph, o.Activation)] && !s.answers(o.Activation) {
			return Frame{}, false, nil
		}
		data = s.flowOutput(&e, &part)
	}
	var err error
	if e.Data, err = json.Marshal(data); err != nil {
		return Frame{}, false, fault.Newf(fault.Internal, "encode output of %q: %w", o.Activation, err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return Frame{}, false, fault.Newf(fault.Internal, "encode output of %q: %w", o.Activation, err)
	}
	return Frame{Name: e.EventType, Body: body}, true, nil
}

// logged is a frame that says that lines were stored. Without an activation it says that some may have been while the reader was behind.
// The flow vocabulary has no word for it.
func (s *subject) logged(words Vocabulary, l host.Logged, now int64) (Frame, bool, error) {
	if words != VocabularyExecution {
		return Frame{}, false, nil
	}
	update := api.ExecutionUpdate{WrittenLines: &api.WrittenLines{ActivationID: string(l.Activation),
		Count: l.Lines, Missed: l.Activation == ""}}
	if l.Activation != "" {
		update.NodeID, update.InnerStep = host.Shown(s.journal.Graph, l.Activation)
	}
	e := api.Event{EventType: eventNodeLogs, ExecutionID: s.journal.Execution, Timestamp: now}
	var err error
	if e.Data, err = json.Marshal(update); err != nil {
		return Frame{}, false, fault.Newf(fault.Internal, "encode that %q has written lines: %w", l.Activation, err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return Frame{}, false, fault.Newf(fault.Internal, "encode that %q has written lines: %w", l.Activation, err)
	}
	return Frame{Name: e.EventType, Body: body}, true, nil
}

// outputMark says what output a reader is given: a piece that follows the one before, all there is so far, or all there is
// since pieces were left out.
type outputMark int

const (
	outputPiece outputMark = iota
	outputSnapshot
	outputMissed
)
