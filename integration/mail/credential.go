package mail

import (
	"net/url"

	"tandem/credential"
	"tandem/text"
)

// The types of credentials that mail is sent and read with.
const (
	typeSMTP      = "smtp"
	typeIMAP      = "imap"
	typeGoogle    = "google_oauth"
	typeMicrosoft = "microsoft_oauth"
)

// credentialTypes are those of mail servers, and the accounts of vendors that log in to theirs with tokens.
func credentialTypes(n Network, services mailServices) []credential.Type {
	smtp := credential.Type{Name: typeSMTP, Label: text.Beside("Outgoing mail (SMTP)", "发信服务器（SMTP）"),
		Fields: append(serverFields(securityStartTLS, "smtp", "smtps"), credential.Username(), credential.Password()),
		// Relays inside a network take mail without a login.
		Alternatives: []credential.Alternative{{Requires: []string{"username", "password"}}, {}},
	}
	imap := credential.Type{Name: typeIMAP, Label: text.Beside("Incoming mail (IMAP)", "收信服务器（IMAP）"),
		Fields: append(serverFields(securityTLS, "imap", "imaps"), credential.Username().Needed(), credential.Password().Needed(),
			// By these the sender of a reply is believed: what the receiving server calls itself when it says that a mail is
			// genuine, and whether every sender is believed because the server takes mail from known people only.
			credential.Text("authserv_id", "Name in Authentication-Results", "验证服务器名"),
			credential.Choice("trust_sender", "Trust sender addresses", "信任发件人地址", "no", "yes").Or("no"),
		),
	}
	smtp.Check, imap.Check = n.checkSMTP, n.checkIMAP
	types := []credential.Type{
		smtp, imap,
		account(typeGoogle, text.Beside("Google account", "Google 账号"), credential.OAuth{
			AuthorizeURL: "https://accounts.google.com/o/oauth2/v2/auth", TokenURL: "https://oauth2.googleapis.com/token", Scopes: []string{"https://mail.google.com/"},
			More: url.Values{"access_type": {"offline"}, "prompt": {"consent"}}, // otherwise there is a refresh token the first time only
		}),
		account(typeMicrosoft, text.Beside("Microsoft account", "Microsoft 账号"), credential.OAuth{
			AuthorizeURL: "https://login.microsoftonline.com/common/oauth2/v2.0/authorize", TokenURL: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
			Scopes: []string{"https://outlook.office.com/SMTP.Send", "https://outlook.office.com/IMAP.AccessAsUser.All", "offline_access"},
		}),
	}
	types[2].Check, types[3].Check = services.check(n.checkIMAP), services.check(n.checkIMAP)
	return types
}

// serverFields are where a mail server is and how its connections are protected.
func serverFields(security string, schemes ...string) []credential.Field {
	return []credential.Field{
		credential.Text("host", "Host", "主机").Needed(),
		{Name: "port", Label: text.Beside("Port", "端口"), Format: credential.FormatPort},
		credential.Choice("security", "Encryption", "加密方式", securityStartTLS, securityTLS, securityNone).Or(security),
		credential.Address("base_url", "Base URL", "接口地址").Schemed(schemes...),
	}
}

// account is an account of a vendor that hands out tokens.
func account(name string, label credential.Label, from credential.OAuth) credential.Type {
	return credential.Type{Name: name, Label: label, OAuth: &from, Alternatives: credential.OAuthAlternatives(),
		Fields: append(credential.OAuthFields(), credential.Text("email", "E-mail address", "邮箱"))} // mail servers want to know whose token it is
}
