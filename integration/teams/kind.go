package teams

import (
	"tandem/builtin/ask"
	"tandem/node"
)

type askConfig struct {
	ask.Config
	ChannelID node.Template `json:"channel_id" doc:"The channel." zh:"频道编号。"`
	User      node.Template `json:"user" doc:"The user, in the place of a channel." zh:"代替频道的用户。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *askConfig) Defaults() { c.Config.Defaults() }

// interaction asks in Microsoft Teams.
func interaction(d ask.Deps) node.Kind {
	return ask.Kind(d, node.About{
		Name: "HUMAN_IN_THE_LOOP.TEAMS_INTERACTION", Title: node.Says("Ask in Teams", "Teams 询问"),
		Description: node.Says("Asks people in Microsoft Teams with an adaptive card.", "在 Microsoft Teams 中用自适应卡片询问。"),
		Needs:       node.Needs{Credential: []string{credentialType}},
		Examples: []node.Example{
			{
				Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
				Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "user": "29:ann", "approvers": ["teams:29:ann"], "credential_id": "teams_bot"}`,
				Input:   `{"invoice": 7}`,
				Replies: []string{`approve`},
				Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "approve", "user_id": "teams:29:ann", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "teams:29:ann", "approvals": [{"person": "teams:29:ann", "outcome": "confirmed", "data": "…", "channel": "teams", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "approve", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
			},
		},
	}, ask.Medium{Channel: Name}, func(cfg askConfig) (ask.Asking, error) {
		return ask.Asking{Settings: map[string]any{"channel_id": string(cfg.ChannelID), "user": string(cfg.User)}}, nil
	})
}
