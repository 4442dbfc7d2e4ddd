package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tandem/store"
	"tandem/store/postgres"
)

// TestWire: a message comes as it was sent, however long it is, and also by a process that only reads the database. A lost connection is told of.
func TestWire(t *testing.T) {
	t.Parallel()
	address := database(t)
	db := open(t, address)
	reading, err := postgres.OpenReader(t.Context(), address)
	check(t, err)
	t.Cleanup(reading.Close)
	type message struct{ channel, text string }
	heard, ended := make(chan message, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // it ends with the context
		ended <- reading.Wire().Hear(ctx, func(channel, text string) { heard <- message{channel, text} }, "tandem_a", "tandem_b")
	}()
	if got := <-heard; got != (message{}) {
		t.Errorf("it begins with %+v", got)
	}
	long := strings.Repeat("a", 100_000) // parts of it are the same
	for _, m := range []message{{"tandem_a", "one"}, {"tandem_b", long}, {"tandem_a", strings.Repeat("好:", 10_000)}, {"tandem_a", ""}, {"tandem_b", "+:."}} {
		check(t, db.Wire().Send(t.Context(), m.channel, m.text))
		check(t, db.Wire().Send(t.Context(), "tandem_other", "x"))
		if got := <-heard; got != m {
			t.Errorf("%s has %d letters, want %s with %d", got.channel, len(got.text), m.channel, len(m.text))
		}
	}
	check(t, reading.Wire().Send(t.Context(), "tandem_a", "to oneself"))
	if got := <-heard; got.text != "to oneself" {
		t.Errorf("%+v", got)
	}
	admin(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`)
	if got := <-heard; got != (message{}) {
		t.Errorf("after the connection: %+v", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestOpenReader reads what the owner writes, and writes nothing. A database of another version is refused.
func TestOpenReader(t *testing.T) {
	t.Parallel()
	address := database(t)
	db := open(t, address)
	check(t, db.Stores().Journal.Append(t.Context(), ann(), begin("e1")))
	reading, err := postgres.OpenReader(t.Context(), address)
	check(t, err)
	t.Cleanup(reading.Close)
	wantRows(t, reading, "e1", 1)
	s := reading.Stores()
	if err := s.Journal.Append(t.Context(), ann(), follow("e1", 1)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("append: %v", err)
	}
	if _, err := s.Blobs.Put(t.Context(), ann(), strings.NewReader(strings.Repeat("x", 1000))); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("put: %v", err)
	}
	check(t, reading.Err())
	check(t, db.Stores().Journal.Append(t.Context(), ann(), follow("e1", 1))) // who owns it still does
	wantRows(t, reading, "e1", 2)
	check(t, db.Err())
	admin(t, address, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	if _, err := postgres.OpenReader(t.Context(), address); err == nil || !strings.Contains(err.Error(), "99999") {
		t.Errorf("another version: %v", err)
	}
}
