package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

// update rewrites docs/openapi.json, to be read before it is kept.
var update = flag.Bool("update", false, "rewrite docs/openapi.json")

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	w := setup(t)
	got := w.call("", "GET", "/openapi.json", "").want(t, 200)
	if *update {
		if err := os.WriteFile(repository("docs", "openapi.json"), []byte(got.body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(repository("docs", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), got.body); diff != "" {
		t.Errorf("docs/openapi.json is not what the server says; run: go test ./server -run TestOpenAPI -update\n%s", diff)
	}
	var doc struct {
		OpenAPI    string `json:"openapi"`
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(got.body), &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("version %q, %v", doc.OpenAPI, err)
	}
	for _, name := range []string{"ErrorModel", "ErrorDetail"} {
		if _, there := doc.Components.Schemas[name]; there || strings.Contains(got.body, "schemas/"+name) {
			t.Errorf("%s is documented and never sent", name)
		}
	}
	if yaml := w.call("", "GET", "/openapi.yaml", "").want(t, 200); !strings.Contains(yaml.body, "openapi: 3.1.0") {
		t.Errorf("yaml: %.200s", yaml.body)
	}
}

// operations lists what is documented.
func operations(s *Server) []*huma.Operation {
	var all []*huma.Operation
	for _, item := range s.Document().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete, item.Head, item.Options, item.Trace} {
			if op != nil {
				all = append(all, op)
			}
		}
	}
	slices.SortFunc(all, func(a, b *huma.Operation) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
	return all
}

// Every route is documented with its roles, or is one of the few that need none.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	open := []string{"DELETE /hooks/{workflow}/{path...}", "GET /callbacks/{token}", "GET /chat/{workflow}", "GET /chat/{workflow}/{path...}", "GET /client-metadata.json", "GET /credentials/authorize", "GET /credentials/authorized", "GET /docs", "GET /forms/{workflow}", "GET /forms/{workflow}/{path...}", "GET /healthz", "GET /hooks/{workflow}/{path...}", "GET /join/{token}", "GET /login", "GET /mcp/authorized", "GET /openapi", "GET /openapi.json", "GET /openapi.yaml", "GET /readyz", "GET /respond/{token}", "GET /run/{workflow}", "GET /{$}", "HEAD /hooks/{workflow}/{path...}", "OPTIONS /hooks/{workflow}/{path...}",
		"PATCH /callbacks/{token}", "PATCH /hooks/{workflow}/{path...}", "POST /callbacks/{token}", "POST /channels/{channel}/{workspace}/{credential}", "POST /chat/{workflow}", "POST /chat/{workflow}/{path...}", "POST /forms/{workflow}", "POST /forms/{workflow}/{path...}", "POST /hooks/{workflow}/{path...}", "POST /join/{token}", "POST /login", "POST /respond/{token}", "POST /run/{workflow}", "PUT /callbacks/{token}", "PUT /hooks/{workflow}/{path...}"}
	registered, free := w.server.Patterns()
	if diff := cmp.Diff(open, slices.Sorted(slices.Values(free))); diff != "" {
		t.Errorf("pages that need no token (-want +got):\n%s", diff)
	}
	want := slices.Clone(open)
	for _, op := range operations(w.server) {
		want = append(want, op.Method+" "+op.Path)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(registered))); diff != "" {
		t.Errorf("documented and registered routes differ (-documented +registered):\n%s", diff)
	}
	for _, pattern := range open {
		if strings.Contains(pattern, "{token}") || strings.Contains(pattern, "{credential}") || strings.Contains(pattern, "{workflow}") {
			continue // known by what is in the path; see TestCallbacks, TestRespond, TestInvitation and TestChannels, and TestTriggers of package app; TestRoutes_Strangers there says of each who may
		}
		if strings.HasPrefix(pattern, "POST ") {
			continue // see TestAudit_Strangers
		}
		path := strings.TrimSuffix(strings.TrimPrefix(pattern, "GET "), "{$}")
		w.call("", "GET", path, "").want(t, 200)
	}
}

func TestRoutes_Denied(t *testing.T) {
	t.Parallel()
	w := setup(t)
	expired := w.join("a", "late", identity.Admin)
	if err := w.stores.Users.Update(t.Context(), identity.System("a"), identity.User{Workspace: "a", ID: "late", Name: "late", Roles: []identity.Role{identity.Admin}, Disabled: true}); err != nil {
		t.Fatal(err)
	}
	all := operations(w.server)
	if len(all) < 30 {
		t.Fatalf("only %d operations; this test would see too little", len(all))
	}
	for _, op := range all {
		path := op.Path
		id := "x"
		if strings.Contains(path, "/tokens") || strings.Contains(path, "/sessions") || strings.HasSuffix(path, "/reach") {
			id = "me" // everybody may see to their own
		}
		for strings.Contains(path, "{") {
			before, rest, _ := strings.Cut(path, "{")
			_, after, _ := strings.Cut(rest, "}")
			path = before + id + after
		}
		name := op.Method + " " + path
		allowed, ok := op.Extensions["x-roles"].([]string)
		if !ok || !slices.Contains(allowed, "admin") {
			t.Errorf("%s: roles %v", name, op.Extensions["x-roles"])
		}
		w.pass(route.WrongWindow) // this is not about how many wrong tokens an address may show; see TestThrottle
		for _, bad := range []string{"", "tdm_nobody", expired} {
			got := w.call(bad, op.Method, path, `{}`)
			if got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with token %.6q: %d %s", name, bad, got.status, got.body)
			}
		}
		for _, role := range identity.Roles() {
			if op.OperationID == "follow-interactions" {
				continue // it is for everybody, and never ends; see TestInteractionStream
			}
			got := w.call(w.tokens[role], op.Method, path, `{}`)
			switch refused := got.status == http.StatusForbidden; {
			case op.OperationID == "create-workspace-token" && refused: // it is taken from the machine alone
			case slices.Contains(allowed, string(role)) && (refused || got.status == http.StatusUnauthorized || got.status >= 500):
				t.Errorf("%s as %s: %d %s", name, role, got.status, got.body)
			case !slices.Contains(allowed, string(role)) && !refused:
				t.Errorf("%s as %s: %d %s, want a refusal", name, role, got.status, got.body)
			}
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	w := setup(t)
	t.Run("Path", func(t *testing.T) {
		t.Parallel()
		w.call("", "GET", "/nowhere", "").problem(t, 404, fault.NotFound)
		w.call("", "GET", route.Prefix+"/nowhere", "").problem(t, 401, fault.Unauthorized)
		w.admin("GET", route.Prefix+"/nowhere", "").problem(t, 404, fault.NotFound)
		got := w.admin("PATCH", route.Prefix+"/users", `{}`)
		got.problem(t, 405, fault.Unsupported)
		if allow := got.header.Get("Allow"); !strings.Contains(allow, "POST") {
			t.Errorf("Allow: %q", allow)
		}
	})
	t.Run("Body", func(t *testing.T) {
		t.Parallel()
		w.admin("POST", route.Prefix+"/users", "").problem(t, 400, fault.InvalidInput)
		w.admin("POST", route.Prefix+"/users", `{"name":`).problem(t, 400, fault.InvalidInput)
		p := w.admin("POST", route.Prefix+"/users", `{"name": 7, "roles": ["viewer"], "surprise": 1}`).problem(t, 422, fault.InvalidInput)
		var paths []string
		for _, e := range p.Errors {
			paths = append(paths, e.Path)
		}
		slices.Sort(paths)
		if !slices.Equal(paths, []string{"name", "surprise"}) {
			t.Errorf("errors %+v", p.Errors)
		}
		got := w.ask(w.tokens[identity.Admin], "POST", route.Prefix+"/users", strings.NewReader("a=b"), func(r *http.Request) { r.Header.Set("Content-Type", "text/csv") })
		got.problem(t, 415, fault.Unsupported)
		// What curl sends unless it is told otherwise.
		w.ask(w.tokens[identity.Admin], "POST", route.Prefix+"/users", strings.NewReader(`{"name":"x","roles":["viewer"]}`), func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}).want(t, 201)
	})
	t.Run("Query", func(t *testing.T) {
		t.Parallel()
		p := w.admin("GET", route.Prefix+"/workflows?pge=2", "").problem(t, 422, fault.InvalidInput)
		if len(p.Errors) != 1 || p.Errors[0].Path != "query.pge" {
			t.Errorf("errors %+v", p.Errors)
		}
	})
	t.Run("Size", func(t *testing.T) {
		t.Parallel()
		large := `{"name":"` + strings.Repeat("x", route.MaxBody) + `","roles":["viewer"]}`
		w.admin("POST", route.Prefix+"/users", large).problem(t, 413, fault.TooLarge)
		// Without a length the server has to read to know.
		w.ask(w.tokens[identity.Admin], "POST", route.Prefix+"/users", struct{ io.Reader }{strings.NewReader(large)}, nil).problem(t, 413, fault.TooLarge)
		exact := `{"name":"x","roles":["viewer"]}`
		exact += strings.Repeat(" ", route.MaxBody-len(exact))
		w.admin("POST", route.Prefix+"/users", exact).want(t, 201)
	})
}

// What only operators may read is sent to nobody else.
func TestProblem_OperatorDetail(t *testing.T) {
	t.Parallel()
	s := setup(t).server
	err := fault.New(fault.Internal, "something inside failed").WithDetail("stack and all")
	for _, role := range identity.Roles() {
		got := s.Problem(t.Context(), identity.Principal{Workspace: "a", Roles: []identity.Role{role}}, err)
		told := got.OperatorDetail != ""
		if want := role == identity.Admin || role == identity.Operator; told != want || got.Status != 500 {
			t.Errorf("%s: %+v", role, got.Fault)
		}
	}
	plain := s.Problem(t.Context(), identity.Principal{}, errors.New("password=hunter2"))
	body, _ := json.Marshal(plain.Fault)
	if plain.Status != 500 || bytes.Contains(body, []byte("hunter2")) {
		t.Errorf("an unknown error is told as %s", body)
	}
}

func TestStatusOf(t *testing.T) {
	t.Parallel()
	for _, code := range fault.Codes() {
		status := route.StatusOf(fault.New(code, "x"), code)
		if (status == 500) != (code == fault.Internal) {
			t.Errorf("%s is %d", code, status)
		}
	}
	s := setup(t).server
	p := s.Problem(t.Context(), identity.Principal{}, fault.New(fault.RateLimited, "slow down").With("retry_after", 7))
	if p.Status != 429 || p.Headers.Get("Retry-After") != "7" {
		t.Errorf("%+v %v", p.Fault, p.Headers)
	}
}

func TestEdge(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.Hosts = []string{"localhost", "127.0.0.1", "::1"} })
	t.Run("Headers", func(t *testing.T) {
		t.Parallel()
		got := w.admin("GET", route.Prefix+"/users", "").want(t, 200)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s: %q", name, got.header.Get(name))
			}
		}
	})
	t.Run("Host", func(t *testing.T) {
		t.Parallel()
		for host, status := range map[string]int{"evil.example": 403, "evil.example:80": 403, "localhost": 200, "LOCALHOST:1": 200, "[::1]:9": 200, "127.0.0.1.evil.example": 403} {
			got := w.ask("", "GET", "/healthz", nil, func(r *http.Request) { r.Host = host })
			if got.status != status {
				t.Errorf("host %q: %d", host, got.status)
			}
		}
	})
	t.Run("OtherSite", func(t *testing.T) {
		t.Parallel()
		for origin, status := range map[string]int{"https://evil.example": 403, "": 422} {
			got := w.ask(w.tokens[identity.Admin], "POST", route.Prefix+"/users", strings.NewReader(`{}`), func(r *http.Request) {
				if origin != "" {
					r.Header.Set("Origin", origin)
				}
			})
			if got.status != status {
				t.Errorf("origin %q: %d %s", origin, got.status, got.body)
			}
		}
	})
}

// A body that is refused before its end must end the connection: what is left of it is not another request.
func TestEdge_LeavesNoBodyBehind(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, authorization := range map[string]string{"TooLarge": "Authorization: Bearer " + w.tokens[identity.Admin] + "\r\n", "NoToken": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", w.http.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				hidden := strings.Repeat("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 1500)
				_, err := fmt.Fprintf(conn, "POST /api/v1/workflows HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", authorization)
				for range route.MaxBody/len(hidden) + 10 {
					if err != nil {
						return // the server has hung up, as it should
					}
					_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(hidden), hidden)
				}
			}()
			answers := bufio.NewReader(conn)
			first, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, first.Body); err != nil {
				t.Fatal(err)
			}
			if first.StatusCode < 400 || !first.Close {
				t.Errorf("status %d, Connection: close %v; want a refusal that ends the connection", first.StatusCode, first.Close)
			}
			if second, err := http.ReadResponse(answers, nil); err == nil {
				t.Errorf("a part of the body was answered as a request: %s", second.Status)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			<-sent
		})
	}
}

func TestEdge_Panic(t *testing.T) {
	t.Parallel()
	w := setup(t)
	// Registered late, which only a test may do.
	w.server.Public("GET /boom", func(http.ResponseWriter, *http.Request) { panic("secret thing") })
	p := w.call("", "GET", "/boom", "").problem(t, 500, fault.Internal)
	if strings.Contains(p.Detail+p.OperatorDetail, "secret") {
		t.Errorf("%+v", p)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	log := &logLines{}
	var draining atomic.Bool
	var lacking atomic.Pointer[error]
	w := setup(t, func(o *Options) {
		o.Log, o.Draining = slog.New(slog.NewTextHandler(log, nil)), draining.Load
		o.Lacking = func(context.Context) error {
			if err := lacking.Load(); err != nil {
				return *err
			}
			return nil
		}
	})
	if got := w.call("", "GET", "/readyz", "").want(t, 200); strings.Contains(got.body, "lacks") {
		t.Errorf("a server that has everything says %s", got.body)
	}
	for _, c := range []struct {
		err  error
		said string
	}{
		{errors.New("/secret/place"), "the operator's log"},
		{fault.New(fault.NotReady, "Temporal is away").WithCause(fmt.Errorf("%w: /secret/place", store.ErrUnavailable)), "Temporal is away"},
	} {
		lacking.Store(&c.err)
		if got := w.call("", "GET", "/readyz", "").want(t, 200); !strings.Contains(got.body, `"lacks":["`+c.said) || strings.Contains(got.body, "secret") {
			t.Errorf("a server that does without something says %s", got.body)
		}
	}
	lacking.Store(nil)
	w.mu.Lock()
	w.ready = errors.New("disk gone")
	w.mu.Unlock()
	got := w.call("", "GET", "/readyz", "").want(t, 503)
	if strings.Contains(got.body, "disk gone") {
		t.Errorf("anybody is told %s", got.body)
	}
	w.mu.Lock()
	w.ready = fault.New(fault.Internal, "the file was removed").WithCause(fmt.Errorf("%w: /secret/place", store.ErrBroken))
	w.mu.Unlock()
	got = w.call("", "GET", "/readyz", "").want(t, 503)
	if !strings.Contains(got.body, "the file was removed") || strings.Contains(got.body, "secret") {
		t.Errorf("anybody is told %s", got.body)
	}
	w.mu.Lock()
	w.ready = fault.New(fault.Internal, "no room at /secret/place").WithCause(store.ErrFull)
	w.mu.Unlock()
	got = w.call("", "GET", "/readyz", "").want(t, 503)
	if !strings.Contains(got.body, "the disk of the database is full") || strings.Contains(got.body, "secret") {
		t.Errorf("anybody is told %s", got.body)
	}
	w.call("", "GET", "/healthz", "").want(t, 200)
	draining.Store(true)
	got = w.call("", "GET", "/readyz", "").want(t, 503)
	if !strings.Contains(got.body, "draining") || !strings.Contains(got.body, `"not_ready"`) {
		t.Errorf("a server that stops says %s", got.body)
	}
	if said := log.String(); strings.Contains(said, "level=ERROR") {
		t.Errorf("an instance that is not ready is not an error of a request: %s", said)
	}
}

// The page must work where there is no network.
func TestDocs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, path := range []string{"/openapi", "/docs", "/"} {
		got := w.call("", "GET", path, "").want(t, 200)
		for _, foreign := range []string{"<script", "<link", "src=", "@import", "url("} {
			if strings.Contains(got.body, foreign) {
				t.Errorf("%s has %q", path, foreign)
			}
		}
		if csp := got.header.Get("Content-Security-Policy"); !strings.Contains(csp, "style-src 'sha256-") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %q", path, csp)
		}
	}
	page := w.call("", "GET", "/openapi", "").body
	for _, op := range operations(w.server) {
		if !strings.Contains(page, `id="op-`+op.OperationID+`"`) || !strings.Contains(page, "Roles: ") {
			t.Errorf("%s is not on the page", op.OperationID)
		}
	}
	// Its samples call the server under the address at which somebody reads them.
	for address, proto := range map[string]string{"http://flows.example:8443": "", "https://flows.example": "https"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/openapi", nil)
		r.Host = strings.TrimPrefix(strings.TrimPrefix(address, "http://"), "https://")
		r.Header.Set("X-Forwarded-Proto", proto)
		rec := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(rec, r)
		if body := rec.Body.String(); strings.Contains(body, route.SampleAddress) || !strings.Contains(body, address+"/api/v1/workflows") {
			t.Errorf("asked at %s the samples call something else (%d)", address, rec.Code)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.admin("GET", route.Prefix+"/users/nobody", "").want(t, 404)
	w.call("", "BREW", "/x/y", "").want(t, 404)
	def := `{"metadata":{"id":"m","name":"m","description":"d"},"nodes":[{"id":"start","name":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"},{"id":"next","name":"next","description":"d","type":"CALL","subtype":"EMPTY"}],"connections":[{"from_node":"start","to_node":"next"}]}`
	w.admin("POST", route.Prefix+"/workflows", def).want(t, 201)
	w.admin("POST", route.Prefix+"/workflows/m/execute", `{"wait_seconds": 30}`)
	text := w.call(w.tokens[identity.Viewer], "GET", "/metrics", "").want(t, 200).body
	for _, line := range []string{
		`tandem_http_request_duration_seconds_count{code="404",method="GET",route="/api/v1/users/{id}"} 1`,
		`tandem_http_request_duration_seconds_count{code="404",method="other",route="none"} 1`,
		`tandem_executions_started_total 1`,
		`tandem_executions_ended_total{status="SUCCESS"} 1`,
		`tandem_activations_total{kind="CALL.EMPTY",outcome="completed"} 1`,
		`tandem_activations_total{kind="TRIGGER.MANUAL",outcome="completed"} 1`,
		`tandem_executions{status="RUNNING"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, grep(text, "tandem_"))
		}
	}
	if strings.Contains(text, "nobody") {
		t.Error("an id of a request is a label")
	}
}

func grep(text, word string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, word) && !strings.Contains(line, "_bucket") {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

func TestTokens_Expire(t *testing.T) {
	t.Parallel()
	w := setup(t)
	made := w.admin("POST", route.Prefix+"/users/me/tokens", `{"name":"short","expires_in":60}`).want(t, 201)
	var secret struct {
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal([]byte(made.body), &secret); err != nil {
		t.Fatal(err)
	}
	w.call(secret.Secret, "GET", route.Prefix+"/users/me", "").want(t, 200)
	w.pass(61 * time.Second)
	w.call(secret.Secret, "GET", route.Prefix+"/users/me", "").problem(t, 401, fault.Unauthorized)
}
