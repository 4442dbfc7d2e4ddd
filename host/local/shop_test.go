package local_test

import (
	"context"
	"encoding/json"
	"testing"

	"tandem/engine"
	"tandem/host/hosttest"
	"tandem/host/local"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/text"
	"tandem/workflow"
)

// stillCarrier is a carrier that does nothing: the test does what is to be done.
type stillCarrier struct{}

// Wake implements local.Carrier.
func (stillCarrier) Wake(store.Ref) {}

// Begin implements local.Carrier.
func (stillCarrier) Begin(store.Ref, local.Next) {}

// shopKinds has a kind that may be repeated and one that may not. They have ten seconds.
type shopKinds struct{}

// Kind implements workflow.Kinds.
func (shopKinds) Kind(name string) (workflow.Kind, bool) {
	return workflow.Kind{Name: name, Plan: func(*workflow.Node) (workflow.Plan, []workflow.Problem) {
		effect := workflow.Idempotent
		if name == "TEST.ONCE" {
			effect = workflow.Once
		}
		return workflow.Plan{Effect: effect, MaxRetries: 3, TimeoutMS: 10_000}, nil
	}}, true
}

// Names implements workflow.Kinds.
func (shopKinds) Names() []string { return []string{"TEST.WORK", "TEST.ONCE"} }

// Alias implements workflow.Kinds.
func (shopKinds) Alias(string, string) (string, bool) { return "", false }

// shop is an execution of one node, in processes that share a disk. The test is its carrier.
type shop struct {
	t        *testing.T
	stores   store.Stores
	revision *node.Revision
	ref      store.Ref
	first    *local.Host
	at       engine.Attempt // which runs first
}

// newShop starts the execution. The node does what the test says.
func newShop(t *testing.T, journal func(store.Journal) store.Journal, run func(context.Context) (node.Outcome, error)) *shop {
	t.Helper()
	return newShopOf(t, "WORK", journal, run)
}

// newShopOf is newShop for a kind.
func newShopOf(t *testing.T, kind string, journal func(store.Journal) store.Journal, run func(context.Context) (node.Outcome, error)) *shop {
	t.Helper()
	revision := prepareShop(t, &workflow.Definition{
		Metadata: workflow.Metadata{ID: "f", Name: "f"},
		Nodes:    []workflow.Node{{ID: "a", Name: "a", Type: "TEST", Subtype: kind, Configurations: json.RawMessage("{}")}},
	}, run)
	s := &shop{t: t, stores: hosttest.NewDisk().Stores(), revision: revision, ref: store.Ref{Workspace: "one", Execution: "x"}}
	if journal != nil {
		s.stores.Journal = journal(s.stores.Journal)
	}
	s.first = s.open()
	s.start()
	s.at = s.wanted(s.first)
	return s
}

// prepareShop makes a workflow ready whose nodes do what the test says.
func prepareShop(t *testing.T, def *workflow.Definition, run func(context.Context) (node.Outcome, error)) *node.Revision {
	t.Helper()
	words := text.Beside("work", "work")
	var kinds node.Registry
	for _, name := range (shopKinds{}).Names() {
		kinds.Register(node.Kind{About: node.About{Name: name, Title: words, Description: words}, Run: func(ctx context.Context, c *node.Call) (node.Outcome, error) {
			return run(context.WithValue(ctx, calling{}, c))
		}})
	}
	graph, problems := workflow.Compile(def, shopKinds{})
	if graph == nil {
		t.Fatalf("compile: %v", problems)
	}
	revision, err := node.Prepare(def, graph, &kinds, nil)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// calling is under which a context has the call of a node.
type calling struct{}

// open starts a process.
func (s *shop) open() *local.Host {
	s.t.Helper()
	find := func(context.Context, identity.Principal, string, string) (*node.Revision, error) {
		return s.revision, nil
	}
	h, err := local.New(s.t.Context(), local.Options{
		Journal: s.stores.Journal, Inbox: s.stores.Inbox, Timers: s.stores.Timers, Executions: s.stores.Executions, Blobs: s.stores.Blobs, Logs: s.stores.Logs,
		Revision: find, Workers: 10, Carrier: stillCarrier{},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(h.Close)
	return h
}

// wanted is the one attempt that is to be run.
func (s *shop) wanted(h *local.Host) engine.Attempt {
	s.t.Helper()
	next, err := h.Attend(s.ref)
	if err != nil || len(next.Run) != 1 {
		s.t.Fatalf("to be run are %v: %v", next.Run, err)
	}
	return next.Run[0].Attempt
}

// run runs an attempt beside the test, which hears how that has ended.
func (s *shop) run(ctx context.Context, h *local.Host, at engine.Attempt, was local.Was) <-chan ran {
	ended := make(chan ran, 1)
	go func() {
		next, err := h.Run(ctx, s.ref, at, was, func(local.Was) {})
		ended <- ran{next, err}
	}()
	return ended
}

type ran struct {
	next local.Next
	err  error
}
