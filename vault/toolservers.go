package vault

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tandem/credential/oauth"
	"tandem/fault"
	"tandem/identity"
	"tandem/mcp"
	"tandem/outbound"
	"tandem/settings"
	"tandem/store"
)

const (
	// oauthCredential is the type of the credentials that hold the tokens of tool servers.
	oauthCredential = mcp.OAuthCredential
	// authorizedPath is where people come back to who were sent to authorize one.
	authorizedPath = settings.AuthorizedPath
)

// ToolServers is the tool servers of an instance: the pool of connections to them, and what that needs of the vault.
type ToolServers struct {
	*mcp.Pool
	stores store.Stores
	vault  *Vault
	client *outbound.Client
	http   *http.Client
	// public is where a browser reaches this instance; empty: it cannot.
	public string

	mu sync.Mutex // who reads a credential to change it
	// held keeps the tokens that were handed out last from what leaves, by workspace and credential.
	held map[[2]string]func()
}

// firstAnswer is how long a server may take to begin an answer: longer than any call may take, which has limits of its own.
const firstAnswer = 2*time.Hour + time.Minute

// ToolOptions say what tool servers work with.
type ToolOptions struct {
	Stores store.Stores
	// Allow are addresses that tool servers may have although they are not public.
	Allow outbound.AllowList
	// PublicURL is where a browser reaches this instance; empty: it cannot.
	PublicURL string
	// Version is what tool servers are told.
	Version string
}

// OpenTools makes the pool. It starts and reaches nothing.
func (v *Vault) OpenTools(o ToolOptions) (*ToolServers, error) {
	client := outbound.New(outbound.Options{Allow: o.Allow, FirstByte: firstAnswer})
	t := &ToolServers{
		stores: o.Stores, vault: v, client: client, http: &http.Client{Transport: client.RoundTripper(0)},
		public: strings.TrimSuffix(o.PublicURL, "/"), held: map[[2]string]func(){},
	}
	var err error
	t.Pool, err = mcp.New(mcp.Options{
		Servers: o.Stores.MCPServers, Secrets: t, Grants: t, Admin: t.admin, HTTP: t.http, Log: v.Log, Version: o.Version,
		Redact: func(_, text string) string { return v.redactor.Text(text) },
		Clean:  func(_ string, document json.RawMessage) json.RawMessage { return v.redactor.JSON(document) },
	})
	return t, err
}

// PublicURL is where a browser reaches this instance; empty: it cannot.
func (t *ToolServers) PublicURL() string { return t.public }

// admin says that a user of a workspace is an admin. Somebody who is not a user, or no longer, is not.
func (t *ToolServers) admin(ctx context.Context, workspace, user string) (bool, error) {
	u, err := t.stores.Users.Get(ctx, identity.System(workspace), user)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && !u.Disabled && u.Principal().Has(identity.Admin), err
}

// Close ends all connections, with the processes.
func (t *ToolServers) Close() {
	t.Pool.Close()
	t.client.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, release := range t.held { // order does not matter
		release()
		delete(t.held, key)
	}
}

// Secret implements [mcp.Secrets].
func (t *ToolServers) Secret(ctx context.Context, p identity.Principal, credential, field string) (string, func(), error) {
	opened, err := t.vault.Opener(p)(ctx, credential)
	if err != nil {
		return "", nil, err
	}
	var fields map[string]json.RawMessage
	text := ""
	if json.Unmarshal(opened.Data, &fields) != nil || json.Unmarshal(fields[field], &text) != nil || text == "" {
		names := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
		opened.Release()
		return "", nil, fault.Newf(fault.CredentialInvalid, "credential %q has no text %q; it has %s", credential,
			field, cmp.Or(names, "nothing"))
	}
	return text, opened.Release, nil
}

// Version implements [mcp.Secrets].
func (t *ToolServers) Version(ctx context.Context, p identity.Principal, credential string) (string, error) {
	found, err := t.vault.find(ctx, p, credential)
	return found.ID + " " + strconv.FormatInt(found.Version, 10), err
}

// grantData is a grant as its credential has it, with the authorization that is under way, if one is.
type grantData struct {
	// Issuer is the authorization server that the client belongs to. A client that a person has entered without one belongs to the first
	// that is met.
	Issuer        string   `json:"issuer,omitempty"`
	ClientID      string   `json:"client_id,omitempty"`
	ClientSecret  string   `json:"client_secret,omitempty"`
	ClientAuth    string   `json:"client_auth,omitempty"`
	ClientExpires string   `json:"client_expires,omitempty"`
	TokenURL      string   `json:"token_url,omitempty"`
	Resource      string   `json:"resource,omitempty"`
	Token         string   `json:"token,omitempty"`
	RefreshToken  string   `json:"refresh_token,omitempty"`
	Expires       string   `json:"expires,omitempty"`
	Scopes        []string `json:"scopes,omitempty"`
	// RedirectURI is set when the client was registered by this program, for that address.
	RedirectURI string `json:"redirect_uri,omitempty"`
	// BaseURL is a field of every type. It is not used here, and kept when the credential is written anew.
	BaseURL string `json:"base_url,omitempty"`

	Pending *pendingGrant `json:"pending,omitempty"`
}

// pendingGrant is an authorization that a person has begun and not finished.
type pendingGrant struct {
	mcp.Authorization
	// Until is when it is too late, in milliseconds.
	Until int64 `json:"until"`
}

// pendingFor is how long a person may take.
const pendingFor = 15 * time.Minute

func (d grantData) grant() mcp.Grant {
	return mcp.Grant{Issuer: d.Issuer, ClientID: d.ClientID, ClientSecret: d.ClientSecret, Auth: d.ClientAuth, Redirect: d.RedirectURI,
		ClientExpires: readMillis(d.ClientExpires),
		TokenURL:      d.TokenURL, Resource: d.Resource, AccessToken: d.Token, RefreshToken: d.RefreshToken,
		Expires: readMillis(d.Expires), Scopes: d.Scopes}
}

func (d *grantData) set(g mcp.Grant) {
	d.Issuer, d.ClientID, d.ClientSecret, d.ClientAuth, d.RedirectURI, d.ClientExpires = g.Issuer, g.ClientID, g.ClientSecret, g.Auth,
		g.Redirect, tellMillis(g.ClientExpires)
	d.TokenURL, d.Resource, d.Token, d.RefreshToken, d.Expires, d.Scopes = g.TokenURL, g.Resource, g.AccessToken, g.RefreshToken,
		tellMillis(g.Expires), g.Scopes
}

// readMillis reads a time as its credential has it. What nobody said, or somebody wrote by hand, is zero.
func readMillis(text string) int64 {
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return at
}

func tellMillis(at int64) string {
	if at <= 0 {
		return ""
	}
	return strconv.FormatInt(at, 10)
}

// Load implements [mcp.Grants]. What is handed out is kept from what leaves until the next is.
func (t *ToolServers) Load(ctx context.Context, p identity.Principal, credential string) (mcp.Grant, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	data, err := t.readGrant(ctx, p, credential)
	return data.grant(), err
}

// Save implements [mcp.Grants].
func (t *ToolServers) Save(ctx context.Context, p identity.Principal, credential string, g mcp.Grant) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	data, err := t.readGrant(ctx, p, credential)
	if err != nil {
		return err
	}
	data.set(g)
	return t.write(ctx, p, credential, data)
}

// readGrant opens the credential of a grant. The mutex is held.
func (t *ToolServers) readGrant(ctx context.Context, p identity.Principal, credential string) (grantData, error) {
	opened, err := t.vault.Opener(p)(ctx, credential, oauthCredential)
	if err != nil {
		return grantData{}, err
	}
	var data grantData
	if err := json.Unmarshal(opened.Data, &data); err != nil {
		opened.Release()
		return grantData{}, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; enter it anew", credential).WithCause(err)
	}
	key := [2]string{p.Workspace, credential}
	if forget := t.held[key]; forget != nil {
		forget()
	}
	t.held[key] = opened.Release
	return data, nil
}

// write seals the credential of a grant anew. The mutex is held.
func (t *ToolServers) write(ctx context.Context, p identity.Principal, credential string, data grantData) error {
	stored, err := t.stores.Credentials.Get(ctx, p, credential)
	if err != nil {
		return err
	}
	if stored.Sealed, err = t.seal(p.Workspace, credential, data); err != nil {
		return err
	}
	stored.Updated = time.Now().UnixMilli()
	return t.stores.Credentials.Update(ctx, p, stored)
}

func (t *ToolServers) seal(workspace, credential string, data grantData) ([]byte, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("write the tokens of credential %q: %w", credential, err)
	}
	ring, err := t.vault.Keyring()
	if err != nil {
		return nil, err
	}
	known, err := t.vault.types.Find(oauthCredential)
	if err != nil {
		return nil, err
	}
	return ring.SealData(known, workspace, credential, raw)
}

// Authorize begins an authorization of this program at a tool server, and returns where a person has to go.
func (t *ToolServers) Authorize(ctx context.Context, p identity.Principal, id string) (string, error) {
	server, err := t.stores.MCPServers.Get(ctx, p, id)
	if err != nil {
		return "", err
	}
	switch {
	case server.Transport == store.MCPStdio:
		return "", fault.Newf(fault.Conflict, "tool server %q is a process and is not authorized; put its secrets into env, from a credential", id)
	case t.public == "":
		return "", fault.New(fault.Unsupported, "nobody could come back with the answer; authorize it through a server: tandem serve, and --public-url where a browser cannot reach the address it listens on")
	}
	known := grantData{}
	redirect := t.public + authorizedPath
	if server.Credential != "" {
		t.mu.Lock()
		known, err = t.readGrant(ctx, p, server.Credential)
		t.mu.Unlock()
		if err != nil {
			return "", err
		}
	}
	// A browser that comes back has nothing but the state, so it also says what it is for.
	place := placeFor(p, id)
	a, err := t.BeginAuthorization(ctx, p, mcp.Wish{Server: server, Redirect: redirect, Place: place,
		Document: t.document(), Known: known.grant()})
	if err != nil {
		return "", err
	}
	pending := &pendingGrant{a, time.Now().Add(pendingFor).UnixMilli()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if server.Credential == "" {
		return a.URL, t.adopt(ctx, p, server, grantData{Pending: pending})
	}
	if known, err = t.readGrant(ctx, p, server.Credential); err != nil {
		return "", err
	}
	if known.Pending = pending; known.ClientID != "" && known.ClientID == a.Grant.ClientID {
		known.Issuer = a.Grant.Issuer // from now on it is shown to no other
	}
	return a.URL, t.write(ctx, p, server.Credential, known)
}

// document is where authorization servers read what this program is; empty: they cannot, or would not: they want an address that nobody on
// the way can change.
func (t *ToolServers) document() string {
	if !strings.HasPrefix(t.public, "https://") {
		return ""
	}
	return t.public + settings.ClientDocumentPath
}

// ClientDocument is what this program says of itself at that address.
func (t *ToolServers) ClientDocument() (json.RawMessage, error) {
	if t.document() == "" {
		return nil, fault.New(fault.NotFound, "this server is not known by an https address; start it with --public-url https://… where authorization servers reach it")
	}
	return mcp.ClientDocument(t.document(), t.public+authorizedPath)
}

// adopt makes a credential for a server that has none.
func (t *ToolServers) adopt(ctx context.Context, p identity.Principal, server store.MCPServer, data grantData) error {
	now := time.Now().UnixMilli()
	c := store.Credential{Workspace: p.Workspace, ID: "cred_" + strings.ToLower(rand.Text()), Name: "MCP " + server.ID,
		Type: oauthCredential, CreatedBy: p.User, TokenMadeBy: p.TokenMadeBy(), Created: now, Updated: now}
	var err error
	if c.Sealed, err = t.seal(p.Workspace, c.ID, data); err != nil {
		return err
	}
	audited := store.AuditedBy(ctx, p, "credential.create", c.ID,
		map[string]string{"name": c.Name, "type": c.Type, "mcp_server": server.ID})
	err = t.stores.Credentials.Create(audited, p, c)
	if errors.Is(err, store.ErrConflict) { // the name is taken
		c.Name += " " + c.ID[len(c.ID)-6:]
		err = t.stores.Credentials.Create(audited, p, c)
	}
	if err != nil {
		return err
	}
	server.Credential, server.Updated = c.ID, now
	return t.stores.MCPServers.Put(ctx, p, server)
}

// errNotBegun is all that somebody is told who comes with a state that nobody waits for.
func errNotBegun() error {
	return fault.New(fault.NotFound, "this authorization was not begun here, was used already, or took too long; begin it again")
}

// Authorized finishes an authorization with what a person came back with, and returns the server that can be used now. A state
// is good for one answer, whatever that is.
func (t *ToolServers) Authorized(ctx context.Context, back url.Values) (string, error) {
	state := back.Get("state")
	p, id, err := placeOf(state)
	if err != nil {
		return "", err
	}
	server, err := t.stores.MCPServers.Get(ctx, p, id)
	if err != nil || server.Credential == "" {
		return "", errNotBegun()
	}
	a, err := t.takeGrant(ctx, p, server.Credential, state)
	if err != nil {
		return "", err
	}
	if problem := back.Get("error"); problem != "" {
		if problem == "invalid_scope" { // so that the next try does not ask for the same
			t.ForgetChallenge(p.Workspace, id)
		}
		return "", refusedBy(back)
	}
	g, err := a.Finish(ctx, t.http, back.Get("code"), state, back.Get("iss"))
	if err != nil {
		if oauth.ClientRefused(err) {
			if failed := t.retire(context.WithoutCancel(ctx), p, server.Credential, a.Grant.ClientID); failed != nil {
				err = errors.Join(err, failed)
			}
		}
		return "", err
	}
	audited := store.Audited(context.WithoutCancel(ctx), store.AuditEntry{Workspace: p.Workspace,
		Means: identity.Means{Kind: identity.ByCallback}, Action: "credential.authorized", Object: "credential",
		ObjectID: server.Credential, Detail: store.AuditDetail(map[string]string{"server_id": id})})
	if err := t.finish(audited, p, server.Credential, g); err != nil {
		return "", err
	}
	t.ForgetChallenge(p.Workspace, id)
	t.Stop(p.Workspace, id, "") // the next use begins with the new token
	return id, nil
}

// finish keeps what an authorization has brought.
func (t *ToolServers) finish(ctx context.Context, p identity.Principal, credential string, g mcp.Grant) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	data, err := t.readGrant(ctx, p, credential)
	if err != nil {
		return err
	}
	data.set(g)
	return t.write(ctx, p, credential, data)
}

// retire notes that an authorization server does not know a client that was registered here, so that the next authorization registers
// another.
func (t *ToolServers) retire(ctx context.Context, p identity.Principal, credential, client string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	data, err := t.readGrant(ctx, p, credential)
	if err != nil || data.ClientID != client || data.RedirectURI == "" {
		return err
	}
	data.ClientExpires = tellMillis(time.Now().UnixMilli())
	return t.write(ctx, p, credential, data)
}

// takeGrant takes the pending authorization out of its credential, if the state belongs to it.
func (t *ToolServers) takeGrant(ctx context.Context, p identity.Principal, credential, state string) (pendingGrant, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	data, err := t.readGrant(ctx, p, credential)
	if err != nil {
		return pendingGrant{}, err
	}
	pending := data.Pending
	if pending == nil || subtle.ConstantTimeCompare([]byte(pending.State), []byte(state)) != 1 {
		return pendingGrant{}, errNotBegun()
	}
	data.Pending = nil
	if err := t.write(ctx, p, credential, data); err != nil {
		return pendingGrant{}, err
	}
	if time.Now().UnixMilli() > pending.Until {
		return pendingGrant{}, errNotBegun()
	}
	return *pending, nil
}
