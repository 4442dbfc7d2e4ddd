package human

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"tandem/identity"
	"tandem/store"
)

// listedMails are the mail addresses that the settings of a question list.
func listedMails(r Request) []string {
	var settings struct {
		Mails []string `json:"recipient_emails"`
	}
	// The channel checks settings of other forms; here they are ignored.
	_ = json.Unmarshal(r.Settings, &settings)
	return settings.Mails
}

// ofOthers says whether an address is known to belong to somebody else than the approver: a link there would let them answer
// in the approver's name.
func (b *backroom) ofOthers(ctx context.Context, i store.Interaction, address, approver string) (bool, error) {
	if address == "" || b.o.Users == nil {
		return false, nil
	}
	users, err := b.o.Users.List(ctx, identity.System(i.Workspace))
	if err != nil {
		return false, err
	}
	all := b.media.newPeople(users)
	there, err := all.at(address)
	if err != nil {
		return true, nil // of several users, or of one who is disabled
	}
	asked, err := all.at(approver)
	switch {
	case err != nil:
		return true, nil
	case there.user != "":
		return there.key != asked.key, nil
	case asked.user == "" && !b.media[i.Channel].SeveralIDs && strings.HasPrefix(approver, i.Channel+":"):
		return there.key != asked.key, nil
	}
	return false, nil
}

// recipient is where a message goes and who is asked there.
type recipient struct {
	to string // an address of the channel; empty: where the settings say
	// as is the approver who answers from there; empty: several people read it.
	as string
	// way is the account that the message goes through; nil: that of the question. After is how many seconds a question waits
	// in the inbox before the person gets a message there.
	way   *way
	after int64
}

// recipients returns where messages about a question go: to each approver that the channel can reach, or where its settings say.
func (b *backroom) recipients(ctx context.Context, i store.Interaction, r Request, approvers []string) ([]recipient, error) {
	if i.Channel == InApp || i.Channel == "" {
		return b.chosen(ctx, i, approvers)
	}
	set := b.media.place(i.Channel, r)
	one := recipient{} // where the settings say, or the credential
	if len(approvers) == 1 && personal(approvers[0]) && set.Private {
		others, err := b.ofOthers(ctx, i, addressSeat(i.Channel, set.Address), approvers[0])
		if err != nil {
			return nil, err
		}
		if !others {
			one.as = approvers[0]
		}
	}
	if set.Named {
		return []recipient{one}, nil
	}
	reach, err := b.reachable(ctx, i, approvers)
	if err != nil {
		return nil, err
	}
	if mails := listedMails(r); i.Channel == Email && len(mails) > 0 {
		if reach, err = b.named(ctx, i, r, mails, approvers, reach); err != nil {
			return nil, err
		}
	}
	if len(reach) == 0 {
		// If there is no such place, the channel reports what is missing, and the question shows it.
		return []recipient{one}, nil
	}
	return reach, nil
}

// named returns the recipients when the settings list mail addresses: the list, each address as its approver, and approvers who
// were added later and are not on the list. When only added approvers are asked, the list is left out.
func (b *backroom) named(ctx context.Context, i store.Interaction, r Request, mails, approvers []string,
	reach []recipient) ([]recipient, error) {
	first := func(a string) bool { return slices.Contains(r.Approvers, a) }
	if !slices.ContainsFunc(approvers, first) {
		return reach, nil
	}
	// An approver who was asked at first and is not any more has handed their vote on.
	before, err := b.reachable(ctx, i, r.Approvers)
	if err != nil {
		return nil, err
	}
	later, err := b.reachable(ctx, i, slices.DeleteFunc(slices.Clone(approvers), first))
	if err != nil {
		return nil, err
	}
	var list []recipient
	for _, mail := range mails {
		mail = strings.ToLower(strings.TrimSpace(mail))
		here := func(r recipient) bool { return r.to == mail }
		k := slices.IndexFunc(reach, here)
		switch {
		case mail == "" || slices.ContainsFunc(list, here):
		case k >= 0:
			list = append(list, reach[k])
		case !slices.ContainsFunc(before, here):
			list = append(list, recipient{to: mail})
		}
	}
	for _, one := range later {
		if !slices.ContainsFunc(list, func(r recipient) bool { return r.to == one.to }) {
			list = append(list, one)
		}
	}
	return list, nil
}

// personal says whether an approver is one person.
func personal(approver string) bool {
	return approver != Anyone && approver != Visitor && approver != "" && !strings.HasPrefix(approver, "role:")
}

// reachable finds the addresses of approvers in a channel.
func (b *backroom) reachable(ctx context.Context, i store.Interaction, approvers []string) ([]recipient, error) {
	var list []recipient
	add := func(to, as string) {
		if to != "" && !slices.ContainsFunc(list, func(r recipient) bool { return r.to == to }) {
			list = append(list, recipient{to: to, as: as})
		}
	}
	prefix := seatPrefix(i.Channel)
	ofUser := func(u identity.User, as string) {
		if u.Disabled || i.Excludes(u.ID) {
			return
		}
		for _, seat := range b.media.Seats(u) {
			if to, ok := strings.CutPrefix(seat, prefix); ok {
				add(to, as)
				return // one message is enough for a person
			}
		}
	}
	var everybody []identity.User
	for _, a := range approvers {
		if to, ok := strings.CutPrefix(a, prefix); ok {
			add(to, a)
			continue
		}
		switch kind, id, _ := strings.Cut(a, ":"); {
		case b.o.Users == nil:
		case kind == "user":
			u, err := b.o.Users.Get(ctx, identity.System(i.Workspace), id)
			if errors.Is(err, store.ErrNotFound) {
				continue // a user that was deleted is asked no more
			}
			if err != nil {
				return nil, err
			}
			ofUser(u, a)
		case kind == "role":
			if everybody == nil {
				var err error
				if everybody, err = b.o.Users.List(ctx, identity.System(i.Workspace)); err != nil {
					return nil, err
				}
			}
			for _, u := range everybody {
				if slices.Contains(u.Roles, identity.Role(id)) {
					ofUser(u, "user:"+u.ID)
				}
			}
		}
	}
	return list, nil
}
