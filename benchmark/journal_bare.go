package benchmark

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"sync"

	sqlite "modernc.org/sqlite"
)

// bareJournal is the least that a durable journal with group commit can be, and so the yardstick: the driver without
// database/sql, one connection with prepared statements, an integer key, write-ahead log, synchronous=FULL. It checks
// nothing and knows no workspaces. One goroutine owns the connection; callers wait until their row is on disk.
type bareJournal struct {
	conn                  driver.Conn
	begin, insert, commit driver.StmtExecContext
	close                 []func() error

	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	queue   []*bareRow
	stopped bool
}

type bareRow struct {
	place int64
	time  int64
	body  []byte
	err   error
	done  chan struct{}
}

var errUnlike = errors.New("the two cannot be compared") // read-only

func openBare(dir string) (_ *bareJournal, err error) {
	q := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "cache_size(-8192)"}}
	path := filepath.Join(dir, "bare.db")
	conn, err := new(sqlite.Driver).Open("file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + q.Encode())
	if err != nil {
		return nil, fmt.Errorf("open the bare journal: %w", err)
	}
	j := &bareJournal{conn: conn, wake: make(chan struct{}, 1), done: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.release())
		}
	}()
	table, err := j.prepare(`CREATE TABLE journal (place INTEGER PRIMARY KEY, time INTEGER NOT NULL, body BLOB NOT NULL) STRICT`)
	if err != nil {
		return nil, err
	}
	if _, err := table.ExecContext(context.Background(), nil); err != nil {
		return nil, fmt.Errorf("make the table of the bare journal: %w", err)
	}
	if j.begin, err = j.prepare("BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	if j.insert, err = j.prepare("INSERT INTO journal VALUES (?, ?, ?)"); err != nil {
		return nil, err
	}
	if j.commit, err = j.prepare("COMMIT"); err != nil {
		return nil, err
	}
	// A yardstick that syncs less would flatter nobody but itself.
	for name, want := range map[string]string{"synchronous": "2", "journal_mode": "wal"} { // 2 is FULL
		if got, err := j.setting(name); err != nil || got != want {
			return nil, fmt.Errorf("the bare journal's %s is %q, not %q: %w", name, got, want, errors.Join(err, errUnlike))
		}
	}
	go j.loop()
	return j, nil
}

func (j *bareJournal) prepare(text string) (driver.StmtExecContext, error) {
	s, err := j.conn.Prepare(text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", text, err)
	}
	j.close = append(j.close, s.Close)
	exec, ok := s.(driver.StmtExecContext)
	if !ok {
		return nil, fmt.Errorf("the driver's statement %T cannot be executed", s)
	}
	return exec, nil
}

// setting reads a setting of the connection, before it is used.
func (j *bareJournal) setting(name string) (_ string, err error) {
	s, err := j.conn.Prepare("PRAGMA " + name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	query, ok := s.(driver.StmtQueryContext)
	if !ok {
		return "", fmt.Errorf("the driver's statement %T cannot be queried", s)
	}
	rows, err := query.QueryContext(context.Background(), nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		return "", err
	}
	return fmt.Sprint(row[0]), nil
}

// append returns when a row is on disk.
func (j *bareJournal) append(place, time int64, body []byte) error {
	r := &bareRow{place: place, time: time, body: body, done: make(chan struct{}, 1)}
	j.mu.Lock()
	j.queue = append(j.queue, r)
	first := len(j.queue) == 1
	j.mu.Unlock()
	if first {
		j.signal()
	}
	<-r.done
	return r.err
}

func (j *bareJournal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *bareJournal) loop() {
	defer close(j.done)
	var spare []*bareRow
	for {
		j.mu.Lock()
		batch, stopped := j.queue, j.stopped
		j.queue, spare = spare[:0], nil
		j.mu.Unlock()
		switch {
		case len(batch) > 0:
			err := j.write(batch)
			for _, r := range batch {
				r.err = err
				r.done <- struct{}{}
			}
			clear(batch)
			spare = batch
			runtime.Gosched() // those just woken come back with their next row and share the next transaction
		case stopped:
			return
		default:
			spare = batch
			<-j.wake
		}
	}
}

// write makes one transaction. After an error neither the journal nor the measurement can be used any more.
func (j *bareJournal) write(batch []*bareRow) error {
	ctx := context.Background()
	if _, err := j.begin.ExecContext(ctx, nil); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	var args [3]driver.NamedValue
	for _, r := range batch {
		args[0] = driver.NamedValue{Ordinal: 1, Value: r.place}
		args[1] = driver.NamedValue{Ordinal: 2, Value: r.time}
		args[2] = driver.NamedValue{Ordinal: 3, Value: r.body}
		if _, err := j.insert.ExecContext(ctx, args[:]); err != nil {
			return fmt.Errorf("insert: %w", err)
		}
	}
	if _, err := j.commit.ExecContext(ctx, nil); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func (j *bareJournal) stop() error {
	j.mu.Lock()
	j.stopped = true
	j.mu.Unlock()
	j.signal()
	<-j.done
	return j.release()
}

func (j *bareJournal) release() error {
	var errs []error
	for _, c := range j.close {
		errs = append(errs, c())
	}
	return errors.Join(append(errs, j.conn.Close())...)
}
