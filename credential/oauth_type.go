package credential

import (
	"net/url"

	"tandem/text"
)

// OAuth says where the tokens of a type come from: a person authorizes this program at the first address, with a browser, and the second
// gives and renews tokens. A credential may have addresses of its own. Before a token ends it is renewed when the credential is opened.
type OAuth struct {
	AuthorizeURL, TokenURL string
	// Scopes are what is asked for where the credential does not say.
	Scopes []string
	// More are further parameters of the first address.
	More url.Values
}

// OAuthFields are the fields of a type whose tokens a person authorizes: the client, which is registered with the service, and what an
// authorization brings.
func OAuthFields() []Field {
	return []Field{
		Text("client_id", "Client ID", "客户端 ID"), Secret("client_secret", "Client secret", "客户端密钥"),
		Choice("client_auth", "Client authentication", "客户端认证方式", "basic", "form", "none"),
		Address("authorize_url", "Authorization URL", "授权地址"), Address("token_url", "Token URL", "令牌地址"),
		{Name: "scopes", Label: text.Beside("Scopes", "权限范围"), Format: FormatTexts},
		Secret("token", "Access token", "访问令牌"), Secret("refresh_token", "Refresh token", "刷新令牌"), Text("expires", "Expires", "到期时间"),
		{Name: "pending", Label: text.Beside("Authorization under way", "进行中的授权"), Format: FormatDocument, Secret: true, Members: []string{"state", "verifier", "ticket", "browser"}},
	}
}

// OAuthAlternatives are the ways to fill such a type in: with a client, or with a token that was got elsewhere.
func OAuthAlternatives() []Alternative {
	return []Alternative{{Requires: []string{"client_id"}}, {Requires: []string{"token"}}}
}
