package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/host"
)

// mind is a model that decides as a test wants it to. It speaks the protocol of a real service.
type mind struct {
	*modelService
	mu sync.Mutex
	// plan are the tools of the steps, in order; after them it is FINAL.
	plan []string
	// decide answers a decision by its name and the step it is about; what it leaves open is answered plainly. Values are told as
	// JSON, texts as they are.
	decide func(d decided) any
	// made are the decisions so far, as "name step".
	made []string
}

// decided is a decision that is wanted.
type decided struct {
	name, step string
	// told is all that the model was told, times how often this decision about this step was wanted, with this one.
	told  string
	times int
	gone  <-chan struct{}
}

// presentStep finds the step that a decision is about. read-only
var presentStep = regexp.MustCompile(`## (?:The present step|当前步骤)\n(step_[0-9_]*[0-9])`)

func newMind(t *testing.T, plan []string, decide func(decided) any) *mind {
	m := &mind{plan: plan, decide: decide}
	m.modelService = newModelService(t, m.answer)
	return m
}

func (m *mind) answer(r chatRequest, gone <-chan struct{}) chatReply {
	d := decided{name: r.ResponseFormat.Schema.Name, gone: gone}
	for _, message := range r.Messages {
		d.told += message.text() + "\n"
	}
	if found := presentStep.FindStringSubmatch(d.told); found != nil {
		d.step = found[1]
	}
	if d.name == "" {
		d.name = "summary"
	}
	m.mu.Lock()
	key := strings.TrimSpace(d.name + " " + d.step)
	m.made = append(m.made, key)
	for _, one := range m.made {
		if one == key {
			d.times++
		}
	}
	m.mu.Unlock()
	var value any
	if m.decide != nil {
		value = m.decide(d)
	}
	if value == nil {
		value = m.plainly(d)
	}
	if status, failed := value.(int); failed {
		return chatReply{status: status}
	}
	text, plain := value.(string)
	if !plain {
		raw, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		text = string(raw)
	}
	pieces := strings.SplitAfter(text, " ")
	return chatReply{text: pieces, tokens: 1}
}

// plainly decides what a test does not care about.
func (m *mind) plainly(d decided) any {
	switch d.name {
	case "flow_name":
		return map[string]any{"flow_name": "a test"}
	case "flow_risk", "tool_risk":
		return map[string]any{"risk": "low", "reason": "it only reads"}
	case "plan":
		var n int
		if _, err := fmt.Sscanf(d.step, "step_%d", &n); err != nil || n > len(m.plan) {
			return map[string]any{"tool_id": "FINAL", "description": "all is done"}
		}
		return map[string]any{"tool_id": m.plan[n-1], "description": "it is next"}
	case "params", "fill":
		return map[string]any{"arguments": map[string]any{}}
	case "analyze":
		return map[string]any{"is_param_error": false, "reason": "it is broken"}
	case "missing":
		return map[string]any{"message": "Please say more.", "params": map[string]any{}}
	case "alternative", "repair":
		return map[string]any{"tool_id": "", "description": "there is none"}
	case "replan":
		return map[string]any{"description": "there is no other way", "steps": []any{}}
	case "facts":
		return map[string]any{"facts": []string{}, "domain": []string{}}
	}
	return "All is well."
}

// decisions lists the decisions so far.
func (m *mind) decisions() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.made...)
}

// wanted counts a decision.
func (m *mind) wanted(name, step string) int {
	n := 0
	for _, one := range m.decisions() {
		if one == strings.TrimSpace(name+" "+step) {
			n++
		}
	}
	return n
}

// taskSite is a site with one agent, "helper", and one tool server, "box", which the operator has activated.
type taskSite struct {
	*site
	*testing.T
	mind  *mind
	tools *toolbox
	users map[string]*client.Client
}

const taskUser = "operator"

func openTasks(t *testing.T, m *mind, b *toolbox, change ...func(*api.Agent)) *taskSite {
	t.Helper()
	return tasksOn(t, openSite(t), m, b, change...)
}

// tasksOn adds the agent and the tool server to a site.
func tasksOn(t *testing.T, on *site, m *mind, b *toolbox, change ...func(*api.Agent)) *taskSite {
	t.Helper()
	x := &taskSite{site: on, T: t, mind: m, tools: b, users: map[string]*client.Client{}}
	if err := x.SaveProfile(t.Context(), user, m.profile("mind")); err != nil {
		t.Fatal(err)
	}
	if err := x.stores.MCPServers.Put(t.Context(), user, b.server(t, "box")); err != nil {
		t.Fatal(err)
	}
	x.setAgent(change...)
	if _, err := x.as(taskUser).ActivateMCPServer(t.Context(), "box", api.MCPActivate{}); err != nil {
		t.Fatal(err)
	}
	return x
}

// setAgent makes the agent anew.
func (x *taskSite) setAgent(change ...func(*api.Agent)) {
	x.Helper()
	a := api.Agent{ID: "helper", Name: "Helper", LLMProfile: "mind", MCPServers: []string{"box"}, AutoExecute: true}
	for _, f := range change {
		f(&a)
	}
	if _, err := x.as("editor").PutAgent(x.Context(), a, 0); err != nil {
		x.Fatal(err)
	}
}

// as is the API as a user sees it.
func (x *taskSite) as(user string) *client.Client {
	x.Helper()
	if x.users[user] == nil {
		c, err := client.New(client.Options{URL: strings.TrimSuffix(x.url, "/api/v1"), Token: x.tokens[user], HTTP: &http.Client{}})
		if err != nil {
			x.Fatal(err)
		}
		x.users[user] = c
	}
	return x.users[user]
}

// auto lets calls of low risk run by themselves for the user.
func (x *taskSite) auto() {
	x.Helper()
	on := true
	if _, err := x.as(taskUser).UpdateMe(x.Context(), api.MeRequest{AutoExecute: &on}); err != nil {
		x.Fatal(err)
	}
}

// ask starts a task and waits until it has ended or wants something.
func (x *taskSite) ask(r api.TaskRequest) api.Execution {
	x.Helper()
	if r.Question == "" {
		r.Question = "do it"
	}
	started, err := x.as(taskUser).StartTask(x.Context(), "helper", r, "")
	if err != nil {
		x.Fatal(err)
	}
	return x.rest(started.ExecutionID)
}

// rest waits until a task has ended or waits for a person.
func (x *taskSite) rest(id string) api.Execution {
	x.Helper()
	return x.restAs(taskUser, id)
}

// restAs is rest for a task of another user.
func (x *taskSite) restAs(who, id string) api.Execution {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.Context(), patient)
	defer cancel()
	// The hub wakes on every row; the last one that matters changes the status.
	changed := make(chan struct{}, 1)
	stop := x.Watch(user, id, func(_ host.Row, _ []engine.Command) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	for {
		e, err := x.as(who).Execution(ctx, id)
		if err != nil {
			x.Fatal(err)
		}
		if s := engine.Status(e.Status); s.Final() || s == engine.StatusWaitingForHuman || s == engine.StatusPaused {
			return e
		}
		select {
		case <-changed:
		case <-ctx.Done():
			x.Fatalf("the task stays %s; decisions %q, calls %q", e.Status, x.mind.decisions(), x.tools.made())
		}
	}
}

// say answers the only question of a task and waits for what comes of it.
func (x *taskSite) say(id string, data string) api.Execution {
	x.Helper()
	if _, err := x.as(taskUser).Input(x.Context(), id, api.InputRequest{NodeID: "task", InputData: json.RawMessage(data)}); err != nil {
		x.Fatal(err)
	}
	return x.rest(id)
}

// question is the only one that a task has open.
func (x *taskSite) question(e api.Execution, purpose string) api.UserInputRequest {
	x.Helper()
	if e.Status != string(engine.StatusWaitingForHuman) || len(e.Questions) != 1 || e.Questions[0].Purpose != purpose {
		x.Fatalf("the task is %s (%+v) and asks %+v; want a question for %q", e.Status, e.Error, e.Questions, purpose)
	}
	return e.Questions[0]
}

// ended fails unless a task has ended in a way.
func (x *taskSite) ended(e api.Execution, status engine.Status) {
	x.Helper()
	if e.Status != string(status) {
		x.Fatalf("the task is %s (%+v) with questions %+v; want %s; decisions %q, calls %q", e.Status, e.Error, e.Questions, status, x.mind.decisions(), x.tools.made())
	}
}

// flowEvent is an event of the flow vocabulary, shortly.
type flowEvent struct {
	name, step string
	data       json.RawMessage
}

// flow reads what is told of an execution that has ended, in the flow vocabulary.
func (x *taskSite) flow(id string) []flowEvent {
	x.Helper()
	var list []flowEvent
	err := x.as(taskUser).Watch(x.Context(), id, "", client.VocabularyFlow, func(e api.Event) error {
		one := flowEvent{name: e.EventType, data: e.Data}
		if e.Step != nil {
			one.step = e.Step.StepID
		}
		list = append(list, one)
		return nil
	})
	if err != nil {
		x.Fatal(err)
	}
	return list
}
