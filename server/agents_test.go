package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/agent"
	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/limits"
	"tandem/metrics"
	"tandem/store"
)

// twoModels is an instance with the profiles main and small.
type twoModels struct{ noModels }

func (twoModels) Profiles(context.Context, identity.Principal) ([]store.Profile, error) {
	return []store.Profile{{ID: "main"}, {ID: "small"}}, nil
}

// agentWorld is a server with two models and the tool server files.
func agentWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := setup(t, append([]func(*Options){func(o *Options) { o.Models = twoModels{} }}, change...)...)
	if err := w.stores.MCPServers.Put(t.Context(), identity.System("a"), store.MCPServer{ID: "files", Transport: store.MCPStdio, Command: "true", Enabled: true}); err != nil {
		t.Fatal(err)
	}
	return w
}

const clerk = `{"id":"clerk","name":"Clerk","llm_profile":"main","mcp_servers":["files"],"language":"zh","limits":{"steps":7},"policy":{"auto_approve":["medium"]}}`

func TestAgents(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	made := w.admin(http.MethodPost, "/api/v1/agents", clerk).want(t, http.StatusCreated)
	want := api.Agent{
		ID: "clerk", Name: "Clerk", LLMProfile: "main", MCPServers: []string{"files"}, Language: "zh", Limits: api.AgentLimits{Steps: 7},
		Policy: api.AgentPolicy{AutoApprove: []string{"medium"}}, Revision: 1, CreatedBy: "admin-user", UpdatedBy: "admin-user",
	}
	same := func(what string, want api.Agent, a answer) {
		t.Helper()
		got := read[api.Agent](t, a)
		if got.CreatedTime == 0 || got.UpdatedTime < got.CreatedTime {
			t.Errorf("%s: times %d and %d", what, got.CreatedTime, got.UpdatedTime)
		}
		got.CreatedTime, got.UpdatedTime = 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if tag := a.header.Get("ETag"); tag != strconv.Quote(strconv.FormatInt(want.Revision, 10)) {
			t.Errorf("%s: ETag %q", what, tag)
		}
	}
	same("made", want, made)
	same("read", want, w.call(w.tokens[identity.Viewer], http.MethodGet, "/api/v1/agents/clerk", "").want(t, http.StatusOK))
	w.admin(http.MethodPost, "/api/v1/agents", clerk).problem(t, http.StatusConflict, fault.Conflict)

	want.LLMProfile, want.AutoExecute, want.Name, want.MCPServers, want.Language, want.Limits, want.Policy, want.Revision, want.UpdatedBy = "small", true, "clerk", nil, "", api.AgentLimits{}, api.AgentPolicy{}, 2, "editor-user"
	match := func(revision string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("If-Match", revision)
			r.Header.Set("Content-Type", "application/json")
		}
	}
	put := func(path, body, revision string) answer {
		t.Helper()
		return w.ask(w.tokens[identity.Editor], http.MethodPut, path, strings.NewReader(body), match(revision))
	}
	same("replaced", want, put("/api/v1/agents/clerk", `{"llm_profile":"small","auto_execute":true}`, `"1"`).want(t, http.StatusOK))
	put("/api/v1/agents/clerk", `{"llm_profile":"main"}`, `"1"`).problem(t, http.StatusConflict, fault.Conflict)
	put("/api/v1/agents/clerk", `{"llm_profile":"main","id":"other"}`, "").problem(t, http.StatusUnprocessableEntity, fault.InvalidInput)
	put("/api/v1/agents/new", `{"llm_profile":"main"}`, "").want(t, http.StatusOK)
	for i, id := range []string{"mail-clerk", "mail-clerk-2"} {
		if got := read[api.Agent](t, w.admin(http.MethodPost, "/api/v1/agents", `{"name":"Mail Clerk!","llm_profile":"main"}`).want(t, http.StatusCreated)); got.ID != id || got.Name != "Mail Clerk!" {
			t.Errorf("agent %d without an id is %+v", i, got)
		}
	}
	if got := read[api.Agent](t, w.admin(http.MethodPost, "/api/v1/agents", `{"name":"邮件","llm_profile":"main"}`).want(t, http.StatusCreated)); !strings.HasPrefix(got.ID, "agent-") {
		t.Errorf("the id is %q", got.ID)
	}

	// One that a node describes by itself is nobody's to see.
	hidden, err := agent.Spec{LLMProfile: "main"}.Workflow(agent.UnnamedID("abc"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.stores.Workflows.Save(t.Context(), identity.System("a"), store.SaveWorkflow{ID: hidden.Metadata.ID, Hash: "h", Definition: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	w.admin(http.MethodGet, "/api/v1/agents/~abc", "").problem(t, http.StatusNotFound, fault.NotFound)
	list := read[api.Agents](t, w.admin(http.MethodGet, "/api/v1/agents?page_size=2", "").want(t, http.StatusOK))
	if list.TotalCount != 5 || len(list.Agents) != 2 || list.PageSize != 2 {
		t.Errorf("the list is %+v", list)
	}
	if found := read[api.Agents](t, w.admin(http.MethodGet, "/api/v1/agents?q=MAIL", "").want(t, http.StatusOK)); found.TotalCount != 2 || found.Agents[0].LLMProfile != "main" {
		t.Errorf("found %+v", found)
	}
	if others := read[api.Agents](t, w.call(w.other, http.MethodGet, "/api/v1/agents", "").want(t, http.StatusOK)); others.TotalCount != 0 || others.Agents == nil {
		t.Errorf("the agents of another workspace: %+v", others)
	}
	w.call(w.other, http.MethodGet, "/api/v1/agents/clerk", "").problem(t, http.StatusNotFound, fault.NotFound)

	w.admin(http.MethodDelete, "/api/v1/agents/new", "").want(t, http.StatusNoContent)
	w.admin(http.MethodGet, "/api/v1/agents/new", "").problem(t, http.StatusNotFound, fault.NotFound)
	w.admin(http.MethodDelete, "/api/v1/agents/new", "").problem(t, http.StatusNotFound, fault.NotFound)
	if err := w.stores.Journal.Append(t.Context(), identity.System("a"), &store.Append{
		Execution: "open", Time: 1, Body: []byte("x"), Create: &store.Execution{ID: "open", WorkflowID: "agent:clerk", Status: engine.StatusWaitingForHuman},
	}); err != nil {
		t.Fatal(err)
	}
	if p := w.admin(http.MethodDelete, "/api/v1/agents/clerk", "").problem(t, http.StatusConflict, fault.Conflict); !strings.Contains(p.Detail, "unfinished tasks") {
		t.Errorf("deleting it with an open task: %q", p.Detail)
	}
}

func TestAgents_NameWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	for _, c := range []struct{ body, path, says string }{
		{`{"id":"x","llm_profile":"mian"}`, "llm_profile", `did you mean "main"`},
		{`{"id":"x","llm_profile":"zzzzzzzz"}`, "llm_profile", `"main", "small"`},
		{`{"id":"x","llm_profile":""}`, "llm_profile", "name a profile"},
		{`{"id":"x","llm_profile":"main","mcp_servers":["files","fils"]}`, "mcp_servers[1]", `did you mean "files"`},
		{`{"id":"x","llm_profile":"main","mcp_servers":["files","files"]}`, "mcp_servers", "twice"},
		{`{"id":"x","llm_profile":"main","policy":{"auto_approve":["none"]}}`, "policy.auto_approve", "low, medium or high"},
		{`{"id":"x","llm_profile":"main","limits":{"steps":-1}}`, "limits.steps", ""},
		{`{"id":"X Y","llm_profile":"main"}`, "id", ""},
		{`{"id":"x","llm_profile":"main","language":"fr"}`, "language", ""},
		{`{"id":"x"}`, "", "llm_profile"},
		{`{"id":"x","llm_profile":"main","tools":[]}`, "tools", ""},
	} {
		p := w.admin(http.MethodPost, "/api/v1/agents", c.body).problem(t, http.StatusUnprocessableEntity, fault.InvalidInput)
		if len(p.Errors) == 0 || c.path != "" && p.Errors[0].Path != c.path || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: %q, %+v", c.body, p.Detail, p.Errors)
		}
	}
}

func TestAgents_AreNoWorkflows(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.admin(http.MethodPost, "/api/v1/agents", clerk).want(t, http.StatusCreated)
	if list := read[api.Workflows](t, w.admin(http.MethodGet, "/api/v1/workflows", "").want(t, http.StatusOK)); list.TotalCount != 0 {
		t.Errorf("the workflows are %+v", list)
	}
	for _, route := range []string{"GET ", "PUT ", "DELETE ", "POST /copy", "GET /revisions", "POST /deploy", "POST /undeploy", "POST /execute"} {
		method, rest, _ := strings.Cut(route, " ")
		body := "{}"
		if method == http.MethodPut {
			body = `{"nodes":[]}`
		}
		p := w.admin(method, "/api/v1/workflows/agent:clerk"+rest, body).problem(t, http.StatusNotFound, fault.NotFound)
		if !strings.Contains(p.Detail, "/agents") {
			t.Errorf("%s: %q", route, p.Detail)
		}
	}
	if p := w.admin(http.MethodPost, "/api/v1/workflows", `{"metadata":{"id":"agent:x"},"nodes":[{"id":"start","type":"TRIGGER","subtype":"MANUAL"}]}`).problem(t, http.StatusUnprocessableEntity, fault.InvalidInput); !strings.Contains(p.Detail, "agent:x") {
		t.Errorf("a workflow with the id of an agent: %q", p.Detail)
	}
	w.admin(http.MethodGet, "/api/v1/agents/clerk", "").want(t, http.StatusOK)
}

func TestTasks(t *testing.T) {
	t.Parallel()
	w := agentWorld(t, func(o *Options) { o.TaskStarts = -1 })
	w.admin(http.MethodPost, "/api/v1/agents", clerk).want(t, http.StatusCreated)
	const path = "/api/v1/agents/clerk/tasks"
	operator := w.tokens[identity.Operator]

	a := w.call(operator, http.MethodPost, path, `{"question":" what now? ","metadata":{"city":"Bern","question":"no"},"params":{"city":"Basel","day":1},"documents":["a",{"b":1}],"session_id":"s","wait_seconds":30,"priority":2}`).want(t, http.StatusOK)
	done := read[api.TaskStarted](t, a)
	if done.Status != "SUCCESS" || done.Answer != "so what now?" || done.AgentID != "clerk" || done.TaskID != done.ExecutionID || !strings.HasPrefix(done.ConversationID, "conv_") || done.Repeated || done.Error != nil {
		t.Errorf("the task is %+v", done)
	}
	if at := a.header.Get("Location"); at != "/api/v1/executions/"+done.TaskID {
		t.Errorf("it is at %q", at)
	}
	e, err := w.stores.Executions.Get(t.Context(), identity.System("a"), done.TaskID)
	if err != nil || e.WorkflowID != "agent:clerk" || e.User != "operator-user" || e.Conversation != done.ConversationID || e.Priority != 2 || e.WorkflowName == "" {
		t.Errorf("the execution is %+v, %v", e, err)
	}
	r, err := w.server.stories.ReadExecution(t.Context(), identity.System("a"), done.TaskID)
	if err != nil {
		t.Fatal(err)
	}
	var initial, request map[string]any
	if err := json.Unmarshal(r.Start.Initial, &initial); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(r.Start.Trigger, &request); err != nil {
		t.Fatal(err)
	}
	documents := []any{"a", map[string]any{"b": 1.0}}
	if diff := cmp.Diff(map[string]any{"city": "Bern", "day": 1.0, "question": "what now?", "conversation_id": done.ConversationID, "session_id": "s", "documents": documents}, initial); diff != "" {
		t.Errorf("the initial layer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{
		"question": "what now?", "metadata": map[string]any{"city": "Bern", "question": "no"}, "params": map[string]any{"city": "Basel", "day": 1.0},
		"conversation_id": done.ConversationID, "session_id": "s", "documents": documents,
	}, request); diff != "" {
		t.Errorf("what the trigger brings (-want +got):\n%s", diff)
	}
	if r.Start.Language != "zh" {
		t.Errorf("it speaks %q, the agent zh", r.Start.Language)
	}

	again := read[api.TaskStarted](t, w.call(operator, http.MethodPost, path, `{"question":"and then?","conversation_id":"`+done.ConversationID+`"}`).want(t, http.StatusAccepted))
	if again.ConversationID != done.ConversationID || again.Answer != "" {
		t.Errorf("the next is %+v", again)
	}
	list := func(query string) api.Executions {
		t.Helper()
		return read[api.Executions](t, w.call(w.tokens[identity.Viewer], http.MethodGet, path+query, "").want(t, http.StatusOK))
	}
	if got := list("?conversation_id=" + done.ConversationID + "&page_size=1"); got.TotalCount != 2 || len(got.Executions) != 1 || got.Executions[0].ExecutionID != again.TaskID || got.Executions[0].ConversationID != done.ConversationID {
		t.Errorf("the tasks are %+v", got)
	}
	if got := list("?mine=true"); got.TotalCount != 0 {
		t.Errorf("the viewer's own are %+v", got)
	}
	if got := list("?status=canceled"); got.TotalCount != 0 {
		t.Errorf("the canceled ones are %+v", got)
	}
	w.admin(http.MethodGet, "/api/v1/agents/cleric/tasks", "").problem(t, http.StatusNotFound, fault.NotFound)
	w.admin(http.MethodPost, "/api/v1/agents/cleric/tasks", `{"question":"x"}`).problem(t, http.StatusNotFound, fault.NotFound)
	for _, role := range []identity.Role{identity.Viewer, identity.Approver} {
		w.call(w.tokens[role], http.MethodPost, path, `{"question":"x"}`).problem(t, http.StatusForbidden, fault.Forbidden)
		w.call(w.tokens[role], http.MethodPut, "/api/v1/agents/clerk", clerk).problem(t, http.StatusForbidden, fault.Forbidden)
	}
	w.call(operator, http.MethodPost, "/api/v1/agents", clerk).problem(t, http.StatusForbidden, fault.Forbidden)
	w.call(operator, http.MethodDelete, "/api/v1/agents/clerk", "").problem(t, http.StatusForbidden, fault.Forbidden)

	long := strings.Repeat("问", agent.MaxQuestion)
	w.admin(http.MethodPost, path, `{"question":"`+long+`"}`).want(t, http.StatusAccepted)
	for _, c := range []struct{ body, path, says string }{
		{`{"question":"` + long + `?"}`, "question", "2001"},
		{`{"question":"  "}`, "question", "what is to be done"},
		{`{}`, "", "question"},
		{`{"question":"x","metadata":[1]}`, "metadata", "by name"},
		{`{"question":"x","params":"y"}`, "params", "by name"},
		{`{"question":"x","documents":["a",3]}`, "documents[1]", "text or an object"},
		{`{"question":"x","language":"fr"}`, "language", ""},
		{`{"question":"x","wait_seconds":61}`, "wait_seconds", ""},
	} {
		p := w.admin(http.MethodPost, path, c.body).problem(t, http.StatusUnprocessableEntity, fault.InvalidInput)
		if len(p.Errors) == 0 || c.path != "" && p.Errors[0].Path != c.path || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%.80s: %q, %+v", c.body, p.Detail, p.Errors)
		}
	}
}

// startTask starts a task with an idempotency key.
func (w *world) startTask(token, key, body string) answer {
	w.t.Helper()
	return w.ask(token, http.MethodPost, "/api/v1/agents/clerk/tasks", strings.NewReader(body), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
	})
}

func TestTasks_StartOnceWithAKey(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.admin(http.MethodPost, "/api/v1/agents", clerk).want(t, http.StatusCreated)
	operator := w.tokens[identity.Operator]
	one := read[api.TaskStarted](t, w.startTask(operator, "k", `{"question":"x"}`).want(t, http.StatusAccepted))
	for range 10 { // more than may be started: a repetition starts nothing
		two := read[api.TaskStarted](t, w.startTask(operator, "k", `{"question":"x","wait_seconds":20}`).want(t, http.StatusOK))
		if two.TaskID != one.TaskID || two.ConversationID != one.ConversationID || !two.Repeated || two.Answer != "so x" {
			t.Fatalf("first %+v, then %+v", one, two)
		}
	}
	w.startTask(operator, "k", `{"question":"y"}`).problem(t, http.StatusConflict, fault.Conflict)
	w.ask(operator, http.MethodPost, "/api/v1/agents/other/tasks", strings.NewReader(`{"question":"x"}`), func(r *http.Request) { r.Header.Set("Idempotency-Key", "k") }).
		problem(t, http.StatusConflict, fault.Conflict)
}

// Older clients write some fields in another way; the present way wins.
func TestTasks_TakeOlderSpellings(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.admin(http.MethodPost, "/api/v1/agents", clerk).want(t, http.StatusCreated)
	operator := w.tokens[identity.Operator]
	for body, want := range map[string]string{
		`{"question":"x","conversationId":"old","sessionId":"s","autoExecute":false}`: "old",
		`{"question":"x","conversationId":"old","conversation_id":"new"}`:             "new",
	} {
		if got := read[api.TaskStarted](t, w.startTask(operator, "", body).want(t, http.StatusAccepted)); got.ConversationID != want {
			t.Errorf("%s: the conversation is %q, want %q", body, got.ConversationID, want)
		}
	}
}

func TestTasks_AreNotStartedTooOften(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.admin(http.MethodPost, "/api/v1/agents", clerk).want(t, http.StatusCreated)
	operator := w.tokens[identity.Operator]
	w.startTask(operator, "", `{"question":""}`).problem(t, http.StatusUnprocessableEntity, fault.InvalidInput) // does not count
	for i := range limits.DefaultTaskStarts {
		w.startTask(operator, fmt.Sprint("k", i), `{"question":"x"}`).want(t, http.StatusAccepted)
	}
	a := w.startTask(operator, "", `{"question":"x"}`)
	p := a.problem(t, http.StatusTooManyRequests, fault.RateLimited)
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 15 || !strings.Contains(p.Detail, "operator-user") {
		t.Errorf("Retry-After %q: %q", a.header.Get("Retry-After"), p.Detail)
	}
	w.startTask(operator, "k0", `{"question":"x"}`).want(t, http.StatusAccepted) // a repetition
	w.admin(http.MethodPost, "/api/v1/agents/clerk/tasks", `{"question":"x"}`).want(t, http.StatusAccepted)

	// Another process knows of them, and of those that nobody has started by hand it takes no notice.
	p2 := identity.System("a")
	p2.User = "operator-user"
	request, _, err := w.server.o.Revisions.Request(t.Context(), p2, "agent:clerk", "latest")
	if err != nil {
		t.Fatal(err)
	}
	request.ID, request.TriggerType, request.TriggerData = "exec_of_a_parent", "PARENT", json.RawMessage(`{"question":"x"}`)
	if _, err := w.server.o.Host.Start(t.Context(), p2, request); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Millisecond) // those of this very moment are not older than the process
	o := w.server.o
	o.Metrics, o.Limits = metrics.New(), nil
	next, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	start := func(user string) (func(bool), error) {
		return next.o.Limits.Enter(t.Context(), identity.Principal{Workspace: "a", User: user}, limits.Start{Tasks: limits.DefaultTaskStarts})
	}
	if _, err := start("operator-user"); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("in the next process: %v", err)
	}
	for range limits.DefaultTaskStarts - 1 { // the process before has started one
		leave, err := start("admin-user")
		if err != nil {
			t.Fatalf("in the next process: %v", err)
		}
		leave(true)
	}
	if _, err := start("admin-user"); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("in the next process: %v", err)
	}

	w.pass(limits.TaskWindow)
	w.startTask(operator, "", `{"question":"x"}`).want(t, http.StatusAccepted)
}

func TestMe(t *testing.T) {
	t.Parallel()
	w := setup(t)
	viewer := w.tokens[identity.Viewer]
	me := func(token string) api.User {
		t.Helper()
		return read[api.User](t, w.call(token, http.MethodGet, "/api/v1/users/me", "").want(t, http.StatusOK))
	}
	before := me(viewer)
	if before.AutoExecute {
		t.Error("it is on before anybody has switched it on")
	}
	after := read[api.User](t, w.call(viewer, http.MethodPatch, "/api/v1/users/me", `{"auto_execute":true}`).want(t, http.StatusOK))
	before.AutoExecute = true
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the rest has changed (-before +after):\n%s", diff)
	}
	w.call(viewer, http.MethodPatch, "/api/v1/users/me", `{}`).want(t, http.StatusOK)
	if diff := cmp.Diff(before, me(viewer)); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	w.call(viewer, http.MethodPatch, "/api/v1/users/me", `{"roles":["admin"]}`).problem(t, http.StatusUnprocessableEntity, fault.InvalidInput)
	// An admin who changes the user leaves the setting alone.
	w.admin(http.MethodPut, "/api/v1/users/viewer-user", `{"name":"V","roles":["viewer"]}`).want(t, http.StatusOK)
	if got := me(viewer); !got.AutoExecute || got.Name != "V" {
		t.Errorf("after the admin: %+v", got)
	}
	w.call(viewer, http.MethodPatch, "/api/v1/users/me", `{"auto_execute":false}`).want(t, http.StatusOK)
	if me(viewer).AutoExecute || me(w.tokens[identity.Editor]).AutoExecute {
		t.Error("it is on")
	}
}
