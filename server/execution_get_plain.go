package server

import (
	"net/http"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"tandem/route"
)

// getPlainly answers requests for an execution without special parameters. An execution that has ended changes only with another row,
// so its answer is kept, ready to be sent, for readers who may see the same. Each request is still checked: who asks, in which
// workspace, and what they may see. All other requests go to the framework, with the same answers.
func (s *Server) getPlainly(c huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(c)
	id, plain := plainGet(r)
	if !plain {
		next(c)
		return
	}
	ctx := c.Context()
	p := route.PrincipalOf(ctx)
	body, err := s.stories.EncodedExecution(ctx, p, id)
	if err != nil {
		s.RefusePlainly(ctx, w, r, p, err)
		return
	}
	s.SendPlainly(w, r, http.StatusOK, "application/json", body)
}

// plainGet returns the id of the execution that a request is about, if it is a plain one.
func plainGet(r *http.Request) (id string, plain bool) {
	id = r.PathValue("id")
	return id, r.URL.RawQuery == "" && route.TakesJSON(r) && utf8.RuneCountInString(id) <= maxExecutionID
}

// maxExecutionID is how long the id of an execution may be; [ExecutionPath] says so too.
const maxExecutionID = 200
