// Package azure is everything of Microsoft Azure: accounts, their tokens, and the object store Blob Storage.
//
// The vendor's library writes and signs the calls; they leave through the guarded client, and the library tries nothing
// again. The program that puts kinds and vendors together imports it; nothing else does.
package azure

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/objectstore"
	"tandem/outbound"
)

// account is a storage account and one way into it: a key, a signature, or a client that gets tokens.
type account struct {
	credential credential.Opened
	name       string
	endpoint   *url.URL
	key        string
	sas        string
	client     *client
}

// client is a registered application.
type client struct {
	id, secret string
	tokenURL   *url.URL
}

var (
	accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	tenantName  = regexp.MustCompile(`^[A-Za-z0-9.-]{1,100}$`)
)

func openAccount(c credential.Opened) (*account, error) {
	wrong := func(text string) (*account, error) {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q %s", c.ID, text)
	}
	var f struct {
		TenantID         string `json:"tenant_id"`
		ClientID         string `json:"client_id"`
		ClientSecret     string `json:"client_secret"`
		TokenURL         string `json:"token_url"`
		AccountName      string `json:"account_name"`
		AccountKey       string `json:"account_key"`
		SAS              string `json:"sas"`
		ConnectionString string `json:"connection_string"`
		BaseURL          string `json:"base_url"`
	}
	if json.Unmarshal(c.Data, &f) != nil {
		return wrong("cannot be read; save it again")
	}
	a := &account{credential: c, name: f.AccountName, key: f.AccountKey, sas: f.SAS}
	endpoint := ""
	if f.ConnectionString != "" {
		endpoint = a.connect(f.ConnectionString)
	}
	if f.BaseURL != "" {
		endpoint = f.BaseURL
	}
	if endpoint == "" {
		if !accountName.MatchString(a.name) {
			return wrong("names no storage account; set account_name")
		}
		endpoint = "https://" + a.name + ".blob.core.windows.net"
	}
	var err error
	if a.endpoint, err = url.Parse(strings.TrimRight(endpoint, "/")); err != nil || a.endpoint.Host == "" || a.endpoint.RawQuery != "" {
		return wrong("has an address of the blob service that cannot be used; write it like https://account.blob.core.windows.net")
	}
	a.sas = strings.TrimPrefix(a.sas, "?")
	switch {
	case a.key != "":
		if a.name == "" {
			a.name, _, _ = strings.Cut(a.endpoint.Hostname(), ".")
		}
		if _, err := base64.StdEncoding.DecodeString(a.key); err != nil {
			return wrong("has an account_key that is not base64; copy it as it is shown")
		}
	case a.sas != "":
		if _, err := url.ParseQuery(a.sas); err != nil {
			return wrong("has a sas that is not a query; copy it as it is shown")
		}
	case f.ClientID != "" && f.ClientSecret != "":
		if f.TokenURL == "" {
			if !tenantName.MatchString(f.TenantID) {
				return wrong("has a tenant_id that cannot be one")
			}
			f.TokenURL = "https://login.microsoftonline.com/" + f.TenantID + "/oauth2/v2.0/token"
		}
		a.client = &client{id: f.ClientID, secret: f.ClientSecret}
		if a.client.tokenURL, err = url.Parse(f.TokenURL); err != nil || a.client.tokenURL.Host == "" {
			return wrong("has a token_url that cannot be used")
		}
	default:
		return wrong("lets nobody in; set account_key, sas, connection_string, or tenant_id, client_id and client_secret")
	}
	return a, nil
}

// connect reads a connection string and returns the address of the blob service, if it tells one.
func (a *account) connect(text string) (endpoint string) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(strings.TrimSpace(part), "="); ok {
			parts[strings.ToLower(name)] = value
		}
	}
	for _, p := range []struct {
		field *string
		name  string
	}{{&a.name, "accountname"}, {&a.key, "accountkey"}, {&a.sas, "sharedaccesssignature"}} {
		if *p.field == "" {
			*p.field = parts[p.name]
		}
	}
	if parts["blobendpoint"] != "" {
		return parts["blobendpoint"]
	}
	if suffix := parts["endpointsuffix"]; suffix != "" && accountName.MatchString(a.name) {
		scheme := parts["defaultendpointsprotocol"]
		if scheme == "" {
			scheme = "https"
		}
		return scheme + "://" + a.name + ".blob." + suffix
	}
	return ""
}

// token gets a token for the storage service.
func (c *client) token(ctx context.Context, out *outbound.Client, now time.Time) (string, time.Duration, error) {
	return objectstore.FetchToken(ctx, out, c.tokenURL, url.Values{
		"grant_type": {"client_credentials"}, "client_id": {c.id}, "client_secret": {c.secret}, "scope": {"https://storage.azure.com/.default"},
	}, now)
}
