package benchmark

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"tandem/store/postgres"
)

// bareRows is a journal that knows nothing of workflows: it keeps rows.
type bareRows interface {
	// append returns when a row is on disk.
	append(place, time int64, body []byte) error
	stop() error
}

// bases are databases that are made for a measurement, on the server of a database. Without one they are in directories, and their
// addresses are empty.
type bases struct {
	// server says what was measured on.
	server  string
	address string
	pool    *pgxpool.Pool
	names   []string
}

// newBases looks at the server that they are made on. None is made yet.
func newBases(ctx context.Context, address string) (_ *bases, err error) {
	b := &bases{address: address}
	if address == "" {
		return b, nil
	}
	seen, err := postgres.Inspect(ctx, address) // which says what is wrong with it
	if err != nil {
		return nil, err
	}
	b.server = onServer(seen)
	b.pool, err = pgxpool.New(ctx, address)
	return b, err
}

// onServer names the server of a database.
func onServer(seen postgres.Inspection) string { return "PostgreSQL " + seen.Server }

// addDatabase makes one and returns its address. The user of the database must be allowed to.
func (b *bases) addDatabase(ctx context.Context) (address string, err error) {
	if b.pool == nil {
		return "", nil
	}
	name := "tandem_bench_" + strings.ToLower(rand.Text())
	if _, err := b.pool.Exec(ctx, `CREATE DATABASE `+name+` ENCODING 'UTF8' TEMPLATE template0`); err != nil {
		return "", fmt.Errorf("make a database to measure on: %w; let the user do that (ALTER ROLE … CREATEDB), or name another with --database", err)
	}
	b.names = append(b.names, name)
	return postgres.Beside(b.address, name)
}

// remove drops the databases.
func (b *bases) remove(ctx context.Context) (err error) {
	if b.pool == nil {
		return nil
	}
	defer b.pool.Close()
	for _, name := range b.names {
		if _, derr := b.pool.Exec(ctx, `DROP DATABASE `+name+` WITH (FORCE)`); derr != nil {
			err = errors.Join(err, fmt.Errorf("remove the database %q: %w", name, derr))
		}
	}
	return err
}

// openBareOn opens the bare journal that the engine is compared with: in a directory, or in a database if there is an address.
func openBareOn(ctx context.Context, dir, address string) (bareRows, error) {
	if address == "" {
		return openBare(dir)
	}
	config, err := postgres.Pool(address) // as the engine has it
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the bare journal: %w", err)
	}
	if _, err := pool.Exec(ctx, `CREATE TABLE journal (place bigint PRIMARY KEY, time bigint NOT NULL, body bytea NOT NULL)`); err != nil {
		pool.Close()
		return nil, fmt.Errorf("make the table of the bare journal: %w", err)
	}
	return barePostgres{pool}, nil
}

// barePostgres writes each row in a transaction of its own; the server groups their commits.
type barePostgres struct{ pool *pgxpool.Pool }

func (j barePostgres) append(place, time int64, body []byte) error {
	_, err := j.pool.Exec(context.Background(), `INSERT INTO journal VALUES ($1, $2, $3)`, place, time, body)
	return err
}

func (j barePostgres) stop() error {
	j.pool.Close()
	return nil
}
