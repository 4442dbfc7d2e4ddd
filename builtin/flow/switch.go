package flow

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"tandem/builtin/models"
	"tandem/builtin/values"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/workflow"
)

type switchConfig struct {
	Value      node.Expr      `json:"switch_value" doc:"The expression whose value is compared with the cases." zh:"比较的值：与各个 case 比较的表达式。"`
	Cases      []switchCase   `json:"cases" fixed:"true" doc:"The values to compare with and the output key of each." zh:"要比较的值及其输出键。"`
	Branches   []switchBranch `json:"branches" fixed:"true" doc:"Branches with conditions of their own; the first whose conditions hold is taken." zh:"各带条件的分支，取第一个条件成立的分支。"`
	DefaultKey string         `json:"default_output_key" older:"default_output_port" fixed:"true" doc:"The output key when nothing matches." zh:"没有匹配时的输出键。"`

	// A model chooses among these.
	Propose    node.Words     `json:"propose" prompt:"true" doc:"What the model is asked in order to choose among the choices." zh:"向模型提问：请模型在 choices 中选择时所提的问题。"`
	Choices    []switchChoice `json:"choices" prompt:"true" fixed:"true" doc:"The branches that a model chooses from." zh:"供模型选择的分支。"`
	LLMProfile string         `json:"llm_profile" names:"profile" older:"profile_id" doc:"The model profile that chooses." zh:"作选择的模型配置档。"`
}

func (c *switchConfig) Defaults() { c.DefaultKey = "default" }

type switchCase struct {
	Case      json.RawMessage `json:"case" doc:"The value that is compared with switch_value." zh:"值：与 switch_value 比较的值。"`
	OutputKey string          `json:"output_key" older:"output_port" fixed:"true" doc:"The output key of this case; without one the value is its own key." zh:"该值的输出键；省略时以值本身为键。"`
}

type switchBranch struct {
	ID          string            `json:"branch_id" required:"true" fixed:"true" doc:"The output key of the branch." zh:"分支的输出键。"`
	Logic       string            `json:"logic" enum:"and|or" doc:"Whether all conditions must hold or one of them." zh:"条件须全部成立还是任一成立。"`
	Conditions  []switchCondition `json:"conditions" doc:"Comparisons of two values." zh:"两个值之间的比较。"`
	Condition   node.Expr         `json:"condition" doc:"An expression that decides instead of the conditions." zh:"条件：代替 conditions 的表达式。"`
	IsDefault   bool              `json:"is_default" fixed:"true" doc:"Marks the branch that is taken when no other is." zh:"是否默认：没有其他分支匹配时采用的分支。"`
	Name        string            `json:"name" doc:"A name for people." zh:"供人阅读的名称。"`
	Description string            `json:"description" doc:"A description for people." zh:"供人阅读的说明。"`
}

func (b *switchBranch) Defaults() { b.Logic = "and" }

type switchCondition struct {
	Left    any    `json:"left" doc:"The value that is compared." zh:"被比较的值。"`
	Operate string `json:"operate" required:"true" fixed:"true" doc:"How the two are compared: equal, greater, contain and so on." zh:"比较方式：equal、greater、contain 等。"`
	Right   any    `json:"right" doc:"What it is compared with." zh:"与之比较的值。"`
}

type switchChoice struct {
	Branch      string     `json:"branch" required:"true" fixed:"true" doc:"The output key of the choice." zh:"该选项的输出键。"`
	Description node.Words `json:"description" doc:"When the model is to choose it." zh:"何时应选择该项。"`
}

// flowSwitch sends its input along the first branch that matches, in the order in which they are written; the default
// comes last wherever it stands.
func flowSwitch(m *models.Models) node.Kind {
	k := node.Raw(
		node.About{
			Name: "FLOW.SWITCH", Title: node.Says("Switch", "多路分支"),
			Traits:      workflow.Traits{Chooses: workflow.ChoosesCase, Names: workflow.NamesOfInput},
			Description: node.Says("Sends its input along the first matching branch.", "将输入送往第一个匹配的分支。"),
			Effect:      workflow.Pure, // unless a model chooses
			Older:       []string{"CHOICE"},
			Keys: []node.Key{{
				Name: node.AnyKey, From: []node.KeySource{
					{Field: "cases", Of: []string{"output_key", "output_port", "case"}}, {Field: "branches", Of: []string{"branch_id"}},
					{Field: "choices", Of: []string{"branch"}}, {Field: "default_output_key", Unless: "branches.is_default"},
				},
				Meaning: node.Says("The input, if this branch was chosen; each case, branch or choice is a key.", "选中该分支时的输入；每个分支都是一个键。"),
				Fields:  []node.Value{node.Meaning("branch_id", "The branch that was chosen.", "选中的分支。"), node.HandedOn()},
			}},
			Needs:  node.Needs{Also: []node.Text{node.Says("With choices a model profile.", "使用 choices 时需要模型配置档。")}},
			Inputs: node.HandsOn(),
			Examples: []node.Example{
				{
					Shows:  node.Says("Sends an order the way of its country.", "按国家分流订单。"),
					Config: `{"switch_value": "input.country", "cases": [{"case": "CH", "output_key": "domestic"}], "default_output_key": "abroad"}`,
					Input:  `{"country": "CH"}`,
					Output: `{"domestic": {"country": "CH", "branch_id": "domestic"}}`,
				},
			},
		},
		func(ctx context.Context, call *node.Call, cfg switchConfig, in json.RawMessage) (node.Outcome, error) {
			key, err := cfg.choose(ctx, call, m)
			if err != nil {
				return models.WaitOrFail(err)
			}
			return node.Done{key: values.HandOn(in, values.Field("branch_id", key))}, nil
		}, planSwitch)
	k.Hands = func(config json.RawMessage) bool {
		cfg, err := node.Configuration[switchConfig](config)
		return err == nil && cfg.Choices == nil // a model that chooses is shown the input
	}
	return k
}

func (c *switchConfig) choose(ctx context.Context, call *node.Call, m *models.Models) (string, error) {
	switch {
	case c.Choices != nil:
		return c.byChoice(ctx, call, m)
	case c.Cases != nil && c.Branches != nil:
		return "", fault.New(fault.InvalidConfig, `"cases" and "branches" are two forms of a switch; keep one of them`)
	case c.Cases != nil:
		return c.byCase(call)
	case c.Branches != nil:
		return c.byBranch(call)
	}
	return "", fault.New(fault.InvalidConfig, `a switch needs "switch_value" with "cases", or "branches"`)
}

func (c *switchConfig) byCase(call *node.Call) (string, error) {
	if c.Value == "" {
		return "", fault.New(fault.InvalidConfig, `"switch_value" is required beside cases`)
	}
	keys := make([]string, len(c.Cases))
	for i, each := range c.Cases {
		if keys[i] = each.OutputKey; keys[i] == "" {
			keys[i] = values.Text(each.Case) // a case without a key is its own key
		}
		if err := checkKey(keys[i]); err != nil {
			return "", err
		}
	}
	if err := checkKey(c.DefaultKey); err != nil {
		return "", err
	}
	v, err := call.Eval(string(c.Value), nil)
	if err != nil {
		return "", err
	}
	want := values.Canonical(v)
	for i, each := range c.Cases {
		if each.Case == nil {
			each.Case = json.RawMessage("null")
		}
		if values.Canonical(values.Decode(each.Case)) == want {
			return keys[i], nil
		}
	}
	return c.DefaultKey, nil
}

func (c *switchConfig) byBranch(call *node.Call) (string, error) {
	fallback := ""
	seen := map[string]bool{}
	for _, b := range c.Branches {
		if err := checkKey(b.ID); err != nil {
			return "", err
		}
		if seen[b.ID] {
			return "", fault.Newf(fault.InvalidConfig, "two branches are called %q; give each its own id", b.ID)
		}
		seen[b.ID] = true
		switch {
		case b.IsDefault && fallback != "":
			return "", fault.Newf(fault.InvalidConfig, "%q and %q are both marked as the default; keep one", fallback, b.ID)
		case b.IsDefault:
			fallback = b.ID
		case len(b.Conditions) == 0 && b.Condition == "":
			return "", fault.Newf(fault.InvalidConfig, `the branch %q needs "conditions" or "condition", or "is_default"`, b.ID)
		}
		for _, condition := range b.Conditions {
			if _, _, ok := splitOperator(condition.Operate); !ok {
				return "", fault.Newf(fault.InvalidConfig, "%q of branch %q is %q; it must be one of %s, optionally after string_, number_, list_, bool_ or dict_",
					"operate", b.ID, condition.Operate, strings.Join(switchOperators(), ", "))
			}
		}
	}
	if fallback == "" {
		fallback = c.DefaultKey
		if err := checkKey(fallback); err != nil {
			return "", err
		}
	}
	for _, b := range c.Branches {
		if b.IsDefault {
			continue
		}
		holds, err := b.holds(call)
		if err != nil {
			return "", err
		}
		if holds {
			return b.ID, nil
		}
	}
	return fallback, nil
}

func (b *switchBranch) holds(call *node.Call) (bool, error) {
	or := b.Logic == "or"
	for _, condition := range b.Conditions {
		if condition.holds() == or {
			return or, nil
		}
	}
	if b.Condition == "" {
		return !or, nil
	}
	v, err := call.Eval(string(b.Condition), nil)
	return expr.Truth(v), err
}

// checkKey refuses output keys that have a meaning of their own.
func checkKey(key string, also ...string) error {
	if key == "" {
		return fault.New(fault.InvalidConfig, "an output key must not be empty")
	}
	if slices.Contains(append(also, "result", "main", "error"), key) {
		return fault.Newf(fault.InvalidConfig, "the output key %q is reserved; choose another", key)
	}
	return nil
}

func switchOperators() []string {
	return []string{"equal", "not_equal", "greater", "less", "greater_equal", "less_equal", "contain", "not_contain", "starts_with",
		"ends_with", "in", "empty", "not_empty"}
}

// splitOperator takes the type before an operator off: "string_contain" is "contain" for texts.
func splitOperator(name string) (typ, operator string, ok bool) {
	operator = strings.ToLower(strings.TrimSpace(name))
	for prefix, of := range map[string]string{"string_": "string", "number_": "number", "list_": "array",
		"bool_": "boolean", "dict_": "object"} {
		if rest, has := strings.CutPrefix(operator, prefix); has {
			typ, operator = of, rest
			break
		}
	}
	return typ, operator, slices.Contains(switchOperators(), operator)
}

// holds judges one comparison. A value of a wrong type matches nothing, also not what is negated.
func (c *switchCondition) holds() bool {
	typ, operator, _ := splitOperator(c.Operate)
	left, right := c.Left, c.Right
	if operator == "empty" || operator == "not_empty" {
		if typ != "" && left != nil && values.TypeOf(left) != typ {
			return false
		}
		return values.IsEmpty(left) == (operator == "empty")
	}
	if typ != "" && values.TypeOf(left) != typ {
		return false
	}
	switch operator {
	case "equal", "not_equal":
		if typ != "" && values.TypeOf(right) != typ {
			return false
		}
		return values.Equal(left, right) == (operator == "equal")
	case "contain", "not_contain":
		found, ok := values.HoldsPart(left, right)
		return ok && found == (operator == "contain")
	case "in":
		found, ok := values.HoldsPart(right, left)
		return ok && found
	case "starts_with", "ends_with":
		text, ok := left.(string)
		part, both := right.(string)
		if !ok || !both {
			return false
		}
		if operator == "starts_with" {
			return strings.HasPrefix(text, part)
		}
		return strings.HasSuffix(text, part)
	}
	c1, ok := values.Order(left, right)
	if !ok {
		return false
	}
	switch operator {
	case "greater":
		return c1 > 0
	case "less":
		return c1 < 0
	case "greater_equal":
		return c1 >= 0
	}
	return c1 <= 0
}
