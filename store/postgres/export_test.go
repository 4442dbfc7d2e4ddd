package postgres

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// BlobUpkeep is the large values as whoever removes them sees them.
func (db *DB) BlobUpkeep() blobUpkeep { return blobUpkeep{blobs{db}} }

// OwnerLock is the lock of the process that owns a database.
const OwnerLock = ownerLock

// Suits says whether a server can be used, by what it tells of itself.
var Suits = suits // read-only

// Commits returns how many transactions the committer has made, and how many calls they held.
func (db *DB) Commits() (transactions, calls uint64) {
	return db.committer.commits.Load(), db.committer.works.Load()
}

// Queued returns how many calls wait for the committer.
func (db *DB) Queued() int {
	db.committer.mu.Lock()
	defer db.committer.mu.Unlock()
	return len(db.committer.queue)
}

// Setting is what a connection of the pool has as a setting.
func (db *DB) Setting(ctx context.Context, name string) (value string, err error) {
	err = db.pool.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}

// EpochLock is the lock that transactions share.
const EpochLock = epochLock

// EndOne ends the process of one of the pool's connections, or means another that had its number before, and says whether it has ended.
func (db *DB) EndOne(ctx context.Context, other bool) (ended bool, err error) {
	victim, err := db.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer victim.Release()
	by, err := db.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer by.Release()
	b := backendOf(victim.Conn())
	if other {
		b.began = b.began.Add(-time.Microsecond)
	}
	if err := b.end(ctx, by.Conn()); err != nil {
		return false, err
	}
	return victim.Ping(ctx) != nil, nil
}

// Hold stops the committer inside a transaction until release is closed. It returns when it stands.
func (db *DB) Hold(ctx context.Context, release <-chan struct{}) <-chan error {
	return db.hold(ctx, release, func(*transaction) error { return nil })
}

// HoldTurn is Hold of a transaction that has been begun on the server, too, where it has run a statement.
func (db *DB) HoldTurn(ctx context.Context, release <-chan struct{}, text string, args ...any) <-chan error {
	return db.hold(ctx, release, func(t *transaction) error {
		t.addStatement(text, args...)
		t.queued++
		_, err := t.flush()
		return err
	})
}

func (db *DB) hold(ctx context.Context, release <-chan struct{}, before func(*transaction) error) <-chan error {
	held, result := make(chan struct{}), make(chan error, 1)
	go func() { // it ends with the transaction
		first := true
		result <- db.committer.submit(ctx, &work{run: func(t *transaction) error {
			if err := before(t); err != nil {
				return err
			}
			if first { // a transaction may be run again
				first = false
				close(held)
				<-release
			}
			return nil
		}})
	}()
	<-held
	return result
}

// Feel feels the pulse of the server more often than usual, until the context ends.
func (db *DB) Feel(ctx context.Context, every, patience time.Duration) {
	db.pulse(ctx, every, patience)
}

// FeelBy is Feel by another address, of which each connection that is begun is told.
func (db *DB) FeelBy(ctx context.Context, address string, every, patience time.Duration, dialled func()) error {
	config, err := configure(address)
	if err != nil {
		return err
	}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled()
		return dial(ctx, network, address)
	}
	(&DB{lines: db.lines, plain: config.ConnConfig, version: db.version}).pulse(ctx, every, patience)
	return nil
}

// Hire takes a connection of the pool for oneself.
func (db *DB) Hire(ctx context.Context) (*pgxpool.Conn, error) { return db.pool.Acquire(ctx) }

// Attend looks for members that are gone more often than usual, until the context ends.
func (db *DB) Attend(ctx context.Context, every time.Duration) { db.attend(ctx, every) }

// Doubt is what is done about messages that are not believed, and DoubtEvery how often at most.
type Doubt struct{ doubt }

// DoubtEvery is how often it is done at most.
const DoubtEvery = doubtEvery

// Unbelieved says that a message came, and whether anything is to be said to be new.
func (d *Doubt) Unbelieved(now time.Time) bool {
	d.owed = true
	return d.due(now)
}

// Due says that anything is to be said to be new.
func (d *Doubt) Due(now time.Time) bool { return d.due(now) }

// NewsChannel is where it is told which executions have new rows, and MaxWhole how long a message may be.
const (
	NewsChannel = newsChannel
	MaxWhole    = maxWhole
)
