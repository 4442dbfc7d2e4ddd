package server

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/workflow"
)

type actionInput struct {
	ExecutionPath
	Body api.ActionRequest
}

type actionOutput struct{ Body api.ActionResponse }

func (s *Server) actOnExecution(ctx context.Context, p identity.Principal, in *actionInput) (*actionOutput, error) {
	if _, err := s.o.Stores.Executions.Get(ctx, p, in.ID); err != nil {
		return nil, err
	}
	b := &in.Body
	if err := checkAction(b); err != nil {
		return nil, err
	}
	if b.NodeID != "" && b.ActivationID != "" {
		r, err := s.openJournal(ctx, p, in.ID)
		if err != nil {
			return nil, err
		}
		if host.NodeOf(r.graph, engine.ActivationID(b.ActivationID)) != b.NodeID {
			return nil, wrongField("activation_id", "%q is no activation of node %q", b.ActivationID, b.NodeID)
		}
	}
	if b.Action == "fork" {
		return s.fork(ctx, p, in.ID, b)
	}
	r := host.Request{
		Execution: in.ID, Action: host.Action(b.Action), By: p.User, Reason: b.Reason,
		Node: b.NodeID, Activation: engine.ActivationID(b.ActivationID), Value: given(b.Output),
	}
	status, err := s.o.Host.Act(ctx, p, r)
	if err != nil {
		return nil, err
	}
	return &actionOutput{api.ActionResponse{Success: true, Message: actionMessage(b), ExecutionStatus: string(status)}}, nil
}

// given is a value that a request may leave out; null leaves it out, too.
func given(raw json.RawMessage) json.RawMessage {
	if raw = bytes.TrimSpace(raw); string(raw) == "null" {
		return nil
	}
	return raw
}

// checkAction refuses an action that says too little or too much: what would be ignored is a mistake.
func checkAction(b *api.ActionRequest) error {
	about := b.Action == "retry_node" || b.Action == "skip_node" || b.Action == "fork"
	switch {
	case about && b.NodeID == "" && b.ActivationID == "":
		return wrongField("node_id", "%s needs the node, or one activation of it in activation_id", b.Action)
	case !about && b.NodeID != "":
		return wrongField("node_id", "%s is about the whole execution; leave it out", b.Action)
	case !about && b.ActivationID != "":
		return wrongField("activation_id", "%s is about the whole execution; leave it out", b.Action)
	case b.Action != "fork" && given(b.Input) != nil:
		return wrongField("input", "only a fork takes an input; leave it out")
	case b.Action != "skip_node" && given(b.Output) != nil:
		return wrongField("output", "only skip_node takes an output; leave it out")
	}
	if input := given(b.Input); input != nil && input[0] != '{' {
		return wrongField("input", "the input of a node is an object")
	}
	return nil
}

func actionMessage(b *api.ActionRequest) string {
	switch b.Action {
	case "pause":
		return "the execution is paused; what runs ends and nothing new begins"
	case "resume":
		return "the execution goes on"
	case "cancel":
		return "the execution is canceled"
	case "retry_node":
		return "the node is tried again"
	}
	return "the execution goes on without the node"
}

func (s *Server) fork(ctx context.Context, p identity.Principal, source string, b *api.ActionRequest) (*actionOutput, error) {
	id, err := s.o.Host.Fork(ctx, p, host.ForkRequest{
		Source: source, ID: newExecutionID(), Node: b.NodeID, Activation: engine.ActivationID(b.ActivationID), Input: given(b.Input),
	})
	if err != nil {
		return nil, err
	}
	e, err := s.o.Stores.Executions.Get(ctx, p, id)
	if err != nil {
		return nil, err
	}
	return &actionOutput{api.ActionResponse{Success: true, Message: "a new execution goes on from there", ExecutionStatus: string(e.Status), ExecutionID: id}}, nil
}

type inputInput struct {
	ExecutionPath
	Body api.InputRequest
}

func (s *Server) sendInput(ctx context.Context, p identity.Principal, in *inputInput) (*actionOutput, error) {
	b := &in.Body
	if b.ExecutionID != "" && b.ExecutionID != in.ID {
		return nil, wrongField("execution_id", "it is %q, and the address names %q; make them agree, or leave it out", b.ExecutionID, in.ID)
	}
	r, err := s.readExecution(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if r.view.Status.Final() {
		return nil, fault.Newf(fault.Conflict, "execution %q has ended with %s; nothing waits for input", in.ID, r.view.Status)
	}
	if err := r.checkTarget(b); err != nil {
		return nil, err
	}
	request := host.Request{Execution: in.ID, By: p.User, Node: b.NodeID, Activation: engine.ActivationID(b.ActivationID)}
	message := "the answer was taken"
	question, err := r.asked(b)
	switch {
	case err != nil:
		return nil, err
	case question != nil:
		if err = r.answer(&request, question, given(b.InputData)); err == nil && question.Purpose == purposeBudget {
			err = r.raise(ctx, question, given(b.InputData))
		}
	default:
		message = "the signal was taken"
		err = r.signal(ctx, &request, given(b.InputData))
	}
	if err != nil {
		return nil, err
	}
	status, err := s.o.Host.Act(ctx, p, request)
	if err != nil {
		return nil, err
	}
	return &actionOutput{api.ActionResponse{Success: true, Message: message, ExecutionStatus: string(status)}}, nil
}

// checkTarget refuses a node that the workflow does not have, and an activation that is of another node.
func (r *reading) checkTarget(b *api.InputRequest) error {
	if b.NodeID == "" {
		return wrongField("node_id", "it is empty; name the node that waits")
	}
	_, known := r.graph.Node(b.NodeID)
	if !known && r.view.Nodes[b.NodeID] == nil {
		return fault.Newf(fault.NotFound, "the workflow of execution %q has no node %q", r.summary.ID, b.NodeID)
	}
	if id := engine.ActivationID(b.ActivationID); id != "" && !r.isOf(id, b.NodeID) {
		return wrongField("activation_id", "%q is no activation of node %q", b.ActivationID, b.NodeID)
	}
	return nil
}

// isOf says that an activation is of a node, or a step of its work.
func (r *reading) isOf(id engine.ActivationID, node string) bool {
	return host.NodeOf(r.graph, id) == node || worksFor(r.graph, id) == node
}

// worksFor is the node that an activation works for: its own, or that of the program whose step it is.
func worksFor(graph *workflow.Graph, id engine.ActivationID) string {
	if i, _, ok := host.Owner(graph, id); ok {
		return graph.Nodes[i].ID
	}
	return host.NodeOf(graph, id)
}

// asked finds the question that the input answers; none when the node asks nothing.
func (r *reading) asked(b *api.InputRequest) (*openQuestion, error) {
	var found []openQuestion
	for _, q := range r.open() {
		switch {
		case !r.isOf(q.Activation, b.NodeID), b.ActivationID != "" && string(q.Activation) != b.ActivationID:
		case b.InteractionID != "" && string(q.id) != b.InteractionID:
		default:
			found = append(found, q)
		}
	}
	switch {
	case len(found) == 1:
		return &found[0], nil
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, q := range found {
			ids[i] = string(q.id)
		}
		return nil, fault.Newf(fault.Conflict, "node %q waits for %d answers; name one in interaction_id: %s", b.NodeID, len(found), strings.Join(ids, ", ")).With("interaction_ids", ids)
	case b.InteractionID != "":
		return nil, fault.Newf(fault.Conflict, "question %q of node %q is not open; it was answered or withdrawn, or was never asked", b.InteractionID, b.NodeID)
	}
	return nil, nil
}

// purposeBudget is the purpose of the question that an exhausted budget asks.
const purposeBudget = "budget"

// raise adds to the budget that a question is about, before the answer is taken: who is woken by it finds the room.
func (r *reading) raise(ctx context.Context, q *openQuestion, data json.RawMessage) error {
	var answer struct {
		By *float64 `json:"raise_by"`
	}
	if json.Unmarshal(data, &answer) != nil || answer.By == nil || !(*answer.By > 0) {
		return wrongField("input_data.raise_by", "a positive number was expected: by how much the budget is raised")
	}
	value, _, err := r.journal.Value(ctx, r.start, q.Ref)
	if err != nil {
		return err
	}
	var asked struct {
		Budget string `json:"budget"`
	}
	if err := json.Unmarshal(value, &asked); err != nil || asked.Budget == "" {
		return fault.Newf(fault.Internal, "question %q names no budget", q.id)
	}
	return r.s.o.Raise(ctx, r.p, r.summary.ID+"/"+string(q.id), asked.Budget, *answer.By, true)
}

// operational says that a question is about how the execution goes on, which is for those who operate it.
func operational(purpose string) bool {
	return slices.Contains([]string{engine.PurposeOutcomeUnknown, purposeBudget, "drift"}, purpose)
}

// answer makes the request of an answer.
func (r *reading) answer(request *host.Request, q *openQuestion, data json.RawMessage) error {
	allowed := approvers()
	if operational(q.Purpose) {
		allowed = operators()
	}
	if !r.p.Has(allowed...) {
		return fault.Newf(fault.Forbidden, "a question of purpose %q is not for your roles to answer", q.Purpose)
	}
	request.Action, request.Ask, request.Activation, request.Outcome = host.ActionAnswer, q.id, q.Activation, engine.AskDone
	if q.Purpose != engine.PurposeOutcomeUnknown {
		if data == nil {
			return wrongField("input_data", "the answer is missing")
		}
		request.Value = data
		return nil
	}
	var decision struct {
		Outcome string          `json:"outcome"`
		Result  json.RawMessage `json:"result"`
	}
	if data == nil || json.Unmarshal(data, &decision) != nil {
		return wrongField("input_data", "an object with an outcome was expected: done, not_done or stop")
	}
	switch decision.Outcome {
	case engine.ChoiceDone, engine.ChoiceNotDone, engine.ChoiceStop:
	default:
		return wrongField("input_data.outcome", "%q decides nothing; say %s, %s or %s", decision.Outcome, engine.ChoiceDone, engine.ChoiceNotDone, engine.ChoiceStop)
	}
	if given(decision.Result) != nil && decision.Outcome != engine.ChoiceDone {
		return wrongField("input_data.result", "only what was done has a result; leave it out")
	}
	request.Choice, request.Value = decision.Outcome, given(decision.Result)
	return nil
}

// cancelSignal is the name of the signal that ends a delay or a wait early.
const cancelSignal = "cancel"

// signal makes the request of a signal to a node that waits for one, now or later: a signal that comes early is kept.
func (r *reading) signal(ctx context.Context, request *host.Request, data json.RawMessage) error {
	if !r.p.Has(operators()...) {
		return fault.Newf(fault.Forbidden, "node %q asks nothing, and signals are not for your roles to send", request.Node)
	}
	i, ok := r.graph.Node(request.Node)
	kind := ""
	if ok {
		kind = r.graph.Nodes[i].Kind
	}
	if kind != "FLOW.WAIT" && kind != "FLOW.DELAY" {
		return fault.Newf(fault.Conflict, "node %q asks nothing and waits for no signal", request.Node)
	}
	if last := r.view.Nodes[request.Node]; last != nil && last.Ended != 0 && r.graph.Nodes[i].Body == 0 {
		return fault.Newf(fault.Conflict, "node %q no longer waits; it is %s", request.Node, last.Status)
	}
	config, _, err := r.s.nodeConfig(ctx, r.p, r.summary.WorkflowID, r.summary.Revision, request.Node)
	if err != nil {
		return err
	}
	request.Action = host.ActionSignal
	named := gjson.GetBytes(data, "signal")
	if len(data) > 0 && data[0] == '{' && named.Exists() {
		if named.Type != gjson.String || named.Str == "" {
			return wrongField("input_data.signal", "the name of a signal is a text")
		}
		request.Signal = named.Str
		if payload := gjson.GetBytes(data, "payload"); payload.Exists() {
			request.Value = json.RawMessage(payload.Raw)
		}
		return nil
	}
	request.Signal, request.Value = signalOf(kind, config), data
	switch {
	case request.Signal == "":
		return wrongField("input_data.signal", "the node's signal_name is only known when it runs; send {\"signal\", \"payload\"}")
	case request.Signal == cancelSignal && !gjson.GetBytes(data, "cancel").Bool():
		return wrongField("input_data", "node %q waits for a time or a condition; it takes {\"cancel\": true}", request.Node)
	}
	return nil
}

// signalOf is the name of the signal that a node waits for, as its configuration says; empty when that has placeholders.
func signalOf(kind string, config json.RawMessage) string {
	wait := gjson.GetBytes(config, "wait_type").Str
	if kind != "FLOW.WAIT" || wait != "signal" && wait != "event" {
		return cancelSignal
	}
	name := gjson.GetBytes(config, "signal_name").String()
	if strings.Contains(name, "{{") || strings.Contains(name, "${") {
		return ""
	}
	return name
}
