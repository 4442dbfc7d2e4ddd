package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tandem/agent"
	"tandem/dataflow"
	"tandem/fault"
	"tandem/workflow"
)

// pastTask is a task that is being made up: its data grows with each call, so that the lineage is the real one.
type pastTask struct {
	t      testing.TB
	past   agent.Past
	layers *dataflow.Layers
	seq    uint64
}

func newPastTask(t testing.TB, request string) *pastTask {
	t.Helper()
	initial, err := agent.Initial(json.RawMessage(request))
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Question string }
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		t.Fatal(err)
	}
	p := &pastTask{t: t, past: agent.Past{Execution: "exec_1", Workflow: "agent:x", Question: r.Question, Initial: initial}}
	if p.layers, err = dataflow.New(dataflow.Start{ExecutionID: "exec_1", WorkflowID: "agent:x", Initial: initial, Trigger: json.RawMessage(request)}); err != nil {
		t.Fatal(err)
	}
	var output map[string]json.RawMessage
	if err := json.Unmarshal([]byte(request), &output); err != nil {
		t.Fatal(err)
	}
	output["execution_id"], output["user_id"] = json.RawMessage(`"exec_1"`), json.RawMessage(`"ann"`)
	p.sync("start", "start", mustJSON(t, output))
	return p
}

func mustJSON(t testing.TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (p *pastTask) sync(id, name string, output json.RawMessage) {
	p.t.Helper()
	p.seq++
	if _, err := p.layers.Sync(dataflow.Step{Seq: p.seq, Activation: id, NodeID: id, NodeName: name, ToolID: name, Output: map[string]json.RawMessage{"result": output}}); err != nil {
		p.t.Fatal(err)
	}
}

// draft resolves what the model wrote as the runtime does.
func (p *pastTask) draft(template string) (agent.Draft, json.RawMessage) {
	p.t.Helper()
	c, err := dataflow.Compile(json.RawMessage(template))
	if err != nil {
		p.t.Fatal(err)
	}
	r := dataflow.Request{View: dataflow.View{AsOf: p.seq}}
	args, _, err := c.Resolve(p.layers, r)
	if err != nil {
		p.t.Fatal(err)
	}
	lineage, err := dataflow.InputLineage(p.layers, dataflow.Input{Params: c}, r)
	if err != nil {
		p.t.Fatal(err)
	}
	var origins []dataflow.Origin
	if err := json.Unmarshal(mustJSON(p.t, lineage.Origins), &origins); err != nil {
		p.t.Fatal(err)
	}
	return agent.Draft{Template: json.RawMessage(template), Lineage: origins}, args
}

// call adds a call that ended well.
func (p *pastTask) call(step, tool, template, result string) *agent.PastCall {
	p.t.Helper()
	d, args := p.draft(template)
	p.past.Calls = append(p.past.Calls, agent.PastCall{
		Step: step, Activation: step, Tool: tool, Why: "because", Arguments: args, Result: json.RawMessage(result), Drafts: []agent.Draft{d},
	})
	p.sync(step, tool, json.RawMessage(result))
	return &p.past.Calls[len(p.past.Calls)-1]
}

func (p *pastTask) freeze() (agent.Frozen, []json.RawMessage) {
	p.t.Helper()
	f, err := agent.Freeze(p.past)
	if err != nil {
		p.t.Fatal(err)
	}
	var args []json.RawMessage
	for _, n := range f.Definition.Nodes[1:] {
		args = append(args, configOf(p.t, n).FunctionArgs)
	}
	return f, args
}

type nodeConfig struct {
	ServerID     string          `json:"server_id"`
	ToolName     string          `json:"tool_name"`
	FunctionArgs json.RawMessage `json:"function_args"`
	InputSchema  json.RawMessage `json:"input_schema"`
}

func configOf(t testing.TB, n workflow.Node) (c nodeConfig) {
	t.Helper()
	if err := json.Unmarshal(n.Configurations, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// runFrozen runs the workflow as the engine would: each node's parameters are resolved over its data and its own input, which is what
// the node before has left. It returns what the tools were called with.
func runFrozen(t testing.TB, def *workflow.Definition, inputs string, tool func(i int, args json.RawMessage) json.RawMessage) []json.RawMessage {
	t.Helper()
	layers, err := dataflow.New(dataflow.Start{ExecutionID: "exec_2", WorkflowID: "frozen", Initial: json.RawMessage(inputs), Trigger: json.RawMessage(inputs)})
	if err != nil {
		t.Fatal(err)
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal([]byte(inputs), &own); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"trigger_time", "execution_id", "trigger_message", "user_id"} {
		own[name] = json.RawMessage(`"of the run"`)
	}
	seq, output := uint64(0), mustJSON(t, own)
	sync := func(n workflow.Node) {
		seq++
		if _, err := layers.Sync(dataflow.Step{Seq: seq, Activation: n.ID, NodeID: n.ID, NodeName: n.Name, ToolID: n.Kind(), Output: map[string]json.RawMessage{"result": output}}); err != nil {
			t.Fatal(err)
		}
	}
	sync(def.Nodes[0])
	var calls []json.RawMessage
	for i, n := range def.Nodes[1:] {
		c, err := dataflow.Compile(n.Configurations)
		if err != nil {
			t.Fatal(err)
		}
		raw, _, err := c.Resolve(layers, dataflow.Request{View: dataflow.View{AsOf: seq}, Own: output})
		if err != nil {
			t.Fatalf("%s: %v", n.ID, err)
		}
		n.Configurations = raw
		args := configOf(t, n).FunctionArgs
		calls = append(calls, args)
		output = mustJSON(t, map[string]any{"result": tool(i, args), "success": true, "error_message": "", "execution_time": 3, "cached": false})
		sync(n)
	}
	return calls
}

func sameJSON(t testing.TB, got json.RawMessage, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("want %s\n got %s", want, got)
	}
}

const forecast = `{"question":"Forecast the load of the region","metadata":{"project_id":"proj_001","file_path":"/data/load.csv"}}`

// The same thing may be written in many ways; all of them are the same placeholder of the workflow.
func TestFreeze_KeepsEverySpelling(t *testing.T) {
	t.Parallel()
	for _, spelling := range []string{
		"{{step_2.outputs.datasource_id}}", "{{step_2.output.datasource_id}}", "{{{step_2.outputs.datasource_id}}}", "{{datasource_id}}", "{{step_2_datasource_id}}",
		"{{step_2.datasource_id}}", "${step_2.output.datasource_id}", `{{ step_2.outputs["datasource_id"] }}`, "{{forecast/add_datasource.outputs.datasource_id}}",
		"{{step_2.outputs.result.datasource_id}}", "{{step_2.outputs.main.datasource_id}}",
	} {
		t.Run(spelling, func(t *testing.T) {
			t.Parallel()
			p := newPastTask(t, forecast)
			p.call("step_1", "forecast/check_csv_file", `{"file_path":"{{file_path}}"}`, `{"is_valid":true,"row_count":1000,"message":"ok"}`)
			p.call("step_2", "forecast/add_datasource", `{"project_id":"{{project_id}}","file_path":"{{metadata.file_path}}"}`, `{"datasource_id":"ds_001","message":"added"}`)
			p.call("step_3", "forecast/data_upload", fmt.Sprintf(`{"project_id":"{{trigger.metadata.project_id}}","datasource_id":%s,"note":%s}`,
				mustJSON(t, spelling), mustJSON(t, "of "+spelling+"!")), `{"upload_status":"success","message":"done"}`)
			f, args := p.freeze()
			sameJSON(t, args[0], `{"file_path":"{{file_path}}"}`)
			sameJSON(t, args[1], `{"project_id":"{{project_id}}","file_path":"{{file_path}}"}`)
			sameJSON(t, args[2], `{"project_id":"{{project_id}}","datasource_id":"{{step_2.outputs.result.datasource_id}}","note":"of {{step_2.outputs.result.datasource_id}}!"}`)
			if len(f.Untraced) > 0 {
				t.Errorf("untraced %+v", f.Untraced)
			}
			calls := runFrozen(t, f.Definition, `{"project_id":"proj_9","file_path":"/other.csv"}`, func(i int, _ json.RawMessage) json.RawMessage {
				return json.RawMessage(fmt.Sprintf(`{"datasource_id":"ds_%d"}`, i))
			})
			sameJSON(t, calls[0], `{"file_path":"/other.csv"}`)
			sameJSON(t, calls[1], `{"project_id":"proj_9","file_path":"/other.csv"}`)
			sameJSON(t, calls[2], `{"project_id":"proj_9","datasource_id":"ds_1","note":"of ds_1!"}`)
		})
	}
}

func TestFreeze_MakesAChain(t *testing.T) {
	t.Parallel()
	p := newPastTask(t, forecast)
	p.past.Name = "Load forecast"
	p.call("step_1", "forecast/check", `{"file_path":"{{file_path}}"}`, `{"message":"ok"}`)
	p.call("step_2_2", "other/check", `{}`, `{"message":"ok"}`).Activation = "step_2_2_try_3"
	p.call("step_3", "forecast/check", `{"again":true}`, `{"message":"ok"}`)
	f, _ := p.freeze()
	d := f.Definition
	var got []string
	for _, n := range d.Nodes {
		c := configOf(t, n)
		got = append(got, n.ID+" "+n.Name+" "+n.Kind()+" "+c.ServerID+"/"+c.ToolName)
	}
	want := []string{"start start TRIGGER.MANUAL /", "step_1 check TOOL.MCP_TOOL forecast/check", "step_2 check_2 TOOL.MCP_TOOL other/check", "step_3 check_3 TOOL.MCP_TOOL forecast/check"}
	if !slices.Equal(got, want) {
		t.Errorf("nodes %q", got)
	}
	last := "start"
	for i, c := range d.Connections {
		if c.FromNode != last || c.ToNode != d.Nodes[i+1].ID || c.OutputKey != "result" {
			t.Errorf("connection %+v after %q", c, last)
		}
		last = c.ToNode
	}
	if len(d.Connections) != 3 || d.Metadata.Name != "Load forecast" || !strings.Contains(d.Metadata.Description, "exec_1") || !slices.Equal(d.Triggers, []string{"start"}) || d.Nodes[1].Description != "because" {
		t.Errorf("definition %+v", d)
	}
	sameJSON(t, configOf(t, d.Nodes[0]).InputSchema, `{"type":"object","properties":{"file_path":{"type":"string","description":"used by step_1.file_path"}},"required":["file_path"]}`)
}

// What the model wrote out although it stands in the data is found again, if it can be one thing only.
func TestFreeze_TracesValues(t *testing.T) {
	t.Parallel()
	const request = `{"question":"Tell Ann about order A-17 of 杭州市","metadata":{"city":"杭州市","limit":7,"amount":12.5,"tags":["red","blue"],"one":"twin","two":"twin"}}`
	for name, c := range map[string]struct {
		wrote, want string
		untraced    string // path: reason
	}{
		"AnInput":                 {`"杭州市"`, `"{{city}}"`, ""},
		"AnOutput":                {`"ord_9"`, `"{{step_1.outputs.result.order.id}}"`, ""},
		"ANumber":                 {`12.50`, `"{{amount}}"`, ""},
		"ALargeNumber":            {`4000`, `"{{step_1.outputs.result.total}}"`, ""},
		"AListAsAWhole":           {`["red","blue"]`, `"{{tags}}"`, ""},
		"AnObjectAsAWhole":        {`{"name":"Ann","id":"ord_9"}`, `"{{step_1.outputs.result.order}}"`, ""},
		"AnItem":                  {`"first item"`, `"{{step_1.outputs.result.items[0][\"odd key\"]}}"`, ""},
		"InsideAnObject":          {`{"x":["ord_9",true]}`, `{"x":["{{step_1.outputs.result.order.id}}",true]}`, "v.x[1]: made by the model"},
		"TheQuestion":             {`"Tell Ann about order A-17 of 杭州市"`, `"{{question}}"`, ""},
		"AWordOfTheQuestion":      {`"A-17"`, `"A-17"`, "v: stands in the question"},
		"ANumberOfTheQuestion":    {`17`, `17`, "v: made by the model"},
		"ASmallNumber":            {`7`, `7`, "v: too short to tell whether it is {{limit}}"},
		"AShortText":              {`"ok"`, `"ok"`, "v: too short to tell whether it is {{step_1.outputs.result.state}}"},
		"TwoThings":               {`"twin"`, `"twin"`, "v: may be {{one}} or {{two}}"},
		"SomethingNew":            {`"something new"`, `"something new"`, "v: made by the model"},
		"SomethingWithAThingInIt": {`"see ord_9!"`, `"see ord_9!"`, "v: made by the model; {{step_1.outputs.result.order.id}} is in it"},
		"Nothing":                 {`[null,"",{},[]]`, `[null,"",{},[]]`, ""},
		"False":                   {`false`, `false`, "v: made by the model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPastTask(t, request)
			p.call("step_1", "shop/find", `{"city":"{{city}}"}`, `{"order":{"id":"ord_9","name":"Ann"},"total":4000,"state":"ok","items":[{"odd key":"first item"}],"message":"found"}`)
			last := p.call("step_2", "shop/tell", `{"v":`+c.wrote+`}`, `{"message":"told"}`)
			last.Drafts[0].Template = json.RawMessage(`{"v":` + c.wrote + `}`)
			for _, kept := range []bool{true, false} {
				if !kept { // a template that was too large to keep is done without
					last.Drafts = nil
				}
				f, args := p.freeze()
				sameJSON(t, args[1], `{"v":`+c.want+`}`)
				got := ""
				for _, u := range f.Untraced {
					got += u.Path + ": " + u.Reason
					if u.Step != "step_2" || len(u.Value) == 0 {
						t.Errorf("untraced %+v", u)
					}
				}
				if got != c.untraced {
					t.Errorf("untraced %q, want %q", got, c.untraced)
				}
				calls := runFrozen(t, f.Definition, string(p.past.Initial), func(i int, _ json.RawMessage) json.RawMessage { return p.past.Calls[i].Result })
				sameJSON(t, calls[1], string(last.Arguments))
			}
		})
	}
}

func TestFreeze_PrefersTheSameNameAndTheLatest(t *testing.T) {
	t.Parallel()
	p := newPastTask(t, `{"question":"q","params":{"file_path":"/data/load.csv","other":"/data/load.csv"}}`)
	p.call("step_1", "s/a", `{"file_path":"/data/load.csv"}`, `{"file_path":"/data/load.csv","rows":1000,"message":"m1"}`)
	p.call("step_2", "s/b", `{"file_path":"/data/load.csv","count":1000}`, `{"rows":1000,"deep":{"rows":1000},"message":"m2"}`)
	p.call("step_3", "s/c", `{"path":"/data/load.csv","count":1000}`, `{"message":"m3"}`)
	f, args := p.freeze()
	sameJSON(t, args[0], `{"file_path":"{{file_path}}"}`)
	sameJSON(t, args[1], `{"file_path":"{{step_1.outputs.result.file_path}}","count":"{{step_1.outputs.result.rows}}"}`)
	sameJSON(t, args[2], `{"path":"/data/load.csv","count":"{{step_2.outputs.result.rows}}"}`)
	if len(f.Untraced) != 1 || f.Untraced[0].Path != "path" || !strings.HasPrefix(f.Untraced[0].Reason, "may be {{file_path}}") {
		t.Errorf("untraced %+v", f.Untraced)
	}
}

// Inputs may be called like what a run or a tool says by itself.
func TestFreeze_TellsNamesApart(t *testing.T) {
	t.Parallel()
	p := newPastTask(t, `{"question":"q","metadata":{"user_id":"user-9","result":"the result","success":"surely","step_1":{"x":"of the input"},"a b":"spaced","box":{"output":"of the box"}}}`)
	p.call("step_1", "s/a", `{"u":"{{metadata.user_id}}","r":"{{result}}","s":"surely","p":"spaced"}`, `{"x":"of the tool","message":"m"}`)
	p.call("step_2", "s/b", `{"u":"user-9","r":"{{result}}","s":"{{success}}","x":"of the input","y":"{{step_1.outputs.x}}","o":"of the box"}`, `{"message":"m"}`)
	f, args := p.freeze()
	sameJSON(t, args[0], `{"u":"{{trigger.user_id}}","r":"{{result}}","s":"{{success}}","p":"{{[\"a b\"]}}"}`)
	sameJSON(t, args[1], `{"u":"{{trigger.user_id}}","r":"{{trigger.result}}","s":"{{trigger.success}}","x":"{{trigger.step_1.x}}","y":"{{step_1.outputs.result.x}}","o":"{{trigger.box.output}}"}`)
	calls := runFrozen(t, f.Definition, `{"user_id":"U","result":"R","success":"S","step_1":{"x":"X"},"a b":"P","box":{"output":"O"}}`, func(int, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"x":"T"}`)
	})
	sameJSON(t, calls[0], `{"u":"U","r":"R","s":"S","p":"P"}`)
	sameJSON(t, calls[1], `{"u":"U","r":"R","s":"S","x":"X","y":"T","o":"O"}`)
}

func TestFreeze_ListsWhatPeopleGave(t *testing.T) {
	t.Parallel()
	p := newPastTask(t, `{"question":"book","metadata":{"city":"Hangzhou"}}`)
	first, _ := p.draft(`{"city":"{{city}}","day":"tomorrow"}`)
	call := p.call("step_1", "s/book", `{"city":"Hangzhou","day":"2026-01-05","seat":"12A","note":"by the window"}`, `{"booking":"bk_77","message":"m"}`)
	call.Drafts[0].Filled = true
	call.Drafts = append(call.Drafts, first)
	call.Given = []json.RawMessage{json.RawMessage(`{"content":{"day":"2026-01-05","city":"Hangzhou"},"description":"seat 12A please"}`)}
	p.call("step_2", "s/mail", `{"day":"2026-01-05","booking":"{{step_1.booking}}"}`, `{"message":"m"}`)
	f, args := p.freeze()
	// The placeholder of the first draft yields the same, so it is what the city is.
	sameJSON(t, args[0], `{"city":"{{city}}","day":"2026-01-05","seat":"12A","note":"by the window"}`)
	sameJSON(t, args[1], `{"day":"2026-01-05","booking":"{{step_1.outputs.result.booking}}"}`)
	var got []string
	for _, u := range f.Untraced {
		got = append(got, u.Step+" "+u.Path+": "+u.Reason)
	}
	want := []string{
		"step_1 day: came from a person's answer", "step_1 seat: stands in a person's answer", "step_1 note: made by the model when parameters were missing",
		"step_2 day: came from a person's answer",
	}
	if !slices.Equal(got, want) {
		t.Errorf("untraced %q", got)
	}
}

// A later call of a step counts as the step, and a step that was repaired has a name of its own.
func TestFreeze_FollowsRepairedSteps(t *testing.T) {
	t.Parallel()
	p := newPastTask(t, `{"question":"q"}`)
	p.call("step_1_try_2", "s/a", `{}`, `{"id":"id-1","message":"m"}`).Step = "step_1"
	p.call("step_2_2", "s/b", `{"id":"{{step_1_try_2.outputs.id}}"}`, `{"id":"id-2","message":"m"}`)
	p.call("step_3", "s/c", `{"a":"{{step_2_2.id}}","b":"{{id}}"}`, `{"message":"m"}`)
	_, args := p.freeze()
	sameJSON(t, args[1], `{"id":"{{step_1.outputs.result.id}}"}`)
	sameJSON(t, args[2], `{"a":"{{step_2.outputs.result.id}}","b":"{{step_2.outputs.result.id}}"}`)
}

// What looks like a placeholder and was not one stays text.
func TestFreeze_EscapesBraces(t *testing.T) {
	t.Parallel()
	p := newPastTask(t, `{"question":"q","metadata":{"city":"Hangzhou"}}`)
	c := p.call("step_1", "s/a", `{}`, `{"message":"m"}`)
	c.Arguments, c.Drafts = json.RawMessage(`{"v":"a {{city}} \\{{city}} \\\\${x} {{{y ${"}`), nil
	f, args := p.freeze()
	sameJSON(t, args[0], `{"v":"a \\{{city}} \\\\\\{{city}} \\\\\\\\\\${x} \\{{{y \\${"}`)
	if len(f.Untraced) != 1 {
		t.Errorf("untraced %+v", f.Untraced)
	}
	calls := runFrozen(t, f.Definition, `{}`, func(int, json.RawMessage) json.RawMessage { return json.RawMessage("{}") })
	sameJSON(t, calls[0], string(c.Arguments))
}

func TestFreeze_RefusesATaskThatCalledNothing(t *testing.T) {
	t.Parallel()
	if _, err := agent.Freeze(newPastTask(t, `{"question":"hello"}`).past); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("%v", err)
	}
}

// Whatever the arguments were, the workflow gives the tools the same when everything else is the same.
func TestFreeze_RunsTheSameAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.OneOf(
			rapid.SampledFrom([]string{"", "x", "杭州", "{{a}}", `\{{`, `\\{{a}}`, "${a}", "{{", "a {{{b}}} c", "$", "{", `\`, "ds_001", "result", "user_id"}),
			rapid.StringOfN(rapid.SampledFrom([]rune(`{}$\ab. "[`)), 0, 8, -1),
		)
		var anyValue func(depth int) *rapid.Generator[any]
		anyValue = func(depth int) *rapid.Generator[any] {
			scalars := []*rapid.Generator[any]{
				text.AsAny(), rapid.IntRange(-2000, 2000).AsAny(), rapid.Bool().AsAny(), rapid.SampledFrom([]any{nil, 12.5, 1e20}),
			}
			if depth == 0 {
				return rapid.OneOf(scalars...)
			}
			return rapid.OneOf(append(scalars, rapid.MapOfN(text, anyValue(depth-1), 0, 3).AsAny(), rapid.SliceOfN(anyValue(depth-1), 0, 3).AsAny())...)
		}
		object := rapid.MapOfN(text, anyValue(2), 0, 4)
		past := agent.Past{Execution: "e", Workflow: "agent:x", Question: text.Draw(r, "question"), Initial: mustJSON(t, object.Draw(r, "initial"))}
		for i := range rapid.IntRange(1, 4).Draw(r, "calls") {
			id := fmt.Sprintf("step_%d", i+1)
			past.Calls = append(past.Calls, agent.PastCall{
				Step: id, Activation: id, Tool: "s/tool", Arguments: mustJSON(t, object.Draw(r, "arguments")), Result: mustJSON(t, object.Draw(r, "result")),
			})
		}
		f, err := agent.Freeze(past)
		if err != nil {
			r.Fatal(err)
		}
		calls := runFrozen(t, f.Definition, string(past.Initial), func(i int, _ json.RawMessage) json.RawMessage { return past.Calls[i].Result })
		for i := range calls {
			var got, want any
			if json.Unmarshal(calls[i], &got) != nil || json.Unmarshal(past.Calls[i].Arguments, &want) != nil || !cmp.Equal(got, want) {
				r.Fatalf("call %d: got %s, want %s; %s", i, calls[i], past.Calls[i].Arguments, f.Definition.Nodes[i+1].Configurations)
			}
		}
	})
}
