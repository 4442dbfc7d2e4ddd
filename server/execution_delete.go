package server

import (
	"context"
	"fmt"

	"tandem/api"
	"tandem/host"
	"tandem/identity"
	"tandem/route"
)

type deleteExecutionInput struct {
	ExecutionPath
	Reason string `query:"reason" maxLength:"500" doc:"why, for the audit log"`
}

type deletedOutput struct{ Body api.ExecutionDeleted }

// deleteExecution removes an execution with everything that is kept of it.
func (s *Server) deleteExecution(ctx context.Context, p identity.Principal, in *deleteExecutionInput) (*deletedOutput, error) {
	// What is kept of it in memory is dropped before and after, so that it is not shown any more.
	done := s.o.Hub.Changing(host.Ref{Workspace: p.Workspace, Execution: in.ID})
	defer done()
	detail := map[string]any{}
	if in.Reason != "" {
		detail["reason"] = in.Reason
	}
	removed, err := s.o.Limits.Delete(route.Audited(ctx, "execution.delete", in.ID, nil, detail), p, in.ID, fmt.Sprintf("execution_removed: the execution was deleted by %s", p.User))
	if err != nil {
		return nil, err
	}
	return &deletedOutput{api.ExecutionDeleted{ExecutionID: in.ID, Executions: removed.Executions, JournalRows: removed.Rows}}, nil
}
