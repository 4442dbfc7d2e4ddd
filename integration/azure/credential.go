package azure

import (
	"tandem/credential"
	"tandem/text"
)

// credentialType is the type of the credentials that requests are signed with, or tokens fetched.
const credentialType = "azure"

func accountCredential() credential.Type {
	return credential.Type{Name: credentialType, Label: text.Beside("Azure", "Azure"), Fields: []credential.Field{
		credential.Text("tenant_id", "Tenant ID", "租户 ID"), credential.Text("client_id", "Client ID", "客户端 ID"),
		credential.Secret("client_secret", "Client secret", "客户端密钥"), credential.Text("account_name", "Storage account", "存储账号"),
		credential.Secret("account_key", "Account key", "账号密钥"), credential.Secret("sas", "Shared access signature", "共享访问签名"),
		credential.Secret("connection_string", "Connection string", "连接字符串"), credential.Address("token_url", "Token URL", "令牌地址"),
	}, Alternatives: []credential.Alternative{
		{Requires: []string{"tenant_id", "client_id", "client_secret"}}, {Requires: []string{"account_key"}},
		{Requires: []string{"sas"}}, {Requires: []string{"connection_string"}},
	}}
}
