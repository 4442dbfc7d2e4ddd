package human

import (
	"context"
	"slices"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// Delegate hands a vote on to another user, who holds it from then on; who had it has none any more. To is a user's id or address.
func (d *Desk) Delegate(ctx context.Context, p identity.Principal, id, to, note string) (store.Interaction, error) {
	return d.decide(ctx, p.Workspace, id, func(s *sitting) error {
		if err := d.delegate(ctx, s, p, to, note); err != nil {
			return d.refuse(s.Interaction, p.User, err)
		}
		return nil
	})
}

func (d *Desk) delegate(ctx context.Context, s *sitting, p identity.Principal, to, why string) error {
	who, err := s.people.principal(p)
	if err != nil {
		return err
	}
	if err := s.admit(who, ""); err != nil {
		return err
	}
	if !s.request.AllowDelegation {
		return fault.New(fault.Forbidden, "this question does not allow delegation")
	}
	seat, err := normalApprover(to)
	if err != nil {
		return wrongAnswer("to", "%s", fault.From(err).Message)
	}
	other, err := s.people.at(seat)
	switch {
	case err != nil:
		return wrongAnswer("to", "%s", fault.From(err).Message)
	case other.user == "":
		return wrongAnswer("to", "%q is no user of this workspace", to)
	case other.key == who.key:
		return wrongAnswer("to", "that is you")
	case s.Excludes(other.user):
		return wrongAnswer("to", "%s", excludedMessage)
	case s.progress.gaveAway(other.key):
		return wrongAnswer("to", "%q has delegated their own answer", to)
	case s.mayAnswer(other) == nil && !slices.Contains(s.Approvers, Anyone):
		return wrongAnswer("to", "%q may answer already, and nobody counts twice", to)
	}
	if e := voted(s.votes(), other, s.holder(other.key)); e != nil {
		return wrongAnswer("to", "%q has answered already", to)
	}
	// Whoever escalation will ask has a vote of their own to come.
	if e := s.request.Escalation; e != nil && s.progress.Escalated == 0 && has(e.To, other.seats) {
		return wrongAnswer("to", "%q will be asked anyway, and nobody counts twice", to)
	}
	change := s.begin()
	s.progress.Delegations = append(s.progress.Delegations, delegation{From: who.key, To: other.key, Note: why, At: s.now})
	approvers := slices.DeleteFunc(slices.Clone(s.Approvers), func(a string) bool { return a == who.key })
	if !slices.Contains(approvers, other.key) {
		approvers = append(approvers, other.key)
	}
	change.Interaction.Approvers = approvers
	if s.Channel != InApp && s.progress.Requested {
		to, err := d.recipients(ctx, change.Interaction, s.request, []string{other.key})
		if err != nil {
			return err
		}
		change.Deliveries = deliveries(change.Interaction, to, KindRequest, "delegated by "+who.key, note{By: p.User, Reason: why}, s.now)
	}
	return writeProgress(&change.Interaction, s.progress)
}
