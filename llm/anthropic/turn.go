package anthropic

import (
	"encoding/json"

	"tandem/builtin/turn"
	"tandem/builtin/values"
	"tandem/llm"
	"tandem/node"
)

// turns is the kind of node that has turns with models of this provider.
func turns() turn.Kind {
	return turn.Of[turnConfig](turn.Kind{
		Name: "AI_AGENT.ANTHROPIC_CLAUDE", Title: node.Says("Claude", "Claude"),
		Description: node.Says("A turn with a Claude model, which may use the attached tools and memories.", "与 Claude 模型对话，可使用所附的工具与记忆。"),
		Temperature: new(0.7),
	})
}

// turnConfig is what a node says about a turn with a model of this provider.
type turnConfig struct {
	_ struct{} `need:"model|profile_id"`
	turn.Common
	Temperature    *float64        `json:"temperature" range:"0..1" doc:"How freely the model chooses its words." zh:"采样温度。"`
	TopP           *float64        `json:"top_p" range:"0..1" doc:"How much of what is likely the model chooses from." zh:"核采样概率。"`
	TopK           *int64          `json:"top_k" range:"1.." doc:"How many words the model chooses from." zh:"候选词数量。"`
	ThinkingBudget int64           `json:"thinking_budget_tokens" range:"0.." doc:"How many tokens the model may think; 0 for none." zh:"思考可用的令牌数；0 表示不思考。"`
	ThinkingMode   json.RawMessage `json:"thinking_mode" doc:"What older files have for thinking_budget_tokens." zh:"思考模式：旧文件中代替 thinking_budget_tokens 的设置。"`
}

// thinkingMode is the budget that the older switch stands for.
const thinkingMode = 4096

// Turn is the configuration of the turn.
func (c turnConfig) Turn(call *node.Call) (turn.Config, error) {
	if c.ThinkingBudget == 0 && !values.IsNull(c.ThinkingMode) && string(c.ThinkingMode) != "false" {
		c.ThinkingBudget = thinkingMode
	}
	return c.With(call, llm.Params{Temperature: c.Temperature, TopP: c.TopP, TopK: c.TopK, ThinkingBudget: c.ThinkingBudget})
}
