package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
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
func setup(t *testing.T, answers ...func(w http.ResponseWriter)) (*Provider, func() []map[string]any) {
	t.Helper()
	server, bodies := llmtest.Serve(t, answers...)
	p, err := New(llm.Settings{BaseURL: server.URL, Key: "a-key", HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*Provider), bodies
}

// streams answers with events.
func streams(events ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for _, e := range events {
			_, _ = io.WriteString(w, e+"\r\n\r\n")
		}
	}
}

func ask(text string) llm.Request {
	return llm.Request{Model: "gemini-3-pro-preview", Messages: []llm.Message{{Role: llm.User, Content: text}}}
}

func TestComplete_SignaturesComeBack(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		parts := []string{
			`{"text":"I think","thought":true}`, `{"text":"Let me"}`, `{"text":" look."}`,
			`{"functionCall":{"name":"find","args":{"id":12345678901234567890}},"thoughtSignature":"c2lnLTE="}`,
			`{"functionCall":{"name":"find","args":{"id":2}}}`, `{"text":"","thoughtSignature":"c2lnLTI="}`,
		}
		first := llmtest.Says(200, `{"responseId":"r1","candidates":[{"content":{"parts":[`+strings.Join(parts, ",")+`]},"finishReason":"STOP"}]}`)
		if stream {
			var events []string
			for _, p := range parts {
				events = append(events, `data: {"responseId":"r1","candidates":[{"content":{"parts":[`+p+`]}}]}`)
			}
			first = streams(append(events, `data: {"candidates":[{"finishReason":"STOP"}]}`)...)
		}
		last := llmtest.Says(200, `{"candidates":[{"content":{"parts":[{"text":"done"}]},"finishReason":"STOP"}]}`)
		p, bodies := setup(t, first, last)
		r := ask("find both")
		r.Stream = stream
		c, err := p.Complete(t.Context(), r, func(llm.Delta) {})
		if err != nil {
			t.Fatal(err)
		}
		m := c.Message
		if m.Content != "Let me look." || m.Reasoning != "I think" || len(m.ToolCalls) != 2 || c.Finish != llm.FinishToolCalls {
			t.Fatalf("stream %v: the answer is %+v", stream, c)
		}
		if m.ToolCalls[0].Arguments != `{"id":12345678901234567890}` {
			t.Errorf("the arguments are %s", m.ToolCalls[0].Arguments)
		}
		kept, err := json.Marshal(m) // messages are kept and read back
		if err != nil {
			t.Fatal(err)
		}
		var back llm.Message
		if err := json.Unmarshal(kept, &back); err != nil {
			t.Fatal(err)
		}
		r.Stream = false
		r.Messages = append(r.Messages, back,
			llm.Message{Role: llm.ToolRole, ToolCallID: back.ToolCalls[0].ID, Content: "one"},
			llm.Message{Role: llm.ToolRole, ToolCallID: back.ToolCalls[1].ID, Content: "two", Failed: true})
		if _, err := p.Complete(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		contents := bodies()[1]["contents"].([]any)
		want := fmt.Sprintf(`[{"text":"Let me look."},{"functionCall":{"id":%q,"name":"find","args":{"id":12345678901234567890}},"thoughtSignature":"c2lnLTE="},`+
			`{"functionCall":{"id":%q,"name":"find","args":{"id":2}}},{"text":"","thoughtSignature":"c2lnLTI="}]`, back.ToolCalls[0].ID, back.ToolCalls[1].ID)
		checkJSON(t, contents[1].(map[string]any)["parts"], want)
		checkJSON(t, contents[2].(map[string]any)["parts"], fmt.Sprintf(`[{"functionResponse":{"id":%q,"name":"find","response":{"output":"one"}}},`+
			`{"functionResponse":{"id":%q,"name":"find","response":{"error":"two"}}}]`, back.ToolCalls[0].ID, back.ToolCalls[1].ID))
	}
}

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

func TestTranslate_ForeignCalls(t *testing.T) {
	t.Parallel()
	r := ask("go on")
	r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{
		{ID: "a", Name: "find", Arguments: "not an object"}, {ID: "b", Name: "find", Arguments: ""},
	}, Opaque: &llm.Opaque{Provider: "another", Data: json.RawMessage(`[{"call":true}]`)}})
	for model, want := range map[string]string{"gemini-3-pro-preview": foreignSignature, "gemini-flash-latest": foreignSignature, "gemini-2.5-pro": ""} {
		r.Model = model
		got, err := translate(r)
		if err != nil {
			t.Fatal(err)
		}
		parts := got.contents[1].Parts
		if parts[0].ThoughtSignature != want || parts[1].ThoughtSignature != "" {
			t.Errorf("%s: the calls are signed %q and %q", model, parts[0].ThoughtSignature, parts[1].ThoughtSignature)
		}
		if string(parts[0].FunctionCall.Args) != `{"malformed_arguments":"not an object"}` || string(parts[1].FunctionCall.Args) != `{}` {
			t.Errorf("the arguments are sent as %s and %s", parts[0].FunctionCall.Args, parts[1].FunctionCall.Args)
		}
	}
}

// TestComplete_MakesIDs: the same answer has the same ids each time, and none is given twice in a conversation.
func TestComplete_MakesIDs(t *testing.T) {
	t.Parallel()
	two := `{"functionCall":{"name":"find","args":{}}}`
	p, _ := setup(t, llmtest.Says(200, `{"candidates":[{"content":{"parts":[`+two+`,`+two+`]},"finishReason":"STOP"}]}`))
	r := ask("x")
	first, err := p.Complete(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Complete(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Message, again.Message); diff != "" {
		t.Errorf("the same answer differs:\n%s", diff)
	}
	ids := map[string]bool{}
	for range 2 {
		c, err := p.Complete(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range c.Message.ToolCalls {
			if call.ID == "" || ids[call.ID] {
				t.Errorf("the id %q is empty or was given before", call.ID)
			}
			ids[call.ID] = true
		}
		r.Messages = []llm.Message{c.Message} // as long as before, so that nothing but the ids themselves tells it apart
	}
}

func TestComplete_Refusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body     string
		code     fault.Code
		category any
	}{
		"Prompt": {`{"promptFeedback":{"blockReason":"SAFETY","safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"LOW"},{"category":"HARM_CATEGORY_HATE_SPEECH","probability":"HIGH"}]}}`,
			fault.ModelRefused, "HARM_CATEGORY_HATE_SPEECH"},
		"PromptWithoutRatings": {`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`, fault.ModelRefused, "PROHIBITED_CONTENT"},
		"Safety": {`{"candidates":[{"finishReason":"SAFETY","safetyRatings":[{"category":"HARM_CATEGORY_DANGEROUS_CONTENT","probability":"HIGH","blocked":true},{"category":"HARM_CATEGORY_HARASSMENT","probability":"HIGH"}]}]}`,
			fault.ModelRefused, "HARM_CATEGORY_DANGEROUS_CONTENT"},
		"Recitation":    {`{"candidates":[{"finishReason":"RECITATION"}]}`, fault.ModelRefused, "RECITATION"},
		"MalformedCall": {`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(x)"}]}`, fault.RemoteError, nil},
		"NoCandidates":  {`{"usageMetadata":{"promptTokenCount":3}}`, fault.RemoteError, nil},
		"WrongShape":    {`{"candidates":[{"content":{"parts":{"text":"x"}}}]}`, fault.RemoteError, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := setup(t, llmtest.Says(200, c.body))
			_, err := p.Complete(t.Context(), ask("x"), nil)
			if fault.CodeOf(err) != c.code {
				t.Fatalf("complete: %v, want %s", err, c.code)
			}
			if got := fault.From(err).Details["category"]; got != c.category {
				t.Errorf("the category is %v, want %v", got, c.category)
			}
		})
	}
}

func TestComplete_Failures(t *testing.T) {
	t.Parallel()
	retry := `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`
	p, _ := setup(t, llmtest.Says(429, retry))
	_, err := p.Complete(t.Context(), ask("x"), nil)
	u, ok := errors.AsType[*llm.Unavailable](err)
	if !ok || u.RetryAfter != 34500*time.Millisecond || fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("complete: %v, want rate_limited for 34.5s", err)
	}

	// A stream that has begun can end with an error that is not an event.
	p, _ = setup(t, streams(`data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, "{\n \"error\": {\"code\": 429, \"status\": \"RESOURCE_EXHAUSTED\", \"message\": \"quota\"}\n}"))
	r := ask("x")
	r.Stream = true
	if _, err := p.Complete(t.Context(), r, func(llm.Delta) {}); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("complete: %v, want rate_limited", err)
	}

	for _, name := range []string{"", "../secrets", "a?b", "a b"} {
		r.Model = name
		if _, err := p.Complete(t.Context(), r, func(llm.Delta) {}); fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("model %q: %v, want invalid_config", name, err)
		}
	}
}

func TestComplete_Usage(t *testing.T) {
	t.Parallel()
	p, _ := setup(t, llmtest.Says(200, `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":`+
		`{"promptTokenCount":100,"toolUsePromptTokenCount":5,"candidatesTokenCount":20,"thoughtsTokenCount":300,"cachedContentTokenCount":64,"totalTokenCount":425}}`))
	c, err := p.Complete(t.Context(), ask("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (llm.Usage{InputTokens: 105, OutputTokens: 320, CachedTokens: 64, ReasoningTokens: 300}); c.Usage != want {
		t.Errorf("it used %+v, want %+v", c.Usage, want)
	}
}

func TestTranslate_Parameters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model    string
		params   llm.Params
		want     string // of thinkingConfig
		warnings int
	}{
		"Budget":          {"gemini-2.5-flash", llm.Params{ThinkingBudget: 2048}, `{"includeThoughts":true,"thinkingBudget":2048}`, 0},
		"EffortAsBudget":  {"gemini-2.5-flash", llm.Params{ReasoningEffort: "low"}, `{"includeThoughts":true,"thinkingBudget":1024}`, 0},
		"EffortAsLevel":   {"models/gemini-3.1-pro", llm.Params{ReasoningEffort: "high"}, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`, 0},
		"Both":            {"gemini-3-pro", llm.Params{ThinkingBudget: 5, ReasoningEffort: "low"}, `{"includeThoughts":true,"thinkingBudget":5}`, 1},
		"TooOld":          {"gemini-2.0-flash", llm.Params{ThinkingBudget: 5, ReasoningEffort: "low"}, `null`, 2},
		"TooManyStops":    {"gemini-2.5-flash", llm.Params{Stop: []string{"1", "2", "3", "4", "5", "6"}}, `null`, 1},
		"NothingIsAsked":  {"gemini-2.5-flash", llm.Params{}, `null`, 0},
		"SafetyShortName": {"gemini-2.5-flash", llm.Params{Safety: json.RawMessage(`{"harassment":"block_none"}`)}, `null`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ask("x")
			r.Model, r.Params = c.model, c.params
			got, err := translate(r)
			if err != nil {
				t.Fatal(err)
			}
			config, err := json.Marshal(got.config.ThinkingConfig)
			if err != nil || string(config) != c.want {
				t.Errorf("thinking is %s (%v), want %s", config, err, c.want)
			}
			if len(got.warnings) != c.warnings {
				t.Errorf("there are warnings %q, want %d", got.warnings, c.warnings)
			}
			if c.params.Safety != nil && (len(got.config.SafetySettings) != 1 || got.config.SafetySettings[0].Category != "HARM_CATEGORY_HARASSMENT" || got.config.SafetySettings[0].Threshold != "BLOCK_NONE") {
				t.Errorf("safety is %+v", got.config.SafetySettings)
			}
		})
	}
	r := ask("x")
	r.Safety = json.RawMessage(`["no"]`)
	if _, err := translate(r); fault.CodeOf(err) != fault.InvalidConfig {
		t.Errorf("wrong safety settings: %v, want invalid_config", err)
	}
}

// TestTranslate_JSONWithTools: models before version 3 refuse both together, so they are told in words.
func TestTranslate_JSONWithTools(t *testing.T) {
	t.Parallel()
	for model, native := range map[string]bool{"gemini-2.5-flash": false, "gemini-3-pro-preview": true} {
		for _, tools := range [][]llm.Tool{nil, {{Name: "find"}}} {
			r := ask("x")
			r.Model, r.Tools = model, tools
			r.Schema = &llm.Schema{Name: "s", JSON: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
			got, err := translate(r)
			if err != nil {
				t.Fatal(err)
			}
			wants := native || tools == nil
			if isNative := got.config.ResponseMIMEType == "application/json" && got.config.ResponseJsonSchema != nil; isNative != wants {
				t.Errorf("%s with %d tools: asked natively is %v, want %v", model, len(tools), isNative, wants)
			}
			if told := got.config.SystemInstruction != nil && strings.Contains(got.config.SystemInstruction.Parts[0].Text, `"properties"`); told == wants {
				t.Errorf("%s with %d tools: told in words is %v", model, len(tools), told)
			}
		}
	}
}

func TestComplete_TellsWhatWasCut(t *testing.T) {
	t.Parallel()
	p, bodies := setup(t, llmtest.Says(200, `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}`))
	r := ask("x")
	r.Tools = []llm.Tool{{Name: "grow", Parameters: json.RawMessage(`{"type":"object","properties":{"t":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`)}}
	c, err := p.Complete(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], `"grow"`) || !strings.Contains(c.Warnings[0], "recursive") {
		t.Errorf("the warnings are %q", c.Warnings)
	}
	checkJSON(t, bodies()[0]["tools"], `[{"functionDeclarations":[{"name":"grow","parametersJsonSchema":{"type":"object","properties":{"t":{"type":"object","properties":{"next":{"type":"object"}}}}}}]}]`)
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	texts := make([]string, 101)
	for i := range texts {
		texts[i] = fmt.Sprint("text ", i)
	}
	vectors := func(n int) func(http.ResponseWriter) {
		return llmtest.Says(200, `{"embeddings":[`+strings.TrimSuffix(strings.Repeat(`{"values":[0.25,-1]},`, n), ",")+`]}`)
	}
	p, bodies := setup(t, vectors(100), vectors(1))
	got, usage, err := p.Embed(t.Context(), "gemini-embedding-001", texts)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 101 || got[100][0] != 0.25 || !usage.Estimated || usage.InputTokens == 0 {
		t.Errorf("%d vectors, usage %+v", len(got), usage)
	}
	if n := len(bodies()); n != 2 {
		t.Errorf("there were %d calls, want 2", n)
	}
	first := bodies()[0]["requests"].([]any)[7].(map[string]any)
	checkJSON(t, first, `{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"text 7"}]}}`)

	p, _ = setup(t, vectors(1))
	if _, _, err := p.Embed(t.Context(), "m", []string{"a", "b"}); fault.CodeOf(err) != fault.RemoteError {
		t.Errorf("one vector for two texts: %v, want remote_error", err)
	}
	p, _ = setup(t, llmtest.Says(404, `{"error":{"code":404,"message":"no a-key model","status":"NOT_FOUND"}}`))
	if _, _, err := p.Embed(t.Context(), "m", []string{"a"}); fault.CodeOf(err) != fault.NotFound || strings.Contains(err.Error(), "a-key") {
		t.Errorf("an unknown model: %v, want not_found without the key", err)
	}
	var e llm.Embedder = p
	if got, _, err := e.Embed(t.Context(), "m", nil); err != nil || len(got) != 0 {
		t.Errorf("no texts: %v, %v", got, err)
	}
}
