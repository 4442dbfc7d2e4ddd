package sqlconn

import (
	"context"
	"errors"
	"io"
	"sync"

	"tandem/store/relational"
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
func (r *Readers) Use(ctx context.Context, f func(relational.Reader) error) error {
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
		return relational.ReadError(ctx, err)
	}
	defer r.put(c)
	if len(c.stmts) > maxStatements {
		if err := c.Forget(); err != nil {
			return relational.ReadError(ctx, err)
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

// Each implements [relational.Reader].
func (c *Conn) Each(ctx context.Context, text string, args []any, row func(relational.Scanner) (bool, error)) (err error) {
	s, err := c.Prepare(text)
	if err != nil {
		return relational.ReadError(ctx, err)
	}
	values, err := relational.Values(args)
	if err != nil {
		return relational.ReadError(ctx, err)
	}
	rows, err := s.query.QueryContext(context.Background(), s.bind(values))
	clear(s.args)
	if err != nil {
		return relational.ReadError(ctx, err)
	}
	defer func() {
		if cerr := rows.Close(); err == nil && cerr != nil {
			err = relational.ReadError(ctx, cerr)
		}
	}()
	read := make(relational.Record, len(rows.Columns()))
	var scan relational.Scanner = read // made once for all rows
	for {
		switch err := rows.Next(read); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return relational.ReadError(ctx, err)
		}
		if more, err := row(scan); err != nil || !more {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// Transaction implements [relational.Reader].
func (c *Conn) Transaction(ctx context.Context, read func() error) (err error) {
	if err := c.run("BEGIN"); err != nil {
		return relational.ReadError(ctx, err)
	}
	defer func() {
		if cerr := c.run("COMMIT"); err == nil && cerr != nil {
			err = relational.ReadError(ctx, cerr)
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
