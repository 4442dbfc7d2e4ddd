package mail

import (
	"maps"

	"tandem/builtin/ask"
	"tandem/builtin/notice"
	"tandem/human"
	"tandem/node"
	"tandem/plug"
	"tandem/trigger"
	"tandem/workflow"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	network := Network{Dial: d.HTTP.DialContext}
	o := Options{Dial: d.HTTP.DialContext, Log: d.Log}
	acts := act(network, d.Files)
	services := mailServices{} // known once all extensions are
	return plug.Extension{
		Name:        "mail",
		Kinds:       []node.Kind{triggerEmail(), acts, emailTool(network)},
		Channels:    []human.Channel{Channel(o)},
		Credentials: credentialTypes(network, services),
		Notices:     []notice.Way{notices(acts.About.Name)},
		SourcesOf: func(all *plug.Set) []trigger.Source {
			maps.Copy(services, all.Mailboxes)
			return []trigger.Source{newEmailSource(o, services)}
		},
		KindsOf: func(all *plug.Set) []node.Kind {
			with := ask.Deps{Users: d.Users, Channels: all.Channels}
			return []node.Kind{gmailInteraction(with), outlookInteraction(with)}
		},
	}
}

// What a channel of a notification sets for mail alone; the kind that sends mails calls it the same.
const (
	settingIMAP = "imap_credential_id"
	settingSent = "sent_mailbox"
)

// notices are delivered as mails.
func notices(kind string) notice.Way {
	return notice.Way{
		Name: "email", Kind: kind, Effect: workflow.Once, ID: "message_id",
		Settings: []notice.Setting{
			{Name: settingIMAP, Meaning: node.Says("By mail: the name or the id of the credential that mail is read with, if credential_id only sends. A mail whose outcome is not known is looked for with it.", "收信凭据：仅用于邮件；读取邮件所用凭据的名称或编号（credential_id 仅能发送时），用于查找发送结果未知的邮件。")},
			{Name: settingSent, Meaning: node.Says("By mail: the mailbox in which the mail server itself keeps all that it has sent. What is not there is sent again.", "已发送文件夹：仅用于邮件；邮件服务器自动保存全部已发邮件的文件夹，其中没有的邮件会重发。")},
		},
		Configure: func(n notice.Notice) map[string]any {
			return map[string]any{
				"credential_id": n.Credential, settingIMAP: n.Settings[settingIMAP], settingSent: n.Settings[settingSent],
				"action_type": "send", "to": n.To, "subject": n.Subject, "body_text": n.Text, "attachments": []string{},
			}
		},
	}
}

// Traits implements [human.Particular].
func (c *channel) Traits() human.Traits {
	return human.Traits{Credentials: []string{typeSMTP, typeGoogle, typeMicrosoft},
		ReadsWith: []string{typeIMAP, typeGoogle, typeMicrosoft}}
}
