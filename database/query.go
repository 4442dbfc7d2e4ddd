package database

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"

	"tandem/fault"
)

// Query is a statement that reads.
type Query struct {
	Text Text
	// MaxRows is how many rows are returned at most. Arrays asks for rows as lists instead of objects.
	MaxRows int
	Arrays  bool
}

// Rows are the result of a query.
type Rows struct {
	// Rows is a list of objects or lists.
	Rows    json.RawMessage
	Count   int
	Columns []Column
	// Truncated says that there were more rows than were asked for.
	Truncated bool
	// SQL is the statement as the database got it, with marks in the place of values.
	SQL string
}

// Query runs one statement that reads.
func (p *Pools) Query(ctx context.Context, t Target, q Query) (Rows, error) {
	pool, release, err := p.acquire(t)
	if err != nil {
		return Rows{}, err
	}
	defer release()
	s, err := parseStatement(pool.server.dialect(), q.Text)
	if err != nil {
		return Rows{}, err
	}
	if err := s.checkRead(); err != nil {
		return Rows{}, err
	}
	b, err := s.bind()
	if err != nil {
		return Rows{}, err
	}
	x, err := begin(ctx, pool.server, readOnly, true)
	if err != nil {
		return Rows{}, err
	}
	x.reuse = !s.leavesTraces()
	defer x.endTransaction()
	to := newSink(q.MaxRows, q.Arrays)
	if _, err := x.session.run(ctx, b, to); err != nil {
		return Rows{}, x.fail(err)
	}
	return Rows{Rows: to.list(), Count: to.count, Columns: to.shown(), Truncated: to.truncated, SQL: b.sql}, nil
}

// transaction is one node's use of one connection.
type transaction struct {
	ctx     context.Context
	session session
	open    bool // begun and neither committed nor rolled back
	reuse   bool // the connection may be used by the next
}

// begin takes a connection and begins a transaction, unless the statement would end it by itself.
func begin(ctx context.Context, s server, m mode, open bool) (*transaction, error) {
	session, err := s.session(ctx, m)
	if err != nil {
		if f := s.explain(err); f != nil && ctx.Err() == nil {
			return nil, f
		}
		return nil, connecting(ctx, err)
	}
	x := &transaction{ctx: ctx, session: session, reuse: true}
	if !open {
		return x, nil
	}
	if err := session.begin(ctx, m); err != nil {
		defer session.close(false)
		return nil, x.fail(err)
	}
	x.open = true
	return x, nil
}

// endTransaction rolls back what is not committed and gives the connection back.
func (x *transaction) endTransaction() {
	if x.open {
		x.rollback()
	}
	x.session.close(x.reuse)
}

func (x *transaction) rollback() {
	x.open = false
	if x.ctx.Err() != nil {
		x.reuse = false // the connection has been ended with the context
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, cleanTimeout)
	defer cancel()
	if err := x.session.rollback(ctx); err != nil {
		x.reuse = false // ending the connection rolls back as well
	}
}

// fail says what an error before the commit means: nothing was done.
func (x *transaction) fail(err error) error {
	if f := stopped(x.ctx); f != nil {
		x.reuse = false
		return f
	}
	if f := x.session.explain(err); f != nil {
		if f.Code == fault.NotFound {
			return x.nearest(f)
		}
		return f
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	x.reuse = false
	return lost(err)
}

// missingTable finds the name in what a database says of a table that it does not have.
var missingTable = regexp.MustCompile(`relation "([^"]+)" does not exist|Table '(?:[^'.]*\.)?([^']+)' doesn't exist|no such table: (\S+)`) // read-only

// nearest adds the table that was probably meant.
func (x *transaction) nearest(f *fault.Error) error {
	found := missingTable.FindStringSubmatch(f.Message)
	if found == nil {
		return f
	}
	if x.open {
		x.rollback() // a transaction that has failed answers nothing
	}
	if !x.reuse {
		return f
	}
	_, err := x.session.table(x.ctx, found[1]+found[2]+found[3])
	if near, ok := errors.AsType[*fault.Error](err); ok && near.Code == fault.NotFound {
		return near
	}
	return f
}

// commit ends the transaction; unknown says that nobody knows how. It is not stopped by the node's context: once COMMIT is on its way, its
// answer is waited for.
func (x *transaction) commit() (unknown bool, err error) {
	x.open = false
	if f := stopped(x.ctx); f != nil {
		x.reuse = false
		return false, f
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), commitTimeout)
	defer cancel()
	err = x.session.commit(ctx)
	if err == nil {
		return false, nil
	}
	x.reuse = false
	if gone, ok := errors.AsType[*lostError](err); ok {
		return true, unknownOutcome(gone.err)
	}
	return false, x.fail(err)
}
