package dify

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"tandem/importer"
	"tandem/payload"
	"tandem/text"
)

// retrieve finds by meaning.
func (f *flow) retrieve(n *node) {
	m := f.addNode(n, "MEMORY.VECTOR_DATABASE")
	m.Config["operation"], m.Config["session_id"] = "search", "knowledge"
	m.Config["max_results"] = min(max(n.data.At("multiple_retrieval_config", "top_k").Int(4), 1), 50)
	m.Input["query"] = f.value(n, n.data.At("query_variable_selector"))
	n.line.Approximate(text.Of("what is found by its meaning is kept by Tandem itself: store the documents there"))
}

// write sets one variable.
func (f *flow) write(n *node, set *importer.Node, item importer.Value, name string, value any) {
	set.Config["operation"], set.Config["session_id"] = "set", f.session()
	set.Input["key"], set.Input["value"] = name, value
	switch mode := cmp.Or(item.At("operation").Text(), item.At("write_mode").Text(), "over-write"); mode {
	case "over-write", "set":
	case "clear":
		set.Config["operation"] = "delete"
		delete(set.Input, "value")
	default:
		if combines(mode) {
			return // see combine
		}
		n.line.Approximate(text.Of("the value takes the place of the old one, and is not put together with it (%s)", mode))
	}
}

// list filters, orders and cuts a list.
func (f *flow) list(n *node) {
	c := f.addNode(n, "ACTION.RUN_CODE")
	c.Config["language"] = "javascript"
	field := ""
	sign := "1"
	for _, o := range n.data.First("order_by").List() {
		field = o.At("key").Text()
	}
	if key := n.data.At("order_by", "key").Text(); key != "" {
		field = key
	}
	if strings.EqualFold(n.data.At("order_by", "value").Text(), "desc") {
		sign = "-1"
	}
	most := -1
	if n.data.At("limit", "enabled").Bool() {
		most = n.data.At("limit", "size").Int(-1)
	}
	sorted := ""
	if n.data.At("order_by", "enabled").Bool() {
		sorted = fmt.Sprintf("  const key = v => %s;\n  list.sort((a, b) => key(a) < key(b) ? -%s : key(a) > key(b) ? %s : 0);\n",
			map[bool]string{true: "v", false: "v?.[" + string(payload.Quote(field)) + "]"}[field == ""], sign, sign)
	}
	cut := ""
	if most >= 0 {
		cut = "  list = list.slice(0, " + strconv.Itoa(most) + ");\n"
	}
	filtered := ""
	if n.data.At("filter_by", "enabled").Bool() {
		filtered = f.filters(n)
	}
	c.Config["code"] = "function main(input) {\n  let list = [...(input.list ?? [])];\n" + filtered + sorted + cut +
		"  return {result: list, first_record: list[0] ?? null, last_record: list[list.length - 1] ?? null};\n}\n"
	c.Input["list"] = f.value(n, n.data.At("variable"))
}

// filters is code that keeps some of a list.
func (f *flow) filters(n *node) string {
	var b strings.Builder
	for _, c := range n.data.At("filter_by", "conditions").List() {
		key, op := c.At("key").Text(), c.At("comparison_operator").Text()
		read := "v"
		if key != "" {
			read = "v?.[" + string(payload.Quote(key)) + "]"
		}
		value := operand(c.At("value").Written(), map[bool]string{true: "number"}[strings.ContainsAny(op, "=≠><≥≤")])
		if raw, err := payload.Encode(c.At("value").Any()); err == nil && c.At("value").IsList() {
			value = string(raw)
		}
		test := map[string]string{
			"contains": "String(%s ?? '').includes(%s)", "not contains": "!String(%s ?? '').includes(%s)",
			"start with": "String(%s ?? '').startsWith(%s)", "end with": "String(%s ?? '').endsWith(%s)",
			"is": "%s === %s", "=": "Number(%s) === %s", "is not": "%s !== %s", "≠": "Number(%s) !== %s", ">": "Number(%s) > %s",
			"<": "Number(%s) < %s", "≥": "Number(%s) >= %s", "≤": "Number(%s) <= %s",
			"in": "[].concat(%[2]s).includes(%[1]s)", "not in": "![].concat(%[2]s).includes(%[1]s)",
		}[op]
		switch {
		case test != "":
			fmt.Fprintf(&b, "  list = list.filter(v => "+test+");\n", read, value)
		case op == "empty":
			fmt.Fprintf(&b, "  list = list.filter(v => !%s);\n", read)
		case op == "not empty":
			fmt.Fprintf(&b, "  list = list.filter(v => %s);\n", read)
		default:
			n.line.Approximate(text.Of("a condition of its filter was left out (%s)", op))
		}
	}
	return b.String()
}

// document reads the text of a file.
func (f *flow) document(n *node) {
	t := f.addNode(n, "TOOL.FILE_PROCESSOR")
	t.Config["tool_name"] = "file_extract_text"
	t.Config["function_args"] = map[string]any{"path": f.value(n, n.data.At("variable_selector"))}
	n.line.Approximate(text.Of("it reads files of the workspace by their paths"))
}

// aggregate takes the first variable that is there.
func (f *flow) aggregate(n *node) {
	c := f.addNode(n, "ACTION.RUN_CODE")
	c.Config["language"] = "javascript"
	groups := map[string][]importer.Value{"output": n.data.At("variables").List()}
	if n.data.At("advanced_settings", "group_enabled").Bool() {
		groups = map[string][]importer.Value{}
		for _, g := range n.data.At("advanced_settings", "groups").List() {
			groups[cmp.Or(g.At("group_name").Text(), "output")] = g.At("variables").List()
		}
	}
	in := map[string]any{}
	for name, list := range groups { // each by itself, so the order does not matter
		values := []any{}
		for _, selector := range list {
			values = append(values, f.value(n, selector))
		}
		in[name] = values
	}
	c.Config["code"] = "function main(input) {\n  const first = list => list.find(v => v !== null && v !== undefined) ?? null;\n" +
		"  return Object.fromEntries(Object.entries(input).map(([name, list]) => [name, first(list)]));\n}\n"
	c.Input = in
}
