package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tandem/fault"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
)

// openStore opens the database at an address, or the one in the data directory when there is none. Existing refuses one that has no
// data.
func openStore(ctx context.Context, dir, address string, existing bool) (Store, error) {
	if address == "" {
		if existing {
			if err := there(ctx, dir); err != nil {
				return nil, err
			}
		}
		db, err := sqlite.Open(ctx, sqlite.Options{Dir: dir})
		if err != nil {
			return nil, err
		}
		return db, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	db, err := postgres.OpenOwned(ctx, postgres.Options{URL: address, Existing: existing})
	if err != nil {
		return nil, err
	}
	lock, err := datadir.Lock(dir)
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Details[store.InUse] != nil {
			// What has the directory open has another database, so that it cannot be asked instead.
			err = fault.Newf(fault.Conflict, "the data directory %q is in use by a process that has another database; name another directory with --data", dir).WithCause(err)
		}
		return nil, closing(err, db)
	}
	return &besideDirectory{db, lock}, nil
}

// besideDirectory is a database elsewhere, with the data directory that this process keeps its files and keys in.
type besideDirectory struct {
	*postgres.Owned
	lock *os.File
}

// Close implements [Store].
func (b *besideDirectory) Close() error { return errors.Join(b.Owned.Close(), b.lock.Close()) }

// there refuses a data directory that has no database.
func there(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, datadir.DatabaseFile)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := datadir.Sound(ctx, dir); err != nil {
		return err
	}
	return fault.Newf(fault.NotFound, "there is no data in %q; name the data directory with --data, or a server with --server", dir)
}

// whereIs is where a database is that was opened, without a password; empty: in the data directory.
func whereIs(address string) string {
	where, err := postgres.Where(address)
	if err != nil {
		return "" // there is none
	}
	return where
}
