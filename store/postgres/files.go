package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"tandem/store"
	"tandem/store/relational"
	"tandem/store/relational/upkeep"
)

// files is what the server keeps the tables in, as far as it can be reached.
type files struct{ db *DB }

// journals is where the rows of journals are, for removing some.
func journals() []upkeep.Journal {
	return []upkeep.Journal{{
		Table: "journal", Some: `execution = ?1 AND seq IN (SELECT seq FROM journal WHERE execution = ?1 ORDER BY seq LIMIT ?2)`,
		Args: func(n, limit int64) []driver.Value { return []driver.Value{n, limit} },
	}}
}

// EachColumn implements [upkeep.Files]. What large values hold is read by whoever keeps these.
func (x files) EachColumn(ctx context.Context, each func(columns ...driver.Value)) error {
	type table struct{ name, columns string }
	all, err := relational.Query(ctx, tables(x), `SELECT table_name::text, string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) FROM information_schema.columns
		WHERE table_schema = current_schema() AND data_type IN ('text', 'bytea') AND table_name NOT IN ('blobs', 'blob_pieces', 'blob_uploads', 'blob_doubts') GROUP BY table_name ORDER BY 1`,
		func(s relational.Scanner) (t table, err error) { return t, s.Scan(&t.name, &t.columns) })
	if err != nil {
		return err
	}
	for _, t := range all {
		if err := (tables(x)).Read(ctx, func(c relational.Reader) error {
			return c.Each(ctx, `SELECT `+t.columns+` FROM `+t.name, nil, func(s relational.Scanner) (bool, error) {
				row, _ := s.(relational.Record)
				each(row...)
				return true, nil
			})
		}); err != nil {
			return err
		}
	}
	return nil
}

// Compact implements [upkeep.Files]: the room of removed rows can be used again, and what of it is at the end of a file is given back.
// What the server leaves of them in its files and its log until it writes over it is the server's own.
func (x files) Compact(ctx context.Context, _ float64, done func() error) error {
	names, err := x.tables(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := x.db.pool.Exec(ctx, `VACUUM `+name); err != nil {
			return fmt.Errorf("vacuum %s: %w", name, err)
		}
	}
	return done()
}

// tables are the names of all tables.
func (x files) tables(ctx context.Context) ([]string, error) {
	return relational.Query(ctx, tables(x), `SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY 1`,
		func(s relational.Scanner) (name string, err error) { return name, s.Scan(&name) })
}

// Space implements [upkeep.Files].
func (x files) Space(ctx context.Context) (s store.Space, err error) {
	blobs := make([]string, 0, 3)
	for _, name := range []string{"blobs", "blob_pieces", "blob_uploads"} {
		blobs = append(blobs, `pg_total_relation_size('`+name+`')`)
	}
	sizes, err := relational.QueryOne(ctx, tables(x), nil, `SELECT pg_database_size(current_database()), `+strings.Join(blobs, " + "),
		func(s relational.Scanner) (n [2]int64, err error) { return n, s.Scan(&n[0], &n[1]) })
	if err != nil {
		return s, err
	}
	return store.Space{Database: sizes[0] - sizes[1], Blobs: sizes[1], Shrinks: true}, nil
}
