// Package seed reads files of the systems that Tandem comes from: workflow files of all their generations ([Older]), and flows of steps
// ([Steps]).
package seed

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

// Older reads workflow files as earlier systems wrote them: parameters for configurations, connections as a map or with other names for
// their ends, types that end in _NODE, secrets that stand in the file.
type Older struct{}

// Name is what the report calls it.
func (Older) Name() string { return "older" }

// Reads says whether a document is such a file.
func (Older) Reads(document importer.Value) bool {
	doc := unwrapped(document)
	return doc.At("nodes").IsList() || doc.At("nodes").IsObject()
}

// unwrapped is a document without what was put around it.
func unwrapped(document importer.Value) importer.Value {
	for range 4 {
		inner := document.First("workflow", "workflow_data", "workflow_definition", "definition", "flow", "data", "result")
		if document.At("nodes").Exists() || document.At("steps").Exists() || !inner.IsObject() {
			break
		}
		document = inner
	}
	return document
}

// Import makes a draft of the file.
func (Older) Import(document importer.Value, kinds workflow.Kinds) []*importer.Draft {
	f := &flow{Draft: importer.NewDraft(kinds), kinds: kinds, doc: unwrapped(document), ids: map[string]string{},
		made: map[string]*importer.Node{}}
	f.metadata()
	list := f.doc.At("nodes").List()
	for _, name := range f.doc.At("nodes").Names() { // of an object
		list = append(list, f.doc.At("nodes", name))
	}
	for i, n := range list {
		f.name(n, i)
	}
	for i, n := range list {
		f.node(n, i)
	}
	f.connections()
	f.timeouts()
	for _, id := range f.doc.At("triggers").Texts() {
		if own := f.ids[id]; own != "" {
			f.Definition().Triggers = append(f.Definition().Triggers, own)
		}
	}
	if len(list) == 0 {
		f.Add(f.Line("", ""), f.ID("start"), "TRIGGER.MANUAL", "The file has no node that does anything.")
	}
	return []*importer.Draft{f.Draft}
}

// flow is one workflow while it is imported.
type flow struct {
	*importer.Draft
	kinds workflow.Kinds
	doc   importer.Value
	// ids are the ids of nodes by their ids and names in the file.
	ids  map[string]string
	made map[string]*importer.Node
}

// metadata reads what is said of the whole.
func (f *flow) metadata() {
	m := &f.Definition().Metadata
	from := f.doc.At("metadata")
	if !from.IsObject() {
		from = f.doc
	}
	m.Name, m.Description, m.IconURL = from.At("name").Text(), from.At("description").Text(), from.At("icon_url").Text()
	m.Tags = from.At("tags").Texts()
	m.Version = cmp.Or(from.At("version").Text(), "1.0")
	m.Settings.TimeoutSeconds = float64(max(f.doc.First("settings").First("timeout_seconds", "timeout").Int(0),
		from.At("settings", "timeout_seconds").Int(0)))
}

// name gives a node an id.
func (f *flow) name(n importer.Value, i int) {
	id := cmp.Or(n.At("id").Text(), n.At("name").Text(), "node_"+strconv.Itoa(i+1))
	own := id
	if !plainID.MatchString(id) {
		own = f.ID(id)
	} else if f.ID(id) != id {
		own = f.ID(id)
	}
	for _, name := range []string{id, n.At("name").Text()} {
		if name != "" && f.ids[name] == "" {
			f.ids[name] = own
		}
	}
	f.ids["#"+strconv.Itoa(i)] = own
}

// plainID is an id that can stay as it is. read-only
var plainID = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// kindOf is the kind of a node, today's spelling.
func (f *flow) kindOf(n importer.Value) (kind string, known bool) {
	typ := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(n.First("type", "node_type").Text())), "_NODE")
	subtype := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(n.First("subtype", "sub_type", "node_subtype").Text())), "_NODE")
	typ = strings.ReplaceAll(strings.ReplaceAll(typ, "-", "_"), " ", "_")
	if whole, rest, ok := strings.Cut(typ, "."); ok && subtype == "" {
		typ, subtype = whole, rest
	}
	typ = cmp.Or(map[string]string{"AI": "AI_AGENT", "HIL": "HUMAN_IN_THE_LOOP", "HUMAN": "HUMAN_IN_THE_LOOP",
		"EXTERNAL": "EXTERNAL_ACTION"}[typ], typ)
	if f.Has(typ + "." + subtype) {
		return typ + "." + subtype, true
	}
	if alias, ok := f.kinds.Alias(typ, subtype); ok {
		return alias, f.Has(alias)
	}
	return strings.Trim(typ+"."+subtype, "."), false
}

// node reads a node.
func (f *flow) node(n importer.Value, i int) {
	id := f.ids["#"+strconv.Itoa(i)]
	name := cmp.Or(n.At("name").Text(), n.At("id").Text(), id)
	kind, known := f.kindOf(n)
	l := f.Line(name, strings.Trim(n.First("type", "node_type").Text()+"."+n.First("subtype", "sub_type", "node_subtype").Text(), "."))
	description := cmp.Or(n.At("description").Text(), name)
	if !known {
		l.Miss(text.Of("nodes of the type %s have no counterpart", kind))
		f.made[id] = f.Placeholder(l, id, name+" ("+kind+")", "there is no such kind")
		return
	}
	made := f.Add(l, id, kind, description)
	f.made[id] = made
	if p := n.At("position"); p.IsObject() {
		made.Position = &workflow.Position{X: coordinate(p.At("x")), Y: coordinate(p.At("y"))}
	}
	if config, ok := n.First("configurations", "parameters", "config", "params").Any().(map[string]any); ok {
		made.Config = config
	}
	if _, said := made.Config["pass_through"]; !said && strings.EqualFold(n.First("type", "node_type").Text(), "END") {
		made.Config["pass_through"] = true
	}
	if n.At("disabled").Bool() || n.At("enabled").Exists() && !n.At("enabled").Bool() {
		made.Config["enabled"] = false
	}
	if input, ok := n.At("input_params").Any().(map[string]any); ok {
		made.Input = f.inputs(l, input)
	}
	for _, other := range n.At("attached_nodes").Texts() {
		if own := f.ids[other]; own != "" {
			made.Attached = append(made.Attached, own)
		}
	}
	if strings.ContainsAny(n.At("name").Text(), " \t") {
		l.Note(text.Of("its name has spaces; it is called %q here", id))
	}
	f.secrets(l, made)
	made.Config, made.Input = f.renamed(made.Config).(map[string]any), f.renamed(made.Input).(map[string]any)
}

// coordinate is a number of reasonable size.
func coordinate(v importer.Value) float64 {
	x, err := strconv.ParseFloat(v.Text(), 64)
	if err != nil || x != x || x > 1e9 || x < -1e9 {
		return 0
	}
	return x
}

// inputs are the values for the input, without the empty ones that the old engine never read.
func (f *flow) inputs(l *importer.Line, input map[string]any) map[string]any {
	for name, value := range input { // each by itself, so the order does not matter
		empty := value == nil || value == ""
		if list, ok := value.([]any); ok && len(list) == 0 {
			empty = true
		}
		if object, ok := value.(map[string]any); ok && len(object) == 0 {
			empty = true
		}
		if empty {
			delete(input, name)
			l.Note(text.Of("empty values of input_params, which were never read, were dropped"))
		}
	}
	return input
}

// placeholder is a reference to a node by its name. read-only
var placeholder = regexp.MustCompile(`\{\{\s*([^{}.]+?)\s*\.`)

// renamed lets placeholders name nodes by the ids that they have now.
func (f *flow) renamed(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = f.renamed(v[name])
		}
	case []any:
		for i := range v {
			v[i] = f.renamed(v[i])
		}
	case string:
		return placeholder.ReplaceAllStringFunc(v, func(found string) string {
			name := placeholder.FindStringSubmatch(found)[1]
			if own := f.ids[name]; own != "" && own != name {
				return "{{" + own + "."
			}
			return found
		})
	}
	return value
}

// secretName is a configuration that older files keep a secret in. read-only
var secretName = regexp.MustCompile(`(?:^|_)(?:token|secret|api_key|apikey|credentials|password|connection_string|database_url)$|^server_config$`)

// credentialTypes are the types of credentials of kinds that are not called like their service.
func credentialType(kind string) string {
	_, subtype, _ := strings.Cut(kind, ".")
	for _, one := range [][2]string{
		{"SLACK", "slack_bot"}, {"DISCORD", "discord_bot"}, {"TELEGRAM", "telegram_bot"}, {"GITHUB", "github_token"},
		{"GITLAB", "gitlab_token"}, {"JIRA", "jira"}, {"NOTION", "notion"},
		{"TRELLO", "trello"}, {"OPENAI", "openai"}, {"ANTHROPIC", "anthropic"}, {"GEMINI", "gemini"}, {"GOOGLE", "google_oauth"},
		{"GMAIL", "google_oauth"}, {"OUTLOOK", "microsoft_oauth"}, {"TEAMS", "teams_bot"},
		{"DATABASE", "sql"}, {"EMAIL", "smtp"}, {"WEBHOOK", "webhook_secret"}, {"AWS", "aws_keys"}, {"AZURE", "azure"},
		{"GCP", "gcp_service_account"}, {"HTTP", "http_auth"},
	} {
		if strings.Contains(subtype, one[0]) {
			return one[1]
		}
	}
	return "http_auth"
}

// secrets moves what older files keep in configurations to a credential.
func (f *flow) secrets(l *importer.Line, n *importer.Node) {
	for _, name := range importer.ValueOf(n.Config).Names() {
		value := n.Config[name]
		if !secretName.MatchString(name) || name == "credential_id" {
			continue
		}
		words, isText := value.(string)
		if isText && strings.HasPrefix(words, "{{$") || words == "" && isText {
			delete(n.Config, name)
			if n.Config["credential_id"] == nil && words != "" {
				n.Config["credential_id"] = words
			}
			continue
		}
		typ := credentialType(n.Kind)
		data, ok := value.(map[string]any)
		switch {
		case ok && len(data) == 0:
			delete(n.Config, name)
			continue
		case ok:
		case !isText:
			continue
		case typ == "sql":
			data = map[string]any{"driver": driver(words), "dsn": words}
		case typ == "http_auth":
			data = map[string]any{"scheme": "bearer", "token": words}
		case typ == "openai" || typ == "anthropic" || typ == "gemini":
			data = map[string]any{"api_key": words}
		default:
			data = map[string]any{"token": words}
		}
		delete(n.Config, name)
		credential := f.Secret(l, n.ID+"_"+name, typ, data)
		if n.Config["credential_id"] == nil {
			n.Config["credential_id"] = credential
		}
	}
}

// driver is that of the address of a database.
func driver(address string) string {
	switch {
	case strings.HasPrefix(address, "mysql"), strings.Contains(address, "@tcp("):
		return "mysql"
	case strings.HasPrefix(address, "postgres"):
		return "postgres"
	}
	return "sqlite"
}

// connections reads the connections, in any of their forms.
func (f *flow) connections() {
	list := f.doc.First("connections", "edges")
	for _, c := range list.List() {
		f.connect(c.First("from_node", "from", "source", "source_node", "source_node_id", "fromNode").Text(),
			c.First("to_node", "to", "target", "target_node", "target_node_id", "toNode").Text(),
			c.First("output_key", "from_port", "source_port", "sourceHandle", "port", "outputKey").Text(),
			c.First("conversion_function", "conversion", "data_mapping", "conversionFunction"))
	}
	for _, from := range list.Names() {
		f.targets(from, "", list.At(from), 0)
	}
}

// targets reads the connections of one node in a map: lists of targets, by port, by type.
func (f *flow) targets(from, key string, v importer.Value, depth int) {
	if depth > 8 {
		return
	}
	if v.IsText() {
		f.connect(from, v.Text(), key, importer.Value{})
		return
	}
	if to := v.First("node", "to_node", "to", "target", "node_id"); to.IsText() {
		f.connect(from, to.Text(), cmp.Or(v.First("output_key", "from_port", "source_port").Text(), key),
			v.First("conversion_function", "conversion", "data_mapping"))
		return
	}
	for _, one := range v.List() {
		f.targets(from, key, one, depth+1)
	}
	for _, name := range v.Names() {
		port := key
		if !slices.Contains([]string{"connections", "connection_types", "main", "targets", "outputs"}, name) {
			port = name
		}
		f.targets(from, port, v.At(name), depth+1)
	}
}

// connect adds one connection.
func (f *flow) connect(from, to, key string, conversion importer.Value) {
	if i := strings.IndexByte(from, '.'); f.ids[from] == "" && i > 0 && f.ids[from[:i]] != "" {
		from, key = from[:i], cmp.Or(key, from[i+1:])
	}
	source, target := f.ids[from], f.ids[to]
	if source == "" || target == "" {
		f.Note(text.Of("a connection from %q to %q was left out: the file has no such node", from, to))
		return
	}
	if slices.Contains([]string{"main", "output", "default", "out", "source"}, strings.ToLower(key)) && f.made[source].Kind != "FLOW.SWITCH" {
		key = ""
	}
	f.Connect(source, key, target, f.conversion(source, conversion))
}

// conversion is what is done with data on its way.
func (f *flow) conversion(source string, v importer.Value) string {
	if v.IsText() {
		return v.Text()
	}
	body := v.First("code", "function", "expression", "script", "value")
	switch v.At("type").Text() {
	case "python":
		return body.Text()
	case "mapping", "field_mapping":
		return mapping(v.First("mapping", "mappings", "fields", "value"))
	case "jq":
		if path := jqPath.FindString(strings.TrimSpace(body.Text())); path != "" && path == strings.TrimSpace(body.Text()) {
			return cmp.Or(strings.TrimPrefix(path, "."), "value")
		}
		f.made[source].Note(text.Of("a conversion written for jq was left out: %s", body.Text()))
		return ""
	}
	if v.IsObject() && !v.At("type").Exists() {
		return mapping(v)
	}
	return ""
}

// jqPath is a program of jq that is only a path. read-only
var jqPath = regexp.MustCompile(`^(?:\.[A-Za-z_]\w*|\[\d+\])+$|^\.$`)

// mapping is an expression that gives fields other names.
func mapping(v importer.Value) string {
	var parts []string
	for _, name := range v.Names() {
		from := strings.TrimPrefix(strings.TrimPrefix(v.At(name).Text(), "$."), ".")
		parts = append(parts, string(payload.Quote(name))+": "+dotted(from))
	}
	for _, one := range v.List() {
		to, from := one.First("target", "to", "target_field").Text(), one.First("source", "from", "source_field").Text()
		if to != "" {
			parts = append(parts, string(payload.Quote(to))+": "+dotted(strings.TrimPrefix(from, "$.")))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// dotted is a path as an expression.
func dotted(path string) string {
	first, rest, _ := strings.Cut(path, ".")
	if !fieldName.MatchString(first) {
		first, rest = "value", path
	}
	var b strings.Builder
	b.WriteString(first)
	for _, step := range strings.Split(rest, ".") {
		if _, err := strconv.Atoi(step); err == nil {
			b.WriteString("[" + step + "]")
		} else if step != "" {
			b.WriteString("[" + string(payload.Quote(step)) + "]")
		}
	}
	return b.String()
}

// fieldName is a field that an expression can name. read-only
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// timeouts lets what older files guard begin at the key body.
func (f *flow) timeouts() {
	def := f.Definition()
	for _, n := range f.made { // each by itself, so the order does not matter
		if n.Kind != "FLOW.TIMEOUT" {
			continue
		}
		guarded := slices.ContainsFunc(def.Connections, func(c workflow.Connection) bool {
			return c.FromNode == n.ID && c.OutputKey == "body"
		})
		for i := range def.Connections {
			if c := &def.Connections[i]; !guarded && c.FromNode == n.ID && c.OutputKey == workflow.DefaultKey {
				c.OutputKey = "body"
				n.Note(text.Of("what it guards is now connected to its key body"))
			}
		}
	}
}
