package trigger

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
)

// Options are what a [Service] works with.
type Options struct {
	Triggers   store.Triggers
	Blobs      store.Blobs
	Executions store.Executions
	Sources    []Source
	// Credentials is what opens the credentials of a workspace.
	Credentials func(workspace string) credential.Opener
	// Revision reads the enabled triggers of a revision of a workflow.
	Revision func(ctx context.Context, p identity.Principal, workflow string, revision int64) (Revision, error)
	// Start starts an execution and records the delivery together with it.
	Start func(ctx context.Context, p identity.Principal, s Start) (host.Started, error)
	// CredentialID is the id of the credential that a name or an id stands for; [store.ErrNotFound] if there is none. Nil: no trigger
	// shares an account.
	CredentialID func(ctx context.Context, workspace, name string) (string, error)
	// Callback is the address of an account; empty: it has none. May be nil.
	Callback func(a store.Account) string
	// Changed is called when the triggers in force have changed. May be nil.
	Changed func()
	// PublicURL is where requests reach this instance; empty: nowhere.
	PublicURL string
	// LongestNap is how long the time is not looked at, 10 s when zero: the clock may be set, and the machine may sleep, which waiting does
	// not see.
	LongestNap time.Duration
	Log        *slog.Logger
}

// Revision is what a deployment has to know of a revision.
type Revision struct {
	Number int64
	Hash   string
	// Language is that of the workflow's settings; empty: they say none.
	Language string
	Nodes    []Node
}

// Node is an enabled trigger node of a revision.
type Node struct {
	ID   string
	Kind string
	// Config is its configuration, with what templates add.
	Config json.RawMessage
}

// Start asks for the execution of a delivery.
type Start struct {
	Execution  string
	WorkflowID string
	Revision   int64
	Node       string
	Kind       string
	Payload    json.RawMessage
	Arrival    *store.Arrival
	// Follow is that of [host.StartRequest]. May be nil.
	Follow func()
}

// Service deploys workflows and starts what their triggers bring. It keeps no state that is not in the store, except for what spares
// reading it.
type Service struct {
	o       Options
	sources map[string]Source
	routes  routes
	waiters waiters
	refused refusals

	clock *clock
	sweep *sweep
	ears  *listeners

	start sync.Once
	ctx   context.Context
	stop  context.CancelFunc
	// working ends when nothing new is begun.
	working context.Context
	rest    context.CancelFunc
	loops   sync.WaitGroup
	// locks keep deployments of one workflow apart.
	locks sync.Map // of workflowKey to *sync.Mutex
}

// workflowKey names a workflow.
type workflowKey struct{ workspace, workflow string }

// New makes a service. It takes requests and deploys; the clock and the listeners begin with [Service.Start].
func New(o Options) *Service {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.LongestNap == 0 {
		o.LongestNap = longestNap
	}
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	s := &Service{o: o, sources: map[string]Source{}}
	for _, source := range o.Sources {
		if _, twice := s.sources[source.Kind()]; twice {
			panic("trigger: two sources of " + source.Kind())
		}
		s.sources[source.Kind()] = source
	}
	s.routes.known, s.waiters.of, s.refused.of = map[workflowKey]doors{}, map[store.Ref][]chan struct{}{}, map[workflowKey][]int64{}
	s.clock, s.sweep, s.ears = newClock(s), newSweep(s), newListeners(s)
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.working, s.rest = context.WithCancel(s.ctx)
	s.join()
	return s
}

// Start begins what goes on by itself: deployments that a process before has left, the clock, deliveries that are yet to be started,
// listeners.
func (s *Service) Start() {
	s.start.Do(func() {
		s.loops.Go(func() { s.resume(s.working) })
		s.loops.Go(func() { s.clock.run(s.working) })
		s.loops.Go(func() { s.sweep.run(s.working) })
		s.loops.Go(func() { s.ears.run(s.working) })
	})
}

// Drain begins nothing new by itself, and returns when what has begun is on disk or the context ends. Requests are still taken.
func (s *Service) Drain(ctx context.Context) {
	s.rest()
	done := make(chan struct{})
	go func() { // it ends with the loops, which were asked to
		s.loops.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Close ends everything and waits for it.
func (s *Service) Close() {
	s.stop()
	s.loops.Wait()
}

// trigger is a stored trigger as its source sees it.
func (s *Service) trigger(t store.Trigger) Trigger {
	return Trigger{
		Trigger: t, Open: s.o.Credentials(t.Workspace), Address: s.Address(t.Workspace, t.WorkflowID),
		KeepFile: func(ctx context.Context, content io.Reader) (store.Blob, error) {
			return s.o.Blobs.Put(ctx, identity.System(t.Workspace), content)
		},
	}
}

// DefaultWorkspace is the one that the addresses of triggers need not name.
const DefaultWorkspace = "default"

// HooksPath is where the addresses of all triggers begin.
const HooksPath = "/hooks/"

// Address is where the requests of a workflow come to; empty: this instance has no address. The id of a workflow is unique in its
// workspace, so the address names every workspace but the default one.
func (s *Service) Address(workspace, workflow string) string {
	if s.o.PublicURL == "" {
		return ""
	}
	return s.o.PublicURL + HooksPath + Slug(workspace, workflow)
}

// Slug is how an address names a workflow.
func Slug(workspace, workflow string) string {
	if workspace == DefaultWorkspace {
		return workflow
	}
	return workspace + ":" + workflow
}

// ParseSlug reads it; no id has a colon in it.
func ParseSlug(slug string) (workspace, workflow string, ok bool) {
	workspace, workflow, named := strings.Cut(slug, ":")
	if !named {
		workspace, workflow = DefaultWorkspace, slug
	}
	return workspace, workflow, workflow != "" && identity.CheckWorkspace(workspace) == nil && !(named && workspace == DefaultWorkspace)
}

// source is the one of a kind.
func (s *Service) source(kind string) (Source, error) {
	source, ok := s.sources[kind]
	if !ok {
		return nil, fault.Newf(fault.Unsupported, "this installation cannot register %s; disable the trigger or use another kind", kind)
	}
	return source, nil
}

// Registers says whether triggers of a kind can be registered.
func (s *Service) Registers(kind string) bool { return s.sources[kind] != nil }

// StartsByItself says whether triggers of a kind start executions without a user who wants them: a request, a time, a message or a visitor
// does.
func (s *Service) StartsByItself(kind string) bool {
	switch s.sources[kind].(type) {
	case Receiver, Scheduler, Listener, Presenter, Shared:
		return true
	}
	return false
}

func (s *Service) lock(k workflowKey) *sync.Mutex {
	mu, _ := s.locks.LoadOrStore(k, &sync.Mutex{})
	return mu.(*sync.Mutex)
}
