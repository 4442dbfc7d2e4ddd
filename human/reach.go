package human

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/text"
)

// A question that names no channel is in the inbox, and besides goes to each person who may answer it where that person has
// chosen to be reached: through contact channels of the workspace, to addresses of their own. Everything else (links, reminders,
// escalation, replies, notices of the end) is as for questions of nodes that name a channel.

// way is the account that a message about a question in the inbox goes through.
type way struct {
	Channel string `json:"channel"`
	// Credential sends; In reads the replies, if it is another one.
	Credential string          `json:"credential,omitempty"`
	In         string          `json:"in,omitempty"`
	Settings   json.RawMessage `json:"settings,omitempty"`
}

// account is the account that receives replies to messages that went this way.
func (w way) account(workspace string) store.Account {
	a := store.Account{Workspace: workspace, Channel: w.Channel, Credential: w.Credential}
	if w.In != "" {
		a.Credential = w.In
	}
	return a
}

// takes says whether a reply by an account answers a message that went this way.
func (w way) takes(a store.Account) bool {
	return w.Channel == a.Channel && (w.Credential == a.Credential || w.In != "" && w.In == a.Credential)
}

// same says whether two ways go through the same account.
func (w way) same(o way) bool {
	return w.Channel == o.Channel && w.Credential == o.Credential && w.In == o.In
}

// through is the request as it stands in a message that goes a way: as if the question had named that channel.
func (r Request) through(w *way) Request {
	if w != nil {
		r.Channel, r.Credential, r.InCredential, r.Settings = w.Channel, w.Credential, w.In, w.Settings
	}
	return r
}

// wayOf is the way that a message went; nil: that of its question.
func wayOf(d store.Delivery) *way {
	var about note
	if len(d.Body) == 0 || json.Unmarshal(d.Body, &about) != nil { // what cannot be read was never sent
		return nil
	}
	return about.Way
}

// sameWay says whether two messages went through the same account.
func sameWay(a, b store.Delivery) bool {
	x, y := wayOf(a), wayOf(b)
	if x == nil || y == nil {
		return x == y
	}
	return x.same(*y)
}

// took notes the ways that messages go, so that replies by these accounts are looked for and taken.
func (p *progress) took(change *store.InteractionChange, to []recipient) {
	for _, one := range to {
		if one.way == nil || slices.ContainsFunc(p.Ways, one.way.same) {
			continue
		}
		p.Ways = append(p.Ways, way{Channel: one.way.Channel, Credential: one.way.Credential, In: one.way.In})
		if a := one.way.account(change.Interaction.Workspace); a.Credential != "" {
			change.Accounts = append(change.Accounts, a)
		}
	}
}

// wayFor is the way by which a reply came; nil: by the account of the question.
func (p progress) wayFor(a store.Account) *way {
	if n := slices.IndexFunc(p.Ways, func(w way) bool { return w.takes(a) }); n >= 0 {
		return &p.Ways[n]
	}
	return nil
}

// ways are those of a question, as far as they can be read.
func ways(i store.Interaction) []way {
	p, err := readProgress(i)
	if err != nil {
		return nil // the clock reports what is wrong with it
	}
	return p.Ways
}

// channel is the channel of a message to a recipient, when the question names one.
func (r recipient) channel(of string) string {
	if r.way != nil {
		return r.way.Channel
	}
	return of
}

// Accounts returns the accounts that receive replies to a question: that of the question, and those that the people who are asked have
// chosen.
func Accounts(i store.Interaction) []store.Account {
	var list []store.Account
	if i.Credential != "" {
		list = append(list, store.Account{Workspace: i.Workspace, Channel: i.Channel, Credential: i.Credential})
	}
	for _, w := range ways(i) {
		if a := w.account(i.Workspace); a.Credential != "" && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// Reaches says whether the people of a workspace can have chosen where questions reach them: only then has a question in the
// inbox to be looked at as soon as it is asked.
func (b *backroom) Reaches(ctx context.Context, workspace string) bool {
	if b.o.Contacts == nil {
		return false
	}
	list, err := b.o.Contacts.List(ctx, identity.System(workspace))
	return err != nil || len(list) > 0 // the clock tries again what cannot be read now
}

// chosen returns where messages about a question in the inbox go: for each person who is asked, the places that they have chosen.
func (b *backroom) chosen(ctx context.Context, i store.Interaction, approvers []string) ([]recipient, error) {
	if b.o.Contacts == nil || b.o.Users == nil {
		return nil, nil
	}
	system := identity.System(i.Workspace)
	channels, err := b.o.Contacts.List(ctx, system)
	if err != nil || len(channels) == 0 {
		return nil, err
	}
	users, err := b.o.Users.List(ctx, system)
	if err != nil {
		return nil, err
	}
	all := b.media.newPeople(users)
	asked, _ := all.asked(approvers)
	var list []recipient
	for _, key := range asked {
		n, ok := all.byID[strings.TrimPrefix(key, seatUser)]
		if !ok || !strings.HasPrefix(key, seatUser) || i.Excludes(users[n].ID) {
			continue
		}
		for _, c := range users[n].Contacts() {
			one, err := b.media.reached(users[n], c, channels)
			if err != nil {
				b.o.Log.Warn("somebody is not told of a question where they have chosen to be; it is in the inbox", "workspace", i.Workspace, "interaction", i.ID, "user", users[n].ID, "contact", c.Channel, "error", err)
				continue
			}
			if !slices.ContainsFunc(list, func(r recipient) bool { return r.to == one.to && r.way.same(*one.way) }) {
				list = append(list, one)
			}
		}
	}
	return list, nil
}

// reached returns the recipient of a user's contact. A message goes only to an address that is in the user's record: one that
// they have proved, or that an admin or their invitation has entered.
func (m Media) reached(u identity.User, c identity.Contact, channels []store.ContactChannel) (recipient, error) {
	n := slices.IndexFunc(channels, func(one store.ContactChannel) bool { return one.Name == c.Channel })
	if n < 0 {
		return recipient{}, fault.Newf(fault.NotFound, "there is no contact channel %q any more", c.Channel)
	}
	to, err := m.contactAddress(u, channels[n].Channel, c.Address)
	if err != nil {
		return recipient{}, err
	}
	w := way{Channel: channels[n].Channel, Credential: channels[n].Credential, In: channels[n].InCredential, Settings: channels[n].Settings}
	return recipient{to: to, as: seatUser + u.ID, way: &w, after: c.AfterSeconds}, nil
}

// contactAddress is an address of a user as the channel writes it, if it is one of theirs.
func (m Media) contactAddress(u identity.User, channel, address string) (string, error) {
	if m[channel].SpeaksForOthers {
		return u.ID, nil // the program that holds the secret knows people by their ids
	}
	to, ok := strings.CutPrefix(address, seatPrefix(channel))
	switch {
	case !ok || to == "":
		return "", fault.Newf(fault.Invalid, "%q is not an address in the channel %q", address, channel)
	case !slices.Contains(m.Addresses(u), address):
		return "", fault.Newf(fault.Forbidden, "the address %q is not one of the user's any more", address)
	}
	return to, nil
}

// seatPrefix is what the addresses of a channel begin with, written like approvers.
func seatPrefix(channel string) string {
	if channel == Email {
		return seatMail
	}
	return channel + ":"
}

// ContactProblem says why questions do not reach a user by one of their contacts; empty: they do.
func (m Media) ContactProblem(u identity.User, c identity.Contact, channels []store.ContactChannel) string {
	if _, err := m.reached(u, c, channels); err != nil {
		return fault.From(err).Message
	}
	return ""
}

// ContactAddress reads the address of one person in a channel, as its users write it: U024BE7LH, or slack:U024BE7LH. It is empty
// for a channel that needs none. An address that several people read is refused: a link there would let any of them answer.
func (m Media) ContactAddress(channel, address string) (string, error) {
	if m[channel].SpeaksForOthers {
		if strings.TrimSpace(address) != "" {
			return "", fault.Newf(fault.InvalidInput, "the channel %q needs no address; it knows people by their user ids", channel)
		}
		return "", nil
	}
	prefix := seatPrefix(channel)
	rest := strings.TrimSpace(address)
	if kind, after, named := strings.Cut(rest, ":"); named && (kind+":" == prefix || strings.EqualFold(kind, channel)) {
		rest = after
	}
	if strings.TrimSpace(rest) == "" {
		return "", fault.Newf(fault.InvalidInput, "say which address of yours in the channel %q is meant", channel)
	}
	seat, err := m.Address(prefix + rest)
	if err != nil {
		return "", err
	}
	if person := m[channel].Person; person != nil {
		if why := person(strings.TrimPrefix(seat, prefix)); why != "" {
			return "", fault.Newf(fault.InvalidInput, "%q is not the address of one person: %s", address, why)
		}
	}
	return seat, nil
}

// Proof is a message with a code, to an address that a user claims.
type Proof struct {
	Channel store.ContactChannel
	// Address is written like an approver.
	Address string
	Code    string
	// User is who claims it, Language what they read.
	User     string
	Language string
	// ID identifies the message.
	ID string
}

// SendProof sends a code. The user proves that the address is theirs by entering the code.
func (b *backroom) SendProof(ctx context.Context, workspace string, p Proof) error {
	channel := b.channels[p.Channel.Channel]
	if channel == nil {
		return fault.Newf(fault.InvalidConfig, "this instance has no channel %q", p.Channel.Channel)
	}
	w := way{Channel: p.Channel.Channel, Credential: p.Channel.Credential, In: p.Channel.InCredential, Settings: p.Channel.Settings}
	language := text.Language(p.Language)
	r := Request{Type: Approval, Language: language, Title: text.Of("Your code: %s", p.Code).In(language)}.through(&w)
	raw, err := payload.Marshal(map[string]string{"title": r.Title})
	if err != nil {
		return fault.Newf(fault.Internal, "the message with the code cannot be written: %w", err)
	}
	m := Message{
		Account: b.account(store.Account{Workspace: workspace, Channel: w.Channel, Credential: w.Credential}), ID: p.ID,
		Kind: KindProof, To: strings.TrimPrefix(p.Address, seatPrefix(w.Channel)),
		Interaction: store.Interaction{Workspace: workspace, ID: p.ID, Request: raw}, Request: r,
		Lines: []string{
			text.Of("The user %s wants questions from Tandem to be sent to this address.", p.User).In(language),
			text.Of("If that is you, enter the code in Tandem within %d minutes. If it is not, do nothing: nothing is sent here without the code.", ProofMinutes).In(language),
		},
		Data: map[string]any{"code": p.Code, "user_id": p.User},
	}
	_, err = b.sender.call(ctx, m)
	return err
}

// ProofMinutes is how long a code is valid.
const ProofMinutes = 30
