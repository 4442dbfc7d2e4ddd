package ask

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"tandem/fault"
	"tandem/human"
	"tandem/node"
	"tandem/workflow"
)

// The kinds that ask in one medium. What its channel has to know goes with the question as settings.

// The media that vendors have channels for.
const (
	mediumSlack    = "slack"
	mediumDiscord  = "discord"
	mediumTelegram = "telegram"
	mediumTeams    = "teams"
)

type mailConfig struct {
	humanConfig
	Recipients []string `json:"recipient_emails" required:"true" doc:"The addresses that are written to." zh:"收件地址。"`
	Sender     string   `json:"sender_email" doc:"The address that the mail comes from." zh:"发件地址。"`
	// IMAP is the account that replies are read from, when credential_id only sends.
	IMAP string `json:"imap_credential_id" doc:"The credential that replies are read with, if credential_id only sends." zh:"读取回复所用的凭据（credential_id 仅能发送时）。"`
}

func (c *mailConfig) Defaults() {
	c.humanConfig.Defaults()
	c.TimeoutSeconds = 86400
}

func (c *mailConfig) asking(more map[string]any) (*humanAsking, error) {
	if len(c.Recipients) == 0 {
		return nil, fault.New(fault.InvalidConfig, "recipient_emails: there is nobody to write to").With("path", "configurations.recipient_emails")
	}
	settings := map[string]any{"recipient_emails": c.Recipients}
	if c.Sender != "" {
		settings["sender_email"] = c.Sender
	}
	for name, value := range more { // order does not matter: it becomes a map
		settings[name] = value
	}
	return &humanAsking{humanConfig: c.humanConfig, medium: human.Email, settings: settings, approvers: c.Recipients, in: c.IMAP}, nil
}

func gmailInteraction() node.Kind {
	return humanKind(
		node.About{
			Name: "HUMAN_IN_THE_LOOP.GMAIL_INTERACTION", Title: node.Says("Ask by Gmail", "Gmail 询问"),
			Description: node.Says("Asks people by mail through Gmail, or any SMTP and IMAP server, and reads their replies.", "通过 Gmail（或任意 SMTP、IMAP 服务器）发送邮件询问并读取回复。"),
			Effect:      workflow.Once, OnUnknown: workflow.OnUnknownRetry, // a second copy of a question leads to the same interaction
			Keys: humanKeys(), Aliases: humanAliases(),
			Needs:  node.Needs{Credential: []string{"google_oauth", "smtp"}},
			Inputs: humanInputs(),
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
					Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "recipient_emails": ["ann@example.org"], "sender_email": "bot@tandem.example", "credential_id": "team_mailbox"}`,
					Input:   `{"invoice": 7}`,
					Replies: []string{`I approve.`},
					Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "I approve.", "user_id": "mail:ann@example.org", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "mail:ann@example.org", "approvals": [{"person": "mail:ann@example.org", "outcome": "confirmed", "data": "…", "channel": "email", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "I approve.", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
				},
			},
		},
		func(_ *node.Call, cfg mailConfig) (*humanAsking, error) { return cfg.asking(nil) },
		func(p *node.Planning, cfg *mailConfig) { planHuman(p, &cfg.humanConfig, human.Email, nil) })
}

type outlookConfig struct {
	mailConfig
	PriorityLevel string `json:"priority_level" enum:"low|normal|high" doc:"The priority of the mail." zh:"邮件优先级。"`
}

func (c *outlookConfig) Defaults() {
	c.mailConfig.Defaults()
	c.PriorityLevel = "normal"
}

func outlookInteraction() node.Kind {
	return humanKind(
		node.About{
			Name: "HUMAN_IN_THE_LOOP.OUTLOOK_INTERACTION", Title: node.Says("Ask by Outlook", "Outlook 询问"),
			Description: node.Says("Asks people by mail through Outlook and reads their replies.", "通过 Outlook 发送邮件询问并读取回复。"),
			Effect:      workflow.Once, OnUnknown: workflow.OnUnknownRetry, // a second copy of a question leads to the same interaction
			Keys: humanKeys(), Aliases: humanAliases(),
			Needs:  node.Needs{Credential: []string{"microsoft_oauth", "smtp"}},
			Inputs: humanInputs(),
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
					Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "recipient_emails": ["ann@example.org"], "sender_email": "bot@tandem.example", "priority_level": "high", "credential_id": "team_mailbox"}`,
					Input:   `{"invoice": 7}`,
					Replies: []string{`I approve.`},
					Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "I approve.", "user_id": "mail:ann@example.org", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "mail:ann@example.org", "approvals": [{"person": "mail:ann@example.org", "outcome": "confirmed", "data": "…", "channel": "email", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "I approve.", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
				},
			},
		},
		func(_ *node.Call, cfg outlookConfig) (*humanAsking, error) {
			return cfg.asking(map[string]any{"priority_level": cfg.PriorityLevel})
		}, func(p *node.Planning, cfg *outlookConfig) { planHuman(p, &cfg.humanConfig, human.Email, nil) })
}

type slackAskConfig struct {
	humanConfig
	To         node.Template `json:"channel" required:"true" doc:"The channel or user that is asked." zh:"频道或用户。"`
	AutoThread bool          `json:"auto_thread" doc:"Whether replies are kept in a thread." zh:"是否在话题中回复。"`
}

func (c *slackAskConfig) Defaults() {
	c.humanConfig.Defaults()
	c.AutoThread = true
}

func slackInteraction() node.Kind {
	return humanKind(
		node.About{
			Name: "HUMAN_IN_THE_LOOP.SLACK_INTERACTION", Title: node.Says("Ask in Slack", "Slack 询问"),
			Description: node.Says("Asks people in Slack, with buttons and forms, and reads replies in the thread.", "在 Slack 中用按钮和表单询问，并读取话题中的回复。"),
			Effect:      workflow.Once, OnUnknown: workflow.OnUnknownRetry, // a second copy of a question leads to the same interaction
			Keys: humanKeys(), Aliases: humanAliases(),
			Needs:  node.Needs{Credential: []string{"slack_bot"}},
			Inputs: humanInputs(),
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
					Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "channel": "#ops", "approvers": ["slack:U1"], "credential_id": "slack_bot"}`,
					Input:   `{"invoice": 7}`,
					Replies: []string{`approve`},
					Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "approve", "user_id": "slack:U1", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "slack:U1", "approvals": [{"person": "slack:U1", "outcome": "confirmed", "data": "…", "channel": "slack", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "approve", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
				},
			},
		},
		func(_ *node.Call, cfg slackAskConfig) (*humanAsking, error) {
			return &humanAsking{humanConfig: cfg.humanConfig, medium: mediumSlack, settings: map[string]any{"channel": string(cfg.To), "auto_thread": cfg.AutoThread}}, nil
		}, func(p *node.Planning, cfg *slackAskConfig) { planHuman(p, &cfg.humanConfig, mediumSlack, nil) })
}

type discordAskConfig struct {
	humanConfig
	ServerID  node.Template `json:"server_id" required:"true" doc:"The server." zh:"服务器编号。"`
	ChannelID node.Template `json:"channel_id" required:"true" doc:"The channel." zh:"频道编号。"`
}

func (c *discordAskConfig) Defaults() { c.humanConfig.Defaults() }

func discordInteraction() node.Kind {
	return humanKind(
		node.About{
			Name: "HUMAN_IN_THE_LOOP.DISCORD_INTERACTION", Title: node.Says("Ask in Discord", "Discord 询问"),
			Description: node.Says("Asks people in Discord, with buttons, selects and forms, and reads replies.", "在 Discord 中用按钮、下拉框和表单询问，并读取回复。"),
			Effect:      workflow.Once, OnUnknown: workflow.OnUnknownRetry, // a second copy of a question leads to the same interaction
			Keys: humanKeys(), Aliases: humanAliases(),
			Needs:  node.Needs{Credential: []string{"discord_bot"}},
			Inputs: humanInputs(),
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
					Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "server_id": "1", "channel_id": "55", "approvers": ["discord:42"], "credential_id": "discord_bot"}`,
					Input:   `{"invoice": 7}`,
					Replies: []string{`approve`},
					Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "approve", "user_id": "discord:42", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "discord:42", "approvals": [{"person": "discord:42", "outcome": "confirmed", "data": "…", "channel": "discord", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "approve", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
				},
			},
		},
		func(_ *node.Call, cfg discordAskConfig) (*humanAsking, error) {
			return &humanAsking{humanConfig: cfg.humanConfig, medium: mediumDiscord, settings: map[string]any{"server_id": string(cfg.ServerID), "channel_id": string(cfg.ChannelID)}}, nil
		}, func(p *node.Planning, cfg *discordAskConfig) { planHuman(p, &cfg.humanConfig, mediumDiscord, nil) })
}

type telegramAskConfig struct {
	humanConfig
	ChatID      node.Scalar     `json:"chat_id" required:"true" doc:"The chat." zh:"聊天编号。"`
	TargetUsers []node.Scalar   `json:"target_users" doc:"Who of the chat may answer." zh:"可以答复的用户。"`
	Keyboard    json.RawMessage `json:"inline_keyboard" takes:"list" doc:"Buttons of your own." zh:"自定义按钮。"`
	AllowText   bool            `json:"allow_text_responses" doc:"Whether an answer may be written." zh:"是否允许文字答复。"`
	Patterns    []string        `json:"allowed_response_patterns" doc:"Regular expressions that written answers must match." zh:"文字答复须匹配的正则表达式。"`
}

func (c *telegramAskConfig) Defaults() {
	c.humanConfig.Defaults()
	c.AllowText = true
}

func telegramInteraction() node.Kind {
	return humanKind(
		node.About{
			Name: "HUMAN_IN_THE_LOOP.TELEGRAM_INTERACTION", Title: node.Says("Ask in Telegram", "Telegram 询问"),
			Description: node.Says("Asks people in Telegram, with buttons, and reads replies.", "在 Telegram 中用按钮询问，并读取回复。"),
			Effect:      workflow.Once, OnUnknown: workflow.OnUnknownRetry, // a second copy of a question leads to the same interaction
			Keys: humanKeys(), Aliases: humanAliases(),
			Needs:  node.Needs{Credential: []string{"telegram_bot"}},
			Inputs: humanInputs(),
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
					Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "chat_id": 42, "approvers": ["telegram:42"], "credential_id": "telegram_bot"}`,
					Input:   `{"invoice": 7}`,
					Replies: []string{`approve`},
					Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "approve", "user_id": "telegram:42", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "telegram:42", "approvals": [{"person": "telegram:42", "outcome": "confirmed", "data": "…", "channel": "telegram", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "approve", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
				},
			},
		},
		func(_ *node.Call, cfg telegramAskConfig) (*humanAsking, error) {
			for n, pattern := range cfg.Patterns {
				if _, err := regexp.Compile(pattern); err != nil {
					at := fmt.Sprintf("allowed_response_patterns[%d]", n)
					return nil, fault.Newf(fault.InvalidConfig, "%s: %q is no regular expression: %w", at, pattern, err).With("path", "configurations."+at)
				}
			}
			a := &humanAsking{humanConfig: cfg.humanConfig, medium: mediumTelegram, settings: map[string]any{
				"chat_id": string(cfg.ChatID), "allow_text_responses": cfg.AllowText, "allowed_response_patterns": cfg.Patterns, "target_users": texts(cfg.TargetUsers),
			}}
			if len(cfg.Keyboard) > 0 {
				a.settings["inline_keyboard"] = cfg.Keyboard
			}
			for _, user := range texts(cfg.TargetUsers) {
				a.approvers = append(a.approvers, telegramUser(user))
			}
			return a, nil
		}, func(p *node.Planning, cfg *telegramAskConfig) { planHuman(p, &cfg.humanConfig, mediumTelegram, nil) })
}

// telegramUser is the approver that a target user is: by number, or by name, which is the same in whatever case it is written and with or without its @.
func telegramUser(text string) string {
	text = strings.TrimSpace(strings.TrimPrefix(text, mediumTelegram+":"))
	if strings.Trim(text, "0123456789") != "" {
		text = "@" + strings.ToLower(strings.TrimPrefix(text, "@"))
	}
	return mediumTelegram + ":" + text
}

type teamsAskConfig struct {
	humanConfig
	ChannelID node.Template `json:"channel_id" doc:"The channel." zh:"频道编号。"`
	User      node.Template `json:"user" doc:"The user, in the place of a channel." zh:"代替频道的用户。"`
}

func (c *teamsAskConfig) Defaults() { c.humanConfig.Defaults() }

func teamsInteraction() node.Kind {
	return humanKind(
		node.About{
			Name: "HUMAN_IN_THE_LOOP.TEAMS_INTERACTION", Title: node.Says("Ask in Teams", "Teams 询问"),
			Description: node.Says("Asks people in Microsoft Teams with an adaptive card.", "在 Microsoft Teams 中用自适应卡片询问。"),
			Effect:      workflow.Once, OnUnknown: workflow.OnUnknownRetry, // a second copy of a question leads to the same interaction
			Keys: humanKeys(), Aliases: humanAliases(),
			Needs:  node.Needs{Credential: []string{"teams_bot"}},
			Inputs: humanInputs(),
			Examples: []node.Example{
				{
					Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
					Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "user": "29:ann", "approvers": ["teams:29:ann"], "credential_id": "teams_bot"}`,
					Input:   `{"invoice": 7}`,
					Replies: []string{`approve`},
					Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "approve", "user_id": "teams:29:ann", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "teams:29:ann", "approvals": [{"person": "teams:29:ann", "outcome": "confirmed", "data": "…", "channel": "teams", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "approve", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
				},
			},
		},
		func(_ *node.Call, cfg teamsAskConfig) (*humanAsking, error) {
			return &humanAsking{humanConfig: cfg.humanConfig, medium: mediumTeams, settings: map[string]any{"channel_id": string(cfg.ChannelID), "user": string(cfg.User)}}, nil
		}, func(p *node.Planning, cfg *teamsAskConfig) { planHuman(p, &cfg.humanConfig, mediumTeams, nil) })
}
