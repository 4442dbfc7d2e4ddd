package datadir

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pressly/goose/v3"

	"tandem/fault"
	"tandem/store/sqlite/migrations"
	"tandem/store/sqlite/sqlconn"
)

// Migrate brings a database up to date, making it if it is not there, and takes an epoch in it. A database that a newer
// version has changed is left alone: an older one would not know what its rows mean. One that an older version has written is
// copied first.
func Migrate(ctx context.Context, dir, path, loss string) (m Mark, err error) {
	settings := []string{"journal_mode(WAL)", "synchronous(FULL)", "secure_delete(ON)"}
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		settings = append([]string{mayShrink}, settings...) // before anything is in it
	}
	db, err := sql.Open("sqlite", sqlconn.Address(path, "immediate", settings...))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	p, err := provider(db)
	if err != nil {
		return m, err
	}
	has, known, err := p.GetVersions(ctx)
	if err != nil {
		return m, fmt.Errorf("read database version: %w", err)
	}
	if has > known {
		return m, newer(path, has, known)
	}
	// A process that still uses the database, which can only be without a lock, is stopped before anything is changed.
	fenced := has >= markedSince
	if fenced {
		if m, err = takeEpoch(ctx, db, dir, loss); err != nil {
			return m, err
		}
	}
	if 0 < has && has < known {
		if err := keepCopy(ctx, db, dir, has); err != nil {
			return m, fmt.Errorf("copy the database before it is brought from version %d to %d: %w", has, known, err)
		}
	}
	if has < known {
		if _, err := p.Up(ctx); err != nil {
			return m, fmt.Errorf("bring the database up to date: %w", err)
		}
		if 0 < has && has < shrinksSince {
			if err := letShrink(ctx, db); err != nil {
				return m, err
			}
		}
	}
	if !fenced {
		m, err = takeEpoch(ctx, db, dir, loss)
	}
	return m, err
}

// newer is the refusal of a database that a newer program has written.
func newer(path string, has, known int64) error {
	return fault.Newf(fault.Conflict, "the database %q has version %d and this program knows versions up to %d: it was written by a newer one; run that, or restore a copy from before the upgrade, such as %s%sN beside it",
		path, has, known, DatabaseFile, copySuffix)
}

// provider is what brings a database from one version to another.
func provider(db *sql.DB) (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.Files, goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

// shrinksSince is the version from which on a database can become smaller, and mayShrink the setting that lets it.
const (
	shrinksSince = 21
	mayShrink    = "auto_vacuum(INCREMENTAL)"
)

// letShrink rewrites a database of an older version, so that it can give back the room of what is removed from it. Where there is no room
// for that the database stays as it is: what becomes free in it is used again, and the file does not become smaller.
func letShrink(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "PRAGMA "+mayShrink)
	if err == nil {
		_, err = db.ExecContext(ctx, "VACUUM")
	}
	if err != nil && !IsFull(err) {
		return fmt.Errorf("rewrite the database so that it can become smaller: %w", err)
	}
	return nil
}

// copySuffix stands between the name of a database and the version of a copy of it.
const copySuffix = ".version-"

// keepCopy keeps a database as it is under its version. A copy of the same version that is there already was made of an
// earlier state; it is replaced once the new one is on disk.
func keepCopy(ctx context.Context, db *sql.DB, dir string, version int64) error {
	name := filepath.Join(dir, DatabaseFile+copySuffix+strconv.FormatInt(version, 10))
	part := name + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := openPrivate(part) // SQLite fills an empty file and keeps its mode
	if err != nil {
		return err
	}
	if _, err = db.ExecContext(ctx, "VACUUM INTO ?", part); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, name); err != nil {
		return err
	}
	return SyncPath(dir)
}

// keptEpochs is how many epochs a database remembers: a mark names one of the last.
const keptEpochs = 1000

// takeEpoch makes this process the owner of the database: from now on transactions of an earlier one are refused. A loss
// that the operator goes on without is written down.
func takeEpoch(ctx context.Context, db *sql.DB, dir, loss string) (m Mark, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	// An earlier process can commit no more by now. What it did has been in the file since before it was in the database.
	c, err := ReadMark(dir)
	if err != nil && !errors.Is(err, errMarkDamaged) { // which the operator has accepted
		return m, err
	}
	f, err := read(ctx, tx, c)
	if err != nil {
		return m, err
	}
	m = f.endMark(c)
	// Numbers go on after those of the file, also when the database is behind it and is accepted so.
	m = Mark{
		Epoch: max(m.Epoch, c.Epoch) + 1, id: newEpochID(), Commits: max(m.Commits, c.Commits) + 1,
		Rows: m.Rows, Executions: m.Executions, Time: time.Now().UnixMilli(),
	}
	for _, s := range []struct {
		text string
		args []any
	}{
		{"INSERT INTO epochs (epoch, id, began, first) VALUES (?, ?, ?, ?)", []any{m.Epoch, m.id, m.Time, m.Commits}},
		{"DELETE FROM epochs WHERE epoch <= ?", []any{m.Epoch - keptEpochs}},
		{"UPDATE commit_mark SET epoch = ?, commits = ?, rows = ?, executions = ?, time = ?", []any{m.Epoch, m.Commits, m.Rows, m.Executions, m.Time}},
	} {
		if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
			return m, err
		}
	}
	if loss != "" {
		// What is there now is what is counted from now on.
		if _, err := tx.ExecContext(ctx, "INSERT INTO accepted_losses (time, message) VALUES (?, ?)", m.Time, loss); err != nil {
			return m, err
		}
		if err := tx.QueryRowContext(ctx, `UPDATE commit_mark SET rows = (SELECT count(*) FROM journal) + (SELECT count(*) FROM journal_in_order),
			executions = (SELECT count(*) FROM executions) RETURNING rows, executions`).Scan(&m.Rows, &m.Executions); err != nil {
			return m, err
		}
	}
	return m, tx.Commit()
}
