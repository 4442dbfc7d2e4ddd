package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/llm"
	"tandem/outbound"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// orderSchema is what the nodes of these tests need.
const orderSchema = `{"type":"object","required":["to","amount"],"properties":{
	"to":{"type":"string","minLength":2,"description":"who gets it"},"amount":{"type":"integer","minimum":1},"note":{"type":"string"}}}`

// orderFlow is a workflow with one node that wants its input filled. Before is what comes ahead of it.
func orderFlow(config, before string) string {
	first, second := "send", ""
	if before != "" {
		first, second = "before", "  - {from_node: before, to_node: send, conversion_function: \"{'m': 1}\"}\n"
	}
	return `
metadata: {id: order, name: order, description: d}
nodes:
  - {id: start, name: start, description: d, type: TRIGGER, subtype: MANUAL}
` + before + `
  - {id: send, name: Send, description: d, type: CALL, subtype: EMPTY, configurations: {template_id: order, enable_filling: true, pass_through: true` + config + `}, input_params: {given: true}}
connections:
  - {from_node: start, to_node: ` + first + `, conversion_function: "{'n': 1}"}
` + second
}

func orderTemplate(t *testing.T, i *Instance, kind string) {
	t.Helper()
	if err := i.stores.Templates.Put(t.Context(), user, store.Template{ID: "order", Kind: kind, Name: "Order", OverrideInput: json.RawMessage(orderSchema)}); err != nil {
		t.Fatal(err)
	}
}

// fillingSite is a site with the template, and a profile that follows rules.
func fillingSite(t *testing.T, rules ...llm.Rule) *site {
	t.Helper()
	x := openSite(t)
	orderTemplate(t, x.Instance, "CALL.EMPTY")
	if rules != nil {
		if err := x.SaveProfile(t.Context(), user, llm.Profile{ID: "filler", Provider: "scripted", Model: "m", Script: llm.Script{Rules: rules}}); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// slotsOf is the output of the filling of the node.
func slotsOf(t *testing.T, e api.Execution) (out struct {
	Data      map[string]any  `json:"slot_data"`
	Filled    []string        `json:"filled_fields"`
	Remaining json.RawMessage `json:"remaining_schema"`
}) {
	t.Helper()
	step, ok := stepOf(e, "send", "filling")
	if !ok || step.NodeType != "CALL" || step.NodeSubtype != "SLOT" || step.ActivationID != "send[0]/filling" {
		t.Fatalf("the filling is told as %+v", step)
	}
	if err := json.Unmarshal(step.OutputData["result"], &out); err != nil {
		t.Fatalf("%s: %v", step.OutputData["result"], err)
	}
	return out
}

func (x *site) sent(t *testing.T, id string) map[string]any {
	t.Helper()
	x.reaches(t, id, engine.StatusSuccess)
	var out map[string]any
	if err := json.Unmarshal(x.read(t, id).NodeExecutions["send"].OutputData["result"], &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFilling_FindsWhatTheExecutionKnows(t *testing.T) {
	t.Parallel()
	x := fillingSite(t)
	x.save(t, orderFlow("", `  - {id: before, name: before, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {to: Bo, amount: 3, x: 1}}`))
	id := x.execute(t, "order", api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":7,"to":"x","note":"soon"}`), Language: "zh"})
	same(t, x.sent(t, id), map[string]any{"to": "Bo", "amount": 3.0, "note": "soon", "m": 1.0, "given": true})
	e := x.read(t, id)
	same(t, slotsOf(t, e).Filled, []string{"amount", "note", "to"})
	if step, _ := stepOf(e, "send", "filling"); step.NodeName != "自动参数填充" {
		t.Errorf("the filling is called %q", step.NodeName)
	}
	a := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/"+strings.NewReplacer("/", "%2F", "[", "%5B", "]", "%5D").Replace("send[0]/filling"), nil), http.StatusOK)
	if a.NodeName != "自动参数填充" || !strings.Contains(string(a.InputData), `"schema"`) || !strings.Contains(string(a.InputData), `"given":true`) {
		t.Errorf("the activation is told as %+v, input %s", a, a.InputData)
	}
	a = want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/send", nil), http.StatusOK)
	if !strings.Contains(string(a.InputData), `"note":"soon"`) || !strings.Contains(string(a.Lineage), `"filled"`) {
		t.Errorf("input %s, lineage %s", a.InputData, a.Lineage)
	}
}

func TestFilling_LeavesACompleteInputAlone(t *testing.T) {
	t.Parallel()
	x := fillingSite(t)
	x.save(t, strings.Replace(orderFlow("", ""), "given: true", "to: Al, amount: 2", 1))
	id := x.execute(t, "order", api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":7}`)})
	same(t, x.sent(t, id), map[string]any{"to": "Al", "amount": 2.0, "n": 1.0})
	if _, told := stepOf(x.read(t, id), "send", "filling"); told {
		t.Error("a filling with nothing to fill is told")
	}
}

// The model is told what was wrong with its answers. What fits is kept, null is an answer.
func TestFilling_AsksTheModelUntilItIsRight(t *testing.T) {
	t.Parallel()
	x := fillingSite(t,
		llm.Rule{Schema: "slots", Contains: "amount: it is missing", JSON: json.RawMessage(`{"amount": 12}`)},
		llm.Rule{Schema: "slots", Contains: "amount: ", JSON: json.RawMessage(`{"to":"Zoe"}`)},
		llm.Rule{Schema: "slots", Contains: "twelve for Ada", System: "step of a workflow", JSON: json.RawMessage(`{"to":"Ada","amount":"a dozen"}`)},
	)
	x.save(t, orderFlow(", filling_profile: filler", ""))
	id := x.execute(t, "order", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"twelve for Ada"}`)})
	same(t, x.sent(t, id), map[string]any{"to": "Ada", "amount": 12.0, "n": 1.0, "given": true})
	e := x.read(t, id)
	slots := slotsOf(t, e)
	same(t, slots.Filled, []string{"amount", "to"})
	if step, _ := stepOf(e, "send", "filling"); string(slots.Remaining) != "null" || step.NodeName != "Parameter filling" || e.TokensUsed == nil {
		t.Errorf("remaining %s, step %+v, tokens %+v", slots.Remaining, step, e.TokensUsed)
	}
}

func TestFilling_SpeaksChineseToTheModel(t *testing.T) {
	t.Parallel()
	x := fillingSite(t, llm.Rule{Schema: "slots", Contains: "用户的问题", System: "缺少的参数", JSON: json.RawMessage(`{"to":"阿达","amount":12}`)})
	x.save(t, orderFlow(", filling_profile: filler", ""))
	id := x.execute(t, "order", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"给阿达十二个"}`), Language: "zh"})
	same(t, x.sent(t, id), map[string]any{"to": "阿达", "amount": 12.0, "n": 1.0, "given": true})
}

// A model that is never right, or that cannot be reached, leaves the question to a person.
func TestFilling_AsksAPerson(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]llm.Rule{
		"NeverRight": {Schema: "slots", JSON: json.RawMessage(`{"to":"Ada","amount":"many"}`)},
		"Refuses":    {Schema: "slots", Fail: "model_refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := fillingSite(t, rule)
			x.save(t, orderFlow(", filling_profile: filler", ""))
			id := x.execute(t, "order", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"some for Ada"}`)})
			x.reaches(t, id, engine.StatusWaitingForHuman)
			e := x.read(t, id)
			if len(e.Questions) != 1 {
				t.Fatalf("questions %+v", e.Questions)
			}
			q := e.Questions[0]
			if q.Purpose != "param" || q.InteractionType != "form" || q.Title != "Parameter filling" || e.NodeExecutions[q.NodeID].Status != "waiting_input" || e.NodeExecutions["send"].Status != "waiting_input" {
				t.Errorf("question %+v of %+v", q, e.NodeExecutions[q.NodeID])
			}
			var form struct {
				Required []string `json:"required"`
			}
			if err := json.Unmarshal(q.Schema, &form); err != nil {
				t.Fatal(err)
			}
			wanted := []string{"amount"}
			if name == "Refuses" {
				wanted = []string{"amount", "to"}
				if !strings.Contains(q.Description, "automatically") {
					t.Errorf("the question does not say why it is asked: %q", q.Description)
				}
			}
			same(t, form.Required, wanted)
			answer := func(data string) {
				t.Helper()
				want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "send", InputData: json.RawMessage(data)}), http.StatusOK)
			}
			for given, at := range map[string]string{`{"content":{"amount":0}}`: "amount", `{"amuont":4}`: "amuont", `{"content":{"amount":null}}`: "content"} { // not taken, and the question stays
				f := refused(t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "send", InputData: json.RawMessage(given)}), http.StatusUnprocessableEntity, "invalid_input")
				if !strings.Contains(fmt.Sprint(fields(f)), at) {
					t.Errorf("%s is refused with %+v", given, f)
				}
			}
			if e = x.read(t, id); len(e.Questions) != 1 || e.Questions[0].InteractionID != q.InteractionID {
				t.Fatalf("questions %+v", e.Questions)
			}
			if name == "Refuses" {
				answer(`{"content":{"to":"Eve"},"description":"a part"}`) // the rest is asked for again
				x.reaches(t, id, engine.StatusWaitingForHuman)
				if list := x.read(t, id).Questions; len(list) != 1 || list[0].InteractionID == q.InteractionID || !strings.Contains(list[0].Description, "amount") {
					t.Fatalf("questions %+v", list)
				}
			}
			answer(`{"amount":4}`)
			to := "Ada"
			if name == "Refuses" {
				to = "Eve"
			}
			same(t, x.sent(t, id), map[string]any{"to": to, "amount": 4.0, "n": 1.0, "given": true}) // what was there is not changed
		})
	}
}

func TestFilling_IsToldInTheFlowVocabulary(t *testing.T) {
	t.Parallel()
	x := fillingSite(t)
	x.save(t, orderFlow("", ""))
	id := x.execute(t, "order", api.ExecuteRequest{Inputs: json.RawMessage(`{"to":"Al"}`), Language: "zh"})
	x.reaches(t, id, engine.StatusWaitingForHuman)
	if c := x.checkpoint(t, id); c.StepStatus != "PARAM" || c.StepType != "CALL.SLOT" || c.StepName != "自动参数填充" || c.ExecutorStatus != "WAITING" {
		t.Errorf("checkpoint %+v", c)
	}
	want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "send.filling", InputData: json.RawMessage(`{"content":{"amount":2}}`)}), http.StatusOK)
	x.sent(t, id)
	list, _ := x.follow(t, "viewer", "/executions/"+id+"/events?vocabulary=flow", "", nil)
	var got []string
	for _, h := range list {
		var e api.Event
		if err := json.Unmarshal([]byte(h.Data), &e); err != nil {
			t.Fatal(err)
		}
		if e.Step == nil {
			got = append(got, e.EventType)
			continue
		}
		if e.Step.StepID != "send" && e.Step.StepID != "send[0]/filling" {
			continue
		}
		line := e.EventType + " " + e.Step.StepName + " " + e.Step.StepStatus
		if e.EventType == "step.waiting_for_param" || e.EventType == "step.input" && e.Step.StepID == "send" {
			var data struct {
				Params map[string]any `json:"params"`
				Amount int            `json:"amount"`
			}
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Fatal(err)
			}
			line += fmt.Sprint(" ", data.Params, " ", data.Amount)
		}
		got = append(got, line)
	}
	same(t, got, []string{
		"flow.start", "step.init Send INIT", "step.input Send RUNNING map[] 0", "step.init 自动参数填充 INIT", "step.input 自动参数填充 RUNNING",
		"step.waiting_for_param 自动参数填充 PARAM map[amount:<nil>] 0", "flow.stop", "flow.resume", "step.output 自动参数填充 SUCCESS",
		"step.input Send RUNNING map[] 2", "step.output Send SUCCESS", "flow.success",
	})
}

func (x *site) checkpoint(t *testing.T, id string) api.Checkpoint {
	t.Helper()
	c := want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+id, nil), http.StatusOK).Checkpoint
	if c == nil {
		t.Fatal("there is no checkpoint")
	}
	return *c
}

// slotModel speaks the protocol of chat completions, counts, and says what it is told to.
type slotModel struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // the last message of each request
	say   func(n int, last string) string
}

func newSlotModel(t *testing.T, say func(n int, last string) string) *slotModel {
	m := &slotModel{say: say}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *slotModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.asked = append(m.asked, in.Messages[len(in.Messages)-1].Content)
	n, last := len(m.asked), m.asked[len(m.asked)-1]
	m.mu.Unlock()
	content, err := json.Marshal(m.say(n, last))
	if err != nil || r.Context().Err() != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, content)
}

func (m *slotModel) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

// reopened is an instance on a directory that may call the services of the test.
func reopened(t *testing.T, dir string, change ...func(*Options)) *Instance {
	t.Helper()
	allow, err := outbound.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, HTTPAllow: allow}
	for _, f := range change {
		f(&o)
	}
	i, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func closed(t *testing.T, i *Instance) {
	t.Helper()
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
}

// asks waits for the question of an execution.
func (i *Instance) asks(t *testing.T, execution string) engine.AskID {
	t.Helper()
	found := make(chan engine.AskID, 1)
	stop := i.Watch(user, execution, func(row host.Row, _ []engine.Command) {
		for _, told := range row.Told {
			if told.Ask != "" {
				select {
				case found <- told.Ask:
				default:
				}
			}
		}
	})
	defer stop()
	for row, err := range i.source.Rows(t.Context(), user, execution, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, told := range row.Told {
			if told.Ask != "" {
				return told.Ask
			}
		}
	}
	return <-found
}

// Nothing that the model has answered is asked of it again: not after the process that had asked is gone, not after a
// person has answered.
func TestFilling_PaysTheModelOnce(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	second := make(chan struct{}, 2)
	m := newSlotModel(t, func(n int, last string) string {
		switch {
		case !strings.Contains(last, "cannot be used"):
			return `{"to":"Ada","amount":"many"}`
		case n == 2: // the process goes while it is asked
			second <- struct{}{}
			<-block
		}
		return `{"amount":null}`
	})
	t.Cleanup(func() { close(block) })
	dir := sqlitetest.Dir(t)
	i := reopened(t, dir)
	orderTemplate(t, i, "CALL.EMPTY")
	if err := i.SaveProfile(t.Context(), user, llm.Profile{ID: "default", Provider: "openai", Model: "m", BaseURL: m.URL + "/v1"}); err != nil {
		t.Fatal(err)
	}
	i.saveText(t, orderFlow("", "")) // it names no profile: the workspace has one for all
	id := i.startText(t, "order", `{"question":"some for Ada"}`)
	<-second
	closed(t, i)

	i = reopened(t, dir)
	ask := i.asks(t, id)
	if n := m.count(); n != 3 { // the second call was cut off, and is the only one that was repeated
		t.Fatalf("the model was asked %d times", n)
	}
	closed(t, i)

	i = reopened(t, dir)
	defer closed(t, i)
	if _, err := i.host.Act(t.Context(), user, host.Request{Execution: id, Action: host.ActionAnswer, Ask: ask, Outcome: engine.AskDone, Value: json.RawMessage(`{"content":{"amount":5}}`)}); err != nil {
		t.Fatal(err)
	}
	i.ends(t, id, engine.StatusSuccess)
	outputs, err := i.Outputs(t.Context(), user, id)
	if err != nil {
		t.Fatal(err)
	}
	same(t, string(outputs["send"]), `{"amount":5,"given":true,"n":1,"to":"Ada"}`)
	if n := m.count(); n != 3 {
		t.Errorf("the model was asked %d times in all", n)
	}
}

// A kind that must not be repeated is recorded as begun when it runs itself, and runs once: with what was found, and also when
// nothing was missing.
func TestFilling_RunsOnceWhatMustNotBeRepeated(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var posted []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		posted = append(posted, string(body))
		mu.Unlock()
		fmt.Fprint(w, `{"ok":true}`)
	}))
	t.Cleanup(service.Close)
	dir := sqlitetest.Dir(t)
	i := reopened(t, dir)
	orderTemplate(t, i, "ACTION.HTTP_REQUEST")
	post := func(id, params string) string {
		return `
metadata: {id: ` + id + `, name: ` + id + `, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: send, description: d, type: ACTION, subtype: HTTP_REQUEST, input_params: ` + params + `, configurations: {template_id: order, enable_filling: true, method: POST, url: "` + service.URL + `", body: {to: "{{to}}", amount: "{{amount}}"}}}
connections:
  - {from_node: start, to_node: send, conversion_function: "{'n': 1}"}
`
	}
	i.saveText(t, post("whole", "{to: Al, amount: 1}"))
	i.saveText(t, post("part", "{to: Al}"))
	whole, part := i.startText(t, "whole", `{}`), i.startText(t, "part", `{}`)
	i.ends(t, whole, engine.StatusSuccess)
	ask := i.asks(t, part)
	closed(t, i) // the question was asked before anything was sent
	i = reopened(t, dir)
	defer closed(t, i)
	if _, err := i.host.Act(t.Context(), user, host.Request{Execution: part, Action: host.ActionAnswer, Ask: ask, Outcome: engine.AskDone, Value: json.RawMessage(`{"amount":2}`)}); err != nil {
		t.Fatal(err)
	}
	i.ends(t, part, engine.StatusSuccess)
	mu.Lock()
	slices.Sort(posted)
	same(t, posted, []string{`{"to":"Al","amount":1}`, `{"to":"Al","amount":2}`})
	mu.Unlock()
	for _, id := range []string{whole, part} {
		var facts []string
		for row, err := range i.source.Rows(t.Context(), user, id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range row.Facts {
				switch f := f.(type) {
				case engine.NodeStarted:
					facts = append(facts, "started "+string(f.Activation))
				case engine.ScopeOpened:
					facts = append(facts, "opened "+string(f.Activation))
				case engine.NodeCompleted:
					facts = append(facts, "completed "+string(f.Activation))
				}
			}
		}
		expected := []string{"completed start", "opened send", "completed send[0]/filling", "started send", "completed send"}
		if id == whole {
			expected = slices.Delete(expected, 2, 3)
		}
		same(t, facts, expected)
	}
}

// An agent is filled before its turn begins.
func TestFilling_FillsAnAgent(t *testing.T) {
	t.Parallel()
	x := fillingSite(t, llm.Rule{Contains: "Tell Bo", Reply: "told {{last}}"})
	orderTemplate(t, x.Instance, "AI_AGENT.LLM")
	x.save(t, `
metadata: {id: order, name: order, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: filling, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {to: Bo, amount: 3}}
  - {id: send, description: d, type: AI_AGENT, subtype: LLM, configurations: {template_id: order, enable_filling: true, profile_id: filler, user_prompt: "Tell {{to}} {{amount}}"}}
connections:
  - {from_node: start, to_node: filling}
  - {from_node: filling, to_node: send, conversion_function: "{'n': 1}"}
`)
	id := x.execute(t, "order", api.ExecuteRequest{})
	if got := x.sent(t, id)["content"]; got != "told Tell Bo 3" {
		t.Errorf("the agent said %q", got)
	}
	if got := x.read(t, id).NodeExecutions["filling"].ActivationCount; got > 1 { // a node may be called like a step
		t.Errorf("the node has %d activations", got)
	}
}

// Every iteration is filled by itself: its item is nearer than what the execution knows.
func TestFilling_InsideALoop(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	if err := x.stores.Templates.Put(t.Context(), user, store.Template{ID: "each", Kind: "CALL.EMPTY", Name: "Each", OverrideInput: json.RawMessage(`{"required":["item","amount"],"properties":{"item":{"type":"string"},"amount":{"type":"integer"}}}`)}); err != nil {
		t.Fatal(err)
	}
	x.save(t, `
metadata: {id: loops, name: loops, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 3}}
  - {id: send, description: d, type: CALL, subtype: EMPTY, configurations: {template_id: each, enable_filling: true, pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: send, output_key: iteration, conversion_function: "{'n': index}"}
  - {from_node: send, to_node: each}
`)
	id := x.execute(t, "loops", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":["a","b","c"],"item":"none"}`)})
	for answered := map[string]bool{}; len(answered) < 3; {
		x.reaches(t, id, engine.StatusWaitingForHuman)
		for _, q := range x.read(t, id).Questions {
			answered[q.InteractionID] = true
			want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "send", InteractionID: q.InteractionID, InputData: json.RawMessage(fmt.Sprintf(`{"amount":%d}`, len(answered)))}), http.StatusOK)
		}
	}
	x.reaches(t, id, engine.StatusSuccess)
	var out struct {
		Results []struct {
			Item   string `json:"item"`
			Amount int    `json:"amount"`
		} `json:"results"`
	}
	if err := json.Unmarshal(x.read(t, id).NodeExecutions["each"].OutputData["completed"], &out); err != nil {
		t.Fatal(err)
	}
	var items []string
	for _, r := range out.Results {
		items = append(items, r.Item)
		if r.Amount < 1 || r.Amount > 3 {
			t.Errorf("amount %d", r.Amount)
		}
	}
	same(t, items, []string{"a", "b", "c"})
}

func TestStepTypes_StandForKinds(t *testing.T) {
	t.Parallel()
	x := fillingSite(t)
	x.save(t, `
metadata: {id: steps, name: steps, description: d}
nodes:
  - {id: begin, description: d, type: start}
  - {id: which, description: d, type: CHOICE, configurations: {switch_value: "n > 1", cases: [{case: true, output_key: many}], default_output_key: few}}
  - {id: say, description: d, type: SUMMARY, input_params: {messages: ["The order has 3 parts."]}}
  - {id: know, description: d, type: Facts, input_params: {content: "The order is late. Is it? The order is late."}}
  - {id: fill, description: d, type: SLOT, configurations: {ask: false, schema: {type: object, required: [n, x], properties: {n: {type: integer}, x: {type: string}}}}}
  - {id: stop, description: d, type: END}
connections:
  - {from_node: begin, to_node: which}
  - {from_node: which, to_node: say, output_key: many}
  - {from_node: which, to_node: stop, output_key: few}
  - {from_node: say, to_node: know, conversion_function: "{'s': summary}"}
  - {from_node: know, to_node: fill, conversion_function: "{'f': facts}"}
  - {from_node: fill, to_node: stop}
`)
	id := x.execute(t, "steps", api.ExecuteRequest{Inputs: json.RawMessage(`{"n":3}`)})
	x.reaches(t, id, engine.StatusSuccess)
	e := x.read(t, id)
	same(t, e.NodeExecutions["begin"].NodeType+"."+e.NodeExecutions["begin"].NodeSubtype, "TRIGGER.MANUAL")
	var out struct {
		Data      map[string]any `json:"slot_data"`
		Filled    []string       `json:"filled_fields"`
		Remaining struct {
			Required []string `json:"required"`
		} `json:"remaining_schema"`
	}
	if err := json.Unmarshal(e.Outputs["stop"], &out); err != nil {
		t.Fatal(err)
	}
	same(t, out.Data, map[string]any{"n": 3.0})
	same(t, out.Filled, []string{"n"})
	same(t, out.Remaining.Required, []string{"x"})
	for node, text := range map[string]string{"say": "3 parts", "know": `"facts":["The order is late."]`} {
		if raw := string(e.NodeExecutions[node].OutputData["result"]); !strings.Contains(raw, text) {
			t.Errorf("%s made %s", node, raw)
		}
	}
}

// A node that wants to be filled where nothing says with what is warned of: in a file, when it is saved with a template that does not say
// it, and by its run.
func TestFilling_WithoutAnythingToFill(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	if err := x.stores.Templates.Put(t.Context(), user, store.Template{ID: "bare", Kind: "CALL.EMPTY", Name: "Bare", KnownParams: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	flow := func(template string) string {
		id := "idle" + strings.TrimPrefix(template, ", template_id: ")
		return `
metadata: {id: ` + id + `, name: idle, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: send, description: d, type: CALL, subtype: EMPTY, configurations: {enable_filling: true, pass_through: true` + template + `}}
connections:
  - {from_node: start, to_node: send}
`
	}
	const path = "nodes[1].configurations.enable_filling"
	if r := Validate("idle.yaml", []byte(flow(""))); len(r.Problems) != 1 || r.Problems[0].Path != path || !r.Valid || !strings.Contains(r.Problems[0].Message, "enable_filling does nothing here") {
		t.Errorf("a file: %+v", r.Problems)
	}
	for _, template := range []string{"", ", template_id: bare"} {
		checked := want[api.Validation](t, x.call(t, "editor", "POST", "/workflows/validate", flow(template), "Content-Type", "application/yaml"), http.StatusOK)
		if len(checked.Problems) != 1 || !warned(checked.Problems, "invalid_config", path, "name a template with override_input") {
			t.Errorf("saved with %q: %+v", template, checked.Problems)
		}
		x.save(t, flow(template))
		e, _ := ran(t, x, "idle"+strings.TrimPrefix(template, ", template_id: "), `{}`)
		if w := e.NodeExecutions["send"].Warnings; len(w) != 1 || w[0].Path != "configurations.enable_filling" || !strings.Contains(w[0].Message, "does nothing here") {
			t.Errorf("run with %q: %+v", template, w)
		}
	}
	orderTemplate(t, x.Instance, "CALL.EMPTY")
	if checked := want[api.Validation](t, x.call(t, "editor", "POST", "/workflows/validate", flow(", template_id: order"), "Content-Type", "application/yaml"), http.StatusOK); len(checked.Problems) > 0 {
		t.Errorf("with something to fill: %+v", checked.Problems)
	}
}
