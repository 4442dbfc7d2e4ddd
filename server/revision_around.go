package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/workflow"
)

// Who starts an older revision, or forks an execution of one, must not get around a question that the workflow asks by now. So it is
// refused where the newest revision has a binding question that the older one lacks, asks otherwise, or has on fewer ways.

// refuseAround refuses to run a revision of a workflow that leads around a question of its newest one. Doing is what is refused.
func (s *Server) refuseAround(ctx context.Context, p identity.Principal, id string, revision int64, hash, doing string) error {
	newest, err := s.o.Request(ctx, p, id, "latest")
	if errors.Is(err, store.ErrNotFound) {
		return nil // the workflow is gone, and with it what it asked
	}
	if err != nil || newest.RevisionHash == hash {
		return err
	}
	current, _, err := s.o.Revision(ctx, p, id, newest.RevisionHash)
	if err != nil {
		return err
	}
	older, _, err := s.o.Revision(ctx, p, id, hash)
	if err != nil {
		return err
	}
	refused := func(why string) error {
		return fault.Newf(fault.ApprovalRequired, "%s: revision %d of workflow %q %s; start revision %d, or let an editor save the older one as the newest", doing, revision, id, why, newest.Revision)
	}
	question, node, err := older.Around(current, func(c workflow.ChildWorkflow) (bool, error) { return s.childAsks(ctx, p, c, 0) })
	switch {
	case err != nil:
		return err
	case question != "" && node != "":
		return refused("leads to " + quote(node) + " without " + quote(question) + ", which asks people before that by now")
	case question != "":
		return refused("does not have " + quote(question) + ", which asks people by now")
	}
	was, is, err := s.definitions(ctx, p, id, revision, newest.Revision)
	if err != nil {
		return err
	}
	for i := range is.Nodes {
		n := &is.Nodes[i]
		if at, ok := current.Node(n.ID); !ok || current.Nodes[at].Plan.Asks == "" {
			continue
		}
		for j := range was.Nodes {
			if m := &was.Nodes[j]; m.ID == n.ID && (m.Kind() != n.Kind() || !sameJSON(m.Configurations, n.Configurations)) {
				return refused("asks " + quote(n.ID) + " otherwise than it is asked by now")
			}
		}
	}
	return nil
}

func quote(text string) string { return `"` + text + `"` }

// childAsks says that a workflow which a node runs asks people a binding question on every way through it. One that cannot be read
// may do so.
func (s *Server) childAsks(ctx context.Context, p identity.Principal, c workflow.ChildWorkflow, depth int) (bool, error) {
	request, err := s.o.Request(ctx, p, c.Workflow, c.Revision)
	if errors.Is(err, store.ErrNotFound) || depth > engine.MaxDepth {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	graph, _, err := s.o.Revision(ctx, p, request.WorkflowID, request.RevisionHash)
	if err != nil {
		return false, err
	}
	asked, children := graph.Through()
	if len(asked) > 0 {
		return true, nil
	}
	for _, n := range children {
		if asks, err := s.childAsks(ctx, p, *graph.Nodes[n].Plan.Child, depth+1); asks || err != nil {
			return asks, err
		}
	}
	return false, nil
}

// definitions reads two revisions of a workflow.
func (s *Server) definitions(ctx context.Context, p identity.Principal, id string, one, other int64) (a, b *workflow.Definition, err error) {
	read := func(number int64) (*workflow.Definition, error) {
		revision, err := s.o.Stores.Workflows.Revision(ctx, p, id, number)
		if err != nil {
			return nil, err
		}
		source, problems := workflow.Parse(revision.Definition, workflow.Options{Kinds: s.o.Kinds})
		if source == nil {
			return nil, wrongDefinition(problems)
		}
		return source.Definition, nil
	}
	if a, err = read(one); err == nil {
		b, err = read(other)
	}
	return a, b, err
}

// sameJSON says that two values are the same, however they are written.
func sameJSON(a, b json.RawMessage) bool {
	plain := func(raw json.RawMessage) []byte {
		var value any
		if len(raw) == 0 || json.Unmarshal(raw, &value) != nil {
			return raw
		}
		out, err := json.Marshal(value) // with its names in order
		if err != nil {
			return raw
		}
		return out
	}
	return bytes.Equal(plain(a), plain(b))
}
