package mcp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"tandem/credential"
	"tandem/fault"
)

// accountFields are what the credentials of services with a token consist of, all types together.
type accountFields struct {
	Token    string `json:"token"`
	Version  string `json:"notion_version"`
	URL      string `json:"url"`
	Username string `json:"username"`
	Password string `json:"password"`
	BaseURL  string `json:"base_url"`
}

func readAccount(c credential.Opened) (f accountFields, err error) {
	if json.Unmarshal(c.Data, &f) != nil {
		return f, fault.Newf(fault.CredentialInvalid, "credential %q cannot be read; save it again", c.ID)
	}
	return f, nil
}

// checkNotion and those that follow ask whose account it is.
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

// checkCalDAV asks for the properties of the calendar itself, and for none of its entries.
func checkCalDAV(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	f, err := readAccount(c)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, "PROPFIND", f.URL, strings.NewReader(`<?xml version="1.0"?><propfind xmlns="DAV:"><prop><displayname/></prop></propfind>`))
	if err != nil {
		return "", fault.New(fault.CredentialInvalid, "the url in the credential cannot be used; write it like https://host/calendar/")
	}
	r.Header.Set("Depth", "0")
	r.Header.Set("Content-Type", "application/xml")
	r.Header.Set("Authorization", basic(f.Username, f.Password))
	return "the calendar lets " + f.Username + " in", credential.Ask(ctx, out.HTTP, "the calendar server", "user name or password", r, nil)
}

func basic(name, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+secret))
}
