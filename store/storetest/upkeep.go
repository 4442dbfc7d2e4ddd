package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// ended makes an execution that has ended, at a time.
func ended(t *testing.T, s store.Stores, p identity.Principal, id string, at int64, change ...func(*store.Append)) {
	t.Helper()
	started(t, s, p, id, append(change, func(a *store.Append) { a.Time, a.Create.Created = at, at })...)
	end(t, s, p, id, at+10)
}

func end(t *testing.T, s store.Stores, p identity.Principal, id string, at int64) {
	t.Helper()
	a := next(id, 1)
	a.Time, a.Change = at, &store.Change{Status: engine.StatusSuccess, Ended: at}
	mustAppend(t, s, p, a)
}

func testLimits(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	raw, err := s.Limits.Get(ctx, p)
	equal(t, "before anything was set", "", fmt.Sprint(string(raw), err)[:0])
	ok(t, s.Limits.Put(ctx, p, []byte("one"), 1))
	ok(t, s.Limits.Put(ctx, p, []byte("two"), 2))
	equal(t, "the last", "two", string(must[[]byte](t)(s.Limits.Get(ctx, p))))

	// Counted is what was started since a time and before the process began, children left out; what was removed since counts as well.
	day := time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC).UnixMilli()
	for n := range 5 {
		ended(t, s, p, fmt.Sprint("e", n), day+int64(n-2)*1000)
	}
	ended(t, s, p, "child", day+5000, func(a *store.Append) { a.Create.Parent = "e4" })
	equal(t, "since the day began", int64(3), must[int64](t)(s.Limits.StartsSince(ctx, p, day)))
	_, err = s.Upkeep.Remove(ctx, p, store.Removal{Execution: "e4"})
	ok(t, err)
	equal(t, "after one was removed", int64(3), must[int64](t)(s.Limits.StartsSince(ctx, p, day)))
	equal(t, "since later", int64(0), must[int64](t)(s.Limits.StartsSince(ctx, p, day+24*3600*1000)))
}

func testRemovalRefused(t *testing.T, s store.Stores) {
	p := tenant(t)
	refused := func(id, word string) {
		t.Helper()
		if _, err := s.Upkeep.Remove(t.Context(), p, store.Removal{Execution: id}); fault.CodeOf(err) != fault.Conflict ||
			!strings.Contains(err.Error(), word) {
			t.Errorf("removing %s: %v, want a conflict that says %q", id, err, word)
		}
		if _, err := s.Executions.Get(t.Context(), p, id); err != nil {
			t.Errorf("%s is gone: %v", id, err)
		}
	}
	started(t, s, p, "runs")
	refused("runs", "has not ended")
	ended(t, s, p, "asks", 1, func(a *store.Append) { a.Ask = []store.Interaction{{ID: "q"}} })
	refused("asks", "question")
	ended(t, s, p, "timed", 1, func(a *store.Append) { a.SetTimers = []store.Timer{{ID: "error", Until: 10}} })
	refused("timed", "left to do")
	ended(t, s, p, "source", 1)
	started(t, s, p, "fork", func(a *store.Append) { a.Create.ForkedFrom = "source" })
	refused("source", `"fork"`)
	started(t, s, p, "parent")
	ended(t, s, p, "child", 1, func(a *store.Append) { a.Create.Parent = "parent" })
	refused("child", `"parent"`)
	end(t, s, p, "parent", 5)
	refused("child", `"parent"`)
	started(t, s, p, "sibling", func(a *store.Append) { a.Create.Parent = "parent" })
	refused("parent", `"sibling"`)
	end(t, s, p, "sibling", 5)
	equal(t, "a family", int64(3), must[store.Removed](t)(s.Upkeep.Remove(t.Context(), p, store.Removal{Execution: "parent"})).Executions)
	end(t, s, p, "fork", 5)
	for _, id := range []string{"fork", "source"} { // in this order
		_, err := s.Upkeep.Remove(t.Context(), p, store.Removal{Execution: id})
		ok(t, err)
	}
	for _, id := range []string{"source", "nowhere"} {
		_, err := s.Upkeep.Remove(t.Context(), p, store.Removal{Execution: id})
		wantCode(t, "removing "+id, err, fault.NotFound)
	}
	_, err := s.Upkeep.Remove(t.Context(), tenant(t), store.Removal{Execution: "runs"})
	wantCode(t, "one of another workspace", err, fault.NotFound)
	wantCode(t, "a row after the end of everything", s.Journal.Append(t.Context(), p, next("source", 2)), fault.NotFound)
}

func testRemoval(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	deploy(t, s, p, "w", "h", hook("hook"))
	for _, id := range []string{"e1", "e2"} {
		ended(t, s, p, id, 1000, func(a *store.Append) {
			a.Create.WorkflowID = "w"
			a.Key = &store.IdempotencyKey{Key: "key " + id, RequestHash: "h"}
			a.Arrival = &store.Arrival{Delivery: store.TriggerDelivery{ID: "dlv " + id, WorkflowID: "w", Node: "hook",
				Kind: "TRIGGER.WEBHOOK", Key: id, Received: 1000, Payload: []byte(`{"n":1}`)}}
			a.OpenLedger = []store.LedgerEntry{{ID: "call " + id, Execution: id, Workflow: "w", Profile: "m", Day: "2001-02-03", Tokens: 5}}
			a.Logs = []store.LogLine{{Activation: "a", Message: "m"}}
			a.Snapshot = &store.Snapshot{Seq: 1, Body: []byte("s")}
		})
	}
	audited := store.Audited(ctx, store.AuditEntry{Workspace: p.Workspace, User: "ann", Action: "execution.delete", ObjectID: "e1"})
	equal(t, "removed", store.Removed{Executions: 1, Rows: 2, IDs: []string{"e1"}},
		must[store.Removed](t)(s.Upkeep.Remove(audited, p, store.Removal{Execution: "e1", Traces: true, Reason: "gone"})))
	_, err := s.Executions.Get(ctx, p, "e1")
	wantCode(t, "read it", err, fault.NotFound)
	equal(t, "its rows", 0, len(rows(t, s, p, "e1", 0)))
	_, there, err := s.Journal.LastSnapshot(ctx, p, "e1")
	equal(t, "its snapshot", fmt.Sprint(false, nil), fmt.Sprint(there, err))
	_, err = s.Keys.Find(ctx, p, "key e1")
	wantCode(t, "its key", err, fault.NotFound)
	equal(t, "its log", 0, len(must[store.LogPage](t)(s.Logs.Lines(ctx, p, store.LogQuery{Execution: "e1"})).Lines))
	d := must[store.TriggerDelivery](t)(s.Triggers.Delivery(ctx, p, "dlv e1"))
	equal(t, "its delivery", "gone e1 0", fmt.Sprint(d.Reason, " ", d.Execution, " ", len(d.Payload)))
	equal(t, "what its workflow has spent", int64(10), func() int64 {
		sum := must[store.LedgerSum](t)(s.Ledger.Sum(ctx, p, store.LedgerQuery{Workflow: "w"}))
		return sum.Tokens + sum.OpenTokens
	}())
	equal(t, "entries", 1, len(must[[]store.AuditEntry](t)(s.Audit.List(ctx, p, store.AuditQuery{Action: "execution.delete"}))))
	equal(t, "how many are listed", 1, must[store.ExecutionPage](t)(s.Executions.List(ctx, p, store.ExecutionQuery{})).Total)
	equal(t, "the other one", 2, len(rows(t, s, p, "e2", 0)))

	// Without its traces, what started it stays.
	_, err = s.Upkeep.Remove(ctx, p, store.Removal{Execution: "e2", Reason: "old"})
	ok(t, err)
	d = must[store.TriggerDelivery](t)(s.Triggers.Delivery(ctx, p, "dlv e2"))
	equal(t, "the delivery of the other", `old {"n":1}`, d.Reason+" "+string(d.Payload))
	started(t, s, p, "e1") // its id is free again
}

func testRemovable(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	for n := range 10 {
		id := fmt.Sprint("e", n)
		if n == 2 {
			started(t, s, p, id, func(a *store.Append) { a.Time = 2000 }) // it runs
			continue
		}
		ended(t, s, p, id, int64(n)*1000)
	}
	ended(t, s, p, "child", 1500, func(a *store.Append) { a.Create.Parent = "e1" })
	list := func(q store.RetentionQuery) string {
		t.Helper()
		var all []string
		q.Limit = 2
		for {
			ids, next, err := s.Upkeep.Removable(ctx, p, q)
			ok(t, err)
			all = append(all, ids...)
			if q.After = next; next == 0 {
				return strings.Join(all, " ")
			}
		}
	}
	equal(t, "by age", "e0 e1 e3", list(store.RetentionQuery{Before: 4000}))
	equal(t, "one that has ended late", "e0 e1 e3", list(store.RetentionQuery{Before: 4005}))
	equal(t, "by count", "e0 e1 e3 e4 e5", list(store.RetentionQuery{Keep: 4}))
	equal(t, "by both", "e0 e1 e3 e4 e5 e6", list(store.RetentionQuery{Keep: 4, Before: 6500}))
	equal(t, "all are kept", "", list(store.RetentionQuery{Keep: 100, Before: 1}))
}

// enterRetained tries what a tenant can enter in the audit log.
func enterRetained(ctx context.Context, s store.Stores, p identity.Principal, _ known) (any, error) {
	return s.Upkeep.EnterRetained(ctx, p, func(removed int64) store.AuditEntry {
		return store.AuditEntry{User: p.User, Action: "execution.retain", Object: "execution", Detail: store.AuditDetail(removed)}
	})
}

// testEnterRetained: what retention has removed is entered once, however late, and neither with what somebody has deleted nor with that of
// others.
func testEnterRetained(t *testing.T, s store.Stores) {
	p, other, ctx := tenant(t), tenant(t), t.Context()
	other.Workspace = p.Workspace + "/x"
	entry := func(removed int64) store.AuditEntry {
		return store.AuditEntry{User: "system", Action: "execution.retain", Object: "execution", Detail: store.AuditDetail(removed)}
	}
	enter := func(p identity.Principal) int64 { return must[int64](t)(s.Upkeep.EnterRetained(ctx, p, entry)) }
	equal(t, "before all", int64(0), enter(p))
	for _, id := range []string{"old", "older", "deleted"} {
		ended(t, s, p, id, 1000)
	}
	ended(t, s, p, "child", 1000, func(a *store.Append) { a.Create.Parent = "old" })
	ended(t, s, other, "foreign", 1000)
	for _, r := range []store.Removal{{Execution: "old", Retained: true}, {Execution: "older", Retained: true}, {Execution: "deleted"}} {
		_, err := s.Upkeep.Remove(ctx, p, r)
		ok(t, err)
	}
	_, err := s.Upkeep.Remove(ctx, other, store.Removal{Execution: "foreign", Retained: true})
	ok(t, err)
	equal(t, "entered", int64(3), enter(p))
	equal(t, "entered again", int64(0), enter(p))
	equal(t, "entered of another", int64(1), enter(other))
	list := must[[]store.AuditEntry](t)(s.Audit.List(ctx, p, store.AuditQuery{Action: "execution.retain"}))
	if len(list) != 1 || string(list[0].Detail) != "3" || list[0].Workspace != p.Workspace {
		t.Errorf("entries %+v", list)
	}
}

func testRetainDeliveries(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	for n := range 10 {
		decision := store.DeliveryIgnored
		if n == 1 {
			decision = store.DeliveryAccepted
		}
		ok(t, s.Triggers.Record(ctx, p, store.TriggerDelivery{ID: fmt.Sprint("d", n), WorkflowID: "w", Node: "n", Kind: "K",
			Received: int64(n), Decision: decision}, nil))
	}
	left := func() string {
		t.Helper()
		var all []string
		for _, d := range must[store.DeliveryPage](t)(s.Triggers.Deliveries(ctx, p, store.DeliveryQuery{})).Deliveries {
			all = append(all, d.ID)
		}
		return strings.Join(all, " ")
	}
	equal(t, "by age", 2, must[int](t)(s.Upkeep.RetainDeliveries(ctx, p, 3, 0, 100)))
	equal(t, "left", "d9 d8 d7 d6 d5 d4 d3 d1", left())
	equal(t, "by count", 3, must[int](t)(s.Upkeep.RetainDeliveries(ctx, p, 0, 4, 100)))
	equal(t, "left", "d9 d8 d7 d6 d1", left())
	equal(t, "none of those that are young", 0, must[int](t)(s.Upkeep.RetainDeliveries(ctx, p, 100, 1, 5)))
	equal(t, "left", "d9 d8 d7 d6 d1", left())
}

func testSweep(t *testing.T, s store.Stores) {
	p, ctx := tenant(t), t.Context()
	put := func(text string) string {
		return must[store.Blob](t)(s.Blobs.Put(ctx, p, bytes.NewReader([]byte(text)))).Hash
	}
	there := func(what, hash string, want bool) {
		t.Helper()
		if _, err := s.Blobs.Stat(ctx, p, hash); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	own, shared, orphan := put("own"), put("shared"), put("orphan")
	inner := put("inner")
	outer := put(`{"file":{"blob":"` + inner + `"}}`)
	name := func(hashes ...string) func(*store.Append) {
		return func(a *store.Append) { a.Body = []byte(`{"large":["` + strings.Join(hashes, `","`) + `"]}`) }
	}
	ended(t, s, p, "e1", 1000, name(own, shared, outer))
	ended(t, s, p, "e2", 1000, name(shared))
	_, err := s.Upkeep.Remove(ctx, p, store.Removal{Execution: "e1"})
	ok(t, err)
	future := time.Now().Add(time.Hour)
	n, _, err := s.Upkeep.SweepBlobs(ctx, p, time.Time{}, time.Now().Add(-time.Hour))
	equal(t, "while they are young", fmt.Sprint(0, nil), fmt.Sprint(n, err))
	n, size, err := s.Upkeep.SweepBlobs(ctx, p, time.Time{}, future)
	equal(t, "swept", fmt.Sprint(3, 3+5+len(`{"file":{"blob":""}}`)+64, nil), fmt.Sprint(n, size, err))
	there("what only it named", own, false)
	there("what only its value named", inner, false)
	there("what another names", shared, true)
	there("what nothing has ever named", orphan, true)
	n, _, err = s.Upkeep.SweepBlobs(ctx, p, future, future)
	equal(t, "orphans", fmt.Sprint(1, nil), fmt.Sprint(n, err))
	there("what nothing has ever named", orphan, false)
	there("what another names", shared, true)
	equal(t, "put again", own, put("own"))
	there("what was put again", own, true)
	usage := must[store.Usage](t)(s.Upkeep.Usage(ctx, p))
	equal(t, "usage", store.Usage{Executions: 1, Journals: int64(len(`{"large":["`) + 64 + len(`"]}`) + len("row 2")), Blobs: 6 + 3}, usage)
}
