package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/console/table"
	"tandem/fault"
)

// PrintContactChannels lists contact channels.
func PrintContactChannels(w *tabwriter.Writer, list []api.ContactChannel) {
	table.Row(w, "NAME", "CHANNEL", "CREDENTIAL", "REPLIES", "ADDRESS")
	for _, c := range list {
		replies := c.InCredentialID
		if replies == "" {
			replies = "the same"
		}
		table.Row(w, table.OneLine(c.Name), c.ChannelType, c.CredentialID, replies,
			map[bool]string{true: "each user's own", false: "none"}[c.NeedsAddress])
	}
}

// PrintReach shows where questions reach a user.
func PrintReach(w *tabwriter.Writer, r api.Reach) {
	if len(r.Contacts) == 0 {
		fmt.Fprintf(w, "questions are in the inbox of %s only; \"tandem me reach add\" chooses another place\n", table.OneLine(r.UserID))
	} else {
		table.Row(w, "CHANNEL", "ADDRESS", "AFTER", "PROBLEM")
		for _, c := range r.Contacts {
			after := "at once"
			if c.AfterSeconds > 0 {
				after = (time.Duration(c.AfterSeconds) * time.Second).String()
			}
			table.Row(w, table.OneLine(c.Channel), table.OneLine(c.Address), after, table.OneLine(c.Problem))
		}
	}
	for _, p := range r.Proofs {
		fmt.Fprintf(w, "a code was sent to %s; it is good until %s\n", table.OneLine(p.Address), table.Time(p.ExpiresTime))
	}
}

// AddContact adds a place to those where questions reach a user. An address that has to be proved is sent a code instead, which
// is returned by the proof.
func AddContact(ctx context.Context, c *client.Client, user string, contact api.Contact) (api.Reach, *api.AddressProof, error) {
	now, err := c.Reach(ctx, user)
	if err != nil {
		return now, nil, err
	}
	known := slices.ContainsFunc(now.Addresses, func(a string) bool {
		return isContact(api.Contact{Address: a}, "", contact.Address)
	})
	if user == "me" && contact.Address != "" && !known {
		proof, err := c.ProveAddress(ctx, api.AddressRequest{Channel: contact.Channel, Address: contact.Address})
		return now, &proof, err
	}
	contacts := slices.DeleteFunc(now.Contacts, func(o api.Contact) bool { return isContact(o, contact.Channel, contact.Address) })
	r, err := c.UpdateReach(ctx, user, api.ReachRequest{Contacts: append(contacts, contact)})
	return r, nil, err
}

// RemoveContact takes a place from those where questions reach a user; without an address every one of the channel.
func RemoveContact(ctx context.Context, c *client.Client, user, channel, address string) (api.Reach, error) {
	now, err := c.Reach(ctx, user)
	if err != nil {
		return now, err
	}
	kept := slices.DeleteFunc(slices.Clone(now.Contacts), func(o api.Contact) bool {
		return address == "" && o.Channel == channel || isContact(o, channel, address)
	})
	if len(kept) == len(now.Contacts) {
		return now, fault.Newf(fault.NotFound, "questions do not reach %s through %q", now.UserID, channel)
	}
	return c.UpdateReach(ctx, user, api.ReachRequest{Contacts: kept})
}

// isContact says that a contact is the one that somebody means, who may leave out what kind of address it is.
func isContact(o api.Contact, channel, address string) bool {
	_, bare, _ := strings.Cut(o.Address, ":")
	return o.Channel == channel && (o.Address == address || strings.EqualFold(bare, address))
}
