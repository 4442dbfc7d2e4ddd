package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"tandem/fault"
	"tandem/node"
	"tandem/text"
	"tandem/trigger"
)

// written is a message with everything that Discord says of it.
type written struct {
	discordgo.Message
	raw json.RawMessage
}

// messages reads what was written in a channel after a message.
func (s *session) messages(ctx context.Context, channel, after string) (page []*written, err error) {
	var raws []json.RawMessage
	err = s.call(ctx, "read the channel", func(api *discordgo.Session, o discordgo.RequestOption) error {
		endpoint := discordgo.EndpointChannelMessages(channel)
		query := url.Values{"limit": {strconv.Itoa(pageSize)}, "after": {after}}
		raw, err := api.RequestWithBucketID(http.MethodGet, endpoint+"?"+query.Encode(), nil, endpoint, o)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &raws)
	})
	for _, raw := range raws {
		m := &written{raw: raw}
		if err := json.Unmarshal(raw, &m.Message); err != nil {
			return nil, fault.New(fault.RemoteError, "Discord told a message that cannot be read").WithCause(err)
		}
		page = append(page, m)
	}
	return page, err
}

// place is what is known of a channel.
type place struct{ name, server string }

func (s *session) place(ctx context.Context, channel string) (p place, err error) {
	err = s.call(ctx, "see the channel "+channel, func(api *discordgo.Session, o discordgo.RequestOption) error {
		c, err := api.Channel(channel, o)
		if err == nil {
			p = place{c.Name, c.GuildID}
		}
		return err
	})
	return p, err
}

// epoch is when the ids of Discord begin, in Unix milliseconds.
const epoch = 1_420_070_400_000

// idAt is an id that is older than all that are made from a time on.
func idAt(ms int64) string { return strconv.FormatInt(max(ms-epoch, 0)<<22, 10) }

// timeOf is when an id was made.
func timeOf(id string) time.Time {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n>>22 + epoch)
}

// watched is a trigger with the channels that messages are looked for in.
type watched struct {
	trigger  *trigger.Trigger
	channels []string
}

// watch adds the channels that triggers are for to those that are read, each from where its triggers have come to.
func (l *listening) watch(ctx context.Context, from map[string]string) error {
	triggers, err := l.channel.relay.Watched(ctx, l.account.Account)
	if err != nil {
		return err
	}
	l.watched = nil
	for i := range triggers {
		t := &triggers[i]
		cfg, err := node.Configuration[triggerConfig](t.Config)
		if err != nil {
			return err
		}
		if !slices.Contains(cfg.Events, eventMessage) {
			continue
		}
		w := watched{trigger: t}
		for _, channel := range cfg.Channels {
			id := string(channel)
			w.channels = append(w.channels, id)
			at, err := t.ReadUpTo(id)
			if err == nil && at == "" { // it begins with its deployment
				at = idAt(t.Created)
				err = l.channel.relay.Reach(ctx, t, id, at)
			}
			if err != nil {
				return err
			}
			if first, ok := from[id]; !ok || older(at, first) {
				from[id] = at
			}
		}
		l.watched = append(l.watched, w)
	}
	return nil
}

// reach notes for the triggers of a channel how far it was read.
func (l *listening) reach(ctx context.Context, channel string) error {
	for _, w := range l.watched {
		if !slices.Contains(w.channels, channel) {
			continue
		}
		at, err := w.trigger.ReadUpTo(channel)
		if err != nil {
			return err
		}
		if at != "" && !older(at, l.seen[channel]) {
			continue // the channel is read from before it, for a question
		}
		if err := l.channel.relay.Reach(ctx, w.trigger, channel, l.seen[channel]); err != nil {
			return err
		}
	}
	return nil
}

// relay hands a message to the triggers. Notes of Discord itself, such as that somebody has joined, are not messages.
func (l *listening) relay(ctx context.Context, s *session, channel string, m *written, answers bool) error {
	if m.Author == nil || m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply {
		return nil
	}
	if len(l.watched) > 0 && !m.Author.Bot && m.WebhookID == "" {
		l.noticeBlindness(&m.Message)
	}
	_, err := l.channel.relay.Deliver(ctx, l.account.Account,
		func(ctx context.Context, t trigger.Trigger) (out trigger.Event, fits bool, err error) {
			cfg, err := node.Configuration[triggerConfig](t.Config)
			if err != nil || !slices.Contains(cfg.Events, eventMessage) || !cfg.in(channel) || !trigger.Mentions(m.Content, cfg.Keywords) {
				return out, false, err
			}
			if at, err := t.ReadUpTo(channel); err != nil || at != "" && !older(at, m.ID) {
				return out, false, err // the trigger has come past it
			}
			if m.Author.Bot || m.WebhookID != "" {
				if own, err := l.own(ctx, s, m); cfg.FilterBots || own || err != nil {
					return out, false, err
				}
			}
			where := l.place(ctx, s, channel)
			told := told{
				Event: eventMessage, Server: cmp.Or(m.GuildID, where.server), Channel: channel, ChannelName: where.name, User: m.Author.ID,
				UserName: cmp.Or(m.Author.GlobalName, m.Author.Username),
				Message:  m.ID, Text: m.Content, Options: map[string]any{}, Whole: m.raw,
			}
			if m.MessageReference != nil {
				told.ReplyTo = m.MessageReference.MessageID
			}
			return told.event("message:"+m.ID, m.ID, answers)
		})
	return err
}

// own says whether the bot itself has written a message.
func (l *listening) own(ctx context.Context, s *session, m *written) (bool, error) {
	if l.self == "" {
		err := s.call(ctx, "say which bot it is", func(api *discordgo.Session, o discordgo.RequestOption) error {
			user, err := api.User("@me", o)
			if err == nil {
				l.self = user.ID
			}
			return err
		})
		if err != nil {
			return false, err
		}
	}
	return m.Author.ID == l.self, nil
}

// place looks a channel up once. What Discord does not tell stays empty.
func (l *listening) place(ctx context.Context, s *session, channel string) place {
	p, known := l.places[channel]
	if !known {
		var err error
		if p, err = s.place(ctx, channel); err != nil {
			l.channel.log.Warn("the name of a channel in Discord is not known", "workspace", l.account.Workspace, "credential",
				l.account.Credential, "channel", channel, "error", err)
		}
		l.places[channel] = p
	}
	return p
}

func (c *triggerConfig) in(channel string) bool {
	return len(c.Channels) == 0 || slices.Contains(c.Channels, node.Scalar(channel))
}

// told is what the trigger brings.
type told struct {
	Event       string          `json:"event_type"`
	Server      string          `json:"server_id"`
	Channel     string          `json:"channel_id"`
	ChannelName string          `json:"channel_name"`
	User        string          `json:"user_id"`
	UserName    string          `json:"user_name"`
	Message     string          `json:"message_id"`
	Text        string          `json:"message_text"`
	Command     string          `json:"command"`
	Options     map[string]any  `json:"options"`
	ReplyTo     string          `json:"reply_to_message_id"`
	Whole       json.RawMessage `json:"discord_payload"`
}

// event makes an event of what Discord sends. Its time is that of an id.
func (t told) event(key, id string, answers bool) (out trigger.Event, fits bool, err error) {
	out = trigger.Event{Key: key, Time: timeOf(id)}
	if answers {
		out.Ignored = "it answers a question that Tandem has asked"
	}
	if out.Payload, err = json.Marshal(t); err != nil {
		err = fault.Newf(fault.Internal, "an event cannot be written: %w", err)
	}
	return out, true, err
}

// commanded is a slash command that somebody has used.
type commanded struct {
	ID        string `json:"id"`
	ChannelID string `json:"channel_id"`
	GuildID   string `json:"guild_id"`
	Locale    string `json:"locale"`
	Channel   struct {
		Name string `json:"name"`
	} `json:"channel"`
	Data struct {
		Name    string `json:"name"`
		Options []struct {
			Name  string `json:"name"`
			Value any    `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

// command hands a slash command to the triggers, and tells who used it whether something was started.
func (v *visit) command(ctx context.Context, body []byte) error {
	var c commanded
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(body, &c); err != nil || c.ID == "" || c.Data.Name == "" {
		return fault.New(fault.Invalid, "the command cannot be read").WithCause(err)
	}
	if err := json.Unmarshal(body, &whole); err != nil {
		return fault.New(fault.Invalid, "the command cannot be read").WithCause(err)
	}
	delete(whole, "token") // anyone who has it can answer in the name of the app
	raw, err := json.Marshal(whole)
	if err != nil {
		return fault.New(fault.Internal, "the command cannot be kept").WithCause(err)
	}
	user := v.pressed.user()
	told := told{
		Event: eventCommand, Server: c.GuildID, Channel: c.ChannelID, ChannelName: c.Channel.Name, User: user.ID,
		UserName: cmp.Or(user.Global, user.Username), Command: c.Data.Name,
		Options: map[string]any{}, Whole: raw,
	}
	for _, o := range c.Data.Options {
		told.Options[o.Name] = o.Value
	}
	told.Text, _ = told.Options[commandOption].(string)
	quick, cancel := context.WithTimeout(ctx, v.channel.patience)
	defer cancel()
	started, err := v.channel.relay.Deliver(quick, v.account.Account,
		func(_ context.Context, t trigger.Trigger) (out trigger.Event, fits bool, err error) {
			cfg, err := node.Configuration[triggerConfig](t.Config)
			named := func(name string) bool { return plainCommand(name) == c.Data.Name }
			if err != nil || !slices.Contains(cfg.Events, eventCommand) || !cfg.in(c.ChannelID) || len(cfg.Commands) > 0 &&
				!slices.ContainsFunc(cfg.Commands, named) {
				return out, false, err
			}
			return told.event("interaction:"+c.ID, c.ID, false)
		})
	language, _, _ := strings.Cut(c.Locale, "-")
	switch {
	case err != nil:
		v.warn("a command in Discord was not recorded", err)
		return v.whisper(wordsIn(language).TryAgain)
	case started == 0:
		return v.whisper(text.Of("No workflow is started by this command here.").In(language))
	}
	return v.whisper(text.Of("The workflow was started.").In(language))
}
