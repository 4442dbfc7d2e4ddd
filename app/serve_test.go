package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/identity"
	"tandem/store/sqlite/sqlitetest"
)

// served is a server under test.
type served struct {
	Serving
	t     *testing.T
	token string
	stop  context.CancelFunc
	ended chan error
}

// startServer serves a directory on a port that is free, until the test ends or stopAndWait.
func startServer(t *testing.T, o ServeOptions) *served {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &served{t: t, token: o.Token, stop: stop, ended: make(chan error, 1)}
	started := make(chan Serving, 1)
	o.Addr, o.Version, o.crowded, o.Started = "127.0.0.1:0", "test", true, func(v Serving) { started <- v }
	go func() { s.ended <- Serve(ctx, o) }() // it ends with ctx
	t.Cleanup(stop)
	select {
	case s.Serving = <-started:
		if s.token == "" {
			s.token = s.Secret
		}
	case err := <-s.ended:
		t.Fatalf("the server did not start: %v", err)
	case <-time.After(patient):
		t.Fatal("the server did not start")
	}
	return s
}

func (s *served) stopAndWait() {
	s.t.Helper()
	s.stop()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Fatalf("the server ended with %v", err)
		}
	case <-time.After(patient):
		s.t.Fatal("the server did not end")
	}
}

func (s *served) open(ctx context.Context, token, method, path, body string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

func (s *served) call(token, method, path, body string) (int, string) {
	s.t.Helper()
	ctx := s.t.Context()
	if deadline, ok := s.t.Deadline(); ok { // what hangs fails in time to clear away what the test has set up
		within, cancel := context.WithDeadline(ctx, deadline.Add(-10*time.Second))
		defer cancel()
		ctx = within
	}
	res := s.open(ctx, token, method, path, body)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// want calls with the server's token and returns the answer as an object.
func (s *served) want(status int, method, path, body string) map[string]any {
	s.t.Helper()
	got, text := s.call(s.token, method, path, body)
	if got != status {
		s.t.Fatalf("%s %s: %d, want %d: %s", method, path, got, status, text)
	}
	var v map[string]any
	if text != "" {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			s.t.Fatal(err)
		}
	}
	return v
}

const napFlow = `{"metadata":{"id":"nap","name":"nap","description":"d"},"nodes":[
	{"id":"start","name":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"},
	{"id":"nap","name":"nap","description":"d","type":"FLOW","subtype":"DELAY","configurations":{"duration_seconds":SECONDS}},
	{"id":"end","name":"end","description":"d","type":"CALL","subtype":"EMPTY"}],
	"connections":[{"from_node":"start","to_node":"nap"},{"from_node":"nap","to_node":"end"}]}`

func TestServe_FirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, ServeOptions{Dir: dir, Workflows: filepath.Join("..", "examples")})
	if !strings.HasPrefix(s.Secret, "tdm_") || !slices.Contains(s.Workflows, "parcels") {
		t.Fatalf("serving %+v", s.Serving)
	}
	me := s.want(200, "GET", "/api/v1/users/me", "")
	if me["id"] != "admin" || me["workspace"] != "default" {
		t.Errorf("me %v", me)
	}
	e := s.want(200, "POST", "/api/v1/workflows/parcels/execute", `{"inputs":{"parcels":[{"id":"p1","kg":2}]},"wait_seconds":30}`)
	if e["status"] != "SUCCESS" {
		t.Errorf("execution %v", e)
	}
	s.stopAndWait()

	again := startServer(t, ServeOptions{Dir: dir})
	if again.Secret != "" {
		t.Error("the second start made a token")
	}
	if status, text := again.call(s.Secret, "GET", "/api/v1/users/me", ""); status != 200 {
		t.Errorf("the first token after a restart: %d %s", status, text)
	}
	again.stopAndWait()
}

// What waits when the server stops goes on with the next one.
func TestServe_GoesOn(t *testing.T) {
	t.Parallel()
	o := ServeOptions{Dir: sqlitetest.Dir(t), Token: "tdm_of_the_tests_0123456789"}
	s := startServer(t, o)
	s.want(201, "POST", "/api/v1/workflows", strings.Replace(napFlow, "SECONDS", "1", 1))
	e := s.want(202, "POST", "/api/v1/workflows/nap/execute", `{}`)
	s.stopAndWait()
	s = startServer(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	res := s.open(ctx, s.token, "GET", "/api/v1/executions/"+e["execution_id"].(string)+"/events", "")
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body) // the stream ends with the execution
	if err != nil || !strings.Contains(string(text), "event: execution_completed") {
		t.Fatalf("%v in\n%s", err, text)
	}
	s.stopAndWait()
}

// A reader that would stay for ever does not keep the server from stopping.
func TestServe_ClosesStreams(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServeOptions{Dir: sqlitetest.Dir(t)})
	s.want(201, "POST", "/api/v1/workflows", strings.Replace(napFlow, "SECONDS", "3600", 1))
	e := s.want(202, "POST", "/api/v1/workflows/nap/execute", `{}`)
	res := s.open(t.Context(), s.token, "GET", "/api/v1/executions/"+e["execution_id"].(string)+"/events", "")
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "execution_started") {
	}
	began := time.Now()
	s.stopAndWait()
	for lines.Scan() { // until it is closed
	}
	if took := time.Since(began); took > shutdownTimeout {
		t.Errorf("stopping took %s", took)
	}
}

func TestServe_ConfiguredToken(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	check := func(s *served, want map[string]int) {
		t.Helper()
		for token, status := range want {
			if got, _ := s.call(token, "GET", "/api/v1/users/me", ""); got != status {
				t.Errorf("token %q: %d, want %d", token, got, status)
			}
		}
		s.stopAndWait()
	}
	check(startServer(t, ServeOptions{Dir: dir, Token: "first-7Rk2-ticket-4Wq8"}), map[string]int{"first-7Rk2-ticket-4Wq8": 200, "second-7Rk2-ticket-4Wq8": 401})
	check(startServer(t, ServeOptions{Dir: dir, Token: "first-7Rk2-ticket-4Wq8"}), map[string]int{"first-7Rk2-ticket-4Wq8": 200})
	check(startServer(t, ServeOptions{Dir: dir, Token: "second-7Rk2-ticket-4Wq8"}), map[string]int{"first-7Rk2-ticket-4Wq8": 401, "second-7Rk2-ticket-4Wq8": 200})
	// Without one, none that was configured works, and there is a new way in.
	s := startServer(t, ServeOptions{Dir: dir})
	check(s, map[string]int{"second-7Rk2-ticket-4Wq8": 401, s.Secret: 200})
}

func TestServe_Refuses(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	s := startServer(t, ServeOptions{Dir: dir})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "bad.yaml"), []byte("nodes: [{id: x, type: NO, subtype: KIND}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    ServeOptions
		want string
	}{
		"PortInUse":        {ServeOptions{Addr: strings.TrimPrefix(s.URL, "http://"), Dir: t.TempDir()}, "in use; stop what listens there"},
		"SecondProcess":    {ServeOptions{Dir: dir}, "is in use by"},
		"NoDirectory":      {ServeOptions{Dir: filepath.Join(file, "x")}, "not a directory"},
		"NoAddress":        {ServeOptions{Addr: "nonsense", Dir: t.TempDir()}, "host:port"},
		"ShortToken":       {ServeOptions{Dir: t.TempDir(), Token: "abc"}, "shorter than 16 characters, so it can be guessed; make one with: openssl rand"},
		"GuessableToken":   {ServeOptions{Dir: t.TempDir(), Token: "my-secret-token-123456"}, "openssl rand"},
		"WrongKey":         {ServeOptions{Dir: sqlitetest.Dir(t), MasterKey: "abc"}, "master key 1"},
		"WrongWorkflow":    {ServeOptions{Dir: sqlitetest.Dir(t), Workflows: broken}, "bad.yaml"},
		"NoWorkflows":      {ServeOptions{Dir: sqlitetest.Dir(t), Workflows: filepath.Join(broken, "x")}, "cannot be read"},
		"WrongTraceTarget": {ServeOptions{Dir: sqlitetest.Dir(t), Traces: "nonsense"}, "http://localhost:4318"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.o.Addr == "" {
				c.o.Addr = "127.0.0.1:0"
			}
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			defer cancel()
			c.o.Started = func(Serving) { t.Error("it started"); cancel() }
			if err := Serve(ctx, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	s.stopAndWait()
}

// Without the key that sealed the credentials nothing may start with a new one.
func TestServe_MissingKey(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	s := startServer(t, ServeOptions{Dir: dir})
	s.want(201, "POST", "/api/v1/credentials", `{"name":"c","type":"slack_bot","data":{"token":"x-secret"}}`)
	s.stopAndWait()
	if err := os.Remove(filepath.Join(dir, credential.KeyFile)); err != nil {
		t.Fatal(err)
	}
	err := Serve(t.Context(), ServeOptions{Addr: "127.0.0.1:0", Dir: dir, Started: func(Serving) { t.Error("it started") }})
	if fault.CodeOf(err) != fault.CredentialInvalid || !strings.Contains(err.Error(), credential.KeyFile) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, credential.KeyFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a new key was made: %v", err)
	}
}

func TestServe_Host(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "127.8.8.8:1": true, "0.0.0.0:1": false, "10.1.2.3:1": false} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if hosts := hostsOf(tcp, "https://public.example"); (len(hosts) > 0 && slices.Contains(hosts, "public.example")) != want || (len(hosts) > 0) != want {
			t.Errorf("%s: %v", addr, hosts)
		}
	}
	if got := reachable(&net.TCPAddr{IP: net.IPv4zero, Port: 80}); got != "localhost:80" {
		t.Errorf("reachable %q", got)
	}
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, p := t.Context(), identity.System(defaultWorkspace)
	secret, err := i.Bootstrap(ctx, "")
	if err != nil || secret == "" {
		t.Fatalf("secret %q, %v", secret, err)
	}
	who := func(secret string) (identity.User, error) {
		_, u, err := i.stores.Tokens.Resolve(ctx, identity.System(""), identity.HashSecret(secret), time.Now().UnixMilli())
		return u, err
	}
	if u, err := who(secret); err != nil || u.ID != "admin" || !slices.Equal(u.Roles, []identity.Role{identity.Admin}) {
		t.Errorf("user %+v, %v", u, err)
	}
	if again, err := i.Bootstrap(ctx, ""); again != "" || err != nil {
		t.Errorf("a second time: %q, %v", again, err)
	}
	// A configured token works although its user was disabled.
	u, err := who(secret)
	if err != nil {
		t.Fatal(err)
	}
	u.Disabled, u.Roles = true, []identity.Role{identity.Viewer}
	if err := i.stores.Users.Update(ctx, p, u); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Bootstrap(ctx, "configured-one-7Rk2"); err != nil {
		t.Fatal(err)
	}
	if u, err := who("configured-one-7Rk2"); err != nil || u.ID != "admin" || !slices.Contains(u.Roles, identity.Admin) {
		t.Errorf("user %+v, %v", u, err)
	}
	// A token of somebody else cannot be configured.
	if err := i.stores.Users.Create(ctx, p, identity.User{Workspace: defaultWorkspace, ID: "ann", Name: "Ann", Roles: []identity.Role{identity.Viewer}}); err != nil {
		t.Fatal(err)
	}
	if err := i.stores.Tokens.Create(ctx, p, identity.Token{Workspace: defaultWorkspace, ID: "t", User: "ann"}, identity.HashSecret("anns-own-4Wq8-ticket")); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Bootstrap(ctx, "anns-own-4Wq8-ticket"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("error %v", err)
	}
	// One that the first user has made otherwise can.
	if _, err := i.Bootstrap(ctx, secret); err != nil {
		t.Error(err)
	}
	if _, err := who("configured-one-7Rk2"); err == nil {
		t.Error("the token that is no longer configured works")
	}
}

// TestServe_PeerURL refuses an address that others cannot use, before anything is opened, and does not repeat it.
func TestServe_PeerURL(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"10.0.0.5:8080", "ftp://hunter2", "http://:8080", "http://u:hunter2@10.0.0.5", "http://10.0.0.5?token=hunter2", "http://u:hunter2@10.0.0.5:port", "http:hunter2", "http://10.0.0.5/#hunter2"} {
		err := Serve(t.Context(), ServeOptions{Addr: "127.0.0.1:0", Dir: t.TempDir(), PeerURL: text, Started: func(Serving) { t.Errorf("%q: it started", text) }})
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "--peer-url") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "http://10.0.0.5:8080", "https://tandem.example.com/", "http://[::1]:8080"} {
		if err := checkPeerURL(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
