package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/start"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/trigger"
	"tandem/workflow"
)

const triggerKind = "TRIGGER.TELEGRAM"

// The updates that can start something, as the service calls them.
const (
	eventMessage  = "message"
	eventPost     = "channel_post"
	eventCallback = "callback_query"
)

type triggerConfig struct {
	Events     []string      `json:"events" enum:"message|channel_post|callback_query" fixed:"true" doc:"What starts it: messages to the bot or in its groups, posts in its channels, presses of buttons that are not those of a question." zh:"触发的更新：发给机器人或其群组的消息、频道帖子，或非提问按钮的点击。"`
	Chats      []node.Scalar `json:"chats" fixed:"true" doc:"The chats, by number or as @name, whose updates start it. None: all that the bot is in." zh:"触发的聊天（编号或 @名称），留空为全部。"`
	Keywords   []string      `json:"keywords" fixed:"true" doc:"Texts of which a message must contain one, whatever their case. None: any message." zh:"消息须包含其中之一（不区分大小写），留空为任意消息。"`
	Commands   []string      `json:"commands" fixed:"true" doc:"Commands, such as /order, of which a message must begin with one. None: any message." zh:"消息须以其中之一开头的命令，如 /order，留空为任意消息。"`
	FilterBots bool          `json:"filter_bot_messages" fixed:"true" doc:"Whether messages of other bots are left out." zh:"是否忽略其他机器人的消息。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *triggerConfig) Defaults() { c.Events, c.FilterBots = []string{eventMessage}, true }

// triggerTelegram is where an execution begins that a message in Telegram has started.
func triggerTelegram() node.Kind {
	k := node.Define(
		node.About{
			Name: triggerKind, Title: node.Says("Telegram message", "Telegram 消息"),
			Description: node.Says("Starts when a bot gets a message, a command or a press of a button in Telegram.", "当 Telegram 机器人收到消息、命令或按钮点击时启动。"),
			Effect:      workflow.Pure, Needs: node.Needs{Credential: []string{credentialType}},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The update, with trigger_time, execution_id and trigger_message.", "更新内容，附 trigger_time、execution_id 和 trigger_message。"), Fields: append([]node.Value{
				node.Meaning("event_type", "What it is: message, channel_post or callback_query.", "类型：message、channel_post 或 callback_query。"),
				node.Meaning("chat_id", "The number of the chat.", "聊天编号。"), node.Meaning("chat_type", "What the chat is: private, group, supergroup or channel.", "聊天类型：private、group、supergroup 或 channel。"),
				node.Meaning("chat_name", "The title of a group or channel, the name of a person.", "群组或频道标题，或个人名称。"),
				node.Meaning("user_id", "The number of who wrote or pressed; of a channel, its number.", "发送者或点击者编号；频道则为频道编号。"), node.Meaning("user_name", "Their name, as @name if they have one.", "其名称；有用户名时为 @名称。"),
				node.Meaning("message_id", "The number of the message in its chat.", "消息在聊天中的编号。"),
				node.Meaning("message_text", "What was written, also below a picture or file.", "消息文本或图片、文件说明。"),
				node.Meaning("command", "The command that the message begins with, without slash and bot; empty: none.", "消息开头的命令（不含斜杠与机器人名），没有则为空。"), node.Meaning("command_text", "What follows the command.", "命令之后的文本。"),
				node.Meaning("reply_to_message_id", "The message that it replies to; 0: none.", "所回复消息的编号；0 表示无。"),
				node.Meaning("callback_data", "What the pressed button brings back.", "被点击按钮的回传数据。"),
				node.Meaning("telegram_payload", "The whole update.", "完整的更新内容。"),
			}, start.Meanings()...)}},
			Inputs: []node.Value{node.Meaning("*", "The update; when somebody starts it by hand, what it is started with.", "更新内容；手动启动时为启动输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Takes orders that people send as a command.", "接收以命令发送的订单。"),
					Config: `{"commands": ["/order"], "credential_id": "telegram_bot"}`,
					Input:  `{"event_type": "message", "chat_id": 42, "user_name": "@ann", "message_text": "/order 7 apples", "command": "order", "command_text": "7 apples"}`,
					Output: `{"result": {"event_type": "message", "chat_id": 42, "user_name": "@ann", "message_text": "/order 7 apples", "command": "order", "command_text": "7 apples", "trigger_time": "…", "execution_id": "…", "trigger_message": "message of @ann"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, _ triggerConfig, in json.RawMessage) (json.RawMessage, error) {
			said := "started by hand"
			if event := gjson.GetBytes(in, "event_type").String(); event != "" {
				said = event
				if who := cmp.Or(gjson.GetBytes(in, "user_name").String(), gjson.GetBytes(in, "user_id").String()); who != "" {
					said += " of " + who
				}
			}
			return values.HandOn(in, start.Fields(call, said)...), nil
		}, func(p *node.Planning, cfg *triggerConfig) {
			if p.Has("events") && len(cfg.Events) == 0 {
				p.Invalid(p.At("events"), "must name an update; leave it out for message")
			}
		})
	k.Brief = true
	return k
}

// source starts executions for updates. A bot has one stream of them, which the channel reads.
type source struct{ channel *Channel }

// Kind implements [trigger.Source].
func (source) Kind() string { return triggerKind }

// Channel implements [trigger.Shared].
func (source) Channel() string { return Name }

// Join implements [trigger.Shared].
func (s source) Join(r *trigger.Relay) { s.channel.relay = r }

// Register implements [trigger.Source]: the token must be one of a bot, and its updates must be free to be brought here or read.
func (s source) Register(ctx context.Context, t trigger.Trigger) error {
	if _, err := node.Configuration[triggerConfig](t.Config); err != nil {
		return err
	}
	id, err := t.NeedCredential(credentialType)
	if err != nil {
		return err
	}
	b, release, err := s.channel.open(ctx, t.Open, id)
	if err != nil {
		return err
	}
	defer release()
	if _, err := s.channel.username(ctx, b); err != nil {
		return err
	}
	if b.called(t.Callback) {
		return b.hook(ctx, t.Callback, true)
	}
	var is webhookInfo
	if err := b.call(ctx, "getWebhookInfo", struct{}{}, &is); err != nil {
		return err
	}
	if is.URL != "" {
		return fault.New(fault.Conflict, "the updates of the bot are brought to another address; delete its webhook, or give this instance a public https address and the credential a webhook_secret")
	}
	return nil
}

// username is the name that commands in groups call a bot by.
func (c *Channel) username(ctx context.Context, b *bot) (string, error) {
	if known, ok := c.names.Load(b.id()); ok {
		return known.(string), nil
	}
	var is person
	if err := b.call(ctx, "getMe", struct{}{}, &is); err != nil {
		return "", err
	}
	c.names.Store(b.id(), is.Username)
	return is.Username, nil
}

// news is an update on its way to the triggers of a bot.
type news struct {
	channel *Channel
	bot     *bot
	update  *update
	raw     []byte
	// answers says that it answers a question.
	answers bool
}

// judge implements [trigger.Judge].
func (n *news) judge(ctx context.Context, t trigger.Trigger) (out trigger.Event, fits bool, err error) {
	cfg, err := node.Configuration[triggerConfig](t.Config)
	if err != nil {
		return out, false, err
	}
	kind, m, from := n.parts()
	if !slices.Contains(cfg.Events, kind) || !cfg.in(m.Chat) || cfg.FilterBots && from.IsBot && m.SenderChat == nil {
		return out, false, nil
	}
	said := strings.TrimSpace(cmp.Or(m.Text, m.Caption))
	command, rest := "", ""
	if kind != eventCallback {
		if command, rest, err = n.command(ctx, said); err != nil {
			return out, false, err
		}
		wanted := func(one string) bool {
			return command != "" && strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(one), "/"), command)
		}
		if !trigger.Mentions(said, cfg.Keywords) || len(cfg.Commands) > 0 && !slices.ContainsFunc(cfg.Commands, wanted) {
			return out, false, nil
		}
	}
	out.Key = n.bot.id() + ":" + strconv.FormatInt(n.update.ID, 10)
	if kind != eventCallback && m.Date > 0 { // that of a button is when it was made
		out.Time = time.Unix(m.Date, 0)
	}
	if n.answers {
		out.Ignored = "it answers a question that Tandem has asked"
	}
	told := told{
		Event: kind, Chat: m.Chat.ID, ChatType: m.Chat.Type, ChatName: cmp.Or(m.Chat.Title, m.Chat.name()), User: from.ID,
		UserName: from.name(), Message: m.ID, Text: said,
		Command: command, CommandText: rest, Whole: n.raw,
	}
	if m.SenderChat != nil {
		told.User, told.UserName = m.SenderChat.ID, cmp.Or(m.SenderChat.Title, m.SenderChat.name())
	}
	if m.ReplyTo != nil {
		told.ReplyTo = m.ReplyTo.ID
	}
	if n.update.Callback != nil {
		told.Data = n.update.Callback.Data
	}
	if out.Payload, err = json.Marshal(told); err != nil {
		err = fault.Newf(fault.Internal, "an update cannot be written: %w", err)
	}
	return out, true, err
}

// told is what the trigger brings.
type told struct {
	Event       string          `json:"event_type"`
	Chat        int64           `json:"chat_id"`
	ChatType    string          `json:"chat_type"`
	ChatName    string          `json:"chat_name"`
	User        int64           `json:"user_id"`
	UserName    string          `json:"user_name"`
	Message     int64           `json:"message_id"`
	Text        string          `json:"message_text"`
	Command     string          `json:"command"`
	CommandText string          `json:"command_text"`
	ReplyTo     int64           `json:"reply_to_message_id"`
	Data        string          `json:"callback_data"`
	Whole       json.RawMessage `json:"telegram_payload"`
}

// parts are what an update is, the message that it is or is about, and who it is from.
func (n *news) parts() (kind string, m message, from person) {
	u := n.update
	switch {
	case u.Callback != nil:
		kind, from = eventCallback, u.Callback.From
		if u.Callback.Message != nil {
			m = *u.Callback.Message
		}
		m.SenderChat = nil // who pressed is a person, no matter who wrote the message
		return kind, m, from
	case u.Message != nil:
		kind, m = eventMessage, *u.Message
	case u.Post != nil:
		kind, m = eventPost, *u.Post
	}
	if m.From != nil {
		from = *m.From
	}
	return kind, m, from
}

// command takes the command off a message. One that calls another bot is not taken for one.
func (n *news) command(ctx context.Context, said string) (command, rest string, err error) {
	whole, is := strings.CutPrefix(said, "/")
	if !is {
		return "", "", nil
	}
	command = whole
	if end := strings.IndexAny(whole, " \n\t"); end >= 0 {
		command, rest = whole[:end], strings.TrimSpace(whole[end:])
	}
	command, whom, named := strings.Cut(command, "@")
	if named {
		name, err := n.channel.username(ctx, n.bot)
		if err != nil {
			return "", "", err
		}
		if !strings.EqualFold(whom, name) {
			return "", "", nil
		}
	}
	return command, rest, nil
}

// in says whether a chat is among those of a configuration.
func (c *triggerConfig) in(where chat) bool {
	return len(c.Chats) == 0 || slices.ContainsFunc(c.Chats, func(one node.Scalar) bool {
		text := strings.TrimSpace(string(one))
		if name, named := strings.CutPrefix(text, "@"); named {
			return where.Username != "" && strings.EqualFold(name, where.Username)
		}
		return text == strconv.FormatInt(where.ID, 10)
	})
}

// name is what people call a chat that has no title.
func (c chat) name() string {
	if c.Username != "" {
		return "@" + c.Username
	}
	return c.FirstName
}

// name is what people call somebody.
func (p person) name() string {
	if p.Username != "" {
		return "@" + p.Username
	}
	return p.FirstName
}
