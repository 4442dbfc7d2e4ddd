package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/identity"
	"tandem/route"
)

type pausesOutput struct{ Body api.Pauses }

// pauses registers the list of times in which an execution waited for people or was stopped.
func (s *Server) pauses() {
	route.Handle(s.Router, huma.Operation{
		Method: http.MethodGet, Path: "/executions/{id}/pauses", OperationID: "list-pauses", Summary: "List the times in which it waited for people or was stopped, in the order they began", Tags: []string{"executions"},
	}, route.Readers(), s.listPauses)
}

func (s *Server) listPauses(ctx context.Context, p identity.Principal, in *ExecutionPath) (*pausesOutput, error) {
	if _, err := s.o.Stores.Executions.Get(ctx, p, in.ID); err != nil {
		return nil, err
	}
	found, err := s.o.Stores.Interactions.Pauses(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	out := &pausesOutput{api.Pauses{Pauses: make([]api.Pause, len(found))}}
	for i, f := range found {
		out.Body.Pauses[i] = api.Pause{
			ID: f.ID, ExecutionID: f.Execution, NodeID: f.Node, PauseReason: f.Reason, ResumeConditions: f.Conditions,
			PauseContext: f.Context, Status: string(f.Status),
			PausedAt: f.Paused, ResumedAt: f.Resumed, ResumeReason: f.ResumeReason, ResumeData: f.ResumeData,
		}
	}
	return out, nil
}
