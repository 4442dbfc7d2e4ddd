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

// notices are delivered as mails.
func notices(kind string) notice.Way {
	return notice.Way{
		Name: "email", Kind: kind, Effect: workflow.Once, ID: "message_id", Reads: []string{"imap_credential_id", "sent_mailbox"},
		Configure: func(n notice.Notice) map[string]any {
			return map[string]any{
				"credential_id": n.Credential, "imap_credential_id": n.Settings["imap_credential_id"], "sent_mailbox": n.Settings["sent_mailbox"],
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
