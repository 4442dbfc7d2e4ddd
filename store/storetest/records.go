package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

func testSummaries(t *testing.T, s store.Stores) {
	p := tenant(t)
	e := store.Execution{
		ID: "e1", WorkflowID: "w", WorkflowName: "Orders", WorkflowVersion: "1.0", Revision: 4, RevisionHash: "h4",
		Status: engine.StatusPending, Priority: 2, Parent: "e0", ForkedFrom: "e00", TriggerType: "CRON", User: "ann", Conversation: "c1",
	}
	mustAppend(t, s, p, &store.Append{Execution: "e1", Time: 100, Body: []byte("x"), Create: &e})
	want := e
	want.Workspace, want.Created, want.Updated = p.Workspace, 100, 100
	equal(t, "created", want, must[store.Execution](t)(s.Executions.Get(t.Context(), p, "e1")))
	a := next("e1", 1)
	a.Time = 200
	a.Change = &store.Change{Status: engine.StatusError, Started: 110, Ended: 199, DurationMS: 80, Credits: 1.5, Error: "boom"}
	mustAppend(t, s, p, a)
	want.Status, want.Started, want.Ended, want.DurationMS, want.Credits, want.Error, want.Updated = engine.StatusError,
		110, 199, 80, 1.5, "boom", 200
	equal(t, "changed", want, must[store.Execution](t)(s.Executions.Get(t.Context(), p, "e1")))
	mustAppend(t, s, p, next("e1", 2))
	equal(t, "after a row without a change", want, must[store.Execution](t)(s.Executions.Get(t.Context(), p, "e1")))
	_, err := s.Executions.Get(t.Context(), p, "unknown")
	wantCode(t, "unknown", err, fault.NotFound)
	read, all, whole, err := s.Executions.GetWithRows(t.Context(), p, "e1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "read with its rows", want, read)
	if got := len(all); whole && got != 3 || !whole && got != 0 {
		t.Errorf("it is read with %d rows, all of them: %v; there are 3", got, whole)
	}
	_, _, _, err = s.Executions.GetWithRows(t.Context(), p, "unknown")
	wantCode(t, "unknown, with its rows", err, fault.NotFound)
	// Rows that come together change the summary one after the other, also that of an execution that begins with them.
	e = want
	e.ID, e.Status, e.Started, e.Ended, e.DurationMS, e.Credits, e.Error = "e2", engine.StatusRunning, 100, 0, 0, 0, ""
	list := []*store.Append{{Execution: "e2", Time: 100, Body: []byte("row 1"), Create: &e}}
	for i := range 19 { // more than go into one statement
		list = append(list, next("e2", uint64(i+1)))
	}
	list[2].Time, list[2].Change = 150, &store.Change{Status: engine.StatusWaiting, Started: 100}
	list[18].Time, list[18].Change = 180, &store.Change{Status: engine.StatusSuccess, Started: 100, Ended: 180, DurationMS: 70, Credits: 2}
	ok(t, s.Journal.Append(t.Context(), p, list...))
	want = e
	want.Workspace, want.Created, want.Updated = p.Workspace, 100, 180
	want.Status, want.Ended, want.DurationMS, want.Credits = engine.StatusSuccess, 180, 70, 2
	equal(t, "begun and ended at once", want, must[store.Execution](t)(s.Executions.Get(t.Context(), p, "e2")))
	equal(t, "rows that came together", 20, len(rows(t, s, p, "e2", 0)))
	counted := func(status engine.Status) int {
		return must[store.ExecutionPage](t)(s.Executions.List(t.Context(), p,
			store.ExecutionQuery{WorkflowID: "w", Statuses: []engine.Status{status}})).Total
	}
	equal(t, "that run", 0, counted(engine.StatusRunning))
	equal(t, "that wait", 0, counted(engine.StatusWaiting))
	equal(t, "that have ended well", 1, counted(engine.StatusSuccess))
	more := []*store.Append{next("e2", 20), next("e2", 21), next("e2", 22)}
	more[0].Change = &store.Change{Status: engine.StatusRunning, Started: 100}
	more[1].Time, more[1].Change = 300, &store.Change{Status: engine.StatusError, Started: 100, Ended: 300, DurationMS: 90, Error: "again"}
	ok(t, s.Journal.Append(t.Context(), p, more...))
	want.Status, want.Ended, want.DurationMS, want.Credits, want.Error, want.Updated = engine.StatusError, 300, 90, 0, "again", 300
	equal(t, "changed twice at once", want, must[store.Execution](t)(s.Executions.Get(t.Context(), p, "e2")))
	equal(t, "that have failed", 2, counted(engine.StatusError))
	equal(t, "that no longer have ended well", 0, counted(engine.StatusSuccess))
}

func testExecutionList(t *testing.T, s store.Stores) {
	p := tenant(t)
	const n = 23
	for i := range n {
		started(t, s, p, fmt.Sprintf("e%02d", i), func(a *store.Append) { // all at the same millisecond
			a.Create.WorkflowID = fmt.Sprintf("w%d", i%2)
			a.Create.Revision = int64(i % 3)
			if i%5 == 0 {
				a.Create.Parent = "root"
			}
			if i%4 == 0 {
				a.Create.Status = engine.StatusSuccess
			}
			if i%6 == 0 {
				a.Create.User = "bob"
			}
			if i%7 == 0 {
				a.Create.Conversation = "talk"
			}
		})
	}
	list := func(q store.ExecutionQuery) store.ExecutionPage {
		t.Helper()
		return must[store.ExecutionPage](t)(s.Executions.List(t.Context(), p, q))
	}
	for _, size := range []int{1, 5, 20, 100} {
		var got []string
		for number := 1; ; number++ {
			page := list(store.ExecutionQuery{Page: store.Page{Number: number, Size: size}})
			equal(t, "total", n, page.Total)
			if len(page.Executions) == 0 {
				break
			}
			for _, e := range page.Executions {
				got = append(got, e.ID)
			}
		}
		if len(got) != n || got[0] != "e22" || got[n-1] != "e00" {
			t.Errorf("pages of %d: %v", size, got)
		}
		seen := map[string]bool{}
		for _, id := range got {
			if seen[id] {
				t.Errorf("pages of %d show %q twice", size, id)
			}
			seen[id] = true
		}
	}
	equal(t, "default size", store.DefaultPageSize, len(list(store.ExecutionQuery{}).Executions))
	equal(t, "workflow", 11, list(store.ExecutionQuery{WorkflowID: "w1"}).Total)
	equal(t, "user", 4, list(store.ExecutionQuery{User: "bob"}).Total)
	equal(t, "forks of nothing", 0, list(store.ExecutionQuery{ForkedFrom: "nothing"}).Total)
	equal(t, "conversation", 4, list(store.ExecutionQuery{Conversation: "talk"}).Total)
	equal(t, "conversation of nobody", 0, list(store.ExecutionQuery{Conversation: "tal"}).Total)
	equal(t, "conversation with a workflow and a user", []string{"e00"},
		ids(list(store.ExecutionQuery{Conversation: "talk", User: "bob", WorkflowID: "w0"})))
	equal(t, "status", 6, list(store.ExecutionQuery{Statuses: []engine.Status{engine.StatusSuccess}}).Total)
	equal(t, "statuses", n, list(store.ExecutionQuery{Statuses: []engine.Status{engine.StatusSuccess, engine.StatusRunning}}).Total)
	equal(t, "both", 6, list(store.ExecutionQuery{WorkflowID: "w0", Statuses: []engine.Status{engine.StatusSuccess}}).Total)
	equal(t, "none", 0, list(store.ExecutionQuery{WorkflowID: "w1", Statuses: []engine.Status{engine.StatusSuccess}}).Total)
	equal(t, "parent", 5, list(store.ExecutionQuery{Parent: "root"}).Total)
	equal(t, "older revisions", 16, list(store.ExecutionQuery{BelowRevision: 2}).Total)
	equal(t, "far page", 0, len(list(store.ExecutionQuery{Page: store.Page{Number: 1 << 60}}).Executions))
	// A change moves nothing.
	a := next("e10", 1)
	a.Change = &store.Change{Status: engine.StatusWaiting}
	mustAppend(t, s, p, a)
	equal(t, "place after a change", "e10", list(store.ExecutionQuery{Page: store.Page{Number: 13, Size: 1}}).Executions[0].ID)
}

func ids(page store.ExecutionPage) (list []string) {
	for _, e := range page.Executions {
		list = append(list, e.ID)
	}
	return list
}

func testUnfinished(t *testing.T, s store.Stores) {
	p, other := tenant(t), tenant(t)
	for i, priority := range []int{3, 1, 5, 1, 3} {
		started(t, s, p, fmt.Sprintf("e%d", i), func(a *store.Append) {
			a.Create.Priority = priority
			a.Create.WorkflowID = fmt.Sprint("w", i)
			a.Time = int64(100 - i)
		})
	}
	started(t, s, other, "x", func(a *store.Append) { a.Create.Priority = 2 })
	collect := func(as identity.Principal) (ids []string) {
		t.Helper()
		for u, err := range s.Executions.Unfinished(t.Context(), as, store.Unfinished{}) {
			ok(t, err)
			if u.Workspace != p.Workspace && u.Workspace != other.Workspace {
				continue
			}
			// The loop may use the store.
			e := must[store.Execution](t)(s.Executions.Get(t.Context(), identity.System(u.Workspace), u.Execution))
			equal(t, "status and priority", fmt.Sprint(e.WorkflowID, e.Status, e.Priority, e.Created),
				fmt.Sprint(u.WorkflowID, u.Status, u.Priority, u.Created))
			ids = append(ids, u.Execution)
		}
		return ids
	}
	equal(t, "own", []string{"e1", "e3", "e0", "e4", "e2"}, collect(p))
	equal(t, "all", []string{"e1", "e3", "x", "e0", "e4", "e2"}, collect(identity.System("")))
	a := next("e3", 1)
	a.Change = &store.Change{Status: engine.StatusCanceled}
	mustAppend(t, s, p, a)
	equal(t, "after one ended", []string{"e1", "e0", "e4", "e2"}, collect(p))
	a = next("e3", 2)
	a.Change = &store.Change{Status: engine.StatusRunning}
	mustAppend(t, s, p, a)
	equal(t, "after it was revived", []string{"e1", "e3", "e0", "e4", "e2"}, collect(p))
	for id, status := range map[string]engine.Status{"e1": engine.StatusPending, "e4": engine.StatusPending, "e0": engine.StatusWaiting,
		"e2": engine.StatusWaitingForHuman} {
		a = next(id, 1)
		a.Change = &store.Change{Status: status}
		mustAppend(t, s, p, a)
	}
	equal(t, "with some that wait or are to begin", []string{"e3", "e1", "e4"}, collect(p))
	a = next("e0", 2)
	a.Change = &store.Change{Status: engine.StatusPaused}
	mustAppend(t, s, p, a)
	equal(t, "with one that is paused", []string{"e3", "e1", "e4"}, collect(p))
	mustAppend(t, s, p, func() *store.Append {
		a := next("e2", 2)
		a.Change = &store.Change{Status: engine.StatusRunning}
		return a
	}())
	testUnfinishedAfter(t, s, p, "e3", "e2", "e1", "e4")
}

// testUnfinishedAfter begins behind each of those that are unfinished, of which the last two are to begin.
func testUnfinishedAfter(t *testing.T, s store.Stores, p identity.Principal, want ...string) {
	t.Helper()
	behind := func(after store.Unfinished) (found []string, all []store.Unfinished) {
		for u, err := range s.Executions.Unfinished(t.Context(), p, after) {
			ok(t, err)
			found, all = append(found, u.Execution), append(all, u)
		}
		return found, all
	}
	found, all := behind(store.Unfinished{})
	equal(t, "unfinished", want, found)
	for i, u := range all {
		found, _ := behind(u)
		equal(t, "behind "+u.Execution, fmt.Sprint(want[i+1:]), fmt.Sprint(found))
	}
	found, _ = behind(store.Unfinished{Status: engine.StatusPending})
	equal(t, "to begin", want[2:], found)
}

func testKeys(t *testing.T, s store.Stores) {
	p, other := tenant(t), tenant(t)
	start := func(p identity.Principal, id, key, hash string) error {
		a := first(id)
		a.Key = &store.IdempotencyKey{Key: key, RequestHash: hash}
		return s.Journal.Append(t.Context(), p, a)
	}
	ok(t, start(p, "e1", "k", "h"))
	var used *store.KeyUsedError
	if err := start(p, "e2", "k", "h"); !errors.As(err, &used) || !used.Same || used.Execution != "e1" || !isConflict(err) {
		t.Errorf("repetition: %v", err)
	}
	if err := start(p, "e3", "k", "another"); !errors.As(err, &used) || used.Same || used.Execution != "e1" {
		t.Errorf("another request: %v", err)
	}
	ok(t, start(other, "e1", "k", "h"))
	bob := identity.Principal{Workspace: p.Workspace, User: "bob", Roles: p.Roles}
	_, err := s.Keys.Find(t.Context(), bob, "k")
	wantCode(t, "another user's key", err, fault.NotFound)
	his := first("bobs")
	his.Create.User, his.Key = "bob", &store.IdempotencyKey{Key: "k", RequestHash: "another"}
	ok(t, s.Journal.Append(t.Context(), p, his)) // the key is that of who starts, no matter who writes
	equal(t, "bob's", "bobs", must[store.IdempotencyKey](t)(s.Keys.Find(t.Context(), bob, "k")).Execution)
	for _, id := range []string{"e2", "e3"} {
		_, err := s.Executions.Get(t.Context(), p, id)
		wantCode(t, "an execution that was not started", err, fault.NotFound)
	}
	equal(t, "found", store.IdempotencyKey{Key: "k", RequestHash: "h", Execution: "e1", Created: 1000},
		must[store.IdempotencyKey](t)(s.Keys.Find(t.Context(), p, "k")))
	_, err = s.Keys.Find(t.Context(), p, "unknown")
	wantCode(t, "unknown key", err, fault.NotFound)
	var wg sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		wg.Go(func() { errs[i] = start(p, fmt.Sprintf("race%d", i), "race", "h") })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.As(err, &used) || !used.Same {
			t.Errorf("racing start: %v", err)
		}
	}
	equal(t, "how many of ten equal starts began", 1, won)
	equal(t, "expired too early", 0, must[int](t)(s.Keys.Expire(t.Context(), p, 1000)))
	equal(t, "expired", 3, must[int](t)(s.Keys.Expire(t.Context(), p, 1001)))
	must[store.IdempotencyKey](t)(s.Keys.Find(t.Context(), other, "k"))
	ok(t, start(p, "e9", "k", "h"))
}

func testLogs(t *testing.T, s store.Stores) {
	p := tenant(t)
	const strange, odd = "h\x00m\x01", "n\x01\x01o\x02" // what a program writes may have any character
	wantCode(t, "lines of nobody", s.Logs.Write(t.Context(), p, "e1", []store.LogLine{{Message: "x"}}), fault.NotFound)
	started(t, s, p, "e1", func(a *store.Append) {
		a.Logs = []store.LogLine{{Activation: "a1", NodeID: "n", Time: 1, Level: store.LevelDebug, Message: "begin"},
			{Activation: "a1", NodeID: "n", Time: 2, Level: store.LevelWarn, Message: strange, Context: []byte(`{"k":1}`)}}
	})
	ok(t, s.Logs.Write(t.Context(), p, "e1", []store.LogLine{{Activation: "a2", NodeID: "m", Time: 3,
		Level: store.LevelError, Message: odd}}))
	page := must[store.LogPage](t)(s.Logs.Lines(t.Context(), p, store.LogQuery{Execution: "e1"}))
	messages := func(page store.LogPage) (all []string) {
		for _, l := range page.Lines {
			all = append(all, l.Message)
		}
		return all
	}
	equal(t, "all", []string{"begin", strange, odd}, messages(page))
	want := store.LogLine{ID: page.Lines[1].ID, Activation: "a1", NodeID: "n", Time: 2, Level: store.LevelWarn, Message: strange,
		Context: []byte(`{"k":1}`)}
	equal(t, "line", want, page.Lines[1])
	equal(t, "no context", 0, len(page.Lines[0].Context))
	info, first := store.LevelInfo, page.Lines[0].ID
	for _, c := range []struct {
		q    store.LogQuery
		want []string
	}{
		{store.LogQuery{MinLevel: &info}, []string{strange, odd}},
		{store.LogQuery{Activation: "a1"}, []string{"begin", strange}},
		{store.LogQuery{NodeID: "m"}, []string{odd}},
		{store.LogQuery{After: first}, []string{strange, odd}},
		{store.LogQuery{After: first, Limit: 1}, []string{strange}},
		{store.LogQuery{Activation: "a3"}, nil},
	} {
		c.q.Execution = "e1"
		page := must[store.LogPage](t)(s.Logs.Lines(t.Context(), p, c.q))
		equal(t, fmt.Sprintf("%+v", c.q), c.want, messages(page))
		equal(t, "more", c.q.Limit == 1, page.More)
	}
	many := make([]store.LogLine, 700)
	for i := range many {
		many[i] = store.LogLine{Activation: "loud", Time: int64(i), Message: fmt.Sprint(i)}
	}
	ok(t, s.Logs.Write(t.Context(), p, "e1", many))
	a := next("e1", 1)
	a.Logs = append(many, store.LogLine{Activation: "a1", Message: "still heard"})
	mustAppend(t, s, p, a)
	page = must[store.LogPage](t)(s.Logs.Lines(t.Context(), p, store.LogQuery{Execution: "e1", Activation: "loud", Limit: 5000}))
	equal(t, "kept and dropped", []int64{store.MaxLogLines, 400}, []int64{int64(len(page.Lines)), page.Dropped})
	equal(t, "dropped of the execution", int64(400), must[store.LogPage](t)(s.Logs.Lines(t.Context(), p, store.LogQuery{Execution: "e1"})).Dropped)
	equal(t, "another activation", 3, len(must[store.LogPage](t)(s.Logs.Lines(t.Context(), p, store.LogQuery{Execution: "e1", Activation: "a1"})).Lines))
}

func testLedger(t *testing.T, s store.Stores) {
	p := tenant(t)
	sum := func(q store.LedgerQuery) store.LedgerSum {
		t.Helper()
		return must[store.LedgerSum](t)(s.Ledger.Sum(t.Context(), p, q))
	}
	equal(t, "empty", store.LedgerSum{}, sum(store.LedgerQuery{}))
	entry := store.LedgerEntry{ID: "c1", Execution: "e1", Workflow: "w", Day: "2026-01-01", Tokens: 100, Cost: 7}
	ok(t, s.Ledger.Open(t.Context(), p, entry))
	entry.Tokens = 999
	ok(t, s.Ledger.Open(t.Context(), p, entry)) // it stays as it was
	started(t, s, p, "e1", func(a *store.Append) {
		a.OpenLedger = []store.LedgerEntry{{ID: "c2", Execution: "e1", Workflow: "w", Day: "2026-01-02", Tokens: 50, Cost: 3}}
	})
	equal(t, "open", store.LedgerSum{OpenTokens: 150, OpenCost: 10, OpenCalls: 2}, sum(store.LedgerQuery{Execution: "e1"}))
	ok(t, s.Ledger.Settle(t.Context(), p, store.Settlement{ID: "c1", Tokens: 80, Cost: 6}))
	wantCode(t, "settled twice", s.Ledger.Settle(t.Context(), p, store.Settlement{ID: "c1", Tokens: 1}), fault.Conflict)
	wantCode(t, "settled unknown", s.Ledger.Settle(t.Context(), p, store.Settlement{ID: "c9"}), fault.NotFound)
	equal(t, "one settled", store.LedgerSum{Tokens: 80, Cost: 6, OpenTokens: 50, OpenCost: 3, OpenCalls: 1}, sum(store.LedgerQuery{Workflow: "w"}))
	equal(t, "by day", store.LedgerSum{Tokens: 80, Cost: 6}, sum(store.LedgerQuery{Day: "2026-01-01"}))
	a := next("e1", 1)
	a.SettleLedger = []store.Settlement{{ID: "c2", Tokens: 20, Cost: 1}, {ID: "c1", Tokens: 1}, {ID: "unknown"}}
	mustAppend(t, s, p, a)
	equal(t, "all settled", store.LedgerSum{Tokens: 100, Cost: 7}, sum(store.LedgerQuery{}))
	equal(t, "of nothing", store.LedgerSum{}, sum(store.LedgerQuery{Workflow: "other"}))

	for i, e := range []store.LedgerEntry{
		{Execution: "old", Workflow: "w", Day: "2026-01-01", Tokens: 900},
		{Execution: "small", Workflow: "w", Day: "2026-01-03", Tokens: 5, Cost: 2},
		{Execution: "large", Workflow: "v", Day: "2026-01-03", Tokens: 40},
		{Execution: "large", Workflow: "v", Day: "2026-01-02", Tokens: 2}, {Day: "2026-01-03", Tokens: 1},
	} {
		e.ID, e.Profile = "m"+string(rune('0'+i)), "m"
		ok(t, s.Ledger.Open(t.Context(), p, e))
	}
	ok(t, s.Ledger.Settle(t.Context(), p, store.Settlement{ID: "m2", Tokens: 30}))
	spenders := func(q store.SpenderQuery) []store.Spender {
		t.Helper()
		return must[[]store.Spender](t)(s.Ledger.Spenders(t.Context(), p, q))
	}
	equal(t, "executions", []store.Spender{
		{ID: "large", LedgerSum: store.LedgerSum{Tokens: 30, OpenTokens: 2, OpenCalls: 1}},
		{ID: "small", LedgerSum: store.LedgerSum{OpenTokens: 5, OpenCost: 2, OpenCalls: 1}},
	}, spenders(store.SpenderQuery{Profile: "m", Limit: 2}))
	equal(t, "workflows", []store.Spender{
		{ID: "w", LedgerSum: store.LedgerSum{OpenTokens: 905, OpenCost: 2, OpenCalls: 2}},
		{ID: "v", LedgerSum: store.LedgerSum{Tokens: 30, OpenTokens: 2, OpenCalls: 1}},
	}, spenders(store.SpenderQuery{Profile: "m", Workflows: true, Limit: 9}))
	equal(t, "of another tenant", 0, len(must[[]store.Spender](t)(s.Ledger.Spenders(t.Context(), tenant(t), store.SpenderQuery{Profile: "m", Limit: 9}))))
}

func testTemplates(t *testing.T, s store.Stores) {
	p := tenant(t)
	x := store.Template{ID: "t1", Kind: "ACTION.HTTP_REQUEST", Name: "call", KnownParams: []byte(`{"a":1}`), OverrideInput: []byte(`{}`), Created: 1, Updated: 1}
	ok(t, s.Templates.Put(t.Context(), p, x))
	ok(t, s.Templates.Put(t.Context(), p, store.Template{ID: "t0", Kind: "CALL.EMPTY"}))
	wantCode(t, "no kind", s.Templates.Put(t.Context(), p, store.Template{ID: "t2"}), fault.Invalid)
	x.Workspace = p.Workspace
	equal(t, "got", x, must[store.Template](t)(s.Templates.Get(t.Context(), p, "t1")))
	x.Name, x.Created, x.Updated, x.OverrideInput = "new", 9, 9, nil
	ok(t, s.Templates.Put(t.Context(), p, x))
	x.Created = 1
	equal(t, "replaced", x, must[store.Template](t)(s.Templates.Get(t.Context(), p, "t1")))
	all := must[[]store.Template](t)(s.Templates.List(t.Context(), p))
	equal(t, "list", []string{"t0", "t1"}, []string{all[0].ID, all[1].ID})
	ok(t, s.Templates.Delete(t.Context(), p, "t1"))
	wantCode(t, "deleted twice", s.Templates.Delete(t.Context(), p, "t1"), fault.NotFound)
	_, err := s.Templates.Get(t.Context(), p, "t1")
	wantCode(t, "deleted", err, fault.NotFound)
}

func testBlobs(t *testing.T, s store.Stores) {
	p := tenant(t)
	for _, content := range [][]byte{{}, []byte("small"), bytes.Repeat([]byte("0123456789abcdef"), 200_000)} {
		sum := sha256.Sum256(content)
		want := store.Blob{Hash: hex.EncodeToString(sum[:]), Size: int64(len(content))}
		_, err := s.Blobs.Stat(t.Context(), p, want.Hash)
		wantCode(t, "before", err, fault.NotFound)
		var wg sync.WaitGroup
		for range 3 { // also at the same time
			wg.Go(func() {
				got, err := s.Blobs.Put(t.Context(), p, bytes.NewReader(content))
				if err != nil || got != want {
					t.Errorf("put: %v, %v, want %v", got, err, want)
				}
			})
		}
		wg.Wait()
		equal(t, "stat", want, must[store.Blob](t)(s.Blobs.Stat(t.Context(), p, want.Hash)))
		r, blob, err := s.Blobs.Get(t.Context(), p, want.Hash)
		ok(t, err)
		equal(t, "blob", want, blob)
		got := must[[]byte](t)(io.ReadAll(r))
		ok(t, r.Close())
		if !bytes.Equal(got, content) {
			t.Errorf("read %d bytes that differ from the %d written", len(got), len(content))
		}
	}
	for _, hash := range []string{"", "..", "../../etc/passwd", "zz", "ABCDEF", hex.EncodeToString(make([]byte, 31))} {
		_, err := s.Blobs.Stat(t.Context(), p, hash)
		wantCode(t, fmt.Sprintf("hash %q", hash), err, fault.Invalid)
	}
	broken := errors.New("the source broke")
	if _, err := s.Blobs.Put(t.Context(), p, io.MultiReader(bytes.NewReader([]byte("half")), errorReader{broken})); !errors.Is(err,
		broken) {
		t.Errorf("a source that breaks: %v", err)
	}
	half := sha256.Sum256([]byte("half"))
	_, err := s.Blobs.Stat(t.Context(), p, hex.EncodeToString(half[:]))
	wantCode(t, "half a blob", err, fault.NotFound)
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func testAccounts(t *testing.T, s store.Stores) {
	p := tenant(t)
	system := identity.System("")
	wantCode(t, "a workspace made by a user", s.Workspaces.Create(t.Context(), p, identity.Workspace{ID: p.Workspace}), fault.Forbidden)
	wantCode(t, "a bad id", s.Workspaces.Create(t.Context(), system, identity.Workspace{ID: "../x"}), fault.Invalid)
	u := identity.User{ID: "ann", Name: "Ann", Email: "ann@example.com", Roles: []identity.Role{identity.Admin, identity.Viewer},
		Settings: []byte(`{"a":1}`), Created: 1, Updated: 1}
	wantCode(t, "a user of no workspace", s.Users.Create(t.Context(), p, u), fault.NotFound)
	w := identity.Workspace{ID: p.Workspace, Name: "W", Created: 5}
	ok(t, s.Workspaces.Create(t.Context(), system, w))
	wantCode(t, "twice", s.Workspaces.Create(t.Context(), system, w), fault.Conflict)
	equal(t, "own workspace", w, must[identity.Workspace](t)(s.Workspaces.Get(t.Context(), p, p.Workspace)))
	equal(t, "own workspaces", []identity.Workspace{w}, must[[]identity.Workspace](t)(s.Workspaces.List(t.Context(), p)))
	testWorkspaces(t, s, p, w)
	ok(t, s.Users.Create(t.Context(), p, u))
	wantCode(t, "user twice", s.Users.Create(t.Context(), p, u), fault.Conflict)
	wantCode(t, "unknown role", s.Users.Create(t.Context(), p, identity.User{ID: "bob", Roles: []identity.Role{"king"}}), fault.Invalid)
	u.Workspace = p.Workspace
	equal(t, "user", u, must[identity.User](t)(s.Users.Get(t.Context(), p, "ann")))
	u.AutoExecute = true
	ok(t, s.Users.Update(t.Context(), p, u))
	equal(t, "user who lets calls run", u, must[identity.User](t)(s.Users.Get(t.Context(), p, "ann")))
	secret := identity.NewSecret()
	token := identity.Token{ID: "t1", User: "ann", Name: "laptop", MadeBy: "boss", Created: 10, Expires: 100}
	ok(t, s.Tokens.Create(t.Context(), p, token, identity.HashSecret(secret)))
	wantCode(t, "token twice", s.Tokens.Create(t.Context(), p, token, identity.HashSecret("other")), fault.Conflict)
	wantCode(t, "hash twice", s.Tokens.Create(t.Context(), p, identity.Token{ID: "t2", User: "ann"}, identity.HashSecret(secret)), fault.Conflict)
	wantCode(t, "token of nobody", s.Tokens.Create(t.Context(), p, identity.Token{ID: "t3", User: "bob"}, identity.HashSecret("x")), fault.NotFound)
	token.Workspace = p.Workspace
	resolve := func(secret string, now int64) error {
		got, user, err := s.Tokens.Resolve(t.Context(), system, identity.HashSecret(secret), now)
		if err == nil {
			equal(t, "resolved token", token, got)
			equal(t, "resolved user", "ann", user.Principal().User)
			equal(t, "resolved workspace", p.Workspace, user.Principal().Workspace)
		}
		return err
	}
	ok(t, resolve(secret, 99))
	wantCode(t, "expired", resolve(secret, 100), fault.NotFound)
	wantCode(t, "wrong secret", resolve(secret+"x", 50), fault.NotFound)
	_, _, err := s.Tokens.Resolve(t.Context(), p, identity.HashSecret(secret), 50)
	wantCode(t, "resolved by a user", err, fault.Forbidden)
	u.Disabled, u.Name, u.Updated = true, "Ann B.", 2
	ok(t, s.Users.Update(t.Context(), p, u))
	wantCode(t, "disabled", resolve(secret, 50), fault.NotFound)
	equal(t, "updated", []identity.User{u}, must[[]identity.User](t)(s.Users.List(t.Context(), p)))
	wantCode(t, "unknown updated", s.Users.Update(t.Context(), p, identity.User{ID: "bob"}), fault.NotFound)
	equal(t, "tokens", []identity.Token{token}, must[[]identity.Token](t)(s.Tokens.List(t.Context(), p, "ann")))
	equal(t, "tokens of all", 1, len(must[[]identity.Token](t)(s.Tokens.List(t.Context(), p, ""))))
	equal(t, "tokens of another", 0, len(must[[]identity.Token](t)(s.Tokens.List(t.Context(), p, "bob"))))
	ok(t, s.Tokens.Delete(t.Context(), p, "t1"))
	wantCode(t, "token deleted twice", s.Tokens.Delete(t.Context(), p, "t1"), fault.NotFound)
	ok(t, s.Tokens.Create(t.Context(), p, token, identity.HashSecret(secret)))
	ok(t, s.Users.Delete(t.Context(), p, "ann"))
	wantCode(t, "token of a deleted user", resolve(secret, 50), fault.NotFound)
	equal(t, "tokens at the end", 0, len(must[[]identity.Token](t)(s.Tokens.List(t.Context(), p, ""))))
	wantCode(t, "user deleted twice", s.Users.Delete(t.Context(), p, "ann"), fault.NotFound)
}

func testCredentials(t *testing.T, s store.Stores) {
	p := tenant(t)
	c := store.Credential{ID: "c1", Name: "mail", Type: "smtp", Sealed: []byte{0, 1, 2}, CreatedBy: "ann",
		TokenMadeBy: "boss", Created: 1, Updated: 1}
	ok(t, s.Credentials.Create(t.Context(), p, c))
	wantCode(t, "same id", s.Credentials.Create(t.Context(), p, store.Credential{ID: "c1", Name: "x"}), fault.Conflict)
	wantCode(t, "same name", s.Credentials.Create(t.Context(), p, store.Credential{ID: "c2", Name: "mail"}), fault.Conflict)
	ok(t, s.Credentials.Create(t.Context(), p, store.Credential{ID: "c0", Name: "zzz", Sealed: []byte("s")}))
	c.Workspace, c.Version = p.Workspace, 1
	equal(t, "got", c, must[store.Credential](t)(s.Credentials.Get(t.Context(), p, "c1")))
	c.Name, c.Sealed, c.Updated, c.Problem = "post", []byte("new"), 2, "authorize it again"
	ok(t, s.Credentials.Update(t.Context(), p, c))
	c.Version = 2
	equal(t, "updated", c, must[store.Credential](t)(s.Credentials.Get(t.Context(), p, "c1")))
	c.Name = "zzz"
	wantCode(t, "another's name", s.Credentials.Update(t.Context(), p, c), fault.Conflict)
	wantCode(t, "unknown", s.Credentials.Update(t.Context(), p, store.Credential{ID: "c9", Name: "n"}), fault.NotFound)
	all := must[[]store.Credential](t)(s.Credentials.List(t.Context(), p))
	equal(t, "list", []string{"post", "zzz"}, []string{all[0].Name, all[1].Name})
	equal(t, "secrets in a list", 0, len(all[0].Sealed)+len(all[1].Sealed))
	every := must[[]store.Credential](t)(s.Credentials.List(t.Context(), identity.System("")))
	equal(t, "in the list of all workspaces", 2, len(slices.DeleteFunc(every,
		func(c store.Credential) bool { return c.Workspace != p.Workspace })))
	equal(t, "problem in a list", "authorize it again", all[0].Problem)
	ok(t, s.Credentials.Delete(t.Context(), p, "c1"))
	wantCode(t, "deleted twice", s.Credentials.Delete(t.Context(), p, "c1"), fault.NotFound)
}

func testCredentialNames(t *testing.T, s store.Stores) {
	p := tenant(t)
	for _, c := range []store.Credential{{ID: "c1", Name: "mail", Sealed: []byte("1")}, {ID: "c2", Name: "hook", Sealed: []byte("2")}} {
		ok(t, s.Credentials.Create(t.Context(), p, c))
	}
	for name, id := range map[string]string{"c1": "c1", "mail": "c1", "c2": "c2", "hook": "c2"} {
		found := must[store.Credential](t)(s.Credentials.Find(t.Context(), p, name))
		equal(t, "found by "+name, id+id[1:], found.ID+string(found.Sealed))
	}
	for _, name := range []string{"Mail", "", "c", "c9"} {
		_, err := s.Credentials.Find(t.Context(), p, name)
		wantCode(t, "found by "+name, err, fault.NotFound)
	}
	// The id of one is not the name of another.
	wantCode(t, "an id as a name", s.Credentials.Create(t.Context(), p, store.Credential{ID: "c3", Name: "c1"}), fault.Conflict)
	wantCode(t, "an id as a new name", s.Credentials.Update(t.Context(), p, store.Credential{ID: "c2", Name: "c1"}), fault.Conflict)
	ok(t, s.Credentials.Update(t.Context(), p, store.Credential{ID: "c2", Name: "c2", Sealed: []byte("2")}))
}

func testCredentialRenewal(t *testing.T, s store.Stores) {
	p := tenant(t)
	ok(t, s.Credentials.Create(t.Context(), p, store.Credential{ID: "c1", Name: "mail", Type: "oauth2", Sealed: []byte("1"), Updated: 1}))
	read := must[store.Credential](t)(s.Credentials.Get(t.Context(), p, "c1"))
	first, second := read, read
	first.Sealed, first.Problem, first.Updated, first.Name = []byte("2"), "refused", 2, "not taken"
	ok(t, s.Credentials.Swap(t.Context(), p, first))
	second.Sealed = []byte("3")
	wantCode(t, "swapped after a change", s.Credentials.Swap(t.Context(), p, second), fault.Conflict)
	wantCode(t, "swapped an unknown one", s.Credentials.Swap(t.Context(), p, store.Credential{ID: "c9"}), fault.NotFound)
	now := must[store.Credential](t)(s.Credentials.Get(t.Context(), p, "c1"))
	equal(t, "swapped", "mail 2 refused", now.Name+" "+string(now.Sealed)+" "+now.Problem)
	equal(t, "updated", int64(2), now.Updated)

	lease := func(what string, want bool, holder string, at, until int64) {
		t.Helper()
		equal(t, what, want, must[bool](t)(s.Credentials.Lease(t.Context(), p, "c1", holder, at, until)))
	}
	lease("the first", true, "a", 100, 200)
	lease("another's while it lasts", false, "b", 150, 250)
	lease("the same again", true, "a", 150, 300)
	lease("another gives it back", false, "b", 150, 0)
	lease("another's still", false, "b", 299, 400)
	lease("another's when it has ended", true, "b", 300, 400)
	lease("given back", false, "b", 310, 0)
	lease("another's when it was given back", true, "a", 311, 400)
	equal(t, "a lease is not a change", now.Version, must[store.Credential](t)(s.Credentials.Get(t.Context(), p, "c1")).Version)
	ok(t, s.Credentials.Update(t.Context(), p, now))
	lease("another's after a change", true, "b", 312, 400)
	_, err := s.Credentials.Lease(t.Context(), p, "c9", "a", 1, 2)
	wantCode(t, "a lease of an unknown one", err, fault.NotFound)
	_, err = s.Credentials.Lease(t.Context(), p, "c1", "", 1, 2)
	wantCode(t, "a lease of nobody", err, fault.Invalid)
}
