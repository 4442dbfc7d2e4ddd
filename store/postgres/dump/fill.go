package dump

import (
	"bytes"
	"context"
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
)

// A batch of rows is sent when it has so many of them, or so many bytes.
const (
	batchRows  = 2000
	batchBytes = 4 << 20
)

// filler puts rows and large values into the tables of a database, in its transaction.
type filler struct {
	ctx    context.Context
	tx     pgx.Tx
	tables map[string][]column
	// counts is how many rows each table has got.
	counts map[string]int64
	// values is how many large values there are, and bytes what they hold.
	values, bytes int64

	// current is the table whose rows come, with their columns.
	current string
	columns []column
	batch   [][]any
	size    int
}

// newFiller learns which tables there are, and empties them: migrations may have put something in.
func newFiller(ctx context.Context, tx pgx.Tx) (*filler, error) {
	f := &filler{ctx: ctx, tx: tx, tables: map[string][]column{}, counts: map[string]int64{}}
	rows, err := tx.Query(ctx, catalogue)
	if err != nil {
		return nil, err
	}
	var table string
	var c column
	if _, err := pgx.ForEachRow(rows, []any{&table, &c.name, &c.kind, &c.numbered}, func() error {
		f.tables[table] = append(f.tables[table], c)
		return nil
	}); err != nil {
		return nil, err
	}
	for name := range f.tables { // order does not matter
		if name == "goose_db_version" {
			continue
		}
		if _, err := tx.Exec(ctx, "DELETE FROM "+quoted(name)); err != nil {
			return nil, fmt.Errorf("empty table %s: %w", name, err)
		}
	}
	return f, nil
}

// begin is called when the rows of a table begin. What is left of the table before is sent.
func (f *filler) begin(table string, columns []string) error {
	if err := f.flush(); err != nil {
		return err
	}
	f.current, f.columns = table, nil
	for _, name := range columns {
		at := slices.IndexFunc(f.tables[table], func(c column) bool { return c.name == name })
		if at < 0 || slices.Contains(own(), table) {
			return fault.Newf(fault.Invalid, "there is a table %q with a column %q that this database does not have; use the program that has written it", table, name)
		}
		f.columns = append(f.columns, f.tables[table][at])
	}
	return nil
}

// row adds a row. The values are the filler's from then on, the list of them is not.
func (f *filler) row(values []any) error {
	f.batch = append(f.batch, slices.Clone(values))
	for _, v := range values {
		switch v := v.(type) {
		case string:
			f.size += len(v)
		case []byte:
			f.size += len(v)
		}
	}
	if len(f.batch) < batchRows && f.size < batchBytes {
		return nil
	}
	return f.flush()
}

// flush sends the rows that wait.
func (f *filler) flush() error {
	if len(f.batch) == 0 {
		return nil
	}
	names := make([]string, len(f.columns))
	for i, c := range f.columns {
		names[i] = c.name
	}
	var err error
	if slices.ContainsFunc(f.columns, func(c column) bool { return !c.plain() }) {
		err = f.insert(names)
	} else {
		_, err = f.tx.CopyFrom(f.ctx, pgx.Identifier{f.current}, names, pgx.CopyFromRows(f.batch))
	}
	if err != nil {
		return fmt.Errorf("write rows of table %s: %w", f.current, err)
	}
	f.counts[f.current] += int64(len(f.batch))
	f.batch, f.size = f.batch[:0], 0
	return nil
}

// insert sends the rows one by one, for columns whose values come as text.
func (f *filler) insert(names []string) error {
	list, marks := make([]string, len(names)), make([]string, len(names))
	for i, c := range f.columns {
		list[i], marks[i] = quoted(names[i]), fmt.Sprintf("$%d::%s", i+1, c.kind)
		if !c.plain() {
			marks[i] = fmt.Sprintf("$%d::text::%s", i+1, c.kind)
		}
	}
	text := "INSERT INTO " + quoted(f.current) + " (" + strings.Join(list, ", ") + ") OVERRIDING SYSTEM VALUE VALUES (" + strings.Join(marks, ", ") + ")"
	var b pgx.Batch
	for _, row := range f.batch {
		b.Queue(text, row...)
	}
	return f.tx.SendBatch(f.ctx, &b).Close()
}

// value puts a large value, and says whether it holds what its name says.
func (f *filler) value(workspace, hash string, r io.Reader) (whole bool, err error) {
	content := archive.NewNamed(hash)
	r = io.TeeReader(r, content)
	piece, size := make([]byte, postgres.PieceSize), int64(0)
	var pieces *int64
	var rest []byte
	for part := int64(1); ; part++ {
		n, err := io.ReadFull(r, piece)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return false, err
		}
		size += int64(n)
		if last && pieces == nil {
			rest = piece[:n]
			break
		}
		if pieces == nil {
			pieces = new(int64)
			if err := f.tx.QueryRow(f.ctx, `SELECT nextval(pg_get_serial_sequence('blob_uploads', 'pieces'))`).Scan(pieces); err != nil {
				return false, err
			}
		}
		if n > 0 {
			if _, err := f.tx.Exec(f.ctx, `INSERT INTO blob_pieces (pieces, part, body) VALUES ($1, $2, $3)`, *pieces, part, piece[:n]); err != nil {
				return false, err
			}
		}
		if last {
			break
		}
	}
	if pieces == nil {
		rest = bytes.Clone(rest)
		if rest == nil {
			rest = []byte{} // nil would be NULL
		}
	}
	_, err = f.tx.Exec(f.ctx, `INSERT INTO blobs (workspace_id, hash, size, put, body, pieces) VALUES ($1, $2, $3, $4, $5, $6)`, workspace, hash, size, time.Now().UnixMilli(), rest, pieces)
	f.values, f.bytes = f.values+1, f.bytes+size
	return content.Holds(), err
}

// verify compares how many rows there are with how many were put.
func (f *filler) verify() error {
	if err := f.flush(); err != nil {
		return err
	}
	f.counts["blobs"] = f.values
	for table, want := range f.counts { // order does not matter
		var got int64
		if err := f.tx.QueryRow(f.ctx, "SELECT count(*) FROM "+quoted(table)).Scan(&got); err != nil {
			return err
		}
		if got != want {
			return fault.Newf(fault.Internal, "table %s has %d rows, and %d were written", table, got, want)
		}
	}
	delete(f.counts, "blobs")
	return nil
}
