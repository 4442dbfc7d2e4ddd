package app

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tandem/engine"
	"tandem/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.IsChild() {
		sandbox.Child()
	}
	os.Exit(m.Run())
}

// Conversion functions are run in the language that their form tells, by the real interpreters.
func TestInstance_Conversions(t *testing.T) {
	t.Parallel()
	i := openInstance(t, t.TempDir())
	t.Cleanup(func() { // after the subtests
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	flow := func(id, conversion string) string {
		quoted, err := json.Marshal(conversion)
		if err != nil {
			t.Fatal(err)
		}
		return `
metadata: {id: ` + id + `, name: ` + id + `, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: out, conversion_function: ` + string(quoted) + `}
`
	}
	for name, c := range map[string]struct {
		conversion string
		want       string
		status     engine.Status
		part       string
	}{
		"python": {"from typing import Any, Dict\n\ndef convert(input_data: Dict[str, Any]) -> Dict[str, Any]:\n" +
			"    value = input_data.get('value', {})\n    def double(n): return n * 2\n" +
			"    return {**{'sum': sum(double(n) for n in value['list'])}, 'text': f\"{len(set(value['list']))} of them\"}", `{"sum":12,"text":"3 of them"}`, engine.StatusSuccess, ""},
		"lambda":     {"lambda x: {'first': sorted(x['list'], key=lambda n: -n)[0]}", `{"first":3}`, engine.StatusSuccess, ""},
		"javascript": {"x => ({n: x.data.list.length, own: x.list[1]})", `{"n":3,"own":2}`, engine.StatusSuccess, ""},
		"raises":     {"def convert(x):\n    y = 1\n    return x['nothing']", "", engine.StatusError, "line 3"},
		"skips":      {"x => ({skip_execution: true})", "", engine.StatusSuccess, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i.saveText(t, flow(name, c.conversion))
			id := i.startText(t, name, `{"list":[1,2,3]}`)
			e := i.ends(t, id, c.status)
			if c.status == engine.StatusError {
				if !strings.Contains(e.Error, c.part) {
					t.Errorf("the execution failed with %q", e.Error)
				}
				return
			}
			outputs, err := i.Outputs(t.Context(), user, id)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(outputs["out"]); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
