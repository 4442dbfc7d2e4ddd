package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// onPostgres are the contenders that can also work on PostgreSQL.
var onPostgres = []string{ours, "dbos"} // read-only

// makeDatabase makes a database of its own on the server of an address, and returns its address and how it is removed.
func makeDatabase(ctx context.Context, server string) (address string, remove func() error, err error) {
	at, err := url.Parse(server)
	if err != nil {
		return "", nil, fmt.Errorf("-database: %w", err)
	}
	admin, err := sql.Open("pgx", server)
	if err != nil {
		return "", nil, err
	}
	name := "bench_" + strings.ToLower(rand.Text())
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, errors.Join(fmt.Errorf("make a database: %w", err), admin.Close())
	}
	at.Path = "/" + name
	return at.String(), func() error {
		_, err := admin.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
		return errors.Join(err, admin.Close())
	}, nil
}

// openPostgresReader opens a connection that only looks at what is on disk.
func openPostgresReader(address string) (*sql.DB, error) {
	db, err := sql.Open("pgx", address)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// durable is FULL when the server syncs every commit before it answers.
func durable(ctx context.Context, db *sql.DB) (int, error) {
	return number(ctx, db, "SELECT CASE WHEN current_setting('fsync') = 'on' AND current_setting('synchronous_commit') = 'on' THEN 2 ELSE 0 END")
}
