package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"tandem/fault"
	"tandem/store"
)

// patient are settings for a transaction that goes on for long: nothing but its end ends it.
const patient = `SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)`

// Snapshot reads a database as it is at one moment, also while a process owns it and writes. It changes nothing, a database of an older
// version neither, and refuses one that has nothing of Tandem in it or that a newer version has written.
func Snapshot(ctx context.Context, address string, read func(tx *sql.Tx, version int64) error) (err error) {
	pool, err := connect(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return explain(pool.Config().ConnConfig, err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if _, err := tx.ExecContext(ctx, patient); err != nil {
		return explain(pool.Config().ConnConfig, err)
	}
	var version int64 // the first look at a table fixes the moment
	switch err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&version); {
	case codeOf(err) == noTable || err == nil && version == 0:
		return fault.Newf(fault.NotFound, "there is no data in the database %s; name another with --database (TANDEM_DATABASE)", addressOf(pool.Config().ConnConfig))
	case err != nil:
		return explain(pool.Config().ConnConfig, err)
	}
	newest, err := known()
	if err != nil {
		return err
	}
	if version > newest {
		return newer(version, newest)
	}
	return read(tx, version)
}

// noTable is the code of the error that a table is not there.
const noTable = "42P01"

// newer is the refusal of a database that a newer program has written.
func newer(has, newest int64) error {
	return fault.Newf(fault.Conflict, "the database has version %d and this program knows versions up to %d: it was written by a newer one; run that, or restore a copy from before the upgrade", has, newest)
}

// Newest is the version that this program brings databases to.
func Newest() (int64, error) { return known() }

// ChangesAfter names the changes that a database of a version lacks, in their order.
func ChangesAfter(version int64) (names []string, err error) {
	names = []string{}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	for _, f := range files { // in the order of their names, which is that of their numbers
		name := strings.TrimSuffix(path.Base(f), ".sql")
		digits, _, _ := strings.Cut(name, "_")
		number, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %q has no number: %w", f, err)
		}
		if number > version {
			names = append(names, name)
		}
	}
	return names, err
}

// ErrUnknown is in the chain of the error of a [Fill] of which nobody can say whether it was committed.
var ErrUnknown = errors.New("the outcome of the commit is unknown") // read-only

// Fill makes the tables of a version in a database that has nothing in it, and lets a function put rows into them, in one transaction: the
// database has all of them afterwards, or none. The function has to enter an epoch, which says that the database has been in use. Nobody
// else owns the database meanwhile.
func Fill(ctx context.Context, address string, version int64, fill func(tx pgx.Tx) error) (err error) {
	config, err := configure(address)
	if err != nil {
		return err
	}
	lock, held, err := own(ctx, config.ConnConfig)
	if err != nil {
		return explain(config.ConnConfig, err)
	}
	if !held {
		return fault.Newf(fault.Conflict, "the database %s is in use by another process; stop it, or name another with --database (TANDEM_DATABASE)", addressOf(config.ConnConfig)).With(store.InUse, true)
	}
	defer func() { err = errors.Join(err, lock.Close(context.WithoutCancel(ctx))) }()
	pool, err := connect(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := vacant(ctx, pool); err != nil {
		return explain(config.ConnConfig, err)
	}
	if err := migrate(ctx, pool, version); err != nil {
		return explain(config.ConnConfig, err)
	}
	return fillAll(ctx, pool, fill)
}

// fillAll runs the transaction of a [Fill].
func fillAll(ctx context.Context, pool *pgxpool.Pool, fill func(tx pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return explain(pool.Config().ConnConfig, err)
	}
	end, filled := context.WithoutCancel(ctx), false
	defer func() {
		if !filled {
			_ = tx.Rollback(end) // whatever becomes of it, nothing is committed
		}
	}()
	if _, err := tx.Exec(ctx, patient); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, epochLock); err != nil {
		return err
	}
	if err := fill(tx); err != nil {
		return err
	}
	filled = true
	if err = tx.Commit(end); err == nil || codeOf(err) != "" && !isAway(err) {
		return err
	}
	// The answer was lost. Who has the lock looks at what the transaction has left.
	looking, cancel := context.WithTimeout(end, lookTimeout)
	defer cancel()
	pool.Reset()
	there := false
	look := pgx.BeginTxFunc(looking, pool, fenced, func(tx pgx.Tx) error {
		if _, err := tx.Exec(looking, `SELECT pg_advisory_xact_lock($1)`, epochLock); err != nil {
			return err
		}
		return tx.QueryRow(looking, `SELECT EXISTS (SELECT 1 FROM epochs)`).Scan(&there)
	})
	switch {
	case look != nil:
		return fault.Newf(fault.NetworkError, "the connection to the database %s was lost while everything was committed, and whether it was is not known; give the same command again when its server is back: if it says that the database is not empty, everything is there", addressOf(pool.Config().ConnConfig)).
			WithCause(fmt.Errorf("%w: %w", ErrUnknown, errors.Join(err, look)))
	case there:
		return nil
	}
	return err
}

// Vacant refuses a database that is not empty, as [Fill] does.
func Vacant(ctx context.Context, address string) error {
	pool, err := connect(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	return explain(pool.Config().ConnConfig, vacant(ctx, pool))
}

// vacant refuses a database that has been in use, by Tandem or by others.
func vacant(ctx context.Context, pool *pgxpool.Pool) error {
	now, err := lookInto(ctx, pool)
	if err != nil {
		return err
	}
	if now.begun || now.others {
		return notEmpty(pool)
	}
	return nil
}

// contents is what a database has in it. Begun says that Tandem has been used on it, others that it has tables and none of them is
// Tandem's.
type contents struct{ begun, others bool }

// lookInto says what a database has in it. Tables without an epoch are left by a [Fill] that did not come to its end.
func lookInto(ctx context.Context, db interface {
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}) (c contents, err error) {
	var ours, epochs, tables bool
	if err := db.QueryRow(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL, to_regclass('epochs') IS NOT NULL,
		EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema())`).Scan(&ours, &epochs, &tables); err != nil {
		return c, err
	}
	c.begun, c.others = ours, tables && !ours
	if ours && epochs {
		err = db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM epochs)`).Scan(&c.begun)
	}
	return c, err
}

func notEmpty(pool *pgxpool.Pool) error {
	return fault.Newf(fault.Conflict, "the database %s is not empty; make a new one (CREATE DATABASE), and name it with --database (TANDEM_DATABASE)", addressOf(pool.Config().ConnConfig))
}

// KeptText is a text as a column has it: texts of PostgreSQL cannot hold every character.
func KeptText(text string) string { return kept(text) }

// ShownText is a text of a column as it was given to it.
func ShownText(column string) string { return showNUL.Replace(column) }

// Value reads a large value that is not too large for memory, in a transaction that reads.
func Value(ctx context.Context, tx *sql.Tx, workspace, hash string) (value []byte, err error) {
	var pieces *int64
	switch err := tx.QueryRowContext(ctx, `SELECT body, pieces FROM blobs WHERE workspace_id = $1 AND hash = $2`, workspace, hash).Scan(&value, &pieces); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, store.NotFound("blob", hash)
	case err != nil || pieces == nil:
		return value, err
	}
	r, err := Pieces(ctx, tx, *pieces)
	if err != nil {
		return nil, err
	}
	value, err = io.ReadAll(r)
	return value, errors.Join(err, r.Close())
}

// Pieces reads a large value that is in pieces, in a transaction that reads and does nothing else until it is closed.
func Pieces(ctx context.Context, tx *sql.Tx, pieces int64) (io.ReadCloser, error) {
	rows, err := tx.QueryContext(ctx, `SELECT body FROM blob_pieces WHERE pieces = $1 ORDER BY part`, pieces)
	if err != nil {
		return nil, err
	}
	return &pieceReader{rows: rows}, nil
}

// pieceReader reads rows as one value.
type pieceReader struct {
	rows *sql.Rows
	rest []byte
}

// Read implements [io.Reader].
func (r *pieceReader) Read(into []byte) (int, error) {
	for len(r.rest) == 0 {
		if !r.rows.Next() {
			if err := r.rows.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		if err := r.rows.Scan(&r.rest); err != nil {
			return 0, err
		}
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (r *pieceReader) Close() error { return r.rows.Close() }

// PieceSize is how large a piece of a large value is, and how large one may be that is kept in its row.
const PieceSize = pieceSize
