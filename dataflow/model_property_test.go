package dataflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tandem/dataflow"
	"tandem/fault"
)

var (
	modelNodes  = []string{"n1", "n2", "n3"}
	modelNames  = map[string]string{"n1": "Alpha", "n2": "n2", "n3": "n1_x"} // one name looks like a runtime name
	modelFields = []string{"x", "y", "n1_x", "result", "left", "odd key", "0", "item"}
	modelHeads  = []string{"n1", "n2", "n3", "Alpha", "n1_x", "n2_y", "x", "y", "left", "item", "index", "trigger", "env", "u", "odd key", "0", "nope"}
)

func drawValue(rt *rapid.T, depth int) any {
	kinds := []string{"string", "number", "bool", "null", "object", "list"}
	if depth == 0 {
		kinds = kinds[:4]
	}
	switch rapid.SampledFrom(kinds).Draw(rt, "kind") {
	case "string":
		return rapid.SampledFrom([]string{"", "text", "{{x}}", "${n1.x} {{{y}}}", "say \"hi\"\\\n", "\\{{x}}", "é杭", "\x00"}).Draw(rt, "string")
	case "number":
		return float64(rapid.IntRange(-3, 99).Draw(rt, "number"))
	case "bool":
		return rapid.Bool().Draw(rt, "bool")
	case "object":
		return drawObject(rt, depth)
	case "list":
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(rt, "length") {
			list = append(list, drawValue(rt, depth-1))
		}
		return list
	}
	return nil
}

func drawObject(rt *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(rt, "fields") {
		object[rapid.SampledFrom(modelFields).Draw(rt, "field")] = drawValue(rt, depth-1)
	}
	return object
}

func encode(rt *rapid.T, v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		rt.Fatal(err)
	}
	return data
}

func encodeAll(rt *rapid.T, values map[string]any) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for k, v := range values {
		out[k] = encode(rt, v)
	}
	return out
}

// modelHistory is what an execution began with and what happened to it, for the model and for layers alike.
type modelHistory struct {
	initial, trigger map[string]any
	env              map[string]string
	ops              []modelOp
}

// drawHistory makes a random history.
func drawHistory(rt *rapid.T) modelHistory {
	h := modelHistory{initial: drawObject(rt, 3), trigger: drawObject(rt, 2), env: map[string]string{"x": "from env"}}
	h.initial["u"] = drawObject(rt, 2)
	live := &model{root: newModelScope("", nil)} // tells which scopes are open
	next := map[string]int{}
	seq := uint64(1)
	for range rapid.SampledFrom([]int{0, 3, 12, 25, 50}).Draw(rt, "operations") {
		seq += uint64(rapid.IntRange(0, 2).Draw(rt, "gap"))
		var paths []string
		var list func(s *modelScope)
		list = func(s *modelScope) {
			paths = append(paths, s.path)
			for _, c := range s.children {
				if !c.ended {
					list(c)
				}
			}
		}
		list(live.root)
		slices.Sort(paths)
		op := modelOp{seq: seq, scope: rapid.SampledFrom(paths).Draw(rt, "scope")}
		op.kind = rapid.SampledFrom([]string{"sync", "sync", "sync", "fail", "open", "open", "close"}).Draw(rt, "operation")
		if op.kind == "open" && rapid.Bool().Draw(rt, "at the top") {
			op.scope = "" // so that there are siblings enough to end in any order
		}
		switch op.kind {
		case "open":
			group := op.scope
			if group != "" {
				group += "/"
			}
			group += rapid.SampledFrom([]string{"e", "e", "e", "f"}).Draw(rt, "group")
			op.scope = fmt.Sprintf("%s[%d]", group, next[group])
			next[group]++
			op.vars = map[string]any{"index": float64(next[group])}
			if rapid.Bool().Draw(rt, "item") {
				op.vars["item"] = drawValue(rt, 2)
			}
		case "close":
			if op.scope == "" {
				continue
			}
		default:
			op.node = rapid.SampledFrom(modelNodes).Draw(rt, "node")
			op.name = modelNames[op.node]
			op.keys = map[string]any{}
			for _, key := range []string{"result", "left", "x"} {
				if rapid.IntRange(0, 2).Draw(rt, key) == 0 {
					op.keys[key] = drawValue(rt, 3)
				}
			}
			if rapid.Bool().Draw(rt, "params") {
				op.params = []string{rapid.SampledFrom(modelFields).Draw(rt, "param")}
			}
		}
		h.ops = append(h.ops, op)
		live.apply(op)
	}
	return h
}

// at is the model as of a row.
func (h modelHistory) at(asOf uint64) *model {
	m := &model{initial: h.initial, trigger: h.trigger, env: h.env, root: newModelScope("", nil)}
	for _, op := range h.ops {
		if op.seq <= asOf {
			m.apply(op)
		}
	}
	return m
}

// last is the row of the last operation.
func (h modelHistory) last() uint64 {
	if len(h.ops) == 0 {
		return 1
	}
	return h.ops[len(h.ops)-1].seq
}

// layers applies the history to new layers.
func (h modelHistory) layers(rt *rapid.T) *dataflow.Layers {
	l, err := dataflow.New(dataflow.Start{ExecutionID: "exec", WorkflowID: "flow", PlanID: "plan",
		Initial: encode(rt, h.initial), Trigger: encode(rt, h.trigger), Env: h.env})
	if err != nil {
		rt.Fatal(err)
	}
	for _, op := range h.ops {
		applyTo(rt, l, op)
	}
	return l
}

// applyTo does one operation and returns its trace.
func applyTo(rt *rapid.T, l *dataflow.Layers, op modelOp) (trace any) {
	var err error
	activation := fmt.Sprintf("act%d", op.seq)
	switch op.kind {
	case "open":
		err = l.OpenScope(op.scope, op.seq, encodeAll(rt, op.vars))
	case "close":
		trace, err = l.CloseScope(op.scope, op.seq)
	case "fail":
		err = l.Fail(dataflow.Failure{Seq: op.seq, Scope: op.scope, Activation: activation, NodeID: op.node, NodeName: op.name, ToolID: "tool", Message: "broke", Output: encodeAll(rt, op.keys)})
	default:
		trace, err = l.Sync(dataflow.Step{Seq: op.seq, Scope: op.scope, Activation: activation, NodeID: op.node, NodeName: op.name, ToolID: "tool", Output: encodeAll(rt, op.keys), OutputParams: op.params})
	}
	if err != nil {
		rt.Fatal(err)
	}
	return trace
}

// readable lists the scopes that are open at the end with the row that opened each.
func (h modelHistory) readable() map[string]uint64 {
	m := h.at(1 << 60)
	scopes := map[string]uint64{"": 0}
	for _, op := range h.ops {
		if op.kind == "open" && m.root.at(op.scope) != nil {
			scopes[op.scope] = op.seq
		}
	}
	return scopes
}

func drawPath(rt *rapid.T) []string {
	path := []string{rapid.SampledFrom(modelHeads).Draw(rt, "head")}
	if rapid.IntRange(0, 2).Draw(rt, "outputs") == 0 {
		path = append(path, rapid.SampledFrom([]string{"outputs", "output"}).Draw(rt, "word"))
	}
	for range rapid.IntRange(0, 3).Draw(rt, "steps") {
		path = append(path, rapid.SampledFrom(modelFields).Draw(rt, "step"))
	}
	return path
}

// write spells a path as a placeholder in one of many ways.
func writePlaceholder(rt *rapid.T, path []string) string {
	text := ""
	for i, key := range path {
		quoted := key == "odd key" || rapid.IntRange(0, 3).Draw(rt, "quoted") == 0
		switch {
		case quoted && rapid.Bool().Draw(rt, "quote"):
			text += `["` + key + `"]`
		case quoted:
			text += `[ '` + key + `' ]`
		case i == 0:
			text += key
		default:
			text += "." + key
		}
	}
	blank := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(rt, "blank")
	brackets := rapid.SampledFrom([][2]string{{"{{", "}}"}, {"{{{", "}}}"}, {"${", "}"}}).Draw(rt, "brackets")
	return brackets[0] + blank + text + blank + brackets[1]
}

func inText(rt *rapid.T, v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		rt.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TestModel compares the resolver with the model: random histories, scopes, rows, paths and spellings. Values hold
// text that looks like placeholders, so anything that was resolved twice shows.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		history := drawHistory(rt)
		l, scopes, last := history.layers(rt), history.readable(), history.last()
		type question struct {
			scope string
			asOf  uint64
			paths [][]string
		}
		var questions []question
		var readers []uint64
		for range rapid.IntRange(1, 6).Draw(rt, "questions") {
			q := question{scope: rapid.SampledFrom(slices.Sorted(maps.Keys(scopes))).Draw(rt, "from")}
			q.asOf = rapid.Uint64Range(scopes[q.scope], max(last, scopes[q.scope])).Draw(rt, "as of")
			for range rapid.IntRange(1, 3).Draw(rt, "placeholders") {
				q.paths = append(q.paths, drawPath(rt))
			}
			questions = append(questions, q)
			readers = append(readers, q.asOf)
		}
		ask := func(when string) {
			for _, q := range questions {
				m := history.at(q.asOf)
				if got, want := contextOf(rt, l, q.scope, q.asOf), modelContext(m, q.scope); !reflect.DeepEqual(got, want) {
					rt.Fatalf("%s: runtime_metadata in %q as of %d is %v; want %v", when, q.scope, q.asOf, got, want)
				}
				text, wantText, whole := "", "", true
				for i, path := range q.paths {
					spelled := writePlaceholder(rt, path)
					want, found := m.read(q.scope, path)
					check(rt, l, q.scope, q.asOf, spelled, want, found, when)
					whole = whole && found
					text += fmt.Sprintf("<%d> %s", i, spelled)
					if found {
						wantText += fmt.Sprintf("<%d> %s", i, inText(rt, want))
					}
				}
				if whole {
					check(rt, l, q.scope, q.asOf, text, wantText, true, when)
				}
			}
		}
		ask("before")
		l.Forget(readers...)
		ask("after forgetting")
	})
}

func check(rt *rapid.T, l *dataflow.Layers, scope string, asOf uint64, text string, want any, found bool, when string) {
	tmpl, err := dataflow.Compile(encode(rt, map[string]any{"p": text}))
	if err != nil {
		rt.Fatal(err)
	}
	got, _, err := tmpl.Resolve(l, in(scope, asOf))
	if !found {
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.UnresolvedPlaceholder {
			rt.Fatalf("%s: %q in %q as of %d gives %s, %v; want unresolved", when, text, scope, asOf, got, err)
		}
		return
	}
	if err != nil {
		rt.Fatalf("%s: %q in %q as of %d: %v; want %v", when, text, scope, asOf, err, want)
	}
	var value map[string]any
	if err := json.Unmarshal(got, &value); err != nil {
		rt.Fatal(err)
	}
	if !reflect.DeepEqual(value["p"], want) {
		rt.Fatalf("%s: %q in %q as of %d gives %s; want %v", when, text, scope, asOf, got, want)
	}
}

func contextOf(rt *rapid.T, l *dataflow.Layers, scope string, asOf uint64) map[string]any {
	ctx, err := l.Context(dataflow.View{Scope: scope, AsOf: asOf})
	if err != nil {
		rt.Fatal(err)
	}
	values := map[string]any{}
	for name, data := range ctx.RuntimeMetadata {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			rt.Fatal(err)
		}
		values[name] = v
	}
	return values
}

func modelContext(m *model, scope string) map[string]any {
	var chain []*modelScope
	for s := m.root.at(scope); s != nil; s = s.parent {
		chain = append(chain, s)
	}
	values := map[string]any{}
	for _, s := range slices.Backward(chain) {
		maps.Copy(values, s.runtime)
	}
	return values
}

// TestFoldOrder: whatever order concurrent iterations end in, the parent ends up with the same data.
func TestFoldOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(rt, "iterations")
		outputs := make([]map[string]any, n)
		for i := range outputs {
			outputs[i] = map[string]any{"result": drawObject(rt, 2)}
		}
		run := func(order []int) dataflow.Context {
			l, err := dataflow.New(dataflow.Start{})
			if err != nil {
				rt.Fatal(err)
			}
			seq := uint64(1)
			for i := range n {
				if err := l.OpenScope(fmt.Sprintf("each[%d]", i), seq, nil); err != nil {
					rt.Fatal(err)
				}
			}
			for _, i := range order {
				seq++
				scope := fmt.Sprintf("each[%d]", i)
				if _, err := l.Sync(dataflow.Step{Seq: seq, Scope: scope, NodeID: modelNodes[i%3], Output: encodeAll(rt, outputs[i])}); err != nil {
					rt.Fatal(err)
				}
				if _, err := l.CloseScope(scope, seq); err != nil {
					rt.Fatal(err)
				}
			}
			ctx, err := l.Context(dataflow.View{AsOf: seq})
			if err != nil {
				rt.Fatal(err)
			}
			if l.Forget(); l.Retained() != len(ctx.RuntimeMetadata)+len(ctx.StepResults) {
				rt.Fatalf("%d versions are held for %d names and %d steps", l.Retained(), len(ctx.RuntimeMetadata), len(ctx.StepResults))
			}
			for id, r := range ctx.StepResults { // which came first is what differs between orders
				r.Ordinal = 0
				ctx.StepResults[id] = r
			}
			return ctx
		}
		inOrder := make([]int, n)
		for i := range inOrder {
			inOrder[i] = i
		}
		shuffled := rapid.Permutation(inOrder).Draw(rt, "order")
		if a, b := run(inOrder), run(shuffled); !reflect.DeepEqual(a, b) {
			rt.Fatalf("ended in order %v:\n%v\nwant\n%v", shuffled, b, a)
		}
	})
}
