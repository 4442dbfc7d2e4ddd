// Package revisions finds the revision of a workflow that is to be run, or that an execution is pinned to, and keeps it ready: parsed,
// compiled, with the templates that it names and with what was found out about it. Nobody else reads a definition to run it.
//
// It starts nothing and answers no request; the server, the host and programs that embed Tandem ask it.
package revisions

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"tandem/fault"
	"tandem/host"
	"tandem/identity"
	"tandem/node"
	"tandem/store"
	"tandem/workflow"
)

// Options is what a cache needs. All of it must be there.
type Options struct {
	Workflows store.Workflows
	Templates store.Templates
	Blobs     store.Blobs
	// Kinds answers validation; Registry has the kinds that can be run.
	Kinds    workflow.Kinds
	Registry *node.Registry
	// ForFolds is a revision as the folds of the host see it.
	ForFolds func(*node.Revision) host.Revision
}

// Cache keeps revisions that are ready to run. It is safe for concurrent use.
type Cache struct {
	o Options

	mu    sync.Mutex
	ready map[key]*Ready
}

// key names a revision together with the templates that it was pinned with.
type key struct{ workspace, workflow, hash string }

// maxReady is how many revisions are kept; more are prepared again when they are needed.
const maxReady = 1000

// New makes an empty cache.
func New(o Options) *Cache { return &Cache{o: o, ready: map[key]*Ready{}} }

// Pinned returns the revision that an execution is pinned to, by the hash that its start has recorded.
func (c *Cache) Pinned(ctx context.Context, p identity.Principal, workflowID, hash string) (*Ready, error) {
	if ready := c.known(key{p.Workspace, workflowID, hash}); ready != nil {
		return ready, nil
	}
	base, set := SplitHash(hash)
	stored, err := c.o.Workflows.RevisionByHash(ctx, p, workflowID, base)
	if err != nil {
		return nil, err
	}
	templates, err := c.PinnedTemplates(ctx, p, set)
	if err != nil {
		return nil, err
	}
	return c.prepare(p, stored, templates, hash)
}

// Request returns the request that starts a workflow ("latest", "deployed" or the number of a revision) at its first trigger, and the
// revision that it starts. The revision is read from the store once at most, and not at all when it is kept and names no templates, which
// may have changed.
func (c *Cache) Request(ctx context.Context, p identity.Principal, workflowID, which string) (host.StartRequest, *Ready, error) {
	w, err := c.o.Workflows.Heading(ctx, p, workflowID)
	if err != nil {
		return host.StartRequest{}, nil, err
	}
	number, hash := w.Revision, w.RevisionHash
	switch which {
	case "latest":
	case "deployed":
		if number, hash = w.DeployedRevision, w.DeployedHash; number == 0 {
			return host.StartRequest{}, nil, fault.Newf(fault.Conflict, "workflow %q is not deployed; deploy it, or set revision to \"latest\" or a number", workflowID)
		}
	default:
		if number, err = strconv.ParseInt(which, 10, 64); err != nil || number < 1 {
			return host.StartRequest{}, nil, fault.Newf(fault.InvalidConfig,
				"revision: %q is not \"deployed\", \"latest\" or a number", which)
		}
		switch number {
		case w.Revision:
		case w.DeployedRevision:
			hash = w.DeployedHash
		default:
			hash = ""
		}
	}
	ready, err := c.numbered(ctx, p, workflowID, number, hash)
	if err != nil {
		return host.StartRequest{}, nil, err
	}
	r := host.StartRequest{
		WorkflowID: workflowID, WorkflowName: w.Name, Version: w.Version, Revision: number, RevisionHash: ready.Graph.Hash,
		Ready: ready.Fold, TriggerType: "API", Priority: 3,
		Language: ready.Definition.Metadata.Settings.Language,
	}
	if triggers := ready.Graph.Triggers; len(triggers) > 0 {
		n := &ready.Graph.Nodes[triggers[0]]
		r.Trigger = n.ID
		_, r.TriggerType, _ = strings.Cut(n.Kind, ".")
	}
	return r, ready, nil
}

// Draft returns the request that starts a definition which no revision has, and the definition as it is run then. The caller keeps it as a
// draft before it starts it. The request says not where it begins.
func (c *Cache) Draft(ctx context.Context, p identity.Principal, workflowID string,
	def *workflow.Definition) (host.StartRequest, *Ready, error) {
	stored := store.Revision{WorkflowID: workflowID, Hash: workflow.Hash(def), Definition: workflow.Encode(def)}
	name, templates, err := c.pin(ctx, p, stored)
	if err != nil {
		return host.StartRequest{}, nil, err
	}
	ready := c.known(key{p.Workspace, workflowID, name})
	if ready == nil {
		if ready, err = c.prepare(p, stored, templates, name); err != nil {
			return host.StartRequest{}, nil, err
		}
	}
	return host.StartRequest{
		WorkflowID: workflowID, WorkflowName: def.Metadata.Name, Version: def.Metadata.Version, RevisionHash: ready.Graph.Hash,
		Ready: ready.Fold, Priority: 3, Language: def.Metadata.Settings.Language,
	}, ready, nil
}

// numbered returns a revision by its number, pinned with the templates as they are now. Hash, if it is known, spares reading a revision
// that is kept and names no templates: what has a hash never changes.
func (c *Cache) numbered(ctx context.Context, p identity.Principal, workflowID string, number int64, hash string) (*Ready, error) {
	if hash != "" {
		if ready := c.known(key{p.Workspace, workflowID, hash}); ready != nil && ready.plain {
			return ready, nil
		}
	}
	stored, err := c.o.Workflows.Revision(ctx, p, workflowID, number)
	if err != nil {
		return nil, err
	}
	name, templates, err := c.pin(ctx, p, stored)
	if err != nil {
		return nil, err
	}
	if ready := c.known(key{p.Workspace, workflowID, name}); ready != nil {
		return ready, nil
	}
	return c.prepare(p, stored, templates, name)
}

func (c *Cache) known(k key) *Ready {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready[k]
}

// Compile makes of a stored revision, with the templates that it was pinned with, what can be run, and returns its definition as its author
// wrote it as well. Name is the hash by which executions are pinned to it. What cannot be run by these kinds is refused.
func Compile(stored store.Revision, templates TemplateSet, name string, kinds workflow.Kinds, registry *node.Registry) (*node.Revision,
	*workflow.Definition, error) {
	source, problems := workflow.Parse(stored.Definition, workflow.Options{Kinds: kinds, Pinned: true})
	if source == nil {
		return nil, nil, fault.Newf(fault.Internal, "revision %d of workflow %q cannot be read: %v",
			stored.Number, stored.WorkflowID, problems)
	}
	base, _ := SplitHash(name)
	if got := workflow.Hash(source.Definition); got != base {
		return nil, nil, fault.Newf(fault.Internal, "revision %d of workflow %q has the hash %q, not %q", stored.Number, stored.WorkflowID, got, base)
	}
	def, err := templates.Apply(source.Definition)
	if err != nil {
		return nil, nil, err
	}
	graph, problems := workflow.Compile(def, kinds)
	if graph == nil {
		return nil, nil, fault.Newf(fault.Unsupported, "revision %d of workflow %q: %s", stored.Number,
			stored.WorkflowID, problems[0].Message)
	}
	graph.Hash = name // with its templates: an execution finds by it what it was started with
	prepared, err := node.Prepare(def, graph, registry, templates.Overrides())
	return prepared, source.Definition, err
}

// prepare makes a stored revision ready and keeps it under its name.
func (c *Cache) prepare(p identity.Principal, stored store.Revision, templates TemplateSet, name string) (*Ready, error) {
	prepared, source, err := Compile(stored, templates, name, c.o.Kinds, c.o.Registry)
	if err != nil {
		return nil, err
	}
	ready := newReady(prepared, source, c.o.Kinds, c.o.Registry, c.o.ForFolds(prepared))
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ready) >= maxReady {
		clear(c.ready)
	}
	c.ready[key{p.Workspace, stored.WorkflowID, name}] = ready
	return ready, nil
}
