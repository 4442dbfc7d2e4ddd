package data

import (
	"context"
	"encoding/json"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/builtin/early"
	"tandem/builtin/lists"
	"tandem/builtin/values"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
	"tandem/workflow"
)

type validationConfig struct {
	_ struct{} `need:"schema|rules"`

	Schema    json.RawMessage  `json:"schema" takes:"object" doc:"A JSON Schema that the data must fit." zh:"数据的模式：数据须满足的 JSON Schema。"`
	Rules     []validationRule `json:"rules" doc:"Rules about single fields." zh:"针对单个字段的规则。"`
	Each      bool             `json:"each" doc:"Whether each item of a list is checked by itself." zh:"是否逐项校验列表。"`
	OnInvalid string           `json:"on_invalid" enum:"route|fail" doc:"Whether invalid data leaves under the key invalid, or fails the node." zh:"无效时：无效数据经 invalid 键输出，或使节点失败。"`
	ItemsPath string           `json:"items_path" doc:"Where the data is in the input." zh:"数据在输入中的路径。"`
}

func (c *validationConfig) Defaults() { c.OnInvalid = "route" }

type validationRule struct {
	Field   string `json:"field" required:"true" doc:"The field that is checked." zh:"校验的字段。"`
	Rule    string `json:"rule" required:"true" enum:"required|type|min|max|length|pattern|enum|email|url|date|unique|expression" doc:"What is checked." zh:"校验的规则。"`
	Value   any    `json:"value" doc:"What the rule compares with: a bound, a pattern, a list, an expression." zh:"规则的比较值：界限、模式、列表或表达式。"`
	Message string `json:"message" doc:"What is said when the rule is broken." zh:"违反规则时的提示。"`
}

// checkedFields are the fields of what comes out, if the data is checked as a whole.
func checkedFields() []node.Value {
	return []node.Value{
		node.Meaning("valid", "Whether nothing is wrong.", "是否全部有效。"),
		node.Meaning("errors", "What is wrong: where, by which rule, in words.", "问题：位置、规则和说明。"),
		node.Meaning("data", "What was checked.", "所校验的数据。"),
		node.Meaning("valid_items", "The items that are valid.", "有效的元素。"),
		node.Meaning("invalid_items", "The items that are not.", "无效的元素。"),
	}
}

// maxProblems is how many problems are listed.
const maxProblems = 100

// dataValidation checks data against a schema and rules, tells every problem at once and routes the data.
func dataValidation() node.Kind {
	return node.Raw(
		node.About{
			Name: "ACTION.DATA_VALIDATION", Title: node.Says("Data validation", "数据校验"),
			Description: node.Says("Checks data and routes it by the outcome.", "校验数据并按结果分流。"),
			Effect:      workflow.Pure,
			Keys: []node.Key{
				{Name: "result", Meaning: node.Says("Whether the data is valid, and what is wrong with it.", "数据是否有效及其问题。"), Fields: checkedFields()},
				{Name: "valid", Meaning: node.Says("The data, or the items of it, that is valid.", "有效的数据或元素。"), Fields: checkedFields()},
				{Name: "invalid", Meaning: node.Says("The data, or the items of it, that is not.", "无效的数据或元素。"), Fields: checkedFields()},
			},
			Inputs: []node.Value{
				node.Meaning("data", "What is checked, without items_path; without it the whole input.", "未设置 items_path 时校验的数据；省略时为整个输入。"),
				node.Meaning("*", "Whatever else the input has.", "输入的其余内容。"),
			},
			Examples: []node.Example{
				{
					Shows:  node.Says("Checks the address of a customer.", "校验客户的邮箱地址。"),
					Config: `{"rules": [{"field": "email", "rule": "email", "message": "An address is needed."}]}`,
					Input:  `{"data": {"name": "Ann", "email": "ann"}}`,
					Output: `{"result": {"valid": false, "errors": [{"path": "email", "rule": "email", "message": "An address is needed."}], "data": {"name": "Ann", "email": "ann"}, "valid_items": [], "invalid_items": [{"name": "Ann", "email": "ann"}]}, "invalid": "same as result"}`,
				},
			},
		},
		func(_ context.Context, call *node.Call, cfg validationConfig, in json.RawMessage) (node.Outcome, error) {
			check, err := newDataCheck(call, cfg)
			if err != nil {
				return nil, err
			}
			if cfg.Each {
				return cfg.each(call, check, in)
			}
			data := in
			if cfg.ItemsPath != "" {
				p, err := values.ParsePath(cfg.ItemsPath)
				if err != nil {
					return nil, err
				}
				if data, _ = p.At(in); data == nil {
					data = json.RawMessage("null")
				}
			} else if own, ok := (values.Path{"data"}).Walk(in); ok {
				data = own
			}
			problems, err := check.all("", data)
			if err != nil {
				return nil, err
			}
			valid, invalid := []json.RawMessage{data}, []json.RawMessage{}
			if len(problems) > 0 {
				valid, invalid = invalid, valid
			}
			result, err := cfg.result(problems, data, valid, invalid)
			if err != nil {
				return nil, err
			}
			key := "valid"
			if len(problems) > 0 {
				key = "invalid"
			}
			return node.Done{"result": result, key: result}, nil
		}, planValidation)
}

// each checks the items of a list one by one; the branches get those that belong to them.
func (c *validationConfig) each(call *node.Call, check *dataCheck, in json.RawMessage) (node.Outcome, error) {
	list, err := lists.Input(call, in, "items_path", c.ItemsPath)
	if err != nil {
		return nil, err
	}
	var problems []payload.SchemaProblem
	var valid, invalid []json.RawMessage
	repeated, err := check.repeated(list.Items)
	if err != nil {
		return nil, err
	}
	for i, item := range list.Items {
		found, err := check.all(fmt.Sprintf("[%d]", i), item)
		if err != nil {
			return nil, err
		}
		found = append(found, repeated[i]...)
		problems = append(problems, found...)
		if len(found) == 0 {
			valid = append(valid, item)
		} else {
			invalid = append(invalid, item)
		}
	}
	result, err := c.result(problems, list.Value, valid, invalid)
	if err != nil {
		return nil, err
	}
	done := node.Done{"result": result}
	if len(valid) > 0 {
		done["valid"] = values.Array(valid)
	}
	if len(invalid) > 0 {
		done["invalid"] = values.Array(invalid)
	}
	return done, nil
}

func (c *validationConfig) result(problems []payload.SchemaProblem, data json.RawMessage, valid,
	invalid []json.RawMessage) (json.RawMessage, error) {
	total := len(problems)
	problems = append([]payload.SchemaProblem{}, problems[:min(total, maxProblems)]...)
	if total > 0 && c.OnInvalid == "fail" {
		return nil, fault.Newf(fault.ValidationFailed, "the data has %d problems; the first is %s", total,
			problems[0]).With("errors", problems)
	}
	return values.Object([]values.Member{
		values.Field("valid", total == 0), values.Field("errors", problems), {Key: "data", Value: data},
		{Key: "valid_items", Value: values.Array(valid)}, {Key: "invalid_items", Value: values.Array(invalid)},
	}), nil
}

// dataCheck is a schema and rules, ready to check.
type dataCheck struct {
	call   *node.Call
	schema *payload.Schema
	rules  []ruleCheck
	each   bool
}

// ruleCheck is one rule. An empty path is the data itself.
type ruleCheck struct {
	validationRule
	path    values.Path
	pattern *regexp.Regexp
}

func newDataCheck(call *node.Call, c validationConfig) (*dataCheck, error) {
	if values.IsNull(c.Schema) && len(c.Rules) == 0 {
		return nil, fault.New(fault.InvalidConfig, `"schema" or "rules" is required, or there is nothing to check`)
	}
	check := &dataCheck{call: call, each: c.Each}
	if !values.IsNull(c.Schema) {
		var err error
		if check.schema, err = payload.CompileSchema(c.Schema); err != nil {
			return nil, fault.Newf(fault.InvalidConfig, "%q is not a usable JSON Schema: %w", "schema", err)
		}
	}
	for i, r := range c.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		rule := ruleCheck{validationRule: r}
		var err error
		if r.Field != "." {
			if rule.path, err = values.ParsePath(r.Field); err != nil {
				return nil, err
			}
		}
		if err := rule.prepare(at); err != nil {
			return nil, err
		}
		check.rules = append(check.rules, rule)
	}
	return check, nil
}

// prepare checks the value that a rule compares with.
func (r *ruleCheck) prepare(at string) error {
	wrong := func(want string) error {
		return fault.Newf(fault.InvalidConfig, "%q must be %s for the rule %q", at+".value", want, r.Rule)
	}
	switch r.Rule {
	case "type":
		if text, ok := r.Value.(string); !ok || !slices.Contains([]string{"string", "number", "integer", "boolean",
			"array", "object", "null"}, text) {
			return wrong("string, number, integer, boolean, array, object or null")
		}
	case "min", "max":
		if _, ok := values.NumberOf(r.Value); !ok {
			return wrong("a number")
		}
	case "length":
		if _, _, ok := lengthBounds(r.Value); !ok {
			return wrong(`a number, a list of two, or an object with "min" and "max"`)
		}
	case "enum":
		if _, ok := r.Value.([]any); !ok {
			return wrong("a list")
		}
	case "pattern", "expression":
		text, ok := r.Value.(string)
		if !ok || text == "" {
			return wrong("a text")
		}
		if r.Rule == "expression" {
			return nil
		}
		if len(text) > expr.MaxPattern {
			return wrong(fmt.Sprintf("a text of at most %d characters", expr.MaxPattern))
		}
		var err error
		if r.pattern, err = regexp.Compile(text); err != nil {
			return fault.Newf(fault.InvalidConfig, "%q is not a regular expression: %w", at+".value", err)
		}
	}
	return nil
}

// all are the problems of one value.
func (c *dataCheck) all(at string, raw json.RawMessage) ([]payload.SchemaProblem, error) {
	v := values.Decode(raw)
	var problems []payload.SchemaProblem
	if c.schema != nil {
		problems = c.schema.Problems(at, v)
	}
	for i := range c.rules {
		r := &c.rules[i]
		if r.Rule == "unique" && c.each {
			continue // a matter of all items, see repeated
		}
		message, err := r.check(c.call, raw, v)
		if err != nil {
			return nil, err
		}
		if message != "" {
			problems = append(problems, r.problem(at, message))
		}
	}
	return problems, nil
}

func (r *ruleCheck) problem(at, message string) payload.SchemaProblem {
	if r.Message != "" {
		message = r.Message
	}
	where := r.Field
	switch {
	case where == ".":
		where = at
	case at != "":
		where = at + "." + where
	}
	return payload.SchemaProblem{Path: where, Rule: r.Rule, Message: message}
}

// check returns what is wrong, "" when nothing is. What is missing is wrong only where it is required.
func (r *ruleCheck) check(call *node.Call, raw json.RawMessage, whole any) (string, error) {
	v := whole
	if len(r.path) > 0 {
		v = nil
		if found, ok := r.path.At(raw); ok {
			v = values.Decode(found)
		}
	}
	if v == nil && r.Rule != "expression" && !(r.Rule == "type" && r.Value == "null") {
		if r.Rule == "required" {
			return "is required", nil
		}
		return "", nil
	}
	switch r.Rule {
	case "type":
		if want := r.Value.(string); !values.HasType(v, want) {
			return fmt.Sprintf("must be of type %s, not %s", want, values.TypeOf(v)), nil
		}
	case "min", "max":
		return r.bound(v), nil
	case "length":
		return r.length(v), nil
	case "enum":
		if !slices.ContainsFunc(r.Value.([]any), func(x any) bool { return values.Equal(x, v) }) {
			return "must be one of " + payload.JSON(values.Encode(r.Value)), nil
		}
	case "unique":
		list, ok := v.([]any)
		if !ok {
			return "must be a list to have unique elements", nil
		}
		seen := map[string]bool{}
		for _, item := range list {
			if key := values.Canonical(item); seen[key] {
				return "must not have an element twice", nil
			} else {
				seen[key] = true
			}
		}
	case "expression":
		names := lists.ItemNames(raw, 0, nil)
		names["value"] = v
		got, err := call.Eval(r.Value.(string), names)
		if err != nil {
			return "", err
		}
		if !expr.Truth(got) {
			return "must satisfy " + r.Value.(string), nil
		}
	case "pattern", "email", "url", "date":
		text, ok := v.(string)
		if !ok {
			return "must be a text, not " + values.TypeOf(v), nil
		}
		return r.text(text), nil
	}
	return "", nil
}

func (r *ruleCheck) bound(v any) string {
	want, _ := values.NumberOf(r.Value)
	n, ok := values.NumberOf(v)
	switch {
	case !ok:
		return "must be a number, not " + values.TypeOf(v)
	case r.Rule == "min" && n.Compare(want) < 0:
		return "must be at least " + want.Text()
	case r.Rule == "max" && n.Compare(want) > 0:
		return "must be at most " + want.Text()
	}
	return ""
}

func (r *ruleCheck) length(v any) string {
	n := 0
	switch x := v.(type) {
	case string:
		n = utf8.RuneCountInString(x)
	case []any:
		n = len(x)
	case map[string]any:
		n = len(x)
	default:
		return "must be a text, a list or an object to have a length"
	}
	lo, hi, _ := lengthBounds(r.Value)
	if float64(n) < lo || float64(n) > hi {
		return fmt.Sprintf("has the length %d, which is not allowed", n)
	}
	return ""
}

// lengthBounds reads 5 (exactly), [2, 5] or {"min": 2, "max": 5}.
func lengthBounds(v any) (lo, hi float64, ok bool) {
	const most = 1 << 53
	one := func(v any, otherwise float64) (float64, bool) {
		if v == nil {
			return otherwise, true
		}
		n, ok := values.NumberOf(v)
		return n.Float, ok
	}
	first, last := v, v
	switch x := v.(type) {
	case nil:
		return 0, 0, false
	case []any:
		if len(x) != 2 {
			return 0, 0, false
		}
		first, last = x[0], x[1]
	case map[string]any:
		first, last = x["min"], x["max"]
	}
	lo, ok = one(first, 0)
	hi, both := one(last, most)
	return lo, hi, ok && both
}

func (r *ruleCheck) text(text string) string {
	switch r.Rule {
	case "pattern":
		if !r.pattern.MatchString(text) {
			return fmt.Sprintf("must match %q", r.pattern)
		}
	case "email":
		a, err := mail.ParseAddress(text)
		if err != nil || a.Address != text || !strings.Contains(text[strings.LastIndexByte(text, '@'):], ".") {
			return "must be an e-mail address"
		}
	case "url":
		u, err := url.Parse(text)
		if err != nil || u.Scheme == "" || u.Host == "" {
			return "must be a URL with scheme and host"
		}
	case "date":
		for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02T15:04:05"} {
			if _, err := time.Parse(layout, text); err == nil {
				return ""
			}
		}
		return "must be a date like 2030-01-31 or 2030-01-31T09:00:00Z"
	}
	return ""
}

// repeated finds the items whose value of a unique field another item had before.
func (c *dataCheck) repeated(items []json.RawMessage) (map[int][]payload.SchemaProblem, error) {
	found := map[int][]payload.SchemaProblem{}
	for i := range c.rules {
		r := &c.rules[i]
		if r.Rule != "unique" {
			continue
		}
		seen := map[string]int{}
		for j, item := range items {
			value, ok := item, true
			if len(r.path) > 0 {
				value, ok = r.path.At(item)
			}
			if !ok || values.IsNull(value) {
				continue
			}
			key := values.Canonical(values.Decode(value))
			if first, again := seen[key]; again {
				found[j] = append(found[j], r.problem(fmt.Sprintf("[%d]", j), fmt.Sprintf("has the value that item %d has", first)))
			} else {
				seen[key] = j
			}
		}
	}
	return found, nil
}

// planValidation: the value of a rule of the sort "expression" is one, and the values of the others fit their rules.
func planValidation(p *node.Planning, c *validationConfig) {
	early.Paths(p, "items_path")
	for i, item := range p.Items("rules") {
		if i < len(c.Rules) && !strings.Contains(item.Raw, "{{") && !strings.Contains(item.Raw, "${") {
			rule := ruleCheck{validationRule: c.Rules[i]}
			if err := rule.prepare(fmt.Sprintf("rules[%d]", i)); err != nil {
				p.Saving(func() { p.Invalid(fmt.Sprintf("%s[%d].value", p.At("rules"), i), "%s", fault.From(err).Message) })
			}
		}
		if value := item.Get("value"); strings.EqualFold(item.Get("rule").Str, "expression") && value.Type == gjson.String {
			p.AddExpression(fmt.Sprintf("%s[%d].value", p.At("rules"), i), value.Str)
		}
	}
}
