package app

import (
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
)

// A person who is asked sees what the author's data is, and never what the trigger and nodes on the way have added to it, wherever that stands
// by now.
func TestPeople_SeeWhatTheAuthorChose(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const pass = `type: CALL, subtype: EMPTY, configurations: {pass_through: true}`
	x.save(t, "metadata: {id: shown_child, name: shown_child, description: d}\nnodes:\n  - {id: first, description: d, type: TRIGGER, subtype: MANUAL}\n"+asks("ask", "")+"connections:\n  - {from_node: first, to_node: ask}\n")
	for name, c := range map[string]struct {
		nodes, links string
		content      string // what is shown of it
		path         string // where, in what is shown; empty: all of it
	}{
		"AfterAnotherApproval": {
			`  - {id: before, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: first}}` + "\n",
			"  - {from_node: start, to_node: before}\n  - {from_node: before, to_node: ask, output_key: confirmed}\n", `{"amount":5}`, "",
		},
		"OwnFields": {
			`  - {id: own, description: d, ` + pass + `, input_params: {user_id: cust-7, execution_id: ex-3}}` + "\n",
			"  - {from_node: start, to_node: own}\n  - {from_node: own, to_node: ask}\n", `{"amount":5,"execution_id":"ex-3","user_id":"cust-7"}`, "",
		},
		"OwnTime": {
			`  - {id: own, description: d, ` + pass + `, input_params: {trigger_time: noon}}` + "\n",
			"  - {from_node: start, to_node: own}\n  - {from_node: own, to_node: ask}\n", `{"amount":5,"trigger_time":"noon"}`, "",
		},
		"Merged": {
			`  - {id: a, description: d, ` + pass + `}` + "\n" + `  - {id: b, description: d, ` + pass + `}` + "\n" + `  - {id: m, description: d, type: FLOW, subtype: MERGE, configurations: {merge_strategy: concatenate}}` + "\n",
			"  - {from_node: start, to_node: a}\n  - {from_node: start, to_node: b}\n  - {from_node: a, to_node: m}\n  - {from_node: b, to_node: m}\n  - {from_node: m, to_node: ask}\n", `[{"amount":5},{"amount":5}]`, "merged_data",
		},
		"LoopEnded": {
			`  - {id: e, description: d, type: FLOW, subtype: LOOP, configurations: {start_value: 1, end_value: 1}}` + "\n" + `  - {id: b, description: d, ` + pass + `}` + "\n",
			"  - {from_node: start, to_node: e}\n  - {from_node: e, to_node: b, output_key: iteration}\n  - {from_node: b, to_node: e}\n  - {from_node: e, to_node: ask, output_key: completed}\n", `[{"amount":5,"item":1,"index":0}]`, "results",
		},
		"AfterAFailure": {
			`  - {id: f, description: d, type: ACTION, subtype: RUN_CODE, configurations: {language: javascript, code: "function main(i) { throw new Error('no') }", on_error: continue}}` + "\n",
			"  - {from_node: start, to_node: f}\n  - {from_node: f, to_node: ask, output_key: error}\n", `{"amount":5}`, "input",
		},
		"Wrapped": {
			"", "  - {from_node: start, to_node: ask, conversion_function: \"(x) => ({order: {a: x.amount, b: [x.user_id], c: {amount: x.amount, trigger_time: x.trigger_time, execution_id: x.execution_id, trigger_message: x.trigger_message, user_id: x.user_id}}})\"}\n", `{"a":5,"b":["operator"],"c":{"amount":5}}`, "order",
		},
		"FromAbove": {
			`  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: shown_child, revision: latest}}` + "\n",
			"  - {from_node: start, to_node: sub, conversion_function: \"(x) => ({order: {amount: x.amount, trigger_time: x.trigger_time, execution_id: x.execution_id, trigger_message: x.trigger_message, user_id: x.user_id}})\"}\n  - {from_node: sub, to_node: ask}\n", `{"order":{"amount":5}}`, "",
		},
	} { // order does not matter: each has a workflow of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "metadata: {id: shown_" + name + ", name: shown_" + name + ", description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n" + c.nodes + asks("ask", "") + "connections:\n" + c.links
			execution, q := x.askedIn(t, text, `{"amount":5}`)
			if name == "AfterAnotherApproval" {
				want[api.Interaction](t, x.respond(t, "operator", q.ID, `{"action":"approve"}`), http.StatusOK)
				q = x.opens(t, execution, 1)[0]
			}
			shown := gjson.GetBytes(q.RequestData, "content")
			if c.path != "" {
				shown = shown.Get(c.path)
			}
			if q.NodeID != "ask" || shown.Raw != c.content {
				t.Errorf("%s shows %s; want %s", q.NodeID, gjson.GetBytes(q.RequestData, "content").Raw, c.content)
			}
		})
	}
}
