package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"tandem/credential"
	"tandem/fault"
)

// accountFields are what the credentials of services with a token consist of, all types together.
type accountFields struct {
	Token   string `json:"token"`
	Version string `json:"notion_version"`
	BaseURL string `json:"base_url"`
}

func readAccount(c credential.Opened) (f accountFields, err error) {
	if json.Unmarshal(c.Data, &f) != nil {
		return f, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; save it again", c.ID)
	}
	return f, nil
}

// checkNotion asks whose account it is.
func checkNotion(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	f, err := readAccount(c)
	if err != nil {
		return "", err
	}
	var who struct {
		Name string `json:"name"`
	}
	base := strings.TrimSuffix(strings.TrimRight(f.BaseURL, "/"), "/v1")
	err = credential.AskGet(ctx, out.HTTP, "Notion", "token", base, "https://api.notion.com", "/v1/users/me", &who, "Authorization", "Bearer "+f.Token, "Notion-Version", cmp.Or(f.Version, "2022-06-28"))
	return "Notion knows the token as " + who.Name, err
}
