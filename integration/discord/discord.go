// Package discord is everything of Discord: questions to people in its channels and messages, the trigger that messages and commands start,
// and the kind that acts there.
//
// The channel speaks the REST interface through the library that most bots use, over the guarded client and without the library's own
// retries and waits. The kind calls it directly: a node hands on the whole answer, and has to know of a failure whether Discord has taken
// the call. There is no gateway connection: clicks, forms and commands are posted to an address of ours, and messages are looked for. The
// program that puts channels together imports it; nothing else does.
package discord

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
)

// session is an opened account.
type session struct {
	token  string
	client *http.Client
	key    ed25519.PublicKey // nil: the credential has none
}

// open opens a credential. The caller ends its use.
func open(ctx context.Context, client *http.Client, open credential.Opener, id string) (*session, func(), error) {
	return credential.OpenAs(ctx, open, id, credentialType, func(c credential.Opened) (*session, error) { return read(client, c) })
}

// read reads an opened credential.
func read(client *http.Client, c credential.Opened) (*session, error) {
	var fields struct {
		Token     string `json:"token"`
		PublicKey string `json:"public_key"`
		BaseURL   string `json:"base_url"`
	}
	wrong := func(text string) (*session, error) {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q %s", c.ID, text)
	}
	if json.Unmarshal(c.Data, &fields) != nil || fields.Token == "" {
		return wrong("has no token of a Discord bot; save it again")
	}
	s := &session{token: fields.Token, client: client}
	if fields.PublicKey != "" {
		key, err := hex.DecodeString(strings.TrimSpace(fields.PublicKey))
		if err != nil || len(key) != ed25519.PublicKeySize {
			return wrong("has a public_key that cannot be used; copy it from the page of the application")
		}
		s.key = key
	}
	if fields.BaseURL != "" {
		base, err := url.Parse(strings.TrimRight(fields.BaseURL, "/"))
		if err != nil || base.Host == "" || base.RawQuery != "" {
			return wrong("has a base_url that cannot be used; write it like https://host/api/v9")
		}
		moved := *client
		moved.Transport = elsewhere{next: client.Transport, base: base.String()}
		s.client = &moved
	}
	return s, nil
}

// elsewhere sends the calls of the library, which knows only one address, to another.
type elsewhere struct {
	next http.RoundTripper
	base string
}

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	rest, ours := strings.CutPrefix(r.URL.String(), discordgo.EndpointAPI)
	if !ours {
		return nil, fault.New(fault.Internal, "a call that is not one of the REST interface")
	}
	to, err := url.Parse(e.base + "/" + rest)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL, r.Host = to, ""
	next := e.next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(r)
}

// call makes one call. Each has a session of the library to itself: what that one remembers of limits would let calls wait
// where nobody can end them.
func (s *session) call(ctx context.Context, what string, do func(*discordgo.Session, discordgo.RequestOption) error) error {
	api, err := discordgo.New("Bot " + s.token)
	if err != nil {
		return fault.New(fault.Internal, "the library of Discord cannot be used").WithCause(err)
	}
	api.Client, api.ShouldRetryOnRateLimit, api.MaxRestRetries, api.LogLevel = s.client, false, 0, -1
	return problem(what, do(api, discordgo.WithContext(ctx)))
}

// problem says what an error of the library means. The addresses that it may hold are left out: those of answers let in anyone who
// knows them.
func problem(what string, err error) error {
	if err == nil {
		return nil
	}
	if limited, ok := errors.AsType[*discordgo.RateLimitError](err); ok {
		e := fault.New(fault.RateLimited, "Discord asks to slow down")
		if after := min(limited.RetryAfter, outbound.MaxRetryAfter); after > 0 {
			e = e.With("retry_after_ms", after.Milliseconds())
		}
		return e
	}
	if rest, ok := errors.AsType[*discordgo.RESTError](err); ok && rest.Response != nil {
		return refused(what, rest)
	}
	if outside, ok := errors.AsType[*outbound.Error](err); ok {
		return outside
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.Newf(fault.Timeout, "Discord did not answer in time when asked to %s", what)
	}
	if call, ok := errors.AsType[*url.Error](err); ok {
		err = call.Err
	}
	return fault.Newf(fault.NetworkError, "Discord gave no answer that can be read when asked to %s", what).WithCause(err)
}

func refused(what string, e *discordgo.RESTError) error {
	why := fmt.Sprintf("%d", e.Response.StatusCode)
	if e.Message != nil && e.Message.Code != 0 {
		why = fmt.Sprintf("%s, code %d", why, e.Message.Code)
	}
	var f *fault.Error
	switch status := e.Response.StatusCode; {
	case status == http.StatusUnauthorized:
		f = fault.Newf(fault.CredentialInvalid, "Discord does not take the token (%s); make a new one and save it", why)
	case status == http.StatusForbidden, status == http.StatusNotFound:
		f = fault.Newf(fault.DeliveryFailed, "Discord cannot %s (%s); check channel_id, and let the bot see the channel and write there", what, why)
	case status >= 500:
		f = fault.Newf(fault.RemoteError, "Discord could not %s (%s)", what, why)
	default:
		f = fault.Newf(fault.RemoteRejected, "Discord refused to %s (%s)", what, why)
	}
	f = f.With("status", e.Response.StatusCode)
	if e.Message != nil {
		f = f.WithDetail(e.Message.Message)
	}
	return f
}

// gone says that a message or its channel is not there any more, or not for us.
func gone(err error) bool {
	e := fault.From(err)
	return err != nil && e.Code == fault.DeliveryFailed
}

// after is how long Discord wants to be left alone; false if that is not what it says.
func after(err error) (time.Duration, bool) {
	if err == nil {
		return 0, false
	}
	e := fault.From(err)
	ms, _ := e.Details["retry_after_ms"].(int64)
	return time.Duration(ms) * time.Millisecond, e.Code == fault.RateLimited
}
