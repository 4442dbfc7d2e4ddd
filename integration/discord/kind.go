package discord

import (
	"tandem/builtin/ask"
	"tandem/node"
)

type askConfig struct {
	ask.Config
	ServerID  node.Template `json:"server_id" required:"true" doc:"The server." zh:"服务器编号。"`
	ChannelID node.Template `json:"channel_id" required:"true" doc:"The channel." zh:"频道编号。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *askConfig) Defaults() { c.Config.Defaults() }

// interaction asks in Discord.
func interaction(d ask.Deps) node.Kind {
	return ask.Kind(d, node.About{
		Name: "HUMAN_IN_THE_LOOP.DISCORD_INTERACTION", Title: node.Says("Ask in Discord", "Discord 询问"),
		Description: node.Says("Asks people in Discord, with buttons, selects and forms, and reads replies.", "在 Discord 中用按钮、下拉框和表单询问，并读取回复。"),
		Needs:       node.Needs{Credential: []string{credentialType}},
		Examples: []node.Example{
			{
				Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
				Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "server_id": "1", "channel_id": "55", "approvers": ["discord:42"], "credential_id": "discord_bot"}`,
				Input:   `{"invoice": 7}`,
				Replies: []string{`approve`},
				Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "approve", "user_id": "discord:42", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "discord:42", "approvals": [{"person": "discord:42", "outcome": "confirmed", "data": "…", "channel": "discord", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "approve", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
			},
		},
	}, ask.Medium{Channel: Name}, func(cfg askConfig) (ask.Asking, error) {
		return ask.Asking{Settings: map[string]any{"server_id": string(cfg.ServerID), "channel_id": string(cfg.ChannelID)}}, nil
	})
}
