package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"tandem/fault"
	"tandem/llm"
	"tandem/payload"
)

// The messages of a request as the service reads them. The library has types for them too, but it loses digits of long
// numbers and empty texts, so these go past it.
type (
	content struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	part struct {
		Text             *string           `json:"text,omitempty"`
		InlineData       *inlineData       `json:"inlineData,omitempty"`
		FunctionCall     *functionCall     `json:"functionCall,omitempty"`
		FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
		ThoughtSignature string            `json:"thoughtSignature,omitempty"`
	}
	inlineData struct {
		MimeType string `json:"mimeType"`
		Data     []byte `json:"data"`
	}
	functionCall struct {
		ID   string          `json:"id,omitempty"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	functionResponse struct {
		ID       string            `json:"id,omitempty"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
	}
)

// translator turns one request into the service's words.
type translator struct {
	from     llm.Request
	model    model
	config   genai.GenerateContentConfig
	contents []content
	warnings []string
}

func translate(r llm.Request) (*translator, error) {
	t := &translator{from: r, model: parse(r.Model)}
	system := t.conversation()
	if err := t.tools(); err != nil {
		return nil, err
	}
	t.parameters()
	if err := t.safety(); err != nil {
		return nil, err
	}
	more, err := t.shape()
	if err != nil {
		return nil, err
	}
	if more != "" {
		system = append(system, more)
	}
	if len(system) > 0 {
		t.config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: strings.Join(system, "\n\n")}}}
	}
	one := false
	t.config.AutomaticContinuation = &one // a second call is for the caller to make
	contents := t.contents
	t.config.HTTPOptions = &genai.HTTPOptions{ExtrasRequestProvider: func(body map[string]any) map[string]any {
		body["contents"] = contents
		return body
	}}
	return t, nil
}

func (t *translator) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// conversation adds the messages and returns those of the system, for which the service has one place. The results of
// tools that were called together go together, and apart from what a person says.
func (t *translator) conversation() (system []string) {
	names := map[string]string{}
	var last llm.Role
	for _, m := range t.from.Messages {
		role, parts := "user", []part(nil)
		switch m.Role {
		case llm.System:
			if m.Content != "" {
				system = append(system, m.Content)
			}
			continue
		case llm.Assistant:
			for _, c := range m.ToolCalls {
				names[c.ID] = c.Name
			}
			role, parts = "model", t.said(m)
		case llm.ToolRole:
			parts = []part{result(m, names[m.ToolCallID])}
		default:
			for _, i := range m.Images {
				parts = append(parts, part{InlineData: &inlineData{i.MediaType, i.Data}})
			}
			if m.Content != "" {
				parts = append(parts, part{Text: &m.Content})
			}
		}
		if len(parts) == 0 {
			continue // the service refuses messages that are empty
		}
		if n := len(t.contents); n > 0 && last == m.Role {
			t.contents[n-1].Parts = append(t.contents[n-1].Parts, parts...)
			continue
		}
		last = m.Role
		t.contents = append(t.contents, content{role, parts})
	}
	return system
}

// said is what an assistant said, with signatures where they were.
func (t *translator) said(m llm.Message) []part {
	var parts []part
	text, calls := m.Content, m.ToolCalls
	order, ours := places(m)
	for _, p := range order {
		if p.Call {
			c := calls[0]
			calls = calls[1:]
			parts = append(parts, part{FunctionCall: &functionCall{c.ID, c.Name, llm.ArgumentObject(c.Arguments)},
				ThoughtSignature: p.Signature})
			continue
		}
		piece := text[:p.Text]
		text = text[p.Text:]
		if piece != "" || p.Signature != "" {
			parts = append(parts, part{Text: &piece, ThoughtSignature: p.Signature})
		}
	}
	if !ours && t.model.signs() {
		for i := range parts {
			if parts[i].FunctionCall != nil {
				parts[i].ThoughtSignature = foreignSignature
				break
			}
		}
	}
	return parts
}

// foreignSignature stands where a call of another provider's model has no signature: models that sign their calls refuse
// a conversation whose calls are not signed, unless they have this mark.
const foreignSignature = "skip_thought_signature_validator"

// places is the order of a message's parts, and whether it is as the service sent it. It is not when the message is
// another provider's or was changed since.
func places(m llm.Message) (order []place, ours bool) {
	if m.Opaque != nil && m.Opaque.Provider == Name && json.Unmarshal(m.Opaque.Data, &order) == nil {
		text, calls, good := 0, 0, true
		for _, p := range order {
			text += p.Text
			good = good && p.Text >= 0
			if p.Call {
				calls++
			}
		}
		if good && text == len(m.Content) && calls == len(m.ToolCalls) {
			return order, true
		}
	}
	order = []place{{Text: len(m.Content)}}
	for range m.ToolCalls {
		order = append(order, place{Call: true})
	}
	return order, false
}

// result is the result of a tool call, under the names that the service knows for good and bad ones.
func result(m llm.Message, name string) part {
	if m.ToolName != "" {
		name = m.ToolName
	}
	key := "output"
	if m.Failed {
		key = "error"
	}
	return part{FunctionResponse: &functionResponse{m.ToolCallID, name, map[string]string{key: m.Content}}}
}

func (t *translator) tools() error {
	r := t.from
	if len(r.Tools) == 0 {
		return nil
	}
	var declared []*genai.FunctionDeclaration
	for _, tool := range r.Tools {
		d := &genai.FunctionDeclaration{Name: tool.Name, Description: tool.Description}
		if len(bytes.TrimSpace(tool.Parameters)) > 0 {
			schema, warnings, err := simplify(tool.Parameters)
			if err != nil {
				return fault.Newf(fault.InvalidConfig, "tool %q: its parameters are not a JSON Schema of an object", tool.Name).WithCause(err)
			}
			for _, w := range warnings {
				t.warn("tool %q: %s", tool.Name, w)
			}
			if schema["type"] == nil {
				schema["type"] = "object"
			}
			if properties, _ := schema["properties"].(map[string]any); len(properties) > 0 || len(schema) > 1 {
				d.ParametersJsonSchema = schema
			}
		}
		declared = append(declared, d)
	}
	t.config.Tools = []*genai.Tool{{FunctionDeclarations: declared}}
	choice := &genai.FunctionCallingConfig{}
	switch r.ToolChoice {
	case "", "auto":
		return nil
	case "none":
		choice.Mode = genai.FunctionCallingConfigModeNone
	case "required":
		choice.Mode = genai.FunctionCallingConfigModeAny
	default:
		choice.Mode, choice.AllowedFunctionNames = genai.FunctionCallingConfigModeAny, []string{r.ToolChoice}
	}
	t.config.ToolConfig = &genai.ToolConfig{FunctionCallingConfig: choice}
	return nil
}

// maxStops is how many stop texts the service takes.
const maxStops = 5

func (t *translator) parameters() {
	r := t.from
	single := func(v *float64) *float32 {
		if v == nil {
			return nil
		}
		f := float32(*v)
		return &f
	}
	t.config.Temperature, t.config.TopP = single(r.Temperature), single(r.TopP)
	if r.TopK != nil {
		k := float32(*r.TopK)
		t.config.TopK = &k
	}
	if r.FrequencyPenalty != nil && *r.FrequencyPenalty != 0 {
		t.config.FrequencyPenalty = single(r.FrequencyPenalty)
	}
	if r.PresencePenalty != nil && *r.PresencePenalty != 0 {
		t.config.PresencePenalty = single(r.PresencePenalty)
	}
	if r.MaxTokens > 0 {
		t.config.MaxOutputTokens = int32(min(r.MaxTokens, math.MaxInt32))
	}
	t.config.StopSequences = r.Stop
	if len(r.Stop) > maxStops {
		t.config.StopSequences = r.Stop[:maxStops]
		t.warn("%d stop texts were left out; the service takes %d", len(r.Stop)-maxStops, maxStops)
	}
	t.thinking()
}

// thinking says how much the model may think. Models of version 3 take a level, those before a number of tokens.
func (t *translator) thinking() {
	budget, effort := t.from.ThinkingBudget, t.from.ReasoningEffort
	switch {
	case budget <= 0 && effort == "":
		return
	case !t.model.thinks():
		if budget > 0 {
			t.warn("thinking_budget was left out; model %q does not take it", t.from.Model)
		}
		if effort != "" {
			t.warn("reasoning_effort was left out; model %q does not take it", t.from.Model)
		}
		return
	}
	c := &genai.ThinkingConfig{IncludeThoughts: true}
	t.config.ThinkingConfig = c
	tokens := int32(min(budget, math.MaxInt32))
	switch {
	case budget > 0:
		c.ThinkingBudget = &tokens
		if effort != "" {
			t.warn("reasoning_effort was left out; the service does not take it together with thinking_budget")
		}
	case t.model.signs():
		c.ThinkingLevel = genai.ThinkingLevel(strings.ToUpper(effort))
	default:
		tokens = map[string]int32{"low": 1024, "medium": 8192}[effort]
		if tokens == 0 {
			tokens = 24576
		}
		c.ThinkingBudget = &tokens
	}
}

// safety adds the service's own settings: an object of category to threshold, in the service's names or short ones.
func (t *translator) safety() error {
	if len(bytes.TrimSpace(t.from.Safety)) == 0 {
		return nil
	}
	var settings map[string]string
	if err := json.Unmarshal(t.from.Safety, &settings); err != nil {
		return fault.New(fault.InvalidConfig, `safety settings are an object of category to threshold, like {"HARM_CATEGORY_HARASSMENT": "BLOCK_ONLY_HIGH"}`).WithCause(err)
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		category := strings.ToUpper(name)
		if !strings.HasPrefix(category, "HARM_CATEGORY_") {
			category = "HARM_CATEGORY_" + category
		}
		t.config.SafetySettings = append(t.config.SafetySettings, &genai.SafetySetting{
			Category: genai.HarmCategory(category), Threshold: genai.HarmBlockThreshold(strings.ToUpper(settings[name])),
		})
	}
	return nil
}

// shape asks for JSON. Where the service cannot hold the model to it, a text asks the model for it, which is returned.
func (t *translator) shape() (string, error) {
	const only = "Answer with one JSON object and nothing else: no text around it, no code fence."
	schema := t.from.Schema
	if schema == nil && !t.from.JSON {
		return "", nil
	}
	if len(t.from.Tools) > 0 && !t.model.signs() { // models before version 3 refuse tools together with JSON
		if schema == nil {
			return only, nil
		}
		return only + " It must be valid against this JSON Schema:\n" + payload.JSON(schema.JSON), nil
	}
	t.config.ResponseMIMEType = "application/json"
	if schema == nil {
		return "", nil
	}
	simple, warnings, err := simplify(schema.JSON)
	if err != nil {
		return "", fault.Newf(fault.InvalidConfig, "the shape %q of the answer is not a JSON Schema of an object", schema.Name).WithCause(err)
	}
	for _, w := range warnings {
		t.warn("the shape %q: %s", schema.Name, w)
	}
	t.config.ResponseJsonSchema = simple
	return "", nil
}

// model is what a model's name tells. Names without a version are taken for the newest.
type model struct{ major, minor int }

// parse reads names such as gemini-2.5-flash and models/gemini-3-pro-preview.
func parse(name string) model {
	_, rest, found := strings.Cut(strings.ToLower(name), "gemini-")
	if !found {
		return model{}
	}
	version, _, _ := strings.Cut(rest, "-")
	major, minor, _ := strings.Cut(version, ".")
	var m model
	var err error
	if m.major, err = strconv.Atoi(major); err != nil {
		return model{}
	}
	m.minor, _ = strconv.Atoi(minor) // none is 0
	return m
}

// signs says that the model is of version 3 or later: it signs its calls, wants the signatures back, takes a level of
// thinking, and gives JSON also with tools.
func (m model) signs() bool { return m.major == 0 || m.major >= 3 }

// thinks says that the model can be told how much to think.
func (m model) thinks() bool { return m.signs() || m.major == 2 && m.minor >= 5 }
