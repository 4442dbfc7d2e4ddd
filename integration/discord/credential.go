package discord

import (
	"context"
	"fmt"
	"net/http"

	"github.com/bwmarrin/discordgo"

	"tandem/credential"
	"tandem/text"
)

// credentialType is the type of the credentials that messages are sent and calls are verified with.
const credentialType = "discord_bot"

func botCredential(client *http.Client) credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Discord bot", "Discord 机器人"), Fields: []credential.Field{
		credential.Token(), credential.Text("public_key", "Public key", "公钥"),
	}, Check: func(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
		s, err := read(client, c)
		if err != nil {
			return "", err
		}
		var name string
		err = s.call(ctx, "say whose token it is", func(api *discordgo.Session, o discordgo.RequestOption) error {
			me, err := api.User("@me", o)
			if err == nil {
				name = me.Username
			}
			return err
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Discord knows the token as the bot %s", name), nil
	}}
}
