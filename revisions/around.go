package revisions

import (
	"context"
	"errors"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/store"
	"tandem/workflow"
)

// Who starts an older revision, or forks an execution of one, must not get around a question that the workflow asks by now. So it is
// refused where the newest revision has a binding question that the older one lacks, asks otherwise, or has on fewer ways.

// RefuseAround refuses to run a revision of a workflow that leads around a question of its newest one. Doing is what is refused.
func (c *Cache) RefuseAround(ctx context.Context, p identity.Principal, workflowID string, number int64, hash, doing string) error {
	newest, current, err := c.Request(ctx, p, workflowID, "latest")
	if errors.Is(err, store.ErrNotFound) {
		return nil // the workflow is gone, and with it what it asked
	}
	if err != nil || newest.RevisionHash == hash {
		return err
	}
	older, err := c.Pinned(ctx, p, workflowID, hash)
	if err != nil {
		return err
	}
	refused := func(why string) error {
		return fault.Newf(fault.ApprovalRequired, "%s: revision %d of workflow %q %s; start revision %d, or let an editor save the older one as the newest", doing, number, workflowID, why, newest.Revision)
	}
	question, node, err := older.Graph.Around(current.Graph,
		func(child workflow.ChildWorkflow) (bool, error) { return c.childAsks(ctx, p, child, 0) })
	switch {
	case err != nil:
		return err
	case question != "" && node != "":
		return refused("leads to " + quote(node) + " without " + quote(question) + ", which asks people before that by now")
	case question != "":
		return refused("does not have " + quote(question) + ", which asks people by now")
	}
	if asked := askedOtherwise(older, current); asked != "" {
		return refused("asks " + quote(asked) + " otherwise than it is asked by now")
	}
	return nil
}

// askedOtherwise is a question that binds in the newer revision and that the older one asks in another way; empty: there is none.
func askedOtherwise(older, newer *Ready) string {
	for i := range newer.Source.Nodes {
		n := &newer.Source.Nodes[i]
		if at, ok := newer.Graph.Node(n.ID); !ok || newer.Graph.Nodes[at].Plan.Asks == "" {
			continue
		}
		for j := range older.Source.Nodes {
			m := &older.Source.Nodes[j]
			if m.ID == n.ID && (m.Kind() != n.Kind() || !payload.SameValue(m.Configurations, n.Configurations)) {
				return n.ID
			}
		}
	}
	return ""
}

// ChildAsks says that a workflow which a node runs may ask people a binding question on every way through it.
func (c *Cache) ChildAsks(ctx context.Context, p identity.Principal, child workflow.ChildWorkflow) (bool, error) {
	return c.childAsks(ctx, p, child, 0)
}

func quote(text string) string { return `"` + text + `"` }

// childAsks says that a workflow which a node runs asks people a binding question on every way through it. One that cannot be read
// may do so.
func (c *Cache) childAsks(ctx context.Context, p identity.Principal, child workflow.ChildWorkflow, depth int) (bool, error) {
	if child.Computed || depth > engine.MaxDepth {
		return true, nil
	}
	_, ready, err := c.Request(ctx, p, child.Workflow, child.Revision)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var failed error
	avoidable := ready.Graph.Avoidable(func(n int) bool {
		plan := &ready.Graph.Nodes[n].Plan
		if plan.Asks != "" || plan.Child == nil || failed != nil {
			return plan.Asks != ""
		}
		var asks bool
		asks, failed = c.childAsks(ctx, p, *plan.Child, depth+1)
		return asks
	})
	return !avoidable, failed
}
