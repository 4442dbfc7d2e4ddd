package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// waiters are the requests that wait for a node of their execution to answer.
type waiters struct {
	mu sync.Mutex
	of map[store.Ref][]chan struct{}
}

// AwaitAnswer returns a channel that gets a value when an execution has answered the sender of its delivery; the answer is on
// disk then. Stop ends it.
func (s *Service) AwaitAnswer(ref store.Ref) (answered <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	w := &s.waiters
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[ref] = append(w.of[ref], c)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.of[ref] = slices.DeleteFunc(w.of[ref], func(one chan struct{}) bool { return one == c }); len(w.of[ref]) == 0 {
			delete(w.of, ref)
		}
	}
}

// Why a node that answers a request has not answered one.
const (
	// NoRequest: no request has started the execution.
	NoRequest = "no_request"
	// NotAwaited: the one who sent the request is answered in another way, as the trigger says.
	NotAwaited = "not_awaited"
	// Replayed: the execution was started by a replay, for which nobody waits.
	Replayed = "replay"
)

// Respond records what a node answers the sender of the delivery that started its execution, or one that its execution came of,
// and then tells who waits for it. The reason, unless it is empty, says why nobody is answered. A second answer is refused with
// an *[store.AnsweredError], a file that is not there with [fault.NotFound].
func (s *Service) Respond(ctx context.Context, workspace, execution string, activation engine.ActivationID,
	a Answer) (reason string, err error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return "", fault.Newf(fault.Internal, "an answer cannot be written: %w", err)
	}
	p, by := identity.System(workspace), execution+" "+string(activation)
	if err := s.hasFile(ctx, p, a.Blob); err != nil {
		return "", err
	}
	for range engine.MaxDepth + 1 {
		d, err := s.o.Triggers.DeliveryOf(ctx, p, execution)
		if err == nil {
			if reason, err = s.notAwaited(ctx, p, d); err != nil || reason != "" {
				return reason, err
			}
			if err = s.o.Triggers.Answer(ctx, p, execution, by, raw); err == nil {
				s.answered(store.Ref{Workspace: workspace, Execution: execution})
			}
			return "", err
		}
		if !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
		e, err := s.o.Executions.Get(ctx, p, execution)
		if err != nil {
			return "", err
		}
		if e.Parent == "" {
			return NoRequest, nil
		}
		execution = e.Parent
	}
	return NoRequest, nil
}

// hasFile refuses an answer with a file that is not there. An answer without one has none.
func (s *Service) hasFile(ctx context.Context, p identity.Principal, hash string) error {
	if hash == "" {
		return nil
	}
	content, _, err := s.o.Blobs.Get(ctx, p, hash)
	if errors.Is(err, store.ErrNotFound) {
		return fault.Newf(fault.NotFound, "file: there is no stored file %q; answer with one that another node has stored", hash)
	}
	if err != nil {
		return err
	}
	return content.Close()
}

// notAwaited says why the sender of a delivery does not wait for a node's answer; empty: it does.
func (s *Service) notAwaited(ctx context.Context, p identity.Principal, d store.TriggerDelivery) (string, error) {
	if d.ReplayOf != "" {
		return Replayed, nil
	}
	r, err := s.o.Revision(ctx, p, d.WorkflowID, d.Revision)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil // the workflow was deleted; somebody may wait all the same
	}
	if err != nil {
		return "", err
	}
	for _, n := range r.Nodes {
		if n.ID != d.Node {
			continue
		}
		reply, err := s.replyOf(store.Trigger{Workspace: d.Workspace, WorkflowID: d.WorkflowID, Node: n.ID, Kind: n.Kind,
			Revision: d.Revision, Config: n.Config})
		if err == nil && reply != ReplyNode {
			return NotAwaited, nil
		}
		return "", err
	}
	return "", nil
}

// replyOf is how the senders of a trigger are answered.
func (s *Service) replyOf(t store.Trigger) (reply Reply, err error) {
	defer recovered(t.Kind, &err)
	switch source := s.sources[t.Kind].(type) {
	case Receiver:
		route, err := source.Route(s.trigger(t))
		return route.Reply, err
	case Presenter:
		page, err := source.Page(s.trigger(t))
		return page.Reply, err
	}
	return ReplyAtOnce, nil
}

// LookForAnswers tells those who wait for the answer of an execution if there is one: another process may have recorded it.
func (s *Service) LookForAnswers(ctx context.Context) {
	s.waiters.mu.Lock()
	waiting := slices.Collect(maps.Keys(s.waiters.of))
	s.waiters.mu.Unlock()
	for _, ref := range waiting {
		d, err := s.o.Triggers.DeliveryOf(ctx, identity.System(ref.Workspace), ref.Execution)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			s.o.Log.Warn("it is not known whether an execution has answered", "execution", ref.Execution, "error", err)
		}
		if err == nil && len(d.Answer) > 0 {
			s.answered(ref)
		}
	}
}

func (s *Service) answered(ref store.Ref) {
	s.waiters.mu.Lock()
	defer s.waiters.mu.Unlock()
	for _, c := range s.waiters.of[ref] {
		nudge(c)
	}
}

// AnswerOf is what the sender of a delivery was answered by a node; false: nothing yet.
func (s *Service) AnswerOf(ctx context.Context, workspace, delivery string) (a Answer, ok bool, err error) {
	d, err := s.o.Triggers.Delivery(ctx, identity.System(workspace), delivery)
	if err != nil || len(d.Answer) == 0 {
		return Answer{}, false, err
	}
	if err := json.Unmarshal(d.Answer, &a); err != nil {
		return Answer{}, false, fault.Newf(fault.Internal, "the answer of delivery %q cannot be read: %w", delivery, err)
	}
	return a, true, nil
}
