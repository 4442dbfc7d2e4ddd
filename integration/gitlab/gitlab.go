// Package gitlab is what Tandem knows of GitLab: its credential, and the kind that works on a project.
//
// The kind calls version 4 of the REST API through package rest and not through a library: it needs a dozen calls, hands on the answers as
// they come, and must know of each call whether GitLab can have taken it. A base_url is that of the installation, also below a path
// (https://host/gitlab). The program that puts extensions together imports the package; nothing else does.
package gitlab

import (
	"context"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/rest"
	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/plug"
	"tandem/text"
)

// credentialType is the type of the credentials of GitLab.
const credentialType = "gitlab_token"

const (
	usualAddress = "https://gitlab.com"
	apiPath      = "/api/v4"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name: "gitlab",
		Credentials: []credential.Type{{
			Name: credentialType, Label: text.Beside("GitLab token", "GitLab 令牌"),
			Fields: []credential.Field{credential.Token(), credential.WebhookSecret()}, Check: checkCredential,
		}},
		Kinds: []node.Kind{act(d.HTTP)},
	}
}

// checkCredential asks whose token it is.
func checkCredential(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	var f struct {
		Token   string `json:"token"`
		BaseURL string `json:"base_url"`
	}
	if err := c.Read(&f); err != nil {
		return "", err
	}
	var who struct {
		Username string `json:"username"`
	}
	base := strings.TrimSuffix(strings.TrimRight(f.BaseURL, "/"), apiPath)
	err := credential.AskGet(ctx, out.HTTP, "GitLab", "token", base, usualAddress, apiPath+"/user", &who, tokenHeader, f.Token)
	return "GitLab knows the token as " + who.Username, err
}

const tokenHeader = "Private-Token"

// gitLab is the service.
func gitLab() *rest.Service {
	return &rest.Service{
		Name: "GitLab", Base: usualAddress, Below: apiPath, Credentials: []string{credentialType}, Said: said, Refine: refine,
		Secret: func(fields gjson.Result) *outbound.Secret {
			if fields.Get("token").Str == "" {
				return nil
			}
			return &outbound.Secret{Header: http.Header{tokenHeader: {fields.Get("token").Str}}}
		},
	}
}

// said is the message of a refusal: a text, a list, or lists by field.
func said(body gjson.Result) string {
	message := body.Get("message")
	if !message.Exists() {
		message = body.Get("error")
	}
	var texts []string
	var collect func(at string, v gjson.Result)
	collect = func(at string, v gjson.Result) {
		if !v.IsArray() && !v.IsObject() {
			texts = append(texts, strings.TrimSpace(at+" "+v.String()))
			return
		}
		v.ForEach(func(key, inner gjson.Result) bool {
			name := at
			if v.IsObject() {
				name = strings.TrimSpace(at + " " + key.Str)
			}
			collect(name, inner)
			return true
		})
	}
	collect("", message)
	return strings.Join(texts, "; ")
}

// refine finds the refusals of files that somebody else has written.
func refine(r *rest.Refusal) {
	if r.Status == http.StatusBadRequest && strings.Contains(r.Body.Get("message").String(), "has changed since") {
		r.Becomes(fault.Conflict)
	}
}
