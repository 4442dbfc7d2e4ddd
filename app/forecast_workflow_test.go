package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
)

// useBox registers a tool server as box, and activates it for the operator.
func (x *site) useBox(t *testing.T, b *toolbox) {
	t.Helper()
	if err := x.stores.MCPServers.Put(t.Context(), identity.System("default"), b.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	want[api.MCPTools](t, x.call(t, "operator", "POST", "/mcp/servers/box/activate", nil), http.StatusOK)
}

// toolChain is a workflow of tools, one after the other, each given its arguments: step_1, step_2, ….
func toolChain(id string, steps ...string) string {
	return chainOf("{id: step_%d, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box, tool_name: %s, function_args: %s}%s}", id, steps)
}

// paramChain is the same with the arguments as the parameters of the nodes.
func paramChain(id string, steps ...string) string {
	return chainOf("{id: step_%d, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box, tool_name: %s}, input_params: %s%s}", id, steps)
}

func chainOf(node, id string, steps []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "metadata: {id: %s, name: %s, description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n", id, id)
	for i, s := range steps {
		tool, rest, _ := strings.Cut(s, " ")
		args, more, _ := strings.Cut(rest, " | ")
		if more != "" {
			more = ", " + more
		}
		fmt.Fprintf(&b, "  - "+node+"\n", i+1, tool, args, more)
	}
	b.WriteString("connections:\n  - {from_node: start, to_node: step_1}\n")
	for i := range steps[1:] {
		fmt.Fprintf(&b, "  - {from_node: step_%d, to_node: step_%d}\n", i+1, i+2)
	}
	return b.String()
}

// The load forecast as a workflow: a tool's fields are read in every way that there is to write them, and the workflow has nothing that
// a person would have to be warned of.
func TestForecast_AsAWorkflow(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	box := forecastTools(t, nil)
	x.useBox(t, box)
	for n, name := range append(slices.Sorted(maps.Keys(spellings())), slices.Sorted(maps.Keys(spellings()))...) {
		spelling, chain := spellings()[name], toolChain
		if n >= len(spellings()) {
			name, chain = name+"-params", paramChain
		}
		saved := x.save(t, chain("forecast-"+strings.ToLower(name),
			`check_csv_file {"file_path": "{{file_path}}"}`,
			`add_datasource {"project_id": "{{project_id}}", "file_path": "{{file_path}}"}`,
			`data_upload {"project_id": "{{project_id}}", "datasource_id": "`+spelling+`"}`,
			`get_data {"datasource_id": "`+spelling+`"}`,
			`train_model {"datasource_id": "`+spelling+`", "rows": "{{step_1.outputs.row_count}}", "data": "{{data_json}}", "note": "rows of `+spelling+`: {{row_count}}"}`,
			`forecast {"model_id": "{{step_5.model_id}}", "datasource_id": "`+spelling+`"}`))
		if len(saved.Problems) > 0 {
			t.Errorf("%s: saving it warns of %+v", name, saved.Problems)
		}
		before := len(box.made())
		id := x.execute(t, saved.Workflow.ID, api.ExecuteRequest{Inputs: json.RawMessage(`{"project_id":"proj_001","file_path":"/data/load.csv"}`)})
		x.reaches(t, id, engine.StatusSuccess)
		if got, want := sortedCalls(t, box.made()[before:]), forecastCalls("001", "/data/load.csv", "data_upload"); !slices.Equal(got, want) {
			t.Errorf("%s: calls\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		c := want[api.Context](t, x.call(t, "viewer", "GET", "/executions/"+id+"/context", nil), http.StatusOK)
		for _, field := range []string{"datasource_id", "step_2_datasource_id"} {
			if got := string(c.RuntimeMetadata[field]); got != `"ds_001"` {
				t.Errorf("%s: %s is %s", name, field, got)
			}
		}
		for _, field := range []string{"success", "execution_time", "step_2_cached"} {
			if got, ok := c.RuntimeMetadata[field]; ok {
				t.Errorf("%s: what the node says of the call became a name of the data: %s is %s", name, field, got)
			}
		}
	}
}

// A tool's output is read as the tool describes it, also where it has a field called result.
func TestForecast_AToolsOwnResult(t *testing.T) {
	t.Parallel()
	any := json.RawMessage(`{"type":"object"}`)
	box := newToolbox(t, func(c toolCall, _ <-chan struct{}) toolReply {
		if c.Tool == "text" {
			return toolReply{Text: `{"result":{"data":{"model_id":"model_123"}}}`}
		}
		return toolReply{Structured: json.RawMessage(`{"result":{"data":{"model_id":"model_123"}}}`)}
	}, toolDefinition{Name: "train", Schema: any, ReadOnly: true}, toolDefinition{Name: "text", Schema: any, ReadOnly: true}, toolDefinition{Name: "take", Schema: any, ReadOnly: true})
	x := openSite(t)
	x.useBox(t, box)
	for _, tool := range []string{"train", "text"} {
		saved := x.save(t, toolChain("own-"+tool, `take {}`, `take {}`, tool+` {}`,
			`take {"a": "{{step_3.outputs.result.data.model_id}}", "b": "{{step_3.outputs.result.result.data.model_id}}", "c": "${step_3.output.result.data.model_id}"}`))
		if len(saved.Problems) > 0 {
			t.Errorf("saving it warns of %+v", saved.Problems)
		}
		x.reaches(t, x.execute(t, "own-"+tool, api.ExecuteRequest{}), engine.StatusSuccess)
		made := sortedCalls(t, box.made())
		if got := made[len(made)-1]; got != `take {"a":"model_123","b":"model_123","c":"model_123"}` {
			t.Errorf("%s: the last call is %s", tool, got)
		}
	}
}

// A start that is repeated is answered as it was, by the workflow that was started.
func TestForecast_RepeatedStartsWarnAgain(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.useBox(t, forecastTools(t, nil))
	check := `check_csv_file {"file_path": "{{file_path}}"}`
	x.save(t, toolChain("warns", check))
	start := func() api.ExecuteResponse {
		return want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/warns/execute", `{"inputs":{"file_path":"/a","day":1}}`, "Idempotency-Key", "k"), http.StatusAccepted)
	}
	first := start()
	x.reaches(t, first.ExecutionID, engine.StatusSuccess)
	want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/warns", toolChain("warns", check, `check_csv_file {"file_path": "{{day}}"}`)), http.StatusOK)
	again := start()
	if len(first.Warnings) != 1 || !strings.Contains(first.Warnings[0], `the input "day" is not used`) || !again.Repeated || !slices.Equal(again.Warnings, first.Warnings) {
		t.Errorf("warned of %q, then of %q (%+v)", first.Warnings, again.Warnings, again)
	}
}

// What a tool declares to return, or the node names, decides which fields become outputs.
func TestTools_DeclaredOutputs(t *testing.T) {
	t.Parallel()
	any := json.RawMessage(`{"type":"object"}`)
	box := newToolbox(t, func(c toolCall, _ <-chan struct{}) toolReply {
		switch c.Tool {
		case "plain":
			return toolReply{Text: `{"id":"t1","secret":"s","success":"no"}`}
		case "words":
			return toolReply{Text: `not an object`}
		}
		return toolReply{Structured: json.RawMessage(`{"id":"d1","secret":"s","message":"m"}`)}
	}, toolDefinition{Name: "declared", Schema: any, ReadOnly: true, Output: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"later":{"type":"string"}}}`)},
		toolDefinition{Name: "plain", Schema: any, ReadOnly: true}, toolDefinition{Name: "words", Schema: any, ReadOnly: true})
	x := openSite(t)
	x.useBox(t, box)
	for name, c := range map[string]struct {
		step   string
		fields string // of the output, beside what every tool has
		names  string // of the data
	}{
		"schema":        {`declared {}`, "id", "id step_1_id"},
		"output_params": {`declared {} | output_params: {secret: "", message: ""}`, "message secret", "message secret step_1_message step_1_secret"},
		"all":           {`plain {}`, "id message secret", "id message secret step_1_id step_1_message step_1_secret"},
		"named":         {`plain {} | output_params: {id: ""}`, "id", "id step_1_id"},
		"text":          {`words {}`, "message", "message step_1_message"},
	} {
		x.save(t, toolChain(name, c.step))
		id := x.execute(t, name, api.ExecuteRequest{})
		x.reaches(t, id, engine.StatusSuccess)
		var output map[string]json.RawMessage
		if err := json.Unmarshal([]byte(x.output(t, id, "step_1")), &output); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"result", "success", "error_message", "execution_time", "cached"} {
			if _, ok := output[field]; !ok {
				t.Errorf("%s: the output has no %s: %s", name, field, x.output(t, id, "step_1"))
			}
			delete(output, field)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(output)), " "); got != c.fields {
			t.Errorf("%s: the output has %q, want %q", name, got, c.fields)
		}
		context := want[api.Context](t, x.call(t, "viewer", "GET", "/executions/"+id+"/context", nil), http.StatusOK)
		maps.DeleteFunc(context.RuntimeMetadata, func(name string, _ json.RawMessage) bool {
			return strings.HasPrefix(name, "start_") || slices.Contains([]string{"trigger_time", "execution_id", "trigger_message", "user_id"}, name)
		})
		if got := strings.Join(slices.Sorted(maps.Keys(context.RuntimeMetadata)), " "); got != c.names {
			t.Errorf("%s: the names are %q, want %q", name, got, c.names)
		}
	}
}

// The same of an agent's steps: the whole output can be read by the step, and what the tool declares has names of its own.
func TestTask_DeclaredOutputs(t *testing.T) {
	t.Parallel()
	box := newToolbox(t, func(toolCall, <-chan struct{}) toolReply {
		return toolReply{Structured: json.RawMessage(`{"id":"d1","secret":"s"}`)}
	}, toolDefinition{Name: "look", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true, Output: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}}}`)},
		toolDefinition{Name: "put", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true})
	m := newMind(t, []string{"box/look", "box/put"}, func(d decided) any {
		if d.name == "params" && d.step == "step_2" {
			return map[string]any{"arguments": map[string]any{"id": "{{id}}", "secret": "{{step_1.outputs.secret}}"}}
		}
		return nil
	})
	x := openTasks(t, m, box)
	x.auto()
	e := x.ask(forecastRequest())
	x.ended(e, engine.StatusSuccess)
	if got := sortedCalls(t, box.made()); len(got) != 2 || got[1] != `put {"id":"d1","secret":"s"}` {
		t.Errorf("calls %q", got)
	}
	c, err := x.as(taskUser).Context(t.Context(), e.ExecutionID, "")
	if err != nil {
		t.Fatal(err)
	}
	if string(c.RuntimeMetadata["step_1_id"]) != `"d1"` || c.RuntimeMetadata["step_1_secret"] != nil || c.RuntimeMetadata["step_2_secret"] == nil {
		t.Errorf("the names are %q", slices.Sorted(maps.Keys(c.RuntimeMetadata)))
	}
}
