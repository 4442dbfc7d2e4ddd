package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/llm"
)

// The limits that turns keep to: rounds, order, length, and budgets that several share.

// raiseBy answers the question about a budget.
func (x *site) raiseBy(t *testing.T, r api.InputRequest, id string, by int) {
	t.Helper()
	r.InputData = json.RawMessage(fmt.Sprintf(`{"raise_by":%d}`, by))
	want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", r), http.StatusOK)
}

// A raise that is too small leaves all waiting, and one of them asks again.
func TestAgentLimits_RaiseTooSmall(t *testing.T) {
	t.Parallel()
	x := poorSite(t, `{"per":"day","tokens":100}`)
	ids := x.waitFor(t, 3)
	x.raiseBy(t, api.InputRequest{NodeID: "agent"}, ids[0], 1)
	for {
		if list := x.budgetsOf(t, "?waiting=true"); len(list) == 1 && list[0].Raised == 1 && len(list[0].Waiting) == 3 {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("they do not wait again")
		}
	}
	asker := x.asksAnew(t, ids)
	x.raiseBy(t, api.InputRequest{NodeID: "agent"}, asker, 5000)
	for _, id := range ids {
		x.reaches(t, id, engine.StatusSuccess)
	}
}

// A raise reaches who is paused, and counts when it goes on.
func TestAgentLimits_RaiseOfThePaused(t *testing.T) {
	t.Parallel()
	x := poorSite(t, `{"per":"day","tokens":100}`)
	ids := x.waitFor(t, 2)
	want[api.ActionResponse](t, x.act(t, ids[0], api.ActionRequest{Action: "pause"}), http.StatusOK)
	x.reaches(t, ids[0], engine.StatusPaused)
	want[api.Budget](t, x.call(t, "operator", "POST", "/budgets/raise", api.RaiseRequest{Budget: x.budgetsOf(t, "?waiting=true")[0].Budget, RaiseBy: 5000}), http.StatusOK)
	x.reaches(t, ids[1], engine.StatusSuccess)
	if e := x.read(t, ids[0]); e.Status != string(engine.StatusPaused) {
		t.Errorf("the paused one is %s", e.Status)
	}
	want[api.ActionResponse](t, x.act(t, ids[0], api.ActionRequest{Action: "resume"}), http.StatusOK)
	x.reaches(t, ids[0], engine.StatusSuccess)
}

// Turns of one execution that run side by side share its budget: one question, and a raise wakes each of them.
func TestAgentLimits_BudgetOfOneExecution(t *testing.T) {
	t.Parallel()
	const turns, limit = 12, 300
	x := openSite(t)
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{tokens: 40, text: []string{"ok"}} })
	p := model.profile("m")
	p.Budgets = []llm.Budget{{Per: "execution", Tokens: limit}}
	x.saveProfile(t, p)
	x.save(t, `
metadata: {id: talk, name: talk, description: turns in a loop}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 12}}
  - {id: agent, description: d, type: AI_AGENT, subtype: LLM, configurations: {profileId: m, user_prompt: hello, history_size: 0, max_tokens: 50}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: agent, output_key: iteration}
`)
	id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":[1,2,3,4,5,6,7,8,9,10,11,12]}`)})
	x.reaches(t, id, engine.StatusWaitingForHuman)
	q := x.read(t, id).Questions
	if len(q) != 1 || q[0].Purpose != "budget" || model.total() > limit {
		t.Fatalf("asked %+v after %d tokens", q, model.total())
	}
	x.raiseBy(t, api.InputRequest{NodeID: "agent", InteractionID: q[0].InteractionID}, id, 5000)
	x.reaches(t, id, engine.StatusSuccess)
	if model.count() != turns {
		t.Errorf("asked %d times", model.count())
	}
}

// A service that is busy says when it may be asked again; nothing but the completion is done again.
func TestAgentLimits_RetryAfter(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	var once sync.Once
	var refusedAt, askedAt time.Time
	model := newModelService(t, func(chatRequest, <-chan struct{}) (r chatReply) {
		r = chatReply{text: []string{"ok"}}
		refusedAt, askedAt = askedAt, time.Now()
		once.Do(func() { r = chatReply{status: http.StatusTooManyRequests, header: http.Header{"Retry-After": {"2"}}} })
		return r
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m}`, ``, ``))
	e, r := x.talk(t, "q")
	step, _ := stepOf(e, "agent", "complete_1")
	if r.Response != "ok" || model.count() != 2 || step.RetryCount != 1 || askedAt.Sub(refusedAt) < 1900*time.Millisecond {
		t.Errorf("response %q after %d calls: %+v", r.Response, model.count(), step)
	}
}

// Calls of a round that are to be made one by one are, in the order of the model; the rounds are counted.
func TestAgentLimits_OneByOne(t *testing.T) {
	t.Parallel()
	x, tools := openSite(t), newCounted(t)
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply {
		var calls []chatCall
		for n := range 4 {
			calls = append(calls, chatCallOf(n, "http_request", fmt.Sprintf(`{"url":"%s/%d"}`, tools.URL, n)))
		}
		return chatReply{text: []string{"more"}, calls: calls}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m, parallel_tool_calls: false, max_tool_iterations: 2}`, `web`, httpTool("web", ``)))
	_, r := x.talk(t, "q")
	want := []string{"GET /0", "GET /1", "GET /2", "GET /3", "GET /0", "GET /1", "GET /2", "GET /3"}
	if !slices.Equal(tools.calls, want) || r.FinishReason != "max_iterations" || model.count() != 3 || len(r.ToolResults) != 8 {
		t.Errorf("called %q, finish %q after %d completions", tools.calls, r.FinishReason, model.count())
	}
}

// Which calls are asked about: those of the class once, or of the tools that are named.
func TestAgentLimits_WhichCallsAreAskedAbout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, approval string
		first          []string // what was called before anybody was asked
	}{
		{"Once", "once", []string{"GET /read"}},
		{"Named", "[my.http_request]", nil},
		{"NamedAsTheModelSeesIt", "[my_http_request]", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x, tools := openSite(t), newCounted(t)
			model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
				if last := r.Messages[len(r.Messages)-1]; last.Role == "user" {
					return chatReply{calls: []chatCall{
						chatCallOf(0, "my_http_request", `{"url":"`+tools.URL+`/read"}`), chatCallOf(1, "my_http_request", `{"method":"POST","url":"`+tools.URL+`/pay","body":{}}`),
					}}
				}
				return chatReply{text: []string{"done"}}
			})
			x.saveProfile(t, model.profile("m"))
			x.save(t, agentFlow(`{user_prompt: go, profileId: m, parallel_tool_calls: false, tool_approval: `+c.approval+`}`, `web`, httpTool("web", `, tool_prefix: "my."`)))
			id := x.execute(t, "talk", api.ExecuteRequest{})
			x.reaches(t, id, engine.StatusWaitingForHuman)
			if got := tools.list(); !slices.Equal(got, c.first) {
				t.Errorf("called %q before anybody was asked", got)
			}
		})
	}
}

// An answer that was cut off has not the shape that was asked for, is not asked for again, and is not remembered.
func TestAgentLimits_CutOff(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply {
		return chatReply{text: []string{`{"n":`}, finish: "length"}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m, response_format: json}`, `buffer`, `
  - {id: buffer, description: d, type: MEMORY, subtype: CONVERSATION_BUFFER}
`))
	id := x.execute(t, "talk", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusError)
	e := x.read(t, id)
	if _, stored := stepOf(e, "agent", "store_1"); e.Error.ErrorCode != "output_invalid" || model.count() != 1 || stored {
		t.Errorf("error %+v after %d completions, stored: %v", e.Error, model.count(), stored)
	}
}

// What a tool's credential holds reaches neither the model nor anybody else, also when the service repeats it.
func TestAgentLimits_SecretsOfTools(t *testing.T) {
	t.Parallel()
	const canary = "tok-9f8e7d6c5b4a3210"
	x := openSite(t)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+canary {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/broken" {
			http.Error(w, "no: "+r.Header.Get("Authorization"), http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"you_sent":%q}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(echo.Close)
	token := want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"token","type":"http_auth","data":{"scheme":"bearer","token":"`+canary+`","allowed_hosts":["127.0.0.1"]}}`), http.StatusCreated)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "user" {
			return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"url":"`+echo.URL+`/a"}`), chatCallOf(1, "http_request", `{"url":"`+echo.URL+`/broken"}`)}}
		}
		return chatReply{text: []string{"done"}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m}`, `web`, httpTool("web", `, credential_id: `+token.ID)))
	e, r := x.talk(t, "q")
	if len(r.ToolResults) != 2 || r.ToolResults[0].Failed || !strings.Contains(string(r.ToolResults[0].Result), "you_sent") {
		t.Fatalf("%+v", r)
	}
	for what, v := range map[string]any{"the model": model.asked, "the execution": e} {
		if strings.Contains(string(rawObject(t, v)), canary) {
			t.Errorf("%s is told the secret: %s", what, rawObject(t, v))
		}
	}
	if a := x.call(t, "viewer", "GET", "/executions/"+e.ExecutionID+"/logs", nil); strings.Contains(string(a.body), canary) {
		t.Errorf("the log tells the secret: %s", a.body)
	}
}

// Nothing can be left out of a single question: it is not asked again as it is.
func TestAgentLimits_TooLong(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply {
		return chatReply{status: http.StatusRequestEntityTooLarge}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m}`, ``, ``))
	id := x.execute(t, "talk", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusError)
	if e := x.read(t, id); e.Error.ErrorCode != "context_too_long" || model.count() != 1 {
		t.Errorf("error %+v after %d calls", e.Error, model.count())
	}
}

// What a turn wanted and did not get done is not a part of the conversation: a service takes neither a call without a result
// nor a message that says nothing.
func TestAgentLimits_UndoneCalls(t *testing.T) {
	t.Parallel()
	x, tools := openSite(t), newCounted(t)
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply {
		return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"url":"`+tools.URL+`/a"}`)}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m, max_tool_iterations: 0}`, `web`, httpTool("web", ``)))
	_, r := x.talk(t, "q")
	if got := r.Context.Conversation; len(got) != 1 || got[0].Role != llm.User || r.Context.Appended != 1 || r.FinishReason != "max_iterations" {
		t.Errorf("finish %q, conversation %+v", r.FinishReason, got)
	}
}
