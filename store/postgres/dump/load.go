package dump

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"tandem/backup/archive"
	"tandem/fault"
	"tandem/identity"
)

// Load puts the rows and large values of a backup into the tables of a database, which are of the version that the backup has. Files of
// workspaces are handed on. The backup has been checked before, and said what it holds.
func Load(ctx context.Context, tx pgx.Tx, holds archive.Contents, from io.Reader, file func(name string, r io.Reader) error) error {
	f, err := newFiller(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := archive.Read(ctx, from, &loader{filler: f, damaged: holds.Damaged, file: file}); err != nil {
		return err
	}
	if err := f.verify(); err != nil {
		return err
	}
	return f.unshare()
}

// unshare lets nobody work on the database before a server has opened it that shares it.
func (f *filler) unshare() error {
	for _, name := range []string{"shared", "with_members"} { // an older version has the first of these, or none
		if !slices.ContainsFunc(f.tables["epochs"], func(c column) bool { return c.name == name }) {
			continue
		}
		if _, err := f.tx.Exec(f.ctx, `UPDATE epochs SET `+name+` = false WHERE `+name); err != nil {
			return fmt.Errorf("share the database with nobody: %w", err)
		}
	}
	return nil
}

// loader takes what is in a backup.
type loader struct {
	*filler
	// damaged are values that were damaged before the backup.
	damaged []string
	// file takes a file of a workspace.
	file func(name string, r io.Reader) error
}

// File implements [archive.Taker].
func (l *loader) File(name string, _ int64, r io.Reader) error { return l.file(name, r) }

// Row implements [archive.Taker].
func (l *loader) Row(table string, columns []string, values []any) error {
	if table == sequences {
		return l.sequence(values)
	}
	if table != l.current {
		if err := l.begin(table, columns); err != nil {
			return err
		}
	}
	return l.row(values)
}

// sequence sets the last number that was given out.
func (l *loader) sequence(values []any) error {
	if err := l.flush(); err != nil {
		return err
	}
	if _, err := l.tx.Exec(l.ctx, `SELECT setval(quote_ident($1)::regclass, $2)`, values...); err != nil {
		return fmt.Errorf("set the sequence %v: %w", values[0], err)
	}
	return nil
}

// valueName is what a large value is called.
var valueName = regexp.MustCompile(`^[0-9a-f]{64}$`) // read-only

// Blob implements [archive.Taker].
func (l *loader) Blob(name string, _ int64, r io.Reader) error {
	workspace, hash, _ := strings.Cut(name, "/")
	if err := identity.CheckWorkspace(workspace); err != nil || !valueName.MatchString(hash) {
		return fault.Newf(fault.Invalid, "the backup has a large value with the name %q, which none can have", name)
	}
	whole, err := l.value(workspace, hash, r)
	if err == nil && !whole && !slices.Contains(l.damaged, name) {
		err = fault.Newf(fault.Invalid, "the large value %s is not what its name says", name)
	}
	return err
}
