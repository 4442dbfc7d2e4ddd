package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tandem/store"
	"tandem/store/relational/spending"
)

// epochLock is the advisory lock that transactions share and that who takes an epoch has alone: so all of an earlier epoch
// have ended when a later one begins.
const epochLock = 0x74616e64656d // "tandem"

// keptEpochs is how many epochs are remembered, for those who look.
const keptEpochs = 1000

// fenced is how a transaction is begun that looks at the epoch: it must see the one that was taken while it waited for the lock, and a
// snapshot from before that, which other levels keep, does not show it. beginFenced says the same for the committer.
var fenced = pgx.TxOptions{IsoLevel: pgx.ReadCommitted} // read-only

const beginFenced = `BEGIN ISOLATION LEVEL READ COMMITTED`

// takeTimeout is how long transactions of an earlier process are waited for. Then those that do nothing lose their connections: their
// machine may be gone.
const takeTimeout = 5 * time.Second

// takeEpoch makes this process the owner of the database: from now on transactions of an earlier one are refused. What that one had
// reserved counts as used.
func (db *DB) takeEpoch(ctx context.Context) error {
	for {
		err := db.tryEpoch(ctx)
		if err == nil {
			return nil
		}
		if codeOf(err) == lockTimeout {
			err = endStuck(func(text string, args ...any) error {
				_, err := db.pool.Exec(ctx, text, args...)
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("take over the database: %w", err)
		}
	}
}

// endHolders ends connections that have an advisory lock. What follows says which.
const endHolders = `SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
	WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND l.classid = $1 AND l.objid = $2 AND l.objsubid = 1 AND `

// endStuck ends connections that have the lock of the epochs and have been at the same thing for long.
func endStuck(exec func(text string, args ...any) error) error {
	return exec(endHolders+`a.state_change < clock_timestamp() - $3::bigint * interval '1 millisecond'`,
		epochLock>>32, epochLock&0xffffffff, (takeTimeout / 2).Milliseconds())
}

// tryEpoch takes an epoch, unless it has to wait too long for that.
func (db *DB) tryEpoch(ctx context.Context) error {
	var epoch int64
	err := pgx.BeginTxFunc(ctx, db.pool, fenced, func(tx pgx.Tx) error {
		const limit = `SELECT set_config('lock_timeout', $1, true)`
		if _, err := tx.Exec(ctx, limit, strconv.FormatInt(takeTimeout.Milliseconds(), 10)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, epochLock); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, limit, "0"); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `INSERT INTO epochs (epoch, with_members) SELECT coalesce(max(epoch), 0) + 1, $1 FROM epochs RETURNING epoch`, db.shared).Scan(&epoch); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM epochs WHERE epoch <= $1`, epoch-keptEpochs); err != nil {
			return err
		}
		if err := db.forfeitBefore(ctx, tx); err != nil {
			return err
		}
		if err := db.recountTrees(ctx, tx, epoch); err != nil {
			return err
		}
		return discardAbandoned(ctx, tx)
	})
	if err == nil {
		db.epoch = epoch
	}
	return err
}

// forfeitBefore closes what owners before this one had reserved. Members may still use what they have reserved, if they may still write.
func (db *DB) forfeitBefore(ctx context.Context, tx pgx.Tx) error {
	if db.shared {
		_, err := tx.Exec(ctx, `UPDATE ledger l SET open = 0 WHERE open <> 0 AND NOT EXISTS (SELECT 1 FROM member_calls c WHERE c.workspace_id = l.workspace_id AND c.id = l.id)`)
		return err
	}
	t := &transaction{db: db, ctx: ctx, conn: tx.Conn()}
	if err := spending.Forfeit(t); err != nil {
		return err
	}
	_, err := t.flush()
	return err
}

// recountTrees corrects the notes about trees of executions if the owner before this one did not share the database: it did not keep them.
// What has ended is not open any more; and roots that were canceled may have been retried, so none counts as canceled.
func (db *DB) recountTrees(ctx context.Context, tx pgx.Tx, epoch int64) error {
	if !db.shared {
		return nil
	}
	const alone = ` EXISTS (SELECT 1 FROM epochs WHERE epoch = $1 - 1 AND NOT with_members)`
	if _, err := tx.Exec(ctx, `DELETE FROM families f USING executions e WHERE e.n = f.execution AND e.final <> 0 AND`+alone, epoch); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM canceled_roots WHERE`+alone, epoch)
	return err
}

// write runs a transaction of this process beside the committer's. It refuses when a later process has taken an epoch, and then nothing
// is written. Once begun it runs to its end: a context that ended during the commit would leave its outcome unknown.
func (db *DB) write(ctx context.Context, run func(context.Context, pgx.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := db.mayWrite(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	err := pgx.BeginTxFunc(ctx, db.pool, fenced, func(tx pgx.Tx) error {
		if err := db.check(ctx, tx); err != nil {
			return err
		}
		return run(ctx, tx)
	})
	if errors.Is(err, store.ErrSuperseded) {
		db.stop(err)
	}
	switch {
	case codeOf(err) == diskFull:
		return db.full(err)
	case isAway(err) || pgconn.SafeToRetry(err):
		return unavailable(err)
	}
	return err
}

// check waits for whoever takes an epoch, and then looks whether this process may write, in one round trip.
func (db *DB) check(ctx context.Context, tx pgx.Tx) error {
	now, err := lookAt(ctx, tx)
	switch {
	case err != nil:
		return err
	case now.version != db.version:
		return otherVersion(now.version, db.version)
	case db.member != 0 && !now.shared:
		return notShared(errors.New("another owner"))
	case db.member == 0 && now.epoch != db.epoch:
		return lost(fmt.Errorf("its epoch is %d, ours was %d", now.epoch, db.epoch))
	}
	return nil
}

// stop lets nothing be written any more.
func (db *DB) stop(err error) {
	if db.superseded.CompareAndSwap(nil, &err) {
		close(db.broken)
	}
}

// Broken is closed when this process has found out that it does not own the database any more; [DB.Err] says why.
func (db *DB) Broken() <-chan struct{} { return db.broken }

// Err returns nil as long as this process owns the database, as far as its last write has found out. Then it returns an error
// that has [store.ErrSuperseded] in its chain, which is also what every later write returns.
func (db *DB) Err() error {
	if err := db.superseded.Load(); err != nil {
		return *err
	}
	return nil
}

// mayWrite says why nothing can be written by this process; nil: it can, as far as is known.
func (db *DB) mayWrite() error {
	if db.readOnly != nil {
		return db.readOnly
	}
	return db.Err()
}
