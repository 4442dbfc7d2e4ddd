package postgres_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tandem/store/postgres"
)

// mute is a host that takes connections and says nothing, and its port.
func mute(t *testing.T) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })
	_, port, err = net.SplitHostPort(l.Addr().String())
	check(t, err)
	return port // the system takes them
}

// with is an address with other parameters.
func with(t *testing.T, address string, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(address)
	check(t, err)
	q := u.Query()
	for i := 0; i < len(parameters); i += 2 {
		q.Set(parameters[i], parameters[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// feel feels the pulse by another address until it is stopped. Each connection that it begins is told.
func feel(t *testing.T, db *postgres.DB, address string, patience time.Duration) (dialled <-chan struct{}, stop func()) {
	t.Helper()
	told := make(chan struct{}, 1)
	feeling, cancel := context.WithCancel(t.Context())
	var felt sync.WaitGroup
	felt.Go(func() {
		err := db.FeelBy(feeling, address, time.Millisecond, patience, func() {
			select {
			case told <- struct{}{}:
			case <-feeling.Done():
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
	stop = func() {
		cancel()
		felt.Wait()
	}
	t.Cleanup(stop)
	return told, stop
}

// hired is a connection of a database's own, and whether it goes on.
func hired(t *testing.T, db *postgres.DB) (goesOn func() error) {
	t.Helper()
	conn, err := db.Hire(t.Context())
	check(t, err)
	t.Cleanup(conn.Release)
	check(t, conn.Ping(t.Context()))
	return func() error { return conn.Ping(t.Context()) }
}

// TestPulse_MuteHost: a host that says nothing does not keep the pulse from the next, and sound connections go on meanwhile.
func TestPulse_MuteHost(t *testing.T) {
	t.Parallel()
	direct := database(t)
	db := open(t, direct)
	goesOn := hired(t, db)
	watch, err := pgx.Connect(t.Context(), direct)
	check(t, err)
	defer func() { check(t, watch.Close(context.Background())) }()
	u, err := url.Parse(direct)
	check(t, err)
	address := with(t, direct, "host", "127.0.0.1,"+u.Query().Get("host"), "port", mute(t)+",5432", "sslmode", "disable", "application_name", "pulse")
	dialled, stop := feel(t, db, address, time.Second)
	<-dialled // the first
	<-dialled // the second, or the first again
	for there := false; !there; pause() {
		check(t, goesOn())
		check(t, watch.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = 'pulse' AND datname = current_database())`).Scan(&there))
		select {
		case <-dialled: // this machine was slow
		default:
		}
	}
	stop()
	check(t, goesOn())
}

// TestPulse_Refused: a server that says why it takes no connection is there, and those that it has go on.
func TestPulse_Refused(t *testing.T) {
	t.Parallel()
	direct := database(t)
	db := open(t, direct)
	goesOn := hired(t, db)
	u, err := url.Parse(direct)
	check(t, err)
	role := "full_" + strings.TrimPrefix(u.Path, "/")
	admin, err := pgx.Connect(t.Context(), direct)
	check(t, err)
	defer func() {
		_, err := admin.Exec(context.Background(), `DROP ROLE `+role)
		check(t, err)
		check(t, admin.Close(context.Background()))
	}()
	_, err = admin.Exec(t.Context(), `CREATE ROLE `+role+` LOGIN CONNECTION LIMIT 0`)
	check(t, err)
	u.User = url.User(role)
	dialled, stop := feel(t, db, u.String(), time.Minute)
	for range 5 {
		<-dialled
	}
	stop()
	check(t, goesOn())
}

// TestPulse_Waiting: while the pulse cannot connect, a connection that waits for an answer is ended, and one that gets answers goes on.
func TestPulse_Waiting(t *testing.T) {
	t.Parallel()
	direct := database(t)
	db := open(t, direct)
	goesOn := hired(t, db)
	waits, err := db.Hire(t.Context())
	check(t, err)
	defer waits.Release()
	answer := make(chan error, 1)
	go func() { // it ends when its connection is ended
		_, err := waits.Exec(t.Context(), `SELECT pg_sleep(3600)`)
		answer <- err
	}()
	dialled, stop := feel(t, db, with(t, direct, "host", "127.0.0.1", "port", mute(t), "sslmode", "disable"), 300*time.Millisecond)
	for {
		select {
		case <-dialled:
			continue
		case err = <-answer:
		}
		break
	}
	if err == nil {
		t.Error("it was not ended")
	}
	for range 3 {
		<-dialled
	}
	stop()
	check(t, goesOn())
}
