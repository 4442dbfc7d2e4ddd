// Package jira is what Tandem knows of Jira: its credential, and the kind that works on issues.
//
// The kind calls version 3 of the REST API, that of the cloud, or version 2, that of own servers, through package rest and not through a
// library: it needs a dozen calls, hands on the answers as they come, and must know of each call whether Jira can have taken it. A base_url
// is that of the site, also below a path (https://host/jira). The program that puts extensions together imports the package; nothing else
// does.
package jira

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/rest"
	"tandem/credential"
	"tandem/node"
	"tandem/outbound"
	"tandem/plug"
	"tandem/text"
)

// credentialType is the type of the credentials of Jira.
const credentialType = "jira"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name: "jira",
		// With an e-mail address the token is that of a cloud account, without one that of an own server.
		Credentials: []credential.Type{{Name: credentialType, Label: text.Beside("Jira", "Jira"), Fields: []credential.Field{
			credential.Token(), credential.Text("email", "E-mail address", "邮箱"),
			credential.Address("base_url", "Site URL", "站点地址").Needed(),
		}, Check: checkCredential}},
		Kinds: []node.Kind{act(d.HTTP, d.Files)},
	}
}

// checkCredential asks whose token it is.
func checkCredential(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	fields, err := c.Fields()
	if err != nil {
		return "", err
	}
	var who struct {
		Name string `json:"displayName"`
	}
	err = credential.AskGet(ctx, out.HTTP, "Jira", "token", fields.Get("base_url").Str, "", "/rest/api/2/myself", &who,
		"Authorization", login(fields))
	return "Jira knows the token as " + who.Name, err
}

// login is what a call begins with.
func login(fields gjson.Result) string {
	token := fields.Get("token").Str
	if email := fields.Get("email").Str; email != "" {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(email+":"+token))
	}
	return "Bearer " + token
}

// jira is the service.
func jira() *rest.Service {
	return &rest.Service{
		Name: "Jira", Credentials: []string{credentialType}, Said: said,
		Secret: func(fields gjson.Result) *outbound.Secret {
			if fields.Get("token").Str == "" {
				return nil
			}
			return &outbound.Secret{Header: http.Header{"Authorization": {login(fields)}}}
		},
	}
}

// said are the messages of a refusal, and those of its fields.
func said(body gjson.Result) string {
	var texts []string
	for _, m := range body.Get("errorMessages").Array() {
		texts = append(texts, m.String())
	}
	body.Get("errors").ForEach(func(name, m gjson.Result) bool {
		texts = append(texts, name.Str+": "+m.String())
		return true
	})
	return strings.Join(texts, "; ")
}
