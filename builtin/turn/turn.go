// Package turn is what a provider of models says of the kind of node whose turns are with its models: how the kind is called, which fields
// its configuration has, and what a model is asked with. Package ai does the turns and makes the kinds; the package of a provider brings a
// [Kind].
package turn

import (
	"context"
	"encoding/json"

	"tandem/builtin/values"
	"tandem/engine"
	"tandem/node"
)

// Kind is a kind of node that has turns with the models of one provider. [Of] makes one.
type Kind struct {
	// Name is that of the kind: AI_AGENT and a name of its own.
	Name               string
	Title, Description node.Text
	// Temperature and TopP are what a model is asked with that a node names without a profile; nil: the service decides.
	Temperature, TopP *float64

	lead func(about node.About, r Runner) node.Kind
}

// Of is a kind with the configuration C, which embeds [Common].
func Of[C Settings](k Kind) Kind {
	k.lead = func(about node.About, r Runner) node.Kind {
		return node.Lead(about, node.Leader[C, Input]{
			Program: engine.ProgramToolLoop, Step: r.Step, Inquire: r.Inquire, Given: r.Given, Shows: r.Shows,
			Open: func(ctx context.Context, call *node.Call, cfg C, in Input) (node.Led, error) {
				c, err := cfg.Turn(call)
				if err != nil {
					return node.Led{}, err
				}
				return r.Open(ctx, call, c, in)
			},
			Close: func(_ context.Context, call *node.Call, _ C, e node.Ending) (node.Done, error) {
				return r.Close(call, e)
			},
		}, func(p *node.Planning, cfg *C) { r.Plan(p, (*cfg).Base()) })
	}
	return k
}

// IsZero says that there is no kind.
func (k Kind) IsZero() bool { return k.Name == "" }

// Make makes the kind of node, whose turns the runner does. It must have been made by [Of].
func (k Kind) Make(about node.About, r Runner) node.Kind { return k.lead(about, r) }

// IsMade says that the kind has a configuration: it was made by [Of].
func (k Kind) IsMade() bool { return k.lead != nil }

// Runner does turns. What each function does is said with [node.Leader].
type Runner struct {
	Open func(ctx context.Context, call *node.Call, cfg Config, in Input) (node.Led, error)
	Step func(ctx context.Context, call *node.Call, s node.Step) (node.Outcome, error)
	// Inquire may be nil.
	Inquire func(ctx context.Context, call *node.Call, s node.Step) (node.Outcome, error)
	Given   func(call *node.Call, s node.Step, output json.RawMessage) (node.Replied, error)
	Shows   func(s node.Step) (any, error)
	Close   func(call *node.Call, e node.Ending) (node.Done, error)
	Plan    func(p *node.Planning, c Common)
}

// Input is what a turn reads of what its node is given.
type Input struct {
	UserPrompt json.RawMessage   `json:"user_prompt,omitempty" prompt:"true" doc:"What the model is asked, if the configuration does not say." zh:"未配置时对模型的提问。"`
	UserInput  json.RawMessage   `json:"user_input,omitempty" prompt:"true" doc:"The same, by an older name." zh:"同上（旧名称）。"`
	Message    json.RawMessage   `json:"message,omitempty" prompt:"true" doc:"The same, by an older name." zh:"同上（旧名称）。"`
	Question   json.RawMessage   `json:"question,omitempty" prompt:"true" doc:"The same, by an older name." zh:"同上（旧名称）。"`
	Images     []json.RawMessage `json:"images,omitempty" doc:"Pictures that the model looks at." zh:"供模型查看的图片。"`
	Context    json.RawMessage   `json:"context,omitempty" doc:"What the model is told besides." zh:"补充给模型的内容。"`
	// Variables are names for the placeholders of the prompts.
	Variables json.RawMessage `json:"variables,omitempty" doc:"Names for the placeholders of the prompts." zh:"提示词占位符的值。"`
}

// Prompt is what the input brings for the model, if it does.
func (in *Input) Prompt() string {
	for _, raw := range []json.RawMessage{in.UserPrompt, in.UserInput, in.Message, in.Question} {
		if text := values.Text(raw); text != "" {
			return text
		}
	}
	return ""
}
