package human

import (
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// origin says how an answer came: by which means, and on what ground it counts if its author was not simply asked.
func (s *sitting) origin(who somebody, m identity.Means) store.Origin {
	o := store.Origin{Means: s.seatedBy(who, m)}
	if mayAnswer(s.Interaction, s.request, s.progress, who) != nil { // an admin is let in all the same, see [sitting.mayAnswer]
		o.Ground = store.GroundNobodyLeft
	}
	return o
}

// throughRequester refuses an answer that uses a token or an address that an excluded requester made: they could answer with it themselves.
func (s *sitting) throughRequester(user string, m identity.Means) error {
	makers := strings.Split(m.TokenMadeBy, ", ") // a token that was made with such a token names both
	for _, behind := range append(makers, m.AddressSetBy, m.AddressTokenMadeBy) {
		if behind != user && s.Excludes(behind) {
			return fault.Newf(fault.Forbidden, "%s may not answer this question and has made the token, or entered the address, that this answer comes by; answer with a token of your own or in the browser", behind)
		}
	}
	return nil
}

// seatedBy adds to the means of a user the address of theirs that lets them answer, if nothing else does: a person who enters
// an address in a user's record can make that user an approver.
func (s *sitting) seatedBy(who somebody, m identity.Means) identity.Means {
	if who.user == "" || s.progress.holds(who.seats) != "" {
		return m
	}
	address := ""
	for _, a := range s.Approvers {
		switch {
		case a == Anyone, a == who.key, strings.HasPrefix(a, seatRole) && has([]string{a}, who.seats):
			return m
		case address == "" && has([]string{a}, who.seats):
			address = a
		}
	}
	n, stored := s.people.byID[who.user]
	if address == "" || !stored {
		return m
	}
	if m.Address != address {
		m.KnownBy = address
	}
	return m.Through(s.people.users[n], address)
}

// channelMeans is how the sender of a reply proved who they are: by their account, or by a program that speaks for them.
func (s *sitting) channelMeans(who somebody, r Reply) identity.Means {
	m := identity.Means{Kind: identity.ByChannel, Address: addressSeat(r.Channel, r.From), Credential: r.Credential}
	if s.people.media[r.Channel].SpeaksForOthers {
		m.Kind = identity.ByWebhook
	}
	mail := addressSeat(Email, r.Mail)
	if m.Address == "" {
		m.Address = mail
	}
	n, stored := s.people.byID[who.user]
	if !stored {
		if who.account != "" { // known by an alias, which may move to another account
			m.KnownBy = who.address
		}
		return m
	}
	for _, address := range []string{m.Address, mail} {
		if address == "" || !has(s.people.media.Addresses(s.people.users[n]), []string{address}) {
			continue
		}
		if m = m.Through(s.people.users[n], address); address != m.Address {
			m.KnownBy = address
		}
		break
	}
	return m
}

// linkMeans is how an answer by a link that is sent to an address will be recorded. It is recorded when the link is made: the
// user's record may change later.
func (p *people) linkMeans(address, recipient string) identity.Means {
	m := identity.Means{Kind: identity.ByLink, Address: address}
	if n, stored := p.byID[strings.TrimPrefix(recipient, seatUser)]; stored && strings.HasPrefix(recipient, seatUser) {
		return m.Through(p.users[n], address)
	}
	return m
}

// theirs says whether an address belongs to an approver and to no one else: only they see a link that is sent there.
func (p *people) theirs(address, approver string) bool {
	if address == "" || approver == "" {
		return false
	}
	there, err := p.at(address)
	if err != nil {
		return false // of several users, or of one who is disabled
	}
	asked, err := p.at(approver)
	return err == nil && there.key == asked.key
}
