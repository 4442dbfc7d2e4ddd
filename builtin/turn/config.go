package turn

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
)

// Common is what the configurations of all turns with a model have in common.
type Common struct {
	// Blocks of older files that mean nothing here.
	_ struct{} `dropped:"provider_config,model_config,openai_config,anthropic_config,gemini_config,claude_config"`

	Model        string     `json:"model" doc:"The model, by the name that the provider has for it." zh:"模型名称（以服务商为准）。"`
	ProfileID    string     `json:"profile_id" names:"profile" older:"llm_profile" doc:"The model profile: provider, model, credential and limits." zh:"模型配置档：服务商、模型、凭据和限额。"`
	SystemPrompt node.Words `json:"system_prompt" older:"system" prompt:"true" doc:"What the model is told about its part." zh:"系统提示词。"`
	UserPrompt   node.Words `json:"user_prompt" older:"user" prompt:"true" doc:"What the model is asked." zh:"用户提示词。"`
	Prompt       node.Words `json:"prompt" prompt:"true" doc:"What the model is asked, if user_prompt is not set." zh:"提示词：未设置 user_prompt 时采用。"`

	MaxTokens      int64           `json:"max_tokens" range:"1.." doc:"The most tokens of an answer." zh:"回答的最多令牌数。"`
	ResponseFormat string          `json:"response_format" enum:"text|json|schema" doc:"Whether the answer is text, JSON, or JSON of output_schema." zh:"回答格式：文本、JSON 或符合 output_schema 的 JSON。"`
	OutputSchema   node.Object     `json:"output_schema" doc:"The JSON Schema of the answer, for schema." zh:"回答的模式：schema 格式的 JSON Schema。"`
	MaxIterations  int             `json:"max_tool_iterations" range:"0..50" doc:"How often the model may use tools before it must answer." zh:"回答前最多使用工具的轮数。"`
	Parallel       bool            `json:"parallel_tool_calls" doc:"Whether it may use several tools at once." zh:"是否可同时使用多个工具。"`
	ToolApproval   json.RawMessage `json:"tool_approval" doc:"Whether a person is asked before tools are used: never, once, always, or a list of tools." zh:"使用工具前是否询问：never、once、always 或工具列表。"`
	HistorySize    int             `json:"history_size" range:"0.." doc:"How many earlier rounds of the conversation it is told." zh:"提供给模型的历史轮数。"`
	Stream         bool            `json:"stream" doc:"Whether the answer is handed out while it is written." zh:"是否流式输出。"`
	FirstToken     float64         `json:"first_token_timeout_seconds" range:"1.." doc:"How long to wait for the beginning of an answer, in seconds." zh:"等待首个令牌的时间（秒）。"`
	Total          float64         `json:"llm_timeout_seconds" range:"1.." doc:"How long to wait for a whole answer, in seconds." zh:"等待完整回答的时间（秒）。"`
	Fallbacks      []string        `json:"fallback_profiles" names:"profile" doc:"The profiles that are tried when the first fails." zh:"首选失败时依次尝试的配置档。"`

	// What older files have.
	GenerationConfig node.Of[generationConfig] `json:"generation_config" open:"true" doc:"Parameters as older files have them." zh:"旧文件中的参数。"`
	OutputProcessing node.Of[outputProcessing] `json:"output_processing" open:"true" doc:"The format of the answer as older files have it." zh:"旧文件中的输出设置。"`
}

func (c *Common) Defaults() {
	c.MaxTokens, c.ResponseFormat, c.MaxIterations, c.Parallel, c.HistorySize, c.Stream = 8192, "text", 10, true, 3, true
	c.FirstToken, c.Total = llm.DefaultFirstToken.Seconds(), llm.DefaultTotal.Seconds()
}

// Config is the configuration of a turn, whatever its kind: what all have, and what only some can say.
type Config struct {
	Common
	// Params are those of the completions.
	Params llm.Params
	// Messages are a whole conversation in the place of prompts, Tools those that the node lists by itself.
	Messages, Tools json.RawMessage
}

// Settings is a kind's own configuration.
type Settings interface {
	// Turn is what a turn needs of it.
	Turn(call *node.Call) (Config, error)
	// Base is [Common], which it embeds.
	Base() Common
}

// Base is what the configurations of all turns have in common.
func (c Common) Base() Common { return c }

// Configured says that a node sets a field by itself, in either spelling.
func Configured(call *node.Call, name string) bool {
	camel := ""
	for i, part := range strings.Split(name, "_") {
		if i > 0 && part != "" {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		camel += part
	}
	return !values.IsNull(json.RawMessage(gjson.GetBytes(call.Config, name).Raw)) ||
		!values.IsNull(json.RawMessage(gjson.GetBytes(call.Config, camel).Raw))
}

// Parameters are the parameters of a completion where they stand together: as a node of the kind LLM writes them, and in older files.
type Parameters struct {
	Temperature      *float64        `json:"temperature" range:"0..2" doc:"How freely the model chooses its words." zh:"采样温度。"`
	MaxTokens        int64           `json:"max_tokens" older:"max_output_tokens,max_completion_tokens" range:"1.." doc:"The most tokens of an answer." zh:"回答的最多令牌数。"`
	TopP             *float64        `json:"top_p" range:"0..1" doc:"How much of what is likely the model chooses from." zh:"核采样概率。"`
	TopK             *int64          `json:"top_k" range:"1.." doc:"How many words the model chooses from." zh:"候选词数量。"`
	Stop             json.RawMessage `json:"stop" older:"stop_sequences" takes:"text|list" doc:"Texts at which the answer ends." zh:"使回答结束的文本。"`
	FrequencyPenalty *float64        `json:"frequency_penalty" range:"-2..2" doc:"How much words are avoided that come often." zh:"频率惩罚。"`
	PresencePenalty  *float64        `json:"presence_penalty" range:"-2..2" doc:"How much words are avoided that came before." zh:"存在惩罚。"`
	ReasoningEffort  string          `json:"reasoning_effort" enum:"low|medium|high" doc:"How much the model thinks before it answers." zh:"推理强度。"`
}

// Params are the parameters as a provider takes them. What is wrong with one is said of the block that stands at a path.
func (p Parameters) Params(at string) (llm.Params, error) {
	out := llm.Params{
		Temperature: p.Temperature, MaxTokens: p.MaxTokens, TopP: p.TopP, TopK: p.TopK, FrequencyPenalty: p.FrequencyPenalty,
		PresencePenalty: p.PresencePenalty, ReasoningEffort: p.ReasoningEffort,
	}
	if values.IsNull(p.Stop) {
		return out, nil
	}
	if text, ok := values.Scalar(p.Stop); ok && values.Leading(p.Stop) == '"' {
		out.Stop = []string{text}
	} else if json.Unmarshal(p.Stop, &out.Stop) != nil {
		return out, fault.Newf(fault.InvalidConfig, `"%s.stop" must be a text or a list of texts`, at).With("path", "configurations."+at+".stop")
	}
	return out, nil
}

// generationConfig is the generation_config of older files.
type generationConfig struct {
	Parameters
	ResponseMimeType string      `json:"response_mime_type" doc:"application/json for an answer in JSON." zh:"回答的类型：要求 JSON 回答时为 application/json。"`
	ResponseSchema   node.Object `json:"response_schema" doc:"The JSON Schema of the answer." zh:"回答的模式：JSON Schema。"`
}

// outputProcessing is the output_processing of older files.
type outputProcessing struct {
	Format       string      `json:"format" older:"response_format" enum:"text|json|schema" doc:"The format of the answer." zh:"回答的格式。"`
	ParseJSON    bool        `json:"parse_json" doc:"Whether the answer is read as JSON." zh:"是否将回答解析为 JSON。"`
	OutputSchema node.Object `json:"output_schema" older:"schema" doc:"The JSON Schema of the answer." zh:"回答的模式：JSON Schema。"`
}

// With completes a configuration with what older files say in their blocks. What a node says by the present names counts.
func (c Common) With(call *node.Call, own llm.Params) (Config, error) {
	out := Config{Common: c, Params: own}
	generation, err := olderBlock[generationConfig](call, "generation_config", node.Object(c.GenerationConfig))
	if err != nil {
		return out, err
	}
	processing, err := olderBlock[outputProcessing](call, "output_processing", node.Object(c.OutputProcessing))
	if err != nil {
		return out, err
	}
	given, err := generation.Params("generation_config")
	if err != nil {
		return out, err
	}
	if out.Params = own.Or(given); out.Params.MaxTokens == 0 || Configured(call, "max_tokens") {
		out.Params.MaxTokens = c.MaxTokens
	}
	for _, schema := range []node.Object{processing.OutputSchema, generation.ResponseSchema} {
		if len(out.OutputSchema) == 0 {
			out.OutputSchema = schema
		}
	}
	if !Configured(call, "response_format") {
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
	if values.IsNull(json.RawMessage(block)) {
		return out, nil
	}
	var kept []values.Member
	for _, m := range values.Members(json.RawMessage(block)) {
		one := values.Object([]values.Member{{Key: m.Key, Value: json.RawMessage("null")}})
		if _, err := node.Configuration[T](one); err != nil {
			call.Log(node.Warn, fmt.Sprintf("%s.%s is not known here and was left out", name, m.Key), nil)
			continue
		}
		kept = append(kept, m)
	}
	if out, err = node.Configuration[T](values.Object(kept)); err != nil {
		wrong := fault.From(err)
		at := strings.TrimPrefix(fmt.Sprint(wrong.Details["path"]), "configurations.")
		return out, fault.Newf(fault.InvalidConfig, "%s: %s", name, wrong.Message).With("path", "configurations."+name+"."+at)
	}
	return out, nil
}
