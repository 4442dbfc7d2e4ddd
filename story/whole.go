package story

import (
	"context"
	"errors"

	"tandem/api"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// AboutWorkflow is the description of a workflow as it is today; nothing when the workflow has been deleted.
func (l *Library) AboutWorkflow(ctx context.Context, p identity.Principal, id string) (string, error) {
	w, err := l.Workflows.Heading(ctx, p, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	return w.Description, nil
}

// TellWhole tells the execution with where it stands. About is the description of its workflow.
func (r *Reading) TellWhole(ctx context.Context, about string) (api.GetExecution, error) {
	told, err := r.tellExecution(ctx)
	if err != nil {
		return api.GetExecution{}, err
	}
	checkpoint, err := r.checkpoint(told)
	if err != nil {
		return api.GetExecution{}, err
	}
	checkpoint.ExecutorDescription = about
	return api.GetExecution{Execution: *told, Checkpoint: checkpoint}, nil
}

// EncodedExecution is an execution as it is sent to a reader.
func (l *Library) EncodedExecution(ctx context.Context, p identity.Principal, id string) ([]byte, error) {
	ref := host.Ref{Workspace: p.Workspace, Execution: id}
	if known := l.Hub.Known(ref); known != nil {
		if summary, kept := known.Summary.(store.Execution); kept {
			reader, err := l.readerOf(ctx, p, summary.WorkflowID)
			if err != nil {
				return nil, err
			}
			if answer, kept := known.Answer(reader); kept {
				return answer, nil
			}
		}
	}
	r, err := l.ReadExecution(ctx, p, id)
	if err != nil {
		return nil, err
	}
	reader, err := l.readerOf(ctx, p, r.Summary.WorkflowID)
	if err != nil {
		return nil, err
	}
	told, err := r.TellWhole(ctx, reader.About)
	if err != nil {
		return nil, err
	}
	answer := encodeExecution(&told)
	if finished, ok := r.known.(*host.Finished); ok && !r.beyond {
		finished.KeepAnswer(reader, answer)
	}
	return answer, nil
}

// readerOf finds out what an answer about an execution of a workflow depends on besides the execution.
func (l *Library) readerOf(ctx context.Context, p identity.Principal, workflow string) (host.Reader, error) {
	about, err := l.AboutWorkflow(ctx, p, workflow)
	return host.Reader{Detail: seesDetail(p), About: about}, err
}
