package dataflow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tandem/dataflow"
	"tandem/fault"
)

// failer is what testing.TB and rapid.T have in common here.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func snapshot(f failer, l *dataflow.Layers) []byte {
	f.Helper()
	data, err := l.Snapshot()
	if err != nil {
		f.Fatal(err)
	}
	return data
}

func restore(f failer, data []byte) *dataflow.Layers {
	f.Helper()
	l, err := dataflow.RestoreLayers(data)
	if err != nil {
		f.Fatal(err)
	}
	return l
}

// reborn takes a snapshot and returns layers made of it. The bytes are gone afterwards, so that anything that still
// shared memory with them shows.
func reborn(f failer, l *dataflow.Layers) *dataflow.Layers {
	f.Helper()
	data := snapshot(f, l)
	copied := restore(f, data)
	if again := snapshot(f, copied); !bytes.Equal(again, data) {
		f.Fatalf("the snapshot of the restored layers is\n%q\nwant\n%q", again, data)
	}
	clear(data)
	return copied
}

// sameContext compares the layers as seen from a view.
func sameContext(rt *rapid.T, got, want *dataflow.Layers, v dataflow.View) {
	gotContext, gotErr := got.Context(v)
	wantContext, wantErr := want.Context(v)
	if !reflect.DeepEqual(wantContext, gotContext) || gotErr != nil || wantErr != nil {
		rt.Fatalf("the context in %q as of %d differs (%v, %v):\n%s", v.Scope, v.AsOf, wantErr, gotErr, cmp.Diff(wantContext, gotContext))
	}
}

// sameReading compares what a template resolves to from a view, with the words of errors and the lineage.
func sameReading(rt *rapid.T, got, want *dataflow.Layers, v dataflow.View, tmpl *dataflow.Template) {
	for _, mode := range []dataflow.Unresolved{dataflow.UnresolvedError, dataflow.UnresolvedKeep} {
		r := dataflow.Request{View: v, OnUnresolved: mode}
		gotValue, gotTrace, gotErr := tmpl.Resolve(got, r)
		wantValue, wantTrace, wantErr := tmpl.Resolve(want, r)
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !bytes.Equal(gotValue, wantValue) || !reflect.DeepEqual(gotTrace, wantTrace) {
			rt.Fatalf("in %q as of %d got %s, %v, %v; want %s, %v, %v", v.Scope, v.AsOf, gotValue, gotErr, gotTrace, wantValue, wantErr, wantTrace)
		}
	}
	gotLineage, gotErr := tmpl.Lineage(got, dataflow.Request{View: v})
	wantLineage, wantErr := tmpl.Lineage(want, dataflow.Request{View: v})
	if !reflect.DeepEqual(gotLineage, wantLineage) || gotErr != nil || wantErr != nil {
		rt.Fatalf("the lineage in %q as of %d is %v, %v; want %v, %v", v.Scope, v.AsOf, gotLineage, gotErr, wantLineage, wantErr)
	}
}

// TestSnapshot_Model: at any point of a random history, layers that come back from a snapshot read the same from every
// scope as of every row, agree with the model, and go on in the same way.
func TestSnapshot_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		whole := drawHistory(rt)
		before := whole
		before.ops = whole.ops[:rapid.IntRange(0, len(whole.ops)).Draw(rt, "operations before")]
		l := before.layers(rt)
		if again := before.layers(rt); !bytes.Equal(snapshot(rt, l), snapshot(rt, again)) {
			rt.Fatal("the same history gives another snapshot")
		}

		var paths [][]string
		var spelled []string
		params := []string{"{{execution.id}}", "${workflow.id}", "{{{trigger}}}", "{{env.x}}"}
		for range rapid.IntRange(1, 6).Draw(rt, "placeholders") {
			path := drawPath(rt)
			paths, spelled = append(paths, path), append(spelled, writePlaceholder(rt, path))
			params = append(params, spelled[len(spelled)-1], "text "+spelled[len(spelled)-1])
		}
		tmpl, err := dataflow.Compile(encode(rt, params))
		if err != nil {
			rt.Fatal(err)
		}
		compare := func(got, want *dataflow.Layers, h modelHistory, readers []uint64) {
			scopes := h.readable()
			for _, asOf := range readers {
				m := h.at(asOf)
				for _, scope := range slices.Sorted(maps.Keys(scopes)) {
					if asOf < scopes[scope] {
						continue // nobody reads a scope as of before it was open
					}
					v := dataflow.View{Scope: scope, AsOf: asOf}
					sameContext(rt, got, want, v)
					sameReading(rt, got, want, v, tmpl)
					for i, path := range paths {
						value, found := m.read(scope, path)
						check(rt, got, scope, asOf, spelled[i], value, found, "restored")
					}
				}
			}
		}

		readers := rapid.SliceOfN(rapid.Uint64Range(0, before.last()), 0, 3).Draw(rt, "readers")
		if rapid.Bool().Draw(rt, "forget") {
			all := reborn(rt, l)
			l.Forget(readers...)
			compare(reborn(rt, l), all, before, append(readers, before.last())) // the last for activations to come
		} else {
			copied := reborn(rt, l)
			compare(copied, l, before, readers)
			for scope := range before.readable() {
				for asOf := range before.last() + 2 {
					sameContext(rt, copied, l, dataflow.View{Scope: scope, AsOf: asOf})
				}
			}
		}

		copied := reborn(rt, l)
		for i, op := range whole.ops[len(before.ops):] {
			if diff := cmp.Diff(applyTo(rt, l, op), applyTo(rt, copied, op)); diff != "" {
				rt.Fatalf("%s in %q does something else:\n%s", op.kind, op.scope, diff)
			}
			switch rapid.IntRange(0, 7).Draw(rt, "between") {
			case 0:
				if got, want := copied.Forget(readers...), l.Forget(readers...); got != want {
					rt.Fatalf("forgot %d; want %d", got, want)
				}
			case 1:
				if got, want := copied.Rewind(fmt.Sprint("plan", i)), l.Rewind(fmt.Sprint("plan", i)); got != want {
					rt.Fatalf("rewind tells %v; want %v", got, want)
				}
			case 2:
				copied = reborn(rt, copied)
			}
			if got, want := copied.Retained(), l.Retained(); got != want || copied.Scopes() != l.Scopes() || copied.PlanID() != l.PlanID() {
				rt.Fatalf("%d versions are held; want %d", got, want)
			}
			if got, want := snapshot(rt, copied), snapshot(rt, l); !bytes.Equal(got, want) {
				rt.Fatalf("after %s in %q the snapshots differ:\n%q\nwant\n%q", op.kind, op.scope, got, want)
			}
		}
		compare(copied, l, whole, []uint64{whole.last()})
	})
}

// TestSnapshot_AnyCalls has calls that no engine makes: siblings of one index, indexes out of order, odd names, calls
// that are refused. The restored layers answer all of them as the others do.
func TestSnapshot_AnyCalls(t *testing.T) {
	t.Parallel()
	paths := rapid.SampledFrom([]string{"", "e", "e[0]", "/e[0]", "e[1]", "e[2]", "e[3]", "e[5]", "e[05]", "e[0]/e[0]", "e[0]/e[1]", "e[0]/e", "\xff[4]", "e[9999999999]"})
	names := rapid.SampledFrom([]string{"", "a", "b", "\xff\x00", "ü"})
	rapid.Check(t, func(rt *rapid.T) {
		start := dataflow.Start{ExecutionID: names.Draw(rt, "execution"), PlanID: names.Draw(rt, "plan"), Initial: raw(`{"a":1,"a":{"b":2}}`),
			Env: map[string]string{names.Draw(rt, "variable"): "\xff"}}
		l, err := dataflow.New(start)
		if err != nil {
			rt.Fatal(err)
		}
		copied := reborn(rt, l)
		seq := uint64(1)
		for range rapid.IntRange(0, 40).Draw(rt, "calls") {
			seq += uint64(rapid.IntRange(0, 1).Draw(rt, "gap"))
			path := paths.Draw(rt, "path")
			node, name, output := names.Draw(rt, "node"), names.Draw(rt, "name"), map[string]json.RawMessage{}
			for range rapid.IntRange(0, 2).Draw(rt, "keys") {
				output[names.Draw(rt, "key")] = raw(rapid.SampledFrom([]string{`{"a":1, "b":[2]}`, `{"a":1,"a":2}`, `"x"`, ` null`, `{`}).Draw(rt, "payload"))
			}
			var call func(l *dataflow.Layers) (any, error)
			switch rapid.IntRange(0, 5).Draw(rt, "call") {
			case 0, 1:
				call = func(l *dataflow.Layers) (any, error) { return nil, l.OpenScope(path, seq, output) }
			case 2:
				call = func(l *dataflow.Layers) (any, error) { return l.CloseScope(path, seq) }
			case 3:
				call = func(l *dataflow.Layers) (any, error) {
					return nil, l.Fail(dataflow.Failure{Seq: seq, Scope: path, NodeID: node, NodeName: name, Message: name, Output: output})
				}
			default:
				call = func(l *dataflow.Layers) (any, error) {
					return l.Sync(dataflow.Step{Seq: seq, Scope: path, NodeID: node, NodeName: name, Output: output})
				}
			}
			if rapid.IntRange(0, 3).Draw(rt, "restore") == 0 {
				copied = reborn(rt, copied)
			}
			got, gotErr := call(copied)
			want, wantErr := call(l)
			if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				rt.Fatalf("got %v; want %v\n%s", gotErr, wantErr, diff)
			}
			if got, want := snapshot(rt, copied), snapshot(rt, l); !bytes.Equal(got, want) {
				rt.Fatalf("the snapshots differ:\n%q\nwant\n%q", got, want)
			}
		}
	})
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	t.Run("WritesAResultOnce", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		marker := strings.Repeat("z", 1000)
		open(t, l, "each[0]", 1, nil)
		open(t, l, "each[1]", 1, nil)
		sync(t, l, dataflow.Step{Seq: 2, Scope: "each[1]", NodeID: "n", NodeName: "Node", Output: payload(`{"a":"` + marker + `","b":1,"c":2}`)})
		if n := bytes.Count(snapshot(t, l), []byte(marker)); n != 1 {
			t.Fatalf("the payload stands %d times in the snapshot", n)
		}
		if trace := closeScope(t, l, "each[1]", 3); !trace.Held {
			t.Fatal("the overlay should wait")
		}
		if n := bytes.Count(snapshot(t, l), []byte(marker)); n != 1 {
			t.Fatalf("the payload of a held overlay stands %d times in the snapshot", n)
		}
	})
	t.Run("SizeIsLinear", func(t *testing.T) {
		t.Parallel()
		const each = 200 // the names in runtime_metadata, id, name, activation and the row
		for _, nodes := range []int{10, 100, 1000} {
			l, size := parkedLayers(t, nodes)
			l.Forget()
			if got := len(snapshot(t, l)) - size; got > nodes*each {
				t.Errorf("beside %d bytes of outputs the snapshot of %d nodes has %d bytes; want at most %d", size, nodes, got, nodes*each)
			}
		}
	})
	t.Run("LeavesOutWhatWasForgotten", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		for seq := range uint64(100) {
			sync(t, l, dataflow.Step{Seq: seq + 1, NodeID: "n", Output: payload(fmt.Sprintf(`{"a":"value %03d"}`, seq+1))})
		}
		l.Forget(40)
		data := snapshot(t, l)
		for value, want := range map[string]bool{"value 040": true, "value 100": true, "value 039": false, "value 099": false} {
			if got := bytes.Contains(data, []byte(value)); got != want {
				t.Errorf("%q in the snapshot: %v; want %v", value, got, want)
			}
		}
		copied := restore(t, data)
		if got := resolve(t, copied, `["{{a}}","{{n.outputs.a}}"]`, asOf(40)); got != `["value 040","value 040"]` {
			t.Fatalf("the open reader sees %s", got)
		}
		if n := copied.Forget(); n != 3 || copied.Retained() != 3 {
			t.Fatalf("dropped %d, %d are left; the restored layers must know what they can drop", n, copied.Retained())
		}
	})
	t.Run("KeepsTheOrderOfRows", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{})
		sync(t, l, dataflow.Step{Seq: 7, NodeID: "n", Output: payload(`{}`)})
		copied := restore(t, snapshot(t, l))
		if _, err := copied.Sync(dataflow.Step{Seq: 6, NodeID: "n"}); fault.CodeOf(err) != fault.Internal {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("KeepsTheOrderOfSiblings", func(t *testing.T) {
		t.Parallel()
		for _, paths := range [][]string{{"e", "e[0]"}, {"e[0]", "e"}, {"e[2]", "e[10]"}, {"e[10]", "e[2]"}} {
			l := newLayers(t, dataflow.Start{})
			open(t, l, "in[0]", 1, nil)
			for i, path := range paths {
				open(t, l, "in[0]/"+path, 3, nil)
				sync(t, l, dataflow.Step{Seq: 3, Scope: "in[0]/" + path, NodeID: "n", Output: payload(fmt.Sprintf(`{"a":%d}`, i))})
			}
			copied := reborn(t, l)
			closeScope(t, l, "in[0]", 4)
			closeScope(t, copied, "in[0]", 4)
			if got, want := resolve(t, copied, `"{{a}}"`, asOf(4)), resolve(t, l, `"{{a}}"`, asOf(4)); got != want {
				t.Errorf("opened as %q: a is %s; want %s", paths, got, want)
			}
		}
	})
	t.Run("FormatIsFixed", func(t *testing.T) {
		t.Parallel()
		l := newLayers(t, dataflow.Start{ExecutionID: "x", WorkflowID: "w", PlanID: "p", Initial: raw(`{"u":1}`), Env: map[string]string{"E": "v"}})
		open(t, l, "e[0]", 1, map[string]json.RawMessage{"item": raw("5")})
		open(t, l, "e[1]", 1, nil)
		sync(t, l, dataflow.Step{Seq: 300, Scope: "e[1]", Activation: "a1", NodeID: "n", NodeName: "N", ToolID: "t", Output: payload(`{"a":2}`)})
		closeScope(t, l, "e[1]", 301)
		if err := l.Fail(dataflow.Failure{Seq: 302, Scope: "e[0]", NodeID: "m", Message: "no"}); err != nil {
			t.Fatal(err)
		}
		// When this differs, the format has changed: so must the header.
		const want = `"tandem layers 1\n\x01p\xae\x02\x02\x01\x01u\x011\x02{}\n{\"id\":\"x\"}\n{\"id\":\"w\"}\x01\x01E\x03\"v\"\x01\x04e[0]\x00\x00\x00\x01\x01e\x01\x01\x01\x01\x01\x02\x01a\x01\x00\x01n\x01N\x01t\x04e[1]\x02a1\xac\x02\x01\x01\x06result\a{\"a\":2}\x00\x03n_a\x01\x00\x01\x01\x01n\x01\x01\x00\x00\x01\x01N\x01\x01\x01\x00\x00\x01\x04item\x015\x00\x01\x01m\x00\x01\xae\x02\x02\x01\x01m\x00\x00\x04e[0]\x00\xae\x02\x00\x02no\x00\x00\x00\x8c\xed7\xd1"`
		if got := fmt.Sprintf("%q", snapshot(t, l)); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestRestoreLayers_Refuses(t *testing.T) {
	t.Parallel()
	l := benchLayers(t)
	open(t, l, "each[0]", 20, map[string]json.RawMessage{"item": raw("1")})
	data := snapshot(t, l)
	refused := func(t *testing.T, what string, data []byte) {
		t.Helper()
		l, err := dataflow.RestoreLayers(data)
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || e.Code != fault.Internal || l != nil || !strings.Contains(e.Message, "apply the journal") {
			t.Fatalf("%s: got %v, %v", what, l, err)
		}
	}
	refused(t, "nothing", nil)
	refused(t, "JSON", []byte(`{"version":1}`))
	refused(t, "another format", bytes.Replace(data, []byte("layers 1"), []byte("layers 2"), 1))
	for n := range data {
		refused(t, fmt.Sprintf("the first %d bytes", n), data[:n])
	}
	for i := range data {
		broken := bytes.Clone(data)
		broken[i] ^= 1
		refused(t, fmt.Sprintf("a wrong bit in byte %d", i), broken)
	}
	refused(t, "more than there should be", append(bytes.Clone(data), 0))
}
