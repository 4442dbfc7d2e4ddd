package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Compiling the interpreter takes seconds, so what comes of it is kept: in a cache directory, which has one directory for each
// version of the interpreter, with the compiled module and the image. A child marks the one it uses, by its time. A process that adds a
// version removes those that nobody has used for cacheAge. What lies there is executed, so it must have been written by the user
// that this process runs as, and nobody else may be able to write it.
const (
	cachePrefix = "python-"
	imageName   = "image"
	lockName    = "lock"
	cacheAge    = 14 * 24 * time.Hour
)

// MachineCache is the cache directory of the user that this process runs as, which all data directories of the machine share. It is
// made if there is none. The error says why there cannot be one, or why it cannot be trusted; a directory of the caller's own
// does as well then.
func MachineCache() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(base) {
		return "", fmt.Errorf("the user's cache directory %q is not an absolute path", base)
	}
	dir := filepath.Join(base, "tandem", "sandbox")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	if err := onlyOurs(dir); err != nil {
		return "", err
	}
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		if err := notForAll(above); err != nil {
			return "", err
		}
		if above == filepath.Dir(above) {
			return dir, nil
		}
	}
}

// cacheName is the name of the directory for this version: of everything that goes into what is kept there.
func cacheName() (string, error) {
	file, err := modules.Open(pythonFile)
	if err != nil {
		return "", fmt.Errorf("open the embedded interpreter: %w", err)
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("read the embedded interpreter: %w", err)
	}
	io.WriteString(h, pythonBootstrap)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				io.WriteString(h, d.Version)
			}
		}
	}
	return cachePrefix + runtime.GOOS + "-" + runtime.GOARCH + "-" + hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// cacheHome returns the directory for a version, and marks it as used.
func cacheHome(dir, name string) (string, error) {
	if err := onlyOurs(dir); err != nil {
		return "", fmt.Errorf("the cache of compiled interpreters is not used: %w", err)
	}
	home := filepath.Join(dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", fmt.Errorf("make the cache of compiled modules: %w", err)
	}
	now := time.Now()
	// Where it cannot be marked, nobody can remove it either.
	_ = os.Chtimes(home, now, now)
	return home, nil
}

// filled says that a version is there: its image is made last. Whether it is whole is looked at when it is used.
func filled(home string) bool {
	file, err := os.Open(filepath.Join(home, imageName))
	if err != nil {
		return false
	}
	defer file.Close()
	_, _, err = readTrailer(file)
	return err == nil
}

// allOurs says whether everything that is kept of a version was written by us alone.
func allOurs(home string) error {
	return filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a file of somebody who fills it at this moment
		}
		if err != nil {
			return err
		}
		if err := onlyOurs(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// dropUnfinished removes files that somebody was writing who has died. The caller has the lock.
func dropUnfinished(home string) error {
	var failed []error
	for _, pattern := range []string{"*.tmp", "*/*.tmp"} {
		left, err := filepath.Glob(filepath.Join(home, pattern))
		failed = append(failed, err)
		for _, path := range left {
			failed = append(failed, os.Remove(path))
		}
	}
	return errors.Join(failed...)
}

// emptyCache removes what is kept of a version, except for the lock.
func emptyCache(home string) error {
	entries, err := os.ReadDir(home)
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range entries {
		if e.Name() != lockName {
			failed = append(failed, os.RemoveAll(filepath.Join(home, e.Name())))
		}
	}
	return errors.Join(failed...)
}

// sweepCache removes versions other than the one in home that nobody has used since before. Children that run have all
// they need open and in memory. A child that starts at this moment marks its version first: a directory is moved out of
// the way, looked at once more, and put back if it was marked meanwhile.
func sweepCache(home string, before time.Time) error {
	dir := filepath.Dir(home)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	unused := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.ModTime().Before(before)
	}
	var failed []error
	for _, e := range entries {
		path, aside := filepath.Join(dir, e.Name()), filepath.Join(dir, cachePrefix+"old-"+e.Name())
		if !strings.HasPrefix(e.Name(), cachePrefix) || path == home || !unused(path) {
			continue
		}
		if err := os.Rename(path, aside); errors.Is(err, os.ErrNotExist) {
			continue // another process removes it
		} else if err != nil {
			failed = append(failed, err)
			continue
		}
		if !unused(aside) {
			failed = append(failed, os.Rename(aside, path))
			continue
		}
		failed = append(failed, os.RemoveAll(aside))
	}
	return errors.Join(failed...)
}
