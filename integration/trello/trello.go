// Package trello is what Tandem knows of Trello: its credential, and the kind that works on boards, lists and cards.
//
// The kind calls the REST API through package rest and not through a library: it needs a dozen calls, hands on the answers as they come,
// and must know of each call whether Trello can have taken it. Key and token go along in a header, so that no address holds them. The
// program that puts extensions together imports the package; nothing else does.
package trello

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/rest"
	"tandem/credential"
	"tandem/node"
	"tandem/outbound"
	"tandem/plug"
	"tandem/text"
)

// credentialType is the type of the credentials of Trello.
const credentialType = "trello"

const (
	usualAddress = "https://api.trello.com"
	apiPath      = "/1"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name: "trello",
		Credentials: []credential.Type{{Name: credentialType, Label: text.Beside("Trello", "Trello"), Fields: []credential.Field{
			credential.Secret("key", "API key", "API 密钥").Needed(), credential.Token(),
		}, Check: checkCredential}},
		Kinds: []node.Kind{act(d.HTTP)},
	}
}

// checkCredential asks whose token it is.
func checkCredential(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	fields, err := c.Fields()
	if err != nil {
		return "", err
	}
	var who struct {
		Username string `json:"username"`
	}
	base := strings.TrimSuffix(strings.TrimRight(fields.Get("base_url").Str, "/"), apiPath)
	err = credential.AskGet(ctx, out.HTTP, "Trello", "key or token", base, usualAddress, apiPath+"/members/me", &who,
		"Authorization", login(fields))
	return "Trello knows the token as " + who.Username, err
}

// login is the header that a call begins with.
func login(fields gjson.Result) string {
	return `OAuth oauth_consumer_key="` + url.QueryEscape(fields.Get("key").Str) + `", oauth_token="` + url.QueryEscape(fields.Get("token").Str) + `"`
}

// trello is the service.
func trello() *rest.Service {
	return &rest.Service{
		Name: "Trello", Base: usualAddress, Below: apiPath, Credentials: []string{credentialType},
		Secret: func(fields gjson.Result) *outbound.Secret {
			if fields.Get("token").Str == "" || fields.Get("key").Str == "" {
				return nil
			}
			return &outbound.Secret{Header: http.Header{"Authorization": {login(fields)}}}
		},
		Said: func(body gjson.Result) string { // most refusals are a plain text
			if body.IsObject() {
				return body.Get("message").Str
			}
			return body.Str
		},
		Refine: func(r *rest.Refusal) {
			if r.Status == http.StatusTooManyRequests && r.Problem.RetryAfter == 0 {
				r.Limit("Trello", limitWindow)
			}
		},
	}
}

// limitWindow is how long Trello counts calls, and so when it takes some again if it does not say so.
const limitWindow = 10 * time.Second
