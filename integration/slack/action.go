package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	Channel         string          `json:"channel" doc:"The channel: #name, an id, or a person as @name, mail address or id." zh:"频道：#名称、编号，或以 @名称、邮箱、编号表示的人员。"`
	ChannelOverride string          `json:"channel_override" with:"action_type=send_message|post_message" doc:"A channel that takes the place of channel." zh:"替代 channel 的频道。"`
	Message         string          `json:"message" with:"action_type=send_message|post_message|update_message|send_file" doc:"The text of the message." zh:"消息文本。"`
	MessageFormat   string          `json:"message_format" enum:"text|mrkdwn|blocks" with:"action_type=send_message|post_message|update_message" doc:"How the message is written: a plain text, Slack's own marks, or blocks." zh:"消息的写法：纯文本、Slack 标记或 blocks。"`
	Blocks          json.RawMessage `json:"blocks" takes:"list|text" with:"action_type=send_message|post_message|update_message" doc:"Blocks as Slack defines them. The message is then what notifications show." zh:"消息块：Slack 定义的 blocks；此时 message 为通知中显示的文本。"`
	Attachments     json.RawMessage `json:"attachments" takes:"list" with:"action_type=send_message|post_message|update_message" doc:"Attachments as Slack defines them." zh:"Slack 定义的附件。"`
	UserMentions    []string        `json:"user_mentions" with:"action_type=send_message|post_message" doc:"The ids of people who are mentioned before the message." zh:"在消息前提及的人员编号。"`
	ThreadTS        string          `json:"thread_ts" with:"action_type=send_message|post_message|send_file" doc:"The message in whose thread it is posted." zh:"在哪条消息的话题中发布。"`
	UnfurlLinks     bool            `json:"unfurl_links" with:"action_type=send_message|post_message" doc:"Whether Slack shows what links lead to." zh:"是否展开链接预览。"`
	UnfurlMedia     bool            `json:"unfurl_media" with:"action_type=send_message|post_message" doc:"Whether Slack shows images and films that are linked." zh:"是否展开链接的媒体。"`
	MessageTS       string          `json:"message_ts" with:"action_type=update_message|delete_message|add_reaction" doc:"The message, by the time that Slack gave it." zh:"消息，以 Slack 给出的时间戳表示。"`
	File            json.RawMessage `json:"file" takes:"file" with:"action_type=send_file" doc:"The file that is sent." zh:"要发送的文件。"`
	Title           string          `json:"title" with:"action_type=send_file" doc:"What the file is called in Slack; its name if nothing is said." zh:"文件在 Slack 中的标题；默认为文件名。"`
	Emoji           string          `json:"emoji" with:"action_type=add_reaction" doc:"The name of the reaction, without colons." zh:"表情回应的名称，不带冒号。"`
	Name            string          `json:"name" with:"action_type=create_channel" doc:"The name of the new channel." zh:"新频道的名称。"`
	IsPrivate       bool            `json:"is_private" with:"action_type=create_channel" doc:"Whether only those who are invited see the channel." zh:"频道是否仅对受邀者可见。"`
	Users           []string        `json:"users" with:"action_type=invite_users" doc:"The ids of the people who are invited." zh:"受邀人员的编号。"`
	Topic           string          `json:"topic" with:"action_type=set_channel_topic" doc:"The topic of the channel." zh:"频道主题。"`
	User            string          `json:"user" with:"action_type=get_user_info" doc:"The id of the person." zh:"人员编号。"`
	Email           string          `json:"email" with:"action_type=get_user_info" doc:"The mail address of the person." zh:"人员的邮箱地址。"`
	Oldest          string          `json:"oldest" with:"action_type=get_channel_history" doc:"Messages after this time only, as Slack writes times." zh:"仅此时间之后的消息（Slack 时间戳）。"`
	Latest          string          `json:"latest" with:"action_type=get_channel_history" doc:"Messages before this time only, as Slack writes times." zh:"仅此时间之前的消息（Slack 时间戳）。"`
	Limit           int             `json:"limit" range:"1..1000" with:"action_type=get_channel_history" doc:"How many messages are read at most." zh:"最多读取的消息数。"`
	Cursor          string          `json:"cursor" with:"action_type=get_channel_history" doc:"Where to go on: next_cursor of an earlier run." zh:"从何处继续：此前运行的 next_cursor。"`
	Method          string          `json:"method" with:"action_type=request" doc:"The method of the Web API, pins.list for instance." zh:"Web API 方法，例如 pins.list。"`
	Body            node.Object     `json:"body" with:"action_type=request" doc:"The arguments of the method." zh:"方法的参数。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() {
	c.ActionType, c.MessageFormat, c.UnfurlLinks, c.UnfurlMedia, c.Limit = "send_message", "text", true, true, 100
}

type actionResult struct {
	Success    bool              `json:"success" doc:"Always true: a failure is an error." zh:"始终为 true：失败会报错。"`
	Action     string            `json:"action" doc:"What was done." zh:"执行的操作。"`
	Content    string            `json:"content" doc:"The text that was sent, or that Slack has now." zh:"已发送或 Slack 当前的文本。"`
	MessageTS  string            `json:"message_ts" doc:"The message, by the time that Slack gave it; empty if there is none." zh:"消息的 Slack 时间戳；没有则为空。"`
	ChannelID  string            `json:"channel_id" doc:"The id of the channel." zh:"频道编号。"`
	ResourceID string            `json:"resource_id" doc:"The id of what was made, changed or read." zh:"所创建、更改或读取对象的编号。"`
	Items      []json.RawMessage `json:"items" doc:"The messages that were read." zh:"读取到的消息。"`
	NextCursor string            `json:"next_cursor" doc:"Where to go on when there are more." zh:"有更多内容时从何处继续。"`
	Truncated  bool              `json:"truncated" doc:"Whether there are more than were read." zh:"是否还有未读取的内容。"`
	Response   json.RawMessage   `json:"api_response" doc:"The answer of Slack." zh:"Slack 的响应。"`
}

// maxMessage is how many characters a message of Slack has at most.
const maxMessage = 40_000

// act acts in Slack.
func act(client *outbound.Client, store *files.Store) node.Kind {
	does := func(do func(*acting) (actionResult, error)) func(context.Context, *node.Call, actionConfig) (actionResult, error) {
		return func(ctx context.Context, call *node.Call, cfg actionConfig) (actionResult, error) {
			a, err := begin(ctx, client, call, cfg)
			if err != nil {
				return actionResult{}, err
			}
			out, err := do(a)
			out.Success, out.Action = err == nil, cfg.ActionType
			if out.Items == nil {
				out.Items = []json.RawMessage{}
			}
			return out, err
		}
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.SLACK", Title: node.Says("Slack", "Slack"),
		Description: node.Says("Posts to Slack, changes messages and channels, and reads from it.", "在 Slack 中发布、更改消息与频道，并读取内容。"),
		Effect:      workflow.Once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What Slack has answered.", "Slack 的响应。")}},
		Examples: []node.Example{{
			Shows:  node.Says("Tells a channel that an order has come in.", "在频道中通知有新订单。"),
			Config: `{"credential_id": "slack_bot", "action_type": "send_message", "channel": "C0PS", "message": "Order {{order}} has come in."}`,
			Input:  `{"order": 7}`,
			Output: `{"result": {"success": true, "action": "send_message", "content": "Order 7 has come in.", "message_ts": "…", "channel_id": "C0PS", "resource_id": "…", "items": [], "next_cursor": "", "truncated": false, "api_response": "…"}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "send_message", Also: []string{"post_message"}, Effect: workflow.Once, Needs: []string{"channel|channel_override", "message|blocks|attachments"}, Do: does((*acting).send), Inquire: inquire(client)},
		{Name: "send_file", Effect: workflow.Once, Needs: []string{"channel", "file"}, Do: does(func(a *acting) (actionResult, error) { return a.sendFile(store) })},
		{Name: "create_channel", Effect: workflow.Once, Needs: []string{"name"}, Do: does((*acting).createChannel)},
		{Name: "update_message", Effect: workflow.Idempotent, Needs: []string{"channel", "message_ts", "message|blocks|attachments"}, Do: does((*acting).update)},
		{Name: "delete_message", Effect: workflow.Idempotent, Needs: []string{"channel", "message_ts"}, Do: does((*acting).delete)},
		{Name: "invite_users", Effect: workflow.Idempotent, Needs: []string{"channel", "users"}, Do: does((*acting).invite)},
		{Name: "set_channel_topic", Effect: workflow.Idempotent, Needs: []string{"channel", "topic"}, Do: does((*acting).setTopic)},
		{Name: "archive_channel", Effect: workflow.Idempotent, Needs: []string{"channel"}, Do: does((*acting).archive)},
		{Name: "add_reaction", Effect: workflow.Idempotent, Needs: []string{"channel", "message_ts", "emoji"}, Do: does((*acting).react)},
		{Name: "get_user_info", Effect: workflow.Idempotent, Needs: []string{"user|email"}, Do: does((*acting).userInfo)},
		{Name: "get_channel_info", Effect: workflow.Idempotent, Needs: []string{"channel"}, Do: does((*acting).channelInfo)},
		{Name: "get_channel_history", Effect: workflow.Idempotent, Needs: []string{"channel"}, Do: does((*acting).history)},
		{Name: "request", Effect: workflow.Once, Needs: []string{"method"}, Do: does((*acting).request)},
	})
}

// acting is one run of an operation.
type acting struct {
	ctx  context.Context
	call *node.Call
	cfg  actionConfig
	api  *webAPI
	// session looks people up by their names.
	session *session
}

func begin(ctx context.Context, client *outbound.Client, call *node.Call, cfg actionConfig) (*acting, error) {
	c, err := call.Credential(ctx, gjson.GetBytes(call.Config, "credential_id").Str, credentialType)
	if err != nil {
		return nil, err
	}
	api, err := readAPI(client, c)
	if err != nil {
		return nil, err
	}
	s, err := read(client.HTTPClient(), c)
	return &acting{ctx: ctx, call: call, cfg: cfg, api: api, session: s}, err
}

// done is the result of an answer.
func done(answer json.RawMessage, err error) (actionResult, gjson.Result, error) {
	if err != nil {
		return actionResult{}, gjson.Result{}, err
	}
	return actionResult{Response: answer}, gjson.ParseBytes(answer), nil
}

// marker names what the node does: a message has it with it, so that it is found again.
func marker(call *node.Call) string { return action.Marker(call, "slack") }

const markerType = "tandem_message"

func (a *acting) text() (string, error) {
	text := a.cfg.Message
	if a.cfg.MessageFormat == "text" {
		text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	}
	for i := len(a.cfg.UserMentions) - 1; i >= 0; i-- {
		text = "<@" + strings.TrimPrefix(a.cfg.UserMentions[i], "@") + "> " + text
	}
	if n := utf8.RuneCountInString(text); n > maxMessage {
		return "", fault.Newf(fault.InvalidInput, "the message has %d characters; Slack takes %d at most", n, maxMessage).With("path", "message")
	}
	return text, nil
}

// content are the arguments of a message.
func (a *acting) content() (arguments, error) {
	text, err := a.text()
	if err != nil {
		return nil, err
	}
	args := arguments{"text": text, "attachments": a.cfg.Attachments}
	if a.cfg.MessageFormat == "text" {
		args["mrkdwn"] = "false"
	}
	blocks := a.cfg.Blocks
	if v := gjson.ParseBytes(blocks); v.Type == gjson.String {
		blocks = json.RawMessage(v.Str)
	}
	if len(blocks) > 0 && !gjson.ParseBytes(blocks).IsArray() {
		return nil, fault.New(fault.InvalidInput, "blocks must be a list of blocks as Slack defines them").With("path", "blocks")
	}
	args["blocks"] = blocks
	return args, nil
}

func (a *acting) send() (actionResult, error) {
	args, err := a.content()
	if err != nil {
		return actionResult{}, err
	}
	to := a.cfg.ChannelOverride
	if to == "" {
		to = a.cfg.Channel
	}
	if args["channel"], err = a.session.find(a.ctx, to); err != nil {
		return actionResult{}, action.NotTaken(err)
	}
	args["thread_ts"], args["unfurl_links"], args["unfurl_media"] = a.cfg.ThreadTS, a.cfg.UnfurlLinks, a.cfg.UnfurlMedia
	args["metadata"] = map[string]any{"event_type": markerType, "event_payload": map[string]string{"id": marker(a.call)}}
	out, answer, err := done(a.api.call(a.ctx, "chat.postMessage", "post the message", args, false, "ts", "channel"))
	if err != nil {
		return out, err
	}
	return posted(out, answer.Get("channel").Str, answer.Get("ts").Str, a.cfg.Message), nil
}

func posted(out actionResult, channel, ts, content string) actionResult {
	out.ChannelID, out.MessageTS, out.ResourceID, out.Content = channel, ts, ts, content
	return out
}

// maxFile is how large a file may be that is sent: what Slack takes.
const maxFile = 1 << 30

// sendFile hands a file to Slack, which keeps it to itself until the last call shares it: only that one has an effect.
func (a *acting) sendFile(store *files.Store) (actionResult, error) {
	source, err := fileref.Open(a.ctx, store, a.call, a.cfg.File, "file", maxFile)
	if err != nil {
		return actionResult{}, err
	}
	channel, err := a.conversation()
	if err != nil {
		return actionResult{}, action.NotTaken(err)
	}
	place, err := a.api.call(a.ctx, "files.getUploadURLExternal", "take the file", arguments{"filename": source.Name, "length": source.Size}, true)
	if err != nil {
		return actionResult{}, action.NotTaken(err)
	}
	to, err := url.Parse(gjson.GetBytes(place, "upload_url").Str)
	id := gjson.GetBytes(place, "file_id").Str
	if err != nil || to.Host == "" || id == "" {
		return actionResult{}, fault.New(fault.RemoteError, "Slack names no address to send the file to")
	}
	response, err := a.api.client.Do(a.ctx, outbound.Request{
		Method: http.MethodPost, URL: to, Open: source.Open, Size: source.Size, Repeatable: true, Redirects: outbound.NoFollow,
		Header: http.Header{"Content-Type": {source.ContentType}},
	})
	if err != nil {
		return actionResult{}, action.NotTaken(err)
	}
	_, err = response.ReadAll()
	if bad := response.Problem(time.Now()); bad != nil {
		return actionResult{}, action.NotTaken(bad)
	}
	if err != nil {
		return actionResult{}, action.NotTaken(err)
	}
	out, answer, err := done(a.api.call(a.ctx, "files.completeUploadExternal", "share the file", arguments{
		"files": []map[string]string{{"id": id, "title": cmp.Or(a.cfg.Title, source.Name)}}, "channel_id": channel, "initial_comment": a.cfg.Message, "thread_ts": a.cfg.ThreadTS,
	}, false))
	out.ChannelID, out.ResourceID, out.Content = channel, cmp.Or(answer.Get("files.0.id").Str, id), a.cfg.Message
	return out, err
}

func (a *acting) createChannel() (actionResult, error) {
	out, answer, err := done(a.api.call(a.ctx, "conversations.create", "create the channel", arguments{"name": a.cfg.Name, "is_private": a.cfg.IsPrivate}, false, "channel.id"))
	out.ChannelID = answer.Get("channel.id").Str
	out.ResourceID, out.Content = out.ChannelID, answer.Get("channel.name").Str
	return out, err
}

// conversation is the id of the channel that a method wants, which takes no names.
func (a *acting) conversation() (string, error) {
	to, err := a.session.find(a.ctx, a.cfg.Channel)
	name, named := strings.CutPrefix(to, "#")
	if err != nil || !named {
		return to, err
	}
	for cursor := ""; ; {
		answer, err := a.api.call(a.ctx, "conversations.list", "list the channels", arguments{"limit": 500, "cursor": cursor, "exclude_archived": true, "types": "public_channel,private_channel"}, true)
		if err != nil {
			return "", err
		}
		page := gjson.ParseBytes(answer)
		for _, c := range page.Get("channels").Array() {
			if c.Get("name").Str == name {
				return c.Get("id").Str, nil
			}
		}
		if cursor = page.Get("response_metadata.next_cursor").Str; cursor == "" {
			return "", fault.Newf(fault.NotFound, "Slack has no channel %q that the app sees; check the name, or invite the app to it", to)
		}
	}
}

// inChannel calls a method about the channel.
func (a *acting) inChannel(method, what string, args arguments, already ...string) (actionResult, gjson.Result, error) {
	id, err := a.conversation()
	if err != nil {
		return actionResult{}, gjson.Result{}, err
	}
	args["channel"] = id
	answer, err := a.api.call(a.ctx, method, what, args, true)
	for _, code := range already { // a repeat finds what the first has done
		if err != nil && strings.Contains(fault.From(err).Message, "("+code+")") {
			answer, err = json.RawMessage(`{"ok":true,"already":"`+code+`"}`), nil
		}
	}
	out, told, err := done(answer, err)
	out.ChannelID, out.ResourceID = id, id
	return out, told, err
}

func (a *acting) update() (actionResult, error) {
	args, err := a.content()
	if err != nil {
		return actionResult{}, err
	}
	args["ts"] = a.cfg.MessageTS
	out, answer, err := a.inChannel("chat.update", "change the message", args)
	return posted(out, out.ChannelID, answer.Get("ts").Str, a.cfg.Message), err
}

func (a *acting) delete() (actionResult, error) {
	out, _, err := a.inChannel("chat.delete", "delete the message", arguments{"ts": a.cfg.MessageTS}, "message_not_found")
	return posted(out, out.ChannelID, a.cfg.MessageTS, ""), err
}

func (a *acting) invite() (actionResult, error) {
	out, _, err := a.inChannel("conversations.invite", "invite the people", arguments{"users": a.cfg.Users}, "already_in_channel")
	return out, err
}

func (a *acting) setTopic() (actionResult, error) {
	out, _, err := a.inChannel("conversations.setTopic", "set the topic", arguments{"topic": a.cfg.Topic})
	out.Content = a.cfg.Topic
	return out, err
}

func (a *acting) archive() (actionResult, error) {
	out, _, err := a.inChannel("conversations.archive", "archive the channel", arguments{}, "already_archived")
	return out, err
}

func (a *acting) react() (actionResult, error) {
	out, _, err := a.inChannel("reactions.add", "add the reaction", arguments{"timestamp": a.cfg.MessageTS, "name": strings.Trim(a.cfg.Emoji, ":")}, "already_reacted")
	return posted(out, out.ChannelID, a.cfg.MessageTS, a.cfg.Emoji), err
}

func (a *acting) userInfo() (actionResult, error) {
	method, args := "users.info", arguments{"user": strings.TrimPrefix(a.cfg.User, "@")}
	if a.cfg.User == "" {
		method, args = "users.lookupByEmail", arguments{"email": a.cfg.Email}
	}
	out, answer, err := done(a.api.call(a.ctx, method, "find the person", args, true))
	out.ResourceID, out.Content = answer.Get("user.id").Str, answer.Get("user.real_name").Str
	return out, err
}

func (a *acting) channelInfo() (actionResult, error) {
	out, answer, err := a.inChannel("conversations.info", "read about the channel", arguments{})
	out.Content = answer.Get("channel.name").Str
	return out, err
}

// historyPage is how many messages Slack gives at a time.
const historyPage = 200

func (a *acting) history() (out actionResult, err error) {
	out.Items, out.NextCursor, err = rest.Pages(a.cfg.Limit, a.cfg.Cursor, func(cursor string) ([]json.RawMessage, string, error) {
		page, answer, err := a.inChannel("conversations.history", "read the channel", arguments{
			"oldest": a.cfg.Oldest, "latest": a.cfg.Latest, "cursor": cursor, "limit": min(historyPage, a.cfg.Limit),
		})
		out.ChannelID, out.ResourceID = page.ChannelID, page.ResourceID
		return rest.Items(answer.Get("messages")), answer.Get("response_metadata.next_cursor").Str, err
	})
	out.Truncated = out.NextCursor != ""
	out.Response = json.RawMessage(`{"ok":true}`)
	return out, err
}

func (a *acting) request() (actionResult, error) {
	args := arguments{}
	err := a.cfg.Body.Each(func(name string, value json.RawMessage) error {
		args[name] = value
		if v := gjson.ParseBytes(value); v.Type == gjson.String {
			args[name] = v.Str
		}
		return nil
	})
	if err != nil {
		return actionResult{}, err
	}
	out, _, err := done(a.api.call(a.ctx, a.cfg.Method, "do "+a.cfg.Method, args, false))
	return out, err
}

// inquire looks for a message that has the marker of the node with it, since the node began.
func inquire(client *outbound.Client) func(ctx context.Context, call *node.Call, cfg actionConfig) (actionResult, bool, error) {
	return func(ctx context.Context, call *node.Call, cfg actionConfig) (actionResult, bool, error) {
		if cfg.ChannelOverride != "" {
			cfg.Channel = cfg.ChannelOverride
		}
		a, err := begin(ctx, client, call, cfg)
		if err != nil {
			return actionResult{}, false, err
		}
		method, args := "conversations.history", arguments{}
		if cfg.ThreadTS != "" {
			method, args = "conversations.replies", arguments{"ts": cfg.ThreadTS}
		}
		// Slack's clock may be behind that of this machine.
		args["oldest"] = strconv.FormatInt(call.Now.Add(-5*time.Minute).Unix(), 10)
		args["include_all_metadata"], args["limit"] = true, historyPage
		for {
			out, answer, err := a.inChannel(method, "look for the message", args)
			if err != nil {
				return out, false, err
			}
			for _, m := range answer.Get("messages").Array() {
				if m.Get("metadata.event_type").Str == markerType && m.Get("metadata.event_payload.id").Str == marker(call) {
					out = posted(out, out.ChannelID, m.Get("ts").Str, cfg.Message)
					out.Success, out.Action, out.Items, out.Response = true, cfg.ActionType, []json.RawMessage{}, json.RawMessage(m.Raw)
					return out, true, nil
				}
			}
			next := answer.Get("response_metadata.next_cursor").Str
			if next == "" {
				return out, false, nil
			}
			args["cursor"] = next
		}
	}
}
