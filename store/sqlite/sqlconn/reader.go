package sqlconn

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
)

// Readers are the connections that reads share, a fixed number of them, each with the statements that it has prepared. They do
// without the pool of database/sql: it starts a goroutine for every statement whose context can end, and so does the driver,
// which is more work than most reads are. A read that has begun is finished instead; none takes long.
type Readers struct {
	path string
	// turns has room for those that read.
	turns chan struct{}
	mu    sync.Mutex
	// free are the connections that nobody uses, the last used last. That one is taken first: it has at hand what was read last, and
	// what comes one after the other opens one connection.
	free []*Conn
}

// maxStatements is how many statements a reading connection keeps prepared. Some listings have texts of their own; with too
// many of them all are let go.
const maxStatements = 500

// NewReaders makes room for so many reads at the same time. Connections are opened when they are needed.
func NewReaders(path string, n int) *Readers {
	return &Readers{path: path, turns: make(chan struct{}, n)}
}

// Use hands a connection to a function.
func (r *Readers) Use(ctx context.Context, f func(*Conn) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case r.turns <- struct{}{}:
	default:
		select {
		case r.turns <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-r.turns }()
	c, err := r.takeReader()
	if err != nil {
		return ReadError(ctx, err)
	}
	defer r.put(c)
	if len(c.stmts) > maxStatements {
		if err := c.Forget(); err != nil {
			return ReadError(ctx, err)
		}
	}
	return f(c)
}

// takeReader returns a connection that nobody uses.
func (r *Readers) takeReader() (*Conn, error) {
	r.mu.Lock()
	if last := len(r.free) - 1; last >= 0 {
		defer r.mu.Unlock()
		c := r.free[last]
		r.free = r.free[:last]
		return c, nil
	}
	r.mu.Unlock()
	return Open(r.path, "query_only(1)", "cache_size(-1024)")
}

func (r *Readers) put(c *Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, c)
}

// Close waits until nobody reads, then closes all connections. Nobody can read from then on.
func (r *Readers) Close() error {
	for range cap(r.turns) {
		r.turns <- struct{}{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, c := range r.free {
		errs = append(errs, c.Close())
	}
	r.free = nil
	return errors.Join(errs...)
}

// Forget lets go of all statements.
func (c *Conn) Forget() error {
	var errs []error
	for text, s := range c.stmts { // order does not matter: all are closed
		errs = append(errs, s.close())
		delete(c.stmts, text)
	}
	return errors.Join(errs...)
}

// Each reads the rows of a statement, one after the other, until there are none, the function returns false or the context has
// ended. What a row holds is valid during the call; texts and bytes that were taken out of it stay as they are.
func (c *Conn) Each(ctx context.Context, text string, args []any, row func(Scanner) (bool, error)) (err error) {
	s, err := c.Prepare(text)
	if err != nil {
		return ReadError(ctx, err)
	}
	values, err := driverValues(args)
	if err != nil {
		return ReadError(ctx, err)
	}
	rows, err := s.query.QueryContext(context.Background(), s.bind(values))
	clear(s.args)
	if err != nil {
		return ReadError(ctx, err)
	}
	defer func() {
		if cerr := rows.Close(); err == nil && cerr != nil {
			err = ReadError(ctx, cerr)
		}
	}()
	read := make(Record, len(rows.Columns()))
	var scan Scanner = read // made once for all rows
	for {
		switch err := rows.Next(read); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return ReadError(ctx, err)
		}
		if more, err := row(scan); err != nil || !more {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// Transaction lets a function read one state of the database.
func (c *Conn) Transaction(ctx context.Context, read func() error) (err error) {
	if err := c.run("BEGIN"); err != nil {
		return ReadError(ctx, err)
	}
	defer func() {
		if cerr := c.run("COMMIT"); err == nil && cerr != nil {
			err = ReadError(ctx, cerr)
		}
	}()
	return read()
}

// run runs a statement that has no arguments.
func (c *Conn) run(text string) error {
	s, err := c.Prepare(text)
	if err == nil {
		_, err = s.Exec()
	}
	return err
}

// Scanner is a row.
type Scanner interface{ Scan(...any) error }

// All reads all rows of a statement. The text must be one of a bounded number: it stays prepared.
func All[T any](ctx context.Context, c *Conn, text string, scan func(Scanner) (T, error), args []any) ([]T, error) {
	return Into(ctx, c, text, scan, args, nil)
}

// Into is [All] into a list that may have room already.
func Into[T any](ctx context.Context, c *Conn, text string, scan func(Scanner) (T, error), args []any, all []T) ([]T, error) {
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

// ReadError is what a read that has not worked is answered with: why its context has ended, if it has.
func ReadError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("read the database: %w", err)
}

// driverValues are arguments as the driver takes them.
func driverValues(args []any) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string, []byte, int64, float64, nil:
			values[i] = v
		case int:
			values[i] = int64(v)
		case bool:
			values[i] = int64(0)
			if v {
				values[i] = int64(1)
			}
		default:
			value, err := driver.DefaultParameterConverter.ConvertValue(arg)
			if err != nil {
				return nil, fmt.Errorf("argument %d: %w", i+1, err)
			}
			values[i] = value
		}
	}
	return values, nil
}

// Record is a row that was read, as the driver has its columns.
type Record []driver.Value

// Scan takes the columns out of it.
func (r Record) Scan(dest ...any) error {
	if len(dest) != len(r) {
		return fmt.Errorf("the row has %d columns, and %d are wanted", len(r), len(dest))
	}
	for i, d := range dest {
		if err := scanValue(d, r[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// scanValue puts a value where it is wanted. The columns of tables are strict, so a value is of the type that it is taken for; texts
// and bytes may be taken for each other.
func scanValue(dest any, value driver.Value) error {
	switch d := dest.(type) {
	case *string:
		switch v := value.(type) {
		case string:
			*d = v
			return nil
		case []byte:
			*d = string(v)
			return nil
		}
	case *[]byte:
		return scanBytes(d, value)
	case *json.RawMessage:
		return scanBytes((*[]byte)(d), value)
	case *int64:
		if v, ok := value.(int64); ok {
			*d = v
			return nil
		}
	case *int:
		if v, ok := value.(int64); ok {
			*d = int(v)
			return nil
		}
	case *uint64:
		if v, ok := value.(int64); ok && v >= 0 {
			*d = uint64(v)
			return nil
		}
	case *bool:
		if v, ok := value.(int64); ok {
			*d = v != 0
			return nil
		}
	case *float64:
		switch v := value.(type) {
		case float64:
			*d = v
			return nil
		case int64:
			*d = float64(v)
			return nil
		}
	default:
		return scanOther(reflect.ValueOf(dest).Elem(), value)
	}
	return fmt.Errorf("%T is not what %T takes", value, dest)
}

func scanBytes(d *[]byte, value driver.Value) error {
	switch v := value.(type) {
	case []byte:
		*d = v
	case string:
		*d = []byte(v)
	case nil:
		*d = nil
	default:
		return fmt.Errorf("%T is not bytes", value)
	}
	return nil
}

// scanOther is for types that have a name of their own, and for pointers to what may be missing.
func scanOther(d reflect.Value, value driver.Value) error {
	switch v := value.(type) {
	case nil:
		if d.Kind() == reflect.Pointer {
			d.SetZero()
			return nil
		}
	case string:
		if d.Kind() == reflect.String {
			d.SetString(v)
			return nil
		}
	case int64:
		if d.CanInt() && !d.OverflowInt(v) {
			d.SetInt(v)
			return nil
		}
		if d.CanUint() && v >= 0 && !d.OverflowUint(uint64(v)) {
			d.SetUint(uint64(v))
			return nil
		}
		if d.Kind() == reflect.Bool {
			d.SetBool(v != 0)
			return nil
		}
	case float64:
		if d.CanFloat() {
			d.SetFloat(v)
			return nil
		}
	}
	if d.Kind() == reflect.Pointer {
		target := reflect.New(d.Type().Elem())
		if err := scanValue(target.Interface(), value); err != nil {
			return err
		}
		d.Set(target)
		return nil
	}
	if d.Kind() == reflect.Slice && d.Type().Elem().Kind() == reflect.Uint8 {
		var b []byte
		if err := scanBytes(&b, value); err != nil {
			return err
		}
		d.SetBytes(b)
		return nil
	}
	return fmt.Errorf("%T is not what %s takes", value, d.Type())
}
