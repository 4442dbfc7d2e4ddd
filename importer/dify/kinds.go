package dify

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"tandem/importer"
	"tandem/payload"
	"tandem/text"
)

// emit writes what becomes of a node.
func (f *flow) emit(n *node) {
	if n.begins {
		n.line.Became("FLOW.FOR_EACH").Note(text.Of("it is now the key iteration of the loop"))
		return
	}
	make := map[string]func(n *node){
		"start": f.start, "end": f.end, "answer": f.answer, "llm": f.llm, "code": f.code, "template-transform": f.template, "if-else": f.ifElse, "iteration": f.iteration, "loop": f.loop,
		"http-request": f.request, "parameter-extractor": f.extract, "question-classifier": f.classify, "knowledge-retrieval": f.retrieve, "assigner": f.assign, "list-operator": f.list,
		"document-extractor": f.document, "variable-aggregator": f.aggregate, "variable-assigner": f.aggregate, "tool": f.tool, "agent": f.agent, "loop-end": f.loopEnd,
	}[n.typ]
	if make == nil {
		f.miss(n, text.Of("nodes of the type %s have no counterpart", n.typ))
		return
	}
	make(n)
	if n.main != nil && n.main.Position == nil {
		n.main.Position = position(n.doc)
	}
	if retry := n.data.At("retry_config"); retry.At("retry_enabled").Bool() && n.main != nil {
		n.main.Config["max_retries"] = min(max(retry.At("max_retries").Int(3), 0), 10)
	}
	switch n.data.At("error_strategy").Text() {
	case "fail-branch":
		n.main.Config["on_error"] = "continue"
	case "default-value":
		values := map[string]any{}
		for _, v := range n.data.At("default_value").List() {
			values[v.At("key").Text()] = v.At("value").Any()
		}
		n.main.Config["on_error"], n.main.Config["default_output"] = "default_output", values
		n.line.Approximate(text.Of("its value after a failure is found by its names, and not where its output is"))
	}
}

// addNode adds the node that the node becomes.
func (f *flow) addNode(n *node, kind string) *importer.Node {
	description := n.title
	if words := strings.TrimSpace(n.data.At("desc").Text()); words != "" {
		description += ": " + words
	}
	n.main = f.Add(n.line, n.id, kind, description)
	return n.main
}

// miss makes a node that fails.
func (f *flow) miss(n *node, why text.Text) {
	n.line.Miss(why)
	n.main = f.Placeholder(n.line, n.id, n.title+" ("+n.typ+")", why.In(text.English))
	n.main.Position = position(n.doc)
}

// start begins.
func (f *flow) start(n *node) {
	properties, required := map[string]any{}, []any{}
	for _, v := range n.data.At("variables").List() {
		name := v.At("variable").Text()
		if name == "" {
			continue
		}
		one := map[string]any{"title": cmp.Or(v.At("label").Text(), name), "type": "string"}
		switch v.At("type").Text() {
		case "number":
			one["type"] = "number"
		case "checkbox":
			one["type"] = "boolean"
		case "select":
			if options := v.At("options").Texts(); len(options) > 0 {
				one["enum"] = options
			}
		case "file":
			delete(one, "type")
		case "file-list":
			one["type"] = "array"
		case "text-input", "paragraph":
			if most := v.At("max_length").Int(0); most > 0 {
				one["maxLength"] = most
			}
		}
		properties[name] = one
		if v.At("required").Bool() {
			required = append(required, name)
		}
	}
	if f.chat {
		t := f.addNode(n, "TRIGGER.CHAT")
		if words := f.doc.At("workflow", "features", "opening_statement").Text(); words != "" {
			t.Config["greeting"] = text.Clip(words, 2000)
		}
		if len(properties) > 0 {
			n.line.Approximate(text.Of("a chat has no form before it: the variables (%s) are null unless somebody starts it by hand with them", strings.Join(importer.ValueOf(properties).Names(), ", ")))
		}
	} else {
		t := f.addNode(n, "TRIGGER.MANUAL")
		if len(properties) > 0 {
			t.Config["input_schema"] = map[string]any{"type": "object", "properties": properties, "required": required}
		}
	}
	n.last = f.reads(n)
}

// end hands on what is asked for.
func (f *flow) end(n *node) {
	e := f.addNode(n, "CALL.EMPTY")
	e.Config["pass_through"] = true
	for _, o := range n.data.At("outputs").List() {
		if name := o.At("variable").Text(); name != "" {
			e.Input[name] = f.value(n, o.At("value_selector"))
		}
	}
}

// answer says something to the visitor.
func (f *flow) answer(n *node) {
	a := f.addNode(n, "FLOW.RESPOND")
	a.Config["body"] = f.words(n, n.data.At("answer").Text())
	answers := 0
	for _, other := range f.nodes {
		if other.typ == "answer" {
			answers++
		}
	}
	if answers > 1 {
		n.line.Note(text.Of("one answer is given in a run: the first"))
	}
}

// llm asks a model.
func (f *flow) llm(n *node) {
	a := f.addNode(n, "AI_AGENT.LLM")
	a.Config["profile_id"] = f.profile(n.data.At("model"))
	parameters(n.data.At("model"), a.Config)
	var messages []any
	roles := map[string]int{}
	one := func(v importer.Value) {
		words := v.At("text").Text()
		if v.At("edition_type").Text() == "jinja2" {
			words = v.At("jinja2_text").Text()
			n.line.Approximate(text.Of("its prompt is a template of Jinja2, of which only the variables are filled in"))
			words = f.simple(n, words)
		} else {
			words = f.words(n, words)
		}
		role := cmp.Or(v.At("role").Text(), "user")
		if strings.TrimSpace(words) == "" {
			return
		}
		roles[role]++
		messages = append(messages, map[string]any{"role": role, "content": words})
	}
	if prompts := n.data.At("prompt_template"); prompts.IsList() {
		for _, v := range prompts.List() {
			one(v)
		}
	} else {
		one(prompts)
	}
	if query := n.data.At("memory", "query_prompt_template").Text(); query != "" {
		messages = append(messages, map[string]any{"role": "user", "content": f.words(n, query)})
		roles["user"]++
	} else if roles["user"] == 0 && f.chat {
		messages = append(messages, map[string]any{"role": "user", "content": "{{trigger.message}}"})
		roles["user"]++
	}
	if roles["user"] == 0 && len(messages) > 0 {
		messages[len(messages)-1].(map[string]any)["role"] = "user"
	}
	if roles["system"] <= 1 && roles["user"] == 1 && roles["assistant"] == 0 {
		for _, v := range messages {
			message := v.(map[string]any)
			a.Config[map[any]string{"system": "system_prompt"}[message["role"]]+map[bool]string{true: "user_prompt"}[message["role"] != "system"]] = message["content"]
		}
	} else {
		a.Config["messages"] = messages
	}
	if len(messages) == 0 {
		a.Config["user_prompt"] = "-"
		n.line.Approximate(text.Of("it has no prompt; write one"))
	}
	if n.data.At("memory").Exists() {
		m := f.Add(n.line, f.ID(n.id+"_memory"), "MEMORY.CONVERSATION_BUFFER", "Remembers the conversation.")
		m.Config["session_id"] = f.session()
		m.Config["max_messages"] = min(max(2*n.data.At("memory", "window", "size").Int(10), 2), 1000)
		a.Attached = append(a.Attached, m.ID)
	}
	if schema, ok := n.data.At("structured_output", "schema").Any().(map[string]any); ok && n.data.At("structured_output_enabled").Bool() {
		a.Config["response_format"], a.Config["output_schema"] = "schema", schema
	}
	if n.data.At("vision", "enabled").Bool() {
		if v := f.value(n, n.data.At("vision", "configs", "variable_selector")); v != nil {
			a.Input["images"] = v
		}
	}
}

// given are the variables of a node by their names.
func (f *flow) given(n *node) map[string]any {
	in := map[string]any{}
	for _, v := range n.data.At("variables").List() {
		if name := v.At("variable").Text(); name != "" {
			in[name] = f.value(n, v.At("value_selector"))
		}
	}
	return in
}

// code runs a program.
func (f *flow) code(n *node) {
	c := f.addNode(n, "ACTION.RUN_CODE")
	source := n.data.At("code").Text()
	if strings.HasPrefix(n.data.At("code_language").Text(), "javascript") {
		c.Config["language"], c.Config["code"] = "javascript", source
	} else {
		c.Config["language"], c.Config["entry"] = "python", "call_main"
		c.Config["code"] = strings.TrimRight(source, "\n") + "\n\n\ndef call_main(**given):\n    return main(**given)\n"
		absent, reaching := modules(source)
		if len(absent) > 0 {
			n.line.Approximate(text.Of("its code imports %s, which the sandbox does not have: the node fails until the code does without", strings.Join(absent, ", ")))
		}
		if len(reaching) > 0 {
			n.line.Approximate(text.Of("its code imports %s; the sandbox has no files, no processes and no network", strings.Join(reaching, ", ")))
		}
	}
	c.Input = f.given(n)
}

// template fills a template of Jinja2 in.
func (f *flow) template(n *node) {
	c := f.addNode(n, "ACTION.JINJA_TEMPLATE")
	c.Config["template"] = n.data.At("template").Text()
	if strings.TrimSpace(n.data.At("template").Text()) == "" {
		c.Config["template"] = " "
	}
	c.Input = f.given(n)
}

// simple is a template of Jinja2 of which only the variables are filled in.
func (f *flow) simple(n *node, s string) string {
	in := map[string]string{}
	for _, v := range append(n.data.At("prompt_config", "jinja2_variables").List(), n.data.At("variables").List()...) {
		if words, ok := f.value(n, v.At("value_selector")).(string); ok {
			in[v.At("variable").Text()] = words
		}
	}
	return variable.ReplaceAllStringFunc(f.words(n, s), func(found string) string {
		name := strings.TrimSpace(strings.Trim(found, `\{} `))
		if words := in[name]; words != "" {
			return words
		}
		return found
	})
}

// variable is a variable of Jinja2, after escaping. read-only
var variable = regexp.MustCompile(`\\\{\{\s*[A-Za-z_]\w*\s*\}\}`)

// operand writes a value of a condition.
func operand(value, typ string) string {
	if typ == "number" {
		if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	if typ == "boolean" && (value == "true" || value == "false") {
		return value
	}
	return string(payload.Quote(value))
}

// condition writes one condition.
func (f *flow) condition(n *node, c importer.Value) string {
	a := importer.InExpression(f.path(n, c.At("variable_selector").Texts()))
	if a == "missing" {
		a = "null"
	}
	op, typ := c.At("comparison_operator").Text(), c.At("varType").Text()
	if typ == "" && strings.ContainsAny(op, "=≠><≥≤") {
		typ = "number"
	}
	b := operand(f.words(n, c.At("value").Written()), typ)
	number := func(s string) string {
		if typ == "number" && s != "null" {
			return "num(" + s + ")"
		}
		return s
	}
	empty := fmt.Sprintf(`(%s == null || %s == "" || %s == [] || %s == {})`, a, a, a, a)
	switch op {
	case "contains":
		return "contains(" + a + ` ?? "", ` + b + ")"
	case "not contains":
		return "!contains(" + a + ` ?? "", ` + b + ")"
	case "start with":
		return "starts_with(" + a + ", " + b + ")"
	case "end with":
		return "ends_with(" + a + ", " + b + ")"
	case "is not":
		return a + " != " + b
	case "empty":
		return empty
	case "not empty":
		return "!" + empty
	case "null", "not exists":
		return a + " == null"
	case "not null", "exists":
		return a + " != null"
	case "=", "≠", ">", "<", "≥", "≤":
		sign := map[string]string{"=": "==", "≠": "!=", ">": ">", "<": "<", "≥": ">=", "≤": "<="}[op]
		return "(" + a + " != null && " + number(a) + " " + sign + " " + b + ")"
	case "in", "not in":
		list := "[]"
		if raw, err := payload.Encode(c.At("value").Texts()); err == nil && len(c.At("value").Texts()) > 0 {
			list = string(raw)
		}
		return map[string]string{"in": "", "not in": "!"}[op] + "(" + a + " in " + list + ")"
	}
	return a + " == " + b
}

// conditions writes several, and how they are joined.
func (f *flow) conditions(n *node, v importer.Value) string {
	join := " && "
	if v.At("logical_operator").Text() == "or" {
		join = " || "
	}
	var parts []string
	for _, c := range v.First("conditions", "break_conditions").List() {
		parts = append(parts, f.condition(n, c))
	}
	return cmp.Or(strings.Join(parts, join), "true")
}

// ifElse chooses a way.
func (f *flow) ifElse(n *node) {
	s := f.addNode(n, "FLOW.SWITCH")
	branches := []any{}
	cases := n.data.At("cases").List()
	if len(cases) == 0 {
		cases = []importer.Value{n.data}
	}
	for i, c := range cases {
		key := "case_" + strconv.Itoa(i+1)
		n.keys[cmp.Or(c.First("case_id", "id").Text(), "true")] = key
		branches = append(branches, map[string]any{"branch_id": key, "condition": f.conditions(n, c)})
	}
	s.Config["branches"], s.Config["default_output_key"] = branches, "otherwise"
	n.keys["false"] = "otherwise"
}

// iteration goes through a list.
func (f *flow) iteration(n *node) {
	l := f.addNode(n, "FLOW.FOR_EACH")
	l.Config["items_path"] = "items"
	l.Input["items"] = f.value(n, n.data.At("iterator_selector"))
	if n.data.At("is_parallel").Bool() {
		l.Config["max_concurrency"] = min(max(n.data.At("parallel_nums").Int(10), 1), 100)
	}
	switch n.data.At("error_handle_mode").Text() {
	case "continue-on-error":
		l.Config["break_on_error"] = false
	case "remove-abnormal-output":
		l.Config["break_on_error"] = false
		n.line.Approximate(text.Of("the result of an element that fails is null, and not left out"))
	}
	f.body(n, f.value(n, n.data.At("output_selector")))
}

// body adds the node that ends a body and hands its result back.
func (f *flow) body(n *node, value any) {
	n.last = f.ID(n.id + "_result")
	end := f.Add(n.line, n.last, "CALL.EMPTY", "What an iteration of "+n.title+" hands back.")
	end.Config["pass_through"], end.Input["value"] = true, value
	f.Connect(n.last, "", n.id, "value")
	children := false
	for _, other := range f.nodes {
		children = children || other.parent == n && !other.begins
	}
	if !children {
		f.Connect(n.id, "iteration", n.last, "{}")
		n.line.Approximate(text.Of("nothing is in its body"))
	}
}

// loop repeats.
func (f *flow) loop(n *node) {
	l := f.addNode(n, "FLOW.LOOP")
	l.Config["loop_type"], l.Config["start_value"], l.Config["end_value"] = "for_range", 1, max(n.data.At("loop_count").Int(10), 1)
	if len(n.data.At("break_conditions").List()) > 0 {
		l.Config["break_condition"] = f.conditions(n, n.data)
	}
	if len(n.data.At("loop_variables").List()) > 0 {
		n.line.Approximate(text.Of("its variables begin anew in each round; keep them in a MEMORY.WORKING_MEMORY"))
	}
	f.body(n, nil)
}

// loopEnd ends a loop before its time.
func (f *flow) loopEnd(n *node) {
	e := f.addNode(n, "CALL.EMPTY")
	e.Config["pass_through"] = true
	n.line.Approximate(text.Of("it ends a round, and not the loop; write a break_condition"))
}

// pairs reads lines of names and values, or a list of them.
func (f *flow) pairs(n *node, v importer.Value) map[string]any {
	out := map[string]any{}
	for _, line := range strings.Split(v.Text(), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) != "" {
			out[strings.TrimSpace(name)] = f.words(n, strings.TrimSpace(value))
		}
	}
	for _, pair := range v.List() {
		if name := pair.At("key").Text(); name != "" {
			out[name] = f.words(n, pair.At("value").Written())
		}
	}
	return out
}

// request calls a service.
func (f *flow) request(n *node) {
	r := f.addNode(n, "ACTION.HTTP_REQUEST")
	d := n.data
	r.Config["method"] = strings.ToUpper(cmp.Or(d.At("method").Text(), "get"))
	r.Config["url"] = cmp.Or(f.words(n, d.At("url").Text()), "{{env.URL}}")
	for name, from := range map[string]string{"headers": "headers", "query_params": "params"} { // each by itself, so the order does not matter
		pairs := f.pairs(n, d.At(from))
		if len(pairs) > 0 {
			r.Config[name] = pairs
		}
	}
	// A failure is an answer there, too.
	r.Config["fail_on_status"] = false
	data := d.At("body", "data")
	switch kind := d.At("body", "type").Text(); kind {
	case "json", "raw-text":
		words := data.Text()
		for _, part := range data.List() {
			words += part.At("value").Text()
		}
		words = f.words(n, words)
		r.Config["body_type"], r.Config["body"] = "raw", words
		if kind == "json" {
			headers, _ := r.Config["headers"].(map[string]any)
			if headers == nil {
				headers = map[string]any{}
				r.Config["headers"] = headers
			}
			typed := false
			for name := range headers { // one such name is enough
				typed = typed || strings.EqualFold(name, "content-type")
			}
			if !typed {
				headers["Content-Type"] = "application/json"
			}
		}
	case "form-data", "x-www-form-urlencoded":
		r.Config["body_type"], r.Config["body"] = "form", f.pairs(n, data)
		if kind == "form-data" {
			n.line.Approximate(text.Of("what is sent as parts of a form, or as a file, is sent as fields; use ACTION.FILE_UPLOAD for files"))
		}
	default:
		r.Config["body_type"] = "none"
	}
	if seconds := d.At("timeout", "max_read_timeout").Int(0); seconds > 0 {
		r.Config["timeout"] = min(seconds, 86400)
	}
	f.authorize(n, r)
}

// authorize moves the key of a request to a credential.
func (f *flow) authorize(n *node, r *importer.Node) {
	auth := n.data.At("authorization")
	if auth.At("type").Text() != "api-key" {
		return
	}
	key := auth.At("config", "api_key").Text()
	if key == "" || strings.Contains(key, "{{") {
		r.Config["credential_id"] = "{{$placeholder}}"
		n.line.Note(text.Of("choose a credential of the type %s", "http_auth"))
		return
	}
	data := importer.AuthOf("header", cmp.Or(auth.At("config", "header").Text(), "Authorization"), key)
	switch auth.At("config", "type").Text() {
	case "bearer":
		data = map[string]any{"scheme": "bearer", "token": key}
	case "basic":
		data = importer.AuthOf("header", "Authorization", "Basic "+key)
	}
	r.Config["credential_id"] = f.Secret(n.line, r.ID+"_key", "http_auth", data)
}

// extract asks a model for values.
func (f *flow) extract(n *node) {
	a := f.addNode(n, "AI_AGENT.LLM")
	a.Config["profile_id"] = f.profile(n.data.At("model"))
	parameters(n.data.At("model"), a.Config)
	properties, required := map[string]any{}, []any{}
	for _, p := range n.data.At("parameters").List() {
		name := p.At("name").Text()
		one := map[string]any{"type": "string", "description": p.At("description").Text()}
		switch typ := p.At("type").Text(); {
		case typ == "number":
			one["type"] = "number"
		case typ == "bool" || typ == "boolean":
			one["type"] = "boolean"
		case strings.HasPrefix(typ, "array"):
			one["type"] = "array"
		case typ == "select":
			if options := p.At("options").Texts(); len(options) > 0 {
				one["enum"] = options
			}
		}
		if name != "" {
			properties[name] = one
			if p.At("required").Bool() {
				required = append(required, name)
			}
		}
	}
	a.Config["response_format"] = "schema"
	a.Config["output_schema"] = map[string]any{"type": "object", "properties": properties, "required": required}
	a.Config["system_prompt"] = strings.TrimSpace("Extract the values that are asked for from what the user says. Leave out what is not said.\n" + f.words(n, n.data.At("instruction").Text()))
	a.Config["user_prompt"] = "-"
	if v, ok := f.value(n, n.data.At("query")).(string); ok {
		a.Config["user_prompt"] = v
	}
}

// classify lets a model choose a way.
func (f *flow) classify(n *node) {
	s := f.addNode(n, "FLOW.SWITCH")
	choices := []any{}
	for i, c := range n.data.At("classes").List() {
		key := "class_" + strconv.Itoa(i+1)
		n.keys[c.At("id").Text()] = key
		choices = append(choices, map[string]any{"branch": key, "description": f.words(n, c.At("name").Text())})
	}
	s.Config["choices"], s.Config["llm_profile"] = choices, f.profile(n.data.At("model"))
	question := "{{trigger.message}}"
	if v, ok := f.value(n, n.data.At("query_variable_selector")).(string); ok {
		question = v
	}
	s.Config["propose"] = strings.TrimSpace(question + "\n" + f.words(n, n.data.First("instruction", "instructions").Text()))
}
