package sqlite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite"
)

// crowd fills a database with pending questions of one execution, of which twenty are ann's; everybody else's are bob's and
// those of a role.
func crowd(t testing.TB, db *sqlite.DB, many int) {
	t.Helper()
	s := db.Stores()
	const page = 1000
	for at := 0; at < many; at += page {
		a := step("e1", uint64(at/page))
		if at == 0 {
			a = start("e1")
		}
		for n := at; n < min(at+page, many); n++ {
			i := store.Interaction{ID: fmt.Sprint("q", n), Root: "e1", Channel: "email", Credential: "c", Purpose: "human_node", Status: store.InteractionPending, Priority: n%5 + 1,
				Request: []byte(`{"title":"Approve?","description":"` + strings.Repeat("x", 200) + `"}`), Approvers: []string{"user:bob", "role:approver"}, NextAt: int64(1_000_000 + n), Created: int64(n), Updated: int64(n)}
			if n%(many/20) == 0 {
				i.Approvers = []string{"user:ann", "mail:ann@example.com"}
			}
			a.Ask = append(a.Ask, i)
		}
		if err := s.Journal.Append(t.Context(), ann(), a); err != nil {
			t.Fatal(err)
		}
	}
}

func pendingOf(seats ...string) store.InteractionQuery {
	return store.InteractionQuery{Approvers: seats, NotOf: "ann", Statuses: []store.InteractionStatus{store.InteractionPending}}
}

// TestInteractions_ManyAreFoundByIndex looks at how SQLite runs what is asked often: nothing reads through a table.
func TestInteractions_ManyAreFoundByIndex(t *testing.T) {
	t.Parallel()
	db := open(t)
	many := 20_000
	if raceEnabled {
		many = 2_000
	}
	crowd(t, db, many)
	plan := func(text string, args ...any) string {
		t.Helper()
		steps, err := db.Plan(t.Context(), text, args...)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			// What is read from end to end may only be a short list that an index has found, the rest of a page, or one constant row.
			if strings.HasPrefix(step, "SCAN") && !slices.ContainsFunc([]string{"SCAN d", "SCAN (subquery", "SCAN CONSTANT ROW", "SCAN family"}, func(short string) bool { return strings.HasPrefix(step, short) }) {
				t.Errorf("%q reads everything:\n%s", step, strings.Join(steps, "\n"))
			}
		}
		return strings.Join(steps, "\n")
	}
	want := func(name, plan string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(plan, w) {
				t.Errorf("%s: no %q in the plan:\n%s", name, w, plan)
			}
		}
	}
	mine, args, due := sqlite.InteractionStatements("ws", pendingOf("user:ann", "mail:ann@example.com", "anyone"))
	want("mine", plan(mine, args...), "hil_approvers USING PRIMARY KEY (workspace_id=? AND approver=? AND ended=?)", "SEARCH i USING INTEGER PRIMARY KEY (rowid=?)")
	all, args, _ := sqlite.InteractionStatements("ws", pendingOf())
	text := plan(all, args...)
	want("all that are pending", text, "SEARCH i USING INDEX hil_interactions_listing (workspace_id=? AND ended=?)")
	if strings.Contains(text, "ORDER BY") {
		t.Errorf("the listing is sorted:\n%s", text)
	}
	family, args, _ := sqlite.InteractionStatements("ws", store.InteractionQuery{Execution: "e1", Family: true})
	want("family", plan(family, args...), "hil_interactions_execution (workspace_id=? AND execution_id=?)", "hil_interactions_root (workspace_id=? AND root_id=?)", "executions_parent (workspace_id=? AND parent=?)")
	one, args, _ := sqlite.InteractionStatements("ws", store.InteractionQuery{Execution: "e1", Statuses: []store.InteractionStatus{store.InteractionPending}})
	want("one execution", plan(one, args...), "hil_interactions_execution (workspace_id=? AND execution_id=?)")
	for n, name := range []string{"hil_interactions_due", "hil_deliveries_due"} {
		text := plan(due[n], 1, 1, true, "")
		want("due", text, name+" (next_at<?)", name+" (next_at>?)")
		if strings.Contains(text, "TEMP B-TREE") {
			t.Errorf("what is due is sorted:\n%s", text)
		}
	}

	x := db.Stores().Interactions
	page, err := x.List(t.Context(), ann(), pendingOf("user:ann", "mail:ann@example.com", "anyone"))
	if err != nil || page.Total != 20 || len(page.Interactions) != 20 {
		t.Errorf("%d of %d are mine: %v", len(page.Interactions), page.Total, err)
	}
	found, next, err := x.Due(t.Context(), identity.System(""), 1_000_002, 2)
	if err != nil || len(found) != 2 || found[0].ID != "q0" || found[1].ID != "q1" || next != 1_000_002 {
		t.Errorf("due: %v, next %d, %v", found, next, err)
	}
}

// TestInteractions_SurviveAReopening finds a question, its link and its pause after a restart as they were.
func TestInteractions_SurviveAReopening(t *testing.T) {
	t.Parallel()
	dir, hash := t.TempDir(), identity.HashSecret("link")
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	a := start("e1")
	a.Ask = []store.Interaction{{ID: "q", Approvers: []string{"user:ann"}, NextAt: 7}}
	check(t, db.Stores().Journal.Append(t.Context(), ann(), a))
	i, err := db.Stores().Interactions.Get(t.Context(), ann(), "q")
	check(t, err)
	check(t, db.Stores().Interactions.Change(t.Context(), ann(), store.InteractionChange{Interaction: i, Links: []store.Link{{Hash: hash, Recipient: "user:ann"}}}))
	check(t, db.Close())

	x := openDir(t, dir).Stores().Interactions
	link, err := x.Link(t.Context(), identity.System(""), hash)
	if err != nil || link.Interaction != "q" || link.Workspace != "ws" {
		t.Errorf("link %+v: %v", link, err)
	}
	due, _, err := x.Due(t.Context(), identity.System(""), 7, 10)
	if err != nil || len(due) != 1 || due[0].Version != 2 || !slices.Equal(due[0].Approvers, []string{"user:ann"}) {
		t.Errorf("due %+v: %v", due, err)
	}
	pauses, err := x.Pauses(t.Context(), ann(), "e1")
	if err != nil || len(pauses) != 1 || pauses[0].Status != store.PauseActive {
		t.Errorf("pauses %+v: %v", pauses, err)
	}
}

// TestInteractions_ChangeIsNotHalfWritten stops the disk at the commit of an answer: after the restart there is nothing of it.
func TestInteractions_ChangeIsNotHalfWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	check(t, err)
	a := start("e1")
	a.Ask = []store.Interaction{{ID: "q", Approvers: []string{"user:ann"}, NextAt: 7}}
	check(t, db.Stores().Journal.Append(t.Context(), ann(), a))
	i, err := db.Stores().Interactions.Get(t.Context(), ann(), "q")
	check(t, err)
	check(t, db.BeforeCommit(t.Context(), func() error { return fmt.Errorf("the disk is gone") }))
	i.Status = store.InteractionCompleted
	change := store.InteractionChange{Interaction: i, Responses: []store.Response{{ID: "r"}}, Deliveries: []store.Delivery{{ID: "m"}},
		Resume: &store.PauseEnd{Status: store.PauseResumed}, Deliver: &store.InboxItem{Kind: "answer"}}
	if err := db.Stores().Interactions.Change(t.Context(), ann(), change); err == nil {
		t.Fatal("a change was kept that the disk did not take")
	}
	check(t, db.Close())

	db = openDir(t, dir)
	got, err := db.Stores().Interactions.Get(t.Context(), ann(), "q")
	if err != nil || got.Status != store.InteractionPending || got.Version != 1 {
		t.Errorf("after the restart %+v: %v", got, err)
	}
	for _, table := range []string{"hil_responses", "hil_deliveries", "inbox", "workflow_execution_pauses WHERE status <> 'active'", "hil_approvers WHERE ended <> 0"} {
		if n, err := db.Rows(t.Context(), table); err != nil || n != 0 {
			t.Errorf("%s has %d rows: %v", table, n, err)
		}
	}
	check(t, db.Stores().Interactions.Change(t.Context(), ann(), change))
}

// BenchmarkInteractions asks a database in which a hundred thousand questions are pending.
func BenchmarkInteractions(b *testing.B) {
	dir := b.TempDir()
	db, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir})
	check(b, err)
	began := time.Now()
	crowd(b, db, 100_000)
	b.Logf("asking 100000 in appends of 1000: %s", time.Since(began))
	check(b, db.Close())
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			db, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir})
			check(b, err)
			check(b, db.Close())
		}
	})
	db = openDir(b, dir)
	x := db.Stores().Interactions
	listing := func(name string, total int, q store.InteractionQuery) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if page, err := x.List(b.Context(), ann(), q); err != nil || page.Total != total {
					b.Fatalf("%d found: %v", page.Total, err)
				}
			}
		})
	}
	listing("MineOfTwenty", 20, pendingOf("user:ann", "mail:ann@example.com", "role:admin", "anyone"))
	listing("MineOfAll", 99_980, pendingOf("user:bob", "role:approver", "anyone"))
	listing("AllPending", 100_000, store.InteractionQuery{Statuses: []store.InteractionStatus{store.InteractionPending}})
	b.Run("Due", func(b *testing.B) {
		for b.Loop() {
			if due, _, err := x.Due(b.Context(), identity.System(""), 1<<60, 100); err != nil || len(due) != 100 {
				b.Fatalf("%d due: %v", len(due), err)
			}
		}
	})
	b.Run("NoneDue", func(b *testing.B) {
		for b.Loop() {
			if due, next, err := x.Due(b.Context(), identity.System(""), 1, 100); err != nil || len(due) != 0 || next != 1_000_000 {
				b.Fatalf("%d due, next %d: %v", len(due), next, err)
			}
		}
	})
	b.Run("Accounts", func(b *testing.B) {
		for b.Loop() {
			if accounts, err := x.Accounts(b.Context(), identity.System("")); err != nil || len(accounts) != 1 {
				b.Fatalf("%v: %v", accounts, err)
			}
		}
	})
	i, err := x.Get(b.Context(), ann(), "q77")
	check(b, err)
	b.Run("Change", func(b *testing.B) {
		for b.Loop() {
			check(b, x.Change(b.Context(), ann(), store.InteractionChange{Interaction: i}))
			i.Version++
		}
	})
}
