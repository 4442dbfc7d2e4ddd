package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// Provider is a provider of identities that speaks OpenID Connect. What it can do is found by discovery at its address.
type Provider struct {
	// Issuer is its address: https://login.example.com. Empty: there is none.
	Issuer       string
	ClientID     string
	ClientSecret string
	// RoleClaim is the claim that says which groups somebody is in, and Roles which role a group gives; empty: roles are those of the
	// invitation, and of the admin who changes them here.
	RoleClaim string
	Roles     map[string]identity.Role
	// Client carries requests to it; nil: one with sensible limits.
	Client *http.Client
}

// ParseRoles reads which group gives which role: GROUP=ROLE, separated by commas.
func ParseRoles(text string) (map[string]identity.Role, error) {
	roles := map[string]identity.Role{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		at := strings.LastIndex(part, "=")
		if at <= 0 || !identity.Role(part[at+1:]).Known() {
			return nil, fault.Newf(fault.Invalid, "%q does not say which role a group gives; write GROUP=ROLE, with one of the roles %q", part, identity.Roles())
		}
		roles[part[:at]] = identity.Role(part[at+1:])
	}
	return roles, nil
}

// provider is one that is asked. What it says of itself is read once somebody logs in, and again when that has failed.
type provider struct {
	Provider
	redirect string

	mu    sync.Mutex
	found *oidc.Provider
}

func newProvider(o Provider, public string) (*provider, error) {
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fault.Newf(fault.Invalid, "--oidc-issuer %q is not an address; write it like https://login.example.com", o.Issuer)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, fault.Newf(fault.Invalid, "--oidc-issuer %q is not encrypted; only a provider on this machine may be reached by http", o.Issuer)
	case o.ClientID == "":
		return nil, fault.New(fault.Invalid, "--oidc-client-id is missing; it is what the provider calls this installation")
	case len(o.Roles) > 0 && o.RoleClaim == "":
		return nil, fault.New(fault.Invalid, "--oidc-roles needs --oidc-role-claim, the claim that names the groups")
	case o.RoleClaim != "" && len(o.Roles) == 0:
		return nil, fault.New(fault.Invalid, "--oidc-role-claim needs --oidc-roles, which role each group gives: GROUP=ROLE")
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 15 * time.Second}
	}
	return &provider{Provider: o, redirect: public + ReturnPath}, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// discover reads what the provider says of itself.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, oauth2.Config, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil {
		// It keeps the client of the context for its keys, which it reads anew later: that must not end with this request.
		found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.Client), p.Issuer)
		if err != nil {
			return nil, oauth2.Config{}, fault.Newf(fault.NetworkError, "the provider of identities at %s cannot be asked: %w", p.Issuer, err)
		}
		p.found = found
	}
	return p.found, oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: p.found.Endpoint(), RedirectURL: p.redirect,
		Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}, nil
}

// attempt is what a browser keeps between leaving for the provider and coming back, sealed.
type attempt struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Expires  int64  `json:"e"`
	// Next is the page that they have come from.
	Next string `json:"p,omitempty"`
}

// The cookie of an attempt, and how long it may take.
const (
	attemptCookie = "tandem_login"
	attemptTime   = 10 * time.Minute
)

func attemptContext() []byte { return credential.Context("login", "attempt", "oidc") }

func (d *desk) setAttempt(w http.ResponseWriter, r *http.Request, value string) {
	c := &http.Cookie{Name: attemptCookie, Value: value, Path: ProviderPath, HttpOnly: true, Secure: d.Encrypted(r),
		SameSite: http.SameSiteLaxMode, MaxAge: int(attemptTime / time.Second)}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// sendToProvider sends a browser to the provider.
func (d *desk) sendToProvider(w http.ResponseWriter, r *http.Request) {
	_, config, err := d.provider.discover(r.Context())
	if err != nil {
		d.failed(w, r, err)
		return
	}
	a := attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		Expires: d.NowMS() + attemptTime.Milliseconds(), Next: d.safeNext(r.URL.Query().Get("next"))}
	raw, err := json.Marshal(a)
	var sealed []byte
	if err == nil {
		sealed, err = d.o.Keyring.Seal(raw, attemptContext())
	}
	if err != nil {
		d.failed(w, r, err)
		return
	}
	d.setAttempt(w, r, base64.RawURLEncoding.EncodeToString(sealed))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), http.StatusFound)
}

// attemptOf is the attempt that a browser comes back from. It is good for one return.
func (d *desk) attemptOf(r *http.Request) (attempt, error) {
	var a attempt
	gone := fault.New(fault.Conflict, "this login was not begun in this browser, was used already, or took too long; begin again")
	c, err := r.Cookie(attemptCookie)
	if err != nil {
		return a, gone
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return a, gone
	}
	raw, err := d.o.Keyring.Open(sealed, attemptContext())
	if err != nil || json.Unmarshal(raw, &a) != nil || a.Expires <= d.NowMS() {
		return a, gone
	}
	if subtle.ConstantTimeCompare([]byte(a.State), []byte(r.URL.Query().Get("state"))) != 1 {
		return a, gone
	}
	return a, nil
}

// backFromProvider lets somebody in who comes back from the provider.
func (d *desk) backFromProvider(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	ctx := d.WithOrigin(r.Context())
	a, err := d.attemptOf(r)
	if err != nil {
		d.failed(w, r, d.refuse(ctx, "", "", "oidc", err))
		return
	}
	d.setAttempt(w, r, "")
	who, err := d.provider.exchange(ctx, r.URL.Query(), a)
	if err != nil {
		d.failed(w, r, d.refuse(ctx, "", "", "oidc", err))
		return
	}
	u, err := d.userOf(ctx, who)
	if err != nil {
		d.failed(w, r, d.refuse(ctx, u.Workspace, u.ID, "oidc", err))
		return
	}
	b, err := d.begin(ctx, u, identity.Session{Method: "oidc"})
	if err != nil {
		d.failed(w, r, err)
		return
	}
	d.SetSession(w, r, b.secret)
	http.Redirect(w, r, cmp.Or(a.Next, "/"), http.StatusSeeOther)
}

// failed says that somebody was not let in.
func (d *desk) failed(w http.ResponseWriter, r *http.Request, err error) {
	told := d.Problem(r.Context(), identity.Principal{}, err)
	d.form(w, r, told.Status, "", told.Detail)
}

// known is what the provider says of somebody.
type known struct {
	issuer, subject, email, name string
	verified                     bool
	// groups are those in the claim for roles.
	groups []string
}

// exchange turns the code of a return into what is known of the person who has logged in: the token that says so is signed by the
// provider, is for this installation and for this attempt.
func (p *provider) exchange(ctx context.Context, back url.Values, a attempt) (known, error) {
	found, config, err := p.discover(ctx)
	if err != nil {
		return known{}, err
	}
	if code := back.Get("error"); code != "" {
		return known{}, fault.Newf(fault.Forbidden, "the provider of identities has refused: %q", code)
	}
	ctx = oidc.ClientContext(ctx, p.Client)
	token, err := config.Exchange(ctx, back.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) { // its text may hold what was sent
			return known{}, fault.Newf(fault.Unauthorized, "the provider of identities does not take the code: %q", refused.ErrorCode)
		}
		return known{}, fault.New(fault.NetworkError, "the provider of identities could not be asked").WithCause(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return known{}, fault.New(fault.Unauthorized, "the provider of identities sent no id_token; it must speak OpenID Connect")
	}
	verified, err := found.Verifier(&oidc.Config{ClientID: p.ClientID}).Verify(ctx, raw)
	if err != nil {
		return known{}, fault.New(fault.Unauthorized, "what the provider of identities sent is not valid").WithCause(err)
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(a.Nonce)) != 1 {
		return known{}, fault.New(fault.Unauthorized, "what the provider of identities sent is not for this login")
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return known{}, fault.New(fault.Unauthorized, "what the provider of identities says cannot be read").WithCause(err)
	}
	if err := p.complete(ctx, found, token, verified.Subject, claims); err != nil {
		return known{}, err
	}
	return p.knownFrom(verified, claims), nil
}

// complete adds the claims that the id_token lacks and the provider tells only when it is asked: many keep the id_token small.
func (p *provider) complete(ctx context.Context, found *oidc.Provider, token *oauth2.Token, subject string, claims map[string]any) error {
	wanted := []string{"email", "email_verified", "name"}
	if p.RoleClaim != "" {
		wanted = append(wanted, p.RoleClaim)
	}
	there := func(name string) bool { _, is := claims[name]; return is }
	if found.UserInfoEndpoint() == "" || !slices.ContainsFunc(wanted, func(name string) bool { return !there(name) }) {
		return nil
	}
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return fault.New(fault.NetworkError, "the provider of identities could not be asked about who has logged in").WithCause(err)
	}
	if info.Subject != subject { // somebody else's answer must not be taken for theirs
		return fault.New(fault.Unauthorized, "the provider of identities tells about somebody else than who has logged in")
	}
	var more map[string]any
	if err := info.Claims(&more); err != nil {
		return fault.New(fault.Unauthorized, "what the provider of identities says cannot be read").WithCause(err)
	}
	if there("email") { // what one of them says of an address, it says of its own
		wanted = wanted[2:]
	}
	for _, name := range wanted {
		if value, told := more[name]; told && !there(name) {
			claims[name] = value
		}
	}
	return nil
}

// knownFrom is what claims say of somebody.
func (p *provider) knownFrom(verified *oidc.IDToken, claims map[string]any) known {
	who := known{issuer: verified.Issuer, subject: verified.Subject}
	who.email, _ = claims["email"].(string)
	who.name, _ = claims["name"].(string)
	switch v := claims["email_verified"].(type) { // some say it as a text
	case bool:
		who.verified = v
	case string:
		who.verified = v == "true"
	}
	switch v := claims[p.RoleClaim].(type) {
	case string:
		who.groups = []string{v}
	case []any:
		for _, one := range v {
			if text, ok := one.(string); ok {
				who.groups = append(who.groups, text)
			}
		}
	}
	return who
}

// rolesOf are the roles that the groups of somebody give; nil: groups decide nothing.
func (p *provider) rolesOf(who known) []identity.Role {
	if p.RoleClaim == "" {
		return nil
	}
	roles := []identity.Role{}
	for _, r := range identity.Roles() {
		if slices.ContainsFunc(who.groups, func(g string) bool { return p.Roles[g] == r }) {
			roles = append(roles, r)
		}
	}
	return roles
}

// userOf finds the user whom somebody is: by what the provider calls them, or, the first time, by an invitation to their verified address.
func (d *desk) userOf(ctx context.Context, who known) (identity.User, error) {
	roles := d.provider.rolesOf(who)
	_, u, err := d.o.Stores.Logins.Resolve(ctx, identity.System(""), who.issuer, who.subject)
	if errors.Is(err, store.ErrNotFound) {
		if u, err = d.join(ctx, who); err != nil {
			return u, err
		}
	}
	switch {
	case err != nil:
		return u, err
	case u.Disabled:
		return u, fault.Newf(fault.Forbidden, "user %q is disabled", u.ID)
	case roles == nil || slices.Equal(roles, u.Roles):
		return u, nil
	case len(roles) == 0:
		return u, fault.Newf(fault.Forbidden, "none of the groups of %q gives a role here", u.ID)
	}
	before := u.Roles
	u.Roles, u.Updated = roles, d.NowMS()
	entry := d.EntryOf(ctx, identity.Principal{Workspace: u.Workspace, User: u.ID}, "user.update", u.ID)
	entry.Detail = store.AuditChange(map[string]any{"roles": before},
		map[string]any{"roles": roles, "by": "the groups at the provider of identities"})
	return u, d.o.Stores.Users.Update(store.Audited(ctx, entry), identity.System(u.Workspace), u)
}

// join makes a user of somebody who is invited.
func (d *desk) join(ctx context.Context, who known) (identity.User, error) {
	if who.email == "" || !who.verified {
		return identity.User{}, fault.New(fault.Forbidden, "you are not a user here, and the provider of identities does not vouch for your mail address; ask an admin")
	}
	open, err := d.o.Stores.Invitations.ForEmail(ctx, identity.System(""), who.email, d.NowMS())
	if err != nil {
		return identity.User{}, err
	}
	open = slices.DeleteFunc(open, func(i identity.Invitation) bool {
		why := d.stands(ctx, i)
		if why != nil && fault.CodeOf(why) != fault.NotFound {
			err = why
		}
		return why != nil
	})
	if err != nil {
		return identity.User{}, err
	}
	if len(open) == 0 {
		return identity.User{}, fault.Newf(fault.Forbidden, "nobody has invited %q; ask an admin for an invitation", who.email)
	}
	i := open[0]
	if i.Name == "" {
		i.Name = strings.TrimSpace(who.name)
		i.Name = i.Name[:min(len(i.Name), maxName)]
	}
	return d.accept(ctx, i, func(a *store.Acceptance) {
		a.Login = &identity.Login{Issuer: who.issuer, Subject: who.subject, Workspace: i.Workspace, User: a.User.ID, Created: a.Now}
	})
}
