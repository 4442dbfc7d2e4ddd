package toolset_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/builtin/toolset"
	"tandem/engine"
	"tandem/fault"
	"tandem/human/form"
	"tandem/identity"
	"tandem/mcp"
	"tandem/node"
	"tandem/node/nodetest"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
	"tandem/workflow"
)

// toolWorld is a tool server in this process, and the kind that uses it.
type toolWorld struct {
	pool   *mcp.Pool
	server *sdk.Server
	kind   node.Kind
	files  nodetest.Files
	// cut makes the next call end without an answer.
	cut   atomic.Bool
	calls atomic.Int64
}

func (w *toolWorld) who() identity.Principal { return identity.Principal{Workspace: "w", User: "ada"} }

func newToolWorld(t *testing.T) *toolWorld {
	t.Helper()
	db := sqlitetest.Open(t)
	w := &toolWorld{server: sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)}
	w.tool("echo", "says it again", &sdk.ToolAnnotations{ReadOnlyHint: true}, func(args string) *sdk.CallToolResult {
		return &sdk.CallToolResult{StructuredContent: json.RawMessage(`{"said":` + args + `}`), Content: []sdk.Content{&sdk.TextContent{Text: "said"}}}
	})
	w.tool("put", "changes something", nil, func(string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return w.server }, &sdk.StreamableHTTPOptions{JSONResponse: true})
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.cut.Load() && r.Method == http.MethodPost {
			body := make([]byte, 1<<16)
			n, _ := r.Body.Read(body) // what is cut off needs no whole request
			if strings.Contains(string(body[:n]), `"tools/call"`) {
				panic(http.ErrAbortHandler)
			}
			r.Body = io.NopCloser(bytes.NewReader(body[:n]))
		}
		handler.ServeHTTP(rw, r)
	}))
	client := &http.Client{Transport: &http.Transport{}}
	var err error
	if w.pool, err = mcp.New(mcp.Options{Servers: db.Stores().MCPServers, Admin: func(_ context.Context, _, user string) (bool, error) { return user == "root", nil }, HTTP: client}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.pool.Close()
		client.CloseIdleConnections()
		for s := range w.server.Sessions() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		web.CloseClientConnections()
		web.Close()
	})
	if err := db.Stores().MCPServers.Put(t.Context(), w.who(), store.MCPServer{Workspace: "w", ID: "s", Transport: store.MCPHTTP, URL: web.URL, Enabled: true}.WithDefaults()); err != nil {
		t.Fatal(err)
	}
	w.kind = nodetest.Of(toolset.Kinds(toolset.Deps{Servers: w.pool})...).Kind(t, "TOOL.MCP_TOOL")
	if w.kind.Run == nil || w.kind.Ready == nil || w.kind.Tools == nil {
		t.Fatal("there is no kind TOOL.MCP_TOOL")
	}
	return w
}

// tool makes or changes a tool.
func (w *toolWorld) tool(name, description string, a *sdk.ToolAnnotations, do func(args string) *sdk.CallToolResult) {
	w.server.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: a},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			w.calls.Add(1)
			return do(string(r.Params.Arguments)), nil
		})
}

func (w *toolWorld) activate(t *testing.T) {
	t.Helper()
	if _, err := w.pool.Activate(t.Context(), w.who(), "s", mcp.Activation{}); err != nil {
		t.Fatal(err)
	}
}

// forget lets the pool look at the server anew.
func (w *toolWorld) forget() { w.pool.Stop("w", "s", "") }

func (w *toolWorld) call(t *testing.T, config, input string) *node.Call {
	t.Helper()
	c := nodetest.NewCall(t, config, input)
	c.Workspace, c.Files, c.Detail = "w", &w.files, func(map[string]any) {}
	return c
}

// after is the run that follows a wait, with an answer.
func (w *toolWorld) after(t *testing.T, c *node.Call, wait node.Wait, outcome engine.AskOutcome, answer string) *node.Call {
	t.Helper()
	next := w.call(t, string(c.Config), string(c.Input))
	next.Wake, next.Memo = &node.Wake{By: engine.WakeAnswer, Outcome: outcome, Payload: json.RawMessage(answer)}, wait.Memo
	return next
}

// asks runs and checks that a person is asked.
func (w *toolWorld) asks(t *testing.T, c *node.Call, purpose, about string) node.Wait {
	t.Helper()
	out, err := w.kind.Run(t.Context(), c)
	wait, ok := out.(node.Wait)
	if err != nil || !ok || wait.Ask == nil || wait.Ask.Purpose != purpose || !strings.Contains(string(wait.Ask.Request), about) {
		t.Fatalf("got %+v, %v", out, err)
	}
	return wait
}

func (w *toolWorld) result(t *testing.T, c *node.Call, want string) {
	t.Helper()
	out, err := w.kind.Run(t.Context(), c)
	done, ok := out.(node.Done)
	if err != nil || !ok {
		t.Fatalf("got %+v, %v", out, err)
	}
	if diffs := nodetest.Differences("", nodetest.Value(t, want), nodetest.Value(t, string(done["result"]))); len(diffs) > 0 {
		t.Errorf("%v in %s", diffs, done["result"])
	}
}

func (w *toolWorld) fails(t *testing.T, c *node.Call, code fault.Code, about string) {
	t.Helper()
	out, err := w.kind.Run(t.Context(), c)
	if fault.CodeOf(err) != code || !strings.Contains(err.Error(), about) {
		t.Errorf("got %+v, %v, want %q about %q", out, err, code, about)
	}
}

func TestMCPTool_Alone(t *testing.T) {
	t.Parallel()
	w := newToolWorld(t)
	c := w.call(t, `{"server_id":"s","tool_name":"echo","function_args":{"a":1}}`, "")
	wait := w.asks(t, c, form.PurposeActivation, `"server_id":"s"`)
	for _, no := range []struct {
		outcome engine.AskOutcome
		answer  string
	}{{engine.AskDone, `{"accept":false}`}, {engine.AskDone, `{}`}, {engine.AskDone, `{"accept":"true"}`}, {engine.AskTimeout, ``}, {engine.AskCanceled, `{"accept":true}`}} {
		w.fails(t, w.after(t, c, wait, no.outcome, no.answer), fault.Forbidden, "nobody has accepted")
	}
	w.asks(t, c, form.PurposeActivation, "s") // nothing was activated by that
	yes := w.after(t, c, wait, engine.AskDone, `{"accept":true}`)
	w.result(t, yes, `{"result":{"said":{"a":1},"message":"said"},"success":true,"error_message":"","cached":false}`)
	w.result(t, yes, `{"success":true}`) // a second run of it, after a crash
	// What the author fixed wins; what is open comes with the input. A tool goes by three names.
	w.result(t, w.call(t, `{"server_id":"s","tool_name":"echo"}`, `{"tool_name":"put","function_args":{"b":2}}`), `{"result":{"said":{"b":2}}}`)
	for _, name := range []string{"put", "s/put", "s__put", "my_s__put"} {
		w.result(t, w.call(t, `{"server_id":"s","tool_prefix":"my_"}`, `{"tool_name":"`+name+`"}`), `{"result":{"message":"done"}}`)
	}
	before := w.calls.Load()
	w.fails(t, w.call(t, `{"server_id":"s"}`, ""), fault.ParameterMissing, "echo, put")
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"ecco"}`, ""), fault.NotFound, `did you mean "echo"?`)
	w.fails(t, w.call(t, `{"server_id":"t","tool_name":"echo"}`, ""), fault.NotFound, `it is not registered in this workspace; did you mean "s"?`)
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"echo","available_tools":["p*"]}`, ""), fault.ToolError, "available_tools; there are put")
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"echo","available_tools":["[p"]}`, ""), fault.InvalidConfig, "not a pattern")
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"echo"}`, `{"function_args":[1]}`), fault.ToolError, "must be an object")
	if w.calls.Load() != before {
		t.Error("a call that is refused reached the tool")
	}
	// Somebody else has not activated it.
	other := w.call(t, `{"server_id":"s","tool_name":"echo"}`, "")
	other.UserID = "bob"
	w.asks(t, other, form.PurposeActivation, "s")
}

func TestMCPTool_Drift(t *testing.T) {
	t.Parallel()
	w := newToolWorld(t)
	w.activate(t)
	say := func(text string) func(string) *sdk.CallToolResult {
		return func(string) *sdk.CallToolResult {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
		}
	}
	w.tool("put", "sends everything away", nil, say("second"))
	w.forget()
	c := w.call(t, `{"server_id":"s","tool_name":"put"}`, "")
	wait := w.asks(t, c, form.PurposeDrift, "sends everything away")
	w.fails(t, w.after(t, c, wait, engine.AskDone, `{"accept":false}`), fault.Forbidden, "difference")
	w.asks(t, c, form.PurposeDrift, "sends everything away")
	// Meanwhile it changes again: what was accepted is what was shown, and that is not what there is.
	w.tool("put", "sends even more away", nil, say("third"))
	w.forget()
	again := w.asks(t, w.after(t, c, wait, engine.AskDone, `{"accept":true}`), form.PurposeDrift, "sends even more away")
	if again.Ask.Key == wait.Ask.Key {
		t.Error("two differences are one question")
	}
	if w.calls.Load() != 0 {
		t.Error("a tool was called that nobody has accepted")
	}
	w.result(t, w.after(t, c, again, engine.AskDone, `{"accept":true}`), `{"result":{"message":"third"}}`)
	w.result(t, w.call(t, `{"server_id":"s","tool_name":"echo"}`, ""), `{"success":true}`) // the others were never in question
	// One that is new is asked about when somebody names it; one that is gone cannot be called.
	w.tool("extra", "is new", nil, say("x"))
	w.server.RemoveTools("echo")
	w.forget()
	w.asks(t, w.call(t, `{"server_id":"s","tool_name":"extra"}`, ""), form.PurposeDrift, "is new")
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"echo"}`, ""), fault.NotFound, "no longer has")
}

func TestMCPTool_Results(t *testing.T) {
	t.Parallel()
	w := newToolWorld(t)
	w.tool("picture", "", nil, func(string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.ImageContent{Data: []byte("pixels"), MIMEType: "image/png"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a/../note.txt", MIMEType: "text/plain", Text: "note"}},
			&sdk.ResourceLink{URI: "https://x.example/far", Name: "far"},
		}}
	})
	w.tool("fail", "", nil, func(string) *sdk.CallToolResult {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such city"}}}
	})
	w.tool("guarded", "", nil, func(string) *sdk.CallToolResult {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "Permission denied: the account may not read this"}}}
	})
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	w.tool("hang", "", &sdk.ToolAnnotations{ReadOnlyHint: true}, func(string) *sdk.CallToolResult {
		<-over
		return &sdk.CallToolResult{}
	})
	w.tool("much", "", nil, func(string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("界", 100<<10)}}}
	})
	w.activate(t)
	w.result(t, w.call(t, `{"server_id":"s","tool_name":"picture"}`, ""), `{"result":{"message":"image_1.png, note.txt, far","files":[
		{"name":"image_1.png","content_type":"image/png","size":6,"type":"image"},
		{"name":"note.txt","content_type":"text/plain","size":4,"type":"resource"},
		{"name":"far","uri":"https://x.example/far","type":"link"}]}}`)
	if w.files.Count() != 2 {
		t.Errorf("kept %d files", w.files.Count())
	}
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"fail"}`, ""), fault.ToolError, "no such city")
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"guarded"}`, ""), fault.Forbidden, "Permission denied")
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"hang","call_timeout_seconds":1}`, ""), fault.Timeout, "within 1s; raise the node's call_timeout_seconds")
	out, err := w.kind.Run(t.Context(), w.call(t, `{"server_id":"s","tool_name":"much"}`, ""))
	if err != nil {
		t.Fatal(err)
	}
	raw := out.(node.Done)["result"]
	if len(raw) > 65<<10 || !strings.Contains(string(raw), `"truncated":true`) || !json.Valid(raw) {
		t.Errorf("a result of %d bytes", len(raw))
	}
	// Of a call that got no answer nobody knows whether it was done; one that only reads is made again.
	w.cut.Store(true)
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"put"}`, ""), fault.OutcomeUnknown, "s")
	w.fails(t, w.call(t, `{"server_id":"s","tool_name":"echo"}`, ""), fault.NetworkError, "s")
	w.cut.Store(false)
	w.result(t, w.call(t, `{"server_id":"s","tool_name":"echo"}`, ""), `{"success":true}`)
}

func TestMCPTool_Attached(t *testing.T) {
	t.Parallel()
	w := newToolWorld(t)
	c := w.call(t, `{"server_id":"s","tool_prefix":"x_","approval":"always","call_timeout_seconds":100}`, "")
	ready := func(c *node.Call, purpose string) node.Wait {
		t.Helper()
		wait, err := w.kind.Ready(t.Context(), c)
		if err != nil || (wait == nil) != (purpose == "") || wait != nil && wait.Ask.Purpose != purpose {
			t.Fatalf("got %+v, %v, want %q", wait, err, purpose)
		}
		if wait == nil {
			return node.Wait{}
		}
		return *wait
	}
	wait := ready(c, form.PurposeActivation)
	// The answer to the question of another node does not answer this one.
	foreign := w.after(t, c, wait, engine.AskDone, `{"accept":true}`)
	foreign.NodeID = "another"
	ready(foreign, form.PurposeActivation)
	if _, err := w.kind.Ready(t.Context(), w.after(t, c, wait, engine.AskDone, `{"accept":false}`)); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("refused: %v", err)
	}
	ready(w.after(t, c, wait, engine.AskDone, `{"accept":true}`), "")
	offered := func(c *node.Call) []string {
		t.Helper()
		list, err := w.kind.Tools(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range list {
			if o.Withheld {
				continue
			}
			names = append(names, fmt.Sprintf("%s %s %s %q %d", o.Name, o.Effect, o.Approval, o.Description, o.TimeoutMS))
		}
		slices.Sort(names)
		return names
	}
	echo := fmt.Sprintf(`x_s__echo %s always "says it again" 1120000`, workflow.Idempotent)
	put := fmt.Sprintf(`x_s__put %s always "changes something" 1120000`, workflow.Once)
	if diff := cmp.Diff([]string{echo, put}, offered(c)); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
	only := w.call(t, `{"server_id":"s","tool_prefix":"x_","approval":"always","call_timeout_seconds":100,"available_tools":["s/e?ho"]}`, "")
	if diff := cmp.Diff([]string{echo}, offered(only)); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
	if _, err := w.kind.Tools(t.Context(), w.call(t, `{"server_id":"s","available_tools":["echo","s/pot"]}`, "")); fault.CodeOf(err) != fault.InvalidConfig || !strings.Contains(err.Error(), `did you mean "put"`) {
		t.Errorf("a tool that the server does not have is not offered, and nobody says so: %v", err)
	}
	// What has changed is asked about before anything is offered, unless the node cannot use it anyway.
	w.tool("put", "sends everything away", nil, nil)
	w.tool("extra", "is new", nil, nil)
	w.forget()
	ready(only, "")
	drift := ready(c, form.PurposeDrift)
	if strings.Contains(string(drift.Ask.Request), "extra") || !strings.Contains(string(drift.Ask.Request), "sends everything away") {
		t.Errorf("asked %s", drift.Ask.Request)
	}
	ready(w.after(t, c, drift, engine.AskDone, `{"accept":true}`), "")
	put = fmt.Sprintf(`x_s__put %s always "sends everything away" 1120000`, workflow.Once)
	if diff := cmp.Diff([]string{echo, put}, offered(c)); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
	w.server.RemoveTools("put")
	w.forget()
	ready(c, "")
	if diff := cmp.Diff([]string{echo}, offered(c)); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
}
