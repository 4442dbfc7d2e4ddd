package slack

import (
	"context"
	"fmt"
	"net/http"

	"tandem/credential"
	"tandem/text"
)

// credentialType is the type of the credentials that messages are sent and calls are verified with.
const credentialType = "slack_bot"

func botCredential(client *http.Client) credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Slack bot", "Slack 机器人"), Fields: []credential.Field{
		credential.Token(), credential.Secret("signing_secret", "Signing secret", "签名密钥"),
	}, Check: func(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
		s, err := read(client, c)
		if err != nil {
			return "", err
		}
		who, err := s.api.AuthTestContext(ctx)
		if err != nil {
			return "", problem("say whose token it is", err)
		}
		return fmt.Sprintf("Slack knows the token as %s in the workspace %s", who.User, who.Team), nil
	}}
}
