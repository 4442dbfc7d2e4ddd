package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"tandem/fault"
	"tandem/llm"
)

// chunk is an event of a stream, or a whole answer: they differ in "delta" and "message" only.
type chunk struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index        int    `json:"index"`
		Delta        *said  `json:"delta"`
		Message      *said  `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// said is what the model says.
type said struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
	// ReasoningContent and Reasoning are the two names that compatible services have for thoughts.
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        thought    `json:"reasoning"`
	ToolCalls        []toolCall `json:"tool_calls"`
}

// toolCall is a tool call or a piece of one. Some services leave the index out, or send the arguments as an object.
type toolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments loose  `json:"arguments"`
	} `json:"function"`
}

// thought is a text; anything else that a service has under its name is not a thought.
type thought string

func (t *thought) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// loose is a text, or the text of any other value.
type loose string

func (l *loose) UnmarshalJSON(data []byte) error {
	switch {
	case data[0] == '"':
		return json.Unmarshal(data, (*string)(l))
	case !bytes.Equal(data, []byte("null")):
		*l = loose(data)
	}
	return nil
}

// usage is what a service says was used.
type usage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	// PromptCacheHitTokens is DeepSeek's name for cached tokens.
	PromptCacheHitTokens int64 `json:"prompt_cache_hit_tokens"`
}

// tokenUsage returns the usage, and whether the service told any: some send zeros instead of nothing.
func (u *usage) tokenUsage() (llm.Usage, bool) {
	if u == nil || u.PromptTokens <= 0 && u.CompletionTokens <= 0 {
		return llm.Usage{}, false
	}
	return llm.Usage{
		InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens,
		CachedTokens:    max(u.PromptTokensDetails.CachedTokens, u.PromptCacheHitTokens),
		ReasoningTokens: u.CompletionTokensDetails.ReasoningTokens,
	}, true
}

// answer gathers a completion. One goroutine owns it.
type answer struct {
	sink  func(llm.Delta)     // nil: nobody listens
	clean func(string) string // takes the key out of what the service says

	id, model   string
	finish      string
	usage       *usage
	size, limit int // bytes that came, and that may come

	content, reasoning, refusal strings.Builder
	calls                       []*call
	// at says which call an index of the service is.
	at map[int]int
}

type call struct {
	id, name  string
	arguments strings.Builder
}

// finished says that the service gave a reason why the answer ended, without which an answer in pieces is not complete.
func (a *answer) finished() bool { return a.finish != "" }

// errCut is a stream that ended too early.
var errCut = errors.New("the stream ended without a finish reason")

// stream reads events until the service says that there are no more. A finish reason is what makes a stream complete:
// not all services send a last event after it, and some send the last event also when they have given up.
func (a *answer) stream(response *http.Response) error {
	events := ssestream.NewDecoder(response)
	for events.Next() {
		data := events.Event().Data
		if len(data) == 0 {
			continue // a comment to keep the connection alive; the library makes an event of it
		}
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			break
		}
		if err := a.takeChunk(data); err != nil {
			return err
		}
	}
	if err := events.Err(); err != nil {
		return err
	}
	if !a.finished() {
		return errCut
	}
	return nil
}

// whole reads an answer that came in one piece.
func (a *answer) whole(body []byte) error {
	if err := a.takeChunk(body); err != nil {
		return err
	}
	if a.finish == "" && a.content.Len() == 0 && a.refusal.Len() == 0 && len(a.calls) == 0 {
		return unreadable(errors.New("it has no choice"))
	}
	return nil
}

// takeChunk reads one event.
func (a *answer) takeChunk(data []byte) error {
	if a.size += len(data); a.size > a.limit {
		return tooLong()
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return unreadable(err)
	}
	if len(c.Error) > 0 && !bytes.Equal(c.Error, []byte("null")) {
		return problem(0, nil, problemOf(c.Error).each(a.clean))
	}
	if c.ID != "" {
		a.id = c.ID
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.usage = c.Usage // some tell it again and again, the last counts
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // one was asked for
		}
		a.say(choice.Delta)
		a.say(choice.Message)
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	return nil
}

// say adds what the model says and tells it on.
func (a *answer) say(s *said) {
	if s == nil {
		return
	}
	thought := s.ReasoningContent
	if thought == "" {
		thought = string(s.Reasoning) // some send the same under both names
	}
	if thought != "" {
		a.reasoning.WriteString(thought)
		a.sendDelta(llm.Delta{Reasoning: thought})
	}
	if s.Content != "" {
		a.content.WriteString(s.Content)
		a.sendDelta(llm.Delta{Text: s.Content})
	}
	a.refusal.WriteString(s.Refusal)
	for i := range s.ToolCalls {
		a.call(i, &s.ToolCalls[i])
	}
}

// call adds a piece of a tool call. A piece belongs to the call of its index, or without one to the call of its place in
// the list; an id that differs begins another call, for services that count none of them.
func (a *answer) call(place int, t *toolCall) {
	index := place
	if t.Index != nil {
		index = *t.Index
	}
	n, known := a.at[index]
	if known && t.ID != "" && a.calls[n].id != t.ID {
		known = false
	}
	d := llm.ToolCallDelta{Arguments: string(t.Function.Arguments)}
	if !known {
		n = len(a.calls)
		if a.at == nil {
			a.at = map[int]int{}
		}
		a.at[index] = n
		c := &call{id: t.ID, name: t.Function.Name}
		if c.id == "" { // calls and results find each other by it
			c.id = strings.TrimSuffix(fmt.Sprintf("call_%d_%s", n, a.id), "_")
		}
		a.calls = append(a.calls, c)
		d.ID, d.Name = c.id, c.name
	}
	if d.ID == "" && d.Arguments == "" {
		return
	}
	d.Index = n
	a.calls[n].arguments.WriteString(d.Arguments)
	a.sendDelta(llm.Delta{ToolCall: &d})
}

func (a *answer) sendDelta(d llm.Delta) {
	if a.sink != nil {
		a.sink(d)
	}
}

// completion is the answer, once it is complete.
func (a *answer) completion(r llm.Request) (llm.Completion, error) {
	if a.refusal.Len() > 0 {
		return llm.Completion{}, refused(fmt.Sprintf("the model refuses: %q", clip(a.refusal.String())))
	}
	c := llm.Completion{
		Message: llm.Message{Role: llm.Assistant, Content: a.content.String(), Reasoning: a.reasoning.String()},
		Model:   a.model, ServiceID: a.id,
	}
	for _, k := range a.calls {
		c.Message.ToolCalls = append(c.Message.ToolCalls, llm.ToolCall{ID: k.id, Name: k.name, Arguments: k.arguments.String()})
	}
	switch a.finish {
	case "content_filter":
		return llm.Completion{}, refused("the service's content filter stopped the answer; ask in other words")
	case "insufficient_system_resource", "error", "abort":
		return llm.Completion{}, fault.Newf(fault.RemoteError, "the service gave up in the middle of the answer (%q)", a.finish)
	case "length":
		c.Finish = llm.FinishLength
	default: // services have words of their own for a good end, and say "stop" also after tool calls
		c.Finish = llm.FinishStop
		if len(a.calls) > 0 {
			c.Finish = llm.FinishToolCalls
		}
	}
	known := false
	if c.Usage, known = a.usage.tokenUsage(); !known {
		c.Usage = llm.Estimate(r.Messages, c.Message)
	}
	return c, nil
}
