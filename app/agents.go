package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"tandem/agent"
	"tandem/builtin/task"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
	"tandem/workflow"
)

// defaultTasks is how many tasks of agents run at once when nobody says otherwise.
const defaultTasks = 30

// agents gives tasks access to an instance.
type agents struct{ *Instance }

var _ task.Agents = agents{}

// Workflow implements [task.Agents].
func (a agents) Workflow(ctx context.Context, workspace, id string) (string, error) {
	p := identity.System(workspace)
	_, err := a.stores.Workflows.Get(ctx, p, agent.WorkflowID(id))
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return agent.WorkflowID(id), err
	}
	names, err := a.names(ctx, p)
	if err != nil {
		return "", err
	}
	return "", fault.Newf(fault.NotFound, "there is no agent %q in this workspace%s", id, meant(id, names, text.Of(`; "tandem agent list" lists them`)))
}

// names are the ids of the agents of a workspace.
func (a agents) names(ctx context.Context, p identity.Principal) ([]string, error) {
	var names []string
	const size = 500
	for number := 1; ; number++ {
		page, err := a.stores.Workflows.List(ctx, p, store.WorkflowQuery{
			Prefix: agent.WorkflowID(""), NotPrefix: agent.UnnamedID(""), Page: store.Page{Number: number, Size: size},
		})
		if err != nil {
			return nil, err
		}
		for i := range page.Workflows {
			if id, ok := agent.IDOf(page.Workflows[i].ID); ok {
				names = append(names, id)
			}
		}
		if number*size >= page.Total {
			return names, nil
		}
	}
}

// Keep implements [task.Agents]. The id follows from the description, so that the same agent is kept once.
func (a agents) Keep(ctx context.Context, workspace string, s agent.Spec) (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	def, err := s.Workflow(agent.UnnamedID(""))
	if err != nil {
		return "", err
	}
	def.Metadata.ID = agent.UnnamedID(strings.ToLower(workflow.Hash(def)))
	_, err = a.Save(ctx, identity.System(workspace), def)
	return def.Metadata.ID, err
}

// Auto implements [task.Agents].
func (a agents) Auto(ctx context.Context, workspace, user string) (bool, error) {
	u, err := a.stores.Users.Get(ctx, identity.System(workspace), user)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil // it was never switched on
	}
	return u.AutoExecute && !u.Disabled, err
}

// maxRoundsSought is how many tasks of a conversation are looked at to find those that have an answer.
const maxRoundsSought = 100

// Rounds implements [task.Agents]. A round is a task that has succeeded: others have no answer.
func (a agents) Rounds(ctx context.Context, q task.RoundsQuery) ([]task.Round, error) {
	if q.Conversation == "" || q.Limit <= 0 {
		return nil, nil
	}
	p := identity.System(q.Workspace)
	page, err := a.stores.Executions.List(ctx, p, store.ExecutionQuery{
		WorkflowID: q.Workflow, User: q.User, Conversation: q.Conversation, Page: store.Page{Size: maxRoundsSought},
	})
	if err != nil {
		return nil, err
	}
	list := page.Executions // the newest first: those after the one that asks are not its past
	if at := slices.IndexFunc(list, func(e store.Execution) bool { return e.ID == q.Before }); at >= 0 {
		list = list[at+1:]
	}
	var rounds []task.Round
	for i := range list {
		if !list[i].Status.Final() || len(rounds) == q.Limit {
			continue
		}
		round, ok, err := a.round(ctx, p, &list[i])
		if err != nil {
			return nil, err
		}
		if ok {
			rounds = append(rounds, round)
		}
	}
	slices.Reverse(rounds)
	return rounds, nil
}

// round reads what was asked in a task and what came of it; not ok: it has no answer.
func (a agents) round(ctx context.Context, p identity.Principal, e *store.Execution) (round task.Round, ok bool, err error) {
	ready, err := a.revision(ctx, p, e.WorkflowID, e.RevisionHash)
	if err != nil {
		return round, false, err
	}
	journal := host.Journal{Source: a.source, Principal: p, Execution: e.ID, Graph: ready.Graph,
		Revision: local.Revision(ready), Programs: programs()}
	fold, err := journal.Fold(ctx)
	if err != nil {
		return round, false, err
	}
	_, start := fold.Execution()
	outputs, err := fold.Outputs()
	if err != nil {
		return round, false, err
	}
	var asked struct {
		Question string `json:"question"`
	}
	if err := json.Unmarshal(start.Trigger, &asked); err != nil {
		return round, false, fault.Newf(fault.Internal, "what task %q was asked cannot be read: %w", e.ID, err)
	}
	var done struct {
		Answer string   `json:"answer"`
		Facts  []string `json:"facts"`
	}
	if raw, has := outputs[agent.TaskNode]; has {
		if err := json.Unmarshal(raw, &done); err != nil {
			return round, false, fault.Newf(fault.Internal, "what task %q answered cannot be read: %w", e.ID, err)
		}
	}
	return task.Round{Question: asked.Question, Answer: done.Answer, Facts: done.Facts}, done.Answer != "", nil
}

// isTask says whether the executions of a workflow are tasks.
func isTask(workflowID string) bool {
	_, ok := agent.IDOf(workflowID)
	return ok
}

// initialOf is the initial layer of what a parent starts.
func initialOf(workflowID string, input json.RawMessage) (json.RawMessage, error) {
	if isTask(workflowID) {
		return agent.Initial(input)
	}
	return input, nil
}
