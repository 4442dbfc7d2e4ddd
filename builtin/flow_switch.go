package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
)

type switchConfig struct {
	Value      node.Scalar    `json:"switch_value"`
	Cases      []switchCase   `json:"cases"`
	Branches   []switchBranch `json:"branches"`
	DefaultKey string         `json:"default_output_key" older:"default_output_port"`

	// A model chooses among these.
	Propose    node.Words     `json:"propose" prompt:"true"`
	Choices    []switchChoice `json:"choices" prompt:"true"`
	LLMProfile string         `json:"llm_profile" older:"profile_id"`
}

func (c *switchConfig) Defaults() { c.DefaultKey = "default" }

type switchCase struct {
	Case      json.RawMessage `json:"case"`
	OutputKey string          `json:"output_key" older:"output_port"`
}

type switchBranch struct {
	ID          string            `json:"branch_id" required:"true"`
	Logic       string            `json:"logic" enum:"and|or"`
	Conditions  []switchCondition `json:"conditions"`
	Condition   node.Scalar       `json:"condition"`
	IsDefault   bool              `json:"is_default"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
}

func (b *switchBranch) Defaults() { b.Logic = "and" }

type switchCondition struct {
	Left    any    `json:"left"`
	Operate string `json:"operate" required:"true"`
	Right   any    `json:"right"`
}

type switchChoice struct {
	Branch      string     `json:"branch" required:"true"`
	Description node.Words `json:"description"`
}

// flowSwitch sends its input along the first branch that matches, in the order in which they are written; the default
// comes last wherever it stands.
func flowSwitch(models *Models) node.Kind {
	return node.Raw(
		info("FLOW.SWITCH", "Switch", "多路分支", "Sends its input along the first matching branch.", "将输入送往第一个匹配的分支。"),
		func(ctx context.Context, call *node.Call, cfg switchConfig, in json.RawMessage) (node.Outcome, error) {
			key, err := cfg.choose(ctx, call, models)
			if err != nil {
				return waitOrFail(err)
			}
			return node.Done{key: handOn(in, field("branch_id", key))}, nil
		})
}

func (c *switchConfig) choose(ctx context.Context, call *node.Call, models *Models) (string, error) {
	switch {
	case c.Choices != nil:
		return c.byChoice(ctx, call, models)
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
			keys[i] = plainText(each.Case) // a case without a key is its own key
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
	want := canonical(v)
	for i, each := range c.Cases {
		if each.Case == nil {
			each.Case = json.RawMessage("null")
		}
		if canonical(decode(each.Case)) == want {
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

// plainText is a text as it is and anything else as compact JSON.
func plainText(raw json.RawMessage) string {
	if isNull(raw) {
		return ""
	}
	return payload.Text(raw)
}

func textOf(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case json.Number:
		return string(x)
	}
	return payload.JSON(encode(v))
}

func switchOperators() []string {
	return []string{"equal", "not_equal", "greater", "less", "greater_equal", "less_equal", "contain", "not_contain", "starts_with", "ends_with", "in", "empty", "not_empty"}
}

// splitOperator takes the type before an operator off: "string_contain" is "contain" for texts.
func splitOperator(name string) (typ, operator string, ok bool) {
	operator = strings.ToLower(strings.TrimSpace(name))
	for prefix, of := range map[string]string{"string_": "string", "number_": "number", "list_": "array", "bool_": "boolean", "dict_": "object"} {
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
		if typ != "" && left != nil && typeOf(left) != typ {
			return false
		}
		return isEmpty(left) == (operator == "empty")
	}
	if typ != "" && typeOf(left) != typ {
		return false
	}
	switch operator {
	case "equal", "not_equal":
		if typ != "" && typeOf(right) != typ {
			return false
		}
		return equal(left, right) == (operator == "equal")
	case "contain", "not_contain":
		found, ok := holdsPart(left, right)
		return ok && found == (operator == "contain")
	case "in":
		found, ok := holdsPart(right, left)
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
	c1, ok := order(left, right)
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

// holdsPart says whether a list has an element, an object a key, or a text a part; ok is false where that makes no sense.
func holdsPart(whole, part any) (found, ok bool) {
	switch x := whole.(type) {
	case []any:
		return slices.ContainsFunc(x, func(item any) bool { return equal(item, part) }), true
	case map[string]any:
		key, is := part.(string)
		_, has := x[key]
		return has, is
	case string:
		text, is := part.(string)
		return is && strings.Contains(x, text), is
	}
	return false, false
}
