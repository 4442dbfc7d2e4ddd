package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bwmarrin/discordgo"
	"github.com/tidwall/gjson"

	"tandem/builtin/start"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/trigger"
	"tandem/workflow"
)

const triggerKind = "TRIGGER.DISCORD"

// What can start something.
const (
	eventMessage = "message"
	eventCommand = "command"
)

// commandOption is the one option of commands that Tandem has made in Discord.
const commandOption = "text"

type triggerConfig struct {
	Events     []string      `json:"events" enum:"message|command" fixed:"true" doc:"What starts it: messages in channels, or slash commands of the app." zh:"触发方式：频道消息，或应用的斜杠命令。"`
	Channels   []node.Scalar `json:"channels" fixed:"true" doc:"The ids of the channels. Messages are only looked for in these; commands are taken from everywhere if there are none." zh:"频道编号。只在这些频道中查找消息；留空时接受任何位置的命令。"`
	Keywords   []string      `json:"keywords" fixed:"true" doc:"Texts of which a message must contain one, whatever their case. None: any message." zh:"消息须包含其中之一（不区分大小写），留空为任意消息。"`
	Commands   []string      `json:"commands" fixed:"true" doc:"The names of the commands. Those that the app does not have yet are made when the workflow is deployed, with an option called text. None: all commands of the app." zh:"命令名称；应用尚无的命令会在部署时创建，带一个 text 选项。留空为应用的全部命令。"`
	FilterBots bool          `json:"filter_bot_messages" fixed:"true" doc:"Whether messages of other bots and webhooks are left out. Those of the app itself always are." zh:"忽略机器人：是否忽略其他机器人和 Webhook 的消息；应用自身的消息总被忽略。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *triggerConfig) Defaults() { c.Events, c.FilterBots = []string{eventMessage}, true }

// triggerDiscord is where an execution begins that a message or command in Discord has started.
func triggerDiscord() node.Kind {
	k := node.Define(
		node.About{
			Name: triggerKind, Title: node.Says("Discord message", "Discord 消息"),
			Description: node.Says("Starts when somebody writes in a channel of Discord or uses a slash command.", "当有人在 Discord 频道发言或使用斜杠命令时启动。"),
			Effect:      workflow.Pure, Needs: node.Needs{Credential: []string{credentialType}},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The message or command, with trigger_time, execution_id and trigger_message.", "消息或命令，附 trigger_time、execution_id 和 trigger_message。"), Fields: append([]node.Value{
				node.Meaning("event_type", "What it is: message or command.", "类型：message 或 command。"),
				node.Meaning("server_id", "The server; empty: none, or it could not be looked up.", "服务器编号；没有或未能查询则为空。"),
				node.Meaning("channel_id", "The channel.", "频道编号。"), node.Meaning("channel_name", "The name of the channel; empty if Discord did not tell it.", "频道名称；Discord 未告知则为空。"),
				node.Meaning("user_id", "Who wrote or used the command.", "发送者或使用者编号。"), node.Meaning("user_name", "Their name.", "其名称。"),
				node.Meaning("message_id", "The message; empty for a command.", "消息编号；命令则为空。"), node.Meaning("message_text", "The text of the message, or of the option text of the command.", "消息文本，或命令 text 选项的内容。"),
				node.Meaning("command", "The name of the command; empty for a message.", "命令名称；消息则为空。"),
				node.Meaning("options", "The options of the command by name.", "命令的各选项。"),
				node.Meaning("reply_to_message_id", "The message that it replies to; empty: none.", "所回复消息的编号，没有则为空。"), node.Meaning("discord_payload", "Everything that Discord has sent, without secrets.", "Discord 发送的完整内容（不含密钥）。"),
			}, start.Meanings()...)}},
			Inputs: []node.Value{node.Meaning("*", "The message or command; when somebody starts it by hand, what it is started with.", "消息或命令；手动启动时为启动输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Starts with the command /deploy.", "以 /deploy 命令启动。"),
					Config: `{"events": ["command"], "commands": ["deploy"], "credential_id": "discord_bot"}`,
					Input:  `{"event_type": "command", "channel_id": "55", "user_name": "Ann", "command": "deploy", "options": {"text": "shop"}, "message_text": "shop"}`,
					Output: `{"result": {"event_type": "command", "channel_id": "55", "user_name": "Ann", "command": "deploy", "options": {"text": "shop"}, "message_text": "shop", "trigger_time": "…", "execution_id": "…", "trigger_message": "command of Ann"}}`,
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
		}, planTrigger)
	k.Brief = true
	return k
}

// commandName is what Discord takes for the name of a slash command. It is read-only.
var commandName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-_\p{Ll}\p{Lo}\p{N}]{1,32}$`) }) // it takes a while to make, and few want it

func planTrigger(p *node.Planning, cfg *triggerConfig) {
	if p.Has("events") && len(cfg.Events) == 0 {
		p.Invalid(p.At("events"), "must name message or command; leave it out for message")
	}
	if slices.Contains(cfg.Events, eventMessage) && len(cfg.Channels) == 0 {
		p.Invalid(p.At("channels"), "must name the channels that messages are looked for in, by their ids")
	}
	for _, id := range cfg.Channels {
		if !snowflake.MatchString(string(id)) {
			p.Invalid(p.At("channels"), "%q is not the id of a channel; copy it with Copy Channel ID, which the developer mode of Discord offers", id)
		}
	}
	for _, name := range cfg.Commands {
		if !commandName().MatchString(plainCommand(name)) {
			p.Invalid(p.At("commands"), "%q is not the name of a command; use up to 32 small letters, digits, - and _", name)
		}
	}
}

func plainCommand(name string) string { return strings.TrimPrefix(strings.TrimSpace(name), "/") }

// source starts executions for messages and commands. The channel posts and reads for the same bot, so it hands them over.
type source struct{ channel *Channel }

// Kind implements [trigger.Source].
func (source) Kind() string { return triggerKind }

// Channel implements [trigger.Shared].
func (source) Channel() string { return Name }

// Join implements [trigger.Shared].
func (s source) Join(r *trigger.Relay) { s.channel.relay = r }

// Register implements [trigger.Source]: the bot must see the channels, and the app must have the commands, or gets them.
func (s source) Register(ctx context.Context, t trigger.Trigger) error {
	cfg, err := node.Configuration[triggerConfig](t.Config)
	if err != nil {
		return err
	}
	id, err := t.NeedCredential(credentialType)
	if err != nil {
		return err
	}
	bot, release, err := open(ctx, s.channel.client, t.Open, id)
	if err != nil {
		return err
	}
	defer release()
	if slices.Contains(cfg.Events, eventMessage) {
		for _, channel := range cfg.Channels {
			if _, err := bot.place(ctx, string(channel)); err != nil {
				return err
			}
		}
	}
	if !slices.Contains(cfg.Events, eventCommand) {
		return nil
	}
	if bot.key == nil {
		return fault.Newf(fault.CredentialInvalid, "credential %q has no public_key, so no command could be believed; save it with the one that the application's page shows", id)
	}
	return bot.offer(ctx, cfg.Commands)
}

// offer sees to it that the app has some commands. Those that it has are left as they are.
func (s *session) offer(ctx context.Context, commands []string) error {
	if len(commands) == 0 {
		return nil
	}
	var app struct {
		ID string `json:"id"`
	}
	var have []*discordgo.ApplicationCommand
	err := s.call(ctx, "list the commands of the app", func(api *discordgo.Session, o discordgo.RequestOption) error {
		endpoint := discordgo.EndpointOAuth2Application("@me")
		raw, err := api.RequestWithBucketID(http.MethodGet, endpoint, nil, endpoint, o)
		if err == nil {
			err = json.Unmarshal(raw, &app)
		}
		if err == nil {
			have, err = api.ApplicationCommands(app.ID, "", o)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range commands {
		name = plainCommand(name)
		if slices.ContainsFunc(have, func(c *discordgo.ApplicationCommand) bool { return c.Name == name }) {
			continue
		}
		err := s.call(ctx, "make the command "+name, func(api *discordgo.Session, o discordgo.RequestOption) error {
			_, err := api.ApplicationCommandCreate(app.ID, "", &discordgo.ApplicationCommand{
				Name: name, Description: "Starts a workflow", Type: discordgo.ChatApplicationCommand,
				Options: []*discordgo.ApplicationCommandOption{{Type: discordgo.ApplicationCommandOptionString, Name: commandOption,
					Description: "What the workflow is to know"}},
			}, o)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
