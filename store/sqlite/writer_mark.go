package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tandem/fault"
	"tandem/store"
)

// keepMark gives the writer the epoch that was taken and the file that says how far the database has come. The files that
// are in use are known from then on.
func (w *writer) keepMark(m mark, file *os.File) (err error) {
	w.epoch, w.mark, w.next, w.marks = m.epoch, m, m, file
	w.acknowledged.Store(m.commits)
	w.foldedTo.Store(m.folded)
	if w.files, err = newWatch(w.path, w.verify, file.Name()); err != nil {
		return err
	}
	return w.mark.write(file)
}

// number counts a transaction in the database, in that transaction. It refuses when a later process has taken an epoch: then
// nothing of the transaction is kept.
func (w *writer) number() error {
	if !w.wrote {
		var epoch [1]driver.Value
		there, err := w.c.row(epoch[:], "SELECT epoch FROM commit_mark WHERE one = 1")
		if err == nil && (!there || epoch[0] != w.epoch) {
			err = superseded(epoch[0], w.epoch)
		}
		return err
	}
	rows, executions := w.heads.grown()
	w.next = w.mark
	w.next.commits++
	w.next.rows += rows
	w.next.executions += executions
	w.next.time = time.Now().UnixMilli()
	n, err := w.c.change("UPDATE commit_mark SET commits = ?, rows = ?, executions = ?, time = ? WHERE one = 1 AND epoch = ?",
		w.next.commits, w.next.rows, w.next.executions, w.next.time, w.epoch)
	if err == nil && n == 0 {
		err = superseded("a later one", w.epoch)
	}
	return err
}

// superseded is the end of a process whose database another has taken over.
func superseded(now any, own int64) error {
	return fault.New(fault.Internal, "another process has taken over the data directory, and this one has stopped; let one process use a data directory").
		WithCause(fmt.Errorf("%w: %w: its epoch is %v, ours was %d", store.ErrBroken, store.ErrSuperseded, now, own))
}

// attest is what comes between a commit that is on disk and telling anybody: the files that took it still have their names,
// and the mark says that it was there.
func (w *writer) attest() error {
	if err := w.files.essential(); err != nil {
		return err
	}
	w.mark.folded = w.foldedTo.Load()
	// A mark that finds no room stays behind, which claims less. The next one catches up.
	if err := w.mark.write(w.marks); err != nil && !noSpace(err) {
		return fmt.Errorf("write %s: %w", filepath.Base(w.marks.Name()), err)
	}
	w.acknowledged.Store(w.mark.commits)
	return nil
}

// verify reads how far the database has come as somebody who has not read it before.
func (w *writer) verify() error {
	return look(w.path, false, func(db *sql.DB) error {
		f, err := read(context.Background(), db, mark{})
		if err == nil && f.mark.commits < w.acknowledged.Load() {
			err = fmt.Errorf("it ends with commit %d", f.mark.commits)
		}
		return err
	})
}

// keepFolded is called by the checkpointer. The mark in the file follows with the next commit; what was written of it by now
// is made to outlast a loss of power, which nobody waits for here.
func (w *writer) keepFolded(commit int64) error {
	w.foldedTo.Store(commit)
	return w.marks.Sync()
}

// closeMark says in the file that the database needs no log any more, if that is so.
func (w *writer) closeMark() error {
	if w.marks == nil || w.broken.Load() != nil {
		return nil
	}
	if _, err := os.Stat(w.path + logSuffix); !errors.Is(err, fs.ErrNotExist) {
		return err // somebody else reads the database, and has its log open
	}
	w.mark.folded = w.mark.commits
	return w.mark.write(w.marks)
}
