package actiontest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/outbound"
)

// Token is what credentials of tests have as their token. It must not be found in anything that a run says.
const Token = nodetest.Canary

// Vendor is a kind that acts in a service, and a fake of the service.
type Vendor struct {
	// Kind makes the kind on a client.
	Kind func(client *outbound.Client) node.Kind
	// Serve makes a fake service that nobody has called yet.
	Serve func(t testing.TB) http.Handler
	// Prefix is a path below which the fake is, to see that a base_url may have one.
	Prefix string
	// Credential are the fields of the credential besides base_url. None: the token alone.
	Credential map[string]string
	// Key is the field of the credential that nothing can be done without. Empty: token.
	Key string
	// Renews says that the credential can be renewed: a token that has expired is. The fake takes any token then.
	Renews bool

	// Once is an operation of the class once, and Read one that only reads.
	Once, Read Sample
	// Settled are those of the class once of which the service can be asked whether they arrived.
	Settled []Sample
	// Unsure are those of which the service finds what arrived, and cannot say that nothing has: its search may be behind.
	Unsure []Sample
	// SettledBy are tests of their own for operations of which the service tells in other ways what became of them, by the names
	// of the operations.
	SettledBy map[string]string
	// Pages is a list that the fake has on three pages when its limit is 1000; Total is how many entries it has.
	Pages Sample
	Total int
	// Refusals are answers that only this service gives.
	Refusals []Refusal
}

// Sample is an operation that succeeds, and the call that does it, as [Service.Calls] names it.
type Sample struct {
	Config, Input string
	Call          string
}

// Refusal is a run that fails.
type Refusal struct {
	Name string
	Sample
	// Reply is the answer to the call; without a status the fake itself answers, or is not called at all.
	Reply Reply
	Code  fault.Code
	// Part is a part of the message.
	Part      string
	Retryable bool
	// AfterSeconds is when the service wants to be asked again, at least and about: 0 for one that did not say so.
	AfterSeconds int
}

// Operation is a run that succeeds.
type Operation struct {
	Name, Config, Input string
	// Call is the call that does it.
	Call string
	// Query are parameters that it has, Body the fields of its body: objects and lists as [nodetest.Differences] compares them; Text is a
	// part of a body that is not JSON. Header are headers that it has.
	Query, Header map[string]string
	Body, Text    string
	// Result are fields that the result has.
	Result string
}

// Bench is a kind with a fake service.
type Bench struct {
	*Service
	Kind node.Kind
	// Files keeps what runs store.
	Files nodetest.Files

	t      testing.TB
	vendor Vendor
	token  string
	// Renewed is how often the credential was renewed.
	Renewed int
}

// New makes a bench.
func (v Vendor) New(t testing.TB) *Bench {
	t.Helper()
	s := NewService(t, v.Prefix, v.Serve(t))
	return &Bench{Service: s, Kind: v.Kind(s.Client), t: t, vendor: v, token: Token}
}

// Call makes the call of a run.
func (b *Bench) Call(config, input string) *node.Call {
	b.t.Helper()
	call := nodetest.NewCall(b.t, config, input)
	call.Files = &b.Files
	open := func(context.Context) (credential.Opened, error) {
		fields := map[string]string{"token": b.token, "base_url": b.URL}
		maps.Copy(fields, b.vendor.Credential)
		data, err := json.Marshal(fields)
		return credential.Opened{ID: "test", Data: data}, err
	}
	call.Credential = func(ctx context.Context, _ string, _ ...string) (credential.Opened, error) {
		opened, err := open(ctx)
		if b.vendor.Renews {
			opened.Renew = func(ctx context.Context, refused string) (credential.Opened, error) {
				if refused != b.token {
					b.t.Errorf("the token %q was refused, not %q", b.token, refused)
				}
				b.Renewed++
				b.token = Token + "-renewed"
				return open(ctx)
			}
		}
		return opened, err
	}
	return call
}

// Run runs a node and returns its result.
func (b *Bench) Run(config, input string) (gjson.Result, error) {
	b.t.Helper()
	return b.do(b.Kind, b.Call(config, input))
}

func (b *Bench) do(kind node.Kind, call *node.Call) (gjson.Result, error) {
	b.t.Helper()
	out, err := kind.Run(context.Background(), call)
	if err != nil {
		if told := fault.From(err); strings.Contains(fmt.Sprint(err, told.Detail, told.Details), Token) {
			b.t.Errorf("the token is told: %v", err)
		}
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(out.(node.Done)["result"]), nil
}

// Operations runs operations that succeed. There must be one for every operation of the kind.
func (v Vendor) Operations(t *testing.T, list []Operation) {
	t.Helper()
	kind := v.Kind(nil)
	nodetest.Conform(t, nodetest.Of(kind))
	left := slices.Clone(kind.About.Values["action_type"])
	for _, o := range list {
		name := gjson.Get(o.Config, "action_type").Str
		left = slices.DeleteFunc(left, func(one string) bool { return one == name })
		t.Run(o.Name, func(t *testing.T) {
			t.Parallel()
			b := v.New(t)
			result, err := b.Run(o.Config, o.Input)
			if err != nil {
				t.Fatal(err)
			}
			o.sent(t, b.Calls(o.Call))
			for _, problem := range nodetest.Differences("result", nodetest.Value(t, or(o.Result, "{}")), nodetest.Value(t, result.Raw)) {
				t.Errorf("%s\n%s", problem, result.Raw)
			}
			if strings.Contains(result.Raw, Token) {
				t.Errorf("the token is told: %s", result.Raw)
			}
		})
	}
	if len(left) > 0 {
		t.Errorf("no case runs %q", left)
	}
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// sent compares what was sent.
func (o Operation) sent(t *testing.T, calls []Call) {
	t.Helper()
	if len(calls) != 1 {
		t.Fatalf("%s was called %d times", o.Call, len(calls))
	}
	c := calls[0]
	for name, want := range o.Query { // order does not matter: each is reported by itself
		if got := strings.Join(c.Query[name], ","); got != want {
			t.Errorf("the parameter %s is %q, want %q", name, got, want)
		}
	}
	for name, want := range o.Header { // order does not matter: each is reported by itself
		if got := c.Header.Get(name); got != want {
			t.Errorf("the header %s is %q, want %q", name, got, want)
		}
	}
	if o.Body != "" {
		for _, problem := range nodetest.Differences("body", nodetest.Value(t, o.Body), nodetest.Value(t, or(string(c.Body), "null"))) {
			t.Errorf("%s\nsent: %s", problem, c.Body)
		}
	}
	if !strings.Contains(string(c.Body), o.Text) {
		t.Errorf("the body lacks %q:\n%s", o.Text, c.Body)
	}
}
