package settings

import (
	"context"
	"net/http"
	"time"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/limits"
	"tandem/route"
	"tandem/store"
)

type (
	limitsInput  struct{}
	limitsOutput struct{ Body api.Limits }
	limitsPut    struct{ Body api.LimitSettings }
	tidyInput    struct{}
	tidyOutput   struct{ Body api.TidyReport }
)

// limits registers what the workspace may use, and how long it keeps things.
func (s *settings) limits() {
	op := route.Tagged("limits")
	get := op(http.MethodGet, "/limits", "get-limits", "Read the limits of the workspace, and what is used of them")
	get.Description = "What is 0 or left out is not limited, and kept for ever. Admins of the first workspace also see what the installation takes up on its disk."
	put := op(http.MethodPut, "/limits", "put-limits", "Replace the limits of the workspace")
	put.Description = "All of them are replaced: what is left out is not limited any more. They hold from then on; what runs already goes on."
	tidy := op(http.MethodPost, "/limits/tidy", "tidy-limits", "Remove now what has been kept long enough, and free its space")
	tidy.Description = "A server does this every hour by itself. It also overwrites what removed records have left in the files, and makes the database file as small as it can be."
	route.Handle(s.Router, get, route.Readers(), s.getLimits)
	route.Handle(s.Router, put, route.Admins(), s.putLimits)
	route.Handle(s.Router, tidy, route.Admins(), s.tidy)
}

func (s *settings) getLimits(ctx context.Context, p identity.Principal, _ *limitsInput) (*limitsOutput, error) {
	usage, err := s.o.Limits.Usage(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &limitsOutput{api.Limits{Settings: s.o.Limits.Settings(p.Workspace), Usage: usage}}
	if p.Has(identity.Admin) && p.Workspace == s.o.Workspace {
		space, err := s.o.Stores.Upkeep.Space(ctx, identity.System(""))
		if err != nil {
			return nil, err
		}
		told := limits.TellSpace(space)
		out.Body.Space = &told
	}
	return out, nil
}

func (s *settings) putLimits(ctx context.Context, p identity.Principal, in *limitsPut) (*limitsOutput, error) {
	if err := limits.Check(&in.Body); err != nil {
		return nil, err
	}
	if err := s.o.Limits.Set(route.Audited(ctx, "limits.update", p.Workspace, s.o.Limits.Settings(p.Workspace), in.Body), p,
		in.Body); err != nil {
		return nil, err
	}
	return s.getLimits(ctx, p, nil)
}

func (s *settings) tidy(ctx context.Context, p identity.Principal, _ *tidyInput) (*tidyOutput, error) {
	if s.o.Workspace != "" && p.Workspace != s.o.Workspace {
		return nil, fault.Newf(fault.Forbidden, "the whole installation is tidied by the admins of workspace %q; in others it happens every hour by itself", s.o.Workspace)
	}
	if err := s.Enter(ctx, s.EntryOf(ctx, p, "limits.tidy", p.Workspace)); err != nil {
		return nil, err
	}
	store.NothingToAudit(ctx) // besides that
	out, err := s.o.Limits.Tidy(ctx, time.UnixMilli(s.NowMS()), route.SessionIdle, 0)
	return &tidyOutput{out}, err
}
