package service

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
)

// readSwagger reads a document of version 2, in which bodies are parameters and the types of others stand beside their names.
func (d *definition) readSwagger(document gjson.Result) {
	if host := document.Get("host").Str; d.base == "" && host != "" {
		scheme := "https"
		if list := document.Get("schemes").Array(); len(list) > 0 && !strings.Contains(document.Get("schemes").Raw, `"https"`) {
			scheme = list[0].Str
		}
		d.base = strings.TrimRight(scheme+"://"+host+document.Get("basePath").Str, "/")
	}
	r := &resolver{document: document, older: true}
	d.readPaths(r, r.swaggerOperation)
}

func (r *resolver) swaggerOperation(method, path string, item, o gjson.Result) operation {
	out := operation{ID: o.Get("operationId").Str, Method: method, Path: path, Responses: map[string]json.RawMessage{}}
	var fields []gjson.Result
	for _, list := range []gjson.Result{o.Get("parameters"), item.Get("parameters")} { // those of the operation win
		for _, p := range list.Array() {
			switch p = r.follow(p); p.Get("in").Str {
			case "body":
				if out.Body == nil {
					out.Body = &body{Required: p.Get("required").Bool(), Type: "application/json", Schema: r.schema(p.Get("schema"), 0)}
				}
			case "formData":
				fields = append(fields, p)
			default:
				known := len(out.Parameters)
				if out.addResolved(p, valueSchema(r.schema(p, 0))); len(out.Parameters) == known {
					continue
				}
				last, format := &out.Parameters[known], p.Get("collectionFormat").Str
				last.Together = format != "multi"
				last.Separator = map[string]string{"ssv": " ", "tsv": "\t", "pipes": "|"}[format]
			}
		}
	}
	out.complete()
	if len(fields) > 0 {
		out.Body = r.form(fields, r.consumes(o))
	}
	o.Get("responses").ForEach(func(status, answer gjson.Result) bool {
		if schema := r.follow(answer).Get("schema"); schema.Exists() && schema.Get("type").Str != "file" {
			out.Responses[strings.ToUpper(status.Str)] = r.schema(schema, 0)
		}
		return true
	})
	return out
}

// consumes are the media types that an operation takes.
func (r *resolver) consumes(o gjson.Result) string {
	if own := o.Get("consumes"); own.Exists() {
		return own.Raw
	}
	return r.document.Get("consumes").Raw
}

// form is the body of fields of a form: in parts if one of them is a file or the operation wants it so.
func (r *resolver) form(fields []gjson.Result, consumes string) *body {
	out := &body{Type: "application/x-www-form-urlencoded"}
	properties, required := []values.Member{}, []string{}
	if strings.Contains(consumes, "multipart/form-data") && !strings.Contains(consumes, "urlencoded") {
		out.Type = "multipart/form-data"
	}
	for _, f := range fields {
		schema := valueSchema(r.schema(f, 0))
		if f.Get("type").Str == "file" {
			out.Type, schema = "multipart/form-data", json.RawMessage("{}")
		}
		properties = append(properties, values.Member{Key: f.Get("name").Str, Value: schema})
		if f.Get("required").Bool() {
			required = append(required, f.Get("name").Str)
		}
	}
	out.Required = len(required) > 0
	out.Schema = values.Object([]values.Member{
		{Key: "type", Value: json.RawMessage(`"object"`)}, {Key: "properties", Value: values.Object(properties)}, {Key: "required", Value: values.Encode(required)},
	})
	return out
}

// valueSchema is what a parameter says of its value, without what it says of itself.
func valueSchema(schema json.RawMessage) json.RawMessage {
	var kept []values.Member
	for _, m := range values.Members(schema) {
		switch m.Key {
		case "name", "in", "required", "description", "collectionFormat", "allowEmptyValue":
		default:
			kept = append(kept, m)
		}
	}
	return values.Object(kept)
}
