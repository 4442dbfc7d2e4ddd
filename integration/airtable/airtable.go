// Package airtable is what Tandem knows of Airtable: its credential, and the kind that works on the records of its tables.
//
// The kind calls the Web API through package rest; there is no library of the vendor for Go, and it needs a dozen calls. The program that
// puts extensions together imports the package; nothing else does.
package airtable

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/rest"
	"tandem/credential"
	"tandem/node"
	"tandem/plug"
	"tandem/text"
)

// credentialType is the type of the credentials of Airtable.
const credentialType = "airtable"

const (
	usualAddress = "https://api.airtable.com"
	apiPath      = "/v0"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name: "airtable",
		Credentials: []credential.Type{{
			Name: credentialType, Label: text.Beside("Airtable", "Airtable"),
			Fields: []credential.Field{credential.Token()}, Check: checkCredential,
		}},
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
		ID    string `json:"id"`
		Email string `json:"email"`
	}
	base := strings.TrimSuffix(strings.TrimRight(fields.Get("base_url").Str, "/"), apiPath)
	err = credential.AskGet(ctx, out.HTTP, "Airtable", "token", base, usualAddress, apiPath+"/meta/whoami", &who, "Authorization",
		"Bearer "+fields.Get("token").Str)
	return "Airtable knows the token as " + cmp.Or(who.Email, who.ID), err
}

// airtable is the service.
func airtable() *rest.Service {
	return &rest.Service{
		Name: "Airtable", Base: usualAddress, Below: apiPath, Credentials: []string{credentialType}, Secret: rest.Bearer,
		Said: func(body gjson.Result) string { // an error is an object, or only its name
			return cmp.Or(body.Get("error.message").Str, body.Get("error.type").Str, body.Get("error").Str,
				body.Get("errors.0.message").Str)
		},
		Refine: func(r *rest.Refusal) {
			if r.Status == http.StatusTooManyRequests && r.Problem.RetryAfter == 0 {
				r.Limit("Airtable", limitWindow)
			}
		},
	}
}

// limitWindow is how long Airtable takes no calls of a client that has made too many, if it does not say so.
const limitWindow = 30 * time.Second
