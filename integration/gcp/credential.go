package gcp

import (
	"context"
	"time"

	"tandem/credential"
	"tandem/outbound"
	"tandem/text"
)

// credentialType is the type of the credentials that tokens are fetched with.
const credentialType = "gcp_service_account"

func accountCredential(client *outbound.Client) credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Google Cloud service account", "Google Cloud 服务账号"),
		Fields: []credential.Field{
			{
				Name: "key", Label: text.Beside("Key JSON", "密钥 JSON"), Format: credential.FormatDocument, Required: true, Secret: true,
				Members: []string{"private_key", "private_key_id"},
			},
			credential.Address("token_uri", "Token URI", "令牌地址"),
		}, Check: func(ctx context.Context, c credential.Opened, _ credential.Outside) (string, error) {
			a, err := openAccount(c)
			if err != nil {
				return "", err
			}
			if _, _, err := a.token(ctx, client, "https://www.googleapis.com/auth/devstorage.read_only", time.Now()); err != nil {
				return "", err
			}
			return "Google gives tokens for the service account " + a.email, nil
		}}
}
