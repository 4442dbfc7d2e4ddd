package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
	"tandem/engine"
	"tandem/human"
	"tandem/identity"
	"tandem/mcp"
)

// npmServers is where the tool servers are that others wrote.
var npmServers = sync.OnceValues(func() (string, error) { // read-only
	out, err := exec.Command("../scripts/npm_packages.sh", "mcp/testdata/servers").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
})

func npmServer(t testing.TB, name string) string {
	t.Helper()
	dir, err := npmServers()
	if err != nil {
		t.Fatalf("the servers that others wrote cannot be had: %v; install Node 20 or newer with npm", err)
	}
	return filepath.Join(dir, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
}

// npmEverything starts server-everything on a port, over streamable HTTP, and returns its address.
func npmEverything(t *testing.T) string {
	t.Helper()
	file := npmServer(t, "server-everything")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", file, "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		once := sync.OnceFunc(func() { close(begun) })
		for s := bufio.NewScanner(said); s.Scan(); {
			if strings.Contains(s.Text(), "port "+port) {
				once()
			}
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-ended
		_ = cmd.Wait() // it was killed
	})
	select {
	case <-begun:
	case <-ended:
		t.Fatal("the server has ended")
	case <-time.After(3 * time.Minute):
		t.Fatal("the server does not begin")
	}
	return "http://127.0.0.1:" + port + "/mcp"
}

// toolFlow is a workflow of one tool that stands alone.
func toolFlow(id, config string) string {
	return `
metadata: {id: ` + id + `, name: ` + id + `, description: uses a tool}
nodes:
  - {id: start, name: start, description: begins, type: TRIGGER, subtype: MANUAL}
  - {id: use, name: use, description: uses it, type: TOOL, subtype: MCP_TOOL, configurations: ` + config + `}
connections:
  - {from_node: start, to_node: use}
`
}

func (x *site) output(t *testing.T, execution, node string) string {
	t.Helper()
	return string(x.read(t, execution).NodeExecutions[node].OutputData["result"])
}

// Servers that others wrote, over both transports, from registering to the result of a node.
func TestTools_RealServers(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const canary = "canary-4711"
	key := x.keepCredential(t, "key", "openai", canary)
	script := npmServer(t, "server-everything")
	want[api.MCPServer](t, x.call(t, "admin", "PUT", "/mcp/servers/local", map[string]any{
		"transport": "stdio", "command": "node", "args": []string{script, "stdio"}, "env": map[string]any{"SECRET": map[string]any{"credential_id": key, "field": "api_key"}},
	}), http.StatusOK)
	want[api.MCPServer](t, x.call(t, "admin", "PUT", "/mcp/servers/web", map[string]any{"transport": "http", "url": npmEverything(t)}), http.StatusOK)
	for _, id := range []string{"local", "web"} {
		tools := want[api.MCPTools](t, x.call(t, "operator", "GET", "/mcp/servers/"+id+"/tools", nil), http.StatusOK)
		if at := slices.IndexFunc(tools.Tools, func(m api.MCPTool) bool { return m.ID == id+"/get-sum" }); at < 0 || !strings.Contains(string(tools.Tools[at].InputSchema), `"properties"`) {
			t.Fatalf("%s has %+v", id, tools.Tools)
		}
		if done := want[api.MCPTools](t, x.call(t, "operator", "POST", "/mcp/servers/"+id+"/activate", nil), http.StatusOK); !done.Activated {
			t.Errorf("%s is not activated", id)
		}
		x.save(t, toolFlow(id, `{server_id: `+id+`, tool_name: get-sum, function_args: {a: "{{a}}", b: 2}}`))
		e := x.execute(t, id, api.ExecuteRequest{Inputs: json.RawMessage(`{"a":40}`)})
		x.reaches(t, e, engine.StatusSuccess)
		if out := x.output(t, e, "use"); !strings.Contains(out, "42") || !strings.Contains(out, `"success":true`) {
			t.Errorf("%s: %s", id, out)
		}
	}
	// A picture is stored, and what the process was given of a credential leaves nowhere.
	x.save(t, toolFlow("picture", `{server_id: local, tool_name: get-tiny-image}`))
	e := x.execute(t, "picture", api.ExecuteRequest{})
	x.reaches(t, e, engine.StatusSuccess)
	var out struct {
		Result struct {
			Files []struct{ Blob string }
		}
	}
	if err := json.Unmarshal([]byte(x.output(t, e, "use")), &out); err != nil || len(out.Result.Files) != 1 || out.Result.Files[0].Blob == "" {
		t.Errorf("got %s, %v", x.output(t, e, "use"), err)
	}
	x.save(t, toolFlow("env", `{server_id: local, tool_name: get-env}`))
	e = x.execute(t, "env", api.ExecuteRequest{})
	x.reaches(t, e, engine.StatusSuccess)
	if text := x.output(t, e, "use"); strings.Contains(text, canary) || !strings.Contains(text, "SECRET") {
		t.Errorf("the environment of the server is shown as %s", text)
	}
	// The admin has activated nothing.
	if s := want[api.MCPServer](t, x.call(t, "admin", "GET", "/mcp/servers/local", nil), http.StatusOK); s.Activated {
		t.Error("an activation counts for others")
	}
}

// A node that needs a server which the user does not use asks first; also where a model would be given its tools.
func TestTools_Asked(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
			return chatReply{text: []string{"got " + last.text()}}
		}
		return chatReply{calls: []chatCall{chatCallOf(0, r.Tools[0].Function.Name, `{"n":1}`)}}
	})
	x.saveProfile(t, model.profile("main"))
	box := newToolbox(t, nil, toolDefinition{Name: "put", Description: "puts", Schema: json.RawMessage(`{"type":"object"}`)})
	if err := x.stores.MCPServers.Put(t.Context(), identity.System("default"), box.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	x.save(t, agentFlow(`{profile_id: main, user_prompt: "{{question}}"}`, "tools", `  - {id: tools, name: tools, description: tools, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box}}
`))
	question := func(id, purpose string) api.UserInputRequest {
		t.Helper()
		x.opens(t, id, 1)
		list := x.read(t, id).Questions
		if len(list) != 1 || list[0].Purpose != purpose || list[0].NodeID != "agent" {
			t.Fatalf("asked %+v, want %s", list, purpose)
		}
		return list[0]
	}
	answer := func(id, input string) {
		t.Helper()
		want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", `{"node_id":"agent","input_data":`+input+`}`), http.StatusOK)
	}
	start := func() string {
		return x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"put it"}`)})
	}
	no := start()
	question(no, human.PurposeActivation)
	if len(model.asked) != 0 {
		t.Error("the model was asked before the person")
	}
	answer(no, `{"accept":false}`)
	x.reaches(t, no, engine.StatusError)

	yes := start()
	question(yes, human.PurposeActivation)
	answer(yes, `{"accept":true}`)
	x.reaches(t, yes, engine.StatusSuccess)
	if _, r := x.result(t, yes); !strings.Contains(r.Response, `"done":true`) || len(box.made()) != 1 {
		t.Errorf("%+v, calls %v", r, box.made())
	}
	if name := model.asked[0].Tools[0].Function.Name; name != "box__put" {
		t.Errorf("the model was offered %q", name)
	}
	// The tool changes: nobody calls it before the difference is accepted, and then as it was shown.
	box.change(toolDefinition{Name: "put", Description: "puts, and tells everybody", Schema: json.RawMessage(`{"type":"object"}`)})
	want[struct{}](t, x.call(t, "operator", "POST", "/mcp/servers/box/restart", nil), http.StatusNoContent)
	drifted := start()
	if q := question(drifted, human.PurposeDrift); !strings.Contains(q.Description, "description") {
		t.Errorf("asked %+v", q)
	}
	answer(drifted, `{"accept":true}`)
	x.reaches(t, drifted, engine.StatusSuccess)
	if len(box.made()) != 2 {
		t.Errorf("calls %v", box.made())
	}
	a, err := x.stores.MCPServers.Activation(t.Context(), identity.System("default"), "box", "operator")
	if err != nil || a.AcceptedBy != "operator" || !strings.Contains(string(a.Tools["put"].Definition), "tells everybody") {
		t.Errorf("accepted %+v, %v", a, err)
	}
	// A node that stands alone asks for itself, and its one call is made after that.
	want[struct{}](t, x.call(t, "operator", "DELETE", "/mcp/servers/box/activate", nil), http.StatusNoContent)
	x.save(t, toolFlow("alone", `{server_id: box, tool_name: put}`))
	alone := x.execute(t, "alone", api.ExecuteRequest{})
	if asked := x.opens(t, alone, 1); asked[0].Purpose != human.PurposeActivation || len(box.made()) != 2 {
		t.Fatalf("asked %+v, calls %v", asked, box.made())
	}
	want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+alone+"/input", `{"node_id":"use","input_data":{"accept":true}}`), http.StatusOK)
	x.reaches(t, alone, engine.StatusSuccess)
	if len(box.made()) != 3 {
		t.Errorf("calls %v", box.made())
	}
	// It changes while a turn is under way: the call itself asks, in the name of the agent, and goes on.
	box.change(toolDefinition{Name: "put", Description: "puts more", Schema: json.RawMessage(`{"type":"object"}`)})
	model.say = func(r chatRequest, _ <-chan struct{}) chatReply {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
			return chatReply{text: []string{"got " + last.text()}}
		}
		x.tools.Stop("default", "box", "")
		return chatReply{calls: []chatCall{chatCallOf(0, "box__put", `{"n":2}`)}}
	}
	late := start()
	x.opens(t, late, 1)
	if list := x.read(t, late).Questions; len(list) != 1 || list[0].Purpose != human.PurposeDrift || len(box.made()) != 3 {
		t.Fatalf("asked %+v, calls %v", list, box.made())
	}
	want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+late+"/input", map[string]any{
		"node_id": x.read(t, late).Questions[0].NodeID, "input_data": map[string]any{"accept": true},
	}), http.StatusOK)
	x.reaches(t, late, engine.StatusSuccess)
	if made := box.made(); len(made) != 4 || made[3] != `put {"n":2}` {
		t.Errorf("calls %v", made)
	}
}

// loginServer is a tool server with an authorization server beside it.
type loginServer struct {
	url string
	mu  sync.Mutex
	// token is the one that is good; clients are the redirect addresses of those who are known.
	token   string
	clients []string
	codes   int
}

func newLoginServer(t *testing.T) *loginServer {
	g := &loginServer{}
	inner := sdk.NewServer(&sdk.Implementation{Name: "login", Version: "1"}, nil)
	sdk.AddTool(inner, &sdk.Tool{Name: "hello"}, func(_ context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hi"}}}, nil, nil
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return inner }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // the client may have gone
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, map[string]any{"resource": g.url + "/mcp", "authorization_servers": []string{g.url}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, map[string]any{"issuer": g.url, "authorization_endpoint": g.url + "/authorize", "token_endpoint": g.url + "/token", "registration_endpoint": g.url + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			Redirects []string `json:"redirect_uris"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.clients = append(g.clients, m.Redirects...)
		say(w, http.StatusCreated, map[string]any{"client_id": fmt.Sprint("client-", len(g.clients)), "redirect_uris": m.Redirects})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if r.FormValue("code") != "code-1" || r.FormValue("code_verifier") == "" || r.FormValue("redirect_uri") != g.clients[len(g.clients)-1] {
			say(w, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		g.codes++
		g.token = fmt.Sprint("canary-token-", g.codes)
		say(w, 200, map[string]any{"access_token": g.token, "refresh_token": "canary-refresh", "token_type": "Bearer", "expires_in": 3600})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		good := g.token != "" && r.Header.Get("Authorization") == "Bearer "+g.token
		g.mu.Unlock()
		if !good {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.url+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
	web := httptest.NewServer(mux)
	g.url = web.URL
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return g
}

// comesBack is what a browser shows of a page of this site.
func comesBack(t *testing.T, address string) (int, string) {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

func TestTools_Authorization(t *testing.T) {
	t.Parallel()
	g := newLoginServer(t)
	x := openSiteAs(t, func(o *Options, url string) { o.PublicURL = url })
	public := strings.TrimSuffix(x.url, "/api/v1")
	want[api.MCPServer](t, x.call(t, "admin", "PUT", "/mcp/servers/login", `{"transport":"http","url":"`+g.url+`/mcp"}`), http.StatusOK)
	if f := refused(t, x.call(t, "operator", "GET", "/mcp/servers/login/tools", nil), http.StatusForbidden, "credential_invalid"); !strings.Contains(f.Detail, "authorize") {
		t.Errorf("no remedy in %q", f.Detail)
	}
	begin := func() url.Values {
		t.Helper()
		a := want[api.MCPAuthorization](t, x.call(t, "admin", "POST", "/mcp/servers/login/authorize", nil), http.StatusOK)
		u, err := url.Parse(a.URL)
		if err != nil || !strings.HasPrefix(a.URL, g.url+"/authorize?") || u.Query().Get("redirect_uri") != public+"/mcp/authorized" || u.Query().Get("resource") != g.url+"/mcp" {
			t.Fatalf("authorize at %s, %v", a.URL, err)
		}
		return u.Query()
	}
	back := func(q url.Values) string { return public + "/mcp/authorized?" + q.Encode() }
	first := begin().Get("state")
	q := begin() // a second one replaces the first
	for _, bad := range []url.Values{
		{"code": {"code-1"}, "state": {first}}, {"code": {"code-1"}, "state": {"x"}}, {"code": {"code-1"}, "state": {q.Get("state") + "x"}},
	} {
		if status, text := comesBack(t, back(bad)); status != http.StatusNotFound || !strings.Contains(text, "begin it again") {
			t.Errorf("%v: %d %s", bad, status, text)
		}
	}
	good := back(url.Values{"code": {"code-1"}, "state": {q.Get("state")}})
	if status, text := comesBack(t, good); status != http.StatusOK || !strings.Contains(text, "Authorized") {
		t.Fatalf("%d %s", status, text)
	}
	if status, _ := comesBack(t, good); status != http.StatusNotFound {
		t.Errorf("a state was good twice: %d", status)
	}
	tools := x.call(t, "operator", "GET", "/mcp/servers/login/tools", nil)
	if list := want[api.MCPTools](t, tools, http.StatusOK); len(list.Tools) != 1 || list.Tools[0].ID != "login/hello" {
		t.Errorf("tools %s", tools.body)
	}
	server := want[api.MCPServer](t, x.call(t, "admin", "GET", "/mcp/servers/login", nil), http.StatusOK)
	kept := want[api.Credential](t, x.call(t, "admin", "GET", "/credentials/"+server.CredentialID, nil), http.StatusOK)
	if kept.Type != mcp.OAuthCredential || kept.Name != "MCP login" {
		t.Errorf("credential %+v", kept)
	}
	// A refusal uses the state up; the tokens that are there stay.
	q = begin()
	denied := url.Values{"error": {"access_denied"}, "error_description": {"<b>no</b>"}, "state": {q.Get("state")}}
	if status, text := comesBack(t, back(denied)); status != http.StatusForbidden || !strings.Contains(text, "access_denied") || strings.Contains(text, "<b>") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := comesBack(t, back(url.Values{"code": {"code-1"}, "state": {q.Get("state")}})); status != http.StatusNotFound {
		t.Error("a state was good after a refusal")
	}
	x.tools.Stop("default", "login", "")
	want[api.MCPTools](t, x.call(t, "operator", "GET", "/mcp/servers/login/tools", nil), http.StatusOK)
	// A code that is not good is an error that can be read, and says nothing of what is secret.
	q = begin()
	if status, text := comesBack(t, back(url.Values{"code": {"code-2"}, "state": {q.Get("state")}})); status < 400 || !strings.Contains(text, "gave no token") {
		t.Errorf("%d %s", status, text)
	}
	if len(g.clients) != 2 { // the first two began when no client was known
		t.Errorf("registered %d times", len(g.clients))
	}
	// Without an address that a browser reaches there is no way back.
	alone := openSite(t)
	want[api.MCPServer](t, alone.call(t, "admin", "PUT", "/mcp/servers/login", `{"transport":"http","url":"`+g.url+`/mcp"}`), http.StatusOK)
	if f := refused(t, alone.call(t, "admin", "POST", "/mcp/servers/login/authorize", nil), http.StatusUnprocessableEntity, "unsupported"); !strings.Contains(f.Detail, "tandem serve") {
		t.Errorf("no remedy in %q", f.Detail)
	}
	// The guard of all calls is that of tool servers, too.
	want[api.MCPServer](t, alone.call(t, "admin", "PUT", "/mcp/servers/meta", `{"transport":"http","url":"http://169.254.169.254/mcp"}`), http.StatusOK)
	if f := refused(t, alone.call(t, "operator", "GET", "/mcp/servers/meta/tools", nil), http.StatusServiceUnavailable, "network_error"); !strings.Contains(f.Detail, "169.254.169.254") {
		t.Errorf("not a refusal of the guard: %q", f.Detail)
	}
	want[api.MCPServer](t, alone.call(t, "admin", "PUT", "/mcp/servers/p", `{"transport":"stdio","command":"x"}`), http.StatusOK)
	refused(t, alone.call(t, "admin", "POST", "/mcp/servers/p/authorize", nil), http.StatusConflict, "conflict")
}

// A client that a person has entered belongs to the first authorization server that is met with it, from the moment on that it is shown
// there; a server that moves to another one is authorized with another client. Authorization servers can read what this program is.
func TestTools_ClientOfOneIssuer(t *testing.T) {
	t.Parallel()
	first, second := newLoginServer(t), newLoginServer(t)
	x := openSiteAs(t, func(o *Options, _ string) { o.PublicURL = "https://tandem.example" })
	login := want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"login","type":"mcp_oauth","data":{"client_id":"entered-id","client_secret":"entered-secret"}}`), http.StatusCreated)
	begin := func(g *loginServer) url.Values {
		t.Helper()
		want[api.MCPServer](t, x.call(t, "admin", "PUT", "/mcp/servers/login", `{"transport":"http","url":"`+g.url+`/mcp","credential_id":"`+login.ID+`"}`), http.StatusOK)
		a := want[api.MCPAuthorization](t, x.call(t, "admin", "POST", "/mcp/servers/login/authorize", nil), http.StatusOK)
		u, err := url.Parse(a.URL)
		if err != nil || !strings.HasPrefix(a.URL, g.url+"/authorize?") {
			t.Fatalf("authorize at %s, %v", a.URL, err)
		}
		return u.Query()
	}
	p := identity.System("default")
	if q := begin(first); q.Get("client_id") != "entered-id" || len(first.clients) != 0 {
		t.Errorf("asked as %q", q.Get("client_id"))
	}
	if g, err := x.tools.Load(t.Context(), p, login.ID); err != nil || g.Issuer != first.url || g.ClientSecret != "entered-secret" {
		t.Errorf("kept %+v, %v", g, err)
	}
	// The server is elsewhere before anybody came back.
	q := begin(second)
	if q.Get("client_id") != "client-1" || len(second.clients) != 1 {
		t.Errorf("asked as %q", q.Get("client_id"))
	}
	site := strings.TrimSuffix(x.url, "/api/v1")
	if status, text := comesBack(t, site+"/mcp/authorized?"+url.Values{"code": {"code-1"}, "state": {q.Get("state")}}.Encode()); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if g, err := x.tools.Load(t.Context(), p, login.ID); err != nil || g.Issuer != second.url || g.ClientID != "client-1" || g.ClientSecret != "" || g.Redirect != "https://tandem.example/mcp/authorized" {
		t.Errorf("kept %+v, %v", g, err)
	}
	want[api.MCPTools](t, x.call(t, "operator", "GET", "/mcp/servers/login/tools", nil), http.StatusOK)
	// A token of one server is not sent to another.
	want[api.MCPServer](t, x.call(t, "admin", "PUT", "/mcp/servers/other", `{"transport":"http","url":"`+first.url+`/mcp","credential_id":"`+login.ID+`"}`), http.StatusOK)
	if f := refused(t, x.call(t, "operator", "GET", "/mcp/servers/other/tools", nil), http.StatusForbidden, "credential_invalid"); !strings.Contains(f.Detail, "nothing was sent") {
		t.Error(f.Detail)
	}

	status, document := comesBack(t, site+"/client-metadata.json")
	var told map[string]any
	if err := json.Unmarshal([]byte(document), &told); err != nil || status != http.StatusOK || told["client_id"] != "https://tandem.example/client-metadata.json" {
		t.Errorf("%d %s %v", status, document, err)
	}
	plain := openSite(t)
	if status, text := comesBack(t, strings.TrimSuffix(plain.url, "/api/v1")+"/client-metadata.json"); status != http.StatusNotFound || !strings.Contains(text, "--public-url") {
		t.Errorf("%d %s", status, text)
	}
}
