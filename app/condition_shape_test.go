package app

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A condition directly behind a trigger that says what it takes is held against that.
func TestValidate_ConditionsThatReadWhatIsNotThere(t *testing.T) {
	t.Parallel()
	const open = `{type: object, properties: {amount: {type: number}, customer: {type: object, properties: {name: {type: string}}, additionalProperties: false}, any: {}}}`
	closed := strings.TrimSuffix(open, "}") + `, additionalProperties: false}`
	for name, c := range map[string]struct{ schema, condition, more, connection, want string }{
		"Misspelt":     {schema: open, condition: "input.amout > 1", want: `did you mean "input.amount"`},
		"Data":         {schema: open, condition: "data.amout > 1", want: `did you mean "data.amount"`},
		"Closed":       {schema: closed, condition: "input.colour == 'red'", want: `"input.colour"`},
		"Deep":         {schema: open, condition: "input.customer.colour == 'red'", want: `"input.customer.colour"`},
		"Open":         {schema: open, condition: "input.colour == 'red'"},
		"There":        {schema: closed, condition: "input.amount > 1 && input.customer.name == 'ann' && input.any.thing == 1"},
		"OfTheTrigger": {schema: closed, condition: "input.user_id == 'ann'"},
		"Asked":        {schema: closed, condition: "(input.amout ?? 0) > 1"},
		"Combined":     {schema: strings.TrimSuffix(open, "}") + `, allOf: [{properties: {amout: {}}}]}`, condition: "input.amout > 1"},
		"Parameters":   {schema: closed, condition: "input.amout > 1", more: `, input_params: {amout: 1}`},
		"Converted":    {schema: closed, condition: "input.amout > 1", connection: `, conversion_function: "{amout: 1}"`},
		"Field":        {schema: open, condition: "customer.nmae == 'ann'", want: `did you mean "customer.name"`},
		"Bare":         {schema: open, condition: "amout > 1", want: `is an error; did you mean "amount"`},
		"BareClosed":   {schema: closed, condition: "colour == 'red'", want: `"colour"`},
		"BareOpen":     {schema: open, condition: "colour == 'red'"},
		"Trigger":      {schema: open, condition: "trigger.amout > 1", want: `did you mean "trigger.amount"`},
		"Initial":      {schema: closed, condition: "initial.colour == 'red'", want: `"initial.colour"`},
		"Runtime":      {schema: open, condition: "runtime.amout > 1", want: `did you mean "runtime.amount"`},
		"RuntimeOther": {schema: closed, condition: "runtime.colour == 'red'"},
		"Steps":        {schema: open, condition: "steps.start.amout > 1", want: `did you mean "steps.start.amount"`},
		"StepsOther":   {schema: closed, condition: "steps.other.amout > 1"},
		"Names":        {schema: closed, condition: "execution.id != '' && any(input.any, x => x.amout > 1)"},
		"NoSchema":     {schema: `{}`, condition: "input.amout > 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Validate("f.yaml", []byte(`
metadata: {id: f, name: f, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL, configurations: {input_schema: `+c.schema+`}}
  - {id: is, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "`+c.condition+`"}`+c.more+`}
connections:
  - {from_node: start, to_node: is`+c.connection+`}
`))
			if c.want == "" && len(r.Problems) == 0 {
				return
			}
			if !r.Valid || len(r.Problems) != 1 || c.want == "" || !strings.Contains(r.Problems[0].Message, c.want) || r.Problems[0].Code != "missing_field" || r.Problems[0].Line == 0 ||
				r.Problems[0].Path != "nodes[1].configurations.condition_expression" {
				t.Errorf("problems %+v", r.Problems)
			}
		})
	}
}

// So are the expressions of other kinds and of connections, as far as they read what the trigger hands on.
func TestValidate_ExpressionsThatReadWhatIsNotThere(t *testing.T) {
	t.Parallel()
	const declares = `start TRIGGER.MANUAL {input_schema: {type: object, properties: {count: {type: integer}, l: {type: array}}}}`
	for name, c := range map[string]struct{ node, conversion, path, want string }{
		"While":          {node: `FLOW.WHILE {condition_expression: "data.cuont < 3"}`, path: "nodes[1].configurations.condition_expression", want: `"data.count"`},
		"WhileMakes":     {node: `FLOW.WHILE {condition_expression: "data.ready == false"}`},
		"Loop":           {node: `FLOW.LOOP {loop_type: while, loop_condition: "data.cuont < 3"}`, path: "nodes[1].configurations.loop_condition", want: `"data.count"`},
		"Break":          {node: `FLOW.FOR_EACH {items_path: l, break_condition: "item.cuont > input.cuont"}`, path: "nodes[1].configurations.break_condition", want: `"input.count"`},
		"Wait":           {node: `FLOW.WAIT {wait_type: condition, wait_condition: "trigger.cuont > 1 || runtime.done"}`, path: "nodes[1].configurations.wait_condition", want: `"trigger.count"`},
		"Filter":         {node: `FLOW.FILTER {filter_type: complex_expression, conditions: [{expression: "item.n > initial.cuont"}]}`, path: "nodes[1].configurations.conditions[0].expression", want: `"initial.count"`},
		"Conversion":     {node: `CALL.EMPTY`, conversion: "{'n': value.cuont}", path: "connections[0].conversion_function", want: `"value.count"`},
		"ConversionBare": {node: `CALL.EMPTY`, conversion: "{'n': cuont}", path: "connections[0].conversion_function", want: `"count"`},
		"ConversionFine": {node: `CALL.EMPTY`, conversion: "{'n': count, 'o': output.l, 'u': user_id}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, links := []string{declares, "n " + c.node, "body CALL.EMPTY"}, []string{"start n", "n body iteration", "body n"}
			if !strings.Contains(c.node, "FLOW.WHILE") && !strings.Contains(c.node, "FLOW.LOOP") && !strings.Contains(c.node, "FOR_EACH") {
				nodes, links = nodes[:2], links[:1]
			}
			flow := guardFlow("f", "", nodes, links)
			if c.conversion != "" {
				flow = strings.Replace(flow, "to_node: n}", `to_node: n, conversion_function: "`+c.conversion+`"}`, 1)
			}
			r := Validate("f.yaml", []byte(flow))
			if c.want == "" && len(r.Problems) == 0 {
				return
			}
			if len(r.Problems) != 1 || c.want == "" || r.Problems[0].Code != "missing_field" || r.Problems[0].Path != c.path || !strings.Contains(r.Problems[0].Message, "did you mean "+c.want) {
				t.Errorf("problems %+v", r.Problems)
			}
		})
	}
}

// A run tells of the fields that a configuration names and that were never there, wherever an expression or a path stands.
func TestWarns_OfFieldsThatAreNotThere(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	for name, c := range map[string]struct{ node, conversion, input, want string }{
		"while":       {node: `FLOW.WHILE {condition_expression: "data.cuont < 3", max_iterations: 2}`, input: `{"count":0}`, want: `"data.cuont", which is not there and counts as null; did you mean "data.count"?`},
		"while_ends":  {node: `FLOW.WHILE {condition_expression: "data.ready"}`, input: `{"count":0}`, want: `"data.ready"`},
		"while_makes": {node: `FLOW.WHILE {condition_expression: "!data.item", max_iterations: 2}`, input: `{"count":0}`},
		"loop":        {node: `FLOW.LOOP {loop_type: while, loop_condition: "data.cuont < 3"}`, input: `{"count":0}`, want: `did you mean "data.count"?`},
		"break":       {node: `FLOW.FOR_EACH {items_path: l, break_condition: "item.stpo == true"}`, input: `{"l":[{"stop":true},{"stop":false}]}`, want: `did you mean "item.stop"?`},
		"split":       {node: `FLOW.SPLIT {split_mode: predicate, items_path: l, predicate_paths: {big: "item.amuont > 1"}}`, input: `{"l":[{"amount":5}]}`, want: `did you mean "item.amount"?`},
		"split_path":  {node: `FLOW.SPLIT {split_mode: predicate, items_path: l, predicate_paths: {big: "amuont"}}`, input: `{"l":[{"amount":5}]}`, want: `"amuont" is in no item and counts as null; did you mean "amount"?`},
		"split_some":  {node: `FLOW.SPLIT {split_mode: predicate, items_path: l, predicate_paths: {big: "item.amount > 1"}}`, input: `{"l":[{"a":1},{"amount":5}]}`},
		"filter":      {node: `FLOW.FILTER {conditions: [{field: amuont, operator: greater_than, value: 0}]}`, input: `{"data":[{"amount":1}]}`, want: `"amuont" is in no item and counts as null; did you mean "amount"?`},
		"filter_some": {node: `FLOW.FILTER {conditions: [{field: amount, operator: greater_than, value: 0}]}`, input: `{"data":[{"a":1},{"amount":1}]}`},
		"filter_null": {node: `FLOW.FILTER {conditions: [{field: amount, operator: is_null}]}`, input: `{"data":[{"a":1}]}`},
		"filter_expr": {node: `FLOW.FILTER {filter_type: complex_expression, conditions: [{expression: "item.amuont > 0"}]}`, input: `{"data":[{"amount":1}]}`, want: `did you mean "item.amount"?`},
		"sort":        {node: `FLOW.SORT {sort_field: amuont}`, input: `{"data":[{"amount":1}]}`, want: `did you mean "amount"?`},
		"items_path":  {node: `FLOW.FOR_EACH {items_path: ordres}`, input: `{"orders":[1]}`, want: `items_path is "ordres", which the input does not have: the list counts as empty; did you mean "orders"?`},
		"array_path":  {node: `FLOW.LOOP {loop_type: for_each, array_path: a.lits}`, input: `{"a":{"list":[1]}}`, want: `did you mean "a.list"?`},
		"items_null":  {node: `FLOW.FOR_EACH {items_path: orders}`, input: `{"orders":null}`},
		"wait":        {node: `FLOW.WAIT {wait_type: condition, wait_condition: "runtime.dnoe", timeout_seconds: 0.05, check_interval_seconds: 0.1}`, input: `{"done":1}`, want: `did you mean "runtime.done"?`},
		"wait_met":    {node: `FLOW.WAIT {wait_type: condition, wait_condition: "runtime.nope || runtime.done"}`, input: `{"done":1}`},
		"conversion":  {node: `CALL.EMPTY {pass_through: true}`, conversion: "{'n': value.amuont}", input: `{"amount":1}`, want: `did you mean "value.amount"?`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loops := strings.Contains(c.node, "FLOW.WHILE") || strings.Contains(c.node, "FLOW.LOOP") || strings.Contains(c.node, "FOR_EACH")
			nodes, links := []string{guardStart, "n " + c.node, "body CALL.EMPTY {pass_through: true}"}, []string{"start n", "n body iteration", "body n"}
			switch {
			case strings.HasPrefix(name, "wait"):
				links = []string{"start n", "n body timeout"}
			case !loops:
				nodes, links = nodes[:2], links[:1]
			}
			flow := guardFlow(name, "", nodes, links)
			if c.conversion != "" {
				flow = strings.Replace(flow, "to_node: n}", `to_node: n, conversion_function: "`+c.conversion+`"}`, 1)
			}
			x.save(t, flow)
			e, _ := ran(t, x, name, c.input)
			var told []string
			for _, n := range e.NodeExecutions {
				for _, w := range n.Warnings {
					told = append(told, w.Path+": "+w.Message)
				}
			}
			if e.Status != "SUCCESS" {
				t.Errorf("status %s, %+v", e.Status, e.Error)
			}
			if c.want == "" && len(told) > 0 || c.want != "" && (len(told) != 1 || !strings.Contains(told[0], c.want)) {
				t.Errorf("told %q", told)
			}
		})
	}
}

// Who starts a workflow that declares its inputs is told of those that it does not have.
func TestExecute_WarnsOfInputsThatAreNotDeclared(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, guardFlow("declares", "", []string{`start TRIGGER.MANUAL {input_schema: {type: object, properties: {amount: {type: number}}}}`, "k CALL.EMPTY {pass_through: true}"}, []string{"start k"}))
	for inputs, want := range map[string]string{`{"amuont":5}`: `["the input \"amuont\" is not declared by the input_schema of the workflow, and nothing in the workflow reads it by name; did you mean \"amount\"?"]`, `{"amount":5}`: ""} {
		a := x.call(t, "operator", "POST", "/workflows/declares/execute", `{"inputs":`+inputs+`}`)
		if got := gjson.GetBytes(a.body, "warnings").Raw; got != want {
			t.Errorf("%s: warnings %s", inputs, got)
		}
	}
}
