// Package postgres keeps journals and records in PostgreSQL: executions with their rows, and what the rooms of package relational
// have for every database, and large values. One process owns the database: whoever opens it takes it
// over (epoch.go), and who had it open before writes nothing more.
//
// All writes but those of large values go through the committer (committer.go), which makes one transaction of whatever waits and tells those who listen
// of it with one message. When a connection is lost during a commit, it finds out what became of that (failure.go), so that an append returns when its rows
// are on disk or when it is certain that they will not be. The committer has a goroutine, which Close ends; the pool of connections has others.
//
// It implements the seam of package store and is not a place for decisions about workflows. Only the wiring of an instance
// imports it.
package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"tandem/fault"
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
	committer  *committer
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
	db.committer = newCommitter(db)
	db.memories = memories.New(tables{db}, words{})
	db.upkeep = upkeep.New(tables{db}, upkeep.Options{
		Blobs: blobUpkeep{blobs{db}}, Files: files{db}, Journals: journals(), Epoch: db.epoch, Born: time.Now().UnixMilli(), FirstSince: summaries.New(tables{db}).FirstSince,
		Write: tables{db}.remove, RemoveMemories: db.memories.RemoveOf, Gone: db.memories.Gone,
	})
	return db, nil
}

// Close ends the connections. It waits for calls that go on, and for what was accepted to be decided.
func (db *DB) Close() {
	db.committer.close()
	db.pool.Close()
}

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
	w.(*transaction).c.tally.Gone(relational.Key{Workspace: workspace, ID: workflow})
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
