package human

import (
	"context"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/human/replies"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// Overrule corrects how a reply in prose was understood. The reply counts no longer. If the submission has data, that counts
// instead, as the vote of the person who wrote the reply, and is recorded as another person's reading of it. Those who may answer
// the question may overrule replies of others; instead of their own they simply answer.
func (d *Desk) Overrule(ctx context.Context, p identity.Principal, id, response string, in Submission,
	reason string) (store.Interaction, error) {
	return d.decide(ctx, p.Workspace, id, func(s *sitting) error {
		if err := s.overrule(p, response, in, reason); err != nil {
			return d.refuse(s.Interaction, p.User, err)
		}
		s.say("interaction.overrule", seatUser+p.User, p.Means, "response", response, "reason", reason)
		return nil
	})
}

func (s *sitting) overrule(p identity.Principal, id string, in Submission, reason string) error {
	who, err := s.people.principal(p)
	if err != nil {
		return err
	}
	if e := s.mayAnswer(who); e != nil {
		return e
	}
	if e := s.open(); e != nil {
		return e
	}
	n := slices.IndexFunc(s.responses, func(one store.Response) bool { return one.ID == id })
	if n < 0 {
		return fault.Newf(fault.NotFound, "question %q has no reply %q", s.ID, id)
	}
	one := s.responses[n]
	switch {
	case one.Relevance == "":
		return fault.New(fault.Conflict, "only what somebody wrote in their own words can be overruled; this answer was given by form")
	case one.OverruledBy != "":
		return fault.Newf(fault.Conflict, "the reply was overruled by %q already", one.OverruledBy)
	case !one.Accepted && payload.IsNull(in.Data):
		return wrongAnswer("response_data", text.Of("the reply does not count; say what it means, or leave it"))
	case strings.TrimSpace(reason) == "":
		return wrongAnswer("reason", text.Of("it is missing; say why"))
	}
	from := one.Address
	if one.User != "" {
		from = seatUser + one.User
	}
	if from == who.key {
		return fault.New(fault.Forbidden, "it is your own reply; answer the question instead")
	}
	s.begin().Overrule = &store.Overruling{Response: one.ID, By: p.User,
		Overruled: store.Overruled{Reason: reason, Means: p.Means, At: s.now}}
	s.responses = slices.Clone(s.responses)
	s.responses[n].OverruledBy, s.cast = p.User, nil
	if payload.IsNull(in.Data) {
		return nil
	}
	switch {
	case s.request.Risk == "high":
		return fault.New(fault.Forbidden, "the risk is high: only an answer by form counts")
	case payload.IsNull(one.Factors):
		// It was never judged: its author is not known, or it is not from a person.
		return fault.New(fault.Forbidden, "the reply is not surely by who it says; it cannot count")
	}
	writer, err := s.people.at(from)
	if err != nil {
		return err
	}
	in.Channel = one.Channel
	return s.answer(writer, in, store.Response{
		Raw: one.Raw, Relevance: replies.Relevant, Score: one.Score, Factors: one.Factors, Reasoning: "as " + p.User + " says: " + reason,
		Origin: store.Origin{Means: one.Origin.Means, Ground: store.GroundReading, Reason: reason, ReadBy: p.User,
			ReadMeans: s.seatedBy(who, p.Means)},
	})
}
