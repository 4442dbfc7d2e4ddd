package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tandem/fault"
	"tandem/route"
)

// fakeGateway remembers what reaches it.
type fakeGateway struct {
	api    http.Handler
	served []string
	closed bool
}

func (g *fakeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	g.served = append(g.served, r.Method+" "+r.Header.Get("Authorization")+" "+string(body))
	w.WriteHeader(http.StatusAccepted)
}

func (g *fakeGateway) Close() { g.closed = true }

// The gateway gets requests of callers who were let in, whole and as they came, has the API itself to ask, and ends with the server.
func TestGateway(t *testing.T) {
	t.Parallel()
	g := &fakeGateway{}
	w := setup(t, func(o *Options) {
		o.Gateway = func(api http.Handler) (Gateway, error) {
			g.api = api
			return g, nil
		}
	})
	s := w.server
	send := func(token, method string, body io.Reader) int {
		t.Helper()
		r := httptest.NewRequest(method, "/mcp", body)
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		out := httptest.NewRecorder()
		s.Handler().ServeHTTP(out, r)
		return out.Code
	}
	for role, token := range w.tokens {
		g.served = nil
		for _, method := range []string{"POST", "GET", "DELETE"} {
			if got := send(token, method, strings.NewReader(`{"a":1}`)); got != http.StatusAccepted {
				t.Errorf("%s as %s: %d", method, role, got)
			}
		}
		if len(g.served) != 3 || g.served[0] != "POST Bearer "+token+` {"a":1}` {
			t.Errorf("as %s: %q", role, g.served)
		}
	}
	g.served = nil
	for _, c := range []struct {
		token, method string
		body          io.Reader
		want          int
	}{
		{"", "POST", nil, 401}, {"tdm_nobody", "GET", nil, 401}, {w.tokens["admin"], "PUT", nil, 405},
		{w.tokens["admin"], "POST", bytes.NewReader(make([]byte, route.MaxBody+1)), 413},
		{w.tokens["admin"], "POST", io.MultiReader(bytes.NewReader(make([]byte, route.MaxBody+3))), 413}, // whose length nobody has told
	} {
		if got := send(c.token, c.method, c.body); got != c.want {
			t.Errorf("%s with %q: %d, want %d", c.method, c.token, got, c.want)
		}
	}
	if len(g.served) > 0 {
		t.Errorf("the gateway was asked %q", g.served)
	}
	out := httptest.NewRecorder()
	g.api.ServeHTTP(out, httptest.NewRequest("GET", "/healthz", nil))
	if s.Close(); out.Code != 200 || !g.closed {
		t.Errorf("the API answers %d; closed %v", out.Code, g.closed)
	}
}

func TestGateway_None(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, method := range []string{"POST", "GET", "DELETE"} {
		w.call(w.tokens["admin"], method, "/mcp", `{}`).problem(t, 404, fault.NotFound)
	}
}

// Between two writes, before a flush and before the end of an answer any time may pass; a reader that takes nothing is given up.
func TestPatientWriter(t *testing.T) {
	t.Parallel()
	const patience = 10 * time.Second
	for name, c := range map[string]struct {
		write func(w *patientWriter) error
		want  string
	}{
		"End": {func(w *patientWriter) error {
			_, err := io.WriteString(w, "a")
			err = errors.Join(err, w.FlushError())
			time.Sleep(2 * patience)
			return err
		}, "a"},
		"Flush": {func(w *patientWriter) error {
			_, err := io.WriteString(w, "a")
			time.Sleep(2 * patience)
			return errors.Join(err, http.NewResponseController(w).Flush())
		}, "a"},
		"Write": {func(w *patientWriter) error {
			_, err := io.WriteString(w, "a")
			err = errors.Join(err, w.FlushError())
			time.Sleep(2 * patience)
			_, again := io.WriteString(w, "b")
			return errors.Join(err, again)
		}, "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := servePiped(t, func(out http.ResponseWriter, _ *http.Request) {
					w := &patientWriter{ResponseWriter: out, control: http.NewResponseController(out), patience: patience}
					defer w.end()
					if err := c.write(w); err != nil {
						t.Error(err)
					}
				})
				in := bufio.NewReader(conn)
				for range 2 { // on one connection
					if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
						t.Fatal(err)
					}
					answer, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					if body, err := io.ReadAll(answer.Body); err != nil || string(body) != c.want {
						t.Errorf("the answer is %q, %v", body, err)
					}
				}
			})
		})
	}
	t.Run("SlowAndLong", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			const size = 10 * maxFlush
			conn := servePiped(t, func(out http.ResponseWriter, _ *http.Request) {
				w := &patientWriter{ResponseWriter: out, control: http.NewResponseController(out), patience: patience}
				defer w.end()
				if n, err := w.Write(make([]byte, size)); n != size || err != nil {
					t.Errorf("%d of %d bytes are written, %v", n, size, err)
				}
			})
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			total := 0
			for buffer := make([]byte, maxFlush/4); ; time.Sleep(patience / 10) { // some hundred seconds altogether
				n, err := answer.Body.Read(buffer)
				if total += n; errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("cut after %d bytes: %v", total, err)
				}
			}
			if total != size {
				t.Errorf("%d of %d bytes came", total, size)
			}
		})
	})
	t.Run("Stuck", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			given := make(chan error, 1)
			conn := servePiped(t, func(out http.ResponseWriter, _ *http.Request) {
				w := &patientWriter{ResponseWriter: out, control: http.NewResponseController(out), patience: patience}
				defer w.end()
				_, err := w.Write(make([]byte, 1<<20))
				given <- err
			})
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if err := <-given; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != patience {
				t.Errorf("given up after %v with %v", time.Since(begin), err)
			}
		})
	})
}

// servePiped serves one connection in memory until the test ends.
func servePiped(t *testing.T, handler http.HandlerFunc) net.Conn {
	t.Helper()
	client, served := net.Pipe()
	listener := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	listener.conn <- served
	web := &http.Server{Handler: handler, WriteTimeout: time.Minute}
	ended := make(chan struct{})
	go func() { // it ends with Close, below
		defer close(ended)
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), web.Close()); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return client
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
