package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/api"
	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
	"tandem/store/sqlite/datadir"
)

// TestDatabase opens instances on a database of PostgreSQL, as the commands do.
func TestDatabase(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := strings.Replace(server.Database(t), "tandem@", "tandem:hunter2@", 1)
	dir := besideADirectory(t)
	run := func(dir string) (api.Execution, error) {
		_, e, err := RunFile(t.Context(), Run{File: "../examples/parcels.yaml", Dir: dir, Version: "test", Inputs: json.RawMessage(`{"parcels":[{"id":"p1","kg":2}]}`), Options: Options{Database: address}})
		return e, err
	}
	at := Connect{Dir: dir, Version: "test", Options: Options{Database: address}}
	if _, err := NewConnection(t.Context(), at); fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), "--database") {
		t.Errorf("a database without data: %v", err)
	}
	first, err := run(dir)
	if err != nil || engine.Status(first.Status) != engine.StatusSuccess {
		t.Fatalf("it is %s: %v", first.Status, err)
	}
	if _, err := os.Stat(filepath.Join(dir, datadir.DatabaseFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a database in the data directory: %v", err)
	}
	s := startServer(t, ServeOptions{Dir: dir, Database: address})
	if s.Database == "" || strings.Contains(s.Database, "hunter2") {
		t.Errorf("the database is %q", s.Database)
	}
	s.want(200, "GET", "/api/v1/executions/"+first.ExecutionID, "")
	s.want(201, "POST", "/api/v1/credentials", `{"name":"c","type":"slack_bot","data":{"token":"x-secret"}}`)

	// A command goes through the server where it can find it.
	c, err := NewConnection(t.Context(), at)
	if err != nil || c.Local() {
		t.Fatalf("beside the server: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	elsewhere := at
	elsewhere.Dir = t.TempDir()
	if _, err := NewConnection(t.Context(), elsewhere); !isInUse(err) || !strings.Contains(err.Error(), "--server") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("from another directory: %v", err)
	}
	other := at
	other.Make, other.Options.Database = true, server.Database(t)
	if _, err := NewConnection(t.Context(), other); fault.CodeOf(err) != fault.Conflict || isInUse(err) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("another database in the same directory: %v", err)
	}
	s.stopAndWait()

	// Without the key that sealed the credentials nothing may start with a new one.
	err = Serve(t.Context(), ServeOptions{Addr: "127.0.0.1:0", Dir: elsewhere.Dir, Database: address, Started: func(Serving) { t.Error("it started") }})
	if fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(err.Error(), credential.KeyFile) {
		t.Errorf("without the key: %v", err)
	}
	if _, err := os.Stat(filepath.Join(elsewhere.Dir, credential.KeyFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a new key was made: %v", err)
	}
	r, err := RotateKey(t.Context(), RotateOptions{Dir: dir, Database: address})
	if err != nil || r.Resealed != 1 || !r.Dropped {
		t.Errorf("rotated: %+v, %v", r, err)
	}
	if c, err = NewConnection(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if list, err := c.Credentials(t.Context()); err != nil || len(list.Credentials) != 1 {
		t.Errorf("after the rotation: %+v, %v", list, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A database that has nothing in it is not begun beside records that a move or a restore was to bring there. Beside files and keys it is, and from then on
// the directory is in use: what a restore has left in it is removed.
func TestOpenStore_BesideRecords(t *testing.T) {
	t.Parallel()
	address, dir := postgrestest.Start(t).Database(t), t.TempDir()
	for _, c := range []struct{ name, says string }{
		{datadir.MovedFile, "rename the file to " + datadir.DatabaseFile},
		{datadir.DatabaseFile, "tandem migrate"},
		{filepath.Join(datadir.RestoreDir, "half"), "tandem restore"},
	} {
		there := t.TempDir()
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(there, c.name)), 0o700), os.WriteFile(filepath.Join(there, c.name), []byte("records"), 0o600)); err != nil {
			t.Fatal(err)
		}
		db, err := openStore(t.Context(), &Options{Dir: there, Database: address})
		if err == nil {
			err = db.Close()
			t.Errorf("beside %s it is opened: %v", c.name, err)
		} else if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), c.says) {
			t.Errorf("beside %s it is refused with %v", c.name, err)
		}
		if err := postgres.Vacant(t.Context(), address); err != nil {
			t.Fatalf("beside %s: %v", c.name, err)
		}
		held, err := datadir.Lock(there)
		if err != nil {
			t.Fatalf("the directory is not let go of: %v", err)
		}
		if err := datadir.Unlock(held); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "files"), 0o700), os.WriteFile(filepath.Join(dir, credential.KeyFile), []byte("key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"", datadir.MovedFile, datadir.RestoreDir} { // these are there when the move or the restore has come to its end
		if made != "" {
			if err := os.Mkdir(filepath.Join(dir, made), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		db, err := openStore(t.Context(), &Options{Dir: dir, Database: address})
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			t.Errorf("with %q it is not opened: %v", made, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, datadir.RestoreDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a restore has left is there: %v", err)
	}
}

// A process that has waited for the database does not keep the one from writing that still has the data directory: otherwise both would end.
func TestOpenStore_DirectoryOfTheOwner(t *testing.T) {
	t.Parallel()
	address, dir := postgrestest.Start(t).Database(t), t.TempDir()
	owner, err := postgres.Open(t.Context(), address) // its connection with the lock is lost
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	write := func() error {
		return owner.Stores().Workspaces.Create(t.Context(), identity.System(""), identity.Workspace{ID: NewExecutionID(), Name: "w"})
	}
	held, err := datadir.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := postgres.Await(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := openStore(short, &Options{Dir: dir, Database: address, lock: lock}); err == nil {
		t.Error("it has a directory that another has")
	}
	if err := write(); err != nil {
		t.Errorf("the owner: %v", err)
	}
	if err := datadir.Unlock(held); err != nil {
		t.Fatal(err)
	}
	if lock, err = postgres.Await(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	db, err := openStore(t.Context(), &Options{Dir: dir, Database: address, lock: lock})
	if err != nil {
		t.Fatal(err)
	}
	if err := write(); !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("the owner before: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if held, err = datadir.Lock(dir); err != nil {
		t.Fatalf("after closing: %v", err)
	}
	if err := datadir.Unlock(held); err != nil {
		t.Error(err)
	}
}

// tellingLog hands on the messages of a log.
type tellingLog struct {
	slog.Handler
	told chan<- string
}

func (tellingLog) Enabled(context.Context, slog.Level) bool { return true }

func (l tellingLog) Handle(_ context.Context, r slog.Record) error {
	select {
	case l.told <- r.Message:
	default: // nobody reads so many
	}
	return nil
}

// TestServe_StandsByAgain: a server that has waited for the database, and cannot open it because the server of the database has no connection left, goes on waiting.
func TestServe_StandsByAgain(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	direct := server.Database(t)
	admin, err := pgx.Connect(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	do := func(statement string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	do(`CREATE ROLE poor LOGIN`)
	do(`ALTER DATABASE ` + admin.Config().Database + ` OWNER TO poor`)
	address := strings.Replace(direct, "tandem@", "poor@", 1)
	owner, err := postgres.OpenOwned(t.Context(), postgres.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 1000)
	s := startServer(t, ServeOptions{Dir: besideADirectory(t), Database: address, Log: slog.New(tellingLog{slog.DiscardHandler, told})})
	if !s.StandsBy {
		t.Error("it does not stand by")
	}
	for waits := 0; waits < 2; { // the owner, and who waits for the lock
		if err := admin.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tandem owner%'`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	do(`ALTER ROLE poor CONNECTION LIMIT 1`) // that of the lock: those that are there stay
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	hear := func(part string) {
		t.Helper()
		for {
			select {
			case message := <-told:
				if strings.Contains(message, part) {
					return
				}
			case err := <-s.ended:
				t.Fatalf("the server has ended: %v", err)
			}
		}
	}
	hear("stands by again")
	do(`ALTER ROLE poor CONNECTION LIMIT -1`)
	hear("listening")
	s.stopAndWait()
	do(`ALTER DATABASE ` + admin.Config().Database + ` OWNER TO CURRENT_USER`)
}
