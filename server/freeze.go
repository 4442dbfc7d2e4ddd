package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"tandem/agent"
	"tandem/api"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/validation"
	"tandem/workflow"
)

// freezes registers the operation that makes a workflow of a task.
func (s *Server) freezes() {
	op := huma.Operation{
		Method: http.MethodPost, Path: "/executions/{id}/freeze", OperationID: "freeze-task", Summary: "Make a workflow of a finished task", Tags: []string{"executions"},
		DefaultStatus: http.StatusCreated,
		Description: "The calls that led to the task's answer become nodes, in order; what they read of the inputs and of each other becomes placeholders, so that the workflow " +
			"runs on other inputs and without a model. Values of which it is not known where they came from stay as they were and are listed. With dry_run nothing is kept and the answer is 200.",
	}
	route.Handle(s.Router, op, route.Editors(), s.freezeTask)
}

type freezeInput struct {
	ExecutionPath
	Body *api.FreezeRequest
}

type frozenOutput struct {
	Status int
	Body   api.Frozen
}

func (s *Server) freezeTask(ctx context.Context, p identity.Principal, in *freezeInput) (*frozenOutput, error) {
	want := api.FreezeRequest{}
	if in.Body != nil {
		want = *in.Body
	}
	if want.ID != "" {
		if err := checkWorkflowID(want.ID); err != nil {
			return nil, err
		}
	}
	r, err := s.stories.OpenExecution(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	past, err := r.PastTask(ctx)
	if err != nil {
		return nil, err
	}
	frozen, err := agent.Freeze(past)
	if err != nil {
		return nil, err
	}
	m := &frozen.Definition.Metadata
	m.ID = want.ID
	if want.Name != "" {
		m.Name = want.Name
	}
	def, problems := s.o.Check(workflow.Encode(frozen.Definition))
	if def == nil || workflow.HasErrors(problems) {
		return nil, validation.Refusal(problems)
	}
	out := &frozenOutput{Status: http.StatusOK, Body: api.Frozen{Untraced: make([]api.Untraced, len(frozen.Untraced))}}
	for i, u := range frozen.Untraced {
		out.Body.Untraced[i] = api.Untraced{StepID: u.Step, Path: u.Path, Value: u.Value, Reason: u.Reason}
	}
	if want.DryRun {
		store.NothingToAudit(ctx)
	} else {
		if _, err := s.saveNew(ctx, p, def, problems, store.Source{}); err != nil {
			return nil, err
		}
		out.Status = http.StatusCreated
	}
	out.Body.WorkflowID, out.Body.Definition = def.Metadata.ID, workflow.Encode(def)
	return out, nil
}
