package dataflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/dataflow"
	"tandem/fault"
)

// forecast is the load forecast: initial metadata, then the steps up to and including n.
func forecast(t *testing.T, n int) *dataflow.Layers {
	t.Helper()
	l := newLayers(t, dataflow.Start{ExecutionID: "exec_1", WorkflowID: "wf_1", PlanID: "plan_1",
		Initial: json.RawMessage(`{"project_id":"proj_001","file_path":"/data/load.csv"}`)})
	steps := []dataflow.Step{
		{NodeID: "step_1", NodeName: "check_csv_file", Output: payload(`{"is_valid":true,"row_count":1000}`)},
		{NodeID: "step_2", NodeName: "add_datasource", Output: payload(`{"datasource_id":"ds_001","datasource_name":"my_datasource"}`)},
		{NodeID: "step_3", NodeName: "data_upload", Output: payload(`{"upload_status":"success","record_count":1000}`)},
		{NodeID: "step_4", NodeName: "get_data", Output: payload(`{"data_json":"[1,2]","record_count":1001}`), OutputParams: []string{"data_json"}},
	}
	for i, s := range steps[:n] {
		s.Seq = uint64(i + 2)
		sync(t, l, s)
	}
	return l
}

func TestResolve_Forecast(t *testing.T) {
	t.Parallel()
	tests := []struct {
		done        int
		given, want string
	}{
		{0, `{"file_path":"{{file_path}}"}`, `{"file_path":"/data/load.csv"}`},
		{1, `{"project_id":"{{project_id}}","file_path":"{{file_path}}"}`, `{"project_id":"proj_001","file_path":"/data/load.csv"}`},
		{2, `{"project_id":"{{project_id}}","datasource_id":"{{step_2.outputs.datasource_id}}"}`, `{"project_id":"proj_001","datasource_id":"ds_001"}`},
		{3, `{"datasource_id":"{{datasource_id}}"}`, `{"datasource_id":"ds_001"}`},
		// The five spellings of one value, and the same by the node's name, in every bracket style.
		{4, `["{{step_2.outputs.datasource_id}}","{{step_2.output.datasource_id}}","{{{step_2.outputs.datasource_id}}}","{{datasource_id}}","{{step_2_datasource_id}}"]`,
			`["ds_001","ds_001","ds_001","ds_001","ds_001"]`},
		{4, `["${step_2.output.datasource_id}","${step_2.outputs.datasource_id}","${step_2.datasource_id}","{{step_2.datasource_id}}","{{{step_2.datasource_id}}}","${datasource_id}","{{{datasource_id}}}"]`,
			`["ds_001","ds_001","ds_001","ds_001","ds_001","ds_001","ds_001"]`},
		{4, `["{{add_datasource.outputs.datasource_id}}","${add_datasource.datasource_id}","{{{ add_datasource.output.datasource_id }}}"]`, `["ds_001","ds_001","ds_001"]`},
		// record_count of step 4 is not among its output_params, so the bare name is still step 3's.
		{4, `["{{record_count}}","{{step_4.record_count}}","{{step_4.outputs.record_count}}","{{data_json}}"]`, `[1000,1001,1001,"[1,2]"]`},
	}
	for _, tt := range tests {
		t.Run(tt.given, func(t *testing.T) {
			t.Parallel()
			if got := resolve(t, forecast(t, tt.done), tt.given, asOf(100)); got != tt.want {
				t.Fatalf("got %s; want %s", got, tt.want)
			}
		})
	}
}

func shapes(t *testing.T) *dataflow.Layers {
	t.Helper()
	l := newLayers(t, dataflow.Start{ExecutionID: "exec_1", WorkflowID: "wf_1", Env: map[string]string{"REGION": "eu", "QUOTE": `a"b`},
		Initial: json.RawMessage(`{"s":"text","q":"say \"hi\"\n\u00e9","n":1.50,"big":123456789012345678901234567890,"t":true,"z":null,
			"o":{"b": 1, "a": [1, 2]},"l":[1,{"x":"y\"z"}],"ascii":{"\u540d":"\u5f20\u003cb\u003e"},"evil":"{{s}} ${n} {{{t}}}","empty":"","user":{"id":7,"name":"Li"},"execution":"mine","order":{"output":{"x":1}}}`),
		Trigger: json.RawMessage(`{"body":{"city":"杭州","items":[{"id":"i0"},{"id":"i1"}]},"method":"POST"}`)})
	sync(t, l, dataflow.Step{Seq: 2, NodeID: "fetch", NodeName: "Fetch", ToolID: "HTTP.GET", Output: payload(
		`{"result":{"data":{"model_id":"model_123"}},"items":[{"id":"a"},{"id":"b"}],"odd key":{"0":"zero"},"big":[1,2,3]}`)})
	sync(t, l, dataflow.Step{Seq: 3, NodeID: "switch", Output: map[string]json.RawMessage{
		"left": json.RawMessage(`{"x":1}`), "right": json.RawMessage(`{"x":2}`)}})
	sync(t, l, dataflow.Step{Seq: 4, NodeID: "if", Output: map[string]json.RawMessage{"true": json.RawMessage(`{"v":5}`)}})
	sync(t, l, dataflow.Step{Seq: 5, NodeID: "plain", Output: payload(`"just text"`)})
	sync(t, l, dataflow.Step{Seq: 6, NodeID: "list", Output: payload(`[{"k":"first"},{"k":"second"}]`)})
	sync(t, l, dataflow.Step{Seq: 7, NodeID: "nothing"})
	sync(t, l, dataflow.Step{Seq: 8, NodeID: "hidden", OutputParams: []string{"shown"}, Output: payload(`{"shown":1,"only_here":"found"}`)})
	return l
}

func TestResolve(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	tests := []struct{ name, given, want string }{
		{"KeepsTypes", `["{{s}}","{{n}}","{{big}}","{{t}}","{{z}}","{{o}}","{{l}}"]`, `["text",1.50,[1,2,3],true,null,{"b":1,"a":[1,2]},[1,{"x":"y\"z"}]]`},
		{"KeepsDigits", `{"a":1.50,"b":123456789012345678901234567890,"c":1e400,"d":-0,"e":"{{n}}"}`, `{"a":1.50,"b":123456789012345678901234567890,"c":1e400,"d":-0,"e":1.50}`},
		{"KeepsKeyOrder", `{"z":"{{s}}","a":1,"m":{"y":2,"b":"{{n}}"}}`, `{"z":"text","a":1,"m":{"y":2,"b":1.50}}`},
		{"LeavesKeysAlone", `{"{{s}}":"{{s}}"}`, `{"{{s}}":"text"}`},
		{"PutsStringsRaw", `"<{{q}}>"`, `"<say \"hi\"\n\u00e9>"`},
		{"PutsCompactJSON", `"o={{o}} l={{l}} n={{n}} t={{t}} z={{z}} e=[{{empty}}]"`, `"o={\"b\":1,\"a\":[1,2]} l=[1,{\"x\":\"y\\\"z\"}] n=1.50 t=true z=null e=[]"`},
		{"PutsReadableJSON", `"<{{ascii}}>"`, `"<{\"名\":\"张<b>\"}>"`},
		{"NeedsTheWholeString", `[" {{n}}","{{n}} ","{{n}}{{n}}"]`, `[" 1.50","1.50 ","1.501.50"]`},
		{"NeverResolvesAgain", `["{{evil}}","<{{evil}}>"]`, `["{{s}} ${n} {{{t}}}","<{{s}} ${n} {{{t}}}>"]`},
		{"Escapes", `["\\{{s}}","\\${s}","\\\\{{s}}","a\\b {{s}}","\\{{{s}}}","C:\\dir"]`, `["{{s}}","${s}","\\text","a\\b text","{{{s}}}","C:\\dir"]`},
		{"LeavesOpenBracketsAlone", `["{{s","${s","x {{ y {{s}}"]`, `["{{s","${s","x {{ y text"]`},
		{"DeepPaths", `["{{fetch.outputs.result.data.model_id}}","{{fetch.outputs.items.0.id}}","{{fetch.items[1].id}}","{{fetch.outputs[\"odd key\"]['0']}}","{{o.a[1]}}","{{l[1].x}}","{{l.0}}"]`,
			`["model_123","a","b","zero",2,"y\"z",1]`},
		{"WholeOutputs", `["{{plain.outputs}}","{{list.output[1].k}}","{{if.outputs.v}}","{{switch.outputs}}","{{nothing.outputs}}"]`,
			`["just text","second",5,{"left":{"x":1},"right":{"x":2}},null]`},
		{"OutputKeys", `["{{switch.outputs.left.x}}","{{switch.outputs.right}}","{{if.outputs.true.v}}","{{fetch.outputs.main.items[0].id}}","{{plain.outputs.result}}"]`,
			`[1,{"x":2},5,"a","just text"]`},
		{"FieldBeforeOutputKey", `"{{fetch.outputs.result.data}}"`, `{"model_id":"model_123"}`},
		{"Dotted", `["{{user.id}}","{{user.name}}","{{fetch.big}}","{{fetch_big}}"]`, `[7,"Li",[1,2,3],[1,2,3]]`},
		{"BareNodeAndBareField", `["{{plain}}","{{only_here}}","{{hidden}}"]`, `["just text","found",{"shown":1,"only_here":"found"}]`},
		{"About", `["{{execution.id}}","{{workflow.id}}","{{execution}}","{{trigger.body.items[1].id}}","{{trigger.body.city}}","{{env.REGION}}","<{{env.QUOTE}}>"]`,
			`["exec_1","wf_1","mine","i1","杭州","eu","<a\"b>"]`},
		{"WhiteSpace", ` { "a" : [ "{{ s }}" , 1 ] } `, `{"a":["text",1]}`},
		{"LastOfEqualKeys", `{"a":"{{s}}","b":1,"a":"{{n}}"}`, `{"a":1.50,"b":1}`},
		{"NoPlaceholder", `{"a": "x", "b": "\u00e9"}`, `{"a":"x","b":"\u00e9"}`},
		{"NoParameters", ``, `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := resolve(t, l, tt.given, asOf(100))
			if got != tt.want {
				t.Fatalf("got  %s\nwant %s", got, tt.want)
			}
			if !json.Valid([]byte(got)) {
				t.Fatalf("%s is not valid JSON", got)
			}
		})
	}
}

func TestResolve_OwnInputFirst(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	r := asOf(100)
	r.Own = json.RawMessage(`{"s":"own","fetch":{"big":"own big"},"env":{"REGION":"own"},"job":{"output":{"x":"own output"}}}`)
	got := resolve(t, l, `["{{s}}","{{n}}","{{fetch.big}}","{{fetch.outputs.big}}","{{env.REGION}}","{{job.output.x}}","{{o.b}}"]`, r)
	if want := `["own",1.50,"own big",[1,2,3],"own","own output",1]`; got != want {
		t.Fatalf("got %s; want %s", got, want)
	}
	r.Own = json.RawMessage(`{"broken`)
	if e := resolveErr(t, l, `"{{s}}"`, r); e.Code != fault.InvalidInput {
		t.Fatalf("got %v", e)
	}
	r.Own = json.RawMessage(`[1]`)
	if got := resolve(t, l, `"{{s}}"`, r); got != `"text"` {
		t.Fatalf("got %s", got)
	}
}

func TestResolve_Unresolved(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	tests := []struct{ name, given, path, placeholder, nearest, available string }{
		{"Field", `{"a":{"b":["{{fetch.outputs.itemz[0].id}}"]}}`, "a.b[0]", "{{fetch.outputs.itemz[0].id}}", "fetch.outputs.items[0].id", "items"},
		{"DeepField", `{"a":"{{fetch.outputs.result.data.modelid}}"}`, "a", "{{fetch.outputs.result.data.modelid}}", "fetch.outputs.result.data.model_id", "model_id"},
		{"Node", `{"a":"{{fetsh.outputs.items}}"}`, "a", "{{fetsh.outputs.items}}", "fetch.outputs.items", "fetch"},
		{"OutputsReadOnlySteps", `{"a":"{{order.output.x}}"}`, "a", "{{order.output.x}}", "", "switch"},
		{"Bare", `{"a":"{{usr}}"}`, "a", "{{usr}}", "user", "user"},
		{"Joined", `{"a":"{{fetch_bigg}}"}`, "a", "{{fetch_bigg}}", "fetch_big", "fetch_big"},
		{"MetadataField", `{"a":"{{user.nam}}"}`, "a", "{{user.nam}}", "user.name", "id"},
		{"ListIndex", `{"a":"{{l[7]}}"}`, "a", "{{l[7]}}", "l.0", "1"},
		{"Env", `{"a":"{{env.PATH}}"}`, "a", "{{env.PATH}}", "", "REGION"},
		{"EnvMisspelt", `{"a":"{{envi.REGION}}"}`, "a", "{{envi.REGION}}", "env.REGION", "env"},
		{"IntoScalar", `{"a":"{{s.x}}"}`, "a", "{{s.x}}", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := resolveErr(t, l, tt.given, asOf(100))
			if e.Code != fault.UnresolvedPlaceholder || e.Retryable {
				t.Fatalf("got %v", e)
			}
			if e.Details["path"] != tt.path || e.Details["placeholder"] != tt.placeholder {
				t.Fatalf("details %v", e.Details)
			}
			if near, _ := e.Details["nearest"].(string); near != tt.nearest {
				t.Fatalf("nearest %q; want %q (%s)", near, tt.nearest, e.Message)
			}
			names, _ := e.Details["available"].([]string)
			if tt.available != "" && !strings.Contains(strings.Join(names, " "), tt.available) {
				t.Fatalf("available %v; want %q among them", names, tt.available)
			}
			if len(names) > 30 {
				t.Fatalf("%d names are listed", len(names))
			}
		})
	}
	t.Run("ListsAll", func(t *testing.T) {
		t.Parallel()
		e := resolveErr(t, l, `["{{no_a}}","{{s}}","{{no_b}} {{no_c}}"]`, asOf(100))
		all, _ := e.Details["unresolved"].([]map[string]any)
		if len(all) != 3 || all[2]["placeholder"] != "{{no_c}}" || all[2]["path"] != "[2]" {
			t.Fatalf("got %v", e.Details)
		}
	})
	t.Run("NamesTheRemedyForNoPath", func(t *testing.T) {
		t.Parallel()
		e := resolveErr(t, l, `"{{a | upper}}"`, asOf(100))
		if !strings.Contains(e.Message, "backslash") {
			t.Fatalf("got %v", e)
		}
	})
	t.Run("BoundsTheList", func(t *testing.T) {
		t.Parallel()
		fields := map[string]int{}
		for i := range 5000 {
			fields["field_"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+json.Number(strings.Repeat("1", i%7)).String()+"_"+string(rune('A'+i%20))] = i
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		many := newLayers(t, dataflow.Start{Initial: raw})
		e := resolveErr(t, many, `"{{nope}}"`, asOf(1))
		if names, _ := e.Details["available"].([]string); len(names) != 30 || len(e.Message) > 5000 {
			t.Fatalf("%d names, message of %d bytes", len(names), len(e.Message))
		}
	})
	t.Run("NoValuesInTheMessage", func(t *testing.T) {
		t.Parallel()
		secret := newLayers(t, dataflow.Start{Initial: json.RawMessage(`{"token_name":"canary-5f2"}`)})
		raw, err := json.Marshal(resolveErr(t, secret, `"{{token_nam}}"`, asOf(1)))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "canary") {
			t.Fatalf("a value shows in %s", raw)
		}
	})
}

func TestResolve_OnUnresolved(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	const given = `{"whole":"{{nope}}","text":"<{{nope.x}}> {{s}}","bad":"{{a b}}"}`
	tests := []struct {
		mode     dataflow.Unresolved
		want     string
		warnings int
	}{
		{dataflow.UnresolvedKeep, `{"whole":"{{nope}}","text":"<{{nope.x}}> text","bad":"{{a b}}"}`, 0},
		{dataflow.UnresolvedNull, `{"whole":null,"text":"<null> text","bad":null}`, 3},
		{dataflow.UnresolvedWarn, `{"whole":"{{nope}}","text":"<{{nope.x}}> text","bad":"{{a b}}"}`, 3},
	}
	for _, tt := range tests {
		t.Run(string(tt.mode), func(t *testing.T) {
			t.Parallel()
			tmpl, err := dataflow.Compile(json.RawMessage(given))
			if err != nil {
				t.Fatal(err)
			}
			r := asOf(100)
			r.StepID, r.OnUnresolved = "step_9", tt.mode
			got, trace, err := tmpl.Resolve(l, r)
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %s, error %v; want %s", got, err, tt.want)
			}
			if trace.StepID != "step_9" || string(trace.Original) != given || string(trace.Resolved) != tt.want || len(trace.Warnings) != tt.warnings {
				t.Fatalf("trace %+v", trace)
			}
			for _, w := range trace.Warnings {
				if w.Path == "" || w.Placeholder == "" || w.Message == "" {
					t.Fatalf("warning %+v", w)
				}
			}
		})
	}
	t.Run("Settings", func(t *testing.T) {
		t.Parallel()
		for setting, want := range map[string]dataflow.Unresolved{"": dataflow.UnresolvedError, "error": dataflow.UnresolvedError, "keep": dataflow.UnresolvedKeep, "null": dataflow.UnresolvedNull} {
			if got, err := dataflow.ParseUnresolved(setting); err != nil || got != want {
				t.Errorf("%q: got %q, %v", setting, got, err)
			}
		}
		if _, err := dataflow.ParseUnresolved("warn"); fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("got %v", err)
		}
	})
}

func TestResolve_Limits(t *testing.T) {
	t.Parallel()
	big, err := json.Marshal(map[string]string{"big": strings.Repeat("x", 1<<20)})
	if err != nil {
		t.Fatal(err)
	}
	l := newLayers(t, dataflow.Start{Initial: big})
	e := resolveErr(t, l, `{"a":"`+strings.Repeat("{{big}}", 11)+`"}`, asOf(1))
	if e.Code != fault.TooLarge || e.Details["path"] != "a" {
		t.Fatalf("got %v", e)
	}
	if _, _, err := mustCompile(t, `"{{x}}"`).Resolve(l, in("nowhere[0]", 1)); fault.CodeOf(err) != fault.Internal {
		t.Fatalf("got %v", err)
	}
}

func mustCompile(t *testing.T, raw string, shielded ...string) *dataflow.Template {
	t.Helper()
	tmpl, err := dataflow.Compile(json.RawMessage(raw), shielded...)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestCompile_Shielded(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	tmpl := mustCompile(t, `{"code":"{{s}} \\{{","deep":{"a":["{{s}}"]},"rules":[{"when":"{{s}}","say":"{{s}}"}],"say":"{{s}}"}`, "code", "deep", "rules[*].when")
	got, _, err := tmpl.Resolve(l, asOf(100))
	if want := `{"code":"{{s}} \\{{","deep":{"a":["{{s}}"]},"rules":[{"when":"{{s}}","say":"text"}],"say":"text"}`; err != nil || string(got) != want {
		t.Fatalf("got %s, %v", got, err)
	}
	if _, err := dataflow.Compile(nil, "a..b"); fault.CodeOf(err) != fault.Internal {
		t.Fatalf("got %v", err)
	}
	if !mustCompile(t, `{"a":1}`).Static() || mustCompile(t, `{"a":"{{s}}"}`).Static() {
		t.Fatal("Static is wrong")
	}
}

func TestResolveText(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	for text, want := range map[string]string{
		"":                          "",
		"plain \"text\" \\ \n":      "plain \"text\" \\ \n",
		"{{q}}":                     "say \"hi\"\né",
		"{{o}}":                     `{"b":1,"a":[1,2]}`,
		"<{{o}} {{q}} {{z}} {{n}}>": "<{\"b\":1,\"a\":[1,2]} say \"hi\"\né null 1.50>",
		"{{nope}} \\{{s}}":          "{{nope}} {{s}}",
	} {
		tmpl, err := dataflow.CompileText(text)
		if err != nil {
			t.Fatal(err)
		}
		r := asOf(100)
		r.OnUnresolved = dataflow.UnresolvedWarn
		got, _, err := tmpl.ResolveText(l, r)
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	tmpl, err := dataflow.CompileText(`a = {{q}} AND b IN (${o.a}) OR \{{x}}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tmpl.Bind(l, asOf(100))
	if err != nil {
		t.Fatal(err)
	}
	want := dataflow.Bound{Text: []string{"a = ", " AND b IN (", ") OR {{x}}"},
		Values: []json.RawMessage{json.RawMessage(`"say \"hi\"\n\u00e9"`), json.RawMessage(`[1,2]`)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if tmpl, err = dataflow.CompileText(`a = {{nope}}`); err != nil {
		t.Fatal(err)
	}
	r := asOf(100)
	r.OnUnresolved = dataflow.UnresolvedKeep
	if _, err := tmpl.Bind(l, r); fault.CodeOf(err) != fault.UnresolvedPlaceholder {
		t.Fatalf("got %v", err)
	}
	r.OnUnresolved = dataflow.UnresolvedNull
	if b, err := tmpl.Bind(l, r); err != nil || string(b.Values[0]) != "null" {
		t.Fatalf("got %v, %v", b, err)
	}
	if _, err := mustCompile(t, `{}`).Bind(l, r); fault.CodeOf(err) != fault.Internal {
		t.Fatalf("got %v", err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{`{"a":"{{x.outputs.y}} ${z} \\{{"}`, `"{{{a}}}"`, `["{{a[\"k\"]}}",1.50]`, `"{{trigger.body}}{{item}}"`, `{"a":{"a":"{{"}}`, `"${{a}}"`, `"{{a b}}"`} {
		f.Add(seed, `{"a":{"k":"{{x}}"},"z":[1,"\ud800"]}`)
	}
	f.Fuzz(func(t *testing.T, raw, data string) {
		l, err := dataflow.New(dataflow.Start{Initial: json.RawMessage(data), Trigger: json.RawMessage(data)})
		if err != nil {
			if fault.CodeOf(err) != fault.InvalidInput {
				t.Fatalf("initial metadata: %v", err)
			}
			l = newLayers(t, dataflow.Start{})
		}
		out := payload(data)
		if dataflow.CheckOutput(out) == nil {
			sync(t, l, dataflow.Step{Seq: 1, NodeID: "x", NodeName: "a", Output: out})
		}
		for _, mode := range []dataflow.Unresolved{dataflow.UnresolvedError, dataflow.UnresolvedKeep, dataflow.UnresolvedNull, dataflow.UnresolvedWarn} {
			r := asOf(5)
			r.OnUnresolved, r.Own = mode, json.RawMessage(data)
			if tmpl, err := dataflow.Compile(json.RawMessage(raw)); err == nil {
				got, _, err := tmpl.Resolve(l, r)
				switch {
				case err != nil:
					if fault.CodeOf(err) == fault.Internal {
						t.Fatalf("%v", err)
					}
				case !json.Valid(got):
					t.Fatalf("%q resolved to %q, which is not valid JSON", raw, got)
				case !strings.ContainsAny(raw, `\`) && len(tmpl.References()) == 0 && raw != "":
					var before, after any
					if json.Unmarshal([]byte(raw), &before) == nil && (json.Unmarshal(got, &after) != nil || !cmp.Equal(before, after)) {
						t.Fatalf("%q has no placeholder and became %q", raw, got)
					}
				}
				if _, err := tmpl.Lineage(l, r); err != nil && fault.CodeOf(err) == fault.Internal {
					t.Fatal(err)
				}
			} else if fault.CodeOf(err) == fault.Internal {
				t.Fatalf("compile: %v", err)
			}
			text, err := dataflow.CompileText(raw)
			if err != nil {
				continue
			}
			got, _, err := text.ResolveText(l, r)
			if err == nil && !strings.Contains(raw, "{{") && !strings.Contains(raw, "${") && got != raw {
				t.Fatalf("text %q became %q", raw, got)
			}
		}
	})
}

// What nothing answers to stays as written where a model reads it, with a warning, and is an error everywhere else.
func TestCompileMarked_Prompts(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	raw := json.RawMessage(`{"prompt":"Hi {{nope}}, {{s}} ${user.nme} {{{a b}}}","messages":[{"role":"user","content":"{{nobody}}"},"${gone}"],"url":"{{s}}"}`)
	tmpl, err := dataflow.CompileMarked(raw, dataflow.Marks{Prompts: []string{"prompt", "messages"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []dataflow.Unresolved{"", dataflow.UnresolvedError, dataflow.UnresolvedKeep} {
		r := asOf(100)
		r.OnUnresolved = mode
		got, trace, err := tmpl.Resolve(l, r)
		want := `{"prompt":"Hi {{nope}}, text ${user.nme} {{{a b}}}","messages":[{"role":"user","content":"{{nobody}}"},"${gone}"],"url":"text"}`
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", mode, got, err, want)
		}
		var paths []string
		for _, w := range trace.Warnings {
			paths = append(paths, w.Path+" "+w.Placeholder)
			if !strings.Contains(w.Message, "stays as written") {
				t.Errorf("warning %q", w.Message)
			}
		}
		if got := fmt.Sprint(paths); got != "[prompt {{nope}} prompt ${user.nme} prompt {{{a b}}} messages[0].content {{nobody}} messages[1] ${gone}]" {
			t.Errorf("%q: warnings %s", mode, got)
		}
	}
	r := asOf(100)
	r.OnUnresolved = dataflow.UnresolvedNull
	if got, _, err := tmpl.Resolve(l, r); err != nil || !strings.Contains(string(got), `"Hi null, text null null"`) {
		t.Errorf("null: %s, %v", got, err)
	}
	tmpl, err = dataflow.CompileMarked(json.RawMessage(`{"prompt":"{{nope}}","url":"{{nope}}"}`), dataflow.Marks{Prompts: []string{"prompt"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tmpl.Resolve(l, asOf(100)); fault.CodeOf(err) != fault.UnresolvedPlaceholder || !strings.Contains(err.Error(), "url") {
		t.Errorf("outside of the prompt: %v", err)
	}
}
