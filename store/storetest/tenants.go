package storetest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/engine"
	"tandem/identity"
	"tandem/store"
)

// secret stands in everything that tenant A stores. Whatever tenant B is told must not have it.
const secret = "canary-of-tenant-a"

// probe is a call of one method for a principal, with the ids of tenant A. It returns what it was told.
type probe func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error)

// known is what B may have heard of A: ids.
type known struct {
	workspace string
	item      int64
	blob      string
}

// probes has one entry for each method of each interface in [store.Stores]; a test counts them.
func probes() map[string]probe {
	line := []store.LogLine{{Activation: "a", Message: "from b"}}
	all := map[string]probe{
		"Journal.Append": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			a := next("e1", 1)
			a.ClearTimers, a.TakeInbox, a.Logs = []string{"t"}, []int64{k.item}, line
			a.Snapshot = &store.Snapshot{Seq: 1, Body: []byte("from b")}
			a.Change = &store.Change{Status: engine.StatusCanceled}
			a.Ask, a.Withdraw = []store.Interaction{{ID: "from b", Status: store.InteractionPending}}, []string{question}
			a.Resume = &store.PauseEnd{Status: store.PauseResumed}
			return nil, s.Journal.Append(ctx, p, a)
		},
		"Journal.Rows": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			var all []store.Row
			for r, err := range s.Journal.Rows(ctx, p, "e1", 0) {
				if err != nil {
					return nil, err
				}
				all = append(all, r)
			}
			return all, nil
		},
		"Journal.LastSnapshot": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			snap, _, err := s.Journal.LastSnapshot(ctx, p, "e1")
			return snap, err
		},
		"Inbox.Deliver": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			id, dup, err := s.Inbox.Deliver(ctx, p, store.InboxItem{Execution: "e1", Dedup: "d", Kind: "k"})
			return []any{id, dup}, err
		},
		"Inbox.Pending": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Inbox.Pending(ctx, p, "e1")
		},
		"Inbox.PendingExecutions": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Inbox.PendingExecutions(ctx, p)
		},
		"Timers.Upcoming": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Timers.Upcoming(ctx, p, store.Timer{}, 100)
		},
		"Timers.Of": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Timers.Of(ctx, p, "e1")
		},
		"Timers.Clear": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Timers.Clear(ctx, p, "e1", "t")
		},
		"Executions.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Executions.Get(ctx, p, "e1")
		},
		"Executions.GetWithRows": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			e, rows, whole, err := s.Executions.GetWithRows(ctx, p, "e1")
			return []any{e, rows, whole}, err
		},
		"Executions.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Executions.List(ctx, p, store.ExecutionQuery{WorkflowID: "w"})
		},
		"Executions.Unfinished": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			var all []store.Unfinished
			for u, err := range s.Executions.Unfinished(ctx, p, store.Unfinished{}) {
				if err != nil {
					return nil, err
				}
				all = append(all, u)
			}
			return all, nil
		},
		"Logs.Write": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Logs.Write(ctx, p, "e1", line)
		},
		"Logs.Lines": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Logs.Lines(ctx, p, store.LogQuery{Execution: "e1"})
		},
		"Ledger.Open": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Ledger.Open(ctx, p, store.LedgerEntry{ID: "from b", Execution: "e1", Workflow: "w", Tokens: 1_000_000})
		},
		"Ledger.Settle": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Ledger.Settle(ctx, p, store.Settlement{ID: "c1", Tokens: 1})
		},
		"Ledger.Sum": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Ledger.Sum(ctx, p, store.LedgerQuery{Execution: "e1"})
		},
		"Ledger.Spenders": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Ledger.Spenders(ctx, p, store.SpenderQuery{Profile: "m", Limit: 9})
		},
		"Ledger.Reserve": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			// What another workspace has used leaves room here.
			return nil, s.Ledger.Reserve(ctx, p, store.LedgerEntry{ID: "from b too", Profile: "m", Tokens: 1},
				store.Limit{Budget: "m", Query: store.LedgerQuery{Profile: "m"}, Tokens: 10})
		},
		"Profiles.Put": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Profiles.Put(ctx, p, store.Profile{Workspace: k.workspace, ID: "m", Body: []byte(`"from b"`)})
		},
		"Profiles.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Profiles.Get(ctx, p, "m")
		},
		"Profiles.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Profiles.List(ctx, p)
		},
		"Profiles.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Profiles.Delete(ctx, p, "m")
		},
		"Budgets.Raise": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Budgets.Raise(ctx, p, "r from b", store.Raise{Budget: "b", Tokens: 5}, 1)
		},
		"Budgets.Raised": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Budgets.Raised(ctx, p, "b")
		},
		"Budgets.Wait": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Budgets.Wait(ctx, p, store.BudgetWait{Budget: "b", Execution: "from b", Activation: "a"})
		},
		"Budgets.Leave": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Budgets.Leave(ctx, p, "e1", "a")
		},
		"Budgets.Waiting": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Budgets.Waiting(ctx, p, "")
		},
		"Keys.Find": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Keys.Find(ctx, p, "key")
		},
		"Keys.Expire": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Keys.Expire(ctx, p, 1<<60)
		},
		"Workflows.Save": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			w, _, err := s.Workflows.Save(ctx, p, store.SaveWorkflow{ID: "w", Name: "from b", Hash: "b", Definition: []byte("from b")})
			return w, err
		},
		"Workflows.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Workflows.Get(ctx, p, "w")
		},
		"Workflows.Heading": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Workflows.Heading(ctx, p, "w")
		},
		"Workflows.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Workflows.List(ctx, p, store.WorkflowQuery{})
		},
		"Workflows.Revision": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Workflows.Revision(ctx, p, "w", 1)
		},
		"Workflows.RevisionByHash": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Workflows.RevisionByHash(ctx, p, "w", "h")
		},
		"Workflows.Revisions": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Workflows.Revisions(ctx, p, "w", store.Page{})
		},
		"Workflows.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Workflows.Delete(ctx, p, "w2", 1)
		},
		"Templates.Put": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Templates.Put(ctx, p, store.Template{Workspace: k.workspace, ID: "t", Kind: "K", Name: "from b"})
		},
		"Templates.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Templates.Get(ctx, p, "t")
		},
		"Templates.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Templates.List(ctx, p)
		},
		"Templates.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Templates.Delete(ctx, p, "t")
		},
		"Limits.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Limits.Get(ctx, p)
		},
		"Limits.Put": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Limits.Put(ctx, p, []byte(`"from b"`), 1)
		},
		"Limits.StartsSince": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Limits.StartsSince(ctx, p, 1)
		},
		"Upkeep.Remove": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Upkeep.Remove(ctx, p, store.Removal{Execution: "e9", Traces: true})
		},
		"Upkeep.EnterRetained": enterRetained,
		"Upkeep.Removable": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			ids, _, err := s.Upkeep.Removable(ctx, p, store.RetentionQuery{Before: 1 << 50, Limit: 9})
			return ids, err
		},
		"Upkeep.RetainDeliveries": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Upkeep.RetainDeliveries(ctx, p, 1<<50, 1, 1<<50)
		},
		"Upkeep.SweepBlobs": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			n, _, err := s.Upkeep.SweepBlobs(ctx, p, time.Now().Add(time.Hour), time.Now().Add(time.Hour))
			return n, err
		},
		"Upkeep.Usage": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Upkeep.Usage(ctx, p)
		},
		"Upkeep.Finish": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Upkeep.Finish(ctx, p)
		},
		"Upkeep.Expire": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Upkeep.Expire(ctx, p, time.UnixMilli(5))
		},
		"Upkeep.Compact": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Upkeep.Compact(ctx, p, 1)
		},
		"Upkeep.Unclean": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Upkeep.Unclean(ctx, p)
		},
		"Upkeep.Space": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Upkeep.Space(ctx, p)
		},
		"Blobs.Put": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Blobs.Put(ctx, p, strings.NewReader("from b"))
		},
		"Blobs.Get": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			r, _, err := s.Blobs.Get(ctx, p, k.blob)
			if err != nil {
				return nil, err
			}
			all, err := io.ReadAll(r)
			return all, errors.Join(err, r.Close())
		},
		"Blobs.Stat": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			blob, err := s.Blobs.Stat(ctx, p, k.blob)
			if err == nil {
				return secret, nil // knowing that it exists is too much
			}
			return blob, err
		},
		"Workspaces.Create": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Workspaces.Create(ctx, p, identity.Workspace{ID: k.workspace, Name: "from b"})
		},
		"Workspaces.Get": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return s.Workspaces.Get(ctx, p, k.workspace)
		},
		"Workspaces.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Workspaces.List(ctx, p)
		},
		"Workspaces.Rename": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Workspaces.Rename(ctx, p, k.workspace, "from b")
		},
		"Workspaces.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Workspaces.Delete(ctx, p, k.workspace, 7)
		},
		"Users.Create": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Users.Create(ctx, p, identity.User{Workspace: k.workspace, ID: "intruder"})
		},
		"Users.Update": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Users.Update(ctx, p, identity.User{Workspace: k.workspace, ID: "ann", Disabled: true})
		},
		"Users.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Users.Get(ctx, p, "ann")
		},
		"Users.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Users.List(ctx, p)
		},
		"Users.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Users.Delete(ctx, p, "ann")
		},
		"Tokens.Create": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Tokens.Create(ctx, p, identity.Token{Workspace: k.workspace, ID: "intruder", User: "ann"}, identity.HashSecret("b"))
		},
		"Tokens.Resolve": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			t, u, err := s.Tokens.Resolve(ctx, p, identity.HashSecret(secret+k.workspace), 0)
			return []any{t, u}, err
		},
		"Tokens.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Tokens.List(ctx, p, "")
		},
		"Tokens.Used": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Tokens.Used(ctx, p, "tok", 5)
		},
		"Tokens.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Tokens.Delete(ctx, p, "tok")
		},
		"Credentials.Create": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Credentials.Create(ctx, p, store.Credential{Workspace: k.workspace, ID: "intruder", Name: "from b"})
		},
		"Credentials.Update": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Credentials.Update(ctx, p, store.Credential{Workspace: k.workspace, ID: "c", Name: "from b", Sealed: []byte("from b")})
		},
		"Credentials.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Credentials.Get(ctx, p, "c")
		},
		"Credentials.Find": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Credentials.Find(ctx, p, "cred")
		},
		"Credentials.Swap": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Credentials.Swap(ctx, p, store.Credential{Workspace: k.workspace, ID: "c", Sealed: []byte("from b"), Version: 1})
		},
		"Credentials.Lease": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Credentials.Lease(ctx, p, "c", "from b", 1, 2)
		},
		"Credentials.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Credentials.List(ctx, p)
		},
		"Credentials.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Credentials.Delete(ctx, p, "c")
		},
		"Memories.Scope": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Memories.Scope(ctx, p, "m")
		},
		"Memories.Scopes": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Memories.Scopes(ctx, p, store.MemoryScopeQuery{})
		},
		"Memories.Records": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Memories.Records(ctx, p, store.MemoryQuery{Scope: "m"})
		},
		"Memories.Search": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Memories.Search(ctx, p, store.MemorySearch{Scope: "m", Words: []string{"canary"}, Limit: 10})
		},
		"Memories.Nearest": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Memories.Nearest(ctx, p, store.MemoryNearest{Scope: "m", Vector: []float32{1, 0}, Space: "v", Limit: 10})
		},
		"Memories.Change": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return s.Memories.Change(ctx, p, store.MemoryChange{Scope: store.MemoryScope{Workspace: k.workspace, ID: "m", User: p.User}, Clear: true})
		},
		"Memories.Forget": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.Memories.Forget(ctx, p, "m")
		},
		"Memories.Purge": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Memories.Purge(ctx, p, 1<<60, 1<<60)
		},
		"Interactions.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Interactions.Get(ctx, p, question)
		},
		"Interactions.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Interactions.List(ctx, p, store.InteractionQuery{Approvers: []string{"user:ann"}})
		},
		"Interactions.Tell": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Interactions.Tell(ctx, p, store.Interaction{Workspace: k.workspace, ID: "told", Execution: "e1", Status: store.InteractionPending})
		},
		"Interactions.Change": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Interactions.Change(ctx, p, store.InteractionChange{
				Interaction: store.Interaction{Workspace: k.workspace, ID: question, Execution: "e1", Status: store.InteractionCompleted, Version: 2},
				Deliver:     &store.InboxItem{Execution: "e1", Kind: "answer"}, Resume: &store.PauseEnd{ID: question, Status: store.PauseResumed},
			})
		},
		"Interactions.Due": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			due, next, err := s.Interactions.Due(ctx, p, 1<<60, 100)
			return []any{due, next}, err
		},
		"Interactions.Responses": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Interactions.Responses(ctx, p, question)
		},
		"Interactions.Link": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return s.Interactions.Link(ctx, p, identity.HashSecret(secret+k.workspace))
		},
		"Interactions.DueDeliveries": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			due, next, err := s.Interactions.DueDeliveries(ctx, p, 1<<60, 100)
			return []any{due, next}, err
		},
		"Interactions.Deliveries": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Interactions.Deliveries(ctx, p, question)
		},
		"Interactions.Delivered": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.Interactions.Delivered(ctx, p,
				store.Delivery{Workspace: k.workspace, ID: "m", Interaction: question, Status: store.DeliverySent}, nil, []string{"th"})
		},
		"Interactions.Thread": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Interactions.Thread(ctx, p, "email", "th")
		},
		"Interactions.Accounts": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Interactions.Accounts(ctx, p)
		},
		"Interactions.Unasked": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Interactions.Unasked(ctx, p)
		},
		"MCPServers.Put": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.MCPServers.Put(ctx, p, store.MCPServer{Workspace: k.workspace, ID: "tools", Transport: store.MCPStdio, Command: "from b"})
		},
		"MCPServers.Get": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.MCPServers.Get(ctx, p, "tools")
		},
		"MCPServers.List": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.MCPServers.List(ctx, p)
		},
		"MCPServers.Delete": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.MCPServers.Delete(ctx, p, "tools")
		},
		"MCPServers.Activate": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.MCPServers.Activate(ctx, p, store.MCPActivation{Workspace: k.workspace, Server: "tools", User: "ann"}, store.MCPDecided{})
		},
		"MCPServers.Deactivate": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.MCPServers.Deactivate(ctx, p, "tools", "ann")
		},
		"MCPServers.Activation": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.MCPServers.Activation(ctx, p, "tools", "ann")
		},
		"MCPServers.Activations": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.MCPServers.Activations(ctx, p, "", "")
		},
		"MCPServers.Repin": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.MCPServers.Repin(ctx, p, store.MCPRepin{Server: "tools", User: "ann", Tools: map[string]*store.MCPPin{"x": nil}})
		},
		"MCPServers.Acceptances": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.MCPServers.Acceptances(ctx, p, "tools", "", 10)
		},
		"MCPServers.SetPolicies": func(ctx context.Context, s store.Stores, p identity.Principal, k known) (any, error) {
			return nil, s.MCPServers.SetPolicies(ctx, p,
				store.MCPPolicy{Workspace: k.workspace, Server: "tools", Tool: "x", User: "ann", Policy: store.MCPReadOnly, Hash: "h"})
		},
		"MCPServers.Policies": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.MCPServers.Policies(ctx, p, "tools", "", "ann")
		},
		"MCPServers.ForgetPolicies": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return nil, s.MCPServers.ForgetPolicies(ctx, p, "ann")
		},
		"Interactions.Pauses": func(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
			return s.Interactions.Pauses(ctx, p, "e1")
		},
	}
	maps.Copy(all, loginProbes())
	maps.Copy(all, overviewProbes())
	maps.Copy(all, reachProbes())
	maps.Copy(all, triggerProbes())
	return all
}

// question is the id of tenant A's.
const question = "question-777"

// fill stores one of everything for a tenant.
func fill(t *testing.T, s store.Stores, p identity.Principal) known {
	t.Helper()
	ctx := t.Context()
	ok(t, s.Workspaces.Create(ctx, identity.System(""), identity.Workspace{ID: p.Workspace, Name: secret}))
	ok(t, s.Users.Create(ctx, p, identity.User{ID: "ann", Name: secret, Roles: []identity.Role{identity.Admin}}))
	ok(t, s.Tokens.Create(ctx, p, identity.Token{ID: "tok", User: "ann", Name: secret}, identity.HashSecret(secret+p.Workspace)))
	fillLogins(t, s, p)
	fillReach(t, s, p)
	ok(t, s.Credentials.Create(ctx, p, store.Credential{ID: "c", Name: "cred", Type: secret, Sealed: []byte(secret)}))
	ok(t, s.Templates.Put(ctx, p, store.Template{ID: "t", Kind: "K", Name: secret}))
	ok(t, s.Profiles.Put(ctx, p, store.Profile{ID: "m", Body: []byte(`"` + secret + `"`)}))
	ok(t, s.MCPServers.Put(ctx, p, store.MCPServer{ID: "tools", Name: secret, Transport: store.MCPStdio, Command: secret}))
	ok(t, s.MCPServers.Activate(ctx, p, store.MCPActivation{Server: "tools", User: "ann", AcceptedBy: secret,
		Tools: map[string]store.MCPPin{"x": {Definition: []byte(`"` + secret + `"`), Hash: secret}}}, store.MCPDecided{
		Policies: []store.MCPPolicy{{Server: "tools", Tool: "x", User: "ann", Policy: store.MCPAsk, Hash: secret, SetBy: secret}},
		Records:  []store.MCPAcceptance{{Server: "tools", Tool: "x", Kind: "added", Summary: secret, After: []byte(`"` + secret + `"`), By: secret}},
	}))
	ok(t, s.Ledger.Open(ctx, p, store.LedgerEntry{ID: "c2", Profile: "m", Tokens: 777}))
	_, err := s.Budgets.Raise(ctx, p, "r", store.Raise{Budget: "b", Tokens: 777}, 1)
	ok(t, err)
	_, err = s.Budgets.Wait(ctx, p, store.BudgetWait{Budget: "b", Execution: "e1", Activation: "a", Node: secret})
	ok(t, err)
	for _, id := range []string{"w", "w2"} {
		_, _, err := s.Workflows.Save(ctx, p, store.SaveWorkflow{ID: id, Name: secret, Hash: "h", Definition: []byte(secret),
			Source: store.Source{Format: "yaml", Text: []byte(secret)}})
		ok(t, err)
	}
	blob, err := s.Blobs.Put(ctx, p, strings.NewReader(secret))
	ok(t, err)
	started(t, s, p, "e1", func(a *store.Append) {
		a.Body = []byte(secret)
		a.Key = &store.IdempotencyKey{Key: "key", RequestHash: secret}
		a.Create.WorkflowID, a.Create.WorkflowName = "w", secret
		a.Snapshot = &store.Snapshot{Seq: 1, Body: []byte(secret)}
		a.SetTimers = []store.Timer{{ID: "t", Until: 1}}
		a.Logs = []store.LogLine{{Activation: "a", Message: secret}}
		a.OpenLedger = []store.LedgerEntry{{ID: "c1", Execution: "e1", Workflow: "w", Tokens: 777}}
		a.Ask = []store.Interaction{{ID: question, Status: store.InteractionPending, Channel: "email", Credential: "c",
			Approvers: []string{"user:ann"}, Request: []byte(`"` + secret + `"`), NextAt: 5}}
	})
	// One that has ended, and could be removed.
	started(t, s, p, "e9", func(a *store.Append) {
		a.Create.Status, a.Create.Ended, a.Create.WorkflowName = engine.StatusSuccess, 1, secret
	})
	ok(t, s.Limits.Put(ctx, p, []byte(`"`+secret+`"`), 1))
	// One that waits for a person without a question.
	started(t, s, p, "e2", func(a *store.Append) { a.Create.Status = engine.StatusWaitingForHuman })
	ok(t, s.Interactions.Change(ctx, p, store.InteractionChange{
		Interaction: store.Interaction{ID: question, Status: store.InteractionPending, Approvers: []string{"user:ann"}, NextAt: 5, Version: 1},
		Responses:   []store.Response{{ID: "r", Channel: "email", Raw: secret}},
		Links:       []store.Link{{Hash: identity.HashSecret(secret + p.Workspace), Recipient: secret}},
		Deliveries:  []store.Delivery{{ID: "m", Channel: "email", Recipient: secret}},
	}))
	ok(t, s.Interactions.Delivered(ctx, p, store.Delivery{ID: "m", Status: store.DeliveryPending, Attempts: 1}, nil, []string{"th"}))
	_, err = s.Memories.Change(ctx, p, store.MemoryChange{Scope: store.MemoryScope{ID: "m", User: p.User, Kind: secret}, Mark: "k", Put: []store.MemoryRecord{
		{Sort: "s", ID: secret, Body: []byte(`"` + secret + `"`), Text: &store.MemoryText{Content: secret}, Vector: []float32{1, 0}, Space: "v", Expires: 1 << 50}}})
	ok(t, err)
	item, _, err := s.Inbox.Deliver(ctx, p, store.InboxItem{Execution: "e1", Dedup: "d", Kind: "k", Body: []byte(secret)})
	ok(t, err)
	fillTriggers(t, s, p)
	return known{workspace: p.Workspace, item: item, blob: blob.Hash}
}

// reading are the probes that change nothing: together they are a picture of a tenant.
func reading() []string {
	names := slices.Sorted(maps.Keys(probes()))
	return slices.DeleteFunc(names, func(name string) bool {
		_, method, _ := strings.Cut(name, ".")
		switch method {
		case "Rows", "LastSnapshot", "Pending", "PendingExecutions", "Upcoming", "Get", "List", "Unfinished", "Lines", "Sum", "Find",
			"Revision", "RevisionByHash", "Revisions", "Scope", "Scopes", "Records", "Search", "Nearest",
			"Due", "Responses", "DueDeliveries", "Deliveries", "Thread", "Accounts", "Unasked", "Pauses", "Activation", "Activations",
			"Preparing", "InForce", "DeployedBy", "OfKind", "Delivery", "DeliveryOf":
			return false
		}
		return true
	})
}

func picture(t *testing.T, s store.Stores, p identity.Principal, k known) map[string]string {
	t.Helper()
	all, ask := map[string]string{}, probes()
	for _, name := range reading() {
		got, err := ask[name](t.Context(), s, p, k)
		if err != nil {
			t.Fatalf("%s for the owner: %v", name, err)
		}
		all[name] = show(got)
	}
	return all
}

// show prints a value so that text inside byte slices can be found.
func show(v any) string {
	raw, _ := v.([]byte) // nil for all else
	return fmt.Sprintf("%+v|%s|%q", v, v, v) + string(raw)
}

// leaks says whether what B was told holds anything of A's.
func leaks(text string, a known) bool {
	return strings.Contains(text, secret) || strings.Contains(text, hex.EncodeToString([]byte(secret))) ||
		strings.Contains(text, a.workspace) || strings.Contains(text, "777")
}

func testTenants(t *testing.T, s store.Stores) {
	all := probes()
	methods := 0
	for f := range reflect.TypeFor[store.Stores]().Fields() {
		for m := range f.Type.Methods() {
			if methods++; all[f.Name+"."+m.Name] == nil {
				t.Errorf("%s.%s has no probe: write one, so that two tenants are tried against each other", f.Name, m.Name)
			}
		}
	}
	equal(t, "probes", methods, len(all))

	a, b := tenant(t), tenant(t)
	k := fill(t, s, a)
	before := picture(t, s, a, k)
	for name, text := range before {
		// The canary is where it should be; otherwise looking for it would prove nothing.
		if !leaks(text, k) && !slices.Contains([]string{"Workflows.Revisions"}, name) {
			t.Errorf("%s does not show the owner its own data: %s", name, text)
		}
	}
	// B exists, with the same roles, and has nothing. A system principal for B is no more than B.
	ok(t, s.Workspaces.Create(t.Context(), identity.System(""), identity.Workspace{ID: b.Workspace}))
	for _, p := range []identity.Principal{b, identity.System(b.Workspace)} {
		names := slices.Sorted(maps.Keys(all))
		for i, name := range names {
			if p.IsSystem() && slices.Contains([]string{"Tokens.Resolve", "Workspaces.Create", "Sessions.Resolve", "Sessions.Expire", "Invitations.Resolve", "Invitations.ForEmail", "Logins.Resolve", "Upkeep.Finish", "Upkeep.Expire", "Upkeep.Compact", "Upkeep.Space", "Upkeep.Unclean"}, name) {
				continue // these are for Tandem itself, and not about one workspace
			}
			got, err := all[name](t.Context(), s, p, k)
			if err != nil && fmt.Sprint(err) == "" {
				t.Errorf("%s: an error without words", name)
			}
			// What B was told, words of the error included, except for the ids that B itself has named.
			text := show(got)
			if err != nil {
				text += strings.NewReplacer(k.workspace, "", question, "").Replace(err.Error())
			}
			if leaks(text, k) {
				t.Errorf("%s told tenant B of tenant A: %s", name, text)
			}
			// A picture is many calls: one is taken after all of an interface.
			of, _, _ := strings.Cut(name, ".")
			if i+1 == len(names) || !strings.HasPrefix(names[i+1], of+".") {
				equal(t, "tenant A after the calls of tenant B to "+of, before, picture(t, s, a, k))
			}
		}
	}
}
