package human

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

const (
	// longestNap is the longest time between two looks at the clock. The clock may be set, and the machine may sleep, which a timer does
	// not notice.
	longestNap = 10 * time.Second
	// clockBatch is how many questions are looked at together, clockAtOnce how many of them at the same time: the store writes what
	// comes together in one go.
	clockBatch  = 512
	clockAtOnce = 64
	// clockPause is how long a question that cannot be handled is put off.
	clockPause = time.Minute
)

// clock handles what becomes due for questions: first messages, reminders, escalation, warnings, timeouts, notices of the end. It
// keeps no state: the records say when they are due, and one index finds the first of them.
type clock struct {
	*backroom
	wake chan struct{}
}

func newClock(b *backroom) *clock { return &clock{backroom: b, wake: make(chan struct{}, 1)} }

// nap is how long to wait for something that is due at a time; zero: there is nothing.
func nap(now, next int64) time.Duration {
	if next == 0 || next-now > longestNap.Milliseconds() {
		return longestNap
	}
	return time.Duration(max(next-now, 0)) * time.Millisecond
}

func (c *clock) run(ctx context.Context) { passes[struct{}](ctx, c.wake, nil, c.pass, nil) }

// passes looks again and again until the context ends: when it is woken, when the time has come that the last pass named, and
// when something that a pass began is done, which is handed to finished first.
func passes[D any](ctx context.Context, wake <-chan struct{}, done <-chan D, pass func(context.Context) (time.Duration, bool),
	finished func(D)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var p pace
	for ctx.Err() == nil {
		wait, found := pass(ctx)
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-wake:
			p.woken(ctx, found)
		case <-timer.C:
		case d := <-done:
			finished(d)
		}
	}
}

// pace slows down a loop that is woken by every question, and mostly finds nothing.
type pace struct{ idle int }

// woken waits a moment when the last passes have found nothing.
func (p *pace) woken(ctx context.Context, found bool) {
	if found {
		p.idle = 0
		return
	}
	if p.idle++; p.idle <= 8 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// pass deals with everything that is due, says how long to wait for the next, and whether there was anything.
func (c *clock) pass(ctx context.Context) (wait time.Duration, found bool) {
	for ctx.Err() == nil {
		now := now()
		due, next, err := c.o.Interactions.Due(ctx, identity.System(""), now, clockBatch)
		if err != nil {
			if ctx.Err() == nil {
				c.o.Log.Error("questions to people cannot be read; trying again", "error", err)
			}
			return time.Second, found
		}
		if len(due) == 0 {
			return nap(now, next), found
		}
		found = true
		if !c.all(ctx, due) {
			return time.Second, found // something is wrong with the store
		}
	}
	return longestNap, found
}

// all handles questions and says whether each is up to date now, or at least put off.
func (c *clock) all(ctx context.Context, due []store.Interaction) bool {
	var wait sync.WaitGroup
	turn := make(chan struct{}, clockAtOnce)
	stuck := make(chan struct{}, len(due))
	for _, i := range due {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			if !c.one(ctx, i) {
				stuck <- struct{}{}
			}
		})
	}
	wait.Wait()
	return len(stuck) == 0
}

// one handles a question. If something else is faster (an answer, a cancel), that wins, and the question is looked at again.
func (c *clock) one(ctx context.Context, i store.Interaction) bool {
	p := identity.System(i.Workspace)
	for range maxTries {
		change, err := c.decide(ctx, i, now())
		if err == nil {
			err = c.o.Interactions.Change(timedOut(ctx, i, change), p, change)
		}
		switch {
		case err == nil:
			after := change.Interaction
			after.Version++
			c.decided(i, after, change)
			return true
		case ctx.Err() != nil:
			return true // the next start goes on with it
		case errors.Is(err, store.ErrConflict):
		default:
			c.o.Log.Error("a question that is due cannot be dealt with; trying again", "workspace", i.Workspace, "interaction", i.ID, "error", err)
			later := store.InteractionChange{Interaction: i}
			later.Interaction.NextAt = now() + clockPause.Milliseconds()
			if i.TimeoutAt > now() {
				later.Interaction.NextAt = min(later.Interaction.NextAt, i.TimeoutAt)
			}
			return c.o.Interactions.Change(ctx, p, later) == nil
		}
		if i, err = c.o.Interactions.Get(ctx, p, i.ID); err != nil {
			return errors.Is(err, store.ErrNotFound)
		}
		if i.NextAt == 0 || i.NextAt > now() {
			return true // the faster one has handled it
		}
	}
	return false
}

// timedOut adds the timeout of a question to the audit log, with the change. Its author is the clock, not a person.
func timedOut(ctx context.Context, before store.Interaction, c store.InteractionChange) context.Context {
	i := &c.Interaction
	if before.Status != store.InteractionPending || i.Status != store.InteractionTimeout {
		return ctx
	}
	return store.Audited(ctx, store.AuditEntry{
		Workspace: i.Workspace, User: identity.System("").User, Time: i.Updated, Action: "interaction.timeout", Object: "interaction", ObjectID: i.ID,
		Detail: store.AuditDetail(map[string]string{"execution_id": i.Execution, "by": "the clock"}),
	})
}

// decided wakes those who wait for what was written.
func (c *clock) decided(before, after store.Interaction, change store.InteractionChange) {
	if change.Deliver != nil {
		c.o.Wake(store.Ref{Workspace: after.Workspace, Execution: after.Execution})
	}
	if len(change.Deliveries) > 0 {
		nudge(c.sender.wake)
	}
	if before.Status == after.Status && after.Status != store.InteractionPending {
		c.ears.Wake()
		return // the one who ended it has reported it
	}
	c.tellWatchers(Event{Interaction: after})
}

// decide says what to do with a question that is due.
func (c *clock) decide(ctx context.Context, i store.Interaction, now int64) (store.InteractionChange, error) {
	change := store.InteractionChange{Interaction: i}
	system := identity.System(i.Workspace)
	if i.Status != store.InteractionPending {
		if i.Purpose == PurposeBudget && i.Status == store.InteractionCancelled && c.o.Withdrawn != nil {
			if err := c.o.Withdrawn(store.Ref{Workspace: i.Workspace, Execution: i.Execution}, engine.AskID(i.Ask)); err != nil {
				return change, err
			}
		}
		sent, err := c.o.Interactions.Deliveries(ctx, system, i.ID)
		if err != nil {
			return change, err
		}
		change.Deliveries = closing(i, sent, now)
		change.Interaction.NextAt = 0
		return change, nil
	}
	r, err := ReadRequest(i)
	switch {
	case err == nil:
	case i.TimeoutAt > 0 && i.TimeoutAt <= now:
		c.o.Log.Error("a question cannot be read; its time is up all the same", "workspace", i.Workspace, "interaction", i.ID, "error", err)
	default:
		return change, err
	}
	p, err := readProgress(i)
	if err != nil {
		return change, err
	}
	responses, err := c.o.Interactions.Responses(ctx, system, i.ID)
	if err != nil {
		return change, err
	}
	change.Interaction.Updated = now
	if i.TimeoutAt > 0 && i.TimeoutAt <= now {
		return change, timeOut(c.o.Log, &change, r, responses, now)
	}
	return change, c.remindOf(ctx, &change, r, p, responses, now)
}

// timeOut ends a question whose time is up.
func timeOut(log *slog.Logger, change *store.InteractionChange, r Request, responses []store.Response, now int64) error {
	i := &change.Interaction
	response, value, err := timeoutResult(*i, r, responses, now)
	if err != nil {
		// The default was checked when the question was asked. Waiting for ever would be worse than no answer.
		log.Error("the default answer of a question cannot be taken", "workspace", i.Workspace, "interaction", i.ID, "error", err)
		r.TimeoutAction = TimeoutFail
		if response, value, err = timeoutResult(*i, r, nil, now); err != nil {
			return err
		}
	}
	i.Status, i.Response = store.InteractionTimeout, response
	// The notices come later: only when the end is written is it certain who was sent something.
	if i.NextAt = now; i.Channel == InApp && len(ways(*i)) == 0 {
		i.NextAt = 0
	}
	change.Resume = &store.PauseEnd{ID: i.ID, Status: store.PauseResumed, Reason: store.ResumedByTimeout, Data: response, Time: now}
	change.Deliver, err = answerItem(*i, "", store.Origin{}, engine.AskTimeout, "", value, now)
	return err
}

// remindOf sends the messages that are due about a pending question.
func (c *clock) remindOf(ctx context.Context, change *store.InteractionChange, r Request, p progress, responses []store.Response,
	now int64) error {
	i := &change.Interaction
	asked := holders(i.Approvers, p)
	send := func(approvers []string, kind, round string, but []store.Response) error {
		to, err := c.recipients(ctx, *i, r, approvers)
		if err != nil {
			return err
		}
		if to, err = c.unanswered(ctx, *i, p, to, but); err != nil {
			return err
		}
		change.Deliveries = append(change.Deliveries, deliveries(*i, to, kind, round, note{}, now)...)
		p.took(change, to)
		return nil
	}
	fresh := false // everybody was told just now
	if !p.Requested {
		p.Requested, fresh = true, true
		if err := send(asked, KindRequest, "", nil); err != nil {
			return err
		}
	}
	if e := r.Escalation; e != nil && p.Escalated == 0 && now >= i.Created+1000*e.AfterSeconds {
		added := c.escalatedTo(*i, e.To)
		p.Escalated = now
		i.Approvers = slices.Concat(i.Approvers, added)
		if len(added) > 0 {
			if err := send(added, KindEscalation, "", nil); err != nil {
				return err
			}
		}
	}
	if i.TimeoutAt > 0 && r.TimeoutSeconds > warningBefore && !i.WarningSent && now >= i.TimeoutAt-1000*warningBefore {
		i.WarningSent, fresh = true, true
		if err := send(holders(i.Approvers, p), KindWarning, "", responses); err != nil {
			return err
		}
	}
	// After a long time without a clock there is one reminder, and the next is when it would have been.
	if every := 1000 * r.ReminderSeconds; every > 0 {
		if since := max(i.Created, p.Reminded); now >= since+every {
			p.Reminded = since + (now-since)/every*every
			p.Reminders++
			if !fresh {
				if err := send(holders(i.Approvers, p), KindReminder, strconv.FormatInt(p.Reminded, 10), responses); err != nil {
					return err
				}
			}
		}
	}
	if i.NextAt = nextAt(*i, r, p); i.NextAt != 0 && i.NextAt <= now {
		i.NextAt = now + 1000 // in any case, the clock does not loop
	}
	return writeProgress(i, p)
}

// escalatedTo are those whom an escalation adds to those who are asked.
func (c *clock) escalatedTo(i store.Interaction, to []string) (added []string) {
	for _, text := range to {
		seat, err := c.media.normalApprover(text)
		if err != nil {
			c.o.Log.Warn("escalation names nobody", "workspace", i.Workspace, "interaction", i.ID, "to", text, "error", err)
			continue
		}
		if !slices.Contains(i.Approvers, seat) && !slices.Contains(added, seat) {
			added = append(added, seat)
		}
	}
	return added
}

// holders are the approvers as votes were handed on.
func holders(approvers []string, p progress) []string {
	list := slices.Clone(approvers)
	for _, d := range p.Delegations {
		list = slices.DeleteFunc(list, func(a string) bool { return a == d.From })
		if !slices.Contains(list, d.To) {
			list = append(list, d.To)
		}
	}
	return list
}

// unanswered leaves out the recipients who need no message: those who have voted or handed their vote on, whichever of their
// addresses they were asked by.
func (b *backroom) unanswered(ctx context.Context, i store.Interaction, p progress, to []recipient,
	responses []store.Response) ([]recipient, error) {
	var done []string // seats
	add := func(user string) error {
		done = append(done, seatUser+user)
		if b.o.Users == nil {
			return nil
		}
		u, err := b.o.Users.Get(ctx, identity.System(i.Workspace), user)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		done = append(done, b.media.Addresses(u)...)
		return err
	}
	for _, one := range responses {
		if !one.Accepted || one.OverruledBy != "" {
			continue
		}
		if one.User == "" {
			done = append(done, strings.ToLower(one.Address))
		} else if err := add(one.User); err != nil {
			return nil, err
		}
	}
	for _, d := range p.Delegations {
		if user, ok := strings.CutPrefix(d.From, seatUser); ok {
			if err := add(user); err != nil {
				return nil, err
			}
		}
	}
	return slices.DeleteFunc(to, func(r recipient) bool {
		return r.as != "" && (slices.Contains(done, r.as) || slices.Contains(done, strings.ToLower(r.as)))
	}), nil
}
