package app

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
)

// smallDisk is a directory on a disk of its own, of 96 MiB. Where this process may not mount one, the test is left out. Another
// process takes the disk away, so that it does not outlive this one, whatever becomes of it.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tandem-disk")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m,mode=0777"); err != nil {
		t.Skipf("NOTICE: no disk can be mounted (%v): a full disk is NOT TESTED", errors.Join(err, os.Remove(dir)))
	}
	var said strings.Builder
	away := exec.Command("sh", "-c", `cat; umount -l "$0" && rmdir "$0"`, dir)
	away.Stdout, away.Stderr, away.SysProcAttr = &said, &said, &syscall.SysProcAttr{Setpgid: true}
	held, err := away.StdinPipe() // it ends with this process at the latest
	if err == nil {
		err = away.Start()
	}
	if err != nil {
		t.Fatal(errors.Join(err, syscall.Unmount(dir, 0), os.Remove(dir)))
	}
	t.Cleanup(func() {
		if err := errors.Join(held.Close(), away.Wait()); err != nil {
			t.Errorf("take the disk away: %v: %s", err, &said)
		}
	})
	return dir
}

// fill leaves no room on a disk. What is in the way can be removed, also twice.
func fill(t *testing.T, dir string) (remove func()) {
	t.Helper()
	name := filepath.Join(dir, "in-the-way")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

// zeros are any number of bytes.
type zeros struct{}

// Read implements [io.Reader].
func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A disk that is full, of this machine or of the database's server: starts are refused, /readyz says why, and everything goes on
// once there is room.
func TestOutage_FullDisk(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, disk string) ServeOptions{
		"SQLite": func(_ *testing.T, disk string) ServeOptions { return ServeOptions{Dir: filepath.Join(disk, "data")} },
		"PostgreSQL": func(t *testing.T, disk string) ServeOptions {
			server := postgrestest.Start(t)
			tables := filepath.Join(disk, "tables")
			if err := os.Mkdir(tables, 0o700); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("chown", "postgres", tables).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			conn, err := pgx.Connect(t.Context(), server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.WithoutCancel(t.Context()))
			for _, statement := range []string{`CREATE TABLESPACE small LOCATION '` + tables + `'`, `CREATE DATABASE small TABLESPACE small`} {
				if _, err := conn.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			address, err := postgres.Beside(server.URL, "small")
			if err != nil {
				t.Fatal(err)
			}
			return ServeOptions{Dir: t.TempDir(), Database: address}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := smallDisk(t)
			s := startServer(t, open(t, disk))
			defer s.stopAndWait()
			start := s.napping(strings.Repeat("0123456789abcdef", 2<<10))
			status, body, id := start()
			if status >= 300 {
				t.Fatalf("%d %s", status, body)
			}
			remove := fill(t, disk)
			defer remove()     // so that the server can stop
			for status < 300 { // there may be some room left in the files of the database
				status, body, _ = start()
			}
			if status < 500 || !strings.Contains(body, "make room") {
				t.Errorf("a start: %d %s", status, body)
			}
			if status, body := s.call("", "GET", "/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "make room") {
				t.Errorf("/readyz: %d %s", status, body)
			}
			remove()
			s.recovers(id)
			for status = 500; status >= 300; { // until it is known that there is room
				status, _, id = start()
			}
			s.recovers(id)
		})
	}
}
