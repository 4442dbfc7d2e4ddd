package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/pressly/goose/v3"

	"tandem/store"
	"tandem/store/relational/questions"
	"tandem/store/relational/summaries"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/migrations"
	"tandem/store/sqlite/sqlconn"
)

// Commits returns how many transactions there have been, and how many calls they held.
func (db *DB) Commits() (transactions, calls uint64) {
	return db.writer.commits.Load(), db.writer.works.Load()
}

// Queued returns how many calls wait for the committer.
func (db *DB) Queued() int {
	db.writer.mu.Lock()
	defer db.writer.mu.Unlock()
	return len(db.writer.queue)
}

// Exec runs statements in one call of a transaction; after them the call returns the given error.
func (db *DB) Exec(ctx context.Context, then error, statements ...string) error {
	return db.writer.inTransaction(ctx, func(w *writer) error {
		for _, text := range statements {
			if _, err := w.c.exec(text); err != nil {
				return err
			}
		}
		return then
	})
}

// Hold stops the committer inside a transaction until release is closed. It returns when it stands.
func (db *DB) Hold(ctx context.Context, release <-chan struct{}) <-chan error {
	held, result := make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		result <- db.writer.inTransaction(ctx, func(*writer) error {
			if first { // a transaction may be run again
				first = false
				close(held)
				<-release
			}
			return nil
		})
	}()
	<-held
	return result
}

// BeforeCommit has a function called before each commit from the next one on.
func (db *DB) BeforeCommit(ctx context.Context, f func() error) error {
	return db.writer.inTransaction(ctx, func(w *writer) error {
		installed := false
		w.beforeCommit = func() error {
			if !installed {
				installed = true // this is the transaction that installs it
				return nil
			}
			return f()
		}
		return nil
	})
}

// FreeSpace puts another answer in the place of the disk's.
func (db *DB) FreeSpace(ctx context.Context, free uint64) error {
	return db.writer.inTransaction(ctx, func(w *writer) error {
		w.freeSpace = func() (uint64, error) { return free, nil }
		w.freeUntil = w.freeUntil.Add(-1 << 40)
		return nil
	})
}

// ForgetHeads empties the memory of the committer, as a restart does.
func (db *DB) ForgetHeads(ctx context.Context) error {
	return db.writer.inTransaction(ctx, func(w *writer) error {
		w.heads.Empty()
		return nil
	})
}

// Checkpoint folds the log into the database, by the connections that do so.
func (db *DB) Checkpoint(ctx context.Context) error {
	return db.writer.inTransaction(ctx, func(w *writer) error {
		w.finishLog.Store(true) // after this transaction
		return nil
	})
}

// Remembered returns how many heads the committer knows.
func (db *DB) Remembered(ctx context.Context) (n int, err error) {
	err = db.writer.inTransaction(ctx, func(w *writer) error {
		n = w.heads.Remembered()
		return nil
	})
	return n, err
}

// MaxHeads is the bound of one generation of heads.
const MaxHeads = summaries.MaxHeads

// Rows returns how many rows a table has.
func (db *DB) Rows(ctx context.Context, table string) (n int64, err error) {
	return queryOne(ctx, db, nil, "SELECT count(*) FROM "+table, func(s scanner) (n int64, err error) { return n, s.Scan(&n) })
}

// Lengths returns how many rows each journal has.
func (db *DB) Lengths(ctx context.Context) (map[string]uint64, error) {
	type journal struct {
		id   string
		rows uint64
	}
	all, err := query(ctx, db, `SELECT id, count(*) FROM (SELECT place FROM journal UNION ALL SELECT place FROM journal_in_order) JOIN executions ON n = place >> 32 GROUP BY n`,
		func(s scanner) (j journal, err error) { return j, s.Scan(&j.id, &j.rows) })
	lengths := make(map[string]uint64, len(all))
	for _, j := range all {
		lengths[j.id] = j.rows
	}
	return lengths, err
}

// Counts returns how many rows and executions the committer believes there are, in all journals.
func (db *DB) Counts(ctx context.Context) (rows, executions int64, err error) {
	err = db.writer.inTransaction(ctx, func(w *writer) error {
		rows, executions = w.mark.Rows, w.mark.Executions
		return nil
	})
	return rows, executions, err
}

// Unacknowledge makes of the last commit that the file beside a database names one that was about to happen, as if the process had
// died before anybody was told of it.
func Unacknowledge(dir string) error {
	c, err := datadir.ReadMark(dir)
	if err != nil {
		return err
	}
	f, err := datadir.OpenMark(dir, c.Mark)
	if err != nil {
		return err
	}
	c.Begun = true
	return errors.Join(c.Mark.Write(f, nil), f.Close())
}

// Plan says how SQLite would run a statement.
func (db *DB) Plan(ctx context.Context, text string, args ...any) ([]string, error) {
	return query(ctx, db, "EXPLAIN QUERY PLAN "+text, func(s scanner) (step string, err error) {
		var id, parent, unused int
		return step, s.Scan(&id, &parent, &unused, &step)
	}, args...)
}

// InteractionStatements are the statement of a listing with its arguments, and those that find what is due.
func InteractionStatements(workspace string, q store.InteractionQuery) (list string, args []any, due []string) {
	l := questions.Listing(workspace, q)
	limit, offset := q.Page.Limits()
	return l.Page(), append(l.Args, limit, offset), []string{questions.DueQuestions, questions.DueMessages}
}

// MigrateTo makes a database of an older version.
func MigrateTo(ctx context.Context, dir string, version int64) (err error) {
	db, err := sql.Open("sqlite", sqlconn.Address(filepath.Join(dir, datadir.DatabaseFile), "immediate", "journal_mode(WAL)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.Files, goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	_, err = p.UpTo(ctx, version)
	return err
}

// Tables are the names of all tables.
func (db *DB) Tables(ctx context.Context) ([]string, error) {
	return query(ctx, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`, func(s scanner) (name string, err error) { return name, s.Scan(&name) })
}
