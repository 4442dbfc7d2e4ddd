package discord

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
		"Discord": {Kind: "DISCORD_INTERACTION", Config: `{"title":"Q","server_id":12345678901234567890,"channel_id":"7","credential_id":"c"}`, Input: `{}`, Says: map[string]string{"channel_type": `"discord"`, "settings": `{"channel_id":"7","server_id":"12345678901234567890"}`}},
	})
	asktest.Refuses(t, kinds(), "DISCORD_INTERACTION", `{"title":"Q","channel_id":"1"}`, fault.InvalidConfig, "configurations.server_id")
}
