package dataflow

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/payload"
)

// seal puts the header before a snapshot's body and the right checksum behind it.
func seal(body []byte) []byte {
	data := append([]byte(snapshotHeader), body...)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

// body is a snapshot without header and checksum.
func body(data []byte) []byte { return data[len(snapshotHeader) : len(data)-checksumSize] }

// richLayers have some of everything: versions, failures, names, nested scopes and overlays that wait.
func richLayers(tb testing.TB) *Layers {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	l, err := New(Start{ExecutionID: "x", WorkflowID: "w", PlanID: "p", Initial: json.RawMessage(`{"u":{"v":1}}`), Trigger: json.RawMessage(`{"t":true}`),
		Env: map[string]string{"E": "v"}})
	must(err)
	seq := uint64(0)
	step := func(scope, node, name, output string) {
		tb.Helper()
		seq++
		_, err := l.Sync(Step{Seq: seq, Scope: scope, Activation: "a", NodeID: node, NodeName: name, Output: map[string]json.RawMessage{DefaultKey: json.RawMessage(output)}})
		must(err)
	}
	step("", "n", "Node", `{"a":1,"b":2}`)
	step("", "n", "Node", `{"a":3}`)
	for _, path := range []string{"e[0]", "e[1]", "e[2]", "e[3]", "e[4]", "e[0]/f[0]", "e[0]/f[1]"} {
		must(l.OpenScope(path, seq, map[string]json.RawMessage{"item": json.RawMessage(`{"i":0}`)}))
		step(path, "n", "Node", `{"a":4}`)
		step(path, "m", "m", `[5]`)
		seq++
		must(l.Fail(Failure{Seq: seq, Scope: path, NodeID: "n", NodeName: "Node", Message: "no", Output: map[string]json.RawMessage{"error": json.RawMessage(`{"code":1}`), "more": json.RawMessage("0")}}))
	}
	for _, path := range []string{"e[1]", "e[2]", "e[4]", "e[0]/f[1]"} {
		_, err := l.CloseScope(path, seq)
		must(err)
	}
	return l
}

// useUp reads and ends everything in layers, for whatever may be wrong inside them.
func useUp(tb testing.TB, l *Layers) {
	tb.Helper()
	tmpl, err := Compile(json.RawMessage(`["{{n.outputs.a}} {{a}} {{b}} {{Node.a}} {{u.v}} {{item.i}} {{trigger.t}} {{env.E}} {{execution.id}} {{workflow.id}} {{nope}}"]`))
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(l.scopes)) {
		for _, asOf := range []uint64{0, l.seq / 2, l.seq} {
			v := View{Scope: path, AsOf: asOf}
			if _, err := l.Context(v); err != nil {
				tb.Fatal(err)
			}
			if _, err := tmpl.Lineage(l, Request{View: v, OnUnresolved: UnresolvedKeep}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	l.Forget(l.seq / 2)
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(l.scopes))) {
		if path == "" {
			continue
		}
		if _, err := l.Sync(Step{Seq: l.seq, Scope: path, NodeID: "n", Output: map[string]json.RawMessage{DefaultKey: json.RawMessage(`{"a":1}`)}}); err != nil {
			tb.Fatal(err)
		}
		if _, err := l.CloseScope(path, l.seq); err != nil {
			tb.Fatal(err)
		}
	}
	l.Forget()
	held := len(l.root.runtime)
	for _, table := range []map[string]*attempts{l.root.steps, l.root.named} {
		for _, a := range table {
			held += min(1, len(a.ok.versions)) + min(1, len(a.failed.versions))
		}
	}
	if l.Retained() != held {
		tb.Fatalf("%d versions are said to be held; there are %d names", l.Retained(), held)
	}
}

// restoreAny says whether data was taken. What was taken is canonical and can be used; what was not has its code.
func restoreAny(tb testing.TB, data []byte) bool {
	tb.Helper()
	l, err := RestoreLayers(data)
	if err != nil {
		if fault.CodeOf(err) != fault.Internal || l != nil {
			tb.Fatalf("got %v, %v", l, err)
		}
		return false
	}
	again, err := l.Snapshot()
	if err != nil || !bytes.Equal(again, data) {
		tb.Fatalf("%q was taken and is written as %q, %v", data, again, err)
	}
	useUp(tb, l)
	return true
}

func FuzzRestoreLayers(f *testing.F) {
	empty, err := New(Start{})
	if err != nil {
		f.Fatal(err)
	}
	for _, l := range []*Layers{empty, richLayers(f)} {
		data, err := l.Snapshot()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(body(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		restoreAny(t, data)
		restoreAny(t, seal(data)) // past the checksum, which a mutation hardly ever gets right
	})
}

// TestRestoreLayers_Mutated changes every byte of a snapshot's body, cuts it everywhere and repairs the checksum.
func TestRestoreLayers_Mutated(t *testing.T) {
	t.Parallel()
	l := richLayers(t)
	data, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if !restoreAny(t, data) {
		t.Fatal("the snapshot was not taken")
	}
	inside := body(data)
	taken := 0
	for i := range inside {
		if restoreAny(t, seal(inside[:i])) {
			t.Fatalf("a snapshot cut at byte %d was taken", i)
		}
		for _, b := range []byte{0, inside[i] + 1, inside[i] ^ 0x80} {
			broken := bytes.Clone(inside)
			broken[i] = b
			if restoreAny(t, seal(broken)) {
				taken++
			}
		}
	}
	if taken == 0 {
		t.Fatal("no change was taken, so what was taken was never used; a changed letter of a text is harmless")
	}
}

// TestRestoreLayers_Inconsistent breaks what the layers rely on, one thing at a time. Every break is written into a
// well-formed snapshot, and none of them is taken.
func TestRestoreLayers_Inconsistent(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(l *Layers){
		"keys are not in order": func(l *Layers) {
			l.initial = []payload.Member{{Key: "b", Value: l.trigger}, {Key: "a", Value: l.trigger}}
		},
		"a payload is broken":       func(l *Layers) { l.env["E"] = json.RawMessage(`{"a":`) },
		"white space":               func(l *Layers) { l.env["E"] = json.RawMessage(`[1, 2]`) },
		"is broken: it is not":      func(l *Layers) { l.env["E"] = nil },
		"not an object":             func(l *Layers) { l.trigger = json.RawMessage(`[]`) },
		"ends too early":            func(l *Layers) { l.trigger = nil; l.about["execution"] = json.RawMessage(strings.Repeat(" ", 1<<16)) },
		"whose parent is not":       func(l *Layers) { l.scopes["gone[0]/in[0]"] = newScope("gone[0]/in[0]", l.root) },
		"not among its siblings":    func(l *Layers) { l.scopes["late[0]"] = newScope("late[0]", l.root) },
		"a sibling is out of":       func(l *Layers) { g := l.root.siblings["e"]; g.open[1] = g.open[0] },
		"overlays wait for no":      func(l *Layers) { l.root.siblings["g"] = &siblings{} },
		"a sibling is not open":     func(l *Layers) { g := l.root.siblings["e"]; g.open[0] = l.root },
		"overlays are not in":       func(l *Layers) { g := l.root.siblings["e"]; g.held = append(g.held, g.held[0]) },
		"ends before it begins":     func(l *Layers) { l.root.siblings["e"].held[0].low = 999 },
		"index is too large":        func(l *Layers) { l.root.siblings["e"].held[0].high = 1e9 },
		"row that is still":         func(l *Layers) { l.root.steps["n"].ok.versions[0].value.seq = l.seq + 1 },
		"a name has no value":       func(l *Layers) { l.root.runtime["zz"] = &history[datum]{} },
		"a node has no result":      func(l *Layers) { l.root.steps["zz"] = &attempts{} },
		"under a name that is":      func(l *Layers) { l.root.named["zz"] = l.root.named["Node"] },
		"under an id that is":       func(l *Layers) { l.root.steps["zz"] = l.root.steps["n"] },
		"not a field of its result": func(l *Layers) { l.root.runtime["a"].versions[0].value.from.success = false },
		"versions are not in":       func(l *Layers) { slices.Reverse(l.root.steps["n"].ok.versions) },
		"a failure stands":          func(l *Layers) { a := l.root.steps["n"]; a.failed = a.ok },
		"an ordinal is wrong":       func(l *Layers) { v := l.root.steps["n"].ok.versions; v[0].ordinal = v[1].ordinal },
		"(byte ":                    func(l *Layers) { l.ordinal = 1 },
		"in the order of their ro":  func(l *Layers) { l.root.runtime["a"].versions[1].seq = l.seq + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := richLayers(t)
			breakIt(l)
			data, err := l.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			_, err = RestoreLayers(data)
			if fault.CodeOf(err) != fault.Internal || !strings.Contains(err.Error(), name) {
				t.Fatalf("got %v", err)
			}
		})
	}
	t.Run("LongNumber", func(t *testing.T) {
		t.Parallel()
		data, err := richLayers(t).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		inside := bytes.Clone(body(data))
		inside = append([]byte{inside[0] | 0x80, 0}, inside[1:]...) // the length of the plan id, in two bytes
		if _, err := RestoreLayers(seal(inside)); err == nil || !strings.Contains(err.Error(), "a number is broken") {
			t.Fatalf("got %v", err)
		}
	})
}

func TestSnapshot_RefusesForeignValue(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(l *Layers){
		"Field": func(l *Layers) {
			d := &l.root.runtime["a"].versions[0].value
			d.at = (d.at + 1) % len(d.from.fields)
		},
		"Name": func(l *Layers) { l.root.runtime["zz"] = l.root.runtime["a"] },
		"Node": func(l *Layers) { l.root.runtime["m_a"] = l.root.runtime["a"] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := richLayers(t)
			breakIt(l)
			if data, err := l.Snapshot(); data != nil || fault.CodeOf(err) != fault.Internal {
				t.Fatalf("got %q, %v", data, err)
			}
		})
	}
}
