package flow

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/expr"
	"tandem/node"
)

// A loop with a condition carries on what its iterations have changed, and nothing of what stays as it was.
func TestLoopState_CarriesWhatHasChanged(t *testing.T) {
	t.Parallel()
	doc := strings.Repeat("x", 10_000)
	for name, c := range map[string]struct {
		input, state, last string
		wantState, want    string // the next state, and the data by it; DOC stands for the large text
	}{
		"nothing":               {`{"doc":"DOC","n":1}`, `{}`, `{}`, `{}`, `{"doc":"DOC","n":1}`},
		"no object":             {`{"doc":"DOC","n":1}`, `{}`, `7`, `{}`, `{"doc":"DOC","n":1}`},
		"handed on":             {`{"doc":"DOC","n":1}`, `{}`, `{"doc":"DOC","n":1,"item":1}`, `{"over":{"item":1}}`, `{"doc":"DOC","n":1,"item":1}`},
		"changed":               {`{"doc":"DOC","n":1}`, `{}`, `{"n":2}`, `{"over":{"n":2}}`, `{"doc":"DOC","n":2}`},
		"changed again":         {`{"doc":"DOC","n":1}`, `{"over":{"n":2,"m":1}}`, `{"n":3}`, `{"over":{"n":3,"m":1}}`, `{"doc":"DOC","n":3,"m":1}`},
		"as it was":             {`{"doc":"DOC","n":1}`, `{"over":{"n":2}}`, `{"n":1}`, `{}`, `{"doc":"DOC","n":1}`},
		"data of its own":       {`{"data":{"doc":"DOC","n":1},"k":1}`, `{}`, `{"n":2}`, `{"over":{"n":2}}`, `{"doc":"DOC","n":2}`},
		"data is not an object": {`{"data":5,"k":1}`, `{}`, `{"n":2}`, `{"data":{"n":2}}`, `{"n":2}`},
		"an older journal":      {`{"doc":"DOC","n":1}`, `{"data":{"doc":"DOC","n":4}}`, `{"n":5}`, `{"data":{"doc":"DOC","n":5}}`, `{"doc":"DOC","n":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := func(s string) json.RawMessage { return json.RawMessage(strings.ReplaceAll(s, "DOC", doc)) }
			call := &node.Call{Input: full(c.input), Eval: func(source string, names map[string]any) (any, error) {
				program, err := expr.Compile(source)
				if err != nil {
					return nil, err
				}
				return program.Eval(expr.Vars{Values: names}, expr.Limits{})
			}}
			w := whileLoop{condition: "index < 9", limit: 100}
			a, err := w.turn(call, node.Turn{Index: 1, State: full(c.state), Last: func() json.RawMessage { return full(c.last) }})
			if err != nil || !a.Open {
				t.Fatalf("turn %+v, %v", a, err)
			}
			if string(a.State) != string(full(c.wantState)) {
				t.Errorf("state %.200s", a.State)
			}
			if got := w.data(call, a.State); string(got) != string(full(c.want)) {
				t.Errorf("data %.200s", got)
			}
			iteration, err := w.iteration(call, a.State, 1)
			if err != nil || !strings.Contains(string(iteration.Whole()), `"item":2`) || strings.Contains(c.want, "DOC") && !strings.Contains(string(iteration.Whole()), doc) {
				t.Errorf("iteration %.200s, %v", iteration.Whole(), err)
			}
		})
	}
}

// A condition is given what it reads of the data, by name and as data, with the names of the rest.
func TestLoopState_NamesWhatIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input, condition string
		want             string
	}{
		"a field":         {`{"n":1,"m":{"k":2},"doc":"x"}`, "data.m.k + n", `{"data":{"doc":null,"m":{"k":2},"n":1},"n":1}`},
		"all of it":       {`{"n":1,"doc":"x"}`, "len(data)", `{"data":{"doc":"x","n":1}}`},
		"by a name":       {`{"n":1,"k":"n"}`, "data[data.k]", `{"data":{"k":"n","n":1}}`},
		"nothing":         {`{"n":1,"doc":"x"}`, "index < 3", `{"data":{"doc":null,"n":null}}`},
		"data of its own": {`{"data":{"n":1},"m":2}`, "data.n + m", `{"data":{"n":1}}`},
		"no object":       {`{"data":[1,2]}`, "data[0]", `{"data":[1,2]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := &node.Call{Input: json.RawMessage(c.input)}
			program, err := expr.Compile(c.condition)
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]any{}
			(&loopState{}).names(keptBy(call).beginning(call), program, names)
			if got, err := json.Marshal(names); err != nil || string(got) != c.want {
				t.Errorf("names %s, %v", got, err)
			}
		})
	}
}
