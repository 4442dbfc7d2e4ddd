package openai

import (
	"tandem/builtin/turn"
	"tandem/llm"
	"tandem/node"
)

// turns is the kind of node that has turns with models of this provider.
func turns() turn.Kind {
	return turn.Of[turnConfig](turn.Kind{
		Name: "AI_AGENT.OPENAI_CHATGPT", Title: node.Says("ChatGPT", "ChatGPT"),
		Description: node.Says("A turn with an OpenAI-compatible model, which may use the attached tools and memories.", "与兼容 OpenAI 的模型对话，可使用所附的工具与记忆。"),
		Temperature: new(0.7),
	})
}

// turnConfig is what a node says about a turn with a model of this provider.
type turnConfig struct {
	_ struct{} `need:"model|profile_id"`
	turn.Common
	Temperature      *float64 `json:"temperature" range:"0..2" doc:"How freely the model chooses its words." zh:"采样温度。"`
	TopP             *float64 `json:"top_p" range:"0..1" doc:"How much of what is likely the model chooses from." zh:"核采样概率。"`
	FrequencyPenalty *float64 `json:"frequency_penalty" range:"-2..2" doc:"How much words are avoided that come often." zh:"频率惩罚。"`
	PresencePenalty  *float64 `json:"presence_penalty" range:"-2..2" doc:"How much words are avoided that came before." zh:"存在惩罚。"`
	ReasoningEffort  string   `json:"reasoning_effort" enum:"low|medium|high" doc:"How much the model thinks before it answers." zh:"推理强度。"`
}

// Turn is the configuration of the turn.
func (c turnConfig) Turn(call *node.Call) (turn.Config, error) {
	return c.With(call, llm.Params{
		Temperature: c.Temperature, TopP: c.TopP, FrequencyPenalty: c.FrequencyPenalty, PresencePenalty: c.PresencePenalty,
		ReasoningEffort: c.ReasoningEffort,
	})
}
