package revisions

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/workflow"
)

// toolKinds are kinds whose conditions are known.
type toolKinds struct{}

func (toolKinds) Kind(name string) (workflow.Kind, bool) {
	return workflow.Kind{Name: name, Plan: func(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
		var c struct {
			Condition string `json:"condition_expression"`
			OnError   string `json:"on_error"`
		}
		_ = json.Unmarshal(n.Configurations, &c) // a node without configurations has neither
		plan := workflow.Plan{OnError: workflow.OnError(c.OnError)}
		if c.Condition != "" {
			plan.Expressions = []workflow.Expression{{Path: "configurations.condition_expression", Source: c.Condition}}
		}
		return plan, nil
	}}, true
}
func (toolKinds) Names() []string                  { return nil }
func (toolKinds) Alias(_, _ string) (string, bool) { return "", false }

// An input is complained of only where nothing can read it.
func TestInputUse(t *testing.T) {
	t.Parallel()
	tool := func(args string) string {
		return `{id: t, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: s, tool_name: x, function_args: ` + args + `}}`
	}
	branch := func(condition string) string {
		return `{id: is, type: FLOW, subtype: IF, configurations: {condition_expression: "` + condition + `"}}, ` + tool(`{a: 1}`)
	}
	const both = `{from_node: is, to_node: t, output_key: "true"}, {from_node: is, to_node: t, output_key: "false"}`
	for name, c := range map[string]struct{ nodes, connections, settings, unused string }{
		"NotRead":           {nodes: tool(`{day: "2026-03-01"}`), unused: "day"},
		"Placeholder":       {nodes: tool(`{d: "{{day}}"}`)},
		"OfTheTrigger":      {nodes: tool(`{d: "{{start.outputs.day}}"}`)},
		"JoinedName":        {nodes: tool(`{d: "{{start_day}}"}`)},
		"Dollar":            {nodes: tool(`{d: "${day}"}`)},
		"Whole":             {nodes: tool(`{d: "{{inputs}}"}`)},
		"WholeOfTheTrigger": {nodes: tool(`{d: "{{start.outputs.result}}"}`)},
		"TheTriggerItself":  {nodes: tool(`{d: "{{start}}"}`)},
		"ResultOfATool":     {nodes: tool(`{d: "{{t.outputs.result}}"}`), unused: "day"},
		"NoArguments":       {nodes: `{id: t, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: s, tool_name: x}}`},
		"ErrorHandsItOn":    {nodes: `{id: t, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: s, on_error: continue, function_args: {}}}`},
		"OtherKinds":        {nodes: tool(`{}`) + `, {id: c, type: ACTION, subtype: RUN_CODE, configurations: {code: "def main(d): return d"}}`},
		"OnlyATrigger":      {},
		"Condition":         {nodes: branch("input.day == 1"), connections: both},
		"OtherCondition":    {nodes: branch("input.total > 1"), connections: both, unused: "day"},
		"WholeInACondition": {nodes: branch("size(input) > 1"), connections: both},
		"DynamicIndex":      {nodes: branch("input[input.name] > 1"), connections: both},
		"OpenBranch":        {nodes: branch("input.total > 1"), connections: `{from_node: is, to_node: t, output_key: "true"}`},
		"Python":            {nodes: tool(`{}`), connections: `{from_node: start, to_node: t, conversion_function: "lambda x: x"}`},
		"Expression":        {nodes: tool(`{}`), connections: `{from_node: start, to_node: t, conversion_function: "{a: input.total}"}`, unused: "day"},
		"ErrorWorkflow":     {nodes: tool(`{}`), settings: `error_workflow: e`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, problems := workflow.Parse([]byte(`{metadata: {name: w, settings: {`+c.settings+`}}, nodes: [{id: start, type: TRIGGER, subtype: MANUAL, configurations: {input_schema: {properties: {total: {}}}}}, `+c.nodes+`], connections: [`+c.connections+`]}`), workflow.Options{Kinds: toolKinds{}})
			if source == nil || workflow.HasErrors(problems) {
				t.Fatalf("problems %+v", problems)
			}
			got := usesOf(source.Definition, toolKinds{}).warnings(json.RawMessage(`{"day": 1, "total": 2, "context": 3}`))
			if len(got) > 1 || (len(got) == 1) != (c.unused != "") || len(got) == 1 && !strings.Contains(got[0], `"`+c.unused+`"`) {
				t.Errorf("warnings %q, unused %q", got, c.unused)
			}
		})
	}
}
