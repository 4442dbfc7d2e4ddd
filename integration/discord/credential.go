package discord

import (
	"tandem/credential"
	"tandem/text"
)

// credentialType is the type of the credentials that messages are sent and calls are verified with.
const credentialType = "discord_bot"

func botCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Discord bot", "Discord 机器人"), Fields: []credential.Field{
		credential.Token(), credential.Text("public_key", "Public key", "公钥"),
	}}
}
