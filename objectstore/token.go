package objectstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"tandem/credential"
	"tandem/credential/oauth"
	"tandem/fault"
	"tandem/outbound"
)

const (
	// maxTokens is how many tokens are kept; beyond, all are forgotten and fetched again when they are needed.
	maxTokens = 1000
	// tokenLife is how long a token is used whose life the service does not tell.
	tokenLife = 5 * time.Minute
	// tokenTimeout bounds the fetching of one.
	tokenTimeout = 30 * time.Second
)

// Tokens keeps access tokens until they expire. It is shared by all runs; the zero value is ready.
type Tokens struct {
	mu    sync.Mutex
	slots map[[sha256.Size]byte]*tokenSlot
}

// tokenSlot is one token. The caller whose turn it is may read and write it; others wait, so that a token is fetched once.
type tokenSlot struct {
	turn    chan struct{}
	token   string
	expires time.Time
}

// Get returns a token for a credential, fetching it if there is none that is still good, or if the last was refused. A
// credential that has changed gets a token of its own. Fresh says that it was fetched just now.
func (t *Tokens) Get(ctx context.Context, c credential.Opened, now func() time.Time, renew bool,
	fetch func(context.Context) (string, time.Duration, error)) (token string, fresh bool, err error) {
	s := t.slot(sha256.Sum256(append([]byte(c.ID+"\x00"), c.Data...)))
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", false, fault.New(fault.Canceled, "the call was stopped while it waited for a token").WithCause(context.Cause(ctx))
	}
	defer func() { <-s.turn }()
	if s.token != "" && !renew && now().Before(s.expires) {
		return s.token, false, nil
	}
	s.token = ""
	token, life, err := fetch(ctx)
	if err != nil {
		return "", false, err
	}
	s.token, s.expires = token, now().Add(life-min(time.Minute, life/2))
	return token, true, nil
}

func (t *Tokens) slot(key [sha256.Size]byte) *tokenSlot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slots[key]
	if s == nil {
		if t.slots == nil || len(t.slots) >= maxTokens {
			t.slots = map[[sha256.Size]byte]*tokenSlot{}
		}
		s = &tokenSlot{turn: make(chan struct{}, 1)}
		t.slots[key] = s
	}
	return s
}

// FetchToken asks an OAuth service for a token: one for access or, where that is what is asked for, one that says who asks.
func FetchToken(ctx context.Context, client *outbound.Client, target *url.URL, form url.Values, now time.Time) (token string,
	life time.Duration, err error) {
	response, err := client.Do(ctx, outbound.Request{
		Method: http.MethodPost, URL: target, Body: []byte(form.Encode()), Repeatable: true, Redirects: outbound.NoFollow,
		Header:  http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}},
		Timeout: tokenTimeout, MaxResponse: 1 << 20,
	})
	if err != nil {
		return "", 0, err
	}
	body, err := response.ReadAll()
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		oauth.TokenAnswer
		IDToken string `json:"id_token"`
	}
	unreadable := json.Unmarshal(body, &answer) != nil
	if response.Status != http.StatusOK {
		s := Said{Code: answer.Error, Remedy: "no token is given for the credential; check it"}
		if response.Status < 500 && response.Status != http.StatusTooManyRequests {
			s.As = fault.CredentialInvalid
		}
		return "", 0, Refusal(response, s, now)
	}
	if answer.AccessToken == "" {
		answer.AccessToken = answer.IDToken
	}
	if unreadable || !oauth.Sendable(answer.AccessToken) {
		return "", 0, fault.Newf(fault.CredentialInvalid, "host %q answers without a token that can be used; check the address for tokens in the credential", target.Host)
	}
	return answer.AccessToken, min(cmp.Or(answer.Life(), tokenLife), 24*time.Hour), nil
}
