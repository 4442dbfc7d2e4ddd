package mail

import (
	"testing"

	"tandem/builtin/ask"
	"tandem/builtin/ask/asktest"
	"tandem/fault"
	"tandem/human"
	"tandem/node/nodetest"
)

func kinds() nodetest.Kinds {
	d := ask.Deps{Channels: []human.Channel{Channel(Options{})}}
	return nodetest.Of(gmailInteraction(d), outlookInteraction(d))
}

// A question has what its channel has to know, with the defaults of its kind.
func TestInteraction(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
	asktest.Run(t, kinds(), map[string]asktest.Case{
		"OlderMail": {Kind: "GMAIL_INTERACTION", Config: `{"email_subject":"S","email_template":"B","recipient_emails":["a@x.org"],"credential_id":"c"}`, Input: `{}`, Says: map[string]string{"title": `"S"`, "description": `"B"`}},
		"Gmail": {Kind: "GMAIL_INTERACTION", Config: `{"title":"Q","recipient_emails":["A@x.org","b@x.org"],"sender_email":"me@x.org","credential_id":"out","imap_credential_id":"in"}`, Input: `{}`, Says: map[string]string{
			"channel_type": `"email"`, "timeout_seconds": "86400", "approvers": `["A@x.org","b@x.org"]`, "settings": `{"recipient_emails":["A@x.org","b@x.org"],"sender_email":"me@x.org"}`, "credential_id": `"out"`, "in_credential_id": `"in"`,
		}},
		"MailToOthers": {Kind: "GMAIL_INTERACTION", Config: `{"title":"Q","recipient_emails":["team@x.org"],"approvers":["boss@x.org"],"credential_id":"c"}`, Input: `{}`, Says: map[string]string{"approvers": `["boss@x.org"]`, "settings.recipient_emails": `["team@x.org"]`}},
		"Outlook":      {Kind: "OUTLOOK_INTERACTION", Config: `{"title":"Q","recipient_emails":["a@x.org"],"priority_level":"HIGH","credential_id":"c","imap_credential_id":"in"}`, Input: `{}`, Says: map[string]string{"channel_type": `"email"`, "in_credential_id": `"in"`, "settings.priority_level": `"high"`, "timeout_seconds": "86400"}},
	})
	asktest.Refuses(t, kinds(), "GMAIL_INTERACTION", `{"title":"Q","recipient_emails":[]}`, fault.InvalidConfig, "configurations.recipient_emails")
}
