package story

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/human"
	"tandem/store"
)

// openQuestion is a question that waits for an answer.
type openQuestion struct {
	id engine.AskID
	host.Asked
}

// open lists the questions of the execution, the oldest first.
func (r *Reading) open() []openQuestion {
	list := make([]openQuestion, 0, len(r.View.Questions))
	for id, q := range r.View.Questions { // order does not matter: sorted below
		list = append(list, openQuestion{id, q})
	}
	slices.SortFunc(list, func(a, b openQuestion) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.id, b.id)) })
	return list
}

// questions tells what is asked. What a question asks is in the value it refers to.
func (r *Reading) questions(ctx context.Context, values map[engine.Ref]json.RawMessage) ([]api.UserInputRequest, error) {
	list := []api.UserInputRequest{}
	for _, q := range r.open() {
		asked := values[q.Ref]
		if q.Purpose == engine.PurposeOutcomeUnknown {
			asked = nil // what was sent is shown below
		}
		node, _ := host.Shown(r.Graph, q.Activation)
		told := questionOf(r.Journal, &host.Told{Activation: q.Activation, Ask: q.id, Purpose: q.Purpose}, node, q.Since, asked)
		told.Fork = human.ForkOf(r.Start.Told())
		if q.Purpose == engine.PurposeOutcomeUnknown {
			record, found, err := r.Journal.Activation(ctx, q.Activation)
			if err != nil {
				return nil, err
			}
			if found {
				told.Arguments = record.Sent // the person sees what was being sent
			}
		}
		list = append(list, told)
	}
	if r.View.Status.Final() {
		return list, nil
	}
	r.beyond = true
	below, err := r.questionsBelow(ctx)
	return append(list, below...), err
}

// nameQuestions adds to the details of the nodes that wait for a person which question it is, and until when: a node does not know under
// which id its question is kept.
func nameQuestions(e *api.Execution) error {
	for _, q := range e.Questions {
		n, ok := e.NodeExecutions[q.NodeID]
		if !ok || q.ExecutionID != "" || q.Purpose != human.PurposeNode || n.ActivationID != q.ActivationID ||
			len(n.ExecutionDetails) == 0 {
			continue
		}
		var details map[string]json.RawMessage
		err := json.Unmarshal(n.ExecutionDetails, &details)
		if err == nil {
			details["interaction_id"], err = json.Marshal(q.InteractionID)
		}
		if err == nil && q.TimeoutAt > 0 {
			details["timeout_at"], err = json.Marshal(q.TimeoutAt)
		}
		if err == nil {
			n.ExecutionDetails, err = json.Marshal(details)
		}
		if err != nil {
			return fault.Newf(fault.Internal, "the details of node %q cannot be told: %w", q.NodeID, err)
		}
		e.NodeExecutions[q.NodeID] = n
	}
	return nil
}

// questionsBelow tells what the executions ask that this one has started.
func (r *Reading) questionsBelow(ctx context.Context) ([]api.UserInputRequest, error) {
	page, err := r.lib.Interactions.List(ctx, r.p, store.InteractionQuery{
		Execution: r.Summary.ID, Family: true, Statuses: []store.InteractionStatus{store.InteractionPending},
		Page: store.Page{Size: store.MaxPageSize},
	})
	if err != nil {
		return nil, err
	}
	var list []api.UserInputRequest
	for _, i := range page.Interactions {
		if i.Execution == r.Summary.ID {
			continue
		}
		journal := host.Journal{Principal: r.p, Execution: i.Execution}
		told := questionOf(journal, &host.Told{Activation: engine.ActivationID(i.Activation), Ask: engine.AskID(i.Ask), Purpose: i.Purpose},
			i.Node, i.Created, i.Request)
		told.ExecutionID = i.Execution
		list = append(list, told)
	}
	return list, nil
}

// askOutcome fills in what the engine asks when nobody knows how an attempt ended.
func askOutcome(q *api.UserInputRequest) {
	q.InteractionType, q.Title = "selection", "Was it done?"
	q.Description = "The node was at work when it was interrupted, and nobody knows whether what it does was done. Look where it would show, then answer: done (it was; give its result), not_done (do it now) or stop (let the node fail)."
	q.Options = json.RawMessage(`["done","not_done","stop"]`)
	q.Schema = json.RawMessage(`{"type":"object","required":["outcome"],"properties":{"outcome":{"enum":["done","not_done","stop"]},"result":{}}}`)
}

// checkpoint tells where the execution stands in the words of executors and steps.
func (r *Reading) checkpoint(e *api.Execution) (*api.Checkpoint, error) {
	c := &api.Checkpoint{
		ID: e.Seq, TaskID: e.ExecutionID, AppID: e.WorkflowID, ExecutorID: e.ExecutionID, ExecutorName: e.WorkflowName,
		ExecutorStatus: executorStatus(r.View.Status),
		Data:           map[string]json.RawMessage{},
	}
	step := r.step()
	if step != nil {
		told, err := tellActivation(r.Graph, r.Start.Language, step, nil)
		if err != nil {
			return nil, err
		}
		c.StepID, c.StepName, c.StepType = told.ActivationID, told.NodeName, told.NodeType+"."+told.NodeSubtype
		purpose := ""
		for _, q := range e.Questions {
			if q.ActivationID != told.ActivationID {
				continue
			}
			purpose = q.Purpose
			raw, err := json.Marshal(q)
			if err != nil {
				return nil, fault.Newf(fault.Internal, "question %q cannot be told: %w", q.InteractionID, err)
			}
			c.Data["question"] = raw
			if len(q.Arguments) > 0 {
				c.Data["input"] = q.Arguments
			}
		}
		c.StepStatus = stepStatus(step.Status, purpose)
	}
	failed := r.View.Error
	if failed == nil && step != nil {
		failed = step.Error
	}
	if failed != nil {
		c.ErrorMessage = checkpointError(failed)
	}
	if e.Task != nil {
		r.taskCheckpoint(c, e)
	}
	return c, nil
}

func checkpointError(e *fault.Error) *api.CheckpointError {
	return &api.CheckpointError{ErrMsg: messageOf(e), Data: map[string]any{"error_type": e.Code, "details": e.Details}}
}

// step is the activation that the execution stands at: one that waits for a person, else the open one that began last, else
// the last one.
func (r *Reading) step() *host.ActivationView {
	if list := r.open(); len(list) > 0 {
		if a := r.View.Open[list[0].Activation]; a != nil {
			return a
		}
	}
	var step *host.ActivationView
	for _, a := range r.View.Open { // order does not matter: the greatest is taken
		if step == nil || cmp.Or(cmp.Compare(a.Started, step.Started), cmp.Compare(a.Row, step.Row), cmp.Compare(a.ID, step.ID)) > 0 {
			step = a
		}
	}
	if last := r.View.Nodes[r.View.Last]; step == nil && last != nil {
		step = &last.ActivationView
	}
	return step
}

// executorStatus is an execution's status in the words of executors.
func executorStatus(s engine.Status) string {
	switch s {
	case engine.StatusNew, engine.StatusPending:
		return "INIT"
	case engine.StatusRunning, engine.StatusWaiting:
		return "RUNNING"
	case engine.StatusWaitingForHuman, engine.StatusPaused:
		return "WAITING"
	case engine.StatusSuccess:
		return "SUCCESS"
	case engine.StatusCanceled:
		return "CANCELLED"
	}
	return "ERROR"
}

// stepStatus is an activation's status in the words of steps. Purpose is that of the question it waits for.
func stepStatus(s engine.NodeStatus, purpose string) string {
	switch s {
	case engine.NodePending:
		return "INIT"
	case engine.NodeRunning, engine.NodeRetrying:
		return "RUNNING"
	case engine.NodeWaitingInput:
		if purpose == "param" || purpose == "input" {
			return "PARAM"
		}
		return "WAITING"
	case engine.NodeDone:
		return "SUCCESS"
	case engine.NodeCanceled:
		return "CANCELLED"
	case engine.NodeSkip:
		return "SKIPPED"
	}
	return "ERROR"
}
