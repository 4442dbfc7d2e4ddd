package web

import (
	"tandem/builtin/httpcall"
	"tandem/credential"
	"tandem/outbound"
	"tandem/text"
)

// Credentials are the types of the credentials that kinds call services with.
func Credentials(client *outbound.Client) []credential.Type {
	auth := httpcall.Credential(client)
	return []credential.Type{
		auth, httpcall.OAuthCredential(),
		{Name: "service", Label: text.Beside("Service definition", "服务定义"), Fields: []credential.Field{
			{Name: "openapi", Label: text.Beside("OpenAPI document", "OpenAPI 文档"), Format: credential.FormatDocument},
			{Name: "endpoints", Label: text.Beside("Endpoints", "接口列表"), Format: credential.FormatObjects},
			{Name: "auth", Label: text.Beside("Authentication", "认证"), Format: credential.FormatAuth, Secret: true, Of: &auth},
		}, Alternatives: []credential.Alternative{{Requires: []string{"openapi"}}, {Requires: []string{"endpoints"}}},
			Untried: text.Beside("it describes the calls of a service, and does not say which of them changes nothing; run a node that uses it", "它描述服务的接口，但没有说明哪个调用不会产生改动；请运行使用它的节点来验证")},
		{Name: "search", Label: text.Beside("Web search", "网页搜索"), Selector: "provider", Fields: []credential.Field{
			credential.Choice("provider", "Provider", "服务商", "searxng", "brave", "tavily", "bing", "json").Needed(), credential.APIKey(),
		}, Alternatives: []credential.Alternative{
			{When: "searxng", Requires: []string{"base_url"}}, {When: "brave", Requires: []string{"api_key"}},
			{When: "tavily", Requires: []string{"api_key"}}, {When: "bing", Requires: []string{"api_key"}},
		}, Check: checkSearch},
	}
}
