package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Grant is what an authorization server has given for a tool server: the tokens, and what is needed to renew them.
type Grant struct {
	// Issuer is the authorization server that knows the client. No other is told the client's secret.
	Issuer       string `json:"issuer,omitempty"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	// Auth is how the client shows at the token endpoint who it is: one of the Auth constants. Empty: as the authorization server wants it.
	Auth string `json:"auth,omitempty"`
	// Redirect is set when this program has made the client known by itself, for that address. A client without one was entered by a person.
	Redirect string `json:"redirect,omitempty"`
	// ClientExpires is when the authorization server forgets the client's secret, in milliseconds; zero: it does not.
	ClientExpires int64  `json:"client_expires,omitempty"`
	TokenURL      string `json:"token_url"`
	Resource      string `json:"resource,omitempty"`
	AccessToken   string `json:"token"`
	RefreshToken  string `json:"refresh_token,omitempty"`
	// Expires is when the access token ends, in milliseconds; zero when nobody said.
	Expires int64    `json:"expires,omitempty"`
	Scopes  []string `json:"scopes,omitempty"`
}

// How a client shows who it is: with its secret in the Authorization header or in the form, or by its id alone.
const (
	AuthBasic = "basic"
	AuthForm  = "form"
	AuthNone  = "none"
)

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

// getToken returns a token. Refused is one that the server did not take; it is not returned again.
func (t *tokenSource) getToken(ctx context.Context, refused string) (string, error) {
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
	remedy := fmt.Sprintf("authorize it: tandem mcp servers authorize %s", server.ID)
	if g.Resource != "" && !covers(g.Resource, server.URL) {
		return "", unauthorized(fmt.Sprintf("nothing was sent: the token in credential %q is for %q, and the server is at %q; %s", server.Credential, g.Resource, server.URL, remedy), nil)
	}
	fresh := g.Expires == 0 || time.UnixMilli(g.Expires).After(time.Now().Add(early))
	if g.AccessToken != "" && g.AccessToken != refused && fresh {
		return g.AccessToken, nil
	}
	if g.RefreshToken == "" || g.TokenURL == "" {
		switch {
		case g.AccessToken == "":
			return "", unauthorized(fmt.Sprintf("nothing was sent: credential %q has no token yet; %s", server.Credential, remedy), nil)
		case g.AccessToken == refused:
			return "", unauthorized("the server does not take the token, and there is nothing to renew it with; "+remedy, nil)
		}
		return "", unauthorized("nothing was sent: the token has expired, and there is nothing to renew it with; "+remedy, nil)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}}
	next, err := g.exchange(ctx, t.pool.options.HTTP, form)
	if ClientRefused(err) && g.Redirect != "" && g.ClientExpires == 0 {
		// The authorization server has forgotten the client: the next authorization makes another one known.
		g.ClientExpires = time.Now().UnixMilli()
		err = errors.Join(err, t.pool.options.Grants.Save(context.WithoutCancel(ctx), t.who.p, server.Credential, g))
	}
	if err != nil {
		return "", unauthorized("the token could not be renewed; "+remedy, err)
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
	secret := g.ClientSecret != "" && g.Auth != AuthNone
	if !secret || g.Auth != AuthBasic {
		form.Set("client_id", g.ClientID)
		if secret {
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
	if secret && g.Auth == AuthBasic {
		r.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.ClientSecret))
	}
	// What is sent is secret, and meant for this address alone.
	alone := *client
	alone.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := alone.Do(r)
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
		return g, &tokenRefusal{response.StatusCode, a.Error}
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

// tokenRefusal is what a token endpoint answers instead of a token.
type tokenRefusal struct {
	status int
	code   string
}

// Error says what was answered.
func (e *tokenRefusal) Error() string {
	return fmt.Sprintf("the authorization server answered %d, error %q", e.status, e.code)
}

// ClientRefused says that an authorization server does not know the client, or no longer.
func ClientRefused(err error) bool {
	e, ok := errors.AsType[*tokenRefusal](err)
	return ok && e.code == "invalid_client"
}
