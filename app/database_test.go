package app

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/api"
	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
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
