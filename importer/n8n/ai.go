package n8n

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"tandem/importer"
	"tandem/payload"
	"tandem/text"
)

// aiHandlers are the nodes that ask models.
func aiHandlers() map[string]handler {
	answer := func(field string) handler {
		return handler{per: true, rename: map[string]string{field: "content", "content": "content", "response": "response", "tool_results": "tool_results"}}
	}
	with := func(h handler, make func(m *making)) handler { h.make = make; return h }
	return map[string]handler{
		"agent":                with(answer("output"), agent),
		"chainLlm":             {per: true, shape: chainShape, make: chain},
		"chainSummarization":   with(answer("output"), summary),
		"chainRetrievalQa":     with(answer("response"), agent),
		"conversationalAgent":  with(answer("output"), agent),
		"informationExtractor": with(answer("output"), extract),
		"textClassifier":       {pass: true, outputs: 1, make: classify},
		"sentimentAnalysis":    {pass: true, outputs: 3, make: classify},
		"openAi":               {per: true, rename: map[string]string{"message.content": "content", "text": "content", "output": "content", "content": "content"}, make: openAI},
		"anthropic":            {per: true, rename: map[string]string{"content": "content", "text": "content"}, make: openAI},
		"googleGemini":         {per: true, rename: map[string]string{"content": "content", "text": "content"}, make: openAI},
	}
}

// partPrefixes are how the types begin of nodes that serve others. read-only
var partPrefixes = []string{"lm", "memory", "outputParser", "embeddings", "textSplitter", "document", "retriever", "reranker", "tool", "modelSelector"}

// isPart says that nodes of a type serve others.
func isPart(typ string) bool {
	if !strings.Contains(typ, "langchain") {
		return strings.HasSuffix(short(typ), "Tool")
	}
	return slices.ContainsFunc(partPrefixes, func(prefix string) bool { return strings.HasPrefix(short(typ), prefix) }) ||
		strings.HasSuffix(short(typ), "Tool")
}

// attach looks at the nodes that serve others: those whom nobody uses are told of, the others are read with those whom they serve.
func (f *flow) attach() {
	for _, n := range f.nodes {
		if isPart(n.typ) && len(n.serves) == 0 && len(n.arriving()) == 0 {
			n.alone = true
			n.line.Approximate(text.Of("it serves no node of the file, and was left out"))
		}
	}
}

// unused tells of nodes that serve others which have no use for them.
func (f *flow) unused() {
	for _, n := range f.nodes {
		if len(n.serves) > 0 && !n.used && n.entry == "" && !n.alone {
			n.line.Approximate(text.Of("what it serves has no use for it here, and it was left out"))
		}
	}
}

// model says which model a node asks.
func (m *making) model() {
	parts := m.n.parts["ai_languageModel"]
	if len(parts) == 0 {
		m.kind, m.cfg["profile_id"] = "AI_AGENT.LLM", m.f.Profile("default")
		m.line.Approximate(text.Of("it names no model; it asks that of the profile default"))
		return
	}
	m.modelOf(parts[0])
	for _, other := range parts[1:] {
		other.used = true
		other.line.Approximate(text.Of("only the first model of a node is asked; name this one in fallback_profiles"))
	}
}

// modelOf says that a node asks the model of another node.
func (m *making) modelOf(part *node) {
	part.used = true
	own := reading{f: m.f, n: part, json: m.json, inLoop: m.inLoop}
	name := cmp.Or(own.text(part.params.At("model")), own.text(part.params.At("modelName")), own.text(part.params.At("modelId")))
	credential := ""
	for _, kind := range part.doc.At("credentials").Names() {
		credential = part.doc.At("credentials", kind, "name").Text()
	}
	typ, kind := "", ""
	switch t := short(part.typ); {
	case t == "lmChatOpenAi" || t == "lmOpenAi" || t == "openAi":
		kind, typ, name = "AI_AGENT.OPENAI_CHATGPT", "openai", cmp.Or(name, "gpt-4o-mini")
	case t == "lmChatAnthropic" || t == "anthropic":
		kind, typ, name = "AI_AGENT.ANTHROPIC_CLAUDE", "anthropic", cmp.Or(name, "claude-sonnet-4-0")
	case t == "lmChatGoogleGemini" || t == "googleGemini":
		kind, typ, name = "AI_AGENT.GOOGLE_GEMINI", "gemini", strings.TrimPrefix(cmp.Or(name, "gemini-2.0-flash"), "models/")
	default:
		provider := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(t, "lm"), "Chat"))
		m.kind, m.cfg["profile_id"] = "AI_AGENT.LLM", m.f.Profile(strings.Trim(provider+"-"+profileName(name), "-"))
		if part != m.n {
			part.line.Became(m.kind).Note(text.Of("it is now the model profile of the nodes that use it"))
		}
		m.temperature(part)
		return
	}
	m.kind, m.cfg["model"] = kind, name
	if credential != "" {
		m.cfg["credential_id"] = m.f.Credential(credential, typ, text.Of("make it: n8n does not export secrets"))
	} else {
		m.cfg["credential_id"] = "{{$placeholder}}"
	}
	m.temperature(part)
	if part != m.n {
		part.line.Became(kind).Note(text.Of("it is now a part of the nodes that use it"))
	}
}

// profileName is the name of a model as a part of the name of a profile.
func profileName(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, name), "-.")
}

// temperature sets how freely the model chooses.
func (m *making) temperature(part *node) {
	if v, ok := part.params.At("options", "temperature").Number(); ok {
		m.cfg["temperature"] = v
		if x, err := v.Float64(); err == nil && m.kind == "AI_AGENT.ANTHROPIC_CLAUDE" {
			m.cfg["temperature"] = min(x, 1)
		}
	}
	if n := part.params.First("options").First("maxTokens", "maxTokensToSample", "maxOutputTokens").Int(0); n > 0 {
		m.cfg["max_tokens"] = n
	}
}

// prompt is what the model is asked.
func (m *making) prompt(field string) string {
	p := m.n.params
	if words := m.text(p.First("text", "prompt", "query")); words != "" && (p.At("promptType").Text() == "define" || p.First("text", "query").Exists()) {
		return words
	}
	if m.json.unknown || m.json.many {
		return "{{message}}"
	}
	return "{{" + m.json.at([]string{field}) + "}}"
}

// agent asks a model that may use tools.
func agent(m *making) {
	m.model()
	m.cfg["user_prompt"] = m.prompt("chatInput")
	if system := m.text(m.n.params.At("options", "systemMessage")); system != "" {
		m.cfg["system_prompt"] = system
	}
	if n := m.n.params.At("options", "maxIterations").Int(0); n > 0 {
		m.cfg["max_tool_iterations"] = min(n, 50)
	}
	m.parser()
	m.memories()
	for _, t := range m.n.parts["ai_tool"] {
		m.tool(t)
	}
	for _, kind := range []string{"ai_retriever", "ai_vectorStore"} {
		for _, t := range m.n.parts[kind] {
			m.knowledge(t)
		}
	}
}

// chainShape is where the answer of a chain is.
func chainShape(n *node) ([]string, map[string]string) {
	return nil, map[string]string{"text": "content", "output": "content", "response": "response"}
}

// chain asks a model once.
func chain(m *making) {
	m.model()
	m.cfg["user_prompt"] = m.prompt("chatInput")
	var system []string
	for _, v := range m.n.params.At("messages", "messageValues").List() {
		words := m.text(v.At("message"))
		if t := v.At("type").Text(); t == "HumanMessagePromptTemplate" || t == "AIMessagePromptTemplate" {
			m.line.Approximate(text.Of("earlier messages of the conversation are a part of the system prompt"))
		}
		if words != "" {
			system = append(system, words)
		}
	}
	if len(system) > 0 {
		m.cfg["system_prompt"] = strings.Join(system, "\n\n")
	}
	m.parser()
}

// summary asks a model for a summary.
func summary(m *making) {
	m.model()
	m.cfg["system_prompt"] = "Write a concise summary of the text that you are given."
	m.cfg["user_prompt"] = "-"
	if !m.json.unknown && !m.json.many {
		if words, ok := m.json.whole().(string); ok {
			m.cfg["user_prompt"] = words
		}
	}
	m.line.Approximate(text.Of("the whole text is summarised at once, and not in parts"))
}

// parser makes the schema of the answer of what is attached as one.
func (m *making) parser() {
	for _, p := range m.n.parts["ai_outputParser"] {
		m.useParser(p)
	}
}

func (m *making) useParser(p *node) {
	p.used = true
	schema := map[string]any{}
	switch t := short(p.typ); {
	case t == "outputParserAutofixing":
		for _, inner := range p.parts["ai_outputParser"] {
			m.useParser(inner)
		}
		for _, inner := range p.parts["ai_languageModel"] {
			inner.used = true
			inner.line.Became(m.kind).Approximate(text.Of("an answer of another shape is asked for again from the same model"))
		}
		p.line.Became(m.kind).Note(text.Of("answers are checked and asked for again without it"))
		return
	case t == "outputParserItemList":
		schema = map[string]any{"type": "object", "required": []any{"items"}, "properties": map[string]any{"items": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}}
		p.line.Approximate(text.Of("the list is in the field items of the answer"))
	default:
		example := p.params.First("jsonSchemaExample").Text()
		written := p.params.First("inputSchema", "jsonSchema").Text()
		if value, err := payload.Decode([]byte(strings.TrimPrefix(written, "="))); err == nil && written != "" {
			if object, ok := value.(map[string]any); ok {
				schema = object
			}
		} else if value, err := payload.Decode([]byte(strings.TrimPrefix(example, "="))); err == nil && example != "" {
			schema = schemaOf(value)
		} else {
			p.line.Approximate(text.Of("its schema cannot be read; the answer is any JSON"))
		}
	}
	p.line.Became(m.kind)
	if schema["type"] != "object" {
		m.cfg["response_format"] = "json"
		return
	}
	m.cfg["response_format"], m.cfg["output_schema"] = "schema", schema
}

// schemaOf is the schema of an example.
func schemaOf(v any) map[string]any {
	switch x := v.(type) {
	case map[string]any:
		properties := map[string]any{}
		for name, inner := range x {
			properties[name] = schemaOf(inner)
		}
		return map[string]any{"type": "object", "properties": properties}
	case []any:
		if len(x) > 0 {
			return map[string]any{"type": "array", "items": schemaOf(x[0])}
		}
		return map[string]any{"type": "array"}
	case string:
		return map[string]any{"type": "string"}
	case bool:
		return map[string]any{"type": "boolean"}
	case nil:
		return map[string]any{}
	}
	return map[string]any{"type": "number"}
}

// memories attaches what is remembered.
func (m *making) memories() {
	for _, part := range m.n.parts["ai_memory"] {
		part.used = true
		if part.written {
			m.attached = append(m.attached, m.partID(part))
			continue
		}
		part.written = true
		mem := m.f.Add(part.line, m.partID(part), "MEMORY.CONVERSATION_BUFFER", part.name)
		mem.Position = position(part.doc)
		mem.Config["max_messages"] = min(max(2*part.params.At("contextWindowLength").Int(5), 1), 1000)
		own := reading{f: m.f, n: part, json: m.json}
		if key := part.params.At("sessionKey"); key.Exists() && part.params.At("sessionIdType").Text() == "customKey" {
			mem.Config["session_id"] = own.text(key)
		} else {
			mem.Config["session_id"] = "{{conversation_id}}"
		}
		if len(own.calc) > 0 {
			mem.Config["session_id"] = "{{conversation_id}}"
			part.line.Approximate(text.Of("the session is that of the conversation"))
		}
		if t := short(part.typ); t != "memoryBufferWindow" {
			part.line.Approximate(text.Of("messages are kept by Tandem itself"))
		}
		m.attached = append(m.attached, m.partID(part))
	}
}

// knowledge attaches what is found by its meaning.
func (m *making) knowledge(part *node) {
	if part.busy {
		return // it serves itself
	}
	part.busy, part.used = true, true
	defer func() { part.busy = false }()
	for _, kind := range []string{"ai_vectorStore", "ai_retriever"} {
		for _, inner := range part.parts[kind] {
			m.knowledge(inner)
			part.line.Became("MEMORY.VECTOR_DATABASE").Approximate(text.Of("it is now a part of the memory that finds by meaning"))
		}
	}
	for _, inner := range slices.Concat(part.parts["ai_embedding"], part.parts["ai_languageModel"], part.parts["ai_document"], part.parts["ai_textSplitter"], part.parts["ai_reranker"]) {
		inner.used = true
		inner.line.Became("MEMORY.VECTOR_DATABASE").Approximate(text.Of("the memory has an embedding profile instead; set embedding_profile"))
	}
	if !strings.HasPrefix(short(part.typ), "vectorStore") || part.written {
		if part.written {
			m.attached = append(m.attached, m.partID(part))
		}
		return
	}
	part.written = true
	mem := m.f.Add(part.line, m.partID(part), "MEMORY.VECTOR_DATABASE", part.name)
	mem.Position = position(part.doc)
	mem.Config["max_results"] = min(max(part.params.At("topK").Int(4), 1), 50)
	mem.Config["session_id"] = "knowledge"
	part.line.Approximate(text.Of("what is found by its meaning is kept by Tandem itself: store the documents there"))
	m.attached = append(m.attached, m.partID(part))
}

// tool attaches a tool.
func (m *making) tool(part *node) {
	part.used = true
	if part.written {
		if !part.lost {
			m.attached = append(m.attached, m.partID(part))
		}
		return
	}
	part.written = true
	kind, cfg := m.toolConfig(part)
	if kind == "" {
		part.lost = true
		m.line.Approximate(text.Of("the tool %q is not attached to it", part.name))
		return
	}
	if kind == "knowledge" {
		part.written = false
		m.knowledge(part)
		return
	}
	t := m.f.Add(part.line, m.partID(part), kind, cmp.Or(part.text("description"), part.text("toolDescription"), part.name))
	t.Config, t.Position = cfg, position(part.doc)
	m.attached = append(m.attached, m.partID(part))
}

// toolConfig is the kind of a tool and how it is configured; without a kind it has no counterpart.
func (m *making) toolConfig(part *node) (string, map[string]any) {
	cfg := map[string]any{}
	switch t := short(part.typ); {
	case t == "toolHttpRequest" || t == "httpRequestTool":
		host := hostOf(part.params.At("url").Text())
		if host == "" {
			host = "example.com"
			part.line.Approximate(text.Of("its address is computed; set allowed_domains"))
		}
		cfg["allowed_domains"], cfg["allowed_methods"] = []any{host}, []any{strings.ToUpper(cmp.Or(part.text("method"), "GET"))}
		part.line.Approximate(text.Of("the model is given the whole of %s, and writes path, query and body itself; tell it in the system prompt", host))
		return "TOOL.HTTP_CLIENT", cfg
	case t == "toolCode":
		source, language := part.text("jsCode"), "javascript"
		if part.text("language") == "python" {
			source, language = part.text("pythonCode"), "python"
		}
		cfg["language"], cfg["tool_name"], cfg["description"] = language, toolName(cmp.Or(part.text("name"), part.name)), cmp.Or(part.text("description"), part.name)
		cfg["code"] = "function main(input) {\n  const query = typeof input === \"object\" && \"query\" in input ? input.query : input;\n" + source + "\n}\n"
		if language == "python" {
			cfg["code"] = "def main(input):\n    query = input.get(\"query\", input) if isinstance(input, dict) else input\n" + strings.ReplaceAll(indented(source), "        ", "    ") + "\n"
		}
		cfg["parameters"] = map[string]any{"type": "object", "properties": map[string]any{"query": map[string]any{"type": "string"}}}
		if schema, err := payload.Decode([]byte(part.text("inputSchema"))); err == nil {
			if object, ok := schema.(map[string]any); ok && object["type"] == "object" {
				cfg["parameters"] = object
			}
		}
		return "TOOL.CODE_TOOL", cfg
	case t == "toolCalculator":
		cfg["description"] = "Runs Python: compute with it."
		part.line.Approximate(text.Of("the model computes with Python"))
		return "TOOL.CODE_TOOL", cfg
	case t == "toolWikipedia":
		cfg["allowed_domains"] = []any{"en.wikipedia.org"}
		part.line.Approximate(text.Of("the model reads pages of Wikipedia"))
		return "TOOL.HTTP_CLIENT", cfg
	case t == "mcpClientTool" || t == "mcpClient":
		cfg["server_id"] = profileName(strings.ToLower(cmp.Or(hostOf(part.params.First("sseEndpoint", "endpointUrl").Text()), part.name)))
		part.line.Approximate(text.Of("register the tool server %q", cfg["server_id"]))
		return "TOOL.MCP_TOOL", cfg
	case t == "toolVectorStore" || strings.HasPrefix(t, "vectorStore"):
		return "knowledge", nil
	case t == "googleCalendarTool" && m.f.Has("TOOL.GOOGLE_CALENDAR_TOOL"):
		part.line.Approximate(text.Of("the model is given all that the kind offers"))
		cfg["credential_id"] = "{{$placeholder}}"
		return "TOOL.GOOGLE_CALENDAR_TOOL", cfg
	case t == "gmailTool" && m.f.Has("TOOL.GMAIL_TOOL"):
		part.line.Approximate(text.Of("the model is given all that the kind offers"))
		cfg["credential_id"] = "{{$placeholder}}"
		return "TOOL.GMAIL_TOOL", cfg
	}
	part.line.Miss(text.Of("nodes of the type %s have no counterpart", part.typ))
	return "", nil
}

// toolName is a name that models take.
func toolName(name string) string {
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, name), "_")
	return cmp.Or(text.Clip(name, 60), "tool")
}

// hostOf is the host of an address; empty: it is not written there.
func hostOf(address string) string {
	u, err := url.Parse(strings.TrimPrefix(address, "="))
	if err != nil || strings.ContainsAny(u.Host, "{} ") {
		return ""
	}
	return u.Host
}

// extract asks a model for values.
func extract(m *making) {
	m.model()
	m.cfg["user_prompt"] = m.prompt("text")
	m.cfg["system_prompt"] = cmp.Or(m.text(m.n.params.At("options", "systemPromptTemplate")), "Extract the values that are asked for from the text. Leave out what it does not say.")
	properties, required := map[string]any{}, []any{}
	for _, a := range m.n.params.At("attributes", "attributes").List() {
		typ := map[string]string{"number": "number", "boolean": "boolean", "date": "string", "string": "string", "": "string"}[a.At("type").Text()]
		if name := a.At("name").Text(); name != "" {
			properties[name] = map[string]any{"type": cmp.Or(typ, "string"), "description": a.At("description").Text()}
			if a.At("required").Bool() {
				required = append(required, name)
			}
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "required": required}
	if len(properties) == 0 {
		for _, field := range []string{"inputSchema", "jsonSchemaExample"} {
			if value, err := payload.Decode([]byte(m.n.text(field))); err == nil {
				if object, ok := value.(map[string]any); ok && object["type"] == "object" {
					schema = object
				} else {
					schema = schemaOf(value)
				}
			}
		}
	}
	if schema["type"] != "object" {
		m.cfg["response_format"] = "json"
		return
	}
	m.cfg["response_format"], m.cfg["output_schema"] = "schema", schema
}

// classify lets a model choose the way of an item.
func classify(m *making) {
	m.n.handsOn = true
	choices := []any{}
	names := []string{}
	for _, c := range m.n.params.At("categories", "categories").List() {
		names = append(names, c.At("category").Text())
		choices = append(choices, map[string]any{"branch": branchKey(len(choices)), "description": strings.Trim(c.At("category").Text()+": "+c.At("description").Text(), ": ")})
	}
	if short(m.n.typ) == "sentimentAnalysis" {
		names = []string{"Positive", "Neutral", "Negative"}
		for i, name := range names {
			choices = append(choices, map[string]any{"branch": branchKey(i), "description": name})
		}
	}
	if m.up.many {
		m.json.path, m.json.many = append(slices.Clone(m.up.path), "0"), false
		m.line.Approximate(text.Of("it runs once, with the first item"))
	}
	if len(choices) == 0 {
		m.missing(text.Of("it has no categories"))
		return
	}
	scratch := &making{reading: m.reading, line: m.line, cfg: map[string]any{}, in: map[string]any{}}
	scratch.model()
	profile, ok := scratch.cfg["profile_id"].(string)
	if !ok {
		profile = m.f.Profile(profileName(importer.ValueOf(scratch.cfg["model"]).Text()))
	}
	m.kind = "FLOW.SWITCH"
	m.cfg["propose"] = m.text(m.n.params.First("inputText", "text"))
	if m.cfg["propose"] == "" {
		m.cfg["propose"] = "{{" + m.json.at([]string{"text"}) + "}}"
	}
	m.cfg["choices"], m.cfg["llm_profile"] = choices, profile
	for i := range names {
		m.outs = append(m.outs, branchKey(i))
	}
	m.line.Approximate(text.Of("a model profile is needed: %s", profile))
}

// openAI asks a model of a service directly.
func openAI(m *making) {
	p := m.n.params
	resource, operation := p.At("resource").Text(), p.At("operation").Text()
	if !strings.Contains(m.n.typ, "langchain") && resource == "image" {
		rest(m)
		return
	}
	if resource != "" && resource != "text" && resource != "chat" || operation != "" && operation != "message" && operation != "complete" && operation != "response" {
		m.missing(text.Of("the operation %q of %s has no counterpart", strings.TrimSpace(resource+" "+operation), short(m.n.typ)))
		return
	}
	m.modelOf(m.n)
	var system, user []string
	for _, v := range slices.Concat(p.At("messages", "values").List(), p.At("messages", "messageValues").List(), p.At("prompt", "messages").List(), p.At("responses", "values").List()) {
		words := m.text(v.At("content"))
		switch {
		case words == "":
		case v.At("role").Text() == "system":
			system = append(system, words)
		default:
			user = append(user, words)
		}
	}
	if words := m.text(p.At("prompt")); words != "" && p.At("prompt").IsText() {
		user = append(user, words)
	}
	if len(system) > 0 {
		m.cfg["system_prompt"] = strings.Join(system, "\n\n")
	}
	m.cfg["user_prompt"] = cmp.Or(strings.Join(user, "\n\n"), m.prompt("chatInput"))
	if p.At("jsonOutput").Bool() {
		m.cfg["response_format"] = "json"
	}
	m.memories()
	for _, t := range m.n.parts["ai_tool"] {
		m.tool(t)
	}
}

// vectorStore stores or finds by meaning, as a node of its own.
func vectorStore(m *making) {
	for _, inner := range slices.Concat(m.n.parts["ai_embedding"], m.n.parts["ai_document"]) {
		inner.used = true
		inner.line.Became("MEMORY.VECTOR_DATABASE").Approximate(text.Of("the memory has an embedding profile instead; set embedding_profile"))
		for _, deeper := range inner.parts["ai_textSplitter"] {
			deeper.used = true
			deeper.line.Became("MEMORY.VECTOR_DATABASE").Approximate(text.Of("texts are kept as they are, and not in parts"))
		}
	}
	m.kind, m.cfg["session_id"] = "MEMORY.VECTOR_DATABASE", "knowledge"
	switch mode := m.n.text("mode"); mode {
	case "insert", "":
		m.cfg["operation"] = "store"
		m.in["items"] = []any{map[string]any{"content": m.whole()}}
	case "load":
		m.cfg["operation"], m.in["query"] = "search", m.text(m.n.params.At("prompt"))
	default:
		m.missing(text.Of("the mode %q has no counterpart", mode))
		return
	}
	m.line.Approximate(text.Of("what is found by its meaning is kept by Tandem itself: store the documents there"))
}

// whole is what arrives, as a text.
func (m *making) whole() any {
	if words, ok := m.json.whole().(string); ok {
		return "Data: " + words
	}
	return "-"
}
