package sqlite_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// readOnlyAsNobody tries a directory that belongs to root, from a thread that has given up root's right to write.
func readOnlyAsNobody(t *testing.T, refused func(what, dir string, words ...string)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "tandem-read-only")
	check(t, err)
	defer os.RemoveAll(dir)
	check(t, os.Chmod(dir, 0o555))
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := syscall.Setfsuid(65534); err != nil {
			t.Error(err)
			return
		}
		refused("a read-only directory", dir, dir, "write")
	}()
	<-done
}
