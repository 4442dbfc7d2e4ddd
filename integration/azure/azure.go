// Package azure is everything of Microsoft Azure: accounts, their tokens, the object store Blob Storage, and the kind that works in Blob
// Storage, Service Bus and Functions.
//
// The vendor's library writes and signs the calls of Blob Storage; they leave through the guarded client, and the library tries nothing
// again. Service Bus and Functions are called by package rest: a message is one request, for which the vendor's library would bring a whole
// AMQP stack. The program that puts kinds and vendors together imports the package; nothing else does.
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

// fields are those of a credential.
type fields struct {
	TenantID         string `json:"tenant_id"`
	ClientID         string `json:"client_id"`
	ClientSecret     string `json:"client_secret"`
	TokenURL         string `json:"token_url"`
	AccountName      string `json:"account_name"`
	AccountKey       string `json:"account_key"`
	SAS              string `json:"sas"`
	ConnectionString string `json:"connection_string"`
	FunctionKey      string `json:"function_key"`
	BaseURL          string `json:"base_url"`
}

// wrong says what is wrong with a credential.
func wrong(c credential.Opened, text string) error {
	return fault.Newf(fault.CredentialInvalid, "credential %q %s", c.ID, text)
}

func readFields(c credential.Opened) (f fields, err error) {
	if json.Unmarshal(c.Data, &f) != nil {
		return f, wrong(c, "cannot be read; save it again")
	}
	return f, nil
}

// address is the base_url of a credential, nil: it has none.
func (f fields) address(c credential.Opened) (*url.URL, error) {
	if f.BaseURL == "" {
		return nil, nil
	}
	base, err := url.Parse(strings.TrimRight(f.BaseURL, "/"))
	if err != nil || base.Host == "" || base.RawQuery != "" {
		return nil, wrong(c, "has a base_url that cannot be used; write it like https://host/path")
	}
	return base, nil
}

// application is the client that a credential names, nil: none.
func (f fields) application(c credential.Opened) (*client, error) {
	if f.ClientID == "" || f.ClientSecret == "" {
		return nil, nil
	}
	if f.TokenURL == "" {
		if !tenantName.MatchString(f.TenantID) {
			return nil, wrong(c, "has a tenant_id that cannot be one")
		}
		f.TokenURL = "https://login.microsoftonline.com/" + f.TenantID + "/oauth2/v2.0/token"
	}
	tokenURL, err := url.Parse(f.TokenURL)
	if err != nil || tokenURL.Host == "" {
		return nil, wrong(c, "has a token_url that cannot be used")
	}
	return &client{id: f.ClientID, secret: f.ClientSecret, tokenURL: tokenURL}, nil
}

func openAccount(c credential.Opened) (*account, error) {
	wrong := func(text string) (*account, error) { return nil, wrong(c, text) }
	f, err := readFields(c)
	if err != nil {
		return nil, err
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
		if a.client, err = f.application(c); err != nil {
			return nil, err
		}
	default:
		return wrong("lets nobody in; set account_key, sas, connection_string, or tenant_id, client_id and client_secret")
	}
	return a, nil
}

// connection are the parts of a connection string, by their names in lower case.
func connection(text string) map[string]string {
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(strings.TrimSpace(part), "="); ok {
			parts[strings.ToLower(name)] = value
		}
	}
	return parts
}

// connect reads a connection string and returns the address of the blob service, if it tells one.
func (a *account) connect(text string) (endpoint string) {
	parts := connection(text)
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

// storageScope is the scope of tokens for the storage service.
const storageScope = "https://storage.azure.com/.default"

// token gets a token for the storage service.
func (c *client) token(ctx context.Context, out *outbound.Client, now time.Time) (string, time.Duration, error) {
	return c.tokenFor(ctx, out, storageScope, now)
}

// tokenFor gets a token for a scope.
func (c *client) tokenFor(ctx context.Context, out *outbound.Client, scope string, now time.Time) (string, time.Duration, error) {
	return objectstore.FetchToken(ctx, out, c.tokenURL, url.Values{
		"grant_type": {"client_credentials"}, "client_id": {c.id}, "client_secret": {c.secret}, "scope": {scope},
	}, now)
}
