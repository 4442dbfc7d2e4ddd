package triggers

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"strings"

	"tandem/identity"
	"tandem/store"
	"tandem/store/relational"
)

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
func list[T any](ctx context.Context, db relational.Database, table, columns string, f filter, order string, p store.Page, scan func(relational.Scanner) (T, error)) (page []T, total int, err error) {
	from := " FROM " + table + " WHERE " + strings.Join(f.conditions, " AND ")
	limit, offset := p.Limits()
	err = db.Read(ctx, func(c relational.Reader) error {
		return c.Transaction(ctx, func() error {
			counts, err := relational.All(ctx, c, "SELECT count(*)"+from, scanInt, f.args)
			if err != nil {
				return err
			}
			total = counts[0]
			page, err = relational.All(ctx, c, "SELECT "+columns+from+" ORDER BY "+order+" LIMIT ? OFFSET ?", scan, append(f.args, limit, offset))
			return err
		})
	})
	return page, total, err
}

func scanInt(s relational.Scanner) (n int, err error) { return n, s.Scan(&n) }

// changeOne runs a statement that changes one row of the principal's workspace, which is its last argument. Without such a row nothing is written and the
// error is the given one.
func (x *Triggers) changeOne(ctx context.Context, p identity.Principal, missing error, text string, args ...driver.Value) error {
	workspace, err := store.Scope(p)
	if err != nil {
		return err
	}
	return relational.ChangeOne(ctx, x.db, missing, text, append(args, workspace)...)
}

// rawOf reads JSON that may be absent.
func rawOf(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return b
}
