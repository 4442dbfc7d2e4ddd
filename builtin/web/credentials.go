package web

import (
	"tandem/builtin/httpcall"
	"tandem/credential"
)

// Credentials are the types of the credentials that kinds call services with.
func Credentials() []credential.Type {
	auth := httpcall.Credential()
	return []credential.Type{
		auth,
		{Name: "service", Label: credential.Label{En: "Service definition", Zh: "服务定义"}, Fields: []credential.Field{
			{Name: "openapi", Label: credential.Label{En: "OpenAPI document", Zh: "OpenAPI 文档"}, Format: credential.FormatDocument},
			{Name: "endpoints", Label: credential.Label{En: "Endpoints", Zh: "接口列表"}, Format: credential.FormatObjects},
			{Name: "auth", Label: credential.Label{En: "Authentication", Zh: "认证"}, Format: credential.FormatAuth, Secret: true, Of: &auth},
		}, Alternatives: []credential.Alternative{{Requires: []string{"openapi"}}, {Requires: []string{"endpoints"}}}},
		{Name: "search", Label: credential.Label{En: "Web search", Zh: "网页搜索"}, Selector: "provider", Fields: []credential.Field{
			credential.Choice("provider", "Provider", "服务商", "searxng", "brave", "tavily", "bing", "json").Needed(), credential.APIKey(),
		}, Alternatives: []credential.Alternative{
			{When: "searxng", Requires: []string{"base_url"}}, {When: "brave", Requires: []string{"api_key"}},
			{When: "tavily", Requires: []string{"api_key"}}, {When: "bing", Requires: []string{"api_key"}},
		}},
	}
}
