package sqlite_test

import (
	"fmt"
	"testing"

	"tandem/identity"
	"tandem/store"
)

// scheduled puts so many schedules in force, one of which is due.
func scheduled(t testing.TB, s store.Stores, n int) {
	t.Helper()
	p := ann()
	w, _, err := s.Workflows.Save(t.Context(), p, store.SaveWorkflow{ID: "w", Name: "w", Hash: "h", Definition: []byte("d"), Time: 1})
	if err != nil {
		t.Fatal(err)
	}
	d := store.Deployment{WorkflowID: "w", Revision: w.Revision, Hash: "h", Time: 1}
	for i := range n {
		d.Triggers = append(d.Triggers, store.Trigger{Node: fmt.Sprintf("n%06d", i), Kind: "TRIGGER.CRON", Config: []byte(`{}`), NextDue: int64(1000 + i)})
	}
	if err := s.Triggers.Prepare(t.Context(), p, d); err != nil {
		t.Fatal(err)
	}
	if err := s.Triggers.PutInForce(t.Context(), p, d); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkTriggersDue is one look of the clock, of which one schedule is due: it costs the same however many there are.
func BenchmarkTriggersDue(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := open(b).Stores()
			scheduled(b, s, n)
			for b.Loop() {
				due, next, err := s.Triggers.Due(b.Context(), identity.System(""), 1000, 512)
				if err != nil || len(due) != 1 || next != 1001 {
					b.Fatalf("%d due, next %d, %v", len(due), next, err)
				}
			}
		})
	}
}

// TestTriggers_Due: the statement names the index of next times, so it could not even be prepared without it.
func TestTriggers_Due(t *testing.T) {
	t.Parallel()
	db := open(t)
	scheduled(t, db.Stores(), 300)
	due, next, err := db.Stores().Triggers.Due(t.Context(), identity.System(""), 1004, 512)
	if err != nil || len(due) != 5 || next != 1005 {
		t.Errorf("%d due, next %d, %v", len(due), next, err)
	}
}
