package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tandem/fault"
	"tandem/store"
)

// ownerLock is the advisory lock of the process that owns the database. It keeps a second one from taking over by mistake; that nobody
// writes who does not own the database is seen to by the epoch, also when the connection that has the lock is lost.
const ownerLock = 0x6f776e6572 // "owner"

// Pauses between tries to get the lock back, or to reach the server, and between looks of who waits for the lock.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
	lockPause  = 300 * time.Millisecond
)

// Options say how a database is opened by who wants it alone.
type Options struct {
	// URL is where it is: postgres://USER:PASSWORD@HOST:PORT/NAME.
	URL string
	// Existing refuses a database that has nothing of Tandem in it, instead of making its tables.
	Existing bool
	// Shared lets others write beside the owner, see [Join].
	Shared bool
	// Lock is what [Await] has waited for; nil: it is tried to get the database now. It is the database's from then on, or closed.
	Lock *Lock
	// Before is called when nobody else can own the database any more, and before the process that had it is kept from writing. Begun
	// says that the database has been in use. An error of it is that of the opening, and leaves everything as it was. May be nil.
	Before func(ctx context.Context, begun bool) error
}

// Lock is the right to open a database. It must be given to [OpenOwned] or closed.
type Lock struct {
	conn *pgx.Conn
	by   *lines
}

// Close lets go of it.
func (l *Lock) Close() error { return l.conn.Close(context.Background()) }

// Owned is a database that no other process opens with [OpenOwned].
type Owned struct {
	*DB
	config *pgx.ConnConfig
	end    context.CancelFunc
	ended  sync.WaitGroup
	closed sync.Once
	// unlocked is what became of the lock; after ended.
	unlocked error
}

// OpenOwned opens a database that nobody else owns, brings it up to date and owns it until it is closed. While another process owns it
// the answer is a refusal with the fact [store.InUse].
func OpenOwned(ctx context.Context, o Options) (_ *Owned, err error) {
	config, err := configure(o.URL)
	if err != nil {
		return nil, err
	}
	var lock *pgx.Conn
	by := &lines{}
	held := o.Lock != nil
	if held {
		lock, by = o.Lock.conn, o.Lock.by
	}
	by.through(config.ConnConfig)
	if !held {
		if lock, held, err = own(ctx, config.ConnConfig); err != nil {
			return nil, explain(config.ConnConfig, err)
		}
	}
	defer func() {
		if err != nil && lock != nil {
			err = errors.Join(err, lock.Close(context.WithoutCancel(ctx)))
		}
	}()
	if !held {
		return nil, fault.Newf(fault.Conflict, "the database %s is in use by another process; stop it, or name another with --database (TANDEM_DATABASE)", addressOf(config.ConnConfig)).With(store.InUse, true)
	}
	if o.Existing {
		var there bool
		if err := lock.QueryRow(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&there); err != nil {
			return nil, explain(config.ConnConfig, err)
		}
		if !there {
			return nil, fault.Newf(fault.NotFound, "there is no data in the database %s; name another with --database (TANDEM_DATABASE), or a server with --server", addressOf(config.ConnConfig))
		}
	}
	if o.Before != nil {
		now, err := lookInto(ctx, lock)
		if err != nil {
			return nil, explain(config.ConnConfig, err)
		}
		if err := o.Before(ctx, now.begun); err != nil {
			return nil, err
		}
	}
	db, err := openBy(ctx, o.URL, by, o.Shared)
	if err != nil {
		return nil, err
	}
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	owned := &Owned{DB: db, config: config.ConnConfig, end: end}
	owned.ended.Go(func() { owned.watch(watching, lock) }) // it ends with Close
	return owned, nil
}

// ownerConn makes a connection for the lock. A machine that is gone without a word loses it soon, not after hours; nothing else ends it.
func ownerConn(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config = config.Copy()
	config.RuntimeParams["application_name"] = fmt.Sprintf("tandem owner, process %d", os.Getpid())
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := introduce(ctx, conn, stayAlive+`,
		set_config('idle_session_timeout', '0', false), set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false)`); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// Await returns when nobody else owns the database any more, and keeps others from owning it. It waits also while the server is away, and
// returns an error when the context ends, or when the server says that this user or database will not do.
func Await(ctx context.Context, address string) (*Lock, error) {
	config, err := configure(address)
	if err != nil {
		return nil, err
	}
	by := &lines{}
	by.through(config.ConnConfig)
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		conn, err := ownerConn(ctx, config.ConnConfig)
		refused := err != nil && !connectsLater(err)
		if err == nil {
			pause = firstPause
			if err = awaitOn(ctx, conn); err == nil {
				return &Lock{conn, by}, nil
			}
			refused = !isAway(err)
			err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if refused {
			return nil, explain(config.ConnConfig, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// awaitOn returns without an error when a connection has the lock. It asks again and again: a statement that waits would keep its
// snapshot, and with it everything that was deleted in the database since.
func awaitOn(ctx context.Context, conn *pgx.Conn) error {
	for {
		asking, cancel := context.WithTimeout(ctx, lookTimeout)
		held, err := tryLock(asking, conn)
		cancel()
		if err != nil {
			return &serverError{err}
		}
		if held {
			return nil
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryLock takes the lock if nobody has it.
func tryLock(ctx context.Context, conn *pgx.Conn) (held bool, err error) {
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, ownerLock).Scan(&held)
	return held, err
}

// Announce says where others reach the process that owns the database.
func (o *Owned) Announce(ctx context.Context, url string) error {
	return o.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM owners`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO owners (epoch, url) VALUES ($1, $2)`, o.epoch, url)
		return err
	})
}

// Owners tells who owns a database. It must be closed.
type Owners struct{ pool *pgxpool.Pool }

// LookForOwners connects to a database that another process owns.
func LookForOwners(ctx context.Context, address string) (*Owners, error) {
	pool, err := connect(ctx, address)
	if err != nil {
		return nil, err
	}
	return &Owners{pool}, nil
}

// URL is where the owner is reached that has opened the database last; empty: it has not said where.
func (o *Owners) URL(ctx context.Context) (url string, err error) {
	err = o.pool.QueryRow(ctx, `SELECT coalesce((SELECT url FROM owners WHERE epoch = (SELECT max(epoch) FROM epochs)), '')`).Scan(&url)
	return url, err
}

// Close ends the connections.
func (o *Owners) Close() { o.pool.Close() }

// own connects and tries to get the lock. A connection without it is closed.
func own(ctx context.Context, config *pgx.ConnConfig) (_ *pgx.Conn, held bool, err error) {
	conn, err := ownerConn(ctx, config)
	if err != nil {
		return nil, false, err
	}
	if held, err = tryLock(ctx, conn); err != nil || !held {
		return nil, false, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, true, nil
}

// patience is how long the lock may be somebody else's without another epoch: it may be that of a connection which the server does not
// know to be lost.
const patience = 30 * time.Second

// watch keeps the lock. When its connection is lost, another is made; when somebody else owns the database then, this process has lost it.
func (o *Owned) watch(ctx context.Context, lock *pgx.Conn) {
	for {
		old := backendOf(lock)
		_, ended := lock.WaitForNotification(ctx) // nothing is listened to: it returns when the connection or the context ends
		if ctx.Err() != nil {
			o.unlock(lock)
			return
		}
		ended = errors.Join(ended, lock.Close(ctx))
		var refused time.Time // since when the lock is another's
		for pause := firstPause; ; pause = min(2*pause, longPause) {
			var held bool
			var err error
			if lock, held, err = o.regain(ctx, old); held {
				break
			}
			switch {
			case errors.Is(err, store.ErrSuperseded):
				o.stop(errors.Join(err, ended))
				return
			case err != nil:
				refused = time.Time{}
			case refused.IsZero():
				refused = time.Now()
			case time.Since(refused) > patience:
				o.stop(lost(errors.Join(errors.New("another process has its lock"), ended)))
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
		if err := o.still(ctx, lock); err != nil {
			o.stop(errors.Join(err, lock.Close(context.WithoutCancel(ctx))))
			return
		}
	}
}

// regain tries to get the lock again. What is left of the connection that had it is ended first.
func (o *Owned) regain(ctx context.Context, old backend) (_ *pgx.Conn, held bool, err error) {
	conn, err := ownerConn(ctx, o.config)
	if err != nil {
		return nil, false, err
	}
	if err = old.end(ctx, conn); err == nil {
		held, err = tryLock(ctx, conn)
	}
	if err == nil && !held {
		err = o.still(ctx, conn)
	}
	if err != nil || !held {
		return nil, false, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, true, nil
}

// unlock lets go of the lock, and returns when others can have it: closing the connection alone tells the server, and does not wait for it.
func (o *Owned) unlock(lock *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	_, err := lock.Exec(ctx, `SELECT pg_advisory_unlock($1)`, ownerLock)
	o.unlocked = errors.Join(err, lock.Close(ctx))
}

// still looks whether nobody has owned the database meanwhile. It goes on when the context ends, which would close a connection that
// has the lock.
func (o *Owned) still(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	var epoch int64
	if err := conn.QueryRow(ctx, `SELECT max(epoch) FROM epochs`).Scan(&epoch); err != nil {
		return nil //nolint:nilerr // the connection is lost again, which is found out next
	}
	if epoch != o.epoch {
		return lost(fmt.Errorf("its epoch is %d, ours was %d", epoch, o.epoch))
	}
	return nil
}

// lost is the error of a process that does not own the database any more.
func lost(why error) error {
	return fault.New(fault.Internal, "another process has taken over the database, and this one has stopped; let one process use a database").
		WithCause(fmt.Errorf("%w: %w: %w", store.ErrBroken, store.ErrSuperseded, why))
}

// Close lets go of the database and ends the connections. It waits for calls that go on.
func (o *Owned) Close() error {
	o.closed.Do(func() {
		o.DB.Close()
		o.end()
		o.ended.Wait()
	})
	if o.unlocked != nil {
		return fmt.Errorf("let go of the database: %w", o.unlocked)
	}
	return nil
}
