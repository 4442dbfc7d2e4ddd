package builtin

import (
	"tandem/credential"
	"tandem/text"
)

// HTTPCredentials are the types of the credentials that kinds call services with.
func HTTPCredentials() []credential.Type {
	auth := httpAuthCredential()
	return []credential.Type{
		auth,
		{Name: "service", Label: text.Beside("Service definition", "服务定义"), Fields: []credential.Field{
			{Name: "openapi", Label: text.Beside("OpenAPI document", "OpenAPI 文档"), Format: credential.FormatDocument},
			{Name: "endpoints", Label: text.Beside("Endpoints", "接口列表"), Format: credential.FormatObjects},
			{Name: "auth", Label: text.Beside("Authentication", "认证"), Format: credential.FormatAuth, Secret: true, Of: &auth},
		}, Alternatives: []credential.Alternative{{Requires: []string{"openapi"}}, {Requires: []string{"endpoints"}}}},
		{Name: "search", Label: text.Beside("Web search", "网页搜索"), Selector: "provider", Fields: []credential.Field{
			credential.Choice("provider", "Provider", "服务商", "searxng", "brave", "tavily", "bing", "json").Needed(), credential.APIKey(),
		}, Alternatives: []credential.Alternative{
			{When: "searxng", Requires: []string{"base_url"}}, {When: "brave", Requires: []string{"api_key"}},
			{When: "tavily", Requires: []string{"api_key"}}, {When: "bing", Requires: []string{"api_key"}},
		}},
	}
}

// httpAuthCredential is that of a service which wants a token, a password, a header or a parameter.
func httpAuthCredential() credential.Type {
	return credential.Type{Name: "http_auth", Label: text.Beside("HTTP authentication", "HTTP 认证"), Selector: "scheme", Fields: []credential.Field{
		credential.Choice("scheme", "Scheme", "方式", "bearer", "basic", "header", "query", "oauth2_client").Needed(),
		credential.Secret("token", "Access token", "访问令牌"), credential.Username(), credential.Password(),
		credential.Text("name", "Header or parameter name", "请求头或参数名"), credential.Secret("value", "Header or parameter value", "请求头或参数值"),
		credential.Text("client_id", "Client ID", "客户端 ID"), credential.Secret("client_secret", "Client secret", "客户端密钥"),
		credential.Address("token_url", "Token URL", "令牌地址"),
		{Name: "scopes", Label: text.Beside("Scopes", "权限范围"), Format: credential.FormatTexts},
		{Name: "allowed_hosts", Label: text.Beside("Allowed hosts", "允许的主机"), Format: credential.FormatTexts},
	}, Alternatives: []credential.Alternative{
		{When: "bearer", Requires: []string{"token"}},
		{When: "basic", Requires: []string{"username", "password"}},
		{When: "header", Requires: []string{"name", "value"}},
		{When: "query", Requires: []string{"name", "value"}},
		{When: "oauth2_client", Requires: []string{"client_id", "client_secret", "token_url"}},
	}}
}
