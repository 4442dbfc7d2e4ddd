package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/budget"
	"tandem/builtin/models"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/llm"
	"tandem/store"
)

// budgetsOf lists budgets as the viewer.
func (x *site) budgetsOf(t *testing.T, query string) []api.Budget {
	t.Helper()
	return want[api.Budgets](t, x.call(t, "viewer", "GET", "/budgets"+query, nil), http.StatusOK).Budgets
}

// poorSite is one whose model "m" may use 100 tokens per day, in a workflow whose calls need more.
func poorSite(t *testing.T, budget string) *site {
	x := openSite(t)
	x.putProfile(t, "m", `{"provider":"scripted","price":{"output":1000000},"budget":`+budget+`,"script":{"rules":[{"reply":"hi"}]}}`)
	x.save(t, agentFlow(`{profileId: m, max_tokens: 200, user_prompt: hello}`, ``, ``))
	return x
}

// waitFor starts executions that wait for a budget: the first asks, the others wait.
func (x *site) waitFor(t *testing.T, n int) []string {
	t.Helper()
	var ids []string
	for range n {
		id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{}`)})
		status := engine.StatusWaitingForHuman
		if len(ids) > 0 {
			status = engine.StatusWaiting
		}
		x.reaches(t, id, status)
		ids = append(ids, id)
	}
	return ids
}

func TestBudgets_RaiseWakesAll(t *testing.T) {
	t.Parallel()
	x := poorSite(t, `{"per":"day","tokens":100}`)
	ids := x.waitFor(t, 2)
	list := x.budgetsOf(t, "?waiting=true&per=day")
	if len(list) != 1 {
		t.Fatalf("budgets %+v", list)
	}
	b := list[0]
	if b.ProfileID != "m" || b.Per != "day" || b.Unit != "tokens" || b.Limit != 100 || b.Raised != 0 || b.Spent != 0 || b.Remaining != 100 || len(b.Waiting) != 2 || b.Budget != "m/day/"+b.Key {
		t.Errorf("budget %+v", b)
	}
	if w := b.Waiting; w[0].ExecutionID != ids[0] || !w[0].Asks || w[1].ExecutionID != ids[1] || w[1].Asks || w[0].NodeID != "agent" || w[0].SinceTime == 0 {
		t.Errorf("waiting %+v", w)
	}
	raise := func(user string, r api.RaiseRequest) answer {
		return x.call(t, user, "POST", "/budgets/raise", r)
	}
	for _, user := range []string{"viewer", "approver"} {
		refused(t, raise(user, api.RaiseRequest{Budget: b.Budget, RaiseBy: 1}), http.StatusForbidden, "forbidden")
	}
	for _, name := range []string{"m/day/never", "m/day_cost/" + b.Key, "m/workflow/talk", "x/day/" + b.Key, "m", ""} {
		refused(t, raise("operator", api.RaiseRequest{Budget: name, RaiseBy: 1}), http.StatusNotFound, "not_found")
	}
	refused(t, raise("stranger", api.RaiseRequest{Budget: b.Budget, RaiseBy: 1}), http.StatusNotFound, "not_found")
	for _, by := range []float64{0, -5, 1e13} {
		if f := refused(t, raise("operator", api.RaiseRequest{Budget: b.Budget, RaiseBy: by}), 422, "invalid_input"); !slices.Equal(fields(f), []string{"raise_by"}) {
			t.Errorf("%g: %+v", by, f)
		}
	}
	for range 2 {
		got := want[api.Budget](t, raise("operator", api.RaiseRequest{Budget: b.Budget, RaiseBy: 1000, RequestID: "r1"}), http.StatusOK)
		if got.Raised != 1000 {
			t.Errorf("raised %+v", got)
		}
	}
	for _, id := range ids {
		x.reaches(t, id, engine.StatusSuccess)
	}
	after := x.budgetsOf(t, "")[0]
	if len(after.Waiting) != 0 || after.Spent == 0 || after.Reserved != 0 || after.Remaining != 1100-after.Spent {
		t.Errorf("afterwards %+v", after)
	}
	if list := want[api.Budgets](t, x.call(t, "stranger", "GET", "/budgets", nil), http.StatusOK).Budgets; len(list) != 0 {
		t.Errorf("another workspace sees %+v", list)
	}
	refused(t, x.call(t, "viewer", "GET", "/budgets?profile_id=n", nil), http.StatusNotFound, "not_found")
}

// What a budget of money is raised by is money: it must not become tokens as well, nor the reverse.
func TestBudgets_RaiseOfMoney(t *testing.T) {
	t.Parallel()
	x := poorSite(t, `[{"per":"execution","tokens":5000,"cost":0.5},{"per":"workflow","tokens":100000}]`)
	id := x.waitFor(t, 1)[0]
	x.reaches(t, id, engine.StatusWaitingForHuman)
	if q := x.read(t, id).Questions; len(q) != 1 || !strings.Contains(q[0].Description, "may cost up to") || !strings.Contains(q[0].Description, "of 0.5 are spent") {
		t.Errorf("asked %+v", q)
	}
	name := "m/execution_cost/" + id
	if got := x.budgetsOf(t, ""); len(got) != 1 || got[0].Budget != name || got[0].Unit != "cost" || got[0].Limit != 0.5 {
		t.Errorf("budgets %+v", got)
	}
	got := want[api.Budget](t, x.call(t, "operator", "POST", "/budgets/raise", api.RaiseRequest{Budget: name, RaiseBy: 500.25}), http.StatusOK)
	if got.Raised != 500.25 || got.Unit != "cost" {
		t.Errorf("raised %+v", got)
	}
	x.reaches(t, id, engine.StatusSuccess)
	var all []string
	for _, b := range x.budgetsOf(t, "") {
		all = append(all, fmt.Sprintf("%s %g %g", b.Budget, b.Limit, b.Raised))
	}
	if !slices.Equal(all, []string{"m/workflow/talk 100000 0", "m/execution/" + id + " 5000 0", name + " 0.5 500.25"}) {
		t.Errorf("budgets %q", all)
	}
	if list := x.budgetsOf(t, "?per=workflow"); len(list) != 1 || list[0].Key != "talk" || list[0].Spent == 0 {
		t.Errorf("per workflow %+v", list)
	}
}

// Changing a profile must not leave those behind who wait for the budget that it had.
func TestBudgets_ProfileChanges(t *testing.T) {
	t.Parallel()
	t.Run("Raised", func(t *testing.T) {
		t.Parallel()
		x := poorSite(t, `{"per":"day","tokens":100}`)
		ids := x.waitFor(t, 2)
		x.putProfile(t, "m", `{"provider":"scripted","script":{"rules":[{"reply":"hi"}]}}`)
		for _, id := range ids {
			x.reaches(t, id, engine.StatusSuccess)
		}
	})
	t.Run("StillTooLittle", func(t *testing.T) {
		t.Parallel()
		x := poorSite(t, `{"per":"day","tokens":100}`)
		id := x.waitFor(t, 1)[0]
		before := x.budgetsOf(t, "?waiting=true")[0].Waiting[0].SinceTime
		sub := x.hub.Subscribe(host.Ref{Workspace: "default", Execution: id})
		defer sub.Close()
		x.putProfile(t, "m", `{"provider":"scripted","budget":{"per":"day","tokens":101},"script":{"rules":[{"reply":"hi"}]}}`)
		for { // it is woken, and waits again
			if list := x.budgetsOf(t, "?waiting=true"); len(list) == 1 && list[0].Limit == 101 && len(list[0].Waiting) == 1 && list[0].Waiting[0].SinceTime >= before {
				break
			}
			if rows, more, _ := sub.Next(); len(rows) == 0 {
				select {
				case <-more:
				case <-t.Context().Done():
					t.Fatal("it does not wait again")
				}
			}
		}
		x.reaches(t, id, engine.StatusWaitingForHuman)
		if q := x.read(t, id).Questions; len(q) != 1 {
			t.Errorf("it asks %d times", len(q))
		}
	})
	t.Run("Deleted", func(t *testing.T) {
		t.Parallel()
		x := poorSite(t, `{"per":"day","tokens":100}`)
		id := x.waitFor(t, 1)[0]
		if a := x.call(t, "editor", "DELETE", "/llm/profiles/m?force=true", nil); a.status != http.StatusNoContent {
			t.Fatalf("%d %s", a.status, a.body)
		}
		x.reaches(t, id, engine.StatusError)
		if e := x.read(t, id).Error; e == nil || e.ErrorCode != "not_found" {
			t.Errorf("error %+v", e)
		}
	})
	t.Run("Canceled", func(t *testing.T) {
		t.Parallel()
		x := poorSite(t, `{"per":"day","tokens":100}`)
		id := x.waitFor(t, 1)[0]
		x.act(t, id, api.ActionRequest{Action: "cancel"})
		x.reaches(t, id, engine.StatusCanceled)
		if list := x.budgetsOf(t, ""); len(list) != 1 || len(list[0].Waiting) != 0 {
			t.Errorf("what has ended does not wait: %+v", list)
		}
	})
}

// lateBudgets lets something happen before somebody who found no room is entered among those who wait.
type lateBudgets struct {
	store.Budgets
	before func()
}

func (b *lateBudgets) Wait(ctx context.Context, p identity.Principal, w store.BudgetWait) (store.BudgetWait, error) {
	b.before()
	return b.Budgets.Wait(ctx, p, w)
}

// Who was to ask and need not wait after all leaves the asking to somebody who does.
func TestPurse_AskerLeaves(t *testing.T) {
	t.Parallel()
	x := poorSite(t, `{"per":"day","tokens":100}`)
	id, p := x.waitFor(t, 1)[0], identity.System("default")
	list := x.budgetsOf(t, "?waiting=true")
	w := store.BudgetWait{Budget: list[0].Budget, Execution: id, Activation: list[0].Waiting[0].ActivationID, Node: "agent"}
	// The execution waits, and somebody else was to ask.
	if err := x.stores.Budgets.Leave(t.Context(), p, id, w.Activation); err != nil {
		t.Fatal(err)
	}
	for _, one := range []store.BudgetWait{{Budget: w.Budget, Execution: "other", Activation: "a", Since: 1}, w} {
		if _, err := x.stores.Budgets.Wait(t.Context(), p, one); err != nil {
			t.Fatal(err)
		}
	}
	sub := x.hub.Subscribe(host.Ref{Workspace: "default", Execution: id})
	defer sub.Close()
	if err := x.purse.Leave(t.Context(), p, models.Spending{Execution: "other", Activation: "a"}, w.Budget); err != nil {
		t.Fatal(err)
	}
	for {
		if list := x.budgetsOf(t, "?waiting=true"); len(list) == 1 && len(list[0].Waiting) == 1 && list[0].Waiting[0].Asks {
			break
		}
		if rows, more, _ := sub.Next(); len(rows) == 0 {
			<-more
		}
	}
}

// TestPurse_Withdrawn: that a question was taken back is told again after a crash, and may come late. Who asked has left, and another asks; or who asked
// waits and asks anew, and nobody else asks besides.
func TestPurse_Withdrawn(t *testing.T) {
	t.Parallel()
	x := poorSite(t, `{"per":"day","tokens":100}`)
	ids, p := x.waitFor(t, 2), identity.System("default")
	waiting := func() (list []api.BudgetWait) {
		for _, b := range x.budgetsOf(t, "?waiting=true") {
			list = append(list, b.Waiting...)
		}
		return list
	}
	first := waiting()[0]
	questions := want[api.Interactions](t, x.call(t, "operator", "GET", "/interactions?execution_id="+ids[0], nil), http.StatusOK).Interactions
	q, err := x.stores.Interactions.Get(t.Context(), p, questions[0].ID)
	works(t, err)
	tell := func() {
		works(t, x.purse.Withdrawn(store.Ref{Workspace: "default", Execution: ids[0]}, engine.AskID(q.Ask)))
	}
	again := func(since int64, who ...string) { // the record of who waits, with another beginning; the first of them asks
		works(t, x.stores.Budgets.Leave(t.Context(), p, ids[0], first.ActivationID))
		for _, w := range waiting() {
			works(t, x.stores.Budgets.Leave(t.Context(), p, w.ExecutionID, w.ActivationID))
		}
		for _, id := range who {
			w := store.BudgetWait{Execution: id, Activation: first.ActivationID, Node: "agent", Since: since}
			w.Budget = x.budgetsOf(t, "")[0].Budget
			_, err := x.stores.Budgets.Wait(t.Context(), p, w)
			works(t, err)
		}
	}
	again(q.Created-1, ids[1], ids[0])
	tell()
	if list := waiting(); len(list) != 2 || slices.ContainsFunc(list, func(w api.BudgetWait) bool { return w.Asks != (w.ExecutionID == ids[1]) }) {
		t.Errorf("one that waits and has not asked is taken for gone: %+v", list)
	}
	again(q.Updated+1, ids[0], ids[1])
	tell()
	if list := waiting(); len(list) != 2 || !list[0].Asks && !list[1].Asks {
		t.Errorf("one that has asked anew is taken for gone: %+v", list)
	}
	again(q.Created-1, ids[0], ids[1])
	sub := x.hub.Subscribe(host.Ref{Workspace: "default", Execution: ids[1]})
	defer sub.Close()
	tell()
	tell()
	for {
		if list := x.budgetsOf(t, "?waiting=true"); len(list) == 1 && len(list[0].Waiting) == 1 && list[0].Waiting[0].ExecutionID == ids[1] && list[0].Waiting[0].Asks {
			break
		}
		if rows, more, _ := sub.Next(); len(rows) == 0 {
			<-more
		}
	}
}

// A raise that comes between finding no room and being entered wakes nobody, so it must be seen.
func TestPurse_RaiseBeforeWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(x *site) error
	}{
		{"Raise", func(x *site) error {
			return x.RaiseBudget(context.Background(), identity.System("default"), "r", "m/workflow/talk", 10_000)
		}},
		{"Profile", func(x *site) error {
			profile, err := x.Profile(context.Background(), "default", "m")
			profile.Budgets[0].Tokens = 10_000
			return errors.Join(err, x.SaveProfile(context.Background(), identity.System("default"), profile))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := poorSite(t, `{"per":"workflow","tokens":100}`)
			x.purse.Waits = &lateBudgets{x.stores.Budgets, func() {
				if err := c.before(x); err != nil {
					t.Error(err)
				}
			}}
			id := x.execute(t, "talk", api.ExecuteRequest{Inputs: json.RawMessage(`{}`), WaitSeconds: 20})
			x.reaches(t, id, engine.StatusSuccess)
			if waiting, err := x.stores.Budgets.Waiting(t.Context(), identity.System("default"), ""); err != nil || len(waiting) != 0 {
				t.Errorf("still waiting: %+v, %v", waiting, err)
			}
		})
	}
}

// A budget for a day has room again when the next day begins, where the profile says.
func TestPurse_TheNextDayHasItsOwn(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	now := time.Date(2026, 1, 1, 20, 0, 0, 0, time.UTC) // it is the 2nd in Shanghai
	x.purse.Now = func() time.Time { return now }
	profile := llm.Profile{ID: "m", Provider: "scripted", Budgets: []llm.Budget{
		{Per: budget.PerExecution, Tokens: 1000, TimeZone: "America/New_York"}, {Per: budget.PerDay, Tokens: 10, TimeZone: "Asia/Shanghai"},
	}}
	x.saveProfile(t, profile)
	s := models.Spending{Workspace: "default", Execution: "e", Workflow: "w", Activation: "a", Node: "n", Profile: profile, Most: llm.Usage{InputTokens: 8}}
	id, err := x.purse.Reserve(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.purse.Return(t.Context(), "default", id, llm.Usage{InputTokens: 8}, profile.Price); err != nil {
		t.Fatal(err)
	}
	_, err = x.purse.Reserve(t.Context(), s)
	over, ok := errors.AsType[*models.Exhausted](err)
	if !ok || over.Budget != "m/day/2026-01-02" || !over.Until.Equal(time.Date(2026, 1, 2, 16, 0, 0, 0, time.UTC)) {
		t.Fatalf("got %+v, %v", over, err)
	}
	now, s.Woken = over.Until, true
	if _, err := x.purse.Reserve(t.Context(), s); err != nil {
		t.Errorf("on the next day: %v", err)
	}
	if waiting, err := x.stores.Budgets.Waiting(t.Context(), identity.System("default"), ""); err != nil || len(waiting) != 0 {
		t.Errorf("still waiting: %+v, %v", waiting, err)
	}
}
