package seed

import (
	"cmp"
	"strconv"
	"strings"

	"tandem/importer"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// Steps reads flows of steps: each with the sort of its call and the step that comes next, or with edges beside them.
type Steps struct{}

// Name is what the report calls it.
func (Steps) Name() string { return "steps" }

// Reads says whether a document is such a flow.
func (Steps) Reads(document importer.Value) bool {
	doc := unwrapped(document)
	return doc.At("steps").IsList() || doc.At("steps").IsObject()
}

// Import makes a draft of the flow.
func (Steps) Import(document importer.Value, kinds workflow.Kinds) []*importer.Draft {
	f := &flow{Draft: importer.NewDraft(kinds), kinds: kinds, doc: unwrapped(document), ids: map[string]string{},
		made: map[string]*importer.Node{}}
	f.metadata()
	list := f.doc.At("steps").List()
	names := make([]string, len(list))
	for _, name := range f.doc.At("steps").Names() {
		list, names = append(list, f.doc.At("steps", name)), append(names, name)
	}
	for i, s := range list {
		key := cmp.Or(s.First("id", "step_id", "key").Text(), names[i], s.At("name").Text(), "step_"+strconv.Itoa(i+1))
		own := f.ID(key)
		for _, name := range []string{key, s.At("name").Text(), "#" + strconv.Itoa(i)} {
			if name != "" && f.ids[name] == "" {
				f.ids[name] = own
			}
		}
	}
	for i, s := range list {
		f.step(s, f.ids["#"+strconv.Itoa(i)])
	}
	for i, s := range list {
		f.next(s, f.ids["#"+strconv.Itoa(i)])
	}
	f.connections()
	if len(list) == 0 {
		f.Add(f.Line("", ""), f.ID("start"), "TRIGGER.MANUAL", "The file has no step.")
	}
	return []*importer.Draft{f.Draft}
}

// step reads a step.
func (f *flow) step(s importer.Value, id string) {
	sort := strings.ToUpper(strings.TrimSpace(s.First("call_type", "step_type", "type", "call").Text()))
	sort = strings.TrimSuffix(strings.TrimSuffix(sort, "_CALL"), "CALL")
	name := cmp.Or(s.First("name", "title").Text(), id)
	l := f.Line(name, s.First("call_type", "step_type", "type", "call").Text())
	kind, ok := f.kinds.Alias(sort, "")
	if !ok || !f.Has(kind) {
		why := text.Of("steps of the type %s have no counterpart", cmp.Or(sort, "unknown"))
		l.Miss(why)
		f.made[id] = f.Placeholder(l, id, name, why.In(text.English))
		return
	}
	n := f.Add(l, id, kind, cmp.Or(s.First("description", "desc").Text(), name))
	f.made[id] = n
	params, _ := s.First("params", "known_params", "config", "configurations").Any().(map[string]any)
	inputs, _ := s.First("inputs", "input", "input_params").Any().(map[string]any)
	if s.At("to_user").Bool() {
		n.Config["to_user"] = true
	}
	if s.At("enable_filling").Bool() {
		n.Config["enable_filling"] = true
	}
	if inputs != nil {
		n.Input = f.inputs(l, inputs)
	}
	switch {
	case sort == "CHOICE":
		f.choice(s, l, n)
	case sort == "END":
		n.Config["pass_through"] = true
		for field, value := range params {
			n.Input[field] = value
		}
	default:
		for field, value := range params {
			n.Config[field] = value
		}
	}
	f.secrets(l, n)
	n.Config, n.Input = f.renamed(n.Config).(map[string]any), f.renamed(n.Input).(map[string]any)
}

// branches are the ways of a choice.
func branches(s importer.Value) []importer.Value {
	for _, v := range []importer.Value{s.At("choices"), s.At("branches"), s.At("params", "choices"),
		s.At("params", "branches"), s.At("conditions")} {
		if v.IsList() {
			return v.List()
		}
	}
	return nil
}

// choice reads a choice.
func (f *flow) choice(s importer.Value, l *importer.Line, n *importer.Node) {
	list := []any{}
	for i, b := range branches(s) {
		key := branchName(b, i)
		if b.At("is_default").Bool() || strings.EqualFold(key, "default") || strings.EqualFold(key, "else") {
			n.Config["default_output_key"] = key
			continue
		}
		conditions := b.At("conditions").List()
		if len(conditions) == 0 {
			conditions = []importer.Value{b}
		}
		join := " && "
		if strings.EqualFold(b.First("logic", "relation", "logical_operator").Text(), "or") {
			join = " || "
		}
		var parts []string
		for _, c := range conditions {
			written, ok := f.comparison(c)
			if !ok {
				l.Approximate(text.Of("a comparison is not known and never holds: %s", c.First("operator", "operate", "op").Text()))
			}
			parts = append(parts, "("+written+")")
		}
		list = append(list, map[string]any{"branch_id": key, "condition": strings.Join(parts, join)})
	}
	n.Config["branches"] = list
	if len(list) == 0 {
		n.Kind, n.Config = "CALL.EMPTY", map[string]any{"pass_through": true}
		l.Became(n.Kind).Approximate(text.Of("it has no rule, and hands everything on"))
	}
}

// branchName is the key of a way.
func branchName(b importer.Value, i int) string {
	return cmp.Or(b.First("branch_id", "branch", "name", "id").Text(), "branch_"+strconv.Itoa(i+1))
}

// side is one side of a comparison.
func (f *flow) side(v importer.Value, variable bool) string {
	words, ok := v.Any().(string)
	if !ok {
		raw, err := payload.Encode(v.Any())
		if err != nil || !v.Exists() {
			return "null"
		}
		return string(raw)
	}
	words, _ = f.renamed(words).(string)
	if strings.HasPrefix(words, "{{") || strings.HasPrefix(words, "${") {
		return words
	}
	if variable {
		return "{{" + strings.TrimPrefix(strings.TrimPrefix(words, "$."), "$") + "}}"
	}
	return string(payload.Quote(words))
}

// comparison writes a comparison as an expression; false: it is not known.
func (f *flow) comparison(c importer.Value) (string, bool) {
	if words := c.First("expression", "condition").Text(); words != "" {
		return words, true
	}
	a := f.side(c.First("variable", "left", "field", "key"), true)
	b := f.side(c.First("value", "right", "target", "expected"), false)
	op := strings.ToLower(c.First("operator", "operate", "op", "comparison").Text())
	typ, rest, ok := strings.Cut(op, "_")
	switch {
	case ok && (typ == "string" || typ == "number" || typ == "list" || typ == "array" || typ == "bool" || typ == "boolean" ||
		typ == "dict" || typ == "object"):
		op = rest
	}
	not := ""
	for _, prefix := range []string{"not_", "is_not_"} {
		if positive, ok := strings.CutPrefix(op, prefix); ok && positive != "equal" && positive != "equals" {
			op, not = positive, "!"
		}
	}
	if size, ok := strings.CutPrefix(op, "length_"); ok {
		op, a = size, "len("+a+")"
		if n, err := strconv.Unquote(b); err == nil {
			b = n
		}
	}
	op = strings.TrimPrefix(op, "is_")
	signs := map[string]string{
		"equal": "==", "equals": "==", "eq": "==", "equal_to": "==", "==": "==", "not_equal": "!=", "not_equals": "!=", "ne": "!=",
		"!=": "!=", "greater_than": ">", "greater": ">", "gt": ">", ">": ">",
		"less_than": "<", "less": "<", "lt": "<", "<": "<", "greater_than_or_equal": ">=", "greater_equal": ">=", "greater_or_equal": ">=",
		"gte": ">=", "ge": ">=", ">=": ">=",
		"less_than_or_equal": "<=", "less_equal": "<=", "less_or_equal": "<=", "lte": "<=", "le": "<=", "<=": "<=",
	}
	if sign := signs[op]; sign != "" {
		if n, err := strconv.Unquote(b); err == nil && typ == "number" {
			if _, err := strconv.ParseFloat(n, 64); err == nil {
				b = n
			}
		}
		return not + map[bool]string{true: "("}[not != ""] + a + " " + sign + " " + b + map[bool]string{true: ")"}[not != ""], true
	}
	written, known := asked(op, a, b)
	if !known {
		return "false", false
	}
	return not + "(" + written + ")", true
}

// asked writes a comparison that is not a sign; false: it is not known.
func asked(op, a, b string) (string, bool) {
	switch op {
	case "contain", "contains", "include", "includes":
		return "contains(" + a + ", " + b + ")", true
	case "starts_with", "start_with", "startswith":
		return "starts_with(" + a + ", " + b + ")", true
	case "ends_with", "end_with", "endswith":
		return "ends_with(" + a + ", " + b + ")", true
	case "regex_match", "regex", "matches", "match":
		return "matches(" + a + ", " + b + ")", true
	case "contains_key", "has_key":
		return "has(" + a + ", " + b + ")", true
	case "in":
		return "(" + a + " in " + b + ")", true
	case "empty", "null", "none":
		return "(" + a + " == null || " + a + ` == "" || ` + a + " == [] || " + a + " == {})", true
	case "true", "false":
		return "(" + a + " == " + op + ")", true
	case "exists", "not_null":
		return "(" + a + " != null)", true
	}
	return "false", false
}

// next reads where a step leads.
func (f *flow) next(s importer.Value, id string) {
	f.ids[id] = cmp.Or(f.ids[id], id)
	one := func(v importer.Value, key string) {
		for _, to := range v.Texts() {
			f.connect(id, to, key, importer.Value{})
		}
	}
	if next := s.At("next"); next.IsObject() {
		for _, key := range next.Names() {
			one(next.At(key), key)
		}
	} else {
		one(next, "")
	}
	if f.made[id].Kind != "FLOW.SWITCH" {
		return
	}
	for i, b := range branches(s) {
		one(b.First("next", "target", "goto"), branchName(b, i))
	}
	if d := s.First("default", "default_next", "else"); d.IsText() {
		key, _ := f.made[id].Config["default_output_key"].(string)
		one(d, cmp.Or(key, "otherwise"))
		f.made[id].Config["default_output_key"] = cmp.Or(key, "otherwise")
	}
}
