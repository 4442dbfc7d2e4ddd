package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
)

// bookingTools are tools with arguments of several sorts.
func bookingTools(t *testing.T, do func(toolCall, <-chan struct{}) toolReply) *toolbox {
	return newToolbox(t, do,
		toolDefinition{Name: "find", Description: "finds", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`), ReadOnly: true},
		toolDefinition{Name: "book", Description: "books", Schema: json.RawMessage(
			`{"type":"object","properties":{"offer":{"type":"string"},"day":{"type":"string"},"note":{"type":"string"},"seats":{"type":"integer"},"list":{"type":"array"}},"required":["offer","day"]}`)},
	)
}

func untracedLines(f api.Frozen) []string {
	lines := []string{}
	for _, u := range f.Untraced {
		lines = append(lines, u.StepID+" "+u.Path+" "+string(u.Value)+": "+u.Reason)
	}
	return lines
}

// argumentsOf are the arguments of a node of a frozen task, in the order of their names.
func argumentsOf(t *testing.T, f api.Frozen, node string) string {
	t.Helper()
	args := gjson.GetBytes(f.Definition, `nodes.#(id=="`+node+`").configurations.function_args`)
	if !args.IsObject() {
		t.Fatalf("there is no node %q in %s", node, f.Definition)
	}
	_, sorted, _ := strings.Cut(sortedCalls(t, []string{node + " " + args.Raw})[0], " ")
	return sorted
}

// What people have answered and what the model has thought of by itself stays as it was, and is named.
func TestFreeze_NamesWhatItCouldNotTrace(t *testing.T) {
	t.Parallel()
	m := newMind(t, []string{"box/find", "box/book"}, func(d decided) any {
		switch {
		case d.name == "params" && d.step == "step_1":
			return map[string]any{"arguments": map[string]any{"city": "{{city}}"}}
		case d.name == "params":
			return map[string]any{"arguments": map[string]any{"offer": "offer-17", "seats": 2, "note": `by the {{window} of \{{city}}`}}
		case d.name == "fill":
			return map[string]any{"arguments": map[string]any{"offer": "offer-17", "day": "2026-03-01", "seats": 2, "note": `by the {{window} of \{{city}}`}}
		case d.name == "missing":
			return map[string]any{"message": "When?", "params": map[string]any{"day": nil}}
		}
		return nil
	})
	b := bookingTools(t, func(c toolCall, _ <-chan struct{}) toolReply {
		if c.Tool == "find" {
			return toolReply{Structured: json.RawMessage(`{"offers":[{"id":"offer-17"}]}`)}
		}
		return toolReply{Text: "booked"}
	})
	x := openTasks(t, m, b)
	e := x.ask(api.TaskRequest{Question: "Book 2 seats", Metadata: json.RawMessage(`{"city":"Hangzhou"}`)})
	x.question(e, "confirm")
	e = x.say(e.ExecutionID, `{"confirm":true}`)
	if q := e.Questions; len(q) == 1 && q[0].Purpose == "param" {
		e = x.say(e.ExecutionID, `{"content":{"day":"2026-03-01"}}`)
	}
	x.question(e, "confirm")
	e = x.say(e.ExecutionID, `{"confirm":true}`)
	x.ended(e, engine.StatusSuccess)

	frozen, err := x.as("editor").Freeze(t.Context(), e.ExecutionID, api.FreezeRequest{DryRun: true, ID: "booking"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.as("editor").Workflow(t.Context(), "booking", 0); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a dry run has kept something: %v", err)
	}
	if got := argumentsOf(t, frozen, "step_1"); got != `{"city":"{{city}}"}` {
		t.Errorf("first arguments %s", got)
	}
	var args map[string]any
	if err := json.Unmarshal([]byte(argumentsOf(t, frozen, "step_2")), &args); err != nil {
		t.Fatal(err)
	}
	if args["offer"] != "{{step_1.outputs.result.offers[0].id}}" || args["day"] != "2026-03-01" {
		t.Errorf("second arguments %v", args)
	}
	want := []string{`step_2 day "2026-03-01": came from a person's answer`, `step_2 seats 2: stands in the question`}
	for _, line := range want {
		if !slices.Contains(untracedLines(frozen), line) {
			t.Errorf("untraced %q; want %q among them", untracedLines(frozen), line)
		}
	}
	// What looks like a placeholder in it and is not one is text in the workflow, too.
	if report := Validate("booking.json", frozen.Definition); len(report.Problems) > 0 {
		t.Errorf("the workflow has problems: %+v", report.Problems)
	}
	asked, called := m.count(), len(b.made())
	if _, err := x.as("editor").CreateWorkflow(t.Context(), frozen.Definition, false); err != nil {
		t.Fatal(err)
	}
	started, err := x.as(taskUser).Execute(t.Context(), "booking", api.ExecuteRequest{Inputs: json.RawMessage(`{"city":"Suzhou","day":"2026-12-24"}`)}, "")
	if err != nil || len(started.Warnings) != 1 || !strings.Contains(started.Warnings[0], `the input "day" is not used`) || !strings.Contains(started.Warnings[0], "it takes city") {
		t.Fatalf("warnings %q, %v", started.Warnings, err)
	}
	x.ended(x.rest(started.ExecutionID), engine.StatusSuccess)
	calls := sortedCalls(t, b.made()[called:])
	last := sortedCalls(t, b.made()[:called])
	if calls[0] != `find {"city":"Suzhou"}` || calls[1] != last[len(last)-1] || m.count() != asked {
		t.Errorf("calls %q, asked %d times more", calls, m.count()-asked)
	}
}

func TestFreeze_Refuses(t *testing.T) {
	t.Parallel()
	m := newMind(t, []string{"box/find"}, func(d decided) any {
		if d.name == "params" {
			return map[string]any{"arguments": map[string]any{"city": "{{city}}"}}
		}
		return nil
	})
	x := openTasks(t, m, bookingTools(t, nil))
	request := api.TaskRequest{Metadata: json.RawMessage(`{"city":"Hangzhou"}`)}
	waiting := x.ask(request)
	x.question(waiting, "confirm")
	done := x.say(x.ask(request).ExecutionID, `{"confirm":true}`)
	x.ended(done, engine.StatusSuccess)
	canceled := x.say(x.ask(request).ExecutionID, `{"confirm":false}`)
	x.ended(canceled, engine.StatusCanceled)
	x.save(t, `{"metadata":{"id":"plain","name":"plain"},"nodes":[{"id":"go","type":"TRIGGER","subtype":"MANUAL"}],"connections":[]}`)
	plain := x.execute(t, "plain", api.ExecuteRequest{WaitSeconds: 10})

	freeze := func(user, id string, body any) answer {
		return x.call(t, user, http.MethodPost, "/executions/"+id+"/freeze", body)
	}
	refused(t, freeze("editor", waiting.ExecutionID, nil), http.StatusConflict, "conflict")
	refused(t, freeze("editor", canceled.ExecutionID, nil), http.StatusConflict, "conflict")
	refused(t, freeze("editor", plain, nil), http.StatusUnprocessableEntity, "invalid")
	refused(t, freeze("editor", "exec_none", nil), http.StatusNotFound, "not_found")
	refused(t, freeze("stranger", done.ExecutionID, nil), http.StatusNotFound, "not_found")
	for _, user := range []string{"viewer", "operator", "approver"} {
		refused(t, freeze(user, done.ExecutionID, nil), http.StatusForbidden, "forbidden")
	}
	refused(t, freeze("editor", done.ExecutionID, api.FreezeRequest{ID: "plain"}), http.StatusConflict, "conflict")
	refused(t, freeze("editor", done.ExecutionID, api.FreezeRequest{ID: "agent:helper"}), http.StatusUnprocessableEntity, "invalid_input")

	first := want[api.Frozen](t, freeze("editor", done.ExecutionID, nil), http.StatusCreated)
	second := want[api.Frozen](t, freeze("editor", done.ExecutionID, nil), http.StatusCreated)
	if first.WorkflowID != "a-test" || second.WorkflowID != "a-test-2" || first.Untraced == nil {
		t.Errorf("kept as %q and %q", first.WorkflowID, second.WorkflowID)
	}
	if e := x.audited(t, "workflow.create", "a-test"); e.User != "editor" {
		t.Errorf("the audit log says %+v", e)
	}
	shown := want[api.Frozen](t, freeze("editor", done.ExecutionID, api.FreezeRequest{DryRun: true}), http.StatusOK)
	if shown.WorkflowID != "" || len(shown.Definition) == 0 {
		t.Errorf("a dry run shows %+v", shown)
	}
}

// A value that is too large for the journal is followed like any other.
func TestFreeze_FollowsLargeValues(t *testing.T) {
	t.Parallel()
	large, err := json.Marshal(strings.Split(strings.Repeat("电表的一个读数,", 1800), ","))
	if err != nil {
		t.Fatal(err)
	}
	m := newMind(t, []string{"box/find", "box/book"}, func(d decided) any {
		switch {
		case d.name == "params" && d.step == "step_1":
			return map[string]any{"arguments": map[string]any{"city": "{{city}}"}}
		case d.name == "params":
			return map[string]any{"arguments": map[string]any{"offer": "{{step_1.name}}", "day": "{{readings[3]}}", "list": "{{step_1.outputs.readings}}"}}
		}
		return nil
	})
	x := openTasks(t, m, bookingTools(t, func(c toolCall, _ <-chan struct{}) toolReply {
		return toolReply{Structured: json.RawMessage(`{"name":"meter","readings":` + string(large) + `}`)}
	}), func(a *api.Agent) { a.Policy.AutoApprove = []string{"low", "medium", "high"} })
	x.auto()
	e := x.ask(api.TaskRequest{Metadata: json.RawMessage(`{"city":"Hangzhou"}`)})
	x.ended(e, engine.StatusSuccess)
	frozen, err := x.as("editor").Freeze(t.Context(), e.ExecutionID, api.FreezeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got := argumentsOf(t, frozen, "step_2"); got != `{"day":"{{step_1.outputs.result.readings[3]}}","list":"{{step_1.outputs.result.readings}}","offer":"{{step_1.outputs.result.name}}"}` || len(frozen.Untraced) > 0 {
		t.Errorf("arguments %.300s, untraced %d", got, len(frozen.Untraced))
	}
}

// A fork has done what its source had done before.
func TestFreeze_OfAFork(t *testing.T) {
	t.Parallel()
	m := newMind(t, []string{"box/find", "box/book"}, func(d decided) any {
		switch {
		case d.name == "params" && d.step == "step_1":
			return map[string]any{"arguments": map[string]any{"city": "{{city}}"}}
		case d.name == "params":
			return map[string]any{"arguments": map[string]any{"offer": "{{step_1.offer}}", "day": "{{day}}"}}
		}
		return nil
	})
	x := openTasks(t, m, bookingTools(t, func(toolCall, <-chan struct{}) toolReply {
		return toolReply{Structured: json.RawMessage(`{"offer":"offer-17"}`)}
	}), func(a *api.Agent) { a.Policy.AutoApprove = []string{"low", "medium", "high"} })
	x.auto()
	e := x.ask(api.TaskRequest{Metadata: json.RawMessage(`{"city":"Hangzhou","day":"Monday"}`)})
	x.ended(e, engine.StatusSuccess)
	forked := want[api.ActionResponse](t, x.act(t, e.ExecutionID, api.ActionRequest{Action: "fork", NodeID: "plan_2"}), http.StatusOK)
	again := x.rest(forked.ExecutionID)
	x.ended(again, engine.StatusSuccess)
	frozen, err := x.as("editor").Freeze(t.Context(), again.ExecutionID, api.FreezeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if one, two := argumentsOf(t, frozen, "step_1"), argumentsOf(t, frozen, "step_2"); one != `{"city":"{{city}}"}` || two != `{"day":"{{day}}","offer":"{{step_1.outputs.result.offer}}"}` {
		t.Errorf("arguments %s, %s", one, two)
	}
}
