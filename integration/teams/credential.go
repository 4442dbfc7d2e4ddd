package teams

import (
	"context"
	"fmt"

	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/text"
)

// credentialType is the type of the credentials that cards are sent and calls are verified with.
const credentialType = "teams_bot"

// botCredential is that of a bot, or only the address of a webhook.
func botCredential(channel *Channel) credential.Type {
	// Anyone who knows the address may post, so all of it is secret.
	address := credential.Address("webhook_url", "Webhook URL", "Webhook 地址")
	address.Secret = true
	return credential.Type{Name: credentialType, Label: text.Beside("Microsoft Teams bot", "Microsoft Teams 机器人"),
		Fields: []credential.Field{
			credential.Text("app_id", "App ID", "应用 ID"), credential.Secret("app_secret", "App secret", "应用密钥"),
			credential.Text("tenant_id", "Tenant ID", "租户 ID"), address,
		}, Alternatives: []credential.Alternative{
			{Requires: []string{"app_id", "app_secret", "tenant_id"}}, {Requires: []string{"webhook_url"}},
		}, Check: func(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
			b, release, err := channel.open(ctx, human.Opened(c), c.ID)
			if err != nil {
				return "", err
			}
			defer release()
			if !b.isBot() {
				return "", fault.New(fault.Unsupported, "a webhook of Teams can only be tried by posting something, which everybody there would read")
			}
			if _, err := b.token(ctx, true); err != nil {
				return "", err
			}
			return fmt.Sprintf("Microsoft gives the app %s tokens for bots", b.appID), nil
		}}
}
