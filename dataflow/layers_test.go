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

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestSync(t *testing.T) {
	t.Parallel()
	t.Run("WritesTwoNamesPerField", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		trace := sync(t, l, dataflow.Step{Seq: 2, NodeID: "a", Output: payload(`{"x":1,"y":{"z":2}}`)})
		want := dataflow.SyncTrace{StepID: "a", Synced: []string{"x", "y"}, Count: 2}
		if diff := cmp.Diff(want, trace); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if got := resolve(t, l, `["{{x}}","{{a_x}}","{{y.z}}","{{a_y.z}}"]`, asOf(2)); got != `[1,1,2,2]` {
			t.Fatalf("got %s", got)
		}
	})
	t.Run("OutputParamsThenDeclaredThenAll", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		one := sync(t, l, dataflow.Step{Seq: 2, NodeID: "a", Output: payload(`{"x":1,"y":2,"z":3}`), OutputParams: []string{"y", "gone", "y"}, DeclaredOutputs: []string{"z"}})
		two := sync(t, l, dataflow.Step{Seq: 3, NodeID: "b", Output: payload(`{"x":1,"y":2,"z":3}`), DeclaredOutputs: []string{"z"}})
		if diff := cmp.Diff([]any{[]string{"y"}, []string{"gone"}, []string{"z"}}, []any{one.Synced, one.Missing, two.Synced}); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		ctx, err := l.Context(dataflow.View{AsOf: 9})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]json.RawMessage{"y": raw("2"), "a_y": raw("2"), "z": raw("3"), "b_z": raw("3")}, ctx.RuntimeMetadata); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
	t.Run("LastSuccessWinsAndIsTold", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		sync(t, l, dataflow.Step{Seq: 2, NodeID: "a", Output: payload(`{"x":1}`)})
		trace := sync(t, l, dataflow.Step{Seq: 3, NodeID: "b", Output: payload(`{"x":2}`)})
		if diff := cmp.Diff([]dataflow.Overwrite{{Name: "x", Node: "a", Seq: 2}}, trace.Overwritten); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		trace = sync(t, l, dataflow.Step{Seq: 4, NodeID: "a", Output: payload(`{"x":3}`)}) // a retry or repair that succeeded
		if diff := cmp.Diff([]dataflow.Overwrite{{Name: "x", Node: "b", Seq: 3}, {Name: "a_x", Node: "a", Seq: 2}}, trace.Overwritten); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if got := resolve(t, l, `["{{x}}","{{a_x}}","{{b_x}}"]`, asOf(4)); got != `[3,3,2]` {
			t.Fatalf("got %s", got)
		}
	})
	t.Run("OnlyObjects", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		for i, out := range []string{`[1]`, `"x"`, `null`, `3`} {
			if trace := sync(t, l, dataflow.Step{Seq: uint64(i), NodeID: "a", Output: payload(out), OutputParams: []string{"x"}}); trace.Count != 0 || trace.Missing != nil {
				t.Fatalf("%s: %+v", out, trace)
			}
		}
	})
	t.Run("SyncsTheOnlyKeyOrAllKeys", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		sync(t, l, dataflow.Step{Seq: 1, NodeID: "if", Output: map[string]json.RawMessage{"true": raw(`{"v":1}`)}})
		sync(t, l, dataflow.Step{Seq: 2, NodeID: "sw", Output: map[string]json.RawMessage{"l": raw(`{"w":1}`), "r": raw(`2`)}})
		sync(t, l, dataflow.Step{Seq: 3, NodeID: "hil", Output: map[string]json.RawMessage{"confirmed": raw(`{"no":1}`), "result": raw(`{"yes":1}`)}})
		if got := resolve(t, l, `["{{if_v}}","{{sw_l.w}}","{{r}}","{{yes}}","{{hil.outputs.confirmed.no}}"]`, asOf(4)); got != `[1,1,2,1,1]` {
			t.Fatalf("got %s", got)
		}
		if e := resolveErr(t, l, `"{{no}}"`, asOf(4)); e.Code != fault.UnresolvedPlaceholder {
			t.Fatalf("got %v", e)
		}
	})
	t.Run("ATool'sOwnResult", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		sync(t, l, dataflow.Step{Seq: 1, NodeID: "step_3", Output: payload(`{"result":{"result":{"data":{"model_id":"model_123"}},"both":1},"success":true}`)})
		sync(t, l, dataflow.Step{Seq: 2, NodeID: "b", Output: payload(`{"result":{"data":1,"result":{"data":2}}}`)})
		if got := resolve(t, l, `["{{step_3.outputs.result.data.model_id}}","{{step_3.output.result.data.model_id}}","{{step_3.outputs.result.result.data.model_id}}","{{step_3.result.data.model_id}}","{{step_3.outputs.result.both}}"]`, asOf(4)); got != `["model_123","model_123","model_123","model_123",1]` {
			t.Fatalf("got %s", got)
		}
		if got := resolve(t, l, `["{{b.outputs.result.data}}","{{b.outputs.result.result.data}}"]`, asOf(4)); got != `[1,2]` {
			t.Fatalf("what the tool has beside its result counts first: %s", got)
		}
		if e := resolveErr(t, l, `"{{step_3.outputs.result.nothing}}"`, asOf(4)); e.Code != fault.UnresolvedPlaceholder {
			t.Fatalf("got %v", e)
		}
	})
	t.Run("PrefixedNameBeatsAFieldCalledLikeIt", func(t *testing.T) {
		t.Parallel()
		for _, params := range [][]string{nil, {"x", "a_x"}, {"a_x", "x"}} {
			l := newLayers(t, dataflow.Start{})
			sync(t, l, dataflow.Step{Seq: 1, NodeID: "a", Output: payload(`{"x":1,"a_x":2}`), OutputParams: params})
			if got := resolve(t, l, `["{{a_x}}","{{a.x}}","{{a.a_x}}"]`, asOf(4)); got != `[1,1,2]` {
				t.Fatalf("got %s", got)
			}
		}
	})
	t.Run("ChangesNothingOnAnError", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		sync(t, l, dataflow.Step{Seq: 5, NodeID: "a", Output: payload(`{"x":1}`)})
		before := l.Retained()
		for _, s := range []dataflow.Step{
			{Seq: 6, NodeID: "b", Output: payload(`{"x":`)},
			{Seq: 6, NodeID: "b", Output: payload("\"\xff\"")},
			{Seq: 6, NodeID: "b", Output: payload(strings.Repeat("[", 2000) + strings.Repeat("]", 2000))},
			{Seq: 4, NodeID: "b", Output: payload(`{"x":2}`)},
			{Seq: 6, NodeID: "b", Scope: "each[0]", Output: payload(`{"x":2}`)},
		} {
			if trace, err := l.Sync(s); err == nil || trace.Count != 0 {
				t.Errorf("step %+v was taken", s)
			}
		}
		if l.Retained() != before || resolve(t, l, `"{{x}}"`, asOf(9)) != "1" {
			t.Fatal("something changed")
		}
		if err := dataflow.CheckOutput(payload(`{`)); fault.CodeOf(err) != fault.OutputInvalid {
			t.Fatalf("got %v", err)
		}
	})
}

func TestFail(t *testing.T) {
	t.Parallel()
	l := newLayers(t, dataflow.Start{})
	fail := func(seq uint64, node, message string, out map[string]json.RawMessage) {
		t.Helper()
		if err := l.Fail(dataflow.Failure{Seq: seq, NodeID: node, NodeName: strings.ToUpper(node), ToolID: "K", Message: message, Output: out}); err != nil {
			t.Fatal(err)
		}
	}
	sync(t, l, dataflow.Step{Seq: 2, NodeID: "a", NodeName: "A", ToolID: "K", Output: payload(`{"x":1}`)})
	fail(3, "a", "later trouble", map[string]json.RawMessage{"error": raw(`{"error_message":"later trouble","x":9}`)})
	fail(4, "b", "trouble", nil)
	fail(5, "c", "handled", map[string]json.RawMessage{"error": raw(`{"error_message":"handled"}`)})
	if got := resolve(t, l, `["{{a.outputs.x}}","{{a.outputs}}","{{A.x}}","{{a.outputs.error_message}}","{{c.outputs.error.error_message}}","{{c.error_message}}"]`, asOf(9)); got != `[1,{"x":1},1,"later trouble","handled","handled"]` {
		t.Fatalf("got %s", got)
	}
	for _, p := range []string{`"{{b.outputs}}"`, `"{{b.outputs.x}}"`, `"{{error_message}}"`} {
		if e := resolveErr(t, l, p, asOf(9)); e.Code != fault.UnresolvedPlaceholder {
			t.Fatalf("%s: got %v", p, e)
		}
	}
	if e := resolveErr(t, l, `"{{b.outputs}}"`, asOf(9)); !strings.Contains(e.Message, `the step "b" failed`) {
		t.Fatalf("got %v", e)
	}
	ctx, err := l.Context(dataflow.View{AsOf: 9})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]dataflow.StepResult{
		"a": {StepID: "a", StepName: "A", ToolID: "K", Output: raw(`{"x":1}`), IsSuccess: true, Ordinal: 1},
		"b": {StepID: "b", StepName: "B", ToolID: "K", Output: raw(`null`), ErrorMessage: "trouble", Ordinal: 3},
		"c": {StepID: "c", StepName: "C", ToolID: "K", Output: raw(`{"error_message":"handled"}`), ErrorMessage: "handled", Ordinal: 4},
	}
	if diff := cmp.Diff(want, ctx.StepResults); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	for want, out := range map[string]map[string]json.RawMessage{
		`{"a":1}`:              {"result": raw(`{ "a": 1 }`), "error": raw(`2`)},
		`2`:                    {"error": raw(`2`)},
		`{"false":2,"true":1}`: {"true": raw(`1`), "false": raw(`2`)},
		`null`:                 {},
	} {
		if got, err := dataflow.Output(out); err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}

func TestParamNames(t *testing.T) {
	t.Parallel()
	for given, want := range map[string][]string{`{"b":"","a":{"type":"string"}}`: {"b", "a"}, `["x","y"]`: {"x", "y"}, `null`: nil, ``: nil, `{}`: nil, `[]`: nil} {
		if got, err := dataflow.ParamNames(raw(given)); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: got %v, %v", given, got, err)
		}
	}
	for _, given := range []string{`"x"`, `[1]`, `{`, `3`} {
		if _, err := dataflow.ParamNames(raw(given)); fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("%s: got %v", given, err)
		}
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`[1]`, `{`, `"x"`} {
		if _, err := dataflow.New(dataflow.Start{Initial: raw(bad)}); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("initial %s: got %v", bad, err)
		}
		if _, err := dataflow.New(dataflow.Start{Trigger: raw(bad)}); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("trigger %s: got %v", bad, err)
		}
	}
	newLayers(t, dataflow.Start{Initial: raw(`null`), Trigger: raw(`{}`)})
}

func TestPriority(t *testing.T) {
	t.Parallel()
	l := newLayers(t, dataflow.Start{Initial: raw(`{"x":"initial","only":"initial","n":{"f":"object","g":"object"}}`)})
	if got := resolve(t, l, `["{{x}}","{{n.f}}"]`, asOf(1)); got != `["initial","object"]` {
		t.Fatalf("got %s", got)
	}
	sync(t, l, dataflow.Step{Seq: 2, NodeID: "n", OutputParams: []string{"x"}, Output: payload(`{"x":"runtime","only":"step","f":"step"}`)})
	// runtime over initial over step_results for a bare name; for a.b the step before the object of that name.
	if got := resolve(t, l, `["{{x}}","{{only}}","{{n.f}}","{{n.g}}","{{n.only}}"]`, asOf(2)); got != `["runtime","initial","step","object","step"]` {
		t.Fatalf("got %s", got)
	}
	sync(t, l, dataflow.Step{Seq: 3, NodeID: "m", Output: payload(`{"n_f":"joined"}`)})
	if got := resolve(t, l, `["{{n.f}}","{{n.outputs.f}}"]`, asOf(3)); got != `["joined","step"]` {
		t.Fatalf("got %s", got)
	}
}

func TestNewestField(t *testing.T) {
	t.Parallel()
	l := newLayers(t, dataflow.Start{})
	unsynced := func(seq uint64, scope, node, out string) {
		t.Helper()
		sync(t, l, dataflow.Step{Seq: seq, Scope: scope, NodeID: node, OutputParams: []string{"-"}, Output: payload(out)})
	}
	unsynced(1, "", "z", `{"f":"z"}`)
	unsynced(2, "", "a", `{"f":"a"}`)
	unsynced(3, "", "m", `{"g":"m"}`)
	if got := resolve(t, l, `["{{f}}","{{g}}"]`, asOf(9)); got != `["a","m"]` {
		t.Fatalf("got %s", got)
	}
	if got := resolve(t, l, `"{{f}}"`, asOf(1)); got != `"z"` {
		t.Fatalf("got %s", got)
	}
	open(t, l, "each[0]", 10, nil)
	open(t, l, "each[1]", 10, nil)
	unsynced(11, "each[1]", "b", `{"f":"b of 1"}`)
	unsynced(12, "each[0]", "c", `{"f":"c of 0"}`)
	unsynced(13, "each[0]", "a", `{"f":"a of 0"}`)
	if got := resolve(t, l, `"{{f}}"`, in("each[1]", 13)); got != `"b of 1"` {
		t.Fatalf("got %s", got)
	}
	closeScope(t, l, "each[1]", 14)
	closeScope(t, l, "each[0]", 15)
	if got := resolve(t, l, `"{{f}}"`, asOf(15)); got != `"b of 1"` { // the higher index is folded last
		t.Fatalf("got %s", got)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	t.Run("ReadFromTheInsideOut", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{Initial: raw(`{"index":"initial"}`)})
		sync(t, l, dataflow.Step{Seq: 1, NodeID: "top", Output: payload(`{"x":"top","t":1}`)})
		open(t, l, "each[2]", 2, map[string]json.RawMessage{"item": raw(`{"id":"i2"}`), "index": raw(`2`), "order": raw(`"o2"`)})
		open(t, l, "each[2]/inner[0]", 3, map[string]json.RawMessage{"item": raw(`"deep"`), "index": raw(`0`)})
		sync(t, l, dataflow.Step{Seq: 4, Scope: "each[2]", NodeID: "mid", Output: payload(`{"x":"mid","index":"shadow","item":"shadow"}`)})
		sync(t, l, dataflow.Step{Seq: 5, Scope: "each[2]/inner[0]", NodeID: "low", Output: payload(`{"x":"low"}`)})
		for scope, want := range map[string]string{
			"":                 `["top","top","initial"]`,
			"each[2]":          `["mid","top",2]`,
			"each[2]/inner[0]": `["low","top",0]`,
		} {
			if got := resolve(t, l, `["{{x}}","{{top.outputs.x}}","{{index}}"]`, in(scope, 9)); got != want {
				t.Errorf("%q: got %s; want %s", scope, got, want)
			}
		}
		if got := resolve(t, l, `["{{item}}","{{order}}","{{mid.outputs.x}}","{{mid_x}}"]`, in("each[2]/inner[0]", 9)); got != `["deep","o2","mid","mid"]` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("AVariableClosesTheMatter", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{Initial: raw(`{"item_id":"wrong","item":{"id":"wrong"}}`)})
		open(t, l, "each[0]", 1, map[string]json.RawMessage{"item": raw(`{"output":{"x":1}}`)})
		if e := resolveErr(t, l, `"{{item.id}}"`, in("each[0]", 1)); e.Code != fault.UnresolvedPlaceholder {
			t.Fatalf("got %v", e)
		}
		if got := resolve(t, l, `"{{item.output.x}}"`, in("each[0]", 1)); got != "1" {
			t.Fatalf("got %s", got)
		}
	})
	t.Run("FoldsWhenTheyEnd", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		open(t, l, "each[0]", 1, nil)
		sync(t, l, dataflow.Step{Seq: 2, Scope: "each[0]", NodeID: "n", NodeName: "N", Output: payload(`{"x":0}`)})
		resolveErr(t, l, `"{{x}}"`, asOf(9))
		if trace := closeScope(t, l, "each[0]", 3); trace.Held || trace.Names != 2 || trace.Steps != 1 {
			t.Fatalf("trace %+v", trace)
		}
		if got := resolve(t, l, `["{{x}}","{{n.outputs.x}}","{{N.outputs.x}}"]`, asOf(3)); got != `[0,0,0]` {
			t.Fatalf("got %s", got)
		}
		resolveErr(t, l, `"{{x}}"`, asOf(2))
		open(t, l, "each[1]", 4, nil)
		if got := resolve(t, l, `"{{x}}"`, in("each[1]", 4)); got != `0` {
			t.Fatalf("the next iteration reads %s", got)
		}
		if err := l.Fail(dataflow.Failure{Seq: 5, Scope: "each[1]", NodeID: "n", Message: "no"}); err != nil {
			t.Fatal(err)
		}
		if got := resolve(t, l, `"{{n.outputs.x}}"`, in("each[1]", 5)); got != `0` {
			t.Fatalf("a failure hides the earlier success: %s", got)
		}
		sync(t, l, dataflow.Step{Seq: 6, Scope: "each[1]", NodeID: "m", Output: payload(`{"x":1}`)})
		trace := closeScope(t, l, "each[1]", 7) // it failed; what its finished steps left stays readable
		if diff := cmp.Diff([]string{"x"}, trace.Overwritten); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if got := resolve(t, l, `["{{x}}","{{n.outputs.x}}","{{m_x}}"]`, asOf(7)); got != `[1,0,1]` {
			t.Fatalf("got %s", got)
		}
		if l.Scopes() != 0 {
			t.Fatalf("%d scopes are open", l.Scopes())
		}
	})
	t.Run("FoldInIndexOrder", func(t *testing.T) {
		t.Parallel()
		orders := [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}}
		for _, order := range orders {
			l := newLayers(t, dataflow.Start{})
			seq := uint64(1)
			for i := range order {
				open(t, l, fmt.Sprintf("each[%d]", i), seq, nil)
			}
			for _, i := range order {
				seq++
				sync(t, l, dataflow.Step{Seq: seq, Scope: fmt.Sprintf("each[%d]", i), NodeID: "n",
					Output: payload(fmt.Sprintf(`{"x":%d,"only_%d":true}`, i, i))})
				seq++
				closeScope(t, l, fmt.Sprintf("each[%d]", i), seq)
			}
			if got := resolve(t, l, `["{{x}}","{{n.outputs.x}}","{{only_0}}","{{only_2}}"]`, asOf(seq)); got != `[3,3,true,true]` {
				t.Errorf("ended in order %v: got %s", order, got)
			}
		}
	})
	t.Run("HoldBackUntilLowerOnesEnd", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		for i := range 3 {
			open(t, l, fmt.Sprintf("each[%d]", i), 1, nil)
		}
		for i := range 3 {
			sync(t, l, dataflow.Step{Seq: 2, Scope: fmt.Sprintf("each[%d]", i), NodeID: "n", Output: payload(fmt.Sprintf(`{"x":%d}`, i))})
		}
		if trace := closeScope(t, l, "each[1]", 3); !trace.Held || trace.Names != 0 {
			t.Fatalf("trace %+v", trace)
		}
		resolveErr(t, l, `"{{x}}"`, asOf(3))
		closeScope(t, l, "each[0]", 4)
		if got := resolve(t, l, `"{{x}}"`, asOf(4)); got != "1" {
			t.Fatalf("got %s", got)
		}
		resolveErr(t, l, `"{{x}}"`, asOf(3))
		closeScope(t, l, "each[2]", 5)
		if got := resolve(t, l, `"{{x}}"`, asOf(5)); got != "2" {
			t.Fatalf("got %s", got)
		}
	})
	t.Run("AFailureThatIsHeldHidesNoSuccess", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		for i := range 3 {
			open(t, l, fmt.Sprintf("each[%d]", i), 1, nil)
		}
		sync(t, l, dataflow.Step{Seq: 2, Scope: "each[1]", NodeID: "n", NodeName: "N", Output: payload(`{"x":1}`)})
		if err := l.Fail(dataflow.Failure{Seq: 3, Scope: "each[2]", NodeID: "n", NodeName: "N", Message: "no"}); err != nil {
			t.Fatal(err)
		}
		closeScope(t, l, "each[2]", 4)
		closeScope(t, l, "each[1]", 5)
		closeScope(t, l, "each[0]", 6)
		if got := resolve(t, l, `["{{N.outputs.x}}","{{n.outputs.x}}","{{x}}"]`, asOf(6)); got != `[1,1,1]` {
			t.Fatalf("got %s", got)
		}
	})
	t.Run("ClosingClosesWhatIsInside", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		open(t, l, "a[0]", 1, nil)
		open(t, l, "a[0]/b[0]", 2, nil)
		open(t, l, "a[0]/b[1]", 2, nil)
		open(t, l, "a[0]/b[1]/c[0]", 3, nil)
		sync(t, l, dataflow.Step{Seq: 4, Scope: "a[0]/b[1]/c[0]", NodeID: "n", Output: payload(`{"x":"c"}`)})
		sync(t, l, dataflow.Step{Seq: 5, Scope: "a[0]/b[0]", NodeID: "n", Output: payload(`{"x":"b0"}`)})
		closeScope(t, l, "a[0]", 6)
		if got := resolve(t, l, `"{{x}}"`, asOf(6)); got != `"c"` || l.Scopes() != 0 {
			t.Fatalf("got %s, %d scopes", got, l.Scopes())
		}
	})
	t.Run("Refuse", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		open(t, l, "a[0]", 5, nil)
		for what, err := range map[string]error{
			"open twice":        l.OpenScope("a[0]", 6, nil),
			"open without home": l.OpenScope("b[0]/c[0]", 6, nil),
			"open in the past":  l.OpenScope("a[1]", 4, nil),
			"bad variable":      l.OpenScope("a[1]", 6, map[string]json.RawMessage{"item": raw(`{`)}),
		} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		for _, path := range []string{"", "z[0]"} {
			if _, err := l.CloseScope(path, 6); fault.CodeOf(err) != fault.Internal {
				t.Errorf("close %q: got %v", path, err)
			}
		}
		if _, err := l.Context(dataflow.View{Scope: "z[0]"}); fault.CodeOf(err) != fault.Internal {
			t.Errorf("got %v", err)
		}
	})
}

func TestAsOf(t *testing.T) {
	t.Parallel()
	l := newLayers(t, dataflow.Start{Initial: raw(`{"x":"initial"}`)})
	for seq := uint64(2); seq < 60; seq++ {
		node := fmt.Sprintf("n%d", seq%3)
		sync(t, l, dataflow.Step{Seq: seq, NodeID: node, NodeName: "same", Output: payload(fmt.Sprintf(`{"x":%d}`, seq))})
	}
	if got := resolve(t, l, `"{{x}}"`, asOf(1)); got != `"initial"` {
		t.Fatalf("got %s", got)
	}
	resolveErr(t, l, `"{{same.outputs.x}}"`, asOf(1))
	for seq := uint64(2); seq < 60; seq++ {
		want := fmt.Sprintf(`[%d,%d,%d]`, seq, seq, seq)
		if got := resolve(t, l, fmt.Sprintf(`["{{x}}","{{n%d.outputs.x}}","{{same.outputs.x}}"]`, seq%3), asOf(seq)); got != want {
			t.Fatalf("as of %d: got %s; want %s", seq, got, want)
		}
	}
	t.Run("SameRow", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		sync(t, l, dataflow.Step{Seq: 2, NodeID: "a", Output: payload(`{"x":1}`)})
		sync(t, l, dataflow.Step{Seq: 2, NodeID: "b", Output: payload(`{"x":2}`)})
		if got := resolve(t, l, `"{{x}}"`, asOf(2)); got != "2" {
			t.Fatalf("got %s", got)
		}
	})
}

func TestForget(t *testing.T) {
	t.Parallel()
	t.Run("KeepsWhatReadersSee", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		for seq := uint64(1); seq <= 100; seq++ {
			sync(t, l, dataflow.Step{Seq: seq, NodeID: "n", Output: payload(fmt.Sprintf(`{"x":%d}`, seq))})
		}
		if dropped := l.Forget(70, 30, 30); dropped != 3*97 || l.Retained() != 3*3 {
			t.Fatalf("dropped %d, retained %d", dropped, l.Retained())
		}
		for _, seq := range []uint64{30, 70, 100, 1000} {
			if got := resolve(t, l, `"{{x}}"`, asOf(seq)); got != fmt.Sprint(min(seq, 100)) {
				t.Errorf("as of %d: got %s", seq, got)
			}
		}
		if l.Forget(); l.Retained() != 3 {
			t.Fatalf("retained %d", l.Retained())
		}
	})
	t.Run("BoundsALongLoop", func(t *testing.T) {
		t.Parallel()
		iterations := 100_000
		if testing.Short() {
			iterations = 10_000
		}
		l := newLayers(t, dataflow.Start{})
		sync(t, l, dataflow.Step{Seq: 1, NodeID: "before", Output: payload(`{"x":"before"}`)})
		const waiting = 1 // an activation beside the loop waits for a person all the time
		seq, most := uint64(1), 0
		for i := range iterations {
			path := fmt.Sprintf("each[%d]", i)
			seq++
			open(t, l, path, seq, map[string]json.RawMessage{"item": raw("1"), "index": raw("0")})
			for _, node := range []string{"a", "b"} {
				seq++
				sync(t, l, dataflow.Step{Seq: seq, Scope: path, NodeID: node, NodeName: node + "!", Output: payload(`{"x":1,"y":2}`)})
			}
			seq++
			closeScope(t, l, path, seq)
			if i%100 == 0 {
				l.Forget(waiting, seq)
			}
			most = max(most, l.Retained())
		}
		if most > 2000 || l.Scopes() != 0 {
			t.Fatalf("up to %d versions were held", most)
		}
		if got := resolve(t, l, `"{{x}}"`, asOf(waiting)); got != `"before"` {
			t.Fatalf("the waiting one reads %s", got)
		}
	})
	t.Run("BoundsALoopWhoseFirstIterationHangs", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		open(t, l, "each[0]", 1, nil)
		seq := uint64(1)
		for i := 1; i <= 5000; i++ {
			path := fmt.Sprintf("each[%d]", i)
			seq++
			open(t, l, path, seq, nil)
			sync(t, l, dataflow.Step{Seq: seq, Scope: path, NodeID: "n", NodeName: "N", Output: payload(fmt.Sprintf(`{"x":%d}`, i))})
			if trace := closeScope(t, l, path, seq); !trace.Held {
				t.Fatal("folded before its time")
			}
		}
		if l.Retained() > 10 {
			t.Fatalf("%d versions are held", l.Retained())
		}
		closeScope(t, l, "each[0]", seq+1)
		if got := resolve(t, l, `["{{x}}","{{N.outputs.x}}"]`, asOf(seq+1)); got != `[5000,5000]` {
			t.Fatalf("got %s", got)
		}
		if l.Retained() != 4 {
			t.Fatalf("%d versions are held", l.Retained())
		}
	})
}

func TestContext(t *testing.T) {
	t.Parallel()
	l := newLayers(t, dataflow.Start{PlanID: "plan_1", Initial: raw(`{"x":"initial","p":"initial"}`)})
	sync(t, l, dataflow.Step{Seq: 2, NodeID: "n", NodeName: "N", ToolID: "HTTP.GET", Output: payload(`{"x":1}`)})
	open(t, l, "each[0]", 3, map[string]json.RawMessage{"index": raw("0")})
	sync(t, l, dataflow.Step{Seq: 4, Scope: "each[0]", NodeID: "m", ToolID: "srv/tool", Output: payload(`{"x":2}`)})
	for _, tt := range []struct {
		view dataflow.View
		want string
	}{
		{dataflow.View{AsOf: 1}, `{"plan_id":"plan_1","initial_metadata":{"p":"initial","x":"initial"},"runtime_metadata":{},"step_results":{},"merged":{"p":"initial","x":"initial"}}`},
		{dataflow.View{AsOf: 9}, `{"plan_id":"plan_1","initial_metadata":{"p":"initial","x":"initial"},"runtime_metadata":{"n_x":1,"x":1},` +
			`"step_results":{"n":{"step_id":"n","step_name":"N","tool_id":"HTTP.GET","output":{"x":1},"is_success":true}},"merged":{"n_x":1,"p":"initial","x":1}}`},
		{dataflow.View{Scope: "each[0]", AsOf: 9}, `{"plan_id":"plan_1","initial_metadata":{"p":"initial","x":"initial"},"runtime_metadata":{"m_x":2,"n_x":1,"x":2},` +
			`"step_results":{"m":{"step_id":"m","step_name":"m","tool_id":"srv/tool","output":{"x":2},"is_success":true},` +
			`"n":{"step_id":"n","step_name":"N","tool_id":"HTTP.GET","output":{"x":1},"is_success":true}},"merged":{"m_x":2,"n_x":1,"p":"initial","x":2},"variables":{"index":0}}`},
	} {
		ctx, err := l.Context(tt.view)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tt.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", tt.view, got, tt.want)
		}
	}
}

func TestRewind(t *testing.T) {
	t.Parallel()
	l := forecast(t, 4)
	before, err := l.Context(dataflow.View{AsOf: 100})
	if err != nil {
		t.Fatal(err)
	}
	trace := l.Rewind("plan_2")
	if diff := cmp.Diff(dataflow.RewindTrace{PlanID: "plan_2", PreviousPlanID: "plan_1", StepResults: 4, RuntimeMetadata: len(before.RuntimeMetadata)}, trace); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(trace.String(), "nothing is cleared") {
		t.Fatalf("it says %q", trace)
	}
	after, err := l.Context(dataflow.View{AsOf: 100})
	if err != nil {
		t.Fatal(err)
	}
	before.PlanID = "plan_2"
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatalf("(-before +after):\n%s", diff)
	}
	// A step of the new plan still reads what the old one left.
	if got := resolve(t, l, `{"datasource_id":"{{step_2.outputs.datasource_id}}"}`, asOf(100)); got != `{"datasource_id":"ds_001"}` {
		t.Fatalf("got %s", got)
	}
	if trace := l.Rewind(""); trace.PlanID != "plan_2" || l.PlanID() != "plan_2" {
		t.Fatalf("the plan id is lost: %+v", trace)
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	l := forecast(t, 4)
	got, src, ok, err := l.Lookup(dataflow.View{AsOf: 100}, "datasource_id")
	if err != nil || !ok || string(got) != `"ds_001"` || src.Layer != dataflow.LayerRuntime || src.Node != "step_2" {
		t.Fatalf("got %s, %+v, %v, %v", got, src, ok, err)
	}
	if _, _, ok, err := l.Lookup(dataflow.View{AsOf: 100}, "nope"); ok || err != nil {
		t.Fatalf("got %v, %v", ok, err)
	}
	if _, _, _, err := l.Lookup(dataflow.View{}, "a b"); fault.CodeOf(err) != fault.Invalid {
		t.Fatalf("got %v", err)
	}
}
