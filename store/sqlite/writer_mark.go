package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tandem/fault"
	"tandem/store"
	"tandem/store/sqlite/datadir"
)

// keepMark gives the writer the epoch that was taken and the file that says how far the database has come. The files that
// are in use are known from then on.
func (w *writer) keepMark(m datadir.Mark, file *os.File) (err error) {
	w.epoch, w.mark, w.next, w.marks, w.counted = m.Epoch, m, m, file, m.Commits
	w.acknowledged.Store(&m)
	w.foldedTo.Store(m.Folded)
	w.markText = make([]byte, 0, datadir.MarkSize)
	if w.files, err = datadir.NewWatch(w.path, w.verify, file.Name()); err != nil {
		return err
	}
	return w.mark.Write(file, w.markText)
}

// alone sees to it, at the beginning of a transaction, that what the committer remembers is still so: the heads of journals, and
// that this process has the newest epoch. SQLite tells whether anybody else has changed the database since the last transaction,
// by the same means by which it knows whether its own cache of pages is still good. Until the transaction ends nobody else can.
func (w *writer) alone() error {
	version, err := w.c.Version()
	if err != nil || w.versionKnown && version == w.version {
		return err
	}
	var epoch [1]driver.Value
	there, err := w.c.row(epoch[:], "SELECT epoch FROM commit_mark WHERE one = 1")
	if err == nil && (!there || epoch[0] != w.epoch) {
		err = superseded(epoch[0], w.epoch)
	}
	if err != nil {
		return err
	}
	// Another program has written to it. What it has done is not known.
	w.heads.Empty()
	w.tally.Doubt()
	w.c.changed |= keptAccounts | keptWorkflows
	return nil
}

// number counts a transaction. One with a row of a journal has that for a witness: the file says before the commit which it is.
// Others count themselves in the database.
func (w *writer) number() error {
	w.next = w.mark
	if !w.wrote {
		return nil
	}
	rows, executions, last := w.heads.Grown()
	w.next.Commits++
	w.next.Rows += rows - w.removedRows
	w.next.Executions += executions - w.removedExecutions
	w.next.Time = time.Now().UnixMilli()
	w.next.Witness = datadir.Witness{}
	// What removes rows counts itself: its witness might be among them.
	if last != nil && w.removedRows == 0 && w.next.Commits-w.counted < datadir.CountEvery {
		w.next.Witness, w.next.Begun = witness(last), true
		err := w.next.Write(w.marks, w.markText)
		w.next.Begun = false
		if !datadir.NoSpace(err) {
			return err
		}
		w.next.Witness = datadir.Witness{} // the log may have room that was there before
	}
	return w.count(w.next)
}

// count brings the count in the database up to date.
func (w *writer) count(m datadir.Mark) error {
	n, err := w.c.change("UPDATE commit_mark SET commits = ?, rows = ?, executions = ?, time = ? WHERE one = 1 AND epoch = ?",
		m.Commits, m.Rows, m.Executions, m.Time, w.epoch)
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
	if err := w.files.Committed(); err != nil {
		return err
	}
	w.mark.Folded = w.foldedTo.Load()
	// A mark that finds no room stays behind, which claims less. The next one catches up.
	if err := w.mark.Write(w.marks, w.markText); err != nil && !datadir.NoSpace(err) {
		return fmt.Errorf("write %s: %w", filepath.Base(w.marks.Name()), err)
	}
	acknowledged := w.mark
	w.acknowledged.Store(&acknowledged)
	return nil
}

// verify reads how far the database has come as somebody who has not read it before.
func (w *writer) verify() error { return datadir.HasCommit(w.path, *w.acknowledged.Load()) }

// lastAcknowledged is the number of the last commit that somebody was told of.
func (w *writer) lastAcknowledged() int64 { return w.acknowledged.Load().Commits }

// keepFolded is called by the checkpointer. The mark in the file follows with the next commit; what was written of it by now
// is made to outlast a loss of power, which nobody waits for here.
func (w *writer) keepFolded(commit int64) error {
	w.foldedTo.Store(commit)
	return w.marks.Sync()
}

// countAll brings the count in the database up to date before it is closed, so that a copy without the file knows. Where that is
// not possible the file says it.
func (w *writer) countAll() error {
	if w.marks == nil || w.broken.Load() != nil || w.counted == w.mark.Commits {
		return nil
	}
	if _, err := w.c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := w.alone()
	if err == nil {
		err = w.count(w.mark)
	}
	if err == nil {
		_, err = w.c.exec("COMMIT")
	}
	if err == nil {
		return nil
	}
	if err = w.rollback(err); errors.Is(err, store.ErrSuperseded) || datadir.IsFull(err) {
		return nil
	}
	return err
}

// closeMark says in the file that the database needs no log any more, if that is so.
func (w *writer) closeMark() error {
	if w.marks == nil || w.broken.Load() != nil {
		return nil
	}
	if _, err := os.Stat(w.path + datadir.LogSuffix); !errors.Is(err, fs.ErrNotExist) {
		return err // somebody else reads the database, and has its log open
	}
	w.mark.Folded = w.mark.Commits
	return w.mark.Write(w.marks, w.markText)
}
