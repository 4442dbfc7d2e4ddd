package mail

import (
	"maps"

	"tandem/builtin/ask"
	"tandem/fault"
	"tandem/human"
	"tandem/node"
)

type askConfig struct {
	ask.Config
	Recipients []string `json:"recipient_emails" required:"true" doc:"The addresses that are written to." zh:"收件地址。"`
	Sender     string   `json:"sender_email" doc:"The address that the mail comes from." zh:"发件地址。"`
	// IMAP is the account that replies are read from, when credential_id only sends.
	IMAP string `json:"imap_credential_id" doc:"The name or the id of the credential that replies are read with, if credential_id only sends." zh:"读取回复所用凭据的名称或编号（credential_id 仅能发送时）。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *askConfig) Defaults() {
	c.Config.Defaults()
	c.TimeoutSeconds = 86400
}

func (c *askConfig) asking(more map[string]any) (ask.Asking, error) {
	if len(c.Recipients) == 0 {
		return ask.Asking{}, fault.New(fault.InvalidConfig, "recipient_emails: there is nobody to write to").With("path",
			"configurations.recipient_emails")
	}
	settings := map[string]any{"recipient_emails": c.Recipients}
	if c.Sender != "" {
		settings["sender_email"] = c.Sender
	}
	maps.Copy(settings, more)
	return ask.Asking{Settings: settings, Approvers: c.Recipients, InCredential: c.IMAP}, nil
}

// medium is what both kinds say of the channel.
func medium() ask.Medium { return ask.Medium{Channel: human.Email, Names: "recipient_emails"} }

// gmailInteraction asks by mail through Gmail, or any server of mail.
func gmailInteraction(d ask.Deps) node.Kind {
	return ask.Kind(d, node.About{
		Name: "HUMAN_IN_THE_LOOP.GMAIL_INTERACTION", Title: node.Says("Ask by Gmail", "Gmail 询问"),
		Description: node.Says("Asks people by mail through Gmail, or any SMTP and IMAP server, and reads their replies.", "通过 Gmail（或任意 SMTP、IMAP 服务器）发送邮件询问并读取回复。"),
		Needs:       node.Needs{Credential: []string{typeGoogle, typeSMTP}},
		Examples: []node.Example{
			{
				Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
				Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "recipient_emails": ["ann@example.org"], "sender_email": "bot@tandem.example", "credential_id": "team_mailbox"}`,
				Input:   `{"invoice": 7}`,
				Replies: []string{`I approve.`},
				Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "I approve.", "user_id": "mail:ann@example.org", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "mail:ann@example.org", "approvals": [{"person": "mail:ann@example.org", "outcome": "confirmed", "data": "…", "channel": "email", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "I approve.", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
			},
		},
	}, medium(), func(cfg askConfig) (ask.Asking, error) { return cfg.asking(nil) })
}

type outlookConfig struct {
	askConfig
	PriorityLevel string `json:"priority_level" enum:"low|normal|high" doc:"The priority of the mail." zh:"邮件优先级。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *outlookConfig) Defaults() {
	c.askConfig.Defaults()
	c.PriorityLevel = "normal"
}

// outlookInteraction asks by mail through Outlook.
func outlookInteraction(d ask.Deps) node.Kind {
	return ask.Kind(d, node.About{
		Name: "HUMAN_IN_THE_LOOP.OUTLOOK_INTERACTION", Title: node.Says("Ask by Outlook", "Outlook 询问"),
		Description: node.Says("Asks people by mail through Outlook and reads their replies.", "通过 Outlook 发送邮件询问并读取回复。"),
		Needs:       node.Needs{Credential: []string{typeMicrosoft, typeSMTP}},
		Examples: []node.Example{
			{
				Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
				Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "recipient_emails": ["ann@example.org"], "sender_email": "bot@tandem.example", "priority_level": "high", "credential_id": "team_mailbox"}`,
				Input:   `{"invoice": 7}`,
				Replies: []string{`I approve.`},
				Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "I approve.", "user_id": "mail:ann@example.org", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "mail:ann@example.org", "approvals": [{"person": "mail:ann@example.org", "outcome": "confirmed", "data": "…", "channel": "email", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "I approve.", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
			},
		},
	}, medium(), func(cfg outlookConfig) (ask.Asking, error) {
		return cfg.asking(map[string]any{"priority_level": cfg.PriorityLevel})
	})
}
