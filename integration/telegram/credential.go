package telegram

import (
	"tandem/credential"
	"tandem/text"
)

// credentialType is the type of the credentials that messages are sent and updates are taken with.
const credentialType = "telegram_bot"

func botCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Telegram bot", "Telegram 机器人"), Fields: []credential.Field{
		credential.Token(), credential.WebhookSecret(),
	}}
}
