package app

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/credential"
	"tandem/doctor"
	"tandem/store/sqlite/datadir"
)

// end waits for a server that ends by itself, and returns why.
func (s *served) end() error {
	s.t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(patient):
		s.t.Fatal("the server goes on")
		return nil
	}
}

// TestServe_FilesReplaced removes the log under a server, which ends with what it had saved.
func TestServe_FilesReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, ServeOptions{Dir: dir})
	if err := os.Remove(filepath.Join(dir, datadir.DatabaseFile+"-wal")); err != nil {
		t.Fatal(err)
	}
	if err := s.end(); err == nil || !strings.Contains(err.Error(), "tandem.db-wal was removed while it was in use") {
		t.Errorf("the server ended with %v", err)
	}
	again := startServer(t, ServeOptions{Dir: dir})
	if again.Secret != "" {
		t.Error("the next start made a new token: it has forgotten the first one")
	}
	res := again.open(t.Context(), s.token, "GET", "/api/v1/workflows", "")
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the token of the first start: %s, %v", res.Status, err)
	}
	again.stopAndWait()
}

// TestServe_SecondServer has a second server on a directory whose lock file was deleted.
func TestServe_SecondServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startServer(t, ServeOptions{Dir: dir})
	if err := os.Remove(filepath.Join(dir, "tandem.lock")); err != nil {
		t.Fatal(err)
	}
	second := startServer(t, ServeOptions{Dir: dir})
	if err := first.end(); err == nil || !strings.Contains(err.Error(), "another process has taken over the data directory") {
		t.Errorf("the first server ended with %v", err)
	}
	res := second.open(t.Context(), first.token, "GET", "/readyz", "")
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the second server: %s, %v", res.Status, err)
	}
	second.stopAndWait()
}

// expectFinding looks at what is found out about one thing, and what is to be done about it; nothing is when remedy is empty.
func expectFinding(t *testing.T, d doctor.Doctor, name string, status doctor.Health, message, remedy string) {
	t.Helper()
	found := d.Examine(t.Context())
	if !slices.ContainsFunc(found.Findings, func(f doctor.Finding) bool {
		return f.Name == name && f.Status == status && strings.Contains(f.Message, message) && (f.Remedy == "") == (remedy == "") && strings.Contains(f.Remedy, remedy)
	}) {
		t.Errorf("nothing says of %q that it is %s and %q, with the remedy %q: %+v", name, status, message, remedy, found)
	}
}

// TestRecover_MissingDatabase says the same at every door to a directory whose database is gone.
func TestRecover_MissingDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i := openInstance(t, dir)
	if _, err := i.Keyring(); err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, datadir.DatabaseFile)); err != nil {
		t.Fatal(err)
	}
	_, opened := Open(t.Context(), Options{Dir: dir})
	_, looked := NewConnection(t.Context(), Connect{Dir: dir})
	_, made := NewConnection(t.Context(), Connect{Dir: dir, Make: true})
	_, accepted := doctor.Recover(t.Context(), dir, true)
	for door, err := range map[string]error{
		"open": opened, "connection that looks": looked, "connection that makes": made, "recover": accepted,
		"serve": Serve(context.WithoutCancel(t.Context()), ServeOptions{Dir: dir, Addr: "127.0.0.1:0"}),
	} {
		if err == nil || !strings.Contains(err.Error(), "is missing, and the directory has been in use: it has tandem.mark, "+credential.KeyFile) ||
			!strings.Contains(err.Error(), "restore the database from a copy, or move these away") {
			t.Errorf("%s: %v", door, err)
		}
	}
	expectFinding(t, doctor.Doctor{Dir: dir, Addr: "127.0.0.1:0", Listen: Listen}, "database", doctor.Failing, "is missing, and the directory has been in use", "restore the database from a copy, or move these away")
}

// TestRecover_OlderCopy puts an older database in the place of the newest.
func TestRecover_OlderCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := openInstance(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := doctor.Recover(t.Context(), dir, true); err != nil || r != (doctor.Recovery{}) {
		t.Errorf("of a sound directory: %+v, %v", r, err)
	}
	old, err := os.ReadFile(filepath.Join(dir, datadir.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := openInstance(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, datadir.DatabaseFile), old, 0o600); err != nil {
		t.Fatal(err)
	}
	d := doctor.Doctor{Dir: dir, Addr: "127.0.0.1:0", Listen: Listen}
	expectFinding(t, d, "database", doctor.Failing, "older copy", "tandem recover --accept-loss --data "+dir)
	if _, err := Open(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "tandem recover --accept-loss --data "+dir) {
		t.Errorf("open: %v", err)
	}
	if r, err := doctor.Recover(t.Context(), dir, false); err != nil || r.Accepted || !strings.Contains(r.Lost, "older copy") {
		t.Errorf("recover: %+v, %v", r, err)
	}
	if r, err := doctor.Recover(t.Context(), dir, true); err != nil || !r.Accepted || !strings.Contains(r.Lost, "older copy") {
		t.Errorf("recover: %+v, %v", r, err)
	}
	expectFinding(t, d, "database", doctor.Healthy, "it is sound", "")
	expectFinding(t, d, "accepted losses", doctor.Healthy, "older copy", "")
	if err := openInstance(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
}
