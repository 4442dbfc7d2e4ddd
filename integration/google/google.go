// Package google is what Tandem knows of Google's services: mailboxes of Gmail that are read by the Gmail API, and the kinds that work on
// calendars, mail, spreadsheets and files of Drive.
//
// The kinds call the REST APIs through package rest and not through Google's library: they need two dozen calls, hand on the answers as
// they come, and must know of each call whether Google can have taken it.
//
// The type of credential, google_oauth, is that of package integration/mail, which sends and reads mail of the same accounts by SMTP and
// IMAP. The program that puts extensions together imports the package; nothing else does.
package google

import (
	"tandem/mailbox"
	"tandem/node"
	"tandem/plug"
)

// credentialType is the type of the accounts of Google.
const credentialType = "google_oauth"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name: "google", Mailboxes: []mailbox.Service{gmail(d.HTTP)},
		Kinds: []node.Kind{calendarAction(d.HTTP), calendarTool(d.HTTP), gmailTool(d.HTTP), sheetsAction(d.HTTP),
			driveAction(d.HTTP, d.Files)},
	}
}
