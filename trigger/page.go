package trigger

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// Where the pages of triggers are: forms and chats, each below the name of its workflow.
const (
	FormsPath = "/forms/"
	ChatPath  = "/chat/"
)

// Presenter is a [Source] whose triggers have a page on which visitors start executions. Who serves pages shows it; what a visitor sends is
// an [Event].
type Presenter interface {
	Source
	// Page describes the page. It depends on the configuration alone.
	Page(t Trigger) (Page, error)
	// Secret is what a visitor has to enter to see a page whose access is [AccessPassword].
	Secret(ctx context.Context, t Trigger) (string, error)
}

// PageType is what kind of page it is.
type PageType string

// The types: a form that is filled in once, and a conversation.
const (
	PageForm PageType = "form"
	PageChat PageType = "chat"
)

// base is where the addresses of a type begin.
func (p PageType) base() string {
	if p == PageChat {
		return ChatPath
	}
	return FormsPath
}

// Access says who may see a page.
type Access string

// The ways to be let in: everybody, who knows the password, and users who are logged in.
const (
	AccessPublic   Access = "public"
	AccessPassword Access = "password"
	AccessUsers    Access = "users"
)

// Page is what a page shows and takes.
type Page struct {
	Type PageType
	// Path is below the address of the workflow; "/" is that address itself.
	Path               string
	Title, Description string
	// Language is that of the workflow, for visitors of whom nothing else says which they read; empty: it has none.
	Language string
	Access   Access
	// Roles are those of whom a page for users is for; none: everybody who has one.
	Roles []identity.Role
	// Origins are the sites that may show the page inside a page of theirs.
	Origins []string
	// Limit is how much a visitor may send within Window.
	Limit  int
	Window time.Duration

	// Schema is what a form asks for, a JSON Schema of an object. MaxFile is how large a file may be.
	Schema  json.RawMessage
	MaxFile int64
	// Reply is how a visitor is answered; in a chat it is [ReplyNode]: what a node answers is shown there. Wait is for how long a visitor
	// who has sent a form waits at most. Thanks is what is said then, and Redirect where the visitor is sent instead.
	Reply            Reply
	Wait             time.Duration
	Thanks, Redirect string

	// Greeting is what a chat says first. MaxMessage is how long a message may be, in characters, and Earlier how many messages before it a
	// workflow is shown.
	Greeting   string
	MaxMessage int
	Earlier    int
}

// presented is a trigger that has a page.
type presented struct {
	trigger store.Trigger
	source  Presenter
	page    Page
}

// samePath says whether two paths lead to the same page. A slash at the end makes no difference.
func samePath(a, b string) bool { return strings.Trim(a, "/") == strings.Trim(b, "/") }

// Entrance is a page of a deployed trigger.
type Entrance struct {
	Page Page
	// Trigger is whose page it is.
	Trigger store.Trigger
	s       *Service
	source  Presenter
}

// Enter finds the page at a path of a workflow. The error for a page that does not exist is [Unknown].
func (s *Service) Enter(ctx context.Context, kind PageType, workspace, workflow, path string) (*Entrance, error) {
	list, err := s.load(ctx, workflowKey{workspace, workflow})
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(list.pages, func(p presented) bool { return p.page.Type == kind && samePath(p.page.Path, path) })
	if n < 0 {
		return nil, Unknown()
	}
	found := list.pages[n]
	return &Entrance{Page: found.page, Trigger: found.trigger, s: s, source: found.source}, nil
}

// Secret is what a visitor has to enter.
func (e *Entrance) Secret(ctx context.Context) (secret string, err error) {
	defer recovered(e.Trigger.Kind, &err)
	return e.source.Secret(ctx, e.s.trigger(e.Trigger))
}

// Deliver records what a visitor has sent and starts its execution. It returns without an error when both are on disk, or were before.
// Follow is that of [Door.Receive].
func (e *Entrance) Deliver(ctx context.Context, event Event, follow func(execution string)) (Outcome, error) {
	return e.s.deliver(ctx, e.Trigger, event, nil, "", follow)
}

// Refuse records that something which a visitor has sent was refused, without anything of it.
func (e *Entrance) Refuse(ctx context.Context, cause error) { e.s.refuse(ctx, e.Trigger, cause) }

// pageConflicts are triggers whose pages are at the same address.
func (s *Service) pageConflicts(list []store.Trigger) (problems []problem) {
	taken := map[string]string{}
	for _, t := range list {
		source, ok := s.sources[t.Kind].(Presenter)
		if !ok {
			continue
		}
		page, err := source.Page(s.trigger(t))
		if err != nil {
			problems = append(problems, problem{t.Node, fault.From(err)})
			continue
		}
		at := string(page.Type) + " " + strings.Trim(page.Path, "/")
		if other, conflict := taken[at]; conflict {
			problems = append(problems, problem{t.Node, fault.Newf(fault.Conflict, "the path %q is taken by the trigger %q of this workflow; give one of them another path", page.Path, other)})
			continue
		}
		taken[at] = t.Node
	}
	return problems
}

// pageRoute is where the page of a trigger is.
func (s *Service) pageRoute(t store.Trigger, source Presenter) (r Route, err error) {
	defer recovered(t.Kind, &err)
	page, err := source.Page(s.trigger(t))
	if err != nil {
		return Route{}, err
	}
	path := s.o.PublicURL + page.Type.base() + Slug(t.Workspace, t.WorkflowID)
	if below := strings.Trim(page.Path, "/"); below != "" {
		path += "/" + below
	}
	return Route{Path: path, Methods: []string{"GET", "POST"}}, nil
}
