package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tandem/workflow"
)

const standInFlow = `
metadata: {id: %[1]s, name: %[1]s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: n, description: d, type: FLOW, subtype: %[2]s, configurations: %[3]s}
  - {id: body, description: d, type: CALL, subtype: EMPTY}
  - {id: by_key, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
  - {id: by_result, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: n, conversion_function: "{'a': 1}"}
  - {from_node: n, to_node: body, output_key: %[4]s}
  - {from_node: n, to_node: by_key, output_key: %[5]s}
  - {from_node: n, to_node: by_result, output_key: result}
`

// What stands for the work of a node that is switched off, or that has failed, leaves it under its main key, whatever that is called.
func TestStandIn_LeavesUnderTheMainKey(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	fails := map[string]string{ // a configuration with which the kind fails
		"FOR_EACH": `items_path: "a["`, "LOOP": `loop_type: for_each, array_path: "a["`, "WHILE": `condition_expression: "int('x') > 0"`,
		"WAIT": `wait_type: signal, signal_name: s, timeout_seconds: 0.01`, "SPLIT": `items_path: "a["`,
	}
	works := map[string]string{"FOR_EACH": `items_path: a`, "LOOP": `loop_type: for_range`, "WHILE": `condition_expression: "false"`, "WAIT": `wait_type: timer, for_seconds: 600`, "SPLIT": `items_path: a`}
	for kind, config := range fails {
		entry, key := "iteration", "completed"
		switch kind {
		case "WAIT":
			entry = "cancelled"
		case "SPLIT":
			entry, key = "branch", "result"
		}
		for how, configurations := range map[string]string{
			"disabled": fmt.Sprintf(`{enabled: false, %s}`, works[kind]),
			"default":  fmt.Sprintf(`{on_error: default_output, default_output: {a: 1}, %s}`, config),
		} {
			t.Run(kind+"_"+how, func(t *testing.T) {
				t.Parallel()
				id := strings.ToLower(kind + "_" + how)
				x.save(t, fmt.Sprintf(standInFlow, id, kind, configurations, entry, key))
				e, _ := ran(t, x, id, `{}`)
				if e.Status != "SUCCESS" || !strings.Contains(string(e.NodeExecutions["n"].OutputData[key]), `"a":1`) {
					t.Errorf("status %s, %+v, outputs %s", e.Status, e.Error, e.NodeExecutions["n"].OutputData)
				}
				for _, after := range []string{"by_key", "by_result"} {
					if n := e.NodeExecutions[after]; n.Status != "completed" || !strings.Contains(string(n.OutputData["result"]), `"a":1`) {
						t.Errorf("%s is %s with %s", after, n.Status, n.OutputData)
					}
				}
			})
		}
	}
}

// Every kind has a main key, or refuses what would need one.
func TestStandIn_EveryKind(t *testing.T) {
	t.Parallel()
	without, with := []string{}, map[string]string{"FLOW.SWITCH": `"switch_value":"a","cases":[{"case":1,"output_key":"one"}]`}
	for _, name := range Kinds().Names() {
		kind, _ := Kinds().Kind(name)
		typ, subtype, _ := strings.Cut(name, ".")
		config := func(rest string) []byte { return []byte("{" + strings.Trim(with[name]+","+rest, ",") + "}") }
		plan, _ := kind.Plan(&workflow.Node{ID: "n", Type: typ, Subtype: subtype, Configurations: config("")})
		if _, ok := plan.MainKey(); ok {
			continue
		}
		without = append(without, name)
		for written, path := range map[string]string{
			`"enabled":false`: "configurations.enabled",
			`"on_error":"default_output","default_output":7`:            "configurations.default_output",
			`"on_error":"default_output","default_output":{"maybe":{}}`: "configurations.default_output.maybe",
		} {
			_, problems := kind.Plan(&workflow.Node{ID: "n", Type: typ, Subtype: subtype, Configurations: config(written)})
			if !slices.ContainsFunc(problems, func(p workflow.Problem) bool {
				return p.Path == path && p.Code == workflow.ProblemConfig && p.Severity == workflow.SeverityError
			}) {
				t.Errorf("%s takes %s: %v", name, written, problems)
			}
		}
		_, problems := kind.Plan(&workflow.Node{ID: "n", Type: typ, Subtype: subtype, Configurations: config(`"on_error":"default_output","default_output":{"` + plan.Keys[0] + `":{}}`)})
		for _, p := range problems {
			if strings.HasPrefix(p.Path, "configurations.default_output") {
				t.Errorf("%s does not take a payload for its own key: %v", name, p)
			}
		}
	}
	if !slices.Equal(without, []string{"FLOW.IF", "FLOW.SWITCH"}) {
		t.Errorf("kinds without a main key: %q", without)
	}
}

// What hangs on a key that a node does not produce while it is switched off is told.
func TestStandIn_WarnsOfKeysThatAreNotProduced(t *testing.T) {
	t.Parallel()
	report := Validate("f.yaml", []byte(fmt.Sprintf(standInFlow, "off", "WAIT", `{enabled: false, wait_type: timer, for_seconds: 1}`, "timeout", "completed")))
	var told []string
	for _, p := range report.Problems {
		if p.Code == workflow.ProblemDeadKey {
			told = append(told, p.Path)
		}
	}
	if !report.Valid || len(told) != 1 || told[0] != "connections[1].output_key" {
		t.Errorf("problems %+v", report.Problems)
	}
}
