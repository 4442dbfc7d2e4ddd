package mcp

import (
	"tandem/credential"
	"tandem/text"
)

// OAuthCredential is the name of the type of credentials that hold the tokens of a tool server.
const OAuthCredential = "mcp_oauth"

// Credentials are the types of the credentials of tool servers: the tokens that an authorization brings.
func Credentials() []credential.Type {
	return []credential.Type{oauthCredential()}
}

// oauthCredential is that of a grant. All but the client is written by an authorization; one that is empty is filled by it.
func oauthCredential() credential.Type {
	return credential.Type{Name: OAuthCredential, Label: text.Beside("MCP server authorization", "MCP 服务器授权"), Fields: []credential.Field{
		credential.Text("client_id", "Client ID", "客户端 ID"), credential.Secret("client_secret", "Client secret", "客户端密钥"),
		credential.Choice("client_auth", "Client authentication", "客户端认证方式", "basic", "form", "none"),
		credential.Address("issuer", "Authorization server", "授权服务器"),
		credential.Text("client_expires", "Client secret expires", "客户端密钥到期时间"),
		credential.Secret("token", "Access token", "访问令牌"), credential.Secret("refresh_token", "Refresh token", "刷新令牌"),
		credential.Address("token_url", "Token URL", "令牌地址"), credential.Text("resource", "Resource", "资源"),
		credential.Text("expires", "Expires", "到期时间"),
		{Name: "scopes", Label: text.Beside("Scopes", "权限范围"), Format: credential.FormatTexts}, credential.Text("redirect_uri", "Redirect URI", "回调地址"),
		{Name: "pending", Label: text.Beside("Authorization under way", "进行中的授权"), Format: credential.FormatDocument, Secret: true, Members: []string{"state", "verifier"}},
	}, Untried: text.Beside("it is for one tool server, which tries it whenever it is connected to: tandem mcp servers tools NAME", "它只用于一个工具服务器，连接时即会验证：tandem mcp servers tools NAME")}
}
