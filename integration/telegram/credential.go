package telegram

import "tandem/credential"

// credentialType is the type of the credentials that messages are sent and updates are taken with.
const credentialType = "telegram_bot"

func botCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: credential.Label{En: "Telegram bot", Zh: "Telegram 机器人"}, Fields: []credential.Field{
		credential.Token(), credential.WebhookSecret(),
	}}
}
