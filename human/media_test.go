package human

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The chats of these tests. They are like those of vendors, whose packages say what theirs are like.
const (
	Slack    = "slack"
	Discord  = "discord"
	Telegram = "telegram"
	Teams    = "teams"
)

// chats are what is known about them.
func chats() Media {
	type settings struct {
		Channel string          `json:"channel"`
		Chat    json.RawMessage `json:"chat_id"`
		User    string          `json:"user"`
	}
	read := func(raw json.RawMessage) (s settings) {
		_ = json.Unmarshal(raw, &s) // other settings say nothing
		return s
	}
	return Media{
		Slack: {Place: func(raw json.RawMessage) Place {
			s := read(raw)
			name := strings.TrimPrefix(s.Channel, "@")
			return Place{Named: name != "", Private: name != s.Channel || strings.HasPrefix(name, "U"), Address: name}
		}},
		Telegram: {
			Normal: func(address string) string {
				if strings.HasPrefix(address, "@") {
					return strings.ToLower(address)
				}
				return address
			},
			Place: func(raw json.RawMessage) Place {
				s := read(raw)
				chat := strings.Trim(string(s.Chat), `"`)
				return Place{Named: chat != "", Private: chat != "" && !strings.HasPrefix(chat, "-"), Address: chat}
			},
		},
		Teams: {SeveralIDs: true, Place: func(raw json.RawMessage) Place {
			s := read(raw)
			return Place{Named: s.User != "", Private: true, Address: s.User}
		}},
	}
}

// withChats lets a desk know about the chats, as if it had their channels.
func withChats(d *Desk) *Desk {
	maps.Copy(d.media, chats())
	return d
}

// program is a channel to programs that speak for people, which the desk knows nothing of but its traits.
type program struct{ spy }

const programChannel = "program"

func (*program) Traits() Traits {
	return Traits{Credentials: []string{"program_secret"}, TakesURL: true, NeedsURL: true, SpeaksForOthers: true, Place: func(settings json.RawMessage) Place {
		return Place{Named: strings.Contains(string(settings), "webhook_url"), Private: true}
	}}
}

func TestMediaOf(t *testing.T) {
	t.Parallel()
	media := MediaOf(&spy{name: "plain"}, &program{spy{name: programChannel}})
	if got := media.Names(); !slices.Equal(got, []string{"plain", programChannel}) {
		t.Errorf("the channels are %q", got)
	}
	hook := media[programChannel]
	if !hook.TakesURL || !slices.Equal(hook.Credentials, []string{"program_secret"}) {
		t.Errorf("a program is %+v", hook)
	}
	for settings, want := range map[string]Place{
		`{"webhook_url":"https://a.example"}`: {Named: true, Private: true}, `{}`: {Private: true}, ``: {Private: true},
	} {
		if got := media.place(programChannel, Request{Settings: json.RawMessage(settings)}); got != want {
			t.Errorf("%s is %+v, want %+v", settings, got, want)
		}
	}
	if got := media.place("plain", Request{Settings: json.RawMessage(`{"channel":"x"}`)}); got != (Place{}) {
		t.Errorf("a channel that says nothing about itself has the place %+v", got)
	}
}

// Addresses are the same however people write them, if the channel says so, and only then.
func TestMedia_Normal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"telegram:@Ann": "telegram:@ann", "TELEGRAM: @Ann": "telegram:@ann", "telegram:Ann": "telegram:Ann", "slack:@Ann": "slack:@Ann", "other:@Ann": "other:@Ann",
		"Ann@Example.org": "mail:ann@example.org", "admin": "role:admin", "Ann": "user:Ann",
	} {
		if got, err := chats().normalApprover(text); err != nil || got != want {
			t.Errorf("%q is %q, %v, want %q", text, got, err, want)
		}
	}
}
