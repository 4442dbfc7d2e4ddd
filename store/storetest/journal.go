package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

func testAppend(t *testing.T, s store.Stores) {
	p := tenant(t)
	equal(t, "rows of an unknown execution", []string(nil), rows(t, s, p, "e1", 0))
	started(t, s, p, "e1")
	mustAppend(t, s, p, next("e1", 1))
	empty := next("e1", 2)
	empty.Body = nil
	mustAppend(t, s, p, empty)
	equal(t, "rows", []string{"1@1000:row 1", "2@1001:row 2", "3@1002:"}, rows(t, s, p, "e1", 0))
	equal(t, "rows after 2", []string{"3@1002:"}, rows(t, s, p, "e1", 2))
	equal(t, "rows after the end", []string(nil), rows(t, s, p, "e1", 3))
	// The owner's system principal sees the same.
	equal(t, "rows for the system", 3, len(rows(t, s, identity.System(p.Workspace), "e1", 0)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Journal.Append(ended, p, next("e1", 3)); !errors.Is(err, context.Canceled) {
		t.Errorf("append with an ended context: %v", err)
	}
	for _, err := range s.Journal.Rows(ended, p, "e1", 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("rows with an ended context: %v", err)
		}
	}
	equal(t, "rows after a refused append", 3, len(rows(t, s, p, "e1", 0)))
	if err := s.Journal.Append(t.Context(), p, next("e1", 3), next("e1", 4), next("e1", 5)); err != nil {
		t.Fatal(err)
	}
	equal(t, "after three rows together", 6, len(rows(t, s, p, "e1", 0)))
	// The journal has moved on, so none of these is written.
	if err := s.Journal.Append(t.Context(), p, next("e1", 5), next("e1", 6)); !isConflict(err) {
		t.Errorf("rows at the wrong place: %v", err)
	}
	wantCode(t, "a gap between rows", s.Journal.Append(t.Context(), p, next("e1", 6), next("e1", 8)), fault.Invalid)
	wantCode(t, "rows of two executions", s.Journal.Append(t.Context(), p, next("e1", 6), next("e2", 7)), fault.Invalid)
	wantCode(t, "no rows", s.Journal.Append(t.Context(), p), fault.Invalid)
	equal(t, "after the refusals", 6, len(rows(t, s, p, "e1", 0)))
}

func testLongJournal(t *testing.T, s store.Stores) {
	p := tenant(t)
	started(t, s, p, "long")
	const n = 300
	for i := range uint64(n - 1) {
		mustAppend(t, s, p, next("long", i+1))
	}
	// The loop writes: readers hold nothing that a writer, or they themselves, would need.
	var want uint64
	for r, err := range s.Journal.Rows(t.Context(), p, "long", 0) {
		ok(t, err)
		want++
		if r.Seq != want {
			t.Fatalf("row %d has seq %d", want, r.Seq)
		}
		if want%100 == 0 {
			mustAppend(t, s, p, next("long", n+want/100-1))
			for range s.Journal.Rows(t.Context(), p, "long", n) {
				break // leaving early is fine
			}
		}
	}
	if want < n {
		t.Errorf("read %d rows of %d", want, n)
	}
}

func testAppendChecks(t *testing.T, s store.Stores) {
	p := tenant(t)
	wantCode(t, "no execution", s.Journal.Append(t.Context(), p, &store.Append{After: 1}), fault.Invalid)
	wantCode(t, "first row without a summary", s.Journal.Append(t.Context(), p, &store.Append{Execution: "e"}), fault.Invalid)
	a := first("e")
	a.After = 3
	wantCode(t, "a summary later", s.Journal.Append(t.Context(), p, a), fault.Invalid)
	a = first("e")
	a.Create.ID = "other"
	wantCode(t, "another's summary", s.Journal.Append(t.Context(), p, a), fault.Invalid)
	a = next("e", 1)
	a.Key = &store.IdempotencyKey{Key: "k"}
	wantCode(t, "a key later", s.Journal.Append(t.Context(), p, a), fault.Invalid)
	a = first("e")
	a.Snapshot = &store.Snapshot{Seq: 2}
	wantCode(t, "a snapshot of the future", s.Journal.Append(t.Context(), p, a), fault.Invalid)
	wantCode(t, "an unknown execution", s.Journal.Append(t.Context(), p, next("e", 1)), fault.NotFound)
	equal(t, "rows", 0, len(rows(t, s, p, "e", 0)))
}

func testConflict(t *testing.T, s store.Stores) {
	p := tenant(t)
	started(t, s, p, "e1")
	mustAppend(t, s, p, next("e1", 1))
	id, _, err := s.Inbox.Deliver(t.Context(), p, store.InboxItem{Execution: "e1", Kind: "signal"})
	ok(t, err)
	for _, after := range []uint64{1, 3, 99} {
		a := next("e1", after)
		a.SetTimers = []store.Timer{{ID: "t", Until: 5}}
		a.TakeInbox = []int64{id}
		a.Snapshot = &store.Snapshot{Seq: 1, Body: []byte("s")}
		err := s.Journal.Append(t.Context(), p, a)
		if !isConflict(err) {
			t.Errorf("append after %d: %v, want a conflict", after, err)
		}
	}
	if err := s.Journal.Append(t.Context(), p, first("e1")); !isConflict(err) {
		t.Errorf("second start: %v, want a conflict", err)
	}
	equal(t, "rows", 2, len(rows(t, s, p, "e1", 0)))
	equal(t, "pending", 1, len(must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, "e1"))))
	equal(t, "timers", 0, len(must[[]store.Timer](t)(s.Timers.Upcoming(t.Context(), p, store.Timer{}, 10))))
	if _, found, err := s.Journal.LastSnapshot(t.Context(), p, "e1"); found || err != nil {
		t.Errorf("snapshot: found %v, error %v", found, err)
	}
	mustAppend(t, s, p, next("e1", 2))
}

func testRace(t *testing.T, s store.Stores) {
	p := tenant(t)
	started(t, s, p, "e1")
	const rivals, rounds = 8, 10
	for round := range uint64(rounds) {
		var wg sync.WaitGroup
		errs := make([]error, rivals)
		for i := range rivals {
			wg.Go(func() { errs[i] = s.Journal.Append(t.Context(), p, next("e1", round+1)) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !isConflict(err):
				t.Errorf("round %d: %v", round, err)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d of %d won", round, won, rivals)
		}
	}
	equal(t, "rows", rounds+1, len(rows(t, s, p, "e1", 0)))
}

func testConcurrency(t *testing.T, s store.Stores) {
	tenants := []identity.Principal{tenant(t), tenant(t)}
	const writers, steps = 30, 12
	var wg sync.WaitGroup
	for i := range writers {
		p, id := tenants[i%2], fmt.Sprintf("e%d", i/2) // both tenants have the same ids
		wg.Go(func() {
			if err := s.Journal.Append(t.Context(), p, first(id)); err != nil {
				t.Error(err)
				return
			}
			for after := range uint64(steps) {
				a := next(id, after+1)
				a.Body = fmt.Appendf(nil, "%s/%s/%d", p.Workspace, id, after+2)
				a.SetTimers = []store.Timer{{ID: "t", Until: int64(after)}}
				if err := s.Journal.Append(t.Context(), p, a); err != nil {
					t.Error(err)
					return
				}
				item := store.InboxItem{Execution: id, Dedup: fmt.Sprint(after / 2), Kind: "k"}
				if _, _, err := s.Inbox.Deliver(t.Context(), p, item); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range writers {
		p, id := tenants[i%2], fmt.Sprintf("e%d", i/2)
		want := []string{"1@1000:row 1"}
		for after := range uint64(steps) {
			want = append(want, fmt.Sprintf("%d@%d:%s/%s/%d", after+2, 1001+after, p.Workspace, id, after+2))
		}
		equal(t, id, want, rows(t, s, p, id, 0))
		equal(t, id+" pending", steps/2, len(must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, id))))
	}
	for _, p := range tenants {
		all := must[[]store.Timer](t)(s.Timers.Upcoming(t.Context(), p, store.Timer{}, 100))
		equal(t, "timers", writers/2, len(all))
		equal(t, "pending executions", writers/2, len(must[[]store.Ref](t)(s.Inbox.PendingExecutions(t.Context(), p))))
	}
}

func testConflictIsolation(t *testing.T, s store.Stores) {
	p := tenant(t)
	const n = 40
	for i := range n {
		started(t, s, p, fmt.Sprintf("e%d", i))
	}
	// Every other append is wrong. All are under way together, so that they share transactions where a driver groups.
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			a := next(fmt.Sprintf("e%d", i), 1)
			if i%2 == 1 {
				a.After = 7
			}
			errs[i] = s.Journal.Append(t.Context(), p, a)
		})
	}
	wg.Wait()
	for i, err := range errs {
		wrong := i%2 == 1
		if wrong != isConflict(err) || !wrong && err != nil {
			t.Errorf("append %d: %v", i, err)
		}
		want := 2
		if wrong {
			want = 1
		}
		equal(t, fmt.Sprintf("rows of e%d", i), want, len(rows(t, s, p, fmt.Sprintf("e%d", i), 0)))
	}
}

func testSnapshot(t *testing.T, s store.Stores) {
	p := tenant(t)
	a := first("e1")
	a.Snapshot = &store.Snapshot{Seq: 1, Body: []byte("one")}
	mustAppend(t, s, p, a)
	a = next("e1", 1)
	a.Snapshot = &store.Snapshot{Seq: 2, Body: []byte("two, which is longer")}
	mustAppend(t, s, p, a)
	mustAppend(t, s, p, next("e1", 2))
	got, found, err := s.Journal.LastSnapshot(t.Context(), p, "e1")
	ok(t, err)
	equal(t, "found", true, found)
	equal(t, "snapshot", store.Snapshot{Seq: 2, Body: []byte("two, which is longer")}, got)
	equal(t, "tail", []string{"3@1002:row 3"}, rows(t, s, p, "e1", got.Seq))
	if _, found, err := s.Journal.LastSnapshot(t.Context(), p, "unknown"); found || err != nil {
		t.Errorf("snapshot of an unknown execution: found %v, error %v", found, err)
	}
}

func testInbox(t *testing.T, s store.Stores) {
	p := tenant(t)
	wantErr := func(err error) { t.Helper(); wantCode(t, "deliver to nobody", err, fault.NotFound) }
	_, _, err := s.Inbox.Deliver(t.Context(), p, store.InboxItem{Execution: "e1"})
	wantErr(err)
	started(t, s, p, "e1")
	started(t, s, p, "e2")
	var ids []int64
	for i, kind := range []string{"signal", "answer", "pause"} {
		id, dup, err := s.Inbox.Deliver(t.Context(), p, store.InboxItem{Execution: "e1", Kind: kind, Time: int64(i), Body: []byte(kind + " body")})
		ok(t, err)
		equal(t, "duplicate", false, dup)
		ids = append(ids, id)
	}
	pending := must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, "e1"))
	equal(t, "pending", []store.InboxItem{
		{ID: ids[0], Execution: "e1", Kind: "signal", Time: 0, Body: []byte("signal body")},
		{ID: ids[1], Execution: "e1", Kind: "answer", Time: 1, Body: []byte("answer body")},
		{ID: ids[2], Execution: "e1", Kind: "pause", Time: 2, Body: []byte("pause body")},
	}, pending)
	// Another execution cannot take them.
	a := next("e2", 1)
	a.TakeInbox = ids
	mustAppend(t, s, p, a)
	equal(t, "pending after another took", 3, len(must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, "e1"))))
	a = next("e1", 1)
	a.TakeInbox = []int64{ids[1], ids[0], 1 << 60}
	mustAppend(t, s, p, a)
	pending = must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, "e1"))
	equal(t, "pending after taking", []int64{ids[2]}, []int64{pending[0].ID})
	equal(t, "executions", []store.Ref{{Workspace: p.Workspace, Execution: "e1"}}, must[[]store.Ref](t)(s.Inbox.PendingExecutions(t.Context(), p)))
	a = next("e1", 2)
	a.TakeInbox = []int64{ids[2]}
	mustAppend(t, s, p, a)
	equal(t, "executions at the end", 0, len(must[[]store.Ref](t)(s.Inbox.PendingExecutions(t.Context(), p))))
}

// An item for another execution commits with the row that sends it, or not at all.
func testDeliverWithARow(t *testing.T, s store.Stores) {
	p, other := tenant(t), tenant(t)
	started(t, s, p, "child")
	started(t, s, p, "parent")
	started(t, s, other, "parent")
	item := store.InboxItem{Execution: "parent", Dedup: "ended", Kind: "child_finished", Time: 7, Body: []byte("how")}
	a := next("child", 5) // the journal is at 1
	a.Deliver = []store.InboxItem{item}
	wantCode(t, "append out of turn", s.Journal.Append(t.Context(), p, a), fault.Conflict)
	equal(t, "pending after a refused append", 0, len(must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, "parent"))))
	a = next("child", 1)
	a.Deliver = []store.InboxItem{item, item, {Execution: "nobody", Kind: "k"}}
	mustAppend(t, s, p, a)
	pending := must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, "parent"))
	equal(t, "items", 1, len(pending))
	equal(t, "body", "how", string(pending[0].Body))
	equal(t, "dedup", "ended", pending[0].Dedup)
	equal(t, "pending of another workspace", 0, len(must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), other, "parent"))))
}

func testDedup(t *testing.T, s store.Stores) {
	p, other := tenant(t), tenant(t)
	started(t, s, p, "e1")
	started(t, s, p, "e2")
	started(t, s, other, "e1")
	deliver := func(p identity.Principal, execution, body string) (int64, bool) {
		t.Helper()
		id, dup, err := s.Inbox.Deliver(t.Context(), p, store.InboxItem{Execution: execution, Dedup: "d", Kind: "k", Body: []byte(body)})
		ok(t, err)
		return id, dup
	}
	id, dup := deliver(p, "e1", "first")
	equal(t, "duplicate", false, dup)
	again, dup := deliver(p, "e1", "second")
	equal(t, "duplicate", true, dup)
	equal(t, "id", id, again)
	// Dedup ids are each execution's own.
	for _, c := range []struct {
		p  identity.Principal
		id string
	}{{p, "e2"}, {other, "e1"}} {
		if _, dup := deliver(c.p, c.id, "x"); dup {
			t.Errorf("an item of another execution counts as a duplicate")
		}
	}
	pending := must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, "e1"))
	equal(t, "pending", []store.InboxItem{{ID: id, Execution: "e1", Dedup: "d", Kind: "k", Body: []byte("first")}}, pending)
	a := next("e1", 1)
	a.TakeInbox = []int64{id}
	mustAppend(t, s, p, a)
	again, dup = deliver(p, "e1", "third")
	equal(t, "duplicate after it was taken", true, dup)
	equal(t, "id after it was taken", id, again)
	equal(t, "pending at the end", 0, len(must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), p, "e1"))))
	var wg sync.WaitGroup
	fresh := make([]bool, 10)
	for i := range fresh {
		wg.Go(func() {
			_, dup, err := s.Inbox.Deliver(t.Context(), p, store.InboxItem{Execution: "e2", Dedup: "race", Kind: "k"})
			if err != nil {
				t.Error(err)
			}
			fresh[i] = !dup
		})
	}
	wg.Wait()
	n := 0
	for _, f := range fresh {
		if f {
			n++
		}
	}
	equal(t, "how many of ten equal items were new", 1, n)
}

func testTimers(t *testing.T, s store.Stores) {
	p, other := tenant(t), tenant(t)
	var want []store.Timer
	for _, id := range []string{"b", "a", "C"} {
		a := first(id)
		for i, until := range []int64{30, -5, 10, 10, 0} {
			a.SetTimers = append(a.SetTimers, store.Timer{ID: fmt.Sprintf("t%d", i), Until: until})
			want = append(want, store.Timer{Workspace: p.Workspace, Execution: id, ID: fmt.Sprintf("t%d", i), Until: until})
		}
		mustAppend(t, s, p, a)
	}
	started(t, s, other, "a", func(a *store.Append) { a.SetTimers = []store.Timer{{ID: "t", Until: 10}} })
	slices.SortFunc(want, func(a, b store.Timer) int {
		return slices.Compare([]string{fmt.Sprintf("%05d", a.Until+100), a.Execution, a.ID},
			[]string{fmt.Sprintf("%05d", b.Until+100), b.Execution, b.ID})
	})
	for _, size := range []int{1, 2, 4, 100} {
		var got []store.Timer
		var after store.Timer
		for {
			page := must[[]store.Timer](t)(s.Timers.Upcoming(t.Context(), p, after, size))
			if len(page) == 0 {
				break
			}
			if len(page) > size {
				t.Fatalf("%d timers on a page of %d", len(page), size)
			}
			got = append(got, page...)
			after = page[len(page)-1]
		}
		equal(t, fmt.Sprintf("pages of %d", size), want, got)
	}
	// Tandem itself sees those of both, page by page, in the same order.
	var all []store.Timer
	var after store.Timer
	for {
		page := must[[]store.Timer](t)(s.Timers.Upcoming(t.Context(), identity.System(""), after, 5))
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1]
		for _, x := range page {
			if x.Workspace == p.Workspace || x.Workspace == other.Workspace {
				all = append(all, x)
			}
		}
	}
	equal(t, "timers of both", len(want)+1, len(all))
	if !slices.IsSortedFunc(all, func(a, b store.Timer) int {
		return slices.Compare([]string{fmt.Sprintf("%05d", a.Until+100), a.Workspace, a.Execution, a.ID},
			[]string{fmt.Sprintf("%05d", b.Until+100), b.Workspace, b.Execution, b.ID})
	}) {
		t.Errorf("the timers of all workspaces are out of order: %v", all)
	}
	equal(t, "limit 0", 0, len(must[[]store.Timer](t)(s.Timers.Upcoming(t.Context(), p, store.Timer{}, 0))))
	own := slices.DeleteFunc(slices.Clone(want), func(x store.Timer) bool { return x.Execution != "a" })
	equal(t, "timers of one execution", own, must[[]store.Timer](t)(s.Timers.Of(t.Context(), p, "a")))
	equal(t, "timers of none", 0, len(must[[]store.Timer](t)(s.Timers.Of(t.Context(), p, "missing"))))
}

func testTimerChanges(t *testing.T, s store.Stores) {
	p := tenant(t)
	list := func() (all []string) {
		for _, x := range must[[]store.Timer](t)(s.Timers.Upcoming(t.Context(), p, store.Timer{}, 100)) {
			all = append(all, fmt.Sprintf("%s/%s@%d", x.Execution, x.ID, x.Until))
		}
		return all
	}
	set := func(timers ...store.Timer) func(*store.Append) {
		return func(a *store.Append) { a.SetTimers = timers }
	}
	// The fields that say whose a timer is are not looked at.
	started(t, s, p, "e1", set(store.Timer{Workspace: "elsewhere", Execution: "other", ID: "a", Until: 10}, store.Timer{ID: "b", Until: 20}))
	started(t, s, p, "e2", set(store.Timer{ID: "a", Until: 15}))
	equal(t, "set", []string{"e1/a@10", "e2/a@15", "e1/b@20"}, list())
	a := next("e1", 1)
	a.ClearTimers = []string{"a", "unknown"}
	a.SetTimers = []store.Timer{{ID: "b", Until: 5}}
	mustAppend(t, s, p, a)
	equal(t, "moved and cleared", []string{"e1/b@5", "e2/a@15"}, list())
	a = next("e1", 2)
	a.ClearTimers = []string{"b"}
	a.SetTimers = []store.Timer{{ID: "b", Until: 50}}
	mustAppend(t, s, p, a)
	equal(t, "cleared, then set", []string{"e2/a@15", "e1/b@50"}, list())
	mustAppend(t, s, p, func() *store.Append {
		a := first("cleared")
		a.SetTimers = []store.Timer{{ID: "one", Until: 1}, {ID: "two", Until: 2}}
		return a
	}())
	if err := s.Timers.Clear(t.Context(), p, "cleared", "one", "not there"); err != nil {
		t.Fatal(err)
	}
	if left := list(); !slices.Contains(left, "cleared/two@2") || slices.Contains(left, "cleared/one@1") {
		t.Errorf("after clearing: %v", left)
	}
	if err := s.Timers.Clear(t.Context(), p, "unknown", "one"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("clearing timers of an unknown execution: %v", err)
	}
}

func testJournalIsolation(t *testing.T, s store.Stores) {
	a, b := tenant(t), tenant(t)
	started(t, s, a, "e1", func(x *store.Append) {
		x.Snapshot = &store.Snapshot{Seq: 1, Body: []byte("secret")}
		x.SetTimers = []store.Timer{{ID: "t", Until: 1}}
	})
	id, _, err := s.Inbox.Deliver(t.Context(), a, store.InboxItem{Execution: "e1", Dedup: "d", Kind: "k", Body: []byte("secret")})
	ok(t, err)
	wantCode(t, "append to another's", s.Journal.Append(t.Context(), b, next("e1", 1)), fault.NotFound)
	_, _, err = s.Inbox.Deliver(t.Context(), b, store.InboxItem{Execution: "e1", Dedup: "d"})
	wantCode(t, "deliver to another's", err, fault.NotFound)
	equal(t, "rows", 0, len(rows(t, s, b, "e1", 0)))
	equal(t, "pending", 0, len(must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), b, "e1"))))
	equal(t, "executions", 0, len(must[[]store.Ref](t)(s.Inbox.PendingExecutions(t.Context(), b))))
	equal(t, "timers", 0, len(must[[]store.Timer](t)(s.Timers.Upcoming(t.Context(), b, store.Timer{}, 10))))
	if _, found, err := s.Journal.LastSnapshot(t.Context(), b, "e1"); found || err != nil {
		t.Errorf("snapshot: found %v, error %v", found, err)
	}
	// The same id in the other workspace is another execution; it cannot reach what belongs to the first.
	started(t, s, b, "e1")
	x := next("e1", 1)
	x.ClearTimers, x.TakeInbox = []string{"t"}, []int64{id}
	x.Snapshot = &store.Snapshot{Seq: 2, Body: []byte("other")}
	mustAppend(t, s, b, x)
	equal(t, "rows of a", 1, len(rows(t, s, a, "e1", 0)))
	equal(t, "rows of b", 2, len(rows(t, s, b, "e1", 0)))
	equal(t, "pending of a", 1, len(must[[]store.InboxItem](t)(s.Inbox.Pending(t.Context(), a, "e1"))))
	equal(t, "timers of a", 1, len(must[[]store.Timer](t)(s.Timers.Upcoming(t.Context(), a, store.Timer{}, 10))))
	snap, _, err := s.Journal.LastSnapshot(t.Context(), a, "e1")
	ok(t, err)
	equal(t, "snapshot of a", "secret", string(snap.Body))
	mustAppend(t, s, a, next("e1", 1))
	// A principal without a workspace may not even ask.
	var nobody identity.Principal
	wantCode(t, "append for nobody", s.Journal.Append(t.Context(), nobody, next("e1", 2)), fault.Forbidden)
	wantCode(t, "append for the system without a workspace", s.Journal.Append(t.Context(), identity.System(""), next("e1", 2)), fault.Forbidden)
	_, err = s.Timers.Upcoming(t.Context(), nobody, store.Timer{}, 10)
	wantCode(t, "timers for nobody", err, fault.Forbidden)
	_, err = s.Inbox.PendingExecutions(t.Context(), nobody)
	wantCode(t, "pending executions for nobody", err, fault.Forbidden)
	for _, err := range s.Journal.Rows(t.Context(), nobody, "e1", 0) {
		wantCode(t, "rows for nobody", err, fault.Forbidden)
	}
}
