package settings

import (
	"context"
	"net/http"

	"tandem/api"
	"tandem/credential"
	"tandem/human"
	"tandem/identity"
	"tandem/limits"
	"tandem/node"
	"tandem/route"
	"tandem/store"
	"tandem/text"
	"tandem/workflow"
)

// Options is what the settings need. All fields are required unless they say otherwise.
type Options struct {
	Router  *route.Router
	Stores  store.Stores
	Keyring *credential.Keyring
	// CredentialTypes are the types that credentials can have.
	CredentialTypes credential.Types
	// Desk knows the media that people are reached by.
	Desk *human.Desk
	// Kinds are the kinds that templates may be for; Registry describes them.
	Kinds    workflow.Kinds
	Registry *node.Registry
	// Models are the language models, Tools the tool servers.
	Models Models
	Tools  Tools
	// Accounts lets people authorize credentials with a browser. Nil: that is not possible.
	Accounts Accounts
	// Raise adds to a budget and wakes the nodes that wait for it; a second call with the same id changes nothing.
	Raise func(ctx context.Context, p identity.Principal, id, budget string, by float64) error
	// Limits are the limits of workspaces; Workspace is the one whose admins look after the installation.
	Limits    *limits.Service
	Workspace string
	// Notice shows a page for people with nothing to fill in, in the language of the person who asks for it.
	Notice func(w http.ResponseWriter, r *http.Request, status int, heading text.Text, lines ...text.Text)
}

// settings is what a workspace is set up with. It is safe for concurrent use.
type settings struct {
	*route.Router
	o        Options
	accounts accounts
}

// KeepCredential keeps a new credential of a workspace, as its route does.
type KeepCredential func(ctx context.Context, p identity.Principal, r api.CredentialRequest) error

// Register registers every resource of the settings.
func Register(o Options) KeepCredential {
	s := &settings{Router: o.Router, o: o}
	s.templates()
	s.credentials()
	s.profiles()
	s.toolServers()
	s.budgets()
	s.memories()
	s.users()
	s.workspaces()
	s.reach()
	s.audit()
	s.limits()
	return func(ctx context.Context, p identity.Principal, r api.CredentialRequest) error {
		_, err := s.createCredential(ctx, p, &credentialCreate{r})
		return err
	}
}
