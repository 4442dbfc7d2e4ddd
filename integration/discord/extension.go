package discord

import (
	"encoding/json"

	"tandem/builtin/ask"
	"tandem/credential"
	"tandem/human"
	"tandem/human/form"
	"tandem/node"
	"tandem/plug"
	"tandem/trigger"
)

// Name is the channel_type of questions that are asked in Discord.
const Name = "discord"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	channel := NewChannel(d.HTTP.HTTPClient(), d.Log)
	return plug.Extension{
		Name:        Name,
		Channels:    []human.Channel{channel},
		Kinds:       []node.Kind{triggerDiscord(), act(d.HTTP, d.Files)},
		Sources:     []trigger.Source{source{channel}},
		Credentials: []credential.Type{botCredential(d.HTTP.HTTPClient())},
		KindsOf: func(all *plug.Set) []node.Kind {
			return []node.Kind{interaction(ask.Deps{Users: d.Users, Channels: all.Channels})}
		},
	}
}

// Traits implements [human.Particular].
func (*Channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{credentialType}, Place: placeOf, Person: notAPerson}
}

// notAPerson says why an address is not a person's.
func notAPerson(address string) string {
	if !snowflake.MatchString(address) {
		return "write your user id, which is a number (with the developer mode on: Copy User ID)"
	}
	return ""
}

// placeOf reads where a question is put: a channel of a server, which several people read.
func placeOf(raw json.RawMessage) human.Place {
	var s struct {
		Channel string `json:"channel_id"`
	}
	_ = json.Unmarshal(raw, &s) // settings of another form name no place; sending says what is wrong with them
	return human.Place{Named: s.Channel != ""}
}

// medium is what a modal of Discord can have: five lines or paragraphs.
func medium() form.Medium {
	return form.Medium{Cannot: []form.Kind{form.File, form.JSON}, Entries: 5, Choices: 25, Buttons: 25, TextSize: 4000}
}
