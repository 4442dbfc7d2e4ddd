package httpcall

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tandem/builtin/values"
	"tandem/credential"
	"tandem/credential/oauth"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
	"tandem/text"
)

// authData are the fields of a credential of the type http_auth.
type authData struct {
	Scheme       string   `json:"scheme"`
	Token        string   `json:"token"`
	Username     string   `json:"username"`
	Password     string   `json:"password"`
	Name         string   `json:"name"`
	Value        string   `json:"value"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret"`
	TokenURL     string   `json:"token_url"`
	Scopes       []string `json:"scopes"`
	AllowedHosts []string `json:"allowed_hosts"`
	BaseURL      string   `json:"base_url"`
}

// oauthType is the type of credentials that a person authorizes with a browser, at any service that speaks OAuth 2.
const oauthType = "oauth2"

// OAuthCredential is that type.
func OAuthCredential() credential.Type {
	return credential.Type{Name: oauthType, Check: checkAccount, Label: text.Beside("OAuth 2 account", "OAuth 2 账号"),
		OAuth: &credential.OAuth{}, Alternatives: credential.OAuthAlternatives(),
		Fields: append(credential.OAuthFields(), credential.Field{Name: "allowed_hosts", Label: text.Beside("Allowed hosts", "允许的主机"),
			Format: credential.FormatTexts})}
}

// Credential is the type of the credential of a service which wants a token, a password, a header or a parameter.
func Credential(client *outbound.Client) credential.Type {
	return credential.Type{Name: "http_auth", Check: checkAuth(client), Label: text.Beside("HTTP authentication", "HTTP 认证"),
		Selector: "scheme", Fields: []credential.Field{
			credential.Choice("scheme", "Scheme", "方式", "bearer", "basic", "header", "query", "oauth2_client").Needed(),
			credential.Secret("token", "Access token", "访问令牌"), credential.Username(), credential.Password(),
			credential.Text("name", "Header or parameter name", "请求头或参数名"), credential.Secret("value", "Header or parameter value", "请求头或参数值"),
			credential.Text("client_id", "Client ID", "客户端 ID"), credential.Secret("client_secret", "Client secret", "客户端密钥"),
			credential.Address("token_url", "Token URL", "令牌地址"),
			{Name: "scopes", Label: text.Beside("Scopes", "权限范围"), Format: credential.FormatTexts},
			{Name: "allowed_hosts", Label: text.Beside("Allowed hosts", "允许的主机"), Format: credential.FormatTexts},
		}, Alternatives: []credential.Alternative{
			{When: "bearer", Requires: []string{"token"}},
			{When: "basic", Requires: []string{"username", "password"}},
			{When: "header", Requires: []string{"name", "value"}},
			{When: "query", Requires: []string{"name", "value"}},
			{When: "oauth2_client", Requires: []string{"client_id", "client_secret", "token_url"}},
		}}
}

// Auth is a credential in use by one run. Tokens that were fetched with it are secrets that nobody else knows of, so
// it takes them out of what the run says.
type Auth struct {
	data   authData
	tokens *Tokens
	key    tokenKey
	renew  func(ctx context.Context, refused string) (credential.Opened, error)
	Redact credential.Redactor
	Held   bool
}

// AuthOf is a credential whose fields stand in another one, for calls to a host. Without fields nothing authenticates them.
func AuthOf(id string, fields json.RawMessage, tokens *Tokens, host string) (*Auth, error) {
	a := &Auth{tokens: tokens, key: tokenKey(sha256.Sum256(append([]byte(id+"\x00"), fields...)))}
	if len(fields) > 0 && json.Unmarshal(fields, &a.data) != nil {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; save it again", id)
	}
	if len(a.data.AllowedHosts) == 0 {
		a.data.AllowedHosts = []string{host}
	}
	if len(fields) == 0 {
		a.data.Scheme = noScheme
	}
	return a, nil
}

// noScheme is the scheme of calls that nothing authenticates.
const noScheme = "none"

func openAuth(ctx context.Context, call *node.Call, id string, tokens *Tokens) (*Auth, error) {
	if call.Credential == nil {
		return nil, fault.Newf(fault.CredentialMissing, "credential %q cannot be opened: there are no credentials here", id)
	}
	opened, err := call.Credential(ctx, id, "http_auth", oauthType)
	if err != nil {
		return nil, err
	}
	a := &Auth{tokens: tokens, renew: opened.Renew, key: tokenKey(sha256.Sum256(append([]byte(opened.ID+"\x00"), opened.Data...)))}
	if err := json.Unmarshal(opened.Data, &a.data); err != nil {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; save it again", id)
	}
	if opened.Type == oauthType {
		a.data.Scheme = oauthType
	}
	return a, nil
}

// secret is what authenticates a call. Fresh says that a token was fetched just now, so that a refusal is final.
func (a *Auth) secret(ctx context.Context, renew bool) (s *outbound.Secret, fresh bool, err error) {
	s = &outbound.Secret{Header: http.Header{}, Hosts: a.data.AllowedHosts}
	switch a.data.Scheme {
	case noScheme:
		return s, true, nil
	case "bearer":
		s.Header.Set("Authorization", "Bearer "+a.data.Token)
	case oauthType:
		if renew && a.renew != nil { // the service did not take the token
			again, err := a.renew(ctx, a.data.Token)
			if err != nil {
				return nil, false, err
			}
			defer again.Release()
			if err := json.Unmarshal(again.Data, &a.data); err != nil {
				return nil, false, fault.New(fault.CredentialInvalid, "the credential cannot be read; save it again")
			}
			a.data.Scheme = oauthType
			a.Redact.Hold(a.data.Token) // until the run ends, and the redactor with it
			a.Held = true
		}
		s.Header.Set("Authorization", "Bearer "+a.data.Token)
		return s, renew || a.renew == nil, nil
	case "basic":
		s.Header.Set("Authorization", basicAuth(a.data.Username, a.data.Password))
	case "header":
		s.Header.Set(a.data.Name, a.data.Value)
	case "query":
		s.Query = url.Values{a.data.Name: {a.data.Value}}
	case "oauth2_client":
		token, fetched, err := a.tokens.get(ctx, a.key, a.data, renew)
		if err != nil {
			return nil, false, err
		}
		a.Redact.Hold(token) // until the run ends, and the redactor with it
		a.Held = true
		s.Header.Set("Authorization", "Bearer "+token)
		return s, fetched || renew, nil
	default:
		return nil, false, fault.Newf(fault.CredentialInvalid, "the credential has the scheme %q, which is not known; choose bearer, basic, header, query or oauth2_client", a.data.Scheme)
	}
	return s, true, nil
}

func basicAuth(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// Clean takes fetched tokens out of an output.
func (a *Auth) Clean(out *Output) error {
	if !a.Held {
		return nil
	}
	raw, err := payload.Encode(out)
	if err != nil {
		return fault.New(fault.OutputInvalid, "the answer cannot be handed on").WithCause(err)
	}
	*out = Output{}
	return json.Unmarshal(a.Redact.JSON(raw), out)
}

// CleanFields does the same for details. There may be no credential at all.
func (a *Auth) CleanFields(fields map[string]any) map[string]any {
	if a == nil || !a.Held {
		return fields
	}
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		if raw, err := payload.Encode(value); err == nil { // what JSON cannot hold could not be kept either
			out[name] = a.Redact.JSON(raw)
		}
	}
	return out
}

// file hands a body on that is kept as it is. What leaves a run is cleaned by the runtime, but a file leaves on a way of its
// own: a service that repeats what it was sent would leave the secret where every reader can fetch it.
func (a *Auth) file(from io.Reader) io.Reader {
	for _, secret := range []string{a.data.Token, a.data.Password, a.data.Value, a.data.ClientSecret} {
		a.Redact.Hold(secret) // until the run ends, and the redactor with it
	}
	r := &cleanReader{from: from}
	r.clean = a.Redact.Writer(&r.ready)
	return r
}

// cleanReader reads what is left of another reader when the secrets are taken out.
type cleanReader struct {
	from  io.Reader
	clean *credential.Writer // writes to ready
	ready bytes.Buffer
	chunk [32 << 10]byte
	err   error // what reading has ended with
}

// Read implements io.Reader.
func (r *cleanReader) Read(p []byte) (int, error) {
	for r.ready.Len() == 0 && len(p) > 0 {
		if r.err != nil {
			return 0, r.err
		}
		n, err := r.from.Read(r.chunk[:])
		if _, werr := r.clean.Write(r.chunk[:n]); werr != nil {
			return 0, werr
		}
		if err == io.EOF {
			if werr := r.clean.Close(); werr != nil {
				return 0, werr
			}
		}
		r.err = err
	}
	return r.ready.Read(p)
}

// tokenKey tells tokens apart: by the credential and all it holds, so that a changed one gets a new token.
type tokenKey [sha256.Size]byte

const (
	// maxTokens is how many tokens are kept; beyond, all are forgotten and fetched again when they are needed.
	maxTokens = 1000
	// tokenLife is how long a token is used whose life the service does not tell.
	tokenLife = 5 * time.Minute
	// tokenTimeout bounds the fetching of one.
	tokenTimeout = 30 * time.Second
)

// Tokens keeps tokens of OAuth clients until they expire. It is shared by all runs of a kind.
type Tokens struct {
	Client *outbound.Client

	mu    sync.Mutex
	slots map[tokenKey]*tokenSlot
}

// tokenSlot is one token. The caller whose turn it is may read and write it; others wait, so that a token is fetched once.
type tokenSlot struct {
	turn    chan struct{}
	token   string
	expires time.Time
}

func (c *Tokens) slot(key tokenKey) *tokenSlot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[key]
	if s == nil {
		if c.slots == nil || len(c.slots) >= maxTokens {
			c.slots = map[tokenKey]*tokenSlot{}
		}
		s = &tokenSlot{turn: make(chan struct{}, 1)}
		c.slots[key] = s
	}
	return s
}

// get returns a token, fetching it if there is none that is still good, or if the last was refused.
func (c *Tokens) get(ctx context.Context, key tokenKey, data authData, renew bool) (token string, fetched bool, err error) {
	s := c.slot(key)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", false, &outbound.Error{Fault: fault.New(fault.Canceled, "the call was stopped while it waited for a token"), Fate: outbound.NotTaken}
	}
	defer func() { <-s.turn }()
	if s.token != "" && !renew && time.Now().Before(s.expires) {
		return s.token, false, nil
	}
	s.token = ""
	token, life, err := c.fetch(ctx, data)
	if err != nil {
		if e, ok := errors.AsType[*outbound.Error](err); ok {
			e.Fate = outbound.NotTaken // the call itself was never made
			return "", false, e
		}
		return "", false, err
	}
	s.token, s.expires = token, time.Now().Add(life-min(time.Minute, life/2))
	return token, true, nil
}

// fetch asks for a token, first with the client's secret in a header, then, for services that do not take that, in the body.
func (c *Tokens) fetch(ctx context.Context, data authData) (token string, life time.Duration, err error) {
	target, err := url.Parse(data.TokenURL)
	if err != nil {
		return "", 0, fault.New(fault.CredentialInvalid, "the token_url of the credential cannot be read; correct it")
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(data.Scopes) > 0 {
		form.Set("scope", strings.Join(data.Scopes, " "))
	}
	ask := func(form url.Values, header http.Header) (*outbound.Response, []byte, error) {
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		header.Set("Accept", "application/json")
		response, err := c.Client.Do(ctx, outbound.Request{
			Method: http.MethodPost, URL: target, Header: header, Body: []byte(form.Encode()), Repeatable: true,
			Timeout: tokenTimeout, MaxResponse: 1 << 20,
		})
		if err != nil {
			return nil, nil, err
		}
		body, err := response.ReadAll()
		return response, body, err
	}
	response, body, err := ask(form, http.Header{"Authorization": {basicAuth(url.QueryEscape(data.ClientID),
		url.QueryEscape(data.ClientSecret))}})
	if err == nil && (response.Status == http.StatusBadRequest || response.Status == http.StatusUnauthorized) {
		form.Set("client_id", data.ClientID)
		form.Set("client_secret", data.ClientSecret)
		response, body, err = ask(form, http.Header{})
	}
	if err != nil {
		return "", 0, err
	}
	return readToken(target.Host, response, body)
}

func readToken(host string, response *outbound.Response, body []byte) (token string, life time.Duration, err error) {
	var answer oauth.TokenAnswer
	unreadable := json.Unmarshal(body, &answer) != nil
	if problem := response.Problem(time.Now()); problem != nil {
		if response.Status < 500 && response.Status != http.StatusTooManyRequests {
			why := ""
			if answer.Error != "" && len(answer.Error) < 60 {
				why = " (" + values.Readable([]byte(answer.Error), 60) + ")"
			}
			return "", 0, fault.Newf(fault.CredentialInvalid, "host %q gives no token for the credential: it answered %d%s; check client_id, client_secret and scopes", host, response.Status, why)
		}
		return "", 0, problem
	}
	switch {
	case unreadable || answer.AccessToken == "":
		return "", 0, fault.Newf(fault.CredentialInvalid, "host %q answers without a token; check the token_url of the credential", host)
	case !answer.Bearer():
		return "", 0, fault.Newf(fault.Unsupported, "host %q gives tokens of the type %q; only bearer tokens can be used", host, values.Readable([]byte(answer.TokenType), 60))
	case !oauth.Sendable(answer.AccessToken):
		return "", 0, fault.Newf(fault.CredentialInvalid, "host %q gives a token that no header can hold", host)
	}
	return answer.AccessToken, min(cmp.Or(answer.Life(), tokenLife), 24*time.Hour), nil
}
