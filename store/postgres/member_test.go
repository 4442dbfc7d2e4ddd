package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/storetest"
)

// share opens a database as an owner that lets others write.
func share(t *testing.T, address string) *postgres.Owned {
	t.Helper()
	owned, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address, Shared: true})
	check(t, err)
	t.Cleanup(func() { check(t, owned.Close()) })
	return owned
}

func join(t *testing.T, address string) *postgres.Member {
	t.Helper()
	m, err := postgres.Join(t.Context(), address)
	check(t, err)
	t.Cleanup(func() { check(t, m.Close()) })
	return m
}

// TestMember_Store: a member does everything that an owner does.
func TestMember_Store(t *testing.T) {
	t.Parallel()
	address := database(t)
	share(t, address)
	m := join(t, address)
	storetest.Run(t, func(*testing.T) store.Stores { return m.Stores() })
}

// TestMember_Race: owner and members append to the same executions. Each row is written once, nobody is refused who knows the last row, and the books are
// right.
func TestMember_Race(t *testing.T) {
	t.Parallel()
	address := database(t)
	owned := share(t, address)
	writers := []store.Stores{owned.Stores(), join(t, address).Stores(), join(t, address).Stores()}
	const executions, rows = 3, 20
	var wg sync.WaitGroup
	errs := make(chan error, executions*len(writers))
	for e := range executions {
		id := fmt.Sprint("e", e)
		check(t, writers[0].Journal.Append(t.Context(), ann(), begin(id)))
		for _, s := range writers {
			wg.Go(func() {
				for after := uint64(1); after < rows; {
					err := s.Journal.Append(t.Context(), ann(), follow(id, after))
					if err != nil && (fault.CodeOf(err) != fault.Conflict || !has(t, s, id, after+1)) { // it is refused only if the row is there
						errs <- err
						return
					}
					after++
				}
			})
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	for e := range executions {
		wantRows(t, owned.DB, fmt.Sprint("e", e), rows)
	}
}

// has says whether an execution has a row.
func has(t *testing.T, s store.Stores, id string, seq uint64) bool {
	t.Helper()
	for row, err := range s.Journal.Rows(t.Context(), ann(), id, seq-1) {
		return err == nil && row.Seq == seq
	}
	return false
}

// TestMember_OutlivesOwners: members write on under the next owner, and not under one that shares the database with nobody.
func TestMember_OutlivesOwners(t *testing.T) {
	t.Parallel()
	address := empty(t)
	if _, err := postgres.Join(t.Context(), address); fault.CodeOf(err) != fault.NotReady || !strings.Contains(err.Error(), "start a server") {
		t.Errorf("join an empty database: %v", err)
	}
	first := share(t, address)
	m := join(t, address)
	check(t, m.Stores().Journal.Append(t.Context(), ann(), begin("e1")))
	check(t, first.Close())
	check(t, m.Stores().Journal.Append(t.Context(), ann(), follow("e1", 1)))
	second := share(t, address)
	check(t, second.Stores().Journal.Append(t.Context(), ann(), follow("e1", 2)))
	check(t, m.Stores().Journal.Append(t.Context(), ann(), follow("e1", 3)))
	check(t, second.Close())
	alone := open(t, address)
	if err := m.Stores().Journal.Append(t.Context(), ann(), follow("e1", 4)); !errors.Is(err, store.ErrSuperseded) || !strings.Contains(err.Error(), "--engine temporal") {
		t.Errorf("append beside an owner that shares nothing: %v", err)
	}
	<-m.Broken()
	if _, err := m.Stores().Blobs.Put(t.Context(), ann(), strings.NewReader("x")); !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("put: %v", err)
	}
	if _, err := postgres.Join(t.Context(), address); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("join an owner that shares nothing: %v", err)
	}
	check(t, alone.Stores().Journal.Append(t.Context(), ann(), follow("e1", 4)))
	wantRows(t, alone, "e1", 5)
}

// TestMember_Version: a member does not touch a database of another version.
func TestMember_Version(t *testing.T) {
	t.Parallel()
	address := database(t)
	share(t, address)
	admin(t, address, `INSERT INTO goose_db_version (version_id, is_applied) SELECT max(version_id) + 1, true FROM goose_db_version`)
	if _, err := postgres.Join(t.Context(), address); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "the same version") {
		t.Errorf("join: %v", err)
	}
}

// TestMember_LostAnswer: a member finds out what became of a commit as an owner does.
func TestMember_LostAnswer(t *testing.T) {
	t.Parallel()
	address, w := throughWire(t)
	share(t, strings.Replace(address, "&pool_max_conns=1", "", 1))
	m := join(t, address)
	s := m.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), begin("e1")))
	check(t, s.Journal.Append(t.Context(), ann(), follow("e1", 1))) // its statements are prepared from here on
	after := uint64(2)
	for _, cut := range []int32{beforeAnswer, beforeRequest, beforeAnswer} {
		w.cut.Store(cut)
		check(t, s.Journal.Append(t.Context(), ann(), follow("e1", after)))
		after++
		wantRows(t, m.DB, "e1", after)
	}
}

// TestMember_Parted: a member that is parted from the server while it has the turn to write does not keep the others from writing. What it had been told is
// written is there; what it was writing is not, until it is back and writes it again, once.
func TestMember_Parted(t *testing.T) {
	t.Parallel()
	direct := database(t)
	address, gate := postgrestest.NewGate(t, direct)
	owner := share(t, direct)
	m := join(t, address)
	journal := owner.Stores().Journal
	check(t, m.Stores().Journal.Append(t.Context(), ann(), begin("e1")))
	admin(t, direct, `CREATE TABLE marks (mark text)`)
	release := make(chan struct{})
	held := m.HoldTurn(t.Context(), release, `INSERT INTO marks VALUES ('of the member')`)
	gate.Close()
	check(t, journal.Append(t.Context(), ann(), follow("e1", 1)))
	check(t, journal.Append(t.Context(), ann(), begin("e2")))
	wantRows(t, owner.DB, "e1", 2)
	wantMarks(t, direct, 0)
	gate.Open()
	close(release)
	check(t, <-held)
	wantMarks(t, direct, 1)
	check(t, m.Stores().Journal.Append(t.Context(), ann(), follow("e1", 2)))
	wantRows(t, owner.DB, "e1", 3)
	check(t, m.Err())
}

func wantMarks(t *testing.T, address string, want int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	n := 0
	err = conn.QueryRow(t.Context(), `SELECT count(*) FROM marks`).Scan(&n)
	check(t, errors.Join(err, conn.Close(t.Context())))
	if n != want {
		t.Errorf("there are %d marks, want %d", n, want)
	}
}

// TestMember_GoneReservations: what a member has reserved counts as used when the member is gone, as if it had said so or not, and under whichever owner. What
// others have reserved stays so.
func TestMember_GoneReservations(t *testing.T) {
	t.Parallel()
	direct := database(t)
	address, gate := postgrestest.NewGate(t, direct)
	owner := share(t, direct)
	dead, left, alive := join(t, address), join(t, direct), join(t, direct)
	for id, s := range map[string]store.Stores{"of the owner": owner.Stores(), "of the dead": dead.Stores(), "of who left": left.Stores(), "of who lives": alive.Stores()} {
		check(t, s.Ledger.Reserve(t.Context(), ann(), store.LedgerEntry{ID: id, Execution: id, Profile: "main", Day: "2026-11-15", Tokens: 10}))
	}
	check(t, left.Close())
	gate.Close()
	admin(t, direct, `UPDATE member_signs SET seen = seen - interval '1 hour' WHERE member = (SELECT member FROM member_calls WHERE id = 'of the dead')`)
	attending, cancel := context.WithCancel(t.Context())
	var attended sync.WaitGroup
	attended.Go(func() { owner.Attend(attending, time.Millisecond) })
	sum := func(s store.Stores, id string) store.LedgerSum {
		got, err := s.Ledger.Sum(t.Context(), ann(), store.LedgerQuery{Execution: id})
		check(t, err)
		return got
	}
	for _, id := range []string{"of the dead", "of who left"} {
		for sum(owner.Stores(), id).OpenCalls != 0 {
			if t.Context().Err() != nil {
				t.Fatalf("what is %s stays reserved", id)
			}
		}
		if got := sum(owner.Stores(), id).Tokens; got != 10 {
			t.Errorf("what was %s counts as %d", id, got)
		}
	}
	cancel()
	attended.Wait()
	for _, id := range []string{"of the owner", "of who lives"} {
		if sum(owner.Stores(), id).OpenCalls != 1 {
			t.Errorf("what is %s is not reserved any more", id)
		}
	}
	gate.Open()
	check(t, owner.Close())
	next := share(t, direct)
	if of := sum(next.Stores(), "of the owner"); of.OpenCalls != 0 || of.Tokens != 10 {
		t.Errorf("what an owner before had reserved: %+v", of)
	}
	if sum(next.Stores(), "of who lives").OpenCalls != 1 {
		t.Error("a new owner takes from members what they have reserved")
	}
	check(t, alive.Stores().Ledger.Settle(t.Context(), ann(), store.Settlement{ID: "of who lives", Tokens: 3}))
}
