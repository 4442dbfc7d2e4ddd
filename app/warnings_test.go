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
	r := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/"+id+"/execute", api.ExecuteRequest{Inputs: json.RawMessage(inputs), WaitSeconds: 60}), http.StatusOK)
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
