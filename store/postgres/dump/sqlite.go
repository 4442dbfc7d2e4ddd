package dump

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/fault"
	"tandem/identity"
	"tandem/store/postgres"
	"tandem/store/relational/memories"
	"tandem/store/sqlite/blobdir"
	"tandem/store/sqlite/datadir"
	sqlite "tandem/store/sqlite/dump"
	"tandem/store/sqlite/migrations"
)

// Moved is what was put into a database of PostgreSQL.
type Moved struct {
	// Tables says how many rows there are of each table.
	Tables map[string]int64 `json:"tables"`
	// Values is how many large values there are, and Bytes what they hold.
	Values int64 `json:"values"`
	Bytes  int64 `json:"value_bytes"`
	// Damaged are large values that did not hold what their name says, or lack a part.
	Damaged []string `json:"damaged,omitempty"`
}

// FromSQLite puts everything that a data directory of the SQLite store holds into the tables of a database of PostgreSQL, in its
// transaction. Both must have the newest version. Nobody writes to the directory meanwhile, and nothing is changed in it.
//
// Most tables are the same in both. A journal is one table instead of two, words of memories are an index of another kind, large values
// are rows, and what the one database notes about its own files is left out.
func FromSQLite(ctx context.Context, dir string, tx pgx.Tx) (m Moved, err error) {
	f, err := newFiller(ctx, tx)
	if err != nil {
		return m, err
	}
	err = datadir.Snapshot(ctx, dir, func(from *sql.Tx, version int64) error {
		newest, err := migrations.Newest()
		if err != nil {
			return err
		}
		if version != newest {
			return fault.Newf(fault.Unsupported, "the database in %q has version %d and must have version %d; start this program on it first, which brings it up to date", dir, version, newest)
		}
		c := &copier{filler: f, from: from}
		if err := c.copyTables(); err != nil {
			return err
		}
		return c.copyWords()
	})
	if err != nil {
		return m, err
	}
	if m.Damaged, err = f.copyValues(filepath.Join(dir, datadir.BlobDir)); err != nil {
		return m, err
	}
	if err := f.verify(); err != nil {
		return m, err
	}
	m.Tables, m.Values, m.Bytes = f.counts, f.values, f.bytes
	return m, f.goOn()
}

// copier copies rows.
type copier struct {
	*filler
	from *sql.Tx
}

// leftOut are tables of SQLite that say something about its own files, and the index of words, which is made anew.
func leftOut() []string {
	return []string{"accepted_losses", "commit_mark", "memory_text_config", "memory_text_data", "memory_text_docsize", "memory_text_idx"}
}

func (c *copier) copyTables() error {
	list, err := sqlite.Tables(c.ctx, c.from)
	if err != nil {
		return err
	}
	for _, t := range list {
		switch {
		case slices.Contains(leftOut(), t.Name):
		case t.Name == sqlite.Sequences:
			err = c.copySequences()
		case t.Name == "epochs":
			err = c.copyEpoch()
		case t.Name == "journal", t.Name == "journal_in_order":
			err = c.copyJournal(t.Name)
		default:
			err = c.copyTable(t)
		}
		if err == nil {
			err = c.flush() // here, so that an error names the table whose rows were sent
		}
		if err != nil {
			return fmt.Errorf("copy table %s: %w", t.Name, err)
		}
	}
	return nil
}

// copyTable copies a table that both have, in the order in which its rows were made.
func (c *copier) copyTable(t sqlite.Table) error {
	columns, order := t.Columns, ""
	if len(columns) > 0 && columns[0] == sqlite.RowID {
		columns, order = columns[1:], " ORDER BY "+sqlite.RowID
	}
	if err := c.begin(t.Name, columns); err != nil {
		return err
	}
	names := make([]string, len(columns))
	for i, name := range columns {
		names[i] = quoted(name)
	}
	return sqlite.EachRow(c.ctx, c.from, "SELECT "+strings.Join(names, ", ")+" FROM "+quoted(t.Name)+order, len(columns), c.keep)
}

// keep adds a row, with its texts as columns of PostgreSQL have them.
func (c *copier) keep(values []any) error {
	for i, v := range values {
		switch v := v.(type) {
		case string:
			values[i] = postgres.KeptText(valid(v))
		case []byte:
			if v == nil {
				values[i] = []byte{} // nil would be NULL
			}
		}
	}
	return c.row(values)
}

// valid is a text that PostgreSQL takes: SQLite has also kept what is not UTF-8.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// copySequences sets the last numbers that were given out.
func (c *copier) copySequences() error {
	if err := c.flush(); err != nil {
		return err
	}
	return sqlite.EachRow(c.ctx, c.from, "SELECT name, seq FROM "+sqlite.Sequences, 2, func(row []any) error {
		for _, col := range c.tables[row[0].(string)] {
			if !col.numbered {
				continue
			}
			if _, err := c.tx.Exec(c.ctx, `SELECT setval(pg_get_serial_sequence($1, $2), $3) WHERE $3 > 0`, row[0], col.name, row[1]); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyEpoch enters the last epoch, so that those that follow are later than all that rows name.
func (c *copier) copyEpoch() error {
	if err := c.begin("epochs", []string{"epoch"}); err != nil {
		return err
	}
	return sqlite.EachRow(c.ctx, c.from, "SELECT coalesce(max(epoch), 0) FROM epochs", 1, c.row)
}

// copyJournal copies the rows of journals of one of the two tables. The place of a row has the number of its execution in its upper half.
func (c *copier) copyJournal(table string) error {
	if err := c.begin("journal", []string{"execution", "seq", "workspace_id", "time", "body"}); err != nil {
		return err
	}
	return sqlite.EachRow(c.ctx, c.from, "SELECT place >> 32, place & 4294967295, workspace_id, time, body FROM "+table, 5, c.keep)
}

// copyWords makes the index of the words of memories of what the index of SQLite has of each record.
func (c *copier) copyWords() error {
	if _, err := c.from.ExecContext(c.ctx, "CREATE VIRTUAL TABLE temp.memory_words USING fts5vocab('main', 'memory_text', 'instance')"); err != nil {
		return fmt.Errorf("read the words of memories: %w", err)
	}
	if err := c.begin("memory_text", []string{"place", "part", "words"}); err != nil {
		return err
	}
	columns := []string{"title", "content", "extra"}
	counts, place := map[string]memories.Counts{}, int64(0)
	enter := func() error {
		for part, vector := range postgres.WordVectors(counts) {
			if err := c.row([]any{place, int64(part + 1), vector}); err != nil {
				return err
			}
		}
		clear(counts)
		return nil
	}
	err := sqlite.EachRow(c.ctx, c.from, "SELECT doc, term, col, count(*) FROM temp.memory_words GROUP BY doc, term, col ORDER BY doc", 4, func(row []any) error {
		if doc := row[0].(int64); doc != place {
			if err := enter(); err != nil {
				return err
			}
			place = doc
		}
		word := valid(row[1].(string))
		n := counts[word]
		n[slices.Index(columns, row[2].(string))] += int(row[3].(int64))
		counts[word] = n
		return nil
	})
	if err == nil {
		err = enter()
	}
	return errors.Join(err, c.flush())
}

// copyValues copies the large values. Those that others are kept in are noted as ones that nothing may name: here every value is whole.
func (f *filler) copyValues(dir string) (damaged []string, err error) {
	blobs, err := blobdir.OpenToRead(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // none was ever put
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	workspaces, err := blobs.Workspaces()
	if err != nil {
		return nil, err
	}
	for _, workspace := range workspaces {
		last := ""
		if err := blobs.Each(f.ctx, workspace, func(hash string, _ int64, _ time.Time) error {
			if hash == last {
				return nil // it is there as a file and in parts, which come one after the other
			}
			last = hash
			whole, err := f.copyValue(blobs, workspace, hash)
			if fault.CodeOf(err) == fault.NotFound {
				err = nil // a part is missing
			}
			if err == nil && !whole {
				damaged = append(damaged, workspace+"/"+hash)
			}
			return err
		}); err != nil {
			return nil, fmt.Errorf("copy large values: %w", err)
		}
	}
	return damaged, nil
}

// copyValue copies a large value, and says whether it holds what its name says.
func (f *filler) copyValue(blobs *blobdir.Dir, workspace, hash string) (whole bool, err error) {
	who := identity.System(workspace)
	parts, err := blobs.PartsOf(who, hash)
	if err != nil {
		return false, err
	}
	for _, part := range parts {
		added, err := f.tx.Exec(f.ctx, `INSERT INTO blob_doubts (workspace_id, hash) VALUES ($1, $2) ON CONFLICT DO NOTHING`, workspace, part)
		if err != nil {
			return false, err
		}
		f.counts["blob_doubts"] += added.RowsAffected()
	}
	r, _, err := blobs.Get(who, hash)
	if err != nil {
		return false, err
	}
	whole, err = f.value(workspace, hash, r)
	return whole, errors.Join(err, r.Close())
}

// goOn lets numbers that are given out go on after those that are there.
func (f *filler) goOn() error {
	for table, columns := range f.tables { // order does not matter
		for _, c := range columns {
			if !c.numbered || slices.Contains(own(), table) {
				continue
			}
			if _, err := f.tx.Exec(f.ctx, `SELECT setval(s, greatest(v, pg_sequence_last_value(s::regclass)))
				FROM pg_get_serial_sequence($1, $2) s, (SELECT max(`+quoted(c.name)+`) FROM `+quoted(table)+`) m(v) WHERE v IS NOT NULL`, table, c.name); err != nil {
				return fmt.Errorf("number the rows of table %s: %w", table, err)
			}
		}
	}
	return nil
}
