package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"

	"tandem/backup/archive"
	"tandem/credential"
	"tandem/fault"
	"tandem/store/postgres"
	pgdump "tandem/store/postgres/dump"
	"tandem/store/sqlite"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/dump"
)

// restore makes what is wanted of a backup that is whole.
func (o RestoreOptions) restore(ctx context.Context, holds archive.Contents, key []byte, from io.Reader) (err error) {
	if holds.Store == pgdump.Store && o.Database == "" {
		return fault.New(fault.Unsupported, "the backup is of a database of PostgreSQL, and is restored into one; name an empty one with --database (TANDEM_DATABASE)")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return datadir.Unusable(o.Dir, err)
	}
	lock, err := datadir.Lock(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, datadir.Unlock(lock)) }()
	// The database comes last: without it nobody uses the directory.
	if o.Database == "" {
		err = o.makeFiles(key, append(beside(), datadir.DatabaseFile), func(work string) error { return load(ctx, work, holds, from) })
	} else {
		err = o.restoreDatabase(ctx, holds, key, from)
	}
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(o.Dir, datadir.RestoreDir)), datadir.SyncPath(o.Dir))
}

// restoreDatabase fills a database of PostgreSQL, and the directory with what belongs to it. The directory is touched only when the
// database is known to be empty.
func (o RestoreOptions) restoreDatabase(ctx context.Context, holds archive.Contents, key []byte, from io.Reader) error {
	version := holds.Version
	if holds.Store == dump.Store {
		known, err := postgres.Newest()
		if err != nil {
			return err
		}
		version = known
	}
	return postgres.Fill(ctx, o.Database, version, func(tx pgx.Tx) error {
		return o.makeFiles(key, []string{filesDir, credential.KeyFile}, func(work string) error {
			if holds.Store == pgdump.Store {
				err := loadFiles(work, func(file func(string, io.Reader) error) error { return pgdump.Load(ctx, tx, holds, from, file) })
				return errors.Join(err, datadir.SyncAll(work))
			}
			// What is in SQLite's own shape is made a data directory first, and brought up to date.
			if err := load(ctx, work, holds, from); err != nil {
				return err
			}
			if err := upgrade(ctx, work); err != nil {
				return err
			}
			_, err := pgdump.FromSQLite(ctx, work, tx)
			return err
		})
	})
}

// upgrade brings the database of a directory up to date, as a start does.
func upgrade(ctx context.Context, dir string) error {
	db, err := sqlite.Open(ctx, sqlite.Options{Dir: dir})
	if err != nil {
		return err
	}
	return db.Close()
}

// makeFiles lets a function make what a data directory holds in a directory inside of it, and moves what has these names to its place, in
// their order.
func (o RestoreOptions) makeFiles(key []byte, names []string, fill func(work string) error) error {
	if err := clearWay(o.Dir); err != nil {
		return err
	}
	work := filepath.Join(o.Dir, datadir.RestoreDir)
	if err := os.Mkdir(work, 0o700); err != nil {
		return datadir.Unusable(o.Dir, err)
	}
	if err := fill(work); err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	if len(key) > 0 {
		if err := writeNew(filepath.Join(work, credential.KeyFile), key); err != nil {
			return errors.Join(err, os.RemoveAll(work))
		}
	}
	o.reached("all written")
	for _, name := range names {
		err := os.Rename(filepath.Join(work, name), filepath.Join(o.Dir, name))
		if err != nil && !(name == credential.KeyFile && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		if err := datadir.SyncPath(o.Dir); err != nil {
			return err
		}
		o.reached(name + " is in place")
	}
	return nil
}

// beside is what is in a data directory besides its database.
func beside() []string { return []string{datadir.BlobDir, filesDir, credential.KeyFile} }

// clearWay refuses a directory that holds anything, and removes what a restore that did not come to its end has left: as long as there is
// the directory in which it works, and no database, nothing else is there.
func clearWay(dir string) error {
	there, err := os.ReadDir(dir)
	if err != nil {
		return datadir.Unusable(dir, err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(there, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	ours := []string{datadir.LockFile, "lost+found"}
	unfinished := has(datadir.RestoreDir) && !has(datadir.DatabaseFile)
	if unfinished {
		ours = append(append(ours, beside()...), datadir.RestoreDir)
	}
	for _, e := range there {
		if !slices.Contains(ours, e.Name()) {
			return fault.Newf(fault.Conflict, "the directory %q is not empty: it has %s; restore into an empty one, or one that does not exist yet", dir, e.Name())
		}
	}
	if !unfinished {
		return nil
	}
	// The directory in which it works goes last: it says that the others are not data.
	for _, name := range append(beside(), datadir.RestoreDir) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove what an earlier restore has left: %w", err)
		}
	}
	return nil
}
