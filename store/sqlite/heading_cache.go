package sqlite

import (
	"context"
	"sync"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/definitions"
)

// workflows are the definitions with what starts want to know of them at hand.
type workflows struct {
	*definitions.Workflows
	db *DB
}

// headingCache keeps what starts want to know of the workflows that were started lately, until the next change of any workflow.
type headingCache struct {
	mu         sync.Mutex
	generation uint64
	known      map[relational.Key]store.WorkflowHeading
}

// maxHeadings bounds how many are kept.
const maxHeadings = 4096

// Heading implements [store.Workflows].
func (x workflows) Heading(ctx context.Context, p identity.Principal, id string) (store.WorkflowHeading, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.WorkflowHeading{}, err
	}
	if err := x.db.usable(); err != nil {
		return store.WorkflowHeading{}, err
	}
	c, key, generation := &x.db.headings, relational.Key{Workspace: workspace, ID: id}, x.db.kept.workflows.Load()
	c.mu.Lock()
	h, ok := c.known[key]
	ok = ok && c.generation == generation
	c.mu.Unlock()
	if ok {
		return h, nil
	}
	if h, err = x.Workflows.Heading(ctx, p, id); err != nil {
		return h, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation || len(c.known) >= maxHeadings {
		if c.generation > generation {
			return h, nil // it was read before a change that others have seen
		}
		c.generation, c.known = generation, map[relational.Key]store.WorkflowHeading{}
	}
	if c.known == nil {
		c.known = map[relational.Key]store.WorkflowHeading{}
	}
	c.known[key] = h
	return h, nil
}
