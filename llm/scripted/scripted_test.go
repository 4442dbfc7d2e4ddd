package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/llm"
	"tandem/llm/scripted"
)

// setup makes the provider of a script that is written as JSON, as profiles have it.
func setup(t *testing.T, script string) llm.Provider {
	t.Helper()
	p, err := scripted.New(llm.Settings{Script: parse(t, script)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parse(t *testing.T, script string) llm.Script {
	t.Helper()
	var s llm.Script
	if err := json.Unmarshal([]byte(script), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func said(texts ...string) llm.Request {
	r := llm.Request{Model: "demo"}
	for _, text := range texts {
		r.Messages = append(r.Messages, llm.Message{Role: llm.User, Content: text})
	}
	return r
}

func TestProvider_Rules(t *testing.T) {
	t.Parallel()
	p := setup(t, `{"rules": [
		{"tool": "weather", "reply": "It is {{tool}}."},
		{"schema": "order", "matches": "order (\\d+) of (\\S+)", "json": {"id": "$1", "who": "$2", "said": "{{last}}"}},
		{"system": "pirate", "contains": "hello", "reply": "Ahoy"},
		{"contains": "hello", "reply": "Hello"},
		{"matches": "weather in (\\pL+)", "calls": [{"name": "weather", "arguments": {"city": "$1"}}, {"name": "now"}], "reasoning": "I look it up."},
		{"matches": "costs?$", "reply": "$1 and $5"},
		{"contains": "echo", "reply": "{{last}}{{last}}"},
		{"contains": "short", "reply": "cut", "finish_reason": "length"},
		{"contains": "nothing", "finish_reason": "stop"},
		{"tool": "price", "json": {"euros": "{{tool.item.euros}}", "none": "{{tool.nothing}}", "open": "{{tool."}},
		{"contains": "recall", "reply": "I know <{{system}}>"},
		{"contains": "busy", "fail": "rate_limited"},
		{"contains": "refuse", "fail": "model_refused", "reply": "not {{last}}"}
	]}`)
	system := func(text string, r llm.Request) llm.Request {
		r.Messages = append([]llm.Message{{Role: llm.System, Content: text}}, r.Messages...)
		return r
	}
	result := said("weather in Bern")
	result.Messages = append(result.Messages, llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "weather"}}},
		llm.Message{Role: llm.ToolRole, ToolName: "weather", ToolCallID: "1", Content: `sunny {{last}} $1`})
	price := said("price")
	price.Messages = append(price.Messages, llm.Message{Role: llm.ToolRole, ToolName: "price", ToolCallID: "1", Content: `{"item": {"euros": 1.5}}`})
	order := said(`order 42 of "Ann"`)
	order.Schema = &llm.Schema{Name: "order"}
	for _, c := range []struct {
		name, content string
		request       llm.Request
		finish        llm.Finish
		code          fault.Code
	}{
		{name: "Contains", request: said("well, hello there"), content: "Hello"},
		{name: "System", request: system("be a pirate", said("hello")), content: "Ahoy"},
		{name: "OtherSystem", request: system("be kind", said("hello")), content: "Hello"},
		{name: "LastMessageCounts", request: said("hello", "echo"), content: "echoecho"},
		{name: "ToolResult", request: result, content: "It is sunny {{last}} $1."},
		{name: "InstructionsDoNotEndAConversation", request: llm.Request{Messages: append(result.Messages[:3:3], llm.Message{Role: llm.System, Content: "x"})}, content: "It is sunny {{last}} $1."},
		{name: "JSONWithQuotes", request: order, content: `{"id": "42", "who": "\"Ann\"", "said": "order 42 of \"Ann\""}`},
		{name: "GroupsThatAreNotThere", request: said("what it costs"), content: "$1 and $5"},
		{name: "OnePass", request: said("echo {{last}}"), content: "echo {{last}}echo {{last}}"},
		{name: "Finish", request: said("short"), content: "cut", finish: llm.FinishLength},
		{name: "Empty", request: said("nothing"), content: ""},
		{name: "PartOfAResult", request: price, content: `{"euros": "1.5", "none": "", "open": "{{tool."}`},
		{name: "LastSystem", request: system("be kind", system("she is Ada {{last}}", said("recall"))), content: "I know <she is Ada {{last}}>"},
		{name: "NoSystem", request: said("recall"), content: "I know <>"},
		{name: "Fail", request: said("busy"), code: fault.RateLimited},
		{name: "FailWithText", request: said("refuse"), code: fault.ModelRefused, content: "not refuse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := p.Complete(t.Context(), c.request, nil)
			if c.code != "" {
				if e := fault.From(err); e.Code != c.code || e.Retryable != c.code.Retryable() || !strings.Contains(e.Message, c.content) {
					t.Errorf("got %v", err)
				}
				return
			}
			finish := c.finish
			if finish == "" {
				finish = llm.FinishStop
			}
			if err != nil || got.Message.Role != llm.Assistant || got.Message.Content != c.content || got.Finish != finish || got.Model != c.request.Model {
				t.Errorf("got %+v, %v", got, err)
			}
			if want := llm.Estimate(c.request.Messages, got.Message); got.Usage != want || !got.Usage.Estimated || got.ServiceID == "" {
				t.Errorf("usage %+v, want %+v; service id %q", got.Usage, want, got.ServiceID)
			}
		})
	}
	t.Run("Calls", func(t *testing.T) {
		t.Parallel()
		one, err := p.Complete(t.Context(), said("weather in 北京"), nil)
		if err != nil {
			t.Fatal(err)
		}
		calls := one.Message.ToolCalls
		if len(calls) != 2 || calls[0].Name != "weather" || calls[0].Arguments != `{"city": "北京"}` || calls[1].Arguments != "{}" || one.Finish != llm.FinishToolCalls || one.Message.Reasoning != "I look it up." {
			t.Fatalf("got %+v", one)
		}
		if calls[0].ID == calls[1].ID || calls[0].ID == "" {
			t.Errorf("ids %q and %q", calls[0].ID, calls[1].ID)
		}
		again, err := p.Complete(t.Context(), said("weather in 北京"), nil)
		if diff := cmp.Diff(one, again); diff != "" || err != nil {
			t.Errorf("asked again (-first +second):\n%s, %v", diff, err)
		}
		later, err := p.Complete(t.Context(), said("weather in 北京", "weather in 北京"), nil)
		if err != nil || later.Message.ToolCalls[0].ID == calls[0].ID {
			t.Errorf("a later round has the ids of an earlier one: %+v, %v", later.Message.ToolCalls, err)
		}
	})
	t.Run("NothingFits", func(t *testing.T) {
		t.Parallel()
		r := said("what is " + strings.Repeat("很", 200) + "?")
		r.Schema, r.Tools = &llm.Schema{Name: "plan"}, []llm.Tool{{Name: "look"}}
		_, err := p.Complete(t.Context(), r, nil)
		e := fault.From(err)
		for _, says := range []string{"no rule", "13 rules", `"what is 很`, `"plan"`, `"look"`} {
			if !strings.Contains(e.Message, says) {
				t.Errorf("%q does not say %s", e.Message, says)
			}
		}
		if e.Code != fault.NotFound || e.Retryable || len(e.Message) > 700 || e.Details["fingerprint"] != llm.Fingerprint(r) {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("WithoutConditionsAlwaysFits", func(t *testing.T) {
		t.Parallel()
		got, err := setup(t, `{"rules": [{"reply": "yes"}]}`).Complete(t.Context(), llm.Request{}, nil)
		if err != nil || got.Message.Content != "yes" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestProvider_Stream(t *testing.T) {
	t.Parallel()
	p := setup(t, `{"rules": [{"reasoning": "let me see", "reply": "Hello  big world，你好 !", "calls": [{"name": "f", "arguments": {"a": [1, 2]}}, {"name": "g"}]}]}`)
	r := said("hi")
	r.Stream = true
	t.Run("PiecesAreTheAnswer", func(t *testing.T) {
		t.Parallel()
		var pieces []string
		var got llm.Message
		c, err := p.Complete(t.Context(), r, func(d llm.Delta) {
			got.Content += d.Text
			got.Reasoning += d.Reasoning
			if d.Text != "" {
				pieces = append(pieces, d.Text)
			}
			if x := d.ToolCall; x != nil {
				if x.Index == len(got.ToolCalls) {
					got.ToolCalls = append(got.ToolCalls, llm.ToolCall{ID: x.ID, Name: x.Name})
				} else if x.ID != "" || x.Name != "" {
					t.Errorf("a later piece of a call has its name again: %+v", x)
				}
				got.ToolCalls[x.Index].Arguments += x.Arguments
			}
		})
		got.Role = llm.Assistant
		if diff := cmp.Diff(c.Message, got); diff != "" || err != nil {
			t.Errorf("answer and pieces (-answer +pieces):\n%s, %v", diff, err)
		}
		if diff := cmp.Diff([]string{"Hello  ", "big ", "world，", "你", "好 ", "!"}, pieces); diff != "" {
			t.Errorf("pieces (-want +got):\n%s", diff)
		}
	})
	t.Run("OnlyWhenAsked", func(t *testing.T) {
		t.Parallel()
		if _, err := p.Complete(t.Context(), said("hi"), func(d llm.Delta) { t.Errorf("got %+v", d) }); err != nil {
			t.Error(err)
		}
	})
	t.Run("EndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		for stop := range 12 {
			ctx, cancel := context.WithCancel(t.Context())
			told := 0
			_, err := p.Complete(ctx, r, func(llm.Delta) {
				if told++; told == stop+1 {
					cancel()
				}
			})
			if fault.CodeOf(err) != fault.Canceled || told != stop+1 {
				t.Errorf("stopped after %d pieces, told %d: %v", stop+1, told, err)
			}
			if _, err := p.Complete(ctx, r, nil); fault.CodeOf(err) != fault.Canceled {
				t.Errorf("begun after the end: %v", err)
			}
		}
	})
	t.Run("ThroughTheExecutor", func(t *testing.T) {
		t.Parallel()
		x := llm.NewExecutor(llm.Options{Provide: func(_ context.Context, profile llm.Profile) (llm.Provider, error) {
			return scripted.New(llm.Settings{Script: profile.Script})
		}})
		text := ""
		c, err := x.Do(t.Context(), llm.Call{
			RequestID: "r", Request: r, Sink: func(d llm.Delta) { text += d.Text },
			Profile: llm.Profile{ID: "demo", Provider: "scripted", Script: parse(t, `{"rules": [{"reply": "one two three"}]}`)},
		})
		if err != nil || c.Message.Content != "one two three" || text != c.Message.Content {
			t.Errorf("got %+v, %q, %v", c, text, err)
		}
	})
}

func TestProvider_Recorded(t *testing.T) {
	t.Parallel()
	r := said("hi")
	r.Stream = true
	want := llm.Completion{
		Message: llm.Message{Role: llm.Assistant, Content: "recorded", ToolCalls: []llm.ToolCall{{ID: "x", Name: "f", Arguments: "{}"}}},
		Usage:   llm.Usage{InputTokens: 5, OutputTokens: 6}, Finish: llm.FinishToolCalls, Model: "real-model", ServiceID: "s",
	}
	good, err := llm.Record(want, nil)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := llm.Record(llm.Completion{}, &llm.Unavailable{Err: fault.New(fault.RateLimited, "slow down"), RetryAfter: 1500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	final, err := llm.Record(llm.Completion{}, fault.New(fault.ContextTooLong, "too long"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := scripted.New(llm.Settings{Script: llm.Script{
		Rules: []llm.Rule{{Contains: "hi", Reply: "by rule"}},
		Recorded: map[string]json.RawMessage{
			llm.Fingerprint(r): good, llm.Fingerprint(said("busy")): bad, llm.Fingerprint(said("long")): final,
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	other := r
	other.Model = "another" // the profile of a replay is not that of the recording
	got, err := p.Complete(t.Context(), other, func(d llm.Delta) { text += d.Text })
	if diff := cmp.Diff(want, got); diff != "" || err != nil || text != "recorded" {
		t.Errorf("(-want +got):\n%s, streamed %q, %v", diff, text, err)
	}
	got.Message.ToolCalls[0].Name = "changed"
	if again, err := p.Complete(t.Context(), r, nil); err != nil || again.Message.ToolCalls[0].Name != "f" {
		t.Errorf("who got an answer has changed the recording: %+v, %v", again, err)
	}
	if c, err := p.Complete(t.Context(), said("oh hi"), nil); err != nil || c.Message.Content != "by rule" {
		t.Errorf("what is not recorded: %+v, %v", c, err)
	}
	_, err = p.Complete(t.Context(), said("busy"), nil)
	later, ok := errors.AsType[*llm.Unavailable](err)
	if !ok || later.RetryAfter != 1500*time.Millisecond || fault.CodeOf(err) != fault.RateLimited || !fault.From(err).Retryable {
		t.Errorf("a recorded refusal: %v", err)
	}
	if _, err = p.Complete(t.Context(), said("long"), nil); fault.CodeOf(err) != fault.ContextTooLong {
		t.Errorf("a recorded error: %v", err)
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	for script, says := range map[string]string{
		`{"rules": [{"reply": "a"}, {"matches": "(", "reply": "a"}]}`:                    "rule 2",
		`{"rules": [{"fail": "nonsense"}]}`:                                              `"nonsense"`,
		`{"rules": [{"contains": "a"}]}`:                                                 "says nothing",
		`{"rules": [{"reply": "a", "json": {}}]}`:                                        "both",
		`{"rules": [{"calls": [{"name": ""}]}]}`:                                         "call 1 has no name",
		`{"rules": [{"reply": "a", "finish_reason": "done"}]}`:                           `"done"`,
		`{"recorded": {"f1_x": {}}}`:                                                     `"f1_x"`,
		`{"recorded": {"f1_x": 5}}`:                                                      `"f1_x"`,
		`{"recorded": {"f1_x": {"error": {"error_message": "code is missing"}}, "b":1}}`: "cannot be read",
	} {
		if _, err := scripted.New(llm.Settings{Script: parse(t, script)}); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want it to say %s", script, err, says)
		}
	}
	for _, r := range []llm.Rule{{JSON: json.RawMessage(`{`)}, {Calls: []llm.RuleCall{{Name: "f", Arguments: json.RawMessage(`{`)}}}} {
		if _, err := scripted.New(llm.Settings{Script: llm.Script{Rules: []llm.Rule{r}}}); fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("%+v: got %v", r, err)
		}
	}
}

func TestProvider_Embed(t *testing.T) {
	t.Parallel()
	e, ok := setup(t, `{}`).(llm.Embedder)
	if !ok {
		t.Fatal("the provider does not embed")
	}
	vectors, usage, err := e.Embed(t.Context(), "", []string{"hello", "你好"})
	if err != nil || len(vectors) != 2 || usage.InputTokens != llm.Tokens("hello")+llm.Tokens("你好") || !usage.Estimated {
		t.Fatalf("%d vectors, %+v, %v", len(vectors), usage, err)
	}
	if diff := cmp.Diff(llm.HashEmbed("你好"), vectors[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := e.Embed(ctx, "", nil); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("got %v", err)
	}
}
