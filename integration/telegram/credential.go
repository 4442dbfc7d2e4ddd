package telegram

import (
	"context"
	"fmt"

	"tandem/credential"
	"tandem/text"
)

// credentialType is the type of the credentials that messages are sent and updates are taken with.
const credentialType = "telegram_bot"

func botCredential(channel *Channel) credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Telegram bot", "Telegram 机器人"), Fields: []credential.Field{
		credential.Token(), credential.WebhookSecret(),
	}, Check: func(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
		opened := func(context.Context, string, ...string) (credential.Opened, error) { return c, nil }
		b, release, err := channel.open(ctx, opened, c.ID)
		if err != nil {
			return "", err
		}
		defer release()
		var me struct {
			Username string `json:"username"`
		}
		if err := b.call(ctx, "getMe", struct{}{}, &me); err != nil {
			return "", err
		}
		return fmt.Sprintf("Telegram knows the token as the bot @%s", me.Username), nil
	}}
}
