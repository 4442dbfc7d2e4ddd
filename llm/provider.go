package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"tandem/text"
)

// Provider speaks with one service. It is safe for concurrent use.
type Provider interface {
	// Complete does one completion. With Request.Stream the sink is given everything as it arrives, in order and from one
	// goroutine; the completion has all of it once more. When the context ends, the connection to the service is closed
	// before Complete returns.
	//
	// Errors are *fault.Error, or an [*Unavailable] around one when the service said when to come back. The
	// codes: rate_limited, remote_error, network_error and timeout may pass; credential_invalid, remote_rejected,
	// not_found, context_too_long and model_refused do not.
	Complete(ctx context.Context, r Request, sink func(Delta)) (Completion, error)
}

// Embedder is a provider that also turns texts into vectors.
type Embedder interface {
	Embed(ctx context.Context, model string, texts []string) ([][]float32, Usage, error)
}

// About is what a provider says of itself, so that profiles of it can be checked.
type About struct {
	// Name is what profiles call it.
	Name string
	// Label is what people call it.
	Label text.Text
	// Scripted says that it answers from the script of the profile: it needs neither a model nor a credential, and only its profiles have a
	// script.
	Scripted bool
}

// Factory makes a provider. It opens nothing.
type Factory func(Settings) (Provider, error)

// Settings are how a provider is reached.
type Settings struct {
	// BaseURL is where the service is; empty means its public address.
	BaseURL string
	// Key is the secret, empty for services that want none.
	Key string
	// HTTP is the guarded client. It sets no limit of time of its own that a stream could run into; the context has one.
	HTTP *http.Client
	// Script is what the scripted provider answers.
	Script Script
}

// Request is one completion that is wanted.
type Request struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools,omitempty"`
	// ToolChoice is "auto" (also when empty), "none", "required", or the name of a tool.
	ToolChoice string `json:"tool_choice,omitempty"`
	// OneTool keeps the model from asking for several tools at once, where the service has a way to say so.
	OneTool bool `json:"one_tool,omitempty"`
	// Schema asks for an object that fits; JSON for any object. Providers use what their service has; what it lacks is
	// checked by the caller, who does so in any case.
	Schema *Schema `json:"schema,omitempty"`
	JSON   bool    `json:"json,omitempty"`
	Params
	Stream bool `json:"stream,omitempty"`
	// User is an opaque id of the person on whose behalf it is, for services that want one.
	User string `json:"user,omitempty"`
}

// Params are the settings of a completion. Nil and zero leave them to the service. What a service or a model does not
// take is left out with a warning.
type Params struct {
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"top_p,omitempty"`
	TopK             *int64   `json:"top_k,omitempty"`
	MaxTokens        int64    `json:"max_tokens,omitempty"`
	FrequencyPenalty *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty  *float64 `json:"presence_penalty,omitempty"`
	Stop             []string `json:"stop,omitempty"`
	// ReasoningEffort is low, medium or high.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	// ThinkingBudget is how many tokens may go into thoughts, for services that count them.
	ThinkingBudget int64 `json:"thinking_budget,omitempty"`
	// Safety is a service's own safety settings: an object of category to threshold.
	Safety json.RawMessage `json:"safety,omitempty"`
}

// Or returns the parameters, with those of base in place of the ones that are not set.
func (p Params) Or(base Params) Params {
	p.Temperature = cmp.Or(p.Temperature, base.Temperature)
	p.TopP = cmp.Or(p.TopP, base.TopP)
	p.TopK = cmp.Or(p.TopK, base.TopK)
	p.MaxTokens = cmp.Or(p.MaxTokens, base.MaxTokens)
	p.FrequencyPenalty = cmp.Or(p.FrequencyPenalty, base.FrequencyPenalty)
	p.PresencePenalty = cmp.Or(p.PresencePenalty, base.PresencePenalty)
	if p.Stop == nil {
		p.Stop = base.Stop
	}
	p.ReasoningEffort = cmp.Or(p.ReasoningEffort, base.ReasoningEffort)
	p.ThinkingBudget = cmp.Or(p.ThinkingBudget, base.ThinkingBudget)
	if len(p.Safety) == 0 {
		p.Safety = base.Safety
	}
	return p
}

// Schema is the shape that an answer must have.
type Schema struct {
	Name string          `json:"name"`
	JSON json.RawMessage `json:"json"`
}

// Delta is a piece of an answer that is under way. Exactly one of its fields is set.
type Delta struct {
	Text      string
	Reasoning string
	ToolCall  *ToolCallDelta
}

// ToolCallDelta is a piece of the tool call number Index. ID and Name come with its first piece.
type ToolCallDelta struct {
	Index     int    `json:"index"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

// Completion is a model's answer.
type Completion struct {
	// Message is the assistant's, ready to be part of the conversation.
	Message Message `json:"message"`
	Usage   Usage   `json:"usage"`
	Finish  Finish  `json:"finish_reason"`
	// Model is the one that answered, as the service calls it.
	Model string `json:"model,omitempty"`
	// ServiceID is the service's name for the call.
	ServiceID string `json:"service_id,omitempty"`
	// Warnings say what was asked for and left out.
	Warnings []string `json:"warnings,omitempty"`
}
