package mail

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/builtin/action"
	"tandem/fault"
	"tandem/files"
	"tandem/node"
	"tandem/workflow"
)

type actionConfig struct {
	action.Fields
	IMAP        string            `json:"imap_credential_id" doc:"The name or the id of the credential that mail is read with, if credential_id only sends." zh:"收信凭据：读取邮件所用凭据的名称或编号（credential_id 仅能发送时）。"`
	From        string            `json:"from" with:"action_type=send|reply|search" doc:"Who the mail comes from, if that is not the address of the account. In a search: whom mail is from." zh:"发件人：发件地址，默认为账号地址；搜索时为要找的发件人。"`
	To          json.RawMessage   `json:"to" takes:"list|text" with:"action_type=send" doc:"The recipients, as a list or with commas between them." zh:"收件人：列表，或以逗号分隔。"`
	CC          json.RawMessage   `json:"cc" takes:"list|text" with:"action_type=send" doc:"Who gets a copy." zh:"抄送。"`
	BCC         json.RawMessage   `json:"bcc" takes:"list|text" with:"action_type=send" doc:"Who gets a copy that the others do not see." zh:"密送。"`
	ReplyTo     string            `json:"reply_to" with:"action_type=send|reply" doc:"Where replies go, if not to the sender." zh:"回复地址：默认为发件人。"`
	Subject     string            `json:"subject" with:"action_type=send|search" doc:"The subject. In a search: what a subject must have in it." zh:"主题；搜索时为主题须包含的文字。"`
	BodyText    string            `json:"body_text" with:"action_type=send" doc:"The mail as plain text." zh:"纯文本正文。"`
	BodyHTML    string            `json:"body_html" with:"action_type=send" doc:"The mail as HTML." zh:"HTML 正文。"`
	Attachments []json.RawMessage `json:"attachments" takes:"list" with:"action_type=send" doc:"The files that go along." zh:"附件。"`
	EmailID     string            `json:"email_id" with:"action_type=reply|mark|move|delete|get" doc:"The mail: its Message-ID, or the email_id that a trigger or a search gave it." zh:"邮件：Message-ID，或触发器、搜索所给的 email_id。"`
	Body        string            `json:"body" with:"action_type=reply" doc:"The reply, as plain text." zh:"回复的纯文本正文。"`
	ReplyAll    bool              `json:"reply_all" with:"action_type=reply" doc:"Whether the other recipients of the mail get the reply, too." zh:"是否回复全部收件人。"`
	Mailbox     string            `json:"mailbox" with:"action_type=search|move" doc:"The mailbox, or folder: the one that is searched, or the one that a mail is moved to." zh:"文件夹：搜索的文件夹，或移动的目标文件夹。"`
	Source      string            `json:"source_mailbox" with:"action_type=reply|mark|move|delete|get" doc:"The mailbox that has the mail." zh:"邮件所在的文件夹。"`
	SentMailbox string            `json:"sent_mailbox" with:"action_type=send|reply" doc:"The mailbox in which the mail server itself keeps what it has sent. A mail whose outcome is not known is looked for there. Name it only if the server keeps all mail there: what is not there is sent again." zh:"已发送文件夹：邮件服务器自动保存已发邮件的文件夹，发送结果未知时在其中查找。仅在服务器保存全部已发邮件时填写：其中没有的邮件会重发。"`
	Seen        *bool             `json:"seen" with:"action_type=mark" doc:"Whether the mail is marked as read or as unread." zh:"标为已读或未读。"`
	Flagged     *bool             `json:"flagged" with:"action_type=mark" doc:"Whether the mail gets a flag or loses it." zh:"加上或去除星标。"`
	Since       string            `json:"since" with:"action_type=search" doc:"Mail from this time on only: 2026-01-31, or a time such as 2026-01-31T09:00:00Z." zh:"起始时间：仅此时间之后的邮件，例如 2026-01-31 或 2026-01-31T09:00:00Z。"`
	Unseen      bool              `json:"unseen" with:"action_type=search" doc:"Mail that nobody has read only." zh:"是否仅限未读邮件。"`
	Limit       int               `json:"limit" range:"1..1000" with:"action_type=search" doc:"How many mails are listed at most, the newest first." zh:"最多列出的邮件数，新邮件在前。"`
	Cursor      string            `json:"cursor" with:"action_type=search" doc:"Where to go on: next_cursor of an earlier run." zh:"从何处继续：此前运行的 next_cursor。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *actionConfig) Defaults() {
	c.ActionType, c.Source, c.Limit = "send", "INBOX", 100
}

type actionResult struct {
	Success    bool            `json:"success" doc:"Always true: a failure is an error." zh:"始终为 true：失败会报错。"`
	Action     string          `json:"action" doc:"What was done." zh:"执行的操作。"`
	MessageID  string          `json:"message_id" doc:"The Message-ID of the mail that was sent, changed or read." zh:"所发送、更改或读取邮件的 Message-ID。"`
	Accepted   []string        `json:"accepted" doc:"The recipients whom the mail server took." zh:"邮件服务器接受的收件人。"`
	Rejected   []rejected      `json:"rejected_recipients" doc:"The recipients whom the mail server refused, each with the reason." zh:"被邮件服务器拒绝的收件人及原因。"`
	Emails     []emailSummary  `json:"emails" doc:"The mails that were found, the newest first." zh:"找到的邮件，新邮件在前。"`
	Email      json.RawMessage `json:"email" doc:"The mail that was read, with the fields that the mail trigger has; null otherwise." zh:"读取到的邮件，字段同邮件触发器；否则为 null。"`
	NextCursor string          `json:"next_cursor" doc:"Where to go on when there are more." zh:"有更多内容时从何处继续。"`
	Truncated  bool            `json:"truncated" doc:"Whether there are more than were listed." zh:"是否还有未列出的内容。"`
}

// rejected is a recipient who was refused.
type rejected struct {
	Address string `json:"address"`
	Error   string `json:"error"`
}

// emailSummary is a mail as a search lists it.
type emailSummary struct {
	EmailID  string `json:"email_id"`
	Sender   string `json:"sender"`
	Name     string `json:"sender_name"`
	To       string `json:"recipient"`
	Subject  string `json:"subject"`
	Received string `json:"received_date"`
	Preview  string `json:"preview"`
	Seen     bool   `json:"seen"`
	Flagged  bool   `json:"flagged"`
	Size     int64  `json:"size"`
}

// act sends and handles mail.
func act(network Network, store *files.Store) node.Kind {
	does := func(do func(*acting) (actionResult, error)) func(context.Context, *node.Call, actionConfig) (actionResult, error) {
		return func(ctx context.Context, call *node.Call, cfg actionConfig) (actionResult, error) {
			a := begin(ctx, network, store, call, cfg)
			out, err := do(a)
			return out.complete(cfg.ActionType, err == nil), err
		}
	}
	inquire := func(ctx context.Context, call *node.Call, cfg actionConfig) (actionResult, bool, error) {
		out, found, err := begin(ctx, network, store, call, cfg).inquire()
		return out.complete(cfg.ActionType, found), found, err
	}
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.EMAIL", Title: node.Says("Mail", "邮件"),
		Description: node.Says("Sends and answers mail, and finds, reads, marks, moves and deletes it.", "发送与回复邮件，并查找、读取、标记、移动、删除邮件。"),
		Effect:      workflow.Once,
		Needs:       node.Needs{Credential: append(sendingTypes(), typeIMAP), CredentialOf: credentialsOf},
		Keys:        []node.Key{{Name: "result", Meaning: node.Says("What became of the mail, or the mail that was found.", "邮件的处理结果，或找到的邮件。")}},
		Examples: []node.Example{
			{
				Shows:  node.Says("Tells a customer that an order has come in.", "通知客户已收到订单。"),
				Config: `{"credential_id": "team_mailbox", "action_type": "send", "from": "Shop <bot@tandem.example>", "to": "ann@example.org", "subject": "Order {{order}}", "body_text": "We have your order."}`,
				Input:  `{"order": 7}`,
				Output: `{"result": {"success": true, "action": "send", "message_id": "…", "accepted": ["ann@example.org"], "rejected_recipients": [], "emails": [], "email": null, "next_cursor": "", "truncated": false}}`,
			},
			{
				Shows:  node.Says("Lists mail that nobody has read.", "列出未读邮件。"),
				Config: `{"credential_id": "team_mailbox", "imap_credential_id": "team_inbox", "action_type": "search", "subject": "no such subject", "unseen": true}`,
				Output: `{"result": {"success": true, "action": "search", "message_id": "", "accepted": [], "rejected_recipients": [], "emails": [], "email": null, "next_cursor": "", "truncated": false}}`,
			},
		},
	}, []action.Operation[actionConfig, actionResult]{
		{Name: "send", Effect: workflow.Once, Needs: []string{"to", "subject", "body_text|body_html"},
			Do: does((*acting).send), Inquire: inquire},
		{Name: "reply", Effect: workflow.Once, Needs: []string{"email_id", "body"}, Do: does((*acting).reply), Inquire: inquire},
		{Name: "mark", Effect: workflow.Idempotent, Needs: []string{"email_id", "seen|flagged"}, Do: does((*acting).mark)},
		{Name: "move", Effect: workflow.Idempotent, Needs: []string{"email_id", "mailbox"}, Do: does((*acting).move)},
		{Name: "delete", Effect: workflow.Idempotent, Needs: []string{"email_id"}, Do: does((*acting).delete)},
		{Name: "search", Effect: workflow.Idempotent, Do: does((*acting).search)},
		{Name: "get", Effect: workflow.Idempotent, Needs: []string{"email_id"}, Do: does((*acting).get)},
	})
}

// sendingTypes are the credentials that mail is sent with.
func sendingTypes() []string { return []string{typeSMTP, typeGoogle, typeMicrosoft} }

// credentialsOf are the credentials that fit a node. One that only handles the mail of a mailbox does without one that sends.
func credentialsOf(config json.RawMessage) []string {
	switch gjson.GetBytes(config, "action_type").Str {
	case "", "send", "reply":
		return sendingTypes()
	}
	return append(sendingTypes(), typeIMAP)
}

// complete is the result with what all operations have.
func (r actionResult) complete(operation string, success bool) actionResult {
	r.Action, r.Success = operation, success
	if r.Accepted == nil {
		r.Accepted = []string{}
	}
	if r.Rejected == nil {
		r.Rejected = []rejected{}
	}
	if r.Emails == nil {
		r.Emails = []emailSummary{}
	}
	if r.Email == nil {
		r.Email = json.RawMessage("null")
	}
	return r
}

// acting is one run of an operation.
type acting struct {
	ctx     context.Context
	network Network
	store   *files.Store
	call    *node.Call
	cfg     actionConfig
	// key names what is sent, the same in every attempt.
	key string
}

func begin(ctx context.Context, network Network, store *files.Store, call *node.Call, cfg actionConfig) *acting {
	return &acting{ctx: ctx, network: network, store: store, call: call, cfg: cfg, key: call.EffectKey()}
}

func (a *acting) credentialID() string { return gjson.GetBytes(a.call.Config, "credential_id").Str }

// opened opens the account that mail is sent with.
func (a *acting) opened() (*mailAccount, error) {
	id := a.credentialID()
	c, err := a.call.Credential(a.ctx, id, sendingTypes()...)
	if err != nil {
		return nil, err
	}
	server, _, err := smtpProtocol().server(id, c)
	return &mailAccount{id: id, opened: c, server: server}, err
}

// readsWith is the credential that mail is read with.
func (a *acting) readsWith() string { return cmp.Or(a.cfg.IMAP, a.credentialID()) }

// open opens a mailbox. The caller closes it.
func (a *acting) open(name string) (*Mailbox, *mailAccount, error) {
	account, _, err := readingAccount(a.ctx, a.call.Credential, a.readsWith())
	if fault.CodeOf(err) == fault.CredentialInvalid && a.cfg.IMAP == "" {
		err = fault.Newf(fault.CredentialMissing, "mail is read with a credential of the type %s; set imap_credential_id to one: %w", typeIMAP, err).With("path", "configurations.imap_credential_id")
	}
	if err != nil {
		return nil, nil, err
	}
	box, err := account.open(a.ctx, a.network, name)
	return box, account, err
}
