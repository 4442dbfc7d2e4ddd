package datadir

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
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
		smaller, err := file.look()
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
