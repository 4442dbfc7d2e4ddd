package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/llm"
	"tandem/llm/llmtest"
	"tandem/llm/openai"
)

// TestMain puts into the environment what the library would obey. Nothing of it may reach a service, so all other tests
// fail if it does.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "key-of-the-environment", "OPENAI_BASE_URL": "http://127.0.0.1:1/elsewhere", "OPENAI_ORG_ID": "org",
		"OPENAI_PROJECT_ID": "project", "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer other",
	} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func harness() llmtest.Harness {
	return llmtest.Harness{
		New: openai.New, Wire: wire{}, BasePath: "/v1", Model: "some-model",
		Without: map[llmtest.Feature]string{llmtest.FailedResults: "a tool message has its text and nothing else"},
	}
}

func TestProvider(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, harness())
}

func BenchmarkRelay(b *testing.B) { llmtest.Relay(b, harness()) }

const key = "sk-0123456789abcdef"

// connect makes a provider whose service is the handler.
func connect(t *testing.T, handle http.HandlerFunc) llm.Provider {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	client := server.Client()
	p, err := openai.New(llm.Settings{BaseURL: server.URL + "/v1/", Key: key + "\n", HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// canned answers every call with these bytes.
func canned(t *testing.T, kind string, status int, body string) llm.Provider {
	t.Helper()
	return connect(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		if _, err := io.WriteString(w, body); err != nil {
			t.Errorf("write: %v", err)
		}
	})
}

func events(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

func question(stream bool) llm.Request {
	return llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.User, Content: "?"}}, Stream: stream}
}

// ask returns the answer and what the sink was told, as text.
func ask(t *testing.T, p llm.Provider, r llm.Request) (llm.Completion, string, error) {
	t.Helper()
	told := ""
	c, err := p.Complete(t.Context(), r, func(d llm.Delta) {
		if k := d.ToolCall; k != nil {
			told += fmt.Sprintf("[%d %s %s %s]", k.Index, k.ID, k.Name, k.Arguments)
			return
		}
		told += d.Reasoning + d.Text
	})
	return c, told, err
}

const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// TestProvider_Dialects: what compatible services do differently.
func TestProvider_Dialects(t *testing.T) {
	t.Parallel()
	const sse, plain = "text/event-stream", "application/json"
	for name, c := range map[string]struct {
		kind, body string
		stream     bool
		want       llm.Message
		told       string
		finish     llm.Finish
	}{
		"NoLastEvent": {sse, events(`{"choices":[{"delta":{"content":"hi"}}]}`, stop), true, llm.Message{Content: "hi"}, "hi", llm.FinishStop},
		"NullError":   {sse, events(`{"error":null,"choices":[{"delta":{"content":"hi"}}]}`, stop, "[DONE]"), true, llm.Message{Content: "hi"}, "hi", llm.FinishStop},
		"NoContentType": {
			"", events(`{"choices":[{"delta":{"content":"hi"}}]}`, stop, "[DONE]"), true, llm.Message{Content: "hi"}, "hi", llm.FinishStop,
		},
		"Reasoning": {
			sse, events(`{"choices":[{"delta":{"reasoning":"hm"}}]}`, `{"choices":[{"delta":{"content":"hi"}}]}`, stop), true,
			llm.Message{Content: "hi", Reasoning: "hm"}, "hmhi", llm.FinishStop,
		},
		"ReasoningTwice": {
			sse, events(`{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}`, stop), true, llm.Message{Reasoning: "hm"}, "hm", llm.FinishStop,
		},
		"ReasoningObject": {
			sse, events(`{"choices":[{"delta":{"reasoning":{"effort":1},"content":"hi"}}]}`, stop), true, llm.Message{Content: "hi"}, "hi", llm.FinishStop,
		},
		"OneIndexForAll": {
			sse, events(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{"}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"arguments":"}"}}]}}]}`, stop), true,
			llm.Message{ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "g", Arguments: "{}"}}},
			"[0 a f {}][1 b g {][1   }]", llm.FinishToolCalls,
		},
		"NoIndexNoID": {
			sse, events(`{"id":"x","choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{"function":{"name":"g","arguments":null}}]}}]}`, stop), true,
			llm.Message{ToolCalls: []llm.ToolCall{{ID: "call_0_x", Name: "f", Arguments: `{"a":1}`}, {ID: "call_1_x", Name: "g"}}},
			`[0 call_0_x f {"a":1}][1 call_1_x g ]`, llm.FinishToolCalls,
		},
		"Interleaved": {
			sse, events(`{"choices":[{"delta":{"tool_calls":[{"index":3,"id":"a","function":{"name":"f","arguments":""}},{"index":5,"id":"b","function":{"name":"g","arguments":""}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":5,"function":{"arguments":"2"}},{"index":3,"function":{"arguments":"1"}}]}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`), true,
			llm.Message{ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "1"}, {ID: "b", Name: "g", Arguments: "2"}}},
			"[0 a f ][1 b g ][1   2][0   1]", llm.FinishToolCalls,
		},
		"WholeAnswerToStream": {
			plain, `{"choices":[{"index":0,"message":{"content":"all"},"finish_reason":"stop"}]}`, true, llm.Message{Content: "all"}, "all", llm.FinishStop,
		},
		"StreamWithoutBeingAsked": {
			sse, events(`{"choices":[{"delta":{"content":"h"}}]}`, `{"choices":[{"delta":{"content":"i"}}]}`, stop), false, llm.Message{Content: "hi"}, "", llm.FinishStop,
		},
		"OtherChoices": {
			plain, `{"choices":[{"index":1,"message":{"content":"second"}},{"index":0,"message":{"content":"first"},"finish_reason":"eos"}]}`, false,
			llm.Message{Content: "first"}, "", llm.FinishStop,
		},
		"NoFinishReasonInWhole": {plain, `{"choices":[{"message":{"content":"all"},"finish_reason":null}]}`, false, llm.Message{Content: "all"}, "", llm.FinishStop},
		"ToolCallsWithoutAny":   {plain, `{"choices":[{"message":{"content":"x"},"finish_reason":"tool_calls"}]}`, false, llm.Message{Content: "x"}, "", llm.FinishStop},
		"LengthWithinCall": {
			plain, `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]},"finish_reason":"length"}]}`, false,
			llm.Message{ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "{"}}}, "", llm.FinishLength,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, told, err := ask(t, canned(t, c.kind, 200, c.body), question(c.stream))
			if err != nil {
				t.Fatal(err)
			}
			c.want.Role = llm.Assistant
			if diff := cmp.Diff(c.want, got.Message); diff != "" || told != c.told || got.Finish != c.finish {
				t.Errorf("finish %q, told %q, want %q, %q; message (-want +got):\n%s", got.Finish, told, c.finish, c.told, diff)
			}
		})
	}
}

func TestProvider_Usage(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]llm.Usage{
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}`: {
			InputTokens: 10, OutputTokens: 5, CachedTokens: 4, ReasoningTokens: 3,
		},
		`{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":7,"prompt_tokens_details":null}`: {InputTokens: 10, OutputTokens: 5, CachedTokens: 7},
		`{"prompt_tokens":0,"completion_tokens":0}`:                                                           llm.Estimate(question(false).Messages, llm.Message{Content: "hi"}),
		`null`: llm.Estimate(question(false).Messages, llm.Message{Content: "hi"}),
	} {
		c, _, err := ask(t, canned(t, "application/json", 200, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":`+body+`}`), question(false))
		if err != nil || c.Usage != want {
			t.Errorf("usage %s is read as %+v (%v), want %+v", body, c.Usage, err, want)
		}
	}
}

func TestProvider_Failures(t *testing.T) {
	t.Parallel()
	const sse, plain = "text/event-stream", "application/json"
	for name, c := range map[string]struct {
		kind   string
		status int
		body   string
		want   fault.Code
		says   string
	}{
		// A last event without a finish reason comes from gateways whose service has given up.
		"DoneWithoutReason": {sse, 200, events(`{"choices":[{"delta":{"content":"hi"}}]}`, "[DONE]"), fault.NetworkError, ""},
		"GaveUp":            {sse, 200, events(`{"choices":[{"delta":{"content":"hi"},"finish_reason":"insufficient_system_resource"}]}`), fault.RemoteError, ""},
		"NumberInStream":    {sse, 200, events(`{"error":{"message":"busy","code":429}}`), fault.RateLimited, "busy"},
		"WordInStream":      {sse, 200, events(`{"error":{"message":"long","code":"context_length_exceeded"}}`), fault.ContextTooLong, "long"},
		"TextInStream":      {sse, 200, events(`{"error":"broken"}`), fault.RemoteError, "broken"},
		"ErrorWith200":      {plain, 200, `{"error":{"message":"overloaded","code":502}}`, fault.RemoteError, "overloaded"},
		"Filter":            {plain, 400, `{"error":{"message":"policy","code":"content_filter"}}`, fault.ModelRefused, "policy"},
		"NoCredit":          {plain, 429, `{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}`, fault.RemoteRejected, "credit"},
		"LongByText":        {plain, 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens","code":400}`, fault.ContextTooLong, "4096"},
		"TooLarge":          {plain, 413, `{"error":{"message":"Request too large"}}`, fault.ContextTooLong, ""},
		"Timeout":           {plain, 408, ``, fault.Timeout, "408"},
		"Conflict":          {plain, 409, `{}`, fault.RemoteRejected, "409"},
		"BareText":          {plain, 400, `{"error":"model is required"}`, fault.RemoteRejected, "model is required"},
		"Parameter":         {plain, 400, `{"error":{"message":"no","param":"temperature"}}`, fault.RemoteRejected, "no"},
		// The words of the service are cut, and the cut falls into the key.
		"CutSecret": {plain, 401, `{"error":{"message":"` + strings.Repeat("x", 990) + key + `"}}`, fault.CredentialInvalid, "xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := ask(t, canned(t, c.kind, c.status, c.body), question(c.kind == sse))
			if fault.CodeOf(err) != c.want {
				t.Fatalf("complete: %+v, %v; want %s", got, err, c.want)
			}
			f := fault.From(err)
			if !strings.Contains(f.Message, c.says) || strings.Contains(f.Message, key[:8]) {
				t.Errorf("the message is %q, want %q in it and nothing of the key", f.Message, c.says)
			}
			if name == "Parameter" && f.Details["parameter"] != "temperature" {
				t.Errorf("the details are %v", f.Details)
			}
		})
	}
}

// TestProvider_Redirects: a conversation is not sent on to where nobody meant it to go.
func TestProvider_Redirects(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 307, 308} {
		p := connect(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) })
		for _, stream := range []bool{true, false} {
			if _, _, err := ask(t, p, question(stream)); fault.CodeOf(err) != fault.RemoteRejected || !strings.Contains(err.Error(), "base_url") {
				t.Errorf("%d: %v, want %s", status, err, fault.RemoteRejected)
			}
		}
		if _, _, err := p.(llm.Embedder).Embed(t.Context(), "e", []string{"a"}); fault.CodeOf(err) != fault.RemoteRejected {
			t.Errorf("%d: embed: %v, want %s", status, err, fault.RemoteRejected)
		}
	}
}

// sees makes a provider and keeps the bodies that its service gets.
func sees(t *testing.T, bodies chan<- map[string]any) llm.Provider {
	t.Helper()
	return connect(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("read the request: %v", err)
		}
		if r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("Openai-Organization") != "" {
			t.Errorf("the headers are %v", r.Header)
		}
		bodies <- body
		w.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`); err != nil {
			t.Errorf("write: %v", err)
		}
	})
}

// TestProvider_Models: parameters that a model refuses are left out, and said to be.
func TestProvider_Models(t *testing.T) {
	t.Parallel()
	bodies := make(chan map[string]any, 1)
	p := sees(t, bodies)
	half, few := 0.5, int64(5)
	const usual = "temperature top_p frequency_penalty presence_penalty stop"
	for model, c := range map[string]struct{ sent, left string }{
		"some-model":       {usual + " max_tokens reasoning_effort parallel_tool_calls", ""},
		"olmo-2":           {usual + " max_tokens reasoning_effort parallel_tool_calls", ""},
		"gpt-oss:20b":      {usual + " max_tokens reasoning_effort parallel_tool_calls", ""},
		"gpt-4o-mini":      {usual + " max_tokens parallel_tool_calls", "reasoning_effort"},
		"gpt-4.1":          {usual + " max_tokens parallel_tool_calls", "reasoning_effort"},
		"gpt-3.5-turbo":    {usual + " max_tokens parallel_tool_calls", "reasoning_effort"},
		"chatgpt-4o":       {usual + " max_tokens parallel_tool_calls", "reasoning_effort"},
		"gpt-5-chat":       {usual + " max_tokens parallel_tool_calls", "reasoning_effort"},
		"ft:gpt-4o:org":    {usual + " max_tokens parallel_tool_calls", "reasoning_effort"},
		"gpt-5":            {"max_completion_tokens reasoning_effort parallel_tool_calls", usual},
		"openai/gpt-5.1":   {"max_completion_tokens reasoning_effort parallel_tool_calls", usual},
		"gpt-10-nano":      {"max_completion_tokens reasoning_effort parallel_tool_calls", usual},
		"o1":               {"max_completion_tokens reasoning_effort", usual + " parallel_tool_calls"},
		"o3-mini":          {"max_completion_tokens reasoning_effort", usual + " parallel_tool_calls"},
		"openrouter/o4":    {"max_completion_tokens reasoning_effort", usual + " parallel_tool_calls"},
		"codex-mini":       {"max_completion_tokens reasoning_effort parallel_tool_calls", usual},
		"Qwen/o1x-variant": {usual + " max_tokens reasoning_effort parallel_tool_calls", ""},
	} {
		r := question(false)
		r.Model, r.Tools, r.OneTool = model, []llm.Tool{{Name: "f"}}, true
		r.Params = llm.Params{
			Temperature: &half, TopP: &half, FrequencyPenalty: &half, PresencePenalty: &half, Stop: []string{"x"}, MaxTokens: 7, ReasoningEffort: "low",
			TopK: &few, ThinkingBudget: 3, Safety: json.RawMessage(`{}`),
		}
		got, _, err := ask(t, p, r)
		if err != nil {
			t.Fatal(err)
		}
		body := <-bodies
		for _, name := range strings.Fields(c.sent) {
			if _, there := body[name]; !there {
				t.Errorf("%s: %s was not sent", model, name)
			}
			delete(body, name)
		}
		for _, name := range []string{"model", "messages", "tools"} {
			delete(body, name)
		}
		if len(body) > 0 {
			t.Errorf("%s: %v was sent", model, body)
		}
		left := strings.Fields(c.left + " top_k thinking_budget safety")
		if len(got.Warnings) != len(left) {
			t.Errorf("%s: the warnings are %q, want one for each of %q", model, got.Warnings, left)
		}
		for _, name := range left {
			if !strings.Contains("\n"+strings.Join(got.Warnings, "\n"), "\n"+name+" is left out") {
				t.Errorf("%s: nothing says that %s is left out: %q", model, name, got.Warnings)
			}
		}
	}
}

// TestProvider_Strict: the service holds the model to a schema only if it can; a schema beyond that is a wish.
func TestProvider_Strict(t *testing.T) {
	t.Parallel()
	bodies := make(chan map[string]any, 1)
	p := sees(t, bodies)
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                     true,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                      false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                  false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`:            false,
		`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`:              true,
		`{"type":"object","properties":{"a":{"allOf":[{"type":"string"}]}},"required":["a"],"additionalProperties":false}`:                         false,
		`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}`:                                                  false,
		`{"type":["object","null"],"properties":{},"additionalProperties":false}`:                                                                  false,
		`{"type":"object","properties":{"a":{"type":["object","null"],"properties":{"b":{}}}},"required":["a"],"additionalProperties":false}`:      false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"enum":["x","y"]}}}`: true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"oneOf":[{},{}]}}}`:  false,
		`{"type":"array","items":{"type":"string"}}`:                                                                                               false,
	} {
		r := question(false)
		r.Schema = &llm.Schema{Name: "a name/with 空格", JSON: json.RawMessage(schema)}
		if _, _, err := ask(t, p, r); err != nil {
			t.Fatal(err)
		}
		format := (<-bodies)["response_format"].(map[string]any)["json_schema"].(map[string]any)
		if format["strict"] != want || format["name"] != "a_name_with___" {
			t.Errorf("%s: strict is %v as %q, want %v", schema, format["strict"], format["name"], want)
		}
	}
}

// TestProvider_SaysJSON: the service refuses JSON mode when no message speaks of JSON.
func TestProvider_SaysJSON(t *testing.T) {
	t.Parallel()
	bodies := make(chan map[string]any, 1)
	p := sees(t, bodies)
	for content, want := range map[string]int{"Give me an object.": 2, "Give me json.": 1} {
		r := question(false)
		r.JSON, r.Messages[0].Content = true, content
		if _, _, err := ask(t, p, r); err != nil {
			t.Fatal(err)
		}
		if got := (<-bodies)["messages"].([]any); len(got) != want {
			t.Errorf("%q is sent as %v", content, got)
		}
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings llm.Settings
		want     fault.Code
	}{
		"NoAddress": {llm.Settings{BaseURL: "not an address", HTTP: http.DefaultClient}, fault.InvalidConfig},
		"NoHost":    {llm.Settings{BaseURL: "https:///v1", HTTP: http.DefaultClient}, fault.InvalidConfig},
		"File":      {llm.Settings{BaseURL: "file:///etc/passwd", HTTP: http.DefaultClient}, fault.InvalidConfig},
		"Password":  {llm.Settings{BaseURL: "https://me:" + key + "@host/v1", HTTP: http.DefaultClient}, fault.InvalidConfig},
		"LineBreak": {llm.Settings{Key: key + "\r\nX: y", HTTP: http.DefaultClient}, fault.CredentialInvalid},
		"NotASCII":  {llm.Settings{Key: key + "é", HTTP: http.DefaultClient}, fault.CredentialInvalid},
		"NoClient":  {llm.Settings{Key: key}, fault.Internal},
	} {
		_, err := openai.New(c.settings)
		if fault.CodeOf(err) != c.want || strings.Contains(fmt.Sprintf("%+v", err), key) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := openai.New(llm.Settings{HTTP: http.DefaultClient}); err != nil {
		t.Errorf("without anything: %v", err)
	}
}

func TestProvider_Embed(t *testing.T) {
	t.Parallel()
	var asked [][]string
	p := connect(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/embeddings" || body.Model != "e" {
			t.Errorf("asked %s for %q: %v", r.URL.Path, body.Model, err)
		}
		asked = append(asked, body.Input)
		var data []object
		for i := range body.Input { // the order is the service's business
			i = len(body.Input) - 1 - i
			data = append(data, object{"index": i, "embedding": []float64{float64(len(body.Input[i])), 0.5}})
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(w, encode(object{"data": data, "usage": object{"prompt_tokens": 3, "total_tokens": 3}})); err != nil {
			t.Errorf("write: %v", err)
		}
	}).(llm.Embedder)
	texts := []string{"a", "", "ccc"}
	for range 2100 {
		texts = append(texts, "dd")
	}
	got, usage, err := p.Embed(t.Context(), "e", texts)
	if err != nil || len(got) != len(texts) || len(asked) != 2 || usage != (llm.Usage{InputTokens: 6}) {
		t.Fatalf("%d vectors in %d calls, %+v, %v", len(got), len(asked), usage, err)
	}
	if len(asked[0]) != 2048 || asked[0][1] != " " {
		t.Errorf("asked for %d, the second is %q", len(asked[0]), asked[0][1])
	}
	for i, want := range []float32{1, 1, 3, 2} {
		if got[i][0] != want || got[i][1] != 0.5 {
			t.Errorf("vector %d is %v", i, got[i])
		}
	}
	if got, _, err := p.Embed(t.Context(), "e", nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}

func TestProvider_EmbedFailures(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]fault.Code{
		`{"data":[{"index":0,"embedding":[1]}]}`:                               fault.RemoteError,
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`:   fault.RemoteError,
		`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`:   fault.RemoteError,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`: fault.RemoteError,
		`<html>`: fault.RemoteError,
	} {
		_, _, err := canned(t, "application/json", 200, body).(llm.Embedder).Embed(t.Context(), "e", []string{"a", "b"})
		if fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	p := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(http.StatusTooManyRequests)
	}).(llm.Embedder)
	_, _, err := p.Embed(t.Context(), "e", []string{"a"})
	if u, ok := errors.AsType[*llm.Unavailable](err); !ok || fault.CodeOf(err) != fault.RateLimited || u.RetryAfter.Seconds() != 9 {
		t.Errorf("with Retry-After: %v", err)
	}
	got, usage, err := canned(t, "application/json", 200, `{"data":[{"index":0,"embedding":[1]}]}`).(llm.Embedder).Embed(t.Context(), "e", []string{"abcdefgh"})
	if err != nil || len(got) != 1 || usage != (llm.Usage{InputTokens: 2, Estimated: true}) {
		t.Errorf("without usage: %v, %+v, %v", got, usage, err)
	}
}
