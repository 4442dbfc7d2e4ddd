package teams

import (
	"bytes"
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

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/outbound"
	"tandem/text"
)

const (
	// defaultService is where messages are sent that answer none; what answers one goes where that came from.
	defaultService  = "https://smba.trafficmanager.net/teams"
	defaultLogin    = "https://login.microsoftonline.com"
	defaultMetadata = "https://login.botframework.com/v1/.well-known/openidconfiguration"
	metadataPath    = "/v1/.well-known/openidconfiguration"
	scope           = "https://api.botframework.com/.default"
	// anyTenant is what bots of several tenants have instead of one.
	anyTenant = "botframework.com"
	maxAnswer = 4 << 20
	// tokenMargin is how long before its end a token is not used any more.
	tokenMargin = 5 * time.Minute
)

// bot is an opened credential: an app of the bot service, or the address of a bare webhook, or both.
type bot struct {
	c        *Channel
	id       string // of the credential
	appID    string
	secret   string
	tenant   string
	webhook  string
	service  string
	login    string
	metadata string
}

func (c *Channel) open(ctx context.Context, a human.Account, id string) (*bot, func(), error) {
	return credential.OpenAs(ctx, a.Open, id, credentialType, func(opened credential.Opened) (*bot, error) { return c.readBot(id, opened) })
}

// readBot reads an opened credential.
func (c *Channel) readBot(id string, opened credential.Opened) (*bot, error) {
	wrong := func(text string) (*bot, error) {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q %s", id, text)
	}
	var fields struct {
		AppID   string `json:"app_id"`
		Secret  string `json:"app_secret"`
		Tenant  string `json:"tenant_id"`
		Webhook string `json:"webhook_url"`
		BaseURL string `json:"base_url"`
	}
	if json.Unmarshal(opened.Data, &fields) != nil {
		return wrong("cannot be read; save it again")
	}
	b := &bot{
		c: c, id: id, appID: fields.AppID, secret: fields.Secret, tenant: fields.Tenant, webhook: fields.Webhook,
		service: defaultService, login: defaultLogin, metadata: defaultMetadata,
	}
	if strings.ContainsAny(b.tenant, "/?#% ") {
		return wrong("has a tenant_id that cannot be one")
	}
	if fields.BaseURL != "" {
		u, err := url.Parse(fields.BaseURL)
		if err != nil || u.Host == "" || u.RawQuery != "" {
			return wrong("has a base_url that cannot be used; write it like https://host:port")
		}
		base := strings.TrimRight(fields.BaseURL, "/")
		b.service, b.login, b.metadata = base, base, base+metadataPath
	}
	return b, nil
}

// isBot says whether it is more than a bare webhook.
func (b *bot) isBot() bool { return b.appID != "" && b.secret != "" && b.tenant != "" }

// tokens are the access tokens of apps, until they end. Its own lock guards it.
type tokens struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]token
}

type token struct {
	text string
	ends time.Time
}

// app tells apps apart without keeping their secrets.
func (b *bot) app() [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join([]string{b.login, b.tenant, b.appID, b.secret}, "\x00")))
}

// token returns an access token, a new one unless one is kept.
func (b *bot) token(ctx context.Context, anew bool) (string, error) {
	t, key := &b.c.tokens, b.app()
	t.mu.Lock()
	kept, ok := t.kept[key]
	t.mu.Unlock()
	if ok && !anew && b.c.now().Add(tokenMargin).Before(kept.ends) {
		return kept.text, nil
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {b.appID}, "client_secret": {b.secret}, "scope": {scope}}
	var answer struct {
		Token   string      `json:"access_token"`
		Expires json.Number `json:"expires_in"`
	}
	err := b.do(ctx, exchange{
		what: "signing in", method: http.MethodPost, url: b.login + "/" + b.tenant + "/oauth2/v2.0/token",
		contentType: "application/x-www-form-urlencoded", body: []byte(form.Encode()),
	}, &answer)
	if r, ok := errors.AsType[*refusal](err); ok && (r.status == http.StatusBadRequest || r.status == http.StatusUnauthorized) {
		return "", fault.Newf(fault.CredentialInvalid, "credential %q cannot sign in; check app_id, app_secret and tenant_id", b.id).WithDetail(r.fault.Message)
	}
	if err != nil {
		return "", err
	}
	seconds, err := answer.Expires.Int64()
	if answer.Token == "" || err != nil {
		return "", fault.New(fault.RemoteError, "signing in to Microsoft brought no token")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil {
		t.kept = map[[sha256.Size]byte]token{}
	}
	for k, old := range t.kept { // secrets that were replaced
		if old.ends.Before(b.c.now()) {
			delete(t.kept, k)
		}
	}
	t.kept[key] = token{answer.Token, b.c.now().Add(time.Duration(seconds) * time.Second)}
	return answer.Token, nil
}

// exchange is one call.
type exchange struct {
	what        string // in words, for errors
	method      string
	url         string
	contentType string
	token       string
	body        []byte
}

// refusal is a call that was answered, but not well.
type refusal struct {
	fault  *fault.Error
	status int
}

// Error returns the code and message.
func (r *refusal) Error() string { return r.fault.Error() }

// Unwrap returns the fault.
func (r *refusal) Unwrap() error { return r.fault }

// call calls the bot service, once more with a new token if the one that was kept does not do.
func (b *bot) call(ctx context.Context, what, method, address string, body, result any) error {
	x := exchange{what: what, method: method, url: address}
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fault.Newf(fault.Internal, "%s: write the body: %w", what, err)
		}
		x.body, x.contentType = raw, "application/json"
	}
	for _, anew := range []bool{false, true} {
		var err error
		if x.token, err = b.token(ctx, anew); err != nil {
			return err
		}
		err = b.do(ctx, x, result)
		if r, ok := errors.AsType[*refusal](err); !ok || r.status != http.StatusUnauthorized || anew {
			return err
		}
	}
	return nil
}

// do makes a call. A good answer goes to result: JSON, or the bytes themselves for a *[]byte.
func (b *bot) do(ctx context.Context, x exchange, result any) error {
	request, err := http.NewRequestWithContext(ctx, x.method, x.url, bytes.NewReader(x.body))
	if err != nil {
		return fault.Newf(fault.CredentialInvalid, "%s: the address cannot be used", x.what)
	}
	if x.contentType != "" {
		request.Header.Set("Content-Type", x.contentType)
	}
	request.Header.Set("Accept", "application/json")
	if x.token != "" {
		request.Header.Set("Authorization", "Bearer "+x.token)
	}
	response, err := b.c.http.Do(request)
	if err != nil {
		return b.unreached(ctx, x.what, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return b.unreached(ctx, x.what, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return b.refused(x, response, raw)
	}
	if text, ok := result.(*[]byte); ok {
		*text = raw
		return nil
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fault.Newf(fault.RemoteError, "%s was answered with something that cannot be read", x.what).WithCause(err)
	}
	return nil
}

func (b *bot) refused(x exchange, response *http.Response, raw []byte) error {
	code, remedy := fault.RemoteRejected, ""
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized:
		code, remedy = fault.CredentialInvalid, "; check the app and its secret"
	case status == http.StatusForbidden:
		remedy = "; the bot has to be installed where it asks"
	case status == http.StatusTooManyRequests:
		code = fault.RateLimited
	case status == http.StatusRequestTimeout || status == http.StatusPreconditionFailed || status >= 500 || status < 400:
		code = fault.RemoteError // 412 is what the service answers when it changed the conversation meanwhile
	}
	said := b.scrub(string(raw))
	if x.url == b.webhook {
		said = "" // it may name a part of the address
	}
	f := fault.Newf(code, "%s was answered with %d %q%s", x.what, response.StatusCode, said, remedy).With("status_code", response.StatusCode)
	if after := outbound.RetryAfter(response.Header, b.c.now()); after > 0 {
		f = f.With("retry_after_ms", after.Milliseconds())
	}
	return &refusal{fault: f, status: response.StatusCode}
}

// unreached says why there is no answer. The address of a webhook is a secret, so only the guard's own words are kept.
func (b *bot) unreached(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fault.Newf(fault.Canceled, "%s was not waited for", what).WithCause(ctx.Err())
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fault.Newf(fault.NetworkError, "%s was not answered", what).WithDetail(b.scrub(err.Error()))
}

// scrub keeps secrets out of a text, and the text short.
func (b *bot) scrub(said string) string {
	for _, secret := range []string{b.secret, b.webhook} {
		if secret != "" {
			said = strings.ReplaceAll(said, secret, "***")
		}
	}
	return text.Fit(strings.TrimSpace(said), 300)
}
