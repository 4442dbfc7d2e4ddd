package gcp

import (
	"tandem/credential"
	"tandem/text"
)

// credentialType is the type of the credentials that tokens are fetched with.
const credentialType = "gcp_service_account"

func accountCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Google Cloud service account", "Google Cloud 服务账号"), Fields: []credential.Field{
		{
			Name: "key", Label: text.Beside("Key JSON", "密钥 JSON"), Format: credential.FormatDocument, Required: true, Secret: true,
			Members: []string{"private_key", "private_key_id"},
		},
		credential.Address("token_uri", "Token URI", "令牌地址"),
	}}
}
