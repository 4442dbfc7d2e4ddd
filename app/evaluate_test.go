package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
)

// evaluateFlow adds something up, goes through a list, and ends in a node that fails.
const evaluateFlow = `metadata: {id: evaluated, name: Evaluated}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: order, name: Order, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {total: 20, lines: [{sku: a, price: 5}, {sku: b, price: 15}]}}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: lines}}
  - {id: inside, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {sku: "{{item.sku}}"}}
  - {id: after, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {note: late}}
connections:
  - {from_node: start, to_node: order}
  - {from_node: order, to_node: each}
  - {from_node: each, to_node: inside, output_key: iteration}
  - {from_node: inside, to_node: each}
  - {from_node: each, to_node: after, output_key: completed}
`

// TestEvaluate tells what expressions and texts are worth with the data of an execution, and runs nothing.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.keep(t, "key", "slack_bot", `{"token":"canary-evaluated"}`)
	x.save(t, evaluateFlow)
	id := x.execute(t, "evaluated", api.ExecuteRequest{Inputs: json.RawMessage(`{"name":"Ada"}`), WaitSeconds: 30})
	x.reaches(t, id, "SUCCESS")
	seq := x.seq(t, id)
	entries := len(want[api.AuditEntries](t, x.call(t, "admin", "GET", "/audit", nil), http.StatusOK).Entries)
	t.Run("Told", func(t *testing.T) { x.evaluates(t, id) })
	if n := len(want[api.AuditEntries](t, x.call(t, "admin", "GET", "/audit", nil), http.StatusOK).Entries); x.seq(t, id) != seq || n != entries {
		t.Error("evaluating has changed something")
	}
}

func (x *site) evaluates(t *testing.T, id string) {
	for name, c := range map[string]struct {
		r     api.EvaluateRequest
		value string
		wrong string // of the error, its code and a part of its message
	}{
		"Input":              {r: api.EvaluateRequest{NodeID: "each", Expression: "sum(input.lines, l => l.price) * 2"}, value: `40`},
		"Condition":          {r: api.EvaluateRequest{NodeID: "each", Expression: "total > 10 && initial.name == 'Ada'"}, value: `true`},
		"Placeholder":        {r: api.EvaluateRequest{NodeID: "after", Expression: "{{Order.outputs.total}} + 1"}, value: `21`},
		"Text":               {r: api.EvaluateRequest{NodeID: "after", Template: "Dear {{name}}: {{order.outputs.total}}, {{note}}"}, value: `"Dear Ada: 20, late"`},
		"KeepsType":          {r: api.EvaluateRequest{NodeID: "after", Template: "{{order.outputs.lines[1]}}"}, value: `{"sku":"b","price":15}`},
		"Iteration":          {r: api.EvaluateRequest{NodeID: "inside", Expression: "item.sku + index"}, value: `"b1"`},
		"NothingFromLater":   {r: api.EvaluateRequest{NodeID: "each", Template: "{{after.outputs.note}}"}, wrong: "unresolved_placeholder"},
		"NeverRan":           {r: api.EvaluateRequest{NodeID: "new", Expression: "steps.order.total + len(input)"}, value: `20`},
		"GivenInput":         {r: api.EvaluateRequest{NodeID: "new", Expression: "input.a + total", Input: json.RawMessage(`{"a":1,"total":2}`)}, value: `3`},
		"Pinned":             {r: api.EvaluateRequest{NodeID: "after", Expression: "{{Order.total}} + steps.start.n", Pinned: pins{"order": pinned(`{"total":7}`), "start": pinned(`{"n":1}`)}}, value: `8`},
		"PinnedInIteration":  {r: api.EvaluateRequest{NodeID: "inside", Template: "{{order.outputs.total}} {{item.sku}}", Pinned: pins{"order": pinned(`{"total":7}`)}}, value: `"7 b"`},
		"Syntax":             {r: api.EvaluateRequest{NodeID: "each", Expression: "total >\n  )"}, wrong: "expression_error"},
		"UnknownName":        {r: api.EvaluateRequest{NodeID: "each", Expression: "totl > 1"}, wrong: `did you mean "total"`},
		"TooManySteps":       {r: api.EvaluateRequest{Expression: "any(input.l, a => any(input.l, b => any(input.l, c => a + b + c < 0)))", Input: json.RawMessage(`{"l":[` + strings.Repeat("1,", 99) + `1]}`)}, wrong: "more steps than its limit"},
		"TooMuchData":        {r: api.EvaluateRequest{Expression: "map(input.l, a => join(map(input.l, b => input.t), ''))", Input: json.RawMessage(`{"t":"` + strings.Repeat("x", 1000) + `","l":[` + strings.Repeat("1,", 99) + `1]}`)}, wrong: "more data than its limit"},
		"SecretsHaveNoNames": {r: api.EvaluateRequest{NodeID: "after", Template: "{{credentials.key.token}}"}, wrong: "unresolved_placeholder"},
		"NoEnvironment":      {r: api.EvaluateRequest{NodeID: "after", Template: "{{env.PATH}}"}, wrong: "unresolved_placeholder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.r.Input == nil || c.r.NodeID != "" {
				c.r.ExecutionID = id
			}
			got := want[api.EvaluateResponse](t, x.call(t, "editor", "POST", "/workflows/evaluate", c.r), http.StatusOK)
			switch {
			case c.wrong != "" && (got.Error == nil || !strings.Contains(got.Error.Code+": "+got.Error.Message, c.wrong)):
				t.Errorf("%+v, %s, want the error %q", got.Error, got.Value, c.wrong)
			case c.wrong == "" && (got.Error != nil || string(got.Value) != c.value || got.Size != len(c.value)):
				t.Errorf("%+v, %s, want %s", got.Error, got.Value, c.value)
			}
			if name == "UnknownName" && got.Error.Unknown != "totl" {
				t.Errorf("nothing is known by %q", got.Error.Unknown)
			}
			if name == "Syntax" && (got.Error.Line != 2 || got.Error.Column != 3) {
				t.Errorf("it is wrong at %d:%d", got.Error.Line, got.Error.Column)
			}
		})
	}
	t.Run("WithoutExecution", func(t *testing.T) {
		t.Parallel()
		r := api.EvaluateRequest{NodeID: "new", Template: "{{fetch.outputs.n}} of {{all}}", Input: json.RawMessage(`{"all":9}`), Pinned: pins{"fetch": pinned(`{"n":3}`)}}
		if got := want[api.EvaluateResponse](t, x.call(t, "editor", "POST", "/workflows/evaluate", r), http.StatusOK); string(got.Value) != `"3 of 9"` {
			t.Errorf("%+v, %s", got.Error, got.Value)
		}
	})
	t.Run("LargeIsCut", func(t *testing.T) {
		t.Parallel()
		r := api.EvaluateRequest{Expression: "input.t", Input: json.RawMessage(`{"t":"` + strings.Repeat("长", 20_000) + `"}`)}
		got := want[api.EvaluateResponse](t, x.call(t, "editor", "POST", "/workflows/evaluate", r), http.StatusOK)
		if !got.Cut || got.Size != 60_002 || len(got.Value) > 3_000 || !strings.HasPrefix(string(got.Value), `"\"长长`) {
			t.Errorf("%v, %d: %.100s", got.Cut, got.Size, got.Value)
		}
	})
	t.Run("Refused", func(t *testing.T) {
		t.Parallel()
		for says, c := range map[string]struct {
			user   string
			r      api.EvaluateRequest
			status int
		}{
			"one of them":     {"editor", api.EvaluateRequest{Expression: "1", Template: "1"}, http.StatusUnprocessableEntity},
			"pinned.order":    {"editor", api.EvaluateRequest{Expression: "1", Pinned: pins{"order": pinned(`[` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `]`)}}, http.StatusUnprocessableEntity},
			"role":            {"operator", api.EvaluateRequest{Expression: "1"}, http.StatusForbidden},
			`no execution`:    {"editor", api.EvaluateRequest{Expression: "1", ExecutionID: "exec_nowhere"}, http.StatusNotFound},
			`no execution "e`: {"stranger", api.EvaluateRequest{Expression: "initial.name", ExecutionID: id, NodeID: "after"}, http.StatusNotFound},
		} {
			if got := x.call(t, c.user, "POST", "/workflows/evaluate", c.r); got.status != c.status || !strings.Contains(string(got.body), strings.ReplaceAll(says, `"`, `\"`)) || strings.Contains(string(got.body), "Ada") {
				t.Errorf("%d %s, want %d with %q", got.status, got.body, c.status, says)
			}
		}
	})
}
