package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
	"tandem/client"
	"tandem/fault"
	"tandem/human/form"
)

// TestInputSchema_KeepsOrderAndDigits: models and people read the fields of a schema in the order in which its author wrote them.
func TestInputSchema_KeepsOrderAndDigits(t *testing.T) {
	t.Parallel()
	got := inputSchema(json.RawMessage(`{"properties": {"z": {"maximum": 12345678901234567890, "x-mcp-header": "Z"}, "b": true, "a": {"multipleOf": 1.10,
		"allOf": [{"x-mcp-header": 1, "type": "number"}]}, "no": false}, "title": "<t>"}`))
	want := `{"properties":{"z":{"maximum":12345678901234567890},"b":{},"a":{"multipleOf":1.10,"allOf":[{"type":"number"}]},"no":{"not":{}}},` +
		`"title":"<t>","type":"object"}`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestProposed_KeepsDigits: a number that a form proposes is the one that its author wrote.
func TestProposed_KeepsDigits(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"12345678901234567890", "1.10"} {
		got := proposed(&form.Entry{Kind: form.Number, Default: json.RawMessage(number)})
		if written := string(raw(got)); written != number {
			t.Errorf("%s became %s", number, written)
		}
	}
	if got := proposed(&form.Entry{Kind: form.Line, Default: json.RawMessage("1")}); got != nil {
		t.Errorf("a line proposes the number %v", got)
	}
}

func TestServer_Tools(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("plain", `null`)
	f.deploy("with schema!", `{"properties":{"n":{"type":"integer","x-mcp-header":7},"any":true},"required":["n"]}`)
	f.deploy("broken", `{"type":"object","properties":[]}`)
	f.deploy("list", `{"type":"array"}`)
	f.deploy("execution_status", `null`)
	f.deploy("agent_helper", `null`)
	f.deploy(strings.Repeat("long", 30), `null`)
	f.deploy("agent:hidden", `null`)
	f.deploy("draft", `null`)
	f.undeploy("draft")
	f.agents = []api.Agent{{ID: "helper", Name: "Helper", Description: "Helps."}}
	p := connect(t, f, Options{}, "", nil)
	list, err := p.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]string{}
	for _, tool := range list.Tools {
		schemas[tool.Name] = string(raw(tool.InputSchema))
		if len(tool.Name) > maxName {
			t.Errorf("%q is too long", tool.Name)
		}
	}
	open := schemas["plain"]
	want := map[string]string{
		"plain": open, "broken": open, "list": open, toolName("with schema!"): `{"properties":{"any":{},"n":{"type":"integer"}},"required":["n"],"type":"object"}`,
		toolName("execution_status"): open, toolName("agent_helper"): open, toolName(strings.Repeat("long", 30)): open,
		"agent_helper": schemas["agent_helper"], toolStatus: schemas[toolStatus], toolResume: schemas[toolResume],
	}
	if diff := cmp.Diff(want, schemas); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(schemas["agent_helper"], `"question"`) {
		t.Errorf("the agent's tool takes %s", schemas["agent_helper"])
	}
}

func TestServer_ToolsOfMany(t *testing.T) {
	t.Parallel()
	f := newFake()
	for n := range 2*listSize + 3 {
		f.deploy(fmt.Sprintf("w%04d", n), `null`)
	}
	p := connect(t, f, Options{}, "", nil)
	list, err := p.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2*listSize+3+2 {
		t.Errorf("%d tools, %v", len(list.Tools), err)
	}
}

// A client hears of workflows that come and go, and of nothing else.
func TestServer_ListChanged(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("one", `null`)
	p := connect(t, f, Options{Look: 10 * time.Millisecond}, "2025-06-18", nil)
	if _, err := p.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range 6 { // several looks at the same
		<-f.looks
	}
	select {
	case <-p.changed:
		t.Fatal("nothing has changed")
	default:
	}
	for _, change := range []func(){func() { f.deploy("two", `null`) }, func() { f.undeploy("one") }, func() { f.deploy("two", `{"type":"object","title":"new"}`) }} {
		change()
		<-p.changed
	}
	list, err := p.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 3 {
		t.Errorf("%d tools, %v", len(list.Tools), err)
	}
	if _, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "one"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("a tool that is gone: %v", err)
	}
}

func TestServer_Finished(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("add", `null`)
	f.started = func(r *fakeRun) {
		for n := range 3 {
			r.tell("node_completed", api.ExecutionUpdate{NodeExecution: &api.NodeExecution{NodeName: fmt.Sprint("node ", n)}})
		}
		r.finish(string(r.inputs))
	}
	p := connect(t, f, Options{}, "", nil)
	r, o := p.call(t, "add", `{"n": 7}`)
	if r.IsError || o.Status != "SUCCESS" || o.ExecutionID != "exec_1" || string(o.Outputs["end"]) != `{"n":7}` || !strings.Contains(textOf(r), `{"n":7}`) {
		t.Errorf("%+v %s", o, textOf(r))
	}
	first := <-p.told
	if first.Params.ProgressToken != "t" || first.Params.Progress != 1 || !strings.Contains(first.Params.Message, "exec_1") {
		t.Errorf("progress %+v", first.Params)
	}
}

func TestServer_Failed(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("bad", `null`)
	f.started = func(r *fakeRun) { r.fail("invalid_input", "no such city") }
	p := connect(t, f, Options{}, "", nil)
	r, o := p.call(t, "bad", `{}`)
	if !r.IsError || o.Error == nil || o.Error.Code != "invalid_input" || !strings.Contains(textOf(r), "no such city") {
		t.Errorf("%+v %s", o, textOf(r))
	}
	if strings.Contains(string(raw(r)), "secret places") {
		t.Error("what operators may know is told")
	}
	// To ask how it stands is not a failure.
	if r, o = p.call(t, toolStatus, `{"execution_id":"exec_1"}`); r.IsError || o.Status != "ERROR" || o.Error.Message != "no such city" {
		t.Errorf("status: %v %+v", r.IsError, o)
	}
}

// What the API refuses is told to the model, so that it can do better.
func TestServer_Refused(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("w", `null`)
	p := connect(t, f, Options{}, "", nil)
	f.refusal = &client.Error{Fault: api.Fault{Code: string(fault.InvalidInput), Detail: "inputs.n: a number was expected"}, RetryAfter: 3 * time.Second}
	r, o := p.call(t, "w", `{"n":"x"}`)
	if !r.IsError || o.Error.Code != "invalid_input" || !strings.Contains(textOf(r), "a number was expected") || !strings.Contains(textOf(r), "3s") || o.ExecutionID != "" {
		t.Errorf("%+v %s", o, textOf(r))
	}
	f.refusal = nil
	for _, c := range []struct{ tool, arguments, want string }{
		{toolStatus, `{}`, "execution_id is missing"}, {toolStatus, `{"execution_id":"nope"}`, "no execution"}, {toolStatus, `[]`, "do not fit"},
		{toolResume, `{}`, "execution_id is missing"}, {toolResume, `{"execution_id":"nope","answer":1}`, "no execution"},
	} {
		if r, _ := p.call(t, c.tool, c.arguments); !r.IsError || !strings.Contains(textOf(r), c.want) {
			t.Errorf("%s %s: %s", c.tool, c.arguments, textOf(r))
		}
	}
	f.undeployAfterListing(t, p)
}

// A tool that a client still shows is not run once its workflow is not deployed.
func (f *fake) undeployAfterListing(t *testing.T, p *peer) {
	t.Helper()
	before := len(f.starts)
	f.undeploy("w")
	if r, _ := p.call(t, "w", `{}`); !r.IsError || !strings.Contains(textOf(r), "no longer deployed") || len(f.starts) != before {
		t.Errorf("%s, %d starts", textOf(r), len(f.starts)-before)
	}
}

func TestServer_Unreachable(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.refusal = fault.New(fault.Unauthorized, "the token is not known")
	s := New(f, Options{Version: "test"})
	defer s.Close()
	_, there := mcp.NewInMemoryTransports()
	if err := s.Serve(t.Context(), there); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("got %v", err)
	}
}

// What takes longer than the client is made to wait is a handle, by which it is asked for later.
func TestServer_Handle(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("slow", `null`)
	p := connect(t, f, Options{Wait: 20 * time.Millisecond}, "", nil)
	r, o := p.call(t, "slow", `{}`)
	if r.IsError || o.Status != "RUNNING" || o.ExecutionID != "exec_1" || o.StatusTool != toolStatus || o.Resume != "" || !strings.Contains(textOf(r), "exec_1") {
		t.Errorf("%+v %s", o, textOf(r))
	}
	if _, o = p.call(t, toolStatus, `{"execution_id":"exec_1","wait_seconds":0.01}`); o.Status != "RUNNING" {
		t.Errorf("%+v", o)
	}
	f.runs["exec_1"].finish(`"late"`)
	if r, o = p.call(t, toolStatus, `{"execution_id":"exec_1","wait_seconds":5}`); r.IsError || string(o.Outputs["end"]) != `"late"` {
		t.Errorf("%+v %s", o, textOf(r))
	}
	if len(f.starts) != 1 {
		t.Errorf("%d starts", len(f.starts))
	}
}

// A client that gives a call up does not end the execution.
func TestServer_Cancelled(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("slow", `null`)
	began := make(chan *fakeRun, 1)
	f.started = func(r *fakeRun) { began <- r }
	p := connect(t, f, Options{}, "", nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.CallTool(ctx, &mcp.CallToolParams{Name: "slow"})
		ended <- err
	}()
	r := <-began
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call was given up and has a result")
	}
	for range maxCalls { // the call lets go of its place
		p.gateway.calls <- struct{}{}
	}
	for range maxCalls {
		<-p.gateway.calls
	}
	r.finish(`1`)
	if _, o := p.call(t, toolStatus, `{"execution_id":"exec_1"}`); o.Status != "SUCCESS" {
		t.Errorf("%+v", o)
	}
}

func TestServer_Paused(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("w", `null`)
	f.started = func(r *fakeRun) {
		r.change(func() { r.e.Status = "PAUSED"; r.add("execution_paused", api.ExecutionUpdate{Reason: "operator"}) })
	}
	p := connect(t, f, Options{}, "", nil)
	r, o := p.call(t, "w", `{}`)
	if r.IsError || o.Status != "PAUSED" || o.Resume != toolResume {
		t.Errorf("%+v %s", o, textOf(r))
	}
	if r, o = p.call(t, toolResume, `{"execution_id":"exec_1"}`); r.IsError || string(o.Outputs["end"]) != `"resumed"` {
		t.Errorf("%+v %s", o, textOf(r))
	}
}

func TestServer_LargeOutputs(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("w", `null`)
	f.values["aa"] = `"` + strings.Repeat("x", 500) + `"`
	f.started = func(r *fakeRun) {
		r.change(func() {
			r.e.Status, r.e.Outputs = "SUCCESS", map[string]json.RawMessage{
				"a": json.RawMessage(`"small"`), "b": json.RawMessage(`{"$blob":"aa","size":502}`), "c": json.RawMessage(`{"$blob":"bb","size":5000000}`),
				"d": json.RawMessage(`"` + strings.Repeat("y", 2000) + `"`), "e": json.RawMessage(`"last"`),
			}
			r.add("execution_completed", api.ExecutionUpdate{})
		})
	}
	p := connect(t, f, Options{MaxOutput: 1000}, "", nil)
	r, o := p.call(t, "w", `{}`)
	want := map[string]json.RawMessage{
		"a": json.RawMessage(`"small"`), "b": json.RawMessage(f.values["aa"]), "c": json.RawMessage(`{"$omitted":true,"size":5000000}`),
		"d": json.RawMessage(`{"$omitted":true,"size":2002}`), "e": json.RawMessage(`"last"`),
	}
	if diff := cmp.Diff(want, o.Outputs); diff != "" || !o.Truncated || len(raw(r)) > 4000 {
		t.Errorf("%d bytes, truncated %v (-want +got):\n%s", len(raw(r)), o.Truncated, diff)
	}
}

func TestServer_Agent(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.agents = []api.Agent{{ID: "helper"}}
	f.started = func(r *fakeRun) {
		r.e.Task = &api.Task{FullAnswer: "It is 3."}
		r.finish(`{"$blob":"aa","size":5000000}`) // the results of its steps are large
	}
	p := connect(t, f, Options{}, "", nil)
	r, o := p.call(t, "agent_helper", `{"question":"1+2?","metadata":{"a":1},"conversation_id":"c","language":"en","auto_execute":true}`)
	if r.IsError || o.Answer != "It is 3." || textOf(r) != "It is 3." || !o.Truncated {
		t.Errorf("%+v %s", o, textOf(r))
	}
	want := api.TaskRequest{Question: "1+2?", Metadata: json.RawMessage(`{"a":1}`), ConversationID: "c", Language: "en"}
	if diff := cmp.Diff(want, f.runs["exec_1"].task); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A defect of the gateway ends a call and not the process.
func TestServer_Defect(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("w", `null`)
	f.started = func(*fakeRun) { panic("a defect") }
	p := connect(t, f, Options{}, "", nil)
	if _, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "w"}); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("got %v", err)
	}
	if _, err := p.ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// More calls than a caller may have waiting are refused; the others end with the gateway.
func TestServer_ManyCalls(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.deploy("slow", `null`)
	began := make(chan *fakeRun, maxCalls)
	f.started = func(r *fakeRun) { began <- r }
	p := connect(t, f, Options{}, "", nil)
	results := make(chan string, maxCalls)
	for range maxCalls {
		go func() {
			r, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "slow"})
			if err != nil {
				results <- err.Error()
				return
			}
			results <- textOf(r)
		}()
	}
	for range maxCalls {
		<-began
	}
	if r, o := p.call(t, "slow", `{}`); !r.IsError || o.Error.Code != "rate_limited" {
		t.Errorf("%+v", o)
	}
	p.gateway.end()
	for range maxCalls {
		if text := <-results; !strings.Contains(text, "stopping") || !strings.Contains(text, "goes on") {
			t.Fatalf("got %q", text)
		}
	}
}

// What happens is told as it happens, also when it takes no time; of very much, the last of it is.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ nodes, least, most int }{"Few": {3, 7, 7}, "Many": {500, progressBurst, 400}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.deploy("w", `null`)
			f.started = func(r *fakeRun) {
				for i := range c.nodes {
					r.tell("node_started", api.ExecutionUpdate{NodeExecution: &api.NodeExecution{NodeID: fmt.Sprint("n", i)}})
					r.tell("node_completed", api.ExecutionUpdate{NodeExecution: &api.NodeExecution{NodeID: fmt.Sprint("n", i)}})
				}
				r.finish(`1`)
			}
			p := connect(t, f, Options{}, "2025-06-18", nil)
			if r, o := p.call(t, "w", `{}`); r.IsError || o.Status != "SUCCESS" {
				t.Fatalf("%+v %s", o, textOf(r))
			}
			last := fmt.Sprintf("n%d is completed", c.nodes-1)
			for n := 1; ; n++ {
				var told *mcp.ProgressNotificationParams
				select {
				case notice := <-p.told:
					told = notice.Params
				case <-time.After(2 * time.Minute):
					t.Fatalf("%q was not told", last)
				}
				if told.Progress != float64(n) {
					t.Fatalf("notice %d has progress %v", n, told.Progress)
				}
				if told.Message == last {
					if n < c.least || n > c.most {
						t.Errorf("%d notices", n)
					}
					break
				}
			}
		})
	}
}
