package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/mcp"
	"tandem/outbound"
	"tandem/store"
)

// The conformance suite of the Model Context Protocol (npm @modelcontextprotocol/conformance) is run against both sides. Scenarios that do
// not apply are listed with the reason; one that is in neither list fails the test.

// clientScenarios are those of the suite that Tandem passes as a client, by the tool that they want called; "" calls none.
func clientScenarios() map[string]string {
	all := map[string]string{"initialize": "", "tools_call": "add_numbers", "sse-retry": "test_reconnection"}
	for _, name := range []string{
		"metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd", "scope-from-www-authenticate", "scope-from-scopes-supported",
		"scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit", "token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none",
		"pre-registration", "2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback", "resource-mismatch", "offline-access-scope",
		"offline-access-not-supported",
	} {
		all["auth/"+name] = "test-tool"
	}
	return all
}

// clientLeftOut are those that do not apply, with the reason.
func clientLeftOut() map[string]string {
	const extension = "an optional extension: tokens are for people who have logged in, and other grants are not offered"
	return map[string]string{
		"elicitation-sep1034-client-defaults": "tool servers cannot put questions to people through Tandem: it does not say that they could",
		"auth/client-credentials-jwt":         extension,
		"auth/client-credentials-basic":       extension,
		"auth/cross-app-access-complete-flow": extension,
	}
}

// mayFail are scenarios that want the client to end with an error.
func mayFail() []string { return []string{"auth/scope-retry-limit", "auth/resource-mismatch"} }

// suiteInstalled is where the suite is.
var suiteInstalled = sync.OnceValues(func() (string, error) { // read-only
	out, err := exec.Command("../scripts/npm_packages.sh", "app/testdata/conformance").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
})

// suite returns the Node that the conformance suite wants, and its script.
func suite(t *testing.T) (node, script string) {
	t.Helper()
	dir, err := suiteInstalled()
	if err != nil {
		t.Fatalf("the conformance suite cannot be had: %v; install Node 20 or newer with npm", err)
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	node = filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(node); err != nil { // npm has none for this machine
		node = "node"
		out, err := exec.Command(node, "--version").Output()
		major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
		if n, nerr := strconv.Atoi(major); err != nil || nerr != nil || n < 22 {
			t.Fatalf("the conformance suite wants Node 22, and this machine has %q; install it", out)
		}
	}
	return node, filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
}

// runSuite runs the suite and returns what it says, by scenario: a mark that it passed, and the line.
func runSuite(t *testing.T, environment []string, args ...string) (passed map[string]bool, all string) {
	t.Helper()
	node, script := suite(t)
	cmd := exec.CommandContext(t.Context(), node, append([]string{script}, args...)...)
	cmd.Env = append(append(os.Environ(), "SUITE_NODE="+node), environment...)
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	passed = map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([✓✗]) (\S+): \d+ passed, \d+ failed`).FindAllStringSubmatch(string(out), -1) {
		passed[m[2]] = m[1] == "✓"
	}
	return passed, string(out)
}

// scenariosOf are the scenarios that the suite has.
func scenariosOf(t *testing.T, side string) []string {
	t.Helper()
	node, script := suite(t)
	out, err := exec.CommandContext(t.Context(), node, script, "list", "--"+side).Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(string(out), -1) {
		names = append(names, m[1])
	}
	if len(names) == 0 {
		t.Fatalf("the suite lists nothing: %s", out)
	}
	return names
}

// isListed checks that every scenario stands in exactly one of the lists, and that nothing else does.
func isListed[V any](t *testing.T, side string, run map[string]V, left map[string]string) {
	t.Helper()
	names := scenariosOf(t, side)
	for _, name := range names {
		_, runs := run[name]
		if why, out := left[name]; runs == out || out && why == "" {
			t.Errorf("the %s scenario %q must either be run or be left out with a reason", side, name)
		}
	}
	if len(names) != len(run)+len(left) {
		t.Errorf("%d %s scenarios are listed here, and the suite has %d", len(run)+len(left), side, len(names))
	}
}

// conformant does with Tandem what scenarios for clients want: it registers their server, logs in as a person does, and calls a tool in a
// workflow.
type conformant struct {
	*site
	begun atomic.Int64
	mu    sync.Mutex
	// ended says how each scenario did.
	ended map[string]error
}

// ask asks the API.
func (c *conformant) ask(user, method, path string, body, into any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequest(method, c.url+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.tokens[user])
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	if into != nil {
		return json.Unmarshal(text, into)
	}
	return nil
}

// agree is a person with a browser, who agrees to what is asked.
func (c *conformant) agree(id string) error {
	var a api.MCPAuthorization
	if err := c.ask("admin", "POST", "/mcp/servers/"+id+"/authorize", nil, &a); err != nil {
		return err
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	there, err := browser.Get(a.URL)
	if err != nil {
		return err
	}
	defer there.Body.Close()
	back, err := url.Parse(there.Header.Get("Location"))
	if err != nil || back.Path != "/mcp/authorized" {
		return fmt.Errorf("the authorization server leads to %q, %v", there.Header.Get("Location"), err)
	}
	here, err := browser.Get(strings.TrimSuffix(c.url, "/api/v1") + back.RequestURI())
	if err != nil {
		return err
	}
	defer here.Body.Close()
	text, err := io.ReadAll(here.Body)
	if err == nil && here.StatusCode != http.StatusOK {
		err = fmt.Errorf("/mcp/authorized: %d %s", here.StatusCode, text)
	}
	return err
}

// withLogin does something, and again after a login when the server wants one. How often somebody tries is for people to decide: here,
// three times.
func (c *conformant) withLogin(id string, do func() error) error {
	for tries := 0; ; tries++ {
		err := do()
		if err == nil || tries == 3 || !strings.Contains(err.Error(), "credential_invalid") {
			return err
		}
		if err := c.agree(id); err != nil {
			return err
		}
	}
}

func (c *conformant) scenario(name, address, tool string, known map[string]any) (err error) {
	id := fmt.Sprintf("%s-%d", strings.ReplaceAll(name, "/", "-"), c.begun.Add(1))
	server := map[string]any{"transport": "http", "url": address}
	if known["client_id"] != nil {
		var login api.Credential
		if err := c.ask("admin", "POST", "/credentials", map[string]any{"name": id, "type": mcp.OAuthCredential, "data": map[string]any{"client_id": known["client_id"], "client_secret": known["client_secret"]}}, &login); err != nil {
			return err
		}
		server["credential_id"] = login.ID
	}
	if err := c.ask("admin", "PUT", "/mcp/servers/"+id, server, nil); err != nil {
		return err
	}
	// The suite waits until nobody is connected any more.
	defer func() { err = errors.Join(err, c.ask("admin", "DELETE", "/mcp/servers/"+id, nil, nil)) }()
	err = c.withLogin(id, func() error { return c.ask("operator", "POST", "/mcp/servers/"+id+"/activate", nil, nil) })
	if err != nil || tool == "" {
		return err
	}
	nodes := []map[string]any{
		{"id": "start", "name": "start", "description": "", "type": "TRIGGER", "subtype": "MANUAL"},
		{"id": "use", "name": "use", "description": "", "type": "TOOL", "subtype": "MCP_TOOL", "configurations": map[string]any{
			"server_id": id, "tool_name": tool, "function_args": map[string]any{"a": 5, "b": 3}}},
	}
	workflow := map[string]any{"metadata": map[string]any{"id": id, "name": id, "description": "calls a tool"}, "nodes": nodes, "connections": []any{map[string]any{"from_node": "start", "to_node": "use"}}}
	if err := c.ask("editor", "POST", "/workflows", workflow, nil); err != nil {
		return err
	}
	return c.withLogin(id, func() error {
		var e api.ExecuteResponse
		if err := c.ask("operator", "POST", "/workflows/"+id+"/execute", api.ExecuteRequest{WaitSeconds: 30}, &e); err != nil || e.Status == "SUCCESS" {
			return err
		}
		return fmt.Errorf("the execution is %s: %+v", e.Status, e.Error)
	})
}

// ServeHTTP takes a scenario from the client that the suite has started.
func (c *conformant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var s struct {
		Scenario, URL string
		Context       map[string]any
	}
	err := json.NewDecoder(r.Body).Decode(&s)
	if tool, known := clientScenarios()[s.Scenario]; err == nil && known {
		err = c.scenario(s.Scenario, s.URL, tool, s.Context)
	}
	c.mu.Lock()
	c.ended[s.Scenario] = err
	c.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// The suite's client scenarios: Tandem, as it is used through its API and with a browser.
func TestConformance_Client(t *testing.T) {
	t.Parallel()
	isListed(t, "client", clientScenarios(), clientLeftOut())
	allow, err := outbound.ParseAllow("localhost,127.0.0.1,::1")
	if err != nil {
		t.Fatal(err)
	}
	c := &conformant{ended: map[string]error{}}
	// The suite knows clients by the document at this address; nobody asks for it there.
	c.site = openSiteAs(t, func(o *Options, _ string) { o.PublicURL, o.HTTPAllow = "https://conformance-test.local", allow })
	here := httptest.NewServer(c)
	t.Cleanup(here.Close)
	forward, err := filepath.Abs("testdata/conformance/forward.mjs")
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"CONFORMANCE_TEST=" + here.URL, "FORWARD=" + forward}
	command := `"$SUITE_NODE" "$FORWARD"`
	passed, all := runSuite(t, environment, "client", "--suite", "all", "--timeout", "120000", "--command", command)
	// Whether a stream is taken up again in time is measured in tenths of seconds, which a busy machine has not: it may be tried again.
	for tries := 0; !passed["sse-retry"] && tries < 3; tries++ {
		_, again := runSuite(t, environment, "client", "--scenario", "sse-retry", "--timeout", "120000", "--command", command)
		passed["sse-retry"] = strings.Contains(again, "OVERALL: PASSED")
		all += again
	}
	for name := range clientScenarios() { // order does not matter: each by itself
		c.mu.Lock()
		err, ran := c.ended[name]
		c.mu.Unlock()
		if !passed[name] || !ran || err != nil && !slices.Contains(mayFail(), name) {
			t.Errorf("%s: passed %t, ran %t, ended with %v", name, passed[name], ran, err)
		}
	}
	for name, why := range clientLeftOut() { // order does not matter: each by itself
		if passed[name] {
			t.Errorf("%s passes, and is left out: %s", name, why)
		}
	}
	if t.Failed() {
		t.Log(cmp.Or(all, "the suite said nothing"))
	}
}

// serverScenarios are those of the suite that Tandem passes as a server.
func serverScenarios() map[string]bool {
	all := map[string]bool{}
	for _, name := range []string{
		"server-initialize", "ping", "logging-set-level", "prompts-list", "resources-list", "tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-with-progress", "tools-call-elicitation", "json-schema-2020-12",
		"elicitation-sep1034-defaults", "elicitation-sep1330-enums", "server-sse-polling", "server-sse-multiple-streams", "dns-rebinding-protection",
	} {
		all[name] = true
	}
	return all
}

// serverLeftOut are those that do not apply, with the reason.
func serverLeftOut() map[string]string {
	const (
		content   = "what a workflow has made is data: text and structured content; files are references in it"
		resources = "there are no resources: what can be read is read through tools and the API"
		prompts   = "there are no prompts: workflows and agents have their own"
	)
	return map[string]string{
		"tools-call-with-logging":       "the protocol's log is not offered: progress tells what happens, and the API has the logs of an execution",
		"completion-complete":           "there is nothing to complete: " + prompts,
		"tools-call-sampling":           "clients are not asked for completions: models are those of the installation",
		"tools-call-image":              content,
		"tools-call-audio":              content,
		"tools-call-embedded-resource":  content,
		"tools-call-mixed-content":      content,
		"resources-read-text":           resources,
		"resources-read-binary":         resources,
		"resources-templates-read":      resources,
		"resources-subscribe":           resources,
		"resources-unsubscribe":         resources,
		"prompts-get-simple":            prompts,
		"prompts-get-with-args":         prompts,
		"prompts-get-embedded-resource": prompts,
		"prompts-get-with-image":        prompts,
	}
}

// serverTools are workflows under the names that the suite calls, as JSON: the input schema of the trigger, and what comes after it.
func serverTools() map[string][2]string {
	form := func(schema string) string {
		return `{"id":"ask","name":"ask","description":"","type":"HUMAN_IN_THE_LOOP","subtype":"FORM_SUBMISSION","configurations":{"title":"Who are you?","approvers":["operator"],"form_schema":` + schema + `}}`
	}
	empty := func(id string) string {
		return `{"id":"` + id + `","name":"` + id + `","description":"","type":"CALL","subtype":"EMPTY"}`
	}
	return map[string][2]string{
		"test_simple_text":        {"", empty("a")},
		"test_reconnection":       {"", empty("a")},
		"test_tool_with_progress": {"", empty("a") + "," + empty("b") + "," + empty("c")},
		"test_error_handling":     {"", `{"id":"a","name":"a","description":"","type":"ACTION","subtype":"HTTP_REQUEST","configurations":{"url":"http://169.254.169.254/"}}`},
		"test_elicitation": {`{"type":"object","properties":{"message":{"type":"string"}}}`,
			form(`{"type":"object","required":["username","email"],"properties":{"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}}}`)},
		"json_schema_2020_12_tool": {`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
			`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`, empty("a")},
		"test_elicitation_sep1034_defaults": {"", form(`{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},` +
			`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`)},
		"test_elicitation_sep1330_enums": {"", form(`{"type":"object","required":["untitledSingle","titledSingle","legacyEnum","untitledMulti","titledMulti"],"properties":{` +
			`"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
			`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},` +
			`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},` +
			`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},` +
			`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`)},
	}
}

// The suite's server scenarios: workflows as tools, at /mcp.
func TestConformance_Server(t *testing.T) {
	t.Parallel()
	isListed(t, "server", serverScenarios(), serverLeftOut())
	g := openMCP(t, 0, "localhost", "127.0.0.1", "::1")
	for id, tool := range serverTools() { // order does not matter: each by itself
		var connections []string
		before := "start"
		var nodes []struct{ ID string }
		if err := json.Unmarshal([]byte("["+tool[1]+"]"), &nodes); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			connections = append(connections, fmt.Sprintf(`{"from_node":%q,"to_node":%q}`, before, n.ID))
			before = n.ID
		}
		g.save(t, fmt.Sprintf(`{"metadata":{"id":%q,"name":%q,"description":"a tool of the suite"},"nodes":[{"id":"start","name":"start","description":"","type":"TRIGGER","subtype":"MANUAL","configurations":{"input_schema":%s}},%s],"connections":[%s]}`,
			id, id, cmp.Or(tool[0], "{}"), tool[1], strings.Join(connections, ",")))
		want[any](t, g.call(t, "editor", "POST", "/workflows/"+id+"/deploy", nil), http.StatusOK)
	}
	there, err := url.Parse(strings.TrimSuffix(g.url, "/api/v1"))
	if err != nil {
		t.Fatal(err)
	}
	// The suite has no tokens: it is given one on the way.
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(there)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+g.tokens["operator"])
	}}
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The message is read before it is handed on. A proxy that is answered while it still looks for the end of the body finds the body
		// closed, takes that for an error and breaks the answer off.
		message, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(message))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(door.Close)
	results := t.TempDir()
	passed, all := runSuite(t, nil, "server", "--suite", "all", "--url", door.URL+"/mcp", "-o", results)
	for name := range serverScenarios() { // order does not matter: each by itself
		if !passed[name] {
			t.Errorf("%s does not pass", name)
		}
		files, err := filepath.Glob(filepath.Join(results, "server-"+name+"-*", "checks.json"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %d results, %v", name, len(files), err)
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		text, err := os.ReadFile(files[0])
		if err == nil {
			err = json.Unmarshal(text, &checks)
		}
		if err != nil || len(checks) == 0 {
			t.Fatalf("%s: %s %v", name, text, err)
		}
		for _, c := range checks {
			if c.Status == "WARNING" { // the suite lets those pass
				t.Errorf("%s, %s: %s", name, c.ID, c.ErrorMessage)
			}
		}
	}
	// What the suite's user has filled in was taken.
	for _, id := range []string{"test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"} {
		page, err := g.stores.Executions.List(t.Context(), identity.System("default"), store.ExecutionQuery{WorkflowID: id})
		if err != nil || len(page.Executions) == 0 || slices.ContainsFunc(page.Executions, func(e store.Execution) bool { return e.Status != engine.StatusSuccess }) {
			t.Errorf("%s: %+v, %v", id, page.Executions, err)
		}
	}
	for name, why := range serverLeftOut() { // order does not matter: each by itself
		if passed[name] {
			t.Errorf("%s passes, and is left out: %s", name, why)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
}
