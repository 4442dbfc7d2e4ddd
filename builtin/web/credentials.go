package web

import (
	"tandem/builtin/httpcall"
	"tandem/credential"
	"tandem/text"
)

// Credentials are the types of the credentials that kinds call services with.
func Credentials() []credential.Type {
	auth := httpcall.Credential()
	return []credential.Type{
		auth, httpcall.OAuthCredential(),
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
