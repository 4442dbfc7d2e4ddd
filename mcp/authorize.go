package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"tandem/credential/oauth"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// Wish is what an authorization begins with.
type Wish struct {
	Server store.MCPServer
	// Redirect is where the person comes back to.
	Redirect string
	// Document is where authorization servers read what this program is (see [ClientDocument]); empty: they cannot.
	Document string
	// Place is put before the state.
	Place string
	// Known is what there is already: a client, and what was granted.
	Known Grant
}

// probePatience is how long a server may take to say what it wants.
const probePatience = 20 * time.Second

// BeginAuthorization finds out who gives tokens for a server and what it wants, makes this program known there unless a client is known to
// the same authorization server already, and says where a person has to go.
func (p *Pool) BeginAuthorization(ctx context.Context, who identity.Principal, w Wish) (Authorization, error) {
	to := principal{who, w.Server}
	p.probe(ctx, to)
	wanted := p.wanted(to)
	client := p.options.HTTP
	if client == nil {
		return Authorization{}, errors.New("no HTTP client is configured")
	}
	resource, early, err := resourceOf(ctx, client, w.Server.URL, wanted.metadata)
	if err != nil {
		return Authorization{}, err
	}
	issuer := resource.AuthorizationServers[0]
	for _, one := range resource.AuthorizationServers {
		if sameIssuer(one, w.Known.Issuer) {
			issuer = one
		}
	}
	meta, err := metadataOf(ctx, client, issuer, early)
	if err != nil {
		return Authorization{}, fault.Newf(fault.RemoteError, "the authorization server %q does not say how it works", issuer).WithCause(err)
	}
	if meta == nil { // an early version of the protocol had fixed places
		base := strings.TrimSuffix(issuer, "/")
		meta = &oauthex.AuthServerMeta{Issuer: issuer, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token",
			RegistrationEndpoint: base + "/register"}
	} else if !slices.Contains(meta.CodeChallengeMethodsSupported, "S256") {
		return Authorization{}, fault.Newf(fault.Unsupported, "the authorization server %q cannot protect a code (PKCE with S256)", issuer)
	}
	scopes := wanted.scopes
	if len(scopes) == 0 {
		scopes = resource.ScopesSupported
	}
	if knownTo(w.Known, meta) { // what another has granted means nothing here
		scopes = union(w.Known.Scopes, scopes)
	}
	if slices.Contains(meta.ScopesSupported, "offline_access") {
		scopes = union(scopes, []string{"offline_access"})
	}
	g, err := w.client(ctx, client, meta, scopes)
	if err != nil {
		return Authorization{}, err
	}
	g.TokenURL, g.Resource, g.Scopes = meta.TokenEndpoint, resource.Resource, scopes
	a := Authorization{Redirect: w.Redirect, Issuer: meta.Issuer, Named: meta.AuthorizationResponseIssParameterSupported, Grant: g}
	if err := a.Begin(meta.AuthorizationEndpoint, w.Place, nil); err != nil {
		return Authorization{}, fault.Newf(fault.RemoteError, "the authorization server %q names no address for people", issuer).WithCause(err)
	}
	return a, nil
}

// client is what this program is known as to an authorization server: as before, by its document, or registered now.
func (w *Wish) client(ctx context.Context, client *http.Client, meta *oauthex.AuthServerMeta, scopes []string) (Grant, error) {
	k := w.Known
	own := k.Redirect != "" // made known by this program, so another one can be
	switch {
	case k.ClientID != "" && knownTo(k, meta) && (!own || k.Redirect == w.Redirect &&
		(k.ClientExpires == 0 || k.ClientExpires > time.Now().UnixMilli())):
		how, err := authOf(k.Auth, k.ClientSecret != "", meta)
		return Grant{Issuer: meta.Issuer, ClientID: k.ClientID, ClientSecret: k.ClientSecret, Auth: how, Redirect: k.Redirect,
			ClientExpires: k.ClientExpires}, err
	case meta.ClientIDMetadataDocumentSupported && w.Document != "":
		return Grant{Issuer: meta.Issuer, ClientID: w.Document, Auth: oauth.AuthNone, Redirect: w.Redirect}, nil
	case meta.RegistrationEndpoint != "":
		return w.register(ctx, client, meta, scopes)
	case k.ClientID != "" && !own:
		return Grant{}, fault.Newf(fault.CredentialInvalid, "the tool server names the authorization server %q, and the client in its credential belongs to %q: "+
			"it is not shown to another one. Register a client with the first, and enter its client_id, client_secret and issuer", meta.Issuer, cmp.Or(k.Issuer, k.TokenURL))
	}
	return Grant{}, fault.Newf(fault.CredentialMissing, "the authorization server %q registers no clients by itself; register one there and enter its client_id", meta.Issuer)
}

// knownTo says that a client is known to an authorization server, or to none yet. One that was kept before it was kept with its issuer
// belongs to where its tokens came from.
func knownTo(g Grant, meta *oauthex.AuthServerMeta) bool {
	switch {
	case g.Issuer != "":
		return sameIssuer(g.Issuer, meta.Issuer)
	case g.TokenURL != "":
		return g.TokenURL == meta.TokenEndpoint
	}
	return true
}

func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// authNames are the ways of a client in the words of the metadata, the ones first that are better where a secret can be kept.
func authNames() []struct{ name, how string } {
	return []struct{ name, how string }{{"client_secret_basic", oauth.AuthBasic},
		{"client_secret_post", oauth.AuthForm}, {"none", oauth.AuthNone}}
}

// authOf is how a client shows who it is: as it shall, where the authorization server takes that, or else in a way that it takes.
func authOf(wish string, secret bool, meta *oauthex.AuthServerMeta) (string, error) {
	if !secret {
		return oauth.AuthNone, nil
	}
	if len(meta.TokenEndpointAuthMethodsSupported) == 0 {
		return cmp.Or(wish, oauth.AuthBasic), nil // the usual one of OAuth
	}
	first := ""
	for _, one := range authNames() {
		if !slices.Contains(meta.TokenEndpointAuthMethodsSupported, one.name) {
			continue
		}
		if one.how == wish {
			return wish, nil
		}
		first = cmp.Or(first, one.how)
	}
	if first == "" {
		return "", noCommonAuth(meta)
	}
	return first, nil
}

func noCommonAuth(meta *oauthex.AuthServerMeta) error {
	return fault.Newf(fault.Unsupported, "the authorization server %q takes clients only in ways that are not spoken here (%s)", meta.Issuer, strings.Join(meta.TokenEndpointAuthMethodsSupported, ", "))
}

// register makes this program known to an authorization server, in a way that it takes.
func (w *Wish) register(ctx context.Context, client *http.Client, meta *oauthex.AuthServerMeta, scopes []string) (Grant, error) {
	try := []string{"client_secret_basic", "none"} // where nothing is said: the usual one of OAuth, and the one that most of those take who say nothing
	if said := meta.TokenEndpointAuthMethodsSupported; len(said) > 0 {
		try = nil
		for _, one := range authNames() {
			if slices.Contains(said, one.name) {
				try = append(try, one.name)
			}
		}
		if try == nil {
			return Grant{}, noCommonAuth(meta)
		}
	}
	var failed error
	for _, method := range try {
		told := describe(w.Redirect)
		told.TokenEndpointAuthMethod, told.Scope = method, strings.Join(scopes, " ")
		c, err := oauthex.RegisterClient(ctx, meta.RegistrationEndpoint, &told, client)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		g := Grant{Issuer: meta.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret, Auth: oauth.AuthNone, Redirect: w.Redirect}
		for _, one := range authNames() {
			if one.name == cmp.Or(c.TokenEndpointAuthMethod, method) && c.ClientSecret != "" {
				g.Auth = one.how
			}
		}
		if !c.ClientSecretExpiresAt.IsZero() {
			g.ClientExpires = c.ClientSecretExpiresAt.UnixMilli()
		}
		return g, nil
	}
	return Grant{}, fault.Newf(fault.RemoteRejected, "the authorization server %q did not register this client; register one there and enter its client_id", meta.Issuer).WithCause(failed)
}

// describe is what this program says of itself to authorization servers.
func describe(redirect string) oauthex.ClientRegistrationMetadata {
	kind := "web"
	if u, err := url.Parse(redirect); err == nil && loopback(u.Hostname()) {
		kind = "native" // so OpenID Connect calls one whose people come back to their own machine
	}
	return oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		ClientName: "Tandem", ApplicationType: kind,
	}
}

// ClientDocument is the client id metadata document of this program at an address, which is its client id.
func ClientDocument(address, redirect string) (json.RawMessage, error) {
	told := describe(redirect)
	told.TokenEndpointAuthMethod = "none"
	return json.Marshal(struct {
		ClientID string `json:"client_id"`
		oauthex.ClientRegistrationMetadata
	}{address, told})
}

// errNotThere says that there is nothing at a place, errNoJSON that there is something else.
var (
	errNotThere = errors.New("there is nothing there")
	errNoJSON   = errors.New("it is not JSON")
)

// resourceOf reads what a tool server says of itself. One that says nothing is its own authorization server, as in an early version of the
// protocol.
func resourceOf(ctx context.Context, client *http.Client, server,
	named string) (_ *oauthex.ProtectedResourceMetadata, early bool, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, false, err
	}
	root := url.URL{Scheme: u.Scheme, Host: u.Host}
	for _, place := range []string{named, root.JoinPath("/.well-known/oauth-protected-resource", u.Path).String(),
		root.JoinPath("/.well-known/oauth-protected-resource").String()} {
		if place == "" {
			continue
		}
		var found oauthex.ProtectedResourceMetadata
		err := readJSON(ctx, client, place, &found)
		if errors.Is(err, errNotThere) || errors.Is(err, errNoJSON) && place != named { // a page for whatever is asked says nothing
			continue
		}
		if err == nil && !covers(found.Resource, server) {
			err = fmt.Errorf("it is about %q, which is not this server", found.Resource)
		}
		for _, one := range found.AuthorizationServers {
			err = cmp.Or(err, protected(one))
		}
		switch {
		case err != nil:
			return nil, false, fault.Newf(fault.RemoteError, "what the tool server says of itself at %q cannot be used: %w", place, err)
		case len(found.AuthorizationServers) == 0:
			return nil, false, fault.Newf(fault.RemoteError, "the tool server %q names nobody who gives tokens for it", server)
		}
		return &found, false, nil
	}
	if named != "" {
		return nil, false, fault.Newf(fault.RemoteError, "the tool server %q says that %q names who gives tokens for it, and there is nothing", server, named)
	}
	return &oauthex.ProtectedResourceMetadata{Resource: server, AuthorizationServers: []string{root.String()}}, true, nil
}

// metadataOf reads how an authorization server works; nil: it does not say. A tool server of the early version, which is its own, may call
// itself by another path of its origin.
func metadataOf(ctx context.Context, client *http.Client, issuer string, early bool) (*oauthex.AuthServerMeta, error) {
	meta, err := auth.GetAuthServerMetadata(ctx, issuer, client)
	if err == nil || !early {
		return meta, err
	}
	place := issuer + "/.well-known/oauth-authorization-server"
	var said struct {
		Issuer string `json:"issuer"`
	}
	if readJSON(ctx, client, place, &said) != nil || !covers(issuer, said.Issuer) {
		return nil, err
	}
	return oauthex.GetAuthServerMeta(ctx, place, said.Issuer, client)
}

// readJSON reads a document that nobody on the way can change.
func readJSON(ctx context.Context, client *http.Client, place string, into any) (err error) {
	if err := protected(place); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, probePatience)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	switch {
	case response.StatusCode >= 400 && response.StatusCode < 500:
		return errNotThere
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the answer has the status %d", response.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxTokenAnswer)).Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errNoJSON, err)
	}
	return nil
}

// covers says that a resource is a server, or what it is a part of: the same origin, and a path that it begins with.
func covers(resource, server string) bool {
	r, rerr := url.Parse(resource)
	s, serr := url.Parse(server)
	if rerr != nil || serr != nil || !strings.EqualFold(r.Scheme, s.Scheme) || !strings.EqualFold(r.Host, s.Host) {
		return false
	}
	path := strings.TrimSuffix(r.Path, "/")
	return s.Path == path || strings.HasPrefix(s.Path, path+"/")
}

// protected says that nobody on the way can change what an address answers.
func protected(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return err
	case u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q is not an https address", address)
}

func loopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }
