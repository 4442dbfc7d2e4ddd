package builtin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/llm"
	"tandem/node"
)

// agentConfig is what the configurations of all turns with a model have in common.
type agentConfig struct {
	Model        string     `json:"model"`
	ProfileID    string     `json:"profile_id" older:"llm_profile"`
	SystemPrompt node.Words `json:"system_prompt" older:"system" prompt:"true"`
	UserPrompt   node.Words `json:"user_prompt" older:"user" prompt:"true"`
	Prompt       node.Words `json:"prompt" prompt:"true"`

	MaxTokens      int64           `json:"max_tokens" range:"1.."`
	ResponseFormat string          `json:"response_format" enum:"text|json|schema"`
	OutputSchema   node.Object     `json:"output_schema"`
	MaxIterations  int             `json:"max_tool_iterations" range:"0..50"`
	Parallel       bool            `json:"parallel_tool_calls"`
	ToolApproval   json.RawMessage `json:"tool_approval"`
	HistorySize    int             `json:"history_size" range:"0.."`
	Stream         bool            `json:"stream"`
	FirstToken     float64         `json:"first_token_timeout_seconds" range:"1.."`
	Total          float64         `json:"llm_timeout_seconds" range:"1.."`
	Fallbacks      []string        `json:"fallback_profiles"`

	// What older files have.
	GenerationConfig node.Object `json:"generation_config"`
	OutputProcessing node.Object `json:"output_processing"`
}

// providerBlocks are configurations of older files that mean nothing here; saving a workflow says so. read-only
var providerBlocks = []string{"provider_config", "model_config", "openai_config", "anthropic_config", "gemini_config", "claude_config"}

func (c *agentConfig) Defaults() {
	c.MaxTokens, c.ResponseFormat, c.MaxIterations, c.Parallel, c.HistorySize, c.Stream = 8192, "text", 10, true, 3, true
	c.FirstToken, c.Total = llm.DefaultFirstToken.Seconds(), llm.DefaultTotal.Seconds()
}

// turnConfig is the configuration of a turn, whatever its kind: what all have, and what only some can say.
type turnConfig struct {
	agentConfig
	params   llm.Params
	messages json.RawMessage
	tools    json.RawMessage
}

// turnSettings is a kind's own configuration.
type turnSettings interface {
	turn(call *node.Call) (turnConfig, error)
}

type openAIConfig struct {
	agentConfig
	Temperature      *float64 `json:"temperature" range:"0..2"`
	TopP             *float64 `json:"top_p" range:"0..1"`
	FrequencyPenalty *float64 `json:"frequency_penalty" range:"-2..2"`
	PresencePenalty  *float64 `json:"presence_penalty" range:"-2..2"`
	ReasoningEffort  string   `json:"reasoning_effort" enum:"low|medium|high"`
}

func (c openAIConfig) turn(call *node.Call) (turnConfig, error) {
	return c.agentConfig.with(call, llm.Params{
		Temperature: c.Temperature, TopP: c.TopP, FrequencyPenalty: c.FrequencyPenalty, PresencePenalty: c.PresencePenalty, ReasoningEffort: c.ReasoningEffort,
	})
}

type claudeConfig struct {
	agentConfig
	Temperature    *float64        `json:"temperature" range:"0..1"`
	TopP           *float64        `json:"top_p" range:"0..1"`
	TopK           *int64          `json:"top_k" range:"1.."`
	ThinkingBudget int64           `json:"thinking_budget_tokens" range:"0.."`
	ThinkingMode   json.RawMessage `json:"thinking_mode"`
}

// thinkingMode is the budget that the older switch stands for.
const thinkingMode = 4096

func (c claudeConfig) turn(call *node.Call) (turnConfig, error) {
	if c.ThinkingBudget == 0 && !isNull(c.ThinkingMode) && string(c.ThinkingMode) != "false" {
		c.ThinkingBudget = thinkingMode
	}
	return c.agentConfig.with(call, llm.Params{Temperature: c.Temperature, TopP: c.TopP, TopK: c.TopK, ThinkingBudget: c.ThinkingBudget})
}

type geminiConfig struct {
	agentConfig
	Temperature    *float64    `json:"temperature" range:"0..2"`
	TopP           *float64    `json:"top_p" range:"0..1"`
	TopK           *int64      `json:"top_k" range:"1.."`
	SafetySettings node.Object `json:"safety_settings"`
}

func (c geminiConfig) turn(call *node.Call) (turnConfig, error) {
	return c.agentConfig.with(call, llm.Params{Temperature: c.Temperature, TopP: c.TopP, TopK: c.TopK, Safety: json.RawMessage(c.SafetySettings)})
}

type llmConfig struct {
	agentConfig
	Temperature *float64        `json:"temperature" range:"0..2"`
	TopP        *float64        `json:"top_p" range:"0..1"`
	Messages    json.RawMessage `json:"messages" prompt:"true"`
	Tools       json.RawMessage `json:"tools"`
	Parameters  llmParameters   `json:"parameters"`
}

// Defaults are those of all turns, but for the pieces of an answer: they are told to those who ask for them.
func (c *llmConfig) Defaults() {
	c.agentConfig.Defaults()
	c.Stream = false
}

func (c llmConfig) turn(call *node.Call) (turnConfig, error) {
	given, err := c.Parameters.params("parameters")
	if err != nil {
		return turnConfig{}, err
	}
	if !configured(call, "max_tokens") && given.MaxTokens > 0 {
		c.MaxTokens = given.MaxTokens
	}
	out, err := c.agentConfig.with(call, llm.Params{Temperature: c.Temperature, TopP: c.TopP}.Or(given))
	out.messages, out.tools = c.Messages, c.Tools
	return out, err
}

// configured says that a node sets a field by itself, in either spelling.
func configured(call *node.Call, name string) bool {
	camel := ""
	for i, part := range strings.Split(name, "_") {
		if i > 0 && part != "" {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		camel += part
	}
	return !isNull(json.RawMessage(gjson.GetBytes(call.Config, name).Raw)) || !isNull(json.RawMessage(gjson.GetBytes(call.Config, camel).Raw))
}

// llmParameters are the parameters of a completion where they stand together: as a node of the kind LLM writes them, and in older files.
type llmParameters struct {
	Temperature      *float64        `json:"temperature" range:"0..2"`
	MaxTokens        int64           `json:"max_tokens" older:"max_output_tokens,max_completion_tokens" range:"1.."`
	TopP             *float64        `json:"top_p" range:"0..1"`
	TopK             *int64          `json:"top_k" range:"1.."`
	Stop             json.RawMessage `json:"stop" older:"stop_sequences"`
	FrequencyPenalty *float64        `json:"frequency_penalty" range:"-2..2"`
	PresencePenalty  *float64        `json:"presence_penalty" range:"-2..2"`
	ReasoningEffort  string          `json:"reasoning_effort" enum:"low|medium|high"`
}

func (p llmParameters) params(at string) (llm.Params, error) {
	out := llm.Params{
		Temperature: p.Temperature, MaxTokens: p.MaxTokens, TopP: p.TopP, TopK: p.TopK, FrequencyPenalty: p.FrequencyPenalty, PresencePenalty: p.PresencePenalty, ReasoningEffort: p.ReasoningEffort,
	}
	if isNull(p.Stop) {
		return out, nil
	}
	if text, ok := scalarText(p.Stop); ok && leading(p.Stop) == '"' {
		out.Stop = []string{text}
	} else if json.Unmarshal(p.Stop, &out.Stop) != nil {
		return out, fault.Newf(fault.InvalidConfig, `"%s.stop" must be a text or a list of texts`, at).With("path", "configurations."+at+".stop")
	}
	return out, nil
}

// generationConfig is the generation_config of older files.
type generationConfig struct {
	llmParameters
	ResponseMimeType string      `json:"response_mime_type"`
	ResponseSchema   node.Object `json:"response_schema"`
}

// outputProcessing is the output_processing of older files.
type outputProcessing struct {
	Format       string      `json:"format" older:"response_format" enum:"text|json|schema"`
	ParseJSON    bool        `json:"parse_json"`
	OutputSchema node.Object `json:"output_schema" older:"schema"`
}

// with completes a configuration with what older files say in their blocks. What a node says by the present names counts.
func (c agentConfig) with(call *node.Call, own llm.Params) (turnConfig, error) {
	out := turnConfig{agentConfig: c, params: own}
	generation, err := olderBlock[generationConfig](call, "generation_config", c.GenerationConfig)
	if err != nil {
		return out, err
	}
	processing, err := olderBlock[outputProcessing](call, "output_processing", c.OutputProcessing)
	if err != nil {
		return out, err
	}
	given, err := generation.params("generation_config")
	if err != nil {
		return out, err
	}
	if out.params = own.Or(given); out.params.MaxTokens == 0 || configured(call, "max_tokens") {
		out.params.MaxTokens = c.MaxTokens
	}
	for _, schema := range []node.Object{processing.OutputSchema, generation.ResponseSchema} {
		if len(out.OutputSchema) == 0 {
			out.OutputSchema = schema
		}
	}
	if !configured(call, "response_format") {
		switch {
		case len(out.OutputSchema) > 0:
			out.ResponseFormat = "schema"
		case processing.ParseJSON, processing.Format == "json", strings.EqualFold(generation.ResponseMimeType, "application/json"):
			out.ResponseFormat = "json"
		}
	}
	if out.ResponseFormat == "json" && len(out.OutputSchema) > 0 {
		out.ResponseFormat = "schema" // any object was asked for, and then which
	}
	return out, nil
}

// olderBlock reads a block of older files. What it has beside the names that are known means nothing here and is left out.
func olderBlock[T any](call *node.Call, name string, block node.Object) (out T, err error) {
	if isNull(json.RawMessage(block)) {
		return out, nil
	}
	var kept []member
	for _, m := range members(json.RawMessage(block)) {
		one := object([]member{{m.key, json.RawMessage("null")}})
		if _, err := node.Configuration[T](one); err != nil {
			call.Log(node.Warn, fmt.Sprintf("%s.%s is not known here and was left out", name, m.key), nil)
			continue
		}
		kept = append(kept, m)
	}
	if out, err = node.Configuration[T](object(kept)); err != nil {
		wrong := fault.From(err)
		at := strings.TrimPrefix(fmt.Sprint(wrong.Details["path"]), "configurations.")
		return out, fault.Newf(fault.InvalidConfig, "%s: %s", name, wrong.Message).With("path", "configurations."+name+"."+at)
	}
	return out, nil
}

// promptFields are the configurations that a model is told, in all their spellings. read-only
var promptFields = []string{"system_prompt", "systemPrompt", "system", "user_prompt", "userPrompt", "user", "prompt", "messages"}

// promptNames are what the placeholders of prompts find first: the variables that the input brings for them, then the input.
func promptNames() map[string]func(json.RawMessage) json.RawMessage {
	own := make(map[string]func(json.RawMessage) json.RawMessage, len(promptFields))
	for _, name := range promptFields {
		own[name] = withVariables
	}
	return own
}

func withVariables(input json.RawMessage) json.RawMessage {
	all := members(input)
	i := slices.IndexFunc(all, func(m member) bool { return m.key == "variables" && isObject(m.value) })
	if i < 0 {
		return input
	}
	return object(overlay(all, members(all[i].value)...))
}
