package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
)

func (x *site) history(t testing.TB, id, query string) api.History {
	t.Helper()
	return want[api.History](t, x.call(t, "viewer", "GET", "/executions/"+id+"/history"+query, nil), http.StatusOK)
}

// recounted is what a history tells, a line for each record.
func recounted(h api.History) []string {
	var list []string
	for _, r := range h.History {
		line := ""
		if r.InheritedFrom != "" {
			line = "inherited "
		}
		if r.Action != nil {
			list = append(list, line+r.Action.Action+" by "+r.Action.By+": "+r.Action.Reason)
			continue
		}
		line += strings.TrimSuffix(r.Step.NodeID+"."+r.Step.InnerStep, ".") + " " + r.Step.StepStatus
		for _, q := range r.Step.Questions {
			line += " asked " + strings.Join(q.Asked, ",")
			for _, a := range q.Answers {
				line += " answered " + a.UserID + " by " + string(a.Means.Kind)
			}
		}
		list = append(list, line)
	}
	return list
}

// One call tells what happened and who approved it: steps, questions and answers, retries, and what operators did and why.
func TestHistory_OneCallTellsEverything(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	var calls atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch calls.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(service.Close)
	x.save(t, `
metadata: {id: pay, name: pay, description: d}
nodes:
  - {id: start, name: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: ask, name: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "Pay {{amount}}?", approvers: ["user:approver"], risk: high}}
  - {id: call, name: call, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: GET, url: "`+service.URL+`"}}
connections:
  - {from_node: start, to_node: ask}
  - {from_node: ask, to_node: call, output_key: confirmed}
`)
	id := x.execute(t, "pay", api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":5}`)})
	question := x.opens(t, id, 1)[0]
	if got := recounted(x.history(t, id, "")); !slices.Equal(got, []string{"start SUCCESS", "ask WAITING asked user:approver"}) {
		t.Errorf("while it waits: %q", got)
	}
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "pause", Reason: "lunch"}), http.StatusOK)
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "resume", Reason: "back again"}), http.StatusOK)
	if a := x.respond(t, "approver", question.ID, `{"action":"approve","notes":"fine"}`); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	x.reaches(t, id, engine.StatusError)
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "retry_node", NodeID: "call", Reason: "it is open now"}), http.StatusOK)
	if a := x.respond(t, "approver", x.opens(t, id, 1)[0].ID, `{"action":"approve"}`); a.status != http.StatusOK { // a question on the way is asked again
		t.Fatalf("%d %s", a.status, a.body)
	}
	x.reaches(t, id, engine.StatusSuccess)

	h := x.history(t, id, "")
	same(t, recounted(h), []string{
		"start SUCCESS", "ask SUCCESS asked user:approver answered approver by token",
		"pause by operator: lunch", "resume by operator: back again", "call ERROR",
		"retry_node by operator: it is open now", "ask SUCCESS asked user:approver answered approver by token", "call SUCCESS",
	})
	if h.Status != "SUCCESS" || h.ExecutorStatus != "SUCCESS" || h.TriggerInfo.UserID != "operator" {
		t.Errorf("head %+v", h)
	}
	ask := h.History[1].Step
	q := ask.Questions[0]
	if gjson.GetBytes(q.Shown, "title").Str != "Pay 5?" || string(q.Shown) != string(x.interaction(t, question.ID).Request) || q.Status != "completed" || q.EndedAt == 0 || q.Risk != "high" || string(ask.ExtraData["risk"]) != `"high"` {
		t.Errorf("the question is told as %+v, extra data %s", q, ask.ExtraData)
	}
	if a := q.Answers[0]; !a.Accepted || a.ReceivedAt == 0 || a.Means.Token != "tok_approver" || gjson.GetBytes(a.ResponseData, "notes").Str != "fine" {
		t.Errorf("the answer is told as %+v", a)
	}
	if gjson.GetBytes(ask.InputData, "amount").Int() != 5 || ask.ExecutorName != "pay" || ask.StepType != "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL" || len(ask.OutputData) == 0 {
		t.Errorf("the step is told as %+v", ask)
	}
	failed, again := h.History[4].Step, h.History[7].Step
	if len(failed.Retries) != 1 || failed.Retries[0].Error == nil || failed.Attempts != 2 || failed.Error == nil || failed.ExecutorStatus != "ERROR" {
		t.Errorf("the failed call is told as %+v", failed)
	}
	if again.Generation != 1 || again.ID != "call#1" || again.ExecutorStatus != "SUCCESS" || len(again.OutputData) == 0 {
		t.Errorf("the second call is told as %+v", again)
	}
	first := x.history(t, id, "?limit=3")
	rest := x.history(t, id, "?after="+first.Next)
	same(t, slices.Concat(recounted(first), recounted(rest)), recounted(h))
	refused(t, x.call(t, "viewer", "GET", "/executions/"+id+"/history?after=x", nil), http.StatusUnprocessableEntity, "invalid_input")

	t.Run("OfAFork", func(t *testing.T) {
		fork := want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "fork", NodeID: "call", Reason: "once more"}), http.StatusOK).ExecutionID
		question := x.opens(t, fork, 1)[0]
		if a := x.respond(t, "approver", question.ID, `{"action":"approve"}`); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		x.reaches(t, fork, engine.StatusSuccess)
		got := recounted(x.history(t, fork, ""))
		begins := []string{"inherited start SUCCESS", "inherited ask SUCCESS asked user:approver answered approver by token", "inherited pause by operator: lunch", "inherited resume by operator: back again"}
		if at := slices.Index(got, "fork by operator: once more"); !slices.Equal(got[:4], begins) || at < 4 || !slices.Contains(got[at:], "ask SUCCESS asked user:approver answered approver by token") || got[len(got)-1] != "call SUCCESS" {
			t.Errorf("%q", got)
		}
	})
}

// What a step inside a node has asked and called is told, and an execution below with what started it.
func TestHistory_StepsAndChildren(t *testing.T) {
	t.Parallel()
	x, id, _, _ := asking(t)
	x.approve(t, id, `{"action":"approve"}`)
	x.reaches(t, id, engine.StatusSuccess)
	h := x.history(t, id, "")
	same(t, recounted(h), []string{
		"start SUCCESS", "agent SUCCESS", "agent.complete_1 SUCCESS", "agent.approve_1_1 SUCCESS asked user:operator answered operator by token", "agent.call_1_1 SUCCESS", "agent.complete_2 SUCCESS",
	})
	for at, asked := range map[int][]string{2: {"user"}, 5: {"user", "assistant", "tool"}} { // what the model was asked each time, and not what the node was given
		var roles []string
		for _, m := range gjson.GetBytes(h.History[at].Step.InputData, "messages").Array() {
			roles = append(roles, m.Get("role").Str)
		}
		one := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/"+url.PathEscape(h.History[at].Step.ID), nil), http.StatusOK)
		if !slices.Equal(roles, asked) || gjson.GetBytes(h.History[at].Step.InputData, "tools.0").Str != "http_request" || string(one.InputData) != string(h.History[at].Step.InputData) {
			t.Errorf("completion %d was asked %s, and shown by itself %s", at, h.History[at].Step.InputData, one.InputData)
		}
	}
	if call := h.History[4].Step; gjson.GetBytes(call.InputData, "tool_name").Str != "http_request" || len(h.History[3].Step.ExtraData["arguments"]) == 0 {
		t.Errorf("the call is told as %+v", call)
	}
	x.save(t, `
metadata: {id: above, name: above, description: d}
nodes:
  - {id: start, name: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: sub, name: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: talk, revision: latest}}
connections:
  - {from_node: start, to_node: sub}
`)
	parent := x.execute(t, "above", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"pay"}`)})
	question := x.opens(t, parent, 1)[0]
	if a := x.respond(t, "operator", question.ID, `{"action":"approve"}`); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	x.reaches(t, parent, engine.StatusSuccess)
	below := x.history(t, parent, "").History[1].Step.Children
	if len(below) != 1 || len(below[0].History) != 6 || !strings.Contains(recounted(below[0])[3], "answered operator") {
		t.Errorf("below the node: %+v", below)
	}
}
