// Package lists is what kinds share that work on the items of a list: conditions, the order of items, and reading a field or an expression
// of each.
//
// The families of kinds import it.
package lists

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"tandem/builtin/values"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
)

// Condition is a condition of any type; which of its fields count depends on the type.
type Condition struct {
	Field      string    `json:"field" doc:"The field of the item that is looked at." zh:"要判断的字段。"`
	Operator   string    `json:"operator" enum:"equals|not_equals|greater_than|greater_or_equal|less_than|less_or_equal|in|not_in|contains|not_contains|starts_with|ends_with|is_null|is_not_null" doc:"How the field is compared, for a simple condition." zh:"简单条件的比较方式。"`
	Value      any       `json:"value" doc:"What the field is compared with." zh:"与字段比较的值。"`
	Expression node.Expr `json:"expression" doc:"An expression about the item." zh:"关于元素的表达式。"`
	Pattern    string    `json:"pattern" doc:"A regular expression that the field must match." zh:"字段须匹配的正则表达式。"`
	Min        any       `json:"min_value" doc:"The least value of a range." zh:"范围的最小值。"`
	Max        any       `json:"max_value" doc:"The greatest value of a range." zh:"范围的最大值。"`
	Inclusive  bool      `json:"inclusive" doc:"Whether the ends belong to the range." zh:"范围是否包含两端。"`
	Exists     bool      `json:"exists" doc:"Whether the field must be there, or must not." zh:"字段须存在还是须不存在。"`
	Type       string    `json:"type" doc:"The type that the field must have." zh:"字段须具有的类型。"`
	Mode       string    `json:"mode" enum:"any|all" doc:"Whether any or all of the values must be in the list." zh:"列表须包含任一值还是全部值。"`
	Threshold  float64   `json:"threshold" range:"0..1" doc:"How alike two texts must be, from 0 to 1." zh:"两段文本的相似度下限（0 到 1）。"`
}

func (c *Condition) Defaults() {
	c.Inclusive, c.Exists, c.Mode, c.Threshold = true, true, "any", 0.8
}

// filterType finds the type of a condition where nothing else says it.
func (c *Condition) filterType() string {
	switch {
	case c.Expression != "":
		return "complex_expression"
	case c.Operator != "":
		return "simple_condition"
	case c.Pattern != "":
		return "regex_pattern"
	case c.Min != nil || c.Max != nil:
		return "range_filter"
	case c.Type != "":
		return "type_filter"
	}
	return "exists_filter"
}

// Verdict is what a filter says about an item.
type Verdict int

const (
	differs Verdict = iota
	Matches
	NullKept    // a field is null, and such items are kept
	NullDropped // a field is null, and such items are not
)

// Filter judges items by conditions.
type Filter struct {
	call       *node.Call
	conditions []test
	logic      string
	nulls      string
	// fields are the names that any item has.
	fields []string
	// Custom, when it is set, decides instead of the conditions.
	Custom func(item json.RawMessage) (bool, error)
}

// test is one condition, ready to judge.
type test struct {
	// path is the field it is about, nil for an expression, empty for the item itself.
	path  values.Path
	field string // the path as it was written
	about bool
	// aboutNull says that the test itself asks whether there is a value, so nulls are nothing special to it.
	aboutNull bool
	// empty is what a null is compared as when it is treated as empty.
	empty any
	holds func(v any, found bool) (bool, error)
	expr  func(item json.RawMessage, index int, fields []string) (bool, error)
}

// NewFilter makes the test that items are put to. It fails when a condition cannot be used; the items are those that expressions may look
// at.
func NewFilter(call *node.Call, typ string, conditions []Condition, logic, nulls string, caseSensitive bool,
	items []json.RawMessage) (*Filter, error) {
	if len(conditions) == 0 {
		return nil, fault.New(fault.InvalidConfig, "conditions are required, at least one")
	}
	f := &Filter{call: call, logic: logic, nulls: nulls}
	for i := range conditions {
		of := typ
		if of == "" {
			of = conditions[i].filterType()
		}
		t, err := newTest(call, of, &conditions[i], caseSensitive)
		if err != nil {
			return nil, err
		}
		if t.expr != nil && f.fields == nil {
			f.fields = AllFields(items)
		}
		f.conditions = append(f.conditions, t)
	}
	return f, nil
}

// Judge applies every condition. A null decides before anything else does.
func (f *Filter) Judge(item json.RawMessage, index int) (Verdict, error) {
	if f.Custom != nil {
		fits, err := f.Custom(item)
		if err != nil || !fits {
			return differs, err
		}
		return Matches, nil
	}
	looked := make([]any, len(f.conditions))
	found := make([]bool, len(f.conditions))
	for i, t := range f.conditions {
		if !t.about {
			continue
		}
		raw, ok := item, true
		if len(t.path) > 0 {
			raw, ok = t.path.At(item)
			if !t.aboutNull && f.call != nil {
				look(f.call, "configurations", t.field, t.path, item, ok)
			}
		}
		if found[i] = ok; ok {
			looked[i] = values.Decode(raw)
		}
		if looked[i] != nil || t.aboutNull {
			continue
		}
		switch f.nulls {
		case "include":
			return NullKept, nil
		case "treat_as_empty":
			looked[i] = t.empty
		default:
			return NullDropped, nil
		}
	}
	some, all := false, true
	for i, t := range f.conditions {
		var holds bool
		var err error
		if t.expr != nil {
			holds, err = t.expr(item, index, f.fields)
		} else {
			holds, err = t.holds(looked[i], found[i])
		}
		if err != nil {
			return differs, err
		}
		some, all = some || holds, all && holds
	}
	switch {
	case f.logic == "OR" && some, f.logic == "NOT" && !some, f.logic != "OR" && f.logic != "NOT" && all:
		return Matches, nil
	}
	return differs, nil
}

func newTest(call *node.Call, typ string, c *Condition, caseSensitive bool) (test, error) {
	if typ == "complex_expression" {
		if c.Expression == "" {
			return test{}, fault.Newf(fault.InvalidConfig, "%q of a condition is required when filter_type is %q", "expression", typ)
		}
		source := string(c.Expression)
		return test{expr: func(item json.RawMessage, index int, fields []string) (bool, error) {
			v, err := call.Eval(source, ItemNames(item, index, fields))
			return expr.Truth(v), err
		}}, nil
	}
	t := test{about: true, field: c.Field}
	if c.Field == "" {
		return t, fault.Newf(fault.InvalidConfig, "%q of a condition is required when filter_type is %q", "field", typ)
	}
	if c.Field != "." {
		var err error
		if t.path, err = values.ParsePath(c.Field); err != nil {
			return t, err
		}
	}
	fold := func(v any) any {
		if s, ok := v.(string); ok && !caseSensitive {
			return strings.ToLower(s)
		}
		return v
	}
	var err error
	switch typ {
	case "regex_pattern":
		err = t.regex(c, caseSensitive)
	case "range_filter":
		err = t.between(c, fold)
	case "exists_filter":
		t.aboutNull = true
		t.holds = func(_ any, found bool) (bool, error) { return found == c.Exists, nil }
	case "type_filter":
		err = t.typed(c)
	case "array_contains":
		t.empty = []any{}
		t.holds = func(v any, _ bool) (bool, error) { return arrayContains(c, v, fold) }
	case "fuzzy_match":
		err = t.fuzzy(c, fold)
	default:
		err = t.simple(c, fold)
	}
	return t, err
}

// wrongType is the error of an item whose value a condition cannot be asked about.
func wrongType(c *Condition, want string, v any) error {
	return fault.Newf(fault.InvalidInput, "%q must be %s, not %s", c.Field, want, values.TypeOf(v))
}

func (t *test) regex(c *Condition, caseSensitive bool) error {
	pattern := c.Pattern
	if len(pattern) > expr.MaxPattern || pattern == "" {
		return fault.Newf(fault.InvalidConfig, "%q of a condition must have 1 to %d characters", "pattern", expr.MaxPattern)
	}
	if !caseSensitive {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fault.Newf(fault.InvalidConfig, "%q is not a regular expression: %w", c.Pattern, err)
	}
	t.empty = ""
	t.holds = func(v any, _ bool) (bool, error) {
		s, ok := v.(string)
		if !ok {
			return false, wrongType(c, "a text", v)
		}
		return re.MatchString(s), nil
	}
	return nil
}

func (t *test) between(c *Condition, fold func(any) any) error {
	if c.Min == nil && c.Max == nil {
		return fault.New(fault.InvalidConfig, `"min_value" or "max_value" of a condition is required when filter_type is "range_filter"`)
	}
	if t.empty = emptyLike(c.Min); c.Min == nil {
		t.empty = emptyLike(c.Max)
	}
	t.holds = func(v any, _ bool) (bool, error) {
		for _, bound := range []struct {
			value any
			sign  int
		}{{c.Min, 1}, {c.Max, -1}} {
			if bound.value == nil {
				continue
			}
			o, ok := values.Order(fold(v), fold(bound.value))
			if !ok {
				return false, wrongType(c, "of the type of its bounds", v)
			}
			if o *= bound.sign; o < 0 || o == 0 && !c.Inclusive {
				return false, nil
			}
		}
		return true, nil
	}
	return nil
}

func (t *test) typed(c *Condition) error {
	want, ok := map[string]string{
		"string": "string", "str": "string", "text": "string", "number": "number", "num": "number", "float": "number",
		"integer": "integer", "int": "integer", "boolean": "boolean", "bool": "boolean", "array": "array", "list": "array",
		"object": "object", "obj": "object", "dict": "object", "null": "null", "none": "null",
	}[strings.ToLower(c.Type)]
	if !ok {
		return fault.Newf(fault.InvalidConfig, "%q is not a type; use string, number, integer, boolean, array, object or null", c.Type)
	}
	t.aboutNull = want == "null"
	t.holds = func(v any, _ bool) (bool, error) { return values.HasType(v, want), nil }
	return nil
}

// arrayContains asks for one value, or for any or all of a list of them.
func arrayContains(c *Condition, v any, fold func(any) any) (bool, error) {
	list, ok := v.([]any)
	if !ok {
		return false, wrongType(c, "a list", v)
	}
	wanted, several := c.Value.([]any)
	if !several {
		wanted = []any{c.Value}
	}
	has := func(w any) bool {
		return slices.ContainsFunc(list, func(item any) bool { return values.Equal(fold(item), fold(w)) })
	}
	if c.Mode == "all" {
		return !slices.ContainsFunc(wanted, func(w any) bool { return !has(w) }), nil
	}
	return slices.ContainsFunc(wanted, has), nil
}

// maxFuzzy bounds the cost of a distance, which grows with the product of the lengths.
const maxFuzzy = 2000

func (t *test) fuzzy(c *Condition, fold func(any) any) error {
	want, ok := fold(c.Value).(string)
	if !ok {
		return fault.Newf(fault.InvalidConfig, "%q of a condition must be a text when filter_type is %q", "value", "fuzzy_match")
	}
	t.empty = ""
	t.holds = func(v any, _ bool) (bool, error) {
		s, ok := fold(v).(string)
		if !ok {
			return false, wrongType(c, "a text", v)
		}
		if utf8.RuneCountInString(s) > maxFuzzy || utf8.RuneCountInString(want) > maxFuzzy {
			return false, fault.Newf(fault.InvalidInput, "%q has more than %d characters, too many to compare by likeness", c.Field, maxFuzzy)
		}
		return likeness(s, want) >= c.Threshold, nil
	}
	return nil
}

// likeness is 1 for equal texts and 0 for those that have nothing in common, by edit distance.
func likeness(a, b string) float64 {
	x, y := []rune(a), []rune(b)
	most := max(len(x), len(y))
	if most == 0 {
		return 1
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return 1 - float64(row[len(y)])/float64(most)
}

// emptyLike is the empty value of a value's type.
func emptyLike(v any) any {
	switch v.(type) {
	case string:
		return ""
	case bool:
		return false
	case []any:
		return []any{}
	case map[string]any:
		return map[string]any{}
	case nil:
		return nil
	}
	return json.Number("0")
}

func (t *test) simple(c *Condition, fold func(any) any) error {
	t.empty = emptyLike(c.Value)
	want := fold(c.Value)
	switch c.Operator {
	case "":
		return fault.Newf(fault.InvalidConfig, "%q of a condition is required when filter_type is %q", "operator", "simple_condition")
	case "is_null", "is_not_null":
		t.aboutNull = true
		t.holds = func(v any, _ bool) (bool, error) { return (v == nil) == (c.Operator == "is_null"), nil }
	case "equals", "not_equals":
		t.aboutNull = c.Value == nil // then the condition asks for null itself
		t.holds = func(v any, _ bool) (bool, error) { return values.Equal(fold(v), want) == (c.Operator == "equals"), nil }
	case "in", "not_in":
		list, ok := c.Value.([]any)
		if !ok {
			return fault.Newf(fault.InvalidConfig, "%q of a condition must be a list when its operator is %q", "value", c.Operator)
		}
		t.empty = nil
		if len(list) > 0 {
			t.empty = emptyLike(list[0])
		}
		t.holds = func(v any, _ bool) (bool, error) {
			found := slices.ContainsFunc(list, func(item any) bool { return values.Equal(fold(item), fold(v)) })
			return found == (c.Operator == "in"), nil
		}
	case "contains", "not_contains":
		t.empty = []any{}
		t.holds = func(v any, _ bool) (bool, error) {
			whole := fold(v)
			if list, ok := v.([]any); ok {
				folded := make([]any, len(list))
				for i, item := range list {
					folded[i] = fold(item)
				}
				whole = folded
			}
			found, ok := values.HoldsPart(whole, want)
			if !ok {
				return false, wrongType(c, "a list, an object or a text that can contain the value", v)
			}
			return found == (c.Operator == "contains"), nil
		}
	case "starts_with", "ends_with":
		part, is := want.(string)
		if !is {
			return fault.Newf(fault.InvalidConfig, "%q of a condition must be a text when its operator is %q", "value", c.Operator)
		}
		t.holds = func(v any, _ bool) (bool, error) {
			s, ok := fold(v).(string)
			if !ok {
				return false, wrongType(c, "a text", v)
			}
			if c.Operator == "starts_with" {
				return strings.HasPrefix(s, part), nil
			}
			return strings.HasSuffix(s, part), nil
		}
	default:
		t.holds = func(v any, _ bool) (bool, error) {
			o, ok := values.Order(fold(v), want)
			if !ok {
				return false, wrongType(c, "of the type of the value it is compared with", v)
			}
			switch c.Operator {
			case "greater_than":
				return o > 0, nil
			case "greater_or_equal":
				return o >= 0, nil
			case "less_than":
				return o < 0, nil
			}
			return o <= 0, nil
		}
	}
	return nil
}
