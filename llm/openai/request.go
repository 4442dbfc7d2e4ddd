package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"tandem/llm"
	"tandem/payload"
)

// translate writes a request in the protocol. The warnings say what was left out.
func translate(r llm.Request) (openai.ChatCompletionNewParams, []string) {
	params := openai.ChatCompletionNewParams{Model: r.Model, Messages: make([]openai.ChatCompletionMessageParamUnion, 0, len(r.Messages))}
	for _, m := range r.Messages {
		params.Messages = append(params.Messages, message(m))
	}
	for _, t := range r.Tools {
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(tool(t)))
	}
	if len(r.Tools) > 0 {
		params.ToolChoice = choice(r.ToolChoice)
	}
	switch {
	case r.Schema != nil:
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: schemaName(r.Schema.Name), Schema: r.Schema.JSON, Strict: openai.Bool(strictly(r.Schema.JSON)),
			},
		}
	case r.JSON:
		params.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
		// The service refuses to answer in JSON when no message speaks of it.
		if !slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return strings.Contains(strings.ToLower(m.Content), "json") }) {
			params.Messages = append([]openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Answer with a JSON object.")},
				params.Messages...)
		}
	}
	if r.User != "" {
		params.User = openai.String(r.User)
	}
	if r.Stream {
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		params.SetExtraFields(map[string]any{"stream": true})
	}
	return params, settings(&params, r)
}

// message writes one message. Pictures come before the text.
func message(m llm.Message) openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case llm.System:
		return openai.SystemMessage(m.Content)
	case llm.ToolRole:
		// The protocol has no sign for a failure; the content says it.
		return openai.ToolMessage(m.Content, m.ToolCallID)
	case llm.Assistant:
		a := &openai.ChatCompletionAssistantMessageParam{}
		if m.Content != "" || len(m.ToolCalls) == 0 {
			a.Content.OfString = openai.String(m.Content)
		}
		for _, c := range m.ToolCalls {
			a.ToolCalls = append(a.ToolCalls,
				openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: c.ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: c.Arguments},
				}})
		}
		return openai.ChatCompletionMessageParamUnion{OfAssistant: a}
	}
	if len(m.Images) == 0 {
		return openai.UserMessage(m.Content)
	}
	var parts []openai.ChatCompletionContentPartUnionParam
	for _, i := range m.Images {
		address := "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: address}))
	}
	if m.Content != "" {
		parts = append(parts, openai.TextContentPart(m.Content))
	}
	return openai.UserMessage(parts)
}

// tool describes a tool. Its schema is sent as it is written: nothing of it is understood here, so nothing is lost.
func tool(t llm.Tool) shared.FunctionDefinitionParam {
	d := shared.FunctionDefinitionParam{Name: t.Name}
	if t.Description != "" {
		d.Description = openai.String(t.Description)
	}
	if len(t.Parameters) > 0 {
		d.SetExtraFields(map[string]any{"parameters": t.Parameters})
	}
	return d
}

func choice(name string) openai.ChatCompletionToolChoiceOptionUnionParam {
	switch name {
	case "":
		return openai.ChatCompletionToolChoiceOptionUnionParam{}
	case "auto", "none", "required":
		return openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt(name)}
	}
	return openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: name})
}

// settings sets the parameters that the model takes and says which it does not.
func settings(params *openai.ChatCompletionNewParams, r llm.Request) (warnings []string) {
	f := familyOf(r.Model)
	// takes says whether a parameter that is wanted is sent.
	takes := func(wanted, does bool, name string) bool {
		if wanted && !does {
			warnings = append(warnings, fmt.Sprintf("%s is left out: the model %q does not take it", name, r.Model))
		}
		return wanted && does
	}
	if takes(r.Temperature != nil, !f.reasons, "temperature") {
		params.Temperature = openai.Float(*r.Temperature)
	}
	if takes(r.TopP != nil, !f.reasons, "top_p") {
		params.TopP = openai.Float(*r.TopP)
	}
	if takes(r.FrequencyPenalty != nil, !f.reasons, "frequency_penalty") {
		params.FrequencyPenalty = openai.Float(*r.FrequencyPenalty)
	}
	if takes(r.PresencePenalty != nil, !f.reasons, "presence_penalty") {
		params.PresencePenalty = openai.Float(*r.PresencePenalty)
	}
	if takes(len(r.Stop) > 0, !f.reasons, "stop") {
		params.Stop.OfStringArray = r.Stop
	}
	if takes(r.ReasoningEffort != "", !f.answersAtOnce, "reasoning_effort") {
		params.ReasoningEffort = shared.ReasoningEffort(r.ReasoningEffort)
	}
	if takes(r.OneTool && len(r.Tools) > 0, !f.oneByOne, "parallel_tool_calls") {
		params.ParallelToolCalls = openai.Bool(false)
	}
	if r.MaxTokens > 0 {
		// Compatible services know only the old name, reasoning models only the new one.
		if f.reasons {
			params.MaxCompletionTokens = openai.Int(r.MaxTokens)
		} else {
			params.MaxTokens = openai.Int(r.MaxTokens)
		}
	}
	for name, wanted := range map[string]bool{"top_k": r.TopK != nil, "thinking_budget": r.ThinkingBudget > 0,
		"safety": len(r.Safety) > 0} {
		if wanted {
			warnings = append(warnings, name+" is left out: the protocol does not have it")
		}
	}
	slices.Sort(warnings)
	return warnings
}

// family is what is peculiar about OpenAI's own models. Models of others are taken to take everything.
type family struct {
	// reasons: it thinks first and refuses settings of sampling.
	reasons bool
	// answersAtOnce: it never thinks, and refuses to be asked how much.
	answersAtOnce bool
	// oneByOne: it calls one tool at a time anyway and refuses to be asked for it.
	oneByOne bool
}

// familyOf knows a model by its name, which routers put a vendor in front of: o1, o3-mini, o4-mini, gpt-5, openai/gpt-5.1,
// ft:gpt-4o:org. The chat variants of reasoning models do not reason.
func familyOf(model string) family {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	name = strings.TrimPrefix(name, "ft:")
	switch {
	case len(name) > 1 && name[0] == 'o' && digit(name[1]) && (len(name) == 2 || !letter(name[2])):
		return family{reasons: true, oneByOne: true}
	case strings.HasPrefix(name, "codex-"):
		return family{reasons: true}
	case strings.HasPrefix(name, "gpt-") && len(name) > 4 && digit(name[4]):
		old := name[4] < '5' && (len(name) == 5 || !digit(name[5])) || strings.Contains(name, "-chat")
		return family{reasons: !old, answersAtOnce: old}
	case strings.HasPrefix(name, "chatgpt-"):
		return family{answersAtOnce: true}
	}
	return family{}
}

func digit(b byte) bool  { return b >= '0' && b <= '9' }
func letter(b byte) bool { return b >= 'a' && b <= 'z' }

// schemaName makes a name that the service takes: letters, digits, "_" and "-", at most 64.
func schemaName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && (letter(byte(r)|0x20) || digit(byte(r)) || r == '_' || r == '-') {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "answer"
	}
	return name[:min(len(name), 64)]
}

// strictly says whether the service can hold the model to a schema: it takes only objects that list all their properties
// as required and allow no others, and only some keywords. A schema beyond that is sent as a wish.
func strictly(schema json.RawMessage) bool {
	var root map[string]any
	if payload.Read(schema, &root) != nil || root["type"] != "object" {
		return false
	}
	return strictPart(root)
}

func strictPart(v any) bool {
	s, ok := v.(map[string]any)
	if !ok {
		return false // true and false are schemas too, and not taken
	}
	for word, value := range s {
		switch word {
		case "type", "description", "title", "enum", "const", "$ref", "required", "additionalProperties", "$schema", "pattern", "format",
			"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems":
		case "items":
			if !strictPart(value) {
				return false
			}
		case "anyOf":
			list, ok := value.([]any)
			if !ok || slices.ContainsFunc(list, func(v any) bool { return !strictPart(v) }) {
				return false
			}
		case "properties", "$defs", "definitions":
			named, ok := value.(map[string]any)
			if !ok {
				return false
			}
			for _, v := range named {
				if !strictPart(v) {
					return false
				}
			}
		default:
			return false
		}
	}
	properties, _ := s["properties"].(map[string]any)
	if s["type"] != "object" && properties == nil {
		return true
	}
	required, _ := s["required"].([]any)
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			return false
		}
	}
	return s["additionalProperties"] == false
}
