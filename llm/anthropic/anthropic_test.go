package anthropic

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/llm"
	"tandem/llm/llmtest"
)

// setup makes a provider for a service that gives answers in turn, and says what it was sent.
func setup(t *testing.T, answers ...func(w http.ResponseWriter)) (llm.Provider, func() []map[string]any) {
	t.Helper()
	server, bodies := llmtest.Serve(t, answers...)
	p, err := New(llm.Settings{BaseURL: server.URL + "/", Key: "a-key", HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return p, bodies
}

// streams answers with events, each a type and its fields.
func streams(events ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for _, e := range events {
			var kind struct{ Type string }
			if err := json.Unmarshal([]byte(e), &kind); err != nil {
				panic(err)
			}
			_, _ = io.WriteString(w, "event: "+kind.Type+"\ndata: "+e+"\n\n")
		}
	}
}

func ask(model string) llm.Request {
	return llm.Request{Model: model, Messages: []llm.Message{{Role: llm.User, Content: "x"}}}
}

const done = `{"id":"m","type":"message","role":"assistant","model":"c","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

func checkJSON(t *testing.T, got any, want string) {
	t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("what was sent differs (-want +sent):\n%s", diff)
	}
}

// TestComplete_ThoughtsComeBack: the service refuses a conversation whose thoughts were changed or moved.
func TestComplete_ThoughtsComeBack(t *testing.T) {
	t.Parallel()
	whole := `{"id":"m1","type":"message","role":"assistant","model":"c","stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1},"content":[` +
		`{"type":"thinking","thinking":"first","signature":"s1"},{"type":"redacted_thinking","data":"hidden"},{"type":"text","text":"Let me"},` +
		`{"type":"thinking","thinking":"second","signature":"s2"},{"type":"text","text":" look."},{"type":"tool_use","id":"t1","name":"find","input":{"n":1}}]}`
	events := []string{
		`{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"c","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"fi"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"rst"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"hidden"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Let me"}}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"thinking_delta","thinking":"second"}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"signature_delta","signature":"s2"}}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":" look."}}`,
		`{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"t1","name":"find","input":{}}}`,
		`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}`,
		`{"type":"content_block_stop","index":5}`,
		`{"type":"something_new","index":7}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`,
		`{"type":"message_stop"}`,
	}
	for _, stream := range []bool{true, false} {
		first := llmtest.Says(200, whole)
		if stream {
			first = streams(events...)
		}
		p, bodies := setup(t, first, llmtest.Says(200, done))
		r := ask("claude-sonnet-4-5")
		r.Stream = stream
		told := ""
		c, err := p.Complete(t.Context(), r, func(d llm.Delta) { told += d.Reasoning })
		if err != nil {
			t.Fatal(err)
		}
		if c.Message.Content != "Let me look." || c.Message.Reasoning != "first\n\nsecond" || c.Finish != llm.FinishToolCalls || stream && told != c.Message.Reasoning {
			t.Fatalf("stream %v: the answer is %+v, told %q", stream, c, told)
		}
		kept, err := json.Marshal(c.Message) // messages are kept and read back
		if err != nil {
			t.Fatal(err)
		}
		var back llm.Message
		if err := json.Unmarshal(kept, &back); err != nil {
			t.Fatal(err)
		}
		r.Stream = false
		r.Messages = append(r.Messages, back, llm.Message{Role: llm.ToolRole, ToolCallID: "t1", Content: "found"}, llm.Message{Role: llm.User, Content: "well?"})
		if _, err := p.Complete(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		messages := bodies()[1]["messages"].([]any)
		checkJSON(t, messages[1].(map[string]any)["content"], `[{"type":"thinking","thinking":"first","signature":"s1"},{"type":"redacted_thinking","data":"hidden"},{"type":"text","text":"Let me"},`+
			`{"type":"thinking","thinking":"second","signature":"s2"},{"type":"text","text":" look."},{"type":"tool_use","id":"t1","name":"find","input":{"n":1}}]`)
		checkJSON(t, messages[2].(map[string]any)["content"], `[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"found"}]},{"type":"text","text":"well?"}]`)

		// A message that was shortened since keeps its thoughts, in front.
		back.Content = "Look."
		r.Messages[1] = back
		if _, err := p.Complete(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		messages = bodies()[2]["messages"].([]any)
		checkJSON(t, messages[1].(map[string]any)["content"], `[{"type":"thinking","thinking":"first","signature":"s1"},{"type":"redacted_thinking","data":"hidden"},`+
			`{"type":"thinking","thinking":"second","signature":"s2"},{"type":"text","text":"Look."},{"type":"tool_use","id":"t1","name":"find","input":{"n":1}}]`)
	}
}

func TestComplete_Usage(t *testing.T) {
	t.Parallel()
	used := `{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":200,"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}`
	want := llm.Usage{InputTokens: 1210, OutputTokens: 50, CachedTokens: 1000, ReasoningTokens: 30}
	p, _ := setup(t, llmtest.Says(200, strings.Replace(done, `{"input_tokens":1,"output_tokens":1}`, used, 1)), streams(
		`{"type":"message_start","message":{"id":"m","type":"message","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":200,"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}}`, `{"type":"message_stop"}`))
	for _, stream := range []bool{false, true} {
		r := ask("claude-sonnet-4-5")
		r.Stream = stream
		c, err := p.Complete(t.Context(), r, nil)
		if err != nil || c.Usage != want {
			t.Errorf("stream %v: it used %+v (%v), want %+v", stream, c.Usage, err, want)
		}
	}
}

func TestComplete_Refusal(t *testing.T) {
	t.Parallel()
	p, _ := setup(t, llmtest.Says(200, `{"id":"m","type":"message","content":[],"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"Not with a-key."}}`))
	_, err := p.Complete(t.Context(), ask("claude-opus-4-8"), nil)
	f := fault.From(err)
	if f.Code != fault.ModelRefused || f.Details["category"] != "bio" || !strings.Contains(f.Message, "Not with ***.") {
		t.Errorf("complete: %v, details %v", err, f.Details)
	}
}

func TestComplete_Failures(t *testing.T) {
	t.Parallel()
	body := func(kind, message string) string { return string(wireError(kind, message)) }
	for name, c := range map[string]struct {
		status int
		body   string
		code   fault.Code
	}{
		"Overloaded":     {529, body("overloaded_error", "Overloaded"), fault.RateLimited},
		"OverloadedPage": {529, "busy", fault.RateLimited},
		"TooLarge":       {413, body("request_too_large", "Request exceeds the maximum size"), fault.ContextTooLong},
		"WithMaxTokens":  {400, body("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), fault.ContextTooLong},
		"Billing":        {400, body("invalid_request_error", "Your credit balance is too low"), fault.RemoteRejected},
		"Permission":     {403, body("permission_error", "no"), fault.CredentialInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, bodies := setup(t, func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", "7")
				llmtest.Says(c.status, c.body)(w)
			})
			_, err := p.Complete(t.Context(), ask("claude-sonnet-4-5"), nil)
			if fault.CodeOf(err) != c.code {
				t.Errorf("complete: %v, want %s", err, c.code)
			}
			u, waits := errors.AsType[*llm.Unavailable](err)
			if waits != c.code.Retryable() || waits && u.RetryAfter != 7*time.Second {
				t.Errorf("complete: %v says when to come back: %v", err, waits)
			}
			if len(bodies()) != 1 {
				t.Errorf("the service was called %d times", len(bodies()))
			}
		})
	}
	// Inside a stream the type of the error is all there is.
	p, _ := setup(t, streams(`{"type":"message_start","message":{"id":"m","type":"message","content":[]}}`, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	r := ask("claude-sonnet-4-5")
	r.Stream = true
	if _, err := p.Complete(t.Context(), r, func(llm.Delta) {}); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("overloaded in a stream: %v, want rate_limited", err)
	}
	p, _ = setup(t, streams(`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}`))
	if _, err := p.Complete(t.Context(), r, func(llm.Delta) {}); fault.CodeOf(err) != fault.RemoteError {
		t.Errorf("a piece of nothing: %v, want remote_error", err)
	}
	for _, base := range []string{"ftp://x", "not a url", "http://"} {
		if _, err := New(llm.Settings{BaseURL: base, HTTP: http.DefaultClient}); fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("base URL %q: %v, want invalid_config", base, err)
		}
	}
}
