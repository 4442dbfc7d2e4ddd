package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// TestMain is also the main of the servers that tests start: the variable says which.
func TestMain(m *testing.M) {
	if mode := os.Getenv("TANDEM_TEST_SERVER"); mode != "" {
		serve(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// rows is a store of servers in memory.
type rows struct {
	mu          sync.Mutex
	servers     map[string]store.MCPServer
	activations map[string]store.MCPActivation
	policies    []store.MCPPolicy
	records     []store.MCPAcceptance
}

func (r *rows) SetPolicies(_ context.Context, _ identity.Principal, list ...store.MCPPolicy) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policies = append(r.policies, list...)
	return nil
}

func (r *rows) Policies(_ context.Context, _ identity.Principal, server, tool, user string) (list []store.MCPPolicy, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.policies {
		if p.Server == server && (tool == "" || p.Tool == tool) && (p.User == "" || p.User == user) {
			list = append(list, p)
		}
	}
	return list, nil
}

func (r *rows) ForgetPolicies(context.Context, identity.Principal, string) error {
	return errors.ErrUnsupported
}

func (r *rows) Acceptances(context.Context, identity.Principal, string, string, int) ([]store.MCPAcceptance, error) {
	return nil, errors.ErrUnsupported
}

func (r *rows) Put(_ context.Context, _ identity.Principal, s store.MCPServer) error {
	s = s.WithDefaults()
	if err := s.Check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.servers == nil {
		r.servers, r.activations = map[string]store.MCPServer{}, map[string]store.MCPActivation{}
	}
	r.servers[s.ID] = s
	return nil
}

func (r *rows) Get(_ context.Context, _ identity.Principal, id string) (store.MCPServer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.servers[id]
	if !ok {
		return s, store.ErrNotFound
	}
	return s, nil
}

func (r *rows) List(context.Context, identity.Principal) ([]store.MCPServer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.servers)), nil
}

func (r *rows) Delete(_ context.Context, _ identity.Principal, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.servers, id)
	return nil
}

func (r *rows) Activate(_ context.Context, _ identity.Principal, a store.MCPActivation, d store.MCPDecided) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records, r.policies = append(r.records, d.Records...), append(r.policies, d.Policies...)
	r.activations[a.Server+" "+a.User] = a
	return nil
}

func (r *rows) Deactivate(_ context.Context, _ identity.Principal, server, user string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.activations, server+" "+user)
	return nil
}

func (r *rows) Activation(_ context.Context, _ identity.Principal, server, user string) (store.MCPActivation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.activations[server+" "+user]
	if !ok {
		return a, store.ErrNotFound
	}
	return a, nil
}

func (r *rows) Activations(context.Context, identity.Principal, string, string) ([]store.MCPActivation, error) {
	return nil, errors.ErrUnsupported
}

func (r *rows) Repin(_ context.Context, _ identity.Principal, c store.MCPRepin) (store.MCPActivation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, c.Decided.Records...)
	a := r.activations[c.Server+" "+c.User]
	a.Tools = maps.Clone(a.Tools)
	for name, pin := range c.Tools {
		if pin == nil {
			delete(a.Tools, name)
		} else {
			a.Tools[name] = *pin
		}
	}
	r.activations[c.Server+" "+c.User] = a
	return a, nil
}

// secrets are fields of credentials, "id.field" to text.
type secrets struct {
	mu    sync.Mutex
	texts map[string]string
	held  int
	// changes counts how often a credential was changed; one that was deleted has less than none.
	changes map[string]int
}

func (s *secrets) Version(_ context.Context, _ identity.Principal, credential string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes[credential] < 0 {
		return "", fault.Newf(fault.CredentialMissing, "there is no credential %q", credential)
	}
	return fmt.Sprint(credential, " ", s.changes[credential]), nil
}

// change changes a text of a credential, as another process does.
func (s *secrets) change(credential, field, text string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts[credential+"."+field], s.changes = text, map[string]int{credential: times}
}

func (s *secrets) Secret(_ context.Context, _ identity.Principal, credential, field string) (string, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.texts[credential+"."+field]
	if !ok {
		return "", nil, fmt.Errorf("there is no credential %q", credential)
	}
	s.held++
	return text, func() {
		s.mu.Lock()
		s.held--
		s.mu.Unlock()
	}, nil
}

// logged collects what is logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// world is a pool with what is around it.
type world struct {
	*Pool
	rows    *rows
	secrets *secrets
	log     *logged
	changed chan Key
	dir     string
}

func ann() identity.Principal { return identity.Principal{Workspace: "w", User: "ann"} }

func setup(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	w := &world{rows: &rows{}, secrets: &secrets{texts: map[string]string{"c.token": "s3cret-value"}}, log: &logged{}, changed: make(chan Key, 100), dir: t.TempDir()}
	o := Options{
		Servers: w.rows, Secrets: w.secrets, HTTP: &http.Client{Transport: &http.Transport{}}, Log: slog.New(slog.NewTextHandler(w.log, nil)),
		Redact:       func(_, text string) string { return strings.ReplaceAll(text, "s3cret-value", "[redacted]") },
		ToolsChanged: func(k Key) { w.changed <- k },
	}
	for _, f := range change {
		f(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Pool = p
	t.Cleanup(func() {
		p.Close()
		o.HTTP.CloseIdleConnections()
		if w.secrets.held != 0 {
			t.Errorf("%d secrets are still held", w.secrets.held)
		}
	})
	return w
}

// own registers a server that this binary is, in a mode, and activates it.
func (w *world) own(t testing.TB, id, mode string, change ...func(*store.MCPServer)) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := store.MCPServer{ID: id, Transport: store.MCPStdio, Command: self, Enabled: true,
		Env: map[string]store.MCPValue{"TANDEM_TEST_SERVER": {Text: mode}, "NOTES": {Text: w.notes()}}}
	for _, f := range change {
		f(&s)
	}
	w.put(t, s)
}

func (w *world) put(t testing.TB, s store.MCPServer) {
	t.Helper()
	if err := w.rows.Put(t.Context(), ann(), s); err != nil {
		t.Fatal(err)
	}
}

func (w *world) activate(t testing.TB, server string) {
	t.Helper()
	if _, err := w.Activate(t.Context(), ann(), server, Activation{}); err != nil {
		t.Fatalf("activate: %v (cause %v)\n%s", err, errors.Unwrap(err), w.log)
	}
}

// notes is a file that servers write to: what they did.
func (w *world) notes() string { return filepath.Join(w.dir, "notes") }

func (w *world) noted(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(w.notes())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

func (w *world) call(t testing.TB, server, tool, args string) (Output, error) {
	t.Helper()
	return w.Call(t.Context(), ann(), Call{Server: server, Tool: tool, Arguments: json.RawMessage(args)})
}

func (w *world) must(t testing.TB, server, tool, args string) Output {
	t.Helper()
	out, err := w.call(t, server, tool, args)
	if err != nil {
		t.Fatalf("call %s: %v (cause %v)\n%s", tool, err, errors.Unwrap(err), w.log)
	}
	return out
}

// kindOf returns the error of a kind, and fails when it is of another.
func kindOf(t testing.TB, err error, want Kind) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != want {
		t.Fatalf("got %v, want kind %s", err, want)
	}
	return e
}
