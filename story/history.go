package story

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/host/history"
	"tandem/human"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// How much is told of the executions below one.
const (
	maxHistoryDepth    = 4
	maxHistoryChildren = 20
)

// History tells a part of the history of an execution with those of the executions that it has started.
func (l *Library) History(ctx context.Context, p identity.Principal, id string, after, limit int) (*api.History, error) {
	children := maxHistoryChildren
	return l.history(ctx, p, id, after, limit, 1, &children)
}

// maxForks is how many forks of an execution are told.
const maxForks = 100

// forksOf are the executions that were forked from one.
func (l *Library) forksOf(ctx context.Context, p identity.Principal, e *store.Execution) ([]api.HistoryFork, error) {
	page, err := l.Executions.List(ctx, p, store.ExecutionQuery{WorkflowID: e.WorkflowID, ForkedFrom: e.ID,
		Page: store.Page{Size: maxForks}})
	if err != nil {
		return nil, err
	}
	var list []api.HistoryFork
	for i := range page.Executions {
		f := &page.Executions[i]
		list = append(list, api.HistoryFork{ExecutionID: f.ID, By: f.User, TokenMadeBy: f.TokenMadeBy, At: f.Created,
			Status: string(f.Status)})
	}
	return list, nil
}

// history tells a part of the history of an execution. Depth counts the executions above it, children how many may still be told.
func (l *Library) history(ctx context.Context, p identity.Principal, id string, after, limit, depth int,
	children *int) (*api.History, error) {
	r, err := l.ReadExecution(ctx, p, id)
	if err != nil {
		return nil, err
	}
	items, more, err := history.Read(ctx, r.Journal, after, limit)
	if err != nil {
		return nil, err
	}
	v := r.View
	h := &api.History{
		ExecutionID: r.Summary.ID, WorkflowID: r.Summary.WorkflowID, WorkflowName: r.Summary.WorkflowName, Status: string(v.Status),
		ExecutorStatus: executorStatus(v.Status),
		TriggerInfo:    r.trigger(), StartTime: v.Started, EndTime: v.Ended, DurationMS: v.DurationMS(l.now()), Error: r.Failure(),
		CreditsConsumed: v.Credits, TokensUsed: tokensOf(v.Used),
		Fork: human.ForkOf(r.Start.Told()), History: make([]api.HistoryRecord, len(items)),
	}
	if after == 0 {
		if h.Forks, err = l.forksOf(ctx, p, &r.Summary); err != nil {
			return nil, err
		}
	}
	if more {
		h.Next = strconv.Itoa(after + len(items))
	}
	var refs []engine.Ref
	for _, item := range items {
		refs = append(refs, outputRefs([]host.ActivationView{item.Activation})...)
		for _, ask := range item.Asks {
			if ask.Ref != "" && ask.Purpose != engine.PurposeOutcomeUnknown {
				refs = append(refs, ask.Ref)
			}
		}
	}
	values, err := r.values(ctx, refs)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		record := &h.History[i]
		if record.Time = item.Time; item.Execution != r.Summary.ID {
			record.InheritedFrom = item.Execution
		}
		if item.Act != nil {
			record.Type, record.Action = "action", r.historyAct(item)
			continue
		}
		record.Type = "step"
		if record.Step, err = r.historyStep(ctx, item, values); err != nil {
			return nil, err
		}
		for _, child := range record.Step.ChildIDs {
			if depth >= maxHistoryDepth || *children == 0 {
				break // by their ids they can be asked for
			}
			*children--
			below, err := l.history(ctx, p, child, 0, limit, depth+1, children)
			switch {
			case errors.Is(err, store.ErrNotFound): // it never began, or is no longer kept
			case err != nil:
				return nil, err
			default:
				record.Step.Children = append(record.Step.Children, *below)
			}
		}
	}
	return h, nil
}

func (r *Reading) historyAct(item *history.Item) *api.Act {
	a := item.Act
	act := &api.Act{Action: string(a.Action), By: a.By, TokenMadeBy: a.TokenMadeBy, Reason: a.Reason, NodeID: a.Node,
		ActivationID: string(a.Activation), Inherited: item.Execution != r.Summary.ID, At: a.Time}
	if act.NodeID == "" && a.Activation != "" {
		act.NodeID, _ = host.Shown(r.Graph, a.Activation)
	}
	return act
}

func (r *Reading) historyStep(ctx context.Context, item *history.Item, values map[engine.Ref]json.RawMessage) (*api.HistoryStep, error) {
	a := &item.Activation
	told, err := tellActivation(r.Graph, r.Start.Language, a, values)
	if err != nil {
		return nil, err
	}
	named := []api.NodeExecution{told}
	if err := r.nameCalls(ctx, named); err != nil {
		return nil, err
	}
	told = named[0]
	step := &api.HistoryStep{
		ID: told.ActivationID, TaskID: item.Execution, ExecutorID: item.Execution, ExecutorName: r.Summary.WorkflowName,
		ExecutorStatus: executorStatus(item.Status),
		StepID:         told.ActivationID, StepName: told.NodeName, StepType: told.NodeType + "." + told.NodeSubtype, NodeID: told.NodeID,
		InnerStep: told.InnerStep,
		Iteration: told.Iteration, Generation: told.Generation, InputData: host.ShownInput(a.ID, item.Input), Sent: item.Sent,
		OutputData: told.OutputData, Details: told.ExecutionDetails, Error: told.Error,
		Attempts: told.Attempt, ChildIDs: item.Children, StartTime: told.StartTime, EndTime: told.EndTime,
		DurationMS: told.DurationMS, UpdatedAt: max(told.EndTime, told.StartTime, item.Time),
		CreditsConsumed: told.CreditsConsumed, TokensUsed: told.TokensUsed,
	}
	if told.Generation > 0 {
		step.ID += "#" + strconv.Itoa(told.Generation)
	}
	if len(step.InputData) > host.MaxInline {
		step.InputData = host.Omitted(len(step.InputData))
	}
	for _, retry := range item.Retries {
		why, err := nodeErrorOf(retry.Error, retry.Time)
		if err != nil {
			return nil, err
		}
		step.Retries = append(step.Retries, api.HistoryRetry{Attempt: int(retry.Attempt), Error: why, At: retry.Time, NextAt: retry.NextAt})
	}
	purpose := ""
	for _, ask := range item.Asks {
		q, err := r.historyQuestion(ctx, item.Execution, ask)
		if err != nil {
			return nil, err
		}
		step.Questions, purpose = append(step.Questions, *q), ask.Purpose
		step.UpdatedAt = max(step.UpdatedAt, q.AskedAt)
	}
	if n := len(step.Questions); n > 0 {
		step.ExtraData = extraData(step.Questions[n-1].Shown, values[item.Asks[n-1].Ref])
	}
	step.StepStatus = stepStatus(a.Status, purpose)
	return step, nil
}

// historyQuestion tells a question with all that became of it.
func (r *Reading) historyQuestion(ctx context.Context, execution string, ask history.Asking) (*api.HistoryQuestion, error) {
	q := &api.HistoryQuestion{InteractionID: host.InteractionID(r.p.Workspace, execution, ask.Ask), Purpose: ask.Purpose, AskedAt: ask.Time}
	d, err := r.lib.InteractionDetail(ctx, r.p, q.InteractionID, text.English)
	if errors.Is(err, store.ErrNotFound) {
		return q, nil // it is no longer kept
	}
	if err != nil {
		return nil, err
	}
	q.InteractionType, q.Status, q.TimeoutAt = d.InteractionType, d.Status, d.TimeoutAt
	q.Asked, q.MinApprovals = d.Approvers, d.MinApprovals
	q.Shown, q.ArgumentsHash, q.Outcome, q.Answers = d.RequestData, d.ArgumentsHash, d.ResponseData, d.Responses
	q.Override, q.Delegations, q.Messages = d.Override, d.Delegations, d.Deliveries
	if d.Status != string(store.InteractionPending) {
		q.EndedAt = d.UpdatedAt
	}
	var request struct {
		Risk string `json:"risk"`
	}
	if len(q.Shown) > 0 && json.Unmarshal(q.Shown, &request) == nil { // anything else has no risk
		q.Risk = request.Risk
	}
	return q, nil
}

// extraData is what a record has of a question besides input and output: how dangerous it was found, or which parameters were wanted.
// Shown is what people saw, asked what the step wanted to know.
func extraData(shown, asked json.RawMessage) map[string]json.RawMessage {
	var extra map[string]json.RawMessage
	for _, text := range []json.RawMessage{asked, shown} {
		var request map[string]json.RawMessage
		if len(text) == 0 || json.Unmarshal(text, &request) != nil {
			continue // not in the form of a question
		}
		for _, name := range []string{"risk", "reason", "arguments", "message", "params", "schema", "input_fields"} {
			if value, ok := request[name]; ok && string(value) != "null" && string(value) != `""` {
				if extra == nil {
					extra = map[string]json.RawMessage{}
				}
				extra[name] = value
			}
		}
	}
	return extra
}
