package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"tandem/store"
)

func testProfiles(t *testing.T, s store.Stores) {
	p := tenant(t)
	for _, id := range []string{"b", "a"} {
		if err := s.Profiles.Put(t.Context(), p, store.Profile{ID: id, Body: []byte(`{"model":"` + id + `"}`), Created: 1, Updated: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Profiles.Put(t.Context(), p, store.Profile{ID: "a", Body: []byte(`{"model":"c"}`), Created: 5, Updated: 5}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Profiles.Get(t.Context(), p, "a")
	if err != nil || string(got.Body) != `{"model":"c"}` || got.Created != 1 || got.Updated != 5 || got.Workspace != p.Workspace {
		t.Errorf("got %+v, %v", got, err)
	}
	list, err := s.Profiles.List(t.Context(), p)
	if err != nil || len(list) != 2 || list[0].ID != "a" {
		t.Errorf("list %+v, %v", list, err)
	}
	if err := s.Profiles.Put(t.Context(), p, store.Profile{ID: "x"}); err == nil {
		t.Error("a profile without a body was kept")
	}
	if _, err := s.Profiles.Get(t.Context(), tenant(t), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another workspace reads it: %v", err)
	}
	if err := s.Profiles.Delete(t.Context(), tenant(t), "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another workspace deletes it: %v", err)
	}
	if err := s.Profiles.Delete(t.Context(), p, "a"); err != nil {
		t.Error(err)
	}
	if _, err := s.Profiles.Get(t.Context(), p, "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}

func testReserve(t *testing.T, s store.Stores) {
	p := tenant(t)
	limit := store.Limit{Budget: "m/day", Query: store.LedgerQuery{Profile: "m", Day: "d"}, Tokens: 100, Cost: 1000}
	entry := func(id string, tokens int64) store.LedgerEntry {
		return store.LedgerEntry{ID: id, Execution: "e", Workflow: "w", Profile: "m", Day: "d", Tokens: tokens, Cost: tokens}
	}
	// Many at once: never more than fits.
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for i := range 50 {
		wg.Go(func() {
			err := s.Ledger.Reserve(t.Context(), p, entry(fmt.Sprint(i), 7), limit)
			if over := (*store.OverError)(nil); err != nil && !errors.As(err, &over) {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				taken++
			}
		})
	}
	wg.Wait()
	if taken != 14 {
		t.Errorf("%d of 7 tokens fitted into 100", taken)
	}
	over := &store.OverError{}
	if err := s.Ledger.Reserve(t.Context(), p, entry("more", 7), limit); !errors.As(err, &over) || over.Budget != "m/day" ||
		over.OpenCalls != 14 || over.OpenTokens != 98 {
		t.Errorf("got %v", err)
	}
	// What is given back is there again; other profiles and days do not count.
	for i := range 50 {
		if err := s.Ledger.Settle(t.Context(), p, store.Settlement{ID: fmt.Sprint(i), Tokens: 1, Cost: 1}); err == nil {
			break
		}
	}
	if err := s.Ledger.Reserve(t.Context(), p, entry("after", 8), limit); err != nil {
		t.Error(err)
	}
	other := entry("other", 90)
	other.Profile = "n"
	if err := s.Ledger.Reserve(t.Context(), p, other, store.Limit{Budget: "n/day",
		Query: store.LedgerQuery{Profile: "n", Day: "d"}, Tokens: 100}); err != nil {
		t.Error(err)
	}
	// A raise makes room.
	if err := s.Ledger.Reserve(t.Context(), p, entry("large", 50), limit); !errors.As(err, &over) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Budgets.Raise(t.Context(), p, "answer", store.Raise{Budget: "m/day", Tokens: 50, Cost: 50}, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Budgets.Raise(t.Context(), p, "answer", store.Raise{Budget: "m/day", Tokens: 50, Cost: 50}, 1); err != nil {
		t.Fatal(err)
	}
	if raised, err := s.Budgets.Raised(t.Context(), p, "m/day"); err != nil || raised.Tokens != 50 || raised.Cost != 50 {
		t.Errorf("raised %+v, %v: the same answer counts once", raised, err)
	}
	if err := s.Ledger.Reserve(t.Context(), p, entry("large", 50), limit); err != nil {
		t.Error(err)
	}
}

func testBudgetWaits(t *testing.T, s store.Stores) {
	p := tenant(t)
	wait := func(execution, activation string) store.BudgetWait {
		w, err := s.Budgets.Wait(t.Context(), p, store.BudgetWait{Budget: "b", Execution: execution, Activation: activation, Node: "n", Since: 1})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if !wait("e1", "a").Asks || wait("e2", "a").Asks || wait("e1", "b").Asks || !wait("e1", "a").Asks {
		t.Error("the first who waits asks, and no other")
	}
	if err := s.Budgets.Leave(t.Context(), p, "e1", "a"); err != nil {
		t.Fatal(err)
	}
	if !wait("e3", "a").Asks {
		t.Error("nobody asks any more, so the next does")
	}
	if list, err := s.Budgets.Waiting(t.Context(), tenant(t), ""); err != nil || len(list) != 0 {
		t.Errorf("another workspace sees %v, %v", list, err)
	}
	waited, err := s.Budgets.Raise(t.Context(), p, "r1", store.Raise{Budget: "b", Tokens: 1}, 2)
	if err != nil || len(waited) != 3 {
		t.Errorf("waited %v, %v", waited, err)
	}
	if again, err := s.Budgets.Raise(t.Context(), p, "r1", store.Raise{Budget: "b", Tokens: 1}, 2); err != nil || len(again) != 0 {
		t.Errorf("the same raise again wakes %v, %v", again, err)
	}
	if list, err := s.Budgets.Waiting(t.Context(), p, "b"); err != nil || len(list) != 0 {
		t.Errorf("still waiting: %v, %v", list, err)
	}
	// Those who waited are told by the raise itself; an execution that is gone holds nobody up, nor does a repetition tell twice.
	started(t, s, p, "e1")
	wait("e1", "a")
	wait("e1", "b")
	wait("gone", "a")
	for range 2 {
		_, err := s.Budgets.Raise(t.Context(), p, "r3", store.Raise{Budget: "b", Tokens: 1, Wake: func(w store.BudgetWait) store.InboxItem {
			if w.Activation == "b" {
				return store.InboxItem{}
			}
			return store.InboxItem{Execution: w.Execution, Kind: "signal", Dedup: "r3" + w.Activation, Body: []byte(w.Node)}
		}}, 3)
		if err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.Inbox.Pending(t.Context(), p, "e1"); err != nil || len(list) != 1 || list[0].Dedup != "r3a" || string(list[0].Body) != "n" {
		t.Errorf("told %+v, %v", list, err)
	}
	if _, err := s.Budgets.Raise(t.Context(), p, "r2", store.Raise{Budget: "b", Tokens: -1}, 2); err == nil {
		t.Error("a budget was lowered")
	}
}
