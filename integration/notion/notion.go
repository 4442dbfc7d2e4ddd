// Package notion is what Tandem knows of Notion: its credential, and the kind that works on pages and databases.
//
// The kind calls the REST API through package rest and not through a library: those for Go are not kept, and it needs a dozen calls, hands
// on the answers as they come, and must know of each call whether Notion can have taken it. Nothing that Notion stores could carry a mark
// of the run without people seeing it, so a page whose answer was lost is not looked for: a person is asked. The program that puts
// extensions together imports the package; nothing else does.
package notion

import (
	"cmp"
	"context"
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

// credentialType is the type of the credentials of Notion.
const credentialType = "notion"

const (
	usualAddress = "https://api.notion.com"
	apiPath      = "/v1"
	// usualVersion is the version of the API that is spoken unless the credential names another.
	usualVersion = "2022-06-28"
)

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name: "notion",
		Credentials: []credential.Type{{Name: credentialType, Label: text.Beside("Notion", "Notion"), Fields: []credential.Field{
			credential.Token(), credential.Text("notion_version", "API version", "API 版本"),
		}, Check: checkCredential}},
		Kinds: []node.Kind{act(d.HTTP, d.Ask)},
	}
}

// checkCredential asks whose token it is.
func checkCredential(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	f, err := c.Fields()
	if err != nil {
		return "", err
	}
	var who struct {
		Name string `json:"name"`
	}
	base := strings.TrimSuffix(strings.TrimRight(f.Get("base_url").Str, "/"), apiPath)
	err = credential.AskGet(ctx, out.HTTP, "Notion", "token", base, usualAddress, apiPath+"/users/me", &who,
		"Authorization", "Bearer "+f.Get("token").Str, "Notion-Version", cmp.Or(f.Get("notion_version").Str, usualVersion))
	return "Notion knows the token as " + who.Name, err
}

// service is Notion. Its version goes along with the token, since the credential names it.
func service() *rest.Service {
	return &rest.Service{
		Name: "Notion", Base: usualAddress, Below: apiPath, Credentials: []string{credentialType},
		Secret: func(fields gjson.Result) *outbound.Secret {
			secret := rest.Bearer(fields)
			if secret != nil {
				secret.Header[http.CanonicalHeaderKey("Notion-Version")] = []string{cmp.Or(fields.Get("notion_version").Str, usualVersion)}
			}
			return secret
		},
		Said: func(body gjson.Result) string { return body.Get("message").Str },
	}
}
