// Package dify reads applications that Dify has exported (its DSL): workflows, chats with a graph, and applications that are one prompt.
package dify

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tandem/importer"
	"tandem/payload"
	"tandem/text"
	"tandem/workflow"
)

// System reads the files of Dify.
type System struct{}

// Name is what the report calls it.
func (System) Name() string { return "dify" }

// Reads says whether a document is an export of Dify.
func (System) Reads(document importer.Value) bool {
	return document.At("kind").Text() == "app" || document.At("app", "mode").Text() != "" ||
		document.At("workflow", "graph", "nodes").IsList()
}

// Import makes a draft of the application.
func (System) Import(document importer.Value, kinds workflow.Kinds) []*importer.Draft {
	f := &flow{Draft: importer.NewDraft(kinds), doc: document, byID: map[string]*node{},
		before: map[string][]string{}, vars: map[string]string{}}
	meta := &f.Definition().Metadata
	meta.Name, meta.Description = strings.TrimSpace(document.At("app", "name").Text()),
		strings.TrimSpace(document.At("app", "description").Text())
	meta.Settings.OnUnresolved = "null"
	f.chat = strings.Contains(document.At("app", "mode").Text(), "chat")
	graph := document.At("workflow", "graph")
	if !graph.At("nodes").IsList() {
		f.prompt(document.First("model_config"))
		return []*importer.Draft{f.Draft}
	}
	f.readGraph(graph)
	f.conversation()
	for _, n := range f.nodes {
		f.emit(n)
	}
	f.wire()
	for _, v := range document.At("workflow", "environment_variables").List() {
		f.Note(text.Of("the variable %q is read from the environment; let the operator allow it", v.At("name").Text()))
	}
	return []*importer.Draft{f.Draft}
}

// flow is one application while it is imported.
type flow struct {
	*importer.Draft
	doc   importer.Value
	chat  bool
	nodes []*node
	byID  map[string]*node
	edges []edge
	// before are the nodes with an edge to a node, by their keys.
	before map[string][]string
	// vars are the nodes that read variables of the conversation, by their names; hasRead says that they are written.
	vars    map[string]string
	hasRead bool
}

// node is a node of the file.
type node struct {
	key, title, typ string
	data, doc       importer.Value
	line            *importer.Line
	id              string
	parent          *node
	// main is what was made of it.
	main *importer.Node
	// asText is the node that makes a text of what a tool returns, see textOf.
	asText string
	// keys are the output keys by the handles of its edges.
	keys map[string]string
	// made are the nodes that put values of an assigner together, by the variables, see combined.
	made map[string]string
	// last is the node that ends the body, of nodes that have one; of others it is the last of those that were made of it.
	last string
	// begins says that it only marks where a body begins.
	begins bool
}

// edge is a connection.
type edge struct{ from, handle, to string }

// readGraph takes the graph apart.
func (f *flow) readGraph(graph importer.Value) {
	for _, doc := range graph.At("nodes").List() {
		data := doc.At("data")
		n := &node{key: doc.At("id").Text(), title: data.At("title").Text(), typ: data.At("type").Text(), data: data, doc: doc,
			keys: map[string]string{}, made: map[string]string{}}
		n.typ = cmp.Or(n.typ, doc.At("type").Text())
		n.title = cmp.Or(n.title, n.typ)
		n.line = f.Line(n.title, n.typ)
		if doc.At("type").Text() == "custom-note" || n.typ == "custom-note" {
			f.Stick(note(data.At("text").Text()), position(doc), size(data.At("width")), size(data.At("height")))
			continue
		}
		n.begins = strings.HasSuffix(n.typ, "-start")
		n.id = f.ID(n.title)
		f.nodes = append(f.nodes, n)
		if f.byID[n.key] == nil {
			f.byID[n.key] = n
		}
	}
	for _, n := range f.nodes {
		if parent := f.byID[cmp.Or(n.doc.At("parentId").Text(), n.data.At("iteration_id").Text(),
			n.data.At("loop_id").Text())]; parent != nil && parent != n {
			n.parent = parent
		}
	}
	for _, e := range graph.At("edges").List() {
		from, to := e.At("source").Text(), e.At("target").Text()
		if f.byID[from] == nil || f.byID[to] == nil {
			f.Note(text.Of("a connection from %q to %q was left out: the file has no such node", from, to))
			continue
		}
		f.edges = append(f.edges, edge{from, e.At("sourceHandle").Text(), to})
		if !slices.Contains(f.before[to], from) {
			f.before[to] = append(f.before[to], from)
		}
	}
	if len(f.nodes) == 0 {
		f.Add(f.Line("", ""), f.ID("start"), "TRIGGER.MANUAL", "The file has no node that does anything.")
	}
}

// note is the text of a note, which Dify keeps as the tree of an editor.
func note(raw string) string {
	tree, err := payload.Decode([]byte(raw))
	if err != nil {
		return raw
	}
	var b strings.Builder
	var walk func(v importer.Value, depth int)
	walk = func(v importer.Value, depth int) {
		if words := v.At("text").Text(); words != "" {
			b.WriteString(words)
		}
		if depth > 50 {
			return
		}
		for _, child := range v.At("children").List() {
			walk(child, depth+1)
		}
		if v.At("type").Text() == "paragraph" {
			b.WriteByte('\n')
		}
	}
	walk(importer.ValueOf(tree).At("root"), 0)
	return strings.TrimSpace(b.String())
}

func position(doc importer.Value) *workflow.Position {
	at := doc.First("positionAbsolute", "position")
	if !at.IsObject() {
		return nil
	}
	return &workflow.Position{X: size(at.At("x")), Y: size(at.At("y"))}
}

// size is a number of reasonable size.
func size(v importer.Value) float64 {
	x, err := strconv.ParseFloat(v.Text(), 64)
	if err != nil || x != x || x > 1e6 || x < -1e6 {
		return 0
	}
	return x
}

// conversation lets the variables of the conversation be read at the beginning, those that are named anywhere.
func (f *flow) conversation() {
	written := importer.ValueOf(f.doc.At("workflow", "graph").Any()).Written()
	for _, v := range f.doc.At("workflow", "conversation_variables").List() {
		name := v.At("name").Text()
		if name == "" || f.vars[name] != "" || !strings.Contains(written, name) {
			continue
		}
		f.vars[name] = f.ID("conversation_" + name)
	}
}

// reads adds the nodes that read the variables of the conversation, between the trigger and what follows it.
func (f *flow) reads(n *node) (last string) {
	last = n.id
	if f.hasRead { // a file with two beginnings reads them once
		return last
	}
	f.hasRead = true
	read := map[string]bool{}
	for _, v := range f.doc.At("workflow", "conversation_variables").List() {
		id := f.vars[v.At("name").Text()]
		if id == "" || read[id] {
			continue
		}
		read[id] = true
		get := f.Add(n.line, id, "MEMORY.KEY_VALUE_STORE", "Reads the variable "+v.At("name").Text()+" of the conversation.")
		get.Config["operation"], get.Config["session_id"] = "get", f.session()
		get.Input["key"] = v.At("name").Text()
		f.Connect(last, "", id, "{}")
		last = id
	}
	if last != n.id {
		n.line.Approximate(text.Of("variables of the conversation are kept in a memory and read once, at the beginning; one that was never set is null"))
	}
	return last
}

// session is whose variables they are.
func (f *flow) session() string { return "{{trigger.conversation_id}}" }

// end is what follows a node by a handle is connected to: the last of the nodes that were made of it, and its output key.
func (n *node) end(handle string) (id, key string) {
	if n.last != "" && slices.Contains([]string{"start", "tool", "assigner"}, n.typ) && handle != "fail-branch" {
		return n.last, ""
	}
	return n.id, n.keys[handle]
}

// wire connects what was written.
func (f *flow) wire() {
	leaves := map[*node]bool{}
	for _, n := range f.nodes {
		leaves[n] = n.parent != nil && !n.begins
	}
	for _, e := range f.edges {
		from, to := f.byID[e.from], f.byID[e.to]
		leaves[from] = false
		if to.main == nil {
			continue
		}
		source, key := from.end(e.handle)
		switch {
		case from.begins && from.parent != nil:
			source, key = from.parent.id, "iteration"
		case from.main == nil:
			continue
		case e.handle == "fail-branch":
			key = "error"
		case key == "" && (from.typ == "iteration" || from.typ == "loop"):
			key = "completed"
		}
		f.Connect(source, key, to.id, "{}")
	}
	for _, n := range f.nodes { // older files name the first node of a body
		if n.parent != nil && (n.data.At("isIterationStart").Bool() || n.parent.data.At("start_node_id").Text() == n.key) && !n.begins &&
			n.main != nil {
			f.Connect(n.parent.id, "iteration", n.id, "{}")
		}
	}
	for _, n := range f.nodes {
		if leaves[n] && n.parent.last != "" && n.main != nil {
			source, key := n.end("source")
			f.Connect(source, key, n.parent.last, "{}")
		}
	}
}

// reference is a variable in a text. read-only
var reference = regexp.MustCompile(`\{\{#([^#{}]+)#\}\}`)

// words translates a text with variables.
func (f *flow) words(n *node, s string) string {
	var b strings.Builder
	for s != "" {
		m := reference.FindStringSubmatchIndex(s)
		if m == nil {
			b.WriteString(escaped(s))
			break
		}
		b.WriteString(escaped(s[:m[0]]))
		b.WriteString("{{" + f.path(n, strings.Split(s[m[2]:m[3]], ".")) + "}}")
		s = s[m[1]:]
	}
	return b.String()
}

// escaped is a text in which nothing is a placeholder.
func escaped(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "{{", `\{{`), "${", `\${`)
}

// value is a variable that a list of names selects.
func (f *flow) value(n *node, selector importer.Value) any {
	path := selector.Texts()
	if len(path) == 0 {
		return nil
	}
	return "{{" + f.path(n, path) + "}}"
}

// path is where a variable is found.
func (f *flow) path(n *node, path []string) string {
	if len(path) == 1 && path[0] == "context" {
		path = n.data.At("context", "variable_selector").Texts()
	}
	if len(path) < 2 {
		return "missing"
	}
	name, rest := path[1], path[2:]
	switch path[0] {
	case "sys":
		return system(name)
	case "env":
		return "env." + name
	case "conversation":
		if by, selector := f.assigned(n, name); by != nil && selector == nil {
			return f.combined(by, name) + ".outputs.result.value" + steps(rest)
		} else if by != nil {
			return f.path(by, selector) + steps(rest)
		}
		if id := f.vars[name]; id != "" {
			return id + ".outputs.value" + steps(rest)
		}
		return "missing"
	}
	source := f.byID[path[0]]
	if source == nil {
		n.line.Approximate(text.Of("it reads a variable of a node that the file does not have"))
		return "missing"
	}
	if strings.HasPrefix(name, "sys.") {
		return system(strings.TrimPrefix(name, "sys."))
	}
	return f.output(source, name, rest)
}

// assigned finds the node that has surely set a variable of the conversation when a node runs, and what it was set to: the nearest one on
// the way back, as far as only one way leads there. What is read at the beginning is older than that. Of one that puts values together
// there is no selector: a node of it has the value.
func (f *flow) assigned(n *node, name string) (by *node, selector []string) {
	at := n
	for range len(f.nodes) {
		before := f.before[at.key]
		if len(before) != 1 {
			return nil, nil
		}
		at = f.byID[before[0]]
		if at.typ != "assigner" {
			continue
		}
		for _, item := range slices.Backward(assignments(at)) {
			if conversed(item) != name {
				continue
			}
			switch mode := modeOf(item); {
			case mode == "" || mode == "over-write" || mode == "set":
			case combines(mode) && f.vars[name] != "":
				return at, nil
			default:
				return nil, nil
			}
			selector = item.At("input_variable_selector").Texts()
			if item.At("input_type").Text() == "variable" {
				selector = item.At("value").Texts()
			}
			if len(selector) < 2 || selector[0] == "conversation" {
				return nil, nil
			}
			return at, selector
		}
	}
	return nil, nil
}

// system is a variable that Dify itself has.
func system(name string) string {
	switch name {
	case "query":
		return "trigger.message"
	case "conversation_id":
		return "trigger.conversation_id"
	case "user_id":
		return "trigger.user_id"
	case "files":
		return "trigger.files"
	case "workflow_id", "app_id":
		return "workflow.id"
	case "workflow_run_id":
		return "execution.id"
	}
	return "trigger." + name
}

// output is where a variable of a node is found.
func (f *flow) output(source *node, name string, rest []string) string {
	at := source.id + ".outputs"
	switch source.typ {
	case "start":
		return "trigger" + steps(append([]string{name}, rest...))
	case "llm", "agent":
		switch name {
		case "structured_output":
			return at + ".content" + steps(rest)
		case "usage":
			return at + ".token_usage" + steps(rest)
		}
		return at + ".response"
	case "code":
		return at + ".result" + steps(append([]string{name}, rest...))
	case "template-transform":
		return at + ".text"
	case "list-operator":
		if name == "output" || name == "result" {
			return at + ".result" + steps(append([]string{"result"}, rest...))
		}
		return at + ".result" + steps(append([]string{name}, rest...))
	case "iteration", "loop":
		switch name {
		case "item", "index":
			return name + steps(rest)
		}
		return at + ".results" + steps(rest)
	case "parameter-extractor":
		return at + ".content" + steps(append([]string{name}, rest...))
	case "knowledge-retrieval":
		return at + ".results" + steps(rest)
	case "http-request":
		return at + steps(append([]string{name}, rest...))
	case "document-extractor":
		return at + ".result" + steps(rest)
	case "tool":
		return f.toolOutput(source, name, rest)
	case "variable-aggregator", "variable-assigner":
		return at + ".result" + steps(append([]string{name}, rest...))
	case "question-classifier":
		return at + ".branch_id"
	}
	return at + steps(append([]string{name}, rest...))
}

// plain is a step of a path that needs no brackets. read-only
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// steps writes steps of a path.
func steps(path []string) string {
	var b strings.Builder
	for _, s := range path {
		if plain.MatchString(s) {
			b.WriteString("." + s)
		} else {
			b.WriteString("[" + string(payload.Quote(s)) + "]")
		}
	}
	return b.String()
}

// profile is the name of the model profile for a model of Dify.
func (f *flow) profile(model importer.Value) string {
	provider := model.At("provider").Text()
	provider = provider[strings.LastIndexByte(provider, '/')+1:]
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, strings.Trim(provider+"-"+model.First("name", "model").Text(), "-"))
	return f.Profile(cmp.Or(strings.Trim(name, "-."), "default"))
}

// parameters are the settings of a model that ours has, too.
func parameters(model importer.Value, cfg map[string]any) {
	p := model.At("completion_params")
	for from, to := range map[string]string{"temperature": "temperature", "max_tokens": "max_tokens", "top_p": "top_p"} { // each by itself, so the order does not matter
		if n, ok := p.At(from).Number(); ok {
			if x, err := n.Float64(); err == nil && x >= 0 && (to == "max_tokens" && x >= 1 || to == "temperature" &&
				x <= 2 || to == "top_p" && x <= 1) {
				generation, _ := cfg["parameters"].(map[string]any)
				if generation == nil {
					generation = map[string]any{}
					cfg["parameters"] = generation
				}
				generation[to] = n
			}
		}
	}
}

// prompt imports an application that is one prompt.
func (f *flow) prompt(config importer.Value) {
	l := f.Line(cmp.Or(f.Definition().Metadata.Name, "prompt"), cmp.Or(f.doc.At("app", "mode").Text(), "chat"))
	start := f.Add(l, f.ID("start"), "TRIGGER.CHAT", "A visitor writes a message.")
	if words := config.At("opening_statement").Text(); words != "" {
		start.Config["greeting"] = words
	}
	ask := f.Add(l, f.ID("answer"), "AI_AGENT.LLM", "The model answers.")
	l.Became("AI_AGENT.LLM")
	ask.Config["profile_id"] = f.profile(config.At("model"))
	parameters(config.At("model"), ask.Config)
	ask.Config["to_user"], ask.Config["stream"] = true, true
	if words := config.At("pre_prompt").Text(); words != "" {
		ask.Config["system_prompt"] = words
	}
	ask.Config["user_prompt"] = "{{trigger.message}}"
	f.Connect(start.ID, "", ask.ID, "")
	if tools := config.At("agent_mode", "tools").List(); len(tools) > 0 {
		l.Approximate(text.Of("its tools are not attached to it: attach nodes of the type TOOL"))
	}
	if slices.ContainsFunc(config.At("dataset_configs", "datasets", "datasets").List(), func(v importer.Value) bool { return v.Exists() }) {
		l.Approximate(text.Of("what is found by its meaning is kept by Tandem itself: store the documents there"))
	}
}
