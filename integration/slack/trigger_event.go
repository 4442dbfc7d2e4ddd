package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node"
	"tandem/store"
	"tandem/trigger"
)

// eventCallback is what Slack posts when something happens in a workspace, or to try the address.
type eventCallback struct {
	Type           string `json:"type"`
	Challenge      string `json:"challenge"`
	TeamID         string `json:"team_id"`
	AppID          string `json:"api_app_id"`
	EventID        string `json:"event_id"`
	EventTime      int64  `json:"event_time"`
	Authorizations []struct {
		TeamID       string `json:"team_id"`
		EnterpriseID string `json:"enterprise_id"`
		UserID       string `json:"user_id"`
		IsBot        bool   `json:"is_bot"`
	} `json:"authorizations"`
	Event occurrence `json:"event"`
}

// occurrence is what happened, as far as it is read.
type occurrence struct {
	Type      string    `json:"type"`
	Subtype   string    `json:"subtype"`
	Channel   reference `json:"channel"`
	ChannelID string    `json:"channel_id"`
	User      reference `json:"user"`
	UserID    string    `json:"user_id"`
	BotID     string    `json:"bot_id"`
	AppID     string    `json:"app_id"`
	Text      string    `json:"text"`
	TS        string    `json:"ts"`
	ThreadTS  string    `json:"thread_ts"`
	Parent    string    `json:"parent_user_id"`
	// Item is what a reaction is to.
	Item struct {
		Channel string `json:"channel"`
	} `json:"item"`
}

// reference is a channel or a person: some events have its id, others all that is known of it.
type reference struct{ ID, Name string }

// UnmarshalJSON reads either.
func (r *reference) UnmarshalJSON(raw []byte) error {
	v := gjson.ParseBytes(raw)
	if v.IsObject() {
		r.ID = v.Get("id").String()
		r.Name = cmp.Or(v.Get("profile.display_name").String(), v.Get("real_name").String(), v.Get("name").String())
		return nil
	}
	r.ID = v.String()
	return nil
}

// sender is who wrote a message, and the user id of the app's own bot if the event names it.
func (e *eventCallback) sender() (who person, bot string) {
	who = person{id: e.Event.User.ID, team: e.TeamID}
	if len(e.Authorizations) > 0 {
		first := e.Authorizations[0]
		who.team, who.enterprise = cmp.Or(first.TeamID, who.team), first.EnterpriseID
		if first.IsBot {
			bot = first.UserID
		}
	}
	return who, bot
}

// written says that it is a message that somebody wrote, and not a change of one or a note of Slack.
func (e *occurrence) written() bool {
	return slices.Contains([]string{"", "thread_broadcast", "file_share", "me_message", "bot_message"}, e.Subtype)
}

func (e *occurrence) inThread() bool { return e.ThreadTS != "" && e.ThreadTS != e.TS }

// isReply tells whether a person has written in a thread that is not known to be about something else.
func (e *eventCallback) isReply(bot string) bool {
	m := &e.Event
	ours := bot == "" || m.Parent == "" || m.Parent == bot
	byPerson := m.User.ID != "" && m.User.ID != bot && m.BotID == "" && m.Subtype != "me_message" && m.Subtype != "bot_message"
	return m.Type == eventMessage && m.written() && m.inThread() && ours && byPerson
}

// happening is an event on its way to the triggers of an app.
type happening struct {
	channel *Channel
	session *session
	account store.Account
	e       *eventCallback
	bot     string
	body    []byte
	// answers says that it answers a question.
	answers bool

	looked bool
	// The names of the channel and of who did it, once they were looked up.
	where, who string
	whereErr   error
}

// judge implements [trigger.Judge].
func (h *happening) judge(ctx context.Context, t trigger.Trigger) (out trigger.Event, fits bool, err error) {
	cfg, err := node.Configuration[triggerConfig](t.Config)
	if err != nil {
		return out, false, err
	}
	kind, ok := h.kindFor(&cfg)
	if !ok || !h.ofWorkspace(cfg.Workspace) || !h.wanted(&cfg) {
		return out, false, nil
	}
	if id := h.channelID(); len(cfg.Channels) > 0 && id != "" && !cfg.inChannels(id, "") {
		if !cfg.byName() {
			return out, false, nil
		}
		h.look(ctx)
		if h.whereErr != nil {
			if fault.From(h.whereErr).Retryable {
				return out, false, h.whereErr // Slack sends it again
			}
			return out, false, nil // told in the log
		}
		if !cfg.inChannels(id, h.where) {
			return out, false, nil
		}
	}
	out.Key, out.Time = h.key(), h.time()
	if h.answers {
		out.Ignored = "it answers a question that Tandem has asked"
	} else {
		h.look(ctx)
	}
	out.Payload, err = h.payload(kind)
	return out, true, err
}

// kindFor is what the event is to a trigger. Slack tells of a message that mentions the app twice, as a message and as a mention: both are
// the same to us.
func (h *happening) kindFor(cfg *triggerConfig) (string, bool) {
	m := &h.e.Event
	kind := m.Type
	if kind == eventMessage && h.bot != "" && strings.Contains(m.Text, "<@"+h.bot+">") && slices.Contains(cfg.Events, eventMention) {
		kind = eventMention
	}
	if kind == eventMention && !slices.Contains(cfg.Events, eventMention) {
		kind = eventMessage // it is one, whichever of the two comes first
	}
	return kind, slices.Contains(cfg.Events, kind)
}

func (h *happening) ofWorkspace(id string) bool {
	if h.e.TeamID == id {
		return true
	}
	for _, a := range h.e.Authorizations {
		if a.TeamID == id || a.EnterpriseID == id {
			return true
		}
	}
	return false
}

// wanted says whether who did it, and what was written, is what a trigger is for.
func (h *happening) wanted(cfg *triggerConfig) bool {
	m := &h.e.Event
	message := m.Type == eventMessage || m.Type == eventMention
	own := h.bot != "" && cmp.Or(m.User.ID, m.UserID) == h.bot || m.AppID != "" && m.AppID == h.e.AppID
	switch {
	case own:
		return false
	case !message:
		return true
	case !m.written(), cfg.FilterBots && (m.BotID != "" || m.Subtype == "bot_message"), !cfg.Threads && m.inThread():
		return false
	}
	return trigger.Mentions(unescape(m.Text), cfg.Keywords)
}

// key is the same for everything that Slack tells of one event.
func (h *happening) key() string {
	if m := &h.e.Event; (m.Type == eventMessage || m.Type == eventMention) && m.TS != "" {
		return "message:" + m.Channel.ID + ":" + m.TS
	}
	return "event:" + h.e.EventID
}

func (h *happening) time() time.Time {
	if h.e.EventTime > 0 {
		return time.Unix(h.e.EventTime, 0)
	}
	seconds, err := strconv.ParseFloat(h.e.Event.TS, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

func (h *happening) channelID() string {
	m := &h.e.Event
	return cmp.Or(m.Channel.ID, m.ChannelID, m.Item.Channel)
}

// look looks the names up once, within a bound: Slack waits for its answer. What is not found stays empty.
func (h *happening) look(ctx context.Context) {
	if h.looked {
		return
	}
	h.looked = true
	ctx, cancel := context.WithTimeout(ctx, h.channel.lookup)
	defer cancel()
	m, names := &h.e.Event, &h.channel.names
	at := h.account.Workspace + "/" + h.account.Credential + "/"
	h.where, h.who = m.Channel.Name, m.User.Name
	var wait sync.WaitGroup
	if id := h.channelID(); id != "" && h.where == "" {
		wait.Go(func() {
			h.where, h.whereErr = names.find(at+id, func() (string, error) {
				found, err := h.session.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
				if err != nil {
					return "", problem("tell the name of a channel", err)
				}
				return found.Name, nil
			})
			h.warn("the name of a channel in Slack is not known", id, h.whereErr)
		})
	}
	if id := cmp.Or(m.User.ID, m.UserID); id != "" && h.who == "" {
		wait.Go(func() {
			var err error
			h.who, err = names.find(at+id, func() (string, error) {
				found, err := h.session.api.GetUserInfoContext(ctx, id)
				if err != nil {
					return "", problem("tell the name of a person", err)
				}
				return cmp.Or(found.Profile.DisplayName, found.RealName, found.Name), nil
			})
			h.warn("the name of a person in Slack is not known", id, err)
		})
	}
	wait.Wait()
}

func (h *happening) warn(text, id string, err error) {
	if err != nil {
		h.channel.log.Warn(text, "workspace", h.account.Workspace, "credential", h.account.Credential, "id", id, "error", err)
	}
}

// payload is what the trigger brings. The token that older apps are verified by is a secret, so it is left out.
func (h *happening) payload(kind string) (json.RawMessage, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(h.body, &whole); err != nil {
		return nil, fault.Newf(fault.Invalid, "the event cannot be kept: %w", err)
	}
	delete(whole, "token")
	m := &h.e.Event
	raw, err := json.Marshal(struct {
		EventType string `json:"event_type"`
		Channel   string `json:"channel_id"`
		Where     string `json:"channel_name"`
		User      string `json:"user_id"`
		Who       string `json:"user_name"`
		Text      string `json:"message_text"`
		Thread    string `json:"thread_ts"`
		Whole     any    `json:"slack_payload"`
	}{kind, h.channelID(), h.where, cmp.Or(m.User.ID, m.UserID), h.who, unescape(m.Text), m.ThreadTS, whole})
	if err != nil {
		return nil, fault.Newf(fault.Internal, "an event cannot be written: %w", err)
	}
	return raw, nil
}

// How long names are kept, and how many.
const (
	nameKept    = time.Hour
	nameMissing = time.Minute
	namesMost   = 10_000
)

// names remembers the names of channels and people for a while.
type names struct {
	mu    sync.Mutex
	known map[string]named
}

type named struct {
	text  string
	err   error
	until time.Time
}

// find returns a name that is known, or asks for it. A name that could not be found is remembered, too, for a shorter time.
func (n *names) find(key string, ask func() (string, error)) (string, error) {
	now := time.Now()
	n.mu.Lock()
	found, ok := n.known[key]
	n.mu.Unlock()
	if ok && now.Before(found.until) {
		return found.text, found.err
	}
	text, err := ask()
	keep := nameKept
	if err != nil {
		keep = nameMissing
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= namesMost {
		clear(n.known)
	}
	n.known[key] = named{text, err, now.Add(keep)}
	return text, err
}
