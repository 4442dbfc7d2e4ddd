package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const backFlow = `
metadata: {id: %[1]s, name: %[1]s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: %[2]s, configurations: %[3]s}
  - {id: body, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true%[5]s}}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: body, output_key: iteration}
  - {from_node: body, to_node: each, conversion_function: %[4]q}
  - {from_node: each, to_node: out, output_key: completed}
`

// The conversion of a connection back to a loop makes what the iteration hands back.
func TestBackEdge_Converts(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for _, c := range []struct{ name, kind, config, conversion, status, want string }{
		{"expression", "FOR_EACH", "{items_path: l}", "{'twice': item * 2}", "SUCCESS", `"results":[{"twice":2},{"twice":4}]`},
		{"javascript", "FOR_EACH", "{items_path: l}", "d => d.item + 1", "SUCCESS", `"results":[2,3]`},
		{"skips", "FOR_EACH", "{items_path: l}", "item > 1 ? {'skip_execution': true} : item", "SUCCESS", `"results":[1,null]`},
		{"carries", "WHILE", "{condition_expression: 'n < 3'}", "{'n': n + 1}", "SUCCESS", `"final_result":{"l":[1,2],"n":3`},
		{"fails", "FOR_EACH", "{items_path: l}", "int(item) / 0 > 1", "ERROR", "conversion_failed"},
		{"goes_on", "FOR_EACH", "{items_path: l, break_on_error: false}", "item > 1 ? int('x') : item", "SUCCESS", `"results":[1,null]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x.save(t, fmt.Sprintf(backFlow, c.name, c.kind, c.config, c.conversion, ""))
			e, _ := ran(t, x, c.name, `{"l": [1, 2], "n": 0}`)
			out, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if e.Status != c.status || !strings.Contains(string(out), c.want) {
				t.Errorf("status %s: %s", e.Status, out)
			}
			if completed := string(e.NodeExecutions["each"].OutputData["completed"]); c.name == "goes_on" && (!strings.Contains(completed, `"failed_iterations":1`) || !strings.Contains(completed, `"index":1`)) {
				t.Errorf("the failure is not told: %s", completed)
			}
			if c.name == "expression" && !strings.Contains(string(e.NodeExecutions["body"].OutputData["result"]), `"item":2`) {
				t.Errorf("the body's own output is %s", e.NodeExecutions["body"].OutputData)
			}
		})
	}
}

// What a node hands on instead of its failed work is what its iteration hands back.
func TestBackEdge_HandledFailureCounts(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: handled, name: handled, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: l}}
  - {id: body, description: d, type: FLOW, subtype: SORT, configurations: {sort_field: "{{execution.id}}[", on_error: default_output, default_output: {instead: true}}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: body, output_key: iteration}
  - {from_node: body, to_node: each}
`)
	e, _ := ran(t, x, "handled", `{"l": [[1]]}`)
	if completed := string(e.NodeExecutions["each"].OutputData["completed"]); e.Status != "SUCCESS" || !strings.Contains(completed, `"results":[{"instead":true}]`) {
		t.Errorf("status %s, %s", e.Status, completed)
	}
}

// A template's override_output says what a node's outputs are: only these are published by name, and each must be as it says.
func TestOverrideOutput(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	template := func(id, kind, schema string) {
		body := fmt.Sprintf(`{"id": %q, "kind": %q, "name": "n", "override_output": %s}`, id, kind, schema)
		if a := x.call(t, "editor", "POST", "/node-templates", body); a.status != http.StatusCreated {
			t.Fatalf("answer %d %s", a.status, a.body)
		}
	}
	absent := x.call(t, "editor", "POST", "/node-templates", `{"id": "none", "kind": "ACTION.HTTP_REQUEST", "name": "n", "override_output": {"properties": {"status_cod": {}, "headers": {}}}}`)
	if f := refused(t, absent, http.StatusUnprocessableEntity, "invalid_input"); len(f.Errors) != 1 || f.Errors[0].Path != "override_output.properties.status_cod" || !strings.Contains(f.Errors[0].Message, `did you mean "status_code"?`) {
		t.Errorf("outputs that the kind never has: %+v", f.Errors)
	}
	template("two", "CALL.EMPTY", `{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {}}}`)
	template("loops", "FLOW.FOR_EACH", `{"type": "object", "properties": {"results": {"type": "array", "maxItems": 1}}}`)
	x.save(t, `
metadata: {id: limited, name: limited, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL, output_params: {none: ""}}
  - {id: n, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true, template_id: two}}
  - {id: each, description: d, type: FLOW, subtype: FOR_EACH, configurations: {items_path: l, template_id: loops}}
  - {id: body, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: n}
  - {from_node: n, to_node: each}
  - {from_node: each, to_node: body, output_key: iteration}
`)
	e, r := ran(t, x, "limited", `{"a": 1, "b": 2, "c": 3, "l": [1]}`)
	context := want[struct {
		Runtime map[string]json.RawMessage `json:"runtime_metadata"`
	}](t, x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/context", nil), http.StatusOK)
	for name, published := range map[string]bool{"a": true, "n_b": true, "c": false, "n_c": false, "each_results": true, "each_errors": false} {
		if _, got := context.Runtime[name]; got != published {
			t.Errorf("%q published: %v; runtime %v", name, got, context.Runtime)
		}
	}
	if e.Status != "SUCCESS" || !strings.Contains(string(e.NodeExecutions["n"].OutputData["result"]), `"c":3`) {
		t.Errorf("status %s, %+v, output %s", e.Status, e.Error, e.NodeExecutions["n"].OutputData)
	}
	e, r = ran(t, x, "limited", `{"a": 1, "l": [1]}`)
	if logs := string(x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/logs", nil).body); e.Status != "SUCCESS" || !strings.Contains(logs, `the template declares the output \"b\"`) {
		t.Errorf("status %s, logs %s", e.Status, logs)
	}
	if e, _ := ran(t, x, "limited", `{"a": "x", "l": [1]}`); e.Status != "ERROR" || e.Error.ErrorCode != "output_invalid" || e.Error.ErrorNodeID != "n" {
		t.Errorf("status %s, %+v", e.Status, e.Error)
	}
	if e, _ := ran(t, x, "limited", `{"a": 1, "l": [1, 2]}`); e.Status != "ERROR" || e.Error.ErrorCode != "output_invalid" || e.Error.ErrorNodeID != "each" {
		t.Errorf("the loop: status %s, %+v", e.Status, e.Error)
	}
}

// What a trigger says of the start is read as trigger.name wherever data is read: in parameters, texts, conditions and conversions.
func TestTriggerNames(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: stamped, name: stamped, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL, configurations: {trigger_name: By hand, input_schema: {type: object, additionalProperties: false, properties: {n: {type: integer}}}}}
  - {id: if, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "trigger.trigger_message == 'By hand' && trigger.trigger_time != '' && trigger.execution_id == execution.id && trigger.n == 1"}}
  - {id: yes, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {at: "{{trigger.trigger_time}}", why: "it was {{trigger.trigger_message}}", by: "{{trigger.user_id}}", "n": "{{trigger.n}}"}}
  - {id: last, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: if}
  - {from_node: if, to_node: yes, output_key: "true"}
  - {from_node: yes, to_node: last, conversion_function: "{'at': value.at, 'why': value.why, 'by': value.by, 'n': value.n}"}
`)
	e, _ := ran(t, x, "stamped", `{"n": 1}`)
	var start, last struct {
		TriggerTime string `json:"trigger_time"`
		UserID      string `json:"user_id"`
		At, Why, By string
		N           int
	}
	for id, into := range map[string]any{"start": &start, "last": &last} {
		if err := json.Unmarshal(e.NodeExecutions[id].OutputData["result"], into); err != nil {
			t.Fatalf("%s of %s: %v", id, e.Status, err)
		}
	}
	if e.Status != "SUCCESS" || last.At == "" || last.At != start.TriggerTime || last.Why != "it was By hand" || last.By == "" || last.By != start.UserID || last.N != 1 {
		t.Errorf("status %s, started with %+v, read %+v", e.Status, start, last)
	}
}
