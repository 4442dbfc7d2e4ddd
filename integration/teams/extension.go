package teams

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

// Name is the channel_type of questions that are asked in Microsoft Teams.
const Name = "teams"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	channel := New(d.HTTP.HTTPClient())
	return plug.Extension{
		Name:        Name,
		Channels:    []human.Channel{channel},
		Credentials: []credential.Type{botCredential(channel)},
		KindsOf: func(all *plug.Set) []node.Kind {
			return []node.Kind{interaction(ask.Deps{Users: d.Users, Channels: all.Channels})}
		},
	}
}

// Traits implements [human.Particular]. Everybody has two ids, one of the tenant and one of the bot.
func (c *Channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{credentialType}, Place: placeOf, SeveralIDs: true, TakesURL: true, Person: notAPerson}
}

// notAPerson says why an address is not a person's.
func notAPerson(address string) string {
	if strings.HasPrefix(address, "19:") {
		return "it is a conversation that several people read; write the id that the bot knows you by, which begins with 29:, or your object id in the tenant"
	}
	return ""
}

// placeOf reads where a question is put: a channel, a person, or a bare webhook, which cannot be answered in any other way than by its
// link.
func placeOf(raw json.RawMessage) human.Place {
	var s settings
	_ = json.Unmarshal(raw, &s) // settings of another form name no place; sending says what is wrong with them
	return human.Place{Named: s.Channel != "" || s.User != "" || s.Webhook != "", Private: s.Channel == "", Address: s.User}
}

// medium is what a card can have.
func medium() form.Medium {
	return form.Medium{Cannot: []form.Kind{form.File, form.JSON}, Buttons: 6}
}
