package openai_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"tandem/fault"
	"tandem/llm"
	"tandem/llm/llmtest"
)

// wire is the service's side of the protocol.
type wire struct{}

// request is what the service takes. A field that it does not know makes it refuse.
type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
		ToolCalls  []struct {
			ID, Type string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name, Description string
			Parameters        json.RawMessage
		} `json:"function"`
	} `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	ResponseFormat    *struct {
		Type       string
		JSONSchema *struct {
			Name   string
			Schema json.RawMessage
			Strict bool
		} `json:"json_schema"`
	} `json:"response_format"`
	Temperature         *float64 `json:"temperature"`
	TopP                *float64 `json:"top_p"`
	FrequencyPenalty    *float64 `json:"frequency_penalty"`
	PresencePenalty     *float64 `json:"presence_penalty"`
	MaxTokens           int64    `json:"max_tokens"`
	MaxCompletionTokens int64    `json:"max_completion_tokens"`
	Stop                []string `json:"stop"`
	ReasoningEffort     string   `json:"reasoning_effort"`
	User                string   `json:"user"`
	Stream              bool     `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func (wire) Decode(r *http.Request, body []byte) (llmtest.Call, error) {
	var c llmtest.Call
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		return c, fmt.Errorf("there is nothing at %s %s", r.Method, r.URL.Path)
	}
	var q request
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return c, err
	}
	if q.Stream && (q.StreamOptions == nil || !q.StreamOptions.IncludeUsage) || !q.Stream && q.StreamOptions != nil {
		return c, fmt.Errorf("stream is %v with options %v", q.Stream, q.StreamOptions)
	}
	c.Key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	names := map[string]string{}
	for _, m := range q.Messages {
		out := llm.Message{Role: llm.Role(m.Role), ToolCallID: m.ToolCallID, ToolName: names[m.ToolCallID]}
		if err := content(m.Content, &out); err != nil {
			return c, err
		}
		for _, t := range m.ToolCalls {
			if t.Type != "function" {
				return c, fmt.Errorf("a tool call of type %q", t.Type)
			}
			names[t.ID] = t.Function.Name
			out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: t.ID, Name: t.Function.Name, Arguments: t.Function.Arguments})
		}
		if m.Role == "tool" && out.ToolName == "" {
			return c, fmt.Errorf("a result of the unknown call %q", m.ToolCallID)
		}
		c.Messages = append(c.Messages, out)
	}
	for _, t := range q.Tools {
		c.Tools = append(c.Tools, llm.Tool{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
	}
	var named struct{ Function struct{ Name string } }
	if len(q.ToolChoice) > 0 && json.Unmarshal(q.ToolChoice, &c.ToolChoice) != nil {
		if err := json.Unmarshal(q.ToolChoice, &named); err != nil {
			return c, err
		}
		c.ToolChoice = named.Function.Name
	}
	if (c.ToolChoice != "" || q.ParallelToolCalls != nil) && len(q.Tools) == 0 {
		return c, fmt.Errorf("a choice of tools without tools")
	}
	c.OneTool = q.ParallelToolCalls != nil && !*q.ParallelToolCalls
	if f := q.ResponseFormat; f != nil {
		switch {
		case f.Type == "json_schema" && f.JSONSchema != nil:
			c.Schema = &llm.Schema{Name: f.JSONSchema.Name, JSON: f.JSONSchema.Schema}
		case f.Type == "json_object":
			c.JSON = true
		default:
			return c, fmt.Errorf("unknown response format %+v", *f)
		}
	}
	if q.MaxTokens > 0 && q.MaxCompletionTokens > 0 {
		return c, fmt.Errorf("max_tokens and max_completion_tokens together")
	}
	c.Model, c.Stream, c.User = q.Model, q.Stream, q.User
	c.Params = llm.Params{
		Temperature: q.Temperature, TopP: q.TopP, FrequencyPenalty: q.FrequencyPenalty, PresencePenalty: q.PresencePenalty,
		MaxTokens: q.MaxTokens + q.MaxCompletionTokens, Stop: q.Stop, ReasoningEffort: q.ReasoningEffort,
	}
	return c, nil
}

// content reads what a message says: a text, or parts.
func content(data json.RawMessage, m *llm.Message) error {
	if len(data) == 0 {
		return nil
	}
	if json.Unmarshal(data, &m.Content) == nil {
		return nil
	}
	var parts []struct {
		Type, Text string
		ImageURL   struct{ URL string } `json:"image_url"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Type == "text" {
			m.Content += p.Text
			continue
		}
		kind, encoded, ok := strings.Cut(strings.TrimPrefix(p.ImageURL.URL, "data:"), ";base64,")
		picture, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || m.Content != "" {
			return fmt.Errorf("a part of type %q that is not a picture before the text: %v", p.Type, err)
		}
		m.Images = append(m.Images, llm.Image{MediaType: kind, Data: picture})
	}
	return nil
}

type object map[string]any

func (wire) Encode(c llmtest.Call, s llmtest.Scenario) (llmtest.Reply, error) {
	if s.Fail != "" && !(c.Stream && len(s.Deltas) > 0) {
		return failure(s)
	}
	usage := object(nil)
	if s.Usage != nil {
		usage = object{
			"prompt_tokens": s.Usage.InputTokens, "completion_tokens": s.Usage.OutputTokens, "total_tokens": s.Usage.Total(),
			"prompt_tokens_details":     object{"cached_tokens": s.Usage.CachedTokens},
			"completion_tokens_details": object{"reasoning_tokens": s.Usage.ReasoningTokens},
		}
	}
	if !c.Stream {
		return whole(s, usage)
	}
	reply := llmtest.Reply{Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}}
	event := func(choices any, extra object) []byte {
		o := object{"id": s.ID, "object": "chat.completion.chunk", "created": 1, "model": s.Model, "choices": choices}
		for name, value := range extra {
			o[name] = value
		}
		return []byte("data: " + encode(o) + "\n\n")
	}
	delta := func(d object, finish any) []byte {
		return event([]object{{"index": 0, "delta": d, "finish_reason": finish, "logprobs": nil}}, object{"usage": nil})
	}
	reply.Frames = append(reply.Frames, delta(object{"role": "assistant", "content": "", "refusal": nil}, nil))
	for _, d := range s.Deltas {
		switch {
		case d.Text != "":
			reply.Frames = append(reply.Frames, delta(object{"content": d.Text}, nil))
		case d.Reasoning != "":
			reply.Frames = append(reply.Frames, delta(object{"reasoning_content": d.Reasoning}, nil))
		default:
			call := object{"index": d.ToolCall.Index, "function": object{"arguments": d.ToolCall.Arguments}}
			if d.ToolCall.ID != "" {
				call = object{"index": d.ToolCall.Index, "id": d.ToolCall.ID, "type": "function", "function": object{"name": d.ToolCall.Name, "arguments": d.ToolCall.Arguments}}
			}
			reply.Frames = append(reply.Frames, delta(object{"tool_calls": []object{call}}, nil))
		}
	}
	if s.Fail != "" {
		reply.End = append(reply.End, []byte("data: "+encode(object{"error": object{"message": s.Message, "type": "server_error", "code": nil}})+"\n\n"))
		return reply, nil
	}
	finish := string(s.Finish)
	if s.Refused {
		finish = "stop"
		if len(s.Deltas) == 0 {
			reply.Frames = append(reply.Frames, delta(object{"refusal": "I will "}, nil), delta(object{"refusal": "not."}, nil))
		} else {
			finish = "content_filter"
		}
	}
	reply.End = append(reply.End, delta(object{}, finish))
	if usage != nil {
		reply.End = append(reply.End, event([]object{}, object{"usage": usage}))
	}
	reply.End = append(reply.End, []byte("data: [DONE]\n\n"))
	return reply, nil
}

// whole is an answer in one piece.
func whole(s llmtest.Scenario, usage object) (llmtest.Reply, error) {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	var content, reasoning string
	var calls []object
	for _, d := range s.Deltas {
		content += d.Text
		reasoning += d.Reasoning
		if d.ToolCall == nil {
			continue
		}
		if d.ToolCall.ID != "" {
			calls = append(calls, object{"id": d.ToolCall.ID, "type": "function", "function": object{"name": d.ToolCall.Name, "arguments": ""}})
		}
		function := calls[d.ToolCall.Index]["function"].(object)
		function["arguments"] = function["arguments"].(string) + d.ToolCall.Arguments
	}
	if content != "" {
		message["content"] = content
	}
	if reasoning != "" {
		message["reasoning_content"] = reasoning
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	finish := string(s.Finish)
	if s.Refused {
		finish = "content_filter"
		if content == "" {
			message["refusal"], finish = "I will not.", "stop"
		}
	}
	o := object{"id": s.ID, "object": "chat.completion", "created": 1, "model": s.Model, "choices": []object{{"index": 0, "message": message, "finish_reason": finish}}}
	if usage != nil {
		o["usage"] = usage
	}
	return llmtest.Reply{Header: http.Header{"Content-Type": {"application/json"}}, Frames: [][]byte{[]byte(encode(o))}}, nil
}

func failure(s llmtest.Scenario) (llmtest.Reply, error) {
	kind, code, status := "invalid_request_error", "", 0
	switch s.Fail {
	case fault.RateLimited:
		status, kind, code = http.StatusTooManyRequests, "requests", "rate_limit_exceeded"
	case fault.RemoteError:
		status, kind = http.StatusInternalServerError, "server_error"
	case fault.CredentialInvalid:
		status, code = http.StatusUnauthorized, "invalid_api_key"
	case fault.NotFound:
		status, code = http.StatusNotFound, "model_not_found"
	case fault.ContextTooLong:
		status, code = http.StatusBadRequest, "context_length_exceeded"
	case fault.RemoteRejected:
		status, code = http.StatusBadRequest, "unsupported_value"
	default:
		return llmtest.Reply{}, fmt.Errorf("no error of the service makes %q", s.Fail)
	}
	body := object{"error": object{"message": s.Message, "type": kind, "code": code, "param": nil}}
	return llmtest.Reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Frames: [][]byte{[]byte(encode(body))}}, nil
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
