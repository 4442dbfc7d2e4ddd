package server

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/fault"
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
		{w.tokens["admin"], "POST", bytes.NewReader(make([]byte, maxBody+1)), 413},
		{w.tokens["admin"], "POST", io.MultiReader(bytes.NewReader(make([]byte, maxBody+3))), 413}, // whose length nobody has told
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
