package settings

import (
	"context"
	"errors"
	"net/http"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

type (
	memoriesInput struct {
		route.Paging
		User     string `query:"user_id" maxLength:"128" doc:"whose; others than oneself for admins only"`
		Kind     string `query:"kind" maxLength:"64" doc:"CONVERSATION_BUFFER and so on"`
		Workflow string `query:"workflow_id" maxLength:"128"`
		Node     string `query:"node_id" maxLength:"128"`
		Session  string `query:"session_id" maxLength:"256"`
	}
	recordsInput struct {
		MemoryPath
		route.Paging
		Sort string `query:"sort" maxLength:"64" doc:"only records of this sort"`
	}
	recordInput struct {
		MemoryPath
		Sort   string `path:"sort" maxLength:"64"`
		Record string `path:"record" maxLength:"1024"`
	}
	memoriesOutput struct{ Body api.Memories }
	memoryOutput   struct{ Body api.Memory }
	recordsOutput  struct{ Body api.MemoryRecords }
)

// MemoryPath names a memory.
type MemoryPath struct {
	ID string `path:"id" maxLength:"256"`
}

// memories registers the memories of users. Users see and delete their own; admins those of all.
func (s *settings) memories() {
	op := route.Tagged("memory")
	listed := op(http.MethodGet, "/memory", "list-memories", "List memories, the last changed first")
	listed.Description = "One's own; for an admin, everybody's. What belongs to somebody else does not exist for others."
	route.Handle(s.Router, listed, route.Readers(), s.listMemories)
	route.Handle(s.Router, op(http.MethodGet, "/memory/{id}", "get-memory", "Read about a memory"), route.Readers(), s.getMemory)
	route.Handle(s.Router, route.Needs(op(http.MethodDelete, "/memory/{id}", "forget-memory", "Forget everything that a memory keeps"),
		identity.ScopeEdit), route.Readers(), s.forgetMemory)
	route.Handle(s.Router, op(http.MethodGet, "/memory/{id}/records", "list-memory-records", "List what a memory keeps, in the order in which it came"), route.Readers(), s.listMemoryRecords)
	route.Handle(s.Router, route.Needs(op(http.MethodDelete, "/memory/{id}/records/{sort}/{record}", "delete-memory-record",
		"Forget one record"), identity.ScopeEdit), route.Readers(), s.deleteMemoryRecord)
}

// rememberer is the principal for calls of the store: an admin sees all memories of the workspace, as Tandem itself does.
func rememberer(p identity.Principal) identity.Principal {
	if p.Has(identity.Admin) {
		return identity.System(p.Workspace)
	}
	return p
}

func (s *settings) listMemories(ctx context.Context, p identity.Principal, in *memoriesInput) (*memoriesOutput, error) {
	page, err := s.o.Stores.Memories.Scopes(ctx, rememberer(p), store.MemoryScopeQuery{
		User: in.User, Kind: in.Kind, Workflow: in.Workflow, Node: in.Node, Session: in.Session, Page: in.StorePage(),
	})
	if err != nil {
		return nil, err
	}
	out := &memoriesOutput{api.Memories{Memories: make([]api.Memory, len(page.Scopes)), TotalCount: page.Total,
		Page: in.Page, PageSize: in.PageSize}}
	for i, m := range page.Scopes {
		out.Body.Memories[i] = tellMemory(m)
	}
	return out, nil
}

func (s *settings) getMemory(ctx context.Context, p identity.Principal, in *MemoryPath) (*memoryOutput, error) {
	m, err := s.o.Stores.Memories.Scope(ctx, rememberer(p), in.ID)
	if err != nil {
		return nil, err
	}
	return &memoryOutput{tellMemory(m)}, nil
}

func (s *settings) forgetMemory(ctx context.Context, p identity.Principal, in *MemoryPath) (*route.Nothing, error) {
	return nil, s.o.Stores.Memories.Forget(route.Audited(ctx, "memory.forget", in.ID, nil, nil), rememberer(p), in.ID)
}

func (s *settings) listMemoryRecords(ctx context.Context, p identity.Principal, in *recordsInput) (*recordsOutput, error) {
	p = rememberer(p)
	m, err := s.o.Stores.Memories.Scope(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	page, err := s.o.Stores.Memories.Records(ctx, p, store.MemoryQuery{
		Scope: in.ID, Sort: in.Sort, Now: s.NowMS(), Limit: in.PageSize, Offset: (in.Page - 1) * in.PageSize, Count: true,
	})
	if err != nil {
		return nil, err
	}
	out := &recordsOutput{api.MemoryRecords{
		Memory: tellMemory(m), Records: make([]api.MemoryRecord, len(page.Records)), TotalCount: page.Total,
		Page: in.Page, PageSize: in.PageSize,
	}}
	for i, r := range page.Records {
		out.Body.Records[i] = api.MemoryRecord{
			Sort: r.Sort, ID: r.ID, Body: r.Body, Source: r.Source, Target: r.Target, Weight: r.Weight, Time: r.At,
			UsedTime: r.Used, ExpiresTime: r.Expires,
			Version: r.Version, CreatedTime: r.Created, UpdatedTime: r.Updated,
		}
	}
	return out, nil
}

func (s *settings) deleteMemoryRecord(ctx context.Context, p identity.Principal, in *recordInput) (*route.Nothing, error) {
	const tries = 10
	for n := 1; ; n++ {
		err := s.dropRecord(ctx, rememberer(p), in)
		if !errors.Is(err, store.ErrConflict) || n == tries { // a memory that is in use changes between looking and deleting
			return nil, err
		}
	}
}

func (s *settings) dropRecord(ctx context.Context, p identity.Principal, in *recordInput) error {
	m, err := s.o.Stores.Memories.Scope(ctx, p, in.ID)
	if err != nil {
		return err
	}
	page, err := s.o.Stores.Memories.Records(ctx, p, store.MemoryQuery{Scope: in.ID, Sort: in.Sort,
		IDs: []string{in.Record}, Now: s.NowMS()})
	if err != nil {
		return err
	}
	if len(page.Records) == 0 {
		return fault.Newf(fault.NotFound, "memory %q has no record %q of the sort %q", in.ID, in.Record, in.Sort)
	}
	// The version keeps a memory that is forgotten meanwhile from being made again.
	_, err = s.o.Stores.Memories.Change(route.Audited(ctx, "memory.delete_record", in.ID,
		map[string]string{"sort": in.Sort, "record": in.Record}, nil), p, store.MemoryChange{
		Scope: m, Time: s.NowMS(), Delete: []store.MemoryKey{{Sort: in.Sort, ID: in.Record}}, Expect: m.Version,
	})
	return err
}

func tellMemory(m store.MemoryScope) api.Memory {
	return api.Memory{
		ID: m.ID, UserID: m.User, Kind: m.Kind, WorkflowID: m.Workflow, NodeID: m.Node, SessionID: m.Session,
		ExecutionID: m.Execution, Part: m.Part,
		Records: m.Records, Bytes: m.Bytes, Version: m.Version, CreatedTime: m.Created, UpdatedTime: m.Updated,
	}
}
