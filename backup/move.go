package backup

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"tandem/store/postgres"
	pgdump "tandem/store/postgres/dump"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/migrations"
)

// MoveOptions say what is moved, and where to.
type MoveOptions struct {
	// Dir is the data directory whose database is moved. No process has it open.
	Dir string
	// Database is the address of a database of PostgreSQL that holds nothing yet.
	Database string

	// reached is told, in tests, of each point at which the process may die.
	reached func(point string)
}

// MoveResult is what was moved.
type MoveResult struct {
	Dir string `json:"dir"`
	// Database is where the records are now, without a password.
	Database string `json:"database"`
	// Kept is the name of the old database in the directory.
	Kept string `json:"kept"`
	pgdump.Moved
}

// Move puts everything that is in the database of a data directory, with its large values, into a database of PostgreSQL, in one
// transaction. The files of workspaces and the master keys stay in the directory, which is used with the new database from then on.
//
// A database of an older version is brought up to date first, as by a start. The old database gets another name just before the new one is
// committed, so that nobody goes on with both: a process that dies in between leaves a directory that is not used without a look at the
// new database.
func Move(ctx context.Context, o MoveOptions) (r MoveResult, err error) {
	r.Dir, r.Kept = o.Dir, datadir.MovedFile
	if r.Database, err = postgres.Where(o.Database); err != nil {
		return r, err
	}
	if o.reached == nil {
		o.reached = func(string) {}
	}
	lock, version, err := datadir.Claim(ctx, o.Dir)
	if err != nil {
		return r, err
	}
	defer func() {
		if lock != nil {
			err = errors.Join(err, datadir.Unlock(lock))
		}
	}()
	if err := postgres.Vacant(ctx, o.Database); err != nil {
		return r, err
	}
	known, err := migrations.Newest()
	if err != nil {
		return r, err
	}
	if version < known {
		if lock, err = upgraded(ctx, o.Dir, lock); err != nil {
			return r, err
		}
	}
	newest, err := postgres.Newest()
	if err != nil {
		return r, err
	}
	aside := false
	err = postgres.Fill(ctx, o.Database, newest, func(tx pgx.Tx) (err error) {
		if r.Moved, err = pgdump.FromSQLite(ctx, o.Dir, tx); err != nil {
			return err
		}
		o.reached("all written")
		if err := datadir.PutAside(ctx, o.Dir); err != nil {
			return fmt.Errorf("give the old database another name: %w", err)
		}
		aside = true
		o.reached("put aside")
		return ctx.Err()
	})
	if err != nil && aside && !errors.Is(err, postgres.ErrUnknown) {
		err = errors.Join(err, datadir.TakeBack(o.Dir))
	}
	return r, err
}

// upgraded brings the database of a directory up to date, which takes the lock, and claims it again.
func upgraded(ctx context.Context, dir string, lock *os.File) (*os.File, error) {
	if err := datadir.Unlock(lock); err != nil {
		return nil, err
	}
	if err := upgrade(ctx, dir); err != nil {
		return nil, err
	}
	lock, _, err := datadir.Claim(ctx, dir)
	return lock, err
}
