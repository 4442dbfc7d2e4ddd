package telegram

import (
	"slices"
	"testing"

	"tandem/builtin/ask"
	"tandem/builtin/ask/asktest"
	"tandem/fault"
	"tandem/human"
	"tandem/node/nodetest"
)

func kinds() nodetest.Kinds {
	d := ask.Deps{Channels: []human.Channel{New(nil)}}
	return nodetest.Of(interaction(d))
}

// A question has what its channel has to know, with the defaults of its kind.
func TestInteraction(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
	asktest.Run(t, kinds(), map[string]asktest.Case{
		"Telegram": {Kind: "TELEGRAM_INTERACTION", Config: `{"title":"Q","chat_id":-100,"target_users":["@Ada","Bob",42,"telegram:@Cy"],"allow_text_responses":false,"allowed_response_patterns":["^ok$"],"inline_keyboard":[["approve"]],"credential_id":"c"}`, Input: `{}`, Says: map[string]string{
			"channel_type": `"telegram"`, "approvers": `["telegram:@ada","telegram:@bob","telegram:42","telegram:@cy"]`, "settings.chat_id": `"-100"`, "settings.allow_text_responses": "false",
			"settings.allowed_response_patterns": `["^ok$"]`, "settings.inline_keyboard": `[["approve"]]`, "settings.target_users": `["@Ada","Bob","42","telegram:@Cy"]`,
		}},
	})
	asktest.Refuses(t, kinds(), "TELEGRAM_INTERACTION", `{"title":"Q","chat_id":1,"allowed_response_patterns":["a","("]}`, fault.InvalidConfig, "configurations.allowed_response_patterns[1]")
}

// Names are the same however they are written, wherever an approver is named.
func TestInteraction_Names(t *testing.T) {
	t.Parallel()
	_, wait := asktest.Asks(t, kinds(), "TELEGRAM_INTERACTION", nodetest.NewCall(t, `{"title":"Q","chat_id":1,"target_users":["Ada"],"approvers":["telegram:@Boss","Telegram:@boss","slack:UBoss"],"credential_id":"c"}`, `{}`))
	opened, err := human.MediaOf(New(nil)).Open(human.Question{User: "ada", Node: "n", Ask: "a", Activation: "n", Purpose: human.PurposeNode, Request: wait.Ask.Request, Time: 1})
	if err != nil || !slices.Equal(opened.Approvers, []string{"telegram:@boss", "slack:UBoss"}) {
		t.Errorf("%q, %v", opened.Approvers, err)
	}
}
