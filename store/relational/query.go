package relational

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"tandem/identity"
)

// Query reads all rows of a statement. The text must be one of a bounded number: it stays prepared.
func Query[T any](ctx context.Context, db Database, text string, scan func(Scanner) (T, error), args ...any) (all []T, err error) {
	err = db.Read(ctx, func(c Reader) error {
		all, err = All(ctx, c, text, scan, args)
		return err
	})
	return all, err
}

// QueryOne reads one row; without any it returns the given error.
func QueryOne[T any](ctx context.Context, db Database, missing error, text string, scan func(Scanner) (T, error),
	args ...any) (one T, err error) {
	all, err := Query(ctx, db, text, scan, args...)
	if err == nil && len(all) == 0 {
		err = missing
	}
	if err != nil {
		return one, err
	}
	return all[0], nil
}

// ChangeOne runs a statement that changes one row. Without such a row nothing is written and the error is the given one.
func ChangeOne(ctx context.Context, db Database, missing error, text string, args ...driver.Value) error {
	var changed int64
	err := db.Write(ctx, func(w Transaction) (err error) {
		if changed, err = w.Change(text, args...); changed == 0 {
			w.Unchanged()
		}
		return err
	})
	if err == nil && changed == 0 {
		err = missing
	}
	return err
}

// QueryIn is [Query] in the workspace of a principal, which is the first argument of the statement.
func QueryIn[T any](ctx context.Context, db Database, p identity.Principal, text string, scan func(Scanner) (T, error),
	args ...any) ([]T, error) {
	workspace, err := p.InWorkspace()
	if err != nil {
		return nil, err
	}
	return Query(ctx, db, text, scan, slices.Insert(args, 0, any(workspace))...)
}

// QueryOneIn is [QueryOne] in the workspace of a principal, which is the first argument of the statement.
func QueryOneIn[T any](ctx context.Context, db Database, p identity.Principal, missing error, text string, scan func(Scanner) (T, error),
	args ...any) (one T, err error) {
	workspace, err := p.InWorkspace()
	if err != nil {
		return one, err
	}
	return QueryOne(ctx, db, missing, text, scan, slices.Insert(args, 0, any(workspace))...)
}

// ChangeOneIn is [ChangeOne] in the workspace of a principal, which is the last argument of the statement.
func ChangeOneIn(ctx context.Context, db Database, p identity.Principal, missing error, text string, args ...driver.Value) error {
	workspace, err := p.InWorkspace()
	if err != nil {
		return err
	}
	return ChangeOne(ctx, db, missing, text, append(args, workspace)...)
}

// All reads all rows of a statement. The text must be one of a bounded number: it stays prepared.
func All[T any](ctx context.Context, c Reader, text string, scan func(Scanner) (T, error), args []any) ([]T, error) {
	return Into(ctx, c, text, scan, args, nil)
}

// Into is [All] into a list that may have room already.
func Into[T any](ctx context.Context, c Reader, text string, scan func(Scanner) (T, error), args []any, all []T) ([]T, error) {
	err := c.Each(ctx, text, args, func(s Scanner) (bool, error) {
		one, err := scan(s)
		if err != nil {
			return false, ReadError(ctx, err)
		}
		all = append(all, one)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Flag is a truth value as a column has it.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Filter is the WHERE of a listing.
type Filter struct {
	Conditions []string
	Args       []any
}

// Add adds a condition, with its arguments.
func (f *Filter) Add(condition string, args ...any) {
	f.Conditions = append(f.Conditions, condition)
	f.Args = append(f.Args, args...)
}

// In adds the condition that a column has one of some values.
func (f *Filter) In(column string, values []any) {
	f.Add(column+" IN ("+Marks(len(values))+")", values...)
}

// Marks are the marks of so many arguments.
func Marks(n int) string { return "?" + strings.Repeat(", ?", n-1) }

// ScanInt reads a row that is one number.
func ScanInt(s Scanner) (n int, err error) { return n, s.Scan(&n) }

// Listing is where a page is read from.
type Listing struct {
	// Table and Columns are what is read, in the given order.
	Table, Columns, Order string
	// Counted is the beginning of a statement that counts the whole another way than by reading the table; empty: there is none.
	Counted string
	Filter
}

// Page is the statement of a page. Behind the arguments of the filter it takes how many are wanted and how many are passed over.
func (l *Listing) Page() string {
	return "SELECT " + l.Columns + " FROM " + l.Table + l.where() + " ORDER BY " + l.Order + " LIMIT ? OFFSET ?"
}

func (l *Listing) where() string { return " WHERE " + strings.Join(l.Conditions, " AND ") }

// List reads a page and counts the whole. The two are read in one transaction, so that they agree.
func List[T any](ctx context.Context, db Database, l Listing, limit, offset int,
	scan func(Scanner) (T, error)) (page []T, total int, err error) {
	err = db.Read(ctx, func(c Reader) error {
		return c.Transaction(ctx, func() error {
			counts, err := All(ctx, c, cmp.Or(l.Counted, "SELECT count(*) FROM "+l.Table)+l.where(), ScanInt, l.Args)
			if err != nil {
				return err
			}
			total = counts[0]
			if room := min(limit, total-offset); room > 0 {
				page = make([]T, 0, room)
			}
			page, err = Into(ctx, c, l.Page(), scan, append(l.Args, limit, offset), page)
			return err
		})
	})
	return page, total, err
}
