package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"tandem/engine"
	"tandem/fault"
	"tandem/store"
)

// below is the first row of an execution below a root that may have two that are open.
func below(id, root string) *store.Append {
	a := begin(id)
	a.Below = &store.Below{Root: root, Limit: 2}
	return a
}

// over is the row with which an execution ends.
func over(id string, after uint64) *store.Append {
	a := follow(id, after)
	a.Change = &store.Change{Status: engine.StatusCanceled, Ended: 2}
	return a
}

// TestMember_Families: how many executions below a root are open is counted whichever member starts them, and none begins below a root
// that another member has canceled, until that has ended.
func TestMember_Families(t *testing.T) {
	t.Parallel()
	address := database(t)
	share(t, address)
	one, other := join(t, address).Stores().Journal, join(t, address).Stores().Journal
	add := func(j store.Journal, a *store.Append) fault.Code {
		t.Helper()
		err := j.Append(t.Context(), ann(), a)
		if err != nil && fault.CodeOf(err) == "" {
			t.Errorf("append: %v", err)
		}
		return fault.CodeOf(err)
	}
	for n, step := range []struct {
		by   store.Journal
		row  *store.Append
		want fault.Code
	}{
		{one, begin("root"), ""},
		{one, begin("another"), ""},
		{one, below("a", "root"), ""},
		{other, below("b", "root"), ""},
		{one, below("c", "root"), fault.RecursionLimit},
		{other, below("c", "root"), fault.RecursionLimit},
		{other, below("d", "another"), ""}, // each root has its own
		{other, over("a", 1), ""},
		{one, below("c", "root"), ""}, // there is room again
		{one, below("a2", "root"), fault.RecursionLimit},
		{one, over("b", 1), ""},
		{other, func() *store.Append { a := follow("root", 1); a.CancelTree = true; return a }(), ""},
		{one, below("e", "root"), fault.Canceled},
		{one, below("e", "another"), ""},
		{one, func() *store.Append { a := below("g", "another"); a.Create.Status = engine.StatusCanceled; return a }(), fault.RecursionLimit},
		{one, over("d", 1), ""},
		{one, func() *store.Append { a := below("g", "another"); a.Create.Status = engine.StatusCanceled; return a }(), ""},
		{other, below("h", "another"), ""}, // one that has ended with its first row takes no room
		{one, over("root", 2), ""},
		{other, below("f", "root"), ""}, // it may be retried
	} {
		if got := add(step.by, step.row); got != step.want {
			t.Errorf("step %d, %s: %q, want %q", n, step.row.Execution, got, step.want)
		}
	}
}

// TestMember_FamiliesTogether: those that begin in the same transaction are counted, too.
func TestMember_FamiliesTogether(t *testing.T) {
	t.Parallel()
	address := database(t)
	share(t, address)
	j := join(t, address).Stores().Journal
	check(t, j.Append(t.Context(), ann(), begin("root")))
	const many = 20
	codes := make(chan fault.Code, many)
	for n := range many {
		go func() {
			codes <- fault.CodeOf(j.Append(t.Context(), ann(), below(fmt.Sprint("x", n), "root")))
		}()
	}
	begun := 0
	for range many {
		switch code := <-codes; code {
		case "":
			begun++
		case fault.RecursionLimit:
		default:
			t.Errorf("refused with %q", code)
		}
	}
	if begun != 2 {
		t.Errorf("%d have begun, want 2", begun)
	}
}

// TestOwned_Departures: that a member is gone is told once, whether it has left or gives no sign of life, and again if it was back.
func TestOwned_Departures(t *testing.T) {
	t.Parallel()
	address := database(t)
	owned := share(t, address)
	early := join(t, address)
	check(t, early.Close()) // before anybody asks
	gone := owned.Departures()
	want := func(what string, want bool) {
		t.Helper()
		got, err := gone(t.Context())
		check(t, err)
		if got != want {
			t.Errorf("%s: gone is %v", what, got)
		}
	}
	want("at first", false)
	m := join(t, address)
	want("with one that is there", false)
	check(t, m.Close())
	want("when it has left", true)
	want("after that", false)
	admin(t, address, `WITH m AS (INSERT INTO members DEFAULT VALUES RETURNING member) INSERT INTO member_signs (member) SELECT member FROM m`)
	want("with another", false)
	admin(t, address, `UPDATE member_signs SET seen = clock_timestamp() - interval '2 minutes'`)
	want("when it gives no sign", true)
	want("after that", false)
	admin(t, address, `UPDATE member_signs SET seen = clock_timestamp()`)
	want("when it is back", false)
	admin(t, address, `UPDATE member_signs SET seen = clock_timestamp() - interval '2 minutes'`)
	want("when it gives no sign again", true)
	want("after that", false)
	brief := join(t, address)
	check(t, brief.Close())
	want("when one was there between two looks", true)
}

// TestMember_FamiliesWhileNotShared: what has ended, or was retried, while one process had the database for itself counts for nothing when it is
// shared again. What is still open counts.
func TestMember_FamiliesWhileNotShared(t *testing.T) {
	t.Parallel()
	address := database(t)
	first := share(t, address)
	m := join(t, address)
	canceled := follow("canceled", 1)
	canceled.CancelTree = true
	retried := follow("canceled", 3)
	retried.Change = &store.Change{Status: engine.StatusRunning}
	add := func(j store.Journal, rows ...*store.Append) {
		t.Helper()
		for _, a := range rows {
			check(t, j.Append(t.Context(), ann(), a))
		}
	}
	add(m.Stores().Journal, begin("root"), below("a", "root"), below("b", "root"), begin("canceled"), canceled)
	check(t, errors.Join(m.Close(), first.Close()))
	alone := owned(t, address)
	add(alone.Stores().Journal, over("a", 1), over("canceled", 2), retried)
	check(t, alone.Close())
	share(t, address)
	again := join(t, address).Stores().Journal
	add(again, below("c", "root"), below("d", "canceled"))
	if err := again.Append(t.Context(), ann(), below("e", "root")); fault.CodeOf(err) != fault.RecursionLimit {
		t.Errorf("a third one below the root: %v", err)
	}
}
