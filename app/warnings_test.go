package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
)

// ran runs a workflow to its end and returns its record.
func ran(t *testing.T, x *site, id, inputs string) (api.Execution, api.ExecuteResponse) {
	t.Helper()
	r := x.started(t, id, api.ExecuteRequest{Inputs: json.RawMessage(inputs), WaitSeconds: 60})
	return want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID, nil), http.StatusOK).Execution, r
}

// What a run warns of is part of its node's record, and a line of the log, once however often it is said.
func TestWarnings_AreKeptWithTheNode(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: clash, name: clash, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: join, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {id: whole, from_node: start, to_node: join}
  - {id: list, from_node: start, to_node: join, conversion_function: "[1, 2]"}
`)
	e, r := ran(t, x, "clash", `{"data": {"a": 1}}`)
	warnings := e.NodeExecutions["join"].Warnings
	if len(warnings) != 1 || warnings[0].Path != "data" || !strings.Contains(warnings[0].Message, `connection "list"`) {
		t.Errorf("warnings %+v", warnings)
	}
	if len(e.NodeExecutions["start"].Warnings) > 0 {
		t.Errorf("the trigger has warnings %+v", e.NodeExecutions["start"].Warnings)
	}
	logs := x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID+"/logs", nil)
	if logs.status != http.StatusOK || strings.Count(string(logs.body), "give one of them a conversion") != 1 || !strings.Contains(string(logs.body), `"WARN`) {
		t.Errorf("logs %s", logs.body)
	}
}

// A condition that reads a field which is not there says so, with the nearest name.
func TestWarnings_ConditionsThatReadWhatIsNotThere(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for id, c := range map[string]struct{ condition, want string }{
		"misspelt":  {"data.totl > 100", `did you mean "data.total"`},
		"deep":      {"input.customer.nmae == 'ann'", `"input.customer.nmae", which is not there`},
		"steps":     {"steps.start.totl > 1", `did you mean "steps.start.total"`},
		"there":     {"data.total > 100 && customer.name == 'ann'", ""},
		"defaulted": {"(data.totl ?? 0) > 100", ""},
		"asked":     {"data.totl == null || has(data, 'totl')", ""},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			x.save(t, `
metadata: {id: `+id+`, name: `+id+`, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: is, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "`+c.condition+`"}}
connections:
  - {from_node: start, to_node: is}
`)
			e, _ := ran(t, x, id, `{"total": 200, "customer": {"name": "ann"}}`)
			warnings := e.NodeExecutions["is"].Warnings
			if c.want == "" && len(warnings) > 0 || c.want != "" && (len(warnings) != 1 || !strings.Contains(warnings[0].Message, c.want) || warnings[0].Path != "configurations.condition_expression") {
				t.Errorf("warnings %+v", warnings)
			}
		})
	}
}

// An empty parameter that hides what a connection brings is told.
func TestWarnings_EmptyParameters(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, `
metadata: {id: hides, name: hides, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: n, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {items: [], note: "", total: 5, other: ""}}
connections:
  - {from_node: start, to_node: n}
`)
	e, _ := ran(t, x, "hides", `{"items": [1], "note": "", "total": 7}`)
	warnings := e.NodeExecutions["n"].Warnings
	if len(warnings) != 1 || warnings[0].Path != "input_params.items" || !strings.Contains(string(e.NodeExecutions["n"].OutputData["result"]), `"items":[]`) {
		t.Errorf("warnings %+v, output %s", warnings, e.NodeExecutions["n"].OutputData)
	}
}
