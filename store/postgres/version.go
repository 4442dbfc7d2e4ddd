package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3/lock"

	"tandem/fault"
	"tandem/store"
)

// hasVersion reads the version that a database has. Every transaction that writes looks at it: a process that has opened the database
// before a newer one brought it up to date writes nothing more.
const hasVersion = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`

// state is what decides who may write.
type state struct {
	version, epoch int64
	// shared says that the owner lets members write.
	shared bool
}

// lookAt waits for whoever takes an epoch or brings the database up to date, and then looks how it stands, in one round trip.
func lookAt(ctx context.Context, tx pgx.Tx) (now state, err error) {
	var b pgx.Batch
	b.Queue(`SELECT pg_advisory_xact_lock_shared($1)`, epochLock)
	b.Queue(`SELECT (` + hasVersion + `), coalesce((SELECT max(epoch) FROM epochs), 0),
		coalesce((SELECT with_members FROM epochs ORDER BY epoch DESC LIMIT 1), false)`)
	results := tx.SendBatch(ctx, &b)
	defer func() { err = errors.Join(err, results.Close()) }()
	if _, err := results.Exec(); err != nil {
		return now, err
	}
	if err := results.QueryRow().Scan(&now.version, &now.epoch, &now.shared); err != nil {
		return now, fmt.Errorf("read the epoch: %w", err)
	}
	return now, nil
}

// fits says whether the database has the version that this program is for; [store.ErrSuperseded] says that it has another.
func (db *DB) fits(ctx context.Context, conn *pgx.Conn) error {
	var has int64
	if err := conn.QueryRow(ctx, hasVersion).Scan(&has); err != nil {
		return err
	}
	if has != db.version {
		return otherVersion(has, db.version)
	}
	return nil
}

// otherVersion is the error of a process that is for another version than the database has.
func otherVersion(has, knows int64) error {
	const words = "the database has version %d and this program is for version %d; run the same version of Tandem everywhere, the servers first"
	return fault.Newf(fault.Conflict, words, has, knows).WithCause(fmt.Errorf("%w: %w", store.ErrBroken, store.ErrSuperseded))
}

// movedPast is otherVersion for what the server has said to a commit.
func (db *DB) movedPast(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	has, unread := strconv.ParseInt(e.Detail, 10, 64)
	if unread != nil {
		return errors.Join(err, unread)
	}
	return otherVersion(has, db.version)
}

// alone keeps all transactions that write away from a database that is brought up to date, besides others that would do so. It has the
// lock of the epochs by the connection that makes the changes, so that both end together.
type alone struct{ lock.SessionLocker }

// SessionLock implements [lock.SessionLocker].
func (a alone) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := a.SessionLocker.SessionLock(ctx, conn); err != nil {
		return err
	}
	exec := func(text string, args ...any) error {
		_, err := conn.ExecContext(ctx, text, args...)
		return err
	}
	const limit = `SELECT set_config('lock_timeout', $1, false)`
	for {
		err := exec(limit, strconv.FormatInt(takeTimeout.Milliseconds(), 10))
		if err == nil {
			err = exec(`SELECT pg_advisory_lock($1)`, epochLock)
		}
		if err == nil {
			if err = exec(limit, "0"); err == nil {
				return nil
			}
		}
		if codeOf(err) == lockTimeout {
			err = endStuck(exec)
		}
		if err != nil {
			return errors.Join(err, a.SessionUnlock(context.WithoutCancel(ctx), conn))
		}
	}
}

// SessionUnlock implements [lock.SessionLocker].
func (a alone) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `SELECT pg_advisory_unlock($1), set_config('lock_timeout', reset_val, false)
		FROM pg_settings WHERE name = 'lock_timeout'`, epochLock)
	return errors.Join(err, a.SessionLocker.SessionUnlock(ctx, conn))
}
