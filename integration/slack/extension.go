package slack

import (
	"encoding/json"
	"strings"

	"tandem/builtin/ask"
	"tandem/credential"
	"tandem/human"
	"tandem/human/form"
	"tandem/node"
	"tandem/plug"
)

// Name is the channel_type of questions that are asked in Slack.
const Name = "slack"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name:        Name,
		Channels:    []human.Channel{NewChannel(d.HTTP.HTTPClient(), d.Log)},
		Credentials: []credential.Type{botCredential()},
		KindsOf: func(all *plug.Set) []node.Kind {
			return []node.Kind{interaction(ask.Deps{Users: d.Users, Channels: all.Channels})}
		},
	}
}

// Traits implements [human.Particular].
func (*Channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{credentialType}, Place: placeOf}
}

// placeOf reads where a question is put: a channel by name or id, or somebody as @U1 or U1.
func placeOf(raw json.RawMessage) human.Place {
	var s settings
	_ = json.Unmarshal(raw, &s) // settings of another form name no place; sending says what is wrong with them
	to := s.Channel
	return human.Place{
		Named: to != "", Private: strings.HasPrefix(to, "@") || strings.HasPrefix(to, "U") || strings.HasPrefix(to, "D"), Address: strings.TrimPrefix(to, "@"),
	}
}

// medium is what a modal of Slack can have, with a block for the headline.
func medium() form.Medium {
	return form.Medium{Cannot: []form.Kind{form.File, form.JSON}, Entries: 99, Choices: 100, Buttons: 25, NameSize: 240, ValueSize: 150, TextSize: 3000}
}
