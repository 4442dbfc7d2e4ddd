package teams

import (
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
		"Teams":    {Kind: "TEAMS_INTERACTION", Config: `{"title":"Q","channel_id":"19:a","webhook_url":"https://x.example/hook","credential_id":"c"}`, Input: `{}`, Says: map[string]string{"channel_type": `"teams"`, "settings": `{"channel_id":"19:a","user":"","webhook_url":"https://x.example/hook"}`}},
		"TeamsBot": {Kind: "TEAMS_INTERACTION", Config: `{"title":"Q","user":"29:b","credential_id":"c"}`, Input: `{}`, Says: map[string]string{"settings": `{"channel_id":"","user":"29:b"}`}},
	})
	asktest.Refuses(t, kinds(), "TEAMS_INTERACTION", `{"user":"29:b"}`, fault.InvalidConfig, "configurations.title")
}
