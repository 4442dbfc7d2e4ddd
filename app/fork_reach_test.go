package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
)

// computes is a node that computes something of its input i.
func computes(id, returns string) string {
	return `  - {id: ` + id + `, description: d, type: ACTION, subtype: RUN_CODE, configurations: {language: javascript, code: "function main(i) { return ` + returns + ` }"}}
`
}

// An edit of a name is an edit of the datum: whatever is read at or after the fork, by whatever path, is what was shown, or the edit is
// refused with the path that has to be edited.
func TestForkEdit_ReachesWhereTheValueCameFrom(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"deep":{"order":%s}}`, body)
	}))
	t.Cleanup(echo.Close)
	pay := func(params string) string {
		return `  - {id: pay, description: d, type: CALL, subtype: EMPTY, input_params: {` + params + `}, configurations: {pass_through: true}}
`
	}
	ask := func(params string) string {
		return `  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL` + params + `, configurations: {title: "Pay {{amount}} to {{to}}?", approvers: [approver]}}
`
	}
	line := func(conversion string) string {
		return "  - {from_node: start, to_node: calc}\n  - {from_node: calc, to_node: ask" + conversion + "}\n  - {from_node: ask, to_node: pay, output_key: approve, conversion_function: \"{'ok': true}\"}\n"
	}
	both := `{"amount":1,"to":"account-2"}`
	for name, c := range map[string]struct {
		nodes, links, input string
		paid                string // the fields sum and to of what is paid
		refused             string // or what the refusal names
	}{
		"published": {nodes: computes("calc", "{amount: i.amount, to: i.to}") + ask("") + pay(`sum: "{{calc.outputs.result.amount}}", to: "{{result.to}}"`), links: line(""), input: both, paid: "1 account-2"},
		"by the key": {nodes: computes("calc", "{amount: i.amount, to: i.to}") + ask("") + pay(`sum: "{{amount}}", to: "{{to}}"`), links: line(""),
			input: `{"result":{"amount":1,"to":"account-2"}}`, paid: "1 account-2"},
		"by the node": {nodes: computes("calc", "{amount: i.amount, to: i.to}") + ask("") + pay(`sum: "{{amount}}", to: "{{result.to}}"`), links: line(""),
			input: `{"calc.result.amount":1,"calc.result.to":"account-2"}`, paid: "1 account-2"},
		"deep, in a list": {nodes: computes("calc", "{orders: [{pay: {amount: i.amount, to: i.to}}]}") + ask("") + pay(`sum: "{{calc.result.orders[0].pay.amount}}", to: "{{result.orders[0].pay.to}}"`),
			links: line(""), input: both, paid: "1 account-2"},
		"text that is JSON": {nodes: computes("calc", "{text: JSON.stringify({amount: i.amount, to: i.to})}") + ask("") + pay(`sum: "{{result.text}}", to: "{{to}}"`), links: line(""),
			input: both, paid: `{"amount":1,"to":"account-2"} account-2`},
		"an answer by HTTP": {nodes: `  - {id: calc, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "` + echo.URL + `", body: {amount: "{{amount}}", to: "{{to}}"}}}
` + ask("") + pay(`sum: "{{calc.json.deep.order.amount}}", to: "{{calc.body}}"`), links: line(""), input: both, paid: `1 {"deep":{"order":{"amount":1,"to":"account-2"}}}`},
		"under another name": {nodes: computes("calc", "{amount: i.amount}") + ask(`, input_params: {target: "{{to}}", total: "{{calc.result.amount}}"}`) + pay(`sum: "{{amount}}", to: "{{to}}"`),
			links: line(""), input: `{"target":"account-2","total":1}`, paid: "1 account-2"},
		"converted": {nodes: computes("calc", "{amount: i.amount, to: i.to}") + ask("") + pay(`sum: "{{calc.result.amount}}", to: "{{to}}"`),
			links: line(`, conversion_function: "{'total': result.amount, 'target': result.to}"`), input: `{"target":"account-2","total":1}`, paid: "1 account-2"},
		"computed by a connection": {nodes: computes("calc", "{amount: i.amount}") + ask("") + pay(`sum: "{{amount}}"`),
			links: line(`, conversion_function: "{'total': result.amount + 1}"`), input: `{"total":1}`, refused: "calc.result"},
		"put together": {nodes: computes("calc", "{amount: i.amount}") + ask(`, input_params: {words: "pay {{amount}}"}`) + pay(`sum: "{{amount}}"`), links: line(""),
			input: `{"words":"pay 1"}`, refused: "amount"},
		"a copy under another name": {nodes: computes("calc", "{sum: i.amount}") + ask("") + pay(`sum: "{{calc.result.sum}}"`), links: line(""), input: both, refused: "calc.result.sum"},
		"told in a text":            {nodes: computes("calc", "{text: 'to ' + i.to + ' now'}") + ask("") + pay(`sum: "{{text}}"`), links: line(""), input: both, refused: "calc.result.text"},
		"with its copy": {nodes: computes("calc", "{sum: i.amount}") + ask("") + pay(`sum: "{{calc.result.sum}}", to: "{{to}}"`), links: line(""),
			input: `{"amount":1,"calc.result.sum":1,"to":"account-2"}`, paid: "1 account-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := strings.NewReplacer(" ", "_", ",", "").Replace(name)
			x.save(t, flowOf(id, c.nodes, c.links))
			source := x.execute(t, id, api.ExecuteRequest{Inputs: json.RawMessage(payInputs), Language: "en"})
			x.opens(t, source, 1)
			if c.refused != "" {
				r := x.call(t, "editor", "POST", "/executions/"+source+"/actions", api.ActionRequest{Action: "fork", NodeID: "ask", Input: json.RawMessage(c.input)})
				refused(t, r, http.StatusConflict, "conflict")
				if !strings.Contains(string(r.body), c.refused) {
					t.Errorf("the refusal does not name %s: %s", c.refused, r.body)
				}
				return
			}
			forked := x.forks(t, "editor", source, api.ActionRequest{NodeID: "ask", Input: json.RawMessage(c.input)})
			q := x.opens(t, forked, 1)[0]
			if title := gjson.GetBytes(q.RequestData, "title").Str; title != "Pay 1 to account-2?" {
				t.Errorf("it asks %q", title)
			}
			want[api.Interaction](t, x.respond(t, "approver", q.ID, approved), http.StatusOK)
			x.reaches(t, forked, engine.StatusSuccess)
			if paid := x.outputOf(t, forked, "pay", "sum") + " " + x.outputOf(t, forked, "pay", "to"); paid != c.paid {
				t.Errorf("it paid %s", paid)
			}
		})
	}
}
