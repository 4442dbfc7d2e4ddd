// Package slack is everything of Slack: questions to people in its channels and messages, the trigger that its events start, and
// the kind that acts there.
//
// The channel and the trigger speak the Web API through the library that most bots use, over the guarded client. The kind calls
// it directly: a node hands on the whole answer, and has to know of a failure whether Slack has taken the call. Nothing is tried
// again here, and there is no state but the names that it has looked up: what it must know of a message later is in the message's
// receipt or in what Slack sends back. The program that puts channels together imports it; nothing else does.
package slack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
)

// session is an opened account.
type session struct {
	api     *slack.Client
	http    *http.Client
	signing string
}

// open opens a credential. The caller ends its use.
func open(ctx context.Context, client *http.Client, open credential.Opener, id string) (*session, func(), error) {
	return credential.OpenAs(ctx, open, id, credentialType, func(c credential.Opened) (*session, error) { return read(client, c) })
}

// read reads an opened credential.
func read(client *http.Client, c credential.Opened) (*session, error) {
	var fields struct {
		Token   string `json:"token"`
		Signing string `json:"signing_secret"`
		BaseURL string `json:"base_url"`
	}
	wrong := func(text string) (*session, error) {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q %s", c.ID, text)
	}
	if json.Unmarshal(c.Data, &fields) != nil || fields.Token == "" {
		return wrong("has no token of a Slack bot; save it again")
	}
	options := []slack.Option{slack.OptionHTTPClient(client)}
	if fields.BaseURL != "" {
		u, err := url.Parse(fields.BaseURL)
		if err != nil || u.Host == "" || u.RawQuery != "" {
			return wrong("has a base_url that cannot be used; write it like https://host/api")
		}
		options = append(options, slack.OptionAPIURL(strings.TrimRight(fields.BaseURL, "/")+"/"))
	}
	return &session{api: slack.New(fields.Token, options...), http: client, signing: fields.Signing}, nil
}

// problem says what an error of the library means. The addresses that it may hold are left out: a response_url lets in anyone who
// knows it.
func problem(what string, err error) error {
	if err == nil {
		return nil
	}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return slowDown(limited.RetryAfter)
	}
	if status, ok := errors.AsType[slack.StatusCodeError](err); ok {
		switch {
		case status.Code == http.StatusTooManyRequests:
			return slowDown(0)
		case status.Code >= 500:
			return fault.Newf(fault.RemoteError, "Slack answered %d when asked to %s", status.Code, what)
		}
		return fault.Newf(fault.RemoteRejected, "Slack answered %d when asked to %s", status.Code, what)
	}
	if said, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		return refused(what, said)
	}
	if outside, ok := errors.AsType[*outbound.Error](err); ok {
		return outside
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.Newf(fault.Timeout, "Slack did not answer in time when asked to %s", what)
	}
	if call, ok := errors.AsType[*url.Error](err); ok {
		err = call.Err
	}
	return fault.Newf(fault.NetworkError, "Slack gave no answer that can be read when asked to %s", what).WithCause(err)
}

func slowDown(after time.Duration) error {
	e := fault.New(fault.RateLimited, "Slack asks to slow down")
	if after = min(after, outbound.MaxRetryAfter); after > 0 {
		e = e.With("retry_after_ms", after.Milliseconds())
	}
	return e
}

// refused tells the errors apart that Slack names.
func refused(what string, e slack.SlackErrorResponse) error {
	switch e.Err {
	case "ratelimited", "rate_limited":
		return slowDown(0)
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org", "accesslimited":
		return fault.Newf(fault.RemoteError, "Slack could not %s now (%s)", what, e.Err)
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "org_login_required", "ekm_access_denied":
		return fault.Newf(fault.CredentialInvalid, "Slack does not take the token (%s); install the app again and save its token", e.Err)
	case "missing_scope", "no_permission", "not_allowed_token_type":
		needs := ""
		if e.Needed != "" {
			needs = " " + e.Needed
		}
		return fault.Newf(fault.CredentialInvalid, "the app may not %s (%s); give it the scope%s and install it again", what, e.Err, needs)
	case "channel_not_found", "not_in_channel", "is_archived", "user_not_found", "users_not_found", "user_disabled", "cannot_dm_bot", "restricted_action":
		return fault.Newf(fault.DeliveryFailed, "Slack cannot %s (%s); check the channel, and invite the app to it", what, e.Err)
	}
	f := fault.Newf(fault.RemoteRejected, "Slack refused to %s (%s)", what, e.Err)
	if len(e.ResponseMetadata.Messages) > 0 {
		f = f.WithDetail(strings.Join(e.ResponseMetadata.Messages, "; "))
	}
	return f
}

// said is the error that Slack named, or nothing.
func said(err error) string {
	e, _ := errors.AsType[slack.SlackErrorResponse](err)
	return e.Err
}
