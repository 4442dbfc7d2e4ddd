package openai

import (
	"context"
	"encoding/json"
	"fmt"

	"tandem/credential"
	"tandem/fault"
)

// check lists the models that the key may use, which costs nothing.
func check(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	var fields struct {
		Key     string `json:"api_key"`
		BaseURL string `json:"base_url"`
	}
	if json.Unmarshal(c.Data, &fields) != nil {
		return "", fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; save it again", c.ID)
	}
	var list struct {
		Models []json.RawMessage `json:"data"`
	}
	if err := credential.AskGet(ctx, out.HTTP, "the service", "API key", fields.BaseURL, DefaultBaseURL, "/models", &list, "Authorization", "Bearer "+fields.Key); err != nil {
		return "", err
	}
	return fmt.Sprintf("the key is taken; there are %d models", len(list.Models)), nil
}
