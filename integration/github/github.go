// Package github is what Tandem knows of GitHub: its credential, the trigger that the events of a repository start workflows by, and the
// kind that works on one.
//
// GitHub calls the address of the trigger and signs each call with the webhook_secret of the credential. The kind calls the REST API
// through package rest and not through a library: it needs a dozen calls, hands on the answers as they come, and must know of each call
// whether GitHub can have taken it, which a library with retries and types of its own hides. The program that puts extensions together
// imports the package; nothing else does.
package github

import (
	"context"

	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/plug"
	"tandem/text"
	"tandem/trigger"
)

// credentialType is the type of the credentials of GitHub.
const credentialType = "github_token"

// Extension is what this package brings.
func Extension(d plug.Deps) plug.Extension {
	return plug.Extension{
		Name: "github",
		Credentials: []credential.Type{{
			Name: credentialType, Label: text.Beside("GitHub token", "GitHub 令牌"),
			Fields: []credential.Field{credential.Secret("token", "Access token", "访问令牌"), credential.WebhookSecret()},
			// A token calls GitHub, and the secret tells that GitHub calls: each is of use without the other.
			Alternatives: []credential.Alternative{{Requires: []string{"token"}}, {Requires: []string{"webhook_secret"}}},
			Check:        checkCredential,
		}},
		Kinds:   []node.Kind{triggerGitHub(), act(d.HTTP)},
		Sources: []trigger.Source{&source{http: d.HTTP, log: d.Log}},
	}
}

// checkCredential asks GitHub whose token it is. The secret of webhooks cannot be tried: only GitHub uses it.
func checkCredential(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	var f struct {
		Token   string `json:"token"`
		BaseURL string `json:"base_url"`
	}
	if err := c.Read(&f); err != nil {
		return "", err
	}
	if f.Token == "" {
		return "", fault.New(fault.Unsupported, "the credential has no token to try; its webhook_secret is tried when GitHub calls")
	}
	var who struct {
		Login string `json:"login"`
	}
	err := credential.AskGet(ctx, out.HTTP, "GitHub", "token", f.BaseURL, "https://api.github.com", "/user", &who, "Authorization", "Bearer "+f.Token)
	return "GitHub knows the token as " + who.Login, err
}
