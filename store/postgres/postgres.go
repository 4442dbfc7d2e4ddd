// Package postgres keeps journals and records in PostgreSQL: executions with their rows, and what the rooms of package relational
// have for every database, and large values. One process owns the database: whoever opens it takes it
// over (epoch.go), and who had it open before writes nothing more.
//
// Each append is one transaction of its own, since the server groups the commits of its clients by itself. Who may append
// is decided by the journal's key: of two that add the same row, one wins and the other has a conflict. Those who write records
// wait for each other (tables.go). It starts no
// goroutine beside those of its connection pool, which Close ends. When the connection is lost during a commit, the error
// of an append does not say whether the row was written: read the journal again, as after a conflict.
//
// It implements the seam of package store and is not a place for decisions about workflows. Only the wiring of an instance
// imports it.
package postgres

import (
	"context"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/accounts"
	"tandem/store/relational/auditlog"
	"tandem/store/relational/definitions"
	"tandem/store/relational/inbox"
	"tandem/store/relational/logs"
	"tandem/store/relational/memories"
	"tandem/store/relational/overview"
	"tandem/store/relational/questions"
	"tandem/store/relational/spending"
	"tandem/store/relational/summaries"
	"tandem/store/relational/toolservers"
	"tandem/store/relational/triggers"
	"tandem/store/relational/upkeep"
)

//go:embed migrations/*.sql
var migrations embed.FS

// DB is a pool of connections to one database. It is safe for concurrent use.
type DB struct {
	pool *pgxpool.Pool
	// epoch is the one that this process has taken; superseded is set when there is a later one.
	epoch      int64
	superseded atomic.Pointer[error]
	broken     chan struct{}
	statements statements
	memories   *memories.Memories
	upkeep     *upkeep.Upkeep
}

// Open connects to a database, brings it up to date and takes it over from whoever had it open. It refuses one that a newer
// version has written.
func Open(ctx context.Context, url string) (*DB, error) {
	pool, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, pool); err != nil {
		pool.Close()
		return nil, explain(pool.Config().ConnConfig, err)
	}
	db := &DB{pool: pool, broken: make(chan struct{})}
	if err := db.takeEpoch(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	db.memories = memories.New(tables{db}, words{})
	db.upkeep = upkeep.New(tables{db}, upkeep.Options{
		Blobs: blobUpkeep{blobs{db}}, Files: files{db}, Journals: journals(), Epoch: db.epoch, Born: time.Now().UnixMilli(), FirstSince: summaries.New(tables{db}).FirstSince,
		Write: tables{db}.remove, RemoveMemories: db.memories.RemoveOf, Gone: db.memories.Gone,
	})
	return db, nil
}

// Close ends the connections. It waits for calls that go on.
func (db *DB) Close() { db.pool.Close() }

// Stores returns the seams that the database implements: all of them.
func (db *DB) Stores() store.Stores {
	t := tables{db}
	return store.Stores{
		Journal:      journal{db},
		Inbox:        inbox.New(t),
		Timers:       inbox.NewTimers(t),
		Executions:   executions{summaries.New(t), t},
		Overviews:    overview.New(t),
		Logs:         logs.New(t),
		Keys:         inbox.NewKeys(t),
		Ledger:       spending.NewLedger(t),
		Workflows:    definitions.NewWorkflows(t, forgetWorkflow),
		Templates:    definitions.NewTemplates(t),
		Blobs:        blobs{db},
		Memories:     db.memories,
		Workspaces:   accounts.NewWorkspaces(t),
		Users:        accounts.NewUsers(t),
		Tokens:       accounts.NewTokens(t),
		Credentials:  accounts.NewCredentials(t),
		Profiles:     definitions.NewProfiles(t),
		Budgets:      spending.NewBudgets(t, inbox.Deliver),
		Interactions: questions.New(t, inbox.Deliver),
		MCPServers:   toolservers.New(t),
		Audit:        auditlog.New(t),
		Sessions:     accounts.NewSessions(t),
		Invitations:  accounts.NewInvitations(t),
		Logins:       accounts.NewLogins(t),
		Triggers:     triggers.New(t),
		Contacts:     accounts.NewContacts(t),
		Proofs:       accounts.NewProofs(t),
		Limits:       db.upkeep.Limits(),
		Upkeep:       db.upkeep,
	}
}

// forgetWorkflow removes what belongs to a workflow that is deleted.
func forgetWorkflow(w relational.Transaction, workspace, workflow string) error {
	if err := triggers.Forget(w, workspace, workflow); err != nil {
		return err
	}
	return triggers.Remove(w, workspace, workflow)
}

// migrate brings a database up to date. Processes that start together wait for each other.
func migrate(ctx context.Context, pool *pgxpool.Pool) (err error) {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, dir, goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the database up to date: %w", err)
	}
	has, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read database version: %w", err)
	}
	if has > known {
		return fault.Newf(fault.Conflict, "the database has version %d and this program knows versions up to %d: it was written by a newer one; run that, or restore a copy from before the upgrade", has, known)
	}
	return nil
}

// uniqueViolation is the code of a row that is there already.
const uniqueViolation = "23505"

type journal struct{ db *DB }

// Append implements [store.Journal].
func (j journal) Append(ctx context.Context, p identity.Principal, rows ...*store.Append) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	if err := store.CheckRows(rows); err != nil {
		return err
	}
	key := relational.Key{Workspace: workspace, ID: rows[0].Execution}
	entries := store.PendingEntries(ctx)
	err = j.db.repeat(ctx, func() error {
		return j.db.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			w := &transaction{db: j.db, ctx: ctx, tx: tx}
			if err := lockRecords(w, rows); err != nil {
				return err
			}
			if err := appendRows(w, key, rows); err != nil {
				return err
			}
			return enter(w, entries)
		})
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == uniqueViolation {
		switch e.TableName {
		case "journal", "executions":
			return fault.Newf(fault.Conflict, "execution %q has a row %d already: somebody else has gone on with it", rows[0].Execution, rows[0].After+1).WithCause(err)
		case "idempotency_keys":
			return j.keyUsed(ctx, workspace, rows[0].Create.User, rows[0].Key)
		}
	}
	if err == nil {
		for _, e := range entries {
			e.Written()
		}
	}
	return refusal(err)
}

// lockRecords waits for those who write records, as far as rows have to do with them: what is asked of people, and what came from
// outside, is looked at before it is changed; a start must not come between the look at a workflow and its removal.
func lockRecords(w *transaction, rows []*store.Append) (err error) {
	records := func(a *store.Append) bool {
		return len(a.Ask) > 0 || len(a.Withdraw) > 0 || len(a.Requesters) > 0 || a.Pause != nil || a.Resume != nil || len(a.PauseBelow) > 0 || len(a.ResumeBelow) > 0 || a.Arrival != nil
	}
	switch {
	case slices.ContainsFunc(rows, records):
		_, err = w.tx.Exec(w.ctx, `SELECT pg_advisory_xact_lock($1)`, recordsLock)
	case rows[0].Create != nil:
		_, err = w.tx.Exec(w.ctx, `SELECT pg_advisory_xact_lock_shared($1)`, recordsLock)
	}
	return err
}

// keyUsed says what a key was used for.
func (j journal) keyUsed(ctx context.Context, workspace, user string, k *store.IdempotencyKey) error {
	used := &store.KeyUsedError{IdempotencyKey: store.IdempotencyKey{Key: k.Key}}
	err := j.db.pool.QueryRow(ctx, `SELECT request_hash, execution_id, created FROM idempotency_keys WHERE workspace_id = $1 AND user_id = $2 AND key = $3`, workspace, user, k.Key).
		Scan(&used.RequestHash, &used.Execution, &used.Created)
	if err != nil {
		return fmt.Errorf("read idempotency key %q: %w", k.Key, err)
	}
	used.Same = used.RequestHash == k.RequestHash
	return used
}

// appendRows adds rows to the journal of an execution, with what comes with them.
func appendRows(w *transaction, key relational.Key, rows []*store.Append) error {
	head, err := headOf(w, key, rows)
	if err != nil {
		return err
	}
	for _, a := range rows {
		// Whoever else has seen the same end waits here for this transaction, and then finds the key taken.
		if _, err := w.tx.Exec(w.ctx, `INSERT INTO journal (execution, seq, workspace_id, time, body) VALUES ($1, $2, $3, $4, $5)`,
			head.N, a.After+1, key.Workspace, a.Time, bytes(a.Body)); err != nil {
			return err
		}
		if a.Create != nil && a.Arrival != nil {
			if err := triggers.Arrive(w, key.Workspace, key.ID, a.Arrival); err != nil {
				return err
			}
		}
		if err := company(w.ctx, w.tx, key.Workspace, head.N, a); err != nil {
			return err
		}
		if err := questions.Append(w, key, a); err != nil {
			return err
		}
	}
	if err := w.tally.Change(w, key.Workspace, head, rows); err != nil {
		return err
	}
	return w.tally.Settle(w)
}

// headOf says how far the journal goes that rows are added to. That of a new execution is made.
func headOf(w *transaction, key relational.Key, rows []*store.Append) (*summaries.Head, error) {
	a, head := rows[0], &summaries.Head{}
	if a.Create == nil {
		err := w.tx.QueryRow(w.ctx, `SELECT n, (SELECT coalesce(max(seq), 0) FROM journal WHERE execution = n) FROM executions WHERE workspace_id = $1 AND id = $2`,
			key.Workspace, key.ID).Scan(&head.N, &head.Seq)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil, notFound(key.ID)
		case err == nil && head.Seq != a.After:
			err = fault.Newf(fault.Conflict, "execution %q is at row %d, not at %d: somebody else has gone on with it", key.ID, head.Seq, a.After)
		}
		return head, err
	}
	if err := admit(w, key, a); err != nil {
		return nil, err
	}
	// The key comes first: repeating a start is an answer, not a conflict.
	if a.Key != nil {
		if _, err := w.Exec(`INSERT INTO idempotency_keys (workspace_id, user_id, key, request_hash, execution_id, created) VALUES (?, ?, ?, ?, ?, ?)`,
			key.Workspace, a.Create.User, a.Key.Key, a.Key.RequestHash, key.ID, a.Time); err != nil {
			return nil, err
		}
	}
	var row [1]driver.Value
	if _, err := w.Row(row[:], `SELECT nextval(pg_get_serial_sequence('executions', 'n'))`); err != nil {
		return nil, err
	}
	head.N = row[0].(int64)
	made, err := w.Change(summaries.InsertText, summaries.InsertArgs(row[0], &relational.SameTexts{}, key.Workspace, rows)...)
	if err != nil {
		return nil, err
	}
	if made == 0 {
		return nil, fault.Newf(fault.Conflict, "execution %q is there already: somebody else has started it", key.ID)
	}
	w.tally.Begun(head, key.Workspace, a.Create, a.Time)
	return head, nil
}

// admit says whether an execution may be created.
func admit(w *transaction, key relational.Key, a *store.Append) error {
	if a.Arrival != nil {
		if err := triggers.Admit(w, key.Workspace, a.Arrival); err != nil {
			return err
		}
	}
	gone, err := w.Row(make([]driver.Value, 1), `SELECT 1 FROM workflows WHERE workspace_id = ? AND id = ? AND deleted <> 0`, key.Workspace, a.Create.WorkflowID)
	if err == nil && gone {
		err = store.NotFound("workflow", a.Create.WorkflowID)
	}
	return err
}

func notFound(execution string) error {
	return fault.Newf(fault.NotFound, "there is no execution %q in this workspace", execution)
}

// bytes is never NULL.
func bytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// company sends what comes with a row, in one round trip.
func company(ctx context.Context, tx pgx.Tx, workspace string, n int64, a *store.Append) error {
	var b pgx.Batch
	if len(a.ClearTimers) > 0 {
		b.Queue(`DELETE FROM timers WHERE execution = $1 AND id = ANY($2)`, n, a.ClearTimers)
	}
	for _, t := range a.SetTimers {
		b.Queue(`INSERT INTO timers (execution, id, workspace_id, execution_id, until) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (execution, id) DO UPDATE SET until = excluded.until`, n, t.ID, workspace, a.Execution, t.Until)
	}
	if len(a.TakeInbox) > 0 {
		b.Queue(`DELETE FROM inbox WHERE id = ANY($1) AND execution = $2 AND dedup IS NULL`, a.TakeInbox, n)
		b.Queue(`UPDATE inbox SET taken = 1, body = '' WHERE id = ANY($1) AND execution = $2 AND taken = 0`, a.TakeInbox, n)
	}
	for i := range a.Deliver {
		item := &a.Deliver[i]
		var dedup *string
		if item.Dedup != "" {
			dedup = &item.Dedup
		}
		b.Queue(`INSERT INTO inbox (workspace_id, execution, dedup, kind, time, body, taken)
			SELECT $1::text, n, $3::text, $4::text, $5::bigint, $6::bytea, 0 FROM executions WHERE workspace_id = $1 AND id = $2
			ON CONFLICT (execution, dedup) WHERE dedup IS NOT NULL DO NOTHING`,
			workspace, item.Execution, dedup, item.Kind, item.Time, bytes(item.Body))
	}
	if s := a.Snapshot; s != nil {
		b.Queue(`INSERT INTO snapshots (execution, workspace_id, seq, body) VALUES ($1, $2, $3, $4)
			ON CONFLICT (execution) DO UPDATE SET seq = excluded.seq, body = excluded.body`, n, workspace, s.Seq, bytes(s.Body))
	}
	for i := range a.Logs {
		queueLog(&b, workspace, n, &a.Logs[i])
	}
	for _, e := range a.OpenLedger {
		b.Queue(`INSERT INTO ledger (workspace_id, id, execution_id, workflow_id, profile, day, tokens, cost, open) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)
			ON CONFLICT (workspace_id, id) DO NOTHING`, workspace, e.ID, e.Execution, e.Workflow, e.Profile, e.Day, e.Tokens, e.Cost)
	}
	for _, s := range a.SettleLedger {
		b.Queue(`UPDATE ledger SET tokens = $1, cost = $2, open = 0 WHERE workspace_id = $3 AND id = $4 AND open <> 0`, s.Tokens, s.Cost, workspace, s.ID)
	}
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &b).Close()
}

// queueLog keeps a line when its activation has room, and counts it either way.
func queueLog(b *pgx.Batch, workspace string, n int64, line *store.LogLine) {
	b.Queue(`WITH c AS (
			INSERT INTO log_counts AS old (execution, activation, workspace_id, kept, dropped) VALUES ($2, $3, $1, 1, 0)
			ON CONFLICT (execution, activation) DO UPDATE SET
				kept = old.kept + CASE WHEN old.kept < $9 THEN 1 ELSE 0 END,
				dropped = old.dropped + CASE WHEN old.kept < $9 THEN 0 ELSE 1 END
			RETURNING dropped)
		INSERT INTO logs (workspace_id, execution, activation, node_id, time, level, message, context)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8 FROM c WHERE dropped = 0`,
		workspace, n, line.Activation, line.NodeID, line.Time, int(line.Level), kept(line.Message), bytes(line.Context), store.MaxLogLines)
}

// pageSize is how many rows are read at once, so that a connection is not held while the caller works.
const pageSize = 500

// Rows implements [store.Journal].
func (j journal) Rows(ctx context.Context, p identity.Principal, execution string, after uint64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		workspace, err := store.Scope(p)
		if err != nil {
			yield(store.Row{}, err)
			return
		}
		for {
			page, err := query(ctx, j.db, func(row pgx.CollectableRow) (r store.Row, err error) { return r, row.Scan(&r.Seq, &r.Time, &r.Body) },
				`SELECT seq, time, body FROM journal WHERE execution = (SELECT n FROM executions WHERE workspace_id = $1 AND id = $2)
				AND seq > $3 AND workspace_id = $1 ORDER BY seq LIMIT $4`, workspace, execution, int64(min(after, 1<<62)), pageSize)
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
				after = row.Seq
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}

// query reads all rows.
func query[T any](ctx context.Context, db *DB, scan pgx.RowToFunc[T], text string, args ...any) ([]T, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rows, err := db.pool.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read the database: %w", err)
	}
	all, err := pgx.AppendRows[T, []T](nil, rows, scan)
	if err != nil {
		return nil, fmt.Errorf("read the database: %w", err)
	}
	return all, nil
}

// LastSnapshot implements [store.Journal].
func (j journal) LastSnapshot(ctx context.Context, p identity.Principal, execution string) (store.Snapshot, bool, error) {
	workspace, err := store.Scope(p)
	if err != nil {
		return store.Snapshot{}, false, err
	}
	all, err := query(ctx, j.db, func(row pgx.CollectableRow) (s store.Snapshot, err error) { return s, row.Scan(&s.Seq, &s.Body) },
		`SELECT seq, body FROM snapshots WHERE execution = (SELECT n FROM executions WHERE workspace_id = $1 AND id = $2) AND workspace_id = $1`, workspace, execution)
	if err != nil || len(all) == 0 {
		return store.Snapshot{}, false, err
	}
	return all[0], true, nil
}
