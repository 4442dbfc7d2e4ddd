package human

import (
	"context"
	"encoding/json"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// principal returns the person of a principal. For a stored user the record counts, with its roles and whether it is disabled,
// and not what the token says. A user that is not stored (of a command that works without users) is taken as it is.
func (p *people) principal(by identity.Principal) (somebody, error) {
	if _, stored := p.byID[by.User]; stored {
		return p.user(by.User)
	}
	if by.User == "" || by.IsSystem() {
		return somebody{}, fault.New(fault.Forbidden, "nobody answers for the system; say who you are")
	}
	u := identity.User{ID: by.User, Roles: by.Roles}
	return somebody{key: seatUser + by.User, user: by.User, seats: p.media.Seats(u)}, nil
}

// May says whether somebody may answer a question now and, if not, why.
func (d *Desk) May(ctx context.Context, p identity.Principal, i store.Interaction) (bool, *fault.Error) {
	why := func() error {
		if p.Workspace != i.Workspace {
			return fault.New(fault.NotFound, "there is no such question in this workspace")
		}
		s, err := d.sitAt(ctx, identity.System(i.Workspace), i)
		if err != nil {
			return err
		}
		who, err := s.people.principal(p)
		if err != nil {
			return err
		}
		if err := s.admit(who, ""); err != nil {
			return err
		}
		return s.throughRequester(who.user, s.seatedBy(who, p.Means))
	}()
	if why != nil {
		return false, fault.From(why)
	}
	return true, nil
}

// Respond takes an answer. The record is pending after it when others have to answer, too. An answer that is too late gets a
// [fault.Conflict] that says how it has ended.
func (d *Desk) Respond(ctx context.Context, p identity.Principal, id string, in Submission) (store.Interaction, error) {
	return d.decide(ctx, p.Workspace, id, func(s *sitting) error {
		who, err := s.people.principal(p)
		if err == nil {
			err = s.answer(who, in, store.Response{Origin: s.origin(who, p.Means)})
		}
		if err != nil {
			return d.refuse(s.Interaction, p.User, err)
		}
		return d.raise(ctx, s, who)
	})
}

// raise adds to the budget that a question is about, before the answer is written: an execution that it wakes finds the budget raised.
func (d *Desk) raise(ctx context.Context, s *sitting, who somebody) error {
	budget, by := s.raised()
	switch {
	case by == 0:
		return nil
	case budget == "":
		return fault.Newf(fault.Internal, "question %q names no budget", s.ID)
	case d.o.Raise == nil:
		return fault.New(fault.Unsupported, "budgets cannot be raised here")
	}
	return d.o.Raise(store.WithoutEntries(ctx), s.principalOf(who), s.Execution+"/"+s.Ask, budget, by)
}

// operates returns an error unless somebody may manage a question without being asked: the user who started the execution, and operators.
func (s *sitting) operates(p identity.Principal) error {
	who, err := s.people.principal(p)
	switch {
	case err != nil:
		return err
	case who.user == s.User, has([]string{"role:operator", "role:editor", "role:admin"}, who.seats):
		return nil
	}
	return fault.New(fault.Forbidden, "only who started the execution and those who operate it may do this")
}

// Cancel withdraws a question: it needs no answer any more, and the execution goes on as for a withdrawn question.
func (d *Desk) Cancel(ctx context.Context, p identity.Principal, id, reason string) (store.Interaction, error) {
	return d.decide(ctx, p.Workspace, id, func(s *sitting) error {
		err := s.operates(p)
		if e := s.open(); err == nil && e != nil {
			err = e
		}
		if err != nil {
			return d.refuse(s.Interaction, p.User, err)
		}
		response, err := json.Marshal(Answer{Notes: reason, UserID: p.User, Timestamp: timestamp(s.now), Came: Came{Means: p.Means}})
		if err != nil {
			return fault.Newf(fault.Internal, "the end of %q cannot be kept: %w", id, err)
		}
		var value json.RawMessage
		if s.Purpose == PurposeNode {
			result := Result{
				Status: string(store.InteractionCancelled), ResponseType: s.Type, ResponseData: response, InteractionID: s.ID,
				Responder: p.User, Approvals: s.told(s.votes()),
			}
			if value, err = json.Marshal(result); err != nil {
				return fault.Newf(fault.Internal, "the end of %q cannot be told: %w", id, err)
			}
		}
		s.say("interaction.cancel", seatUser+p.User, p.Means, "reason", reason)
		return s.end(store.InteractionCancelled, response, p.User, store.Origin{Means: p.Means}, engine.AskCanceled, "", value)
	})
}

// remindPause is how long there is between reminders that somebody asks for.
const remindPause = 60_000

// Remind sends reminders now.
func (d *Desk) Remind(ctx context.Context, p identity.Principal, id string) (store.Interaction, error) {
	return d.decide(ctx, p.Workspace, id, func(s *sitting) error {
		err := s.operates(p)
		if e := s.open(); err == nil && e != nil {
			err = e
		}
		if wait := s.progress.Reminded + remindPause - s.now; err == nil && s.progress.Reminded > 0 && wait > 0 {
			err = fault.New(fault.RateLimited, "there was a reminder less than a minute ago; wait a little").With("retry_after_ms", wait)
		}
		if err != nil {
			return d.refuse(s.Interaction, p.User, err)
		}
		to, err := d.recipients(ctx, s.Interaction, s.request, holders(s.Approvers, s.progress))
		if err != nil {
			return err
		}
		if len(to) == 0 && s.Channel == InApp {
			return d.refuse(s.Interaction, p.User, fault.New(fault.Conflict, "the question is in the inbox only; nobody who is asked has chosen to be reached elsewhere, so there is nobody to send a reminder to"))
		}
		if to, err = d.unanswered(ctx, s.Interaction, s.progress, to, s.responses); err != nil {
			return err
		}
		s.say("interaction.remind", seatUser+p.User, p.Means)
		change := s.begin()
		s.progress.took(change, to)
		s.progress.Requested = s.progress.Requested || s.Channel == InApp
		change.Deliveries = deliveries(s.Interaction, to, KindReminder, "asked for at "+timestamp(s.now), note{By: p.User}, s.now)
		s.progress.Reminded = s.now
		s.progress.Reminders++
		change.Interaction.NextAt = nextAt(change.Interaction, s.request, s.progress)
		return writeProgress(&change.Interaction, s.progress)
	})
}
