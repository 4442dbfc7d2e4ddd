package vault

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"tandem/credential"
	"tandem/credential/oauth"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

const (
	// renewEarly is how long before its end a token is renewed.
	renewEarly = time.Minute
	// leaseFor is how long a process may take to renew a token before another one tries: longer than a call of the authorization server
	// takes.
	leaseFor = 45 * time.Second
	// leasePoll is how often a process looks whether another one has renewed a token.
	leasePoll = 100 * time.Millisecond
)

// accountData is what a credential with an account of OAuth has, as far as renewing it needs. Other fields stay as they are.
type accountData struct {
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret"`
	ClientAuth   string   `json:"client_auth"`
	AuthorizeURL string   `json:"authorize_url"`
	TokenURL     string   `json:"token_url"`
	Scopes       []string `json:"scopes"`
	Token        string   `json:"token"`
	RefreshToken string   `json:"refresh_token"`
	Expires      string   `json:"expires"`

	Pending *pendingAccount `json:"pending"`
}

// grant is what there is, for a type.
func (d accountData) grant(t credential.Type) oauth.Grant {
	g := oauth.Grant{ClientID: d.ClientID, ClientSecret: d.ClientSecret, Auth: d.ClientAuth,
		TokenURL: cmp.Or(d.TokenURL, t.OAuth.TokenURL), Scopes: d.Scopes,
		AccessToken: d.Token, RefreshToken: d.RefreshToken, Expires: readMillis(d.Expires)}
	if len(g.Scopes) == 0 {
		g.Scopes = t.OAuth.Scopes
	}
	return g
}

// usable says that a token can be used: it is not the one that was refused, and does not end soon.
func usable(g oauth.Grant, refused string, now time.Time) bool {
	return g.AccessToken != "" && g.AccessToken != refused && (g.Expires == 0 || time.UnixMilli(g.Expires).After(now.Add(renewEarly)))
}

// account is a credential whose tokens are renewed, as it was read.
type account struct {
	store.Credential
	known credential.Type
	// fields is all of the data, data the part of it that renewing needs.
	fields map[string]json.RawMessage
	data   accountData
	forget func()
}

// readAccount opens the data of a credential. Its secrets are held until forget is called.
func (v *Vault) readAccount(c store.Credential, t credential.Type) (account, error) {
	a := account{Credential: c, known: t}
	ring, err := v.Keyring()
	if err != nil {
		return a, err
	}
	opened, err := ring.OpenData(&v.redactor, t, c.Workspace, c.ID, c.Sealed)
	if err != nil {
		return a, err
	}
	a.forget = opened.Keep()
	if json.Unmarshal(opened.Data, &a.fields) != nil || json.Unmarshal(opened.Data, &a.data) != nil {
		a.forget()
		return a, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; enter it anew", c.Name)
	}
	return a, nil
}

// put changes fields of an account and keeps it, if nobody has changed it since it was read.
func (v *Vault) put(ctx context.Context, p identity.Principal, a *account, change map[string]any) error {
	for name, value := range change { // order does not matter
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("write credential %q: %w", a.ID, err)
		}
		if a.fields[name] = raw; string(raw) == "null" || string(raw) == `""` {
			delete(a.fields, name)
		}
	}
	raw, err := json.Marshal(a.fields)
	if err != nil {
		return fmt.Errorf("write credential %q: %w", a.ID, err)
	}
	defer clear(raw)
	ring, err := v.Keyring()
	if err != nil {
		return err
	}
	if a.Sealed, err = ring.SealData(a.known, a.Workspace, a.ID, raw); err != nil {
		return err
	}
	a.Updated = time.Now().UnixMilli()
	return v.Credentials.Swap(ctx, p, a.Credential)
}

// renewed returns an account with a token that can be used. One renewal happens at a time, no matter who asks: goroutines of this process
// wait for each other at a gate, processes by a lease in the database, since a refresh token is often good for one use. Refused is a token
// that a service did not take.
func (v *Vault) renewed(ctx context.Context, p identity.Principal, c store.Credential, t credential.Type,
	refused string) (store.Credential, error) {
	a, err := v.readAccount(c, t)
	if err != nil {
		return c, err
	}
	ready := usable(a.data.grant(t), refused, time.Now())
	a.forget()
	if ready {
		return c, nil
	}
	gate := v.gate(c.Workspace, c.ID)
	select {
	case gate <- struct{}{}:
		defer func() { <-gate }()
	case <-ctx.Done():
		return c, ctx.Err()
	}
	// A run that is stopped must not take a new refresh token with it that nobody else has.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*leaseFor)
	defer stop()
	holder := rand.Text()
	for {
		now := time.Now()
		held, err := v.Credentials.Lease(ctx, p, c.ID, holder, now.UnixMilli(), now.Add(leaseFor).UnixMilli())
		if err != nil {
			return c, err
		}
		if c, err = v.Credentials.Get(ctx, p, c.ID); err != nil {
			return c, err
		}
		if held {
			c, err = v.renewNow(ctx, p, c, t, refused)
			if _, gave := v.Credentials.Lease(ctx, p, c.ID, holder, now.UnixMilli(), 0); gave != nil {
				err = errors.Join(err, gave)
			}
			return c, err
		}
		select {
		case <-time.After(leasePoll):
		case <-ctx.Done():
			return c, fault.Newf(fault.RemoteError, "another process has been renewing the token of credential %q for too long; try again", c.Name)
		}
	}
}

// renewNow renews the token of an account under its lease, unless somebody has done it before.
func (v *Vault) renewNow(ctx context.Context, p identity.Principal, c store.Credential, t credential.Type,
	refused string) (store.Credential, error) {
	if c.Problem != "" {
		return c, needsPerson(c)
	}
	a, err := v.readAccount(c, t)
	if err != nil {
		return c, err
	}
	defer a.forget()
	g := a.data.grant(t)
	if usable(g, refused, time.Now()) {
		return c, nil
	}
	if g.RefreshToken == "" {
		switch {
		case g.AccessToken == "":
			return c, fault.Newf(fault.CredentialInvalid, "credential %q has no token yet; authorize it: tandem credentials authorize %s", c.Name, c.ID)
		case g.AccessToken != refused && time.UnixMilli(g.Expires).After(time.Now()):
			return c, nil // it is still good for a moment
		}
		return c, v.refuse(ctx, p, a, "its token has ended or is no longer taken, and there is nothing to renew it with")
	}
	next, err := g.Exchange(ctx, v.HTTP, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}})
	if said, ok := errors.AsType[*oauth.Refusal](err); ok && said.Final() {
		return c, v.refuse(ctx, p, a, "the authorization server refused to renew its token ("+said.Code+")")
	}
	if err != nil {
		if g.AccessToken != "" && g.AccessToken != refused && time.UnixMilli(g.Expires).After(time.Now()) {
			v.Log.WarnContext(ctx, "a token could not be renewed and is used until it ends", "workspace", c.Workspace, "credential", c.ID, "error", err)
			return c, nil
		}
		return c, fault.Newf(fault.RemoteError, "the token of credential %q could not be renewed; the authorization server could not be asked", c.Name).WithCause(err)
	}
	// Nobody uses the new token before it is kept: it could be lost, and with it the only refresh token.
	if err := v.put(ctx, p, &a, map[string]any{"token": next.AccessToken, "refresh_token": next.RefreshToken,
		"expires": tellMillis(next.Expires)}); err != nil {
		return c, fault.Newf(fault.CodeOf(err), "the renewed token of credential %q could not be kept: %w", c.Name, err)
	}
	return a.Credential, nil
}

// refuse marks an account as one that a person has to authorize again.
func (v *Vault) refuse(ctx context.Context, p identity.Principal, a account, why string) error {
	a.Problem, a.Updated = why, time.Now().UnixMilli()
	if err := v.Credentials.Swap(ctx, p, a.Credential); err != nil {
		return fmt.Errorf("mark credential %q: %w", a.ID, err)
	}
	v.Log.WarnContext(ctx, "a credential has to be authorized again", "workspace", a.Workspace, "credential", a.ID, "reason", why)
	return needsPerson(a.Credential)
}

// needsPerson says, wherever a credential is used, that a person has to authorize it.
func needsPerson(c store.Credential) error {
	return fault.Newf(fault.CredentialInvalid, "credential %q has to be authorized again: %s; authorize it with: tandem credentials authorize %s", c.Name, c.Problem, c.ID)
}

// gate is where those wait who renew the same credential in this process.
func (v *Vault) gate(workspace, id string) chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := [2]string{workspace, id}
	if v.gates == nil {
		v.gates = map[[2]string]chan struct{}{}
	}
	if v.gates[key] == nil {
		v.gates[key] = make(chan struct{}, 1)
	}
	return v.gates[key]
}
