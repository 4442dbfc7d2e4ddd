package actiontest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"tandem/fault"
	"tandem/node"
)

// Failures runs everything that can go wrong with any service. A call of the class once is made once in each of them. A vendor
// that leaves out what its kind can do fails.
func (v Vendor) Failures(t *testing.T) {
	t.Helper()
	v.complete(t)
	after := map[string]string{"Retry-After": "7"}
	once := []Refusal{
		{Name: "Auth", Reply: Reply{Status: 401, Body: `{}`}, Code: fault.CredentialInvalid},
		{Name: "Forbidden", Reply: Reply{Status: 403, Body: `{}`}, Code: fault.CredentialInvalid},
		{Name: "NotFound", Reply: Reply{Status: 404, Body: `{}`}, Code: fault.NotFound},
		{Name: "Invalid", Reply: Reply{Status: 400, Body: `{}`}, Code: fault.RemoteRejected},
		{Name: "RateLimit", Reply: Reply{Status: 429, Header: after, Body: `{}`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 7},
		{Name: "ServerError", Reply: Reply{Status: 500, Body: `oops`}, Code: fault.RemoteError},
		{Name: "Busy", Reply: Reply{Status: 503, Header: after, Body: `oops`}, Code: fault.RemoteError, Retryable: true, AfterSeconds: 7},
		{Name: "Gateway", Reply: Reply{Status: 502, Body: `<html>`}, Code: fault.OutcomeUnknown},
		{Name: "GatewayTimeout", Reply: Reply{Status: 504, Body: `<html>`}, Code: fault.OutcomeUnknown},
		{Name: "NotJSON", Reply: Reply{Status: 200, Body: `<html>`}, Code: fault.OutcomeUnknown},
		{Name: "OtherJSON", Reply: Reply{Status: 200, Body: `"ok"`}, Code: fault.OutcomeUnknown},
		{Name: "Moved", Reply: Reply{Status: 302, Header: map[string]string{"Location": "/elsewhere"}}, Code: fault.RemoteRejected},
	}
	for _, c := range once {
		c.Sample = v.Once
		t.Run("Once"+c.Name, func(t *testing.T) { t.Parallel(); v.refuses(t, c) })
	}
	read := []Refusal{
		{Name: "Auth", Reply: Reply{Status: 401, Body: `{}`}, Code: fault.CredentialInvalid},
		{Name: "RateLimit", Reply: Reply{Status: 429, Header: after, Body: `{}`}, Code: fault.RateLimited, Retryable: true, AfterSeconds: 7},
		{Name: "ServerError", Reply: Reply{Status: 500, Body: `oops`}, Code: fault.RemoteError, Retryable: true},
		{Name: "Gateway", Reply: Reply{Status: 502, Body: `<html>`}, Code: fault.RemoteError, Retryable: true},
		{Name: "NotJSON", Reply: Reply{Status: 200, Body: `<html>`}, Code: fault.RemoteError, Retryable: true},
		{Name: "OtherJSON", Reply: Reply{Status: 200, Body: `"ok"`}, Code: fault.RemoteError, Retryable: true},
	}
	for _, c := range read {
		c.Sample = v.Read
		t.Run("Read"+c.Name, func(t *testing.T) { t.Parallel(); v.refuses(t, c) })
	}
	for _, c := range v.Refusals {
		t.Run(c.Name, func(t *testing.T) { t.Parallel(); v.refuses(t, c) })
	}
	t.Run("ServerErrorThenSuccess", func(t *testing.T) { t.Parallel(); v.recovers(t) })
	t.Run("Timeout", func(t *testing.T) { t.Parallel(); v.hangs(t) })
	t.Run("NoConnection", func(t *testing.T) { t.Parallel(); v.unreachable(t) })
	t.Run("Credential", func(t *testing.T) { t.Parallel(); v.credentials(t) })
	t.Run("Lost", func(t *testing.T) { t.Parallel(); v.lost(t) })
	for _, s := range v.Settled {
		t.Run("Settled/"+gjson.Get(s.Config, "action_type").Str, func(t *testing.T) { t.Parallel(); v.settles(t, s, false) })
	}
	for _, s := range v.Unsure {
		t.Run("Unsure/"+gjson.Get(s.Config, "action_type").Str, func(t *testing.T) { t.Parallel(); v.settles(t, s, true) })
	}
	if v.Pages.Config != "" {
		t.Run("Pages", func(t *testing.T) { t.Parallel(); v.pages(t) })
	}
	if v.Renews {
		t.Run("Expired", func(t *testing.T) { t.Parallel(); v.expires(t) })
	}
}

// complete: a kind that reads lists has a list on several pages, one whose credentials can be renewed renews them, and every
// operation of which the service can be asked whether it arrived is settled.
func (v Vendor) complete(t *testing.T) {
	t.Helper()
	b := v.New(t)
	fields := gjson.GetBytes(b.Kind.InputSchema.JSON(), "properties")
	if fields.Get("limit").Exists() && fields.Get("cursor").Exists() && v.Pages.Config == "" {
		t.Error("it reads lists, and none of them is read over several pages: set Pages")
	}
	if slices.ContainsFunc(b.Kind.About.Needs.Credential, func(name string) bool { return strings.HasSuffix(name, "_oauth") }) && !v.Renews {
		t.Error("its credentials have tokens that expire, and none does: set Renews")
	}
	if b.Kind.Inquire == nil {
		return
	}
	settled := slices.Concat(v.Settled, v.Unsure)
	for _, name := range b.Kind.About.Values["action_type"] {
		_, err := b.Kind.Inquire(context.Background(), b.Call(fmt.Sprintf(`{"action_type":%q}`, name), ``))
		asked := slices.ContainsFunc(settled, func(s Sample) bool { return gjson.Get(s.Config, "action_type").Str == name })
		if fault.CodeOf(err) != fault.Unsupported && !asked && v.SettledBy[name] == "" {
			t.Errorf("the service is asked whether %s has arrived, and no sample of Settled or Unsure sees it", name)
		}
	}
}

func (v Vendor) refuses(t *testing.T, c Refusal) {
	t.Helper()
	if c.Reply.Status == http.StatusUnauthorized {
		v.Renews = false // what a new token does is seen by itself
	}
	b := v.New(t)
	if c.Reply.Status != 0 {
		b.Answers(c.Call, c.Reply)
	}
	_, err := b.Run(c.Config, c.Input)
	f := fault.From(err)
	if err == nil || f.Code != c.Code || f.Retryable != c.Retryable || !strings.Contains(f.Message, c.Part) {
		t.Fatalf("%v, retryable %v; want %s with %q, %v", err, err != nil && f.Retryable, c.Code, c.Part, c.Retryable)
	}
	later, _ := errors.AsType[*node.Failure](err)
	if want := time.Duration(c.AfterSeconds) * time.Second; want > 0 &&
		(later == nil || later.RetryAfter > want || later.RetryAfter < want-5*time.Second) {
		t.Errorf("it is to be asked again after %+v, want %s", later, want)
	}
	if unknown := later != nil && later.Unknown; unknown != (c.Code == fault.OutcomeUnknown) {
		t.Errorf("that nobody knows the outcome is %v", unknown)
	}
	if n := len(b.Calls(c.Call)); c.Reply.Status != 0 && n != 1 {
		t.Errorf("it was called %d times", n)
	}
}

// recovers: what has failed once succeeds when it is tried again.
func (v Vendor) recovers(t *testing.T) {
	t.Helper()
	b := v.New(t)
	b.Answers(v.Read.Call, Reply{Status: 503, Body: `oops`})
	call := b.Call(v.Read.Config, v.Read.Input)
	if _, err := b.do(b.Kind, call); err == nil || !fault.From(err).Retryable {
		t.Fatalf("the service is not there: %v", err)
	}
	call.Attempt++
	if _, err := b.do(b.Kind, call); err != nil {
		t.Fatalf("it is there again: %v", err)
	}
}

func (v Vendor) hangs(t *testing.T) {
	t.Helper()
	b := v.New(t)
	hasty := v.Kind(b.Hasty())
	b.Hangs(v.Once.Call)
	_, err := b.do(hasty, b.Call(v.Once.Config, v.Once.Input))
	if failed, ok := errors.AsType[*node.Failure](err); !ok || !failed.Unknown {
		t.Errorf("no answer to a call that must not be repeated: %v", err)
	}
	b.Hangs(v.Read.Call)
	if _, err = b.do(hasty, b.Call(v.Read.Config, v.Read.Input)); fault.CodeOf(err) != fault.Timeout || !fault.From(err).Retryable {
		t.Errorf("no answer to a call that reads: %v", err)
	}
}

// unreachable: what never reached the service may be sent again.
func (v Vendor) unreachable(t *testing.T) {
	t.Helper()
	b := v.New(t)
	b.Close()
	_, err := b.Run(v.Once.Config, v.Once.Input)
	if failed, ok := errors.AsType[*node.Failure](err); !ok || failed.Unknown || fault.CodeOf(err) != fault.NetworkError ||
		!fault.From(err).Retryable {
		t.Errorf("nothing was sent: %v", err)
	}
}

// credentials: one that lacks a field, or whose address is not an address, is told apart from one that the service refuses.
func (v Vendor) credentials(t *testing.T) {
	t.Helper()
	for _, change := range []map[string]string{{or(v.Key, "token"): ""}, {"base_url": "ftp:no"}, {"base_url": "https://host/?a=b"}} {
		broken := v
		broken.Credential = map[string]string{}
		for name, value := range v.Credential { // order does not matter: they are named
			broken.Credential[name] = value
		}
		for name, value := range change { // order does not matter: they are named
			broken.Credential[name] = value
		}
		if _, err := broken.New(t).Run(v.Once.Config, v.Once.Input); fault.CodeOf(err) != fault.CredentialInvalid {
			t.Errorf("with %v: %v", change, err)
		}
	}
}

// lost: a call of which the service took and the answer was lost is not made again.
func (v Vendor) lost(t *testing.T) {
	t.Helper()
	b := v.New(t)
	b.Loses(v.Once.Call)
	_, err := b.Run(v.Once.Config, v.Once.Input)
	if failed, ok := errors.AsType[*node.Failure](err); !ok || !failed.Unknown || fault.CodeOf(err) != fault.OutcomeUnknown {
		t.Errorf("the answer was lost: %v", err)
	}
	if n := len(b.Calls(v.Once.Call)); n != 1 {
		t.Errorf("the service was called %d times", n)
	}
}

// settles: what the service has taken is found, as if its answer had come; what it has not, and what another node has sent, is not.
// Where the service is unsure, that is an error to try again after, so that a person decides in the end and nothing is sent twice.
func (v Vendor) settles(t *testing.T, s Sample, unsure bool) {
	t.Helper()
	none := func(out node.Outcome, err error) bool {
		if unsure {
			return out == nil && err != nil && fault.From(err).Retryable
		}
		return out == nil && err == nil
	}
	well, b := v.New(t), v.New(t)
	usual, err := well.Run(s.Config, s.Input)
	if err != nil {
		t.Fatal(err)
	}
	call := b.Call(s.Config, s.Input)
	if out, err := b.Kind.Inquire(context.Background(), call); !none(out, err) {
		t.Fatalf("nothing was sent yet: %v, %v", out, err)
	}
	b.Loses(s.Call)
	if _, err := b.do(b.Kind, call); fault.CodeOf(err) != fault.OutcomeUnknown {
		t.Fatalf("the answer was lost: %v", err)
	}
	again := b.Call(s.Config, s.Input)
	again.Attempt = 2
	out, err := b.Kind.Inquire(context.Background(), again)
	if err != nil || out == nil {
		t.Fatalf("it is there: %v, %v", out, err)
	}
	found := gjson.ParseBytes(out.(node.Done)["result"])
	for _, name := range []string{"success", "action", "resource_id", "resource_url"} {
		if found.Get(name).String() != strings.ReplaceAll(usual.Get(name).String(), well.URL, b.URL) {
			t.Errorf("%s is %s, and %s when the answer comes", name, found.Get(name), usual.Get(name))
		}
	}
	if n := len(b.Calls(s.Call)); n != 1 {
		t.Errorf("the service was called %d times", n)
	}
	other := b.Call(s.Config, s.Input)
	other.ActivationID = "another"
	if out, err := b.Kind.Inquire(context.Background(), other); !none(out, err) {
		t.Errorf("what another node has sent is taken for its own: %v, %v", out, err)
	}
}

// pages: a list is read over three pages, a part of it on request, and the rest from where that ended.
func (v Vendor) pages(t *testing.T) {
	t.Helper()
	b := v.New(t)
	list := func(limit int, cursor string) gjson.Result {
		config, err := sjson.Set(v.Pages.Config, "limit", limit)
		if err == nil {
			config, err = sjson.Set(config, "cursor", cursor)
		}
		if err != nil {
			t.Fatal(err)
		}
		result, err := b.Run(config, v.Pages.Input)
		if err != nil {
			t.Fatalf("limit %d, cursor %q: %v", limit, cursor, err)
		}
		return result
	}
	ids := func(r gjson.Result) (raw []string) {
		for _, item := range r.Get("items").Array() {
			raw = append(raw, item.Raw)
		}
		return raw
	}
	all := list(1000, "")
	if n := len(b.Calls(v.Pages.Call)); len(ids(all)) != v.Total || all.Get("truncated").Bool() || all.Get("next_cursor").Str != "" || n < 3 {
		t.Fatalf("%d entries over %d pages, truncated %v, next %q; want %d over at least 3", len(ids(all)), n, all.Get("truncated"), all.Get("next_cursor").Str, v.Total)
	}
	for _, limit := range []int{1, v.Total / 2, v.Total - 1} {
		some := list(limit, "")
		if len(ids(some)) != limit || !some.Get("truncated").Bool() {
			t.Fatalf("%d of %d: %d, truncated %v", limit, v.Total, len(ids(some)), some.Get("truncated"))
		}
		rest := list(1000, some.Get("next_cursor").Str)
		if joined := append(ids(some), ids(rest)...); !slices.Equal(joined, ids(all)) || rest.Get("truncated").Bool() {
			t.Errorf("%d and the rest are not the whole list: %d and %d, truncated %v", limit, len(ids(some)), len(ids(rest)), rest.Get("truncated"))
		}
	}
	if whole := list(v.Total, ""); len(ids(whole)) != v.Total || whole.Get("truncated").Bool() {
		t.Errorf("as many as there are: %d, truncated %v", len(ids(whole)), whole.Get("truncated"))
	}
	for _, limit := range []int{0, 1001} {
		if _, err := b.Run(v.Pages.Config, fmt.Sprintf(`{"limit":%d}`, limit)); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("a limit of %d: %v", limit, err)
		}
	}
}

// expires: a token that is refused is renewed once, and the call made with the new one.
func (v Vendor) expires(t *testing.T) {
	t.Helper()
	b := v.New(t)
	b.Answers(v.Once.Call, Reply{Status: 401, Body: `{}`})
	if _, err := b.Run(v.Once.Config, v.Once.Input); err != nil || b.Renewed != 1 {
		t.Fatalf("renewed %d times: %v", b.Renewed, err)
	}
	calls := b.Calls(v.Once.Call)
	if len(calls) != 2 || !strings.Contains(fmt.Sprint(calls[1].Header), Token+"-renewed") {
		t.Errorf("it is called with %+v", calls)
	}
	b = v.New(t)
	b.Answers(v.Once.Call, Reply{Status: 401, Body: `{}`})
	b.Answers(v.Once.Call, Reply{Status: 401, Body: `{}`})
	if _, err := b.Run(v.Once.Config, v.Once.Input); fault.CodeOf(err) != fault.CredentialInvalid || b.Renewed != 1 {
		t.Errorf("a new token that is refused, renewed %d times: %v", b.Renewed, err)
	}
}
