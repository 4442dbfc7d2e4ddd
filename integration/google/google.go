// Package google is what Tandem knows of Google's services: mailboxes of Gmail that are read by the Gmail API.
//
// The type of credential, google_oauth, is that of package integration/mail, which sends and reads mail of the same accounts by SMTP and IMAP. The program that
// puts extensions together imports the package; nothing else does.
package google

import (
	"tandem/mailbox"
	"tandem/plug"
)

// credentialType is the type of the accounts of Google.
const credentialType = "google_oauth"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{Name: "google", Mailboxes: []mailbox.Service{gmail(d.HTTP)}}
}
