//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// onlyOurs says whether a file or directory belongs to the user that this process runs as, and nobody else can write it.
func onlyOurs(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link", path)
	case !ok:
		return fmt.Errorf("whose %s is cannot be told", path)
	case int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to the user %d and not to %d; remove it, or run as its owner", path, stat.Uid, os.Geteuid())
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by other users (mode %04o); run chmod -R go-w on it, or remove it", path, info.Mode().Perm())
	}
	return nil
}

// notForAll says whether a directory above the cache is one in which any user could put something else in its place.
func notForAll(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("every user of the machine can write %s (mode %04o)", path, info.Mode().Perm())
	}
	return nil
}

// lockCache waits until no other process fills a version, and keeps others from doing so until the lock is given back.
func lockCache(home string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(home, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the cache of compiled modules: %w", err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the cache of compiled modules: %w", err), file.Close())
	}
	return func() { file.Close() }, nil // which gives the lock back
}
