package vault

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"time"

	"tandem/credential/oauth"
	"tandem/fault"
	"tandem/identity"
	"tandem/settings"
	"tandem/store"
	"tandem/text"
)

// pendingAccount is an authorization of a credential that a person has begun and not finished.
type pendingAccount struct {
	oauth.Authorization
	// User is who has begun it, and must still be allowed to when it is finished.
	User string `json:"user"`
	// Ticket is in the address that this user was given. Anyone who opens it first gets Browser as a cookie, and only a browser that has
	// that may come back.
	Ticket  string `json:"ticket"`
	Browser string `json:"browser,omitempty"`
	// Until is when it is too late, in milliseconds.
	Until int64 `json:"until"`
}

// Accounts are the credentials whose tokens people authorize with a browser. It implements [settings.Accounts].
type Accounts struct {
	*Vault
	Users store.Users
	// Public is where a browser reaches this instance; empty: it cannot.
	Public string
}

// Authorize begins an authorization of a credential, and returns the address that who begins it has to open.
func (x *Accounts) Authorize(ctx context.Context, p identity.Principal, id string) (string, error) {
	if x.Public == "" {
		return "", fault.New(fault.Unsupported, "nobody could come back with the answer; authorize it through a server: tandem serve, and --public-url where a browser cannot reach the address it listens on")
	}
	place := placeFor(p, id)
	address := ""
	err := x.change(ctx, p, id, func(a *account) (map[string]any, error) {
		from := a.known.OAuth
		authorize := cmp.Or(a.data.AuthorizeURL, from.AuthorizeURL)
		g := a.data.grant(a.known)
		switch {
		case g.ClientID == "":
			return nil, fault.Newf(fault.CredentialInvalid, "credential %q has no client_id; register a client with the service, with the redirect address %s, and enter its client_id and client_secret", a.Name, x.Public+settings.AccountAuthorizedPath)
		case authorize == "" || g.TokenURL == "":
			return nil, fault.Newf(fault.CredentialInvalid, "credential %q does not say where it is authorized; enter authorize_url and token_url", a.Name)
		}
		g.AccessToken, g.RefreshToken, g.Expires = "", "", 0
		pending := &pendingAccount{Authorization: oauth.Authorization{Redirect: x.Public + settings.AccountAuthorizedPath, Grant: g},
			User: p.User, Ticket: rand.Text(), Until: time.Now().Add(pendingFor).UnixMilli()}
		if err := pending.Begin(authorize, place, from.More); err != nil {
			return nil, fault.Newf(fault.CredentialInvalid, "credential %q has an authorize_url that cannot be used", a.Name).WithCause(err)
		}
		address = x.Public + settings.AccountBeginPath + "?state=" + url.QueryEscape(place+pending.Ticket)
		return map[string]any{"pending": pending}, nil
	})
	return address, err
}

// Begin is told that a browser has opened the address, and returns where it goes and the cookie by which it is known when it comes back.
func (x *Accounts) Begin(ctx context.Context, state string) (to, browser string, secure bool, err error) {
	p, id, err := placeOf(state)
	if err != nil {
		return "", "", false, err
	}
	err = x.change(ctx, p, id, func(a *account) (map[string]any, error) {
		pending := a.data.Pending
		_, ticket, _ := strings.Cut(state, ".")
		if pending == nil || pending.Browser != "" || subtle.ConstantTimeCompare([]byte(pending.Ticket), []byte(ticket)) != 1 ||
			time.Now().UnixMilli() > pending.Until {
			return nil, errNotBegun()
		}
		pending.Browser, to = rand.Text(), pending.URL
		browser = pending.Browser
		return map[string]any{"pending": pending}, nil
	})
	return to, browser, strings.HasPrefix(x.Public, "https://"), hideMissing(err)
}

// Authorized finishes an authorization with what a browser came back with, and returns the name of the credential that can be used now. A
// state is good for one answer, whatever that is.
func (x *Accounts) Authorized(ctx context.Context, back url.Values, browser string) (string, error) {
	state := back.Get("state")
	p, id, err := placeOf(state)
	if err != nil {
		return "", err
	}
	var begun *pendingAccount
	name := ""
	err = x.change(ctx, p, id, func(a *account) (map[string]any, error) {
		pending := a.data.Pending
		if pending == nil || subtle.ConstantTimeCompare([]byte(pending.State), []byte(state)) != 1 {
			return nil, errNotBegun()
		}
		if pending.Browser == "" || subtle.ConstantTimeCompare([]byte(pending.Browser), []byte(browser)) != 1 {
			return nil, fault.New(fault.Forbidden, "this authorization was begun with another browser; open the address that you were given with this one, and agree again")
		}
		begun, name = pending, a.Name
		return map[string]any{"pending": nil}, nil
	})
	switch {
	case err != nil:
		return "", hideMissing(err)
	case time.Now().UnixMilli() > begun.Until:
		return "", errNotBegun()
	}
	if err := x.stillMay(ctx, p, begun.User); err != nil {
		return "", err
	}
	if back.Get("error") != "" {
		return "", refusedBy(back)
	}
	g, err := begun.Finish(ctx, x.HTTP, back.Get("code"), state, back.Get("iss"))
	if err != nil {
		return "", err
	}
	audited := store.Audited(context.WithoutCancel(ctx),
		store.AuditEntry{Workspace: p.Workspace, User: begun.User, Means: identity.Means{Kind: identity.ByCallback},
			Action: "credential.authorized", Object: "credential", ObjectID: id})
	err = x.change(audited, p, id, func(a *account) (map[string]any, error) {
		a.Problem = ""
		return map[string]any{"token": g.AccessToken, "refresh_token": g.RefreshToken, "expires": tellMillis(g.Expires)}, nil
	})
	return name, err
}

// stillMay says that who has begun an authorization may finish it. The local user has the data directory in their hands.
func (x *Accounts) stillMay(ctx context.Context, p identity.Principal, user string) error {
	if user == identity.LocalUser {
		return nil
	}
	u, err := x.Users.Get(ctx, p, user)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err != nil || u.Disabled || !u.Principal().Has(identity.Admin) {
		return fault.New(fault.Forbidden, "who has begun this authorization is no longer an admin of the workspace; begin it again")
	}
	return nil
}

// changeTries is how often a change is tried while others change the same credential.
const changeTries = 10

// change changes a credential whose tokens people authorize, again and again while others are faster.
func (x *Accounts) change(ctx context.Context, p identity.Principal, id string, f func(*account) (map[string]any, error)) error {
	for try := 1; ; try++ {
		c, err := x.Credentials.Get(ctx, p, id)
		if err != nil {
			return err
		}
		known, err := x.types.Find(c.Type)
		if err != nil {
			return err
		}
		if known.OAuth == nil {
			return fault.Newf(fault.Invalid, "a credential of type %s is not authorized with a browser; enter its data", c.Type)
		}
		a, err := x.readAccount(c, known)
		if err != nil {
			return err
		}
		changed, err := f(&a)
		if err == nil {
			err = x.put(ctx, p, &a, changed)
		}
		a.forget()
		if !errors.Is(err, store.ErrConflict) || try == changeTries {
			return err
		}
	}
}

// refusedBy is the error of an authorization that its server has refused.
func refusedBy(back url.Values) error {
	problem := text.Clip(back.Get("error"), 100)
	if more := back.Get("error_description"); more != "" {
		return fault.Newf(fault.Forbidden, "the authorization server refused: %q, %q", problem, text.Clip(more, 300))
	}
	return fault.Newf(fault.Forbidden, "the authorization server refused: %q", problem)
}

// placeFor is how a state begins that is for a credential or a tool server: a browser that comes back has nothing but the state.
func placeFor(p identity.Principal, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.Workspace+"\n"+id)) + "."
}

// placeOf reads what a state is for. It is not believed before the rest of the state was compared.
func placeOf(state string) (identity.Principal, string, error) {
	place, _, ok := strings.Cut(state, ".")
	plain, err := base64.RawURLEncoding.DecodeString(place)
	workspace, id, both := strings.Cut(string(plain), "\n")
	if !ok || err != nil || !both || identity.CheckWorkspace(workspace) != nil {
		return identity.Principal{}, "", errNotBegun()
	}
	return identity.System(workspace), id, nil
}

// hideMissing tells strangers the same of a credential that is not there as of one that nobody is authorizing.
func hideMissing(err error) error {
	if code := fault.CodeOf(err); err != nil && (code == fault.NotFound || code == fault.Invalid) {
		return errNotBegun()
	}
	return err
}
