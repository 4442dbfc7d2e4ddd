package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"tandem/fault"
	"tandem/store"
)

// Grant is what an authorization server has given for a tool server: the tokens, and what is needed to renew them.
type Grant struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	// Basic says that the client names itself in the Authorization header; otherwise in the form.
	Basic        bool   `json:"basic,omitempty"`
	TokenURL     string `json:"token_url"`
	Resource     string `json:"resource,omitempty"`
	AccessToken  string `json:"token"`
	RefreshToken string `json:"refresh_token,omitempty"`
	// Expires is when the access token ends, in milliseconds; zero when nobody said.
	Expires int64    `json:"expires,omitempty"`
	Scopes  []string `json:"scopes,omitempty"`
}

// early is how long before its end a token is renewed.
const early = 30 * time.Second

// tokenSource hands out the token of a server and user and renews it, one renewal at a time: a refresh token is often good
// for one use.
type tokenSource struct {
	pool *Pool
	who  principal
	gate chan struct{} // has room for one: who holds it may load and renew
}

// token returns the source of a credential. Connections of one credential share the gate, since they share the refresh token.
func (p *Pool) token(who principal) *tokenSource {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := Key{Workspace: who.p.Workspace, Server: who.server.Credential}
	if p.gates[key] == nil {
		p.gates[key] = make(chan struct{}, 1)
	}
	return &tokenSource{pool: p, who: who, gate: p.gates[key]}
}

// get returns a token. Refused is one that the server did not take; it is not returned again.
func (t *tokenSource) get(ctx context.Context, refused string) (string, error) {
	select {
	case t.gate <- struct{}{}:
		defer func() { <-t.gate }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	server := t.who.server
	unauthorized := func(message string, err error) error {
		return &Error{Kind: Unauthorized, Server: server.ID, Message: message, cause: err}
	}
	g, err := t.pool.options.Grants.Load(ctx, t.who.p, server.Credential)
	if err != nil {
		return "", unauthorized("its tokens could not be read; authorize it", err)
	}
	fresh := g.Expires == 0 || time.UnixMilli(g.Expires).After(time.Now().Add(early))
	if g.AccessToken != "" && g.AccessToken != refused && fresh {
		return g.AccessToken, nil
	}
	if g.RefreshToken == "" || g.TokenURL == "" {
		return "", unauthorized("the server does not take the token, and there is nothing to renew it with; authorize it again", nil)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}}
	next, err := g.exchange(ctx, t.pool.options.HTTP, form)
	if err != nil {
		return "", unauthorized("the token could not be renewed; authorize it again", err)
	}
	// A token that is used before it is kept could be lost, and with it the only refresh token.
	if err := t.pool.options.Grants.Save(context.WithoutCancel(ctx), t.who.p, server.Credential, next); err != nil {
		return "", unauthorized("the renewed token could not be kept", err)
	}
	return next.AccessToken, nil
}

// maxTokenAnswer bounds the answer of an authorization server.
const maxTokenAnswer = 1 << 20

// exchange asks the token endpoint, and returns the grant with what it gave.
func (g Grant) exchange(ctx context.Context, client *http.Client, form url.Values) (_ Grant, err error) {
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	if !g.Basic {
		form.Set("client_id", g.ClientID)
		if g.ClientSecret != "" {
			form.Set("client_secret", g.ClientSecret)
		}
	}
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return g, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if g.Basic {
		r.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.ClientSecret))
	}
	response, err := client.Do(r)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxTokenAnswer))
	if err != nil {
		return g, err
	}
	var a struct {
		AccessToken  string  `json:"access_token"`
		RefreshToken string  `json:"refresh_token"`
		TokenType    string  `json:"token_type"`
		ExpiresIn    float64 `json:"expires_in"`
		Scope        string  `json:"scope"`
		Error        string  `json:"error"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return g, fmt.Errorf("the authorization server answered %d with something that is not JSON", response.StatusCode)
	}
	switch {
	case response.StatusCode != http.StatusOK || a.Error != "":
		return g, fmt.Errorf("the authorization server answered %d, error %q", response.StatusCode, a.Error)
	case a.AccessToken == "" || a.TokenType != "" && !strings.EqualFold(a.TokenType, "bearer"):
		return g, errors.New("the authorization server gave no bearer token")
	}
	g.AccessToken, g.RefreshToken, g.Expires = a.AccessToken, cmp.Or(a.RefreshToken, g.RefreshToken), 0
	if a.ExpiresIn > 0 {
		g.Expires = time.Now().Add(time.Duration(a.ExpiresIn * float64(time.Second))).UnixMilli()
	}
	if a.Scope != "" {
		g.Scopes = strings.Fields(a.Scope)
	}
	return g, nil
}

// Authorization is one that has begun: a person opens URL, and comes back to the redirect address with a code and State. It is kept, as a secret, until then.
type Authorization struct {
	URL      string `json:"url"`
	State    string `json:"state"`
	Verifier string `json:"verifier"`
	Redirect string `json:"redirect"`
	// Issuer is who must have answered, and Named whether it says so.
	Issuer string `json:"issuer"`
	Named  bool   `json:"named"`
	Grant  Grant  `json:"grant"`
}

// BeginAuthorization finds out who gives tokens for a server, makes this program known there unless the grant names a client already, and says
// where a person has to go. Challenge is what the server said, if it did.
func BeginAuthorization(ctx context.Context, client *http.Client, server store.MCPServer, redirect string, known Grant, challenge []string) (Authorization, error) {
	said, err := oauthex.ParseWWWAuthenticate(challenge)
	if err != nil {
		said = nil // what cannot be read is as good as nothing said
	}
	metadata, scopes := "", []string(nil)
	for _, c := range said {
		if c.Scheme == "bearer" {
			metadata, scopes = cmp.Or(metadata, c.Params["resource_metadata"]), strings.Fields(c.Params["scope"])
		}
	}
	resource, err := resourceOf(ctx, client, server.URL, metadata)
	if err != nil {
		return Authorization{}, err
	}
	issuer := resource.AuthorizationServers[0]
	meta, err := auth.GetAuthServerMetadata(ctx, issuer, client)
	if err != nil {
		return Authorization{}, fault.Newf(fault.RemoteError, "the authorization server %q does not say how it works", issuer).WithCause(err)
	}
	if meta == nil { // an early version of the protocol had fixed places
		base := strings.TrimSuffix(issuer, "/")
		meta = &oauthex.AuthServerMeta{Issuer: issuer, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token", RegistrationEndpoint: base + "/register"}
	} else if !slices.Contains(meta.CodeChallengeMethodsSupported, "S256") {
		return Authorization{}, fault.Newf(fault.Unsupported, "the authorization server %q cannot protect a code (PKCE with S256)", issuer)
	}
	if len(scopes) == 0 {
		scopes = resource.ScopesSupported
	}
	if slices.Contains(meta.ScopesSupported, "offline_access") && !slices.Contains(scopes, "offline_access") {
		scopes = append(slices.Clone(scopes), "offline_access")
	}
	g := Grant{ClientID: known.ClientID, ClientSecret: known.ClientSecret, Basic: known.Basic, TokenURL: meta.TokenEndpoint, Resource: resource.Resource, Scopes: scopes}
	if g.ClientID == "" {
		if meta.RegistrationEndpoint == "" {
			return Authorization{}, fault.Newf(fault.CredentialMissing, "the authorization server %q registers no clients by itself; register one there and enter its client_id", issuer)
		}
		c, err := oauthex.RegisterClient(ctx, meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none", GrantTypes: []string{"authorization_code", "refresh_token"},
			ResponseTypes: []string{"code"}, ClientName: "Tandem", Scope: strings.Join(scopes, " "),
		}, client)
		if err != nil {
			return Authorization{}, fault.Newf(fault.RemoteRejected, "the authorization server %q did not register this client", issuer).WithCause(err)
		}
		g.ClientID, g.ClientSecret, g.Basic = c.ClientID, c.ClientSecret, c.TokenEndpointAuthMethod == "client_secret_basic"
	}
	a := Authorization{State: rand.Text(), Verifier: rand.Text() + rand.Text(), Redirect: redirect, Issuer: meta.Issuer,
		Named: meta.AuthorizationResponseIssParameterSupported, Grant: g}
	u, err := url.Parse(meta.AuthorizationEndpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return Authorization{}, fault.Newf(fault.RemoteError, "the authorization server %q names no address for people", issuer).WithCause(err)
	}
	sum := sha256.Sum256([]byte(a.Verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": g.ClientID, "redirect_uri": redirect, "state": a.State, "resource": g.Resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256", "scope": strings.Join(scopes, " "),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	a.URL = u.String()
	return a, nil
}

// resourceOf reads what a tool server says of itself. One that says nothing is its own authorization server.
func resourceOf(ctx context.Context, client *http.Client, server, metadata string) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	root := url.URL{Scheme: u.Scheme, Host: u.Host}
	places := []struct{ url, resource string }{
		{metadata, server},
		{root.JoinPath("/.well-known/oauth-protected-resource", u.Path).String(), server},
		{root.JoinPath("/.well-known/oauth-protected-resource").String(), root.String()},
	}
	for _, place := range places {
		if place.url == "" {
			continue
		}
		found, err := oauthex.GetProtectedResourceMetadata(ctx, place.url, place.resource, client)
		if err != nil || found == nil {
			continue // the next place may have it
		}
		if len(found.AuthorizationServers) == 0 {
			return nil, fault.Newf(fault.RemoteError, "the tool server %q names nobody who gives tokens for it", server)
		}
		return found, nil
	}
	return &oauthex.ProtectedResourceMetadata{Resource: server, AuthorizationServers: []string{root.String()}}, nil
}

// Finish exchanges the code that a person came back with. State and issuer are what stood beside it.
func (a Authorization) Finish(ctx context.Context, client *http.Client, code, state, issuer string) (Grant, error) {
	switch {
	case code == "" || state != a.State:
		return Grant{}, fault.New(fault.Forbidden, "this answer does not belong to the authorization that was begun; begin again")
	case issuer != "" && issuer != a.Issuer || issuer == "" && a.Named:
		return Grant{}, fault.New(fault.Forbidden, "the answer comes from another authorization server than the one that was asked")
	}
	g, err := a.Grant.exchange(ctx, client, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.Redirect}, "code_verifier": {a.Verifier},
	})
	if err != nil {
		return Grant{}, fault.New(fault.CredentialInvalid, "the authorization server gave no token").WithCause(err)
	}
	return g, nil
}
