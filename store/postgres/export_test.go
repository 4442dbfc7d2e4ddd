package postgres

import (
	"context"
	"time"
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
	held, result := make(chan struct{}), make(chan error, 1)
	go func() { // it ends with the transaction
		first := true
		result <- db.committer.submit(ctx, &work{run: func(*transaction) error {
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
