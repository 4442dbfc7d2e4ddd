package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tandem/fault"
	"tandem/store"
)

// Codes of errors. Those that begin with TD are ours (begin_commit).
const (
	superseded      = "TD001"
	changedElsewise = "TD002"
	unshared        = "TD003"
	migrated        = "TD004" // the version that the database has is the detail
	notText         = "22021" // bytes that are not UTF-8
	uniqueViolation = "23505" // a row is there already
	serialization   = "40001"
	deadlock        = "40P01"
	diskFull        = "53100"
	lockTimeout     = "55P03"
)

// Classes of errors that say that a record itself was refused: what it holds, that it contradicts another, or that it is larger than
// an index takes.
const (
	classData      = "22"
	classIntegrity = "23"
	classLimit     = "54"
)

// Beginnings of the codes of errors that say that the server cannot be used now: no connection, no resources, an operator's intervention, a
// server that only answers questions.
const awayCodes = "08 53 57P 25006"

// maxRepeats is how many times a transaction is tried that is not kept for the sake of another, or because its connection is lost.
const maxRepeats = 10

func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// forAnothersSake says that PostgreSQL has ended a transaction for the sake of another.
func forAnothersSake(err error) bool {
	code := codeOf(err)
	return code == serialization || code == deadlock
}

// lostConnection says that an error is one of the connection, or that the server has closed it.
func lostConnection(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.EqualFold(e.Severity, "FATAL") || strings.EqualFold(e.Severity, "PANIC")
	}
	server := (*serverError)(nil)
	return errors.As(err, &server)
}

// isAway says that an error comes of a server that cannot be used now.
func isAway(err error) bool {
	return connectsLater(err) || lostConnection(err)
}

// connectsLater says of an error of connecting that it may pass by itself. All that a server says then is fatal, also that it does not
// know the user.
func connectsLater(err error) bool {
	if code := codeOf(err); code != "" {
		return slices.ContainsFunc(strings.Fields(awayCodes), func(begin string) bool { return strings.HasPrefix(code, begin) })
	}
	_, refused := errors.AsType[*pgconn.ConnectError](err)
	return refused
}

// Passes says of an error of opening a database, or of waiting for it, that it may pass by itself: the server is away, is lost on the
// way or has nothing left.
func Passes(err error) bool {
	if errors.Is(err, store.ErrUnavailable) || connectsLater(err) {
		return true
	}
	if codeOf(err) != "" {
		return false
	}
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF)
}

// unavailable is the answer while the database cannot be used.
func unavailable(err error) error {
	return fault.New(fault.NotReady, "the database cannot be reached now; nothing was changed, and the same works once it can").WithCause(fmt.Errorf("%w: %w", store.ErrUnavailable, err))
}

// fullFor is how long it is believed that there is no room when nothing was tried since.
const fullFor = 15 * time.Second

// noRoom is an answer that there is no room, and when it was given.
type noRoom struct {
	err  error
	when time.Time
}

// full is the answer while the disk of the server is full.
func (db *DB) full(err error) error {
	told := withoutRoom(err)
	db.room.Store(&noRoom{told, time.Now()})
	return told
}

// Room says that there was no room for what was written last; nil: there was, or it is not known any more.
func (db *DB) Room() error {
	if r := db.room.Load(); r != nil && time.Since(r.when) < fullFor {
		return r.err
	}
	return nil
}

func withoutRoom(err error) error {
	return fault.New(fault.Internal, "the disk of the database's server is full; make room, nothing is lost").WithCause(fmt.Errorf("%w: %w", store.ErrFull, err))
}

// broken is the end of a process that does not know any more what the database has.
func broken(err error) error {
	return fault.New(fault.Internal, "the store has stopped: the database is not as this process has left it; see what has happened to its server, then restart").
		WithCause(fmt.Errorf("%w: %w", store.ErrBroken, err))
}

// spoils says that an error is about one part of a transaction, so that the others may be kept without it.
func spoils(err error) bool {
	one := (*spoiled)(nil)
	if errors.As(err, &one) {
		return true
	}
	code := codeOf(err)
	return code != "" && !slices.Contains([]string{superseded, changedElsewise, unshared, migrated, diskFull}, code) && !isAway(err)
}

// inWords puts what kept a part of a transaction from being written into words.
func (db *DB) inWords(w *work, err error) error {
	if one := (*spoiled)(nil); errors.As(err, &one) {
		return one.err
	}
	switch code := codeOf(err); {
	case code == superseded:
		err = lost(err)
		db.stop(err)
	case code == unshared:
		err = notShared(err)
		db.stop(err)
	case code == migrated:
		err = db.movedPast(err)
		db.stop(err)
	case code == changedElsewise:
		err = broken(err)
		db.stop(err)
	case code == diskFull:
		return db.full(err)
	case code == uniqueViolation && len(w.rows) > 0:
		return db.taken(w, err)
	case errors.Is(err, store.ErrUnavailable):
	case isAway(err):
		return unavailable(err)
	}
	return refusal(err)
}

// taken says why a row could not be written because another is there.
func (db *DB) taken(w *work, err error) error {
	e, _ := errors.AsType[*pgconn.PgError](err)
	switch {
	case e.TableName == "journal" || e.TableName == "executions":
		return movedOn(w)
	case e.TableName == "idempotency_keys" && w.rows[0].Key != nil:
		return db.keyUsed(w)
	}
	return refusal(err)
}

func movedOn(w *work) error {
	return fault.Newf(fault.Conflict, "execution %q has a row %d already: somebody else has gone on with it", w.key.ID, w.rows[0].After+1)
}

// keyUsed says what a key was used for.
func (db *DB) keyUsed(w *work) error {
	k, user := w.rows[0].Key, w.rows[0].Create.User
	used := &store.KeyUsedError{IdempotencyKey: store.IdempotencyKey{Key: k.Key}}
	err := db.pool.QueryRow(context.Background(), `SELECT request_hash, execution_id, created FROM idempotency_keys WHERE workspace_id = $1 AND user_id = $2 AND key = $3`, w.key.Workspace, user, k.Key).
		Scan(&used.RequestHash, &used.Execution, &used.Created)
	if err != nil {
		return fmt.Errorf("read idempotency key %q: %w", k.Key, err)
	}
	used.Same = used.RequestHash == k.RequestHash
	return used
}

// refusal puts an error about what a record holds into words.
func refusal(err error) error {
	if code := codeOf(err); len(code) == 5 && (code[:2] == classData || code[:2] == classIntegrity || code[:2] == classLimit) {
		return fault.New(fault.Invalid, "the database does not take this record; it may be too large").WithCause(err)
	}
	return err
}

// doubtful is the loss of a connection in the middle of a transaction.
type doubtful struct {
	err error
	of  backend // the server's process that had it
	// ending says that its end may have been sent, so that it is not known whether it was committed.
	ending bool
}

func (e *doubtful) Error() string { return e.err.Error() }
func (e *doubtful) Unwrap() error { return e.err }

// Pauses between tries to find out what became of a transaction, and how long one try may take.
const (
	firstLook   = 20 * time.Millisecond
	lastLook    = time.Second
	lookTimeout = 15 * time.Second
)

// resolve finds out whether a transaction was committed whose connection was lost. It begins a new session, after which what is left of
// the old one cannot be committed any more. As long as it is not known nothing is accepted, and it is looked for until the database is
// closed; otherwise one look is enough to know whether there is a connection again.
func (c *committer) resolve(lost *doubtful) (committed bool, err error) {
	if lost.ending {
		c.turnAway(unavailable(lost.err))
		defer c.turnAway(nil)
	}
	c.heads.Empty() // what was known of them may be wrong
	c.numbers = nil
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		c.db.pool.Reset() // the other connections are likely to be lost as well
		number, err := c.newSession(lost.of)
		if err == nil && number == c.number+1 {
			return true, nil
		}
		if err == nil {
			return false, c.compare(number)
		}
		if c.db.Err() != nil {
			return false, err
		}
		if !lost.ending {
			return false, unavailable(errors.Join(lost.err, err))
		}
		select {
		case <-time.After(pause):
		case <-c.closing:
			return false, fault.New(fault.Internal, "the connection to the database was lost during a commit, and it is not known whether it was made").WithCause(err)
		}
	}
}

// settleDoubt begins a session when it is not known which is the last. No transaction was under way.
func (c *committer) settleDoubt() error {
	number, err := c.newSession()
	if err != nil && c.db.Err() == nil {
		return unavailable(err)
	}
	if err != nil {
		return err
	}
	return c.compare(number)
}

// compare stops this process unless the database has as many of its commits as it knows of.
func (c *committer) compare(number int64) error {
	if number == c.number {
		return nil
	}
	err := broken(fmt.Errorf("it has %d commits of this process, which knows of %d", number, c.number))
	c.db.stop(err)
	return err
}

// newSession ends what is left of connections, and begins a session of this process. It returns how many commits there are. When the
// database does not know this process, as one that has been put back to before its start, this process stops.
func (c *committer) newSession(left ...backend) (number int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	conn, err := c.db.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	for _, b := range append(left, c.doubted...) { // they may go on without knowing that nobody listens
		if err := b.end(ctx, conn.Conn()); err != nil {
			return 0, err
		}
	}
	c.doubted = append(c.doubted, backendOf(conn.Conn())) // until the answer has come
	text, own := `UPDATE epochs SET session = session + 1 WHERE epoch = $1`, c.db.epoch
	if c.db.member != 0 {
		text, own = `UPDATE members SET session = session + 1 WHERE member = $1`, c.db.member
	}
	err = conn.QueryRow(ctx, text+` AND (`+hasVersion+`) = $2 RETURNING session, commits`, own, c.db.version).Scan(&c.session, &number)
	if errors.Is(err, pgx.ErrNoRows) {
		if err = c.db.fits(ctx, conn.Conn()); err == nil {
			err = broken(fmt.Errorf("it does not know the epoch or member %d", own))
		}
		if errors.Is(err, store.ErrBroken) {
			c.db.stop(err)
		}
	}
	if err != nil {
		return 0, err
	}
	c.doubted = nil
	return number, nil
}
