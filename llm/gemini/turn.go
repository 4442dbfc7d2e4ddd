package gemini

import (
	"encoding/json"

	"tandem/builtin/turn"
	"tandem/llm"
	"tandem/node"
)

// turns is the kind of node that has turns with models of this provider.
func turns() turn.Kind {
	return turn.Of[turnConfig](turn.Kind{
		Name: "AI_AGENT.GOOGLE_GEMINI", Title: node.Says("Gemini", "Gemini"),
		Description: node.Says("A turn with a Gemini model, which may use the attached tools and memories.", "与 Gemini 模型对话，可使用所附的工具与记忆。"),
		Temperature: new(0.7), TopP: new(0.9),
	})
}

// turnConfig is what a node says about a turn with a model of this provider.
type turnConfig struct {
	_ struct{} `need:"model|profile_id"`
	turn.Common
	Temperature    *float64    `json:"temperature" range:"0..2" doc:"How freely the model chooses its words." zh:"采样温度。"`
	TopP           *float64    `json:"top_p" range:"0..1" doc:"How much of what is likely the model chooses from." zh:"核采样概率。"`
	TopK           *int64      `json:"top_k" range:"1.." doc:"How many words the model chooses from." zh:"候选词数量。"`
	SafetySettings node.Object `json:"safety_settings" doc:"What the provider is to block, by category." zh:"按类别设置的安全过滤。"`
}

// Turn is the configuration of the turn.
func (c turnConfig) Turn(call *node.Call) (turn.Config, error) {
	return c.With(call, llm.Params{Temperature: c.Temperature, TopP: c.TopP, TopK: c.TopK, Safety: json.RawMessage(c.SafetySettings)})
}
