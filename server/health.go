package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// readyTimeout is how long the store may take to answer before the instance counts as not ready.
const readyTimeout = 5 * time.Second

// health registers the routes for supervisors and load balancers. They need no token. The answer says whether the instance works
// and, if not, why in words that hold nothing secret; the details are in the log.
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
		s.state(w, r, "ready", s.lacking(r.Context())...)
	})
}

// lackTimeout is how long it may take to find out what the instance cannot reach.
const lackTimeout = 2 * time.Second

// lacking says what the instance cannot reach for now. It can still take requests.
func (s *Server) lacking(ctx context.Context) (said []string) {
	if s.o.Lacking == nil {
		return nil
	}
	asking, stop := context.WithTimeout(ctx, lackTimeout)
	defer stop()
	err := s.o.Lacking(asking)
	if err == nil {
		return nil
	}
	s.Log.WarnContext(ctx, "ready, but something is away", "error", err)
	if message, open := forAll(err); open {
		return []string{message}
	}
	return []string{"the operator's log says what"}
}

// forAll returns the part of an error that everybody may see.
func forAll(err error) (message string, ok bool) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !errors.Is(err, store.ErrBroken) && !errors.Is(err, store.ErrUnavailable) {
		return "", false
	}
	return f.Message, true
}

// notReady says why in words that hold nothing secret.
func notReady(err error) string {
	if errors.Is(err, store.ErrFull) { // its message names a directory
		return "the instance cannot begin anything now: the disk of the database is full; make room"
	}
	if message, ok := forAll(err); ok {
		return "the instance cannot work now: " + message
	}
	return "the instance cannot work now; the operator's log has the reason"
}

// ready asks the instance, and also reads from the store, which may fail without having reported it.
func (s *Server) ready(ctx context.Context) error {
	if err := s.o.Ready(); err != nil {
		return err
	}
	asking, stop := context.WithTimeout(ctx, readyTimeout)
	defer stop()
	_, err := s.o.Stores.Workspaces.List(asking, identity.System(""))
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		return fault.New(fault.NotReady, "the database does not answer").WithCause(fmt.Errorf("%w: %w", store.ErrUnavailable, err))
	}
	return err
}

func (s *Server) state(w http.ResponseWriter, r *http.Request, status string, lacks ...string) {
	body, err := json.Marshal(struct {
		Lacks   []string `json:"lacks,omitempty"`
		Status  string   `json:"status"`
		Version string   `json:"version"`
	}{lacks, status, s.o.Version})
	if err != nil {
		s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, err))
		return
	}
	s.Send(w, r, "application/json", append(body, '\n'))
}
