package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tandem/node"
	"tandem/store"
	"tandem/trigger"
)

// TestEmail_Polls reads a mailbox whose server does not tell of news: it does not say that it can, or it says so and refuses.
func TestEmail_Polls(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int32{"cannot": 0, "refuses": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watch(t, `{"credential_id":"in"}`)
			w.box = startMailbox(t, securityNone, nil)
			w.safe.imap("in", w.box, securityNone)
			w.source.poll = 5 * time.Millisecond
			var idled atomic.Int32
			asked := make(chan struct{}, 1)
			w.source.network.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return &deafConn{conn, name == "refuses", &idled, asked}, err
			}
			w.deployed(t)
			for n := range 3 {
				receive(t, "a question for news", asked)
				w.box.put(t, letterOf(fmt.Sprint(n, "@example.com"), fmt.Sprint(n)))
				w.await(t, n+1)
			}
			if got := w.started(); !slices.Equal(got, []string{"0", "1", "2"}) || idled.Load() != want {
				t.Errorf("started %q, asked to be told of news %d times, want %d", got, idled.Load(), want)
			}
		})
	}
}

// TestEmail_Intervals asks as often as the configuration says, and a server that tells of news no more rarely than connections live.
func TestEmail_Intervals(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{`{}`: "5m0s 5m0s", `{"polling_interval":30}`: "30s 30s", `{"polling_interval":3600}`: "1h0m0s 20m0s"} {
		cfg, err := node.Configuration[emailConfig]([]byte(config))
		if err != nil {
			t.Fatal(err)
		}
		if poll, idle := newEmailSource(Options{}, nil).intervals(cfg); fmt.Sprint(poll, " ", idle) != want {
			t.Errorf("%s: %s, %s; want %s", config, poll, idle, want)
		}
	}
}

// deafConn is a connection to a server that knows no IDLE: the word does not reach it, and reaches us only where the server claims to know
// it.
type deafConn struct {
	net.Conn
	claims bool
	idled  *atomic.Int32
	asked  chan struct{}
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.claims {
		copy(p[:n], bytes.ReplaceAll(p[:n], []byte(" IDLE"), []byte(" XNEW")))
	}
	return n, err
}

func (c *deafConn) Write(p []byte) (int, error) {
	c.idled.Add(int32(bytes.Count(p, []byte(" IDLE\r\n"))))
	if bytes.Contains(p, []byte(" NOOP\r\n")) {
		select {
		case c.asked <- struct{}{}:
		default:
		}
	}
	return c.Conn.Write(bytes.ReplaceAll(p, []byte(" IDLE\r\n"), []byte(" XNEW\r\n")))
}

// TestEmail_Dropped loses the connection after ever more bytes, wherever that is, and cannot store every seventh message at once: each is
// delivered once.
func TestEmail_Dropped(t *testing.T) {
	t.Parallel()
	w := watch(t, `{"credential_id":"in"}`)
	one := trigger.Trigger{Trigger: store.Trigger{Config: []byte(w.config(1))}, Open: w.safe.open, Ready: func() {}}
	one.Move = func(_ context.Context, cursor []byte) error {
		one.Cursor = cursor
		return nil
	}
	var err error
	if one.Cursor, err = w.source.Position(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for n := range 2*batch + 5 {
		want = append(want, fmt.Sprint("mid:", n, "@example.com"))
		w.box.put(t, letterOf(fmt.Sprint(n, "@example.com"), fmt.Sprint(n)))
	}
	connections, tries := int64(0), 0
	w.source.network.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections++
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &shortLived{Conn: c, left: connections * 500}, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	for len(got) < len(want) && ctx.Err() == nil {
		at := one
		if err := w.source.Listen(ctx, at, func(_ context.Context, e trigger.Event, cursor []byte) error {
			if tries++; tries%7 == 0 {
				return errors.New("the disk is full")
			}
			if got, one.Cursor = append(got, e.Key), cursor; len(got) == len(want) {
				cancel() // this connection has lasted
			}
			return nil
		}); err == nil {
			t.Fatal("it has ended without a reason")
		}
	}
	if !slices.Equal(got, want) || connections < 5 {
		t.Errorf("delivered %q over %d connections", got, connections)
	}
}

// shortLived is a connection that breaks after some bytes.
type shortLived struct {
	net.Conn
	left int64 // one goroutine reads
}

func (c *shortLived) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.Join(net.ErrClosed, c.Conn.Close())
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
