// Package dump takes a database of PostgreSQL apart into rows and large values, and puts one together of them, or of a data directory of
// the SQLite store.
//
// It reads and writes every table there is, whatever is in it, and knows only those that the two databases have in ways of their own.
// Package backup imports it.
package dump

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/backup/archive"
	"tandem/fault"
	"tandem/store/postgres"
	sqlite "tandem/store/sqlite/dump"
)

// Store is the name of this kind of database in a backup.
const Store = "postgres"

// oldest is the version from which on a database has large values, and can be saved.
const oldest = 7

// Save writes a database to a backup, as it is at one moment, also while a process owns it and writes. Large values are rows, and so are
// of the same moment.
func Save(ctx context.Context, address string, to *archive.Writer) (m archive.Moment, err error) {
	err = postgres.Snapshot(ctx, address, func(tx *sql.Tx, version int64) error {
		if version < oldest {
			return fault.Newf(fault.Unsupported, "the database has version %d, and a backup can be made from version %d on; start this program on it first, which brings it up to date", version, oldest)
		}
		m.Version, m.Taken = version, time.Now().UTC()
		if err := saveValues(ctx, tx, to); err != nil {
			return err
		}
		if m.Keys, err = sqlite.SealingKeys(ctx, tx); err != nil {
			return err
		}
		return saveTables(ctx, tx, to)
	})
	return m, err
}

// someValues is how many large values are read at once: each may have a piece in its row.
const someValues = 16

// saveValues writes the large values, those of a workspace after the other.
func saveValues(ctx context.Context, tx *sql.Tx, to *archive.Writer) error {
	type value struct {
		name         string
		size, pieces int64
		body         []byte
	}
	workspace, hash := "", ""
	for {
		page := make([]value, 0, someValues)
		err := sqlite.EachRow(ctx, tx, fmt.Sprintf(`SELECT workspace_id, hash, size, coalesce(pieces, 0), body FROM blobs WHERE (workspace_id, hash) > ($1, $2)
			ORDER BY workspace_id, hash LIMIT %d`, someValues), 5, func(row []any) error {
			workspace, hash = row[0].(string), row[1].(string)
			v := value{name: workspace + "/" + hash, size: row[2].(int64), pieces: row[3].(int64)}
			v.body, _ = row[4].([]byte)
			page = append(page, v)
			return nil
		}, workspace, hash)
		if err != nil {
			return fmt.Errorf("read large values: %w", err)
		}
		for _, v := range page {
			in := io.NopCloser(bytes.NewReader(v.body))
			if v.pieces != 0 {
				if in, err = postgres.Pieces(ctx, tx, v.pieces); err != nil {
					return fmt.Errorf("read large value %s: %w", v.name, err)
				}
			}
			if err := errors.Join(to.Blob(v.name, v.size, in), in.Close()); err != nil {
				return err
			}
		}
		if len(page) < someValues {
			return nil
		}
	}
}

// own are tables that are not saved: those of large values, which are saved apart, of the version, which whoever makes the tables writes,
// and of who owns the database now, or works on it. The numbers of those who worked on it are not given out again: rows may name them.
func own() []string {
	return []string{"blobs", "blob_pieces", "blob_uploads", "canceled_roots", "families", "goose_db_version", "member_calls", "member_signs", "members", "owners"}
}

// sequences is where a backup has the last numbers that were given out.
const sequences = "postgres_sequences"

// column is one of a table.
type column struct {
	name, kind string
	numbered   bool // a sequence gives out its values
}

// plain says that values of a column are among those that a backup has as they are. Others are written as text.
func (c column) plain() bool {
	return slices.Contains([]string{"bigint", "integer", "text", "bytea", "double precision"}, c.kind)
}

// catalogue is what tells the columns of all tables, but those that are made of others.
const catalogue = `SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attidentity <> '' FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
	WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
	ORDER BY c.relname, a.attnum`

func saveTables(ctx context.Context, tx *sql.Tx, to *archive.Writer) error {
	var names []string
	tables := map[string][]column{}
	if err := sqlite.EachRow(ctx, tx, catalogue, 4, func(row []any) error {
		name := row[0].(string)
		if slices.Contains(own(), name) {
			return nil
		}
		if tables[name] == nil {
			names = append(names, name)
		}
		tables[name] = append(tables[name], column{row[1].(string), row[2].(string), row[3].(bool)})
		return nil
	}); err != nil {
		return err
	}
	for _, name := range names {
		var columns, texts []string
		for _, c := range tables[name] {
			text := quoted(c.name)
			if !c.plain() {
				text += "::text"
			}
			columns, texts = append(columns, c.name), append(texts, text)
		}
		if err := to.Table(name, columns); err != nil {
			return err
		}
		if err := sqlite.EachRow(ctx, tx, "SELECT "+strings.Join(texts, ", ")+" FROM "+quoted(name), len(columns), to.Row); err != nil {
			return fmt.Errorf("read table %s: %w", name, err)
		}
	}
	if err := to.Table(sequences, []string{"name", "last"}); err != nil {
		return err
	}
	return sqlite.EachRow(ctx, tx, `SELECT sequencename::text, last_value FROM pg_sequences WHERE schemaname = current_schema() AND last_value IS NOT NULL
		AND sequencename NOT IN ('goose_db_version_id_seq', 'blob_uploads_pieces_seq') ORDER BY 1`, 2, to.Row)
}

func quoted(names ...string) string { return pgx.Identifier(names).Sanitize() }
