package anthropic

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"tandem/fault"
	"tandem/llm"
	"tandem/payload"
)

// request is a request in the service's words.
type request struct {
	body    sdk.MessageNewParams
	options []option.RequestOption
}

// translator turns one request into the service's words.
type translator struct {
	from     llm.Request
	model    model
	to       request
	warnings []string
}

func translate(r llm.Request) (request, []string, error) {
	t := &translator{from: r, model: parse(r.Model)}
	t.to.body.Model = sdk.Model(r.Model)
	t.to.body.MaxTokens = r.MaxTokens
	if r.MaxTokens <= 0 {
		t.to.body.MaxTokens = maxTokens
	}
	if r.User != "" {
		t.to.body.Metadata.UserID = sdk.String(r.User)
	}
	system := t.conversation()
	if err := t.tools(); err != nil {
		return request{}, nil, err
	}
	t.parameters()
	if more := t.shape(); more != "" {
		system = append(system, more)
	}
	if len(system) > 0 {
		t.to.body.System = []sdk.TextBlockParam{{Text: strings.Join(system, "\n\n")}}
	}
	return t.to, t.warnings, nil
}

func (t *translator) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// conversation adds the messages and returns those of the system, for which the service has one place. Messages of one
// side that follow each other are one message to the service.
func (t *translator) conversation() (system []string) {
	for _, m := range t.from.Messages {
		role, blocks := sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion(nil)
		switch m.Role {
		case llm.System:
			if m.Content != "" {
				system = append(system, m.Content)
			}
			continue
		case llm.Assistant:
			role, blocks = sdk.MessageParamRoleAssistant, said(m)
		case llm.ToolRole:
			blocks = []sdk.ContentBlockParamUnion{result(m)}
		default:
			for _, i := range m.Images {
				blocks = append(blocks, sdk.NewImageBlockBase64(i.MediaType, base64.StdEncoding.EncodeToString(i.Data)))
			}
			blocks = appendText(blocks, m.Content)
		}
		if len(blocks) == 0 {
			continue // the service refuses messages and texts that are empty
		}
		if n := len(t.to.body.Messages); n > 0 && t.to.body.Messages[n-1].Role == role {
			last := &t.to.body.Messages[n-1]
			last.Content = append(last.Content, blocks...)
			continue
		}
		t.to.body.Messages = append(t.to.body.Messages, sdk.MessageParam{Role: role, Content: blocks})
	}
	return system
}

func appendText(blocks []sdk.ContentBlockParamUnion, text string) []sdk.ContentBlockParamUnion {
	if strings.TrimSpace(text) == "" {
		return blocks
	}
	return append(blocks, sdk.NewTextBlock(text))
}

// said is what an assistant said, with its thoughts where they were.
func said(m llm.Message) []sdk.ContentBlockParamUnion {
	order := places(m)
	if order == nil {
		order = append(order, place{Text: len(m.Content)})
		for range m.ToolCalls {
			order = append(order, place{Call: true})
		}
	}
	var blocks []sdk.ContentBlockParamUnion
	text, calls := m.Content, m.ToolCalls
	for _, p := range order {
		switch {
		case p.Thought != nil:
			blocks = append(blocks, param.Override[sdk.ContentBlockParamUnion](p.Thought))
		case p.Call:
			c := calls[0]
			calls = calls[1:]
			blocks = append(blocks, sdk.ContentBlockParamUnion{OfToolUse: &sdk.ToolUseBlockParam{ID: toolID(c.ID), Name: c.Name,
				Input: llm.ArgumentObject(c.Arguments)}})
		default:
			blocks = appendText(blocks, text[:p.Text])
			text = text[p.Text:]
		}
	}
	return blocks
}

// result is the result of a tool call. One that failed must say something.
func result(m llm.Message) sdk.ContentBlockParamUnion {
	r := &sdk.ToolResultBlockParam{ToolUseID: toolID(m.ToolCallID)}
	text := m.Content
	if m.Failed {
		r.IsError = sdk.Bool(true)
		if strings.TrimSpace(text) == "" {
			text = "The tool failed and said nothing."
		}
	}
	if text != "" {
		r.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: text}}}
	}
	return sdk.ContentBlockParamUnion{OfToolResult: r}
}

// toolID is an id as the service takes it: other providers' ids may have other characters.
func toolID(id string) string {
	if id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

func (t *translator) tools() error {
	r := t.from
	if len(r.Tools) == 0 {
		t.pastTools()
		return nil
	}
	for _, tool := range r.Tools {
		p := sdk.ToolParam{Name: tool.Name}
		if tool.Description != "" {
			p.Description = sdk.String(tool.Description)
		}
		schema, cut, err := inputSchema(tool.Parameters)
		if err != nil {
			return fault.Newf(fault.InvalidConfig, "tool %q: its parameters are not a JSON Schema of an object", tool.Name).WithCause(err)
		}
		for _, keyword := range cut {
			t.warn("tool %q: %s at the root of the parameters was left out; the service does not take it there", tool.Name, keyword)
		}
		p.InputSchema = param.Override[sdk.ToolInputSchemaParam](schema)
		t.to.body.Tools = append(t.to.body.Tools, sdk.ToolUnionParam{OfTool: &p})
	}
	one := param.Opt[bool]{}
	if r.OneTool {
		one = sdk.Bool(true)
	}
	choice := &t.to.body.ToolChoice
	switch r.ToolChoice {
	case "", "auto":
		if r.OneTool {
			choice.OfAuto = &sdk.ToolChoiceAutoParam{DisableParallelToolUse: one}
		}
	case "none":
		none := sdk.NewToolChoiceNoneParam()
		choice.OfNone = &none
	case "required":
		choice.OfAny = &sdk.ToolChoiceAnyParam{DisableParallelToolUse: one}
	default:
		choice.OfTool = &sdk.ToolChoiceToolParam{Name: r.ToolChoice, DisableParallelToolUse: one}
	}
	return nil
}

// pastTools names the tools that were called earlier when there are none any more: the service refuses a conversation
// with calls of tools that it is not told of. They cannot be called.
func (t *translator) pastTools() {
	var names []string
	for _, m := range t.from.Messages {
		for _, c := range m.ToolCalls {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	for _, name := range names {
		p := sdk.ToolParam{Name: name, InputSchema: param.Override[sdk.ToolInputSchemaParam](json.RawMessage(`{"type":"object"}`))}
		t.to.body.Tools = append(t.to.body.Tools, sdk.ToolUnionParam{OfTool: &p})
	}
	if len(names) > 0 {
		none := sdk.NewToolChoiceNoneParam()
		t.to.body.ToolChoice.OfNone = &none
	}
}

// forced says that the model has to call a tool.
func (t *translator) forced() bool {
	return len(t.from.Tools) > 0 && !slices.Contains([]string{"", "auto", "none"}, t.from.ToolChoice)
}

func (t *translator) parameters() {
	r := t.from
	for _, p := range []struct {
		name  string
		value *float64
	}{{"frequency_penalty", r.FrequencyPenalty}, {"presence_penalty", r.PresencePenalty}} {
		if p.value != nil && *p.value != 0 {
			t.warn("%s was left out; the service does not take it", p.name)
		}
	}
	if len(r.Safety) > 0 {
		t.warn("safety was left out; the service does not take it")
	}
	for _, s := range r.Stop {
		if strings.TrimSpace(s) == "" {
			t.warn("the stop text %q was left out; the service wants one that is not blank", s)
			continue
		}
		t.to.body.StopSequences = append(t.to.body.StopSequences, s)
	}
	if r.ReasoningEffort != "" {
		if t.model.efforts() {
			t.to.body.OutputConfig.Effort = sdk.OutputConfigEffort(r.ReasoningEffort)
		} else {
			t.warn("reasoning_effort was left out; model %q does not take it", r.Model)
		}
	}
	t.sampling(t.thinking())
}

// thinking asks for thoughts and says whether it did. It goes around the library's own field, which writes to the standard
// error stream about some models.
func (t *translator) thinking() bool {
	budget := t.from.ThinkingBudget
	if budget <= 0 {
		return false
	}
	if t.forced() {
		t.warn("thinking_budget was left out; the service does not let a model think that has to call a tool")
		return false
	}
	if !t.model.budgets() {
		t.warn("thinking_budget %d is not kept; model %q decides itself how long it thinks", budget, t.from.Model)
		t.to.options = append(t.to.options, option.WithJSONSet("thinking", map[string]any{"type": "adaptive", "display": "summarized"}))
		return true
	}
	const least = 1024
	limit := t.to.body.MaxTokens
	if limit <= least {
		t.warn("thinking_budget was left out; with max_tokens %d there is no room for the %d tokens that the service wants at least", limit, least)
		return false
	}
	fits := budget
	if fits >= limit {
		fits = limit / 2
	}
	if fits = max(fits, least); fits != budget {
		t.warn("thinking_budget is %d instead of %d; the service wants at least %d and less than max_tokens", fits, budget, least)
	}
	t.to.options = append(t.to.options, option.WithJSONSet("thinking", map[string]any{"type": "enabled", "budget_tokens": fits}))
	return true
}

// sampling adds temperature, top_p and top_k as far as the model takes them together.
func (t *translator) sampling(thinks bool) {
	r := t.from
	leave := func(name string, isSet bool, why string) {
		if isSet {
			t.warn("%s was left out; %s", name, why)
		}
	}
	if !t.model.samples() {
		why := fmt.Sprintf("model %q does not take it", r.Model)
		leave("temperature", r.Temperature != nil, why)
		leave("top_p", r.TopP != nil, why)
		leave("top_k", r.TopK != nil, why)
		return
	}
	if thinks {
		const why = "the service does not take it while the model thinks"
		leave("temperature", r.Temperature != nil && *r.Temperature != 1, why)
		leave("top_k", r.TopK != nil, why)
		switch {
		case r.TopP != nil && *r.TopP >= 0.95:
			t.to.body.TopP = sdk.Float(*r.TopP)
		default:
			leave("top_p", r.TopP != nil, why)
		}
		return
	}
	if r.Temperature != nil {
		fits := min(*r.Temperature, 1)
		if fits != *r.Temperature {
			t.warn("temperature is 1 instead of %v; the service takes no more", *r.Temperature)
		}
		t.to.body.Temperature = sdk.Float(fits)
		leave("top_p", r.TopP != nil, "the service takes it only without temperature")
	} else if r.TopP != nil {
		t.to.body.TopP = sdk.Float(*r.TopP)
	}
	if r.TopK != nil {
		t.to.body.TopK = sdk.Int(*r.TopK)
	}
}

// shape asks for JSON. Where the service cannot hold the model to it, a text asks the model for it, which is returned.
func (t *translator) shape() string {
	const only = "Answer with one JSON object and nothing else: no text around it, no code fence."
	if t.from.Schema == nil {
		if t.from.JSON {
			return only
		}
		return ""
	}
	if schema, ok := outputSchema(t.from.Schema.JSON); ok && t.model.shapes() {
		t.to.body.OutputConfig.Format = sdk.JSONOutputFormatParam{Schema: schema}
		return ""
	}
	return only + " It must be valid against this JSON Schema:\n" + payload.JSON(t.from.Schema.JSON)
}
