package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
)

// What a person, or another execution, does in the middle of a turn.

// asking is a site on which a turn waits for the approval of its first call. The model says what its tool answered.
func asking(t *testing.T) (x *site, id string, tools *counted, model *modelService) {
	t.Helper()
	x, tools = openSite(t), newCounted(t)
	model = newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "user" {
			return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"method":"POST","url":"`+tools.URL+`/pay","body":{"amount":5}}`)}}
		}
		return chatReply{text: []string{"heard: " + last.text()}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: "{{question}}", profileId: m, tool_approval: always}`, `web`, httpTool("web", ``)))
	id = x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"pay"}`)})
	x.reaches(t, id, engine.StatusWaitingForHuman)
	return x, id, tools, model
}

func (x *site) approve(t *testing.T, id, answer string) {
	t.Helper()
	want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "agent", InputData: json.RawMessage(answer)}), http.StatusOK)
}

// failedTurn is a turn whose model fails for good, so that its completion can be dealt with.
func failedTurn(t *testing.T) (*site, string) {
	t.Helper()
	x := openSite(t)
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{status: http.StatusUnauthorized} })
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m}`, ``, ``))
	id := x.execute(t, "talk", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusError)
	return x, id
}

func TestAgentMidTurn_SkipsACompletion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, output, want string }{
		{"Text", `"said by hand"`, "said by hand"},
		{"Content", `{"content":"said by hand"}`, "said by hand"},
		{"Message", `{"message":{"role":"assistant","content":"said by hand"}}`, "said by hand"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x, id := failedTurn(t)
			want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", ActivationID: "agent[0]/complete_1", Output: json.RawMessage(c.output)}), http.StatusOK)
			x.reaches(t, id, engine.StatusSuccess)
			if _, r := x.result(t, id); r.Response != c.want || r.Context.Conversation[1].Role != "assistant" {
				t.Errorf("result %+v", r)
			}
		})
	}
	t.Run("WithoutOutput", func(t *testing.T) {
		t.Parallel()
		x, id, _ := speaking(t)
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", ActivationID: "agent[0]/complete_1"}), http.StatusOK)
		x.reaches(t, id, engine.StatusError)
		if e := x.read(t, id).Error; e == nil || e.ErrorCode != "canceled" || !strings.Contains(e.ErrorMessage, "left out") {
			t.Errorf("error %+v", e)
		}
	})
}

func TestAgentMidTurn_SkipsACall(t *testing.T) {
	t.Parallel()
	x, tools := openSite(t), newCounted(t)
	reached := make(chan struct{})
	tools.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	})
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "user" {
			return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"url":"`+tools.URL+`/slow"}`)}}
		}
		return chatReply{text: []string{"heard: " + last.text()}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m}`, `web`, httpTool("web", ``)))
	id := x.execute(t, "talk", api.ExecuteRequest{})
	<-reached
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", ActivationID: "agent[0]/call_1_1", Output: json.RawMessage(`{"weather":"fine"}`)}), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	if _, r := x.result(t, id); !strings.Contains(r.Response, `"weather":"fine"`) || len(r.ToolResults) != 1 || r.ToolResults[0].Name != "http_request" || string(r.ToolResults[0].Result) != `{"weather":"fine"}` {
		t.Errorf("result %+v", r)
	}
}

// A call whose outcome nobody knows is decided by a person, whose word the model is told.
func TestAgentMidTurn_UnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, answer, want string }{
		{"Done", `{"outcome":"done","result":{"paid":true}}`, `{"paid":true}`},
		{"DoneSilently", `{"outcome":"done"}`, "heard: "},
		{"Stop", `{"outcome":"stop"}`, "heard: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x, tools := openSite(t), newCounted(t)
			tools.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
				last := r.Messages[len(r.Messages)-1]
				if last.Role == "user" {
					return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"method":"POST","url":"`+tools.URL+`/pay","body":{}}`)}}
				}
				return chatReply{text: []string{"heard: " + last.text()}}
			})
			x.saveProfile(t, model.profile("m"))
			x.save(t, agentFlow(`{user_prompt: go, profileId: m}`, `web`, httpTool("web", ``)))
			id := x.execute(t, "talk", api.ExecuteRequest{})
			x.reaches(t, id, engine.StatusWaitingForHuman)
			q := x.read(t, id).Questions
			if len(q) != 1 || q[0].Purpose != "outcome_unknown" {
				t.Fatalf("asked %+v", q)
			}
			if !strings.HasSuffix(gjson.GetBytes(q[0].Arguments, "arguments.url").Str, "/pay") {
				t.Errorf("the person is not shown the call: %s", q[0].Arguments)
			}
			want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "agent", InputData: json.RawMessage(c.answer)}), http.StatusOK)
			x.reaches(t, id, engine.StatusSuccess)
			if _, r := x.result(t, id); !strings.Contains(r.Response, c.want) {
				t.Errorf("response %q", r.Response)
			}
		})
	}
}

// A turn whose answers never had the right shape can be had again as a whole.
func TestAgentMidTurn_RetriesAfterTheWrongShape(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	var n int
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply {
		if n++; n <= 3 {
			return chatReply{text: []string{"no"}}
		}
		return chatReply{text: []string{`{"n":5}`}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m, response_format: json}`, ``, ``))
	id := x.execute(t, "talk", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusError)
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "retry_node", NodeID: "agent"}), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	if _, r := x.result(t, id); string(r.Content) != `{"n":5}` || model.count() != 4 {
		t.Errorf("result %+v after %d completions", r, model.count())
	}
}

// A fork from a call that was approved asks again before it does the call: people agreed to the first one.
func TestAgentMidTurn_Forks(t *testing.T) {
	t.Parallel()
	x, id, tools, model := asking(t)
	x.approve(t, id, `{"approved":true}`)
	x.reaches(t, id, engine.StatusSuccess)
	forked := want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "fork", ActivationID: "agent[0]/call_1_1"}), http.StatusOK).ExecutionID
	x.reaches(t, forked, engine.StatusWaitingForHuman)
	if len(tools.list()) != 1 {
		t.Errorf("called %q before anybody agreed", tools.list())
	}
	x.approve(t, forked, `{"approved":true}`)
	x.reaches(t, forked, engine.StatusSuccess)
	if _, r := x.result(t, forked); !strings.Contains(r.Response, "/pay") || model.count() != 3 || len(tools.list()) != 2 {
		t.Errorf("response %q, asked %d times, called %q", r.Response, model.count(), tools.list())
	}
	forked = want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "fork", ActivationID: "agent[0]/approve_1_1"}), http.StatusOK).ExecutionID
	x.reaches(t, forked, engine.StatusWaitingForHuman)
	x.approve(t, forked, `{"approved":false}`)
	x.reaches(t, forked, engine.StatusSuccess)
	if len(tools.list()) != 2 {
		t.Errorf("called %q", tools.list())
	}
	// What was approved is the call as the model wants it.
	refused(t, x.act(t, id, api.ActionRequest{Action: "fork", ActivationID: "agent[0]/call_1_1", Input: json.RawMessage(`{"url":"x"}`)}), http.StatusConflict, "conflict")
	for _, step := range []string{"approve_1_1", "call_1_1"} {
		a := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/"+url.PathEscape("agent[0]/"+step), nil), http.StatusOK)
		if got := gjson.GetBytes(a.InputData, "arguments.body.amount"); got.Int() != 5 || gjson.GetBytes(a.InputData, "tool_name").Str != "http_request" {
			t.Errorf("the input of %s is %s", step, a.InputData)
		}
	}
}

// What is not a plain yes does not approve.
func TestAgentMidTurn_OnlyYesApproves(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`{"approved":true,"action":"reject"}`, `{"action":"reject"}`, `{}`, `{"approved":"true"}`, `{"confirm":true,"approved":false}`, `"yes"`, `{"approved":true,"selected_option":"reject"}`} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			x, id, tools, _ := asking(t)
			a := x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "agent", InputData: json.RawMessage(answer)})
			if a.status == http.StatusOK {
				x.reaches(t, id, engine.StatusSuccess)
			}
			if got := tools.list(); len(got) != 0 {
				t.Errorf("%d: it was called: %q", a.status, got)
			}
		})
	}
}

// speaking is a turn whose model has been asked and says nothing until its caller hangs up.
func speaking(t *testing.T) (x *site, id string, hungUp <-chan struct{}) {
	t.Helper()
	x = openSite(t)
	reached, left := make(chan struct{}), make(chan struct{})
	model := newModelService(t, func(_ chatRequest, gone <-chan struct{}) chatReply {
		close(reached)
		<-gone
		close(left)
		return chatReply{}
	})
	p := model.profile("m")
	p.Budgets = []llm.Budget{{Per: "workflow", Tokens: 100_000}}
	x.saveProfile(t, p)
	x.save(t, agentFlow(`{user_prompt: go, profileId: m}`, ``, ``))
	id = x.execute(t, "talk", api.ExecuteRequest{})
	<-reached
	return x, id, left
}

// Canceling closes the connection to the provider, and gives back what was reserved.
func TestAgentMidTurn_Cancels(t *testing.T) {
	t.Parallel()
	x, id, hungUp := speaking(t)
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "cancel"}), http.StatusOK)
	x.reaches(t, id, engine.StatusCanceled)
	<-hungUp
	x.settles(t)
}

// settles waits until no call of the model "m" is open.
func (x *site) settles(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		sum, err := x.stores.Ledger.Sum(ctx, identity.System("default"), store.LedgerQuery{Profile: "m"})
		if err == nil && sum.OpenCalls == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the ledger has %+v, %v", sum, err)
		}
	}
}

// Turns in the iterations of a loop are apart: their names, their values, what they used.
func TestAgentMidTurn_InALoop(t *testing.T) {
	t.Parallel()
	x, tools := openSite(t), newCounted(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "user" {
			return chatReply{tokens: 2, calls: []chatCall{chatCallOf(0, "http_request", `{"url":"`+tools.URL+`/`+last.text()+`"}`)}}
		}
		return chatReply{tokens: 3, text: []string{last.text()}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, `
metadata: {id: talk, name: talk, description: turns in a loop}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 4}}
  - {id: agent, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: "{{item}}", history_size: 0}, attached_nodes: [web]}
`+httpTool("web", ``)+`
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: agent, output_key: iteration}
`)
	id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":["a","b","c","d","e","f"]}`)})
	x.reaches(t, id, engine.StatusSuccess)
	e := x.read(t, id)
	if e.TokensUsed == nil || e.TokensUsed.TotalTokens != 30 {
		t.Errorf("used %+v", e.TokensUsed)
	}
	if got := tools.list(); !slices.Equal(got, []string{"GET /a", "GET /b", "GET /c", "GET /d", "GET /e", "GET /f"}) {
		t.Errorf("called %q", got)
	}
	for n, p := range []string{"/a", "/b", "/c", "/d", "/e", "/f"} {
		if got := gjson.GetBytes(e.NodeExecutions["each"].OutputData["completed"], fmt.Sprintf("results.%d.tool_results.0.result.json.path", n)).Str; got != p {
			t.Errorf("result %d is of %q, want %q", n, got, p)
		}
	}
}

// When the execution that asks for a budget goes away, another who waits for it asks.
func TestAgentMidTurn_AskerGoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		act  api.ActionRequest
	}{
		{"Canceled", api.ActionRequest{Action: "cancel"}},
		{"Skipped", api.ActionRequest{Action: "skip_node", ActivationID: "agent[0]/complete_1", Output: json.RawMessage(`"by hand"`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := poorSite(t, `{"per":"day","tokens":100}`)
			ids := x.waitFor(t, 3)
			want[api.ActionResponse](t, x.act(t, ids[0], c.act), http.StatusOK)
			asker := x.asksAnew(t, ids[1:])
			want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+asker+"/input", api.InputRequest{NodeID: "agent", InputData: json.RawMessage(`{"raise_by":5000}`)}), http.StatusOK)
			for _, id := range ids[1:] {
				x.reaches(t, id, engine.StatusSuccess)
			}
		})
	}
}

// asksAnew waits until exactly one of the executions asks a person, and says which.
func (x *site) asksAnew(t *testing.T, ids []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var asks []string
		for _, id := range ids {
			if len(x.read(t, id).Questions) > 0 {
				asks = append(asks, id)
			}
		}
		if len(asks) == 1 {
			return asks[0]
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d of %d ask", len(asks), len(ids))
		}
	}
}

// The conversation is that of the execution: a turn that is told none of it, or that runs beside another, takes nothing away.
func TestAgentMidTurn_OneConversation(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		var said []string
		for _, m := range r.Messages {
			if m.Role == "user" {
				said = append(said, m.text())
			}
		}
		return chatReply{text: []string{strings.Join(said, ",")}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, `
metadata: {id: talk, name: talk, description: five turns}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: one, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: first}}
  - {id: alone, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: alone, history_size: 0}}
  - {id: left, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: beside, history_size: 9}}
  - {id: right, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: beside, history_size: 9}}
  - {id: both, description: d, type: FLOW, subtype: MERGE}
  - {id: agent, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: last, history_size: 9}}
connections:
  - {from_node: start, to_node: one}
  - {from_node: one, to_node: alone}
  - {from_node: alone, to_node: left}
  - {from_node: alone, to_node: right}
  - {from_node: left, to_node: both}
  - {from_node: right, to_node: both}
  - {from_node: both, to_node: agent}
`)
	if _, r := x.talk(t, "q"); r.Response != "first,alone,beside,beside,last" || len(r.Context.Conversation) != 10 || r.Context.Appended != 2 {
		t.Errorf("response %q, conversation %+v", r.Response, r.Context)
	}
}

// Canceling the parent of who asks lets another ask.
func TestAgentMidTurn_AskerInAChild(t *testing.T) {
	t.Parallel()
	x := poorSite(t, `{"per":"day","tokens":100}`)
	x.save(t, `
metadata: {id: parent, name: parent, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: talk, revision: latest}}
connections:
  - {from_node: start, to_node: sub}
`)
	id := x.execute(t, "parent", api.ExecuteRequest{})
	for len(x.budgetsOf(t, "?waiting=true")) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the child does not wait")
		}
	}
	other := x.execute(t, "talk", api.ExecuteRequest{})
	x.reaches(t, other, engine.StatusWaiting)
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "cancel"}), http.StatusOK)
	x.reaches(t, id, engine.StatusCanceled)
	x.reaches(t, other, engine.StatusWaitingForHuman)
	x.raiseBy(t, api.InputRequest{NodeID: "agent"}, other, 5000)
	x.reaches(t, other, engine.StatusSuccess)
}
