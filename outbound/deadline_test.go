package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/fault"
)

// pipes is a client whose connections are pipes to a server in the same bubble of time.
func pipes(t *testing.T, o Options, handler http.HandlerFunc) *Client {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: handler}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	o.Resolver = generousResolver{}
	o.DialAddress = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case l.conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c := New(o)
	t.Cleanup(func() {
		c.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return c
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestClient_Do_Deadlines(t *testing.T) {
	t.Parallel()
	drip := func(rw http.ResponseWriter, r *http.Request) {
		for {
			if _, err := rw.Write([]byte(".")); err != nil {
				return
			}
			rw.(http.Flusher).Flush()
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return
			}
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		options Options
		want    time.Duration
		part    string
	}{
		{"SlowDrip", drip, Options{Total: 30 * time.Second}, 30 * time.Second, "completely in time"},
		{"NoFirstByte", silent, Options{FirstByte: 5 * time.Second}, 5 * time.Second, "begin to answer"},
		{"NoAnswer", silent, Options{Total: 8 * time.Second}, 8 * time.Second, "completely in time"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := pipes(t, test.options, test.handler)
				begun := time.Now()
				e := failure(t, c, get(t, "http://a.example/"))
				wantFailure(t, e, fault.Timeout, Unknown)
				if took := time.Since(begun); took != test.want || !strings.Contains(e.Error(), test.part) {
					t.Errorf("%v after %s, want it after %s", e, took, test.want)
				}
			})
		})
	}
	t.Run("Connecting", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := New(Options{Resolver: generousResolver{}, DialAddress: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}})
			begun := time.Now()
			wantFailure(t, failure(t, c, get(t, "http://a.example/")), fault.Timeout, NotTaken)
			if took := time.Since(begun); took != DefaultDial {
				t.Errorf("after %s", took)
			}
		})
	})
	t.Run("Handshake", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var other net.Conn
			c := New(Options{Resolver: generousResolver{}, DialAddress: func(context.Context, netip.AddrPort) (net.Conn, error) {
				var ours net.Conn
				ours, other = net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, other) }() // takes everything, says nothing
				return ours, nil
			}})
			begun := time.Now()
			wantFailure(t, failure(t, c, get(t, "https://a.example/")), fault.Timeout, NotTaken)
			if took := time.Since(begun); took != DefaultTLS {
				t.Errorf("after %s", took)
			}
		})
	})
	t.Run("Canceled", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := pipes(t, Options{}, silent)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := c.Do(ctx, get(t, "http://a.example/"))
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatal(err)
			}
			wantFailure(t, e, fault.Canceled, Unknown)
		})
	})
	t.Run("PlainClient", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := pipes(t, Options{FirstByte: 5 * time.Second}, silent)
			if _, err := c.HTTPClient().Get("http://a.example/"); fault.CodeOf(err) != fault.Timeout {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestClient_Do_SilentAddressCostsLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.names["two.example"] = func() []string { return []string{"2606:4700::1", "93.184.216.34"} }
		gone := make(chan struct{})
		c := New(Options{Resolver: w, DialAddress: func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
			if a.Addr().Is6() {
				<-ctx.Done()
				close(gone)
				return nil, ctx.Err()
			}
			ours, theirs := net.Pipe()
			go func() {
				_, _ = theirs.Read(make([]byte, 4096))
				_, _ = io.WriteString(theirs, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
				_ = theirs.Close()
			}()
			return ours, nil
		}})
		begun := time.Now()
		answer(t, c, get(t, "http://two.example/"))
		if took := time.Since(begun); took != headStart {
			t.Errorf("took %s", took)
		}
		<-gone // the loser was stopped
	})
}
