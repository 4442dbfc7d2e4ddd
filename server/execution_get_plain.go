package server

import (
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// getPlainly answers who reads an execution and asks for nothing special. What has ended changes only with another row, so the answer
// is kept with it, ready to be sent, for readers who may see the same: it is found out for each request who asks, which workspace is
// theirs and what they may see. All other requests are the framework's. The answers are the same.
func (s *Server) getPlainly(c huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(c)
	id, plain := plainGet(r)
	if !plain {
		next(c)
		return
	}
	ctx := c.Context()
	p := principalOf(ctx)
	body, err := s.encodedExecution(ctx, p, id)
	if err != nil {
		s.refusePlainly(ctx, w, r, p, err)
		return
	}
	s.sendPlainly(w, r, http.StatusOK, "application/json", body)
}

// plainGet returns the id of the execution that a request is about, if it is a plain one.
func plainGet(r *http.Request) (id string, plain bool) {
	id = r.PathValue("id")
	return id, r.URL.RawQuery == "" && takesJSON(r) && utf8.RuneCountInString(id) <= maxExecutionID
}

// maxExecutionID is how long the id of an execution may be; [ExecutionPath] says so too.
const maxExecutionID = 200

// encodedExecution is an execution as it is sent to a reader.
func (s *Server) encodedExecution(ctx context.Context, p identity.Principal, id string) ([]byte, error) {
	ref := host.Ref{Workspace: p.Workspace, Execution: id}
	if known := s.o.Hub.Known(ref); known != nil {
		if summary, kept := known.Summary.(store.Execution); kept {
			reader, err := s.readerOf(ctx, p, summary.WorkflowID)
			if err != nil {
				return nil, err
			}
			if answer, kept := known.Answer(reader); kept {
				return answer, nil
			}
		}
	}
	r, err := s.readExecution(ctx, p, id)
	if err != nil {
		return nil, err
	}
	reader, err := s.readerOf(ctx, p, r.summary.WorkflowID)
	if err != nil {
		return nil, err
	}
	told, err := r.tellWhole(ctx, reader.About)
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
func (s *Server) readerOf(ctx context.Context, p identity.Principal, workflow string) (host.Reader, error) {
	about, err := s.aboutWorkflow(ctx, p, workflow)
	return host.Reader{Detail: seesDetail(p), About: about}, err
}
