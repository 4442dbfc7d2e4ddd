package web

import (
	"tandem/builtin/httpcall"
	"tandem/credential"
	"tandem/outbound"
	"tandem/text"
)

// Credentials are the types of the credentials that kinds call services with.
func Credentials(client *outbound.Client) []credential.Type {
	var names []string
	var needs []credential.Alternative
	for _, p := range searchProviders() {
		if names = append(names, p.name); p.needs != "" {
			needs = append(needs, credential.Alternative{When: p.name, Requires: []string{p.needs}})
		}
	}
	return []credential.Type{
		httpcall.Credential(client), httpcall.OAuthCredential(),
		{Name: "search", Label: text.Beside("Web search", "网页搜索"), Selector: "provider", Fields: []credential.Field{
			credential.Choice("provider", "Provider", "服务商", names...).Needed(), credential.APIKey(),
		}, Alternatives: needs, Check: checkSearch},
	}
}
