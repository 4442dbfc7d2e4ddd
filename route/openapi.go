package route

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"tandem/api"
	"tandem/identity"
)

// SchemaPrefix stands before the name of a schema where the document refers to it.
const SchemaPrefix = "#/components/schemas/"

// newAPI makes the framework's part: reading and checking requests, writing answers, the OpenAPI document. Its pages and
// links are left out; ours need no network.
func newAPI(mux *routes, version string) huma.API {
	registry := huma.NewMapRegistry(SchemaPrefix, huma.DefaultSchemaNamer)
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Tandem", Version: version,
				Description: "Durable workflows in which programs, language models and people take turns. Every operation needs a token; refusals are problem documents (RFC 9457) with a code.",
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"bearer": {Type: "http", Scheme: "bearer", Description: "An API token, as tandem serve shows it at the first start or as POST /api/v1/users/{id}/tokens makes it."},
				},
			},
		},
		Formats:       map[string]huma.Format{"application/json": jsonFormat(), "json": jsonFormat()},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{retell},

		RejectUnknownQueryParameters: true,
	}
	return humago.New(mux, config)
}

// DeclareProblem documents that an operation may be refused with a status.
func (s *Router) DeclareProblem(op *huma.Operation, status int) {
	key := strconv.Itoa(status)
	if op.Responses[key] != nil {
		return
	}
	schema := s.Document().Components.Schemas.Schema(reflect.TypeFor[api.Fault](), true, "")
	op.Responses[key] = &huma.Response{Description: http.StatusText(status),
		Content: map[string]*huma.MediaType{ProblemType: {Schema: schema}}}
}

// document is the OpenAPI document as it is served, with its pages. It is made once, when somebody wants to see it: that takes
// longer than all the rest, and most servers of a command line are never asked.
type document struct{ json, yaml, page, front []byte }

// RegisterDocumentation registers the document and the page that shows it, and a front page where the server has no web UI.
func (s *Router) RegisterDocumentation(front bool) {
	schemas := s.Document().Components.Schemas.Map()
	for _, name := range []string{"ErrorModel", "ErrorDetail"} { // the framework's own, which is never sent
		delete(schemas, name)
	}
	s.spec = sync.OnceValues(s.document)
	show := func(send func(w http.ResponseWriter, r *http.Request, d *document)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			d, err := s.spec()
			if err != nil {
				s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, err))
				return
			}
			send(w, r, d)
		}
	}
	s.Public("GET /openapi.json", show(func(w http.ResponseWriter, r *http.Request, d *document) {
		s.Send(w, r, "application/openapi+json", d.json)
	}))
	s.Public("GET /openapi.yaml", show(func(w http.ResponseWriter, r *http.Request, d *document) {
		s.Send(w, r, "application/openapi+yaml", d.yaml)
	}))
	operations := show(func(w http.ResponseWriter, r *http.Request, d *document) {
		s.html(w, r, bytes.ReplaceAll(d.page, []byte(template.HTMLEscapeString(SampleAddress)),
			[]byte(template.HTMLEscapeString(addressOf(r)))))
	})
	s.Public("GET /openapi", operations)
	if front { // the web UI has the documents of the product at /docs
		s.Public("GET /docs", operations)
		s.Public("GET /{$}", show(func(w http.ResponseWriter, r *http.Request, d *document) { s.html(w, r, d.front) }))
	}
}

// document writes the document, once everything is registered.
func (s *Router) document() (*document, error) {
	d := &document{}
	var err error
	if d.json, err = json.MarshalIndent(s.Document(), "", "  "); err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	d.json = append(d.json, '\n')
	if d.yaml, err = s.Document().YAML(); err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	if d.page, err = s.page(docsPage); err != nil {
		return nil, err
	}
	d.front, err = s.page(frontPage)
	return d, err
}

// html sends a page that has nothing but its own style.
func (s *Router) html(w http.ResponseWriter, r *http.Request, page []byte) {
	sum := sha256.Sum256([]byte(pageStyle))
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	s.Send(w, r, "text/html; charset=utf-8", page)
}

// The parts of the documentation as the page shows them.
type (
	docsGroup struct {
		Name       string
		Operations []docsOperation
	}
	docsOperation struct {
		ID, Method, Path, Summary string
		Description               []string
		Parameters                []docsField
		Body, Answer              docsShape
		Refusals                  string
		Curl                      string
	}
	docsField struct{ Name, In, Type, Text string }
	// docsShape is a body: a named shape, and what the status is.
	docsShape struct {
		Status, Text, Name string
	}
	docsSchema struct {
		Name   string
		Text   string
		Fields []docsField
	}
)

// page renders a template from the document.
func (s *Router) page(text string) ([]byte, error) {
	t, err := template.New("page").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the template of a page: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Style": template.CSS(pageStyle), "Version": s.o.Version, "Groups": s.docsGroups(), "Schemas": s.docsSchemas(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a page: %w", err)
	}
	return out.Bytes(), nil
}

func (s *Router) docsGroups() []docsGroup {
	doc := s.Document()
	var groups []docsGroup
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op == nil {
				continue
			}
			i := slices.IndexFunc(groups, func(g docsGroup) bool { return g.Name == op.Tags[0] })
			if i < 0 {
				i = len(groups)
				groups = append(groups, docsGroup{Name: op.Tags[0]})
			}
			groups[i].Operations = append(groups[i].Operations, docsOf(op))
		}
	}
	slices.SortFunc(groups, func(a, b docsGroup) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

func docsOf(op *huma.Operation) docsOperation {
	d := docsOperation{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary,
		Description: strings.Split(op.Description, "\n\n")}
	for _, p := range op.Parameters {
		d.Parameters = append(d.Parameters, docsField{Name: p.Name, In: p.In, Type: typeOf(p.Schema),
			Text: textOf(p.Schema, p.Description)})
	}
	if op.RequestBody != nil {
		d.Body = shapeOf(op.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		if status < "4" && d.Answer.Status == "" {
			d.Answer = shapeOf(op.Responses[status].Content)
			d.Answer.Status = status
		} else if status >= "4" {
			d.Refusals = strings.TrimPrefix(d.Refusals+", "+status, ", ")
		}
	}
	d.Curl = curlOf(op)
	return d
}

// SampleAddress stands for the address of the server in the page, until somebody asks for it under one.
const SampleAddress = "http://server.of.this.page"

// addressOf is the address under which somebody has asked.
func addressOf(r *http.Request) string {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// curlOf is a call to try.
func curlOf(op *huma.Operation) string {
	line := "curl -H \"Authorization: Bearer $TANDEM_TOKEN\""
	if op.Method != http.MethodGet {
		line += " -X " + op.Method
	}
	if op.RequestBody != nil {
		line += " -H 'Content-Type: " + slices.Sorted(maps.Keys(op.RequestBody.Content))[0] + "' -d @body"
	}
	return line + " '" + SampleAddress + op.Path + "'"
}

func shapeOf(content map[string]*huma.MediaType) docsShape {
	names := slices.Sorted(maps.Keys(content))
	if len(names) == 0 {
		return docsShape{}
	}
	shape := docsShape{Text: names[0]}
	if schema := content[names[0]].Schema; schema != nil {
		if ref, ok := strings.CutPrefix(schema.Ref, SchemaPrefix); ok {
			shape.Name = ref
		}
	}
	return shape
}

func (s *Router) docsSchemas() []docsSchema {
	schemas := s.Document().Components.Schemas.Map()
	var list []docsSchema
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		d := docsSchema{Name: name, Text: schemas[name].Description}
		for _, field := range slices.Sorted(maps.Keys(schemas[name].Properties)) {
			p := schemas[name].Properties[field]
			kind := typeOf(p)
			if !slices.Contains(schemas[name].Required, field) {
				kind += ", optional"
			}
			d.Fields = append(d.Fields, docsField{Name: field, Type: kind, Text: textOf(p, p.Description)})
		}
		list = append(list, d)
	}
	return list
}

func typeOf(s *huma.Schema) string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, SchemaPrefix)
	case s.Type == huma.TypeArray:
		return "list of " + typeOf(s.Items)
	case s.Type == huma.TypeObject:
		if of, ok := s.AdditionalProperties.(*huma.Schema); ok {
			return "object of " + typeOf(of)
		}
		return "object"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

func textOf(s *huma.Schema, text string) string {
	if s == nil || len(s.Enum) == 0 {
		return text
	}
	var words []string
	for _, e := range s.Enum {
		words = append(words, fmt.Sprint(e))
	}
	return strings.TrimSpace(text + " One of " + strings.Join(words, ", ") + ".")
}

const pageStyle = `body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:62rem;padding:1rem;color:#1b1f24;background:#fff}
h1{font-size:1.5rem}h2{margin-top:2.5rem;border-bottom:1px solid #d0d7de}h3{font-size:1rem;margin:1.5rem 0 .25rem}
code,pre{font:13px/1.45 ui-monospace,monospace;background:#f3f5f7;border-radius:4px}code{padding:.1em .3em}pre{padding:.6rem;overflow:auto}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;border-bottom:1px solid #eaeef2}
.method{display:inline-block;min-width:4.5em;font-weight:700}p{margin:.25rem 0}nav a{margin-right:1rem}
@media (prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}code,pre{background:#1c2128}td,th{border-color:#30363d}a{color:#58a6ff}}`

const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Tandem</title><style>{{.Style}}</style></head><body>
`

const frontPage = pageHead + `<h1>Tandem</h1>
<p>This is the API of a Tandem instance, version {{.Version}}: durable workflows in which programs, language models and people take turns.</p>
<p>This binary was built without the web UI: <code>make build</code> puts it in where npm is installed. What there is:</p>
<ul><li><a href="/openapi">/openapi</a>: every operation, with an example</li><li><a href="/openapi.json">/openapi.json</a>, <a href="/openapi.yaml">/openapi.yaml</a>: the same for programs</li>
<li><code>/healthz</code>, <code>/readyz</code>: is it alive, can it work</li></ul>
<p>Every operation needs a token: <code>Authorization: Bearer TOKEN</code>.</p>
</body></html>
`

const docsPage = pageHead + `<h1>Tandem API {{.Version}}</h1>
<p>Every operation needs a token: <code>Authorization: Bearer TOKEN</code>. What is refused is answered with a problem document, see <a href="#schema-Fault">Fault</a>. For programs: <a href="/openapi.json">/openapi.json</a>.</p>
<nav>{{range .Groups}}<a href="#{{.Name}}">{{.Name}}</a> {{end}}<a href="#schemas">shapes</a></nav>
{{range .Groups}}<h2 id="{{.Name}}">{{.Name}}</h2>
{{range .Operations}}<h3 id="op-{{.ID}}"><span class="method">{{.Method}}</span> <code>{{.Path}}</code></h3>
<p>{{.Summary}}</p>{{range .Description}}
<p>{{.}}</p>{{end}}
{{if .Parameters}}<table>{{range .Parameters}}<tr><td><code>{{.Name}}</code></td><td>{{.In}}, {{.Type}}</td><td>{{.Text}}</td></tr>{{end}}</table>
{{end}}{{with .Body}}{{if .Text}}<p>Takes {{.Text}}{{if .Name}}: <a href="#schema-{{.Name}}">{{.Name}}</a>{{end}}.</p>
{{end}}{{end}}{{with .Answer}}<p>Answers {{.Status}}{{if .Text}} with {{.Text}}{{end}}{{if .Name}}: <a href="#schema-{{.Name}}">{{.Name}}</a>{{end}}.</p>
{{end}}{{if .Refusals}}<p>Refused with {{.Refusals}}.</p>
{{end}}<pre>{{.Curl}}</pre>
{{end}}{{end}}<h2 id="schemas">Shapes</h2>
{{range .Schemas}}<h3 id="schema-{{.Name}}">{{.Name}}</h3>{{if .Text}}<p>{{.Text}}</p>{{end}}
<table>{{range .Fields}}<tr><td><code>{{.Name}}</code></td><td>{{.Type}}</td><td>{{.Text}}</td></tr>{{end}}</table>
{{end}}</body></html>
`
