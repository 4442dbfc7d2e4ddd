package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/credential"
	"tandem/fault"
	"tandem/store"
	"tandem/store/postgres"
)

// journalOf is a log that can be read while it is written.
type journalOf struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journalOf) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journalOf) count(part string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), part)
}

func ringOf(t *testing.T, n byte) *credential.Keyring {
	t.Helper()
	ring, err := credential.ParseKeyring(strings.Repeat(fmt.Sprintf("%02x5a", n), 16))
	check(t, err)
	return ring
}

// stranger is somebody who may connect to a database, and hears what is sent on some channels.
func stranger(t *testing.T, address string, channels ...string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // nothing depends on it
	for _, channel := range channels {
		_, err := conn.Exec(t.Context(), `LISTEN `+channel)
		check(t, err)
	}
	return conn
}

func notify(t *testing.T, conn *pgx.Conn, channel string, messages ...string) {
	t.Helper()
	for _, message := range messages {
		_, err := conn.Exec(t.Context(), `SELECT pg_notify($1, $2)`, channel, message)
		check(t, err)
	}
}

// TestWire_Strangers: who may connect to the database reads nothing of the messages. What it sends is dropped, also what it has heard before and sends
// again, and the beginning of a message whose end never comes; it is counted, and logged once.
func TestWire_Strangers(t *testing.T) {
	t.Parallel()
	address := database(t)
	db := open(t, address)
	var log journalOf
	ring := ringOf(t, 1)
	db.SealMessages(ring, slog.New(slog.NewTextHandler(&log, nil)))
	other := stranger(t, address, "tandem_a")
	heard := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		_ = db.Wire().Hear(ctx, func(_, text string) { heard <- text }, "tandem_a") // the context's error
	})
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	<-heard // it begins
	next := func(want string) {
		t.Helper()
		check(t, db.Wire().Send(t.Context(), "tandem_a", want))
		if got := <-heard; got != want {
			t.Errorf("heard %.80q, want %.80q", got, want)
		}
	}
	next("the secret of the house")
	told, err := other.WaitForNotification(t.Context())
	check(t, err)
	if strings.Contains(told.Payload, "secret") || len(told.Payload) < 30 {
		t.Errorf("a stranger hears %q", told.Payload)
	}
	notify(t, other, "tandem_a", told.Payload, "", "nonsense", ".0:nonsense", ":", "+x:", ".-1:a", "+0:"+strings.Repeat("a", 7000), "+1:b", ".7:c", "+0:unfinished")
	next("what is so")
	long := strings.Repeat("long ", 100_000)
	notify(t, other, "tandem_a", "+0:unfinished")
	next(long)
	notify(t, other, "tandem_a", ".1:the rest")
	next("at last")
	if n := db.DroppedMessages(); n != 9 { // all of them but the beginnings, which could still have become something
		t.Errorf("%d were dropped", n)
	}
	if n := log.count("level=WARN"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	db2 := open2(t, address, ringOf(t, 2))
	check(t, db2.Wire().Send(t.Context(), "tandem_a", "with another key"))
	next("still")
	if err := db.Wire().Send(t.Context(), "tandem_a", strings.Repeat("x", postgres.MaxWhole)); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("a message that is too long: %v", err)
	}
}

// open2 reads a database that another has open, with a key.
func open2(t *testing.T, address string, seal store.Seal) *postgres.DB {
	t.Helper()
	db, err := postgres.OpenReader(t.Context(), address)
	check(t, err)
	t.Cleanup(db.Close)
	db.SealMessages(seal, slog.New(slog.DiscardHandler))
	return db
}

// TestNews_Strangers: only who has the key says which executions have new rows, and nobody else hears which.
func TestNews_Strangers(t *testing.T) {
	t.Parallel()
	url := database(t)
	db := open(t, url)
	ring := ringOf(t, 1)
	db.SealMessages(ring, slog.New(slog.DiscardHandler))
	news, err := postgres.NewsOf(url, ring, slog.New(slog.DiscardHandler))
	check(t, err)
	other := stranger(t, url, postgres.NewsChannel)
	heard, ended := make(chan []store.Fresh, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- news.Listen(ctx, func(list []store.Fresh) { heard <- list }) }() // it ends with the test
	<-heard
	j := db.Stores().Journal
	next := func(id string, seq uint64) {
		t.Helper()
		if got := <-heard; len(got) != 1 || got[0].Execution != id || got[0].Seq != seq {
			t.Errorf("heard %v, want %s, %d", got, id, seq)
		}
	}
	check(t, j.Append(t.Context(), ann(), begin("execution-1")))
	next("execution-1", 1)
	told, err := other.WaitForNotification(t.Context())
	check(t, err)
	if strings.Contains(told.Payload, "execution") {
		t.Errorf("a stranger hears %q", told.Payload)
	}
	notify(t, other, postgres.NewsChannel, told.Payload, "", "w\x1fexecution-1\x1f18446744073709551615", "w\x1fe\x1f1")
	check(t, j.Append(t.Context(), ann(), follow("execution-1", 1)))
	next("execution-1", 2)
	var calls []func() error // so many that they are more than one message
	for i := range 300 {
		id := fmt.Sprintf("execution-%03d-%s", i, strings.Repeat("x", 40))
		calls = append(calls, func() error { return j.Append(t.Context(), ann(), begin(id)) })
	}
	check(t, errors.Join(together(t, db, calls...)...))
	if got := <-heard; got != nil {
		t.Errorf("heard of %d", len(got))
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestDoubt: messages that are not believed let everything be looked at, since a process with another key may have sent them, but not more often than
// every minute.
func TestDoubt(t *testing.T) {
	t.Parallel()
	var d postgres.Doubt
	now := time.Now()
	if d.Due(now) {
		t.Error("nothing has come")
	}
	if !d.Unbelieved(now) {
		t.Error("the first one is not looked at")
	}
	for range 10 {
		if now = now.Add(postgres.DoubtEvery / 20); d.Unbelieved(now) {
			t.Error("it is looked again too soon")
		}
	}
	if now = now.Add(postgres.DoubtEvery); !d.Due(now) || d.Due(now) {
		t.Error("what came meanwhile is not looked at once")
	}
}
