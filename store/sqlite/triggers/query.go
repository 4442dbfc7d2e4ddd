package triggers

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"strings"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/sqlconn"
)

// query reads all rows of a statement. The text must be one of a bounded number: it stays prepared.
func query[T any](ctx context.Context, db sqlconn.Database, text string, scan func(sqlconn.Scanner) (T, error), args ...any) (all []T, err error) {
	err = db.Read(ctx, func(c *sqlconn.Conn) error {
		all, err = sqlconn.All(ctx, c, text, scan, args)
		return err
	})
	return all, err
}

// queryOne reads one row; without any it returns the given error.
func queryOne[T any](ctx context.Context, db sqlconn.Database, missing error, text string, scan func(sqlconn.Scanner) (T, error), args ...any) (one T, err error) {
	all, err := query(ctx, db, text, scan, args...)
	if err == nil && len(all) == 0 {
		err = missing
	}
	if err != nil {
		return one, err
	}
	return all[0], nil
}

// filter is the condition of a listing.
type filter struct {
	conditions []string
	args       []any
}

func (f *filter) addCondition(condition string, args ...any) {
	f.conditions = append(f.conditions, condition)
	f.args = append(f.args, args...)
}

// list reads a page of a table and counts the whole, in one transaction, so that they agree.
func list[T any](ctx context.Context, db sqlconn.Database, table, columns string, f filter, order string, p store.Page, scan func(sqlconn.Scanner) (T, error)) (page []T, total int, err error) {
	from := " FROM " + table + " WHERE " + strings.Join(f.conditions, " AND ")
	limit, offset := p.Limits()
	err = db.Read(ctx, func(c *sqlconn.Conn) error {
		return c.Transaction(ctx, func() error {
			counts, err := sqlconn.All(ctx, c, "SELECT count(*)"+from, scanInt, f.args)
			if err != nil {
				return err
			}
			total = counts[0]
			page, err = sqlconn.All(ctx, c, "SELECT "+columns+from+" ORDER BY "+order+" LIMIT ? OFFSET ?", scan, append(f.args, limit, offset))
			return err
		})
	})
	return page, total, err
}

func scanInt(s sqlconn.Scanner) (n int, err error) { return n, s.Scan(&n) }

// changeOne runs a statement that changes one row of the principal's workspace, which is its last argument. Without such a row nothing is written and the
// error is the given one.
func (x *Triggers) changeOne(ctx context.Context, p identity.Principal, missing error, text string, args ...driver.Value) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	var changed int64
	err = x.db.Write(ctx, func(w sqlconn.Transaction) (err error) {
		changed, err = w.Change(text, append(args, workspace)...)
		return err
	})
	if err == nil && changed == 0 {
		err = missing
	}
	return err
}

func notFound(what, id string) error {
	return fault.Newf(fault.NotFound, "there is no %s %q in this workspace", what, id)
}

// rawOf reads JSON that may be absent.
func rawOf(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return b
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
