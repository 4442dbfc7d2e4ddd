package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/human"
	"tandem/identity"
	"tandem/store"
	"tandem/workflow"
)

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
	if b.InteractionID != "" && r.view.Questions[r.askOf(b.InteractionID)].Activation == "" {
		below, err := r.below(ctx, b.InteractionID)
		if err != nil {
			return nil, err
		}
		if below { // of an execution that this one waits for, or one that has ended: the desk knows how
			return s.answer(ctx, p, in.ID, b.InteractionID, b.InputData)
		}
	}
	if _, task, err := r.readTrail(ctx); err != nil {
		return nil, err
	} else if task && b.NodeID == "" {
		b.NodeID, _ = taskNode(r.graph) // whatever the task asks
	}
	if err := r.checkTarget(b); err != nil {
		return nil, err
	}
	question, err := r.asked(b)
	if err != nil {
		return nil, err
	}
	if question != nil {
		return s.answer(ctx, p, in.ID, r.interaction(question.id), b.InputData)
	}
	if below, err := r.askedBelow(ctx, b); err != nil {
		return nil, err
	} else if below != "" {
		return s.answer(ctx, p, in.ID, below, b.InputData)
	}
	if allow := append(operators(), identity.Approver); !p.Has(allow...) { // who is asked may answer, whatever their role
		return nil, fault.Newf(fault.Forbidden, "a signal needs the role %s", list(allow, "or"))
	}
	request := host.Request{Execution: in.ID, By: p.User, Node: b.NodeID, Activation: engine.ActivationID(b.ActivationID)}
	if err := r.signal(ctx, &request, given(b.InputData)); err != nil {
		return nil, err
	}
	status, err := s.o.Host.Act(ctx, p, request)
	if err != nil {
		return nil, err
	}
	return &actionOutput{api.ActionResponse{Success: true, Message: "the signal was taken", ExecutionStatus: string(status)}}, nil
}

// answer puts an answer to a question of the execution, or of one that it has started. It returns when the execution has
// heard of it.
func (s *Server) answer(ctx context.Context, p identity.Principal, execution, interaction string, data json.RawMessage) (*actionOutput, error) {
	i, err := s.o.Stores.Interactions.Get(ctx, p, interaction)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if may, _ := s.o.Desk.May(ctx, p, i); err == nil && may { // nobody else has files kept; the desk says why
		if data, err = s.keepFiles(ctx, p, i, data); err != nil {
			return nil, renamed(err, "response_data", "input_data")
		}
	}
	i, err = s.o.Desk.Respond(ctx, p, interaction, human.Submission{Data: data})
	if err != nil {
		return nil, renamed(err, "response_data", "input_data")
	}
	message := "the answer was taken"
	if i.Status == store.InteractionPending {
		message = "the answer was taken; more are needed"
	}
	status, err := s.o.Host.Act(ctx, p, host.Request{Execution: i.Execution, Action: host.ActionLook})
	if err == nil && i.Execution != execution {
		var e store.Execution
		e, err = s.o.Stores.Executions.Get(ctx, p, execution)
		status = e.Status
	}
	if err != nil {
		return nil, err
	}
	return &actionOutput{api.ActionResponse{Success: true, Message: message, ExecutionStatus: string(status)}}, nil
}

// renamed is an error about fields that go by another name here.
func renamed(err error, from, to string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	fields, ok := f.Details["fields"].([]api.FaultField)
	if !ok {
		return err
	}
	c, list := *f, slices.Clone(fields)
	texts := make([]string, len(list))
	for n := range list {
		if rest, found := strings.CutPrefix(list[n].Path, from); found {
			list[n].Path = to + rest
		}
		texts[n] = list[n].Path + ": " + list[n].Message
	}
	c.Message, c.Details = strings.Join(texts, "; "), maps.Clone(f.Details)
	c.Details["fields"] = list
	return &c
}

// below says that a question is of an execution that came of this one.
func (r *reading) below(ctx context.Context, interaction string) (bool, error) {
	i, err := r.s.o.Stores.Interactions.Get(ctx, r.p, interaction)
	for err == nil && i.Execution != r.summary.ID {
		var e store.Execution
		if e, err = r.s.o.Stores.Executions.Get(ctx, r.p, i.Execution); err == nil && e.Parent == "" {
			return false, nil
		}
		i.Execution = e.Parent
	}
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// interaction is the id by which people know a question of the execution; askOf the question that has it, if it is open.
func (r *reading) interaction(ask engine.AskID) string { return interactionOf(r.journal, ask) }

func (r *reading) askOf(interaction string) engine.AskID {
	for id := range r.view.Questions { // order does not matter: one has it at most
		if r.interaction(id) == interaction {
			return id
		}
	}
	return ""
}

// checkTarget refuses a node that the workflow does not have, and an activation that is of another node.
func (r *reading) checkTarget(b *api.InputRequest) error {
	if b.NodeID == "" {
		return wrongField("node_id", "it is empty; name the node that waits")
	}
	_, known := r.graph.Node(b.NodeID)
	if !known && r.view.Nodes[b.NodeID] == nil && !r.hasStep(b.NodeID) {
		return fault.Newf(fault.NotFound, "the workflow of execution %q has no node %q", r.summary.ID, b.NodeID)
	}
	if id := engine.ActivationID(b.ActivationID); id != "" && !r.isOf(id, b.NodeID) {
		return wrongField("activation_id", "%q is no activation of node %q", b.ActivationID, b.NodeID)
	}
	return nil
}

// isOf says that an activation is of a node, a step of its work, or about a step of a task.
func (r *reading) isOf(id engine.ActivationID, node string) bool {
	return host.NodeOf(r.graph, id) == node || worksFor(r.graph, id) == node || r.isAbout(id, node)
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
		case b.InteractionID != "" && r.interaction(q.id) != b.InteractionID:
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
			ids[i] = r.interaction(q.id)
		}
		return nil, severalAsked(b.NodeID, ids)
	case b.InteractionID != "":
		return nil, fault.Newf(fault.Conflict, "question %q of node %q is not open; it was answered or withdrawn, or was never asked", b.InteractionID, b.NodeID)
	}
	return nil, nil
}

func severalAsked(node string, ids []string) error {
	return fault.Newf(fault.Conflict, "node %q waits for %d answers; name one in interaction_id: %s", node, len(ids), strings.Join(ids, ", ")).With("interaction_ids", ids)
}

// askedBelow finds the question of an execution that a node has started and waits for; none when there is none.
func (r *reading) askedBelow(ctx context.Context, b *api.InputRequest) (string, error) {
	var ids []string
	for _, child := range slices.Sorted(maps.Keys(r.view.Below)) {
		if starter := r.view.Below[child].Activation; !r.isOf(starter, b.NodeID) || b.ActivationID != "" && string(starter) != b.ActivationID {
			continue
		}
		page, err := r.s.o.Stores.Interactions.List(ctx, r.p, store.InteractionQuery{
			Execution: child, Family: true, Statuses: []store.InteractionStatus{store.InteractionPending}, Page: store.Page{Size: store.MaxPageSize},
		})
		if err != nil {
			return "", err
		}
		for _, i := range page.Interactions {
			ids = append(ids, i.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "", nil
	case 1:
		return ids[0], nil
	}
	return "", severalAsked(b.NodeID, ids)
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
