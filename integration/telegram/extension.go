package telegram

import (
	"encoding/json"
	"strings"

	"tandem/builtin/ask"
	"tandem/credential"
	"tandem/human"
	"tandem/human/form"
	"tandem/node"
	"tandem/plug"
	"tandem/trigger"
)

// Name is the channel_type of questions that are asked in Telegram.
const Name = "telegram"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	channel := New(d.HTTP.HTTPClient())
	return plug.Extension{
		Name:        Name,
		Channels:    []human.Channel{channel},
		Kinds:       []node.Kind{triggerTelegram(), act(d.HTTP, d.Files)},
		Sources:     []trigger.Source{source{channel}},
		Credentials: []credential.Type{botCredential(channel)},
		KindsOf: func(all *plug.Set) []node.Kind {
			return []node.Kind{interaction(ask.Deps{Users: d.Users, Channels: all.Channels})}
		},
	}
}

// Traits implements [human.Particular].
func (c *Channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{credentialType}, Normal: normalAddress, Place: placeOf, Person: notAPerson}
}

// notAPerson says why an address is not a person's: names are not written to by bots, and groups have negative numbers.
func notAPerson(address string) string {
	if address == "" || strings.Trim(address, "0123456789") != "" {
		return "write the number of your account, which bots such as @userinfobot tell you, and send /start to the bot of the channel first"
	}
	return ""
}

// normalAddress writes a name in lower case: names are the same however they are written.
func normalAddress(address string) string {
	if strings.HasPrefix(address, "@") {
		return strings.ToLower(address)
	}
	return address
}

// placeOf reads where a question is put: a chat by its number or name. Groups and channels have negative numbers or names; only a person
// has a number without a sign.
func placeOf(raw json.RawMessage) human.Place {
	var s struct {
		Chat json.RawMessage `json:"chat_id"`
	}
	_ = json.Unmarshal(raw, &s) // settings of another form name no place; sending says what is wrong with them
	id := strings.Trim(string(s.Chat), `"`)
	return human.Place{Named: len(s.Chat) > 0 && id != "null", Private: id != "" && strings.Trim(id, "0123456789") == "", Address: id}
}

// medium is what messages of Telegram can have: buttons and no forms. One button is for the link.
func medium() form.Medium {
	return form.Medium{Cannot: []form.Kind{
		form.Line, form.Area, form.Number, form.Email, form.Date, form.YesNo, form.Tick, form.One, form.Some,
		form.Score, form.File, form.JSON,
	}, Buttons: 99}
}
