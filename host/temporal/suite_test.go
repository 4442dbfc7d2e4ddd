package temporal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"tandem/host/hosttest"
	"tandem/store"
	"tandem/store/postgres"
	"tandem/store/postgres/postgrestest"
)

// withoutServer says that the tests may do without a Temporal server. It is for machines that cannot build one, and is loud.
const withoutServer = "TANDEM_TEST_NO_TEMPORAL"

// server is a client of the server that TestMain has started, address where that is.
var (
	server  client.Client
	address string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	if os.Getenv(withoutServer) != "" {
		fmt.Printf("NOTICE: %s is set: the Temporal host is NOT TESTED in this run.\n", withoutServer)
		return 0
	}
	script, err := filepath.Abs("../../scripts/temporal.sh")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	dir, err := os.MkdirTemp("", "tandem-temporal")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	start := exec.Command(script, "start", dir)
	start.Stderr = os.Stderr
	out, err := start.Output()
	if err != nil {
		fmt.Printf("no Temporal server for the tests: %v; set %s=1 to leave its host untested\n", err, withoutServer)
		return 1
	}
	defer func() {
		if out, err := exec.Command(script, "stop", dir).CombinedOutput(); err != nil {
			fmt.Printf("stop Temporal: %v: %s\n", err, out)
			code = 1
		}
	}()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	if os.Getenv("TANDEM_TEST_TEMPORAL_LOG") != "" {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	address = strings.TrimSpace(string(out))
	server, err = client.Dial(client.Options{
		HostPort: address, Logger: logger, ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(unhurried)}},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer server.Close()
	return m.Run()
}

// unhurried gives a call of a test minutes instead of the ten seconds that the SDK gives it: the server has much to do.
func unhurried(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	given, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel() // nobody waits for it any more
		}
	})()
	return call(given, method, request, reply, conn, o...)
}

// TestSuite holds the host to the suite, on a real Temporal server. Of the cases without limits it is every second, unless all are asked
// for.
func TestSuite(t *testing.T) {
	t.Parallel()
	for i, c := range hosttest.Cases() {
		if crashEvery() > 1 && i%2 != 0 && c.MaxRunning+c.MaxTasks == 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.split = c.MaxRunning+c.MaxTasks > 0 // one process has the limits
			c.Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{})
		})
	}
}

// TestSuite_Crashes kills the first process of some cases at one of its writes, while the others live.
func TestSuite_Crashes(t *testing.T) {
	t.Parallel()
	for i, c := range hosttest.Cases() {
		if !c.Crashes || i%crashEvery() != 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			how := []hosttest.How{hosttest.Before, hosttest.After}
			s := newSite(t)
			s.split = c.MaxRunning+c.MaxTasks > 0
			c.Play(t, s.rig(hosttest.NewDisk().Stores), hosttest.Fate{Blows: []hosttest.Blow{{Write: 2 + i%3, How: how[i%2]}}})
		})
	}
}

// TestSuite_PostgreSQL is the suite as it is used: a server that owns a database, and two workers that write beside it. In the second part
// the server and one of the workers are killed, each at one of its writes: the next server opens the database anew. With few crashes it is
// some of it.
func TestSuite_PostgreSQL(t *testing.T) {
	t.Parallel()
	pg := postgrestest.Start(t)
	ready := pg.Database(t)
	db, err := postgres.Open(t.Context(), ready)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	t.Run("Cases", func(t *testing.T) {
		for i, c := range hosttest.Cases() {
			if i%crashEvery() != 0 {
				continue
			}
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				s.split = true
				c.Play(t, s.shared(pg.Copy(t, ready)), hosttest.Fate{})
			})
		}
	})
	t.Run("Crashes", func(t *testing.T) {
		var deaths atomic.Int64
		t.Cleanup(func() {
			if deaths.Load() == 0 {
				t.Error("nobody has died")
			}
		})
		for i, c := range hosttest.Cases() {
			if !c.Crashes || i%crashEvery() != 1%crashEvery() { // others than above
				continue
			}
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				how := []hosttest.How{hosttest.Before, hosttest.After}
				s := newSite(t)
				s.split = true
				report := c.Play(t, s.shared(pg.Copy(t, ready)), hosttest.Fate{
					Blows:  []hosttest.Blow{{Write: 1 + i%2, How: how[i/2%2]}},
					Beside: []hosttest.Blow{{Write: 1 + i%3, How: how[i%2]}, {Write: 2 + i%4, How: how[(i+1)%2]}},
				})
				deaths.Add(int64(report.Crashes))
				t.Logf("%d deaths", report.Crashes)
			})
		}
	})
}

// shared has an installation on a database that one process owns and the others share. They reach it at the addresses that are given.
func (s *site) shared(address string, others ...string) hosttest.Rig {
	s.t.Helper()
	const few = "&pool_max_conns=4"
	var owned *postgres.Owned
	open := func() {
		var err error
		if owned, err = postgres.OpenOwned(context.WithoutCancel(s.t.Context()), postgres.Options{URL: address + few, Shared: true}); err != nil {
			s.t.Fatal(err)
		}
		s.news = owned.News()
	}
	shut := func() {
		if err := owned.Close(); err != nil {
			s.t.Error(err)
		}
	}
	open()
	s.t.Cleanup(func() { shut() })
	if len(others) == 0 {
		others = []string{address, address}
	}
	var members []*postgres.Member
	for _, at := range others {
		m, err := postgres.Join(s.t.Context(), at+few)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() {
			if err := m.Close(); err != nil {
				s.t.Error(err)
			}
		})
		members = append(members, m)
	}
	var turn atomic.Int64
	rig := s.rig(func() store.Stores { return owned.Stores() })
	rig.Restart = func() {
		shut()
		open()
	}
	rig.Beside = func() store.Stores { return members[int(turn.Add(1))%len(members)].Stores() }
	return rig
}

// crashEvery is how many cases are left out between those that crash, unless all are asked for.
func crashEvery() int {
	if os.Getenv("TANDEM_LONG") != "" {
		return 1
	}
	return 9
}
