package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"tandem/llm"
)

// modelService speaks the protocol of chat completions, streamed. What it says is up to the test.
type modelService struct {
	*httptest.Server
	// say answers a request. It may take its time; gone is closed when the caller has hung up.
	say func(r chatRequest, gone <-chan struct{}) chatReply

	mu    sync.Mutex
	asked []chatRequest
	// used is what was told as used, all calls together.
	used int
	// hungUp tells of each caller that left before its answer was there.
	hungUp chan struct{}
}

type chatRequest struct {
	Model     string        `json:"model"`
	Messages  []chatMessage `json:"messages"`
	MaxTokens int           `json:"max_completion_tokens"`
	Tools     []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Stream         bool `json:"stream"`
	ResponseFormat struct {
		Schema struct {
			Name string `json:"name"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []chatCall      `json:"tool_calls"`
}

// text is a message's content.
func (m chatMessage) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) == nil {
		for _, p := range parts {
			text += p.Text
		}
	}
	return text
}

type chatCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatReply struct {
	// status other than 0 is an error.
	status int
	header http.Header
	text   []string // its pieces
	calls  []chatCall
	finish string
	// tokens is told as used for the answer.
	tokens int
}

func chatCallOf(n int, name, arguments string) chatCall {
	c := chatCall{Index: n, ID: fmt.Sprintf("call_%s_%d", name, n), Type: "function"}
	c.Function.Name, c.Function.Arguments = name, arguments
	return c
}

func newModelService(t *testing.T, say func(r chatRequest, gone <-chan struct{}) chatReply) *modelService {
	s := &modelService{say: say, hungUp: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// profile is how the service is reached.
func (s *modelService) profile(id string) llm.Profile {
	return llm.Profile{ID: id, Provider: "openai", Model: "test-model", BaseURL: s.URL + "/v1"}
}

func (s *modelService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in chatRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, in)
	s.mu.Unlock()
	reply := s.say(in, r.Context().Done())
	if r.Context().Err() != nil {
		s.hungUp <- struct{}{}
		return
	}
	for name, values := range reply.header {
		w.Header()[name] = values
	}
	if reply.status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.status)
		fmt.Fprint(w, `{"error":{"message":"no","type":"x"}}`)
		return
	}
	s.mu.Lock()
	s.used += reply.tokens
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
		w.(http.Flusher).Flush()
	}
	chunk := func(delta map[string]any, finish any) map[string]any {
		return map[string]any{"id": "c", "object": "chat.completion.chunk", "model": in.Model, "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	send(chunk(map[string]any{"role": "assistant"}, nil))
	for _, piece := range reply.text {
		send(chunk(map[string]any{"content": piece}, nil))
	}
	if len(reply.calls) > 0 {
		send(chunk(map[string]any{"tool_calls": reply.calls}, nil))
	}
	finish := reply.finish
	if finish == "" {
		finish = "stop"
		if len(reply.calls) > 0 {
			finish = "tool_calls"
		}
	}
	send(chunk(map[string]any{}, finish))
	usage := chunk(nil, nil)
	usage["choices"] = []any{}
	usage["usage"] = map[string]any{"prompt_tokens": 0, "completion_tokens": reply.tokens, "total_tokens": reply.tokens}
	send(usage)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// count is how often it was asked.
func (s *modelService) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func (s *modelService) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
