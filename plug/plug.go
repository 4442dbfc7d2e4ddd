// Package plug is how a program brings parts of its own to Tandem, and how all built-in vendors bring theirs: an [Extension] says what a
// package adds, [Deps] is what it may use for that, and [Gather] puts the extensions of a program together.
//
// There are eight things that an extension can bring, and each has a seam of its own on a lower floor: kinds of nodes ([node.Kind]),
// channels to people ([human.Channel]), providers of models ([llm.Provider]), types of credentials ([credential.Type]), object stores
// ([objectstore.Store]), mailboxes ([mailbox.Service]), ways to deliver notices ([notice.Way]) and sources of triggers ([trigger.Source]).
// The package decides nothing about them; it only sees to it that every name stands for one thing.
//
// No extension opens credentials by itself. Each seam hands them over where they are needed, for as long as they are needed: a call of a
// node, the account of a channel, the settings of a provider.
//
// Vendors import it, and so does the package that puts a program together. It imports no vendor.
package plug

import (
	"context"
	"log/slog"

	"tandem/builtin/notice"
	"tandem/builtin/turn"
	"tandem/credential"
	"tandem/files"
	"tandem/human"
	"tandem/identity"
	"tandem/llm"
	"tandem/mailbox"
	"tandem/node"
	"tandem/objectstore"
	"tandem/outbound"
	"tandem/text"
	"tandem/trigger"
)

// Extension is what one package brings. Fields that are empty bring nothing.
type Extension struct {
	// Name says whose parts these are. It is the name of the package, and stands in errors about them.
	Name string
	// Kinds are kinds of nodes.
	Kinds []node.Kind
	// KindsOf makes kinds that depend on what all extensions bring together: which channels there are, which object stores. It is called
	// once, when everything but the kinds is known. May be nil.
	KindsOf func(all *Set) []node.Kind
	// Channels are ways to reach people. The name of each is a channel_type.
	Channels []human.Channel
	// Providers are services that models are reached through.
	Providers []Provider
	// Credentials are the types of credentials that the other parts need.
	Credentials []credential.Type
	// ObjectStores are services that files can be put into.
	ObjectStores []ObjectStore
	// Mailboxes are services whose mailboxes are read by their own API. The name of each is an email_provider.
	Mailboxes []mailbox.Service
	// Notices are ways to deliver notices. The name of each is the type of a channel of a notification.
	Notices []notice.Way
	// Sources start executions by themselves, each for one kind of trigger. The kind itself is among Kinds, of this extension or another.
	Sources []trigger.Source
	// SourcesOf makes sources that depend on what all extensions bring together, as KindsOf makes kinds. May be nil.
	SourcesOf func(all *Set) []trigger.Source
}

// Provider is a service that models are reached through. Profiles name it.
type Provider struct {
	Name string
	// Label is what people call it where they choose it; empty: its name.
	Label text.Text
	// Scripted says that it answers from the script of a profile, so that a profile of it needs neither a model nor a credential.
	Scripted bool
	// New makes a provider that is ready to be used. The key in its settings is that of a credential of the type that has the provider's
	// name.
	New llm.Factory
	// Check says what is wrong with a profile of the provider before it is stored. May be nil.
	Check func(p llm.Profile) error
	// Turns is the kind of node that talks with models of this provider only. Without it, its profiles are used by the kinds that take any
	// provider.
	Turns turn.Kind
}

// ObjectStore is a service that files can be put into.
type ObjectStore struct {
	// Target is the name that nodes use for it.
	Target string
	Store  objectstore.Store
}

// Deps is what an extension may use of the program that it is part of. All of it is there until the program ends.
type Deps struct {
	// HTTP is the only way to other machines: it reaches what the operator allows and nothing else.
	HTTP *outbound.Client
	// Files are the files of workspaces; nil where there are none.
	Files *files.Store
	// Users lists the users of a workspace.
	Users func(ctx context.Context, workspace string) ([]identity.User, error)
	// Ask asks the model of a profile for a node, within the budgets of the profile; nil where there are no models.
	Ask func(ctx context.Context, call *node.Call, profile string, r llm.Request) (llm.Completion, error)
	// Log is the log of the program, which operators read. It is never nil.
	Log *slog.Logger
}

// Maker makes an extension. It is called once for each instance that is opened, and opens nothing itself: what it makes may never be used.
type Maker func(d Deps) Extension
