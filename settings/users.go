package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tandem/api"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// Bounds of what is kept about a user.
const (
	maxUserName  = 200
	maxEmail     = 320
	maxTokenLife = 100 * 365 * 24 * 3600 // seconds
)

// localUser is the user of commands without a server, see [As]. Only its settings are stored.
const localUser = identity.LocalUser

// accounts serializes changes that depend on what was read: who the last admin is, what a credential held before. There is
// one server per data directory, so a lock of the process is enough.
type accounts struct{ sync.Mutex }

type (
	userInput struct {
		ID string `path:"id" maxLength:"128"`
	}
	userChange struct {
		ID   string `path:"id" maxLength:"128"`
		Body api.UserRequest
	}
	userCreate  struct{ Body api.UserRequest }
	userOutput  struct{ Body api.User }
	meChange    struct{ Body api.MeRequest }
	usersOutput struct{ Body api.Users }

	tokenCreate struct {
		ID   string `path:"id" maxLength:"128" doc:"of the user, or me"`
		Body api.TokenRequest
	}
	tokenInput struct {
		ID    string `path:"id" maxLength:"128" doc:"of the user, or me"`
		Token string `path:"token" maxLength:"128"`
	}
	tokensOutput   struct{ Body api.Tokens }
	newTokenOutput struct{ Body api.NewToken }
)

// users registers the users of the workspace and their tokens.
func (s *settings) users() {
	op := route.Tagged("users")
	created := op(http.MethodPost, "/users", "create-user", "Make a user")
	created.DefaultStatus = http.StatusCreated
	created.Description = "Without an id one is made. The user can do nothing before it has a token."
	deleted := op(http.MethodDelete, "/users/{id}", "delete-user", "Remove a user and its tokens")
	deleted.Description = "What the user made stays. The last admin cannot be removed."
	issued := op(http.MethodPost, "/users/{id}/tokens", "create-token", "Make a token")
	issued.DefaultStatus = http.StatusCreated
	issued.Description = "The secret is in this answer and nowhere else. Everybody may make tokens for themselves, an admin for all. Who made a token is kept with it, and shown wherever it is used by another: made_by. " +
		"A token that is made with a token of somebody else's making is theirs, too."

	mine := op(http.MethodPatch, "/users/me", "update-me", "Change settings of one's own")
	mine.Description = "What is left out stays as it is. With auto_execute, tasks of agents that allow it too call tools of low risk without a confirmation."

	route.Handle(s.Router, op(http.MethodGet, "/users/me", "get-me", "Read who the token belongs to"), route.Readers(), s.getMe)
	route.Handle(s.Router, route.Needs(mine, identity.ScopeAdmin), route.Readers(), s.updateMe)
	route.Handle(s.Router, op(http.MethodGet, "/users", "list-users", "List users by id"), route.Admins(), s.listUsers)
	route.Handle(s.Router, created, route.Admins(), s.createUser)
	route.Handle(s.Router, op(http.MethodGet, "/users/{id}", "get-user", "Read a user"), route.Admins(), s.getUser)
	route.Handle(s.Router, op(http.MethodPut, "/users/{id}", "update-user", "Change a user"), route.Admins(), s.updateUser)
	route.Handle(s.Router, deleted, route.Admins(), s.deleteUser)
	route.Handle(s.Router, op(http.MethodGet, "/users/{id}/tokens", "list-tokens", "List a user's tokens, without their secrets"),
		route.Readers(), s.listTokens)
	route.Handle(s.Router, route.Needs(issued, identity.ScopeAdmin), route.Readers(), s.createToken)
	route.Handle(s.Router, route.Needs(op(http.MethodDelete, "/users/{id}/tokens/{token}", "delete-token", "Take a token out of use"),
		identity.ScopeAdmin), route.Readers(), s.deleteToken)
}

func (s *settings) getMe(ctx context.Context, p identity.Principal, _ *struct{}) (*userOutput, error) {
	u, _, err := s.me(ctx, p)
	if err != nil {
		return nil, err
	}
	return tellMe(u, p), nil
}

// me is the caller. Anyone who has a token is in the store; a caller in this process need not be, see [As].
func (s *settings) me(ctx context.Context, p identity.Principal) (u identity.User, stored bool, err error) {
	u, err = s.o.Stores.Users.Get(ctx, p, p.User)
	if errors.Is(err, store.ErrNotFound) && route.Inside(ctx) {
		return identity.User{Workspace: p.Workspace, ID: p.User, Name: p.User}, false, nil
	}
	return u, true, err
}

// tellMe describes the caller. The roles are those of the call: a caller in this process has no others.
func tellMe(u identity.User, p identity.Principal) *userOutput {
	u.Roles = p.Roles
	return &userOutput{tellUser(u)}
}

func (s *settings) updateMe(ctx context.Context, p identity.Principal, in *meChange) (*userOutput, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	u, stored, err := s.me(ctx, p)
	if err != nil {
		return nil, err
	}
	before := auditedUser(u)
	if in.Body.AutoExecute != nil {
		u.AutoExecute = *in.Body.AutoExecute
	}
	if in.Body.Language != nil {
		if err := u.SetLanguage(*in.Body.Language); err != nil {
			return nil, err
		}
	}
	u.Updated = s.NowMS()
	ctx = route.Audited(ctx, "user.update", u.ID, before, auditedUser(u))
	if stored {
		err = s.o.Stores.Users.Update(ctx, p, u)
	} else { // without roles: it counts as nobody's admin
		u.Created = u.Updated
		err = s.enter(ctx, p, u)
	}
	if err != nil {
		return nil, err
	}
	return tellMe(u, p), nil
}

// enter stores a user in a workspace that may have none yet, and may not be stored itself.
func (s *settings) enter(ctx context.Context, p identity.Principal, u identity.User) error {
	if err := s.ensureWorkspace(ctx, p, u.Created); err != nil {
		return err
	}
	return s.o.Stores.Users.Create(ctx, p, u)
}

// ensureWorkspace stores the workspace of a caller in this process, who may be the first in it.
func (s *settings) ensureWorkspace(ctx context.Context, p identity.Principal, now int64) error {
	_, err := s.o.Stores.Workspaces.Get(ctx, p, p.Workspace)
	if errors.Is(err, store.ErrNotFound) {
		err = s.o.Stores.Workspaces.Create(store.WithoutEntries(ctx), identity.System(""),
			identity.Workspace{ID: p.Workspace, Name: p.Workspace, Created: now})
	}
	return err
}

func (s *settings) listUsers(ctx context.Context, p identity.Principal, _ *struct{}) (*usersOutput, error) {
	list, err := s.o.Stores.Users.List(ctx, p)
	if err != nil {
		return nil, err
	}
	tokens, err := s.o.Stores.Tokens.List(ctx, p, "")
	if err != nil {
		return nil, err
	}
	out := &usersOutput{api.Users{Users: make([]api.User, len(list))}}
	for i, u := range list {
		out.Body.Users[i] = tellUser(u)
		for _, t := range tokens {
			if t.User == u.ID && t.MadeBy != "" && t.MadeBy != u.ID {
				out.Body.Users[i].TokensMadeByOthers = append(out.Body.Users[i].TokensMadeByOthers, tellToken(t))
			}
		}
	}
	return out, nil
}

func (s *settings) createUser(ctx context.Context, p identity.Principal, in *userCreate) (*userOutput, error) {
	u := identity.User{Workspace: p.Workspace, ID: in.Body.ID, Created: s.NowMS()}
	switch u.ID {
	case "":
		u.ID = route.NewID("user")
	case "me", "system", localUser, ".", "..":
		return nil, api.WrongField("id", "%q is kept for Tandem itself; choose another", u.ID)
	}
	if err := s.readUser(&u, p, in.Body); err != nil {
		return nil, err
	}
	u.Updated = u.Created
	if route.Inside(ctx) {
		if err := s.ensureWorkspace(ctx, p, u.Created); err != nil {
			return nil, err
		}
	}
	if err := s.o.Stores.Users.Create(route.Audited(ctx, "user.create", u.ID, nil, auditedUser(u)), p, u); err != nil {
		return nil, route.ConflictOf(err, "there is already a user %q", u.ID)
	}
	return &userOutput{tellUser(u)}, nil
}

func (s *settings) getUser(ctx context.Context, p identity.Principal, in *userInput) (*userOutput, error) {
	u, err := s.o.Stores.Users.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	return &userOutput{tellUser(u)}, nil
}

func (s *settings) updateUser(ctx context.Context, p identity.Principal, in *userChange) (*userOutput, error) {
	if in.Body.ID != "" && in.Body.ID != in.ID {
		return nil, api.WrongField("id", "%q is not the user of the address, %q; the id of a user never changes", in.Body.ID, in.ID)
	}
	if in.ID == localUser {
		return nil, fault.Newf(fault.Conflict, "user %q stands for the person who runs commands on the machine of the data; it has no roles of its own", in.ID)
	}
	s.accounts.Lock()
	defer s.accounts.Unlock()
	u, err := s.o.Stores.Users.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	before := auditedUser(u)
	if err := s.readUser(&u, p, in.Body); err != nil {
		return nil, err
	}
	if u.Disabled || !slices.Contains(u.Roles, identity.Admin) {
		if err := s.keepAdmin(ctx, p, u.ID); err != nil {
			return nil, err
		}
	}
	u.Updated = s.NowMS()
	if err := s.o.Stores.Users.Update(route.Audited(ctx, "user.update", u.ID, before, auditedUser(u)), p, u); err != nil {
		return nil, err
	}
	return &userOutput{tellUser(u)}, nil
}

func (s *settings) deleteUser(ctx context.Context, p identity.Principal, in *userInput) (*route.Nothing, error) {
	s.accounts.Lock()
	defer s.accounts.Unlock()
	u, err := s.o.Stores.Users.Get(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.keepAdmin(ctx, p, in.ID); err != nil {
		return nil, err
	}
	if err := s.forgetTools(ctx, p, in.ID); err != nil {
		return nil, err
	}
	return nil, s.o.Stores.Users.Delete(route.Audited(ctx, "user.delete", in.ID, auditedUser(u), nil), p, in.ID)
}

// keepAdmin refuses a change that would leave a workspace without an admin.
func (s *settings) keepAdmin(ctx context.Context, p identity.Principal, without string) error {
	list, err := s.o.Stores.Users.List(ctx, p)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(u identity.User) bool {
		return u.ID != without && !u.Disabled && slices.Contains(u.Roles, identity.Admin)
	}) {
		return nil
	}
	return fault.Newf(fault.Conflict, "user %q is the last admin of the workspace; make another one first", without)
}

func (s *settings) listTokens(ctx context.Context, p identity.Principal, in *userInput) (*tokensOutput, error) {
	user, err := s.owner(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := s.o.Stores.Tokens.List(ctx, p, user)
	if err != nil {
		return nil, err
	}
	out := &tokensOutput{api.Tokens{Tokens: make([]api.Token, len(list))}}
	for i, t := range list {
		out.Body.Tokens[i] = tellToken(t)
	}
	return out, nil
}

func (s *settings) createToken(ctx context.Context, p identity.Principal, in *tokenCreate) (*newTokenOutput, error) {
	user, err := s.owner(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSpace(in.Body.Name)
	if name == "" || len(name) > maxUserName {
		return nil, api.WrongField("name", "a token needs a name of at most %d characters, to tell it from others", maxUserName)
	}
	if in.Body.ExpiresIn > maxTokenLife {
		return nil, api.WrongField("expires_in", "%d seconds are more than a century; leave it out for a token that does not expire", in.Body.ExpiresIn)
	}
	scopes, err := readScopes(p, in.Body.Scopes)
	if err != nil {
		return nil, err
	}
	if slices.Contains(scopes, identity.ScopeLogin) {
		life := int64(identity.LoginLife / time.Second)
		switch {
		case len(scopes) > 1:
			return nil, api.WrongField("scopes", "login stands alone: the code of a link is good for nothing else")
		case in.Body.ExpiresIn > life:
			return nil, api.WrongField("expires_in", "the code of a login link is good for at most %d seconds", life)
		case in.Body.ExpiresIn == 0:
			in.Body.ExpiresIn = life
		}
	}
	t := identity.Token{Workspace: p.Workspace, ID: route.NewID("tok"), User: user, Name: name, MadeBy: maker(p, user),
		Scopes: scopes, Created: s.NowMS()}
	if in.Body.ExpiresIn > 0 {
		t.Expires = t.Created + in.Body.ExpiresIn*1000
	}
	if err := s.noLonger(ctx, p, &t); err != nil {
		return nil, err
	}
	secret := identity.NewSecret()
	if err := s.o.Stores.Tokens.Create(route.Audited(ctx, "token.create", t.ID, nil, auditedToken(t)), p, t,
		identity.HashSecret(secret)); err != nil {
		return nil, err
	}
	return &newTokenOutput{api.NewToken{Token: tellToken(t), Secret: secret}}, nil
}

// noLonger lets a token end with the one that it is made with: otherwise a token that expires could be used to make one that does not.
func (s *settings) noLonger(ctx context.Context, p identity.Principal, t *identity.Token) error {
	if p.Means.Token == "" {
		return nil
	}
	own, err := s.o.Stores.Tokens.List(ctx, p, p.User)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(own, func(o identity.Token) bool { return o.ID == p.Means.Token })
	switch {
	case at < 0 || own[at].Expires == 0:
	case t.Expires == 0:
		t.Expires = own[at].Expires
	case t.Expires > own[at].Expires:
		return api.WrongField("expires_in", "your own token ends at %s, so a token that is made with it can last until then; leave it out for that", time.UnixMilli(own[at].Expires).UTC().Format(time.RFC3339))
	}
	return nil
}

// readScopes reads what a token may be used for. A token that is made with another token cannot have scopes that the other lacks.
func readScopes(p identity.Principal, names []string) ([]identity.Scope, error) {
	var scopes []identity.Scope
	for i, name := range names {
		scope := identity.Scope(strings.TrimSpace(name))
		switch {
		case !scope.Known():
			return nil, api.WrongField(fmt.Sprintf("scopes[%d]", i), "there is no scope %q; there are read, execute, answer, edit and admin", name)
		case !p.MayUse(scope):
			return nil, api.WrongField(fmt.Sprintf("scopes[%d]", i), "your own token does not have the scope %q, so it cannot make one that has", name)
		case !slices.Contains(scopes, scope):
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// maker names who may have made a token for a user: the caller and, if their own token was made by somebody else, that one
// before them. The user is not named beside the other: what is made with a token of somebody else's making counts as theirs.
func maker(p identity.Principal, user string) string {
	first := p.TokenMadeBy()
	switch {
	case first == "":
		return p.User
	case p.User == user || first == p.User:
		return first
	}
	return first + ", " + p.User
}

func (s *settings) deleteToken(ctx context.Context, p identity.Principal, in *tokenInput) (*route.Nothing, error) {
	user, err := s.owner(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := s.o.Stores.Tokens.List(ctx, p, user)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(t identity.Token) bool { return t.ID == in.Token })
	if at < 0 {
		return nil, fault.Newf(fault.NotFound, "user %q has no token %q", user, in.Token)
	}
	return nil, s.o.Stores.Tokens.Delete(route.Audited(ctx, "token.delete", in.Token, auditedToken(list[at]), nil), p, in.Token)
}

// owner returns the user whose tokens are meant. Users manage their own; only admins learn that there are others.
func (s *settings) owner(ctx context.Context, p identity.Principal, id string) (string, error) {
	if id == "me" || id == p.User {
		return p.User, nil
	}
	if !p.Has(identity.Admin) {
		return "", fault.Newf(fault.Forbidden, "the tokens of %q are for that user and for admins", id)
	}
	u, err := s.o.Stores.Users.Get(ctx, p, id)
	return u.ID, err
}

// readUser reads the fields that may be changed, and notes who enters an address: an answer from there counts as the user's, and links go
// there.
func (s *settings) readUser(u *identity.User, p identity.Principal, in api.UserRequest) error {
	media := s.o.Desk.Media()
	before := media.Addresses(*u)
	if err := readUser(u, media, in); err != nil {
		return err
	}
	origins := map[string]identity.AddressOrigin{}
	known := u.AddressOrigins()
	for _, address := range media.Addresses(*u) {
		if !slices.Contains(before, address) {
			origins[address] = identity.AddressOrigin{By: p.User, TokenMadeBy: p.TokenMadeBy(), At: s.NowMS()}
		} else if o, ok := known[address]; ok {
			origins[address] = o
		}
	}
	return u.SetAddressOrigins(origins)
}

// readUser takes over what may be changed.
func readUser(u *identity.User, media human.Media, in api.UserRequest) error {
	u.Name, u.Email, u.Disabled = strings.TrimSpace(in.Name), strings.TrimSpace(in.Email), in.Disabled
	if u.Name == "" || len(u.Name) > maxUserName {
		return api.WrongField("name", "a user needs a name of at most %d characters", maxUserName)
	}
	if u.Email != "" && (!strings.Contains(u.Email, "@") || len(u.Email) > maxEmail) {
		return api.WrongField("email", "%q is not a mail address", u.Email)
	}
	u.Roles = nil
	for _, name := range in.Roles {
		r := identity.Role(name)
		if !r.Known() {
			return api.WrongField("roles", "there is no role %q; there are %s", name, route.RoleList(identity.Roles(), "and"))
		}
		if !slices.Contains(u.Roles, r) {
			u.Roles = append(u.Roles, r)
		}
	}
	if len(u.Roles) == 0 {
		return api.WrongField("roles", "a user needs a role; there are %s", route.RoleList(identity.Roles(), "and"))
	}
	if in.Language != nil {
		if err := u.SetLanguage(*in.Language); err != nil {
			return err
		}
	}
	if in.Addresses == nil {
		return nil
	}
	return setAddresses(u, media, in.Addresses)
}

// setAddresses stores the addresses that a user writes from. Only an admin may do that: an answer from there counts as the user's.
func setAddresses(u *identity.User, media human.Media, texts []string) error {
	seats := []string{}
	for i, written := range texts {
		seat, err := media.Address(written)
		if err != nil {
			return api.WrongField(fmt.Sprintf("addresses[%d]", i), "%s", text.OfError(fault.From(err)))
		}
		if !slices.Contains(seats, seat) {
			seats = append(seats, seat)
		}
	}
	settings := map[string]json.RawMessage{}
	if len(u.Settings) > 0 {
		if err := json.Unmarshal(u.Settings, &settings); err != nil {
			return fault.Newf(fault.Internal, "the settings of user %q cannot be read: %w", u.ID, err)
		}
	}
	raw, err := json.Marshal(seats)
	if err == nil {
		settings["addresses"] = raw
		u.Settings, err = json.Marshal(settings)
	}
	if err != nil {
		return fault.Newf(fault.Internal, "the addresses of user %q cannot be kept: %w", u.ID, err)
	}
	return nil
}

// addressesOf returns the addresses that setAddresses has stored.
func addressesOf(u identity.User) []string {
	var settings struct {
		Addresses []string `json:"addresses"`
	}
	if len(u.Settings) == 0 || json.Unmarshal(u.Settings, &settings) != nil {
		return nil // there are none, or somebody else's settings
	}
	return settings.Addresses
}

func tellUser(u identity.User) api.User {
	out := api.User{ID: u.ID, Workspace: u.Workspace, Name: u.Name, Email: u.Email, Addresses: addressesOf(u),
		Roles: make([]string, len(u.Roles)), AutoExecute: u.AutoExecute, Language: u.Language(),
		Disabled: u.Disabled, CreatedTime: u.Created}
	for i, r := range u.Roles {
		out.Roles[i] = string(r)
	}
	for address, o := range u.AddressOrigins() { // order does not matter: it becomes a map
		if out.AddressOrigins == nil {
			out.AddressOrigins = map[string]api.AddressOrigin{}
		}
		out.AddressOrigins[address] = api.AddressOrigin{SetBy: o.By, TokenMadeBy: o.TokenMadeBy, SetTime: o.At}
	}
	return out
}

func tellToken(t identity.Token) api.Token {
	out := api.Token{ID: t.ID, UserID: t.User, Name: t.Name, MadeBy: t.MadeBy, CreatedTime: t.Created,
		ExpiresTime: t.Expires, LastUsedTime: t.LastUsed}
	for _, s := range t.Scopes {
		out.Scopes = append(out.Scopes, string(s))
	}
	return out
}

// auditedUser is how the audit log describes a user.
func auditedUser(u identity.User) any {
	out := map[string]any{"name": u.Name, "roles": u.Roles}
	if u.Email != "" {
		out["email"] = u.Email
	}
	if list := addressesOf(u); len(list) > 0 {
		out["addresses"] = list
	}
	if list := u.Contacts(); len(list) > 0 {
		out["contacts"] = list
	}
	if u.Disabled {
		out["disabled"] = true
	}
	if u.AutoExecute {
		out["auto_execute"] = true
	}
	return out
}

// auditedToken is how the audit log describes a token.
func auditedToken(t identity.Token) any {
	out := map[string]any{"user_id": t.User, "name": t.Name}
	if t.Expires > 0 {
		out["expires_time"] = t.Expires
	}
	if len(t.Scopes) > 0 {
		out["scopes"] = t.Scopes
	}
	return out
}
