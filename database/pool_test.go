package database_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/database"
	"tandem/fault"
)

func TestPools_ChangedCredential(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, r *rig) {
		var open atomic.Int64
		p := pools(t, r.files, database.Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				open.Add(1)
				conn = &counted{Conn: conn, open: &open}
			}
			return conn, err
		}})
		q := database.Query{Text: text("select 1 as x"), MaxRows: 1}
		ask := func(target database.Target) {
			t.Helper()
			if _, err := p.Query(t.Context(), target, q); err != nil {
				t.Fatal(err)
			}
		}
		ask(r.target)
		ask(r.target)
		if p.Len() != 1 || open.Load() != 1 {
			t.Errorf("%d pools, %d connections", p.Len(), open.Load())
		}
		changed := r.with(r.dsn() + map[string]string{"postgres": "&application_name=other", "mysql": "?collation=utf8mb4_bin"}[r.driver])
		ask(changed)
		if p.Len() != 1 {
			t.Errorf("%d pools after the credential was changed", p.Len())
		}
		other := changed
		other.Workspace = "other"
		ask(other)
		if p.Len() != 2 {
			t.Errorf("%d pools of two workspaces", p.Len())
		}
		p.Close()
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are open after Close", n)
		}
		_, err := p.Query(t.Context(), r.target, q)
		wantFault(t, err, fault.Canceled, false, "stopping")
	})
}

type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

func TestPools_Bounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sqlite")
	p := pools(t, r.files, database.Options{Pools: 2})
	for _, id := range []string{"a", "b", "c"} {
		target := r.with(id + ".db")
		target.Credential = id
		if _, err := p.Do(t.Context(), target, database.Operation{Kind: database.Execute, Statements: []database.Text{text("create table t (a int)")}}); err != nil {
			t.Fatal(err)
		}
	}
	if p.Len() != 2 {
		t.Errorf("%d pools, want 2", p.Len())
	}
}

// TestPools_Idle closes what nobody has used for a while. Nothing is connected to: only the pool is made.
func TestPools_Idle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := database.New(database.Options{Files: t.TempDir(), Idle: time.Minute})
		defer p.Close()
		ask := func() {
			_, err := p.Query(t.Context(), database.Target{Workspace: "default", Credential: "c", Data: []byte(`{"driver": "sqlite", "dsn": "none.db"}`)}, database.Query{Text: text("select 1"), MaxRows: 1})
			wantFault(t, err, fault.NotFound, false, "does not exist")
		}
		ask()
		time.Sleep(59 * time.Second) // of the bubble's clock
		ask()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if p.Len() != 1 {
			t.Errorf("%d pools while in use", p.Len())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if p.Len() != 0 {
			t.Errorf("%d pools after a minute", p.Len())
		}
	})
}

// TestSQLite_Confined tries to reach a file outside by links.
func TestSQLite_Confined(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sqlite")
	r.execute("create table t (a int)")
	outside := filepath.Join(t.TempDir(), "outside.db")
	workspace := filepath.Join(r.files, "default")
	check(t, os.Rename(filepath.Join(workspace, "shop.db"), outside))
	check(t, os.Symlink(outside, filepath.Join(workspace, "link.db")))
	check(t, os.Symlink(filepath.Dir(outside), filepath.Join(workspace, "dir")))
	check(t, os.Mkdir(filepath.Join(workspace, "sub.db"), 0o700))
	for _, dsn := range []string{"link.db", "dir/outside.db", "sub.db"} {
		_, err := r.pools.Query(t.Context(), r.with(dsn), database.Query{Text: text("select * from t"), MaxRows: 1})
		wantFault(t, err, fault.ForbiddenPath, false, "links are not followed")
		_, err = r.pools.Do(t.Context(), r.with(dsn), database.Operation{Kind: database.Execute, Statements: []database.Text{text("drop table t")}})
		wantFault(t, err, fault.ForbiddenPath, false, "links are not followed")
	}
	check(t, os.WriteFile(filepath.Join(workspace, "text.db"), []byte("this is not a database, whatever its name says; it is long enough to be read as one"), 0o600))
	_, err := r.pools.Query(t.Context(), r.with("text.db"), database.Query{Text: text("select * from t"), MaxRows: 1})
	wantFault(t, err, fault.CredentialInvalid, false, "not an SQLite database")
}

// TestSQLite_Replaced puts another file in the place of a database, as a node that writes files does: connections to the
// one that was there must not be used any more.
func TestSQLite_Replaced(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sqlite")
	r.execute("create table t (a text)", "insert into t values ('old')")
	fresh := newRig(t, "sqlite")
	fresh.execute("create table t (a text)", "insert into t values ('new')")
	r.wantRows(text("select a from t"), `[{"a":"old"}]`)
	at := filepath.Join(r.files, "default", "shop.db")
	check(t, os.Rename(filepath.Join(fresh.files, "default", "shop.db"), at))
	r.wantRows(text("select a from t"), `[{"a":"new"}]`)
	r.execute("insert into t values ('newer')")
	r.wantRows(text("select a from t"), `[{"a":"new"},{"a":"newer"}]`)
	check(t, os.Remove(at))
	_, err := r.query(text("select a from t"))
	wantFault(t, err, fault.NotFound, false, "does not exist")
	r.execute("create table t (a text)")
	r.wantRows(text("select a from t"), `[]`)
}
