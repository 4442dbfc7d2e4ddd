package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"tandem/fault"
	"tandem/store"
)

func mcpServer(id string) store.MCPServer {
	return store.MCPServer{
		ID: id, Name: "n " + id, Description: "d", Transport: store.MCPStdio, Command: "run", Args: []string{"-x", "a b"}, Dir: "/srv",
		Env:            map[string]store.MCPValue{"A": {Text: "1"}, "KEY": {Credential: "c", Field: "token", Prefix: "p "}},
		TimeoutSeconds: 7, IdleSeconds: 8, Enabled: true, Created: 1, Updated: 2,
	}
}

func testMCPServers(t *testing.T, s store.Stores) {
	p := tenant(t)
	stdio := mcpServer("b")
	http := store.MCPServer{ID: "a", Transport: store.MCPHTTP, URL: "https://example.com/mcp", Credential: "c",
		Headers: map[string]store.MCPValue{"X-Key": {Credential: "c", Field: "value"}}, Created: 1, Updated: 1}
	ok(t, s.MCPServers.Put(t.Context(), p, stdio))
	ok(t, s.MCPServers.Put(t.Context(), p, http))
	got, err := s.MCPServers.Get(t.Context(), p, "b")
	ok(t, err)
	stdio.Workspace = p.Workspace
	equal(t, "a process", stdio, got)
	list, err := s.MCPServers.List(t.Context(), p)
	ok(t, err)
	http.Workspace, http.Name, http.TimeoutSeconds, http.IdleSeconds, http.Args = p.Workspace, "a", 60, 300, []string{}
	equal(t, "all", []store.MCPServer{http, stdio}, list)

	changed := mcpServer("b")
	changed.Command, changed.Env, changed.Enabled, changed.Created, changed.Updated = "other", nil, false, 9, 9
	ok(t, s.MCPServers.Put(t.Context(), p, changed))
	got, err = s.MCPServers.Get(t.Context(), p, "b")
	ok(t, err)
	changed.Workspace, changed.Created = p.Workspace, 1
	equal(t, "replaced", changed, got)

	for name, bad := range map[string]func(*store.MCPServer){
		"a slash":       func(s *store.MCPServer) { s.ID = "a/b" },
		"no command":    func(s *store.MCPServer) { s.Command = "" },
		"transport":     func(s *store.MCPServer) { s.Transport = "smoke" },
		"a url as well": func(s *store.MCPServer) { s.URL = "https://example.com" },
		"a variable":    func(s *store.MCPServer) { s.Env = map[string]store.MCPValue{"A=B": {Text: "1"}} },
		"timeout":       func(s *store.MCPServer) { s.TimeoutSeconds = 601 },
		"no address": func(s *store.MCPServer) {
			s.Transport, s.Command, s.Args, s.Dir, s.Env = store.MCPHTTP, "", nil, "", nil
		},
		"another's header": func(s *store.MCPServer) {
			*s = http
			s.Headers = map[string]store.MCPValue{"mcp-session-id": {Text: "x"}}
		},
		"a broken header": func(s *store.MCPServer) { *s = http; s.Headers = map[string]store.MCPValue{"X": {Text: "a\r\nB: c"}} },
	} {
		server := mcpServer("bad")
		bad(&server)
		if err := s.MCPServers.Put(t.Context(), p, server); fault.From(err).Code != fault.Invalid {
			t.Errorf("%s was not refused: %v", name, err)
		}
	}
	for _, err := range []error{
		s.MCPServers.Delete(t.Context(), tenant(t), "b"),
		s.MCPServers.Delete(t.Context(), p, "none"),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
}

func testMCPActivations(t *testing.T, s store.Stores) {
	p := tenant(t)
	pin := func(text string) store.MCPPin {
		return store.MCPPin{Definition: []byte(`"` + text + `"`), Hash: "h-" + text}
	}
	activation := func(server, user string) store.MCPActivation {
		return store.MCPActivation{Server: server, User: user, Tools: map[string]store.MCPPin{"x": pin("x"), "y": pin("y")}, Activated: 3,
			AcceptedBy: user, TokenMadeBy: "mallory", Accepted: 3}
	}
	if err := s.MCPServers.Activate(t.Context(), p, activation("a", "ann"), store.MCPDecided{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a server that is not there was activated: %v", err)
	}
	for _, id := range []string{"a", "b"} {
		ok(t, s.MCPServers.Put(t.Context(), p, mcpServer(id)))
		for _, user := range []string{"bob", "ann"} {
			ok(t, s.MCPServers.Activate(t.Context(), p, activation(id, user), store.MCPDecided{}))
		}
	}
	got, err := s.MCPServers.Activation(t.Context(), p, "a", "ann")
	ok(t, err)
	want := activation("a", "ann")
	want.Workspace = p.Workspace
	equal(t, "activation", want, got)

	repinned, err := s.MCPServers.Repin(t.Context(), p,
		store.MCPRepin{Server: "a", User: "ann", AcceptedBy: "eve", TokenMadeBy: "oscar", Accepted: 9,
			Tools: map[string]*store.MCPPin{"x": nil, "z": {Definition: []byte(`"z"`), Hash: "h-z"}}})
	ok(t, err)
	want.Tools, want.AcceptedBy, want.TokenMadeBy, want.Accepted = map[string]store.MCPPin{"y": pin("y"), "z": pin("z")}, "eve", "oscar", 9
	equal(t, "repinned", want, repinned)
	got, err = s.MCPServers.Activation(t.Context(), p, "a", "ann")
	ok(t, err)
	equal(t, "kept", want, got)
	// Those who accept different tools at the same time do not undo each other.
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			name := fmt.Sprint("t", i)
			if _, err := s.MCPServers.Repin(t.Context(), p, store.MCPRepin{Server: "b", User: "bob", AcceptedBy: "bob",
				Tools: map[string]*store.MCPPin{name: {Definition: []byte(`1`), Hash: name}}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err = s.MCPServers.Activation(t.Context(), p, "b", "bob")
	ok(t, err)
	equal(t, "tools of all", 22, len(got.Tools))
	if _, err := s.MCPServers.Repin(t.Context(), p, store.MCPRepin{Server: "a", User: "nobody"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := s.MCPServers.Activate(t.Context(), p, store.MCPActivation{Server: "a", User: "ann", Tools: map[string]store.MCPPin{"x": {}}},
		store.MCPDecided{}); err == nil {
		t.Error("a pin without a hash was kept")
	}

	named := func(server, user string) (names []string) {
		list, err := s.MCPServers.Activations(t.Context(), p, server, user)
		ok(t, err)
		for _, a := range list {
			names = append(names, a.Server+" "+a.User)
		}
		return names
	}
	equal(t, "all", []string{"a ann", "a bob", "b ann", "b bob"}, named("", ""))
	equal(t, "of a server", []string{"a ann", "a bob"}, named("a", ""))
	equal(t, "of a user", []string{"a bob", "b bob"}, named("", "bob"))
	ok(t, s.MCPServers.Deactivate(t.Context(), p, "a", "bob"))
	if err := s.MCPServers.Deactivate(t.Context(), p, "a", "bob"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	// What was pinned for a server that is gone does not come back with another of its name.
	ok(t, s.MCPServers.Delete(t.Context(), p, "b"))
	equal(t, "left", []string{"a ann"}, named("", ""))
	ok(t, s.MCPServers.Put(t.Context(), p, mcpServer("b")))
	if _, err := s.MCPServers.Activation(t.Context(), p, "b", "ann"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
