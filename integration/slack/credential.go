package slack

import (
	"tandem/credential"
	"tandem/text"
)

// credentialType is the type of the credentials that messages are sent and calls are verified with.
const credentialType = "slack_bot"

func botCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Slack bot", "Slack 机器人"), Fields: []credential.Field{
		credential.Token(), credential.Secret("signing_secret", "Signing secret", "签名密钥"),
	}}
}
