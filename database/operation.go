package database

import (
	"context"
	"encoding/json"
	"errors"

	"tandem/fault"
)

// The operations.
const (
	Insert      = "insert"
	Update      = "update"
	Delete      = "delete"
	Upsert      = "upsert"
	Execute     = "execute"
	Transaction = "transaction"
)

// Operation is something that writes, in one transaction.
type Operation struct {
	Kind string
	// Table is what insert, update, delete and upsert work on; the next fields are theirs.
	Table string
	// Rows are the objects to insert or upsert, Values the columns that an update sets.
	Rows   []json.RawMessage
	Values json.RawMessage
	// Where is an object: column to value, or to {op, value}; all must hold. None needs AllRows.
	Where   json.RawMessage
	AllRows bool
	// ConflictKeys are the columns by which an upsert finds a row that is there already.
	ConflictKeys []string
	// Returning are the columns to return of each row that was written.
	Returning []string
	// Statements are those of execute, which has one, and transaction.
	Statements []Text
	// Repeatable operations may be done twice, so a lost commit is an ordinary failure.
	Repeatable bool
}

// Result is what an operation did.
type Result struct {
	Affected int64
	// Returned are the rows that came back: of the last statement that returned any.
	Returned json.RawMessage
	// LastID is the number that the database gave the last row, nil if it gave none.
	LastID json.RawMessage
}

// Do carries an operation out. Errors are *fault.Error: outcome_unknown if the database may have taken it, all others mean
// that it has not. A retryable one may be tried again.
func (p *Pools) Do(ctx context.Context, t Target, o Operation) (Result, error) {
	pool, release, err := p.acquire(t)
	if err != nil {
		return Result{}, err
	}
	defer release()
	r := &writer{operation: o, server: pool.server}
	if err := r.prepare(); err != nil {
		return Result{}, err
	}
	if r.transaction, err = begin(ctx, pool.server, readWrite, !r.immediate); err != nil {
		return Result{}, err
	}
	r.transaction.reuse = r.clean
	defer r.transaction.endTransaction()
	if err := r.write(ctx); err != nil {
		return Result{}, r.failed(err)
	}
	if !r.immediate {
		if unknown, err := r.transaction.commit(); err != nil {
			if unknown && o.Repeatable {
				f := fault.From(lost(errors.Unwrap(err)))
				f.Message = "the connection to the database was lost while the transaction was committed; doing it again does no harm"
				f.Details = nil
				return Result{}, f
			}
			return Result{}, err
		}
	}
	if r.result.Returned == nil {
		r.result.Returned = json.RawMessage("[]")
	}
	return r.result, nil
}

// writer is one operation under way.
type writer struct {
	operation   Operation
	server      server
	statements  []*statement
	transaction *transaction
	result      Result
	immediate   bool // the one statement commits by itself
	clean       bool // the connection may be used again
	// sent says that something was sent which cannot be rolled back.
	sent bool
}

// prepare reads the statements before anything is connected.
func (w *writer) prepare() error {
	w.clean = true
	o := w.operation
	switch o.Kind {
	case Insert, Update, Delete, Upsert:
		return w.checkTable()
	case Execute, Transaction:
	default:
		return fault.Newf(fault.InvalidConfig, "the operation %q is not known; choose insert, update, delete, upsert, execute or transaction", o.Kind)
	}
	if len(o.Statements) == 0 {
		return fault.Newf(fault.InvalidConfig, "the operation %q needs a statement", o.Kind)
	}
	for i, text := range o.Statements {
		s, err := w.statement(text)
		if err != nil {
			if o.Kind == Transaction {
				f := fault.From(err).With("statement", i)
				f.Message = ordinal(i) + f.Message
				return f
			}
			return err
		}
		w.statements = append(w.statements, s)
	}
	return nil
}

func (w *writer) statement(text Text) (*statement, error) {
	s, err := parseStatement(w.server.dialect(), text)
	if err != nil {
		return nil, err
	}
	if err := s.checkWrite(); err != nil {
		return nil, err
	}
	if s.commitsItself() {
		if w.operation.Kind == Transaction {
			return nil, fault.Newf(fault.InvalidInput, "%s ends a transaction in this database, so it cannot be part of one; run it with the operation \"execute\"", s.keyword)
		}
		w.immediate = true
	}
	if s.leavesTraces() {
		w.clean = false
	}
	return s, nil
}

func (w *writer) write(ctx context.Context) error {
	switch w.operation.Kind {
	case Insert, Upsert, Update, Delete:
		return w.writeTable(ctx)
	}
	for i, s := range w.statements {
		b, err := s.bind()
		if err == nil {
			w.sent = w.immediate
			to := newSink(maxReturned, false)
			var out outcome
			if out, err = w.transaction.session.run(ctx, b, to); err == nil {
				err = w.took(out, to)
			}
		}
		if err != nil {
			if w.operation.Kind == Transaction {
				return &placedError{i, err}
			}
			return err
		}
	}
	return nil
}

// maxReturned is how many rows an operation may return.
const maxReturned = 100_000

// took adds up what a statement did.
func (w *writer) took(out outcome, to *sink) error {
	if to.truncated {
		return fault.Newf(fault.TooLarge, "the statement returns more than %d rows; return fewer", maxReturned)
	}
	w.result.Affected += out.affected
	if out.lastID != nil {
		w.result.LastID = out.lastID
	}
	if to.columns != nil {
		w.result.Returned = to.list()
	}
	return nil
}

// failed says what a failure means.
func (w *writer) failed(err error) error {
	placed, isPlaced := errors.AsType[*placedError](err)
	if isPlaced {
		err = placed.err
	}
	answered := w.transaction.session.explain(err) != nil
	_, ours := errors.AsType[*fault.Error](err)
	gone := w.transaction.ctx.Err() != nil || !answered && !ours
	f := fault.From(w.transaction.fail(err))
	if w.sent && !w.operation.Repeatable {
		switch {
		case gone:
			w.transaction.reuse = false
			return fault.New(fault.OutcomeUnknown, "the statement was on its way when the connection to the database ended, and it cannot be rolled back there; whether it was done is not known").
				With("cause", string(f.Code)).WithDetail(f.Detail)
		case f.Retryable, f.Code == fault.TooLarge:
			// The server gave it up in the middle, or we gave its answer up: a part of it may have been done.
			w.transaction.reuse = false
			return fault.New(fault.OutcomeUnknown, "the statement did not come to its end, and it cannot be rolled back there; how much of it was done is not known").
				With("cause", string(f.Code)).WithDetail(f.Message)
		}
	}
	if isPlaced {
		f = f.With("statement", placed.index)
		f.Message = ordinal(placed.index) + f.Message
	}
	return f
}

// placedError is the failure of one of several statements.
type placedError struct {
	index int
	err   error
}

func (e *placedError) Error() string { return e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }
