package slack

import (
	"encoding/json"
	"strings"

	"tandem/builtin/ask"
	"tandem/builtin/notice"
	"tandem/credential"
	"tandem/human"
	"tandem/human/form"
	"tandem/node"
	"tandem/plug"
	"tandem/trigger"
	"tandem/workflow"
)

// Name is the channel_type of questions that are asked in Slack.
const Name = "slack"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	channel := NewChannel(d.HTTP.HTTPClient(), d.Log)
	acts := act(d.HTTP, d.Files)
	return plug.Extension{
		Name:        Name,
		Channels:    []human.Channel{channel},
		Kinds:       []node.Kind{triggerSlack(), acts},
		Sources:     []trigger.Source{source{channel}},
		Credentials: []credential.Type{botCredential(d.HTTP.HTTPClient())},
		Notices:     []notice.Way{notices(acts.About.Name)},
		KindsOf: func(all *plug.Set) []node.Kind {
			return []node.Kind{interaction(ask.Deps{Users: d.Users, Channels: all.Channels})}
		},
	}
}

// notices are delivered as messages in a channel.
func notices(kind string) notice.Way {
	return notice.Way{Name: Name, Kind: kind, Effect: workflow.Once, ID: "message_ts", Configure: func(n notice.Notice) map[string]any {
		return map[string]any{
			"credential_id": n.Credential, "action_type": "send_message", "channel": n.To, "message": strings.TrimSpace(n.Title + "\n" + n.Text),
		}
	}}
}

// Traits implements [human.Particular].
func (*Channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{credentialType}, Place: placeOf, Person: notAPerson}
}

// notAPerson says why an address is not a person's: channels and names are not what clicks and replies come from.
func notAPerson(address string) string {
	if !personID.MatchString(address) {
		return "write your member id, which begins with U or W (in your profile: Copy member ID)"
	}
	return ""
}

// placeOf reads where a question is put: a channel by name or id, or somebody as @U1 or U1.
func placeOf(raw json.RawMessage) human.Place {
	var s settings
	_ = json.Unmarshal(raw, &s) // settings of another form name no place; sending says what is wrong with them
	to := s.Channel
	return human.Place{
		Named: to != "", Private: strings.HasPrefix(to, "@") || strings.HasPrefix(to, "U") || strings.HasPrefix(to, "D"),
		Address: strings.TrimPrefix(to, "@"),
	}
}

// medium is what a modal of Slack can have, with a block for the headline.
func medium() form.Medium {
	return form.Medium{Cannot: []form.Kind{form.File, form.JSON}, Entries: 99, Choices: 100, Buttons: 25, NameSize: 240,
		ValueSize: 150, TextSize: 3000}
}
