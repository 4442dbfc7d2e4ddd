package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/agent"
	"tandem/api"
	"tandem/builtin/task"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/server"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// repeating is a model that plans nothing and answers with the question.
func repeating(t *testing.T) *mind {
	return newMind(t, nil, func(d decided) any {
		switch d.name {
		case "summary":
			for _, word := range strings.Fields(d.told) {
				if strings.HasPrefix(word, "Q-now-") {
					return "A-" + strings.TrimPrefix(word, "Q-now-")
				}
			}
		case "facts":
			return map[string]any{"facts": []string{"a fact"}, "domain": []string{}}
		}
		return nil
	})
}

// askTask starts a task of an agent that has no tools as a user and waits for its end.
func (x *site) askTask(t *testing.T, as identity.Principal, agentID, conversation, question string) string {
	t.Helper()
	w, err := agents{x.Instance}.Workflow(t.Context(), as.Workspace, agentID)
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Request(t.Context(), as, w, "latest")
	if err != nil {
		t.Fatal(err)
	}
	r.ID = NewExecutionID()
	if r.TriggerData, err = json.Marshal(map[string]string{"question": question, "conversation_id": conversation}); err != nil {
		t.Fatal(err)
	}
	if r.Initial, err = agent.Initial(r.TriggerData); err != nil {
		t.Fatal(err)
	}
	if _, err := x.host.Start(t.Context(), as, r); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	if _, err := x.Wait(ctx, as, r.ID); err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func TestAgents_Rounds(t *testing.T) {
	t.Parallel()
	m := repeating(t)
	x := openSite(t)
	if err := x.SaveProfile(t.Context(), user, m.profile("mind")); err != nil {
		t.Fatal(err)
	}
	a := agents{x.Instance}
	for _, id := range []string{"one", "two"} {
		want[json.RawMessage](t, x.call(t, "editor", http.MethodPut, "/agents/"+id, `{"llm_profile":"mind"}`), http.StatusOK)
	}
	ann, bob := identity.Principal{Workspace: "default", User: "ann"}, identity.Principal{Workspace: "default", User: "bob"}
	var ids []string
	for i := range 4 {
		ids = append(ids, x.askTask(t, ann, "one", "c", fmt.Sprint("Q-now-", i)))
	}
	x.askTask(t, ann, "one", "other", "Q-now-elsewhere")
	x.askTask(t, ann, "two", "c", "Q-now-two")
	x.askTask(t, bob, "one", "c", "Q-now-bob")
	failed := x.askTask(t, ann, "one", "c", "") // a task without a question fails: it is not a round
	if e, err := x.stores.Executions.Get(t.Context(), ann, failed); err != nil || e.Status != engine.StatusError {
		t.Errorf("a task without a question is %+v, %v", e, err)
	}
	rounds := func(q task.RoundsQuery) (list []string) {
		t.Helper()
		q.Workspace = "default"
		found, err := a.Rounds(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			list = append(list, fmt.Sprint(r.Question, "|", r.Answer, "|", r.Facts))
		}
		return list
	}
	q := task.RoundsQuery{User: "ann", Workflow: "agent:one", Conversation: "c", Limit: 3}
	if diff := cmp.Diff([]string{"Q-now-1|A-1|[a fact]", "Q-now-2|A-2|[a fact]", "Q-now-3|A-3|[a fact]"}, rounds(q)); diff != "" {
		t.Errorf("the last three (-want +got):\n%s", diff)
	}
	q.Before = ids[2]
	if diff := cmp.Diff([]string{"Q-now-0|A-0|[a fact]", "Q-now-1|A-1|[a fact]"}, rounds(q)); diff != "" {
		t.Errorf("those before the third (-want +got):\n%s", diff)
	}
	q.Before, q.User = "", "bob"
	if diff := cmp.Diff([]string{"Q-now-bob|A-bob|[a fact]"}, rounds(q)); diff != "" {
		t.Errorf("those of another user (-want +got):\n%s", diff)
	}
	q.Conversation = ""
	if got := rounds(q); got != nil {
		t.Errorf("without a conversation: %q", got)
	}
	// The model was told of the rounds before, and of no others.
	var told string
	for _, r := range m.asked {
		for _, message := range r.Messages {
			if text := message.text(); strings.Contains(text, "Q-now-3") {
				told += text
			}
		}
	}
	for _, want := range []string{"A-0", "A-1", "A-2"} {
		if !strings.Contains(told, want) {
			t.Errorf("the fourth task was not told of %q", want)
		}
	}
	if strings.Contains(told, "elsewhere") || strings.Contains(told, "bob") {
		t.Error("it was told of what is not its conversation")
	}
}

func TestAgents_WorkflowKeepAuto(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	a := agents{x.Instance}
	want[json.RawMessage](t, x.call(t, "editor", http.MethodPut, "/agents/clerk", `{"llm_profile":"demo"}`), http.StatusOK)
	if id, err := a.Workflow(t.Context(), "default", "clerk"); err != nil || id != "agent:clerk" {
		t.Errorf("clerk is %q, %v", id, err)
	}
	for id, says := range map[string]string{"clerc": `did you mean "clerk"`, "zzzzzzzzzz": "tandem agent list"} {
		if _, err := a.Workflow(t.Context(), "default", id); fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := a.Workflow(t.Context(), "other", "clerk"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("in another workspace: %v", err)
	}

	spec := agent.Spec{LLMProfile: "demo", MCPServers: []string{"b"}}
	one, err := a.Keep(t.Context(), "default", spec)
	if err != nil || !strings.HasPrefix(one, agent.UnnamedID("")) {
		t.Fatalf("kept as %q, %v", one, err)
	}
	if again, err := a.Keep(t.Context(), "default", spec); err != nil || again != one {
		t.Errorf("kept again as %q, %v", again, err)
	}
	if w, err := x.stores.Workflows.Get(t.Context(), user, one); err != nil || w.Revision != 1 {
		t.Errorf("it is %+v, %v", w, err)
	}
	if r, err := x.Request(t.Context(), user, one, "latest"); err != nil || r.Trigger != agent.StartNode {
		t.Errorf("it is started by %+v, %v", r, err)
	}
	spec.AutoExecute = true
	if other, err := a.Keep(t.Context(), "default", spec); err != nil || other == one {
		t.Errorf("another agent is kept as %q, %v", other, err)
	}
	if _, err := a.Keep(t.Context(), "default", agent.Spec{}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("an agent without a profile: %v", err)
	}

	auto := func(user string) bool {
		t.Helper()
		on, err := a.Auto(t.Context(), "default", user)
		if err != nil {
			t.Fatal(err)
		}
		return on
	}
	if auto("viewer") || auto("nobody") {
		t.Error("it is on before anybody has switched it on")
	}
	want[json.RawMessage](t, x.call(t, "viewer", http.MethodPatch, "/users/me", `{"auto_execute":true}`), http.StatusOK)
	if !auto("viewer") || auto("editor") {
		t.Error("it is on for who has switched it on")
	}
}

func TestAgents_OnlyTheyMakeTasks(t *testing.T) {
	t.Parallel()
	text := `metadata: {id: x, name: x, description: d}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: d}
  - {id: t, type: call, subtype: task, description: d, configurations: {llm_profile: demo}}
connections:
  - {from_node: start, to_node: t}
`
	report := Validate("x.yaml", []byte(text))
	if report.Valid || len(report.Problems) != 1 {
		t.Fatalf("the report is %+v", report)
	}
	if p := report.Problems[0]; p.Path != "nodes[1].subtype" || p.Line != 4 || p.Column == 0 || !strings.Contains(p.Message, "AI_AGENT.MCP_AGENT") {
		t.Errorf("the problem is %+v", p)
	}
	x := openSite(t)
	for _, path := range []string{"/workflows", "/workflows/validate"} {
		a := x.call(t, "editor", http.MethodPost, path, text, "Content-Type", "application/yaml")
		if a.status == http.StatusCreated || !strings.Contains(string(a.body), "AI_AGENT.MCP_AGENT") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestMe_WithoutAServer(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	for _, before := range []bool{false, true} { // the second time in another process
		c, err := NewConnection(t.Context(), Connect{Dir: dir, Make: true, Drives: true, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		me, err := c.Me(t.Context())
		if err != nil || me.ID != Local().User || me.AutoExecute != before {
			t.Errorf("I am %+v, %v", me, err)
		}
		on := true
		if me, err = c.UpdateMe(t.Context(), api.MeRequest{AutoExecute: &on}); err != nil || !me.AutoExecute || !slices.Equal(me.Roles, []string{"admin"}) {
			t.Errorf("changed: %+v, %v", me, err)
		}
		if auto, err := (agents{c.instance}).Auto(t.Context(), Local().Workspace, Local().User); err != nil || !auto {
			t.Errorf("tasks find %v, %v", auto, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// A server on the same data still has to make its first admin.
	i, err := Open(t.Context(), Options{Dir: dir, CodeCache: codeCache()})
	if err != nil {
		t.Fatal(err)
	}
	if secret, err := i.Bootstrap(t.Context(), ""); err != nil || secret == "" {
		t.Errorf("the first start makes the token %q, %v", secret, err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTasks_OfNodesReadWhatTheyAreGiven(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	if err := x.SaveProfile(t.Context(), user, repeating(t).profile("mind")); err != nil {
		t.Fatal(err)
	}
	x.save(t, `
metadata: {id: par, name: par, description: d}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: d}
  - {id: a, type: AI_AGENT, subtype: MCP_AGENT, description: d, configurations: {llm_profile: mind, question: "Q-now-child", params: {city: Bern}, conversation_id: talk}}
connections:
  - {from_node: start, to_node: a}
`)
	for range 2 { // what a node describes by itself is kept once
		id := x.execute(t, "par", api.ExecuteRequest{WaitSeconds: 60})
		if e := x.read(t, id); e.Status != string(engine.StatusSuccess) {
			t.Fatalf("the parent is %+v", e)
		}
		page, err := x.stores.Executions.List(t.Context(), user, store.ExecutionQuery{Parent: id})
		if err != nil || page.Total != 1 {
			t.Fatalf("%d children, %v", page.Total, err)
		}
		child := page.Executions[0]
		if child.Conversation != "talk" || child.User != "operator" || !strings.HasPrefix(child.WorkflowID, agent.UnnamedID("")) || child.Revision != 1 {
			t.Errorf("the child is %+v", child)
		}
		c := want[api.Context](t, x.call(t, "viewer", http.MethodGet, "/executions/"+child.ID+"/context", nil), http.StatusOK)
		if got := c.InitialMetadata; string(got["city"]) != `"Bern"` || string(got["question"]) != `"Q-now-child"` || string(got["conversation_id"]) != `"talk"` || got["params"] != nil {
			t.Errorf("its initial layer is %s", got)
		}
	}
	for _, list := range []string{"/agents", "/workflows"} {
		if a := x.call(t, "viewer", http.MethodGet, list, nil); strings.Contains(string(a.body), agent.UnnamedID("")) {
			t.Errorf("%s shows it: %s", list, a.body)
		}
	}
}

func TestTasks_OnlySoManyRun(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	m := newMind(t, nil, func(d decided) any {
		if d.name == "flow_name" {
			<-release
		}
		return nil
	})
	x := openSiteAs(t, func(o *Options, _ string) { o.MaxTasks = 2 }, func(o *server.Options) { o.TaskStarts = -1 })
	if err := x.SaveProfile(t.Context(), user, m.profile("mind")); err != nil {
		t.Fatal(err)
	}
	want[json.RawMessage](t, x.call(t, "editor", http.MethodPut, "/agents/a", `{"llm_profile":"mind"}`), http.StatusOK)
	var ids []string
	for i := range 8 {
		started := want[api.TaskStarted](t, x.call(t, "operator", http.MethodPost, "/agents/a/tasks", `{"question":"go"}`), http.StatusAccepted)
		status := engine.StatusRunning
		if i >= 2 {
			status = engine.StatusPending
		}
		if started.Status != string(status) {
			t.Errorf("task %d is %s, want %s", i, started.Status, status)
		}
		ids = append(ids, started.TaskID)
	}
	x.save(t, waitingFlow)
	if e := x.read(t, x.execute(t, "kid", api.ExecuteRequest{})); e.Status == string(engine.StatusPending) {
		t.Error("what is not a task waits for tasks")
	}
	close(release)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	var all []store.Execution
	for _, id := range ids {
		e, err := x.Wait(ctx, user, id)
		if err != nil || e.Status != engine.StatusSuccess {
			t.Fatalf("%+v, %v", e, err)
		}
		all = append(all, e)
	}
	// A task pauses for a moment between two things that it asks of a model, which lets nobody else in.
	for _, e := range all {
		running := 0
		for _, other := range all {
			if other.Started <= e.Started && other.Ended > e.Started {
				running++
			}
		}
		if running > 2 {
			t.Errorf("when %q began, %d ran", e.ID, running)
		}
	}
}
