package app

import (
	"strings"
	"testing"
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
