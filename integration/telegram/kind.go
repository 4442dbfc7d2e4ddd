package telegram

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"tandem/builtin/ask"
	"tandem/fault"
	"tandem/node"
)

type askConfig struct {
	ask.Config
	ChatID      node.Scalar     `json:"chat_id" required:"true" doc:"The chat." zh:"聊天编号。"`
	TargetUsers []node.Scalar   `json:"target_users" doc:"Who of the chat may answer." zh:"可以答复的用户。"`
	Keyboard    json.RawMessage `json:"inline_keyboard" takes:"list" doc:"Buttons of your own." zh:"自定义按钮。"`
	AllowText   bool            `json:"allow_text_responses" doc:"Whether an answer may be written." zh:"是否允许文字答复。"`
	Patterns    []string        `json:"allowed_response_patterns" doc:"Regular expressions that written answers must match." zh:"文字答复须匹配的正则表达式。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *askConfig) Defaults() {
	c.Config.Defaults()
	c.AllowText = true
}

// interaction asks in Telegram.
func interaction(d ask.Deps) node.Kind {
	return ask.Kind(d, node.About{
		Name: "HUMAN_IN_THE_LOOP.TELEGRAM_INTERACTION", Title: node.Says("Ask in Telegram", "Telegram 询问"),
		Description: node.Says("Asks people in Telegram, with buttons, and reads replies.", "在 Telegram 中用按钮询问，并读取回复。"),
		Needs:       node.Needs{Credential: []string{credentialType}},
		Examples: []node.Example{
			{
				Shows:   node.Says("Asks for a decision and reads the reply.", "请求决定并读取回复。"),
				Config:  `{"title": "Pay invoice 7?", "description": "120 francs to Acme", "chat_id": 42, "approvers": ["telegram:42"], "credential_id": "telegram_bot"}`,
				Input:   `{"invoice": 7}`,
				Replies: []string{`approve`},
				Output:  `{"result": {"status": "completed", "response_type": "approval", "response_data": {"action": "approve", "notes": "approve", "user_id": "telegram:42", "timestamp": "…", "means": "…"}, "interaction_id": "…", "responder": "telegram:42", "approvals": [{"person": "telegram:42", "outcome": "confirmed", "data": "…", "channel": "telegram", "at": "…", "means": "…"}], "ai_classification": "confirmed", "options": ["approve"], "user_response": "approve", "content": {"invoice": 7}}, "approve": "same as result", "confirmed": "same as result"}`,
			},
		},
	}, ask.Medium{Channel: Name, Names: "target_users",
		As: func(text string) string { return Name + ":" + strings.TrimPrefix(text, Name+":") }}, particular, checkPatterns)
}

// particular makes what the channel has to know of the configuration.
func particular(cfg askConfig) (ask.Asking, error) {
	for n, pattern := range cfg.Patterns {
		if _, err := regexp.Compile(pattern); err != nil {
			at := fmt.Sprintf("allowed_response_patterns[%d]", n)
			return ask.Asking{}, fault.Newf(fault.InvalidConfig, "%s: %q is not a regular expression: %w", at, pattern,
				err).With("path", "configurations."+at)
		}
	}
	users := ask.Texts(cfg.TargetUsers)
	a := ask.Asking{Settings: map[string]any{
		"chat_id": string(cfg.ChatID), "allow_text_responses": cfg.AllowText,
		"allowed_response_patterns": cfg.Patterns, "target_users": users,
	}}
	if len(cfg.Keyboard) > 0 {
		a.Settings["inline_keyboard"] = cfg.Keyboard
	}
	for _, user := range users {
		a.Approvers = append(a.Approvers, approver(user))
	}
	return a, nil
}

// checkPatterns looks at the patterns that are known when the workflow is saved.
func checkPatterns(p *node.Planning, _ *askConfig) {
	for n, pattern := range p.Items("allowed_response_patterns") {
		if _, err := regexp.Compile(pattern.String()); ask.Static(pattern) && err != nil {
			p.Invalid(fmt.Sprintf("%s[%d]", p.At("allowed_response_patterns"), n), "is not a regular expression: %v", err)
		}
	}
}

// approver is the approver that a target user is: by number, or by name, which is the same in whatever case it is written and with or
// without its @.
func approver(text string) string {
	text = strings.TrimSpace(strings.TrimPrefix(text, Name+":"))
	if strings.Trim(text, "0123456789") != "" {
		text = "@" + strings.ToLower(strings.TrimPrefix(text, "@"))
	}
	return Name + ":" + text
}
