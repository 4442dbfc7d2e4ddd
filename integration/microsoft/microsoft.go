// Package microsoft is what Tandem knows of the services of Microsoft 365: mailboxes of Outlook that are read by Microsoft Graph, and the
// kind that gives a model a calendar.
//
// The kind calls Graph through package rest and not through the library of Microsoft, which is generated of the whole of Graph and many
// times as large as what is needed, and hides whether Graph can have taken a call.
//
// The type of credential, microsoft_oauth, is that of package integration/mail, which sends and reads mail of the same accounts by SMTP and
// IMAP. The program that puts extensions together imports the package; nothing else does.
package microsoft

import (
	"tandem/mailbox"
	"tandem/node"
	"tandem/plug"
)

// credentialType is the type of the accounts of Microsoft.
const credentialType = "microsoft_oauth"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{Name: "microsoft", Mailboxes: []mailbox.Service{outlook(d.HTTP)}, Kinds: []node.Kind{calendarTool(d.HTTP)}}
}
