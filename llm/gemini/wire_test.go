package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/llm"
	"tandem/llm/llmtest"
)

func TestProvider(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, llmtest.Harness{
		New:      newCutting,
		Wire:     wire{},
		BasePath: "/v1beta",
		Model:    "gemini-2.5-flash",
		Without: map[llmtest.Feature]string{
			llmtest.OneTool:          "the service has no way to say so",
			llmtest.Schemas:          "the service takes a part of JSON Schema and no recursion; TestSimplify has what becomes of the rest",
			llmtest.WholeToolSchemas: "the service takes a part of JSON Schema and no recursion; TestSimplify has what becomes of the rest",
		},
	})
}

// newCutting makes a provider that does not tell of references that were cut: the suite has a recursive schema and allows
// no warning. TestSimplify and TestComplete_TellsWhatWasCut look at them.
func newCutting(s llm.Settings) (llm.Provider, error) {
	p, err := New(s)
	return cutting{p}, err
}

type cutting struct{ llm.Provider }

func (c cutting) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (llm.Completion, error) {
	answer, err := c.Provider.Complete(ctx, r, sink)
	answer.Warnings = slices.DeleteFunc(answer.Warnings, func(w string) bool { return strings.Contains(w, "recursive reference") })
	return answer, err
}

func BenchmarkRelay(b *testing.B) {
	llmtest.Relay(b, llmtest.Harness{New: New, Wire: wire{}, BasePath: "/v1beta", Model: "gemini-2.5-flash"})
}

// wire is the service's side of the Gemini API.
type wire struct{}

type wirePart struct {
	Text       *string `json:"text"`
	Thought    bool    `json:"thought"`
	InlineData *struct {
		MimeType string `json:"mimeType"`
		Data     []byte `json:"data"`
	} `json:"inlineData"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		ID       string            `json:"id"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
	} `json:"functionResponse"`
	ThoughtSignature string `json:"thoughtSignature"`
}

type wireContent struct {
	Role  string     `json:"role"`
	Parts []wirePart `json:"parts"`
}

// wireRequest is everything that the service takes; anything else is refused.
type wireRequest struct {
	Contents          []wireContent `json:"contents"`
	SystemInstruction *wireContent  `json:"systemInstruction"`
	Tools             []struct {
		FunctionDeclarations []struct {
			Name                 string          `json:"name"`
			Description          string          `json:"description"`
			ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig *struct {
		FunctionCallingConfig struct {
			Mode                 string   `json:"mode"`
			AllowedFunctionNames []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	SafetySettings []struct {
		Category  string `json:"category"`
		Threshold string `json:"threshold"`
	} `json:"safetySettings"`
	GenerationConfig struct {
		Temperature        *float64        `json:"temperature"`
		TopP               *float64        `json:"topP"`
		TopK               *int64          `json:"topK"`
		MaxOutputTokens    int64           `json:"maxOutputTokens"`
		StopSequences      []string        `json:"stopSequences"`
		PresencePenalty    *float64        `json:"presencePenalty"`
		FrequencyPenalty   *float64        `json:"frequencyPenalty"`
		ResponseMimeType   string          `json:"responseMimeType"`
		ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
		ThinkingConfig     *struct {
			IncludeThoughts bool   `json:"includeThoughts"`
			ThinkingBudget  int64  `json:"thinkingBudget"`
			ThinkingLevel   string `json:"thinkingLevel"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

func (wire) Decode(r *http.Request, body []byte) (llmtest.Call, error) {
	var c llmtest.Call
	name, ok := strings.CutPrefix(r.URL.Path, "/v1beta/models/")
	name, method, found := strings.Cut(name, ":")
	if r.Method != http.MethodPost || !ok || !found {
		return c, fmt.Errorf("no such call: %s %s", r.Method, r.URL)
	}
	switch {
	case method == "streamGenerateContent" && r.URL.RawQuery == "alt=sse":
		c.Stream = true
	case method == "generateContent" && r.URL.RawQuery == "":
	default:
		return c, fmt.Errorf("no such call: %s %s", r.Method, r.URL)
	}
	c.Model, c.Key = name, r.Header.Get("X-Goog-Api-Key")
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var q wireRequest
	if err := d.Decode(&q); err != nil {
		return c, err
	}
	g := q.GenerationConfig
	c.Temperature, c.TopP, c.TopK, c.MaxTokens, c.Stop = g.Temperature, g.TopP, g.TopK, g.MaxOutputTokens, g.StopSequences
	c.PresencePenalty, c.FrequencyPenalty = g.PresencePenalty, g.FrequencyPenalty
	if g.ThinkingConfig != nil {
		c.ThinkingBudget, c.ReasoningEffort = g.ThinkingConfig.ThinkingBudget, strings.ToLower(g.ThinkingConfig.ThinkingLevel)
	}
	if g.ResponseMimeType == "application/json" {
		if c.JSON = g.ResponseJSONSchema == nil; !c.JSON {
			c.Schema = &llm.Schema{JSON: g.ResponseJSONSchema}
		}
		if len(q.Tools) > 0 && strings.HasPrefix(c.Model, "gemini-2") {
			return c, errors.New("function calling with a response mime type is unsupported")
		}
	}
	if len(q.SafetySettings) > 0 {
		all := map[string]string{}
		for _, s := range q.SafetySettings {
			all[s.Category] = s.Threshold
		}
		c.Safety = wireJSON(all)
	}
	if s := q.SystemInstruction; s != nil {
		for _, p := range s.Parts {
			c.Messages = append(c.Messages, llm.Message{Role: llm.System, Content: *p.Text})
		}
	}
	if err := q.conversation(&c); err != nil {
		return c, err
	}
	return c, q.tools(&c)
}

func (q *wireRequest) conversation(c *llmtest.Call) error {
	calls := 0
	for i, m := range q.Contents {
		if m.Role != "user" && m.Role != "model" || len(m.Parts) == 0 {
			return fmt.Errorf("content %d of %q has %d parts", i, m.Role, len(m.Parts))
		}
		rest := llm.Message{Role: map[string]llm.Role{"user": llm.User, "model": llm.Assistant}[m.Role]}
		answers := 0
		for j, p := range m.Parts {
			switch {
			case p.FunctionResponse != nil && m.Role == "user":
				r := p.FunctionResponse
				output, good := r.Response["output"]
				if !good {
					output = r.Response["error"]
				}
				c.Messages = append(c.Messages, llm.Message{Role: llm.ToolRole, ToolCallID: r.ID, ToolName: r.Name, Content: output, Failed: !good})
				answers++
			case p.FunctionCall != nil && m.Role == "model":
				rest.ToolCalls = append(rest.ToolCalls, llm.ToolCall{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: string(p.FunctionCall.Args)})
			case p.InlineData != nil && m.Role == "user" && rest.Content == "":
				rest.Images = append(rest.Images, llm.Image{MediaType: p.InlineData.MimeType, Data: p.InlineData.Data})
			case p.Text != nil:
				rest.Content += *p.Text
			default:
				return fmt.Errorf("content %d: part %d has no data: %+v", i, j, p)
			}
		}
		if answers != calls {
			return fmt.Errorf("content %d answers %d calls, want %d", i, answers, calls)
		}
		calls = len(rest.ToolCalls)
		if rest.Content != "" || len(rest.Images) > 0 || len(rest.ToolCalls) > 0 {
			c.Messages = append(c.Messages, rest)
		}
	}
	return nil
}

func (q *wireRequest) tools(c *llmtest.Call) error {
	for _, t := range q.Tools {
		for _, f := range t.FunctionDeclarations {
			c.Tools = append(c.Tools, llm.Tool{Name: f.Name, Description: f.Description, Parameters: f.ParametersJSONSchema})
		}
	}
	if q.ToolConfig == nil {
		return nil
	}
	if len(c.Tools) == 0 {
		return errors.New("toolConfig without tools")
	}
	choice := q.ToolConfig.FunctionCallingConfig
	switch {
	case choice.Mode == "NONE":
		c.ToolChoice = "none"
	case choice.Mode == "ANY" && len(choice.AllowedFunctionNames) == 0:
		c.ToolChoice = "required"
	case choice.Mode == "ANY":
		c.ToolChoice = choice.AllowedFunctionNames[0]
	default:
		return fmt.Errorf("toolConfig %+v", choice)
	}
	return nil
}

func wireJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func (wire) Encode(c llmtest.Call, s llmtest.Scenario) (llmtest.Reply, error) {
	if s.Fail != "" && len(s.Deltas) == 0 {
		return wireFailure(s)
	}
	// The service sends calls whole.
	var parts [][]any
	var calls []llm.ToolCall
	for _, d := range s.Deltas {
		switch {
		case d.Text != "":
			parts = append(parts, []any{map[string]any{"text": d.Text}})
		case d.Reasoning != "":
			parts = append(parts, []any{map[string]any{"text": d.Reasoning, "thought": true}})
		case d.ToolCall.Name != "":
			calls = append(calls, llm.ToolCall{ID: d.ToolCall.ID, Name: d.ToolCall.Name, Arguments: d.ToolCall.Arguments})
		default:
			calls[d.ToolCall.Index].Arguments += d.ToolCall.Arguments
		}
	}
	for _, call := range calls {
		if !json.Valid([]byte(call.Arguments)) {
			return llmtest.Reply{}, llmtest.ErrUnsayable
		}
		parts = append(parts, []any{map[string]any{"functionCall": map[string]any{"id": call.ID, "name": call.Name, "args": json.RawMessage(call.Arguments)}}})
	}
	finish := map[llm.Finish]string{llm.FinishStop: "STOP", llm.FinishLength: "MAX_TOKENS", llm.FinishToolCalls: "STOP"}[s.Finish]
	if s.Refused {
		finish = "SAFETY"
	}
	if !c.Stream {
		all := []any{}
		for _, p := range parts {
			all = append(all, p...)
		}
		return llmtest.Reply{Header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}}, Frames: [][]byte{wireJSON(wireAnswer(s, all, finish, true))}}, nil
	}
	reply := llmtest.Reply{Header: http.Header{"Content-Type": {"text/event-stream"}}}
	event := func(v any) []byte { return fmt.Appendf(nil, "data: %s\r\n\r\n", wireJSON(v)) }
	// One event that says nothing yet, so that there is always something before the end.
	reply.Frames = append(reply.Frames, event(wireAnswer(s, nil, "", false)))
	for _, p := range parts {
		reply.Frames = append(reply.Frames, event(wireAnswer(s, p, "", false)))
	}
	if s.Fail != "" {
		reply.Frames = append(reply.Frames, event(wireError(503, "UNAVAILABLE", s.Message)))
		return reply, nil
	}
	reply.End = [][]byte{event(wireAnswer(s, []any{map[string]any{"text": ""}}, finish, true))}
	return reply, nil
}

func wireAnswer(s llmtest.Scenario, parts []any, finish string, last bool) map[string]any {
	candidate := map[string]any{"index": 0}
	if parts != nil {
		candidate["content"] = map[string]any{"role": "model", "parts": parts}
	}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	m := map[string]any{"candidates": []any{candidate}, "modelVersion": s.Model, "responseId": s.ID}
	if s.Usage != nil {
		u := map[string]any{"promptTokenCount": s.Usage.InputTokens, "cachedContentTokenCount": s.Usage.CachedTokens, "totalTokenCount": s.Usage.InputTokens}
		if last {
			u["candidatesTokenCount"], u["totalTokenCount"] = s.Usage.OutputTokens, s.Usage.Total()
		}
		m["usageMetadata"] = u
	}
	return m
}

func wireError(code int, status, message string, details ...any) map[string]any {
	e := map[string]any{"code": code, "message": message, "status": status}
	if len(details) > 0 {
		e["details"] = details
	}
	return map[string]any{"error": e}
}

func wireFailure(s llmtest.Scenario) (llmtest.Reply, error) {
	var body map[string]any
	status := 0
	switch s.Fail {
	case fault.RateLimited:
		status, body = 429, wireError(429, "RESOURCE_EXHAUSTED", s.Message)
	case fault.RemoteError:
		status, body = 500, wireError(500, "INTERNAL", s.Message)
	case fault.CredentialInvalid:
		status, body = 400, wireError(400, "INVALID_ARGUMENT", s.Message, map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"})
	case fault.NotFound:
		status, body = 404, wireError(404, "NOT_FOUND", s.Message)
	case fault.ContextTooLong:
		status, body = 400, wireError(400, "INVALID_ARGUMENT", "The input token count (1048580) exceeds the maximum number of tokens allowed (1048576). "+s.Message)
	case fault.RemoteRejected:
		status, body = 400, wireError(400, "INVALID_ARGUMENT", s.Message)
	default:
		return llmtest.Reply{}, fmt.Errorf("no such failure: %s", s.Fail)
	}
	return llmtest.Reply{Status: status, Header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}}, Frames: [][]byte{wireJSON(body)}}, nil
}
