package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/sync/singleflight"

	"tandem/fault"
	"tandem/human"
	"tandem/trigger"
)

// Channel asks people in Slack and understands their clicks, forms and replies. It is a [human.Receiver].
type Channel struct {
	client   *http.Client
	log      *slog.Logger
	patience time.Duration // how long Slack is kept waiting
	lookup   time.Duration // how long names of an event are looked for
	// replies keeps a repetition of an event that is still being worked on waiting for the same end.
	replies singleflight.Group
	// relay hands events to the triggers that share the app; names are those of channels and people that triggers tell.
	relay *trigger.Relay
	names names
}

// NewChannel makes the channel. The client is one behind the guard; the log may be nil.
func NewChannel(client *http.Client, log *slog.Logger) *Channel {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Channel{client: client, log: log, patience: patience, lookup: lookupTime, names: names{known: map[string]named{}}}
}

// Name implements [human.Channel].
func (*Channel) Name() string { return Name }

// settings are what a node says about the channel.
type settings struct {
	Channel    string `json:"channel"`
	AutoThread *bool  `json:"auto_thread"` // nil is true
}

// receipt is what is kept of a message.
type receipt struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	// Thread is the message that it hangs on, if it hangs on one.
	Thread string `json:"thread_ts,omitempty"`
	// Live says that it has buttons, which have to go when the question ends.
	Live bool `json:"live,omitempty"`
}

// Send posts a message. The first about a question has the buttons; later ones go into its thread; the end takes the buttons
// away and says who decided.
func (c *Channel) Send(ctx context.Context, m human.Message) (human.Receipt, error) {
	var set settings
	if len(m.Request.Settings) > 0 && json.Unmarshal(m.Request.Settings, &set) != nil {
		return human.Receipt{}, fault.New(fault.InvalidConfig, "the settings of Slack cannot be read; channel is a text and auto_thread a boolean")
	}
	earlier, err := readReceipts(m.Earlier)
	if err != nil {
		return human.Receipt{}, err
	}
	s, release, err := open(ctx, c.client, m.Open, cmp.Or(m.Request.Credential, m.Credential))
	if err != nil {
		return human.Receipt{}, err
	}
	defer release()

	ended := m.Ends()
	if ended {
		if done, ok, err := s.close(ctx, m, earlier); ok || err != nil {
			return done, err
		}
	}
	where, thread := "", ""
	if len(earlier) > 0 {
		where = earlier[0].Channel
		if set.AutoThread == nil || *set.AutoThread {
			thread = cmp.Or(earlier[0].Thread, earlier[0].TS)
		}
	} else if where, err = s.find(ctx, cmp.Or(m.To, set.Channel)); err != nil {
		return human.Receipt{}, err
	}
	p := page{message: m, buttons: !ended && thread == "", short: thread != ""}
	blocks := p.blocks()
	options := []slack.MsgOption{
		slack.MsgOptionText(p.summary(), false), slack.MsgOptionBlocks(blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
	if thread != "" {
		options = append(options, slack.MsgOptionTS(thread))
	}
	channel, ts, err := s.api.PostMessageContext(ctx, where, options...)
	if err != nil {
		return human.Receipt{}, problem("post the message", err)
	}
	r := human.Receipt{Body: writeReceipt(receipt{Channel: channel, TS: ts, Thread: thread, Live: p.live})}
	if thread == "" {
		r.Threads = []string{threadOf(channel, ts)}
	}
	return r, nil
}

// close takes the buttons from the messages that have some. It is false if there is nothing left to change.
func (s *session) close(ctx context.Context, m human.Message, earlier []receipt) (human.Receipt, bool, error) {
	p := page{message: m}
	var first *receipt
	for _, r := range earlier {
		if !r.Live {
			continue
		}
		_, _, _, err := s.api.UpdateMessageContext(ctx, r.Channel, r.TS, slack.MsgOptionText(p.summary(), false),
			slack.MsgOptionBlocks(p.blocks()...))
		switch said(err) {
		case "message_not_found", "channel_not_found", "cant_update_message", "edit_window_closed", "is_archived", "is_inactive":
			continue // nobody can press it any more, or it stays as it is
		}
		if err != nil {
			return human.Receipt{}, false, problem("change the message", err)
		}
		if first == nil {
			first = &receipt{Channel: r.Channel, TS: r.TS, Thread: r.Thread}
		}
	}
	if first == nil {
		return human.Receipt{}, false, nil
	}
	return human.Receipt{Body: writeReceipt(*first)}, true, nil
}

// threadOf is what replies to a message refer to.
func threadOf(channel, ts string) string { return channel + ":" + ts }

func readReceipts(list []json.RawMessage) ([]receipt, error) {
	return human.ReadReceipts(list, func(r receipt) bool { return r.Channel != "" && r.TS != "" })
}

func writeReceipt(r receipt) json.RawMessage {
	raw, _ := json.Marshal(r) // texts can always be written
	return raw
}

// How Slack writes the ids of conversations and of people.
var (
	conversationID = regexp.MustCompile(`^[CGD][A-Z0-9]+$`)
	personID       = regexp.MustCompile(`^[UW][A-Z0-9]+$`)
)

const (
	// userPages and userPage bound the search for a person by name: 20 pages of 500.
	userPages = 20
	userPage  = 500
)

// find returns where to post for what a node or an approver says: #name, @person, a mail address or an id.
func (s *session) find(ctx context.Context, to string) (string, error) {
	to = strings.TrimSpace(to)
	name := strings.TrimPrefix(to, "@")
	switch {
	case to == "":
		return "", fault.New(fault.InvalidConfig, "the question says no channel of Slack; set channel to #name, @user or an id").With("path", "configurations.channel")
	case strings.HasPrefix(to, "#"), conversationID.MatchString(to):
		return to, nil
	case personID.MatchString(name):
		return s.direct(ctx, name)
	case strings.Contains(name, "@"):
		user, err := s.api.GetUserByEmailContext(ctx, name)
		if err != nil {
			return "", problem("find the person "+name, err)
		}
		return s.direct(ctx, user.ID)
	case strings.HasPrefix(to, "@"):
		id, err := s.named(ctx, name)
		if err != nil {
			return "", err
		}
		return s.direct(ctx, id)
	}
	return "#" + to, nil
}

// direct opens the conversation with a person.
func (s *session) direct(ctx context.Context, user string) (string, error) {
	channel, _, _, err := s.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}})
	if err != nil {
		return "", problem("open a conversation with "+user, err)
	}
	return channel.ID, nil
}

// named finds a person by the name that Slack knows them by, or else by the one they show if only one shows it.
func (s *session) named(ctx context.Context, name string) (string, error) {
	var shown []string
	p := s.api.GetUsersPaginated(slack.GetUsersOptionLimit(userPage))
	for range userPages {
		var err error
		if p, err = p.Next(ctx); p.Done(err) {
			break
		} else if err != nil {
			return "", problem("list the people", err)
		}
		for _, u := range p.Users {
			switch {
			case u.Deleted || u.IsBot:
			case strings.EqualFold(u.Name, name):
				return u.ID, nil
			case strings.EqualFold(u.Profile.DisplayName, name), strings.EqualFold(u.RealName, name):
				shown = append(shown, u.ID)
			}
		}
	}
	shown = slices.Compact(slices.Sorted(slices.Values(shown)))
	switch len(shown) {
	case 1:
		return shown[0], nil
	case 0:
		return "", fault.Newf(fault.DeliveryFailed, "nobody in Slack is called %q; write the mail address or the id of the person", "@"+name)
	}
	return "", fault.Newf(fault.DeliveryFailed, "%d people in Slack are called %q; write the mail address or the id of the one who is meant", len(shown), "@"+name)
}
