// Package gcp is everything of Google Cloud: tokens of service accounts, the object store Cloud Storage, and the kind that works in Cloud
// Storage, Pub/Sub, BigQuery, Cloud Run and Cloud Functions.
//
// It calls the JSON interfaces through the guarded client; there is no library of the vendor in between, and nothing that
// tries again on its own. The libraries bring gRPC with them, which is tens of MB. With the base_url of a credential
// all services are at that one address. The program that puts kinds and vendors together imports the package; nothing else does.
package gcp

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/objectstore"
	"tandem/outbound"
)

const (
	defaultTokenURI = "https://oauth2.googleapis.com/token"
	// assertionLife is how long the word of an account is good; an hour is the most that is taken.
	assertionLife = time.Hour
)

// account is a service account that can speak for itself.
type account struct {
	credential credential.Opened
	email      string
	project    string
	keyID      string
	key        *rsa.PrivateKey
	tokenURI   *url.URL
	base       *url.URL // nil: the service's own
}

func openAccount(c credential.Opened) (*account, error) {
	wrong := func(text string) (*account, error) {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q %s", c.ID, text)
	}
	var fields struct {
		Key      json.RawMessage `json:"key"`
		TokenURI string          `json:"token_uri"`
		BaseURL  string          `json:"base_url"`
	}
	if json.Unmarshal(c.Data, &fields) != nil {
		return wrong("cannot be read; save it again")
	}
	var text string
	if json.Unmarshal(fields.Key, &text) == nil { // the file as it was downloaded
		fields.Key = json.RawMessage(text)
	}
	var file struct {
		ClientEmail  string `json:"client_email"`
		ProjectID    string `json:"project_id"`
		PrivateKey   string `json:"private_key"`
		PrivateKeyID string `json:"private_key_id"`
		TokenURI     string `json:"token_uri"`
	}
	if json.Unmarshal(fields.Key, &file) != nil || file.ClientEmail == "" || file.PrivateKey == "" {
		return wrong("has no key of a service account; put the JSON file of the key into it as it is")
	}
	key, err := readKey(file.PrivateKey)
	if err != nil {
		return wrong("has a private_key that cannot be read; put the JSON file of the key into it as it is")
	}
	a := &account{credential: c, email: file.ClientEmail, project: file.ProjectID, keyID: file.PrivateKeyID, key: key}
	address := defaultTokenURI
	for _, given := range []string{file.TokenURI, fields.TokenURI} {
		if given != "" {
			address = given
		}
	}
	if a.tokenURI, err = url.Parse(address); err != nil || a.tokenURI.Host == "" {
		return wrong("has a token_uri that cannot be used")
	}
	if fields.BaseURL != "" {
		if a.base, err = url.Parse(strings.TrimRight(fields.BaseURL, "/")); err != nil || a.base.Host == "" || a.base.RawQuery != "" {
			return wrong("has a base_url that cannot be used; write it like https://host:port")
		}
	}
	return a, nil
}

func readKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, fault.New(fault.CredentialInvalid, "there is no PEM block")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fault.New(fault.CredentialInvalid, "the key is not one of RSA")
	}
	return key, nil
}

// token exchanges the account's signed word for an access token.
func (a *account) token(ctx context.Context, client *outbound.Client, scope string, now time.Time) (string, time.Duration, error) {
	return a.exchange(ctx, client, "scope", scope, now)
}

// exchange exchanges the account's signed word for a token: with the claim scope one for access, with target_audience one that says to the
// audience who the account is.
func (a *account) exchange(ctx context.Context, client *outbound.Client, claim, of string, now time.Time) (string, time.Duration, error) {
	part := func(v any) (string, error) {
		raw, err := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw), err
	}
	header, err := part(map[string]string{"alg": "RS256", "typ": "JWT", "kid": a.keyID})
	if err != nil {
		return "", 0, err
	}
	claims, err := part(map[string]any{
		"iss": a.email, claim: of, "aud": a.tokenURI.String(), "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256([]byte(header + "." + claims))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", 0, fault.Newf(fault.CredentialInvalid, "credential %q has a private_key that nothing can be signed with", a.credential.ID).WithCause(err)
	}
	return objectstore.FetchToken(ctx, client, a.tokenURI, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
		"assertion":  {header + "." + claims + "." + base64.RawURLEncoding.EncodeToString(signature)},
	}, now)
}
