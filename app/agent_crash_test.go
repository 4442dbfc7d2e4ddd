package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"tandem/api"
	"tandem/client"
	"tandem/engine"
	"tandem/identity"
	"tandem/llm"
	"tandem/loopback"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// agentCrash is a server with one workflow in which a model calls a service twice. It is killed somewhere in between.
func agentCrash(t *testing.T, model *modelService) *crash {
	t.Helper()
	c := &crash{T: t, dir: sqlitetest.Dir(t), addr: loopback.FreeAddress(t)}
	i := openInstance(t, c.dir)
	if err := i.SaveProfile(t.Context(), user, model.profile("m")); err != nil {
		t.Fatal(err)
	}
	i.saveText(t, agentFlow(`{user_prompt: go, profileId: m, tool_approval: once, max_tool_iterations: 50}`, `web`, httpTool("web", ``)))
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.client, err = client.New(client.Options{URL: "http://" + c.addr, Token: crashToken}); err != nil {
		t.Fatal(err)
	}
	return c
}

// becomes waits until an execution has a status.
func (c *crash) becomes(id string, status engine.Status) api.Execution {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patient)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond) // the server is another process, and may be gone
	defer tick.Stop()
	var last api.Execution
	for {
		e, err := c.client.Execution(ctx, id)
		if err == nil && e.Status == string(status) {
			return e
		}
		if err == nil {
			last = e
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.Fatalf("execution %+v, %v; want %s", last, err, status)
		}
	}
}

// twoCalls is a model that reads, then pays, then says what it saw.
func twoCalls(tools *counted, second func()) func(chatRequest, <-chan struct{}) chatReply {
	return func(r chatRequest, _ <-chan struct{}) chatReply {
		results := 0
		for _, m := range r.Messages {
			if m.Role == "tool" {
				results++
			}
		}
		switch results {
		case 0:
			return chatReply{tokens: 3, calls: []chatCall{chatCallOf(0, "http_request", `{"url":"`+tools.URL+`/read"}`)}}
		case 1:
			second()
			return chatReply{tokens: 3, calls: []chatCall{chatCallOf(1, "http_request", `{"method":"POST","url":"`+tools.URL+`/pay","body":{}}`)}}
		}
		return chatReply{tokens: 3, text: []string{"paid"}}
	}
}

// A turn that waits between two tool calls goes on after kill -9 as if nothing had been: nothing that was paid for is paid
// again, nothing that was done is done again.
func TestAgent_CrashBetweenToolCalls(t *testing.T) {
	t.Parallel()
	tools := newCounted(t)
	model := newModelService(t, twoCalls(tools, func() {}))
	c := agentCrash(t, model)
	kill := c.serve()
	started, err := c.client.Execute(t.Context(), "talk", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	id := started.ExecutionID
	c.becomes(id, engine.StatusWaitingForHuman)
	kill()
	kill = c.serve()
	defer func() { kill() }()
	asked := c.becomes(id, engine.StatusWaitingForHuman).Questions
	if len(asked) != 1 || asked[0].Purpose != "tool_approval" {
		t.Fatalf("asked %+v", asked)
	}
	if _, err := c.client.Input(t.Context(), id, api.InputRequest{NodeID: "agent", InputData: json.RawMessage(`{"approved":true}`)}); err != nil {
		t.Fatal(err)
	}
	c.becomes(id, engine.StatusSuccess)
	if got := tools.list(); model.count() != 3 || !slices.Equal(got, []string{"GET /read", "POST /pay"}) {
		t.Errorf("the model was asked %d times, the service %q", model.count(), got)
	}
	var roles []string
	for _, m := range model.asked[2].Messages {
		roles = append(roles, m.Role)
	}
	if !slices.Equal(roles, []string{"user", "assistant", "tool", "assistant", "tool"}) {
		t.Errorf("the third completion was told %q", roles)
	}
}

// A turn of so many rounds that it is read from a snapshot goes on from there.
func TestAgent_CrashInALongTurn(t *testing.T) {
	t.Parallel()
	const rounds = 40
	tools := newCounted(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		results := 0
		for _, m := range r.Messages {
			if m.Role == "tool" {
				results++
			}
		}
		switch {
		case results < 2*rounds:
			return chatReply{calls: []chatCall{chatCallOf(0, "http_request", fmt.Sprintf(`{"url":"%s/%d"}`, tools.URL, results)), chatCallOf(1, "http_request", fmt.Sprintf(`{"url":"%s/%d"}`, tools.URL, results+1))}}
		case results == 2*rounds:
			return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"method":"POST","url":"`+tools.URL+`/pay","body":{}}`)}}
		}
		return chatReply{text: []string{fmt.Sprint(results)}}
	})
	c := agentCrash(t, model)
	kill := c.serve()
	started, err := c.client.Execute(t.Context(), "talk", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	before := c.becomes(started.ExecutionID, engine.StatusWaitingForHuman)
	kill()
	kill = c.serve()
	defer func() { kill() }()
	after := c.becomes(started.ExecutionID, engine.StatusWaitingForHuman)
	if len(before.NodeExecutions) != len(after.NodeExecutions) {
		t.Errorf("%d steps before, %d after", len(before.NodeExecutions), len(after.NodeExecutions))
	}
	if _, err := c.client.Input(t.Context(), started.ExecutionID, api.InputRequest{NodeID: "agent", InputData: json.RawMessage(`{"approved":true}`)}); err != nil {
		t.Fatal(err)
	}
	c.becomes(started.ExecutionID, engine.StatusSuccess)
	if list := tools.list(); len(list) != 2*rounds+1 || len(slices.Compact(list)) != 2*rounds+1 || model.count() != rounds+2 {
		t.Errorf("%d calls, %d completions", len(list), model.count())
	}
}

// A completion that was under way when the process was killed is asked for again, once; what came before it is not.
func TestAgent_CrashDuringACompletion(t *testing.T) {
	t.Parallel()
	tools := newCounted(t)
	var once sync.Once
	reached := make(chan struct{})
	release := make(chan struct{})
	model := newModelService(t, twoCalls(tools, func() {
		once.Do(func() {
			close(reached)
			<-release
		})
	}))
	c := agentCrash(t, model)
	kill := c.serve()
	started, err := c.client.Execute(t.Context(), "talk", api.ExecuteRequest{}, "")
	if err != nil {
		t.Fatal(err)
	}
	<-reached
	kill()
	close(release)
	kill = c.serve()
	defer func() { kill() }()
	c.becomes(started.ExecutionID, engine.StatusWaitingForHuman)
	if got := tools.list(); model.count() != 3 || !slices.Equal(got, []string{"GET /read"}) {
		t.Errorf("the model was asked %d times, want 3: one was under way; the service %q", model.count(), got)
	}
}

// Many turns at once share a budget: it is never exceeded, one person is asked once, and a raise wakes all.
func TestAgent_KeepsToABudget(t *testing.T) {
	t.Parallel()
	const agents, limit, each = 50, 1000, 30
	x := openSite(t)
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{tokens: each, text: []string{"ok"}} })
	p := model.profile("m")
	p.Params.MaxTokens = 50
	p.Budgets = []llm.Budget{{Per: "day", Tokens: limit}}
	x.saveProfile(t, p)
	x.save(t, agentFlow(`{user_prompt: hello, profileId: m, max_tokens: 50}`, ``, ``))
	ids := make([]string, agents)
	var wg sync.WaitGroup
	for n := range ids {
		wg.Go(func() { ids[n] = x.execute(t, "talk", api.ExecuteRequest{}) })
	}
	wg.Wait()
	// Everything comes to rest: done, or waiting for the budget.
	waiting := x.restsFor(t, ids)
	if waiting == 0 || model.total() > limit {
		t.Fatalf("%d wait, and %d of %d tokens are used", waiting, model.total(), limit)
	}
	questions := 0
	var asker string
	for _, id := range ids {
		for _, q := range x.read(t, id).Questions {
			if q.Purpose == "budget" {
				questions++
				asker = id
			}
		}
	}
	if questions != 1 {
		t.Fatalf("%d questions about one budget", questions)
	}
	refused(t, x.call(t, "operator", "POST", "/executions/"+asker+"/input", api.InputRequest{NodeID: "agent", InputData: json.RawMessage(`{"raise_by":-1}`)}), http.StatusUnprocessableEntity, "invalid_input")
	want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+asker+"/input", api.InputRequest{NodeID: "agent", InputData: json.RawMessage(`{"raise_by":5000}`)}), http.StatusOK)
	for _, id := range ids {
		x.reaches(t, id, engine.StatusSuccess)
	}
	if model.count() != agents || model.total() != agents*each {
		t.Errorf("asked %d times for %d tokens", model.count(), model.total())
	}
	sum, err := x.stores.Ledger.Sum(t.Context(), identity.System("default"), store.LedgerQuery{Profile: "m"})
	if err != nil || sum.Tokens != agents*each || sum.OpenCalls != 0 {
		t.Errorf("the ledger has %+v, %v", sum, err)
	}
}

// restsFor waits until no execution runs any more, and says how many wait.
func (x *site) restsFor(t *testing.T, ids []string) (waiting int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		waiting = 0
		busy := 0
		for _, id := range ids {
			e, err := x.stores.Executions.Get(ctx, identity.System("default"), id)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case e.Status == engine.StatusWaiting || e.Status == engine.StatusWaitingForHuman:
				waiting++
			case !e.Status.Final():
				busy++
			}
		}
		if busy == 0 {
			return waiting
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d are still busy", busy)
		}
	}
}

// What a process that was killed had reserved counts as spent: nobody knows whether the service has sent its bill.
func TestAgent_ABudgetOutlivesACrash(t *testing.T) {
	t.Parallel()
	const turns, limit, each = 5, 380, 30
	var mu sync.Mutex
	arrived := 0
	all := make(chan struct{})
	release := make(chan struct{})
	model := newModelService(t, func(_ chatRequest, gone <-chan struct{}) chatReply {
		mu.Lock()
		if arrived++; arrived == turns {
			close(all)
		}
		first := arrived <= turns
		mu.Unlock()
		if first {
			<-release // its process is gone when it answers
		}
		return chatReply{tokens: each, text: []string{"ok"}}
	})
	c := agentCrash(t, model)
	i := openInstance(t, c.dir)
	p := model.profile("m")
	p.Budgets = []llm.Budget{{Per: "day", Tokens: limit}}
	if err := i.SaveProfile(t.Context(), user, p); err != nil {
		t.Fatal(err)
	}
	i.saveText(t, agentFlow(`{user_prompt: hello, profileId: m, max_tokens: 50}`, ``, ``))
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	kill := c.serve()
	var ids []string
	for range turns {
		started, err := c.client.Execute(t.Context(), "talk", api.ExecuteRequest{}, "")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, started.ExecutionID)
	}
	<-all
	kill()
	close(release)
	kill = c.serve()
	defer func() { kill() }()
	// What is left of the budget does not suffice for all of them again.
	done, asked := 0, ""
	for _, id := range ids {
		e := c.settles(id)
		if e.Status == string(engine.StatusSuccess) {
			done++
		}
		if len(e.Questions) > 0 {
			asked = id
		}
	}
	if done == turns || asked == "" {
		t.Fatalf("%d of %d have ended, %q asks", done, turns, asked)
	}
	if _, err := c.client.Input(t.Context(), asked, api.InputRequest{NodeID: "agent", InputData: json.RawMessage(`{"raise_by":1000}`)}); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		c.becomes(id, engine.StatusSuccess)
	}
}

// settles waits until an execution has ended or waits.
func (c *crash) settles(id string) api.Execution {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patient)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		e, err := c.client.Execution(ctx, id)
		if err == nil && (e.Status == string(engine.StatusSuccess) || e.Status == string(engine.StatusWaiting) || e.Status == string(engine.StatusWaitingForHuman)) {
			return e
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.Fatalf("execution %+v, %v", e, err)
		}
	}
}

// A service that fails for a moment, or asks for patience, is asked again.
func TestAgent_AsksAgain(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	var mu sync.Mutex
	calls := 0
	var times []time.Time
	model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Now())
		switch calls++; calls {
		case 1:
			return chatReply{status: http.StatusInternalServerError}
		case 2:
			return chatReply{status: http.StatusTooManyRequests, header: http.Header{"Retry-After": {"1"}}}
		}
		return chatReply{text: []string{"at last"}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m}`, ``, ``))
	e, r := x.talk(t, "q")
	mu.Lock()
	defer mu.Unlock()
	if step, _ := stepOf(e, "agent", "complete_1"); r.Response != "at last" || calls != 3 || step.RetryCount != 2 {
		t.Errorf("%q after %d calls: %+v", r.Response, calls, step)
	}
	if wait := times[2].Sub(times[1]); wait < 900*time.Millisecond {
		t.Errorf("asked again after %s, the service wanted 1 s", wait)
	}
}
