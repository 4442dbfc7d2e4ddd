package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/fixture"
	"tandem/host"
	"tandem/identity"
	"tandem/llm"
	"tandem/workflow"
)

// canary is a secret that must not be in a fixture.
const canary = "canary-7f3a9c-secret"

// recordedFlow has one of everything that a recording is about: a call with a credential, one that fails first, a model with
// a tool, a wait for a signal, code on a connection and in a node, a loop, and a condition.
func recordedFlow(url string) string {
	return `
metadata: {id: order, name: order, description: one of everything}
nodes:
  - {id: start, name: start, description: begins, type: TRIGGER, subtype: MANUAL}
  - {id: fetch, name: fetch, description: asks, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "` + url + `/price/{{item}}", credential_id: token}}
  - {id: shaky, name: shaky, description: fails first, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "` + url + `/shaky"}}
  - {id: check, name: check, description: decides, type: FLOW, subtype: IF, configurations: {condition_expression: "price > 100"}}
  - id: agent
    name: agent
    description: answers
    type: AI_AGENT
    subtype: LLM
    configurations: {profile_id: demo, system_prompt: be brief, user_prompt: "look up {{item}}"}
    attached_nodes: [web]
  - {id: web, name: web, description: calls, type: TOOL, subtype: HTTP_CLIENT, configurations: {allowed_domains: [127.0.0.1], allowed_methods: [GET]}}
  - {id: gate, name: gate, description: waits, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 3600}}
  - {id: each, name: each, description: repeats, type: FLOW, subtype: FOR_EACH, input_params: {list: "{{list}}"}, configurations: {items_path: list, max_concurrency: 2}}
  - {id: call, name: call, description: asks for each, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "` + url + `/each/{{item}}"}}
  - {id: code, name: code, description: computes, type: ACTION, subtype: RUN_CODE, configurations: {language: javascript, code: "function run(input) { return {sum: input.price * 2} }"}}
  - {id: cheap, name: cheap, description: ends, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: done, name: done, description: ends, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: fetch}
  - {from_node: fetch, to_node: shaky, conversion_function: "(v) => ({price: v.json.price, at: 'x'})"}
  - {from_node: fetch, to_node: check, conversion_function: "{price: json.price}"}
  - {from_node: check, to_node: agent, output_key: "true"}
  - {from_node: check, to_node: cheap, output_key: "false"}
  - {from_node: agent, to_node: gate}
  - {from_node: gate, to_node: code, conversion_function: "{price: 21}"}
  - {from_node: code, to_node: each}
  - {from_node: each, to_node: call, output_key: iteration}
  - {from_node: call, to_node: each}
  - {from_node: each, to_node: done, output_key: completed}
`
}

// recorded runs the workflow to its end, ends every service and returns the fixture as a file would hold it.
func recorded(t *testing.T) (data []byte, flow string) {
	t.Helper()
	x := openSite(t)
	var shaky atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/shaky" && shaky.Add(1) == 1:
			w.Header().Set("Retry-After", "0")
			http.Error(w, "not now", http.StatusServiceUnavailable)
		case strings.HasPrefix(r.URL.Path, "/price/"):
			fmt.Fprintf(w, `{"price": 120, "authorized": %q}`, r.Header.Get("Authorization"))
		default:
			fmt.Fprintf(w, `{"path": %q, "z": 1, "a": "<&>"}`, r.URL.Path)
		}
	}))
	defer web.Close()
	token := want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"token","type":"http_auth","data":{"scheme":"bearer","token":"`+canary+`"}}`), http.StatusCreated)
	x.saveProfile(t, llm.Profile{ID: "demo", Provider: "scripted", Model: "m", Script: llm.Script{Rules: []llm.Rule{
		{Tool: "http_request", Reply: "It says {{tool}}."},
		{Contains: "look up", Calls: []llm.RuleCall{{Name: "http_request", Arguments: json.RawMessage(`{"url":"` + web.URL + `/tool"}`)}}},
	}}})
	flow = strings.Replace(recordedFlow(web.URL), "credential_id: token", "credential_id: "+token.ID, 1)
	x.save(t, flow)
	id := x.execute(t, "order", api.ExecuteRequest{Inputs: json.RawMessage(`{"item":"pen","list":["a","b"]}`)})
	x.waitsAt(t, id, "gate")
	signal := host.Request{Execution: id, Action: host.ActionSignal, Node: "gate", Signal: "go", Value: json.RawMessage(`{"by":"ann"}`)}
	if _, err := x.host.Act(t.Context(), identity.System("default"), signal); err != nil {
		t.Fatal(err)
	}
	x.reaches(t, id, engine.StatusSuccess)
	f, report, err := x.Record(t.Context(), identity.System("default"), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Differences {
		t.Errorf("at once: %s", d)
	}
	if data, err = f.Encode(); err != nil {
		t.Fatal(err)
	}
	return data, flow
}

// waitsAt waits until a node of an execution waits.
func (x *site) waitsAt(t testing.TB, id string, node engine.ActivationID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	sub := x.hub.Subscribe(host.Ref{Workspace: "default", Execution: id})
	defer sub.Close()
	for {
		for row, err := range x.source.Rows(ctx, identity.System("default"), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(row.Facts, func(f engine.Fact) bool { s, ok := f.(engine.NodeSuspended); return ok && s.Activation == node }) {
				return
			}
		}
		if list, more, behind := sub.Next(); len(list) == 0 && !behind {
			select {
			case <-more:
			case <-ctx.Done():
				t.Fatalf("node %q of execution %q does not wait", node, id)
			}
		}
	}
}

// newPlayer is a player for one test, with the interpreters that are compiled already.
func newPlayer(t *testing.T) *Player {
	t.Helper()
	if err := python(); err != nil {
		t.Fatal(err)
	}
	p := NewPlayer(codeCache())
	t.Cleanup(p.Close)
	return p
}

// playFixture plays a fixture with a workflow, the recorded one when it is empty.
func playFixture(t *testing.T, p *Player, data []byte, flow string) fixture.Report {
	t.Helper()
	f, err := fixture.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	var def *workflow.Definition
	if flow != "" {
		source, problems := check([]byte(flow), p.kinds, nil)
		if source == nil || workflow.HasErrors(problems) {
			t.Fatalf("%v", problems)
		}
		def = source.Definition
	}
	report, err := p.Play(t.Context(), f, def)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func lines(r fixture.Report) string {
	var b strings.Builder
	for _, d := range r.Differences {
		fmt.Fprintln(&b, d)
	}
	return b.String()
}

func TestInstance_Record(t *testing.T) {
	t.Parallel()
	data, flow := recorded(t)
	p := newPlayer(t)
	t.Run("PlaysWithoutServices", func(t *testing.T) {
		t.Parallel()
		r := playFixture(t, p, data, "")
		if !r.Same() || r.Status != engine.StatusSuccess {
			t.Errorf("%s: %s", r.Status, lines(r))
		}
		// fetch, shaky twice, two of the loop; the agent's opening, two completions, a tool call and its close.
		if r.Answered != 10 {
			t.Errorf("%d runs were answered, want 10", r.Answered)
		}
		if again := playFixture(t, p, data, flow); !again.Same() {
			t.Errorf("the same workflow from its file: %s", lines(again))
		}
	})
	t.Run("HoldsNoSecret", func(t *testing.T) {
		t.Parallel()
		if bytes.Contains(data, []byte(canary)) || !bytes.Contains(data, []byte(`"authorized"`)) {
			t.Error("the secret is in the fixture, or the service has not echoed it")
		}
	})
	t.Run("IsStable", func(t *testing.T) {
		t.Parallel()
		f, err := fixture.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		again, err := f.Encode()
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("a fixture that is read and written is another (%v)", err)
		}
	})
	for _, change := range []struct{ name, old, new, want string }{
		{"NamesAPrompt", "be brief", "be long", `agent: configurations.system_prompt: recorded "be brief", now "be long"`},
		{"NamesAnAddress", "/each/{{item}}", "/any/{{item}}", `each[1]/call: configurations.url: recorded "`},
		{"NamesACondition", "price > 100", "price > 1000", `check: it went by "true", and now goes by "false"`},
		{"NamesWhatIsMissing", "price > 100", "price > 1000", `agent: it was completed and is skipped`},
		{"NamesAConversion", "at: 'x'", "at: 'y'", `shaky: input.at: recorded "x", now "y"`},
		{"NamesCode", "input.price * 2", "input.price * 3", `code: output.result.result.sum: recorded 42, now 63`},
		{"NamesASignal", "signal_name: go", "signal_name: stop", `gate: `},
		{"NamesRetries", `/shaky"}`, `/shaky", max_retries: 0}`, `shaky: it was completed and is failed`},
		{"NamesNewCalls", "{from_node: code, to_node: each}", "{from_node: code, to_node: each}\n  - {from_node: code, to_node: more}", `more: attempt 1 of ACTION.HTTP_REQUEST asks for something that was not recorded`},
	} {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(flow, change.old, change.new, 1)
			if strings.Contains(change.new, "more}") {
				changed = strings.Replace(changed, "connections:\n", "  - {id: more, name: more, description: new, type: ACTION, subtype: HTTP_REQUEST, configurations: {url: \"http://127.0.0.1:1/x\"}}\nconnections:\n", 1)
			}
			if changed == flow {
				t.Fatal("nothing was changed")
			}
			if r := playFixture(t, p, data, changed); !strings.Contains(lines(r), change.want) {
				t.Errorf("the report does not tell of it:\n%s\nwant: %s", lines(r), change.want)
			}
		})
	}
	t.Run("ChecksInTests", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "order.tandem.json")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p.Check(t, file, "")
	})
}
