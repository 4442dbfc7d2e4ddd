package web

import (
	"tandem/builtin/httpcall"
	"tandem/credential"
	"tandem/outbound"
	"tandem/text"
)

// Credentials are the types of the credentials that kinds call services with.
func Credentials(client *outbound.Client) []credential.Type {
	return []credential.Type{
		httpcall.Credential(client), httpcall.OAuthCredential(),
		{Name: "search", Label: text.Beside("Web search", "网页搜索"), Selector: "provider", Fields: []credential.Field{
			credential.Choice("provider", "Provider", "服务商", "searxng", "brave", "tavily", "bing", "json").Needed(), credential.APIKey(),
		}, Alternatives: []credential.Alternative{
			{When: "searxng", Requires: []string{"base_url"}}, {When: "brave", Requires: []string{"api_key"}},
			{When: "tavily", Requires: []string{"api_key"}}, {When: "bing", Requires: []string{"api_key"}},
		}, Check: checkSearch},
	}
}
