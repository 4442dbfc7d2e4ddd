package mail

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"tandem/builtin/start"
	"tandem/builtin/values"
	"tandem/node"
	"tandem/workflow"
)

// emailKind is the kind of trigger that mail starts.
const emailKind = "TRIGGER.EMAIL"

// The ways to read a mailbox: by IMAP, or by the API of a service.
const (
	providerIMAP    = "imap"
	providerGmail   = "gmail_api"
	providerOutlook = "outlook_api"
)

type emailConfig struct {
	Provider     string        `json:"email_provider" enum:"imap|gmail_api|outlook_api|webhook" fixed:"true" doc:"How mail is reached: imap reads a mailbox, also of Gmail and Outlook with their credentials; gmail_api and outlook_api read one by the Gmail API and by Microsoft Graph; webhook takes mail that a service hands in." zh:"接收邮件的方式：imap 读取邮箱（Gmail 与 Outlook 亦可，使用各自的凭证）；gmail_api 与 outlook_api 通过 Gmail API 与 Microsoft Graph 读取；webhook 接收邮件服务推送的邮件。"`
	Path         string        `json:"webhook_path" fixed:"true" with:"email_provider=webhook" doc:"The path below the address of the workflow at which a service hands mail in. Two triggers of one workflow need two." zh:"推送路径：工作流地址之下供邮件服务推送的路径；同一工作流的两个触发器须不同。"`
	Mailbox      string        `json:"mailbox" fixed:"true" with:"email_provider=imap|gmail_api|outlook_api" doc:"The mailbox, or folder, that is read; of Gmail a label." zh:"读取的邮箱文件夹；Gmail 中为标签。"`
	Criteria     emailCriteria `json:"filter_criteria" fixed:"true" doc:"What a mail must have to start something; all that is given must fit." zh:"邮件须满足的条件，所给条件须全部满足。"`
	Keywords     []string      `json:"subject_keywords" fixed:"true" doc:"Words of which the subject must have one, in any letter case; none: every subject fits." zh:"主题须包含其中之一（不分大小写）；为空则不限。"`
	Senders      []string      `json:"sender_whitelist" fixed:"true" doc:"Who may start something: addresses (ann@example.com), domains (example.com), or patterns (*@*.example.com); none: everybody. A sender can be forged; see verified_senders_only." zh:"允许的发件人：地址（ann@example.com）、域名（example.com）或通配（*@*.example.com）；为空则不限。发件人可被伪造，参见 verified_senders_only。"`
	VerifiedOnly bool          `json:"verified_senders_only" fixed:"true" doc:"Whether only mail counts whose sender the receiving server has found to be genuine (DKIM, SPF or DMARC in Authentication-Results)." zh:"只收已验证的发件人：是否只接受收信服务器已验证发件人（Authentication-Results 中的 DKIM、SPF 或 DMARC）的邮件。"`
	Attachments  bool          `json:"process_attachments" fixed:"true" doc:"Whether attachments are stored; if not, they are left out." zh:"是否存储附件；否则略去。"`
	Types        []string      `json:"attachment_types" fixed:"true" with:"process_attachments=true" doc:"The attachments that are stored, by the ends of their names (pdf) or their types (image/*); * stands for all. Others are listed with the reason in skipped." zh:"存储哪些附件：按扩展名（pdf）或类型（image/*），* 表示全部；其余仅列出，原因见 skipped。"`
	MaxSize      int64         `json:"max_attachment_size" range:"1024..52428800" fixed:"true" with:"process_attachments=true" doc:"How large an attachment may be, in bytes. A larger one is listed with the reason in skipped." zh:"单个附件的最大字节数；更大的仅列出，原因见 skipped。"`
	Poll         int           `json:"polling_interval" range:"30..3600" fixed:"true" with:"email_provider=imap|gmail_api|outlook_api" doc:"How often the mailbox is looked at, in seconds. A server that tells of new mail by itself (IDLE) is asked this often all the same." zh:"查看邮箱的间隔（秒）；服务器支持即时通知（IDLE）时，也按此间隔再查一次。"`
	MarkSeen     bool          `json:"mark_seen" fixed:"true" with:"email_provider=imap|gmail_api|outlook_api" doc:"Whether a mail that has started something is marked as read, once it is stored." zh:"标为已读：启动工作流的邮件存储后是否标为已读。"`
}

func (c *emailConfig) Defaults() {
	c.Provider, c.Mailbox, c.Attachments, c.MaxSize, c.Poll, c.MarkSeen = providerIMAP, "INBOX", true, 10<<20, 300, true
	c.Path = "/mail"
	c.Types = []string{"pdf", "doc", "docx", "txt", "csv", "xlsx"}
}

// triggerEmail is where an execution begins that a mail has started.
func triggerEmail() node.Kind {
	kind := node.Define(
		node.About{
			Name: emailKind, Title: node.Says("Mail", "邮件触发"),
			Description: node.Says("Starts when a mail arrives in a mailbox or is handed in by a service, once the workflow is deployed.", "工作流部署后，邮箱收到新邮件或邮件服务推送邮件时启动。"),
			Effect:      workflow.Pure,
			Needs:       node.Needs{Credential: []string{typeIMAP, typeGoogle, typeMicrosoft, typeSecret}},
			Keys: []node.Key{{Name: "result", Meaning: node.Says("The mail, with trigger_time, execution_id and trigger_message.", "邮件内容，附 trigger_time、execution_id 和 trigger_message。"), Fields: append([]node.Value{
				node.Meaning("email_id", "The Message-ID of the mail, without brackets; that of the mailbox for a mail without one.", "邮件的 Message-ID（不含尖括号）；没有时为邮箱中的编号。"),
				node.Meaning("sender", "The address of the sender.", "发件人地址。"),
				node.Meaning("sender_name", "What the sender calls themselves.", "发件人名称。"),
				node.Meaning("sender_verified", "Whether the receiving server has found that the sender is genuine.", "收信服务器是否已验证发件人。"),
				node.Meaning("recipient", "The addresses in To, with commas.", "收件人地址（逗号分隔）。"),
				node.Meaning("cc", "The addresses in Cc, with commas.", "抄送地址（逗号分隔）。"),
				node.Meaning("subject", "The subject.", "主题。"), node.Meaning("body_text", "What it says, quotations included, up to 256 KiB; of a mail that is only HTML, its text.", "正文文本（含引文，最多 256 KiB）；仅有 HTML 时为其文本。"),
				node.Meaning("body_html", "The HTML, as it was sent, up to 1 MiB.", "原始 HTML（最多 1 MiB）。"),
				node.Meaning("attachments", "The attachments: stored files, and those that were not stored with the reason in skipped.", "附件：已存储的文件；未存储者附原因 skipped。"),
				node.Meaning("received_date", "When the server got it.", "服务器收到的时间。"), node.Meaning("email_headers", "The headers by their names in small letters; a list where one is there several times.", "邮件头（名称小写），多次出现者为列表。"),
				node.Meaning("thread_id", "The Message-ID of the mail that the conversation began with.", "会话首封邮件的 Message-ID。"), node.Meaning("truncated", "Whether something of it was too large and is cut off.", "是否因过大而被截断。"),
			}, start.Meanings()...)}},
			Inputs: []node.Value{node.Meaning("*", "The mail; when somebody starts it by hand, what it is started with.", "邮件内容；手动启动时为启动输入。")},
			Examples: []node.Example{
				{
					Shows:  node.Says("Takes invoices that a supplier sends as PDF files.", "接收供应商以 PDF 发来的发票。"),
					Config: `{"credential_id": "invoice_mailbox", "sender_whitelist": ["acme.example"], "subject_keywords": ["invoice"], "attachment_types": ["pdf"]}`,
					Input:  `{"email_id": "7@acme.example", "sender": "billing@acme.example", "subject": "Invoice 7"}`,
					Output: `{"result": {"email_id": "7@acme.example", "sender": "billing@acme.example", "subject": "Invoice 7", "trigger_time": "…", "execution_id": "…", "trigger_message": "mail from billing@acme.example: Invoice 7"}}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, _ emailConfig, in json.RawMessage) (json.RawMessage, error) {
			message := "started by hand"
			if from := gjson.GetBytes(in, "sender").String(); from != "" {
				message = "mail from " + from + ": " + gjson.GetBytes(in, "subject").String()
			}
			return values.HandOn(in, start.Fields(call, message)...), nil
		}, planEmail)
	kind.Brief = true // it is over at once
	return kind
}

// planEmail refuses what could not be deployed.
func planEmail(p *node.Planning, cfg *emailConfig) {
	if p.Has("attachment_types") && cfg.Attachments && len(cfg.Types) == 0 {
		p.Invalid(p.At("attachment_types"), "names no type; write [\"*\"] for all, or set process_attachments to false for none")
	}
	if cfg.Provider == providerWebhook {
		if !goodHookPath(cfg.Path) {
			p.Invalid(p.At("webhook_path"), "%q is not a path; write it like /mail, with letters, digits, dots and hyphens", cfg.Path)
		}
		if cfg.VerifiedOnly {
			p.Invalid(p.At("verified_senders_only"), "cannot be with email_provider webhook: no server is known that would vouch for senders")
		}
		p.Require("credential_id", "because %s is %s", "email_provider", cfg.Provider)
	}
	if cfg.Provider == providerGmail || cfg.Provider == providerOutlook {
		p.Require("credential_id", "because %s is %s", "email_provider", cfg.Provider)
	}
	for _, wrong := range cfg.Criteria.problems() {
		p.Invalid(p.At("filter_criteria")+"."+wrong.field, "%s", wrong.reason)
	}
}
