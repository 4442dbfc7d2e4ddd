package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/client"
)

// payFlow asks a model that has to be paid for.
const payFlow = `
metadata: {id: pay, name: pay, description: d}
nodes:
  - {id: begin, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: say, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: payer, max_tokens: 50, user_prompt: hello}}
connections:
  - {id: c1, from_node: begin, to_node: say}
`

// charged is how many tokens a call of the model has used.
const charged = 12

// spending is what is known of calls that have to be paid for.
type spending struct {
	// asked gets the number of each call.
	asked chan int
	calls int
	// first is the execution whose call was broken off, and most what the call had reserved.
	first string
	most  float64
}

// charge answers as a model that has to be paid for. The first call it never answers.
func (i *installation) charge(t *testing.T, w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.spend.calls++
	n := i.spend.calls
	i.mu.Unlock()
	i.spend.asked <- n
	if n == 1 {
		select {
		case <-r.Context().Done():
		case <-t.Context().Done():
		}
		return
	}
	answer := fmt.Sprintf(`{"id":"c","model":"payer","choices":[{"index":0,"%%s":{"role":"assistant","content":"paid"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":%d,"total_tokens":%d}}`, charged-7, charged)
	var asked struct{ Stream bool }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		t.Error(err)
	}
	if asked.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: "+answer+"\n\ndata: [DONE]\n\n", "delta")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, answer, "message")
}

// budget is that of the model which has to be paid for, as one of the servers tells.
func (i *installation) budget(by int) api.Budget {
	i.t.Helper()
	list, err := i.clients[by].Budgets(i.t.Context(), api.BudgetQuery{ProfileID: "payer"})
	if err != nil || len(list.Budgets) != 1 {
		i.t.Fatalf("budgets are %+v, %v", list, err)
	}
	return list.Budgets[0]
}

// putPayer sets what the model may use in a day.
func (i *installation) putPayer(tokens float64) {
	i.t.Helper()
	text := fmt.Sprintf(`{"name":"payer","provider":"openai","model":"payer","base_url":"SERVICE/pay/v1","budget":{"per":"day","tokens":%.0f}}`, tokens)
	if _, err := i.clients[1].PutProfile(i.t.Context(), "payer", json.RawMessage(strings.ReplaceAll(text, "SERVICE", i.service))); err != nil {
		i.t.Fatal(err)
	}
}

// pay starts an execution that asks the model.
func (i *installation) pay(key string) string {
	i.t.Helper()
	e, err := i.clients[1].Execute(i.t.Context(), "pay", api.ExecuteRequest{}, key)
	if err != nil {
		i.t.Fatal(err)
	}
	return e.ExecutionID
}

// testSpend kills the workers in the midst of a call that has to be paid for. What comes of it is in testBooked and testBudget.
func (i *installation) testSpend(t *testing.T) {
	i.t = t
	i.putPayer(1e6)
	if _, err := i.clients[1].CreateWorkflow(t.Context(), []byte(payFlow), true); err != nil {
		t.Fatal(err)
	}
	i.spend.first = i.pay("pay-1")
	<-i.spend.asked
	b := i.budget(1)
	if b.OpenCalls != 1 || b.Reserved <= charged || b.Spent != 0 {
		t.Errorf("during the call the budget is %+v", b)
	}
	i.spend.most = b.Reserved
	for _, name := range workers { // one of them has made it
		i.kill(name)
	}
	i.putPayer(2*i.spend.most + charged/2) // room for the call that is made again, and for no other
	for _, name := range workers {
		i.start(name)
	}
}

// testBooked: a call whose worker was killed is made again and booked once; what the one that was broken off had reserved is neither given back nor
// counted twice.
func (i *installation) testBooked(t *testing.T) {
	i.t = t
	i.succeed(i.spend.first)
	if n := <-i.spend.asked; n != 2 || len(i.spend.asked) > 0 {
		t.Errorf("call %d was the last, and %d more were made", n, len(i.spend.asked))
	}
	if b := i.budget(1); b.Spent+b.Reserved != i.spend.most+charged || b.Spent != charged && b.OpenCalls > 0 {
		t.Errorf("one call has reserved %g, one has used %d, and the budget is %+v", i.spend.most, charged, b)
	}
}

// questions are those about budgets that were ever asked.
func (i *installation) questions(by int) []api.Interaction {
	i.t.Helper()
	list, err := i.clients[by].Interactions(i.t.Context(), client.InteractionQuery{Purpose: "budget", Statuses: []string{"pending", "completed", "timeout", "cancelled", "error"}})
	if err != nil {
		i.t.Fatal(err)
	}
	return list.Interactions
}

// awaitQuestion returns when an execution asks for a budget.
func (i *installation) awaitQuestion(by int, execution string) api.Interaction {
	i.t.Helper()
	var found api.Interaction
	enough := errors.New("found")
	look := func(q api.Interaction) error {
		if q.ExecutionID == execution && q.Purpose == "budget" && q.Status == "pending" {
			found = q
			return enough
		}
		return nil
	}
	err := i.clients[by].WatchInbox(i.t.Context(), func(f client.InboxFrame) error {
		if f.Event != nil {
			return look(f.Event.Interaction)
		}
		if f.Snapshot != nil {
			for _, q := range f.Snapshot.Interactions {
				if err := look(q); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if found.ID == "" {
		i.t.Fatalf("execution %s asks for no budget: %v", execution, err)
	}
	return found
}

// testBudget: after all these deaths what the broken call had reserved counts as used, once. Of all who wait for the budget one asks; when that one is
// canceled, and the server is killed in the midst of handing the asking on, another one asks, once; and its answer raises the budget once, whoever dies.
func (i *installation) testBudget(t *testing.T) {
	i.t = t
	ctx, most := t.Context(), i.spend.most
	asks := i.pay("pay-2")
	first := i.awaitQuestion(1, asks)
	if b := i.budget(1); b.Spent != most+charged || b.OpenCalls != 0 {
		t.Errorf("one call had reserved %g, one has used %d, and the budget is %+v", most, charged, b)
	}
	waits := i.pay("pay-3")
	i.until(func() bool { return len(i.budget(1).Waiting) >= 2 })
	if list := i.questions(1); len(list) != 1 {
		t.Errorf("asked are %+v", list)
	}
	h := i.hold(`SELECT FROM budget_waits WHERE execution_id = $1 FOR UPDATE`, asks)
	if _, err := i.clients[1].Act(ctx, asks, api.ActionRequest{Action: "cancel"}); err != nil {
		t.Fatal(err)
	}
	victim := h.killOwner()
	left := i.other(victim)
	second := i.awaitQuestion(left, waits)
	i.start(victim)
	if list := i.questions(left); len(list) != 2 || len(i.budget(left).Waiting) != 1 {
		t.Errorf("asked are %+v", list)
	}
	// Whether the answer was taken before the server died, its client does not know.
	h = i.hold(`SELECT FROM hil_interactions WHERE id = $1 FOR UPDATE`, second.ID)
	answered := make(chan error, 1)
	answer := func() error {
		_, err := i.clients[left].Respond(ctx, second.ID, api.RespondRequest{ResponseData: json.RawMessage(fmt.Sprintf(`{"raise_by":%g}`, 2*most))})
		return err
	}
	go func() { answered <- answer() }() // it ends with the request
	victim = h.killOwner()
	<-answered
	i.start(victim)
	left = slices.Index(servers, i.owner())
	if err := answer(); err != nil {
		t.Fatal(err)
	}
	i.succeed(waits)
	if b := i.budget(left); b.Raised != 2*most || b.Spent != most+2*charged || b.OpenCalls != 0 || len(b.Waiting) != 0 {
		t.Errorf("the budget was raised by %g, one call had reserved as much as %g, two have used %d each, and it is %+v", 2*most, most, charged, b)
	}
	if list := i.questions(left); len(list) != 2 {
		t.Errorf("besides the first question, %s, asked are %+v", first.ID, list)
	}
}
