package login

import (
	"context"
	"net/http"
	"strings"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// Options is what logging in needs. Everything but Provider must be there.
type Options struct {
	Router  *route.Router
	Stores  store.Stores
	Keyring *credential.Keyring
	// PublicURL is where people reach the server, without a slash at the end; empty: nobody knows.
	PublicURL string
	// Language is that of the installation, zh or en; empty: en.
	Language string
	// Provider is where people log in besides; its zero value: there is none.
	Provider Provider
	// Places are the addresses of the web UI, to which people are led back after they have logged in.
	Places []string
	// Notice shows a page for people with nothing to fill in, in the language of the person who asks for it.
	Notice func(w http.ResponseWriter, r *http.Request, status int, heading text.Text, lines ...text.Text)
}

// desk registers and answers. It is safe for concurrent use.
type desk struct {
	*route.Router
	o        Options
	provider *provider
}

// Register registers everything.
func Register(o Options) error {
	d := &desk{Router: o.Router, o: o}
	if o.Provider.Issuer != "" {
		p, err := newProvider(o.Provider, o.PublicURL)
		if err != nil {
			return err
		}
		d.provider = p
	}
	d.sessions()
	d.invitations()
	d.pages()
	return nil
}

// begun is a session that has begun.
type begun struct {
	session identity.Session
	secret  string
}

// begin begins a session of a user, under a new secret whatever the browser had before. The one that the browser had ends.
func (d *desk) begin(ctx context.Context, u identity.User, s identity.Session) (begun, error) {
	now := d.NowMS()
	s.Workspace, s.User, s.ID, s.Created, s.Seen, s.Expires = u.Workspace, u.ID, route.NewID("ses"), now, now,
		now+route.SessionLife.Milliseconds()
	entry := d.EntryOf(ctx, identity.Principal{Workspace: u.Workspace, User: u.ID, Means: s.Means()}, "login.succeed", s.ID)
	s.Address, s.Agent = entry.Address, entry.Agent
	entry.Detail = store.AuditDetail(map[string]string{"method": s.Method})
	if err := d.endEarlier(ctx); err != nil {
		return begun{}, err
	}
	secret := identity.NewSecret()
	if err := d.o.Stores.Sessions.Create(store.Audited(ctx, entry), identity.System(u.Workspace), s,
		identity.HashSecret(secret)); err != nil {
		return begun{}, err
	}
	return begun{s, secret}, nil
}

// endEarlier ends the session that a browser comes with, if it has one.
func (d *desk) endEarlier(ctx context.Context) error {
	secret := d.SessionSecret(ctx)
	if secret == "" {
		return nil
	}
	s, _, err := d.o.Stores.Sessions.Resolve(ctx, identity.System(""), identity.HashSecret(secret), d.NowMS(), 0)
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	if err == nil {
		err = d.o.Stores.Sessions.End(ctx, identity.System(s.Workspace), s.User, s.ID)
	}
	if fault.CodeOf(err) == fault.NotFound { // somebody else has ended it
		return nil
	}
	return err
}

// refuse enters that somebody was not let in, and returns why.
func (d *desk) refuse(ctx context.Context, workspace, user, method string, err error) error {
	d.RefusedLogin(ctx, store.AuditEntry{Workspace: workspace, User: user}, method, fault.From(err).Message)
	return err
}

// bearer is a token as a header has it.
func bearer(token string) string { return "Bearer " + strings.TrimSpace(token) }
