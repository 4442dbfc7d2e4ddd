package telegram

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/builtin/httpcall"
	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/files"
	"tandem/hypertext"
	"tandem/node"
	"tandem/outbound"
	"tandem/text"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	ChatID     node.Scalar     `json:"chat_id" with:"action_type=send_message|send_photo|send_document|send_video|send_poll|forward_message|edit_message|delete_message|pin_message|ban_user" doc:"The chat: its number, or @name of a public group or channel." zh:"会话：编号，或公开群组、频道的 @名称。"`
	Text       string          `json:"message_text" with:"action_type=send_message|edit_message" doc:"The text of the message, 4096 characters at most." zh:"消息文本，最多 4096 个字符。"`
	ParseMode  string          `json:"parse_mode" enum:"Markdown|HTML|MarkdownV2|none" with:"action_type=send_message|edit_message|send_photo|send_document|send_video" doc:"How the text is marked up; none sends it as it stands." zh:"文本的标记方式；none 表示原样发送。"`
	Keyboard   node.Object     `json:"keyboard_config" with:"action_type=send_message|edit_message|send_photo|send_document|send_video|send_poll" doc:"A keyboard as Telegram defines it: reply_markup." zh:"键盘：Telegram 定义的 reply_markup。"`
	File       json.RawMessage `json:"file" takes:"file" with:"action_type=send_photo|send_document|send_video" doc:"The file that is sent." zh:"要发送的文件。"`
	Caption    string          `json:"caption" with:"action_type=send_photo|send_document|send_video" doc:"What stands below the file, 1024 characters at most." zh:"文件说明，最多 1024 个字符。"`
	Question   string          `json:"question" with:"action_type=send_poll" doc:"What is asked." zh:"投票问题。"`
	Options    []string        `json:"options" with:"action_type=send_poll" doc:"The answers that can be chosen." zh:"投票选项。"`
	FromChatID node.Scalar     `json:"from_chat_id" with:"action_type=forward_message" doc:"The chat that the message is forwarded from." zh:"来源会话：被转发消息所在的会话。"`
	MessageID  node.Scalar     `json:"message_id" with:"action_type=forward_message|edit_message|delete_message|pin_message" doc:"The number of the message." zh:"消息编号。"`
	UserID     node.Scalar     `json:"user_id" with:"action_type=ban_user" doc:"The number of the person." zh:"人员编号。"`
	Silent     bool            `json:"disable_notification" with:"action_type=send_message|send_photo|send_document|send_video|send_poll|forward_message|pin_message" doc:"Whether people are told of it without a sound." zh:"是否静默通知。"`
	Method     string          `json:"method" with:"action_type=request" doc:"The method of the call: GET or POST." zh:"调用方法：GET 或 POST。"`
	Path       string          `json:"path" with:"action_type=request" doc:"The method of the Bot API, /getChat for instance." zh:"Bot API 方法，例如 /getChat。"`
	Query      node.Object     `json:"query" with:"action_type=request" doc:"Parameters of the call." zh:"查询参数。"`
	Body       json.RawMessage `json:"body" with:"action_type=request" doc:"The body of the call." zh:"请求正文。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() { c.ActionType, c.ParseMode = "send_message", "Markdown" }

type actionResult struct {
	action.Result
	MessageID int64           `json:"message_id" doc:"The number of the message; 0 if there is none." zh:"消息编号；没有则为 0。"`
	ChatID    string          `json:"chat_id" doc:"The chat, by its number where Telegram tells it." zh:"会话编号。"`
	Response  json.RawMessage `json:"telegram_response" doc:"What Telegram has answered as the result." zh:"Telegram 返回的结果。"`
}

const (
	maxCaption = 1024
	// maxUpload is how large a file may be that a bot sends.
	maxUpload = 50 << 20
)

// service is the Bot API. Its token is a part of every address; see begin.
func service() *rest.Service {
	return &rest.Service{
		Name: "Telegram", Base: defaultBase, Credentials: []string{credentialType},
		Secret: func(fields gjson.Result) *outbound.Secret {
			if token := fields.Get("token").Str; token == "" || strings.ContainsAny(token, "/?#% \t\r\n") {
				return nil
			}
			return &outbound.Secret{}
		},
		Said:   func(body gjson.Result) string { return body.Get("description").Str },
		Refine: refine,
	}
}

// refine says what a refusal of Telegram means: all but a few have the status 400, and words that tell them apart.
func refine(r *rest.Refusal) {
	said := strings.ToLower(r.Body.Get("description").Str)
	has := func(list ...string) bool {
		for _, words := range list {
			if strings.Contains(said, words) {
				return true
			}
		}
		return false
	}
	if to := r.Body.Get("parameters.migrate_to_chat_id"); to.Exists() {
		r.Problem.Fault = r.Problem.Fault.With(migrated, to.Raw)
	}
	switch {
	case r.Status == http.StatusTooManyRequests && r.Body.Get("parameters.retry_after").Exists():
		r.Limit("Telegram", time.Duration(r.Body.Get("parameters.retry_after").Float()*float64(time.Second)))
	case r.Status == http.StatusNotFound && said == "not found": // an unknown token is a part of an unknown address
		r.Becomes(fault.CredentialInvalid)
	case r.Status == http.StatusRequestEntityTooLarge, has("file is too big", "request entity too large"):
		r.Becomes(fault.TooLarge)
	case has("not modified", "message to delete not found"):
		r.Becomes(fault.Conflict)
	case has("not found"):
		r.Becomes(fault.NotFound)
	case has("can't parse", "too long", "is empty", "button", "keyboard", "poll "):
		r.Becomes(fault.InvalidInput)
	}
}

// migrated is the detail with the new number of a group that has become a supergroup.
const migrated = "migrate_to_chat_id"

// act acts as a bot of Telegram.
func act(client *outbound.Client, store *files.Store) node.Kind {
	telegram := service()
	does := func(do func(*acting) (actionResult, error)) func(context.Context, *node.Call, actionConfig) (actionResult, error) {
		return func(ctx context.Context, call *node.Call, cfg actionConfig) (out actionResult, err error) {
			api, err := telegram.Open(ctx, client, call)
			if err != nil {
				return out, err
			}
			api.Base = api.Base.JoinPath("bot" + api.Fields.Get("token").Str)
			a := &acting{ctx: ctx, call: call, cfg: cfg, api: api, store: store}
			if out, err = do(a); err == nil {
				out.Done(cfg.ActionType)
			}
			return out, err
		}
	}
	const once, idempotent = workflow.Once, workflow.Idempotent
	upload := func(method, field string) func(context.Context, *node.Call, actionConfig) (actionResult, error) {
		return does(func(a *acting) (actionResult, error) { return a.upload(method, field) })
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.TELEGRAM_ACTION", Title: node.Says("Telegram", "Telegram"),
		Description: node.Says("Sends, changes and deletes messages as a Telegram bot, and manages chats.", "以 Telegram 机器人身份发送、更改、删除消息，并管理会话。"),
		Effect:      once,
		Needs:       node.Needs{Credential: []string{credentialType}},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What Telegram has answered.", "Telegram 的响应。")}},
		Examples: []node.Example{{
			Shows:  node.Says("Tells a group that an order has come in.", "在群组中通知有新订单。"),
			Config: `{"credential_id": "telegram_bot", "action_type": "send_message", "chat_id": 42, "message_text": "Order *{{order}}* has come in."}`,
			Input:  `{"order": 7}`,
			Output: `{"result": {"success": true, "action": "send_message", "resource_id": "…", "resource_url": "", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null, "error_message": "", "message_id": "…", "chat_id": "42", "telegram_response": "…"}}`,
		}},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "send_message", Effect: once, Needs: []string{"chat_id", "message_text"}, Do: does((*acting).send)},
		{Name: "send_photo", Effect: once, Needs: []string{"chat_id", "file"}, Do: upload("sendPhoto", "photo")},
		{Name: "send_document", Effect: once, Needs: []string{"chat_id", "file"}, Do: upload("sendDocument", "document")},
		{Name: "send_video", Effect: once, Needs: []string{"chat_id", "file"}, Do: upload("sendVideo", "video")},
		{Name: "send_poll", Effect: once, Needs: []string{"chat_id", "question", "options"}, Do: does((*acting).poll)},
		{Name: "forward_message", Effect: once, Needs: []string{"chat_id", "from_chat_id", "message_id"}, Do: does((*acting).forward)},
		{Name: "edit_message", Effect: idempotent, Needs: []string{"chat_id", "message_id", "message_text"}, Do: does((*acting).edit)},
		{Name: "delete_message", Effect: idempotent, Needs: []string{"chat_id", "message_id"}, Do: does((*acting).delete)},
		{Name: "pin_message", Effect: idempotent, Needs: []string{"chat_id", "message_id"}, Do: does((*acting).pin)},
		{Name: "ban_user", Effect: idempotent, Needs: []string{"chat_id", "user_id"}, Do: does((*acting).ban)},
		{Name: "request", EffectOf: effectOf, Needs: []string{"method", "path"}, Do: does((*acting).request)},
	})
}

// effectOf is the class of a raw call. Telegram takes every method of its API by GET as well, also those that send.
func effectOf(cfg actionConfig) workflow.Effect {
	if !strings.HasPrefix(strings.TrimPrefix(cfg.Path, "/"), "get") {
		return workflow.Once
	}
	return httpcall.EffectOf(strings.ToUpper(cfg.Method))
}

// acting is one run of an operation.
type acting struct {
	ctx   context.Context
	call  *node.Call
	cfg   actionConfig
	api   *rest.API
	store *files.Store
}

// shortest is how long a text is at least when its marks are taken away, which Telegram does before it counts.
func (a *acting) shortest(said string) int {
	switch a.cfg.ParseMode {
	case "HTML":
		said = hypertext.Words(said, "")
	case "Markdown", "MarkdownV2":
		said = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(said, "")
		said = strings.Map(func(r rune) rune {
			if strings.ContainsRune("*_`[]~|\\>", r) {
				return -1
			}
			return r
		}, said)
	}
	return text.UTF16(said)
}

// fits says whether a text is short enough.
func (a *acting) fits(field, said string, most int) error {
	if n := a.shortest(said); n > most {
		return fault.Newf(fault.InvalidInput, "%s: it has %d characters; Telegram takes %d at most", field, n, most).With("path", field)
	}
	return nil
}

// mode is the parse_mode, nil for a text as it stands.
func (a *acting) mode() any {
	if a.cfg.ParseMode == "none" {
		return nil
	}
	return a.cfg.ParseMode
}
