package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tandem/fault"
)

// Inspection is what can be said about a data directory without changing anything in it.
type Inspection struct {
	// InUse says that a process has the directory open.
	InUse bool
	// Version is the database's, zero when there is none; Known the newest this program knows.
	Version, Known int64
	// Credentials is how many are stored, in all workspaces.
	Credentials int64
	// Problems are what is wrong with the database.
	Problems []string
	// Free is how many bytes may still be written.
	Free uint64
}

// Inspect looks at a data directory as it is, also while a process has it open. It reads the whole database, which can take
// long.
func Inspect(ctx context.Context, dir string) (_ Inspection, err error) {
	var i Inspection
	if i.Known, err = knownVersion(); err != nil {
		return i, err
	}
	if i.Free, err = freeSpace(dir); err != nil {
		return i, err
	}
	path := filepath.Join(dir, databaseFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return i, nil
	} else if err != nil {
		return i, unusable(dir, err)
	}
	lock, err := lockDir(dir)
	switch f, ok := errors.AsType[*fault.Error](err); {
	case err == nil:
		defer func() { err = errors.Join(err, unlockDir(lock)) }()
	case ok && f.Details[InUse] != nil:
		i.InUse = true
	default:
		return i, err
	}
	db, err := sql.Open("sqlite", dsn(path, "deferred", "query_only(1)"))
	if err != nil {
		return i, unusable(dir, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&i.Version); err != nil {
		return i, fmt.Errorf("read database version: %w", err)
	}
	if i.Version > i.Known {
		return i, nil // what its tables mean is not known
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM credentials").Scan(&i.Credentials); err != nil {
		return i, fmt.Errorf("count credentials: %w", err)
	}
	i.Problems, err = integrity(ctx, db)
	return i, err
}

func integrity(ctx context.Context, db *sql.DB) (problems []string, err error) {
	rows, err := db.QueryContext(ctx, "PRAGMA integrity_check")
	if err != nil {
		return nil, readError(ctx, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p string
		if err := rows.Scan(&p); err != nil {
			return nil, readError(ctx, err)
		}
		if p != "ok" {
			problems = append(problems, p)
		}
	}
	return problems, rows.Err()
}

// knownVersion is the number of the newest migration.
func knownVersion() (newest int64, err error) {
	files, err := fs.ReadDir(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %q has no number: %w", f.Name(), err)
		}
		newest = max(newest, n)
	}
	return newest, nil
}
