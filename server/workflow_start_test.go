package server

import (
	"net/http"
	"testing"

	"tandem/agent"
	"tandem/api"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
	"tandem/workflow"
)

// A start reads its revision from the store once, whatever it is needed for: to pin its templates, to check the inputs, to run it, to tell
// what came of it. The next start of the same revision does not read it at all.
func TestStart_ReadsItsRevisionOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const definition = `{"metadata":{"id":"m","name":"m"},"nodes":[{"id":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"},
		{"id":"n","description":"%","type":"CALL","subtype":"EMPTY"}],"connections":[{"from_node":"start","to_node":"n"}]}`
	w.admin("POST", route.Prefix+"/workflows", definition).want(t, http.StatusCreated)
	reads := func(what string, want int32, do func()) {
		t.Helper()
		before := w.fetched.Load()
		do()
		if got := w.fetched.Load() - before; got != want {
			t.Errorf("%s has read revisions %d times, want %d", what, got, want)
		}
	}
	start := func(body string) func() {
		return func() {
			id := read[api.ExecuteResponse](t, w.admin("POST", route.Prefix+"/workflows/m/execute", body).want(t, http.StatusOK)).ExecutionID
			w.admin("GET", route.Prefix+"/executions/"+id, "").want(t, http.StatusOK)
		}
	}
	reads("the first start", 1, start(`{"inputs":{"a":1},"wait_seconds":30}`))
	reads("the second start", 0, start(`{"inputs":{"a":2},"wait_seconds":30}`))
	reads("a start that the framework reads", 0, start(`{"inputs":{"a":2},"wait_seconds":30,"language":"zh"}`))
	w.admin("PUT", route.Prefix+"/workflows/m", `{"metadata":{"id":"m","name":"other"},`+definition[len(`{"metadata":{"id":"m","name":"m"},`):]).want(t, http.StatusOK)
	reads("the first start of another revision", 1, start(`{"inputs":{"a":1},"wait_seconds":30}`))
}

// The same holds for a task: its agent is described by the revision that it runs.
func TestStartTask_ReadsItsRevisionOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	def, err := agent.Spec{Name: "Clerk", LLMProfile: "main"}.Workflow(agent.WorkflowID("clerk"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.stores.Workflows.Save(t.Context(), identity.System("a"), store.SaveWorkflow{
		ID: def.Metadata.ID, Name: def.Metadata.Name, Hash: workflow.Hash(def), Definition: workflow.Encode(def), Time: 1, Expect: -1,
	}); err != nil {
		t.Fatal(err)
	}
	for n, want := range []int32{1, 0} {
		before := w.fetched.Load()
		w.admin("POST", route.Prefix+"/agents/clerk/tasks", `{"question":"x","wait_seconds":30}`).want(t, http.StatusOK)
		if got := w.fetched.Load() - before; got != want {
			t.Errorf("start %d has read revisions %d times, want %d", n+1, got, want)
		}
	}
}
