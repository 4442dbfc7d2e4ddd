// Package postgres keeps journals and records in PostgreSQL: executions with their rows, and what the rooms of package relational
// have for every database, and large values. One process owns the database: whoever opens it takes it
// over (epoch.go), and who had it open before writes nothing more.
//
// All writes but those of large values go through the committer (committer.go), which makes one transaction of whatever waits and tells
// those who listen of it with one message. When a connection is lost during a commit, it finds out what became of that (failure.go), so
// that an append returns when its rows are on disk or when it is certain that they will not be. The committer has a goroutine, which
// Close ends; the pool of connections has others.
//
// It implements the seam of package store and is not a place for decisions about workflows. Only the wiring of an instance
// imports it.
package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

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
	// lines are its connections; plain is how others are made, for the pulse, which unfeel ends.
	lines  *lines
	plain  *pgx.ConnConfig
	unfeel context.CancelFunc
	felt   sync.WaitGroup
	// room says that there was none, and for how long that counts.
	room atomic.Pointer[noRoom]
	// version is the one that this program brings databases to, and works on.
	version int64
	// epoch is the one that this process has taken; superseded is set when there is a later one.
	epoch int64
	// shared says that others write, too, and member which of them this process is; zero: the owner.
	shared     bool
	member     int64
	superseded atomic.Pointer[error]
	broken     chan struct{}
	// readOnly is what every write returns when another process owns the database ([OpenReader]).
	readOnly error
	// sealing keeps messages from strangers; nil: they are sent as they are.
	sealing    atomic.Pointer[sealing]
	statements statements
	memories   *memories.Memories
	upkeep     *upkeep.Upkeep
	committer  *committer
}

// Open connects to a database, brings it up to date and takes it over from whoever had it open. It refuses one that a newer
// version has written.
func Open(ctx context.Context, url string) (*DB, error) { return openBy(ctx, url, &lines{}, false) }

// openBy is Open with the lines that connections are. Shared lets members write as well.
func openBy(ctx context.Context, url string, by *lines, shared bool) (*DB, error) {
	pool, err := connectBy(ctx, url, by)
	if err != nil {
		return nil, err
	}
	newest, err := known()
	if err == nil {
		err = migrate(ctx, pool, newest)
	}
	if err != nil {
		pool.Close()
		return nil, explain(pool.Config().ConnConfig, err)
	}
	db := &DB{pool: pool, lines: by, version: newest, broken: make(chan struct{}), shared: shared}
	if err := db.takeEpoch(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return db, db.furnish(url)
}

// furnish makes what the seams need, and begins to feel the pulse of the server.
func (db *DB) furnish(url string) error {
	config, err := configure(url)
	if err != nil {
		db.pool.Close()
		return err
	}
	db.plain = config.ConnConfig
	feeling, cancel := context.WithCancel(context.Background())
	db.unfeel = cancel
	db.felt.Go(func() { db.pulse(feeling, pulseEvery, pulsePatience) }) // it ends with Close
	db.committer = newCommitter(db)
	if db.shared && db.member == 0 {
		db.felt.Go(func() { db.attend(feeling, attendEvery) }) // it ends with Close
	}
	db.memories = memories.New(tables{db}, words{})
	db.upkeep = upkeep.New(tables{db}, upkeep.Options{
		Blobs: blobUpkeep{blobs{db}}, Files: files{db}, Journals: journals(), Epoch: cmp.Or(db.epoch, -db.member),
		Born: time.Now().UnixMilli(), FirstSince: summaries.New(tables{db}).FirstSince,
		Write: tables{db}.remove, RemoveMemories: db.memories.RemoveOf, Gone: db.memories.Gone,
	})
	return nil
}

// Close ends the connections. It waits for calls that go on, and for what was accepted to be decided.
func (db *DB) Close() {
	db.committer.close()
	db.unfeel()
	db.felt.Wait()
	if db.member != 0 {
		db.leave()
	}
	db.pool.Close()
}

// Stores returns the seams that the database implements: all of them.
func (db *DB) Stores() store.Stores {
	t := tables{db}
	s := store.Stores{
		Journal:      journal{db},
		Executions:   executions{summaries.New(t), t},
		Blobs:        blobs{db},
		Memories:     db.memories,
		Interactions: questions.New(t, inbox.Deliver),
		Limits:       db.upkeep.Limits(),
		Upkeep:       db.upkeep,
	}
	for _, add := range []func(*store.Stores, relational.Database){
		accounts.AddTo, auditlog.AddTo, definitions.AddTo, inbox.AddTo, logs.AddTo, overview.AddTo, toolservers.AddTo, triggers.AddTo,
	} {
		add(&s, t)
	}
	spending.AddTo(&s, t, inbox.Deliver)
	s.Workflows = definitions.NewWorkflows(t, forgetWorkflow)
	return s
}

// forgetWorkflow removes what belongs to a workflow that is deleted.
func forgetWorkflow(w relational.Transaction, workspace, workflow string) error {
	w.(*transaction).c.tally.Gone(relational.Key{Workspace: workspace, ID: workflow})
	return triggers.Forget(w, workspace, workflow)
}

// migrate brings a database to a version. Processes that start together wait for each other.
func migrate(ctx context.Context, pool *pgxpool.Pool, version int64) error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	return migrateBy(ctx, pool, dir, version)
}

// migrateBy is migrate with the files that say how. Nobody writes to the database meanwhile.
func migrateBy(ctx context.Context, pool *pgxpool.Pool, dir fs.FS, version int64) (err error) {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, dir, goose.WithSessionLocker(alone{locker}),
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		return fmt.Errorf("bring the database up to date: %w", err)
	}
	has, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read database version: %w", err)
	}
	switch {
	case has > known:
		return newer(has, known)
	case has > version:
		return notEmpty(pool)
	}
	return nil
}
