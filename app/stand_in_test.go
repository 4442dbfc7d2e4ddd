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
		"FOR_EACH": `items_path: "{{execution.id}}["`, "LOOP": `loop_type: for_each, array_path: "{{execution.id}}["`, "WHILE": `condition_expression: "int('x') > 0"`,
		"WAIT": `wait_type: signal, signal_name: s, timeout_seconds: 0.01`, "SPLIT": `items_path: "{{execution.id}}["`,
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

// What a failure that is handled does to what comes after the node is told when the workflow is saved.
func TestStandIn_Handling(t *testing.T) {
	t.Parallel()
	const (
		dead     = "warning key_not_produced"
		unused   = "warning error_not_connected"
		refused  = "error invalid_config"
		defaults = "on_error: default_output, default_output: {d: 1}"
	)
	for name, c := range map[string]struct {
		node  string
		links string   // what leaves the node: keys, each to a node of its own
		want  []string // severity, code and path
	}{
		"Sort":            {"FLOW.SORT {sort_field: a, " + defaults + "}", "result sorted", []string{dead + " connections[2].output_key"}},
		"Validation":      {"ACTION.DATA_VALIDATION {schema: {type: object}, " + defaults + "}", "valid invalid", []string{dead + " connections[1].output_key", dead + " connections[2].output_key"}},
		"Filter":          {"FLOW.FILTER {conditions: [{field: a, operator: equals, value: 1}], " + defaults + "}", "passed", []string{dead + " connections[1].output_key"}},
		"Predicates":      {"FLOW.SPLIT {split_mode: predicate, predicate_paths: {big: 'item > 1'}, " + defaults + "}", "big result", []string{dead + " connections[1].output_key"}},
		"Model":           {"AI_AGENT.LLM {profile_id: demo, prompt: x, " + defaults + "}", "structured_data", []string{dead + " connections[1].output_key"}},
		"Main":            {"FLOW.SORT {sort_field: a, " + defaults + "}", "main result", nil},
		"Instead":         {"FLOW.WAIT {wait_type: timer, for_seconds: 1, " + defaults + "}", "completed timeout cancelled", nil},
		"SwitchedOff":     {"FLOW.SORT {enabled: false, sort_field: a, on_error: continue}", "result", nil},
		"Question":        {"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL {title: t, " + defaults + "}", "confirmed rejected", []string{refused + " nodes[1].configurations.on_error"}},
		"QuestionError":   {"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL {title: t, " + defaults + "}", "error", []string{refused + " nodes[1].configurations.on_error"}},
		"Advisory":        {"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL {title: t, advisory: true, " + defaults + "}", "result timeout confirmed", []string{dead + " connections[3].output_key"}},
		"OneBranch":       {"FLOW.IF {condition_expression: 'data.a', on_error: default_output, default_output: {'false': {}}}", "true false", nil},
		"BothBranches":    {"FLOW.IF {condition_expression: 'data.a', on_error: default_output, default_output: {'false': {}, 'true': {}}}", "true false", []string{refused + " nodes[1].configurations.default_output"}},
		"TwoCases":        {"FLOW.SWITCH {switch_value: data.a, cases: [{case: 1, output_key: one}], on_error: default_output, default_output: {one: {}, default: {}}}", "one default", []string{refused + " nodes[1].configurations.default_output"}},
		"Continue":        {"FLOW.SORT {sort_field: a, on_error: continue}", "result sorted", []string{unused + " nodes[1].configurations.on_error"}},
		"ContinueHandled": {"FLOW.SORT {sort_field: a, on_error: continue}", "result error", nil},
		"ContinueLast":    {"FLOW.SORT {sort_field: a, on_error: continue}", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, links := []string{guardStart, "n " + c.node}, []string{"start n"}
			for i, key := range strings.Fields(c.links) {
				nodes, links = append(nodes, fmt.Sprintf("k%d CALL.EMPTY", i)), append(links, fmt.Sprintf("n k%d %s", i, key))
			}
			var told []string
			for _, p := range Validate("f.yaml", []byte(guardFlow("f", "", nodes, links))).Problems {
				told = append(told, fmt.Sprintf("%s %s %s", p.Severity, p.Code, p.Path))
			}
			slices.Sort(told)
			if !slices.Equal(told, c.want) {
				t.Errorf("told %q, not %q", told, c.want)
			}
		})
	}
}

// A node of a body whose only way on is back to its loop may fail and be passed over: the loop tells of it.
func TestStandIn_ContinueInABody(t *testing.T) {
	t.Parallel()
	report := Validate("f.yaml", []byte(guardFlow("f", "", []string{guardStart, "each FLOW.FOR_EACH {items_path: l}", "n FLOW.SORT {sort_field: a, on_error: continue}"},
		[]string{"start each", "each n iteration", "n each"})))
	if len(report.Problems) > 0 {
		t.Errorf("problems %+v", report.Problems)
	}
}

// A branch that only a run can tell is one branch, too.
func TestStandIn_OneBranchWhenItRuns(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, guardFlow("both", "", []string{guardStart, `n FLOW.IF {condition_expression: "int('x') > 0", on_error: default_output, default_output: "{{instead}}"}`, "yes CALL.EMPTY", "no CALL.EMPTY"},
		[]string{"start n", "n yes true", "n no false"}))
	e, _ := ran(t, x, "both", `{"instead": {"true": {}, "false": {}}}`)
	if e.Status != "ERROR" || e.Error == nil || !strings.Contains(e.Error.ErrorMessage, "false, true; keep one of them") {
		t.Errorf("status %s, %+v", e.Status, e.Error)
	}
	if e, _ = ran(t, x, "both", `{"instead": {"false": {}}}`); e.Status != "SUCCESS" || e.NodeExecutions["no"].Status != "completed" || e.NodeExecutions["yes"].Status == "completed" {
		t.Errorf("status %s, %+v", e.Status, e.NodeExecutions)
	}
}
