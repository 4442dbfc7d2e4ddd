package ai

import (
	"encoding/json"

	"tandem/builtin/turn"
	"tandem/llm"
	"tandem/node"
)

type llmConfig struct {
	_ struct{} `must:"profile_id" need:"prompt|messages|user_prompt|system_prompt"`
	turn.Common
	Temperature *float64        `json:"temperature" range:"0..2" doc:"How freely the model chooses its words." zh:"采样温度。"`
	TopP        *float64        `json:"top_p" range:"0..1" doc:"How much of what is likely the model chooses from." zh:"核采样概率。"`
	Messages    json.RawMessage `json:"messages" prompt:"true" takes:"list" doc:"A whole conversation, in the place of the prompts." zh:"代替提示词的完整对话。"`
	Tools       json.RawMessage `json:"tools" names:"tool" takes:"list" doc:"Tools besides those attached: server/tool, or functions that end the turn." zh:"附加节点之外的工具：server/tool，或结束回合的函数。"`
	Parameters  turn.Parameters `json:"parameters" doc:"Parameters of the completion, together." zh:"集中书写的生成参数。"`
}

// Defaults are those of all turns, except for the pieces of an answer: they are told to those who ask for them.
func (c *llmConfig) Defaults() {
	c.Common.Defaults()
	c.Stream = false
}

func (c llmConfig) Turn(call *node.Call) (turn.Config, error) {
	given, err := c.Parameters.Params("parameters")
	if err != nil {
		return turn.Config{}, err
	}
	if !turn.Configured(call, "max_tokens") && given.MaxTokens > 0 {
		c.MaxTokens = given.MaxTokens
	}
	out, err := c.Common.With(call, llm.Params{Temperature: c.Temperature, TopP: c.TopP}.Or(given))
	out.Messages, out.Tools = c.Messages, c.Tools
	return out, err
}
