package n8n

import (
	"strconv"
	"strings"

	"tandem/payload"
	"tandem/text"
)

// reach reads and writes fields by paths, in code.
const reach = `  const read = (one, path) => path.split(".").reduce((v, step) => v?.[step], one);
`

// splitOut makes items of the lists in a field.
func splitOut(m *making) {
	fields := fieldsOf(m.n.params.At("fieldToSplitOut"))
	into := fieldsOf(m.n.params.At("options", "destinationFieldName"))
	include := m.n.text("include")
	rest := "{}"
	switch include {
	case "allOtherFields":
		rest = "Object.fromEntries(Object.entries(one).filter(([name]) => !fields.includes(name)))"
	case "selectedOtherFields":
		rest = "Object.fromEntries(" + listed(fieldsOf(m.n.params.At("fieldsToInclude"))) + ".map(name => [name, read(one, name)]))"
	}
	m.script(reach + `  const fields = ` + listed(fields) + `, into = ` + listed(into) + `, out = [];
  const parts = v => Array.isArray(v) ? v : v === null || v === undefined ? [] : typeof v === "object" ? Object.values(v) : [v];
  for (const one of input.items) {
    const lists = fields.map(name => parts(read(one, name)));
    for (let i = 0; i < Math.max(0, ...lists.map(list => list.length)); i++) {
      const rest = ` + rest + `;
      const bare = fields.length === 1 && into.length === 0 && Object.keys(rest).length === 0;
      const value = lists[0][i];
      if (bare && value !== null && typeof value === "object" && !Array.isArray(value)) out.push(value);
      else out.push({...rest, ...Object.fromEntries(fields.map((name, k) => [into[k] ?? name.split(".").pop(), lists[k][i] ?? null]))});
    }
  }
  return out;`)
}

// itemLists are the nodes of older files that later became several.
func itemLists(m *making) {
	switch op := m.n.text("operation"); op {
	case "", "splitOutItems":
		splitOut(m)
	case "aggregateItems", "concatenateItems":
		aggregate(m)
		m.cfg["code"] = strings.Replace(m.cfg["code"].(string), "return out;", "return [out];", 1)
	case "limit":
		limit(m)
	case "removeDuplicates":
		removeDuplicates(m)
	case "summarize":
		summarize(m)
	case "sort":
		m.script(sorting(m))
	default:
		m.missing(text.Of("the operation %q has no counterpart", op))
	}
}

// aggregate makes one item of all.
func aggregate(m *making) {
	if m.n.text("aggregate") == "aggregateAllItemData" {
		field := m.n.text("destinationFieldName")
		if field == "" {
			field = "data"
		}
		m.script("  const out = {" + string(payload.Quote(strings.TrimPrefix(field, "="))) + ": input.items};\n  return out;")
		return
	}
	var pairs []string
	for _, f := range m.n.params.First("fieldsToAggregate").At("fieldToAggregate").List() {
		name := strings.TrimPrefix(f.At("fieldToAggregate").Text(), "=")
		as := name[strings.LastIndexByte(name, '.')+1:]
		if f.At("renameField").Bool() && f.At("outputFieldName").Text() != "" {
			as = f.At("outputFieldName").Text()
		}
		if name != "" {
			pairs = append(pairs, "["+string(payload.Quote(name))+", "+string(payload.Quote(as))+"]")
		}
	}
	m.script(reach + "  const out = {};\n  for (const [name, as] of [" + strings.Join(pairs, ", ") + "]) {\n" +
		"    out[as] = input.items.map(one => read(one, name)).filter(v => v !== undefined && v !== null);\n" +
		mergeLists(m) + "  }\n  return out;")
}

// mergeLists is the line that makes one list of lists, if that was asked for.
func mergeLists(m *making) string {
	if m.n.params.At("options", "mergeLists").Bool() {
		return "    out[as] = out[as].flat();\n"
	}
	return ""
}

// limit keeps some of the items.
func limit(m *making) {
	most := max(m.n.params.At("maxItems").Int(1), 0)
	if m.n.text("keep") == "lastItems" {
		m.script("  return input.items.slice(-" + strconv.Itoa(most) + ");")
		return
	}
	m.script("  return input.items.slice(0, " + strconv.Itoa(most) + ");")
}

// removeDuplicates keeps the first of equal items.
func removeDuplicates(m *making) {
	if op := m.n.text("operation"); op != "" && op != "removeDuplicateInputItems" {
		m.missing(text.Of("items of earlier runs are not remembered; keep what was seen in a MEMORY.KEY_VALUE_STORE"))
		return
	}
	key := "one"
	switch m.n.text("compare") {
	case "selectedFields":
		key = listed(fieldsOf(m.n.params.At("fieldsToCompare"))) + ".map(name => read(one, name))"
	case "allFieldsExcept":
		key = "Object.entries(one).filter(([name]) => !" + listed(fieldsOf(m.n.params.At("fieldsToExclude"))) + ".includes(name))"
	}
	m.script(reach + "  const seen = new Set();\n  return input.items.filter(one => {\n    const key = JSON.stringify(" + key + ");\n    return !seen.has(key) && seen.add(key);\n  });")
}

// summarize groups items.
func summarize(m *making) {
	var parts []string
	for _, f := range m.n.params.At("fieldsToSummarize", "values").List() {
		op := f.At("aggregation").Text()
		if op == "" {
			op = "count"
		}
		separator := f.First("customSeparator", "separateBy").Text()
		parts = append(parts, "{op: "+string(payload.Quote(op))+", field: "+string(payload.Quote(strings.TrimPrefix(f.At("field").Text(),
			"=")))+", by: "+string(payload.Quote(separator))+"}")
	}
	groups := fieldsOf(m.n.params.At("fieldsToSplitBy"))
	m.script(reach + `  const sums = [` + strings.Join(parts, ", ") + `], by = ` + listed(groups) + `, groups = new Map();
  for (const one of input.items) {
    const key = JSON.stringify(by.map(name => read(one, name) ?? null));
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  if (!by.length && !groups.size) groups.set("[]", []);
  const names = {append: "appended", average: "average", concatenate: "concatenated", count: "count", countUnique: "unique_count", max: "max", min: "min", sum: "sum"};
  return [...groups].map(([key, list]) => {
    const out = Object.fromEntries(JSON.parse(key).map((v, i) => [by[i], v]));
    for (const {op, field, by: separator} of sums) {
      const all = list.map(one => read(one, field)).filter(v => v !== undefined && v !== null), n = all.map(Number);
      const total = n.reduce((a, b) => a + b, 0);
      out[names[op] + "_" +
	field.replaceAll(".", "_")] = op === "append" ? all : op === "average" ? (n.length ? total / n.length : null) : op === "concatenate" ? all.join(separator || ",")
        : op === "countUnique" ? new Set(all.map(v => JSON.stringify(v))).size : op === "max" ? (n.length ? Math.max(...n) : null) : op === "min" ? (n.length ? Math.min(...n) : null) : op === "sum" ? total : all.length;
    }
    return out;
  });`)
}

// sortItems orders items.
func sortItems(m *making) {
	m.kind, m.empty = "FLOW.SORT", true
	m.in["items"], m.cfg["items_path"] = m.listIn(), "items"
	var fields []any
	for _, f := range m.n.params.At("sortFieldsUi", "sortField").List() {
		order := "asc"
		if f.At("order").Text() == "descending" {
			order = "desc"
		}
		fields = append(fields, map[string]any{"field": strings.TrimPrefix(f.At("fieldName").Text(), "="), "order": order})
	}
	if t := m.n.text("type"); t == "random" || t == "code" || len(fields) == 0 {
		m.missing(text.Of("items are not ordered at random or by code; order them in ACTION.RUN_CODE"))
		return
	}
	m.cfg["sort_fields"] = fields
}

// sorting is code that orders items.
func sorting(m *making) string {
	var parts []string
	for _, f := range m.n.params.At("sortFieldsUi", "sortField").List() {
		sign := "1"
		if f.At("order").Text() == "descending" {
			sign = "-1"
		}
		parts = append(parts, "["+string(payload.Quote(f.At("fieldName").Text()))+", "+sign+"]")
	}
	return reach + "  const by = [" + strings.Join(parts, ", ") + `];
  return [...input.items].sort((a, b) => {
    for (const [name, sign] of by) {
      const x = read(a, name), y = read(b, name);
      if (x < y) return -sign;
      if (x > y) return sign;
    }
    return 0;
  });`
}

// renameKeys gives fields other names.
func renameKeys(m *making) {
	names := map[string]any{}
	for _, k := range m.n.params.At("keys", "key").List() {
		if from, to := k.At("currentKey").Text(), k.At("newKey").Text(); from != "" && to != "" {
			names[fieldPath(from, false)] = fieldPath(to, false)
		}
	}
	m.kind, m.cfg["each"], m.cfg["items_path"], m.cfg["rename"] = "ACTION.EDIT_FIELDS", true, "items", names
	m.in["items"], m.empty = m.listIn(), true
	if m.n.params.At("additionalOptions", "regexReplacement").Exists() {
		m.line.Approximate(text.Of("fields are not renamed by patterns"))
	}
}

// dateTime works with dates.
func dateTime(m *making) {
	p := m.n.params
	as := func(name, otherwise string) string {
		if s := p.At(name).Text(); s != "" {
			return string(payload.Quote(s))
		}
		return string(payload.Quote(otherwise))
	}
	each := func(value string) {
		m.script(strings.TrimPrefix(dates, "\n") + "  return input.items.map((one, i) => ({...one, " + value + "}));")
		m.line.Approximate(text.Of("times are in UTC"))
	}
	date := m.value(p.First("date", "value", "magnitude", "startDate"))
	m.in["date"] = date
	at := `DateTime.fromISO(String(input.date))`
	switch op := p.At("operation").Text(); {
	case op == "getCurrentDate":
		each("[" + as("outputFieldName", "currentDate") + "]: $now.toISO()")
	case op == "formatDate" || p.At("action").Text() == "format" || op == "" && p.At("action").Text() == "":
		layout := p.First("customFormat", "toFormat", "format").Text()
		if layout == "" || layout == "custom" {
			layout = "yyyy-MM-dd"
		}
		each("[" + as(map[bool]string{true: "outputFieldName", false: "dataPropertyName"}[p.At("outputFieldName").Exists()],
			"formattedDate") + "]: " + at + ".toFormat(" + string(payload.Quote(strings.NewReplacer("YYYY", "yyyy", "DD",
			"dd").Replace(layout))) + ")")
	case op == "addToDate" || op == "subtractFromDate" || p.At("action").Text() == "calculate":
		m.in["duration"] = m.value(p.At("duration"))
		unit := p.At("timeUnit").Text()
		if unit == "" {
			unit = "days"
		}
		move := "plus"
		if op == "subtractFromDate" || op == "subtract" {
			move = "minus"
		}
		each("[" + as("outputFieldName", "newDate") + "]: " + at + "." + move + "({[" + string(payload.Quote(unit)) + "]: Number(input.duration)}).toISO()")
	default:
		m.missing(text.Of("the operation %q has no counterpart", op))
		return
	}
	m.in["items"] = m.listIn()
}
