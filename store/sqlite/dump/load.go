package dump

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tandem/backup/archive"
	"tandem/fault"
	"tandem/identity"
	"tandem/store/relational"
	"tandem/store/sqlite/datadir"
)

// Load makes what a data directory holds in a directory that is empty: a database with the rows of a backup, of the version that they have,
// and the large values beside it. Files of workspaces are handed on. All of it is on disk when it returns without an error. The backup has
// been checked before, and said what it holds.
func Load(ctx context.Context, dir string, holds archive.Contents, from io.Reader, file func(name string, r io.Reader) error) (err error) {
	if holds.Store != Store {
		return fault.Newf(fault.Unsupported, "the backup is of a %q database, which cannot be restored into a data directory", holds.Store)
	}
	blobs := filepath.Join(dir, datadir.BlobDir)
	if err := os.Mkdir(blobs, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(blobs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	err = datadir.Fill(ctx, filepath.Join(dir, datadir.DatabaseFile), holds.Version, func(tx *sql.Tx) error {
		l := &loader{ctx: ctx, tx: tx, blobs: root, damaged: holds.Damaged, gone: slices.Clone(holds.Gone), file: file}
		if err := l.empty(); err != nil {
			return err
		}
		if _, err := archive.Read(ctx, from, l); err != nil {
			return err
		}
		return l.done()
	})
	if err != nil {
		return err
	}
	return datadir.SyncAll(dir)
}

// loader takes what is in a backup.
type loader struct {
	ctx   context.Context
	tx    *sql.Tx
	blobs *os.Root
	// damaged are values that were damaged before the backup, gone those that were removed while it was made: what comes first under their
	// names is not a value.
	damaged, gone []string
	// file takes a file of a workspace.
	file func(name string, r io.Reader) error

	tables  map[string][]string
	current string
	insert  *sql.Stmt
}

// empty removes the rows that a new database has by itself, and learns which tables there are.
func (l *loader) empty() error {
	list, err := Tables(l.ctx, l.tx)
	if err != nil {
		return err
	}
	l.tables = map[string][]string{}
	for _, t := range list {
		l.tables[t.Name] = t.Columns
		if _, err := l.tx.ExecContext(l.ctx, "DELETE FROM "+quote(t.Name)); err != nil {
			return fmt.Errorf("empty table %s: %w", t.Name, err)
		}
	}
	return nil
}

// File implements [archive.Taker].
func (l *loader) File(name string, _ int64, r io.Reader) error { return l.file(name, r) }

// Row implements [archive.Taker].
func (l *loader) Row(table string, columns []string, values []any) error {
	if table != l.current {
		if err := l.begin(table, columns); err != nil {
			return err
		}
	}
	if _, err := l.insert.ExecContext(l.ctx, values...); err != nil {
		return fmt.Errorf("write a row of table %s: %w", table, err)
	}
	return nil
}

// begin is called when the rows of a table begin.
func (l *loader) begin(table string, columns []string) (err error) {
	known, ok := l.tables[table]
	if !ok || !slices.Equal(known, columns) {
		return fault.Newf(fault.Invalid, "the backup has a table %q that its version does not have in this way; restore it with the program that made it", table)
	}
	if err := l.done(); err != nil {
		return err
	}
	if table == Sequences { // what was put into other tables has filled it
		if _, err := l.tx.ExecContext(l.ctx, "DELETE FROM "+Sequences); err != nil {
			return err
		}
	}
	l.current = table
	l.insert, err = l.tx.PrepareContext(l.ctx, "INSERT INTO "+quote(table)+" ("+quoted(columns)+") VALUES ("+relational.Marks(len(columns))+")")
	return err
}

func (l *loader) done() error {
	if l.insert == nil {
		return nil
	}
	return l.insert.Close()
}

// valueName is what a large value or the list of its parts is called.
var valueName = regexp.MustCompile(`^[0-9a-f]{64}(\.parts)?$`) // read-only

// Blob implements [archive.Taker].
func (l *loader) Blob(name string, size int64, r io.Reader) error {
	workspace, base, _ := strings.Cut(name, "/")
	if err := identity.CheckWorkspace(workspace); err != nil || !valueName.MatchString(base) {
		return fault.Newf(fault.Invalid, "the backup has a large value with the name %q, which none can have", name)
	}
	dir := path.Join(workspace, base[:2], base[2:4])
	if err := l.blobs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := l.blobs.OpenFile(path.Join(dir, base), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	content := archive.NewNamed(name)
	n, err := io.Copy(io.MultiWriter(f, content), r)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if i := slices.Index(l.gone, name); i >= 0 && !content.Holds() {
		l.gone = slices.Delete(l.gone, i, i+1)
		return l.blobs.Remove(path.Join(dir, base))
	}
	if whole := strings.Contains(base, ".") || content.Holds() || slices.Contains(l.damaged, name); n != size || !whole {
		return fault.Newf(fault.Invalid, "the large value %s is not what its name says", name)
	}
	return nil
}
