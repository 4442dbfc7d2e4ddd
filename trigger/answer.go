package trigger

import (
	"context"
	"encoding/json"
	"errors"
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

// AwaitAnswer returns a channel that gets a value when an execution has answered the sender of its delivery; the answer is on disk then. Stop ends it.
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

// Respond records what a node answers the sender of the delivery that started its execution, or one that its execution came of, and then tells who waits
// for it. False: no request has started it, and nobody is answered. A second answer is refused with an *[store.AnsweredError].
func (s *Service) Respond(ctx context.Context, workspace, execution string, activation engine.ActivationID, a Answer) (bool, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return false, fault.Newf(fault.Internal, "an answer cannot be written: %w", err)
	}
	p, by := identity.System(workspace), execution+" "+string(activation)
	for range engine.MaxDepth + 1 {
		err := s.o.Triggers.Answer(ctx, p, execution, by, raw)
		if err == nil {
			s.answered(store.Ref{Workspace: workspace, Execution: execution})
			return true, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		e, err := s.o.Executions.Get(ctx, p, execution)
		if err != nil {
			return false, err
		}
		if e.Parent == "" {
			return false, nil
		}
		execution = e.Parent
	}
	return false, nil
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
