package n8n

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tandem/importer"
	"tandem/payload"
	"tandem/text"
)

// flowHandlers are the nodes that lead items.
func flowHandlers() map[string]handler {
	pass := func(make func(m *making)) handler { return handler{pass: true, make: make} }
	list := func(make func(m *making)) handler { return handler{many: true, path: []string{"result"}, make: make} }
	return map[string]handler{
		"if":               {pass: true, outputs: 2, make: ifElse},
		"filter":           {pass: true, outputs: 2, make: ifElse},
		"switch":           {pass: true, outputs: 1, make: choose},
		"noOp":             pass(nothing),
		"executionData":    pass(nothing),
		"wait":             pass(wait),
		"stopAndError":     {per: true, make: stop},
		"respondToWebhook": pass(respond),
		"set":              {per: true, make: set},
		"renameKeys":       {many: true, path: []string{"items"}, make: renameKeys},
		"merge":            {many: true, path: []string{"merged_data"}, make: merge},
		"splitOut":         list(splitOut),
		"itemLists":        list(itemLists),
		"aggregate":        {path: []string{"result"}, make: aggregate},
		"summarize":        list(summarize),
		"limit":            list(limit),
		"sort":             {many: true, path: []string{"sorted_data"}, make: sortItems},
		"removeDuplicates": list(removeDuplicates),
		"splitInBatches":   {outputs: 2, make: batches},
		"executeWorkflow":  {per: true, path: []string{"outputs"}, make: subWorkflow},
		"code":             list(code),
		"function":         list(code),
		"functionItem":     {per: true, path: []string{"result"}, make: code},
		"dateTime":         {per: true, path: []string{"result", "0"}, make: dateTime},
		"compareDatasets":  {many: true, path: []string{"merged_data"}, make: merge},
		"executeCommand":   {per: true, make: command},
		"ssh":              {per: true, make: unknown},
		"debugHelper":      pass(nothing),
		"simulate":         pass(nothing),
	}
}

// nothing hands on.
func nothing(m *making) {
	m.kind, m.cfg["pass_through"] = "CALL.EMPTY", true
	for _, name := range m.n.params.Names() {
		if short(m.n.typ) == "noOp" {
			m.line.Approximate(text.Of("it has parameters (%s), which a node that does nothing does not read; if it was another node before, make that one here", name))
			return
		}
	}
}

// ifElse tells items apart.
func ifElse(m *making) {
	c := conditionsOf(m.n.params.At("conditions"), m.n.params)
	m.n.handsOn = true
	if m.up.many {
		m.outs = []string{"passed", "filtered"}
		m.apart(m.outs[:1], []conditions{c}, m.outs[1])
		return
	}
	m.kind, m.outs = "FLOW.IF", []string{"true", "false"}
	m.cfg["condition_expression"] = m.expression(c)
}

// choose sends items along one of several outputs.
func choose(m *making) {
	m.n.handsOn = true
	var keys []string
	var list []conditions
	fallback, named := "", m.n.params.At("options", "fallbackOutput").Text()
	rules := m.n.params.At("rules", "values").List()
	switch {
	case m.n.text("mode") == "expression":
		m.missing(text.Of("a switch whose output is computed has no counterpart; write its cases as rules"))
		return
	case len(rules) > 0:
		for i, rule := range rules {
			keys, list = append(keys, branchKey(i)), append(list, conditionsOf(rule.At("conditions"), m.n.params))
		}
	default:
		typ := m.n.text("dataType")
		if typ == "" {
			typ = "number"
		}
		highest := 3
		for _, rule := range m.n.params.At("rules", "rules").List() {
			op := older(rule.At("operation").Text())
			if op == "" {
				op = "equals"
			}
			output := rule.First("output", "outputKey").Int(len(keys))
			keys = append(keys, branchKey(output))
			highest = max(highest, output)
			list = append(list, conditions{list: []condition{{left: m.n.params.At("value1"), right: rule.At("value2"), typ: typ, op: op}}})
		}
		if n := m.n.params.At("fallbackOutput"); n.Exists() && n.Int(-1) >= 0 {
			fallback = branchKey(n.Int(0))
		}
	}
	if named == "extra" {
		fallback = branchKey(len(rules))
	} else if n, err := strconv.Atoi(named); err == nil && n >= 0 {
		fallback = branchKey(n)
	}
	m.outs = nil
	for i := range max(len(m.n.out), len(keys), 1) {
		m.outs = append(m.outs, branchKey(i))
	}
	keys, list = joined(keys, list)
	if m.up.many {
		m.apart(keys, list, fallback)
		return
	}
	m.kind = "FLOW.SWITCH"
	branches := []any{}
	for i := range keys {
		branches = append(branches, map[string]any{"branch_id": keys[i], "condition": m.expression(list[i])})
	}
	if fallback != "" {
		found := false
		for _, k := range keys {
			found = found || k == fallback
		}
		if found {
			m.line.Approximate(text.Of("what no rule takes leaves by the output of its own, and not by that of a rule"))
		} else {
			m.cfg["default_output_key"] = fallback
		}
	}
	m.cfg["branches"] = branches
	if len(branches) == 0 {
		m.kind, m.cfg = "CALL.EMPTY", map[string]any{"pass_through": true}
		m.outs = nil
		m.line.Approximate(text.Of("it has no rule, and hands everything on"))
	}
}

// joined puts rules with the same output together.
func joined(keys []string, list []conditions) ([]string, []conditions) {
	var outKeys []string
	var out []conditions
	at := map[string]int{}
	for i, k := range keys {
		if j, ok := at[k]; ok && (len(out[j].list) == 1 || out[j].any) && (len(list[i].list) == 1 || list[i].any) {
			out[j] = conditions{list: append(append([]condition{}, out[j].list...), list[i].list...), any: true}
			continue
		} else if ok {
			k = k + "_" + strconv.Itoa(i)
		}
		at[k] = len(outKeys)
		outKeys, out = append(outKeys, k), append(out, list[i])
	}
	return outKeys, out
}

// wait waits.
func wait(m *making) {
	m.n.handsOn = true
	seconds := m.n.params.At("amount")
	switch resume := m.n.text("resume"); resume {
	case "", "timeInterval":
		unit := map[string]float64{"": 3600, "seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}[m.n.text("unit")]
		if m.n.text("unit") == "" && m.n.version >= 1.1 {
			unit = 1 // the default since then
		}
		if n, ok := seconds.Number(); ok || !seconds.Exists() {
			x, err := n.Float64()
			if err != nil {
				x = 1
			}
			m.kind, m.cfg["duration_seconds"] = "FLOW.DELAY", min(max(x*max(unit, 1), 0), 31536000)
			return
		}
		m.kind, m.cfg["duration_seconds"] = "FLOW.DELAY", m.text(seconds)
		if unit != 1 {
			m.line.Approximate(text.Of("the time is computed, and now means seconds"))
		}
	case "specificTime":
		m.kind, m.outs = "FLOW.WAIT", []string{"completed"}
		m.cfg["wait_type"], m.cfg["until"] = "timer", m.text(m.n.params.At("dateTime"))
	case "webhook", "form":
		m.kind, m.outs = "FLOW.WAIT", []string{"completed"}
		m.cfg["wait_type"], m.cfg["timeout_seconds"] = "webhook", 0
		m.line.Approximate(text.Of("it waits for a call of an address of Tandem, which each run makes anew (wait_url)"))
	default:
		m.missing(text.Of("a wait of the mode %q has no counterpart", resume))
	}
}

// stop fails on purpose.
func stop(m *making) {
	words := m.value(m.n.params.First("errorMessage", "errorObject"))
	if words == nil {
		words = "An error occurred!"
	}
	m.kind, m.empty = "ACTION.RUN_CODE", true
	m.cfg["language"] = "javascript"
	m.cfg["code"] = "function main(input) {\n  throw new Error(typeof input.message === \"string\" ? input.message : JSON.stringify(input.message));\n}\n"
	m.in["message"] = words
}

// respond answers the request that has started the execution.
func respond(m *making) {
	m.n.handsOn = true
	m.kind, m.cfg["status_code"] = "FLOW.RESPOND", min(max(m.n.params.At("options", "responseCode").Int(200), 200), 599)
	one := m.json
	if m.up.many {
		one.path, one.many = append(append([]string{}, one.path...), "0"), false
		m.json = one
	}
	switch with := m.n.text("respondWith"); with {
	case "json":
		m.cfg["body"] = m.jsonText(m.n.params.At("responseBody"))
	case "text":
		m.cfg["body"], m.cfg["content_type"] = m.text(m.n.params.At("responseBody")), "text/html"
	case "noData":
		m.cfg["body"] = ""
	case "redirect":
		m.cfg["status_code"], m.cfg["body"] = 302, ""
		m.cfg["headers"] = map[string]any{"Location": m.text(m.n.params.At("redirectURL"))}
	case "allIncomingItems":
		m.cfg["body"] = m.listIn()
	case "", "firstIncomingItem":
		m.cfg["body"] = one.whole()
	case "binary":
		m.cfg["body"] = one.whole()
		m.line.Approximate(text.Of("a file cannot be found by its n8n name; set the field file to one that a node has made"))
	default:
		m.missing(text.Of("an answer of the sort %q has no counterpart", with))
		return
	}
	headers := map[string]any{}
	for _, h := range m.n.params.At("options", "responseHeaders", "entries").List() {
		headers[h.At("name").Text()] = m.text(h.At("value"))
	}
	if len(headers) > 0 {
		m.cfg["headers"] = headers
	}
}

// jsonText is a text that is JSON with expressions in it, as a value where it can be read as one, else as a text.
func (r *reading) jsonText(v importer.Value) any {
	s, ok := v.Any().(string)
	if !ok {
		return r.value(v)
	}
	translated := r.words(s)
	words, ok := translated.(string)
	if !ok {
		return translated
	}
	for _, candidate := range []string{words, quoted(words)} {
		if !strings.HasPrefix(strings.TrimSpace(candidate), "{") && !strings.HasPrefix(strings.TrimSpace(candidate), "[") ||
			strings.HasPrefix(strings.TrimSpace(candidate), "{{") {
			continue
		}
		if value, err := payload.Decode([]byte(candidate)); err == nil {
			return value
		}
	}
	return words
}

// quoted puts placeholders of a text in JSON that stand outside of texts into quotation marks, which keeps their type.
func quoted(s string) string {
	var b strings.Builder
	inside := false
	for i := 0; i < len(s); i++ {
		switch {
		case inside && s[i] == '\\' && i+1 < len(s):
			b.WriteByte(s[i])
			i++
		case s[i] == '"':
			inside = !inside
		case !inside && strings.HasPrefix(s[i:], "{{"):
			if end := strings.Index(s[i:], "}}"); end > 0 {
				b.Write(payload.Quote(s[i : i+end+2]))
				i += end + 1
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// set sets fields.
func set(m *making) {
	p := m.n.params
	m.kind = "ACTION.EDIT_FIELDS"
	keep := false              // the other fields
	fields := map[string]any{} // by their paths
	flat := p.At("options", "dotNotation").Exists() && !p.At("options", "dotNotation").Bool()
	switch {
	case p.At("mode").Text() == "raw" || p.At("jsonOutput").Exists():
		value := m.jsonText(p.At("jsonOutput"))
		if object, ok := value.(map[string]any); ok {
			for name, one := range object { // order does not matter: they are named
				setField(fields, name, one, true)
			}
		} else {
			fields["data"] = value
			m.line.Approximate(text.Of("the JSON is computed as a whole, and is now in the field data"))
		}
		keep = includes(p)
	case p.At("assignments").Exists() || p.At("fields").Exists() || m.n.version >= 3:
		for _, a := range append(p.At("assignments", "assignments").List(), p.At("fields", "values").List()...) {
			value, typ := a.At("value"), a.At("type").Text()
			if !value.Exists() {
				value = a.First("stringValue", "numberValue", "booleanValue", "arrayValue", "objectValue")
			}
			setField(fields, a.At("name").Text(), m.of(value, strings.TrimSuffix(typ, "Value")), flat)
		}
		keep = includes(p)
	default:
		keep = !p.At("keepOnlySet").Bool()
		for _, typ := range []string{"boolean", "number", "string"} {
			for _, a := range p.At("values", typ).List() {
				setField(fields, a.At("name").Text(), m.of(a.At("value"), typ), flat)
			}
		}
	}
	if keep {
		switch p.At("include").Text() {
		case "selected":
			m.cfg["include"], m.cfg["selected"] = "selected", fieldPaths(fieldsOf(p.At("includeFields")), flat)
		case "except":
			m.cfg["remove"] = fieldPaths(fieldsOf(p.At("excludeFields")), flat)
		}
	} else {
		m.cfg["include"] = "none"
	}
	if len(fields) > 0 {
		m.cfg["set"] = fields
	}
	m.payload, m.empty = keep, !keep
}

// fieldPaths are names of fields as paths.
func fieldPaths(names []string, flat bool) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, fieldPath(name, flat))
	}
	return out
}

// fieldPath is the name of a field as a path: in n8n dots lead into fields, unless that is switched off.
func fieldPath(name string, flat bool) string {
	steps := []string{name}
	if !flat {
		steps = strings.Split(name, ".")
	}
	return strings.TrimPrefix(pathText(steps), ".")
}

// includes says that the other fields are handed on.
func includes(p importer.Value) bool {
	if v := p.At("includeOtherFields"); v.Exists() {
		return v.Bool()
	}
	switch p.At("include").Text() {
	case "all", "selected", "except":
		return true
	}
	return false
}

// of is a parameter as a value of a type.
func (r *reading) of(v importer.Value, typ string) any {
	value := r.value(v)
	s, ok := value.(string)
	if !ok || strings.Contains(s, "{{") {
		return value
	}
	switch typ {
	case "number":
		if n, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return json.Number(strconv.FormatFloat(n, 'f', -1, 64))
		}
	case "boolean":
		return strings.EqualFold(s, "true")
	case "array", "object":
		if decoded, err := payload.Decode([]byte(s)); err == nil {
			return decoded
		}
	}
	return value
}

// setField sets a field, whose name may be a path.
func setField(fields map[string]any, name string, value any, flat bool) {
	if name = strings.TrimSpace(strings.TrimPrefix(name, "=")); name != "" {
		fields[fieldPath(name, flat)] = value
	}
}

// merge joins branches.
func merge(m *making) {
	m.kind, m.empty = "FLOW.MERGE", false
	p := m.n.params
	mode := p.At("mode").Text()
	by := p.First("combineBy", "combinationMode").Text()
	switch {
	case len(m.n.arriving()) == 0:
		m.cfg["merge_strategy"] = "concatenate"
	case short(m.n.typ) == "compareDatasets":
		m.missing(text.Of("data sets are not compared; use FLOW.MERGE and FLOW.FILTER"))
	case mode == "" || mode == "append":
		m.cfg["merge_strategy"] = "concatenate"
	case mode == "mergeByPosition" || mode == "mergeByIndex" || by == "combineByPosition" || by == "mergeByPosition":
		m.cfg["merge_strategy"] = "zip"
		if !p.At("options", "includeUnpaired").Bool() && p.At("join").Text() != "outer" {
			m.cfg["zip_length"] = "shortest"
		}
	case mode == "mergeByKey" || mode == "mergeByField" || mode == "mergeByFields" || by == "combineByFields" || by == "mergeByFields" ||
		mode == "combine" && by == "":
		m.mergeByFields()
	case mode == "chooseBranch" || mode == "passThrough" || mode == "wait":
		m.cfg["merge_strategy"] = "concatenate"
		m.line.Approximate(text.Of("it waits for all branches and hands on the items of all of them, and not of one"))
	case mode == "removeKeyMatches":
		m.missing(text.Of("items that match cannot be left out by FLOW.MERGE; use FLOW.FILTER"))
	default:
		m.missing(text.Of("a merge of the mode %q has no counterpart", fmt.Sprint(mode, " ", by)))
	}
}

// mergeByFields joins items that belong together by a field.
func (m *making) mergeByFields() {
	p := m.n.params
	key := p.First("propertyName1", "fieldsToMatchString").Text()
	for _, pair := range p.First("mergeByFields", "matchFields").At("values").List() {
		if key == "" {
			key = pair.At("field1").Text()
		}
		if pair.At("field1").Text() != pair.At("field2").Text() {
			m.line.Approximate(text.Of("items belong together by the field %q of both sides", key))
		}
	}
	m.cfg["merge_strategy"], m.cfg["merge_key"] = "by_key", strings.TrimPrefix(key, "=")
	if key == "" {
		m.missing(text.Of("the field by which items belong together is not named"))
		return
	}
	switch p.First("joinMode").Text() {
	case "enrichInput1":
		m.cfg["join"] = "left"
	case "keepEverything", "keepNonMatches":
		m.cfg["join"] = "outer"
	default:
		m.cfg["join"] = "inner"
	}
	if p.At("joinMode").Text() == "keepNonMatches" {
		m.line.Approximate(text.Of("items that match are handed on, too"))
	}
}

// batches goes through items in batches.
func batches(m *making) {
	size := m.n.params.At("batchSize").Int(map[bool]int{true: 1, false: 10}[m.n.version >= 3])
	m.kind, m.empty = "FLOW.FOR_EACH", true
	m.cfg["items_path"], m.cfg["batch_size"] = "items", max(size, 1)
	m.in["items"] = m.listIn()
	m.outs = []string{"completed", "iteration"}
	if m.n.version < 3 {
		m.outs = []string{"iteration", "completed"}
	}
	body := -1
	for i, key := range m.outs {
		if key == "iteration" {
			body = i
		}
	}
	if body >= len(m.n.out) || len(m.n.out[body]) == 0 {
		m.kind, m.cfg, m.outs = "CALL.EMPTY", map[string]any{"pass_through": true}, nil
		m.line.Approximate(text.Of("nothing is connected to its loop, so that it hands its input on"))
	}
	if m.n.params.At("options", "reset").Exists() {
		m.line.Approximate(text.Of("it does not begin anew in the middle"))
	}
}

// batchShape is what leaves a node that goes through items in batches.
func (f *flow) batchShape(n *node, output int) shape {
	body := 1
	if n.version < 3 {
		body = 0
	}
	if output != body {
		return shape{head: n.id + ".outputs", path: []string{"results"}, flow: []string{"results"}, many: true}
	}
	if n.params.At("batchSize").Int(map[bool]int{true: 1, false: 10}[n.version >= 3]) > 1 {
		return shape{head: "item", flow: []string{"item"}, many: true}
	}
	return shape{head: "item", flow: []string{"item"}}
}

// subWorkflow runs another workflow.
func subWorkflow(m *making) {
	m.kind = "FLOW.SUB_WORKFLOW"
	id := locator(m.n.params.At("workflowId"))
	name := m.n.params.At("workflowId", "cachedResultName").Text()
	if source := m.n.text("source"); source != "" && source != "database" {
		m.missing(text.Of("the workflow stands in a file, an address or the node itself; import it and name it"))
		return
	}
	m.cfg["workflow_id"] = m.text(id)
	if m.cfg["workflow_id"] == "" {
		m.cfg["workflow_id"] = "{{$placeholder}}"
	}
	if wait := m.n.params.At("options", "waitForSubWorkflow"); wait.Exists() && !wait.Bool() {
		m.cfg["wait"] = false
	}
	for _, field := range m.n.params.At("workflowInputs", "value").Names() {
		m.in[field] = m.value(m.n.params.At("workflowInputs", "value", field))
	}
	m.payload = true
	m.line.Approximate(text.Of("import the workflow %q, too, deploy it, and set workflow_id to its id", name+" "+id.Text()))
}

// command runs a command of the machine.
func command(m *making) {
	m.kind = "ACTION.EXECUTE_SCRIPT"
	words := m.text(m.n.params.At("command"))
	if strings.Contains(words, "{{") {
		m.missing(text.Of("a command that data is written into has no counterpart; hand data over in env or stdin of ACTION.EXECUTE_SCRIPT"))
		return
	}
	m.cfg["interpreter"], m.cfg["script"] = "sh", strings.ReplaceAll(strings.ReplaceAll(words, `\{{`, "{{"), `\${`, "${")
	m.line.Approximate(text.Of("scripts are off until the operator turns them on"))
}
