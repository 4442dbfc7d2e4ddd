package dataflow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tandem/dataflow"
	"tandem/fault"
)

func payloads(values ...string) []dataflow.Payload {
	var ps []dataflow.Payload
	for i, v := range values {
		node := string(rune('a' + i))
		ps = append(ps, dataflow.Payload{Node: node, Activation: "/" + node, Key: "result", Connection: "c_" + node, Value: raw(v)})
	}
	return ps
}

func TestBuildInput(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	tests := []struct {
		name, params string
		payloads     []dataflow.Payload
		keyed        bool
		want         string
		warnings     int
	}{
		{name: "Nothing", want: `{}`},
		{name: "OneObject", payloads: payloads(` {"b": 1, "a": 2} `), want: `{"b":1,"a":2}`},
		{name: "ObjectIntoObject", payloads: payloads(`{"x":1,"y":{"p":1}}`, `{"z":3,"y":{"q":2}}`), want: `{"x":1,"y":{"q":2},"z":3}`},
		{name: "OtherValueUnderData", payloads: payloads(`{"x":1}`, `[1,2]`), want: `{"x":1,"data":[1,2]}`},
		{name: "Null", payloads: payloads(`null`), want: `{"data":null}`},
		{name: "SecondMakesAList", payloads: payloads(`"a"`, `{"x":1}`, `2`), want: `{"data":["a",2],"x":1}`},
		{name: "AListIsOneValue", payloads: payloads(`[1,2]`, `3`, `[4]`), want: `{"data":[[1,2],3,[4]]}`},
		{name: "ObjectsOwnDataThenValue", payloads: payloads(`{"data":"own","x":1}`, `2`, `3`), want: `{"data":[2,3],"x":1}`, warnings: 1},
		{name: "ValueThenObjectsOwnData", payloads: payloads(`1`, `{"data":"own"}`), want: `{"data":"own"}`, warnings: 1},
		{name: "ParametersWin", payloads: payloads(`{"s":"theirs","keep":1,"o":{"z":1}}`), params: `{"s":"{{s}}","o":{"n":"{{n}}"},"new":true}`, want: `{"s":"text","keep":1,"o":{"n":1.50},"new":true}`},
		{name: "EmptyParameters", payloads: payloads(`{"x":1}`), params: `{}`, want: `{"x":1}`},
		{name: "NullParameters", payloads: payloads(`{"x":1}`), params: `null`, want: `{"x":1}`},
		{name: "ParametersFromOnePlaceholder", payloads: payloads(`{"x":1}`), params: `"{{o}}"`, want: `{"x":1,"b":1,"a":[1,2]}`},
		{name: "KeyedBySource", keyed: true, payloads: payloads(`{"x":1}`, `2`), want: `{"x":1,"data":2,"inputs":{"a":{"x":1},"b":2}}`},
		{name: "KeyedTwiceFromOneSource", keyed: true, payloads: []dataflow.Payload{{Node: "a", Value: raw(`{"x":1}`)}, {Node: "a", Value: raw(`[2]`)}, {Node: "a", Value: raw(`3`)}},
			want: `{"x":1,"data":[[2],3],"inputs":{"a":[{"x":1},[2],3]}}`},
		{name: "KeyedParametersWin", keyed: true, payloads: payloads(`{"x":1}`), params: `{"inputs":"mine"}`, want: `{"x":1,"inputs":"mine"}`},
		{name: "DataInPayloadsStaysData", payloads: payloads(`{"x":"{{s}}"}`), params: `{"y":1}`, want: `{"x":"{{s}}","y":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			given := dataflow.Input{Payloads: tt.payloads, Keyed: tt.keyed}
			if tt.params != "" {
				given.Params = mustCompile(t, tt.params)
			}
			got, trace, err := dataflow.BuildInput(l, given, asOf(100))
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %s, %v\nwant %s", got, err, tt.want)
			}
			if len(trace.Warnings) != tt.warnings {
				t.Fatalf("warnings %+v", trace.Warnings)
			}
			lin, err := dataflow.InputLineage(l, given, asOf(100))
			if err != nil {
				t.Fatal(err)
			}
			if leaves := lin.Leaves(1000); len(leaves) != countLeaves(t, got) {
				t.Fatalf("%d leaves have a lineage, %d are in %s", len(leaves), countLeaves(t, got), got)
			}
		})
	}
	t.Run("Refuses", func(t *testing.T) {
		t.Parallel()
		for code, given := range map[fault.Code]dataflow.Input{
			fault.InvalidInput:          {Payloads: payloads(`{`)},
			fault.InvalidConfig:         {Params: mustCompile(t, `[1]`)},
			fault.UnresolvedPlaceholder: {Params: mustCompile(t, `{"a":"{{nope}}"}`)},
			fault.TooLarge:              {Payloads: payloads(`"`+strings.Repeat("x", dataflow.MaxOutput)+`"`, `1`)},
		} {
			if _, _, err := dataflow.BuildInput(l, given, asOf(100)); fault.CodeOf(err) != code {
				t.Errorf("got %v; want %s", err, code)
			}
		}
	})
}

// countLeaves counts the leaves of an input; {} itself has no leaf that came from somewhere.
func countLeaves(t *testing.T, value json.RawMessage) int {
	t.Helper()
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		t.Fatal(err)
	}
	var count func(v any) int
	count = func(v any) int {
		n := 0
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				n += count(e)
			}
			if len(v) > 0 {
				return n
			}
		case []any:
			for _, e := range v {
				n += count(e)
			}
			if len(v) > 0 {
				return n
			}
		}
		return 1
	}
	if string(value) == "{}" {
		return 0
	}
	return count(v)
}

func TestInputLineage(t *testing.T) {
	t.Parallel()
	l := newLayers(t, dataflow.Start{ExecutionID: "e", Initial: raw(`{"city":"杭州"}`), Trigger: raw(`{"body":{"id":1}}`), Env: map[string]string{"REGION": "eu"}})
	sync(t, l, dataflow.Step{Seq: 2, NodeID: "fetch", NodeName: "Fetch", Activation: "/fetch", Output: payload(`{"items":[{"id":"a"}],"total":1}`)})
	open(t, l, "each[2]", 3, map[string]json.RawMessage{"item": raw(`{"id":"i"}`)})
	sync(t, l, dataflow.Step{Seq: 4, Scope: "each[2]", NodeID: "work", Activation: "each[2]/work", Output: payload(`{"score":{"v":7}}`)})
	given := dataflow.Input{
		Payloads: append(payloads(`{"x":{"deep":[1]},"over":1}`, `"loose"`, `2`), dataflow.Payload{Node: "d", Key: "true", Connection: "c_d", Converted: true, Value: raw(`{"conv":1}`)}),
		Params: mustCompile(t, `{"over":"{{city}}","lit":{"n":5},"score":"{{score}}","first":"{{Fetch.outputs.items}}","text":"{{total}} of {{trigger.body.id}}",
			"item":"{{item.id}}","env":"${env.REGION}","me":"{{execution.id}}","gone":"{{nope}}","empty":[]}`),
	}
	lin, err := dataflow.InputLineage(l, given, in("each[2]", 9))
	if err != nil {
		t.Fatal(err)
	}
	fetch := dataflow.Source{Layer: dataflow.LayerSteps, Node: "fetch", Activation: "/fetch", Seq: 2}
	with := func(s dataflow.Source, f func(*dataflow.Source)) dataflow.Source { f(&s); return s }
	want := []dataflow.Origin{
		{Path: "x", Sources: []dataflow.Source{{Layer: dataflow.LayerConnection, Node: "a", Activation: "/a", Key: "result", Connection: "c_a", Path: "x"}}},
		{Path: "over", Sources: []dataflow.Source{{Layer: dataflow.LayerInitial, Name: "city", Placeholder: "{{city}}"}}},
		{Path: "data[0]", Sources: []dataflow.Source{{Layer: dataflow.LayerConnection, Node: "b", Activation: "/b", Key: "result", Connection: "c_b"}}},
		{Path: "data[1]", Sources: []dataflow.Source{{Layer: dataflow.LayerConnection, Node: "c", Activation: "/c", Key: "result", Connection: "c_c"}}},
		{Path: "conv", Sources: []dataflow.Source{{Layer: dataflow.LayerConnection, Node: "d", Key: "true", Connection: "c_d", Converted: true, Path: "conv"}}},
		{Path: "lit.n", Sources: []dataflow.Source{{Layer: dataflow.LayerLiteral}}},
		{Path: "score", Sources: []dataflow.Source{{Layer: dataflow.LayerRuntime, Node: "work", Activation: "each[2]/work", Scope: "each[2]", Seq: 4, Name: "score", Path: "score", Placeholder: "{{score}}"}}},
		{Path: "first", Sources: []dataflow.Source{with(fetch, func(s *dataflow.Source) { s.Path, s.Placeholder = "items", "{{Fetch.outputs.items}}" })}},
		{Path: "text", Text: true, Sources: []dataflow.Source{
			with(fetch, func(s *dataflow.Source) {
				s.Layer, s.Name, s.Path, s.Placeholder = dataflow.LayerRuntime, "total", "total", "{{total}}"
			}),
			{Layer: dataflow.LayerTrigger, Name: "trigger", Path: "body.id", Placeholder: "{{trigger.body.id}}"}}},
		{Path: "item", Sources: []dataflow.Source{{Layer: dataflow.LayerScope, Scope: "each[2]", Name: "item", Path: "id", Placeholder: "{{item.id}}"}}},
		{Path: "env", Sources: []dataflow.Source{{Layer: dataflow.LayerEnv, Name: "REGION", Placeholder: "${env.REGION}"}}},
		{Path: "me", Sources: []dataflow.Source{{Layer: dataflow.LayerExecution, Name: "execution", Path: "id", Placeholder: "{{execution.id}}"}}},
		{Path: "gone", Sources: []dataflow.Source{{Layer: dataflow.LayerLiteral}}, Unresolved: []string{"{{nope}}"}},
		{Path: "empty", Sources: []dataflow.Source{{Layer: dataflow.LayerLiteral}}},
	}
	if diff := cmp.Diff(want, lin.Origins, cmpopts.IgnoreUnexported(dataflow.Origin{})); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for path, source := range map[string]string{"x.deep[0]": "x.deep[0]", "first[0].id": "items[0].id", "score.v": "score.v", "data[1]": ""} {
		o, ok, err := lin.Of(path)
		if err != nil || !ok || o.Path != path || o.Sources[0].Path != source {
			t.Errorf("%s: got %+v, %v, %v", path, o, ok, err)
		}
	}
	if _, ok, err := lin.Of("first[7]"); ok || err != nil {
		t.Errorf("got %v, %v for a path that is not there", ok, err)
	}
	if _, _, err := lin.Of("a..b"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
	if got := lin.Leaves(3); len(got) != 3 {
		t.Errorf("%d leaves", len(got))
	}
	t.Run("FoldedValuesNameTheirIteration", func(t *testing.T) {
		closeScope(t, l, "each[2]", 10)
		_, src, ok, err := l.Lookup(dataflow.View{AsOf: 10}, "score.v")
		if err != nil || !ok || src.Node != "work" || src.Activation != "each[2]/work" || src.Scope != "each[2]" || src.Path != "score.v" {
			t.Fatalf("got %+v, %v, %v", src, ok, err)
		}
	})
}

func TestTemplateLineage(t *testing.T) {
	t.Parallel()
	l := shapes(t)
	r := asOf(100)
	r.Own = raw(`{"question":{"text":"why"}}`)
	tmpl, err := dataflow.CompileText("Answer {{question.text}} for {{user.name}}")
	if err != nil {
		t.Fatal(err)
	}
	lin, err := tmpl.Lineage(l, r)
	if err != nil {
		t.Fatal(err)
	}
	want := []dataflow.Origin{{Text: true, Sources: []dataflow.Source{
		{Layer: dataflow.LayerOwn, Path: "question.text", Placeholder: "{{question.text}}"},
		{Layer: dataflow.LayerInitial, Name: "user", Path: "name", Placeholder: "{{user.name}}"}}}}
	if diff := cmp.Diff(want, lin.Origins, cmpopts.IgnoreUnexported(dataflow.Origin{})); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}
