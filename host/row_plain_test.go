package host

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"tandem/engine"
	"tandem/fault"
)

// plainRows are bodies of rows, and whether they are read in the plain way.
func plainRows(t testing.TB) map[string]bool {
	encode := func(r Row) string {
		body, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	value := func(text string) json.RawMessage { return json.RawMessage(text) }
	return map[string]bool{
		encode(Row{}): true,
		encode(Row{Facts: []engine.Fact{
			engine.ExecutionCreated{Semantics: engine.Semantics, Execution: "e", Revision: "h", Input: "r1.0"}, engine.ExecutionStarted{},
			engine.NodeCompleted{Attempt: engine.Attempt{Activation: "a[3]/b"}, Outputs: []engine.Output{{Key: "result", Ref: "r2.0"}}},
			engine.NodeFailed{Attempt: engine.Attempt{Activation: "a"}, Error: fault.New(fault.Internal, "<b> \"x\" \u2028").WithDetail("more").With("n", 3)},
		}, Values: []json.RawMessage{value(`{"a":[1, 2.50,null,"é\u00e9\\"]}`), value(`null`), nil, value(` "x" `)}}): true,
		encode(Row{Values: []json.RawMessage{value(`1`), nil}, Large: map[int]Blob{1: {Hash: "h", Size: 1 << 40}}, Closed: true}): true,
		encode(Row{Told: []Told{
			{What: ToldNode, Activation: "a", Generation: 4, Attempt: 2, Node: engine.NodeRetrying, Error: fault.New(fault.Timeout, "late"), Time: 1 << 50},
			{What: ToldExecution, Status: engine.StatusError, Error: fault.New(fault.Internal, "x").With("list", []any{1.0, "a"})},
			{What: ToldNode, Ask: "q", Purpose: "confirm", Ref: "r3.1", Detail: value(`{"d":[1]}`)}, {},
		}}): true,
		encode(Row{Told: []Told{{What: ToldNode, Activation: "名<b>"}, {Purpose: "a\"b\\"}}}): false,
		`{"facts":[]}`:                       true,
		` { "facts" : [ ] , "closed":false}`: false,
		`{"facts":[],"more":1}`:              false,
		`{"Facts":[]}`:                       false,
		`{"facts":null}`:                     false,
		`{"facts":[],"facts":[]}`:            false,
		`{"facts":[],"told":[{"w":"node","w":"ran","t":1,"t":2}]}`:                                  false,
		`{"facts":[],"told":[{"w":"node","t":01}]}`:                                                 false,
		`{"facts":[],"told":[{"w":"node","d":{"a":[}]}]}`:                                           false,
		`{"facts":[],"told":[{"w":"node"},]}`:                                                       false,
		`{"facts":[],"told":[]}`:                                                                    false,
		`{"facts":[],"values":[1,]}`:                                                                false,
		`{"facts":[],"values":[01]}`:                                                                false,
		`{"facts":[],"values":["x"y]}`:                                                              false,
		`{"facts":[],"values":[{"a":"]},\\\"b"},[{}],-0.5e3,true]}`:                                 true,
		`{"facts":[],"values":[1 ,2]}`:                                                              false,
		`{"facts":[],"told":[{"w":"node","A":"a"}]}`:                                                false,
		`{"facts":[],"told":[{"w":null}]}`:                                                          false,
		`{"facts":[],"told":[{"t":1.0}]}`:                                                           false,
		`{"facts":[],"told":[{"u":1e3}]}`:                                                           false,
		`{"facts":[],"told":[{"t":-1}]}`:                                                            false,
		`{"facts":[],"told":[{"w":"","e":null,"d":null}]}`:                                          true,
		`{"facts":[],"told":[null]}`:                                                                false,
		`{"facts":[],"values":{}}`:                                                                  false,
		`{"facts":[],"closed":1}`:                                                                   false,
		`{"facts":[{"type":"execution_started","fact":{}}]}`:                                        false,
		`{"facts":[{"fact":{},"type":"node_started"}]}`:                                             false,
		`{"facts":[{"type":"node_started","fact":{"activation":"a"},"more":1}]}`:                    false,
		`{"facts":[{"type":"gone","fact":{}}]}`:                                                     false,
		`{"facts":[{"type":"`:                                                                       false,
		`{"facts":["` + "\xff" + `"]}`:                                                              false,
		`{"facts":[],"values":["` + "\xff" + `"]}`:                                                  false,
		`{"facts":[],"values":[` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `]}`: false,
		`{"facts":[],"values":["` + strings.Repeat("x", maxPlainRow) + `"]}`:                        false,
		``: false, `null`: false, `[]`: false, `{`: false,
	}
}

// A row is read in the same way, or refused, however it is read.
func TestDecodePlainRow(t *testing.T) {
	t.Parallel()
	for body, plain := range plainRows(t) {
		if got := samePlainRow(t, []byte(body)); got != plain && !strings.Contains(body, `"type"`) {
			t.Errorf("%.200s is read in the plain way: %v, want %v", body, got, plain)
		}
	}
}

func samePlainRow(t *testing.T, body []byte) (plain bool) {
	t.Helper()
	want, err := decodeRow(7, 8, body)
	got, plain := decodePlainRow(7, 8, body)
	if plain && err != nil {
		t.Fatalf("%.300q is read as %+v and cannot be: %v", body, got, err)
	}
	if plain && !reflect.DeepEqual(got, want) {
		t.Fatalf("%.300q is read as\n%#v\nand is\n%#v", body, got, want)
	}
	return plain
}

func FuzzDecodePlainRow(f *testing.F) {
	for body := range plainRows(f) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { samePlainRow(t, body) })
}

// A row as most are is read with a few allocations: its text, and a list each of its facts, outputs, values and what is told.
func TestDecodeRow_Allocations(t *testing.T) { // not in parallel: it counts what the process allocates
	row := Row{
		Facts:  []engine.Fact{engine.NodeCompleted{Attempt: engine.Attempt{Activation: "n0", Attempt: 1}, Outputs: []engine.Output{{Key: "result", Ref: "r3.0"}}}},
		Values: []json.RawMessage{json.RawMessage(`{"customer":"c-1042","amount":129.5}`)},
		Told:   []Told{{What: ToldRan, Activation: "n0", Time: 1 << 40}, {What: ToldNode, Activation: "n1", Node: engine.NodeRunning}},
	}
	body, err := row.Encode()
	if err != nil {
		t.Fatal(err)
	}
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := DecodeRow(3, 4, body); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 6 {
		t.Errorf("to read a row takes %v allocations", allocations)
	}
}
