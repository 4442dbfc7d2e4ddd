package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// A member says with its pulse that it is alive. One that has not for goneAfter is gone; the owner looks for that every attendEvery.
const (
	goneAfter   = time.Minute
	attendEvery = 15 * time.Second
)

// sign says that this member is alive, by a connection of the pulse.
func (db *DB) sign(ctx context.Context, conn *pgx.Conn) error {
	var b pgx.Batch
	b.Queue(`SELECT set_config('synchronous_commit', 'off', false)`) // it is worth no waiting
	b.Queue(`INSERT INTO member_signs (member) SELECT $1 WHERE (`+hasVersion+`) = $2 ON CONFLICT (member) DO UPDATE SET seen = clock_timestamp()`,
		db.member, db.version)
	return conn.SendBatch(ctx, &b).Close()
}

// leave says that this member is gone. If it cannot, that is found out when no signs of it come.
func (db *DB) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	_, _ = db.pool.Exec(ctx, `DELETE FROM member_signs WHERE member = $1 AND (`+hasVersion+`) = $2`, db.member, db.version)
}

// attend closes what members have reserved that are gone, until the context ends. A member is believed to be gone when two looks have
// found it so: after a time without the server those who are alive can say so first.
func (db *DB) attend(ctx context.Context, every time.Duration) {
	var before []int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		gone, err := db.goneMembers(ctx)
		if err == nil {
			err = db.forfeitOf(ctx, slices.DeleteFunc(slices.Clone(gone), func(m int64) bool { return !slices.Contains(before, m) }))
		}
		if before = gone; err != nil { // it is tried again
			before = nil
		}
	}
}

// goneMembers are those who have reserved something and are gone. What is known of calls that have ended is removed.
func (db *DB) goneMembers(ctx context.Context) ([]int64, error) {
	if _, err := db.pool.Exec(ctx, `DELETE FROM member_calls c WHERE NOT EXISTS (SELECT 1 FROM ledger l WHERE l.workspace_id = c.workspace_id AND l.id = c.id AND l.open <> 0)`); err != nil {
		return nil, err
	}
	if _, err := db.pool.Exec(ctx, `DELETE FROM member_signs WHERE seen < clock_timestamp() - interval '1 day'`); err != nil {
		return nil, err
	}
	rows, err := db.pool.Query(ctx, `SELECT DISTINCT c.member FROM member_calls c LEFT JOIN member_signs s ON s.member = c.member
		WHERE s.seen IS NULL OR s.seen < clock_timestamp() - $1::bigint * interval '1 millisecond'`, goneAfter.Milliseconds())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// forfeitOf closes what members have reserved, as it was reserved: nobody knows what they have used.
func (db *DB) forfeitOf(ctx context.Context, members []int64) error {
	if len(members) == 0 {
		return nil
	}
	return tables{db}.submit(ctx, nil, func(t *transaction) error {
		t.addStatement(`UPDATE ledger l SET open = 0 FROM member_calls c WHERE l.workspace_id = c.workspace_id AND l.id = c.id AND l.open <> 0 AND c.member = ANY($1)`, members)
		t.queued++
		return nil
	})
}

// Departures says, each time it is called, whether a member has gone since the call before: it has left, or has given no sign of life for
// a while.
func (o *Owned) Departures() func(context.Context) (bool, error) {
	var before map[int64]bool // those that were alive
	last, first := int64(0), true
	return func(ctx context.Context) (bool, error) {
		// One that has come back, or had not signed yet when it was found, is watched again.
		rows, err := o.pool.Query(ctx, `SELECT member, alive FROM (
				SELECT m.member, s.seen IS NOT NULL AND s.seen >= clock_timestamp() - $3::bigint * interval '1 millisecond' AS alive
				FROM members m LEFT JOIN member_signs s ON s.member = m.member) AS m WHERE alive OR member > $1 OR member = ANY($2)`,
			last, slices.Collect(maps.Keys(before)), goneAfter.Milliseconds())
		if err != nil {
			return false, o.readError(ctx, err)
		}
		type sign struct {
			member int64
			alive  bool
		}
		signs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s sign, err error) { return s, row.Scan(&s.member, &s.alive) })
		if err != nil {
			return false, o.readError(ctx, err)
		}
		gone, alive := false, map[int64]bool{}
		for _, s := range signs {
			if last = max(last, s.member); s.alive {
				alive[s.member] = true
			} else {
				gone = true
			}
		}
		gone = gone && !first // those of before have been seen to
		before, first = alive, false
		return gone, nil
	}
}
