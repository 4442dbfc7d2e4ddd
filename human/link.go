package human

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

// The states of a link.
const (
	LinkOpen    = "open"
	LinkUsed    = "used"
	LinkExpired = "expired"
	LinkEnded   = "ended"
)

// LinkView is what somebody sees who opens a link. For an expired link it has only the id of the question.
type LinkView struct {
	Link        store.Link
	Interaction store.Interaction
	Request     Request
	State       string
	// Language is what the reader has set; empty: nothing, or the reader is not known.
	Language string
}

// link finds a link by its secret, which must not appear in errors or logs.
func (d *Desk) link(ctx context.Context, secret string) (store.Link, error) {
	l, err := d.o.Interactions.Link(ctx, identity.System(""), identity.HashSecret(secret))
	if fault.CodeOf(err) == fault.NotFound {
		return l, d.refuse(store.Interaction{}, "", fault.New(fault.NotFound, "there is no such link; ask for a new one"))
	}
	return l, err
}

// state returns the state of a link, and who answers by it. It counts as expired for those who may not answer any more.
func (s *sitting) state(l store.Link) (who somebody, state string, why error) {
	if who, why = s.holderOf(l); why != nil {
		return who, LinkExpired, why
	}
	late := s.open()
	switch {
	case !l.Reusable && l.Used != 0:
		return who, LinkUsed, fault.New(fault.Conflict, "the link was used already").With("state", LinkUsed).With("status", string(s.Status))
	case late != nil:
		return who, LinkEnded, late.With("state", LinkEnded)
	case l.Attempt != s.Attempt, l.Expires != 0 && s.now >= l.Expires:
		return who, LinkExpired, fault.New(fault.Conflict, "the link has expired; ask for a new one").With("state", LinkExpired)
	}
	return who, LinkOpen, nil
}

// holderOf is who answers by a link, if they still may.
func (s *sitting) holderOf(l store.Link) (somebody, error) {
	if l.Recipient == Anyone {
		if s.request.Access != "link" && s.request.Access != "public" {
			return somebody{}, fault.New(fault.Forbidden, "not everybody may answer this question")
		}
		// Each link stands for a person; a public form has many, and the first valid answer counts.
		seat := "link:" + hex.EncodeToString(l.Hash[:8])
		return somebody{key: seat, address: seat, seats: []string{Anyone}}, nil
	}
	who, err := s.people.at(l.Recipient)
	if err != nil {
		return who, err
	}
	if e := s.mayAnswer(who); e != nil {
		return who, e
	}
	return who, nil
}

// ViewLink shows the question of a link. It changes nothing.
func (d *Desk) ViewLink(ctx context.Context, secret string) (LinkView, error) {
	l, err := d.link(ctx, secret)
	if err != nil {
		return LinkView{}, err
	}
	s, err := d.sit(ctx, identity.System(l.Workspace), l.Interaction)
	if err != nil {
		return LinkView{}, err
	}
	view := LinkView{Link: l, Interaction: s.Interaction, Request: s.request, Language: s.people.reads(l.Recipient)}
	_, view.State, err = s.state(l)
	if view.State == LinkExpired {
		_ = d.refuse(s.Interaction, l.Recipient, err)
		// A person who may not answer any more does not see the question either.
		view.Interaction, view.Request = store.Interaction{ID: s.ID, Workspace: s.Workspace,
			Status: s.Status}, Request{Language: s.request.Language}
	}
	return view, nil
}

// RespondLink takes an answer by a link, which is used up by it if it is valid.
func (d *Desk) RespondLink(ctx context.Context, secret string, in Submission) (store.Interaction, error) {
	l, err := d.link(ctx, secret)
	if err != nil {
		return store.Interaction{}, err
	}
	return d.decide(ctx, l.Workspace, l.Interaction, func(s *sitting) error {
		l, err := d.link(ctx, secret) // it may have been used meanwhile
		if err != nil {
			return err
		}
		who, _, err := s.state(l)
		if err == nil {
			if in.Channel == "" {
				in.Channel = s.Channel
			}
			m := l.Means
			m.Kind = identity.ByLink // older links do not have them
			err = s.answer(who, in, store.Response{Origin: s.origin(who, m)})
		}
		if err != nil {
			return d.refuse(s.Interaction, l.Recipient, err)
		}
		if !l.Reusable {
			s.change.UseLink = &l.Hash
		}
		return d.raise(ctx, s, who)
	})
}

// NewLink is a link that somebody has asked for.
type NewLink struct {
	// URL is the link, if the caller may see it; Expires is when it ends.
	URL     string
	Expires int64
	// SentTo is the address of the recipient that it is sent to instead.
	SentTo string
}

// NewLink makes a link. One that everybody may use can be requested by the user who started the execution and by operators. One for
// a certain person answers in their name, so only they see it; an admin can have it sent to them, at one of their addresses.
func (d *Desk) NewLink(ctx context.Context, p identity.Principal, id, recipient string) (NewLink, error) {
	if d.o.PublicURL == "" {
		return NewLink{}, fault.New(fault.Unsupported, "links need a server that people can reach; start one with: tandem serve --public-url ADDRESS")
	}
	var made NewLink
	_, err := d.decide(ctx, p.Workspace, id, func(s *sitting) error {
		made = NewLink{}
		as, mine, err := s.linkFor(p, recipient)
		if err != nil {
			return d.refuse(s.Interaction, p.User, err)
		}
		if !mine {
			if made.SentTo, err = d.sendLink(ctx, s, p, as); err != nil {
				return d.refuse(s.Interaction, p.User, err)
			}
			s.say("interaction.send_link", seatUser+p.User, p.Means, "to", made.SentTo)
			return nil
		}
		shown := identity.Means{Kind: identity.ByLink, Token: p.Means.Token, TokenMadeBy: p.Means.TokenMadeBy}
		secret, l, ok := linkFor(s.Interaction, s.request, as, shown, time.UnixMilli(s.now))
		if !ok {
			return fault.Newf(fault.Internal, "there is no link for %q", recipient)
		}
		s.say("interaction.link", seatUser+p.User, p.Means, "for", as)
		s.begin().Links = []store.Link{l}
		made = NewLink{URL: linkURL(d.o.PublicURL, secret), Expires: l.Expires}
		return nil
	})
	if err != nil {
		return NewLink{}, err
	}
	return made, nil
}

// sendLink sends a message with a link to a person who is asked, in the channel of the question.
func (d *Desk) sendLink(ctx context.Context, s *sitting, p identity.Principal, as string) (string, error) {
	find, channel := d.reachable, s.Channel
	if s.Channel == InApp {
		find = d.chosen
	}
	to, err := find(ctx, s.Interaction, []string{as})
	if err != nil {
		return "", err
	}
	// It goes to the first of the places that they have chosen, programs left out.
	to = slices.DeleteFunc(to, func(r recipient) bool { return !s.people.theirs(addressSeat(r.channel(s.Channel), r.to), as) })
	switch {
	case len(to) == 0 && s.Channel == InApp:
		return "", fault.New(fault.Conflict, "the question is in the inbox only, and who the link is for has not chosen to be reached elsewhere, so there is nothing to send a link with; a link is shown to nobody else: they find the question in their inbox and can ask for a link themselves")
	case len(to) == 0:
		return "", fault.Newf(fault.Conflict, "%q has no address in the channel %q that a link could be sent to, and it is shown to nobody else; an admin can enter one in the user's addresses", as, s.Channel)
	}
	channel = to[0].channel(channel)
	sent, err := d.o.Interactions.Deliveries(ctx, identity.System(s.Workspace), s.ID)
	if err != nil {
		return "", err
	}
	for _, m := range sent {
		if wait := m.Created + remindPause - s.now; m.Channel == channel && m.Recipient == to[0].to && wantsAnswer(m.Kind) && wait > 0 {
			return "", fault.New(fault.RateLimited, "they were sent a message with a link less than a minute ago; wait a little").With("retry_after_ms", wait)
		}
	}
	one := recipient{to: to[0].to, as: as, way: to[0].way}
	change := s.begin()
	change.Deliveries = deliveries(s.Interaction, []recipient{one}, KindReminder, "a link asked for at "+timestamp(s.now), note{By: p.User}, s.now)
	s.progress.took(change, []recipient{one})
	return addressSeat(channel, one.to), writeProgress(&change.Interaction, s.progress)
}

// linkFor returns the person whom a requested link is for, and whether the caller may see it.
func (s *sitting) linkFor(p identity.Principal, recipient string) (as string, mine bool, err error) {
	if e := s.open(); e != nil {
		return "", false, e
	}
	me, err := s.people.principal(p)
	if err != nil {
		return "", false, err
	}
	open := s.request.Access == "link" || s.request.Access == "public"
	if open {
		if recipient != "" && recipient != Anyone {
			return "", false, wrongAnswer("recipient", text.Of("the links of this form are for anyone"))
		}
		return Anyone, true, s.operates(p)
	}
	if recipient == Anyone || recipient == "" {
		return "", false, wrongAnswer("recipient", text.Of("not everybody may answer this question; name one who may"))
	}
	who, err := s.people.named(recipient)
	if err == nil {
		if e := s.mayAnswer(who); e != nil {
			err = e
		}
	}
	switch {
	// The words of the refusal are meant for a person who answers, not for the caller.
	case fault.CodeOf(err) == fault.Forbidden && has(s.Approvers, who.seats):
		return "", false, wrongAnswer("recipient", text.Of("%q is asked but may not answer, as the one who has started the execution or having delegated the answer", recipient))
	case fault.CodeOf(err) == fault.Forbidden:
		return "", false, wrongAnswer("recipient", text.Of("%q may not answer this question; name one of those who are asked: %s", recipient, strings.Join(s.Approvers, ", ")))
	case err != nil:
		return "", false, wrongAnswer("recipient", text.Of("%q cannot answer: %s", recipient, fault.From(err).Message))
	case who.key != me.key && !has([]string{"role:admin"}, me.seats):
		return "", false, fault.New(fault.Forbidden, "a link answers in the name of who it is for; it is shown to nobody else, and only an admin can have it sent to them")
	}
	return who.key, who.key == me.key, nil
}
