package human

import (
	"encoding/json"
	"maps"
	"slices"
)

// Traits are what the desk has to know about a channel besides how it sends and receives. The zero value is that of a channel
// whose addresses are compared as they are written, and whose settings say nothing about where messages go.
type Traits struct {
	// Credentials are the types of credentials that it sends with; none: it needs no credential.
	Credentials []string
	// ReadsWith are the types of credentials that replies can be read with, besides the one that it sends with; none: there is no other.
	ReadsWith []string
	// Normal writes an address of the channel in its one form, so that the ways in which people write it are the same; nil: there
	// is only one way.
	Normal func(address string) string
	// Place reads where the settings of a question send its messages; nil: they do not say.
	Place func(settings json.RawMessage) Place
	// SeveralIDs says that one person has several addresses in the channel, so that two that differ may be of the same person.
	SeveralIDs bool
	// TakesURL says that a question can bring the address that its messages are sent to, as webhook_url.
	TakesURL bool
	// NeedsURL says that it must.
	NeedsURL bool
	// Person says why an address of the channel does not belong to one person, and how to write one that does; empty: it does. Nil: every
	// address does.
	Person func(address string) (why string)
	// SpeaksForOthers says that replies come from a program that has the secret of an account and names the person who has
	// answered. Other channels know the sender themselves.
	SpeaksForOthers bool
}

// Place is where the settings of a question send its messages to.
type Place struct {
	// Named says that the settings name a place. Otherwise messages go to the addresses of those who are asked.
	Named bool
	// Private says that only one person, or a program that is trusted with a secret, reads what is sent there. A message that
	// several people read must not have a link that answers in one person's name.
	Private bool
	// Address is the address of the person who reads what is sent to a private place; empty: it is not known.
	Address string
}

// Particular is a [Channel] that has [Traits].
type Particular interface {
	Channel
	// Traits are always the same.
	Traits() Traits
}

// Media are the traits of channels by name: what is known about the ways to reach people. The nil Media has none, which is
// enough to check a question. It is read-only.
type Media map[string]Traits

// MediaOf returns the media of channels.
func MediaOf(channels ...Channel) Media {
	m := Media{}
	for _, c := range channels {
		t := Traits{}
		if p, ok := c.(Particular); ok {
			t = p.Traits()
		}
		m[c.Name()] = t
	}
	return m
}

// Names are the channels, sorted.
func (m Media) Names() []string { return slices.Sorted(maps.Keys(m)) }

// place is where the settings of a question send its messages to.
func (m Media) place(channel string, r Request) Place {
	read := m[channel].Place
	if read == nil {
		return Place{}
	}
	return read(r.Settings)
}

// seatOf is the address of the person who reads what is sent to a private place, written like an approver; empty: it is not known.
func (m Media) seatOf(channel string, r Request) string {
	return addressSeat(channel, m.place(channel, r).Address)
}
