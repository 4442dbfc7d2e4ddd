// Package oauth speaks OAuth 2 as a client: it sends people to an authorization server (authorization code with PKCE), exchanges what they
// come back with, and renews tokens. It keeps nothing: who may use a grant and where it is kept is for its callers, which are tool servers
// and credentials.
package oauth

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

	"tandem/fault"
)

// Grant is what an authorization server has given: the tokens, and what is needed to renew them.
type Grant struct {
	// Issuer is the authorization server that knows the client. No other is told the client's secret.
	Issuer       string `json:"issuer,omitempty"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	// Auth is how the client shows at the token endpoint who it is: one of the Auth constants. Empty: as the authorization server wants it.
	Auth string `json:"auth,omitempty"`
	// Redirect is set when this program has made the client known by itself, for that address. A client without one was entered by a
	// person.
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

// maxTokenAnswer bounds the answer of an authorization server.
const maxTokenAnswer = 1 << 20

// Exchange asks the token endpoint, and returns the grant with what it gave. A refusal is a [*Refusal].
func (g Grant) Exchange(ctx context.Context, client *http.Client, form url.Values) (_ Grant, err error) {
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
		TokenAnswer
		RefreshToken string `json:"refresh_token"`
		Scope        string `json:"scope"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return g, fmt.Errorf("the authorization server answered %d with something that is not JSON", response.StatusCode)
	}
	switch {
	case response.StatusCode != http.StatusOK || a.Error != "":
		return g, &Refusal{response.StatusCode, a.Error}
	case a.AccessToken == "" || !a.Bearer():
		return g, errors.New("the authorization server gave no bearer token")
	}
	g.AccessToken, g.RefreshToken, g.Expires = a.AccessToken, cmp.Or(a.RefreshToken, g.RefreshToken), 0
	if life := a.Life(); life > 0 {
		g.Expires = time.Now().Add(life).UnixMilli()
	}
	if a.Scope != "" {
		g.Scopes = strings.Fields(a.Scope)
	}
	return g, nil
}

// Refusal is what a token endpoint answers instead of a token.
type Refusal struct {
	Status int
	// Code is that of the protocol: invalid_grant, invalid_client, …
	Code string
}

// Error says what was answered.
func (e *Refusal) Error() string {
	return fmt.Sprintf("the authorization server answered %d, error %q", e.Status, e.Code)
}

// Final says that asking again does not help: the authorization server does not take the refresh token or the client any more.
func (e *Refusal) Final() bool {
	return slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, e.Code)
}

// ClientRefused says that an authorization server does not know the client, or no longer.
func ClientRefused(err error) bool {
	e, ok := errors.AsType[*Refusal](err)
	return ok && e.Code == "invalid_client"
}

// Authorization is one that has begun: a person opens URL, and comes back to the redirect address with a code and State. It is kept, as a
// secret, until then.
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

// Begin makes the address that a person opens at an authorization endpoint, with a challenge (PKCE) and a state that is good for one
// answer. Place is put before the state, for who comes back has nothing else; more are further parameters.
func (a *Authorization) Begin(endpoint, place string, more url.Values) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("the authorization server names no address for people")
	}
	a.State, a.Verifier = place+rand.Text(), rand.Text()+rand.Text()
	sum := sha256.Sum256([]byte(a.Verifier))
	q := u.Query()
	for name, values := range more { // order does not matter
		q[name] = values
	}
	for name, value := range map[string]string{
		"response_type": "code", "client_id": a.Grant.ClientID, "redirect_uri": a.Redirect, "state": a.State, "resource": a.Grant.Resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
		"scope": strings.Join(a.Grant.Scopes, " "),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	a.URL = u.String()
	return nil
}

// Finish exchanges the code that a person came back with. State and issuer are what stood beside it.
func (a Authorization) Finish(ctx context.Context, client *http.Client, code, state, issuer string) (Grant, error) {
	switch {
	case code == "" || state != a.State:
		return Grant{}, fault.New(fault.Forbidden, "this answer does not belong to the authorization that was begun; begin again")
	case issuer != "" && a.Issuer != "" && issuer != a.Issuer || issuer == "" && a.Named:
		return Grant{}, fault.New(fault.Forbidden, "the answer comes from another authorization server than the one that was asked")
	}
	g, err := a.Grant.Exchange(ctx, client, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.Redirect}, "code_verifier": {a.Verifier},
	})
	if err != nil {
		return Grant{}, fault.New(fault.CredentialInvalid, "the authorization server gave no token").WithCause(err)
	}
	return g, nil
}
