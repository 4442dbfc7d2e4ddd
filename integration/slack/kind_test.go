package slack

import (
	"testing"

	"tandem/builtin/ask"
	"tandem/builtin/ask/asktest"
	"tandem/fault"
	"tandem/human"
	"tandem/node/nodetest"
)

func kinds() nodetest.Kinds {
	d := ask.Deps{Channels: []human.Channel{NewChannel(nil, nil)}}
	return nodetest.Of(interaction(d))
}

// A question has what its channel has to know, with the defaults of its kind.
func TestInteraction(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
	asktest.Run(t, kinds(), map[string]asktest.Case{
		"OlderQuestion": {Kind: "SLACK_INTERACTION", Config: `{"clarification_question_template":"Which?","response_timeout":600,"channel":"#a","credential_id":"c"}`, Input: `{}`, Says: map[string]string{"description": `"Which?"`, "timeout_seconds": "600"}},
		"Slack":         {Kind: "SLACK_INTERACTION", Config: `{"title":"Q","channel":"#a","auto_thread":false,"channel_type":"slack","credential_id":"c"}`, Input: `{}`, Says: map[string]string{"channel_type": `"slack"`, "settings": `{"auto_thread":false,"channel":"#a"}`, "approvers": ""}},
	})
	asktest.Refuses(t, kinds(), "SLACK_INTERACTION", `{"title":"Q"}`, fault.InvalidConfig, "configurations.channel")
}
