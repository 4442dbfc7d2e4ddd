package server

import (
	"context"

	"tandem/api"
	"tandem/identity"
	"tandem/importer/intake"
	"tandem/settings"
	"tandem/store"
	"tandem/workflow"
)

// intake registers the route that imports files of other systems.
func (s *Server) intake(keepCredential settings.KeepCredential) {
	intake.Register(intake.Options{
		Router: s.Router, Import: s.o.Import, KeepCredential: keepCredential,
		Keep: func(ctx context.Context, p identity.Principal, def *workflow.Definition) (api.Saved, error) {
			out, err := s.saveNew(ctx, p, def, nil, store.Source{})
			if err != nil {
				return api.Saved{}, err
			}
			return out.Body, nil
		},
		Credentials: func(ctx context.Context, p identity.Principal) ([]string, error) {
			list, err := s.o.Stores.Credentials.List(ctx, p)
			names := make([]string, len(list))
			for i, c := range list {
				names[i] = c.Name
			}
			return names, err
		},
	})
}
