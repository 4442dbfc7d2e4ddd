package human

import (
	"context"
	"strings"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// Override lets an admin decide a question in the place of those who were asked, with a reason. It ends the question, whatever votes it
// needs, and is recorded as an override, with the admin and the reason. Those who were asked are told so. An admin who may not answer
// because they started the execution may not override either.
func (d *Desk) Override(ctx context.Context, p identity.Principal, id string, in Submission, reason string) (store.Interaction, error) {
	return d.decide(ctx, p.Workspace, id, func(s *sitting) error {
		who, err := s.override(p, in, strings.TrimSpace(reason))
		if err != nil {
			return d.refuse(s.Interaction, p.User, err)
		}
		s.say("interaction.override", seatUser+p.User, p.Means, "reason", reason)
		return d.raise(ctx, s, who)
	})
}

func (s *sitting) override(p identity.Principal, in Submission, reason string) (somebody, error) {
	who, err := s.people.principal(p)
	if err != nil {
		return who, err
	}
	switch late := s.open(); {
	case !has([]string{seatRole + string(identity.Admin)}, who.seats):
		return who, fault.New(fault.Forbidden, "only an admin may decide in the place of those who are asked")
	case s.Excludes(who.user):
		return who, fault.New(fault.Forbidden, "who started the execution may not decide this question; another admin may")
	case s.throughRequester(who.user, p.Means) != nil:
		return who, s.throughRequester(who.user, p.Means)
	case late != nil:
		return who, late
	case in.ArgumentsHash != "" && in.ArgumentsHash != s.ArgumentsHash:
		return who, fault.Say(fault.Conflict, notAsShown).With("arguments_hash", s.ArgumentsHash)
	case reason == "":
		return who, wrongAnswer("reason", text.Of("it is missing; say why you decide in the place of those who are asked"))
	}
	how := store.Origin{Means: p.Means, Ground: store.GroundOverride, Reason: reason}
	u, err := s.request.readByPurpose(s.Purpose, in.Data, p.User, timestamp(s.now), came(how))
	if err != nil {
		return who, err
	}
	earlier := s.votes()
	response := s.record(who, in.Channel, store.Response{Accepted: true, Data: u.kept, Classification: u.outcome, Origin: how})
	v := vote{
		person: who.key, holder: who.key, outcome: u.outcome, options: u.options, average: u.average, data: u.data, choice: u.choice,
		channel: response.Channel, at: s.now, origin: how,
	}
	s.progress.Override = &override{By: p.User, Reason: reason, Means: p.Means, At: s.now}
	if err := writeProgress(&s.begin().Interaction, s.progress); err != nil {
		return who, err
	}
	// Earlier answers stay in the record and decide nothing.
	return who, s.decided(verdict{ended: true, outcome: u.outcome, by: v}, append(earlier[:len(earlier):len(earlier)], v))
}

// Instead returns who decides in the place of others: an admin's override, and the votes that were handed on.
func Instead(i store.Interaction) (*api.InteractionOverride, []api.InteractionDelegation, error) {
	p, err := readProgress(i)
	if err != nil {
		return nil, nil, err
	}
	var decided *api.InteractionOverride
	if o := p.Override; o != nil {
		decided = &api.InteractionOverride{By: o.By, Reason: o.Reason, Means: o.Means, At: o.At}
	}
	var handed []api.InteractionDelegation
	for _, d := range p.Delegations {
		handed = append(handed, api.InteractionDelegation{From: d.From, To: d.To, By: d.By, Note: d.Note, Means: d.Means, At: d.At})
	}
	return decided, handed, nil
}
