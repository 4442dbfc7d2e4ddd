package revisions

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/workflow"
)

// toolKinds are kinds whose conditions are known, and that say of themselves what the kinds of these names do.
type toolKinds struct{}

func (toolKinds) Kind(name string) (workflow.Kind, bool) {
	return workflow.Kind{Name: name, Plan: func(n *workflow.Node) (workflow.Plan, []workflow.Problem) {
		var c struct {
			Condition string          `json:"condition_expression"`
			OnError   string          `json:"on_error"`
			Arguments json.RawMessage `json:"function_args"`
			Through   bool            `json:"pass_through"`
		}
		_ = json.Unmarshal(n.Configurations, &c) // a node without configurations has neither
		plan := workflow.Plan{OnError: workflow.OnError(c.OnError)}
		if c.Condition != "" {
			plan.Expressions = []workflow.Expression{{Path: "configurations.condition_expression", Source: c.Condition}}
		}
		plan.Traits.ByHand = name == "TRIGGER.MANUAL"
		plan.Drops = c.Arguments != nil || name == "CALL.EMPTY" && !c.Through
		if name == "FLOW.IF" {
			plan.Traits.Chooses = workflow.ChoosesTruth
		}
		return plan, nil
	}}, true
}
func (toolKinds) Names() []string                  { return nil }
func (toolKinds) Alias(_, _ string) (string, bool) { return "", false }

// Of a workflow that does not say what it takes, or takes more, an input is complained of only where nothing can read it.
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
		"Empty":             {nodes: `{id: e, type: CALL, subtype: EMPTY}`, unused: "day"},
		"PassedThrough":     {nodes: `{id: e, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}`},
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
			source, problems := workflow.Parse([]byte(`{metadata: {name: w, settings: {`+c.settings+`}}, nodes: [{id: start, type: TRIGGER, subtype: MANUAL, configurations: {input_schema: {properties: {total: {}}, additionalProperties: true}}}, `+c.nodes+`], connections: [`+c.connections+`]}`), workflow.Options{Kinds: toolKinds{}})
			if source == nil || workflow.HasErrors(problems) {
				t.Fatalf("problems %+v", problems)
			}
			got := usesOf(source.Definition, nil, toolKinds{}, func(string) []string { return nil }).warnings(json.RawMessage(`{"day": 1, "total": 2, "context": 3}`))
			if len(got) > 1 || (len(got) == 1) != (c.unused != "") || len(got) == 1 && !strings.Contains(got[0], `"`+c.unused+`"`) {
				t.Errorf("warnings %q, unused %q", got, c.unused)
			}
		})
	}
}

// Of a workflow that says what it takes, an input is complained of that is not among that and that nothing names, whatever takes all of it.
func TestInputUse_Declared(t *testing.T) {
	t.Parallel()
	const (
		manual  = `{id: start, type: TRIGGER, subtype: MANUAL, configurations: {input_schema: {properties: {total: {description: "of the day"}}}}}`
		through = `{id: e, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}`
	)
	for name, c := range map[string]struct {
		nodes, connections, settings string
		unused                       bool
	}{
		"PassedThrough":   {nodes: manual + "," + through, unused: true},
		"Code":            {nodes: manual + `,{id: c, type: ACTION, subtype: RUN_CODE, configurations: {code: "def main(d): return d"}}`, unused: true},
		"CodeReadsIt":     {nodes: manual + `,{id: c, type: ACTION, subtype: RUN_CODE, configurations: {code: "def main(d): return d['day']"}}`},
		"PathToIt":        {nodes: manual + `,{id: c, type: FLOW, subtype: FOR_EACH, configurations: {items_path: day.list}}`},
		"PlaceholderOfIt": {nodes: manual + `,{id: c, type: CALL, subtype: EMPTY, input_params: {x: "{{day}}"}}`},
		"ConversionOfIt":  {nodes: manual + "," + through, connections: `{from_node: start, to_node: e, conversion_function: "lambda x: x.get('day')"}`},
		"KindReadsIt":     {nodes: manual + `,{id: c, type: AI_AGENT, subtype: READS_DAY}`},
		"ErrorWorkflow":   {nodes: manual + "," + through, settings: `error_workflow: e`, unused: true},
		"BesideAClock":    {nodes: manual + `,{id: cron, type: TRIGGER, subtype: CRON},` + through, unused: true},
		"AnotherTakesAll": {nodes: manual + `,{id: other, type: TRIGGER, subtype: MANUAL},` + through},
		"TakesMore":       {nodes: strings.Replace(manual, "properties:", "additionalProperties: {type: string}, properties:", 1) + "," + through},
		"Combined":        {nodes: strings.Replace(manual, "properties:", "allOf: [{properties: {day: {}}}], properties:", 1) + "," + through},
		"Closed":          {nodes: strings.Replace(manual, "properties:", "additionalProperties: false, properties:", 1) + "," + through, unused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, problems := workflow.Parse([]byte(`{metadata: {name: w, settings: {`+c.settings+`}}, nodes: [`+c.nodes+`], connections: [`+c.connections+`]}`), workflow.Options{Kinds: toolKinds{}})
			if source == nil || workflow.HasErrors(problems) {
				t.Fatalf("problems %+v", problems)
			}
			fields := func(kind string) []string {
				if kind == "AI_AGENT.READS_DAY" {
					return []string{"*", "day.of_week"}
				}
				return nil
			}
			got := usesOf(source.Definition, nil, toolKinds{}, fields).warnings(json.RawMessage(`{"day": 1, "total": 2}`))
			if len(got) > 1 || (len(got) == 1) != c.unused || c.unused && !strings.Contains(got[0], `"day" is not declared`) {
				t.Errorf("warnings %q", got)
			}
		})
	}
}
