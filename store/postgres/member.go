package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/store"
)

// keptMembers is how many members are remembered.
const keptMembers = 10_000

// Member is a database that another process owns and shares: this one reads and writes beside it. It must be closed.
type Member struct{ *DB }

// Join opens a database that its owner shares. It owns nothing and brings nothing up to date: a database that has another version than this
// program knows is refused, and so is one that nobody shares.
func Join(ctx context.Context, address string) (*Member, error) {
	by := &lines{}
	pool, err := connectBy(ctx, address, by)
	if err != nil {
		return nil, err
	}
	db := &DB{pool: pool, lines: by, broken: make(chan struct{}), shared: true}
	if db.version, err = known(); err == nil {
		err = db.enlist(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, explain(pool.Config().ConnConfig, err)
	}
	if err := db.furnish(address); err != nil {
		return nil, err
	}
	return &Member{db}, nil
}

// Close ends the connections. It waits for calls that go on.
func (m *Member) Close() error {
	m.DB.Close()
	return nil
}

// enlist makes this process a member.
func (db *DB) enlist(ctx context.Context) error {
	var there bool
	if err := db.pool.QueryRow(ctx, `SELECT to_regclass('members') IS NOT NULL`).Scan(&there); err != nil {
		return err
	}
	at := addressOf(db.pool.Config().ConnConfig)
	if !there {
		return fault.Newf(fault.NotReady, "there is nothing to work on in the database %s; start a server on it first (tandem serve --engine temporal)", at)
	}
	return pgx.BeginTxFunc(ctx, db.pool, fenced, func(tx pgx.Tx) error {
		now, err := lookAt(ctx, tx)
		switch {
		case err != nil:
			return err
		case now.version != db.version:
			return otherVersion(now.version, db.version)
		case !now.shared:
			return notShared(fmt.Errorf("the last owner of %s", at))
		}
		if err := tx.QueryRow(ctx, `INSERT INTO members DEFAULT VALUES RETURNING member`).Scan(&db.member); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO member_signs (member) VALUES ($1)`, db.member); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM members WHERE member <= $1`, db.member-keptMembers)
		return err
	})
}

// Who has the turn to write and says nothing loses it after idleTurn, and after deafTurn if it is in the midst of saying or hearing
// something.
const (
	idleTurn = 2 * time.Second
	deafTurn = 20 * time.Second
)

// endTurn ends the connection of a process that has the turn to write and does nothing with it: it may be frozen, or parted from the
// server, and all others wait. What it was about to write is not written; if it is alive it finds that out, as with any connection that
// it loses. Who waits for the server itself keeps its turn.
func (db *DB) endTurn() error {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	_, err := db.pool.Exec(ctx, endHolders+`(a.state LIKE 'idle in transaction%' AND a.state_change < clock_timestamp() - $3::bigint * interval '1 millisecond'
		OR a.wait_event_type = 'Client' AND a.state_change < clock_timestamp() - $4::bigint * interval '1 millisecond')`,
		epochLock>>32, epochLock&0xffffffff+1, idleTurn.Milliseconds(), deafTurn.Milliseconds())
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// notShared is the error of a member whose database has an owner that shares it with nobody.
func notShared(why error) error {
	return fault.New(fault.Conflict, "the server that owns the database runs executions by itself; start it with --engine temporal, then the workers").
		WithCause(fmt.Errorf("%w: %w: %w", store.ErrBroken, store.ErrSuperseded, why))
}
