// Package pages is what SQLite keeps the tables in, as upkeep sees it: pages that removed rows have left something in, room that is given
// back, columns in which something may be named.
//
// It knows no table by its name. The SQLite store imports it.
package pages

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"time"

	"tandem/store"
	"tandem/store/relational"
)

// Pages implements upkeep.Files.
type Pages struct {
	db relational.Database
	o  Options
}

// Options is what is needed besides the database.
type Options struct {
	// Measure says what the data directory takes up, except for what is free.
	Measure func() (store.Space, error)
	// CutLog folds the log into the database and cuts its file, and says whether it could: readers may stand in the way.
	CutLog func() bool
	// Err says why the store has stopped; nil: it has not.
	Err func() error
}

// New are those of a database.
func New(db relational.Database, o Options) *Pages { return &Pages{db, o} }

// errNothing is for statements that always have a row.
var errNothing = errors.New("the database says nothing of itself") // read-only

func scanInt(s relational.Scanner) (n int64, err error) { return n, s.Scan(&n) }

// cutTries and cutPause are how long the log is waited for to be cut: readers may stand in the way for a moment.
const (
	cutTries = 50
	cutPause = 100 * time.Millisecond
)

// Compact implements upkeep.Files.
func (x *Pages) Compact(ctx context.Context, free float64, done func() error) error {
	shrinks, err := x.shrinks(ctx)
	if err != nil {
		return err
	}
	if shrinks {
		if err := x.blankPages(ctx); err != nil {
			return err
		}
		if err := x.giveBack(ctx, free); err != nil {
			return err
		}
	}
	if err := done(); err != nil {
		return err
	}
	for range cutTries {
		if x.o.CutLog() {
			return x.o.Err()
		}
		timer := time.NewTimer(cutPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
	return x.o.Err() // readers stand in the way; the next time is soon enough
}

func (x *Pages) shrinks(ctx context.Context) (bool, error) {
	mode, err := relational.QueryOne(ctx, x.db, errNothing, `SELECT auto_vacuum FROM pragma_auto_vacuum`, scanInt)
	return mode != 0, err
}

// Space implements upkeep.Files.
func (x *Pages) Space(ctx context.Context) (s store.Space, err error) {
	if s, err = x.o.Measure(); err != nil {
		return s, err
	}
	free, err := relational.QueryOne(ctx, x.db, errNothing, `SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size`, scanInt)
	if err != nil {
		return s, err
	}
	s.Free = free
	s.Shrinks, err = x.shrinks(ctx)
	return s, err
}

// EachColumn implements upkeep.Files.
func (x *Pages) EachColumn(ctx context.Context, each func(columns ...driver.Value)) error {
	type table struct {
		name      string
		withRowID bool
	}
	all, err := relational.Query(ctx, x.db, `SELECT name, NOT wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow') AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'blob_doubts' ORDER BY name`,
		func(s relational.Scanner) (t table, err error) { return t, s.Scan(&t.name, &t.withRowID) })
	if err != nil {
		return err
	}
	for _, t := range all {
		columns, err := relational.Query(ctx, x.db, `SELECT name FROM pragma_table_info(?) WHERE upper(type) IN ('TEXT', 'BLOB', '') ORDER BY cid`, func(s relational.Scanner) (n string, err error) { return n, s.Scan(&n) }, t.name)
		if err != nil {
			return err
		}
		if len(columns) == 0 {
			continue
		}
		list := `"` + strings.Join(columns, `", "`) + `"`
		if !t.withRowID {
			if err := x.db.Read(ctx, func(c relational.Reader) error {
				return c.Each(ctx, `SELECT `+list+` FROM "`+t.name+`"`, nil, func(s relational.Scanner) (bool, error) {
					row, _ := s.(relational.Record)
					each(row...)
					return true, nil
				})
			}); err != nil {
				return err
			}
			continue
		}
		const page = 512
		for after, n := int64(-1<<62), page; n == page; {
			n = 0
			if err := x.db.Read(ctx, func(c relational.Reader) error {
				return c.Each(ctx, `SELECT rowid, `+list+` FROM "`+t.name+`" WHERE rowid > ? ORDER BY rowid LIMIT ?`, []any{after, page}, func(s relational.Scanner) (bool, error) {
					row, _ := s.(relational.Record)
					after, _ = row[0].(int64)
					n++
					each(row[1:]...)
					return true, nil
				})
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
