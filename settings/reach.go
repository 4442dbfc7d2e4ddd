package settings

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"tandem/api"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/payload"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

const (
	// codeDigits, codeTries and codeLife make it hopeless to guess a code.
	codeDigits = 8
	codeTries  = 5
	codeLife   = human.ProofMinutes * 60_000
	// codePause is the least time between two codes to one address, codesAtMost to how many addresses of a user codes are sent within
	// codesSince.
	codePause   = 60_000
	codesAtMost = 5
	codesSince  = 60 * 60_000
)

// contactName is what the name of a contact channel looks like. It is read-only.
var contactName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

type (
	contactsOutput struct{ Body api.ContactChannels }
	contactOutput  struct{ Body api.ContactChannel }
	contactPut     struct {
		Name string `path:"name" maxLength:"100"`
		Body api.ContactChannelRequest
	}
	contactDelete struct {
		Name  string `path:"name" maxLength:"100"`
		Force bool   `query:"force" doc:"also when somebody has chosen it"`
	}
	reachInput struct {
		ID string `path:"id" maxLength:"128" doc:"of the user, or me"`
	}
	reachChange struct {
		ID   string `path:"id" maxLength:"128" doc:"of the user, or me"`
		Body api.ReachRequest
	}
	reachOutput    struct{ Body api.Reach }
	addressCreate  struct{ Body api.AddressRequest }
	addressConfirm struct{ Body api.AddressConfirmation }
	addressDelete  struct {
		Address string `path:"address" maxLength:"330" doc:"written as channel:address"`
	}
	proofOutput struct{ Body api.AddressProof }
)

// reach registers where questions reach people: the contact channels of the workspace, and what each user has chosen.
func (s *settings) reach() {
	op := route.Tagged("reach")
	put := op(http.MethodPut, "/contact-channels/{name}", "put-contact-channel", "Make or replace a contact channel")
	put.Description = "People who choose it are sent the questions that they may answer through this account, each to an address of their own."
	deleted := op(http.MethodDelete, "/contact-channels/{name}", "delete-contact-channel", "Remove a contact channel")
	deleted.Description = "Refused with a list while users have chosen it, unless forced. Their questions are in the inbox then."
	change := op(http.MethodPut, "/users/{id}/reach", "update-reach", "Say where questions reach a user")
	change.Description = "Everybody for themselves, an admin for all. One's own contacts are at addresses that one has proved, or that an admin or the invitation has entered; an address that an admin names for another user is entered in that user's record, with who did it."
	prove := op(http.MethodPost, "/users/me/addresses", "prove-address", "Have a code sent to an address of one's own")
	prove.DefaultStatus = http.StatusAccepted
	prove.Description = "The code is good for 30 minutes and five tries. With it the address becomes one's own and a contact."
	confirm := op(http.MethodPost, "/users/me/addresses/confirm", "confirm-address", "Prove an address with the code that was sent there")
	removed := op(http.MethodDelete, "/users/me/addresses/{address}", "delete-address", "Give up an address that one has proved")

	route.Handle(s.Router, op(http.MethodGet, "/contact-channels", "list-contact-channels", "List the contact channels by name"),
		route.Readers(), s.listContacts)
	route.Handle(s.Router, put, route.Admins(), s.putContact)
	route.Handle(s.Router, deleted, route.Admins(), s.deleteContact)
	route.Handle(s.Router, op(http.MethodGet, "/users/{id}/reach", "get-reach", "Read where questions reach a user"), route.Readers(),
		s.getReach)
	route.Handle(s.Router, route.Needs(change, identity.ScopeAdmin), route.Readers(), s.updateReach)
	route.Handle(s.Router, route.Needs(prove, identity.ScopeAdmin), route.Readers(), s.proveAddress)
	route.Handle(s.Router, route.Needs(confirm, identity.ScopeAdmin), route.Readers(), s.confirmAddress)
	route.Handle(s.Router, route.Needs(removed, identity.ScopeAdmin), route.Readers(), s.deleteAddress)
}

func (s *settings) listContacts(ctx context.Context, p identity.Principal, _ *struct{}) (*contactsOutput, error) {
	list, err := s.o.Stores.Contacts.List(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &contactsOutput{api.ContactChannels{Channels: make([]api.ContactChannel, len(list)), Media: []api.ContactMedium{}}}
	for n, c := range list {
		out.Body.Channels[n] = s.tellContact(c, p)
	}
	media := s.o.Desk.Media()
	for _, name := range media.Names() {
		if traits := media[name]; len(traits.Credentials) > 0 {
			out.Body.Media = append(out.Body.Media, api.ContactMedium{
				ChannelType: name, Credentials: traits.Credentials, ReadsWith: traits.ReadsWith, NeedsURL: traits.NeedsURL})
		}
	}
	return out, nil
}

// tellContact describes a contact channel. Only admins see the address of a program.
func (s *settings) tellContact(c store.ContactChannel, p identity.Principal) api.ContactChannel {
	out := api.ContactChannel{
		Name: c.Name, ChannelType: c.Channel, CredentialID: c.Credential, InCredentialID: c.InCredential,
		NeedsAddress: !s.o.Desk.Media()[c.Channel].SpeaksForOthers,
		CreatedBy:    c.CreatedBy, CreatedTime: c.Created, UpdatedTime: c.Updated,
	}
	if p.Has(identity.Admin) {
		out.WebhookURL = webhookURL(c)
	}
	return out
}

func webhookURL(c store.ContactChannel) string {
	var settings struct {
		URL string `json:"webhook_url"`
	}
	if len(c.Settings) == 0 || json.Unmarshal(c.Settings, &settings) != nil {
		return "" // it has none
	}
	return settings.URL
}

// contact reads a contact channel. If there is none, the error names similar ones.
func (s *settings) contact(ctx context.Context, p identity.Principal, name string) (store.ContactChannel, error) {
	c, err := s.o.Stores.Contacts.Get(ctx, p, name)
	if !errors.Is(err, store.ErrNotFound) {
		return c, err
	}
	list, err := s.o.Stores.Contacts.List(ctx, p)
	if err != nil {
		return c, err
	}
	if len(list) == 0 {
		return c, fault.Newf(fault.NotFound, "there is no contact channel %q; an admin makes one with: tandem contact-channels set %s --credential NAME", name, name)
	}
	names := make([]string, len(list))
	for n, one := range list {
		names[n] = one.Name
	}
	return c, fault.Newf(fault.NotFound, "there is no contact channel %q%s", name, route.DidYouMean(name, names))
}

func (s *settings) putContact(ctx context.Context, p identity.Principal, in *contactPut) (*contactOutput, error) {
	if !contactName.MatchString(in.Name) {
		return nil, api.WrongField("name", "%q is not a name; use letters, digits, _, . and -", in.Name)
	}
	s.accounts.Lock()
	defer s.accounts.Unlock()
	before, err := s.o.Stores.Contacts.Get(ctx, p, in.Name)
	known := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	now := s.NowMS()
	c := store.ContactChannel{Workspace: p.Workspace, Name: in.Name, CreatedBy: p.User, Created: now, Updated: now}
	if known {
		c.CreatedBy, c.Created = before.CreatedBy, before.Created
	}
	if err := s.readContact(ctx, p, &c, in.Body); err != nil {
		return nil, err
	}
	var was any
	if known {
		was = auditedContact(before)
	}
	if err := s.o.Stores.Contacts.Put(route.Audited(ctx, "contact_channel.put", c.Name, was, auditedContact(c)), p, c); err != nil {
		return nil, err
	}
	return &contactOutput{s.tellContact(c, p)}, nil
}

// readContact reads the request of an admin, and checks that people can be reached by the channel.
func (s *settings) readContact(ctx context.Context, p identity.Principal, c *store.ContactChannel, in api.ContactChannelRequest) error {
	media := s.o.Desk.Media()
	kind := ""
	if in.CredentialID != "" {
		found, err := s.credential(ctx, p, in.CredentialID)
		if err != nil {
			return api.WrongField("credential_id", "%s", text.OfError(fault.From(err)))
		}
		c.Credential, kind = found.ID, found.Type
	}
	c.Channel = in.ChannelType
	if c.Channel == "" && kind != "" {
		for _, name := range media.Names() {
			if slices.Contains(media[name].Credentials, kind) {
				c.Channel = name
			}
		}
	}
	traits, ok := media[c.Channel]
	switch {
	case c.Channel == "" && kind != "":
		return api.WrongField("credential_id", "people cannot be reached with a credential of the type %q; name one of a mail account or of a bot", kind)
	case c.Channel == "":
		return api.WrongField("credential_id", "it is missing; name the credential of the account that messages are sent with")
	case !ok:
		return api.WrongField("channel_type", "there is no channel %q%s", c.Channel, route.DidYouMean(c.Channel, media.Names()))
	case len(traits.Credentials) > 0 && !slices.Contains(traits.Credentials, kind):
		return api.WrongField("credential_id", "the channel %q sends with a credential of the type %s", c.Channel, strings.Join(traits.Credentials, " or "))
	case traits.NeedsURL && in.WebhookURL == "":
		return api.WrongField("webhook_url", "it is missing; say where questions are posted to")
	case !traits.NeedsURL && in.WebhookURL != "":
		return api.WrongField("webhook_url", "the channel %q is not reached by an address; leave it out", c.Channel)
	case in.InCredentialID != "" && len(traits.ReadsWith) == 0:
		return api.WrongField("in_credential_id", "the channel %q reads replies with the credential that it sends with; leave it out", c.Channel)
	}
	if in.InCredentialID != "" {
		found, err := s.credential(ctx, p, in.InCredentialID)
		if err != nil {
			return api.WrongField("in_credential_id", "%s", text.OfError(fault.From(err)))
		}
		if !slices.Contains(traits.ReadsWith, found.Type) {
			return api.WrongField("in_credential_id", "the channel %q reads with a credential of the type %s, and %q is a %s", c.Channel, strings.Join(traits.ReadsWith, " or "), found.Name, found.Type)
		}
		c.InCredential = found.ID
	}
	if in.WebhookURL != "" {
		raw, err := payload.Marshal(map[string]string{"webhook_url": in.WebhookURL})
		if err != nil {
			return err
		}
		c.Settings = raw
	}
	return nil
}

func (s *settings) deleteContact(ctx context.Context, p identity.Principal, in *contactDelete) (*route.Nothing, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	c, err := s.contact(ctx, p, in.Name)
	if err != nil {
		return nil, err
	}
	users, err := s.o.Stores.Users.List(ctx, p)
	if err != nil {
		return nil, err
	}
	var chosen []string
	for _, u := range users {
		if slices.ContainsFunc(u.Contacts(), func(one identity.Contact) bool { return one.Channel == c.Name }) {
			chosen = append(chosen, u.ID)
		}
	}
	if len(chosen) > 0 && !in.Force {
		return nil, fault.Newf(fault.Conflict, "users have chosen the contact channel %q: %s; let them choose another, or remove it with force=true", c.Name, strings.Join(chosen, ", "))
	}
	return nil, s.o.Stores.Contacts.Delete(route.Audited(ctx, "contact_channel.delete", c.Name, auditedContact(c), nil), p, c.Name)
}

// auditedContact is how the audit log describes a contact channel. The address of a program may hold a secret.
func auditedContact(c store.ContactChannel) any {
	out := map[string]any{"channel_type": c.Channel}
	if c.Credential != "" {
		out["credential_id"] = c.Credential
	}
	if c.InCredential != "" {
		out["in_credential_id"] = c.InCredential
	}
	return out
}

// whose returns the user whose reach is meant: users manage their own, admins also that of others. Stored is false for a caller in this
// process who is not stored yet.
func (s *settings) whose(ctx context.Context, p identity.Principal, id string) (u identity.User, stored bool, err error) {
	if id == "me" || id == p.User {
		return s.me(ctx, p)
	}
	if !p.Has(identity.Admin) {
		return u, false, fault.Newf(fault.Forbidden, "where questions reach %q is for that user and for admins", id)
	}
	u, err = s.o.Stores.Users.Get(ctx, p, id)
	return u, true, err
}

func (s *settings) getReach(ctx context.Context, p identity.Principal, in *reachInput) (*reachOutput, error) {
	u, _, err := s.whose(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	return s.tellReach(ctx, p, u)
}

func (s *settings) tellReach(ctx context.Context, p identity.Principal, u identity.User) (*reachOutput, error) {
	media := s.o.Desk.Media()
	channels, err := s.o.Stores.Contacts.List(ctx, p)
	if err != nil {
		return nil, err
	}
	proofs, err := s.o.Stores.Proofs.List(ctx, p, u.ID)
	if err != nil {
		return nil, err
	}
	out := &reachOutput{api.Reach{UserID: u.ID, Contacts: []api.Contact{}, Language: u.Language(), Addresses: media.Addresses(u),
		Proofs: []api.AddressProof{}}}
	if out.Body.Addresses == nil {
		out.Body.Addresses = []string{}
	}
	for _, c := range u.Contacts() {
		out.Body.Contacts = append(out.Body.Contacts, api.Contact{Channel: c.Channel, Address: c.Address, AfterSeconds: c.AfterSeconds,
			Problem: media.ContactProblem(u, c, channels)})
	}
	for _, one := range proofs {
		if one.Expires > s.NowMS() && one.Tries < codeTries {
			out.Body.Proofs = append(out.Body.Proofs, tellProof(one))
		}
	}
	return out, nil
}

func tellProof(one store.AddressProof) api.AddressProof {
	return api.AddressProof{Address: one.Address, Channel: one.Contact, ExpiresTime: one.Expires}
}

func (s *settings) updateReach(ctx context.Context, p identity.Principal, in *reachChange) (*reachOutput, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	u, stored, err := s.whose(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	before := auditedUser(u)
	contacts := []identity.Contact{}
	for n, c := range in.Body.Contacts {
		at := fmt.Sprintf("contacts[%d]", n)
		channel, err := s.contact(ctx, p, c.Channel)
		if err != nil {
			return nil, api.WrongField(at+".channel", "%s", text.OfError(fault.From(err)))
		}
		address, err := s.o.Desk.Media().ContactAddress(channel.Channel, c.Address)
		if err != nil {
			return nil, api.WrongField(at+".address", "%s", text.OfError(fault.From(err)))
		}
		if slices.ContainsFunc(contacts, func(o identity.Contact) bool { return o.Channel == c.Channel && o.Address == address }) {
			return nil, api.WrongField(at, "the same place is there twice")
		}
		if err := s.ownAddress(ctx, p, &u, c.Channel, address); err != nil {
			return nil, api.WrongField(at+".address", "%s", text.OfError(fault.From(err)))
		}
		contacts = append(contacts, identity.Contact{Channel: c.Channel, Address: address, AfterSeconds: c.AfterSeconds})
	}
	if err := u.SetContacts(contacts); err != nil {
		return nil, err
	}
	if in.Body.Language != nil {
		if err := u.SetLanguage(*in.Body.Language); err != nil {
			return nil, err
		}
	}
	if err := s.keepUser(ctx, p, u, stored, before); err != nil {
		return nil, err
	}
	return s.tellReach(ctx, p, u)
}

// ownAddress makes sure that an address belongs to the user. An admin enters one for another user; users have to prove their own.
func (s *settings) ownAddress(ctx context.Context, p identity.Principal, u *identity.User, channel, address string) error {
	if address == "" || slices.Contains(s.o.Desk.Media().Addresses(*u), address) {
		return nil
	}
	if u.ID == p.User {
		return fault.Newf(fault.Conflict, "nobody knows that %q is yours; have a code sent there first: tandem me reach add %s %s", address, channel, strings.TrimPrefix(address, "mail:"))
	}
	return s.enterAddress(ctx, p, u, address)
}

// enterAddress adds an address to a user's record, with who entered it. It refuses one that another user has: it would identify neither of
// them.
func (s *settings) enterAddress(ctx context.Context, p identity.Principal, u *identity.User, address string) error {
	users, err := s.o.Stores.Users.List(ctx, p)
	if err != nil {
		return err
	}
	media := s.o.Desk.Media()
	for _, other := range users {
		if other.ID != u.ID && slices.Contains(media.Addresses(other), address) {
			return fault.Newf(fault.Conflict, "the address %q is that of another user; ask an admin", address)
		}
	}
	origins := u.AddressOrigins()
	if origins == nil {
		origins = map[string]identity.AddressOrigin{}
	}
	if err := setAddresses(u, media, append(slices.Clone(addressesOf(*u)), address)); err != nil {
		return err
	}
	origins[address] = identity.AddressOrigin{By: p.User, TokenMadeBy: p.TokenMadeBy(), At: s.NowMS()}
	return u.SetAddressOrigins(origins)
}

// keepUser stores what has changed of a user, with the entry of the audit log.
func (s *settings) keepUser(ctx context.Context, p identity.Principal, u identity.User, stored bool, before any) error {
	u.Updated = s.NowMS()
	ctx = route.Audited(ctx, "user.update", u.ID, before, auditedUser(u))
	if stored {
		return s.o.Stores.Users.Update(ctx, p, u)
	}
	u.Created = u.Updated // without roles: it counts as nobody's admin
	return s.enter(ctx, p, u)
}

// proveAddress sends a code to an address that the caller says is theirs.
func (s *settings) proveAddress(ctx context.Context, p identity.Principal, in *addressCreate) (*proofOutput, error) {
	u, stored, err := s.me(ctx, p)
	if err != nil {
		return nil, err
	}
	if !stored {
		return nil, fault.New(fault.Conflict, "the user who runs commands on the machine of the data has no addresses; log in as another user")
	}
	media := s.o.Desk.Media()
	channel, err := s.contact(ctx, p, in.Body.Channel)
	if err != nil {
		return nil, api.WrongField("channel", "%s", text.OfError(fault.From(err)))
	}
	address, err := media.ContactAddress(channel.Channel, in.Body.Address)
	switch {
	case err != nil:
		return nil, api.WrongField("address", "%s", text.OfError(fault.From(err)))
	case address == "":
		return nil, api.WrongField("channel", "the contact channel %q needs no address, so there is nothing to prove; choose it as it is", channel.Name)
	case slices.Contains(media.Addresses(u), address):
		return nil, api.WrongField("address", "%q is known to be yours; choose it as it is", address)
	}
	now := s.NowMS()
	earlier, err := s.o.Stores.Proofs.List(ctx, p, u.ID)
	if err != nil {
		return nil, err
	}
	for _, one := range earlier {
		if wait := one.Created + codePause - now; one.Address == address && wait > 0 {
			return nil, fault.Newf(fault.RateLimited, "a code was sent to %q less than a minute ago; look there, or wait a little", address).With("retry_after_ms", wait)
		}
	}
	code, err := newCode()
	if err != nil {
		return nil, err
	}
	proof := store.AddressProof{Workspace: p.Workspace, User: u.ID, Address: address, Contact: channel.Name,
		Hash: identity.HashSecret(code), Created: now, Expires: now + codeLife}
	ctx = route.Audited(ctx, "user.prove_address", u.ID, nil, map[string]any{"address": address, "contact_channel": channel.Name})
	if err := s.o.Stores.Proofs.Begin(ctx, p, proof, store.ProofLimit{Most: codesAtMost, Since: now - codesSince}); err != nil {
		return nil, err
	}
	message := human.Proof{Channel: channel, Address: address, Code: code, User: cmp.Or(u.Name, u.ID),
		Language: u.Language(), ID: route.NewID("proof")}
	if err := s.o.Desk.SendProof(ctx, p.Workspace, message); err != nil {
		e := fault.From(err)
		return nil, fault.Newf(fault.DeliveryFailed, "the code could not be sent to %q through %q: %s", address,
			channel.Name, e.Message).WithCause(err)
	}
	return &proofOutput{tellProof(proof)}, nil
}

// newCode makes a code that people can type.
func newCode() (string, error) {
	most := big.NewInt(1)
	for range codeDigits {
		most.Mul(most, big.NewInt(10))
	}
	n, err := rand.Int(rand.Reader, most)
	if err != nil {
		return "", fault.Newf(fault.Internal, "a code cannot be made: %w", err)
	}
	return fmt.Sprintf("%0*d", codeDigits, n), nil
}

// confirmAddress takes a code: the address is the caller's from then on, and one of their contacts.
func (s *settings) confirmAddress(ctx context.Context, p identity.Principal, in *addressConfirm) (*reachOutput, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	u, stored, err := s.me(ctx, p)
	if err != nil {
		return nil, err
	}
	address, err := s.sentTo(ctx, p, u, in.Body.Address)
	if err != nil {
		return nil, err
	}
	proof, err := s.o.Stores.Proofs.Try(store.WithoutEntries(ctx), p, u.ID, address)
	if err != nil {
		return nil, err
	}
	given := identity.HashSecret(strings.Join(strings.Fields(in.Body.Code), ""))
	switch {
	case proof.Expires <= s.NowMS():
		return nil, api.WrongField("code", "the code has expired; have another one sent")
	case proof.Tries > codeTries:
		return nil, api.WrongField("code", "there were too many tries; have another code sent")
	case subtle.ConstantTimeCompare(given[:], proof.Hash[:]) != 1:
		return nil, api.WrongField("code", "it is not the code that was sent to %q; %d tries are left", address, codeTries-proof.Tries)
	}
	before := auditedUser(u)
	if err := s.enterAddress(ctx, p, &u, address); err != nil {
		return nil, err
	}
	contacts := u.Contacts()
	if !slices.ContainsFunc(contacts, func(c identity.Contact) bool { return c.Channel == proof.Contact && c.Address == address }) {
		contacts = append(contacts, identity.Contact{Channel: proof.Contact, Address: address})
	}
	if err := u.SetContacts(contacts); err != nil {
		return nil, err
	}
	if err := s.keepUser(ctx, p, u, stored, before); err != nil {
		return nil, err
	}
	if err := s.o.Stores.Proofs.Delete(store.WithoutEntries(ctx), p, u.ID, address); err != nil {
		return nil, err
	}
	return s.tellReach(ctx, p, u)
}

// sentTo is the address that a code was sent to, as it is kept, for what the user has written.
func (s *settings) sentTo(ctx context.Context, p identity.Principal, u identity.User, text string) (string, error) {
	proofs, err := s.o.Stores.Proofs.List(ctx, p, u.ID)
	if err != nil {
		return "", err
	}
	for _, one := range proofs {
		channel, err := s.o.Stores.Contacts.Get(ctx, p, one.Contact)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
		if address, aerr := s.o.Desk.Media().ContactAddress(channel.Channel, text); one.Address == text || err == nil &&
			aerr == nil && address == one.Address {
			return one.Address, nil
		}
	}
	return "", api.WrongField("address", "no code was sent to %q, or it was long ago; have one sent", text)
}

func (s *settings) deleteAddress(ctx context.Context, p identity.Principal, in *addressDelete) (*reachOutput, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	u, stored, err := s.me(ctx, p)
	if err != nil {
		return nil, err
	}
	media := s.o.Desk.Media()
	address, err := media.Address(in.Address)
	if err != nil {
		address = in.Address // what is not an address is not among them either
	}
	list := addressesOf(u)
	n := slices.Index(list, address)
	origins := u.AddressOrigins()
	switch o, known := origins[address]; {
	case n < 0:
		return nil, fault.Newf(fault.NotFound, "%q is not among the addresses that you have proved", address)
	case !known || o.By != u.ID:
		return nil, fault.Newf(fault.Forbidden, "an admin has entered %q; ask them to remove it", address)
	}
	before := auditedUser(u)
	if err := setAddresses(&u, media, slices.Delete(slices.Clone(list), n, n+1)); err != nil {
		return nil, err
	}
	delete(origins, address)
	if err := u.SetAddressOrigins(origins); err != nil {
		return nil, err
	}
	if err := u.SetContacts(slices.DeleteFunc(u.Contacts(), func(c identity.Contact) bool { return c.Address == address })); err != nil {
		return nil, err
	}
	if err := s.keepUser(ctx, p, u, stored, before); err != nil {
		return nil, err
	}
	return s.tellReach(ctx, p, u)
}
