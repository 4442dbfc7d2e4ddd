package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/mcp"
	"tandem/store"
	"tandem/text"
)

// fewTools are tool servers that all have the same tools, and are never reached.
type fewTools struct {
	rows store.MCPServers
	pool *mcp.Pool

	mu      sync.Mutex
	tools   []mcp.Tool
	stopped []string
	reached int
	back    url.Values
	err     error
}

func newFewTools(rows store.MCPServers) *fewTools {
	pool, err := mcp.New(mcp.Options{Servers: rows})
	if err != nil {
		panic(err)
	}
	return &fewTools{rows: rows, pool: pool}
}

// offer sets what the servers have, as name and description.
func (f *fewTools) offer(pairs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tools = nil
	for i := 0; i < len(pairs); i += 2 {
		tool, err := mcp.ReadTool("s", json.RawMessage(fmt.Sprintf(`{"description":%q,"name":%q,"inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}`, pairs[i+1], pairs[i])))
		if err != nil {
			panic(err)
		}
		f.tools = append(f.tools, tool)
	}
}

func (f *fewTools) Tools(_ context.Context, _ identity.Principal, server string) ([]mcp.Tool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reached++
	list := slices.Clone(f.tools)
	for i := range list {
		list[i].Server, list[i].ID = server, mcp.ToolID(server, list[i].Name)
	}
	return list, f.err
}

func (f *fewTools) Activate(ctx context.Context, p identity.Principal, server string, decided mcp.Activation) (store.MCPActivation, error) {
	tools, err := f.Tools(ctx, p, server)
	if err != nil {
		return store.MCPActivation{}, err
	}
	a := store.MCPActivation{Workspace: p.Workspace, Server: server, User: p.User, Tools: mcp.Pin(tools), Activated: 1, AcceptedBy: p.User, Accepted: 1}
	if err := f.rows.Activate(ctx, p, a, store.MCPDecided{}); err != nil {
		return a, err
	}
	if err := f.SetPolicies(ctx, p, server, true, decided.Everybodys); err != nil {
		return a, err
	}
	return a, f.SetPolicies(ctx, p, server, false, decided.Policies)
}

// SetPolicies and Accept are those of a pool, which reaches nobody for them.
func (f *fewTools) SetPolicies(ctx context.Context, p identity.Principal, server string, everybodys bool, policies map[string]store.MCPPolicy) error {
	return f.pool.SetPolicies(ctx, p, server, everybodys, policies)
}

func (f *fewTools) Accept(ctx context.Context, p identity.Principal, server string, by mcp.Acceptance, changes []mcp.Change) (store.MCPActivation, error) {
	return f.pool.Accept(ctx, p, server, by, changes)
}

func (f *fewTools) Check(ctx context.Context, p identity.Principal, server string) ([]mcp.Change, error) {
	a, err := f.rows.Activation(ctx, p, server, p.User)
	if err != nil {
		return nil, &mcp.Error{Kind: mcp.NotActivated, Server: server, Message: text.As("not activated")}
	}
	tools, err := f.Tools(ctx, p, server)
	return mcp.Drift(a.Tools, tools), err
}

func (f *fewTools) Stop(workspace, server, user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = append(f.stopped, strings.Join([]string{workspace, server, user}, " "))
}

func (f *fewTools) Authorize(context.Context, identity.Principal, string) (string, error) {
	return "https://login.example/authorize?state=s", f.err
}

func (f *fewTools) ClientDocument() (json.RawMessage, error) {
	return json.RawMessage(`{"client_id":"https://tandem.example/client-metadata.json"}`), f.err
}

func (f *fewTools) Authorized(_ context.Context, back url.Values) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.back = back
	return "s<1>", f.err
}

// taken is what was stopped since it was last asked.
func (f *fewTools) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.stopped
	f.stopped = nil
	return list
}

func setupTools(t *testing.T) (*world, *fewTools) {
	t.Helper()
	var tools *fewTools
	w := setup(t, func(o *Options) { tools = o.Tools.(*fewTools) })
	return w, tools
}

const serversPath = "/api/v1/mcp/servers"

// An id is made of the name, whatever words that has.
func TestToolServers_MadeIDs(t *testing.T) {
	t.Parallel()
	w, _ := setupTools(t)
	for name, want := range map[string]string{"Our workflow tools": "our-workflow-tools", "Workflow helpers": "workflow-helpers", "工具": "server-"} {
		made := read[api.MCPServer](t, w.admin("POST", serversPath, `{"name":"`+name+`","transport":"stdio","command":"npx"}`).want(t, 201))
		if made.ID != want && (want != "server-" || !strings.HasPrefix(made.ID, want)) {
			t.Errorf("of %q the id %q was made", name, made.ID)
		}
	}
}

func TestToolServers(t *testing.T) {
	t.Parallel()
	w, tools := setupTools(t)
	operator := w.tokens[identity.Operator]
	key := read[api.Credential](t, w.admin("POST", "/api/v1/credentials", `{"name":"key","type":"gitlab_token","data":{"token":"canary"}}`).want(t, 201))
	made := read[api.MCPServer](t, w.admin("POST", serversPath, `{"name":"My Files!","transport":"stdio","command":"npx","args":["--token","canary"],
		"env":{"PLAIN":"canary","TOKEN":{"credential_id":"key","field":"token","prefix":"t "}}}`).want(t, 201))
	if made.ID != "my-files" || made.TimeoutSeconds != 60 || made.CreatedTime == 0 || string(made.Env["TOKEN"]) != `{"credential_id":"`+key.ID+`","field":"token","prefix":"t "}` {
		t.Errorf("made %+v", made)
	}
	w.admin("POST", serversPath, `{"id":"my-files","transport":"stdio","command":"x"}`).problem(t, 409, fault.Conflict)
	second := read[api.MCPServer](t, w.admin("POST", serversPath, `{"name":"my files","transport":"http","url":"https://x.example/mcp?key=canary","headers":{"X":"canary"}}`).want(t, 201))
	if second.ID != "my-files-2" {
		t.Errorf("second %+v", second)
	}
	// Others see that it is there, and nothing that may be a secret.
	list := w.call(operator, "GET", serversPath, "").want(t, 200)
	if strings.Contains(list.body, "canary") || strings.Contains(list.body, key.ID) {
		t.Errorf("an operator reads %s", list.body)
	}
	shown := read[api.MCPServers](t, list)
	if len(shown.Servers) != 2 || shown.Servers[0].Command != "npx" || string(shown.Servers[0].Env["PLAIN"]) != `"***"` || shown.Servers[1].URL != "https://x.example/mcp?***" {
		t.Errorf("an operator reads %s", list.body)
	}
	w.call(w.tokens[identity.Viewer], "GET", serversPath, "").problem(t, 403, fault.Forbidden)
	w.call(operator, "PUT", serversPath+"/my-files", `{"transport":"stdio","command":"x"}`).problem(t, 403, fault.Forbidden)
	w.call(operator, "POST", serversPath+"/my-files/authorize", "").problem(t, 403, fault.Forbidden)
	w.call(w.other, "GET", serversPath+"/my-files", "").problem(t, 404, fault.NotFound)
	if p := w.admin("GET", serversPath+"/my-file", "").problem(t, 404, fault.NotFound); !strings.Contains(p.Detail, `"my-files"`) {
		t.Errorf("no hint in %q", p.Detail)
	}
	// What does not change how it is reached leaves connections alone; what does ends them.
	same := `{"transport":"stdio","command":"npx","args":["--token","canary"],"env":{"PLAIN":"canary","TOKEN":{"credential_id":"` + key.ID + `","field":"token","prefix":"t "}},"description":"d"`
	w.admin("PUT", serversPath+"/my-files", same+`}`).want(t, 200)
	if got := tools.taken(); got != nil {
		t.Errorf("stopped %q", got)
	}
	w.admin("PUT", serversPath+"/my-files", same+`,"disabled":true}`).want(t, 200)
	w.admin("DELETE", serversPath+"/my-files", "").want(t, 204)
	w.admin("DELETE", serversPath+"/my-files", "").problem(t, 404, fault.NotFound)
	if diff := cmp.Diff([]string{"a my-files ", "a my-files "}, tools.taken()); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	if tools.reached != 0 {
		t.Errorf("a server was reached %d times", tools.reached)
	}
}

func TestToolServers_WrongFields(t *testing.T) {
	t.Parallel()
	w, _ := setupTools(t)
	w.admin("POST", "/api/v1/credentials", `{"name":"key","type":"gitlab_token","data":{"token":"t"}}`).want(t, 201)
	for body, want := range map[string]string{
		`{"transport":"carrier","command":"x"}`: "transport",
		`{"transport":"stdio"}`:                 "command",
		`{"transport":"stdio","command":"x","args":["--token","ghp` + `_aB3dE5gH7jK9mN1pQ2sT4vW6xY8zaB3dE5gH"],"env":{"API_KEY":"8WkzPqLr3mNvT6yB"}}`: "args[1] env.API_KEY",
		`{"transport":"http","url":"https://u:p4ss@x.example","headers":{"Authorization":"Bearer 8WkzPqLr3mNvT6yB"}}`:                                 "headers.Authorization url",
		`{"transport":"stdio","command":"x","url":"https://x.example","headers":{"A":"b"}}`:                                                           "headers url",
		`{"transport":"http"}`: "url",
		`{"transport":"http","url":"https://x.example","env":{"A":"b"},"command":"x"}`:                                   "command env",
		`{"transport":"stdio","command":"x","env":{"A":{"credential_id":"kex","field":"token"},"B":7}}`:                  "env.A.credential_id env.B",
		`{"transport":"stdio","command":"x","env":{"A":{"credential_id":"key","field":"toke"}}}`:                         "env.A.field",
		`{"transport":"http","url":"https://x.example","credential_id":"key"}`:                                           "credential_id",
		`{"transport":"http","url":"https://x.example","credential_id":"none"}`:                                          "credential_id",
		`{"transport":"stdio","command":"x","timeout_seconds":601}`:                                                      "timeout_seconds",
		`{"transport":"stdio","command":"x","commnad":"y"}`:                                                              "commnad",
		`{"transport":"stdio","command":"x","id":"other"}`:                                                               "id",
		`{"transport":"http","url":"https://x.example","headers":{"X":{"credential_id":"key","field":"t","prefix":""}}}`: "headers.X.field",
	} {
		p := w.admin("PUT", serversPath+"/s", body)
		got := read[api.Fault](t, p)
		var paths []string
		for _, f := range got.Errors {
			paths = append(paths, f.Path)
		}
		slices.Sort(paths)
		if p.status != 422 || strings.Join(paths, " ") != want {
			t.Errorf("%s: %d %s", body, p.status, p.body)
		}
	}
	// What only the store knows is told in words.
	if p := w.admin("PUT", serversPath+"/s", `{"transport":"http","url":"ftp://x.example"}`).problem(t, 422, fault.Invalid); !strings.Contains(p.Detail, "url") {
		t.Errorf("%q names no field", p.Detail)
	}
	w.admin("GET", serversPath+"/s", "").problem(t, 404, fault.NotFound)
}

func TestTools_Activation(t *testing.T) {
	t.Parallel()
	w, tools := setupTools(t)
	operator := w.tokens[identity.Operator]
	w.admin("PUT", serversPath+"/s", `{"transport":"stdio","command":"x"}`).want(t, 200)
	tools.offer("add", "adds", "drop", "drops")
	before := read[api.MCPTools](t, w.call(operator, "GET", serversPath+"/s/tools", "").want(t, 200))
	if before.Activated || len(before.Tools) != 2 || before.Tools[0].ID != "s/add" || before.Tools[0].Effect != "once" || before.Tools[0].PinnedHash != "" || len(before.Changes) != 0 {
		t.Errorf("before %+v", before)
	}
	w.call(operator, "POST", serversPath+"/s/accept", `{"changes":[{"tool":"add","after":{}}]}`).problem(t, 403, fault.Forbidden)
	after := read[api.MCPTools](t, w.call(operator, "POST", serversPath+"/s/activate", "").want(t, 200))
	if !after.Activated || after.Tools[0].PinnedHash == "" || after.Tools[0].Drift != "" {
		t.Errorf("after %+v", after)
	}
	// Everybody activates for themselves.
	if one := read[api.MCPServer](t, w.admin("GET", serversPath+"/s", "").want(t, 200)); one.Activated {
		t.Error("an activation counts for another user")
	}
	if one := read[api.MCPServers](t, w.call(operator, "GET", serversPath, "").want(t, 200)); !one.Servers[0].Activated {
		t.Error("the activation is not shown")
	}
	tools.offer("add", "adds everything", "new", "n")
	drifted := read[api.MCPTools](t, w.call(operator, "GET", serversPath+"/s/tools", "").want(t, 200))
	kinds := map[string]string{}
	for _, c := range drifted.Changes {
		kinds[c.Tool] = c.Kind
	}
	if diff := cmp.Diff(map[string]string{"add": "changed", "drop": "removed", "new": "added"}, kinds); diff != "" || drifted.Tools[0].Drift != "changed" {
		t.Errorf("changes (-want +got):\n%s, %+v", diff, drifted.Tools)
	}
	accept := func(changes ...api.MCPChange) answer {
		var r api.MCPAccept
		for _, c := range changes {
			r.Changes = append(r.Changes, api.MCPAcceptedChange{Tool: c.Tool, After: c.After})
		}
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return w.call(operator, "POST", serversPath+"/s/accept", string(body))
	}
	// What was shown and has changed since is not accepted, and nothing else of the same request.
	shown := drifted.Changes
	tools.offer("add", "sends everything away", "new", "n")
	if p := accept(shown[2], shown[0]).problem(t, 409, fault.Conflict); !strings.Contains(p.Detail, `"add"`) {
		t.Errorf("conflict %q", p.Detail)
	}
	if left := read[api.MCPTools](t, w.call(operator, "GET", serversPath+"/s/tools", "").want(t, 200)); len(left.Changes) != 3 {
		t.Errorf("something was accepted: %+v", left.Changes)
	}
	tools.offer("add", "adds everything", "new", "n")
	w.call(operator, "POST", serversPath+"/s/accept", `{"changes":[{"tool":"add"}]}`).problem(t, 409, fault.Conflict) // not that it is gone
	w.call(operator, "POST", serversPath+"/s/accept", `{"changes":[]}`).problem(t, 422, fault.InvalidInput)
	if done := read[api.MCPTools](t, accept(shown[0], shown[1]).want(t, 200)); len(done.Changes) != 1 || done.Changes[0].Tool != "new" {
		t.Errorf("left %+v", done.Changes)
	}
	accept(shown[0]).problem(t, 409, fault.Conflict) // it is accepted

	w.call(operator, "POST", serversPath+"/s/restart", "").want(t, 204)
	w.admin("POST", serversPath+"/s/restart", "").want(t, 204)
	w.call(operator, "DELETE", serversPath+"/s/activate", "").want(t, 204)
	w.call(operator, "DELETE", serversPath+"/s/activate", "").want(t, 204)
	if diff := cmp.Diff([]string{"a s operator-user", "a s ", "a s operator-user", "a s operator-user"}, tools.taken()); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	tools.err = &mcp.Error{Kind: mcp.Closed, Server: "s", Message: text.As("the server could not be reached")}
	w.call(operator, "GET", serversPath+"/s/tools", "").problem(t, 503, fault.NetworkError)
}

// What connections were made with, and for whom, does not outlive it.
func TestTools_Renewed(t *testing.T) {
	t.Parallel()
	w, tools := setupTools(t)
	key := read[api.Credential](t, w.admin("POST", "/api/v1/credentials", `{"name":"key","type":"gitlab_token","data":{"token":"t"}}`).want(t, 201))
	login := read[api.Credential](t, w.admin("POST", "/api/v1/credentials", `{"name":"login","type":"mcp_oauth"}`).want(t, 201))
	w.admin("PUT", serversPath+"/env", `{"transport":"stdio","command":"x","env":{"T":{"credential_id":"key","field":"token"}}}`).want(t, 200)
	w.admin("PUT", serversPath+"/web", `{"transport":"http","url":"https://x.example","headers":{"T":{"credential_id":"key","field":"token"}},"credential_id":"login"}`).want(t, 200)
	w.admin("PUT", serversPath+"/other", `{"transport":"stdio","command":"x"}`).want(t, 200)
	w.admin("PUT", "/api/v1/credentials/"+key.ID, `{"name":"key","type":"gitlab_token","data":{"token":"u"}}`).want(t, 200)
	w.admin("DELETE", "/api/v1/credentials/"+login.ID+"?force=true", "").want(t, 204)
	if diff := cmp.Diff([]string{"a env ", "a web ", "a web "}, tools.taken()); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	user := `{"id":"eve","name":"Eve","roles":["operator"]}`
	activated := func(activate bool) bool {
		w.admin("POST", "/api/v1/users", user).want(t, 201)
		token := read[api.NewToken](t, w.admin("POST", "/api/v1/users/eve/tokens", `{"name":"t"}`).want(t, 201)).Secret
		if activate {
			w.call(token, "POST", serversPath+"/other/activate", "").want(t, 200)
		}
		return read[api.MCPServer](t, w.call(token, "GET", serversPath+"/other", "").want(t, 200)).Activated
	}
	if !activated(true) {
		t.Error("the activation is not shown")
	}
	w.admin("DELETE", "/api/v1/users/eve", "").want(t, 204)
	if diff := cmp.Diff([]string{"a other eve"}, tools.taken()); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	if activated(false) {
		t.Error("who gets the id of somebody gets what they use")
	}
}

func TestTools_ClientDocument(t *testing.T) {
	t.Parallel()
	w, tools := setupTools(t)
	page := w.call("", "GET", "/client-metadata.json", "").want(t, 200)
	if got := page.header.Get("Content-Type"); got != "application/json" || !strings.Contains(page.body, "https://tandem.example/client-metadata.json") {
		t.Errorf("%s %s", got, page.body)
	}
	tools.err = fault.New(fault.NotFound, "not known by an https address")
	if page := w.call("", "GET", "/client-metadata.json", "").want(t, 404); !strings.Contains(page.body, "https address") {
		t.Error(page.body)
	}
}

func TestTools_Authorized(t *testing.T) {
	t.Parallel()
	w, tools := setupTools(t)
	w.admin("PUT", serversPath+"/s", `{"transport":"http","url":"https://x.example"}`).want(t, 200)
	if a := read[api.MCPAuthorization](t, w.admin("POST", serversPath+"/s/authorize", "").want(t, 200)); a.URL != "https://login.example/authorize?state=s" {
		t.Errorf("authorize at %q", a.URL)
	}
	page := w.call("", "GET", "/mcp/authorized?state=s&code=c&iss=i", "").want(t, 200)
	if tools.back.Get("state") != "s" || tools.back.Get("code") != "c" || tools.back.Get("iss") != "i" {
		t.Errorf("told %v", tools.back)
	}
	if !strings.Contains(page.body, "Authorized") || strings.Contains(page.body, "<1>") || page.header.Get("Cache-Control") != "no-store" || page.header.Get("Content-Security-Policy") == "" {
		t.Errorf("page %v %s", page.header, page.body)
	}
	tools.err = fault.New(fault.NotFound, "begin it again")
	page = w.call("", "GET", "/mcp/authorized?state=s&code=c", "").want(t, 404)
	if !strings.Contains(page.body, "begin it again") {
		t.Errorf("page %s", page.body)
	}
	tools.back = nil
	if w.call("", "GET", "/mcp/authorized", "").want(t, 200); tools.back != nil {
		t.Error("an address without a state was taken for an answer")
	}
}
