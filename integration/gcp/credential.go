package gcp

import "tandem/credential"

// credentialType is the type of the credentials that tokens are fetched with.
const credentialType = "gcp_service_account"

func accountCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: credential.Label{En: "Google Cloud service account", Zh: "Google Cloud 服务账号"}, Fields: []credential.Field{
		{
			Name: "key", Label: credential.Label{En: "Key JSON", Zh: "密钥 JSON"}, Format: credential.FormatDocument, Required: true, Secret: true,
			Members: []string{"private_key", "private_key_id"},
		},
		credential.Address("token_uri", "Token URI", "令牌地址"),
	}}
}
