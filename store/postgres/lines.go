package postgres

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tandem/store"
)

// lines are the connections of a process to a server, so that all of them can be ended at once. A network that loses everything without
// a word leaves connections that look sound: who waits for an answer would wait for many minutes. Ended, they are like others that were
// lost.
type lines struct {
	mu   sync.Mutex
	open map[*line]struct{}
}

// line is one connection.
type line struct {
	net.Conn
	of *lines
	// asked is when something was sent that nothing has come back for since, in nanoseconds; zero: nothing is waited for.
	asked atomic.Int64
}

// Read implements [net.Conn].
func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.asked.Store(0)
	}
	return n, err
}

// Write implements [net.Conn].
func (l *line) Write(b []byte) (int, error) {
	l.asked.CompareAndSwap(0, time.Now().UnixNano())
	return l.Conn.Write(b)
}

// Close implements [net.Conn].
func (l *line) Close() error {
	l.of.mu.Lock()
	delete(l.of.open, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

// through lets connections be made as lines.
func (ls *lines) through(config *pgx.ConnConfig) {
	dial := config.DialFunc
	config.DialFunc = pgconn.DialFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l := &line{Conn: conn, of: ls}
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if ls.open == nil {
			ls.open = map[*line]struct{}{}
		}
		ls.open[l] = struct{}{}
		return l, nil
	})
}

// cut ends all connections.
func (ls *lines) cut() { ls.cutIf(func(*line) bool { return true }) }

// cutWaiting ends the connections that have waited for an answer for a while. Those that get answers, and those that wait for nothing,
// are left alone.
func (ls *lines) cutWaiting(patience time.Duration) {
	since := time.Now().Add(-patience).UnixNano()
	ls.cutIf(func(l *line) bool {
		asked := l.asked.Load()
		return asked != 0 && asked < since
	})
}

func (ls *lines) cutIf(meant func(*line) bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for l := range ls.open { // order does not matter: each is looked at by itself
		if meant(l) {
			_ = l.Conn.Close() // who uses it finds out, and closes it again
			delete(ls.open, l)
		}
	}
}

// How often the server is asked whether it is there, and how long it may take to say so. An address with several hosts gives each of
// them that long.
const (
	pulseEvery    = 5 * time.Second
	pulsePatience = 10 * time.Second
)

// pulse asks the server now and then whether it is there, by a connection of its own, until the context ends. When that connection
// falls silent, all connections are ended, once. While no other can be made, only those are ended that wait for an answer as well: the
// rest may be sound. A server that says why it refuses is there.
func (db *DB) pulse(ctx context.Context, every, patience time.Duration) {
	config := db.plain.Copy()
	config.ConnectTimeout = min(config.ConnectTimeout, patience) // it counts for each host
	var conn *pgx.Conn
	for {
		select {
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close(context.WithoutCancel(ctx)) // nothing was asked for by it
			}
			return
		case <-time.After(every):
		}
		if conn != nil {
			silent, err := db.ask(ctx, conn, patience)
			if err == nil {
				continue
			}
			if silent && ctx.Err() == nil {
				db.lines.cut()
			}
			_ = conn.Close(ctx) // it is lost
		}
		var err error
		if conn, err = pgx.ConnectConfig(ctx, config.Copy()); err != nil {
			conn = nil
			if codeOf(err) == "" && ctx.Err() == nil {
				db.lines.cutWaiting(patience)
			}
		}
	}
}

// ask asks a server by a connection whether it is there, and which version the database has: this process stops when that is not the one
// that it is for. A member says in the same way that it is alive. Silent says that the server has not answered in time, so that it is not
// known what became of it. That it answers is what the pulse wants to know: if it has refused something, as when its disk is full, whoever
// writes finds out.
func (db *DB) ask(ctx context.Context, conn *pgx.Conn, patience time.Duration) (silent bool, err error) {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if db.member != 0 {
		err = db.sign(asking, conn)
	}
	if err == nil {
		err = db.fits(asking, conn)
	}
	if errors.Is(err, store.ErrSuperseded) {
		db.stop(err)
	}
	if err == nil || errors.Is(err, store.ErrSuperseded) || codeOf(err) != "" && !lostConnection(err) {
		return false, nil
	}
	return codeOf(err) == "" && asking.Err() != nil, err
}
