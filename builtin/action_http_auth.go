package builtin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
)

// httpAuthData are the fields of a credential of the type http_auth.
type httpAuthData struct {
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

// httpAuth is a credential in use by one run. Tokens that were fetched with it are secrets that nobody else knows of, so
// it takes them out of what the run says.
type httpAuth struct {
	data   httpAuthData
	tokens *tokenCache
	key    tokenKey
	redact credential.Redactor
	held   bool
}

func openHTTPAuth(ctx context.Context, call *node.Call, id string, tokens *tokenCache) (*httpAuth, error) {
	if call.Credential == nil {
		return nil, fault.Newf(fault.CredentialMissing, "credential %q cannot be opened: there are no credentials here", id)
	}
	opened, err := call.Credential(ctx, id, "http_auth")
	if err != nil {
		return nil, err
	}
	a := &httpAuth{tokens: tokens, key: tokenKey(sha256.Sum256(append([]byte(opened.ID+"\x00"), opened.Data...)))}
	if err := json.Unmarshal(opened.Data, &a.data); err != nil {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; save it again", id)
	}
	return a, nil
}

// secret is what authenticates a call. Fresh says that a token was fetched just now, so that a refusal is final.
func (a *httpAuth) secret(ctx context.Context, renew bool) (s *outbound.Secret, fresh bool, err error) {
	s = &outbound.Secret{Header: http.Header{}, Hosts: a.data.AllowedHosts}
	switch a.data.Scheme {
	case "bearer":
		s.Header.Set("Authorization", "Bearer "+a.data.Token)
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
		a.redact.Hold(token) // until the run ends, and the redactor with it
		a.held = true
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

// clean takes fetched tokens out of an output.
func (a *httpAuth) clean(out *httpOutput) error {
	if !a.held {
		return nil
	}
	raw, err := payload.Encode(out)
	if err != nil {
		return fault.New(fault.OutputInvalid, "the answer cannot be handed on").WithCause(err)
	}
	*out = httpOutput{}
	return json.Unmarshal(a.redact.JSON(raw), out)
}

// cleanFields does the same for details. There may be no credential at all.
func (a *httpAuth) cleanFields(fields map[string]any) map[string]any {
	if a == nil || !a.held {
		return fields
	}
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		if raw, err := payload.Encode(value); err == nil { // what JSON cannot hold could not be kept either
			out[name] = a.redact.JSON(raw)
		}
	}
	return out
}

// file hands a body on that is kept as it is. What leaves a run is cleaned by the runtime, but a file leaves on a way of its
// own: a service that repeats what it was sent would leave the secret where every reader can fetch it.
func (a *httpAuth) file(from io.Reader) io.Reader {
	for _, secret := range []string{a.data.Token, a.data.Password, a.data.Value, a.data.ClientSecret} {
		a.redact.Hold(secret) // until the run ends, and the redactor with it
	}
	r := &cleanReader{from: from}
	r.clean = a.redact.Writer(&r.ready)
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

// tokenCache keeps tokens of OAuth clients until they expire. It is shared by all runs of a kind.
type tokenCache struct {
	client *outbound.Client

	mu    sync.Mutex
	slots map[tokenKey]*tokenSlot
}

// tokenSlot is one token. Whoever is in turn may read and write it; others wait, so that a token is fetched once.
type tokenSlot struct {
	turn    chan struct{}
	token   string
	expires time.Time
}

func (c *tokenCache) slot(key tokenKey) *tokenSlot {
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
func (c *tokenCache) get(ctx context.Context, key tokenKey, data httpAuthData, renew bool) (token string, fetched bool, err error) {
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

// fetch asks for a token, first with the client's secret in a header, then, for services that know no better, in the body.
func (c *tokenCache) fetch(ctx context.Context, data httpAuthData) (token string, life time.Duration, err error) {
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
		response, err := c.client.Do(ctx, outbound.Request{
			Method: http.MethodPost, URL: target, Header: header, Body: []byte(form.Encode()), Repeatable: true, Timeout: tokenTimeout, MaxResponse: 1 << 20,
		})
		if err != nil {
			return nil, nil, err
		}
		body, err := response.ReadAll()
		return response, body, err
	}
	response, body, err := ask(form, http.Header{"Authorization": {basicAuth(url.QueryEscape(data.ClientID), url.QueryEscape(data.ClientSecret))}})
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
	var answer struct {
		AccessToken string          `json:"access_token"`
		TokenType   string          `json:"token_type"`
		ExpiresIn   json.RawMessage `json:"expires_in"`
		Error       string          `json:"error"`
	}
	unreadable := json.Unmarshal(body, &answer) != nil
	if problem := response.Problem(time.Now()); problem != nil {
		if response.Status < 500 && response.Status != http.StatusTooManyRequests {
			why := ""
			if answer.Error != "" && len(answer.Error) < 60 {
				why = " (" + readable([]byte(answer.Error), 60) + ")"
			}
			return "", 0, fault.Newf(fault.CredentialInvalid, "host %q gives no token for the credential: it answered %d%s; check client_id, client_secret and scopes", host, response.Status, why)
		}
		return "", 0, problem
	}
	switch {
	case unreadable || answer.AccessToken == "":
		return "", 0, fault.Newf(fault.CredentialInvalid, "host %q answers without a token; check the token_url of the credential", host)
	case answer.TokenType != "" && !strings.EqualFold(answer.TokenType, "bearer"):
		return "", 0, fault.Newf(fault.Unsupported, "host %q gives tokens of the type %q; only bearer tokens can be used", host, readable([]byte(answer.TokenType), 60))
	case strings.ContainsFunc(answer.AccessToken, func(r rune) bool { return r <= 0x20 || r >= 0x7f }):
		return "", 0, fault.Newf(fault.CredentialInvalid, "host %q gives a token that no header can hold", host)
	}
	life = tokenLife
	if n, err := strconv.ParseFloat(strings.Trim(string(answer.ExpiresIn), `"`), 64); err == nil && n > 0 {
		life = time.Duration(min(n, 86_400) * float64(time.Second))
	}
	return answer.AccessToken, life, nil
}
