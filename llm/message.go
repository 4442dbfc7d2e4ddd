package llm

import "encoding/json"

// Role is who says a message.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	// ToolRole is the result of a tool call.
	ToolRole Role = "tool"
)

// Message is one message of a conversation. It is also how a message is kept, so that what was said can be said again to
// any provider.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content,omitempty"`
	// Images come before the text. Only people send them.
	Images []Image `json:"images,omitempty"`
	// ToolCalls are what an assistant wants called, in its order.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID, ToolName and Failed belong to the result of a tool call: which call it answers, which tool it was, and
	// that the content says what went wrong.
	ToolCallID string `json:"tool_call_id,omitempty"`
	ToolName   string `json:"tool_name,omitempty"`
	Failed     bool   `json:"failed,omitempty"`
	// Reasoning is what an assistant let be seen of its thoughts. It is for people and is not sent back.
	Reasoning string `json:"reasoning,omitempty"`
	// Opaque is what the provider wants to see again with the message exactly as it was (signed thoughts). Another
	// provider leaves it out.
	Opaque *Opaque `json:"opaque,omitempty"`
}

// Opaque is a provider's own data within a message.
type Opaque struct {
	Provider string          `json:"provider"`
	Data     json.RawMessage `json:"data"`
}

// Image is a picture in a message.
type Image struct {
	MediaType string `json:"media_type"`
	// Data is the picture itself; in JSON it is base64.
	Data []byte `json:"data"`
}

// ToolCall is a call that a model wants.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the text that the model wrote. It is meant to be a JSON object, and may be something else.
	Arguments string `json:"arguments"`
}

// Tool is a function that a model may call. Names have letters, digits, "_" and "-", and at most 64 of them.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is a JSON Schema of an object; nil means that there are none.
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// Usage is what a completion has used.
type Usage struct {
	InputTokens     int64 `json:"input_tokens"`
	OutputTokens    int64 `json:"output_tokens"`
	CachedTokens    int64 `json:"cached_tokens,omitempty"`
	ReasoningTokens int64 `json:"reasoning_tokens,omitempty"`
	// Estimated says that the provider did not tell and the numbers are guesses from the text.
	Estimated bool `json:"estimated,omitempty"`
}

// Total is input and output together.
func (u Usage) Total() int64 { return u.InputTokens + u.OutputTokens }

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		u.InputTokens + v.InputTokens, u.OutputTokens + v.OutputTokens, u.CachedTokens + v.CachedTokens,
		u.ReasoningTokens + v.ReasoningTokens, u.Estimated || v.Estimated,
	}
}

// Finish is why a completion ended.
type Finish string

// The ends of a completion. A refusal and a filter are errors (model_refused), not ends.
const (
	FinishStop      Finish = "stop"
	FinishLength    Finish = "length"
	FinishToolCalls Finish = "tool_calls"
)
