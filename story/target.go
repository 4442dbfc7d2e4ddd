package story

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
	"tandem/store"
	"tandem/workflow"
)

// What somebody means who names a node, a step, an activation or a question of an execution.

// Aim finds the activation of a task that an action on a step of it is about, and refuses one that is not of the node.
func (r *Reading) Aim(ctx context.Context, b *api.ActionRequest) error {
	last, step, err := r.stepTarget(ctx, b.NodeID)
	if err != nil {
		return err
	}
	switch named := engine.ActivationID(b.ActivationID); {
	case named != "" && !r.isOf(named, b.NodeID):
		return api.WrongField("activation_id", "%q is not an activation of node %q", b.ActivationID, b.NodeID)
	case named != "" && step:
		b.NodeID = ""
	case named == "" && step && (b.Action != "fork" || r.View.Nodes[b.NodeID] == nil): // a fork begins with the call itself, if there was one
		b.NodeID, b.ActivationID = "", string(last)
	}
	return nil
}

// AskAnew lets a fork of a task at a call that somebody has confirmed begin with that question: the confirmation was for the call that was
// made, and not for others like it. A fork acts in the name of the task's user, with what that user allows, so nobody else may make one.
func (r *Reading) AskAnew(ctx context.Context, b *api.ActionRequest) error {
	if _, ok, err := r.readTrail(ctx); err != nil || !ok {
		return err
	}
	if r.Summary.User != r.p.User {
		return fault.Newf(fault.Forbidden, "the task acts for the user %q, who alone may fork it; give the agent a task of your own", r.Summary.User)
	}
	name := b.NodeID
	if b.ActivationID != "" {
		_, name = engine.ActivationID(b.ActivationID).Split()
	}
	if id, ok := r.confirmationOf(name); ok {
		b.NodeID, b.ActivationID = "", string(id)
	}
	return nil
}

// QuestionFor is the question that an input answers, of the execution or of one that it has started; empty: the input is a signal to a node
// that asks nothing. For a task that is not told which node is meant, the request is completed: it is whatever the task asks.
func (r *Reading) QuestionFor(ctx context.Context, b *api.InputRequest) (interaction string, err error) {
	if b.InteractionID != "" && r.View.Questions[r.askOf(b.InteractionID)].Activation == "" {
		below, err := r.below(ctx, b.InteractionID)
		if err != nil || below { // of an execution that this one waits for, or one that has ended: the desk knows how
			return b.InteractionID, err
		}
	}
	if _, task, err := r.readTrail(ctx); err != nil {
		return "", err
	} else if task && b.NodeID == "" {
		b.NodeID, _ = taskNode(r.Graph)
	}
	if err := r.checkTarget(b); err != nil {
		return "", err
	}
	question, err := r.asked(b)
	if err != nil {
		return "", err
	}
	if question != nil {
		return r.interaction(question.id), nil
	}
	return r.askedBelow(ctx, b)
}

// below says that a question is of an execution that came of this one.
func (r *Reading) below(ctx context.Context, interaction string) (bool, error) {
	i, err := r.lib.Interactions.Get(ctx, r.p, interaction)
	for err == nil && i.Execution != r.Summary.ID {
		var e store.Execution
		if e, err = r.lib.Executions.Get(ctx, r.p, i.Execution); err == nil && e.Parent == "" {
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
func (r *Reading) interaction(ask engine.AskID) string { return interactionOf(r.Journal, ask) }

func (r *Reading) askOf(interaction string) engine.AskID {
	for id := range r.View.Questions { // order does not matter: one has it at most
		if r.interaction(id) == interaction {
			return id
		}
	}
	return ""
}

// checkTarget refuses a node that the workflow does not have, and an activation that is of another node.
func (r *Reading) checkTarget(b *api.InputRequest) error {
	if b.NodeID == "" {
		return api.WrongField("node_id", "it is empty; name the node that waits")
	}
	_, known := r.Graph.Node(b.NodeID)
	if !known && r.View.Nodes[b.NodeID] == nil && !r.hasStep(b.NodeID) {
		return fault.Newf(fault.NotFound, "the workflow of execution %q has no node %q", r.Summary.ID, b.NodeID)
	}
	if id := engine.ActivationID(b.ActivationID); id != "" && !r.isOf(id, b.NodeID) {
		return api.WrongField("activation_id", "%q is not an activation of node %q", b.ActivationID, b.NodeID)
	}
	return nil
}

// isOf says that an activation is of a node, a step of its work, or about a step of a task.
func (r *Reading) isOf(id engine.ActivationID, node string) bool {
	return host.NodeOf(r.Graph, id) == node || worksFor(r.Graph, id) == node || r.isAbout(id, node)
}

// worksFor is the node that an activation works for: its own, or that of the program whose step it is.
func worksFor(graph *workflow.Graph, id engine.ActivationID) string {
	if i, _, ok := host.Owner(graph, id); ok {
		return graph.Nodes[i].ID
	}
	return host.NodeOf(graph, id)
}

// asked finds the question that the input answers; none when the node asks nothing.
func (r *Reading) asked(b *api.InputRequest) (*openQuestion, error) {
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
func (r *Reading) askedBelow(ctx context.Context, b *api.InputRequest) (string, error) {
	var ids []string
	for _, child := range slices.Sorted(maps.Keys(r.View.Below)) {
		if starter := r.View.Below[child].Activation; !r.isOf(starter, b.NodeID) || b.ActivationID != "" &&
			string(starter) != b.ActivationID {
			continue
		}
		page, err := r.lib.Interactions.List(ctx, r.p, store.InteractionQuery{
			Execution: child, Family: true, Statuses: []store.InteractionStatus{store.InteractionPending},
			Page: store.Page{Size: store.MaxPageSize},
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

// Signal makes the request of a signal to a node that waits for one, now or later: a signal that comes early is kept.
func (r *Reading) Signal(request *host.Request, data json.RawMessage) error {
	i, ok := r.Graph.Node(request.Node)
	if !ok || r.Graph.Nodes[i].Plan.Traits.Signals == "" {
		return fault.Newf(fault.Conflict, "node %q asks nothing and waits for no signal", request.Node)
	}
	if last := r.View.Nodes[request.Node]; last != nil && last.Ended != 0 && r.Graph.Nodes[i].Body == 0 {
		return fault.Newf(fault.Conflict, "node %q no longer waits; it is %s", request.Node, last.Status)
	}
	config, _ := r.Ready.NodeConfig(request.Node)
	request.Action = host.ActionSignal
	named := gjson.GetBytes(data, "signal")
	if len(data) > 0 && data[0] == '{' && named.Exists() {
		if named.Type != gjson.String || named.Str == "" {
			return api.WrongField("input_data.signal", "the name of a signal is a text")
		}
		request.Signal = named.Str
		if payload := gjson.GetBytes(data, "payload"); payload.Exists() {
			request.Value = json.RawMessage(payload.Raw)
		}
		return nil
	}
	request.Signal, request.Value = signalOf(r.Graph.Nodes[i].Plan.Traits.Signals, config), data
	switch {
	case request.Signal == "":
		return api.WrongField("input_data.signal", "the node's signal_name is only known when it runs; send {\"signal\", \"payload\"}")
	case request.Signal == cancelSignal && !gjson.GetBytes(data, "cancel").Bool():
		return api.WrongField("input_data", "node %q waits for no signal; to end its wait early, send {\"cancel\": true}", request.Node)
	}
	return nil
}

// signalOf is the name of the signal that a node waits for, as its configuration says; empty when that has placeholders.
func signalOf(signals workflow.Signals, config json.RawMessage) string {
	wait := gjson.GetBytes(config, "wait_type").Str
	if signals != workflow.SignalsNamed || wait != "signal" && wait != "event" {
		return cancelSignal
	}
	name := gjson.GetBytes(config, "signal_name").String()
	if strings.Contains(name, "{{") || strings.Contains(name, "${") {
		return ""
	}
	return name
}
