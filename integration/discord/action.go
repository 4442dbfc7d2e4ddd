package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	action.Paging
	ServerID        string          `json:"server_id" doc:"The id of the server." zh:"服务器编号。"`
	ChannelID       string          `json:"channel_id" with:"action_type=send_message|send_file|create_thread|react_to_message|pin_message|read_messages" doc:"The id of the channel." zh:"频道编号。"`
	Content         string          `json:"message_content" with:"action_type=send_message|send_dm|send_file" doc:"The text of the message, 2000 characters at most." zh:"消息文本，最多 2000 个字符。"`
	Embed           json.RawMessage `json:"embed_config" takes:"object|list" with:"action_type=send_message|send_dm" doc:"An embed as Discord defines it, or a list of up to ten." zh:"嵌入内容：Discord 定义的 embed，或至多十个的列表。"`
	AllowedMentions []string        `json:"allowed_mentions" enum:"users|roles|everyone" with:"action_type=send_message|send_dm|send_file" doc:"Which mentions in the text call people. Others are shown and call nobody." zh:"有效提及：文本中哪些提及会通知对方，其余仅显示。"`
	File            json.RawMessage `json:"file" takes:"file" with:"action_type=send_file" doc:"The file that is sent." zh:"要发送的文件。"`
	MessageID       string          `json:"message_id" with:"action_type=create_thread|react_to_message|pin_message" doc:"The id of the message." zh:"消息编号。"`
	Emoji           string          `json:"reaction_emoji" with:"action_type=react_to_message" doc:"The reaction: an emoji, or name:id of one of the server's own." zh:"表情回应：表情符号，或服务器自定义表情的 名称:编号。"`
	TargetUser      string          `json:"target_user_id" with:"action_type=send_dm|manage_roles|kick_member|ban_member" doc:"The id of the person." zh:"人员编号。"`
	RoleID          string          `json:"role_id" with:"action_type=manage_roles" doc:"The id of the role." zh:"角色编号。"`
	Action          string          `json:"action" enum:"add|remove" with:"action_type=manage_roles" doc:"Whether the person gets the role or loses it." zh:"授予或移除角色。"`
	Reason          string          `json:"reason" with:"action_type=kick_member|ban_member|manage_roles" doc:"The reason, for the audit log of the server." zh:"原因，记入服务器审计日志。"`
	Name            string          `json:"name" with:"action_type=create_channel|create_thread" doc:"The name of the new channel or thread." zh:"新频道或话题的名称。"`
	Type            string          `json:"type" enum:"text|voice|category|announcement|stage|forum" with:"action_type=create_channel" doc:"What sort of channel is made." zh:"频道类型。"`
	Before          string          `json:"before" with:"action_type=read_messages" doc:"Messages before this one only." zh:"仅此消息之前的消息。"`
	After           string          `json:"after" with:"action_type=read_messages" doc:"Messages after this one only, the oldest first." zh:"仅此消息之后的消息，旧消息在前。"`
	Method          string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"调用方法。"`
	Path            string          `json:"path" with:"action_type=request" doc:"The path below the address of the service, /channels/1/webhooks for instance." zh:"接口路径，例如 /channels/1/webhooks。"`
	Query           node.Object     `json:"query" with:"action_type=request" doc:"Parameters of the call." zh:"查询参数。"`
	Body            json.RawMessage `json:"body" with:"action_type=request" doc:"The body of the call." zh:"请求正文。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() {
	c.ActionType, c.Emoji, c.Action, c.Type, c.Limit = "send_message", "👍", "add", "text", action.DefaultLimit
	c.AllowedMentions = []string{"users", "roles"}
}

type actionResult struct {
	action.Result
	MessageID string          `json:"message_id" doc:"The id of the message; empty if there is none." zh:"消息编号；没有则为空。"`
	ChannelID string          `json:"channel_id" doc:"The id of the channel; empty if there is none." zh:"频道编号；没有则为空。"`
	Response  json.RawMessage `json:"discord_response" doc:"The answer of Discord." zh:"Discord 的响应。"`
}

// invalidForm and emptyMessage are what Discord calls a call that is not as it should be, tooLarge one whose files are too large.
const (
	invalidForm   = 50035
	emptyMessage  = 50006
	tooLarge      = 40005
	unknownMember = 10007
)

// service is the REST interface.
func service() *rest.Service {
	return &rest.Service{
		Name: "Discord", Base: strings.TrimRight(discordgo.EndpointAPI, "/"), Credentials: []string{credentialType},
		Secret: func(fields gjson.Result) *outbound.Secret {
			token := fields.Get("token").Str
			if token == "" {
				return nil
			}
			return &outbound.Secret{Header: http.Header{"Authorization": {"Bot " + token}}}
		},
		Said: func(body gjson.Result) string {
			said := body.Get("message").Str
			if wrong := body.Get("errors"); wrong.IsObject() {
				said += " " + wrong.Raw
			}
			return said
		},
		Refine: func(r *rest.Refusal) {
			code := r.Body.Get("code").Int()
			r.Problem.Fault = r.Problem.Fault.With("code", code)
			switch {
			case r.Status == http.StatusTooManyRequests && r.Body.Get("retry_after").Exists():
				r.Limit("Discord", time.Duration(r.Body.Get("retry_after").Float()*float64(time.Second)))
			case code == invalidForm, code == emptyMessage:
				r.Becomes(fault.InvalidInput)
			case code == tooLarge, r.Status == http.StatusRequestEntityTooLarge:
				r.Becomes(fault.TooLarge)
			}
		},
	}
}

// act acts in Discord.
func act(client *outbound.Client, store *files.Store) node.Kind {
	discord := service()
	begin := func(ctx context.Context, call *node.Call, cfg actionConfig) (*acting, error) {
		api, err := discord.Open(ctx, client, call)
		return &acting{ctx: ctx, call: call, cfg: cfg, api: api, store: store}, err
	}
	does := func(do func(*acting) (actionResult, error)) func(context.Context, *node.Call, actionConfig) (actionResult, error) {
		return func(ctx context.Context, call *node.Call, cfg actionConfig) (out actionResult, err error) {
			a, err := begin(ctx, call, cfg)
			if err != nil {
				return out, err
			}
			if out, err = do(a); err == nil {
				out.Done(cfg.ActionType)
			}
			return out, err
		}
	}
	asks := func(do func(*acting) (actionResult, bool, error)) func(context.Context, *node.Call, actionConfig) (actionResult, bool, error) {
		return func(ctx context.Context, call *node.Call, cfg actionConfig) (out actionResult, found bool, err error) {
			a, err := begin(ctx, call, cfg)
			if err != nil {
				return out, false, err
			}
			if out, found, err = do(a); found {
				out.Done(cfg.ActionType)
			}
			return out, found, err
		}
	}
	posted, made := asks((*acting).inquirePost), asks((*acting).inquireMade)
	const once, idempotent = workflow.Once, workflow.Idempotent
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.DISCORD_ACTION", Title: node.Says("Discord", "Discord"),
		Description: node.Says("Posts to Discord, reads from it, and manages a server: channels, threads, roles and members.", "在 Discord 中发布与读取消息，并管理服务器的频道、话题、角色与成员。"),
		Effect:      once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What Discord has answered.", "Discord 的响应。")}},
		Examples: []node.Example{{
			Shows:  node.Says("Tells a channel that an order has come in.", "在频道中通知有新订单。"),
			Config: `{"credential_id": "discord_bot", "action_type": "send_message", "server_id": "1", "channel_id": "55", "message_content": "Order {{order}} has come in."}`,
			Input:  `{"order": 7}`,
			Output: `{"result": {"success": true, "action": "send_message", "resource_id": "…", "resource_url": "…", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null, "error_message": "", "message_id": "…", "channel_id": "55", "discord_response": "…"}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "send_message", Effect: once, Needs: []string{"channel_id", "message_content|embed_config"},
			Do: does((*acting).send), Inquire: posted},
		{Name: "send_file", Effect: once, Needs: []string{"channel_id", "file"}, Do: does((*acting).sendFile)},
		{Name: "send_dm", Effect: once, Needs: []string{"target_user_id", "message_content|embed_config"},
			Do: does((*acting).sendDM), Inquire: posted},
		{Name: "create_channel", Effect: once, Needs: []string{"server_id", "name"}, Do: does((*acting).createChannel), Inquire: made},
		{Name: "create_thread", Effect: once, Needs: []string{"channel_id", "name"}, Do: does((*acting).createThread), Inquire: made},
		{Name: "react_to_message", Effect: idempotent, Needs: []string{"channel_id", "message_id"}, Do: does((*acting).react)},
		{Name: "pin_message", Effect: idempotent, Needs: []string{"channel_id", "message_id"}, Do: does((*acting).pin)},
		{Name: "manage_roles", Effect: idempotent, Needs: []string{"server_id", "target_user_id", "role_id"}, Do: does((*acting).role)},
		{Name: "kick_member", Effect: idempotent, Needs: []string{"server_id", "target_user_id"}, Do: does((*acting).kick)},
		{Name: "ban_member", Effect: idempotent, Needs: []string{"server_id", "target_user_id"}, Do: does((*acting).ban)},
		{Name: "read_messages", Effect: idempotent, Lists: true, Needs: []string{"channel_id"}, Do: does((*acting).messages)},
		{Name: "list_members", Effect: idempotent, Lists: true, Needs: []string{"server_id"}, Do: does((*acting).members)},
		{Name: "request", EffectOf: func(cfg actionConfig) workflow.Effect { return httpcall.EffectOf(strings.ToUpper(cfg.Method)) },
			Needs: []string{"method", "path"}, Do: does((*acting).request)},
	})
}
