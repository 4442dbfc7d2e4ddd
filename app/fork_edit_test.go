package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/human"
	"tandem/human/lineage"
	"tandem/identity"
)

// payFlow asks before it pays. What is paid is read in every way that data can be read in.
func payFlow(id, config string) string {
	empty := func(id, params string) string {
		return `  - {id: ` + id + `, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}` + params + "}\n"
	}
	return flowOf(id, empty("quote", "")+
		`  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, input_params: {to: "{{to}}", fixed: 7}, configurations: {title: "Pay {{amount}} to {{to}}, {{trigger.amount}}, {{quote.amount}}?", approvers: [approver]`+config+`}}
`+empty("pay", `, input_params: {bare: "{{amount}}", trigger: "{{trigger.amount}}", node: "{{quote.amount}}", outputs: "{{quote.outputs.amount}}", result: "{{quote.output.amount}}", runtime: "{{quote_amount}}", text: "pay {{amount}} to {{to}}", whole: "{{quote}}", execution: "{{execution.id}}"}`)+
		empty("direct", "")+empty("named", "")+
		`  - {id: check, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "initial.amount + runtime.amount + steps.quote.amount + trigger.amount == 4"}}
`,
		`  - {from_node: start, to_node: quote}
  - {from_node: quote, to_node: ask}
  - {from_node: start, to_node: direct}
  - {from_node: quote, to_node: named, conversion_function: "{'amount': amount, 'to': to}"}
  - {from_node: ask, to_node: direct, output_key: approve, conversion_function: "{'ok': true}"}
  - {from_node: ask, to_node: named, output_key: approve, conversion_function: "{'ok': true}"}
  - {from_node: ask, to_node: pay, output_key: approve, conversion_function: "{'ok': true}"}
  - {from_node: ask, to_node: check, output_key: approve, conversion_function: "{'ok': true}"}
`)
}

const payInputs = `{"amount": 99999, "to": "account-1", "note": "rent"}`

// outputOf is a field of what a node has put out.
func (x *site) outputOf(t testing.TB, execution, node, path string) string {
	t.Helper()
	return gjson.GetBytes(x.read(t, execution).NodeExecutions[node].OutputData["result"], path).String()
}

func (x *site) forks(t testing.TB, user, execution string, r api.ActionRequest) string {
	t.Helper()
	r.Action = "fork"
	return want[api.ActionResponse](t, x.call(t, user, "POST", "/executions/"+execution+"/actions", r), http.StatusOK).ExecutionID
}

func get(t testing.TB, address string) string {
	t.Helper()
	w, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Somebody approves what they are shown: what is done after that reads the same values, by whatever way.
func TestForkEdit_WhatIsShownIsDone(t *testing.T) {
	t.Parallel()
	x, _ := openForPeople(t)
	x.save(t, payFlow("pay", ""))
	id := x.execute(t, "pay", api.ExecuteRequest{Inputs: json.RawMessage(payInputs), Language: "en"})
	first := x.opens(t, id, 1)[0]
	forked := x.forks(t, "editor", id, api.ActionRequest{NodeID: "ask", Input: json.RawMessage(`{"amount": 1, "to": "account-2", "note": "rent", "fixed": 8}`), Reason: "a typo"})
	q := x.opens(t, forked, 1)[0]

	// The question says what it is: a fork, of what, by whom, and each value beside the original.
	var shown human.Request
	if err := json.Unmarshal(q.RequestData, &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Title != "Pay 1 to account-2, 1, 1?" || gjson.GetBytes(shown.Content, "note").String() != "rent" || gjson.GetBytes(shown.Content, "fixed").Int() != 8 {
		t.Errorf("the question is %s", q.RequestData)
	}
	e := x.read(t, forked)
	wanted := `[{"name":"amount","original":99999,"edited":1},{"name":"fixed","original":7,"edited":8},{"name":"to","original":"account-1","edited":"account-2"}]`
	for where, f := range map[string]*api.Fork{"question": shown.Fork, "record": e.Fork, "open questions": e.Questions[0].Fork} {
		if f == nil || f.ExecutionID != id || f.NodeID != "ask" || f.ActivationID != "ask" || f.By != "editor" || f.Reason != "a typo" || f.Time == 0 || len(f.Earlier) > 0 {
			t.Fatalf("the %s tells of the fork %+v", where, f)
		}
		if edits, err := json.Marshal(f.Edits); err != nil || string(edits) != wanted {
			t.Errorf("the %s tells of the edits %s (%v)", where, edits, err)
		}
	}
	if q.UserID != "editor" || e.TriggerInfo.UserID != "editor" {
		t.Errorf("it is asked on behalf of %q, in an execution of %q", q.UserID, e.TriggerInfo.UserID)
	}
	link := want[api.Link](t, x.call(t, "approver", "POST", "/interactions/"+q.ID+"/link", api.LinkRequest{Recipient: "user:approver"}), http.StatusOK).URL
	for language, words := range map[string][]string{
		"en": {"this is a fork, made by editor of execution " + id, "amount: now 1 (was 99999)", "to: now account-2 (was account-1)", "a typo"},
		"zh": {"由 editor 从执行 " + id, "amount：现在是 1（原来是 99999）", "to：现在是 account-2（原来是 account-1）"},
	} {
		page := get(t, link+"?lang="+language)
		for _, text := range words {
			if !strings.Contains(page, text) {
				t.Errorf("the page lacks %q: %s", text, page)
			}
		}
	}

	want[api.Interaction](t, x.respond(t, "approver", q.ID, approved), http.StatusOK)
	x.reaches(t, forked, engine.StatusSuccess)
	asked := false
	for line := range strings.Lines(string(x.call(t, "viewer", "GET", "/executions/"+forked+"/events", nil).body)) {
		if event, ok := strings.CutPrefix(line, "data: "); ok && gjson.Get(event, "event_type").Str == "user_input_required" {
			asked = true
			if got := gjson.Get(event, "data.user_input_request.fork.edits.0"); got.Get("edited").Int() != 1 || got.Get("original").Int() != 99999 {
				t.Errorf("the event is %s", event)
			}
		}
	}
	if !asked {
		t.Error("no event tells of the question")
	}
	for path, value := range map[string]string{
		"bare": "1", "trigger": "1", "node": "1", "outputs": "1", "result": "1", "runtime": "1", "text": "pay 1 to account-2", "whole.amount": "1",
		"whole.to": "account-2", "execution": forked,
	} {
		if got := x.outputOf(t, forked, "pay", path); got != value {
			t.Errorf("%s is %q, want %q", path, got, value)
		}
	}
	for _, node := range []string{"direct", "named"} { // settled before the fork
		if amount, to := x.outputOf(t, forked, node, "amount"), x.outputOf(t, forked, node, "to"); amount != "1" || to != "account-2" {
			t.Errorf("%s got %s for %s", node, amount, to)
		}
	}
	if out := x.read(t, forked).NodeExecutions["check"].OutputData; out["true"] == nil {
		t.Errorf("the condition decided %v", out)
	}
	context := string(x.call(t, "viewer", "GET", "/executions/"+forked+"/context", nil).body)
	if strings.Contains(context, "99999") || strings.Contains(context, "account-1") {
		t.Errorf("the data is %s", context)
	}
	// Where each value came from says who edited it.
	for activation, path := range map[string]string{"ask": "amount", "direct": "amount", "named": "to", "pay": "node"} {
		a := want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+forked+"/activations/"+activation, nil), http.StatusOK)
		source := gjson.GetBytes(a.Lineage, `#(path="`+path+`").sources.0`)
		if source.Get("edited_by").Str != "editor" || source.Get("edited_in").Str != forked {
			t.Errorf("%s of %s came from %s in %s", path, activation, source, a.Lineage)
		}
	}
	// The source is as it was.
	want[api.Interaction](t, x.respond(t, "approver", first.ID, approved), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	if got := x.outputOf(t, id, "pay", "text"); got != "pay 99999 to account-1" {
		t.Errorf("the source paid %q", got)
	}
}

// An edit is of what was there: what a node puts out in the fork is newer.
func TestForkEdit_LargeValuesAreReadInWhole(t *testing.T) {
	t.Parallel()
	x, _ := openForPeople(t)
	x.save(t, payFlow("large", ""))
	value := func(letter string, size int) string { return `"begins-` + strings.Repeat(letter, size) + `-ends"` }
	was, now := value("a", 40_000), value("b", 60_000)
	short := [2]string{value("c", 1000), value("d", 1000)}
	id := x.execute(t, "large", api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":1,"to":` + short[0] + `,"note":` + was + `}`), Language: "en"})
	x.opens(t, id, 1)
	forked := x.forks(t, "editor", id, api.ActionRequest{NodeID: "ask", Input: json.RawMessage(`{"note":` + now + `,"to":` + short[1] + `}`)})
	q := x.opens(t, forked, 1)[0]
	edits := gjson.GetBytes(q.RequestData, "fork.edits")
	note := edits.Get(`#(name="note")`)
	for field, whole := range map[string]string{"edited": now, "original": was} {
		if part := note.Get(field + "_part").Str; len(part) < 1000 || !strings.HasPrefix(whole, part) {
			t.Errorf("%s begins with %.100q", field, part)
		}
		if got := x.call(t, "viewer", "GET", "/executions/"+forked+"/values/"+note.Get(field+`.\$blob`).Str, nil); got.status != http.StatusOK || string(got.body) != whole {
			t.Errorf("%s: the value of %s is %d, %.100s", field, note, got.status, got.body)
		}
	}
	link := want[api.Link](t, x.call(t, "approver", "POST", "/interactions/"+q.ID+"/link", api.LinkRequest{Recipient: "user:approver"}), http.StatusOK).URL
	page := get(t, link+"?lang=en")
	if !strings.Contains(page, "begins-bbbb") || !strings.Contains(page, "begins-aaaa") || !strings.Contains(page, "the beginning of 60014 bytes") || strings.Contains(page, "$blob") {
		t.Errorf("the page says %.3000s", page)
	}
	var read []string
	for _, part := range strings.Split(page, `href="?whole=`)[1:] {
		id, _, _ := strings.Cut(part, "&amp;")
		read = append(read, get(t, link+"?whole="+id))
	}
	for _, whole := range []string{was, now, short[0], short[1]} {
		if !slices.Contains(read, whole) {
			t.Errorf("the page leads to no whole of %.20s…", whole)
		}
	}
	if len(read) != 4 {
		t.Errorf("the page leads to %d values", len(read))
	}
	if page := get(t, link+"?whole=edited9.9"); strings.Contains(page, "begins-") || !strings.Contains(page, "<html") {
		t.Errorf("a value that is not there is %.300s", page)
	}
}

func TestForkEdit_LaterOutputsWin(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, flowOf("later", `  - {id: first, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: again, description: d, type: CALL, subtype: EMPTY, input_params: {amount: 5}, configurations: {pass_through: true}}
  - {id: last, description: d, type: CALL, subtype: EMPTY, input_params: {bare: "{{amount}}", first: "{{first.amount}}", trigger: "{{trigger.amount}}"}, configurations: {pass_through: true}}
`, `  - {from_node: start, to_node: first}
  - {from_node: first, to_node: again}
  - {from_node: again, to_node: last, conversion_function: "{'own': amount}"}
`))
	id := x.execute(t, "later", api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":1}`), WaitSeconds: 30})
	forked := x.forks(t, "operator", id, api.ActionRequest{NodeID: "first", Input: json.RawMessage(`{"amount":2,"more":{"x":1}}`)})
	x.reaches(t, forked, engine.StatusSuccess)
	out := x.read(t, forked).NodeExecutions["last"].OutputData["result"]
	if got := gjson.GetManyBytes(out, "bare", "first", "trigger", "own"); fmt.Sprint(got) != "[5 2 2 5]" {
		t.Errorf("it ends with %s", out)
	}
	if got := x.outputOf(t, forked, "again", "more.x"); got != "1" {
		t.Errorf("what was added is %q", got)
	}
}

// A value that is not an object has no names: editing "data" edits the output that it is.
func TestForkEdit_WholeOutputs(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, flowOf("whole", `  - {id: plan, description: d, type: ACTION, subtype: DATA_TRANSFORMATION, configurations: {operation: sort, items_path: list, sort_config: {field: amount}}}
  - {id: show, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: last, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: both, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
`, `  - {from_node: start, to_node: plan}
  - {from_node: plan, to_node: show, conversion_function: "transformed_data"}
  - {from_node: plan, to_node: last, conversion_function: "transformed_data"}
  - {from_node: show, to_node: last, conversion_function: "{'ok': true}"}
  - {from_node: plan, to_node: both, conversion_function: "transformed_data"}
  - {from_node: start, to_node: both, conversion_function: "amount"}
`))
	id := x.execute(t, "whole", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":[{"amount":99999}],"amount":5}`), WaitSeconds: 30})
	if got := x.outputOf(t, id, "last", "data"); got != `[{"amount":99999}]` {
		t.Fatalf("the plan is %s", got)
	}
	forked := x.forks(t, "operator", id, api.ActionRequest{NodeID: "show", Input: json.RawMessage(`{"data":[{"amount":1}]}`)})
	x.reaches(t, forked, engine.StatusSuccess)
	for _, node := range []string{"show", "last"} {
		if got := x.outputOf(t, forked, node, "data"); got != `[{"amount":1}]` {
			t.Errorf("%s gets %s", node, got)
		}
	}
	// Where several connections bring such values, there is one for each.
	refused(t, x.act(t, id, api.ActionRequest{Action: "fork", NodeID: "both", Input: json.RawMessage(`{"data":[1]}`)}), http.StatusConflict, "conflict")
	refused(t, x.act(t, id, api.ActionRequest{Action: "fork", NodeID: "both", Input: json.RawMessage(`{"inputs":{}}`)}), http.StatusConflict, "conflict")
	forked = x.forks(t, "operator", id, api.ActionRequest{NodeID: "both", Input: json.RawMessage(`{"data":[[], 6]}`)})
	x.reaches(t, forked, engine.StatusSuccess)
	if got := x.outputOf(t, forked, "both", "data"); got != `[[], 6]` && got != `[[],6]` {
		t.Errorf("both bring %s", got)
	}
}

// What belongs to an iteration is edited in that iteration only, also where only a field of the item is named.
func TestForkEdit_InALoop(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, flowOf("loop", `  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: list, iteration_variable: order}}
  - {id: show, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: pay, description: d, type: CALL, subtype: EMPTY, input_params: {paid: "{{item.amount}}", order: "{{order.amount}}", shown: "{{show.item.amount}}", at: "{{index}}"}, configurations: {pass_through: true}}
`, `  - {from_node: start, to_node: each}
  - {from_node: each, to_node: show, output_key: iteration}
  - {from_node: each, to_node: pay, output_key: iteration}
  - {from_node: show, to_node: pay, conversion_function: "{'ok': true}"}
`))
	id := x.execute(t, "loop", api.ExecuteRequest{Inputs: json.RawMessage(`{"list":[{"amount":10},{"amount":20},{"amount":30}]}`), WaitSeconds: 30})
	for name, input := range map[string]string{"item": `{"item":{"amount":1}}`, "field": `{"amount":1}`} {
		forked := x.forks(t, "operator", id, api.ActionRequest{ActivationID: "each[1]/show", Input: json.RawMessage(input)})
		x.reaches(t, forked, engine.StatusSuccess)
		out := x.read(t, forked).NodeExecutions["each"].OutputData["completed"]
		var paid []string
		for _, r := range gjson.GetBytes(out, "results").Array() {
			paid = append(paid, r.Get("paid").String()+"/"+r.Get("item.amount").String()+"/"+r.Get("order").String())
		}
		if got := strings.Join(paid, " "); got != "10/10/10 1/1/1 30/30/30" {
			t.Errorf("%s: it paid %s: %s", name, got, out)
		}
	}
	refused(t, x.act(t, id, api.ActionRequest{Action: "fork", ActivationID: "each[1]/show", Input: json.RawMessage(`{"list":[{"amount":1}]}`)}), http.StatusConflict, "conflict")
	refused(t, x.act(t, id, api.ActionRequest{Action: "fork", NodeID: "each", Input: json.RawMessage(`{"execution":{"id":"other"}}`)}), http.StatusConflict, "conflict")
	forked := x.forks(t, "operator", id, api.ActionRequest{NodeID: "each", Input: json.RawMessage(`{"list":[{"amount":7}]}`)})
	x.reaches(t, forked, engine.StatusSuccess)
	if got := gjson.GetBytes(x.read(t, forked).NodeExecutions["each"].OutputData["completed"], "results.#.paid").Raw; got != "[7]" {
		t.Errorf("a fork at the loop paid %s", got)
	}
}

// Questions that are open beside the place of the fork are asked anew, with the edited values.
func TestForkEdit_OpenQuestionsAreAskedAnew(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, askFlow("beside", asks("a", `, description: "{{amount}}", approvers: [approver]`), asks("b", `, description: "{{amount}}", approvers: [viewer]`)))
	id := x.execute(t, "beside", api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":1}`)})
	x.opens(t, id, 2)
	forked := x.forks(t, "operator", id, api.ActionRequest{NodeID: "a", Input: json.RawMessage(`{"amount":99999}`)})
	for _, q := range x.opens(t, forked, 2) {
		if got := gjson.GetBytes(q.RequestData, "description").Str; got != "99999" || !strings.Contains(string(q.RequestData), `"fork":`) {
			t.Errorf("%s shows %s", q.NodeID, q.RequestData)
		}
	}
}

// A fork of a fork shows the whole chain, and its starter, and both who forked, want what it does.
func TestForkEdit_OfAFork(t *testing.T) {
	t.Parallel()
	x, _ := openForPeople(t)
	x.addUser(t, "default", "bob", identity.Operator, identity.Approver)
	x.save(t, payFlow("chain", `, exclude_requester: true`))
	id := x.execute(t, "chain", api.ExecuteRequest{Inputs: json.RawMessage(payInputs), Language: "en"})
	x.opens(t, id, 1)
	first := x.forks(t, "bob", id, api.ActionRequest{NodeID: "ask", Input: json.RawMessage(`{"amount":1}`)})
	x.opens(t, first, 1)
	second := x.forks(t, "admin", first, api.ActionRequest{NodeID: "ask", Input: json.RawMessage(`{"to":"account-2"}`)})
	q := x.opens(t, second, 1)[0]
	i := x.interaction(t, q.ID)
	if i.User != "admin" || strings.Join(i.Requesters, " ") != "operator bob" {
		t.Errorf("requesters are %q and %q", i.User, i.Requesters)
	}
	f := x.read(t, second).Fork
	if f == nil || f.By != "admin" || len(f.Edits) != 1 || f.Edits[0].Name != "to" || len(f.Earlier) != 1 || f.Earlier[0].By != "bob" || string(f.Earlier[0].Edits[0].Original) != "99999" {
		t.Fatalf("the chain is %+v", f)
	}
	text := strings.Join(lineage.ForkLines("en", f), "\n")
	for _, line := range []string{"to: now account-2 (was account-1)", "Before that, bob made a fork of execution " + id, "amount: now 1 (was 99999)"} {
		if !strings.Contains(text, line) {
			t.Errorf("%q lacks %q", text, line)
		}
	}
	refused(t, x.respond(t, "bob", q.ID, approved), http.StatusForbidden, "forbidden")
	want[api.Interaction](t, x.respond(t, "approver", q.ID, approved), http.StatusOK)
	x.reaches(t, second, engine.StatusSuccess)
	for node, path := range map[string]string{"pay": "text", "direct": "amount"} {
		if got, wanted := x.outputOf(t, second, node, path), map[string]string{"text": "pay 1 to account-2", "amount": "1"}[path]; got != wanted {
			t.Errorf("%s is %q", path, got)
		}
	}
}

// A person who has decided about what is asked for is not an approver of it: by a fork, a retry, an output in the place of a node's, or one of
// these in the execution above.
func TestForkEdit_NobodyApprovesTheirOwn(t *testing.T) {
	t.Parallel()
	x, _ := openForPeople(t)
	x.addUser(t, "default", "ann", identity.Operator, identity.Approver)
	x.save(t, payFlow("own", `, exclude_requester: true`))
	cannot := func(t *testing.T, execution string) {
		t.Helper()
		q := x.opens(t, execution, 1)[0]
		refused(t, x.respond(t, "ann", q.ID, approved), http.StatusForbidden, "forbidden")
		for _, i := range want[api.Interactions](t, x.call(t, "ann", "GET", "/interactions?mine=true&status=pending&page_size=100", nil), http.StatusOK).Interactions {
			if i.ID == q.ID {
				t.Error("it is in her inbox")
			}
		}
		if page, err := press(t.Context(), want[api.Link](t, x.call(t, "approver", "POST", "/interactions/"+q.ID+"/link", api.LinkRequest{Recipient: "user:approver"}), http.StatusOK).URL, url.Values{"answer": {"approve"}}); err != nil || page.status != http.StatusOK {
			t.Errorf("another approver: %d %s (%v)", page.status, page.body, err)
		}
		x.opens(t, execution, 0)
	}
	t.Run("Fork", func(t *testing.T) {
		t.Parallel()
		id := x.execute(t, "own", api.ExecuteRequest{Inputs: json.RawMessage(payInputs)})
		q := x.opens(t, id, 1)[0]
		cannot(t, x.forks(t, "ann", id, api.ActionRequest{NodeID: "ask"}))
		want[api.Interaction](t, x.respond(t, "ann", q.ID, approved), http.StatusOK) // she has nothing to do with the source
	})
	t.Run("Starter", func(t *testing.T) {
		t.Parallel()
		id := want[api.ExecuteResponse](t, x.call(t, "ann", "POST", "/workflows/own/execute", api.ExecuteRequest{Inputs: json.RawMessage(payInputs)}), http.StatusAccepted).ExecutionID
		x.opens(t, id, 1)
		cannot(t, x.forks(t, "operator", id, api.ActionRequest{NodeID: "ask"}))
	})
	fails := `  - {id: fails, description: d, type: CALL, subtype: EMPTY, input_params: {x: "{{nothing_of_that_name}}"}, configurations: {pass_through: true}}
`
	x.save(t, flowOf("failing", fails+asks("ask", `, approvers: [approver], exclude_requester: true`), "  - {from_node: start, to_node: fails}\n  - {from_node: fails, to_node: ask}\n"))
	t.Run("SkippedWithAnOutput", func(t *testing.T) {
		t.Parallel()
		id := x.execute(t, "failing", api.ExecuteRequest{})
		x.reaches(t, id, engine.StatusError)
		want[api.ActionResponse](t, x.call(t, "ann", "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: "skip_node", NodeID: "fails", Output: json.RawMessage(`{"x":1}`)}), http.StatusOK)
		cannot(t, id)
	})
	t.Run("Retried", func(t *testing.T) {
		t.Parallel()
		id := x.execute(t, "own", api.ExecuteRequest{Inputs: json.RawMessage(payInputs)})
		q := x.opens(t, id, 1)[0]
		want[api.Interaction](t, x.call(t, "operator", "POST", "/interactions/"+q.ID+"/cancel", api.CancelInteractionRequest{Reason: "wrong"}), http.StatusOK)
		x.reaches(t, id, engine.StatusError)
		want[api.ActionResponse](t, x.call(t, "ann", "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: "retry_node", NodeID: "ask"}), http.StatusOK)
		cannot(t, id)
	})
	t.Run("WhileTheQuestionIsOpen", func(t *testing.T) {
		t.Parallel()
		x.save(t, flowOf("open", `  - {id: wait, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: s}}
`+asks("ask", `, approvers: [approver], exclude_requester: true`), "  - {from_node: start, to_node: wait}\n  - {from_node: start, to_node: ask}\n"))
		id := x.execute(t, "open", api.ExecuteRequest{})
		x.opens(t, id, 1)
		want[api.ActionResponse](t, x.call(t, "ann", "POST", "/executions/"+id+"/actions", api.ActionRequest{Action: "skip_node", NodeID: "wait", Output: json.RawMessage(`{"x":1}`)}), http.StatusOK)
		cannot(t, id)
	})
	t.Run("Child", func(t *testing.T) {
		t.Parallel()
		x.save(t, flowOf("parent", `  - {id: call, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: own, revision: latest}}
`, "  - {from_node: start, to_node: call}\n"))
		id := x.execute(t, "parent", api.ExecuteRequest{Inputs: json.RawMessage(payInputs)})
		x.opens(t, id, 1)
		forked := x.forks(t, "ann", id, api.ActionRequest{NodeID: "call", Input: json.RawMessage(`{"amount":1}`)})
		q := x.opens(t, forked, 1)[0]
		if f := gjson.GetBytes(q.RequestData, "fork"); f.Get("by").Str != "ann" || f.Get("edits.0.edited").Int() != 1 || q.UserID != "ann" || !strings.Contains(string(q.RequestData), "Pay 1 to account-1") {
			t.Errorf("the child of a fork asks %s", q.RequestData)
		}
		cannot(t, forked)
	})
}

// Why a fork is refused is told in the language of who asks.
func TestForkEdit_RefusedInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, evaluateFlow)
	id := x.execute(t, "evaluated", api.ExecuteRequest{WaitSeconds: 30})
	x.reaches(t, id, "SUCCESS")
	for says, r := range map[string]api.ActionRequest{
		"\u6b21\uff1b\u8bf7\u6307\u660e\u5176\u4e2d\u4e00\u6b21": {NodeID: "inside"},                                           // it has run several times
		"\u4e0d\u662f\u6267\u884c\u7684\u6570\u636e":             {NodeID: "after", Input: json.RawMessage(`{"env":{"A":1}}`)}, // no data of the execution
	} {
		r.Action = "fork"
		got := x.call(t, "operator", "POST", "/executions/"+id+"/actions", r, "Accept-Language", "zh-CN")
		if detail := gjson.GetBytes(got.body, "detail").String(); got.status < 400 || !strings.Contains(detail, says) {
			t.Errorf("%d %s, want %q", got.status, detail, says)
		}
		if got := x.call(t, "operator", "POST", "/executions/"+id+"/actions", r); !gjson.GetBytes(got.body, "detail").Exists() || isChinese(gjson.GetBytes(got.body, "detail").String()) {
			t.Errorf("who asks for nothing is told %s", got.body)
		}
	}
}
