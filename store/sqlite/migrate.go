package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"

	"tandem/fault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings a database up to date, making it if it is not there. A database that a newer version has changed is left
// alone: an older one would not know what its rows mean.
func migrate(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", dsn(path, "immediate", "journal_mode(WAL)", "synchronous(FULL)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir, goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	has, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read database version: %w", err)
	}
	if has > known {
		return fault.Newf(fault.Conflict, "the database %q has version %d and this program knows versions up to %d: it was written by a newer one; run that, or restore a copy from before the upgrade", path, has, known)
	}
	if has == known {
		return nil
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the database up to date: %w", err)
	}
	return nil
}
