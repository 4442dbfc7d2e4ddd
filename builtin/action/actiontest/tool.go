package actiontest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/builtin/toolset"
	"tandem/fault"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/workflow"
)

// ToolUse is a call of a tool, as a model makes it.
type ToolUse struct {
	Name string
	// Config are further configurations, an object; empty: none.
	Config     string
	Tool, Args string
	// Operation says what is sent and what comes back, by its Call, Query, Header, Body, Text and Result. With an empty Call nothing is
	// looked at.
	Operation
}

// Tools are the names of the tools of a kind, with the class of each.
func (v Vendor) Tools(t *testing.T) map[string]workflow.Effect {
	t.Helper()
	list, err := v.Kind(nil).Tools(context.Background(), nodetest.NewCall(t, `{}`, ""))
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]workflow.Effect{}
	for _, one := range list {
		tools[one.Name] = one.Effect
	}
	return tools
}

// ToolCall is the call of a node that a model wants to use a tool of.
func (b *Bench) ToolCall(config, tool, args string) *node.Call {
	b.t.Helper()
	return b.Call(or(config, `{}`), fmt.Sprintf(`{"tool_name":%q,"function_args":%s}`, tool, or(args, `{}`)))
}

// Use calls a tool as a model does.
func (b *Bench) Use(config, tool, args string) (gjson.Result, error) {
	b.t.Helper()
	return b.UseCall(b.ToolCall(config, tool, args))
}

// UseCall runs the call of a tool as a model does.
func (b *Bench) UseCall(call *node.Call) (gjson.Result, error) {
	b.t.Helper()
	out, err := b.Kind.Run(toolset.WantedByModel(context.Background()), call)
	if err != nil {
		if told := fault.From(err); strings.Contains(fmt.Sprint(err, told.Detail, told.Details), Token) {
			b.t.Errorf("the token is told: %v", err)
		}
		return gjson.Result{}, err
	}
	return gjson.GetBytes(out.(node.Done)["result"], "result"), nil
}

// Uses runs tools that succeed. There must be one for every tool of the kind.
func (v Vendor) Uses(t *testing.T, list []ToolUse) {
	t.Helper()
	nodetest.Conform(t, nodetest.Of(v.Kind(nil)))
	left := v.Tools(t)
	for _, u := range list {
		delete(left, u.Tool)
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			b := v.New(t)
			result, err := b.Use(u.Config, u.Tool, u.Args)
			if err != nil {
				t.Fatal(err)
			}
			if u.Call != "" {
				u.sent(t, b.Calls(u.Call))
			}
			for _, problem := range nodetest.Differences("result", nodetest.Value(t, or(u.Result, "{}")), nodetest.Value(t, result.Raw)) {
				t.Errorf("%s\n%s", problem, result.Raw)
			}
		})
	}
	if len(left) > 0 {
		t.Errorf("no case uses %v", left)
	}
}

// ToolRefusal is a use of a tool that fails.
type ToolRefusal struct {
	Name, Config, Tool, Args string
	// Call gets the reply; without a status the fake itself answers, or is not called at all.
	Call  string
	Reply Reply
	Code  fault.Code
	Part  string
}

// ToolFailures runs what can go wrong with a tool of any service: read is one that reads, once one that must not be repeated, each with the
// call that it makes.
func (v Vendor) ToolFailures(t *testing.T, read, once ToolUse, list []ToolRefusal) {
	t.Helper()
	of := func(u ToolUse, name string, reply Reply, code fault.Code) ToolRefusal {
		return ToolRefusal{Name: name, Config: u.Config, Tool: u.Tool, Args: u.Args, Call: u.Call, Reply: reply, Code: code}
	}
	after := map[string]string{"Retry-After": "7"}
	list = append(slices.Clone(list),
		of(read, "ReadAuth", Reply{Status: 401, Body: `{}`}, fault.CredentialInvalid),
		of(read, "ReadLimit", Reply{Status: 429, Header: after, Body: `{}`}, fault.RateLimited),
		of(read, "ReadServer", Reply{Status: 500, Body: `oops`}, fault.RemoteError), of(read, "ReadOther", Reply{Status: 200, Body: `<html>`}, fault.RemoteError),
		of(read, "ReadGone", Reply{Status: 404, Body: `{}`}, fault.ToolError), of(read, "ReadInvalid", Reply{Status: 400, Body: `{}`}, fault.ToolError),
	)
	if once.Tool != "" {
		list = append(list,
			of(once, "OnceAuth", Reply{Status: 401, Body: `{}`}, fault.CredentialInvalid),
			of(once, "OnceLimit", Reply{Status: 429, Header: after, Body: `{}`}, fault.RateLimited),
			of(once, "OnceServer", Reply{Status: 500, Body: `oops`}, fault.RemoteError), of(once, "OnceGateway", Reply{Status: 502, Body: `oops`}, fault.OutcomeUnknown),
			of(once, "OnceInvalid", Reply{Status: 400, Body: `{}`}, fault.ToolError),
		)
	}
	for _, c := range list {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			v := v
			v.Renews = v.Renews && c.Reply.Status != 401 // what a new token does is seen by itself
			b := v.New(t)
			if c.Reply.Status != 0 {
				b.Answers(c.Call, c.Reply)
			}
			_, err := b.Use(c.Config, c.Tool, c.Args)
			if err == nil || fault.CodeOf(err) != c.Code || !strings.Contains(err.Error(), c.Part) {
				t.Fatalf("%v; want %s with %q", err, c.Code, c.Part)
			}
			told, _ := errors.AsType[*node.Failure](err)
			if c.Reply.Status == 429 && (told == nil || told.RetryAfter == 0 || !fault.From(err).Retryable) {
				t.Errorf("it is not tried again later: %+v", told)
			}
			if unknown := told != nil && told.Unknown; unknown != (c.Code == fault.OutcomeUnknown) {
				t.Errorf("that nobody knows the outcome is %v", unknown)
			}
			if n := len(b.Calls(c.Call)); c.Reply.Status != 0 && n != 1 {
				t.Errorf("it was called %d times", n)
			}
			if c.Name != "ReadServer" {
				return
			}
			if !fault.From(err).Retryable {
				t.Errorf("it is not tried again: %v", err)
			}
			if _, err := b.Use(c.Config, c.Tool, c.Args); err != nil {
				t.Errorf("the service is there again: %v", err)
			}
		})
	}
	t.Run("Timeout", func(t *testing.T) {
		t.Parallel()
		b := v.New(t)
		b.Kind = v.Kind(b.Hasty())
		b.Hangs(read.Call)
		if _, err := b.Use(read.Config, read.Tool, read.Args); fault.CodeOf(err) != fault.Timeout || !fault.From(err).Retryable {
			t.Errorf("no answer to a call that reads: %v", err)
		}
	})
	if once.Tool != "" {
		t.Run("Lost", func(t *testing.T) { t.Parallel(); v.toolLost(t, once) })
	}
	if v.Renews {
		t.Run("Expired", func(t *testing.T) {
			t.Parallel()
			b := v.New(t)
			b.Answers(read.Call, Reply{Status: 401, Body: `{}`})
			if _, err := b.Use(read.Config, read.Tool, read.Args); err != nil || b.Renewed != 1 {
				t.Errorf("renewed %d times: %v", b.Renewed, err)
			}
		})
	}
}

// toolLost: a call whose answer was lost is not made again; where the service can be asked, it says what became of it.
func (v Vendor) toolLost(t *testing.T, u ToolUse) {
	t.Helper()
	b := v.New(t)
	call := b.ToolCall(u.Config, u.Tool, u.Args)
	if b.Kind.Inquire != nil {
		if out, err := b.Kind.Inquire(context.Background(), call); out != nil || err != nil && fault.CodeOf(err) != fault.Unsupported {
			t.Errorf("nothing was sent yet: %v, %v", out, err)
		}
	}
	b.Loses(u.Call)
	_, err := b.UseCall(call)
	if failed, ok := errors.AsType[*node.Failure](err); !ok || !failed.Unknown {
		t.Errorf("the answer was lost: %v", err)
	}
	if n := len(b.Calls(u.Call)); n != 1 {
		t.Errorf("the service was called %d times", n)
	}
}

// ToolSettles: what the service has taken is found, as if its answer had come; what another node has sent is not taken for its own.
func (v Vendor) ToolSettles(t *testing.T, u ToolUse, fields ...string) {
	t.Helper()
	well, b := v.New(t), v.New(t)
	usual, err := well.Use(u.Config, u.Tool, u.Args)
	if err != nil {
		t.Fatal(err)
	}
	call := b.ToolCall(u.Config, u.Tool, u.Args)
	if out, err := b.Kind.Inquire(context.Background(), call); out != nil || err != nil {
		t.Fatalf("nothing was sent yet: %v, %v", out, err)
	}
	b.Loses(u.Call)
	if _, err := b.UseCall(call); fault.CodeOf(err) != fault.OutcomeUnknown {
		t.Fatalf("the answer was lost: %v", err)
	}
	again := b.ToolCall(u.Config, u.Tool, u.Args)
	again.Attempt = 2
	out, err := b.Kind.Inquire(context.Background(), again)
	if err != nil || out == nil {
		t.Fatalf("it is there: %v, %v", out, err)
	}
	found := gjson.ParseBytes(out.(node.Done)["result"])
	for _, name := range fields {
		if found.Get("result."+name).String() != usual.Get(name).String() || usual.Get(name).String() == "" {
			t.Errorf("%s is %s, and %s when the answer comes", name, found.Get("result."+name), usual.Get(name))
		}
	}
	if n := len(b.Calls(u.Call)); n != 1 {
		t.Errorf("the service was called %d times", n)
	}
}

// Planned is the class of a node of a kind with configurations.
func (v Vendor) Planned(t *testing.T, config string) workflow.Effect {
	t.Helper()
	kind := v.Kind(nil)
	r := &node.Registry{}
	r.Register(kind)
	known, _ := r.Kind(kind.About.Name)
	typ, subtype, _ := strings.Cut(kind.About.Name, ".")
	p, _ := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: json.RawMessage(config)})
	return p.Effect
}
