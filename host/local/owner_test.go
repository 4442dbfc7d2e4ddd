package local

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/workflow"
)

// deafInbox cannot be read.
type deafInbox struct {
	store.Inbox
	err error
}

func (i deafInbox) Pending(context.Context, identity.Principal, string) ([]store.InboxItem, error) {
	return nil, i.err
}

func TestOwner_Deal(t *testing.T) {
	t.Parallel()
	t.Run("SettlesWhatComesTooLate", func(t *testing.T) {
		t.Parallel()
		var settled []node.Settlement
		h := &Host{ctx: t.Context(), opts: Options{
			Log: slog.New(slog.DiscardHandler), Late: func(ref store.Ref, list []node.Settlement) {
				if ref.Execution == "x" {
					settled = append(settled, list...)
				}
			},
		}}
		o := h.newOwner(store.Ref{Workspace: "w", Execution: "x"}, nil)
		o.fold = host.NewFold(&workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}, nil, nil, host.Loader{})
		gone := engine.Attempt{Activation: "agent[0]/complete_1", Attempt: 1}
		err := o.deal([]message{outcome{attempt: gone, result: node.Result{
			Fact: func(node.Put) engine.Fact { return engine.NodeCompleted{Attempt: gone} }, Settle: []node.Settlement{{ID: "call_1", Tokens: 7}},
		}}})
		if err != nil || len(settled) != 1 || settled[0].ID != "call_1" || settled[0].Tokens != 7 {
			t.Errorf("settled %+v, %v", settled, err)
		}
	})
	t.Run("SettlesOnceWhatIsDealtWithAgain", func(t *testing.T) {
		t.Parallel()
		settled := 0
		h := &Host{ctx: t.Context(), opts: Options{
			Log: slog.New(slog.DiscardHandler), Inbox: deafInbox{err: fault.New(fault.Internal, "the store has stopped")},
			Late: func(store.Ref, []node.Settlement) { settled++ },
		}}
		o := h.newOwner(store.Ref{Workspace: "w", Execution: "x"}, nil)
		o.fold = host.NewFold(&workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}, nil, nil, host.Loader{})
		o.next = &Next{} // there is a carrier: who visits tries again
		gone := engine.Attempt{Activation: "agent[0]/complete_1", Attempt: 1}
		late := outcome{attempt: gone, result: node.Result{
			Fact: func(node.Put) engine.Fact { return engine.NodeCompleted{Attempt: gone} }, Settle: []node.Settlement{{ID: "call_1"}},
		}}
		if err := o.deal([]message{late, delivered{}}); err == nil || settled != 0 {
			t.Errorf("settled %d times with what is done again: %v", settled, err)
		}
		if err := o.deal([]message{late}); err != nil || settled != 1 {
			t.Errorf("settled %d times, %v", settled, err)
		}
	})
	t.Run("AnswersThoseItDoesNotComeTo", func(t *testing.T) {
		t.Parallel()
		unreadable := fault.New(fault.Internal, "the store has stopped")
		h := &Host{ctx: t.Context(), opts: Options{Inbox: deafInbox{err: unreadable}, Log: slog.New(slog.DiscardHandler)}}
		o := h.newOwner(store.Ref{Workspace: "w", Execution: "x"}, nil)
		o.fold = host.NewFold(&workflow.Graph{Bodies: []workflow.Body{{Owner: -1}}}, nil, nil, host.Loader{})
		answer := make(chan reply, 1)
		err := o.deal([]message{delivered{}, request{Request: host.Request{Action: host.ActionPause}, reply: answer}})
		if !errors.Is(err, unreadable) {
			t.Fatalf("error %v", err)
		}
		select {
		case a := <-answer:
			if !errors.Is(a.err, unreadable) {
				t.Errorf("the answer is %+v", a)
			}
		default:
			t.Error("nobody answers the one that was not come to")
		}
	})
}

// Who waits for a child that is at work here stays, and goes when the last such child has.
func TestHost_KeepsTheParentOfAChildAtWork(t *testing.T) {
	t.Parallel()
	h := &Host{ctx: t.Context(), opts: Options{Log: slog.New(slog.DiscardHandler)}, owners: map[store.Ref]*owner{}, below: map[store.Ref]int{}, vacant: make(chan struct{}, 1)}
	add := func(name, parent string) *owner {
		o := h.newOwner(store.Ref{Workspace: "w", Execution: name}, nil)
		o.parent = parent
		h.owners[o.ref] = o
		h.joinParent(o)
		return o
	}
	parent, first, second := add("p", ""), add("c1", "p"), add("c2", "p")
	nudged := func() bool {
		select {
		case <-parent.wake:
			return true
		default:
			return false
		}
	}
	if h.retire(parent) {
		t.Fatal("the parent goes while its children are at work")
	}
	if !h.retire(first) || nudged() || h.retire(parent) {
		t.Fatal("the parent goes, or is told to look, while one of its children is at work")
	}
	if !h.retire(second) || !nudged() {
		t.Fatal("the parent is not told that its last child is gone")
	}
	if !h.retire(parent) || len(h.below) != 0 || len(h.owners) != 0 {
		t.Errorf("left are %v and %v", h.owners, h.below)
	}
}

// backLater are executions of a store that is away for some calls.
type backLater struct {
	store.Executions
	away *int
}

// Get implements store.Executions.
func (b backLater) Get(context.Context, identity.Principal, string) (store.Execution, error) {
	if *b.away > 0 {
		*b.away--
		return store.Execution{}, store.ErrUnavailable
	}
	return store.Execution{}, nil
}

// TestHost_ForgoSettles: what a run has used whose outcome is not recorded is settled once the database is there.
func TestHost_ForgoSettles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away, settled := 100, 0
		h := &Host{ctx: t.Context(), opts: Options{
			Log: slog.New(slog.DiscardHandler), Executions: backLater{away: &away}, Late: func(_ store.Ref, list []node.Settlement) {
				if settled += len(list); away > 0 {
					t.Error("it is settled while the database is away")
				}
			},
		}}
		h.forgo(&said{owner: h.newOwner(store.Ref{Workspace: "w", Execution: "x"}, nil)}, []node.Settlement{{ID: "call_1"}})
		h.running.Wait()
		if settled != 1 {
			t.Errorf("%d were settled", settled)
		}
	})
}
