package n8n

import (
	"cmp"
	"strings"

	"tandem/importer"
	"tandem/payload"
	"tandem/text"
)

// webHandlers are the nodes that call services of any sort, and those that work with files and databases.
func webHandlers() map[string]handler {
	made := func(path ...string) handler { return handler{per: true, path: path} }
	with := func(h handler, make func(m *making)) handler { h.make = make; return h }
	return map[string]handler{
		"httpRequest":      {per: true, shape: answerShape, make: request},
		"graphql":          with(made("json"), graphQL),
		"postgres":         {many: true, path: []string{"rows"}, shape: rowsShape, make: sql},
		"mySql":            {many: true, path: []string{"rows"}, shape: rowsShape, make: sql},
		"microsoftSql":     {many: true, path: []string{"rows"}, shape: rowsShape, make: unknown},
		"readBinaryFile":   {per: true, make: readFile},
		"readWriteFile":    {per: true, make: readFile},
		"writeBinaryFile":  {per: true, make: readFile},
		"convertToFile":    {path: []string{}, make: toFile},
		"moveBinaryData":   {path: []string{}, make: toFile},
		"spreadsheetFile":  {path: []string{}, make: toFile},
		"extractFromFile":  {many: true, path: []string{"data"}, make: fromFile},
		"markdown":         {per: true, rename: map[string]string{"data": "formatted"}, make: markdown},
		"xml":              {per: true, path: []string{"data"}, make: xml},
		"crypto":           {per: true, path: []string{"result", "0"}, make: cryptography},
		"redis":            {per: true, make: redis},
		"emailReadImap":    {root: true, rename: mailFields(), make: mailTrigger},
		"rssFeedRead":      {many: true, path: []string{"items"}, make: feed},
		"html":             {per: true, make: html},
		"htmlExtract":      {per: true, make: html},
		"executeQuery":     {many: true, make: unknown},
		"readPDF":          {per: true, make: unknown},
		"compression":      {per: true, make: unknown},
		"editImage":        {per: true, make: unknown},
		"ftp":              {per: true, make: unknown},
		"readBinaryFiles":  {many: true, make: unknown},
		"googleBigQuery":   {many: true, make: unknown},
		"mongoDb":          {many: true, make: unknown},
		"kafka":            {per: true, make: unknown},
		"rabbitmq":         {per: true, make: unknown},
		"mqtt":             {per: true, make: unknown},
		"awsS3":            {per: true, make: unknown},
		"s3":               {per: true, make: unknown},
		"awsLambda":        {per: true, make: unknown},
		"form":             {per: true, make: unknown},
		"executionRunData": {pass: true, make: nothing},
	}
}

// answerShape is where the answer of a request is.
func answerShape(n *node) ([]string, map[string]string) {
	full := n.params.At("options", "response", "response", "fullResponse").Bool() || n.params.At("options", "fullResponse").Bool()
	format := cmp.Or(n.params.At("options", "response", "response", "responseFormat").Text(), n.params.At("responseFormat").Text())
	switch {
	case full && format == "text":
		return nil, map[string]string{"body": "body", "data": "body", "headers": "headers", "statusCode": "status_code"}
	case full:
		return nil, map[string]string{"body": "json", "headers": "headers", "statusCode": "status_code"}
	case format == "text" || format == "string":
		field := cmp.Or(n.params.At("options", "response", "response", "outputPropertyName").Text(),
			n.params.At("dataPropertyName").Text(), "data")
		return nil, map[string]string{field: "body"}
	case format == "file":
		return nil, map[string]string{"data": "file"}
	}
	return []string{"json"}, nil
}

// request imports a call over HTTP.
func request(m *making) {
	p := m.n.params
	m.kind = "ACTION.HTTP_REQUEST"
	m.cfg["method"] = strings.ToUpper(cmp.Or(p.First("method", "requestMethod").Text(), "GET"))
	m.cfg["url"] = m.text(p.At("url"))
	if m.cfg["url"] == "" {
		m.cfg["url"] = "{{env.URL}}"
		m.line.Approximate(text.Of("it has no address; set one"))
	}
	if bare.MatchString(p.At("url").Text()) && !strings.HasPrefix(p.At("url").Text(), "=") {
		m.line.Approximate(text.Of("the address is an expression without its sign (=), and was read as one"))
	}
	query := m.pairs(p.At("queryParameters", "parameters"), p.At("queryParametersUi", "parameter"))
	headers := m.pairs(p.At("headerParameters", "parameters"), p.At("headerParametersUi", "parameter"))
	m.fill(query, p.First("jsonQuery", "queryParametersJson"))
	m.fill(headers, p.First("jsonHeaders", "headerParametersJson"))
	for name := range headers {
		if strings.EqualFold(name, "content-type") && strings.Contains(strings.ToLower(importer.ValueOf(headers[name]).Text()), "application/json") {
			delete(headers, name)
		}
	}
	m.object("query_params", query)
	m.object("headers", headers)
	m.body()
	m.options()
	m.auth("http_auth")
	if path, _ := answerShape(m.n); len(path) == 1 && !m.inLoop {
		m.line.Note(text.Of("if the service answers with a list, n8n runs what follows for each of its elements; here it is given the list"))
	}
}

// pairs are names with their values.
func (r *reading) pairs(lists ...importer.Value) map[string]any {
	out := map[string]any{}
	for _, list := range lists {
		for _, pair := range list.List() {
			if name := pair.First("name", "key").Text(); name != "" {
				out[strings.TrimPrefix(name, "=")] = r.text(pair.At("value"))
			}
		}
	}
	return out
}

// fill adds what is written as JSON.
func (m *making) fill(to map[string]any, v importer.Value) {
	if !v.Exists() {
		return
	}
	fields, ok := m.jsonText(v).(map[string]any)
	if !ok {
		if v.Text() != "" && v.Text() != "=" {
			m.line.Approximate(text.Of("parameters that are computed as a whole were left out"))
		}
		return
	}
	for name, value := range fields {
		to[name] = value
	}
}

// object sets a configuration unless it is empty.
func (m *making) object(name string, fields map[string]any) {
	if len(fields) > 0 {
		m.cfg[name] = fields
	}
}

// body imports what is sent.
func (m *making) body() {
	p := m.n.params
	method, _ := m.cfg["method"].(string)
	fields := m.pairs(p.At("bodyParameters", "parameters"), p.At("bodyParametersUi", "parameter"))
	content := cmp.Or(p.First("contentType", "bodyContentType").Text(), "json")
	raw := p.First("jsonBody", "bodyParametersJson", "body")
	sends := p.At("sendBody").Bool() || m.n.version < 3 && method != "GET" && method != "HEAD"
	if !sends || len(fields) == 0 && raw.Text() == "" && !raw.IsObject() {
		m.cfg["body_type"] = "none"
		return
	}
	switch content {
	case "form-urlencoded":
		m.cfg["body_type"] = "form"
		m.cfg["body"] = fields
		if len(fields) == 0 {
			m.cfg["body_type"], m.cfg["body"] = "raw", m.text(raw)
		}
	case "multipart-form-data", "binaryData":
		m.cfg["body_type"], m.cfg["body"] = "form", fields
		m.line.Approximate(text.Of("what is sent as parts of a form, or as a file, is sent as fields; use ACTION.FILE_UPLOAD for files"))
	case "raw":
		m.cfg["body_type"], m.cfg["body"] = "raw", m.text(raw)
		if kind := p.At("rawContentType").Text(); kind != "" {
			headers, _ := m.cfg["headers"].(map[string]any)
			if headers == nil {
				headers = map[string]any{}
			}
			headers["Content-Type"] = kind
			m.cfg["headers"] = headers
		}
	default:
		if len(fields) > 0 {
			m.cfg["body"] = fields
			return
		}
		body := m.jsonText(raw)
		m.cfg["body"] = body
		if s, ok := body.(string); ok && !(strings.HasPrefix(s, "{{") && strings.HasSuffix(s, "}}") && strings.Count(s, "{{") == 1) {
			m.cfg["body_type"] = "raw"
			headers, _ := m.cfg["headers"].(map[string]any)
			if headers == nil {
				headers = map[string]any{}
			}
			headers["Content-Type"] = "application/json"
			m.cfg["headers"] = headers
		}
	}
}

// options imports what is set besides.
func (m *making) options() {
	o := m.n.params.At("options")
	response := o.At("response", "response")
	if response.At("neverError").Bool() || o.At("ignoreResponseCode").Bool() || m.n.params.At("ignoreResponseCode").Bool() {
		m.cfg["fail_on_status"] = false
	}
	switch cmp.Or(response.At("responseFormat").Text(), m.n.text("responseFormat")) {
	case "text", "string":
		m.cfg["response_type"] = "text"
	case "file":
		m.cfg["response_type"] = "file"
	case "json":
		m.cfg["response_type"] = "json"
	}
	if ms := o.At("timeout").Int(0); ms > 0 {
		m.cfg["timeout"] = min(max((ms+999)/1000, 1), 86400)
	}
	if o.At("pagination").Exists() {
		m.line.Approximate(text.Of("only the first page is fetched; set pagination"))
	}
	if o.At("proxy").Text() != "" || o.At("allowUnauthorizedCerts").Bool() {
		m.line.Approximate(text.Of("requests go through no proxy of their own, and certificates are always checked"))
	}
}

// auth names the credential of the node, if it has one. The type is that of credentials of the kind.
func (m *making) auth(typ string) {
	name := ""
	if kinds := m.n.doc.At("credentials").Names(); len(kinds) > 0 { // a node uses the first
		kind := kinds[0]
		c := m.n.doc.At("credentials", kind)
		name = cmp.Or(c.At("name").Text(), c.Text(), kind)
		if typ == "http_auth" && strings.Contains(strings.ToLower(kind), "oauth2") {
			typ = "oauth2"
		}
	}
	chosen := cmp.Or(m.n.text("authentication"), m.n.text("nodeCredentialType"))
	if name == "" && (chosen == "" || chosen == "none") && typ == "http_auth" {
		return
	}
	if name == "" {
		m.cfg["credential_id"] = "{{$placeholder}}"
		m.line.Note(text.Of("choose a credential of the type %s", typ))
		return
	}
	m.cfg["credential_id"] = m.f.Credential(escaped(name), typ, text.Of("make it: n8n does not export secrets"))
}

// graphQL is a request with a query.
func graphQL(m *making) {
	m.kind, m.cfg["method"] = "ACTION.HTTP_REQUEST", "POST"
	m.cfg["url"] = m.text(m.n.params.At("endpoint"))
	body := map[string]any{"query": m.text(m.n.params.At("query"))}
	if v := m.n.params.At("variables"); v.Exists() {
		body["variables"] = m.jsonText(v)
	}
	m.cfg["body"] = body
	m.object("headers", m.pairs(m.n.params.At("headerParametersUi", "parameter")))
	m.auth("http_auth")
}

// rowsShape is where the rows of a statement are.
func rowsShape(n *node) ([]string, map[string]string) {
	if reads(n) {
		return []string{"rows"}, nil
	}
	return []string{"returned_rows"}, nil
}

// reads says that a statement of a database only reads.
func reads(n *node) bool {
	switch cmp.Or(n.text("operation"), "insert") {
	case "select":
		return true
	case "executeQuery":
		words := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(n.text("query"), "=")))
		return strings.HasPrefix(words, "select") || strings.HasPrefix(words, "with") || strings.HasPrefix(words, "show") || words == ""
	}
	return false
}

// sql imports a statement of a database.
func sql(m *making) {
	p := m.n.params
	if m.up.many {
		m.json = m.up
		m.json.path, m.json.many = append(append([]string{}, m.up.path...), "0"), false
		m.line.Approximate(text.Of("it runs once, with the first item"))
	}
	table := locator(p.At("table")).Text()
	switch op := cmp.Or(p.At("operation").Text(), "insert"); {
	case op == "executeQuery" && reads(m.n):
		m.kind, m.cfg["query"] = "ACTION.DATABASE_QUERY", m.text(p.At("query"))
	case op == "executeQuery":
		m.kind, m.cfg["operation"], m.cfg["statement"] = "ACTION.DATABASE_OPERATION", "execute", m.text(p.At("query"))
	case op == "select":
		m.kind = "ACTION.DATABASE_QUERY"
		m.cfg["query"] = "SELECT * FROM " + table
		if p.At("where", "values").Exists() {
			m.line.Approximate(text.Of("the conditions of the query were left out; write them into the statement"))
		}
	case op == "insert" || op == "upsert" || op == "update":
		values := map[string]any{}
		for _, name := range p.At("columns", "value").Names() {
			values[name] = m.value(p.At("columns", "value", name))
		}
		if len(values) == 0 {
			for _, name := range fieldsOf(p.At("columns")) {
				values[name] = "{{" + m.json.at([]string{name}) + "}}"
			}
		}
		m.kind, m.cfg["table"], m.cfg["operation"] = "ACTION.DATABASE_OPERATION", table, op
		m.cfg["values"] = values
		if op != "insert" {
			keys := fieldsOf(p.First("updateKey", "columnToMatchOn"))
			keys = append(keys, p.At("columns", "matchingColumns").Texts()...)
			where := map[string]any{}
			for _, k := range keys {
				where[k] = values[k]
			}
			if op == "upsert" {
				m.cfg["conflict_keys"] = keys
			} else {
				m.cfg["where"] = where
			}
		}
		if len(values) == 0 {
			m.missing(text.Of("the columns are taken from the data, which has to be said here: name them in values"))
			return
		}
	default:
		m.missing(text.Of("the operation %q has no counterpart", op))
		return
	}
	m.auth("sql")
}

// readFile reads and writes files.
func readFile(m *making) {
	p := m.n.params
	m.kind = "ACTION.FILE_OPERATION"
	name := m.text(p.First("fileName", "filePath", "fileSelector"))
	if op := p.At("operation").Text(); op == "write" || short(m.n.typ) == "writeBinaryFile" {
		m.missing(text.Of("a file that an item carries cannot be found by its n8n name; write it with ACTION.FILE_OPERATION"))
		return
	}
	m.cfg["operation"], m.cfg["path"] = "read", strings.TrimLeft(name, "/")
	m.line.Approximate(text.Of("files are those of the workspace; put %q there", name))
}

// toFile makes a file of items.
func toFile(m *making) {
	op := cmp.Or(m.n.params.At("operation").Text(), m.n.params.At("mode").Text(), m.n.params.At("fileFormat").Text())
	format := map[string]string{"csv": "csv", "html": "html", "toText": "text", "toJson": "json", "jsonToBinary": "json", "": "csv"}[op]
	if format == "" {
		m.missing(text.Of("the operation %q has no counterpart", op))
		return
	}
	m.kind, m.cfg["format_type"] = "ACTION.DATA_FORMATTING", format
	m.in["data"] = m.listIn()
	m.empty = true
	m.line.Approximate(text.Of("it makes a text, formatted, and no file; write it with ACTION.FILE_OPERATION"))
}

// fromFile reads what is in a file.
func fromFile(m *making) {
	op := cmp.Or(m.n.params.At("operation").Text(), "csv")
	format := map[string]string{"csv": "csv", "fromJson": "json", "text": "text", "xml": "xml"}[op]
	if format == "" {
		m.missing(text.Of("the operation %q has no counterpart", op))
		return
	}
	m.kind, m.cfg["format_type"], m.cfg["direction"] = "ACTION.DATA_FORMATTING", format, "parse"
	m.in["data"] = "{{" + m.json.at([]string{cmp.Or(m.n.text("binaryPropertyName"), "data")}) + "}}"
	if m.json.unknown {
		m.in["data"] = ""
	}
	m.empty = true
	m.line.Approximate(text.Of("it reads a text in the data, and no file; read the file with ACTION.FILE_OPERATION first"))
}

// markdown turns Markdown into HTML.
func markdown(m *making) {
	if m.n.text("mode") == "markdownToHtml" {
		m.kind, m.cfg["format_type"], m.cfg["direction"] = "ACTION.DATA_FORMATTING", "markdown", "parse"
		m.in["data"] = m.text(m.n.params.At("markdown"))
		m.missing(text.Of("Markdown is not turned into HTML here"))
		return
	}
	m.kind, m.cfg["format_type"], m.cfg["direction"] = "ACTION.DATA_FORMATTING", "html", "parse"
	m.in["data"] = m.text(m.n.params.At("html"))
	m.line.Approximate(text.Of("of HTML the text is kept, and not its form"))
	m.missing(text.Of("HTML is not turned into Markdown here"))
}

// xml reads or writes XML.
func xml(m *making) {
	m.kind, m.cfg["format_type"] = "ACTION.DATA_FORMATTING", "xml"
	field := cmp.Or(m.n.text("dataPropertyName"), "data")
	if m.n.text("mode") == "jsonToxml" {
		m.in["data"] = m.json.whole()
		m.line.Approximate(text.Of("the text is in the field formatted"))
		return
	}
	m.cfg["direction"] = "parse"
	m.in["data"] = ""
	if !m.json.unknown {
		m.in["data"] = "{{" + m.json.at([]string{field}) + "}}"
	}
	m.line.Approximate(text.Of("attributes and repeated elements may have other names"))
}

// cryptography makes random values and hashes; signatures have no counterpart, since their keys are secrets.
func cryptography(m *making) {
	p := m.n.params
	field := string(payload.Quote(cmp.Or(p.At("dataPropertyName").Text(), "data")))
	switch action := cmp.Or(p.At("action").Text(), "hash"); action {
	case "generate":
		m.script("  const hex = n => Array.from({length: n}, () => Math.floor(Math.random() * 16).toString(16)).join(\"\");\n" +
			"  return input.items.map(one => ({...one, [" + field + "]: [hex(8), hex(4), \"4\" + hex(3), \"8\" + hex(3), hex(12)].join(\"-\")}));")
		m.line.Approximate(text.Of("what it makes is random, and no secret"))
	case "hash":
		name := map[string]string{"MD5": "md5", "SHA256": "sha256", "SHA384": "sha384", "SHA512": "sha512", "SHA3-256": "sha3_256",
			"SHA3-384": "sha3_384", "SHA3-512": "sha3_512"}[cmp.Or(p.At("type").Text(), "MD5")]
		if name == "" || p.At("binaryData").Bool() {
			m.missing(text.Of("the operation %q has no counterpart", action+" "+p.At("type").Text()))
			return
		}
		written := "digest.hex()"
		if p.At("encoding").Text() == "base64" {
			written = "base64.b64encode(digest).decode()"
		}
		m.script("")
		m.cfg["language"] = "python"
		m.cfg["code"] = "import base64\nimport hashlib\n\n\ndef main(data):\n    digest = hashlib." + name + "(str(data[\"value\"]).encode()).digest()\n" +
			"    return [{**one, " + field + ": " + written + "} for one in data[\"items\"]]\n"
		m.in["value"] = m.value(p.At("value"))
	default:
		m.missing(text.Of("signatures have no counterpart; compute them in ACTION.RUN_CODE with Python"))
	}
}

// redis keeps values by key.
func redis(m *making) {
	op := cmp.Or(m.n.text("operation"), "info")
	verb := map[string]string{"get": "get", "set": "set", "delete": "delete", "incr": "increment", "keys": "keys"}[op]
	if verb == "" {
		m.missing(text.Of("the operation %q has no counterpart", op))
		return
	}
	m.kind = "MEMORY.KEY_VALUE_STORE"
	m.in["operation"], m.in["key"] = verb, m.text(m.n.params.At("key"))
	switch verb {
	case "set":
		m.in["value"] = m.value(m.n.params.At("value"))
	case "keys":
		delete(m.in, "key")
		m.in["options"] = map[string]any{"pattern": m.text(m.n.params.At("keyPattern"))}
	}
	m.line.Approximate(text.Of("values are kept in a memory of Tandem, and not in Redis; what it reads has the field value"))
}

// feed reads an RSS feed, and gives its items the fields that they have in n8n.
func feed(m *making) {
	if m.up.many {
		m.json = m.up
		m.json.path, m.json.many = append(append([]string{}, m.up.path...), "0"), false
		m.line.Approximate(text.Of("it runs once, with the first item"))
	}
	url := m.text(m.n.params.At("url"))
	if m.values != "" && strings.Contains(url, m.values) {
		m.missing(text.Of("the address of a feed cannot be computed in the node; compute it in a node before"))
		return
	}
	m.told = m.f.ID(m.n.id + "_feed")
	read := m.f.Add(m.line, m.told, "ACTION.RSS_READ", "Reads the feed of "+m.n.name+".")
	read.Config["url"], read.Config["max_items"] = url, 1000
	m.kind, m.cfg["each"], m.cfg["items_path"] = "ACTION.EDIT_FIELDS", true, "items"
	m.cfg["rename"] = map[string]any{"url": "link", "summary": "contentSnippet", "id": "guid", "author": "creator", "published": "isoDate"}
	m.cfg["expressions"] = map[string]any{"pubDate": "item.published"}
	m.in["items"], m.empty = "{{"+m.told+".outputs.items}}", true
	m.line.Approximate(text.Of("items have title, link, content, contentSnippet, guid, creator, categories and isoDate; other fields of a feed are left out"))
}

// html works with HTML.
func html(m *making) {
	p := m.n.params
	if p.At("operation").Text() == "generateHtmlTemplate" || p.At("operation").Text() == "" && p.At("html").Exists() {
		m.kind, m.cfg["format_type"], m.cfg["template"] = "ACTION.DATA_FORMATTING", "template", m.text(p.At("html"))
		m.line.Approximate(text.Of("the text is in the field formatted"))
		return
	}
	var fields []any
	for _, v := range p.At("extractionValues", "values").List() {
		field := map[string]any{"name": v.At("key").Text(), "selector": v.At("cssSelector").Text()}
		switch v.At("returnValue").Text() {
		case "html":
			field["value"] = "inner_html"
		case "attribute":
			field["value"], field["attribute"] = "attribute", v.At("attribute").Text()
		case "value":
			field["value"], field["attribute"] = "attribute", "value"
		}
		if v.At("returnArray").Bool() {
			field["all"] = true
		}
		fields = append(fields, field)
	}
	if len(fields) == 0 || m.json.unknown {
		m.missing(text.Of("values are not taken out of HTML here"))
		return
	}
	m.kind, m.cfg["fields"] = "ACTION.HTML_EXTRACTION", fields
	m.cfg["html"] = "{{" + m.json.at(strings.Split(cmp.Or(p.At("dataPropertyName").Text(), "data"), ".")) + "}}"
	m.empty = true
	if p.At("sourceData").Text() == "binary" {
		m.line.Approximate(text.Of("the page is read from a text in the data, and not from a file"))
	}
}

// unknown has no counterpart.
func unknown(m *making) {
	m.missing(text.Of("nodes of the type %s have no counterpart", m.n.typ))
}
