package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/server"
	"tandem/store"
)

// spoken is a log that a test reads.
type spoken struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *spoken) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *spoken) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// openForPeople is a site that people reach by links, and the log of everything in it.
func openForPeople(t testing.TB) (*site, *spoken) {
	t.Helper()
	log := &spoken{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	x := openSiteAs(t, func(o *Options, url string) { o.PublicURL, o.Log = url, logger }, func(o *server.Options) { o.Log = logger })
	return x, log
}

// asks is a node that asks, with what its configuration has besides a title.
func asks(id, config string) string {
	return `  - {id: ` + id + `, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "` + id + `?"` + config + `}}
`
}

// askFlow is a workflow in which nodes ask at the same time.
func askFlow(id string, nodes ...string) string {
	text, links := "", ""
	for _, n := range nodes {
		text += n
		name, _, _ := strings.Cut(strings.TrimPrefix(n, "  - {id: "), ",")
		links += "  - {from_node: start, to_node: " + name + "}\n"
	}
	return "metadata: {id: " + id + ", name: " + id + ", description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n" + text + "connections:\n" + links
}

// pending are the open questions of an execution and those below it, in the order of their nodes' activations.
func (x *site) pending(t testing.TB, execution string) []api.Interaction {
	t.Helper()
	list := want[api.Interactions](t, x.call(t, "viewer", "GET", "/interactions?status=pending&family=true&page_size=100&execution_id="+execution, nil), http.StatusOK).Interactions
	slices.SortFunc(list, func(a, b api.Interaction) int { return strings.Compare(a.ActivationID, b.ActivationID) })
	return list
}

// opens waits until an execution, or those below it, have so many open questions.
func (x *site) opens(t testing.TB, execution string, n int) []api.Interaction {
	t.Helper()
	events, _, stop := x.desk.Watch("default")
	defer stop()
	limit := time.After(patient)
	for {
		list := x.pending(t, execution)
		if len(list) == n {
			return list
		}
		select {
		case <-events:
		case <-limit:
			t.Fatalf("%d questions are open: %+v", len(list), list)
		}
	}
}

func (x *site) respond(t testing.TB, user, id, data string) answer {
	t.Helper()
	return x.call(t, user, "POST", "/interactions/"+id+"/respond", `{"response_data":`+data+`}`)
}

// interaction reads a question as it is stored.
func (x *site) interaction(t testing.TB, id string) store.Interaction {
	t.Helper()
	i, err := x.stores.Interactions.Get(t.Context(), identity.System("default"), id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// pausesOf are the pauses of an execution as text: node, reason, status, why it went on.
func (x *site) pausesOf(t testing.TB, execution string) []string {
	t.Helper()
	var list []string
	for _, p := range want[api.Pauses](t, x.call(t, "viewer", "GET", "/executions/"+execution+"/pauses", nil), http.StatusOK).Pauses {
		if p.PausedAt == 0 || (p.Status == "active") != (p.ResumedAt == 0) {
			t.Errorf("pause %+v", p)
		}
		list = append(list, strings.Join([]string{p.NodeID, p.PauseReason, p.Status, p.ResumeReason}, " "))
	}
	slices.Sort(list)
	return list
}

// facts counts facts of an execution's journal by their type, answers and completions by what they are about.
func facts(t testing.TB, journal store.Journal, execution string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for stored, err := range journal.Rows(t.Context(), identity.System("default"), execution, 0) {
		if err != nil {
			t.Fatal(err)
		}
		row, err := host.DecodeRow(stored.Seq, stored.Time, stored.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range row.Facts {
			switch f := f.(type) {
			case engine.AskAnswered:
				count["answered"]++
				count["answered "+string(f.Outcome)]++
			case engine.NodeCompleted:
				count["completed "+string(f.Attempt.Activation)]++
			case engine.RequestRefused:
				count["refused"]++
			}
		}
	}
	return count
}

// press sends the form of a response page, as a browser does.
func press(ctx context.Context, link string, values url.Values) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", link, strings.NewReader(values.Encode()))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "null")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	return answer{w.StatusCode, w.Header, body}, err
}

const approved, refusedIt = `{"action":"approve"}`, `{"action":"reject"}`

// Questions of one execution are independent: each gets the answer that was given to it.
func TestPeopleHold_EachItsOwnAnswer(t *testing.T) {
	t.Parallel()
	t.Run("Parallel", func(t *testing.T) {
		t.Parallel()
		x, _ := openForPeople(t)
		x.save(t, askFlow("two", asks("a", `, approvers: [approver]`), asks("b", `, approvers: [viewer]`)))
		id := x.execute(t, "two", api.ExecuteRequest{})
		q := x.opens(t, id, 2)
		refused(t, x.respond(t, "approver", q[1].ID, approved), http.StatusForbidden, "forbidden")
		want[api.Interaction](t, x.respond(t, "viewer", q[1].ID, refusedIt), http.StatusOK)
		if left := x.opens(t, id, 1); left[0].ID != q[0].ID {
			t.Fatalf("open are %+v", left)
		}
		want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: "pause"}), http.StatusOK)
		want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: "resume"}), http.StatusOK)
		want[api.Interaction](t, x.respond(t, "approver", q[0].ID, approved), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		e := x.read(t, id)
		for node, action := range map[string]string{"a": "approve", "b": "reject"} {
			out := e.NodeExecutions[node].OutputData
			if got := gjson.GetBytes(out["result"], "response_data.action").Str; got != action || out[action] == nil {
				t.Errorf("%s was answered %s", node, out["result"])
			}
		}
		wanted := []string{" operator resumed operator", "a human resumed human_response", "b human resumed human_response"}
		if got := x.pausesOf(t, id); !slices.Equal(got, wanted) {
			t.Errorf("pauses %q", got)
		}
	})
	t.Run("Loop", func(t *testing.T) {
		t.Parallel()
		x, _ := openForPeople(t)
		x.save(t, `
metadata: {id: each, name: each, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, max_concurrency: 5}}
`+asks("ask", `, description: "{{item}}", approvers: [approver]`)+`
  - {id: sum, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {list: "{{each.outputs.results}}"}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: ask, output_key: iteration}
  - {from_node: ask, to_node: each}
  - {from_node: each, to_node: sum, output_key: completed}
`)
		id := x.execute(t, "each", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":["n0","n1","n2","n3","n4"]}`)})
		q := x.opens(t, id, 5)
		several := refused(t, x.call(t, "approver", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "ask", InputData: json.RawMessage(approved)}), http.StatusConflict, "conflict")
		if ids, ok := several.Details["interaction_ids"].([]any); !ok || len(ids) != 5 {
			t.Errorf("who does not say which is told %+v", several)
		}
		slices.Reverse(q)
		for n, i := range q {
			said := `{"action":"approve","notes":"for ` + gjson.GetBytes(i.RequestData, "description").Str + `"}`
			if n%2 == 0 {
				want[api.Interaction](t, x.respond(t, "approver", i.ID, said), http.StatusOK)
				continue
			}
			want[api.ActionResponse](t, x.call(t, "approver", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "ask", InteractionID: i.ID, InputData: json.RawMessage(said)}), http.StatusOK)
		}
		x.reaches(t, id, engine.StatusSuccess)
		for n, got := range gjson.GetBytes(x.read(t, id).Outputs["sum"], "list.#.response_data.notes").Array() {
			if got.Str != fmt.Sprint("for n", n) {
				t.Errorf("element %d was answered %q", n, got.Str)
			}
		}
		if got := facts(t, x.stores.Journal, id); got["answered"] != 5 || got["refused"] != 0 {
			t.Errorf("facts %v", got)
		}
	})
	t.Run("SubWorkflows", func(t *testing.T) {
		t.Parallel()
		x, _ := openForPeople(t)
		x.save(t, askFlow("leaf", asks("ask", `, description: "{{side}}", approvers: [approver]`)))
		sub := func(id, of string) string {
			return `  - {id: ` + id + `, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: ` + of + `, revision: latest}, input_params: {side: "{{side}}"}}
`
		}
		x.save(t, askFlow("middle", sub("down", "leaf")))
		x.save(t, askFlow("top", strings.ReplaceAll(sub("left", "middle"), "{{side}}", "left"), strings.ReplaceAll(sub("right", "middle"), "{{side}}", "right")))
		id := x.execute(t, "top", api.ExecuteRequest{})
		q := x.opens(t, id, 2)
		x.reaches(t, id, engine.StatusWaitingForHuman) // as those below it do
		shown := x.read(t, id).Questions
		if len(shown) != 2 || shown[0].ExecutionID == id || shown[0].ExecutionID == "" {
			t.Fatalf("the one on top shows %+v", shown)
		}
		for _, i := range q {
			data := `{"action":"approve","notes":"` + gjson.GetBytes(i.RequestData, "description").Str + `"}`
			want[api.ActionResponse](t, x.call(t, "approver", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "ask", InteractionID: i.ID, InputData: json.RawMessage(data)}), http.StatusOK)
		}
		x.reaches(t, id, engine.StatusSuccess)
		for _, side := range []string{"left", "right"} {
			if out := string(x.read(t, id).NodeExecutions[side].OutputData["result"]); !strings.Contains(out, `"notes":"`+side+`"`) {
				t.Errorf("%s came back with %s", side, out)
			}
		}
		again := refused(t, x.call(t, "approver", "POST", "/interactions/"+q[0].ID+"/respond", `{"response_data":`+approved+`}`), http.StatusConflict, "conflict")
		if again.Details["status"] != "completed" {
			t.Errorf("%+v", again)
		}
	})
	t.Run("ToolCalls", func(t *testing.T) {
		t.Parallel()
		x, _ := openForPeople(t)
		tools := newCounted(t)
		model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
			var heard []string
			for _, m := range r.Messages {
				if m.Role == "tool" {
					heard = append(heard, m.text())
				}
			}
			if len(heard) > 0 {
				return chatReply{text: []string{strings.Join(heard, " | ")}}
			}
			var calls []chatCall
			for n, what := range []string{"pay", "fire"} {
				calls = append(calls, chatCallOf(n, "http_request", `{"method":"POST","url":"`+tools.URL+`/`+what+`","body":{}}`))
			}
			return chatReply{calls: calls}
		})
		x.saveProfile(t, model.profile("m"))
		x.save(t, agentFlow(`{user_prompt: go, profileId: m, tool_approval: always}`, `web`, httpTool("web", ``)))
		id := x.execute(t, "talk", api.ExecuteRequest{})
		for _, i := range x.opens(t, id, 2) {
			if i.Purpose != "tool_approval" || i.ArgumentsHash == "" {
				t.Errorf("asked %+v", i)
			}
			data := `{"approved":` + fmt.Sprint(strings.Contains(string(i.RequestData), "/pay")) + `}`
			body := `{"response_data":` + data + `,"arguments_hash":"` + i.ArgumentsHash + `"}`
			other := strings.Replace(body, i.ArgumentsHash, strings.Repeat("0", len(i.ArgumentsHash)), 1)
			refused(t, x.call(t, "operator", "POST", "/interactions/"+i.ID+"/respond", other), http.StatusConflict, "conflict")
			want[api.Interaction](t, x.call(t, "operator", "POST", "/interactions/"+i.ID+"/respond", body), http.StatusOK)
		}
		x.reaches(t, id, engine.StatusSuccess)
		if got := tools.list(); !slices.Equal(got, []string{"POST /pay"}) {
			t.Errorf("called %q", got)
		}
		if _, r := x.result(t, id); !strings.Contains(r.Response, "/pay") || !strings.Contains(r.Response, "refused") {
			t.Errorf("the model heard %q", r.Response)
		}
	})
}

// crowd adds users of the role approver, all at once, and returns their ids.
func (x *site) crowd(t testing.TB, n int) []string {
	t.Helper()
	ids, secrets := make([]string, n), make([]string, n)
	var wait sync.WaitGroup
	p := identity.System("default")
	for k := range n {
		ids[k], secrets[k] = fmt.Sprint("voter", k), identity.NewSecret()
		wait.Go(func() {
			if err := x.stores.Users.Create(t.Context(), p, identity.User{Workspace: "default", ID: ids[k], Name: ids[k], Roles: []identity.Role{identity.Approver}, Created: 1}); err != nil {
				t.Error(err)
			}
			token := identity.Token{Workspace: "default", ID: "tok_" + ids[k], User: ids[k], Name: ids[k], Created: 1}
			if err := x.stores.Tokens.Create(t.Context(), p, token, identity.HashSecret(secrets[k])); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for k, id := range ids {
		x.tokens[id] = secrets[k]
	}
	return ids
}

// allAtOnce lets many do something at the same instant and returns what each got.
func allAtOnce(t testing.TB, n int, do func(k int) (answer, error)) []answer {
	t.Helper()
	got := make([]answer, n)
	gate := make(chan struct{})
	var ready, wait sync.WaitGroup
	ready.Add(n)
	for k := range n {
		wait.Go(func() {
			ready.Done()
			<-gate
			var err error
			if got[k], err = do(k); err != nil {
				t.Error(err)
			}
		})
	}
	ready.Wait()
	close(gate)
	wait.Wait()
	return got
}

// Two hundred people answer at the same instant. So many as are needed win, all others hear how it ended, and the execution goes on once.
func TestPeopleHold_TwoHundredAtOnce(t *testing.T) {
	t.Parallel()
	const many = 200
	for name, c := range map[string]struct {
		config  string
		winners int
		links   bool
	}{
		"First":  {`, approvers: [approver]`, 1, false},
		"Links":  {`, approvers: [approver]`, 1, true},
		"Quorum": {`, approvers: ["role:approver"], min_approvals: 100`, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, _ := openForPeople(t)
			voters := x.crowd(t, many)
			x.save(t, askFlow("vote", asks("ask", c.config)))
			id := x.execute(t, "vote", api.ExecuteRequest{})
			i := x.opens(t, id, 1)[0]
			links := make([]string, many)
			if c.links {
				for k, voter := range voters {
					links[k] = want[api.Link](t, x.call(t, voter, "POST", "/interactions/"+i.ID+"/link", api.LinkRequest{Recipient: "user:" + voter}), http.StatusOK).URL
				}
			}
			answers := allAtOnce(t, many, func(k int) (answer, error) {
				if c.links {
					return press(t.Context(), links[k], url.Values{"answer": {"approve"}})
				}
				return x.respond(t, voters[k], i.ID, `{"action":"approve","notes":"`+voters[k]+`"}`), nil
			})
			won := map[string]bool{}
			for k, a := range answers {
				switch {
				case a.status == http.StatusOK:
					won[voters[k]] = true
				case c.links && a.status == http.StatusConflict:
					if !strings.Contains(string(a.body), "This question is closed") {
						t.Fatalf("who is late reads %s", a.body)
					}
				default:
					late := refused(t, a, http.StatusConflict, "conflict")
					data, _ := late.Details["response_data"].(map[string]any)
					if late.Details["status"] != "completed" || data["action"] != "approve" || late.Details["responder"] == "" || late.Details["responder"] != data["user_id"] {
						t.Fatalf("who is late is told %s", a.body)
					}
				}
			}
			x.reaches(t, id, engine.StatusSuccess)
			if got := facts(t, x.stores.Journal, id); len(won) != c.winners || got["answered"] != 1 || got["completed ask"] != 1 || got["refused"] != 0 {
				t.Errorf("%d have won; facts %v", len(won), got)
			}
			said, err := x.stores.Interactions.Responses(t.Context(), identity.System("default"), i.ID)
			if err != nil || len(said) != c.winners {
				t.Errorf("%d replies are recorded (%v)", len(said), err)
			}
			votes := gjson.GetBytes(x.read(t, id).NodeExecutions["ask"].OutputData["confirmed"], "approvals.#.person").Array()
			for _, v := range votes {
				if !won[v.Str] {
					t.Errorf("the vote of %q counts, who was told that it does not", v.Str)
				}
			}
			if len(votes) != c.winners {
				t.Errorf("%d votes count", len(votes))
			}
		})
	}
}

// What people say while an execution is stopped is recorded, and acts when it goes on.
func TestPeopleHold_AnswersWhilePaused(t *testing.T) {
	t.Parallel()
	x, _ := openForPeople(t)
	x.save(t, askFlow("two", asks("a", `, approvers: [approver]`), asks("b", `, approvers: [approver]`)))
	id := x.execute(t, "two", api.ExecuteRequest{})
	q := x.opens(t, id, 2)
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "pause"}), http.StatusOK)
	for _, i := range q {
		if got := want[api.Interaction](t, x.respond(t, "approver", i.ID, approved), http.StatusOK); got.Status != "completed" {
			t.Errorf("after the answer: %+v", got)
		}
		refused(t, x.respond(t, "approver", i.ID, refusedIt), http.StatusConflict, "conflict")
	}
	e := x.read(t, id)
	if e.Status != string(engine.StatusPaused) || e.NodeExecutions["a"].Status == "completed" {
		t.Errorf("it goes on while it is paused: %+v", e)
	}
	if got, wanted := x.pausesOf(t, id), []string{" operator active ", "a human resumed human_response", "b human resumed human_response"}; !slices.Equal(got, wanted) {
		t.Errorf("pauses %q", got)
	}
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "resume"}), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	if got := facts(t, x.stores.Journal, id); got["answered"] != 2 || got["completed a"] != 1 || got["completed b"] != 1 {
		t.Errorf("facts %v", got)
	}
	if got, wanted := x.pausesOf(t, id), []string{" operator resumed operator", "a human resumed human_response", "b human resumed human_response"}; !slices.Equal(got, wanted) {
		t.Errorf("pauses %q", got)
	}
}

// With the execution its questions end, wherever they are seen.
func TestPeopleHold_Canceled(t *testing.T) {
	t.Parallel()
	x, _ := openForPeople(t)
	x.save(t, askFlow("leaf", asks("deep", `, approvers: [approver]`)))
	x.save(t, askFlow("top", asks("ask", `, approvers: [approver]`), `  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: leaf, revision: latest}}
`))
	id := x.execute(t, "top", api.ExecuteRequest{})
	q := x.opens(t, id, 2)
	links := make([]string, len(q))
	for n, i := range q {
		links[n] = want[api.Link](t, x.call(t, "approver", "POST", "/interactions/"+i.ID+"/link", api.LinkRequest{Recipient: "user:approver"}), http.StatusOK).URL
	}
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "pause"}), http.StatusOK)
	want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "cancel", Reason: "not needed"}), http.StatusOK)
	x.reaches(t, id, engine.StatusCanceled)
	x.opens(t, id, 0)
	for n, i := range q {
		late := refused(t, x.respond(t, "approver", i.ID, approved), http.StatusConflict, "conflict")
		if late.Details["status"] != "cancelled" || x.interaction(t, i.ID).Status != store.InteractionCancelled {
			t.Errorf("who answers then is told %+v", late)
		}
		page, err := press(t.Context(), links[n], url.Values{"answer": {"approve"}})
		if err != nil || page.status != http.StatusConflict || !strings.Contains(string(page.body), "It was withdrawn on") {
			t.Errorf("the page says %d %s (%v)", page.status, page.body, err)
		}
		if got := facts(t, x.stores.Journal, i.ExecutionID); got["answered"] != 0 {
			t.Errorf("facts %v", got)
		}
	}
	if got, wanted := x.pausesOf(t, id), []string{" operator canceled canceled", "ask human canceled canceled", "sub human canceled canceled"}; !slices.Equal(got, wanted) {
		t.Errorf("pauses %q", got)
	}
}

// Asking again is another question: what was said to the first counts for nothing.
func TestPeopleHold_AskedAgain(t *testing.T) {
	t.Parallel()
	t.Run("Retry", func(t *testing.T) {
		t.Parallel()
		x, _ := openForPeople(t)
		x.save(t, askFlow("two", asks("a", `, approvers: [approver]`), asks("b", `, approvers: [approver]`)))
		id := x.execute(t, "two", api.ExecuteRequest{})
		q := x.opens(t, id, 2)
		refused(t, x.act(t, id, api.ActionRequest{Action: "retry_node", NodeID: "a"}), http.StatusConflict, "conflict")
		link := want[api.Link](t, x.call(t, "approver", "POST", "/interactions/"+q[1].ID+"/link", api.LinkRequest{Recipient: "user:approver"}), http.StatusOK).URL
		// The node of a question that is taken back fails, and with it the other one.
		want[api.Interaction](t, x.call(t, "operator", "POST", "/interactions/"+q[0].ID+"/cancel", api.CancelInteractionRequest{Reason: "wrong"}), http.StatusOK)
		x.reaches(t, id, engine.StatusError)
		for _, i := range q {
			if got := x.interaction(t, i.ID); got.Status != store.InteractionCancelled {
				t.Errorf("question %+v", got)
			}
		}
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "retry_node", NodeID: "a"}), http.StatusOK)
		again := x.opens(t, id, 2)
		for n, i := range again {
			if i.ID == q[0].ID || i.ID == q[1].ID || i.NodeID != q[n].NodeID {
				t.Errorf("asked again as %+v", i)
			}
		}
		refused(t, x.respond(t, "approver", q[1].ID, approved), http.StatusConflict, "conflict")
		if page, err := press(t.Context(), link, url.Values{"answer": {"approve"}}); err != nil || page.status != http.StatusConflict {
			t.Errorf("the link of the first question: %d %s (%v)", page.status, page.body, err)
		}
		for _, i := range again {
			want[api.Interaction](t, x.respond(t, "approver", i.ID, approved), http.StatusOK)
		}
		x.reaches(t, id, engine.StatusSuccess)
		wanted := []string{"a human canceled canceled", "a human resumed human_response", "b human canceled canceled", "b human resumed human_response"}
		if got := x.pausesOf(t, id); !slices.Equal(got, wanted) {
			t.Errorf("pauses %q", got)
		}
	})
	t.Run("Fork", func(t *testing.T) {
		t.Parallel()
		x, _ := openForPeople(t)
		x.save(t, askFlow("one", asks("a", `, approvers: [approver]`)))
		id := x.execute(t, "one", api.ExecuteRequest{})
		old := x.opens(t, id, 1)[0]
		forked := want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "fork", NodeID: "a"}), http.StatusOK).ExecutionID
		fresh := x.opens(t, forked, 1)[0]
		if fresh.ID == old.ID || fresh.ExecutionID != forked {
			t.Fatalf("the fork asks %+v", fresh)
		}
		want[api.Interaction](t, x.respond(t, "approver", fresh.ID, refusedIt), http.StatusOK)
		x.reaches(t, forked, engine.StatusSuccess)
		if got := x.interaction(t, old.ID); got.Status != store.InteractionPending || got.Version != 1 {
			t.Errorf("the first question is %+v", got)
		}
		want[api.Interaction](t, x.respond(t, "approver", old.ID, approved), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		for execution, action := range map[string]string{id: "approve", forked: "reject"} {
			if out := x.read(t, execution).NodeExecutions["a"].OutputData; out[action] == nil {
				t.Errorf("execution %s has %s", execution, out["result"])
			}
		}
	})
	t.Run("Skip", func(t *testing.T) {
		t.Parallel()
		x, _ := openForPeople(t)
		x.save(t, askFlow("one", asks("a", `, approvers: [approver]`)))
		id := x.execute(t, "one", api.ExecuteRequest{})
		i := x.opens(t, id, 1)[0]
		want[api.ActionResponse](t, x.act(t, id, api.ActionRequest{Action: "skip_node", NodeID: "a"}), http.StatusOK)
		x.opens(t, id, 0)
		if late := refused(t, x.respond(t, "approver", i.ID, approved), http.StatusConflict, "conflict"); late.Details["status"] != "cancelled" {
			t.Errorf("%+v", late)
		}
		if got := x.pausesOf(t, id); !slices.Equal(got, []string{"a human canceled canceled"}) {
			t.Errorf("pauses %q", got)
		}
	})
}
