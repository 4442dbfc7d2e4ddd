// Package datadir is the directory in which the SQLite store keeps everything: who has it open, whether its files are private and
// still the same, the mark beside the database that says how far it had come (docs/decisions/0010), what a database lacks of what was
// acknowledged, and how it is brought up to date.
//
// It knows the tables that say how far a database has come, and nothing of what is stored. The store and what looks after data
// directories import it.
package datadir

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tandem/fault"
	"tandem/store"
	"tandem/store/sqlite/sqlconn"
)

// DatabaseFile is the name of the database in a data directory: what is there when the directory is one.
const DatabaseFile = "tandem.db"

// Names in the data directory. LockFile is locked by the process that has it open, BlobDir has the large values, RestoreDir what is being
// restored and is not whole yet.
const (
	LockFile   = "tandem.lock"
	BlobDir    = "blobs"
	RestoreDir = "restoring"
)

// FindLoss says what the database lacks that was acknowledged before; empty: nothing. A loss that is not accepted is an error, as is a
// database that has gone.
func FindLoss(ctx context.Context, dir, path string, accept bool) (loss string, err error) {
	there, err := hasDatabase(dir)
	if err != nil {
		return "", err
	}
	if err := makePrivate(dir, path); err != nil {
		return "", Unusable(dir, err)
	}
	if !there {
		return "", nil
	}
	f, _, loss, err := examine(ctx, dir, path)
	switch {
	case err != nil:
		return "", Unusable(dir, err)
	case f.version == 0:
		return loss, databaseGone(dir, "has nothing in it", false)
	case loss != "" && !accept:
		return "", lossRefused(dir, loss)
	}
	return loss, nil
}

// SyncPath makes the names in a directory durable.
func SyncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(SyncDir(d), d.Close())
}

// SyncAll makes the files below a directory and their names durable.
func SyncAll(dir string) error {
	return filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return SyncPath(name)
	})
}

// MovedFile is the name of a database whose records were moved to one of PostgreSQL.
const MovedFile = DatabaseFile + ".moved"

// PutAside gives the database of a directory another name, so that nobody goes on with what is elsewhere from now on. The caller has the
// lock of the directory. The log is folded into the database first, so that one file is all that is renamed by who goes back. What is left
// of the log goes with it: one that is beside a database without its name keeps the directory from being used, so that it goes second.
func PutAside(ctx context.Context, dir string) error {
	if err := fold(ctx, RealPath(dir)); err != nil {
		return Unusable(dir, err)
	}
	return rename(dir, DatabaseFile, MovedFile)
}

// fold moves the log of a database into its file, and removes it. The log stays where another program reads what is in it.
func fold(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", sqlconn.Address(path, "immediate", "synchronous(FULL)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return errors.Join(err, db.Close())
}

// TakeBack undoes [PutAside].
func TakeBack(dir string) error { return rename(dir, MovedFile, DatabaseFile) }

func rename(dir, from, to string) error {
	from, to = filepath.Join(dir, from), filepath.Join(dir, to)
	if err := os.Rename(from, to); err != nil {
		return err
	}
	// The log of a database that is a symbolic link is where the database really is, and stays there.
	if err := os.Rename(from+LogSuffix, to+LogSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(from + indexSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is made of the log
		return err
	}
	return SyncPath(dir)
}

// Unusable says in plain words why a data directory cannot be used, where the reason is a usual one.
func Unusable(dir string, err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	remedy := ""
	switch code := sqlconn.Code(err); {
	case errors.Is(err, os.ErrPermission), isReadOnly(err), code == sqlconn.CodeReadOnly, code == sqlconn.CodeCantOpen,
		code == sqlconn.CodePerm:
		remedy = fmt.Sprintf("; user id %d must be able to write there, or choose another directory", os.Geteuid())
	case IsFull(err):
		remedy = "; the disk is full: make room or choose another directory"
		err = errors.Join(store.ErrFull, err)
	case code == sqlconn.CodeCorrupt, code == sqlconn.CodeNotADB:
		remedy = "; the database is damaged: restore it from a copy"
	}
	return fmt.Errorf("open data directory %q: %w%s", dir, err, remedy)
}

// IsFull says that there was no room for a write, which then did not happen.
func IsFull(err error) bool {
	return sqlconn.Code(err) == sqlconn.CodeFull || NoSpace(err)
}

// Full is the error of a write for which there was no room.
func Full(path string, cause error) error {
	e := fault.Newf(fault.Internal, "there is no room left on the disk of %q; make room and try again", path).
		WithCause(fmt.Errorf("%w: %w", store.ErrFull, cause))
	e.Retryable = true
	return e
}
