package anthropic

import (
	"bytes"
	"encoding/json"
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
		New:      New,
		Wire:     wire{},
		BasePath: "/v1",
		Model:    "claude-sonnet-4-6",
		Without: map[llmtest.Feature]string{
			llmtest.Schemas: "the service takes a part of JSON Schema; TestTranslate_Schema has what becomes of the rest",
			llmtest.AnyJSON: "the service has no way to ask for any object; the model is told",
		},
	})
}

// wire is the service's side of the messages API.
type wire struct{}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Source    *wireSource     `json:"source,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Content   []wireBlock     `json:"content,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
}

type wireSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// wireRequest is everything that the service takes; anything else is refused.
type wireRequest struct {
	Model     string      `json:"model"`
	MaxTokens int64       `json:"max_tokens"`
	System    []wireBlock `json:"system"`
	Messages  []struct {
		Role    string      `json:"role"`
		Content []wireBlock `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice *struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Disable bool   `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	Temperature   *float64 `json:"temperature"`
	TopP          *float64 `json:"top_p"`
	TopK          *int64   `json:"top_k"`
	StopSequences []string `json:"stop_sequences"`
	Stream        bool     `json:"stream"`
	Thinking      *struct {
		Type         string `json:"type"`
		BudgetTokens int64  `json:"budget_tokens"`
		Display      string `json:"display"`
	} `json:"thinking"`
	OutputConfig *struct {
		Effort string `json:"effort"`
		Format *struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
	Metadata *struct {
		UserID string `json:"user_id"`
	} `json:"metadata"`
}

func (wire) Decode(r *http.Request, body []byte) (llmtest.Call, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" || r.URL.RawQuery != "" {
		return llmtest.Call{}, fmt.Errorf("no such call: %s %s", r.Method, r.URL)
	}
	if r.Header.Get("Anthropic-Version") == "" || r.Header.Get("Content-Type") != "application/json" {
		return llmtest.Call{}, fmt.Errorf("headers %v", r.Header)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var q wireRequest
	if err := d.Decode(&q); err != nil {
		return llmtest.Call{}, err
	}
	c := llmtest.Call{Key: r.Header.Get("X-Api-Key")}
	c.Model, c.Stream = q.Model, q.Stream
	c.Temperature, c.TopP, c.TopK, c.MaxTokens, c.Stop = q.Temperature, q.TopP, q.TopK, q.MaxTokens, q.StopSequences
	if q.MaxTokens < 1 || q.Temperature != nil && q.TopP != nil {
		return c, fmt.Errorf("max_tokens %d, temperature %v, top_p %v", q.MaxTokens, q.Temperature, q.TopP)
	}
	if q.Thinking != nil {
		c.ThinkingBudget = q.Thinking.BudgetTokens
	}
	if q.Metadata != nil {
		c.User = q.Metadata.UserID
	}
	if q.OutputConfig != nil {
		c.ReasoningEffort = q.OutputConfig.Effort
		if f := q.OutputConfig.Format; f != nil {
			c.Schema = &llm.Schema{JSON: f.Schema}
		}
	}
	for _, b := range q.System {
		c.Messages = append(c.Messages, llm.Message{Role: llm.System, Content: b.Text})
	}
	if err := q.conversation(&c); err != nil {
		return c, err
	}
	return c, q.tools(&c)
}

func (q *wireRequest) conversation(c *llmtest.Call) error {
	names := map[string]string{}
	var open []string // calls that the next message has to answer
	for i, m := range q.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("message %d is of %q, want %q", i, m.Role, want)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		rest := llm.Message{Role: llm.Role(m.Role)}
		for j, b := range m.Content {
			switch {
			case b.Type == "text" && strings.TrimSpace(b.Text) != "":
				rest.Content += b.Text
			case b.Type == "image" && m.Role == "user" && b.Source.Type == "base64" && rest.Content == "":
				rest.Images = append(rest.Images, llm.Image{MediaType: b.Source.MediaType, Data: b.Source.Data})
			case b.Type == "tool_use" && m.Role == "assistant" && names[b.ID] == "" && bytes.HasPrefix(b.Input, []byte("{")):
				names[b.ID] = b.Name
				open = append(open, b.ID)
				rest.ToolCalls = append(rest.ToolCalls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case b.Type == "tool_result" && slices.Contains(open, b.ToolUseID):
				open = slices.DeleteFunc(open, func(id string) bool { return id == b.ToolUseID })
				result := llm.Message{Role: llm.ToolRole, ToolCallID: b.ToolUseID, ToolName: names[b.ToolUseID], Failed: b.IsError}
				for _, inner := range b.Content {
					result.Content += inner.Text
				}
				c.Messages = append(c.Messages, result)
			case (b.Type == "thinking" || b.Type == "redacted_thinking") && m.Role == "assistant":
			default:
				return fmt.Errorf("message %d: block %d of %q is refused: %+v", i, j, m.Role, b)
			}
		}
		if m.Role == "user" && len(open) > 0 {
			return fmt.Errorf("message %d leaves the calls %q unanswered", i, open)
		}
		if rest.Content != "" || len(rest.Images) > 0 || len(rest.ToolCalls) > 0 {
			c.Messages = append(c.Messages, rest)
		}
	}
	return nil
}

func (q *wireRequest) tools(c *llmtest.Call) error {
	for _, tool := range q.Tools {
		var schema struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil || schema.Type != "object" {
			return fmt.Errorf("tool %q: the schema %s is refused", tool.Name, tool.InputSchema)
		}
		c.Tools = append(c.Tools, llm.Tool{Name: tool.Name, Description: tool.Description, Parameters: tool.InputSchema})
	}
	if q.ToolChoice == nil {
		return nil
	}
	if len(q.Tools) == 0 {
		return fmt.Errorf("tool_choice without tools")
	}
	c.OneTool = q.ToolChoice.Disable
	switch q.ToolChoice.Type {
	case "auto", "none":
		c.ToolChoice = q.ToolChoice.Type
	case "any":
		c.ToolChoice = "required"
	case "tool":
		c.ToolChoice = q.ToolChoice.Name
	default:
		return fmt.Errorf("tool_choice %+v", q.ToolChoice)
	}
	return nil
}

func (wire) Encode(c llmtest.Call, s llmtest.Scenario) (llmtest.Reply, error) {
	if s.Fail != "" && len(s.Deltas) == 0 {
		return wireFailure(s)
	}
	stop := map[llm.Finish]string{llm.FinishStop: "end_turn", llm.FinishLength: "max_tokens", llm.FinishToolCalls: "tool_use"}[s.Finish]
	if s.Refused {
		stop = "refusal"
	}
	if c.Stream {
		return wireStream(s, stop), nil
	}
	return wireWhole(s, stop)
}

func wireFailure(s llmtest.Scenario) (llmtest.Reply, error) {
	kinds := map[fault.Code]struct {
		status int
		kind   string
	}{
		fault.RateLimited: {429, "rate_limit_error"}, fault.RemoteError: {500, "api_error"}, fault.CredentialInvalid: {401, "authentication_error"},
		fault.NotFound: {404, "not_found_error"}, fault.ContextTooLong: {400, "invalid_request_error"}, fault.RemoteRejected: {400, "invalid_request_error"},
	}
	k, ok := kinds[s.Fail]
	if !ok {
		return llmtest.Reply{}, fmt.Errorf("no such failure: %s", s.Fail)
	}
	message := s.Message
	if s.Fail == fault.ContextTooLong {
		message = "prompt is too long: 210000 tokens > 200000 maximum. " + message
	}
	return llmtest.Reply{Status: k.status, Header: http.Header{"Content-Type": {"application/json"}}, Frames: [][]byte{wireError(k.kind, message)}}, nil
}

func wireError(kind, message string) []byte {
	return wireJSON(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}})
}

func wireJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// wireUsage is a usage in the service's way of counting.
func wireUsage(u *llm.Usage) map[string]any {
	return map[string]any{
		"input_tokens": u.InputTokens - u.CachedTokens, "cache_read_input_tokens": u.CachedTokens, "cache_creation_input_tokens": 0,
		"output_tokens": u.OutputTokens,
	}
}

func wireWhole(s llmtest.Scenario, stop string) (llmtest.Reply, error) {
	content := []any{}
	var text, thought strings.Builder
	var calls []llm.ToolCall
	for _, d := range s.Deltas {
		text.WriteString(d.Text)
		thought.WriteString(d.Reasoning)
		if d.ToolCall != nil {
			if d.ToolCall.Name != "" {
				calls = append(calls, llm.ToolCall{ID: d.ToolCall.ID, Name: d.ToolCall.Name})
			}
			calls[d.ToolCall.Index].Arguments += d.ToolCall.Arguments
		}
	}
	if thought.Len() > 0 {
		content = append(content, map[string]any{"type": "thinking", "thinking": thought.String(), "signature": "c2ln"})
	}
	if text.Len() > 0 {
		content = append(content, map[string]any{"type": "text", "text": text.String()})
	}
	for _, c := range calls {
		if !json.Valid([]byte(c.Arguments)) {
			return llmtest.Reply{}, llmtest.ErrUnsayable
		}
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	m := map[string]any{"id": s.ID, "type": "message", "role": "assistant", "model": s.Model, "content": content, "stop_reason": stop, "stop_sequence": nil}
	if s.Usage != nil {
		m["usage"] = wireUsage(s.Usage)
	}
	return llmtest.Reply{Header: http.Header{"Content-Type": {"application/json"}}, Frames: [][]byte{wireJSON(m)}}, nil
}

func wireEvent(kind string, fields map[string]any) []byte {
	fields["type"] = kind
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, wireJSON(fields))
}

func wireStream(s llmtest.Scenario, stop string) llmtest.Reply {
	start := map[string]any{"id": s.ID, "type": "message", "role": "assistant", "model": s.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil}
	if s.Usage != nil {
		u := *s.Usage
		u.OutputTokens = 1
		start["usage"] = wireUsage(&u)
	}
	frames := [][]byte{wireEvent("message_start", map[string]any{"message": start}), wireEvent("ping", map[string]any{})}
	index, open := -1, ""
	closeBlock := func() {
		if open == "thinking" {
			frames = append(frames, wireEvent("content_block_delta", map[string]any{"index": index, "delta": map[string]any{"type": "signature_delta", "signature": "c2ln"}}))
		}
		if open != "" {
			frames = append(frames, wireEvent("content_block_stop", map[string]any{"index": index}))
		}
	}
	begin := func(kind string, block map[string]any) {
		closeBlock()
		index, open = index+1, kind
		frames = append(frames, wireEvent("content_block_start", map[string]any{"index": index, "content_block": block}))
	}
	piece := func(delta map[string]any) {
		frames = append(frames, wireEvent("content_block_delta", map[string]any{"index": index, "delta": delta}))
	}
	for _, d := range s.Deltas {
		switch {
		case d.Text != "":
			if open != "text" {
				begin("text", map[string]any{"type": "text", "text": ""})
			}
			piece(map[string]any{"type": "text_delta", "text": d.Text})
		case d.Reasoning != "":
			if open != "thinking" {
				begin("thinking", map[string]any{"type": "thinking", "thinking": "", "signature": ""})
			}
			piece(map[string]any{"type": "thinking_delta", "thinking": d.Reasoning})
		case d.ToolCall.Name != "":
			begin("tool_use", map[string]any{"type": "tool_use", "id": d.ToolCall.ID, "name": d.ToolCall.Name, "input": map[string]any{}})
			if d.ToolCall.Arguments != "" {
				piece(map[string]any{"type": "input_json_delta", "partial_json": d.ToolCall.Arguments})
			}
		default:
			piece(map[string]any{"type": "input_json_delta", "partial_json": d.ToolCall.Arguments})
		}
	}
	reply := llmtest.Reply{Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}}
	if s.Fail != "" {
		reply.Frames = append(frames, fmt.Appendf(nil, "event: error\ndata: %s\n\n", wireError("api_error", s.Message)))
		return reply
	}
	closeBlock()
	end := map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}}
	if s.Usage != nil {
		end["usage"] = map[string]any{"output_tokens": s.Usage.OutputTokens}
	}
	reply.Frames = frames
	reply.End = [][]byte{wireEvent("message_delta", end), wireEvent("message_stop", map[string]any{})}
	return reply
}

func BenchmarkRelay(b *testing.B) {
	llmtest.Relay(b, llmtest.Harness{New: New, Wire: wire{}, BasePath: "/v1", Model: "claude-sonnet-4-6"})
}
