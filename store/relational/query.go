package relational

import (
	"context"
	"database/sql/driver"
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
func QueryOne[T any](ctx context.Context, db Database, missing error, text string, scan func(Scanner) (T, error), args ...any) (one T, err error) {
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
		changed, err = w.Change(text, args...)
		return err
	})
	if err == nil && changed == 0 {
		err = missing
	}
	return err
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
