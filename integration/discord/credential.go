package discord

import "tandem/credential"

// credentialType is the type of the credentials that messages are sent and calls are verified with.
const credentialType = "discord_bot"

func botCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: credential.Label{En: "Discord bot", Zh: "Discord 机器人"}, Fields: []credential.Field{
		credential.Token(), credential.Text("public_key", "Public key", "公钥"),
	}}
}
