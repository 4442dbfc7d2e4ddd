package aws

import (
	"tandem/credential"
	"tandem/text"
)

// credentialType is the type of the credentials that requests are signed with.
const credentialType = "aws_keys"

func keysCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("AWS access keys", "AWS 访问密钥"), Fields: []credential.Field{
		credential.Text("access_key_id", "Access key ID", "访问密钥 ID").Needed(),
		credential.Secret("secret_access_key", "Secret access key", "秘密访问密钥").Needed(),
		credential.Secret("session_token", "Session token", "会话令牌"), credential.Text("region", "Region", "区域"),
	}}
}
