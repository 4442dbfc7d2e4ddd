// Package dump takes a data directory of the SQLite store apart into rows and large values, and puts one together of them.
//
// It reads and writes every table there is, whatever is in it, and knows only which of them SQLite keeps for itself. Package backup
// imports it.
package dump

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"tandem/backup/archive"
	"tandem/credential"
	"tandem/fault"
	"tandem/store/relational"
	"tandem/store/sqlite/datadir"
)

// Store is the name of this kind of database in a backup.
const Store = "sqlite"

// Large values that nothing names are removed some minutes after they were put, so a value that is put while others are copied must be
// copied soon enough. Values are copied in rounds until a round takes less than shortRound; from its beginning until those that came since
// are copied it may take maxRounds at most.
const (
	shortRound = time.Minute
	maxRounds  = 4 * time.Minute
	manyRounds = 10
)

// Save writes the database of a data directory and its large values to a backup, as they are at one moment, also while a process has it
// open and writes.
//
// Rows name large values that were put before them. So values come first, then the moment of the rows is fixed, then the values that were
// put meanwhile are copied, then the rows.
func Save(ctx context.Context, dir string, to *archive.Writer) (m archive.Moment, err error) {
	values, err := openValues(dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, values.close()) }()
	var began time.Time
	for round := 0; ; round++ {
		began = time.Now()
		if err := values.copyNew(ctx, to); err != nil {
			return m, err
		}
		if time.Since(began) < shortRound {
			break
		}
		if round == manyRounds {
			return m, tooMany()
		}
	}
	err = datadir.Snapshot(ctx, dir, func(tx *sql.Tx, version int64) error {
		m.Version, m.Taken = version, time.Now().UTC()
		if err := values.copyNew(ctx, to); err != nil {
			return err
		}
		if time.Since(began) > maxRounds {
			return tooMany()
		}
		if m.Keys, err = SealingKeys(ctx, tx); err != nil {
			return err
		}
		if err := saveTables(ctx, tx, to); err != nil {
			return err
		}
		return values.settle(to)
	})
	return m, err
}

func tooMany() error {
	return fault.New(fault.Internal, "large values are put faster than they are copied; make the backup when less is going on, or write it to a faster disk")
}

// values are the files of large values.
type values struct {
	root *os.Root
	// copied are those that are in the backup, and again those that were gone when they were to be copied.
	copied map[string]bool
}

func openValues(dir string) (*values, error) {
	root, err := os.OpenRoot(path.Join(dir, datadir.BlobDir))
	if errors.Is(err, fs.ErrNotExist) {
		return &values{}, nil // none was ever put
	}
	return &values{root: root, copied: map[string]bool{}}, err
}

func (v *values) close() error {
	if v.root == nil {
		return nil
	}
	return v.root.Close()
}

// settle looks again at values that did not hold what their name says when they were copied. What nothing names is overwritten and then
// removed: a value that is gone by now, or was put again, was not damaged, and is copied if it is there.
func (v *values) settle(to *archive.Writer) error {
	for _, name := range to.Damaged() {
		workspace, base := path.Split(name)
		whole, err := v.holds(path.Join(workspace, base[:2], base[2:4], base), name)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && whole:
			to.NoteGone(name)
			delete(v.copied, name)
		case err != nil:
			return err
		}
	}
	return nil
}

// holds says whether the file of a value holds what its name says.
func (v *values) holds(at, name string) (bool, error) {
	f, err := v.root.Open(at)
	if err != nil {
		return false, err
	}
	content := archive.NewNamed(name)
	_, err = io.Copy(content, f)
	return content.Holds(), errors.Join(err, f.Close())
}

// copyNew copies the values that are not copied yet. Files never change once they have their name, until they are removed.
func (v *values) copyNew(ctx context.Context, to *archive.Writer) error {
	if v.root == nil {
		return nil
	}
	if err := v.settle(to); err != nil {
		return err
	}
	return fs.WalkDir(v.root.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.IsDir() && d.Name() == "tmp" && strings.Count(at, "/") == 1:
			return fs.SkipDir // what is being put has no name yet
		case !d.Type().IsRegular() || strings.Count(at, "/") != 3:
			return nil
		}
		workspace, _, _ := strings.Cut(at, "/")
		name := path.Join(workspace, path.Base(at))
		if v.copied[name] {
			return nil
		}
		there, err := v.copyOne(at, name, to)
		if there && err == nil {
			v.copied[name] = true
		}
		return err
	})
}

func (v *values) copyOne(at, name string, to *archive.Writer) (there bool, err error) {
	f, err := v.root.Open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // nothing named it
	}
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err == nil {
		err = to.Blob(name, info.Size(), f)
	}
	return true, errors.Join(err, f.Close())
}

// SealingKeys are the keys that credentials are sealed with.
func SealingKeys(ctx context.Context, tx *sql.Tx) (keys []string, err error) {
	seen := map[string]bool{}
	err = EachRow(ctx, tx, "SELECT sealed FROM credentials", 1, func(row []any) error {
		sealed, _ := row[0].([]byte)
		if id, ok := credential.SealedWith(sealed); ok && !seen[id] {
			seen[id], keys = true, append(keys, id)
		}
		return nil
	})
	return keys, err
}

// Table is one whose rows are kept.
type Table struct {
	Name    string
	Columns []string
}

// Sequences is the table of the last numbers that were given out. Rows that are put into other tables change it, so it comes last.
const Sequences = "sqlite_sequence"

// versions is the table that says which version a database has. It is made by what makes the database.
const versions = "goose_db_version"

// Tables lists the tables of a database. An index of words is in tables of its own, which are among them; the table it is looked at through
// is not.
func Tables(ctx context.Context, tx *sql.Tx) (list []Table, err error) {
	rowids := map[string]bool{}
	err = EachRow(ctx, tx, `SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')
		AND (name NOT LIKE 'sqlite\_%' ESCAPE '\' OR name = '`+Sequences+`') AND name <> '`+versions+`' ORDER BY name = '`+Sequences+`', name`, 2, func(row []any) error {
		name, without := row[0].(string), row[1].(int64)
		list, rowids[name] = append(list, Table{Name: name}), without == 0
		return nil
	})
	for i := range list {
		if err == nil {
			err = list[i].readRows(ctx, tx, rowids[list[i].Name])
		}
	}
	return list, err
}

// RowID is the name of the number of a row where no column is it. Rows are read in the order of these numbers in places, so they are kept.
const RowID = "rowid"

// readRows finds the columns of a table. Those that are made of others are left out.
func (t *Table) readRows(ctx context.Context, tx *sql.Tx, rowids bool) error {
	keys, number := 0, false
	err := EachRow(ctx, tx, "SELECT name, upper(type), pk, hidden FROM pragma_table_xinfo(?)", 4, func(row []any) error {
		if row[3].(int64) == 0 {
			t.Columns = append(t.Columns, row[0].(string))
		}
		if row[2].(int64) > 0 {
			keys, number = keys+1, row[1] == "INTEGER"
		}
		return nil
	}, t.Name)
	if rowids && (keys != 1 || !number) {
		t.Columns = append([]string{RowID}, t.Columns...)
	}
	return err
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = quote(name)
	}
	return strings.Join(list, ", ")
}

func saveTables(ctx context.Context, tx *sql.Tx, to *archive.Writer) error {
	list, err := Tables(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range list {
		if err := to.Table(t.Name, t.Columns); err != nil {
			return err
		}
		if err := EachRow(ctx, tx, "SELECT "+quoted(t.Columns)+" FROM "+quote(t.Name), len(t.Columns), to.Row); err != nil {
			return fmt.Errorf("read table %s: %w", t.Name, err)
		}
	}
	return nil
}

// EachRow hands over rows. Values are for the time of the call.
func EachRow(ctx context.Context, tx *sql.Tx, text string, columns int, each func([]any) error, args ...any) (err error) {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return relational.ReadError(ctx, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row, into := make([]any, columns), make([]any, columns)
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return relational.ReadError(ctx, err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return relational.ReadError(ctx, err)
	}
	return nil
}
