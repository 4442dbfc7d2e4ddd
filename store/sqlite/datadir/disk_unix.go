//go:build linux || darwin || freebsd

package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"tandem/fault"
	"tandem/store"
)

// Lock takes the directory for this process. The lock goes when the process does, however it ends.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, Unusable(dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		text, _ := io.ReadAll(io.LimitReader(f, 32)) // only for the message
		closeErr := f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock data directory %q: %w", dir, err), closeErr)
		}
		owner := "another process"
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			owner = fmt.Sprintf("process %d", pid)
		}
		return nil, fault.Newf(fault.Conflict, "data directory %q is in use by %s; stop it or choose another directory", dir, owner).With(store.InUse, true)
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(Unusable(dir, err), f.Close())
	}
	return f, nil
}

// Unlock lets go of the directory. Closing the file is not enough: a process that is being started elsewhere in this
// one shares it for a moment.
func Unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// FreeSpace returns what this user may still write.
func FreeSpace(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("read free space of %q: %w", dir, err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}

// identify tells which file has a name, how long it is and when it was written to. Every commit asks several times, so it does without
// what os.Stat makes besides.
func identify(path string) (fileID, stamp, error) {
	for {
		var s syscall.Stat_t
		switch err := syscall.Stat(path, &s); {
		case err == nil:
			return fileID{uint64(s.Dev), uint64(s.Ino)}, stamp{s.Size, modified(&s)}, nil
		case !errors.Is(err, syscall.EINTR):
			return fileID{}, stamp{}, &os.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

// NoSpace says that the disk has no room for a write.
func NoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }

// SyncDir makes a rename in a directory durable.
func SyncDir(d *os.File) error { return d.Sync() }
