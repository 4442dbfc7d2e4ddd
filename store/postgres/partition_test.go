package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
)

// TestPartition parts a process from its server under load, again and again: starts are refused, nothing that was acknowledged is lost, nothing is written twice, and
// it goes on by itself.
func TestPartition(t *testing.T) {
	t.Parallel()
	address, g := postgrestest.NewGate(t, database(t))
	db, err := postgres.Open(t.Context(), address)
	check(t, err)
	defer db.Close()
	feeling, cancel := context.WithCancel(t.Context())
	var felt sync.WaitGroup
	felt.Go(func() { db.Feel(feeling, 20*time.Millisecond, 200*time.Millisecond) })
	defer felt.Wait()
	defer cancel()
	s := db.Stores()
	const writers, rows, times = 8, 60, 3
	reached := make(chan struct{}, writers*rows)
	var waits atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			id := "e" + string(rune('a'+w))
			for n := range uint64(rows) {
				row := follow(id, n)
				if n == 0 {
					row = begin(id)
				}
				if !insist(t, s.Journal, &waits, row) {
					return
				}
				reached <- struct{}{}
			}
		})
	}
	for range times {
		for range writers * rows / (times + 2) {
			<-reached
		}
		g.Close()
		for { // what is under way is not decided; what comes then is refused
			err := s.Journal.Append(t.Context(), ann(), begin("refused"))
			if errors.Is(err, store.ErrUnavailable) {
				break
			}
			if err == nil {
				t.Fatal("written without a server")
			}
			pause()
		}
		if _, err := s.Executions.List(t.Context(), ann(), store.ExecutionQuery{}); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("list: %v", err)
		}
		g.Open()
	}
	wg.Wait()
	var err2 error
	for err2 = store.ErrUnavailable; errors.Is(err2, store.ErrUnavailable); pause() {
		_, err2 = s.Executions.Get(t.Context(), ann(), "ea")
	}
	check(t, err2)
	for w := range writers {
		wantRows(t, db, "e"+string(rune('a'+w)), rows)
	}
	if waits.Load() == 0 {
		t.Error("nobody found the server away")
	}
	check(t, db.Err())
}

// TestPartition_Fenced: a process that was parted from its server, and was replaced meanwhile, writes nothing more: not what it had sent, and not what it sends.
func TestPartition_Fenced(t *testing.T) {
	t.Parallel()
	direct := database(t)
	address, g := postgrestest.NewGate(t, direct)
	old := owned(t, address)
	j := old.Stores().Journal
	check(t, j.Append(t.Context(), ann(), begin("e1")))
	check(t, j.Append(t.Context(), ann(), follow("e1", 1)))
	g.Close()
	sent := make(chan error, 1)
	go func() { sent <- j.Append(t.Context(), ann(), follow("e1", 2)) }() // it ends when the gate is open
	g.Forsake()
	lock, err := postgres.Await(t.Context(), direct)
	check(t, err)
	heir, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: direct, Lock: lock})
	check(t, err)
	defer func() { check(t, heir.Close()) }()
	wantRows(t, heir.DB, "e1", 2)
	check(t, heir.Stores().Journal.Append(t.Context(), ann(), follow("e1", 2)))
	g.Open()
	if err := <-sent; !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("what was sent before: %v", err)
	}
	if err := j.Append(t.Context(), ann(), begin("e2")); !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("what is sent after: %v", err)
	}
	<-old.Broken()
	wantRows(t, heir.DB, "e1", 3)
	if _, err := heir.Stores().Executions.Get(t.Context(), ann(), "e2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was written after: %v", err)
	}
}
