package settings

import (
	"context"
	"net/http"

	"tandem/api"
	"tandem/identity"
	"tandem/text"
)

func (s *settings) authorizeTools(ctx context.Context, p identity.Principal, in *toolServerInput) (*authorizeOutput, error) {
	if _, err := s.toolServer(ctx, p, in.ID); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, toolPatience)
	defer stop()
	address, err := s.o.Tools.Authorize(ctx, p, in.ID)
	if err != nil {
		return nil, toolProblem(err)
	}
	return &authorizeOutput{api.MCPAuthorization{URL: address}}, nil
}

// authorizedTools is the page that people come back to. It relies only on the state in the address, which is valid once.
func (s *settings) authorizedTools(w http.ResponseWriter, r *http.Request) {
	back := r.URL.Query()
	if back.Get("state") == "" {
		s.nothingHere(w, r)
		return
	}
	ctx, stop := context.WithTimeout(s.WithOrigin(r.Context()), toolPatience)
	defer stop()
	server, err := s.o.Tools.Authorized(ctx, back)
	if err != nil {
		told := s.Problem(r.Context(), identity.Principal{}, toolProblem(err))
		s.o.Notice(w, r, told.Status, text.Of("Not authorized"), text.As(told.Detail))
		return
	}
	s.o.Notice(w, r, http.StatusOK, text.Of("Authorized"), text.Of("The tool server %q can be used now. You can close this page.", server))
}
