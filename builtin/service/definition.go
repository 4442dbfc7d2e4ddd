package service

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"tandem/builtin/values"
	"tandem/fault"
)

// definition is what is known of a service.
type definition struct {
	// base is its address; empty: nothing says it.
	base       string
	operations []operation
}

// operation is one thing that can be called.
type operation struct {
	ID, Method, Path string
	Parameters       []parameter
	Body             *body
	// Responses are the schemas of answers by their status, 2XX or default.
	Responses map[string]json.RawMessage
	// Idempotency is a header by which the service knows a repeated call again; empty: there is none.
	Idempotency string
}

// name is what errors call it.
func (o operation) name() string {
	if o.ID != "" {
		return o.ID
	}
	return o.Method + " " + o.Path
}

type parameter struct {
	Name, In string
	Required bool
	Schema   json.RawMessage
	// Deep and Together are how lists and objects of a query are written: a[b]=c, or with commas, or with another separator.
	Deep, Together bool
	Separator      string
}

type body struct {
	Required bool
	// Type is the media type.
	Type   string
	Schema json.RawMessage
}

// multipart says that the body is sent in parts, of which each may be a file.
func (b *body) multipart() bool {
	return strings.HasPrefix(strings.ToLower(b.Type), "multipart/form-data")
}

// openFiles lets fields of a body in parts hold files, which are not texts where they come from.
func (b *body) openFiles() {
	if !b.multipart() {
		return
	}
	file := func(schema gjson.Result) bool {
		format := schema.Get("format").Str
		return schema.Get("type").Str == "string" && (format == "binary" || format == "byte" || format == "base64" ||
			schema.Get("contentMediaType").Exists())
	}
	gjson.GetBytes(b.Schema, "properties").ForEach(func(name, schema gjson.Result) bool {
		at := "properties." + gjson.Escape(name.Str)
		if !file(schema) {
			if at += ".items"; !file(schema.Get("items")) {
				return true
			}
		}
		if opened, err := sjson.SetRawBytes(b.Schema, at, []byte("{}")); err == nil {
			b.Schema = opened
		}
		return true
	})
}

// read reads what a credential says of its service.
func read(id string, data gjson.Result) (*definition, error) {
	d := &definition{base: strings.TrimRight(data.Get("base_url").Str, "/")}
	document, err := parsed(data.Get("openapi"))
	if err != nil {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q has a document that is neither JSON nor YAML: %s", id, err)
	}
	switch version, older := document.Get("openapi").String(), document.Get("swagger").String(); {
	case !document.IsObject():
	case version == "3" || strings.HasPrefix(version, "3."): // 3.0 without quotes is a number, which is 3
		d.readOpenAPI(document)
	case older == "2.0" || older == "2":
		d.readSwagger(document)
	default:
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q has a document of OpenAPI %q; versions 2 and 3 can be read", id, cmp.Or(version, older))
	}
	for _, e := range data.Get("endpoints").Array() {
		d.operations = append(d.operations, endpoint(e))
	}
	if len(d.operations) == 0 {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q names no operation of its service", id)
	}
	if u, err := url.Parse(d.base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q does not say where the service is; set its base_url to an address such as https://host/path", id)
	}
	return d, nil
}

// parsed is a document, which may also be a text in JSON or YAML.
func parsed(document gjson.Result) (gjson.Result, error) {
	if document.Type != gjson.String {
		return document, nil
	}
	if gjson.Valid(document.Str) {
		return gjson.Parse(document.Str), nil
	}
	raw, err := values.FromYAML(document.Str)
	return gjson.ParseBytes(raw), err
}

// endpoint is an operation of a plain list.
func endpoint(e gjson.Result) operation {
	o := operation{ID: first(e, "operation_id", "operationId", "id", "name"), Method: strings.ToUpper(e.Get("method").Str),
		Path: e.Get("path").Str, Idempotency: e.Get("idempotency_header").Str}
	if method, path, ok := strings.Cut(first(e, "endpoint"), " "); ok && o.Path == "" {
		o.Method, o.Path = strings.ToUpper(method), strings.TrimSpace(path)
	}
	if o.Method == "" {
		o.Method = http.MethodGet
	}
	for _, p := range e.Get("parameters").Array() {
		o.addParameter(p)
	}
	o.complete()
	if schema := e.Get("body"); schema.IsObject() {
		o.Body = &body{Type: "application/json", Schema: json.RawMessage(schema.Raw)}
	}
	if schema := e.Get("response"); schema.IsObject() {
		o.Responses = map[string]json.RawMessage{"default": json.RawMessage(schema.Raw)}
	}
	return o
}

func first(e gjson.Result, names ...string) string {
	for _, name := range names {
		if text := e.Get(name).Str; text != "" {
			return text
		}
	}
	return ""
}

// readOpenAPI reads a document.
func (d *definition) readOpenAPI(document gjson.Result) {
	if d.base == "" {
		server := document.Get("servers.0")
		d.base = strings.TrimRight(server.Get("url").Str, "/")
		server.Get("variables").ForEach(func(name, v gjson.Result) bool {
			d.base = strings.ReplaceAll(d.base, "{"+name.Str+"}", v.Get("default").String())
			return true
		})
	}
	r := &resolver{document: document, older: strings.HasPrefix(document.Get("openapi").String(), "3.0")}
	d.readPaths(r, r.operation)
}

// readPaths reads the operations of a document.
func (d *definition) readPaths(r *resolver, operation func(method, path string, item, o gjson.Result) operation) {
	r.document.Get("paths").ForEach(func(path, item gjson.Result) bool {
		item = r.follow(item)
		for _, method := range []string{"get", "put", "post", "delete", "options", "head", "patch"} {
			if o := item.Get(method); o.IsObject() {
				r.left = maxParts
				d.operations = append(d.operations, operation(strings.ToUpper(method), path.Str, item, o))
			}
		}
		return true
	})
}

// resolver reads parts of a document in which others are named.
type resolver struct {
	document gjson.Result
	// older says that it is of version 3.0, whose schemas are not those of JSON Schema.
	older bool
	// left bounds how much is copied into schemas that name each other.
	left int
}

const (
	// maxDepth is how deep schemas are followed that name each other; below anything is right.
	maxDepth = 12
	// maxParts is how many parts of schemas an operation may have.
	maxParts = 5000
)

// follow is what a reference of the same document leads to.
func (r *resolver) follow(v gjson.Result) gjson.Result {
	for range maxDepth {
		ref := v.Get("$ref")
		pointer, local := strings.CutPrefix(ref.Str, "#/")
		if !local {
			return v
		}
		v = r.document
		for part := range strings.SplitSeq(pointer, "/") {
			if plain, err := url.PathUnescape(part); err == nil {
				part = plain
			}
			v = v.Get(gjson.Escape(strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")))
		}
	}
	return v
}

func (r *resolver) operation(method, path string, item, o gjson.Result) operation {
	out := operation{ID: o.Get("operationId").Str, Method: method, Path: path, Responses: map[string]json.RawMessage{}}
	for _, list := range []gjson.Result{o.Get("parameters"), item.Get("parameters")} { // those of the operation win
		for _, p := range list.Array() {
			p = r.follow(p)
			schema := p.Get("schema")
			if !schema.Exists() {
				p.Get("content").ForEach(func(_, media gjson.Result) bool { schema = media.Get("schema"); return false })
			}
			out.addResolved(p, r.schema(schema, 0))
		}
	}
	out.complete()
	if given := r.follow(o.Get("requestBody")); given.IsObject() {
		kind, media := content(given)
		out.Body = &body{Required: given.Get("required").Bool(), Type: kind, Schema: r.schema(media.Get("schema"), 0)}
		out.Body.openFiles()
	}
	o.Get("responses").ForEach(func(status, answer gjson.Result) bool {
		if kind, media := content(r.follow(answer)); strings.Contains(kind, "json") && media.Get("schema").Exists() {
			out.Responses[strings.ToUpper(status.Str)] = r.schema(media.Get("schema"), 0)
		}
		return true
	})
	return out
}

// content is the media type of a body, JSON if it may be that.
func content(v gjson.Result) (kind string, media gjson.Result) {
	v.Get("content").ForEach(func(name, m gjson.Result) bool {
		if kind == "" || strings.Contains(name.Str, "json") && !strings.Contains(kind, "json") {
			kind, media = name.Str, m
		}
		return true
	})
	return kind, media
}

// schema is a schema with what it names written into it.
func (r *resolver) schema(v gjson.Result, depth int) json.RawMessage {
	if r.left--; !v.IsObject() || depth > maxDepth || r.left < 0 {
		if v.Type == gjson.False {
			return json.RawMessage("false")
		}
		return json.RawMessage("{}")
	}
	v = r.follow(v)
	out := map[string]json.RawMessage{}
	v.ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "$ref", "discriminator", "xml", "example", "externalDocs", "nullable":
		case "properties", "patternProperties", "$defs":
			inner := map[string]json.RawMessage{}
			value.ForEach(func(key, one gjson.Result) bool { inner[key.Str] = r.schema(one, depth+1); return true })
			out[name.Str] = values.Encode(inner)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			inner := []json.RawMessage{}
			for _, one := range value.Array() {
				inner = append(inner, r.schema(one, depth+1))
			}
			out[name.Str] = values.Encode(inner)
		case "items", "not", "additionalProperties", "contains", "propertyNames", "if", "then", "else":
			if out[name.Str] = json.RawMessage(value.Raw); value.IsObject() {
				out[name.Str] = r.schema(value, depth+1)
			}
		default:
			out[name.Str] = json.RawMessage(value.Raw)
		}
		return true
	})
	if r.older {
		modern(out, v)
	}
	return values.Encode(out)
}

// modern writes what version 3.0 says in its own words as JSON Schema does.
func modern(out map[string]json.RawMessage, v gjson.Result) {
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} { // order does not matter: each is by itself
		switch v.Get(exclusive).Type {
		case gjson.True:
			out[exclusive] = out[bound]
			delete(out, bound)
		case gjson.False:
			delete(out, exclusive)
		}
	}
	if !v.Get("nullable").Bool() {
		return
	}
	if kind := v.Get("type").Str; kind != "" {
		out["type"] = values.Encode([]string{kind, "null"})
		if list := v.Get("enum"); list.IsArray() {
			out["enum"] = values.Encode(append(values.Elements(json.RawMessage(list.Raw)), json.RawMessage("null")))
		}
		return
	}
	whole := values.Encode(maps.Clone(out))
	clear(out)
	out["anyOf"] = values.Encode([]json.RawMessage{whole, json.RawMessage(`{"type":"null"}`)})
}

// addParameter adds a parameter of a plain list, which may say its type alone.
func (o *operation) addParameter(p gjson.Result) {
	schema := json.RawMessage(`{}`)
	if given := p.Get("schema"); given.IsObject() {
		schema = json.RawMessage(given.Raw)
	} else if kind := p.Get("type").Str; kind != "" {
		schema = values.Encode(map[string]string{"type": kind})
	}
	o.addResolved(p, schema)
}

func (o *operation) addResolved(p gjson.Result, schema json.RawMessage) {
	one := parameter{Name: p.Get("name").Str, In: p.Get("in").Str, Required: p.Get("required").Bool(), Schema: schema}
	if one.In == "" {
		one.In = "query"
	}
	one.Deep = p.Get("style").Str == "deepObject"
	one.Together = p.Get("explode").Type == gjson.False
	if one.Name != "" && !slices.ContainsFunc(o.Parameters, func(was parameter) bool { return was.Name == one.Name && was.In == one.In }) {
		o.Parameters = append(o.Parameters, one)
	}
}

// complete adds the parameters that only the path names, and finds the header by which a repeated call is known again.
func (o *operation) complete() {
	for _, part := range strings.Split(o.Path, "{")[1:] {
		name, _, ok := strings.Cut(part, "}")
		i := slices.IndexFunc(o.Parameters, func(p parameter) bool { return p.In == "path" && p.Name == name })
		if ok && i < 0 {
			o.Parameters = append(o.Parameters, parameter{Name: name, In: "path", Required: true, Schema: json.RawMessage(`{}`)})
		}
	}
	for _, p := range o.Parameters {
		plain := strings.ToLower(strings.ReplaceAll(p.Name, "_", "-"))
		if p.In == "header" && o.Idempotency == "" && slices.Contains([]string{"idempotency-key", "x-idempotency-key", "idempotency-token",
			"x-idempotency-token"}, plain) {
			o.Idempotency = p.Name
		}
	}
}

// response is the schema of an answer with a status, nil if none is known.
func (o operation) response(status int) json.RawMessage {
	text := strconv.Itoa(status)
	for _, name := range []string{text, text[:1] + "XX", "DEFAULT", "default"} {
		if schema, ok := o.Responses[name]; ok {
			return schema
		}
	}
	return nil
}

// byID finds an operation by its id.
func (d *definition) byID(id string) (operation, error) {
	var names []string
	for _, o := range d.operations {
		if o.ID == id {
			return o, nil
		}
		if o.ID != "" {
			names = append(names, o.ID)
		}
	}
	return operation{}, unknown("operation_id", id, names)
}

func unknown(field, wanted string, names []string) error {
	hint := ""
	if near := fault.Nearest(wanted, names); near != "" {
		hint = "; did you mean \"" + near + "\"?"
	}
	slices.Sort(names)
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return fault.Newf(fault.InvalidConfig, "the service has no operation %q; it has %s%s", wanted, strings.Join(names, ", "),
		hint).With("path", "configurations."+field)
}

// byPath finds an operation by its method and path. The path may be that of the definition, or one with values in the place of names, which
// are fixed then.
func (d *definition) byPath(field, method, path string) (operation, map[string]string, error) {
	var names []string
	for _, o := range d.operations {
		if o.Method == method && o.Path == path {
			return o, nil, nil
		}
		names = append(names, o.Method+" "+o.Path)
	}
	for _, o := range d.operations {
		if fixed, ok := matches(o.Path, path); ok && o.Method == method {
			return o, fixed, nil
		}
	}
	return operation{}, nil, unknown(field, method+" "+path, names)
}

// matches says whether a path is one of a template, and what its names stand for.
func matches(template, path string) (map[string]string, bool) {
	wanted, given := strings.Split(template, "/"), strings.Split(path, "/")
	if len(wanted) != len(given) {
		return nil, false
	}
	fixed := map[string]string{}
	for i, part := range wanted {
		if name, ok := strings.CutPrefix(part, "{"); ok && strings.HasSuffix(name, "}") && given[i] != "" &&
			!strings.Contains(given[i], "{") {
			plain, err := url.PathUnescape(given[i])
			if err != nil {
				return nil, false
			}
			fixed[strings.TrimSuffix(name, "}")] = plain
		} else if part != given[i] {
			return nil, false
		}
	}
	return fixed, true
}
