package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"tandem/credential"
	"tandem/fault"
	"tandem/payload"
)

// checkSearch searches for one result, as services of this kind have nothing that costs less.
func checkSearch(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	var f struct {
		Provider string `json:"provider"`
		Key      string `json:"api_key"`
		BaseURL  string `json:"base_url"`
	}
	if err := c.Read(&f); err != nil {
		return "", err
	}
	method, path, header, value := http.MethodGet, "", "", f.Key
	usual := ""
	if at := slices.IndexFunc(searchProviders(), func(p searchProvider) bool { return p.name == f.Provider }); at >= 0 {
		usual = searchProviders()[at].base
	}
	var body []byte
	switch f.Provider {
	case "searxng":
		path, header, value = "/search?q=tandem&format=json", "Authorization", "Bearer "+f.Key
	case "brave":
		path, header = "/res/v1/web/search?q=tandem&count=1", "X-Subscription-Token"
	case "bing":
		path, header = "/v7.0/search?q=tandem&count=1&responseFilter=Webpages", "Ocp-Apim-Subscription-Key"
	case "tavily":
		raw, err := payload.Marshal(map[string]any{"query": "tandem", "max_results": 1})
		if err != nil {
			return "", err
		}
		method, path, header, value, body = http.MethodPost, "/search", "Authorization", "Bearer "+f.Key, raw
	default:
		return "", fault.New(fault.Unsupported, "how a service of one's own is asked is in the node that uses it; run that")
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(cmp.Or(f.BaseURL, usual), "/")+path, bytes.NewReader(body))
	if err != nil || r.URL.Host == "" {
		return "", fault.Newf(fault.CredentialInvalid, "credential %q has a base_url that cannot be used; write it like https://host", c.ID)
	}
	if f.Key != "" {
		r.Header.Set(header, value)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	var answer map[string]json.RawMessage
	return "one search was made at " + r.URL.Host + ", which answers",
		credential.Ask(ctx, out.HTTP, "the search service", "API key", r, &answer)
}
