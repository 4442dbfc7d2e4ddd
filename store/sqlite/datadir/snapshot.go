package datadir

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"tandem/fault"
	"tandem/store/sqlite/migrations"
	"tandem/store/sqlite/sqlconn"
)

// Snapshot reads the database of a data directory as it is at one moment, also while a process has it open and writes. It changes nothing,
// a database of an older version neither, and refuses one that lacks something that was acknowledged or that a newer version has written.
// What is written meanwhile stays in the log of the database until the function returns.
func Snapshot(ctx context.Context, dir string, read func(tx *sql.Tx, version int64) error) error {
	if err := there(ctx, dir); err != nil {
		return err
	}
	known, err := migrations.Newest()
	if err != nil {
		return err
	}
	path := RealPath(dir)
	err = look(path, false, func(db *sql.DB) (err error) {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tx.Rollback()) }()
		var version int64 // reading it fixes the moment
		if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version); err != nil {
			return err
		}
		if version > known {
			return newer(path, version, known)
		}
		return read(tx, version)
	})
	if sqlconn.Code(err) != 0 {
		return Unusable(dir, err)
	}
	return err
}

// there refuses a directory without a database, and one whose database lacks something.
func there(ctx context.Context, dir string) error {
	_, stat := os.Stat(filepath.Join(dir, DatabaseFile))
	if err := Sound(ctx, dir); err != nil {
		return err
	}
	if stat != nil {
		return fault.Newf(fault.NotFound, "there is no data in %q; name the data directory with --data", dir).WithCause(stat)
	}
	return nil
}

// Claim takes a directory that has a database for this process, and says which version the database has. It refuses one that a process has
// open, that lacks something that was acknowledged or that a newer version has written. The lock must be given to [Unlock].
func Claim(ctx context.Context, dir string) (lock *os.File, version int64, err error) {
	if err := there(ctx, dir); err != nil {
		return nil, 0, err
	}
	if lock, err = Lock(dir); err != nil {
		return nil, 0, err
	}
	if err := Snapshot(ctx, dir, func(_ *sql.Tx, v int64) error { version = v; return nil }); err != nil {
		return nil, 0, errors.Join(err, Unlock(lock))
	}
	return lock, version, nil
}

// Fill makes a database of a version at a path where there is none, and lets a function put rows into it, in one transaction. The database
// is whole and on disk when it returns without an error.
func Fill(ctx context.Context, path string, version int64, fill func(tx *sql.Tx) error) (err error) {
	f, err := openPrivate(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := fillNew(ctx, path, version, fill); err != nil {
		return err
	}
	return f.Sync()
}

func fillNew(ctx context.Context, path string, version int64, fill func(tx *sql.Tx) error) (err error) {
	// Nobody needs a half of it: if the machine stops, all of it is made again.
	db, err := sql.Open("sqlite", sqlconn.Address(path, "immediate", mayShrink, "journal_mode(OFF)", "synchronous(OFF)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	p, err := provider(db)
	if err != nil {
		return err
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fill(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	problems, err := integrity(ctx, db)
	if err == nil && len(problems) > 0 {
		err = fault.Newf(fault.Internal, "the database that was made is not sound: %s", problems[0])
	}
	if err == nil {
		_, err = db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
	}
	return err
}
