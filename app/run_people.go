package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

// below finds the questions of the executions that a run has started. Their streams are not followed, and the stream of the execution
// that waits for them does not mention them.
type below struct {
	// look gets a value when it is time to look; open says that something was asked since there were no questions.
	look chan struct{}
	open atomic.Bool
	stop func()
}

func (c *Connection) listenBelow(id string) *below {
	b := &below{look: make(chan struct{}, 1)}
	events, missed, stop := c.instance.desk.Watch(Local().Workspace)
	var heard sync.WaitGroup
	heard.Go(func() {
		for e := range events {
			if missed() || e.Interaction.Status == store.InteractionPending && e.Interaction.Execution != id {
				b.open.Store(true)
				b.again()
			}
		}
	})
	b.stop = func() {
		stop()
		heard.Wait()
	}
	b.open.Store(true) // something may have been asked before
	b.again()
	return b
}

// again looks once more whether an execution below waits for a person, if one may.
func (b *below) again() {
	if !b.open.Load() {
		return
	}
	select {
	case b.look <- struct{}{}:
	default: // a look is due already
	}
}

// follow watches an execution to its end, or until only a person can let it go on because of what an execution below asks: that is
// [ErrAsked].
func (c *Connection) follow(ctx context.Context, id string, b *below, watch func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { // it ends with ctx
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.look:
			}
			b.open.Store(false)
			e, err := c.Execution(ctx, id)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				stop(err)
			case waitsBelow(e):
				b.open.Store(true)
				stop(ErrAsked)
			case slices.ContainsFunc(e.Questions, isBelow): // other nodes run; it looks again after them
				b.open.Store(true)
			}
		}
	})
	err := watch(ctx)
	stop(nil)
	looking.Wait()
	return err
}

func isBelow(q api.UserInputRequest) bool { return q.ExecutionID != "" }

// waitsBelow says whether an execution can do nothing before a question of one that it started is answered.
func waitsBelow(e api.Execution) bool {
	return engine.Status(e.Status) == engine.StatusWaiting && slices.ContainsFunc(e.Questions, isBelow)
}

// ask puts the open questions to the person at hand. When that is not possible, or does not help, its error says how to answer them.
func (c *Connection) ask(ctx context.Context, r Run, id string) error {
	e, err := c.Execution(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case len(e.Questions) == 0: // it is over, or a time limit was faster
		return c.TakeUp(ctx, id)
	case r.Ask == nil:
		return askedOf(e, r.where())
	}
	left := len(e.Questions)
	for _, q := range e.Questions {
		ended, err := c.put(ctx, r, q.InteractionID)
		if errors.Is(err, ErrAsked) {
			return askedOf(e, r.where())
		}
		if err != nil {
			return err
		}
		if ended {
			left--
		}
	}
	if c.Local() && left > 0 && left == len(e.Questions) { // they are for others, who cannot answer while this process has the directory
		return askedOf(e, r.where())
	}
	return c.TakeUp(ctx, id)
}

// put puts one question to the person at hand and says whether it has ended with that. It has not when it is for others, or wants
// the answers of others too.
func (c *Connection) put(ctx context.Context, r Run, id string) (ended bool, err error) {
	asking, over := context.WithCancelCause(ctx)
	// First the subscription: what is read later than that cannot have missed the end.
	stop := c.listenFor(asking, id, over)
	defer stop()
	q, err := c.Interaction(ctx, id)
	switch {
	case err != nil:
		return false, err
	case q.Status != string(store.InteractionPending):
		return true, nil
	case !q.MayRespond:
		return false, nil
	}
	err = r.Ask(asking, q.Interaction, func(answer json.RawMessage) error {
		after, err := c.Respond(ctx, id, api.RespondRequest{ResponseData: answer, ArgumentsHash: q.ArgumentsHash})
		ended = err == nil && after.Status != string(store.InteractionPending)
		return err
	})
	if errors.Is(err, ErrFaster) || fault.CodeOf(err) == fault.Conflict {
		return true, nil
	}
	return ended, err
}

// listenFor ends the asking of a question with [ErrFaster] when the question has ended. The listening itself ends with stop.
func (c *Connection) listenFor(asking context.Context, id string, over context.CancelCauseFunc) (stop func()) {
	var watching sync.WaitGroup
	if !c.Local() {
		watching.Go(func() { // it ends with asking; its error does not matter, since an answer that comes too late is refused
			_ = c.WatchInbox(asking, func(f client.InboxFrame) error {
				var now api.Interaction
				if f.Event != nil {
					now = f.Event.Interaction
				} else { // it may have ended before the stream began
					q, err := c.Interaction(asking, id)
					if err != nil {
						return err
					}
					now = q.Interaction
				}
				if now.ID == id && now.Status != string(store.InteractionPending) {
					over(ErrFaster)
				}
				return nil
			})
		})
		return func() {
			over(nil)
			watching.Wait()
		}
	}
	events, missed, leave := c.instance.desk.Watch(Local().Workspace)
	watching.Go(func() { // it ends with leave
		for e := range events {
			now := e.Interaction
			if missed() {
				// Without it an answer that comes too late is refused and nothing worse, so this error does not matter.
				now, _ = c.instance.stores.Interactions.Get(asking, Local(), id)
			}
			if now.ID == id && now.Status != store.InteractionPending {
				over(ErrFaster)
			}
		}
	})
	return func() {
		over(nil)
		leave()
		watching.Wait()
	}
}

// asked ends the watching when only a person can let the execution go on.
func (r Run) asked(e api.Event) error {
	if e.EventType != "execution_paused" || e.Seq <= r.past {
		return nil
	}
	var u api.ExecutionUpdate
	if err := json.Unmarshal(e.Data, &u); err != nil {
		return fmt.Errorf("read event %q: %w", e.EventType, err)
	}
	if engine.Status(u.ExecutionStatus) == engine.StatusWaitingForHuman {
		return ErrAsked
	}
	return nil
}

// where returns the flags that name the place where the execution runs.
func (r Run) where() string {
	if r.server != "" {
		return "--server " + r.server
	}
	return "--data " + r.Dir + r.Again
}

// askedOf says how the question of an execution is answered. Where are the flags that name the place.
func askedOf(e api.Execution, where string) error {
	if len(e.Questions) == 0 {
		return ErrAsked
	}
	q := e.Questions[0]
	return fmt.Errorf("%w: node %q asks %q; look at it with: tandem inbox show %s %s; answer it with: tandem %s",
		ErrAsked, q.NodeID, cmp.Or(q.Title, q.Description, q.Purpose), q.InteractionID, where, answerWith(q, where))
}

// answerWith is the command line that answers a question.
func answerWith(q api.UserInputRequest, where string) string {
	flags := ""
	switch q.Purpose {
	case human.PurposeToolApproval, human.PurposeConfirm, human.PurposeDrift, human.PurposeActivation:
		return fmt.Sprintf("approve %s %s, or reject", q.InteractionID, where)
	case human.PurposeOutcomeUnknown:
		flags = "--choose done|not_done|stop"
	case human.PurposeBudget:
		flags = "--set raise_by=NUMBER"
	case human.PurposeParam:
		flags = "--set NAME=VALUE"
	default:
		switch q.InteractionType {
		case human.Approval:
			return fmt.Sprintf("approve %s %s, or reject", q.InteractionID, where)
		case human.Selection:
			flags = "--choose VALUE"
		default:
			flags = "--set NAME=VALUE"
		}
	}
	return fmt.Sprintf("inbox answer %s %s %s", q.InteractionID, where, flags)
}
