package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/fixture"
	"tandem/host"
	"tandem/identity"
	"tandem/outbound"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// plays records an execution, plays it from what a file would hold, and wants the same.
func (i *Instance) plays(t *testing.T, execution string) *fixture.Fixture {
	t.Helper()
	f, report, err := i.Record(t.Context(), identity.System("default"), execution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Differences {
		t.Errorf("at once: %s", d)
	}
	data, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlayer(codeCache())
	defer p.Close()
	if r := playFixture(t, p, data, ""); !r.Same() || r.Status != f.Expect.Status {
		t.Errorf("%s, recorded %s: %s", r.Status, f.Expect.Status, lines(r))
	}
	if t.Failed() {
		t.Logf("%s", data)
	}
	return f
}

// flowOf is a workflow of the given nodes and connections behind a trigger.
func flowOf(id, nodes, connections string) string {
	return "metadata: {id: " + id + ", name: " + id + ", description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n" + nodes + "connections:\n" + connections
}

// has says that an entry of a fixture is so.
func has(f *fixture.Fixture, is func(fixture.Entry) bool) bool {
	return slices.ContainsFunc(f.Entries, is)
}

func TestInstance_RecordsTime(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, flowOf("time", `  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 0.05}}
  - {id: limit, description: d, type: FLOW, subtype: TIMEOUT, configurations: {timeout_seconds: 0.2}}
  - {id: inner, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: timer, for_seconds: 3600}}
  - {id: late, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: clock, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
`, `  - {from_node: start, to_node: nap}
  - {from_node: nap, to_node: limit}
  - {from_node: limit, to_node: inner, output_key: body}
  - {from_node: inner, to_node: limit}
  - {from_node: limit, to_node: late, output_key: timeout}
  - {from_node: late, to_node: clock, conversion_function: "{at: now()}"}
`))
	id := x.execute(t, "time", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusSuccess)
	f := x.plays(t, id)
	if !has(f, func(e fixture.Entry) bool { return e.Timer == "nap#wait.1" }) || !has(f, func(e fixture.Entry) bool { return e.Timer == "limit#deadline.1" }) {
		t.Errorf("timers are missing in %+v", f.Entries)
	}
	if !slices.Equal(f.Ignore, []string{"limit: output.timeout.elapsed_seconds"}) {
		t.Errorf("ignored %q", f.Ignore)
	}
}

func TestInstance_RecordsOperators(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	var calls atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" || calls.Add(1) == 1 {
			http.Error(w, "no", http.StatusNotFound)
		}
	}))
	defer web.Close()
	x.save(t, flowOf("ops", `  - {id: a, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "`+web.URL+`/a"}}
  - {id: b, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "`+web.URL+`/gone"}}
  - {id: c, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "`+web.URL+`/gone", on_error: continue}}
  - {id: d, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
`, `  - {from_node: start, to_node: a}
  - {from_node: a, to_node: b}
  - {from_node: b, to_node: c}
  - {from_node: c, to_node: d, output_key: error, conversion_function: "{code: error_code}"}
`))
	id := x.execute(t, "ops", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusError)
	x.plays(t, id)
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "retry_node", NodeID: "a"}), http.StatusOK)
	x.reaches(t, id, engine.StatusError) // of b; the retry has set it to RUNNING before it was answered
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", NodeID: "b", Output: json.RawMessage(`{"given": true}`)}), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	f := x.plays(t, id)
	if got := string(f.Expect.Output["d"]); got != `{"code":"not_found"}` {
		t.Errorf("output %s", got)
	}
	if !has(f, func(e fixture.Entry) bool { return e.Request != nil && string(e.Request.Value) == `{"given":true}` }) {
		t.Errorf("the operator's output is missing in %+v", f.Entries)
	}
}

// An attempt whose time was up has no outcome, and the one after it has.
func TestInstance_RecordsATimeout(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	var calls atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			<-r.Context().Done()
		}
	}))
	defer web.Close()
	x.save(t, flowOf("slow", `  - {id: a, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "`+web.URL+`", timeout: 1, max_retries: 1}}
`, "  - {from_node: start, to_node: a}\n"))
	id := x.execute(t, "slow", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusSuccess)
	f := x.plays(t, id)
	if !has(f, func(e fixture.Entry) bool {
		return e.Run != nil && e.Run.Activation == "a" && e.Run.Attempt == 2 && e.Run.Result != nil
	}) {
		t.Errorf("the second attempt is missing in %+v", f.Entries)
	}
	// A recording that has lost an answer says so, and nothing is called.
	for i := range f.Entries {
		if run := f.Entries[i].Run; run != nil && run.Attempt == 2 {
			run.Attempt = 3
		}
	}
	data, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	before := calls.Load()
	if r := playFixture(t, newPlayer(t), data, ""); !strings.Contains(lines(r), "a: attempt 2 of ACTION.HTTP_REQUEST asks for something that was not recorded") || calls.Load() != before {
		t.Errorf("%d calls, %s", calls.Load()-before, lines(r))
	}
}

// A long loop is recorded whole: one entry for each iteration.
func TestInstance_RecordsALongLoop(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, flowOf("long", `  - {id: each, description: d, type: FLOW, subtype: LOOP, configurations: {loop_type: for_range, end_value: 2000, max_iterations: 5000, collect_results: false}}
  - {id: work, description: d, type: CALL, subtype: EMPTY}
`, "  - {from_node: start, to_node: each}\n  - {from_node: each, to_node: work, output_key: iteration}\n  - {from_node: work, to_node: each}\n"))
	id := x.execute(t, "long", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusSuccess)
	began := time.Now()
	f := x.plays(t, id)
	t.Logf("%d entries recorded and played in %s", len(f.Entries), time.Since(began))
	if len(f.Entries) < 2000 {
		t.Errorf("%d entries", len(f.Entries))
	}
}

func TestInstance_RecordsPeople(t *testing.T) {
	t.Parallel()
	x, tools := openSite(t), newCounted(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "user" {
			return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"method":"POST","url":"`+tools.URL+`/pay"}`)}}
		}
		return chatReply{text: []string{last.text()}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: m, tool_approval: always}`, `web`, httpTool("web", ``)))
	id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"pay"}`)})
	x.reaches(t, id, engine.StatusWaitingForHuman)
	if f := x.plays(t, id); f.Expect.Status != engine.StatusWaitingForHuman {
		t.Errorf("recorded %s", f.Expect.Status)
	}
	want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "agent", InputData: json.RawMessage(`{"approved":true}`)}), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	f := x.plays(t, id)
	if !has(f, func(e fixture.Entry) bool { return e.Answer != nil && strings.HasSuffix(e.Answer.To, "#ask.1") }) {
		t.Errorf("the answer is missing in %+v", f.Entries)
	}
}

func TestInstance_RecordsChildren(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, flowOf("kid", "  - {id: k, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}\n", "  - {from_node: start, to_node: k}\n"))
	x.save(t, flowOf("parent", "  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: kid, revision: latest}, input_params: {x: 7}}\n", "  - {from_node: start, to_node: sub}\n"))
	id := x.execute(t, "parent", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusSuccess)
	f := x.plays(t, id)
	if !has(f, func(e fixture.Entry) bool {
		return e.Child != nil && e.Child.Of == "sub#child.1" && e.Child.Status == engine.StatusSuccess
	}) {
		t.Errorf("the child is missing in %+v", f.Entries)
	}
	kids, err := x.stores.Executions.List(t.Context(), identity.System("default"), store.ExecutionQuery{Parent: id, Page: store.Page{Number: 1, Size: 1}})
	if err != nil || len(kids.Executions) != 1 {
		t.Fatalf("%v, %v", kids, err)
	}
	x.plays(t, kids.Executions[0].ID)
}

func TestInstance_RecordsTemplatesAndPython(t *testing.T) {
	t.Parallel()
	i := openWithCode(t, sqlitetest.Dir(t))
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := i.stores.Templates.Put(t.Context(), user, store.Template{ID: "t", Kind: "CALL.EMPTY", Name: "T", KnownParams: json.RawMessage(`{"pass_through":true}`)}); err != nil {
		t.Fatal(err)
	}
	i.saveText(t, flowOf("py", "  - {id: say, description: d, type: CALL, subtype: EMPTY, configurations: {template_id: t}}\n",
		"  - {from_node: start, to_node: say, conversion_function: \"def convert(v):\\n  import random\\n  return {'n': len(v['list']), 'r': random.random()}\"}\n"))
	id := i.startText(t, "py", `{"list":[1,2,3]}`)
	i.ends(t, id, engine.StatusSuccess)
	f := i.plays(t, id)
	if !strings.HasPrefix(string(f.Expect.Output["say"]), `{"n":3,"r":0.`) || len(f.Templates) == 0 || len(f.Ignore) > 0 {
		t.Errorf("output %s, templates %s, ignored %q", f.Expect.Output["say"], f.Templates, f.Ignore)
	}
}

// A run that was under way when the process ended is in the recording without an end.
func TestInstance_RecordsARestart(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer web.Close()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	dir := sqlitetest.Dir(t)
	open := func() *Instance {
		i, err := Open(t.Context(), Options{Dir: dir, HTTPAllow: allow})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	i := open()
	i.saveText(t, flowOf("pay", `  - {id: post, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "`+web.URL+`", on_unknown: retry}}
`, "  - {from_node: start, to_node: post}\n"))
	id := i.startText(t, "pay", `{}`)
	<-arrived
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	i = open()
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	<-arrived
	close(release)
	i.ends(t, id, engine.StatusSuccess)
	f := i.plays(t, id)
	if !has(f, func(e fixture.Entry) bool { return e.Run != nil && e.Run.Activation == "post" && e.Run.Result == nil }) {
		t.Errorf("the lost run is missing in %+v", f.Entries)
	}
}

// What is large is kept once, where a replay needs it, and is compared all the same.
func TestInstance_RecordsLargeValues(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	large := strings.Repeat("x", 100_000)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, large) }))
	defer web.Close()
	flow := flowOf("large", `  - {id: get, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "`+web.URL+`"}}
  - {id: pass, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: sql, description: d, type: ACTION, subtype: DATABASE_QUERY, configurations: {query: "select {{n}} as n", credential_id: none, on_error: continue, max_retries: 0}}
`, `  - {from_node: start, to_node: get}
  - {from_node: get, to_node: pass, conversion_function: "{said: body}"}
  - {from_node: start, to_node: sql}
`)
	x.save(t, flow)
	id := x.execute(t, "large", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":5}`)})
	x.reaches(t, id, engine.StatusSuccess)
	f := x.plays(t, id)
	data, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), large); n != 1 || len(f.Expect.Large) != 1 {
		t.Errorf("it is kept %d times, %v", n, f.Expect.Large)
	}
	if r := playFixture(t, newPlayer(t), data, strings.Replace(flow, "{said: body}", "{said: body + 'y'}", 1)); !strings.Contains(lines(r), "pass: output.result is not what it was") || !strings.Contains(lines(r), "outputs.pass is not what it was") {
		t.Errorf("%s", lines(r))
	}
	if r := playFixture(t, newPlayer(t), data, strings.Replace(flow, "{{n}}", "{{execution.id}}", 1)); !strings.Contains(lines(r), `sql: bound["configurations.query"][0]: recorded 5, now "exec_`) {
		t.Errorf("%s", lines(r))
	}
}

// A fork is recorded with the past that it shares, also the fork of a fork.
func TestInstance_RecordsForks(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	var calls atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"n": %d}`, calls.Add(1))
	}))
	defer web.Close()
	call := func(id string) string {
		return "  - {id: " + id + `, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "` + web.URL + "/" + id + `/{{x}}"}}` + "\n"
	}
	x.save(t, flowOf("forks", call("a")+call("b")+call("c")+"  - {id: aside, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: timer, for_seconds: 0.3}}\n", `  - {from_node: start, to_node: aside}
  - {from_node: start, to_node: a}
  - {from_node: a, to_node: b}
  - {from_node: b, to_node: c}
`))
	id := x.execute(t, "forks", api.ExecuteRequest{Inputs: json.RawMessage(`{"x":"one"}`)})
	x.reaches(t, id, engine.StatusSuccess)
	source := x.plays(t, id)
	fork := func(from, node, input string) string {
		t.Helper()
		id, err := x.host.Fork(t.Context(), user, host.ForkRequest{Source: from, ID: NewExecutionID(), Node: node, Input: json.RawMessage(input)})
		if err != nil {
			t.Fatal(err)
		}
		x.reaches(t, id, engine.StatusSuccess)
		return id
	}
	first := fork(id, "b", `{"x":"two"}`)
	f := x.plays(t, first)
	if got, was := string(f.Expect.Output["c"]), string(source.Expect.Output["c"]); got == was || !has(f, func(e fixture.Entry) bool { return e.Fork != nil && string(e.Fork.Input) == `{"x":"two"}` }) {
		t.Errorf("output %s, of the source %s", got, was)
	}
	if second := x.plays(t, fork(first, "c", "")); len(second.Entries) == 0 || second.Execution.ID != id {
		t.Errorf("recorded %+v", second.Execution)
	}
}
