package engine

import (
	"encoding/json"
	"reflect"
	"testing"

	"tandem/fault"
	"tandem/payload"
)

// completions are facts as they are written, and whether they are read plainly.
func completions(t testing.TB) map[string]bool {
	written := func(f NodeCompleted) string {
		raw, err := AppendFact(nil, f)
		if err != nil {
			t.Fatal(err)
		}
		_, fact, ok := splitFact(string(raw))
		if !ok {
			t.Fatalf("%s cannot be taken apart", raw)
		}
		return fact
	}
	a := Attempt{Activation: "a[3]/b", Attempt: 1}
	return map[string]bool{
		written(NodeCompleted{}): true,
		written(NodeCompleted{Attempt: Attempt{Activation: "名", Generation: 3, Attempt: 1<<32 - 1}}):                    true,
		written(NodeCompleted{Attempt: a, Outputs: []Output{{Key: "result", Ref: "r2.0"}, {Key: "é"}, {}}}):             true,
		written(NodeCompleted{Attempt: a, Settled: []Verdict{{Edge: 2, Live: true, Ref: "r1.1"}, {}, {Edge: 1 << 20}}}): true,
		written(NodeCompleted{Attempt: a, Outputs: []Output{{Key: "x"}}, Settled: []Verdict{{Live: true}}}):             true,
		written(NodeCompleted{Attempt: a, Settled: []Verdict{{Edge: 1, Error: fault.New(fault.Internal, "x")}}}):        false,
		written(NodeCompleted{Attempt: a, Settled: []Verdict{{Edge: -1}}}):                                              false,
		written(NodeCompleted{Attempt: a, Reply: json.RawMessage(`{}`), Declared: []string{"x"}}):                       false,
		written(NodeCompleted{Attempt: Attempt{Activation: `a"b\`}}):                                                    false,
		`{"activation":"a","attempt":01}`:                         false,
		`{"activation":"a","attempt":}`:                           false,
		`{"activation":"a","attempt":4294967296}`:                 false,
		`{"activation":"a","attempt":1,"outputs":[]}`:             false,
		`{"activation":"a","attempt":1,"outputs":[{"key":"k"},]}`: false,
		`{"activation":"a","attempt":1,"outputs":[{"key":"k"}`:    false,
		`{"activation":"a","attempt":1}}`:                         false,
		`{"activation":"a","attempt":1}` + " ":                    false,
		`{"activation":"` + "\xff" + `","attempt":1}`:             false,
		`{"activation":"` + "\x01" + `","attempt":1}`:             false,
		`{"attempt":1,"activation":"a"}`:                          false,
		`{"activation":"a`:                                        false,
		`{}`:                                                      false,
		``:                                                        false,
	}
}

// creations are first facts as they are written, and whether they are read plainly.
func creations(t testing.TB) map[string]bool {
	written := func(f ExecutionCreated) string {
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	return map[string]bool{
		written(ExecutionCreated{}): true,
		written(ExecutionCreated{Semantics: 1, Execution: "exec_1", Revision: "h+名", Trigger: "start", TimeoutMS: 1 << 50, Depth: 3, Input: "r1.0"}): true,
		written(ExecutionCreated{Semantics: 1, Execution: "e", StartFrom: "n"}):                                                                      true,
		written(ExecutionCreated{Execution: "e", Program: "p"}):                                                                                      false,
		written(ExecutionCreated{Execution: "e", Config: json.RawMessage("{}")}):                                                                     false,
		written(ExecutionCreated{Execution: "e", Again: []ActivationID{"a"}}):                                                                        false,
		written(ExecutionCreated{Execution: "<e>"}):                                                                                                  false,
		written(ExecutionCreated{Semantics: -1}):                                                                                                     false,
		written(ExecutionCreated{TimeoutMS: -1}):                                                                                                     false,
		`{"semantics":1,"execution":"e","input":null}`:                                                                                               false,
		`{"semantics":1}`:                  false,
		`{"semantics":1,"execution":"e"} `: false,
		``:                                 false,
	}
}

// samePlainly checks that what is read plainly is what a reader of any JSON reads.
func samePlainly[F Fact](t *testing.T, read func(*payload.Exact) F, text string) bool {
	t.Helper()
	got, plain := readWhole(text, read)
	if !plain {
		return false
	}
	var want F
	if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is read as\n%#v\nand is\n%#v (%v)", text, got, want, err)
	}
	return true
}

func TestReadPlainFacts(t *testing.T) {
	t.Parallel()
	for text, plain := range completions(t) {
		if got := samePlainly(t, readCompleted, text); got != plain {
			t.Errorf("%s is read plainly: %v, want %v", text, got, plain)
		}
	}
	for text, plain := range creations(t) {
		if got := samePlainly(t, readCreated, text); got != plain {
			t.Errorf("%s is read plainly: %v, want %v", text, got, plain)
		}
	}
}

func FuzzReadPlainFacts(f *testing.F) {
	for text := range completions(f) {
		f.Add(text)
	}
	for text := range creations(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		samePlainly(t, readCompleted, text)
		samePlainly(t, readCreated, text)
	})
}
