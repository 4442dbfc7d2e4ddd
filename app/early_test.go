package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/identity"
	"tandem/store"
	"tandem/workflow"
)

// TestPlan_RefusesWhatARunWouldRefuse: a value that is written out and that no run can use is refused when the workflow is saved, with the field; what a
// placeholder decides is left to the run.
func TestPlan_RefusesWhatARunWouldRefuse(t *testing.T) {
	t.Parallel()
	const base = `"profile_id": "p", "user_prompt": "hi", `
	for _, c := range []struct{ kind, path, wrong, right string }{
		{"FLOW.SORT", "sort_field", `{"sort_field": "a["}`, `{"sort_field": "a[0].b"}`},
		{"FLOW.SORT", "", `{"sort_field": ""}`, `{"sort_field": "a"}`},
		{"FLOW.SORT", "sort_field", `{"sort_field": ".."}`, `{"sort_field": "."}`},
		{"FLOW.SORT", "sort_fields[0].field", `{"sort_fields": [{"field": ". "}]}`, `{"sort_fields": [{"field": "."}, {"field": "a"}]}`},
		{"FLOW.FILTER", "sort_field", `{"conditions": [{"field": ".", "operator": "is_null"}], "sort_filtered_results": true, "sort_field": "a["}`, `{"conditions": [{"field": ".", "operator": "is_null"}], "sort_filtered_results": true, "sort_field": "."}`},
		{"FLOW.SORT", "sort_fields[0].field", `{"sort_fields": [{"field": " "}]}`, `{"sort_fields": [{"field": "{{x}}"}]}`},
		{"FLOW.SWITCH", "default_output_key", `{"switch_value": "1", "cases": [{"case": 1}], "default_output_key": ""}`, `{"switch_value": "1", "cases": [{"case": "", "output_key": "a"}]}`},
		{"FLOW.SWITCH", "switch_value", `{"switch_value": "", "cases": [{"case": 1}]}`, ``},
		{"FLOW.MERGE", "merge_key", `{"merge_strategy": "by_key", "merge_key": ""}`, ``},
		{"FLOW.IF", "condition_expression", `{"condition_expression": ""}`, `{"condition_expression": false}`},
		{"FLOW.SUB_WORKFLOW", "workflow_id", `{"workflow_id": ""}`, `{"workflow_id": "{{x}}"}`},
		{"FLOW.FOR_EACH", "iteration_variable", `{"iteration_variable": 1}`, `{"iteration_variable": ""}`},
		{"FLOW.LOOP", "iteration_variable", `{"iteration_variable": 1}`, `{"iteration_variable": ""}`},
		{"FLOW.WHILE", "iteration_variable", `{"condition_expression": "x", "iteration_variable": 1}`, `{"condition_expression": "x", "iteration_variable": ""}`},
		{"ACTION.DATABASE_QUERY", "", `{"credential_id": "d", "query": " "}`, `{"credential_id": "d", "query": "SELECT 1"}`},
		{"ACTION.HTTP_REQUEST", "idempotency_header", `{"url": "https://a.example", "method": "POST", "idempotency_header": ""}`, `{"url": "https://a.example", "idempotency_header": "{{h}}"}`},
		{"ACTION.HTTP_REQUEST", "url", `{"url": ""}`, ``},
		{"ACTION.FILE_UPLOAD", "field_name", `{"url": "https://a.example", "file": "a", "field_name": ""}`, ``},
		{"ACTION.FILE_UPLOAD", "url", `{"url": "", "file": "a"}`, ``},
		{"ACTION.RUN_CODE", "code", `{"code": "\n"}`, `{"code": "def f(x): return x", "entry": ""}`},
		{"AI_AGENT.LLM", "profile_id", `{"profile_id": "", "prompt": "hi"}`, ``},
		{"AI_AGENT.LLM", "", `{"profile_id": "p", "prompt": ""}`, ``},
		{"AI_AGENT.OPENAI_CHATGPT", "", `{"profile_id": "", "user_prompt": "hi"}`, `{"profile_id": "", "model": "m", "user_prompt": "hi"}`},
		{"EXTERNAL_ACTION.GITHUB", "action_type", `{"action_type": ""}`, `{"action_type": "update_file", "branch": ""}`},
		{"EXTERNAL_ACTION.NOTION", "action_type", `{"instruction": "do"}`, `{"instruction": "do", "llm_profile": "p", "database_id": "d"}`},
		{"TOOL.FILE_PROCESSOR", "root", `{"root": ""}`, `{"root": "reports"}`},
		{"TOOL.MCP_TOOL", "server_id", `{"server_id": ""}`, ``},
		{"MEMORY.DOCUMENT_STORE", "collection_name", `{"collection_name": ""}`, ``},
		{"TRIGGER.MANUAL", "description", `{"description": 1}`, `{"trigger_name": ""}`},
		{"FLOW.SORT", "sort_fields[1].field", `{"sort_fields": [{"field": "a"}, {"field": "b["}]}`, `{"sort_fields": [{"field": "{{x}}["}]}`},
		{"FLOW.SORT", "items_path", `{"sort_field": "a", "items_path": "a["}`, `{"sort_field": "a", "items_path": ""}`},
		{"FLOW.FILTER", "items_path", `{"items_path": "a[", "conditions": [{"field": "a", "operator": "is_null"}]}`, ``},
		{"FLOW.FOR_EACH", "items_path", `{"items_path": "a["}`, `{"items_path": "{{where}}["}`},
		{"FLOW.LOOP", "array_path", `{"loop_type": "for_each", "array_path": "a["}`, `{"loop_type": "for_each", "array_path": "a"}`},
		{"FLOW.SPLIT", "items_path", `{"split_mode": "items", "items_path": "a["}`, `{"split_mode": "items", "items_path": "a"}`},
		{"FLOW.SPLIT", "by_key[0]", `{"split_mode": "items", "by_key": [1]}`, ``},
		{"FLOW.MERGE", "merge_key", `{"merge_strategy": "by_key", "merge_key": "a["}`, `{"merge_strategy": "by_key", "merge_key": "a"}`},
		{"FLOW.TIMEOUT", "deadline", `{"deadline": "soon"}`, `{"deadline": "{{due}}"}`},
		{"FLOW.RESPOND", "headers", `{"headers": {"X-A": {"b": 1}}}`, `{"headers": {"X-A": "{{b}}"}}`},
		{"ACTION.DATA_TRANSFORMATION", "items_path", `{"operation": "flatten", "items_path": "a["}`, `{"operation": "flatten", "items_path": "a"}`},
		{"ACTION.DATA_TRANSFORMATION", "aggregation_functions", `{"operation": "aggregate", "aggregation_functions": {"a": "most"}}`, `{"operation": "aggregate", "aggregation_functions": {"a": "SUM"}}`},
		{"ACTION.DATA_VALIDATION", "items_path", `{"items_path": "a[", "rules": [{"field": "a", "rule": "required"}]}`, ``},
		{"ACTION.EDIT_FIELDS", "rename", `{"rename": {"a": 1}}`, `{"rename": {"a": "b"}}`},
		{"ACTION.EDIT_FIELDS", "set", `{"set": {"a[": 1}}`, `{"set": {"a": 1}}`},
		{"ACTION.EDIT_FIELDS", "remove[0]", `{"remove": ["a["]}`, `{"remove": ["a"]}`},
		{"ACTION.EDIT_FIELDS", "expressions", `{"expressions": {"a": 1}}`, `{"expressions": {"a": "1 + 1"}}`},
		{"ACTION.HTTP_REQUEST", "url", `{"url": "xx"}`, `{"url": "https://a.example/{id}"}`},
		{"ACTION.HTTP_REQUEST", "headers", `{"url": "https://a.example", "headers": {"X-A": {"b": 1}}}`, `{"url": "/below", "credential_id": "c"}`},
		{"ACTION.WEBHOOK_CALL", "url", `{"url": "https://a.example/%Q"}`, `{"url": "{{where}}"}`},
		{"ACTION.FILE_DOWNLOAD", "url", `{"url": "xx"}`, `{"url": "{base}/a"}`},
		{"ACTION.FILE_DOWNLOAD", "sha256", `{"url": "https://a.example", "sha256": "xx"}`, `{"url": "https://a.example", "sha256": "` + strings.Repeat("0", 64) + `"}`},
		{"ACTION.FILE_UPLOAD", "url", `{"url": "xx", "file": "a"}`, `{"url": "https://a.example", "file": "a"}`},
		{"ACTION.RSS_READ", "url", `{"url": "xx"}`, `{"url": "https://a.example"}`},
		{"ACTION.RSS_READ", "since", `{"url": "https://a.example", "since": "yesterday"}`, `{"url": "https://a.example", "since": "2030-01-31T09:00:00Z"}`},
		{"AI_AGENT.LLM", "parameters.stop[1]", `{` + base + `"parameters": {"stop": ["a", 1]}}`, `{` + base + `"parameters": {"stop": ["a", "b"]}}`},
		{"AI_AGENT.OPENAI_CHATGPT", "generation_config.stop_sequences[0]", `{` + base + `"generation_config": {"stop_sequences": [{}]}}`, `{` + base + `"generation_config": {"stop": "a"}}`},
		{"AI_AGENT.LLM", "tools[0].paramters", `{` + base + `"tools": [{"name": "f", "paramters": {}}]}`, `{` + base + `"tools": [{"name": "f", "description": "d", "parameters": {"type": "object"}}]}`},
		{"AI_AGENT.LLM", "tools[0].function.desc", `{` + base + `"tools": [{"type": "function", "function": {"name": "f", "desc": "d"}}]}`, `{` + base + `"tools": [{"type": "function", "function": {"name": "f", "strict": true}}]}`},
		{"AI_AGENT.LLM", "tools[0].description", `{` + base + `"tools": [{"type": "function", "description": "d", "function": {"name": "f"}}]}`, `{` + base + `"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": true}]}`},
		{"AI_AGENT.LLM", "tools", `{` + base + `"tools": [{"name": "f", "parameters": {"type": "objekt"}}]}`, ``},
		{"AI_AGENT.LLM", "messages", `{"profile_id": "p", "messages": [{"role": "boss", "content": "x"}]}`, `{"profile_id": "p", "messages": [{"role": "user", "content": "{{x}}"}]}`},
		{"AI_AGENT.LLM", "messages", `{"profile_id": "p", "messages": ["hi"]}`, ``},
		{"AI_AGENT.LLM", "tool_approval", `{` + base + `"tool_approval": [1]}`, `{` + base + `"tool_approval": ["f/t"]}`},
	} {
		known, ok := Kinds().Kind(c.kind)
		if !ok {
			t.Fatalf("there is no kind %s", c.kind)
		}
		typ, subtype, _ := strings.Cut(c.kind, ".")
		errors := func(config string) (list []string) {
			_, problems := known.Plan(&workflow.Node{ID: "n", Name: "n", Type: typ, Subtype: subtype, Configurations: json.RawMessage(config)})
			for _, p := range problems {
				if p.Severity == workflow.SeverityError {
					list = append(list, p.Path)
				}
			}
			return list
		}
		if got := errors(c.wrong); len(got) != 1 || got[0] != strings.TrimSuffix("configurations."+c.path, ".") {
			t.Errorf("%s %s: errors at %q; want one at %q", c.kind, c.wrong, got, c.path)
		}
		if c.right == "" {
			continue
		}
		if got := errors(c.right); len(got) > 0 {
			t.Errorf("%s %s: errors at %q", c.kind, c.right, got)
		}
	}
}

// storedBefore is a workflow with values on a branch that is never taken, which older programs have let pass and a run of their nodes would refuse.
const storedBefore = `
metadata: {id: before, name: before, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: if, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "x == 1"}}
  - {id: done, description: d, type: CALL, subtype: EMPTY}
  - {id: a, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: ""}}
  - {id: b, description: d, type: FLOW, subtype: SORT, configurations: {sort_field: ""}}
  - {id: c, description: d, type: FLOW, subtype: MERGE, configurations: {merge_strategy: by_key, merge_key: " "}}
  - {id: d, description: d, type: FLOW, subtype: SORT, configurations: {sort_field: "a["}}
  - {id: e, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: p, user_prompt: q, parameters: {stop: [1]}, tools: [{name: f, paramters: {}}]}}
  - {id: f, description: d, type: ACTION, subtype: DATA_VALIDATION, configurations: {rules: [{field: a, rule: pattern, value: "("}]}}
  - {id: g, description: d, type: ACTION, subtype: DATABASE_QUERY, configurations: {credential_id: c, query: "delete from t"}}
connections:
  - {from_node: start, to_node: if}
  - {from_node: if, output_key: "false", to_node: done}
  - {from_node: if, output_key: "true", to_node: a}
  - {from_node: a, to_node: b}
  - {from_node: b, output_key: sorted, to_node: c}
  - {from_node: c, to_node: d}
  - {from_node: d, output_key: sorted, to_node: e}
  - {from_node: e, to_node: f}
  - {from_node: f, output_key: valid, to_node: g}
`

// TestPlan_RunsWhatIsStored: a revision that an older program has stored is started and ends although a check that came later refuses to save or deploy it.
func TestPlan_RunsWhatIsStored(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	source, problems := workflow.Parse([]byte(storedBefore), workflow.Options{Kinds: Kinds()})
	if source == nil || workflow.HasErrors(problems) {
		t.Fatal(problems)
	}
	def := source.Definition
	if _, _, err := x.stores.Workflows.Save(t.Context(), identity.System("default"), store.SaveWorkflow{
		ID: def.Metadata.ID, Name: def.Metadata.Name, Hash: workflow.Hash(def), Definition: workflow.Encode(def), Time: 1, Expect: -1,
	}); err != nil {
		t.Fatal(err)
	}
	execution := x.execute(t, "before", api.ExecuteRequest{Inputs: json.RawMessage(`{"x": 2}`), WaitSeconds: 30})
	if e := x.read(t, execution); e.Status != "SUCCESS" || e.NodeExecutions["done"].Status == "" {
		t.Errorf("status %s, %+v", e.Status, e.Error)
	}
	for path, body := range map[string]any{"PUT /workflows/before": storedBefore, "POST /workflows/before/deploy": nil} {
		method, path, _ := strings.Cut(path, " ")
		told := refused(t, x.call(t, "editor", method, path, body), http.StatusUnprocessableEntity, "invalid")
		for _, node := range []string{"nodes[3].", "nodes[4].", "nodes[5].", "nodes[6].", "nodes[7].configurations.parameters", "nodes[7].configurations.tools", "nodes[8].", "nodes[9]."} {
			found := false
			for _, one := range told.Errors {
				found = found || strings.HasPrefix(one.Path, node)
			}
			if !found {
				t.Errorf("%s does not refuse %s: %+v", method, node, told.Errors)
			}
		}
	}
}
