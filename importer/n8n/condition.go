package n8n

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tandem/importer"
	"tandem/payload"
)

// condition is one comparison, in the words of today's n8n.
type condition struct {
	left, right importer.Value
	typ, op     string
	fold        bool
}

// conditions are a list of comparisons and how they are joined.
type conditions struct {
	list []condition
	any  bool
}

// older maps the operations of older files to today's.
func older(op string) string {
	switch op {
	case "equal":
		return "equals"
	case "notEqual":
		return "notEquals"
	case "larger":
		return "gt"
	case "largerEqual":
		return "gte"
	case "smaller":
		return "lt"
	case "smallerEqual":
		return "lte"
	case "isEmpty":
		return "empty"
	case "isNotEmpty":
		return "notEmpty"
	}
	return op
}

// conditionsOf reads the conditions of a node, in any version.
func conditionsOf(v, params importer.Value) conditions {
	var out conditions
	if list := v.At("conditions"); list.IsList() {
		out.any = v.At("combinator").Text() == "or"
		fold := v.At("options", "caseSensitive").Exists() && !v.At("options", "caseSensitive").Bool() ||
			params.At("options", "ignoreCase").Bool()
		for _, c := range list.List() {
			out.list = append(out.list, condition{
				left: c.At("leftValue"), right: c.At("rightValue"), typ: c.At("operator", "type").Text(),
				op: older(c.At("operator", "operation").Text()), fold: fold,
			})
		}
		return out
	}
	out.any = params.At("combineOperation").Text() == "any"
	for _, typ := range []string{"string", "number", "boolean", "dateTime"} {
		for _, c := range v.At(typ).List() {
			op := older(c.At("operation").Text())
			if op == "" {
				op = map[string]string{"number": "lt", "dateTime": "after"}[typ]
			}
			if op == "" {
				op = "equals"
			}
			out.list = append(out.list, condition{left: c.At("value1"), right: c.At("value2"), typ: typ, op: op})
		}
	}
	return out
}

// expression writes the conditions as an expression.
func (r *reading) expression(c conditions) string {
	return c.joined(func(one condition) string { return "(" + r.comparison(one) + ")" })
}

// joined writes each condition and joins them: all must hold, or any.
func (c conditions) joined(write func(condition) string) string {
	if len(c.list) == 0 {
		return "true"
	}
	join := " && "
	if c.any {
		join = " || "
	}
	parts := make([]string, len(c.list))
	for i, one := range c.list {
		parts[i] = write(one)
	}
	return strings.Join(parts, join)
}

// comparison writes one comparison. A negated one is the other with a sign before it.
func (r *reading) comparison(c condition) string {
	a, b := r.operand(c.left), r.operand(c.right)
	if c.typ == "number" {
		a, b = numeric(a), numeric(b)
	}
	if c.fold && c.typ == "string" {
		a, b = "lower("+a+")", "lower("+b+")"
	}
	op, not := c.op, ""
	if positive, ok := strings.CutPrefix(op, "not"); ok && positive != "" {
		op, not = strings.ToLower(positive[:1])+positive[1:], "!"
	}
	wrap := func(s string) string {
		if not == "" {
			return s
		}
		return "!(" + s + ")"
	}
	switch op {
	case "true", "false":
		return a + " == " + op
	case "equals":
		if c.typ == "string" {
			return wrap("(" + a + " ?? \"\") == " + b)
		}
		return wrap(a + " == " + b)
	case "gt", "lt", "gte", "lte":
		return a + map[string]string{"gt": " > ", "lt": " < ", "gte": " >= ", "lte": " <= "}[op] + b
	case "after", "before", "afterOrEquals", "beforeOrEquals":
		return "date(" + a + ")" + map[string]string{"after": " > ", "before": " < ", "afterOrEquals": " >= ",
			"beforeOrEquals": " <= "}[op] + "date(" + b + ")"
	case "contains":
		return wrap("contains(" + a + " ?? \"\", " + b + ")")
	case "startsWith":
		return wrap("starts_with(" + a + ", " + b + ")")
	case "endsWith":
		return wrap("ends_with(" + a + ", " + b + ")")
	case "regex":
		return wrap("matches(" + a + ", " + pattern(b) + ")")
	case "exists":
		return wrap(a + " != null")
	case "empty":
		return wrap(fmt.Sprintf("%s == null || %s == \"\" || %s == [] || %s == {}", a, a, a, a))
	case "lengthEquals", "lengthNotEquals", "lengthGt", "lengthLt", "lengthGte", "lengthLte":
		sign := map[string]string{"Equals": "==", "NotEquals": "!=", "Gt": ">", "Lt": "<", "Gte": ">=",
			"Lte": "<="}[strings.TrimPrefix(op, "length")]
		return "len(" + a + ") " + sign + " " + numeric(b)
	}
	return wrap(a + " == " + b)
}

// numeric is an operand as a number, if it is a text that is one.
func numeric(operand string) string {
	if s, err := strconv.Unquote(operand); err == nil {
		if _, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return strings.TrimSpace(s)
		}
	}
	return operand
}

// pattern is a regular expression without the slashes of JavaScript.
func pattern(operand string) string {
	s, err := strconv.Unquote(operand)
	if err != nil || !strings.HasPrefix(s, "/") || strings.LastIndexByte(s, '/') == 0 {
		return operand
	}
	end := strings.LastIndexByte(s, '/')
	body := s[1:end]
	if strings.Contains(s[end:], "i") {
		body = "(?i)" + body
	}
	return string(payload.Quote(body))
}

// javascript writes the conditions as code.
func (c conditions) javascript() string {
	return c.joined(func(one condition) string {
		op, sign := one.op, ""
		if positive, ok := strings.CutPrefix(op, "not"); ok && positive != "" {
			op, sign = strings.ToLower(positive[:1])+positive[1:], "!"
		}
		left, right := jsOperand(one.left), jsOperand(one.right)
		switch op {
		case "true", "false":
			op, right = "equals", op
		case "afterOrEquals":
			op, sign, left, right = "after", "!", right, left
		case "beforeOrEquals":
			op, sign, left, right = "before", "!", right, left
		}
		if size, ok := strings.CutPrefix(op, "length"); ok {
			op, left = strings.ToLower(size[:1])+size[1:], "("+left+" ?? []).length"
			if op == "notEquals" {
				op, sign = "equals", "!"
			}
		}
		return sign + "test(" + string(payload.Quote(op)) + ", " + left + ", " + right + ")"
	})
}

// jsOperand is a parameter as code.
func jsOperand(v importer.Value) string {
	s, ok := v.Any().(string)
	body, isExpression := strings.CutPrefix(s, "=")
	if !ok || !isExpression {
		if !v.Exists() {
			return "null"
		}
		raw, err := payload.Encode(v.Any())
		if err != nil {
			return "null"
		}
		return string(raw)
	}
	parts := segments(body)
	if len(parts) == 1 && parts[0].code {
		return "(" + parts[0].text + ")"
	}
	out := []string{`""`}
	for _, p := range parts {
		if p.code {
			out = append(out, "("+p.text+")")
		} else {
			out = append(out, string(payload.Quote(p.text)))
		}
	}
	return "(" + strings.Join(out, " + ") + ")"
}

// plainOnly says that no condition needs code.
func (r *reading) plainOnly(list ...conditions) bool {
	trial := reading{f: r.f, n: r.n, json: r.json, inLoop: true, values: "trial"}
	for _, c := range list {
		trial.expression(c)
	}
	return len(trial.calc) == 0
}

// branchKey is the key of an output of a node with several.
func branchKey(i int) string { return "out_" + strconv.Itoa(i) }

// apart tells the items of a list apart: with expressions where they suffice, with code otherwise.
func (m *making) apart(keys []string, list []conditions, rest string) {
	m.in["items"] = m.up.whole()
	m.empty = true
	item := reading{f: m.f, n: m.n, json: shape{head: "item"}, inLoop: true}
	if item.plainOnly(list...) {
		m.kind = "FLOW.SPLIT"
		paths := map[string]any{}
		for i, c := range list {
			paths[keys[i]] = item.expression(c)
		}
		m.cfg["split_mode"], m.cfg["items_path"], m.cfg["predicate_paths"] = "predicate", "items", paths
		if rest != "" {
			paths[rest] = "true"
		}
		if ordered(keys[:len(list)], rest) {
			return
		}
		delete(m.cfg, "predicate_paths")
	}
	var b strings.Builder
	code := ""
	for i, c := range list {
		source := c.javascript()
		code += source
		fmt.Fprintf(&b, "    if (%s) return %s;\n", source, payload.Quote(keys[i]))
	}
	end := "null"
	if rest != "" {
		end = string(payload.Quote(rest))
	}
	split := m.f.ID(m.n.id + "_told")
	v := m.f.Add(m.line, split, "ACTION.RUN_CODE", "Says where each item of "+m.n.name+" goes.")
	v.Config["language"] = "javascript"
	v.Config["code"] = "function main(input) {\n  const choose = (given, at) => {\n    const input = given;\n" + strings.ReplaceAll(opening(code), "\n", "\n  ") + comparing +
		b.String() + "    return " + end + ";\n  };\n  const out = {};\n  (input.items ?? []).forEach((one, at) => {\n    const key = choose({...input, json: one, index: at});\n    if (key !== null) (out[key] ??= []).push(one);\n  });\n  return out;\n}\n"
	v.Input = item.codeInput(code)
	delete(v.Input, "json")
	delete(v.Input, "index")
	v.Input["items"] = m.up.whole()
	m.kind, m.cfg = "FLOW.SPLIT", map[string]any{"split_mode": "by_key", "by_key": keys, "items_path": "told"}
	if rest != "" && !slices.Contains(keys, rest) {
		m.cfg["by_key"] = append(slices.Clone(keys), rest)
	}
	m.in = map[string]any{"told": "{{" + split + ".outputs.result}}"}
	m.told = split
}

// ordered says that an object with these keys is written in the order in which they are meant: sorted, the rest last.
func ordered(keys []string, rest string) bool {
	last := ""
	for _, k := range keys {
		if k <= last {
			return false
		}
		last = k
	}
	return rest == "" || rest > last
}
