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

// fenced is how a transaction is begun that looks at the epoch: it must see the one that was taken while it waited for the lock, and a snapshot from before
// that, which other levels keep, does not show it. beginFenced says the same for the committer.
var fenced = pgx.TxOptions{IsoLevel: pgx.ReadCommitted} // read-only

const beginFenced = `BEGIN ISOLATION LEVEL READ COMMITTED`

// takeTimeout is how long transactions of an earlier process are waited for. Then those that do nothing lose their connections: their machine may be gone.
const takeTimeout = 5 * time.Second

// takeEpoch makes this process the owner of the database: from now on transactions of an earlier one are refused. What that one had reserved counts as
// used.
func (db *DB) takeEpoch(ctx context.Context) error {
	for {
		err := db.tryEpoch(ctx)
		if err == nil {
			return nil
		}
		if codeOf(err) == lockTimeout {
			err = db.endStuck(ctx)
		}
		if err != nil {
			return fmt.Errorf("take over the database: %w", err)
		}
	}
}

// endStuck ends connections that have the lock of the epochs and have been at the same thing for long.
func (db *DB) endStuck(ctx context.Context) error {
	_, err := db.pool.Exec(ctx, `SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND l.classid = $1 AND l.objid = $2 AND l.objsubid = 1 AND a.state_change < clock_timestamp() - $3::bigint * interval '1 millisecond'`,
		epochLock>>32, epochLock&0xffffffff, (takeTimeout / 2).Milliseconds())
	return err
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
		if err := tx.QueryRow(ctx, `INSERT INTO epochs (epoch) SELECT coalesce(max(epoch), 0) + 1 FROM epochs RETURNING epoch`).Scan(&epoch); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM epochs WHERE epoch <= $1`, epoch-keptEpochs); err != nil {
			return err
		}
		t := &transaction{db: db, ctx: ctx, conn: tx.Conn()}
		if err := spending.Forfeit(t); err != nil {
			return err
		}
		if _, err := t.flush(); err != nil {
			return err
		}
		return discardAbandoned(ctx, tx)
	})
	if err == nil {
		db.epoch = epoch
	}
	return err
}

// write runs a transaction of this process beside the committer's. It refuses when a later process has taken an epoch, and then nothing is written.
// Once begun it runs to its end: a context that ended during the commit would leave its outcome unknown.
func (db *DB) write(ctx context.Context, run func(context.Context, pgx.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := db.superseded.Load(); err != nil {
		return *err
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
		return full(err)
	case isAway(err) || pgconn.SafeToRetry(err):
		return unavailable(err)
	}
	return err
}

// check waits for whoever takes an epoch, and then looks at it, in one round trip.
func (db *DB) check(ctx context.Context, tx pgx.Tx) (err error) {
	var b pgx.Batch
	b.Queue(`SELECT pg_advisory_xact_lock_shared($1)`, epochLock)
	b.Queue(`SELECT max(epoch) FROM epochs`)
	results := tx.SendBatch(ctx, &b)
	defer func() { err = errors.Join(err, results.Close()) }()
	if _, err := results.Exec(); err != nil {
		return err
	}
	var epoch int64
	if err := results.QueryRow().Scan(&epoch); err != nil {
		return fmt.Errorf("read the epoch: %w", err)
	}
	if epoch != db.epoch {
		return lost(fmt.Errorf("its epoch is %d, ours was %d", epoch, db.epoch))
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
