package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
	"tandem/text"
)

const (
	// maxContent is how many characters a message has at most, maxEmbeds and maxEmbedded how many embeds and characters in all of them.
	maxContent  = 2000
	maxEmbeds   = 10
	maxEmbedded = 6000
	// maxNonce is how long a nonce is at most.
	maxNonce = 25
	// maxFile is how large a file may be. Servers of Discord take less or more, as they are boosted; what one does not take it says itself.
	maxFile = 100 << 20
	// messagePage and memberPage are how many entries are read at a time.
	messagePage = 100
	memberPage  = 200
	// nonceTime is for how long a message is surely known by its nonce. Discord speaks of a few minutes.
	nonceTime = time.Minute
	// clockSlack is how far the clock of Discord may be from ours.
	clockSlack = 5 * time.Minute
)

// acting is one run of an operation.
type acting struct {
	ctx   context.Context
	call  *node.Call
	cfg   actionConfig
	api   *rest.API
	store *files.Store
}

// marker names what the node does, for the audit log.
func (a *acting) marker() string { return "tandem " + action.Marker(a.call, "discord") }

// nonce names a message, so that Discord takes it once.
func (a *acting) nonce() string { return action.Marker(a.call, "discord")[:maxNonce] }

// embeds are the embeds of a message.
func (a *acting) embeds() ([]json.RawMessage, error) {
	if payload.IsNull(a.cfg.Embed) {
		return nil, nil
	}
	list := []json.RawMessage{a.cfg.Embed}
	if given := gjson.ParseBytes(a.cfg.Embed); given.IsArray() {
		list = payload.Items(a.cfg.Embed)
	}
	if len(list) > maxEmbeds {
		return nil, fault.Newf(fault.InvalidInput, "the message has %d embeds; Discord takes %d at most", len(list), maxEmbeds).With("path", "embed_config")
	}
	size := 0
	for _, raw := range list {
		e := gjson.ParseBytes(raw)
		if !e.IsObject() {
			return nil, fault.New(fault.InvalidInput, "embed_config must be an embed as Discord defines it, or a list of them").With("path", "embed_config")
		}
		for _, at := range []string{"title", "description", "footer.text", "author.name"} {
			size += text.UTF16(e.Get(at).Str)
		}
		for _, field := range e.Get("fields").Array() {
			size += text.UTF16(field.Get("name").Str) + text.UTF16(field.Get("value").Str)
		}
	}
	if size > maxEmbedded {
		return nil, fault.Newf(fault.InvalidInput, "the embeds have %d characters; Discord takes %d at most", size, maxEmbedded).With("path", "embed_config")
	}
	return list, nil
}

// message is the body of a message.
func (a *acting) message() (map[string]any, error) {
	if n := text.UTF16(a.cfg.Content); n > maxContent {
		return nil, fault.Newf(fault.InvalidInput, "the message has %d characters; Discord takes %d at most", n, maxContent).With("path", "message_content")
	}
	embeds, err := a.embeds()
	if err != nil {
		return nil, err
	}
	mentions := append([]string{}, a.cfg.AllowedMentions...)
	body := map[string]any{"nonce": a.nonce(), "enforce_nonce": true, "allowed_mentions": map[string]any{"parse": mentions}}
	if a.cfg.Content != "" {
		body["content"] = a.cfg.Content
	}
	if len(embeds) > 0 {
		body["embeds"] = embeds
	}
	return body, nil
}

// post posts a message. When its answer is lost it is sent once more, at once: Discord knows it by its nonce, and answers with what it has
// taken.
func (a *acting) post(c rest.Call) (out actionResult, err error) {
	c.Method, c.Fields = http.MethodPost, []string{"id", "channel_id"}
	answer, err := a.api.Do(a.ctx, c)
	if lost, ok := errors.AsType[*outbound.Error](err); ok && lost.Fate == outbound.Unknown && a.ctx.Err() == nil {
		answer, err = a.api.Do(a.ctx, c)
	}
	if err != nil {
		return out, err
	}
	return a.sent(answer.Get("channel_id").Str, answer.Get("id").Str, answer), nil
}

// sent is the result of a message.
func (a *acting) sent(channel, message string, answer rest.Answer) (out actionResult) {
	out.ChannelID, out.MessageID, out.ResourceID = channel, message, message
	out.ResourceURL = a.link(channel, message)
	out.Response, out.RateLimit = answer.Raw(), answer.Limits()
	return out
}

// link is where people find something.
func (a *acting) link(ids ...string) string {
	server := a.cfg.ServerID
	if server == "" || a.cfg.ActionType == "send_dm" {
		server = "@me"
	}
	return "https://discord.com/channels/" + strings.Join(append([]string{server}, ids...), "/")
}

func (a *acting) send() (out actionResult, err error) {
	body, err := a.message()
	if err != nil {
		return out, err
	}
	return a.post(rest.Call{Path: rest.Path("channels", a.cfg.ChannelID, "messages"), Body: body})
}

// dm is the channel for messages to a person. Asking for it again gives the same one.
func (a *acting) dm() (string, error) {
	answer, err := a.api.Do(a.ctx, rest.Call{
		Method: http.MethodPost, Path: "/users/@me/channels", Body: map[string]string{"recipient_id": a.cfg.TargetUser}, Repeatable: true, Fields: []string{"id"},
	})
	return answer.Get("id").Str, action.NotTaken(err)
}

func (a *acting) sendDM() (out actionResult, err error) {
	body, err := a.message()
	if err != nil {
		return out, err
	}
	channel, err := a.dm()
	if err != nil {
		return out, err
	}
	return a.post(rest.Call{Path: rest.Path("channels", channel, "messages"), Body: body})
}

// sendFile posts a message with a file, which is a form.
func (a *acting) sendFile() (out actionResult, err error) {
	source, err := fileref.Open(a.ctx, a.store, a.call, a.cfg.File, "file", maxFile)
	if err != nil {
		return out, err
	}
	body, err := a.message()
	if err != nil {
		return out, err
	}
	message, err := payload.Encode(body)
	if err != nil {
		return out, err
	}
	c := rest.Call{Path: rest.Path("channels", a.cfg.ChannelID, "messages")}
	if err := c.Upload("files[0]", source, rest.Part{Name: "payload_json", ContentType: "application/json", Value: message}); err != nil {
		return out, err
	}
	return a.post(c)
}

// channelTypes are the numbers that Discord has for sorts of channels.
func channelTypes() map[string]int {
	return map[string]int{"text": 0, "voice": 2, "category": 4, "announcement": 5, "stage": 13, "forum": 15}
}

// reason is the header by which the audit log of the server says why something was done.
func reason(why string) http.Header {
	if why == "" {
		return nil
	}
	return http.Header{"X-Audit-Log-Reason": {url.PathEscape(why)}}
}

// made is the result of something new.
func (a *acting) made(id, channel string, answer rest.Answer) (out actionResult) {
	out.ResourceID, out.ChannelID, out.ResourceURL = id, channel, a.link(id)
	out.Response, out.RateLimit = answer.Raw(), answer.Limits()
	return out
}

func (a *acting) createChannel() (out actionResult, err error) {
	answer, err := a.api.Do(a.ctx, rest.Call{
		Method: http.MethodPost, Path: rest.Path("guilds", a.cfg.ServerID, "channels"), Header: reason(a.marker()), Fields: []string{"id"},
		Body: map[string]any{"name": a.cfg.Name, "type": channelTypes()[a.cfg.Type]},
	})
	if err != nil {
		return out, err
	}
	return a.made(answer.Get("id").Str, answer.Get("id").Str, answer), nil
}

// publicThread is the sort of a thread that everybody in the channel sees.
const publicThread = 11

func (a *acting) createThread() (out actionResult, err error) {
	path, body := rest.Path("channels", a.cfg.ChannelID, "threads"), map[string]any{"name": a.cfg.Name, "type": publicThread}
	if a.cfg.MessageID != "" {
		path, body = rest.Path("channels", a.cfg.ChannelID, "messages", a.cfg.MessageID, "threads"), map[string]any{"name": a.cfg.Name}
	}
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodPost, Path: path, Body: body,
		Header: reason(a.marker()), Fields: []string{"id"}})
	if err != nil {
		return out, err
	}
	return a.made(answer.Get("id").Str, answer.Get("id").Str, answer), nil
}

// change makes a call that may be repeated, and has no answer to speak of. Already are codes that say that nothing is left to do.
func (a *acting) change(c rest.Call, already ...int64) (out actionResult, err error) {
	c.Wants = rest.Value
	answer, err := a.api.Do(a.ctx, c)
	if refused, ok := errors.AsType[*outbound.Error](err); ok && len(already) > 0 {
		code, _ := refused.Fault.Details["code"].(int64)
		if slices.Contains(already, code) {
			answer, err = rest.Answer{}, nil
		}
	}
	out.Response, out.RateLimit = answer.Raw(), answer.Limits()
	return out, err
}

// aboutMessage says which message a result is about.
func (a *acting) aboutMessage(out actionResult, err error) (actionResult, error) {
	if err == nil {
		out.ChannelID, out.MessageID, out.ResourceID, out.ResourceURL = a.cfg.ChannelID, a.cfg.MessageID, a.cfg.MessageID,
			a.link(a.cfg.ChannelID, a.cfg.MessageID)
	}
	return out, err
}

func (a *acting) react() (actionResult, error) {
	path := rest.Path("channels", a.cfg.ChannelID, "messages", a.cfg.MessageID, "reactions", strings.Trim(a.cfg.Emoji, "<>"), "@me")
	return a.aboutMessage(a.change(rest.Call{Method: http.MethodPut, Path: path}))
}

func (a *acting) pin() (actionResult, error) {
	return a.aboutMessage(a.change(rest.Call{Method: http.MethodPut,
		Path: rest.Path("channels", a.cfg.ChannelID, "pins", a.cfg.MessageID)}))
}

// aboutMember says which person a result is about.
func (a *acting) aboutMember(out actionResult, err error) (actionResult, error) {
	out.ResourceID = a.cfg.TargetUser
	return out, err
}

func (a *acting) role() (actionResult, error) {
	method := http.MethodPut
	if a.cfg.Action == "remove" {
		method = http.MethodDelete
	}
	return a.aboutMember(a.change(rest.Call{Method: method,
		Path: rest.Path("guilds", a.cfg.ServerID, "members", a.cfg.TargetUser, "roles", a.cfg.RoleID), Header: reason(a.cfg.Reason)}))
}

func (a *acting) kick() (actionResult, error) {
	return a.aboutMember(a.change(rest.Call{Method: http.MethodDelete,
		Path: rest.Path("guilds", a.cfg.ServerID, "members", a.cfg.TargetUser), Header: reason(a.cfg.Reason)}, unknownMember))
}

func (a *acting) ban() (actionResult, error) {
	return a.aboutMember(a.change(rest.Call{
		Method: http.MethodPut, Path: rest.Path("guilds", a.cfg.ServerID, "bans", a.cfg.TargetUser),
		Body: map[string]any{"delete_message_seconds": 0}, Header: reason(a.cfg.Reason),
	}))
}

// messages reads a channel: the newest first, or the oldest first from a message on.
func (a *acting) messages() (out actionResult, err error) {
	forward := a.cfg.After != "" && a.cfg.Before == ""
	out.ChannelID = a.cfg.ChannelID
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		query := url.Values{"limit": {strconv.Itoa(messagePage)}}
		from, side := cursor, "before"
		if forward {
			side = "after"
		}
		if from == "" && forward {
			from = a.cfg.After
		} else if from == "" {
			from = a.cfg.Before
		}
		if from != "" {
			query.Set(side, from)
		}
		answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: rest.Path("channels", a.cfg.ChannelID, "messages"),
			Query: query, Wants: rest.List})
		if err != nil {
			return nil, "", err
		}
		out.RateLimit = answer.Limits()
		list := rest.Items(gjson.ParseBytes(answer.Body))
		if forward {
			slices.Reverse(list) // Discord lists the newest first, whatever is asked for
		}
		return a.until(list), nextID(list, messagePage, "id"), nil
	})
	out.Response = json.RawMessage("null")
	return out, err
}

// until leaves out what comes before the message after which is read, when there is an end as well.
func (a *acting) until(list []json.RawMessage) []json.RawMessage {
	if a.cfg.After == "" || a.cfg.Before == "" {
		return list
	}
	return slices.DeleteFunc(list, func(m json.RawMessage) bool { return !later(gjson.GetBytes(m, "id").Str, a.cfg.After) })
}

// later says that an id is that of something newer: ids are numbers that grow.
func later(id, than string) bool {
	if len(id) != len(than) {
		return len(id) > len(than)
	}
	return id > than
}

// nextID is where a list goes on: behind its last entry, if the page was full.
func nextID(list []json.RawMessage, page int, at string) string {
	if len(list) < page {
		return ""
	}
	return gjson.GetBytes(list[len(list)-1], at).Str
}

func (a *acting) members() (out actionResult, err error) {
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		query := url.Values{"limit": {strconv.Itoa(memberPage)}}
		if cursor != "" {
			query.Set("after", cursor)
		}
		answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: rest.Path("guilds", a.cfg.ServerID, "members"),
			Query: query, Wants: rest.List})
		if err != nil {
			return nil, "", err
		}
		out.RateLimit = answer.Limits()
		list := rest.Items(gjson.ParseBytes(answer.Body))
		return list, nextID(list, memberPage, "user.id"), nil
	})
	out.Response = json.RawMessage("null")
	return out, err
}

func (a *acting) request() (out actionResult, err error) {
	answer, err := a.api.Request(a.ctx, rest.Raw{Method: a.cfg.Method, Path: a.cfg.Path, Query: a.cfg.Query, Body: a.cfg.Body})
	out.Response, out.RateLimit = answer.Raw(), answer.Limits()
	out.ResourceID = answer.Get("id").String()
	return out, err
}

// inquirePost settles what became of a message. For a while Discord knows it by its nonce: sending it again is harmless then, and gives
// what was taken. Later the channel is looked through: a message with the same text may be that of another node, and none says that it did
// not arrive.
func (a *acting) inquirePost() (out actionResult, found bool, err error) {
	if a.call.Time().Sub(a.call.Now) < nonceTime {
		return out, false, nil
	}
	channel := a.cfg.ChannelID
	if a.cfg.ActionType == "send_dm" {
		if channel, err = a.dm(); err != nil {
			return out, false, err
		}
	}
	me, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: "/users/@me", Fields: []string{"id"}})
	if err != nil {
		return out, false, err
	}
	b := *a
	b.cfg.ChannelID, b.cfg.After, b.cfg.Before, b.cfg.Cursor, b.cfg.Limit = channel,
		idAt(a.call.Now.Add(-clockSlack).UnixMilli()), "", "", 1000
	since, err := b.messages()
	if err != nil {
		return out, false, err
	}
	if since.NextCursor != "" {
		return out, false, fault.New(fault.Unsupported, "there are too many messages in the channel since to look for this one")
	}
	for _, raw := range since.Items {
		m := gjson.ParseBytes(raw)
		if m.Get("author.id").Str == me.Get("id").Str && strings.TrimSpace(m.Get("content").Str) == strings.TrimSpace(a.cfg.Content) {
			return out, false, fault.Newf(fault.Unsupported, "the bot has posted the same text in the channel since then (message %s), for this node or for another", m.Get("id").Str)
		}
	}
	return out, false, nil
}

// inquireMade looks for a channel or a thread in the audit log of the server, where the reason names the node.
func (a *acting) inquireMade() (out actionResult, found bool, err error) {
	if a.cfg.ServerID == "" {
		return out, false, fault.New(fault.Unsupported, "without server_id nobody can look whether it was made").With("path", "server_id")
	}
	entry := 10 // a channel was made
	if a.cfg.ActionType == "create_thread" {
		entry = 110
	}
	query := url.Values{"action_type": {strconv.Itoa(entry)}, "limit": {"100"}}
	answer, err := a.api.Do(a.ctx, rest.Call{Method: http.MethodGet, Path: rest.Path("guilds", a.cfg.ServerID, "audit-logs"), Query: query,
		Fields: []string{"audit_log_entries"}})
	if err != nil {
		return out, false, err
	}
	entries := answer.Get("audit_log_entries").Array()
	for _, e := range entries {
		if e.Get("reason").Str == a.marker() {
			id := e.Get("target_id").Str
			return a.made(id, id, rest.Answer{Body: json.RawMessage(e.Raw)}), true, nil
		}
	}
	if len(entries) == 100 && later(entries[99].Get("id").Str, idAt(a.call.Now.Add(-clockSlack).UnixMilli())) {
		return out, false, fault.New(fault.Unsupported, fmt.Sprintf("the audit log of the server has more than %d entries since then", len(entries)))
	}
	return out, false, nil
}
