package datadir

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"tandem/fault"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/sqlite/migrations"
)

// Inspection is what can be said about a data directory without changing anything in it.
type Inspection struct {
	// InUse says that a process has the directory open.
	InUse bool
	// Version is the database's, zero when there is none; Known the newest this program knows.
	Version, Known int64
	// Credentials is how many are stored, in all workspaces.
	Credentials int64
	// Lost is what is missing of what was acknowledged, and Remedy what to do about it; both are empty when all is there.
	Lost, Remedy string
	// Accepted are the losses that the operator has gone on without, oldest first.
	Accepted []string
	// Problems are what is wrong with the database.
	Problems []string
	// Free is how many bytes may still be written.
	Free uint64
}

// Inspect looks at a data directory as it is, also while a process has it open. It reads the whole database, which can take
// long.
func Inspect(ctx context.Context, dir string) (_ Inspection, err error) {
	var i Inspection
	if i.Known, err = migrations.Newest(); err != nil {
		return i, err
	}
	if i.Free, err = FreeSpace(dir); err != nil {
		return i, err
	}
	err = Sound(ctx, dir)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Details[Lost] != nil {
		i.Remedy, _ = f.Details[Lost].(string)
		i.Lost, err = strings.TrimSuffix(f.Message, "; "+i.Remedy), nil
	}
	if err != nil {
		return i, err
	}
	path := RealPath(dir)
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return i, nil
	} else if err != nil {
		return i, Unusable(dir, err)
	}
	lock, err := Lock(dir)
	switch f, ok := errors.AsType[*fault.Error](err); {
	case err == nil:
		defer func() { err = errors.Join(err, Unlock(lock)) }()
	case ok && f.Details[store.InUse] != nil:
		i.InUse = true
	default:
		return i, err
	}
	// The mark comes first: a process that goes on writing meanwhile can only bring the database further.
	c, err := ReadMark(dir)
	if err != nil && !errors.Is(err, errMarkDamaged) { // which was said above
		return i, Unusable(dir, err)
	}
	err = look(path, false, func(db *sql.DB) error { return i.readDatabase(ctx, db, c) })
	return i, err
}

func (i *Inspection) readDatabase(ctx context.Context, db *sql.DB, claimed claim) error {
	f, err := read(ctx, db, claimed)
	if err != nil {
		return fmt.Errorf("read database version: %w", err)
	}
	i.Version = f.version
	if i.Version == 0 || f.newer {
		return nil // there is nothing in it, or what its tables mean is not known
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM credentials").Scan(&i.Credentials); err != nil {
		return fmt.Errorf("count credentials: %w", err)
	}
	if i.Problems, err = integrity(ctx, db); err != nil || !f.marked {
		return err
	}
	var c counted
	if c, err = count(ctx, db, f.endMark(claimed)); err != nil {
		return err
	}
	if problem := c.problem(); problem != "" {
		i.Problems = append(i.Problems, problem)
	}
	var twice int64
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM journal JOIN journal_in_order USING (place)").Scan(&twice); err != nil {
		return fmt.Errorf("compare the tables of journals: %w", err)
	}
	if twice > 0 {
		i.Problems = append(i.Problems, fmt.Sprintf("%d rows of journals are there twice", twice))
	}
	i.Accepted, err = accepted(ctx, db)
	return err
}

// counted is what a database has of journals and executions, and what it should have at least. last is when its last row was
// written.
type counted struct{ rows, executions, allRows, allExecutions, last int64 }

// count reads all of it at one moment. The database should have what it has counted itself, and what the mark says.
func count(ctx context.Context, db *sql.DB, m Mark) (c counted, err error) {
	err = db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM journal) + (SELECT count(*) FROM journal_in_order), (SELECT count(*) FROM executions), rows, executions,
			max(time, coalesce((SELECT max(time) FROM journal), 0), coalesce((SELECT max(time) FROM journal_in_order), 0)) FROM commit_mark`).
		Scan(&c.rows, &c.executions, &c.allRows, &c.allExecutions, &c.last)
	c.allRows, c.allExecutions = max(c.allRows, m.Rows), max(c.allExecutions, m.Executions)
	return c, err
}

func (c counted) problem() string {
	if c.rows >= c.allRows && c.executions >= c.allExecutions {
		return ""
	}
	return fmt.Sprintf("the database has %d of %d rows of journals and %d of %d executions", c.rows, c.allRows, c.executions, c.allExecutions)
}

// accepted are the losses that were accepted.
func accepted(ctx context.Context, db *sql.DB) (all []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT time, message FROM accepted_losses ORDER BY rowid")
	if err != nil {
		return nil, relational.ReadError(ctx, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var time int64
		var message string
		if err := rows.Scan(&time, &message); err != nil {
			return nil, relational.ReadError(ctx, err)
		}
		all = append(all, fmt.Sprintf("accepted %s: %s", at(time), message))
	}
	return all, rows.Err()
}

func integrity(ctx context.Context, db *sql.DB) (problems []string, err error) {
	rows, err := db.QueryContext(ctx, "PRAGMA integrity_check")
	if err != nil {
		return nil, relational.ReadError(ctx, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p string
		if err := rows.Scan(&p); err != nil {
			return nil, relational.ReadError(ctx, err)
		}
		if p != "ok" {
			problems = append(problems, p)
		}
	}
	return problems, rows.Err()
}
