package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tandem/engine"
	"tandem/store"
	"tandem/store/postgres"
)

// cluster is a server of the test's own, which can be stopped and started.
type cluster struct{ script, dir, url string }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	script, err := filepath.Abs("../../scripts/postgres.sh")
	check(t, err)
	dir, err := os.MkdirTemp("/tmp", "tandem-pg") // a short path: it holds a socket
	check(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{script: script, dir: dir}
	c.start(t)
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); err == nil { // unless the test has stopped it
			c.stop(t, "immediate")
		}
	})
	return c
}

func (c *cluster) start(t *testing.T) {
	t.Helper()
	start := exec.Command(c.script, "start", c.dir)
	start.Stderr = os.Stderr
	out, err := start.Output()
	check(t, err)
	c.url = strings.TrimSpace(string(out))
}

func (c *cluster) stop(t *testing.T, mode string) {
	t.Helper()
	if out, err := exec.Command(c.script, "stop", c.dir, mode).CombinedOutput(); err != nil {
		t.Errorf("stop the server: %v: %s", err, out)
	}
}

// insist appends rows until they are taken, as an owner does. A conflict would say that a commit was taken for lost that was not.
func insist(t *testing.T, j store.Journal, waits *atomic.Int64, rows ...*store.Append) bool {
	for {
		err := j.Append(t.Context(), ann(), rows...)
		if err == nil {
			return true
		}
		if !store.Waits(err) {
			t.Errorf("append to %s after %d: %v", rows[0].Execution, rows[0].After, err)
			return false
		}
		waits.Add(1)
		pause()
	}
}

// pause lets others work between two looks at a server: nothing tells a test what happens there.
func pause() { <-time.After(5 * time.Millisecond) }

// TestRestart stops the server under load and starts it again, both ways: nothing that was acknowledged is lost, and nothing is there twice.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	db, err := postgres.Open(t.Context(), c.url)
	check(t, err)
	defer db.Close()
	const writers, rows = 8, 120
	var wg sync.WaitGroup
	var waits atomic.Int64
	reached := make(chan uint64, writers*rows)
	for w := range writers {
		wg.Go(func() {
			id := fmt.Sprint("e", w)
			if !insist(t, db.Stores().Journal, &waits, begin(id)) {
				return
			}
			for n := uint64(1); n < rows; n++ {
				a := follow(id, n)
				if n == rows-1 {
					a.Change = &store.Change{Status: engine.StatusSuccess, Ended: 5}
				}
				if !insist(t, db.Stores().Journal, &waits, a) {
					return
				}
				reached <- n
			}
		})
	}
	for _, mode := range []string{"immediate", "fast", "immediate"} {
		for range writers * rows / 5 {
			<-reached
		}
		c.stop(t, mode)
		c.start(t)
	}
	wg.Wait()
	for err = store.ErrUnavailable; errors.Is(err, store.ErrUnavailable); { // who reads first may find that a connection is lost; then all are made anew
		pause()
		_, err = db.Stores().Executions.Get(t.Context(), ann(), "e0")
	}
	check(t, err)
	for w := range writers {
		wantRows(t, db, fmt.Sprint("e", w), rows)
	}
	page, err := db.Stores().Executions.List(t.Context(), ann(), store.ExecutionQuery{Statuses: []engine.Status{engine.StatusSuccess}})
	if err != nil || page.Total != writers || len(page.Executions) != writers {
		t.Errorf("%d of %d executions have ended, %v", len(page.Executions), page.Total, err)
	}
	t.Logf("%d appends found the server away", waits.Load())
}

// TestUnavailable asks a server that is not there: the answer says so, nothing is written, and afterwards everything works as before.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	db, err := postgres.Open(t.Context(), c.url)
	check(t, err)
	defer db.Close()
	s := db.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), begin("e1")))
	c.stop(t, "fast")
	done := make(chan error, 1)
	go func() { done <- s.Journal.Append(t.Context(), ann(), follow("e1", 1)) }() // it is decided when the server is back, or before
	for {
		if err := s.Journal.Append(t.Context(), ann(), begin("e2")); errors.Is(err, store.ErrUnavailable) {
			break
		} else if err == nil {
			t.Fatal("written without a server")
		}
		pause()
	}
	if _, err := s.Executions.List(t.Context(), ann(), store.ExecutionQuery{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("list: %v", err)
	}
	for _, err := range s.Journal.Rows(t.Context(), ann(), "e1", 0) {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("rows: %v", err)
		}
	}
	if _, err := s.Blobs.Put(t.Context(), ann(), strings.NewReader("x")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("put: %v", err)
	}
	c.start(t)
	want := uint64(2)
	if err := <-done; errors.Is(err, store.ErrUnavailable) {
		want = 1
	} else {
		check(t, err)
	}
	wantRows(t, db, "e1", want)
	var waits atomic.Int64
	insist(t, s.Journal, &waits, begin("e2"))
	wantRows(t, db, "e2", 1)
}

// wire stands between a pool and its server, and can be cut.
type wire struct {
	target string
	cut    atomic.Int32
	cuts   atomic.Int32
	// text is that of a statement: what follows the request that prepares it is answered, and the answer is lost, once.
	text atomic.Pointer[string]
	// silent says that the server is not told of the end of connections.
	silent  atomic.Bool
	mu      sync.Mutex
	clients []net.Conn
}

// vanish ends all connections, and the server does not hear of it.
func (w *wire) vanish() {
	w.silent.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, client := range w.clients {
		_ = client.Close()
	}
}

const (
	whole         = iota
	beforeRequest // the next request does not reach the server
	beforeAnswer  // the next request is answered, and the answer is lost
)

// throughWire is a database that is reached through a wire, with one connection.
func throughWire(t *testing.T) (string, *wire) {
	t.Helper()
	address := database(t)
	u, err := url.Parse(address)
	check(t, err)
	dir, err := os.MkdirTemp("/tmp", "tandem-wire")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	const name = ".s.PGSQL.5432"
	w := &wire{target: filepath.Join(u.Query().Get("host"), name)}
	l, err := net.Listen("unix", filepath.Join(dir, name))
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })
	go func() { // it ends when the listener is closed
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(client)
		}
	}()
	q := u.Query()
	q.Set("host", dir)
	q.Set("pool_max_conns", "1")
	u.RawQuery = q.Encode()
	return u.String(), w
}

// carry passes bytes on in both directions until one end is closed, or the wire is cut.
func (w *wire) carry(client net.Conn) {
	server, err := net.Dial("unix", w.target)
	if err != nil {
		_ = client.Close()
		return
	}
	w.mu.Lock()
	w.clients = append(w.clients, client)
	w.mu.Unlock()
	end := func() {
		_ = client.Close()
		if !w.silent.Load() {
			_ = server.Close()
		}
	}
	var deaf atomic.Bool
	go func() { // it ends with the connection
		defer end()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || deaf.Load() {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	defer end()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		switch w.cut.Swap(whole) {
		case beforeRequest:
			w.cuts.Add(1)
			return
		case beforeAnswer:
			w.cuts.Add(1)
			deaf.Store(true)
		}
		if text := w.text.Load(); text != nil && bytes.Contains(buffer[:n], []byte(*text)) {
			w.text.Store(nil)
			w.cut.Store(beforeAnswer)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if deaf.Load() {
			_, _ = io.Copy(io.Discard, client) // until the answer has come
			return
		}
	}
}

// TestLostAnswer cuts the connection around a commit: whether it was made is found out, and the caller is told nothing but that it was.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	address, w := throughWire(t)
	db := open(t, address)
	s := db.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), begin("e1")))
	after := uint64(1)
	next := func() {
		t.Helper()
		check(t, s.Journal.Append(t.Context(), ann(), follow("e1", after)))
		after++
	}
	next() // its statements are prepared from here on
	for i, cut := range []int32{beforeAnswer, beforeRequest, beforeAnswer, beforeAnswer, beforeRequest} {
		next()
		w.cut.Store(cut)
		next()
		if w.cuts.Load() != int32(i+1) {
			t.Fatalf("the wire was cut %d times, want %d", w.cuts.Load(), i+1)
		}
		wantRows(t, db, "e1", after)
	}
	// What looks before it writes says what it has found, also when its answer is lost.
	for _, cut := range []int32{beforeRequest, beforeAnswer} {
		w.cut.Store(cut)
		id, duplicate, err := s.Inbox.Deliver(t.Context(), ann(), store.InboxItem{Execution: "e1", Dedup: fmt.Sprint(cut), Kind: "k"})
		if err != nil || duplicate || id == 0 {
			t.Errorf("deliver: %d, %v, %v", id, duplicate, err)
		}
	}
	if items, err := s.Inbox.Pending(t.Context(), ann(), "e1"); err != nil || len(items) != 2 {
		t.Errorf("the inbox has %v, %v", items, err)
	}
}

// TestLostSession loses the answer of what begins a session, after the loss of a transaction that had not come to its end: the caller is told that nothing was
// written, and the next is.
func TestLostSession(t *testing.T) {
	t.Parallel()
	address, w := throughWire(t)
	db := open(t, address)
	s := db.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), begin("e1")))
	text := "UPDATE epochs SET session"
	w.text.Store(&text)
	w.cut.Store(beforeRequest)
	item := store.InboxItem{Execution: "e1", Dedup: "d", Kind: "k"}
	if _, _, err := s.Inbox.Deliver(t.Context(), ann(), item); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("deliver: %v, want that the database cannot be reached", err)
	}
	if w.cuts.Load() != 2 {
		t.Fatalf("the wire was cut %d times, want twice", w.cuts.Load())
	}
	check(t, s.Journal.Append(t.Context(), ann(), follow("e1", 1)))
	wantRows(t, db, "e1", 2)
	if _, duplicate, err := s.Inbox.Deliver(t.Context(), ann(), item); err != nil || duplicate {
		t.Errorf("deliver again: %v, %v", duplicate, err)
	}
}

// TestFullDisk: what a server without room says is told as such; nothing is lost, and the same works once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	address := database(t)
	db := open(t, address)
	s := db.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), begin("e1")))
	admin(t, address, `CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`)
	admin(t, address, `CREATE TRIGGER no_room BEFORE INSERT ON journal FOR EACH ROW EXECUTE FUNCTION no_room()`)
	for _, a := range []*store.Append{follow("e1", 1), begin("e2")} {
		if err := s.Journal.Append(t.Context(), ann(), a); !errors.Is(err, store.ErrFull) || !store.Waits(err) {
			t.Errorf("append to %s: %v, want that the disk is full", a.Execution, err)
		}
	}
	wantRows(t, db, "e1", 1)
	admin(t, address, `DROP TRIGGER no_room ON journal`)
	check(t, s.Journal.Append(t.Context(), ann(), follow("e1", 1)))
	wantRows(t, db, "e1", 2)
	if db.Err() != nil {
		t.Error(db.Err())
	}
}

// TestLostEpoch: a server that does not know this process, as one put back to before its start, is written to no more; that is said when a connection is lost
// too, instead of waiting for a better answer.
func TestLostEpoch(t *testing.T) {
	t.Parallel()
	address, w := throughWire(t)
	db := open(t, address)
	s := db.Stores()
	check(t, s.Journal.Append(t.Context(), ann(), begin("e1")))
	check(t, s.Journal.Append(t.Context(), ann(), follow("e1", 1))) // its statements are prepared from here on
	check(t, s.Journal.Append(t.Context(), ann(), follow("e1", 2)))
	admin(t, strings.Replace(address, "&pool_max_conns=1", "", 1), `DELETE FROM epochs`)
	w.cut.Store(beforeRequest)
	if err := s.Journal.Append(t.Context(), ann(), follow("e1", 3)); !errors.Is(err, store.ErrBroken) {
		t.Errorf("append: %v, want that the store has stopped", err)
	}
	<-db.Broken()
}

// TestBackend_End: a process of the server is ended if it is the one that is meant, not another with its number.
func TestBackend_End(t *testing.T) {
	t.Parallel()
	db := open(t, database(t))
	for _, other := range []bool{true, false} {
		ended, err := db.EndOne(t.Context(), other)
		if err != nil || ended == other {
			t.Errorf("ended %v, %v; it is another: %v", ended, err, other)
		}
	}
}

// TestLostCommits: a server that has been put back to an earlier state, as by a failover to a copy that lags behind, is written to no more.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	address := database(t)
	db := open(t, address)
	s := db.Stores()
	for id := range 3 {
		check(t, s.Journal.Append(t.Context(), ann(), begin(fmt.Sprint("e", id))))
	}
	admin(t, address, `UPDATE epochs SET commits = commits - 1`)
	admin(t, address, `DELETE FROM executions WHERE id = 'e2'`)
	for range 2 {
		if err := s.Journal.Append(t.Context(), ann(), follow("e1", 1)); !errors.Is(err, store.ErrBroken) {
			t.Fatalf("append: %v, want that the store has stopped", err)
		}
	}
	<-db.Broken()
	if !errors.Is(db.Err(), store.ErrBroken) {
		t.Error(db.Err())
	}
}
