package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/store"
)

// OpenReader opens a database that another process owns, to read it. What would change it is refused with [store.ErrUnavailable]. It
// refuses a database that has not the version that this program brings databases to: an owner may be about to change it, or be of
// another version. When the database gets another version later, nothing more is read, and [DB.Broken] is closed.
func OpenReader(ctx context.Context, url string) (*DB, error) {
	knows, err := known()
	if err != nil {
		return nil, err
	}
	db := &DB{lines: &lines{}, version: knows, broken: make(chan struct{})}
	if db.pool, err = connectPrepared(ctx, url, db.lines, db.readsOn); err != nil {
		return nil, err
	}
	db.readOnly = fault.New(fault.NotReady, "this process does not own the database, and changes nothing in it").
		WithCause(fmt.Errorf("%w: it was opened to be read", store.ErrUnavailable))
	return db, db.furnish(url)
}

// readsOn looks, before a connection is used, whether the database has still the version that this program reads. A connection that is
// lost is replaced.
func (db *DB) readsOn(ctx context.Context, conn *pgx.Conn) (sound bool, err error) {
	err = db.fits(ctx, conn)
	if errors.Is(err, store.ErrSuperseded) {
		db.stop(err)
		return true, err
	}
	if codeOf(err) != "" && !lostConnection(err) {
		return true, err
	}
	return err == nil, nil
}
