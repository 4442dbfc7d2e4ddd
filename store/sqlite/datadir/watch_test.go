package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"tandem/store"
)

// TestWatch_ManyLookWhileAFileGrows: a file that only grows has never been cut, whoever looks at it at the same time.
func TestWatch_ManyLookWhileAFileGrows(t *testing.T) {
	t.Parallel()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "growing")
	f, err := os.Create(path)
	check(err)
	file := new(watched)
	check(file.know(path))
	look := func() (shrunk bool, err error) {
		_, smaller, err := file.look()
		return smaller >= 0, err
	}
	grown := make(chan struct{})
	var lookers sync.WaitGroup
	for range 8 {
		lookers.Go(func() {
			for {
				shrunk, err := look()
				if err != nil || shrunk {
					t.Errorf("shrunk: %t, %v", shrunk, err)
					return
				}
				select {
				case <-grown:
					return
				default:
				}
			}
		})
	}
	for range 20_000 {
		if _, err := f.Write([]byte{1}); err != nil {
			t.Error(err)
			break
		}
	}
	close(grown)
	lookers.Wait()
	check(f.Close())
	check(os.Truncate(path, 1))
	if shrunk, err := look(); err != nil || !shrunk {
		t.Errorf("a file that was cut: shrunk %t, %v", shrunk, err)
	}
}

// TestWatch_Shortage: that no file can be opened for now says nothing about the log. The watch goes on, and no transaction begins on a log
// that could not be read.
func TestWatch_Shortage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tandem.db")
	for _, name := range []string{path, path + LogSuffix, path + indexSuffix} {
		if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	answer := error(syscall.EMFILE)
	w, err := NewWatch(path, func() error { return answer })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path+LogSuffix, 3); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is not forgotten either
		if err := w.All(); err != nil {
			t.Errorf("the watch stops for a shortage: %v", err)
		}
		if err := w.Begin(); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("a transaction begins on a log that could not be read: %v", err)
		}
	}
	answer = errors.New("it lacks commit 7")
	if err := w.All(); !errors.Is(err, store.ErrBroken) {
		t.Errorf("a log that lacks something: %v", err)
	}
	answer = nil
	if err := w.Begin(); err != nil {
		t.Errorf("a log that has everything: %v", err)
	}
	w.End()
}

// TestWatch_CutMeanwhile: a log that is cut while a transaction has the right to write is read before anything else is written to it, also when
// that transaction writes nothing and so tells nobody.
func TestWatch_CutMeanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tandem.db")
	for _, name := range []string{path, path + LogSuffix, path + indexSuffix} {
		if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := NewWatch(path, func() error { return errors.New("it lacks commit 7") })
	if err != nil {
		t.Fatal(err)
	}
	if err := w.All(); err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path+LogSuffix, 3); err != nil {
		t.Fatal(err)
	}
	w.End()
	if err := w.Committed(); !errors.Is(err, store.ErrBroken) {
		t.Errorf("a commit into a log that was cut: %v", err)
	}
	if err := w.Begin(); !errors.Is(err, store.ErrBroken) {
		t.Errorf("the next transaction begins: %v", err)
	}
}
