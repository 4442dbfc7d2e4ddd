package datadir

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/shortage"
	"tandem/store"
)

// The files that SQLite keeps beside a database: its log, and an index of that.
const (
	LogSuffix   = "-wal"
	indexSuffix = "-shm"
)

// LogLimit is what the file of the log is cut to by SQLite when it starts anew after a long one.
const LogLimit = 64 << 20

// RealPath is where a database really is: SQLite puts its other files there when it is a symbolic link.
func RealPath(dir string) string {
	path := filepath.Join(dir, DatabaseFile)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path // it is made there
}

// remains are the names of what a data directory has besides its database, if it has been in use. A log without a
// database is such a thing; beside a database it has been read as a part of that.
func remains(dir string, log bool) (names []string, err error) {
	files := []string{markFile, credential.KeyFile, RestoreDir, MovedFile}
	if log {
		files = append(files, DatabaseFile+LogSuffix)
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
	copies, err := filepath.Glob(filepath.Join(dir, DatabaseFile+copySuffix+"*"))
	if err != nil {
		return nil, err
	}
	for _, c := range copies {
		names = append(names, filepath.Base(c))
	}
	kept, err := os.ReadDir(filepath.Join(dir, BlobDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(kept) > 0 {
		names = append(names, BlobDir)
	}
	return names, nil
}

// databaseGone refuses a directory that has been in use and whose database is missing, or empty, or has nothing in it: to
// begin anew in it would be to forget everything in silence.
func databaseGone(dir, how string, log bool) error {
	names, err := remains(dir, log)
	if err != nil {
		return Unusable(dir, err)
	}
	if len(names) == 0 {
		return nil
	}
	if slices.Contains(names, MovedFile) {
		return lost{
			what:   fmt.Sprintf("the records of %q were moved to a database of PostgreSQL, and %s is what was here before", dir, MovedFile),
			remedy: "name that database with --database (TANDEM_DATABASE); if it has nothing in it, or is not used, " + backAgain,
		}.refusal()
	}
	return lost{
		what:   fmt.Sprintf("the database %q %s, and the directory has been in use: it has %s", filepath.Join(dir, DatabaseFile), how, strings.Join(names, ", ")),
		remedy: "restore the database from a copy, or move these away to begin anew",
	}.refusal()
}

// backAgain is how a database is used again that was put aside.
const backAgain = "rename the file to " + DatabaseFile + " (and " + MovedFile + LogSuffix + " to " + DatabaseFile + LogSuffix + ", if there is one)"

// BesideNew refuses a directory for use with a database elsewhere that has nothing in it, when the directory has records of its own, or a
// move or a restore has not come to its end: to begin anew would be to forget everything in silence.
func BesideNew(dir string) error {
	names, err := remains(dir, false)
	if err != nil {
		return Unusable(dir, err)
	}
	info, err := os.Stat(filepath.Join(dir, DatabaseFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Unusable(dir, err)
	}
	switch {
	case slices.Contains(names, MovedFile):
		return lost{
			what:   fmt.Sprintf("the database has nothing in it, and the records of %q were to be moved to one of PostgreSQL: %s is what was here before", dir, MovedFile),
			remedy: "name the database that they were moved to with --database (TANDEM_DATABASE); if there is none, " + backAgain + ", then move them again with tandem migrate",
		}.refusal()
	case err == nil && info.Size() > 0:
		return lost{
			what:   fmt.Sprintf("the database has nothing in it, and %q has records of its own in %s", dir, DatabaseFile),
			remedy: "move them with tandem migrate, go on with them without --database (TANDEM_DATABASE), or name another directory with --data",
		}.refusal()
	case slices.Contains(names, RestoreDir):
		return lost{
			what:   fmt.Sprintf("the database has nothing in it, and a restore into %q did not come to its end: it has %s", dir, RestoreDir),
			remedy: "give the command tandem restore again, or name another directory with --data",
		}.refusal()
	}
	return nil
}

// hasDatabase says whether a directory has a database that is not empty.
func hasDatabase(dir string) (bool, error) {
	info, err := os.Stat(filepath.Join(dir, DatabaseFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, databaseGone(dir, "is missing", true)
	case err != nil:
		return false, Unusable(dir, err)
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
	if err := Private(path, 0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Private takes a file from everybody but its owner, whatever the umask was, and no matter who could read it before. One that is
// not there is fine.
func Private(path string, mode fs.FileMode) error {
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

// makePrivate sees to it that nobody else reads what a directory holds, also where the directory itself is open to others. A
// database that is there is not opened for it: closing it again would let go of locks that this process has on it.
func makePrivate(dir, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, name := range []string{path, path + LogSuffix, path + indexSuffix, path + "-journal", filepath.Join(dir, LockFile)} {
		if err := Private(name, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Watch knows the files of an open database, and notices when one of them is another, gone or cut. What is written to a file
// without a name is lost with the process.
type Watch struct {
	// database and log hold what is acknowledged; rest are the others.
	database, log watched
	rest          []watched
	// verify is asked whether the database has all of its log, when that is shorter than before, or somebody else has written
	// to it: another program may have folded it.
	verify func() error

	// mu is held while left is compared with the log, and while that is written to.
	mu sync.Mutex
	// left is how the store left the log after its last transaction; shrunk and bad are what else was found then.
	left   stamp
	shrunk int64
	bad    error
}

// watched is one of the files. The committer and the watcher look at it at the same time: each looks and compares under the
// lock, or a size that was read before the file grew would be compared with one that was read after.
type watched struct {
	path string
	file fileID

	mu   sync.Mutex
	size int64 // when it was last looked at
}

// fileID tells files apart, whatever their names.
type fileID struct{ device, number uint64 }

// stamp is what a file is told by to be as it was left: how long it is, and when it was last written to, in nanoseconds.
type stamp struct{ size, written int64 }

// NewWatch looks at the files of a database that is in use.
func NewWatch(path string, verify func() error, rest ...string) (w *Watch, err error) {
	w = &Watch{rest: make([]watched, 1+len(rest)), verify: verify}
	for _, f := range []struct {
		path string
		into *watched
	}{{path, &w.database}, {path + LogSuffix, &w.log}, {path + indexSuffix, &w.rest[0]}} {
		if err := f.into.know(f.path); err != nil {
			return nil, err
		}
	}
	for i, path := range rest {
		if err := w.rest[1+i].know(path); err != nil {
			return nil, err
		}
	}
	_, w.left, err = identify(path + LogSuffix)
	return w, err
}

// Begin is called when a transaction has the right to write, before it writes, and [Watch.End] when it has ended, well or not, unless Begin
// has refused. Between the two the watch leaves the log alone. Begin refuses when somebody else has written to the log and it lacks
// something that was acknowledged: the transaction would hide that by making the log as long as it was.
func (w *Watch) Begin() error {
	w.mu.Lock()
	err := w.untouched()
	if err != nil {
		w.mu.Unlock()
	}
	return err
}

// End notes how the transaction leaves the log. If that cannot be told, the next one reads whether everything is there.
func (w *Watch) End() {
	defer w.mu.Unlock()
	if w.left, w.shrunk, w.bad = w.log.look(); w.shrunk >= 0 {
		w.left = stamp{} // whoever comes next reads it, also if this one has nothing to tell
	}
}

// Committed checks the database, and its log as [Watch.End] has found it, before anybody is told of a commit.
func (w *Watch) Committed() error {
	if err := w.whereItWas(); err != nil {
		return err
	}
	return w.logged(w.shrunk, w.bad)
}

// untouched says whether the log is as the store left it, or at least has everything.
func (w *Watch) untouched() error {
	_, now, err := identify(w.log.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stopped("the file %s was removed while it was in use", w.log.path)
	case err != nil || now == w.left:
		return err
	}
	if err := w.whole(); err != nil {
		return err
	}
	w.left = now
	return nil
}

// whole says whether the database has all of its log. A shortage says nothing about that: the caller may try again.
func (w *Watch) whole() error {
	switch err := w.verify(); {
	case err == nil:
		return nil
	case shortage.Is(err):
		return err
	}
	return stopped("the file %s was cut or written over while it was in use", w.log.path)
}

func (f *watched) know(path string) (err error) {
	f.path = path
	f.file, _, err = identify(path)
	return err
}

// look says whether a file is still the same, and how it is now: its stamp, and its size if that has become smaller, else -1.
func (f *watched) look() (now stamp, shrunk int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch file, now, err := identify(f.path); {
	case errors.Is(err, fs.ErrNotExist):
		return stamp{}, -1, stopped("the file %s was removed while it was in use", f.path)
	case err != nil:
		return stamp{}, -1, err
	case file != f.file:
		return stamp{}, -1, stopped("the file %s was replaced while it was in use", f.path)
	default:
		before := f.size
		if f.size = now.size; now.size < before {
			return now, now.size, nil
		}
		return now, -1, nil
	}
}

// completeTries and completePause are for a file that is written to while it is looked at: its header may be ahead of its length for a
// moment.
const (
	completeTries = 40
	completePause = 25 * time.Millisecond
)

// complete says whether a database file that has become smaller has all of its pages: one that has given back free pages says in its header
// how many are left, and one that was cut has fewer than that.
func complete(path string) bool {
	for try := range completeTries {
		if try > 0 {
			time.Sleep(completePause)
		}
		if _, now, err := identify(path); err != nil || now.size == 0 {
			return false // and SQLite must not be asked: it removes the log of a database that is empty
		}
		if whole, err := hasAllPages(path); err == nil && whole {
			return true
		}
	}
	return false
}

// hasAllPages asks SQLite, which must be the only one to open the file: closing it would let go of all locks that this process has on it.
func hasAllPages(path string) (whole bool, err error) {
	var pages, size int64
	err = look(path, true, func(db *sql.DB) error {
		return db.QueryRowContext(context.Background(), "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size").Scan(&pages, &size)
	})
	if err != nil {
		return false, err
	}
	_, now, err := identify(path)
	return pages > 0 && now.size >= pages*size, err
}

// Essential checks the database and its log.
func (w *Watch) Essential() error {
	if err := w.whereItWas(); err != nil {
		return err
	}
	_, shrunk, err := w.log.look()
	return w.logged(shrunk, err)
}

// whereItWas checks the database.
func (w *Watch) whereItWas() error {
	_, shrunk, err := w.database.look()
	if err == nil && shrunk >= 0 && !complete(w.database.path) {
		err = stopped("the file %s was cut while it was in use", w.database.path)
	}
	return err
}

// logged says whether a log is whole that was found to have shrunk, or has not.
func (w *Watch) logged(shrunk int64, err error) error {
	if err == nil && shrunk >= 0 && shrunk < LogLimit {
		err = w.whole()
	}
	return err
}

// All checks every file, and that nobody else has taken anything from the log. A shortage of open files says nothing about them.
func (w *Watch) All() error {
	err := w.Essential()
	for i := 0; err == nil && i < len(w.rest); i++ {
		_, _, err = w.rest[i].look()
	}
	if err == nil && w.mu.TryLock() { // else a transaction is writing, which has looked itself
		err = w.untouched()
		w.mu.Unlock()
	}
	if shortage.Is(err) {
		return nil
	}
	return err
}

// stopped says, in words for everybody, that a store has ended for good because of a file.
func stopped(format, path string) error {
	return fault.Newf(fault.Internal, format+"; nothing more is acknowledged: put the file back if it was moved, then start again", filepath.Base(path)).WithCause(store.ErrBroken)
}

// WatchEvery is how often the files are looked at when nobody writes.
const WatchEvery = 400 * time.Millisecond

// Watcher looks after an open database when nobody writes: are its files there, is its epoch the newest? Its goroutine ends
// with stop.
type Watcher struct {
	quit, done chan struct{}
}

// StartWatcher has a database looked at until the first error, which it fails with, or until [Watcher.Stop].
func StartWatcher(look func() error, fail func(error) error) *Watcher {
	w := &Watcher{make(chan struct{}), make(chan struct{})}
	go w.loop(look, fail)
	return w
}

func (w *Watcher) loop(look func() error, fail func(error) error) {
	defer close(w.done)
	ticks := time.NewTicker(WatchEvery)
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

// Stop ends the watcher and waits for it.
func (w *Watcher) Stop() {
	close(w.quit)
	<-w.done
}
