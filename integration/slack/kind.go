package slack

import (
	"tandem/builtin/ask"
	"tandem/node"
)

type askConfig struct {
	ask.Config
	To         node.Template `json:"channel" required:"true" doc:"The channel or user that is asked." zh:"频道或用户。"`
	AutoThread bool          `json:"auto_thread" doc:"Whether replies are kept in a thread." zh:"是否在话题中回复。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *askConfig) Defaults() {
	c.Config.Defaults()
	c.AutoThread = true
}

// interaction asks in Slack.
func interaction(d ask.Deps) node.Kind {
	return ask.Kind(d, node.About{
		Name: "HUMAN_IN_THE_LOOP.SLACK_INTERACTION", Title: node.Says("Ask in Slack", "Slack 询问"),
		Description: node.Says("Asks people in Slack, with buttons and forms, and reads replies in the thread.", "在 Slack 中用按钮和表单询问，并读取话题中的回复。"),
		Needs:       node.Needs{Credential: []string{credentialType}},
		Examples: []node.Example{
			{
				Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
				Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "channel": "#ops", "approvers": ["slack:U1"], "credential_id": "slack_bot"}`,
				Input:   `{"invoice": 7}`,
				Replies: []string{`approve`},
				Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "approve", "user_id": "slack:U1", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "slack:U1", "approvals": [{"person": "slack:U1", "outcome": "confirmed", "data": "…", "channel": "slack", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "approve", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
			},
		},
	}, ask.Medium{Channel: Name}, func(cfg askConfig) (ask.Asking, error) {
		return ask.Asking{Settings: map[string]any{"channel": string(cfg.To), "auto_thread": cfg.AutoThread}}, nil
	})
}
