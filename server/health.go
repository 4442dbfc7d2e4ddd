package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// readyTimeout is how long the store may take to answer before the instance counts as not ready.
const readyTimeout = 5 * time.Second

// health registers what supervisors and load balancers ask. They have no token, and are told yes, or no and what has stopped the
// instance in the words that are for everybody; the detail is in the log.
func (s *Server) health() {
	s.Public("GET /healthz", func(w http.ResponseWriter, r *http.Request) { s.state(w, r, "alive") })
	s.Public("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if s.o.Draining != nil && s.o.Draining() {
			s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, fault.New(fault.NotReady, "draining: the instance was told to stop; what it is asked for is kept, and goes on with the next start")))
			return
		}
		if err := s.ready(r.Context()); err != nil {
			s.Log.WarnContext(r.Context(), "not ready", "error", err)
			s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, fault.New(fault.NotReady, notReady(err))))
			return
		}
		s.state(w, r, "ready")
	})
}

// notReady says why in words that hold nothing secret.
func notReady(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok && (errors.Is(err, store.ErrBroken) || errors.Is(err, store.ErrUnavailable)) {
		return "the instance cannot work now: " + f.Message
	}
	return "the instance cannot work now; the operator's log has the reason"
}

// ready asks the instance, and reads from the store: that it has not reported a failure is not enough.
func (s *Server) ready(ctx context.Context) error {
	if err := s.o.Ready(); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, readyTimeout)
	defer stop()
	_, err := s.o.Stores.Workspaces.List(ctx, identity.System(""))
	return err
}

func (s *Server) state(w http.ResponseWriter, r *http.Request, status string) {
	body, err := json.Marshal(map[string]string{"status": status, "version": s.o.Version})
	if err != nil {
		s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, err))
		return
	}
	s.Send(w, r, "application/json", append(body, '\n'))
}
