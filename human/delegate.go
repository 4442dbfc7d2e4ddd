package human

import (
	"context"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// Delegate hands a vote on to another user, who has it from then on; the one who had it before can no longer vote. To is a user's
// id or address. From is who has it: the caller when it is empty. An admin may hand on the vote of somebody else, with a reason,
// which is recorded as such; the other rules are the same.
func (d *Desk) Delegate(ctx context.Context, p identity.Principal, id, from, to, note string) (store.Interaction, error) {
	return d.decide(ctx, p.Workspace, id, func(s *sitting) error {
		if err := d.delegate(ctx, s, p, from, to, note); err != nil {
			return d.refuse(s.Interaction, p.User, err)
		}
		s.say("interaction.delegate", seatUser+p.User, p.Means, "from", from, "to", to, "note", note)
		return nil
	})
}

func (d *Desk) delegate(ctx context.Context, s *sitting, p identity.Principal, from, to, why string) error {
	who, by, err := s.whoDelegates(p, from, why)
	if err != nil {
		return err
	}
	if err := s.admit(who, ""); err != nil {
		return err
	}
	if !s.request.AllowDelegation {
		return fault.New(fault.Forbidden, "this question does not allow delegation")
	}
	other, err := s.delegatee(who, to)
	if err != nil {
		return err
	}
	handed := delegation{Means: p.Means, By: by}
	change := s.begin()
	handed.From, handed.To, handed.Note, handed.At = who.key, other.key, why, s.now
	s.progress.Delegations = append(s.progress.Delegations, handed)
	approvers := slices.DeleteFunc(slices.Clone(s.Approvers), func(a string) bool { return a == who.key })
	if !slices.Contains(approvers, other.key) {
		approvers = append(approvers, other.key)
	}
	change.Interaction.Approvers = approvers
	if s.progress.Requested {
		to, err := d.recipients(ctx, change.Interaction, s.request, []string{other.key})
		if err != nil {
			return err
		}
		s.progress.took(change, to)
		change.Deliveries = deliveries(change.Interaction, to, KindRequest, "delegated by "+who.key,
			note{By: p.User, Of: strings.TrimPrefix(of(handed), seatUser), Reason: why}, s.now)
	}
	return writeProgress(&change.Interaction, s.progress)
}

// whoDelegates returns the person whose vote is handed on: the caller or, for an admin who gives a reason, somebody else. By is that admin,
// else empty.
func (s *sitting) whoDelegates(p identity.Principal, from, why string) (who somebody, by string, err error) {
	if who, err = s.people.principal(p); err == nil {
		err = s.throughRequester(who.user, p.Means)
	}
	if err != nil || from == "" {
		return who, "", err
	}
	of, err := s.delegator(from)
	switch {
	case err != nil:
		return who, "", err
	case of.key == who.key:
		return who, "", nil
	case !has([]string{seatRole + string(identity.Admin)}, who.seats):
		return who, "", fault.New(fault.Forbidden, "only an admin may hand on the answer of somebody else")
	case strings.TrimSpace(why) == "":
		return who, "", wrongAnswer("note", text.Of("it is missing; say why you hand on the answer of somebody else"))
	case s.Excludes(who.user):
		return who, "", fault.New(fault.Forbidden, "who started the execution may neither answer this question nor say who does")
	}
	return of, p.User, nil
}

// delegatee returns the person who gets a vote: a user who has none yet, and will not get one in another way.
func (s *sitting) delegatee(who somebody, to string) (somebody, error) {
	other, err := s.people.named(to)
	switch {
	case err != nil:
		return other, wrongAnswer("to", text.As(fault.From(err).Message))
	case other.user == "":
		return other, wrongAnswer("to", text.Of("%q is not a user of this workspace", to))
	case other.key == who.key:
		return other, wrongAnswer("to", text.Of("that is who has the answer already"))
	case s.Excludes(other.user):
		return other, wrongAnswer("to", excluded)
	case s.progress.gaveAway(other.key):
		return other, wrongAnswer("to", text.Of("%q has delegated their own answer", to))
	case s.mayAnswer(other) == nil && !slices.Contains(s.Approvers, Anyone):
		return other, wrongAnswer("to", text.Of("%q may answer already, and nobody counts twice", to))
	}
	if e := voted(s.votes(), other, s.holder(other.key)); e != nil {
		return other, wrongAnswer("to", text.Of("%q has answered already", to))
	}
	// People whom escalation will ask get a vote of their own.
	if e := s.request.Escalation; e != nil && s.progress.Escalated == 0 && has(e.To, other.seats) {
		return other, wrongAnswer("to", text.Of("%q will be asked anyway, and nobody counts twice", to))
	}
	return other, nil
}

// of is the person whose vote an admin has handed on; empty: the owner did so.
func of(d delegation) string {
	if d.By == "" {
		return ""
	}
	return d.From
}

// delegator returns the person who has the vote that is to be handed on.
func (s *sitting) delegator(name string) (somebody, error) {
	who, err := s.people.named(name)
	if err != nil {
		return who, wrongAnswer("from", text.As(fault.From(err).Message))
	}
	return who, nil
}
