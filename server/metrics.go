package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"tandem/identity"
	"tandem/metrics"
	"tandem/route"
)

// metrics registers /metrics. It needs a token like everything else: scrapers send one.
func (s *Server) metrics() {
	s.o.Metrics.Register(metrics.Storage(s.o.Stores.Upkeep), metrics.Backlog(s.o.Stores, ""))
	all := s.o.Metrics.Handler()
	op := huma.Operation{
		OperationID: "metrics", Method: http.MethodGet, Path: "/metrics", Tags: []string{"operations"},
		Summary: "Numbers for Prometheus", Description: "The text format of Prometheus. A scraper sends a token like everybody else; that of a viewer is enough. With a token of the first workspace the numbers are those of the installation, with any other those of its own workspace: tandem_executions.",
		Responses: map[string]*huma.Response{"200": {Description: "The numbers",
			Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}},
	}
	s.Plain(op, route.Readers(), func(w http.ResponseWriter, r *http.Request, p identity.Principal) error {
		if s.o.Workspace == "" || p.Workspace == s.o.Workspace {
			all.ServeHTTP(w, r)
			return nil
		}
		// A tenant sees only the numbers of its own workspace.
		metrics.HandlerOf(metrics.Backlog(s.o.Stores, p.Workspace)).ServeHTTP(w, r)
		return nil
	})
}
