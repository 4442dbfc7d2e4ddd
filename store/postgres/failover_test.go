package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"tandem/store"
	"tandem/store/postgres"
)

// standbyOf makes a server that copies another, and is waited for by it when something is committed.
func standbyOf(t *testing.T, primary *cluster) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tandem-pg")
	check(t, err)
	c := &cluster{script: primary.script, dir: dir}
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	copied := exec.Command(c.script, "copy", dir, primary.dir)
	copied.Stderr = os.Stderr
	out, err := copied.Output()
	check(t, err)
	t.Cleanup(func() { c.stop(t, "immediate") })
	c.url = strings.TrimSpace(string(out))
	admin(t, primary.url, `ALTER SYSTEM SET synchronous_standby_names = '*'`) // after the copy: the other waits for nobody
	admin(t, primary.url, `SELECT pg_reload_conf()`)
	conn, err := pgx.Connect(t.Context(), primary.url)
	check(t, err)
	for synchronous := false; !synchronous; pause() {
		check(t, conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync') AND current_setting('synchronous_standby_names') = '*'`).Scan(&synchronous))
	}
	check(t, conn.Close(t.Context()))
	return c
}

// TestFailover kills the primary under load and makes a primary of its standby: the process goes on there. With synchronous replication nothing that was acknowledged is
// lost, and nothing is there twice.
func TestFailover(t *testing.T) {
	t.Parallel()
	first := newCluster(t)
	second := standbyOf(t, first)
	both := "postgres://tandem@/postgres?host=" + first.dir + "," + second.dir + "&target_session_attrs=read-write"
	db, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: both})
	check(t, err)
	defer func() { check(t, db.Close()) }()
	s := db.Stores()
	const writers, rows = 8, 60
	reached := make(chan struct{}, writers*rows)
	var waits atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			id := fmt.Sprint("e", w)
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
	for range writers * rows / 3 {
		<-reached
	}
	first.stop(t, "immediate")
	for err = nil; !errors.Is(err, store.ErrUnavailable); pause() {
		if err = s.Journal.Append(t.Context(), ann(), begin("refused")); err == nil {
			t.Fatal("written without a primary")
		}
	}
	if out, err := exec.Command(second.script, "promote", second.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wg.Wait()
	for err = store.ErrUnavailable; errors.Is(err, store.ErrUnavailable); pause() {
		_, err = s.Executions.Get(t.Context(), ann(), "e0")
	}
	check(t, err)
	for w := range writers {
		wantRows(t, db.DB, fmt.Sprint("e", w), rows)
	}
	check(t, db.Err())
	// The first one has not come back, so all of it is in the second.
	if _, err := os.Stat(filepath.Join(first.dir, "data", "postmaster.pid")); err == nil {
		t.Error("the first server runs")
	}
}
