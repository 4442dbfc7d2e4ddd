// Package postgrestest starts a throw-away server of PostgreSQL for tests (scripts/postgres.sh) and makes databases on it. Only tests
// import it.
package postgrestest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Without is the variable that says that tests may do without PostgreSQL. It is for machines that cannot have it.
const Without = "TANDEM_TEST_NO_POSTGRES"

// Server is one that runs.
type Server struct {
	// URL is the address of its first database, which nobody should use but to make others.
	URL string
	dir string
}

// Launch starts a server. It must be stopped.
func Launch() (*Server, error) {
	dir, err := os.MkdirTemp("/tmp", "tandem-pg") // a short path: it holds a socket
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	out, err := s.script("start")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("no PostgreSQL for the tests: %w; install it, or set %s=1 to leave what needs it untested", err, Without), os.RemoveAll(dir))
	}
	s.URL = strings.TrimSpace(out)
	return s, nil
}

// Start starts a server for a test, and stops it after it. Without PostgreSQL the test is left out, if that is allowed.
func Start(t testing.TB) *Server {
	t.Helper()
	if os.Getenv(Without) != "" {
		t.Skipf("NOTICE: %s is set: this is NOT TESTED", Without)
	}
	s, err := Launch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Stop ends the server at once, and removes what it kept.
func (s *Server) Stop() error {
	_, err := s.script("stop")
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Restart ends the server at once, without a word to anybody, and starts it again with what it had kept. Something is done meanwhile.
func (s *Server) Restart(t testing.TB, meanwhile func()) {
	t.Helper()
	if _, err := s.script("stop"); err != nil {
		t.Fatalf("stop PostgreSQL: %v", err)
	}
	meanwhile()
	if _, err := s.script("start"); err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

// module is the directory of the module that is tested. read-only
var module = sync.OnceValues(func() (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if ok && filepath.IsAbs(here) {
		return filepath.Join(filepath.Dir(here), "..", "..", ".."), nil
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output() // with -trimpath the path is one inside the module
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
})

// script runs the script that starts and stops servers.
func (s *Server) script(command string) (string, error) {
	root, err := module()
	if err != nil {
		return "", err
	}
	run := exec.Command(filepath.Join(root, "scripts", "postgres.sh"), command, s.dir)
	run.Stderr = os.Stderr
	out, err := run.Output()
	return string(out), err
}

// run runs a statement on the server.
func (s *Server) run(statement string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// create makes a database from another. Its files are copied, where the server knows another way (PostgreSQL 15 does): to write all of it
// into the log takes it five times the work.
func (s *Server) create(name, template string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	var chooses bool
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int >= 150000").Scan(&chooses)
	if err == nil {
		how := ""
		if chooses {
			how = " STRATEGY file_copy"
		}
		_, err = conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template+how)
	}
	return errors.Join(err, conn.Close(ctx))
}

// Database makes a database of the test's own and returns its address.
func (s *Server) Database(t testing.TB) string { return s.Copy(t, "") }

// Copy makes a database that is as another is, which nobody may have open: the address of one that is up to date spares each test to bring
// its own there. An empty one makes an empty one.
func (s *Server) Copy(t testing.TB, of string) string {
	t.Helper()
	name := "t" + strings.ToLower(rand.Text())
	template := "template1"
	if of != "" {
		config, err := pgx.ParseConfig(of)
		if err != nil {
			t.Fatal(err)
		}
		template = config.Database
	}
	if err := s.create(name, template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // each takes up some megabytes
		if err := s.run("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return strings.Replace(s.URL, "/postgres?", "/"+name+"?", 1)
}
