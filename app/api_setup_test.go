package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/outbound"
	"tandem/server"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
	"tandem/vault"
	"tandem/workflow"
)

// site is a real instance with the API in front of it, as a client sees it.
type site struct {
	*Instance
	url string
	api *server.Server
	// tokens are secrets by user: one user per role in the workspace "default", and "stranger", an admin of another one.
	tokens map[string]string
}

// openSite opens one in a directory of its own. The options of its server may be changed.
func openSite(t testing.TB, change ...func(*server.Options)) *site {
	t.Helper()
	return openSiteAs(t, func(*Options, string) {}, change...)
}

// openSiteAs is openSite with other options of the instance, which may need to know where it is reached.
func openSiteAs(t testing.TB, as func(o *Options, url string), change ...func(*server.Options)) *site {
	t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(nil)
	options := Options{Dir: sqlitetest.Dir(t), HTTPAllow: allow, CodeCache: codeCache()}
	as(&options, "http://"+web.Listener.Addr().String())
	i, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := i.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	o := server.Options{
		Stores: i.stores, Host: i.host, Source: i.source, Hub: i.hub, Kinds: i.kinds, Registry: &i.registry, Accounts: &vault.Accounts{Vault: i.vault, Users: i.stores.Users, Public: i.tools.PublicURL()}, CredentialTypes: i.parts.Credentials, Keyring: keys, Raise: i.RaiseBudget, Desk: i.desk, Triggers: i.triggers, Models: i, Tools: i.tools, Limits: i.limits, Version: "test",
		Check: func(data []byte) (*workflow.Definition, []workflow.Problem) {
			source, problems := i.check(data)
			if source == nil || workflow.HasErrors(problems) {
				return nil, problems
			}
			return source.Definition, problems
		},
		Revisions: i.revisions, PublicURL: options.PublicURL, Credentials: i.vault.Opener, Import: i.Import,
		Ready: func() error { return nil },
	}
	for _, f := range change {
		f(&o)
	}
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = s.Handler()
	web.Start()
	x := &site{Instance: i, url: web.URL + "/api/v1", api: s, tokens: map[string]string{}}
	t.Cleanup(func() { // what stands in here is kept until all tests have ended, so it lets go of the instance and the API
		web.Close()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		x.Instance, x.api, web.Config.Handler = nil, nil, nil
	})
	for _, id := range []string{"default", "other"} {
		if err := i.stores.Workspaces.Create(t.Context(), identity.System(""), identity.Workspace{ID: id, Name: id, Created: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range identity.Roles() {
		x.addUser(t, "default", string(role), role)
	}
	x.addUser(t, "other", "stranger", identity.Admin)
	return x
}

func (x *site) addUser(t testing.TB, workspace, id string, roles ...identity.Role) {
	t.Helper()
	p, secret := identity.System(workspace), identity.NewSecret()
	if err := x.stores.Users.Create(t.Context(), p, identity.User{Workspace: workspace, ID: id, Name: id, Roles: roles, Created: 1}); err != nil {
		t.Fatal(err)
	}
	if err := x.stores.Tokens.Create(t.Context(), p, identity.Token{Workspace: workspace, ID: "tok_" + id, User: id, Name: id, Created: 1}, identity.HashSecret(secret)); err != nil {
		t.Fatal(err)
	}
	x.tokens[id] = secret
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// call sends a request as a user, as an editor when none is named. Body is text, bytes or a value that is sent as JSON; headers are
// pairs.
func (x *site) call(t testing.TB, user, method, path string, body any, headers ...string) answer {
	t.Helper()
	var content io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
		if !strings.HasPrefix(strings.TrimSpace(b), "{") {
			kind = "application/yaml"
		}
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, x.url+path, content)
	if err != nil {
		t.Fatal(err)
	}
	if content != nil {
		r.Header.Set("Content-Type", kind)
	}
	r.Header.Set("Authorization", "Bearer "+x.tokens[user])
	for n := 0; n+1 < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, raw}
}

// want checks the status and reads the body.
func want[T any](t testing.TB, a answer, status int) T {
	t.Helper()
	var v T
	if a.status != status {
		t.Fatalf("answer %d %s; want %d", a.status, a.body, status)
	}
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &v); err != nil {
			t.Fatalf("body %s: %v", a.body, err)
		}
	}
	return v
}

// refused checks that a request was refused with a code, and returns the problem.
func refused(t testing.TB, a answer, status int, code string) api.Fault {
	t.Helper()
	f := want[api.Fault](t, a, status)
	if f.Code != code || f.Status != status || f.Detail == "" || strings.Contains(string(a.body), `"Headers"`) || a.header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("problem %s (%s); want the code %q", a.body, a.header.Get("Content-Type"), code)
	}
	return f
}

// fields are the paths that a problem names.
func fields(f api.Fault) []string {
	var paths []string
	for _, e := range f.Errors {
		paths = append(paths, e.Path)
	}
	return paths
}

// save keeps a workflow as the editor.
func (x *site) save(t testing.TB, text string) api.Saved {
	t.Helper()
	return want[api.Saved](t, x.call(t, "editor", "POST", "/workflows", text), http.StatusCreated)
}

// execute starts an execution as the operator. If that is to wait, the execution has ended, however long it took.
func (x *site) execute(t testing.TB, id string, r api.ExecuteRequest) string {
	t.Helper()
	return x.started(t, id, r).ExecutionID
}

// started is what the start of an execution is answered with.
func (x *site) started(t testing.TB, id string, r api.ExecuteRequest) api.ExecuteResponse {
	t.Helper()
	a := x.call(t, "operator", "POST", "/workflows/"+id+"/execute", r)
	if r.WaitSeconds == 0 || a.status != http.StatusAccepted {
		return want[api.ExecuteResponse](t, a, map[bool]int{true: http.StatusAccepted, false: http.StatusOK}[r.WaitSeconds == 0])
	}
	begun := want[api.ExecuteResponse](t, a, http.StatusAccepted)
	x.awaits(t, begun.ExecutionID, "end", engine.Status.Final)
	return begun
}

// read reads an execution as the viewer.
func (x *site) read(t testing.TB, id string) api.Execution {
	t.Helper()
	return want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+id, nil), http.StatusOK).Execution
}

// act does something to an execution as the operator.
func (x *site) act(t testing.TB, id string, r api.ActionRequest) answer {
	t.Helper()
	return x.call(t, "operator", "POST", "/executions/"+id+"/actions", r)
}

// reaches waits until an execution has a status; one that is not there yet may come.
func (x *site) reaches(t testing.TB, id string, status engine.Status) {
	t.Helper()
	x.awaits(t, id, "become "+string(status), func(s engine.Status) bool { return s == status })
}

// patient is how long a test waits for what must come, on a machine that has much to do besides.
const patient = 5 * time.Minute

// awaits waits until the status of an execution fits.
func (x *site) awaits(t testing.TB, id, what string, fits func(engine.Status) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	sub := x.hub.Subscribe(host.Ref{Workspace: "default", Execution: id})
	defer sub.Close()
	for {
		e, err := x.stores.Executions.Get(ctx, identity.System("default"), id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		if fits(e.Status) {
			return
		}
		list, more, behind := sub.Next()
		if len(list) > 0 || behind {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("execution %q is %s and does not %s: %s", id, e.Status, what, e.Error)
		}
	}
}

// seq is the number of the last row of an execution.
func (x *site) seq(t testing.TB, id string) uint64 {
	t.Helper()
	return x.read(t, id).Seq
}
