package slack

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/slack-go/slack"
	"github.com/tidwall/gjson"

	"tandem/builtin/start"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/trigger"
	"tandem/workflow"
)

const triggerKind = "TRIGGER.SLACK"

// The events that are messages.
const (
	eventMessage = "message"
	eventMention = "app_mention"
)

type triggerConfig struct {
	Workspace  string   `json:"workspace_id" required:"true" fixed:"true" doc:"The id of the workspace in Slack, such as T0123ABCD." zh:"Slack 工作区编号，如 T0123ABCD。"`
	Events     []string `json:"events" enum:"message|app_mention|reaction_added|reaction_removed|channel_created|channel_deleted|member_joined_channel|member_left_channel|user_change|team_join|file_shared" fixed:"true" doc:"The events that start it. The app has to be subscribed to them. A message that mentions the app starts it once, as app_mention if that is among them." zh:"触发的事件，应用须已订阅。提及应用的消息只启动一次；若含 app_mention，则记为 app_mention。"`
	Channels   []string `json:"channels" fixed:"true" doc:"The channels, by id or name, whose events start it. None: all. Events that are in no channel are not kept out." zh:"触发的频道（编号或名称），留空为全部。不属于任何频道的事件不受限制。"`
	Keywords   []string `json:"keywords" fixed:"true" doc:"Texts of which a message must contain one, whatever their case. None: any message." zh:"消息须包含其中之一（不区分大小写），留空为任意消息。"`
	FilterBots bool     `json:"filter_bot_messages" fixed:"true" doc:"Whether messages of bots are left out. Those of the app itself always are." zh:"是否忽略机器人的消息；应用自身的消息总被忽略。"`
	Threads    bool     `json:"include_thread_replies" fixed:"true" doc:"Whether replies in threads start it. Those in the thread of a question of Tandem never do." zh:"话题中的回复是否触发；Tandem 提问话题中的回复从不触发。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *triggerConfig) Defaults() {
	c.Events, c.FilterBots, c.Threads = []string{eventMessage, eventMention}, true, true
}

// triggerSlack is where an execution begins that something in Slack has started.
func triggerSlack() node.Kind {
	k := node.Define(
		node.About{
			Name: triggerKind, Title: node.Says("Slack event", "Slack 事件"),
			Description: node.Says("Starts when something happens in a workspace of Slack, such as a message, a mention, a reaction or somebody who joins.", "当 Slack 工作区中发生事件时启动：消息、提及、表情回应、成员加入等。"),
			Effect:      workflow.Pure, Needs: node.Needs{Credential: []string{credentialType}},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The event, with trigger_time, execution_id and trigger_message.", "事件，附 trigger_time、execution_id 和 trigger_message。"), Fields: append([]node.Value{
				node.Meaning("event_type", "The event, such as message.", "事件类型，如 message。"),
				node.Meaning("channel_id", "The channel; empty if it is in none.", "频道编号；不在频道中则为空。"), node.Meaning("channel_name", "The name of the channel; empty if Slack did not tell it.", "频道名称；Slack 未告知则为空。"),
				node.Meaning("user_id", "Who did it.", "触发者编号。"), node.Meaning("user_name",
					"Their name; empty if Slack did not tell it.", "触发者名称；Slack 未告知则为空。"),
				node.Meaning("message_text", "The text of a message as people read it.", "消息文本（人读形式）。"), node.Meaning("thread_ts", "The message that its thread hangs on; empty outside of threads.", "所在话题的首条消息；不在话题中则为空。"),
				node.Meaning("slack_payload", "Everything that Slack has sent, without secrets.", "Slack 发送的完整内容（不含密钥）。"),
			}, start.Meanings()...)}},
			Inputs: []node.Value{node.Meaning("*", "The event; when somebody starts it by hand, what it is started with.", "事件内容；手动启动时为启动输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Starts when somebody writes of a refund in one channel.", "当有人在某频道提到退款时启动。"),
					Config: `{"workspace_id": "T1", "channels": ["#ops"], "keywords": ["refund"], "credential_id": "slack_bot"}`,
					Input:  `{"event_type": "message", "channel_id": "C0PS", "channel_name": "ops", "user_id": "U1", "user_name": "Ann", "message_text": "A refund for 77, please", "thread_ts": ""}`,
					Output: `{"result": {"event_type": "message", "channel_id": "C0PS", "channel_name": "ops", "user_id": "U1", "user_name": "Ann", "message_text": "A refund for 77, please", "thread_ts": "", "trigger_time": "…", "execution_id": "…", "trigger_message": "message of Ann in #ops"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, _ triggerConfig, in json.RawMessage) (json.RawMessage, error) {
			return values.HandOn(in, start.Fields(call, startedBy(in))...), nil
		}, planTrigger)
	k.Brief = true
	return k
}

// startedBy says in words what has started an execution.
func startedBy(in json.RawMessage) string {
	event := gjson.GetBytes(in, "event_type").String()
	if event == "" {
		return "started by hand"
	}
	first := func(names ...string) string {
		for _, name := range names {
			if found := gjson.GetBytes(in, name).String(); found != "" {
				return found
			}
		}
		return ""
	}
	if who := first("user_name", "user_id"); who != "" {
		event += " of " + who
	}
	if name := gjson.GetBytes(in, "channel_name").String(); name != "" {
		return event + " in #" + name
	} else if where := first("channel_id"); where != "" {
		return event + " in " + where
	}
	return event
}

func planTrigger(p *node.Planning, cfg *triggerConfig) {
	if p.Has("events") && len(cfg.Events) == 0 {
		p.Invalid(p.At("events"), "must name an event; leave it out for message and app_mention")
	}
}

// source starts executions for events. They come to the address of the app, which the channel serves.
type source struct{ channel *Channel }

// Kind implements [trigger.Source].
func (source) Kind() string { return triggerKind }

// Channel implements [trigger.Shared].
func (source) Channel() string { return Name }

// Join implements [trigger.Shared].
func (s source) Join(r *trigger.Relay) { s.channel.relay = r }

// Register implements [trigger.Source]: Slack must know the token, which must be one of the workspace, and the signing secret must be
// there.
func (s source) Register(ctx context.Context, t trigger.Trigger) error {
	cfg, err := node.Configuration[triggerConfig](t.Config)
	if err != nil {
		return err
	}
	id, err := t.NeedCredential(credentialType)
	if err != nil {
		return err
	}
	app, release, err := open(ctx, s.channel.client, t.Open, id)
	if err != nil {
		return err
	}
	defer release()
	if app.signing == "" {
		return fault.Newf(fault.CredentialInvalid, "credential %q has no signing_secret, so no event could be believed; save it with the one that the app's page shows", id)
	}
	is, err := app.api.AuthTestContext(ctx)
	if err != nil {
		return problem("say whose token it is", err)
	}
	if is.TeamID != "" && is.TeamID != cfg.Workspace && is.EnterpriseID != cfg.Workspace {
		return fault.Newf(fault.InvalidConfig, "workspace_id: the token is one of the workspace %s (%s), not of %s; write that, or name another credential", is.TeamID, is.Team, cfg.Workspace)
	}
	if !slices.ContainsFunc(cfg.Channels, func(c string) bool { return !conversationID.MatchString(c) }) {
		return nil
	}
	// Channels by name need the scope to look names up: better said now than noticed when events are missing.
	_, _, err = app.api.GetConversationsContext(ctx, &slack.GetConversationsParameters{Limit: 1, ExcludeArchived: true})
	return problem("look up the names in channels", err)
}

// inChannels says whether a channel is among those of a configuration.
func (c *triggerConfig) inChannels(id, name string) bool {
	return slices.ContainsFunc(c.Channels, func(one string) bool {
		one = strings.TrimSpace(one)
		return one == id || name != "" && strings.EqualFold(strings.TrimPrefix(one, "#"), name)
	})
}

// byName says whether the name of a channel has to be known to tell whether it is among those of a configuration.
func (c *triggerConfig) byName() bool {
	return slices.ContainsFunc(c.Channels, func(one string) bool { return !conversationID.MatchString(strings.TrimSpace(one)) })
}
