package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"

	"tandem/fault"
	"tandem/store"
	"tandem/store/sqlite/sqlconn"
)

// DatabaseFile is the name of the database in a data directory: what is there when the directory is one.
const DatabaseFile = "tandem.db"

// InUse is the name of the fact that marks the refusal of a directory which another process has open.
const InUse = "in_use"

// Names in the data directory.
const (
	lockFile = "tandem.lock"
	blobDir  = "blobs"
)

// findLoss says what the database lacks that was acknowledged before; empty: nothing. A loss that is not accepted is an error, as is a
// database that has gone.
func findLoss(ctx context.Context, dir, path string, accept bool) (loss string, err error) {
	there, err := hasDatabase(dir)
	if err != nil {
		return "", err
	}
	if err := makePrivate(dir, path); err != nil {
		return "", unusable(dir, err)
	}
	if !there {
		return "", nil
	}
	f, _, loss, err := examine(ctx, dir, path)
	switch {
	case err != nil:
		return "", unusable(dir, err)
	case f.version == 0:
		return loss, databaseGone(dir, "has nothing in it", false)
	case loss != "" && !accept:
		return "", lossRefused(dir, loss)
	}
	return loss, nil
}

// syncPath makes the names in a directory durable.
func syncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(d), d.Close())
}

// unusable says in plain words why a data directory cannot be used, where the reason is a usual one.
func unusable(dir string, err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	remedy := ""
	switch code := sqlconn.Code(err); {
	case errors.Is(err, os.ErrPermission), isReadOnly(err), code == sqlconn.CodeReadOnly, code == sqlconn.CodeCantOpen, code == sqlconn.CodePerm:
		remedy = fmt.Sprintf("; user id %d must be able to write there, or choose another directory", os.Geteuid())
	case isFull(err):
		remedy = "; the disk is full: make room or choose another directory"
		err = errors.Join(store.ErrFull, err)
	case code == sqlconn.CodeCorrupt, code == sqlconn.CodeNotADB:
		remedy = "; the database is damaged: restore it from a copy"
	}
	return fmt.Errorf("open data directory %q: %w%s", dir, err, remedy)
}

// isFull says that there was no room for a write, which then did not happen.
func isFull(err error) bool {
	return sqlconn.Code(err) == sqlconn.CodeFull || noSpace(err)
}

// full is the error of a write for which there was no room.
func full(path string, cause error) error {
	e := fault.Newf(fault.Internal, "there is no room left on the disk of %q; make room and try again", path).
		WithCause(fmt.Errorf("%w: %w", store.ErrFull, cause))
	e.Retryable = true
	return e
}
