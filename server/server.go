package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/host"
	"tandem/human"
	"tandem/identity"
	"tandem/importer"
	"tandem/limits"
	"tandem/login"
	"tandem/metrics"
	"tandem/needs"
	"tandem/node"
	"tandem/respond"
	"tandem/revisions"
	"tandem/route"
	"tandem/settings"
	"tandem/store"
	"tandem/story"
	"tandem/trigger"
	"tandem/web"
	"tandem/workflow"
)

// Options is what a server needs. Everything but Followed, PublicURL, Web, Credentials, Gateway, Hosts, Proxies, Metrics, Limits,
// TaskStarts, Now and Log must be there.
type Options struct {
	Stores store.Stores
	// Workspace is the one whose admins look after the installation. Its audit log also has the entries that belong to no
	// workspace: logins that were refused.
	Workspace string
	Host      host.Host
	Source    host.Source
	Hub       *host.Hub
	// Followed is called for each reader that follows an execution, see [story.Library]. May be nil.
	Followed func(host.Ref) (left func())
	// Kinds answers validation; Registry has the kinds that can be run.
	Kinds    workflow.Kinds
	Registry *node.Registry
	// Check parses and validates a definition (JSON or YAML); without a definition the problems say why.
	Check func(data []byte) (*workflow.Definition, []workflow.Problem)
	// Import makes workflows of the content of a file of another system.
	Import func(name string, content []byte, language string) (*importer.Imported, error)
	// Language is the language of the installation, zh or en; empty: en.
	Language string
	// Revisions are the revisions that are started, and that executions are pinned to.
	Revisions *revisions.Cache
	Keyring   *credential.Keyring
	// CredentialTypes are the types that credentials can have.
	CredentialTypes credential.Types
	// Accounts lets people authorize credentials with a browser. Nil: that is not possible.
	Accounts settings.Accounts
	// Raise adds to a budget and wakes the nodes that wait for it; a second call with the same id changes nothing.
	Raise func(ctx context.Context, p identity.Principal, id, budget string, by float64) error
	// Desk is where people are asked.
	Desk *human.Desk
	// Triggers deploys workflows and starts what their triggers bring.
	Triggers *trigger.Service
	// Models are the language models, Tools the tool servers.
	Models settings.Models
	Tools  settings.Tools
	// Credentials opens the credentials of a workspace, for calls that are signed; nil: none can be opened.
	Credentials func(p identity.Principal) credential.Opener
	// Gateway makes what serves the Model Context Protocol on top of the API's own handler; nil: there is none.
	Gateway func(api http.Handler) (Gateway, error)
	// Ready says why the instance cannot work (the store has stopped); nil: it can.
	Ready func() error
	// Lacking says what the instance cannot reach for now, although it takes requests; a nil error: nothing. May be nil.
	Lacking func(context.Context) error
	// Draining says that the instance was told to stop and begins nothing new. May be nil.
	Draining func() bool
	Version  string
	// Hosts are the host names that requests may name, without ports; none: any. A server on a loopback address must
	// have them: otherwise a page of another site could reach it under a name of its own.
	Hosts []string
	// Proxies are the networks of trusted proxies in front of the server, which say where a request comes from; none: the
	// address of the connection counts.
	Proxies []netip.Prefix
	// PublicURL is where people reach the server, without a slash at the end; empty: it is not known.
	PublicURL string
	// Login is a provider of identities at which people can log in; its zero value: there is none.
	Login login.Provider
	// Web has the files of the web UI; nil: the server has none.
	Web fs.FS
	// Metrics counts what happens. The caller hands it the rows, see [metrics.Metrics.Recorded]. Nil: the server makes its own.
	Metrics *metrics.Metrics
	// Limits are the limits of workspaces; nil: the server makes its own.
	Limits *limits.Service
	// TaskStarts is how many tasks of agents a user may start within 15 seconds, 5 when zero; less than zero: any number.
	TaskStarts int
	// Now is the clock; nil means the real one.
	Now func() time.Time
	Log *slog.Logger
}

// Server is the API. It is not changed after it was made and is safe for concurrent use.
type Server struct {
	*route.Router
	o Options
	// root is what [Server.Handler] returns.
	root http.Handler
	// pages are the pages on which people with a link answer.
	pages *respond.Pages
	// stories describes executions.
	stories *story.Library
	// needs finds what definitions need and the workspace does not have.
	needs *needs.Checker
	open  *openStreams
	// gateway is nil when there is none.
	gateway Gateway
}

// New makes a server with every resource.
func New(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.TaskStarts == 0 {
		o.TaskStarts = limits.DefaultTaskStarts
	}
	if o.Limits == nil {
		o.Limits = limits.New(limits.Options{Stores: o.Stores, Now: o.Now, Log: o.Log})
	}
	if o.Metrics == nil {
		o.Metrics = metrics.New()
	}
	s := &Server{o: o, open: newOpenStreams(), Router: route.New(route.Options{
		Tokens: o.Stores.Tokens, Sessions: o.Stores.Sessions, Audit: o.Stores.Audit, Workspace: o.Workspace, Counter: o.Metrics,
		Version: o.Version, Hosts: o.Hosts, Proxies: o.Proxies, OlderNames: olderNamesTaken(), Now: o.Now, Log: o.Log,
	})}
	s.stories = &story.Library{
		Executions: o.Stores.Executions, Interactions: o.Stores.Interactions, Workflows: o.Stores.Workflows, Source: o.Source,
		Hub: o.Hub, Followed: o.Followed, Revisions: o.Revisions, Desk: o.Desk, Now: o.Now,
	}
	if o.PublicURL != "" {
		s.stories.WaitAddress = s.waitAddress
	}

	s.needs = &needs.Checker{
		Stores: o.Stores, Registry: o.Registry, Profiles: o.Models.Profiles, Revisions: o.Revisions,
		StartsByItself: o.Triggers.StartsByItself, Check: o.Check,
	}

	s.workflows()
	s.agents()
	s.executions()
	s.statistics()
	s.freezes()
	s.streams()
	s.callbacks()
	s.interactions()
	s.interactionStream()
	s.pauses()
	s.pages = respond.New(respond.Options{
		Router: s.Router, Desk: o.Desk, Blobs: o.Stores.Blobs, Users: o.Stores.Users, Keyring: o.Keyring, Language: o.Language, Now: o.Now,
	})
	s.channels()
	s.triggers()
	s.hooks()
	s.visitors()
	s.nodeKinds()
	if err := s.examples(); err != nil {
		return nil, err
	}
	s.templates()
	keepCredential := settings.Register(settings.Options{
		Router: s.Router, Stores: o.Stores, Keyring: o.Keyring, CredentialTypes: o.CredentialTypes, Desk: o.Desk, Kinds: o.Kinds,
		Registry: o.Registry, Models: o.Models, Tools: o.Tools, Accounts: o.Accounts, Raise: o.Raise, Limits: o.Limits,
		Workspace: o.Workspace, Notice: s.pages.Notice,
	})
	s.intake(keepCredential)
	if err := login.Register(login.Options{Router: s.Router, Stores: o.Stores, Keyring: o.Keyring, PublicURL: o.PublicURL,
		Language: o.Language, Provider: o.Login, Places: web.Places(), Notice: s.pages.Notice}); err != nil {
		return nil, err
	}
	s.metrics()
	s.gateways()

	s.health()
	ui, err := s.webUI()
	if err != nil {
		return nil, err
	}
	s.RegisterDocumentation(!ui)
	s.root = s.Edge()
	if o.Gateway != nil {
		g, err := o.Gateway(s.root)
		if err != nil {
			return nil, err
		}
		s.gateway = g
	}
	return s, nil
}

// check returns an error that names what is missing, so that a server never fails later for lack of it.
func (o *Options) check() error {
	for _, part := range []struct {
		name string
		here bool
	}{
		{"Stores", o.Stores.Tokens != nil && o.Stores.Audit != nil && o.Stores.Sessions != nil && o.Stores.Invitations != nil &&
			o.Stores.Logins != nil && o.Stores.Users != nil && o.Stores.Credentials != nil && o.Stores.Templates != nil &&
			o.Stores.Workflows != nil && o.Stores.Executions != nil},
		{"Host", o.Host != nil},
		{"Source", o.Source != nil},
		{"Hub", o.Hub != nil},
		{"Kinds", o.Kinds != nil},
		{"Registry", o.Registry != nil},
		{"Check", o.Check != nil},
		{"Revisions", o.Revisions != nil},
		{"Keyring", o.Keyring != nil},
		{"Desk", o.Desk != nil},
		{"Triggers", o.Triggers != nil && o.Stores.Triggers != nil},
		{"Models", o.Models != nil},
		{"Tools", o.Tools != nil && o.Stores.MCPServers != nil},
		{"Ready", o.Ready != nil},
	} {
		if !part.here {
			return fault.Newf(fault.Internal, "the server was made without %s", part.name)
		}
	}
	if o.Version == "" {
		return errors.New("the server was made without a version")
	}
	return nil
}

// Handler serves everything: /api/v1, /mcp, /healthz, /readyz, /metrics, /openapi, /openapi.json.
func (s *Server) Handler() http.Handler { return s.root }

// olderNamesTaken lists the operations whose bodies may have fields under their older names: those that describe agents, tasks
// and templates of nodes.
func olderNamesTaken() []string {
	return []string{"create-agent", "put-agent", "start-task", "create-node-template", "put-node-template"}
}
