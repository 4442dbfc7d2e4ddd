package replies

import (
	"encoding/json"

	"tandem/human/form"
)

// Request is what was asked, as far as the meaning of a reply depends on it.
type Request struct {
	// Type is approval, input, selection or review; empty is approval.
	Type        string          `json:"interaction_type,omitempty"`
	Channel     string          `json:"channel_type,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Content     json.RawMessage `json:"content,omitempty"`
	Arguments   json.RawMessage `json:"arguments,omitempty"`
	Options     []form.Option   `json:"options,omitempty"`
	Fields      []form.Field    `json:"input_fields,omitempty"`
	Risk        string          `json:"risk,omitempty"`
	// TimeoutSeconds is how long the question can be answered; zero: for ever.
	TimeoutSeconds int64 `json:"timeout_seconds,omitempty"`
	// Language is that of the reasons.
	Language    string `json:"language,omitempty"`
	UserMention string `json:"user_mention,omitempty"`
	// AnalysisModel is the profile of the model that judges, and AnalysisPrompt what the author of the question tells it besides.
	AnalysisModel  string `json:"ai_analysis_model,omitempty"`
	AnalysisPrompt string `json:"response_analysis_prompt,omitempty"`
}

// Reply is a message, as far as its meaning depends on it.
type Reply struct {
	Channel string
	// From is the address of the sender, and Name what they are called.
	From, Name    string
	Subject, Text string
	// Automatic says that no person wrote it.
	Automatic bool
	// Dedup is what the message is recognised by when it comes again.
	Dedup string
}

// option is the option with a value.
func (r *Request) option(value string) form.Option {
	q := form.Question{Purpose: form.PurposeNode, Type: r.Type, Options: r.Options}
	return q.Option(value)
}
