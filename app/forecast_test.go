package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
)

// forecastTools are the tools of a load forecast. Each answer is made from what the tool was given, so that other inputs lead to other
// calls. Broken are the tools that fail, and how often.
func forecastTools(t *testing.T, broken map[string]int) *toolbox {
	text := func(names ...string) json.RawMessage {
		var fields []string
		for _, n := range names {
			fields = append(fields, fmt.Sprintf(`%q:{"type":"string"}`, n))
		}
		required, err := json.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s},"required":%s}`, strings.Join(fields, ","), required))
	}
	tool := func(name string, schema json.RawMessage) toolDefinition {
		return toolDefinition{Name: name, Description: name, Schema: schema, Idempotent: true}
	}
	var mu sync.Mutex
	left := map[string]int{}
	for name, n := range broken { // order does not matter: a copy
		left[name] = n
	}
	return newToolbox(t, func(c toolCall, _ <-chan struct{}) toolReply {
		mu.Lock()
		defer mu.Unlock()
		if left[c.Tool] > 0 {
			left[c.Tool]--
			return toolReply{Failed: true, Text: c.Tool + " does not work today"}
		}
		of := func(name string) string { return gjson.GetBytes(c.Arguments, name).String() }
		project := strings.TrimPrefix(of("project_id"), "proj_")
		source := strings.TrimPrefix(of("datasource_id"), "ds_")
		answers := map[string]string{
			"check_csv_file": fmt.Sprintf(`{"is_valid":true,"row_count":%d}`, 993+len(of("file_path"))),
			"add_datasource": fmt.Sprintf(`{"datasource_id":"ds_%s","datasource_name":"source of %s"}`, project, of("file_path")),
			"data_upload":    fmt.Sprintf(`{"upload_status":"uploaded %s","record_count":1000}`, source),
			"bulk_upload":    fmt.Sprintf(`{"upload_status":"in bulk %s","record_count":1000}`, source),
			"get_data":       fmt.Sprintf(`{"data_json":[{"hour":1,"load":1%s.5}],"record_count":1000}`, source),
			"train_model":    fmt.Sprintf(`{"model_id":"model_%s"}`, source),
			"forecast":       `{"peak":812.5}`,
		}
		return toolReply{Structured: json.RawMessage(answers[c.Tool])}
	},
		tool("check_csv_file", text("file_path")), tool("add_datasource", text("project_id", "file_path")), tool("data_upload", text("project_id", "datasource_id")),
		tool("bulk_upload", text("project_id", "datasource_id")), tool("get_data", text("datasource_id")),
		tool("train_model", json.RawMessage(`{"type":"object","properties":{"datasource_id":{"type":"string"},"rows":{"type":"integer"},"data":{"type":"array"},"note":{"type":"string"}},"required":["datasource_id","rows","data"]}`)),
		tool("forecast", text("model_id", "datasource_id")))
}

// forecastPlan are the tools in their order.
func forecastPlan() []string {
	return []string{"box/check_csv_file", "box/add_datasource", "box/data_upload", "box/get_data", "box/train_model", "box/forecast"}
}

// forecastParams are what a model writes for the steps; source is how it refers to the datasource of the second.
func forecastParams(step, source string) map[string]any {
	switch step {
	case "step_1":
		return map[string]any{"file_path": "{{file_path}}"}
	case "step_2":
		return map[string]any{"project_id": "{{project_id}}", "file_path": "{{file_path}}"}
	case "step_4":
		return map[string]any{"datasource_id": source}
	case "step_5":
		return map[string]any{"datasource_id": source, "rows": "{{step_1.outputs.row_count}}", "data": "{{data_json}}", "note": "rows of " + source + ": {{row_count}}"}
	case "step_6":
		return map[string]any{"model_id": "{{step_5.model_id}}", "datasource_id": source}
	}
	return map[string]any{"project_id": "{{project_id}}", "datasource_id": source} // the third, however often it is repaired
}

const forecastQuestion = "Forecast the load of the region"

func forecastRequest() api.TaskRequest {
	return api.TaskRequest{Question: forecastQuestion, Metadata: json.RawMessage(`{"project_id":"proj_001","file_path":"/data/load.csv"}`)}
}

// forecastCalls are what the tools are called with when all goes well.
func forecastCalls(project, file, upload string) []string {
	return []string{
		fmt.Sprintf(`check_csv_file {"file_path":%q}`, file),
		fmt.Sprintf(`add_datasource {"file_path":%q,"project_id":"proj_%s"}`, file, project),
		fmt.Sprintf(`%s {"datasource_id":"ds_%s","project_id":"proj_%s"}`, upload, project, project),
		fmt.Sprintf(`get_data {"datasource_id":"ds_%s"}`, project),
		fmt.Sprintf(`train_model {"data":[{"hour":1,"load":1%s.5}],"datasource_id":"ds_%s","note":"rows of ds_%s: %d","rows":%d}`, project, project, project, 993+len(file), 993+len(file)),
		fmt.Sprintf(`forecast {"datasource_id":"ds_%s","model_id":"model_%s"}`, project, project),
	}
}

// sorted are calls with their arguments in the order of the names.
func sortedCalls(t *testing.T, calls []string) []string {
	t.Helper()
	out := make([]string, len(calls))
	for i, c := range calls {
		tool, raw, _ := strings.Cut(c, " ")
		var args map[string]json.RawMessage
		if err := json.Unmarshal([]byte(raw), &args); err != nil {
			t.Fatalf("call %q: %v", c, err)
		}
		sorted, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = tool + " " + string(sorted)
	}
	return out
}

// spellings are the ways to write the datasource of the second step: the five that mean the same, and others that do.
func spellings() map[string]string {
	return map[string]string{
		"Outputs": "{{step_2.outputs.datasource_id}}", "Output": "{{step_2.output.datasource_id}}", "ThreeBraces": "{{{step_2.outputs.datasource_id}}}",
		"Name": "{{datasource_id}}", "NameOfTheStep": "{{step_2_datasource_id}}", "Short": "{{step_2.datasource_id}}", "Dollar": "${step_2.output.datasource_id}",
	}
}

// The load forecast over a real tool server: what steps hand on arrives, whichever way it is written.
func TestForecast_EverySpelling(t *testing.T) {
	t.Parallel()
	for name, spelling := range spellings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMind(t, forecastPlan(), func(d decided) any {
				if d.name == "params" {
					return map[string]any{"arguments": forecastParams(d.step, spelling)}
				}
				return nil
			})
			x := openTasks(t, m, forecastTools(t, nil))
			x.auto()
			e := x.ask(forecastRequest())
			x.ended(e, engine.StatusSuccess)
			if got, want := sortedCalls(t, x.tools.made()), forecastCalls("001", "/data/load.csv", "data_upload"); !slices.Equal(got, want) {
				t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			c, err := x.as(taskUser).Context(t.Context(), e.ExecutionID, "")
			if err != nil {
				t.Fatal(err)
			}
			if s := c.StepResults["step_2"]; !s.IsSuccess || s.ToolID != "box/add_datasource" || string(c.RuntimeMetadata["step_2_datasource_id"]) != `"ds_001"` || string(c.InitialMetadata["project_id"]) != `"proj_001"` {
				t.Errorf("context %+v", c)
			}
		})
	}
}

// What was done stays at hand: a call that is made again, a step that is repaired, a plan for the rest.
func TestForecast_KeepsDataWhenItIsRepaired(t *testing.T) {
	t.Parallel()
	// Every step writes it in another way.
	ways := map[string]string{
		"step_3": "{{step_2.outputs.datasource_id}}", "step_3_2": "{{step_2.output.datasource_id}}", "step_3_3": "{{{step_2.outputs.datasource_id}}}",
		"step_4": "{{datasource_id}}", "step_5": "{{step_2_datasource_id}}", "step_6": "${step_2.datasource_id}",
	}
	m := newMind(t, forecastPlan(), func(d decided) any {
		switch d.name {
		case "params":
			return map[string]any{"arguments": forecastParams(d.step, ways[d.step])}
		case "analyze":
			return map[string]any{"is_param_error": d.step == "step_2", "reason": "the tool says so"}
		case "repair":
			return map[string]any{"tool_id": "box/data_upload", "description": "once more"}
		case "replan":
			return map[string]any{"description": "in bulk", "steps": []any{map[string]any{"tool_id": "box/bulk_upload", "description": "in bulk"}}}
		case "plan":
			if strings.HasPrefix(d.step, "step_3") && strings.Contains(d.told, "in bulk") {
				return map[string]any{"tool_id": "box/bulk_upload", "description": "as planned anew"}
			}
		}
		return nil
	})
	x := openTasks(t, m, forecastTools(t, map[string]int{"add_datasource": 1, "data_upload": 2}))
	x.auto()
	e := x.ask(forecastRequest())
	x.ended(e, engine.StatusSuccess)
	calls := forecastCalls("001", "/data/load.csv", "bulk_upload")
	upload := strings.Replace(calls[2], "bulk", "data", 1)
	want := slices.Concat(calls[:2], calls[1:2], []string{upload, upload}, calls[2:])
	if got := sortedCalls(t, x.tools.made()); !slices.Equal(got, want) {
		t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if told := x.told(t, e.ExecutionID); !slices.ContainsFunc(told, func(l string) bool {
		return strings.HasSuffix(l, ": the rest is planned anew; what steps have brought stays")
	}) {
		t.Errorf("the log does not say that the rest was planned anew: %q", told)
	}
	if e.Task == nil || e.Task.PlanID != "plan-2" || e.Task.FailureCount != 2 {
		t.Errorf("task %+v", e.Task)
	}
	c, err := x.as(taskUser).Context(t.Context(), e.ExecutionID, "")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.StepResults["step_2"]; !s.IsSuccess {
		t.Errorf("the second step, whose second call was well, is kept as %+v", s)
	}
	x.freezesForecast(e.ExecutionID)
}

// freezesForecast makes a workflow of the task and runs it on other inputs: the tools that led to the answer are called with what follows
// from these, and no model is asked.
func (x *taskSite) freezesForecast(task string) {
	x.Helper()
	frozen, err := x.as("editor").Freeze(x.Context(), task, api.FreezeRequest{ID: "forecast", Name: "Load forecast"})
	if err != nil {
		x.Fatal(err)
	}
	if frozen.WorkflowID != "forecast" || len(frozen.Untraced) != 0 {
		x.Errorf("frozen as %q with %+v", frozen.WorkflowID, frozen.Untraced)
	}
	asked, called := x.mind.count(), len(x.tools.made())
	inputs := json.RawMessage(`{"project_id":"proj_77","file_path":"/other/much_longer.csv"}`)
	started, err := x.as(taskUser).Execute(x.Context(), "forecast", api.ExecuteRequest{Inputs: inputs}, "")
	if err != nil {
		x.Fatal(err)
	}
	e := x.rest(started.ExecutionID)
	x.ended(e, engine.StatusSuccess)
	if got, want := sortedCalls(x.T, x.tools.made()[called:]), forecastCalls("77", "/other/much_longer.csv", "bulk_upload"); !slices.Equal(got, want) {
		x.Errorf("calls of the workflow:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := gjson.GetBytes(e.Outputs["step_6"], "result.peak").Float(); got != 812.5 {
		x.Errorf("outputs %s", e.Outputs)
	}
	if n := x.mind.count(); n != asked {
		x.Errorf("the model was asked %d times for the workflow", n-asked)
	}
	if _, err := x.as(taskUser).Execute(x.Context(), "forecast", api.ExecuteRequest{Inputs: json.RawMessage(`{"project_id":"proj_77"}`)}, ""); fault.CodeOf(err) != fault.InvalidInput {
		x.Errorf("a start without an input that is needed: %v", err)
	}
}
