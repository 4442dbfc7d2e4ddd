package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/store"
)

// The files that SQLite keeps beside a database.
const (
	logSuffix   = "-wal"
	indexSuffix = "-shm"
)

// realPath is where a database really is: SQLite puts its other files there when it is a symbolic link.
func realPath(dir string) string {
	path := filepath.Join(dir, databaseFile)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path // it is made there
}

// remains are the names of what a data directory has besides its database, if it has been in use. A log without a
// database is such a thing; beside a database it has been read as a part of that.
func remains(dir string, log bool) (names []string, err error) {
	files := []string{markFile, credential.KeyFile}
	if log {
		files = append(files, databaseFile+logSuffix)
	}
	for _, name := range files {
		info, err := os.Stat(filepath.Join(dir, name))
		switch {
		case err == nil && info.Size() > 0:
			names = append(names, name)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	copies, err := filepath.Glob(filepath.Join(dir, databaseFile+copySuffix+"*"))
	if err != nil {
		return nil, err
	}
	for _, c := range copies {
		names = append(names, filepath.Base(c))
	}
	kept, err := os.ReadDir(filepath.Join(dir, blobDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(kept) > 0 {
		names = append(names, blobDir)
	}
	return names, nil
}

// databaseGone refuses a directory that has been in use and whose database is missing, or empty, or has nothing in it: to
// begin anew in it would be to forget everything in silence.
func databaseGone(dir, how string, log bool) error {
	names, err := remains(dir, log)
	if err != nil {
		return unusable(dir, err)
	}
	if len(names) == 0 {
		return nil
	}
	return lost{
		what:   fmt.Sprintf("the database %q %s, and the directory has been in use: it has %s", filepath.Join(dir, databaseFile), how, strings.Join(names, ", ")),
		remedy: "restore the database from a copy, or move these away to begin anew",
	}.refusal()
}

// hasDatabase says whether a directory has a database that is not empty.
func hasDatabase(dir string) (bool, error) {
	info, err := os.Stat(filepath.Join(dir, databaseFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, databaseGone(dir, "is missing", true)
	case err != nil:
		return false, unusable(dir, err)
	case info.Size() == 0:
		return false, databaseGone(dir, "is empty", true)
	}
	return true, nil
}

// openPrivate opens a file of this user's alone, making it if it is not there. SQLite gives the files beside a database
// the database's mode.
func openPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := private(path, 0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// private takes a file from everybody but its owner, whatever the umask was and whoever could read it before. One that is
// not there is fine.
func private(path string, mode fs.FileMode) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Perm() == mode {
		return nil
	}
	if err := os.Chmod(path, mode); err != nil {
		return fault.Newf(fault.Forbidden, "%q has the mode %04o and cannot be made private; as its owner, set it with: chmod %o %s", path, info.Mode().Perm(), mode, path).WithCause(err)
	}
	return nil
}

// makePrivate sees to it that nobody else reads what a directory holds, also where the directory itself is open to others.
func makePrivate(dir, path string) error {
	f, err := openPrivate(path)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, name := range []string{path + logSuffix, path + indexSuffix, path + "-journal", filepath.Join(dir, lockFile)} {
		if err := private(name, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// watch knows the files of an open database, and notices when one of them is another or gone. What is written to a file
// without a name is lost with the process.
type watch struct {
	files []watched
}

type watched struct {
	path string
	info os.FileInfo
}

// newWatch looks at files that are in use. The first ones are those that [watch.essential] looks at.
func newWatch(paths ...string) (*watch, error) {
	w := &watch{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		w.files = append(w.files, watched{path, info})
	}
	return w, nil
}

// essential checks the database and its log, which hold what is acknowledged.
func (w *watch) essential() error { return check(w.files[:2]) }

func (w *watch) all() error { return check(w.files) }

func check(files []watched) error {
	for _, f := range files {
		switch info, err := os.Stat(f.path); {
		case errors.Is(err, fs.ErrNotExist):
			return stopped(replaced, "the file %s was removed while it was in use", filepath.Base(f.path))
		case err != nil:
			return err
		case !os.SameFile(info, f.info):
			return stopped(replaced, "the file %s was replaced while it was in use", filepath.Base(f.path))
		}
	}
	return nil
}

// What to do after a stop.
const (
	replaced  = "nothing more is acknowledged; put the file back if it was moved, then start again"
	tookPlace = "this one has stopped; let one process use a data directory"
)

// stopped is why a store has ended for good, in words for everybody.
func stopped(remedy, format string, args ...any) error {
	return fault.Newf(fault.Internal, "%s; %s", fmt.Sprintf(format, args...), remedy).WithCause(store.ErrBroken)
}

// watchEvery is how often the files are looked at when nobody writes.
const watchEvery = 400 * time.Millisecond

// watcher looks after an open database when nobody writes: are its files there, is its epoch the newest? Its goroutine ends
// with stop.
type watcher struct {
	quit, done chan struct{}
}

func startWatcher(look func() error, fail func(error) error) *watcher {
	w := &watcher{make(chan struct{}), make(chan struct{})}
	go w.loop(look, fail)
	return w
}

func (w *watcher) loop(look func() error, fail func(error) error) {
	defer close(w.done)
	ticks := time.NewTicker(watchEvery)
	defer ticks.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-ticks.C:
			if err := look(); err != nil {
				fail(err)
				return
			}
		}
	}
}

func (w *watcher) stop() {
	close(w.quit)
	<-w.done
}
