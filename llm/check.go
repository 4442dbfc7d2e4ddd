package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/credential"
)

// KeyCheck says how the API key of a provider is tried: by listing the models that it may use, which costs nothing.
type KeyCheck struct {
	// Service is what messages call the provider.
	Service string
	// Base is the usual address. A credential may have another one; Version, which the path has already, is left out at its end.
	Base, Version string
	// Path is where the models are listed.
	Path string
	// Headers are the headers of a call with a key, in pairs of name and value.
	Headers func(key string) []string
}

// Check tries the key of an opened credential. It is the Check of a [credential.Type].
func (k KeyCheck) Check(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	var fields struct {
		Key     string `json:"api_key"`
		BaseURL string `json:"base_url"`
	}
	if err := c.Read(&fields); err != nil {
		return "", err
	}
	base := fields.BaseURL
	if k.Version != "" {
		base = strings.TrimSuffix(strings.TrimRight(base, "/"), k.Version)
	}
	var list struct { // a service names the list in one of these ways, and some do in both; one of them may be something else
		Data   json.RawMessage `json:"data"`
		Models json.RawMessage `json:"models"`
	}
	if err := credential.AskGet(ctx, out.HTTP, k.Service, "API key", base, k.Base, k.Path, &list, k.Headers(fields.Key)...); err != nil {
		return "", err
	}
	return fmt.Sprintf("the key is taken; there are %d models", max(models(list.Data), models(list.Models))), nil
}

// models counts the models of a list; what is not one has none.
func models(list json.RawMessage) int {
	if v := gjson.ParseBytes(list); v.IsArray() {
		return len(v.Array())
	}
	return 0
}
