package dify

import (
	"cmp"
	"slices"
	"strings"

	"tandem/importer"
	"tandem/text"
)

// search says that a provider of tools searches the web.
func search(provider string) bool {
	for _, name := range []string{"google", "duckduckgo", "searxng", "tavily", "bing", "brave", "serper", "serpapi", "exa", "search1api",
		"bocha", "baidu", "searchapi"} {
		if strings.Contains(provider, name) {
			return true
		}
	}
	return false
}

// argument is an argument of a tool.
func (f *flow) argument(n *node, name string) any {
	v := n.data.At("tool_parameters", name)
	switch v.At("type").Text() {
	case "variable":
		return f.value(n, v.At("value"))
	case "mixed":
		return f.words(n, v.At("value").Written())
	case "constant":
		return v.At("value").Any()
	}
	if v.IsText() {
		return f.words(n, v.Text())
	}
	if c := n.data.At("tool_configurations", name); c.IsObject() && c.At("value").Exists() {
		return f.words(n, c.At("value").Written())
	} else if c.Exists() {
		return c.Any()
	}
	return nil
}

// first is the first argument of these names that is there.
func (f *flow) first(n *node, names ...string) any {
	for _, name := range names {
		if v := f.argument(n, name); v != nil && v != "" {
			return v
		}
	}
	return nil
}

// tool calls a tool of a provider.
func (f *flow) tool(n *node) {
	d := n.data
	provider, name := strings.ToLower(d.First("provider_name", "provider_id").Text()), d.At("tool_name").Text()
	switch typ := d.At("provider_type").Text(); {
	case typ == "workflow":
		s := f.addNode(n, "FLOW.SUB_WORKFLOW")
		s.Config["workflow_id"] = cmp.Or(slug(name), slug(provider), "workflow")
		for _, arg := range d.At("tool_parameters").Names() {
			s.Input[arg] = f.argument(n, arg)
		}
		f.addText(n, "{{"+s.ID+".outputs.outputs}}", "{{ found | tojson }}")
		n.line.Approximate(text.Of("import the workflow %q, too, deploy it, and set workflow_id to its id", cmp.Or(d.At("tool_label").Text(), name)))
	case search(provider) && f.first(n, "query", "q", "keyword", "search_query") != nil:
		s := f.addNode(n, "ACTION.WEB_SEARCH")
		s.Config["credential_id"] = "{{$placeholder}}"
		s.Input["query"] = f.first(n, "query", "q", "keyword", "search_query")
		f.addText(n, "{{"+s.ID+".outputs.results}}", "{% for r in found %}{{ r.title }}\n{{ r.url }}\n{{ r.snippet }}\n\n{% endfor %}")
		n.line.Approximate(text.Of("choose a credential for the search; its results are a list with title, url and snippet"))
	case (strings.Contains(provider, "webscraper") || strings.Contains(provider, "jina") || strings.Contains(provider, "firecrawl") ||
		strings.Contains(name, "scrape") || strings.Contains(name, "crawl")) && f.first(n, "url", "link") != nil:
		r := f.addNode(n, "ACTION.HTTP_REQUEST")
		r.Config["method"], r.Config["url"], r.Config["response_type"], r.Config["body_type"] = "GET",
			f.first(n, "url", "link"), "text", "none"
		n.line.Approximate(text.Of("the page is fetched as it is, and not reduced to its text"))
	case strings.Contains(provider, "time") && (name == "current_time" || name == "timestamp"):
		c := f.addNode(n, "ACTION.RUN_CODE")
		c.Config["language"], c.Config["code"] = "javascript", "function main() {\n  return {text: new Date().toISOString()};\n}\n"
		n.line.Approximate(text.Of("times are in UTC"))
	case typ == "mcp":
		t := f.addNode(n, "TOOL.MCP_TOOL")
		t.Config["server_id"], t.Config["tool_name"] = cmp.Or(slug(provider), "server"), name
		args := map[string]any{}
		for _, arg := range d.At("tool_parameters").Names() {
			args[arg] = f.argument(n, arg)
		}
		t.Config["function_args"] = args
		n.line.Approximate(text.Of("register the tool server %q", t.Config["server_id"]))
	default:
		f.miss(n, text.Of("the tool %q of %q has no counterpart", name, cmp.Or(d.At("provider_name").Text(), provider)))
	}
}

// textOf is the id of the node that makes a text of what a tool returns: other nodes read it as that.
func (f *flow) textOf(n *node) string {
	if n.asText == "" {
		n.asText = f.ID(n.id + "_text")
	}
	return n.asText
}

// addText adds the node that makes a text of what a tool has found, by a template.
func (f *flow) addText(n *node, found, template string) {
	t := f.Add(n.line, f.textOf(n), "ACTION.JINJA_TEMPLATE", "What it has found, as a text.")
	t.Config["template"], t.Config["strip"], t.Input["found"] = template, true, found
	f.Connect(n.id, "", t.ID, "{}")
	n.last = t.ID
}

// searches says that a node is made a search of the web.
func (f *flow) searches(n *node, provider string) bool {
	return search(provider) && slices.ContainsFunc([]string{"query", "q", "keyword", "search_query"}, func(name string) bool {
		return n.data.At("tool_parameters", name).Exists() || n.data.At("tool_configurations", name).Exists()
	})
}

// toolOutput is where a variable of a tool is found.
func (f *flow) toolOutput(source *node, name string, rest []string) string {
	at := source.id + ".outputs"
	provider := strings.ToLower(source.data.First("provider_name", "provider_id").Text())
	switch {
	case name == "text" && (source.data.At("provider_type").Text() == "workflow" || f.searches(source, provider)):
		return f.textOf(source) + ".outputs.text"
	case source.data.At("provider_type").Text() == "workflow":
		return at + ".outputs"
	case search(provider):
		return at + ".results"
	case name == "text" && source.data.At("tool_name").Text() == "current_time":
		return at + ".result.text"
	case name == "text":
		return at + ".body"
	}
	return at + steps(append([]string{name}, rest...))
}

// slug is a name as an id.
func slug(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-._")
}

// agent asks a model that may use tools.
func (f *flow) agent(n *node) {
	a := f.addNode(n, "AI_AGENT.LLM")
	p := n.data.At("agent_parameters")
	a.Config["profile_id"] = f.profile(p.At("model", "value"))
	parameters(p.At("model", "value"), a.Config)
	words := func(name string) string {
		v := p.At(name)
		if v.At("type").Text() == "variable" {
			s, _ := f.value(n, v.At("value")).(string)
			return s
		}
		return f.words(n, v.At("value").Text())
	}
	if s := words("instruction"); s != "" {
		a.Config["system_prompt"] = s
	}
	a.Config["user_prompt"] = cmp.Or(words("query"), "{{trigger.message}}")
	if most := p.First("maximum_iterations", "max_iterations").At("value").Int(0); most > 0 {
		a.Config["max_tool_iterations"] = min(most, 50)
	}
	servers := map[string]bool{}
	attach := func(server, label string) {
		if server == "" || servers[server] {
			return
		}
		servers[server] = true
		t := f.Add(n.line, f.ID(n.id+"_"+server), "TOOL.MCP_TOOL", "Tools of "+label+".")
		t.Config["server_id"] = server
		a.Attached = append(a.Attached, t.ID)
		n.line.Approximate(text.Of("register the tool server %q", server))
	}
	if address := p.First("mcp_server", "mcp_servers").At("value").Text(); address != "" {
		host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://"), "/")
		attach(slug(importer.Cleaned(host)), host)
	}
	for _, t := range p.At("tools", "value").List() {
		if enabled := t.At("enabled"); enabled.Exists() && !enabled.Bool() {
			continue
		}
		provider := cmp.Or(t.At("provider_show_name").Text(), t.At("provider_name").Text())
		attach(slug(provider[strings.LastIndexByte(provider, '/')+1:]), cmp.Or(t.At("tool_label").Text(), t.At("tool_name").Text()))
	}
	n.line.Approximate(text.Of("the model is offered its tools by their functions, whatever the strategy was"))
}
