package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/sandbox"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
)

func TestMain(m *testing.M) {
	if sandbox.IsChild() {
		sandbox.Child()
	}
	os.Exit(m.Run())
}

func openDirectory(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// listen is how a server listens, without its words.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", addr)
}

// found is the finding about a thing.
func (d Diagnosis) found(t *testing.T, name string) Finding {
	t.Helper()
	for _, f := range d.Findings {
		if f.Name == name {
			if f.Status != Healthy && f.Remedy == "" {
				t.Errorf("%+v has no remedy", f)
			}
			return f
		}
	}
	t.Fatalf("nothing was found about %q: %+v", name, d)
	return Finding{}
}

func expectFinding(t *testing.T, d Doctor, name string, status Health, message string) {
	t.Helper()
	got := d.Examine(t.Context())
	f := got.found(t, name)
	if f.Status != status || !strings.Contains(f.Message, message) {
		t.Errorf("%q: %+v, want %s and %q", name, f, status, message)
	}
	if got.OK == (status == Failing) {
		t.Errorf("all in all it is %v, and %q is %s", got.OK, name, status)
	}
}

func madeDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	i := openDirectory(t, dir)
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func onDatabase(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, datadir.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestDoctor_Data(t *testing.T) {
	t.Parallel()
	doctor := func(dir string) Doctor {
		return Doctor{Dir: dir, Addr: "127.0.0.1:0", Version: "test", Listen: listen}
	}
	t.Run("Sound", func(t *testing.T) {
		t.Parallel()
		expectFinding(t, doctor(madeDir(t)), "database", Healthy, "it is sound")
	})
	t.Run("Nothing", func(t *testing.T) {
		t.Parallel()
		expectFinding(t, doctor(filepath.Join(t.TempDir(), "none")), "data directory", Warning, "does not exist yet")
		expectFinding(t, doctor(t.TempDir()), "database", Healthy, "there is none yet")
	})
	t.Run("InUse", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		i := openDirectory(t, dir)
		defer i.Close()
		expectFinding(t, doctor(dir), "lock", Healthy, fmt.Sprintf("process %d has the directory open", os.Getpid()))
		expectFinding(t, doctor(dir), "database", Healthy, "it is sound")
	})
	t.Run("Newer", func(t *testing.T) {
		t.Parallel()
		dir := madeDir(t)
		onDatabase(t, dir, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")
		expectFinding(t, doctor(dir), "database", Failing, "it has version 99")
	})
	t.Run("Damaged", func(t *testing.T) {
		t.Parallel()
		dir := madeDir(t)
		f, err := os.OpenFile(filepath.Join(dir, datadir.DatabaseFile), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(strings.Repeat("garbage!", 1024)), info.Size()/2); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		expectFinding(t, doctor(dir), "database", Failing, "")
	})
	t.Run("KeyMissing", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		i := openDirectory(t, dir)
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		ring, err := credential.CreateKeyFile(root)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := ring.Seal([]byte("secret"), []byte("c1"))
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Stores().Credentials.Create(t.Context(), identity.System("default"), store.Credential{ID: "c1", Name: "c", Type: "bearer", Sealed: sealed}); err != nil {
			t.Fatal(err)
		}
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
		expectFinding(t, doctor(dir), "master key", Healthy, "is there")
		if err := os.Remove(filepath.Join(dir, credential.KeyFile)); err != nil {
			t.Fatal(err)
		}
		expectFinding(t, doctor(dir), "master key", Failing, "has sealed 1 credentials")
	})
}

func TestDoctor_Address(t *testing.T) {
	t.Parallel()
	dir := madeDir(t)
	at := func(addr string) Doctor { return Doctor{Dir: dir, Addr: addr, Version: "test", Listen: listen} }
	listening := func(handler http.HandlerFunc) string {
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	expectFinding(t, at("127.0.0.1:0"), "address", Healthy, "is free")
	expectFinding(t, at("nonsense"), "address", Failing, "nonsense")
	expectFinding(t, at(listening(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"alive","version":"v9"}`) })), "address", Healthy, "tandem v9")
	expectFinding(t, at(listening(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, `{"status":"alive","version":"v9"}`)
	})), "address", Failing, "is not ready")
	expectFinding(t, at(listening(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })), "address", Warning, "something else")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	go func() { // it ends with the listener
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	expectFinding(t, at(silent.Addr().String()), "address", Warning, "something else")
}

// A directory that everybody may write to is not all right.
func TestDoctor_OpenDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for mode, status := range map[os.FileMode]Health{0o777: Warning, 0o770: Warning, 0o702: Warning, 0o755: Healthy, 0o700: Healthy} { // order does not matter: each is set anew
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		want := "can be written"
		if status == Warning {
			want = fmt.Sprintf("mode %04o", mode)
		}
		expectFinding(t, Doctor{Dir: dir, Addr: "127.0.0.1:1", Listen: listen}, "data directory", status, want)
	}
}

// TestDoctor_Server looks at a database of PostgreSQL: one that is not there, one without data, one that is open, one of a newer program.
func TestDoctor_Server(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	d := Doctor{Dir: filepath.Join(t.TempDir(), "none"), Addr: "127.0.0.1:0", Database: server.Database(t), Listen: listen}
	away := d
	away.Database = "postgres://tandem:hunter2@127.0.0.1:1/x"
	expectFinding(t, away, "database", Failing, "cannot be reached")
	for _, f := range away.Examine(t.Context()).Findings {
		if strings.Contains(f.Message+f.Remedy, "hunter2") {
			t.Errorf("%+v tells the password", f)
		}
	}
	expectFinding(t, d, "database server", Healthy, "PostgreSQL")
	expectFinding(t, d, "database", Healthy, "nothing in it yet")
	expectFinding(t, d, "master key", Healthy, "nothing that it has sealed")
	db, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: d.Database})
	if err != nil {
		t.Fatal(err)
	}
	expectFinding(t, d, "lock", Healthy, "a process has the database open")
	expectFinding(t, d, "database", Healthy, "it has version")
	if err := db.Stores().Credentials.Create(t.Context(), identity.System("default"), store.Credential{ID: "c1", Name: "c1", Type: "slack_bot", Sealed: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	expectFinding(t, d, "master key", Failing, "has sealed 1 credentials")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if f := d.Examine(t.Context()).found(t, "lock"); f.Message != "no process has the database open" {
		t.Errorf("after it was closed: %+v", f)
	}
	conn, err := pgx.Connect(t.Context(), d.Database)
	if err != nil {
		t.Fatal(err)
	}
	if f := d.Examine(t.Context()).found(t, "who may connect"); f.Status != Warning || !strings.Contains(f.Remedy, "REVOKE CONNECT") {
		t.Errorf("while everybody may connect: %+v", f)
	}
	if _, err := conn.Exec(t.Context(), `REVOKE CONNECT ON DATABASE `+conn.Config().Database+` FROM PUBLIC`); err != nil {
		t.Fatal(err)
	}
	if f := d.Examine(t.Context()).found(t, "who may connect"); f.Status != Healthy {
		t.Errorf("while only some may connect: %+v", f)
	}
	_, err = conn.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	expectFinding(t, d, "database", Failing, "it has version 99999")
}

// Where executions run on Temporal, it is said whether it answers, and what to do if it does not.
func TestExamine_Temporal(t *testing.T) {
	t.Parallel()
	d := Doctor{Dir: t.TempDir(), Addr: "127.0.0.1:0", Listen: listen, TemporalAddress: "temporal.test:7233"}
	if slices.ContainsFunc(d.Examine(t.Context()).Findings, func(f Finding) bool { return f.Name == "Temporal" }) {
		t.Error("Temporal is looked at where nothing runs on it")
	}
	d.Temporal = func(context.Context) error { return nil }
	expectFinding(t, d, "Temporal", Healthy, "temporal.test:7233 answers")
	d.Temporal = func(context.Context) error {
		return fault.New(fault.NotReady, "Temporal has a certificate of somebody")
	}
	expectFinding(t, d, "Temporal", Failing, "a certificate of somebody")
}
