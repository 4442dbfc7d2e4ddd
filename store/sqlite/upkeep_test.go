package sqlite_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/sqlitetest"
)

// life is what an execution leaves in the store: everything that hosts, people, triggers and models write for one.
type life struct {
	s    store.Stores
	p    identity.Principal
	id   string
	at   time.Time
	mark string // stands in everything that came in or out
	// parent is the execution that started it, and forkedFrom the one whose past it shares.
	parent, forkedFrom string
	rows               int
	// others are called between its rows, so that pages of the database are shared.
	others func()
	// blobs are the large values that it names.
	blobs []string
}

func (l *life) value(size int) []byte {
	return fmt.Appendf(nil, `{"said":%q,"fill":%q}`, l.mark, strings.Repeat(l.mark+" ", size/(len(l.mark)+1)))
}

// lead lets it happen, up to its end.
func (l *life) lead(t testing.TB) {
	t.Helper()
	ctx, at := t.Context(), l.at.UnixMilli()
	put := func(value []byte) string {
		blob, err := l.s.Blobs.Put(ctx, l.p, bytes.NewReader(value))
		check(t, err)
		l.blobs = append(l.blobs, blob.Hash)
		return blob.Hash
	}
	file := put([]byte("a file of " + l.mark))
	inParts := put(fmt.Appendf(nil, `{"large":%q,"rest":{"mark":%q}}`, strings.Repeat(l.mark, 40<<10/len(l.mark)), l.mark))
	inside := put(fmt.Appendf(nil, `{"file":{"blob":%q},"fill":[%s]}`, put([]byte("named by a value "+l.mark)), strings.Repeat(`"`+l.mark+`",`, 10)+`1`))
	first := &store.Append{Execution: l.id, Time: at, Body: l.value(300), Key: &store.IdempotencyKey{Key: "key " + l.mark + l.id, RequestHash: "h"},
		Create:     &store.Execution{ID: l.id, WorkflowID: "w", WorkflowName: "w", Status: engine.StatusRunning, Priority: 3, User: "ann", Parent: l.parent, ForkedFrom: l.forkedFrom, Created: at},
		SetTimers:  []store.Timer{{ID: "t", Until: at + 1000}},
		OpenLedger: []store.LedgerEntry{{ID: l.id + "/call", Execution: l.id, Workflow: "w", Profile: "m", Day: l.at.UTC().Format(time.DateOnly), Tokens: 100, Cost: 7}},
		Ask:        []store.Interaction{{ID: "q-" + l.id, Root: l.id, Status: store.InteractionPending, Purpose: "human_node", Approvers: []string{"user:ann", "role:approver"}, Request: l.value(100), Created: at, Updated: at}}}
	if l.parent == "" && l.forkedFrom == "" {
		first.Arrival = &store.Arrival{Delivery: store.TriggerDelivery{ID: "dlv-" + l.id, WorkflowID: "w", Node: "hook", Kind: "TRIGGER.WEBHOOK", Key: "k-" + l.id, Received: at, Payload: fmt.Appendf(nil, `{"body":%q,"file":%q}`, l.mark, file)}}
	}
	audited := store.Audited(ctx, store.AuditEntry{Workspace: l.p.Workspace, Time: at, User: "ann", Action: "execution.start", Object: "execution", ObjectID: l.id})
	check(t, l.s.Journal.Append(audited, l.p, first))
	if l.others != nil {
		l.others()
	}
	for n := 1; n < l.rows; n++ {
		a := &store.Append{Execution: l.id, After: uint64(n), Time: at + int64(n), Body: l.value(100 + 70*(n%5))}
		switch n % 4 {
		case 0:
			a.Snapshot = &store.Snapshot{Seq: uint64(n), Body: l.value(2000 + 900*(n%7))}
		case 1:
			a.Logs = []store.LogLine{{Activation: "a", NodeID: "n", Time: at, Message: "log of " + l.mark, Context: fmt.Appendf(nil, `{"m":%q}`, l.mark)}}
		case 2:
			a.Body = fmt.Appendf(nil, `{"large":{"0":{"hash":%q},"1":{"hash":%q},"2":{"hash":%q}},"m":%q}`, file, inParts, inside, l.mark)
		}
		check(t, l.s.Journal.Append(ctx, l.p, a))
		if l.others != nil {
			l.others()
		}
	}
	l.people(t, at)
	item, _, err := l.s.Inbox.Deliver(ctx, l.p, store.InboxItem{Execution: l.id, Dedup: "d", Kind: "signal", Time: at, Body: l.value(5000)})
	check(t, err)
	if first.Arrival != nil {
		check(t, l.s.Triggers.Answer(ctx, l.p, l.id, "respond", l.value(50)))
	}
	_, err = l.s.Memories.Change(ctx, l.p, store.MemoryChange{Scope: store.MemoryScope{ID: "working-" + l.id, User: "ann", Kind: "working", Execution: l.id}, Time: at, Put: []store.MemoryRecord{{Sort: "s", ID: "1", Body: l.value(50)}}})
	check(t, err)
	_, err = l.s.Memories.Change(ctx, l.p, store.MemoryChange{Scope: store.MemoryScope{ID: "of-ann", User: "ann", Kind: "k"}, Time: at, Mark: l.id + "\x00act\x001", Result: l.value(60), Put: []store.MemoryRecord{{Sort: "s", ID: "1", Body: []byte(`1`)}}})
	check(t, err)
	_, err = l.s.Budgets.Wait(ctx, l.p, store.BudgetWait{Budget: "m/workflow/w", Execution: l.id, Activation: "a", Since: at})
	check(t, err)
	_, err = l.s.Budgets.Raise(ctx, l.p, "raise-"+l.id, store.Raise{Budget: "m/execution/" + l.id, Tokens: 5}, at)
	check(t, err)
	check(t, l.s.Journal.Append(ctx, l.p, &store.Append{Execution: l.id, After: uint64(l.rows), Time: at + 500, Body: l.value(40), ClearTimers: []string{"t"}, TakeInbox: []int64{item},
		Change: &store.Change{Status: engine.StatusError, Started: at, Ended: at + 500, DurationMS: 500, Error: "why: " + l.mark}, SettleLedger: []store.Settlement{{ID: l.id + "/call", Tokens: 60, Cost: 4}}}))
}

// people lets its question be sent, and answered.
func (l *life) people(t testing.TB, at int64) {
	t.Helper()
	ctx := t.Context()
	q, err := l.s.Interactions.Get(ctx, l.p, "q-"+l.id)
	check(t, err)
	q.Updated, q.Progress = at+1, l.value(30)
	check(t, l.s.Interactions.Change(ctx, l.p, store.InteractionChange{Interaction: q,
		Links:      []store.Link{{Hash: identity.HashSecret("link-" + l.id), Interaction: q.ID, Recipient: "mail:ann@" + l.mark, Expires: at + 1e9, Created: at}},
		Deliveries: []store.Delivery{{ID: "msg-" + l.id, Kind: "request", Channel: "email", Recipient: "ann@" + l.mark, Body: l.value(30), Status: store.DeliveryPending, NextAt: at, Created: at}}}))
	d, err := l.s.Interactions.Deliveries(ctx, l.p, q.ID)
	check(t, err)
	d[0].Status, d[0].Receipt = store.DeliverySent, l.value(20)
	check(t, l.s.Interactions.Delivered(ctx, l.p, d[0], nil, []string{"thread-" + l.id}))
	if q, err = l.s.Interactions.Get(ctx, l.p, q.ID); err != nil {
		t.Fatal(err)
	}
	q.Status, q.Response, q.Updated = store.InteractionCompleted, l.value(80), at+2
	check(t, l.s.Interactions.Change(ctx, l.p, store.InteractionChange{Interaction: q,
		Responses: []store.Response{{ID: "r-" + l.id, User: "ann", Channel: "email", Dedup: "m-" + l.id, Raw: "I say " + l.mark, Data: l.value(20), ReceivedAt: at + 2, Accepted: true}},
		Resume:    &store.PauseEnd{Status: store.PauseResumed, Reason: "human_response", Data: l.value(10), Time: at + 2}}))
}

// holding names the files of a directory that have a mark in them, also as base64.
func holding(t testing.TB, dir, mark string) (found []string) {
	t.Helper()
	forms := [][]byte{[]byte(mark)}
	for shift := range 3 {
		coded := base64.StdEncoding.EncodeToString(append(make([]byte, shift), mark...))
		forms = append(forms, []byte(coded[4*((shift+2)/3):len(coded)/4*4-4]))
	}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, form := range forms {
			if at := bytes.Index(raw, form); at >= 0 {
				found = append(found, fmt.Sprintf("%s at %d (page %d): %q", filepath.Base(path), at, at/4096+1, raw[max(0, at-30):min(len(raw), at+40)]))
				break
			}
		}
		return nil
	}))
	return found
}

// aged makes all large values of a directory old enough to be removed.
func aged(t testing.TB, dir string) {
	t.Helper()
	old := time.Now().Add(-48 * time.Hour)
	check(t, filepath.WalkDir(filepath.Join(dir, datadir.BlobDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	}))
}

// sound says what is wrong with a data directory that nobody has open.
func sound(t testing.TB, dir string) {
	t.Helper()
	i, err := datadir.Inspect(t.Context(), dir)
	if err != nil || i.Lost != "" || len(i.Problems) > 0 {
		t.Errorf("the directory is not sound: lost %q, problems %q, %v", i.Lost, i.Problems, err)
	}
}

// TestUpkeep_LeavesNothing removes executions whose inputs, outputs, answers, files, snapshots and messages all have a mark in them, from
// among others whose rows share their pages: afterwards the mark is in no file of the data directory, and the others are as they were.
func TestUpkeep_LeavesNothing(t *testing.T) {
	t.Parallel()
	const mark = "canary5d0b77c1"
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	s, p, system := db.Stores(), ann(), identity.System("")
	dice := rand.New(rand.NewPCG(1, 2))
	noise := 0
	// others writes rows of other executions, long-lived and short-lived ones, so that pages are split in the middle.
	open := []string{}
	others := func() {
		for range 3 {
			if len(open) < 8 {
				id := fmt.Sprintf("other-%04d", noise)
				noise++
				check(t, s.Journal.Append(t.Context(), p, &store.Append{Execution: id, Time: 1, Body: bytes.Repeat([]byte("o"), 50+dice.IntN(1500)), Create: &store.Execution{ID: id, WorkflowID: "w", Status: engine.StatusRunning, Created: 1}}))
				open = append(open, id)
			}
			i := dice.IntN(len(open))
			row, err := s.Executions.Get(t.Context(), p, open[i])
			check(t, err)
			after := uint64(0)
			for r, err := range s.Journal.Rows(t.Context(), p, open[i], 0) {
				check(t, err)
				after = r.Seq
			}
			check(t, s.Journal.Append(t.Context(), p, &store.Append{Execution: row.ID, After: after, Time: 2, Body: bytes.Repeat([]byte("o"), 50+dice.IntN(1500))}))
			if after > 12 {
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	var lives []*life
	for n := range 24 {
		l := &life{s: s, p: p, id: fmt.Sprintf("gone-%d", n), at: time.UnixMilli(1_000_000), mark: mark, rows: 12 + n%9, others: others}
		if n%3 == 2 {
			l.parent = fmt.Sprintf("gone-%d", n-1)
		}
		l.lead(t)
		lives = append(lives, l)
	}
	kept := &life{s: s, p: p, id: "kept", at: time.UnixMilli(1_000_000), mark: "others77", rows: 12, others: others}
	kept.lead(t)
	lengths, err := db.Lengths(t.Context())
	check(t, err)
	if len(holding(t, dir, mark)) < 3 {
		t.Fatal("the mark is hardly anywhere, so that nothing can be told")
	}
	before, err := s.Executions.List(t.Context(), p, store.ExecutionQuery{})
	check(t, err)

	for _, l := range lives {
		if l.parent != "" {
			_, err := s.Upkeep.Remove(t.Context(), p, store.Removal{Execution: l.id, Traces: true})
			if fault.CodeOf(err) != fault.Conflict && fault.CodeOf(err) != fault.NotFound {
				t.Errorf("a child is removed alone: %v", err)
			}
			continue
		}
		audited := store.Audited(t.Context(), store.AuditEntry{Workspace: p.Workspace, User: "ann", Action: "execution.delete", ObjectID: l.id})
		removed, err := s.Upkeep.Remove(audited, p, store.Removal{Execution: l.id, Traces: true, Reason: "execution_removed"})
		if err != nil || removed.Rows < removed.Executions*13 {
			t.Fatalf("%s: %+v, %v", l.id, removed, err)
		}
	}
	aged(t, dir)
	if n, size, err := s.Upkeep.SweepBlobs(t.Context(), p, time.Time{}, time.Now()); err != nil || n == 0 || size == 0 {
		t.Errorf("swept %d values of %d bytes, %v", n, size, err)
	}
	check(t, s.Upkeep.Compact(t.Context(), system, 0))
	for _, where := range holding(t, dir, mark) {
		t.Errorf("the mark is left in %s", where)
	}

	// What is left is whole: the other executions, the values that they name, the counts, the file.
	now, err := db.Lengths(t.Context())
	check(t, err)
	for id, rows := range lengths {
		if want := !strings.HasPrefix(id, "gone"); (now[id] == rows) != want || !want && now[id] != 0 {
			t.Errorf("execution %s had %d rows and has %d", id, rows, now[id])
		}
	}
	for _, hash := range kept.blobs {
		r, _, err := s.Blobs.Get(t.Context(), p, hash)
		if err != nil {
			t.Errorf("a value of another execution is gone: %v", err)
			continue
		}
		check(t, r.Close())
	}
	after, err := s.Executions.List(t.Context(), p, store.ExecutionQuery{})
	if err != nil || after.Total != before.Total-24 {
		t.Errorf("the list counts %d, before %d, %v", after.Total, before.Total, err)
	}
	if list, err := s.Audit.List(t.Context(), p, store.AuditQuery{Action: "execution.delete"}); err != nil || len(list) != 16 {
		t.Errorf("the audit log has %d removals, %v", len(list), err)
	}
	d, err := s.Triggers.Delivery(t.Context(), p, "dlv-gone-0")
	if err != nil || d.Reason != "execution_removed" || d.PayloadSize != 0 || len(d.Payload) > 0 || d.Key == "" {
		t.Errorf("its delivery: %+v, %v", d, err)
	}
	sum, err := s.Ledger.Sum(t.Context(), p, store.LedgerQuery{Workflow: "w"})
	if err != nil || sum.Tokens != 25*60 || sum.OpenCalls != 0 {
		t.Errorf("what the workflow has spent: %+v, %v", sum, err)
	}
	check(t, db.Close())
	sound(t, dir)
	again := openDir(t, dir)
	if rows, executions, err := again.Counts(t.Context()); err != nil || executions != int64(after.Total) || rows == 0 {
		t.Errorf("it counts %d rows and %d executions, %v", rows, executions, err)
	}
}

// TestUpkeep_LongJournal removes an execution in several steps, with a crash in between: nobody finds it after the first, and the next
// process finishes.
func TestUpkeep_LongJournal(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	s, p := db.Stores(), ann()
	rows := []*store.Append{start("long")}
	const many = 4500
	for n := 1; n < many; n++ {
		rows = append(rows, step("long", uint64(n)))
	}
	rows[many-1].Change = &store.Change{Status: engine.StatusSuccess, Ended: 9}
	check(t, s.Journal.Append(t.Context(), p, rows...))
	check(t, s.Journal.Append(t.Context(), p, start("other")))
	removed, err := s.Upkeep.Remove(t.Context(), p, store.Removal{Execution: "long"})
	if err != nil || removed.Rows >= many {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	if _, err := s.Executions.Get(t.Context(), p, "long"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("it is found: %v", err)
	}
	check(t, db.Close()) // a crash is the same: every step is a transaction
	sound(t, dir)
	db = openDir(t, dir)
	check(t, db.Stores().Journal.Append(t.Context(), p, start("after")))
	steps := 0
	for more := true; more; steps++ {
		if more, err = db.Stores().Upkeep.Finish(t.Context(), identity.System("")); err != nil || steps > 10 {
			t.Fatal(steps, err)
		}
	}
	if steps < 3 {
		t.Errorf("it took %d steps", steps)
	}
	lengths, err := db.Lengths(t.Context())
	if err != nil || len(lengths) != 2 || lengths["other"] != 1 || lengths["after"] != 1 {
		t.Errorf("left %v, %v", lengths, err)
	}
	if rows, executions, err := db.Counts(t.Context()); err != nil || rows != 2 || executions != 2 {
		t.Errorf("it counts %d rows and %d executions, %v", rows, executions, err)
	}
}
