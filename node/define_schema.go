package node

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"tandem/payload"
	"tandem/text"
)

// SchemaSource makes a JSON Schema when somebody asks for it, and keeps it: most kinds of a program are never looked at, and
// making all of them took longer than starting. Nil means anything.
type SchemaSource func() json.RawMessage

// JSON is the schema; nil means anything.
func (s SchemaSource) JSON() json.RawMessage {
	if s == nil {
		return nil
	}
	return s()
}

// SchemaText is a schema that is written already.
func SchemaText(raw string) SchemaSource {
	return func() json.RawMessage { return json.RawMessage(raw) }
}

// What the schema of a configuration says besides what JSON Schema has words for.
const (
	SchemaZh          = "x-description-zh"
	SchemaTitleZh     = "x-title-zh"     // a short name of the field in Chinese, where its meaning begins with one
	SchemaTakes       = "x-takes"        // what may be written: text, expression, sql, code, integer, number, flag, object, list, file or any
	SchemaFixed       = "x-fixed"        // true: the value is read when the workflow is saved, so that it cannot be a placeholder
	SchemaOlderNames  = "x-older-names"  // accepted spellings of the name
	SchemaOlderValues = "x-older-values" // those of the enum that older files have
	SchemaWith        = "x-with"         // the values of other fields beside which it is looked at
	SchemaNames       = "x-names"        // the sort of records that it names: profile, tool_server and so on
	SchemaNeed        = "x-need"         // of an object: groups of fields, one of each of which must be set
)

// configSchema is the JSON Schema of a configuration, with what the tags say.
func configSchema[C any](kind string, s *shape) SchemaSource {
	return sync.OnceValue(func() json.RawMessage {
		schema := inferred(kind, reflect.TypeFor[C]())
		s.refine(kind, schema, reflect.New(reflect.TypeFor[C]()).Elem())
		return written(kind, schema)
	})
}

// ConfigurationSchema is the JSON Schema of what [Configuration] reads into a type.
func ConfigurationSchema[C any]() SchemaSource {
	t := reflect.TypeFor[C]()
	return configSchema[C](t.String(), shapeOf(t))
}

// SchemaOf is the JSON Schema of a type of input or output, nil when it can be anything.
func SchemaOf[T any](kind string) SchemaSource {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[json.RawMessage]() || t == reflect.TypeFor[struct{}]() || t == reflect.TypeFor[any]() {
		return nil
	}
	return sync.OnceValue(func() json.RawMessage {
		schema := inferred(kind, t)
		schema.AdditionalProperties = nil // a kind reads what it knows of its input
		return written(kind, schema)
	})
}

// inferred is the schema of a Go type. A type that has none is a defect of the kind and panics.
func inferred(kind string, t reflect.Type) *jsonschema.Schema {
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[json.Number]():     {Type: "number"},
		reflect.TypeFor[Object]():          {Type: "object"},
		reflect.TypeFor[Words]():           {Type: "string"},
		reflect.TypeFor[Template]():        {Type: "string"},
		reflect.TypeFor[Expr]():            {Types: []string{"string", "number", "boolean"}},
		reflect.TypeFor[Scalar]():          {Types: []string{"string", "number", "boolean"}},
	}
	keptTypes(t, types)
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		panic(fmt.Sprintf("node: kind %q: schema of %s: %v", kind, t, err))
	}
	return schema
}

// keptTypes finds the types [Of] something in a struct: they are schemas of what they are of.
func keptTypes(t reflect.Type, types map[reflect.Type]*jsonschema.Schema) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if _, ok := types[t]; ok {
			return
		}
		if of, ok := reflect.Zero(t).Interface().(interface{ of() reflect.Type }); ok {
			types[t] = &jsonschema.Schema{}
			inner, err := jsonschema.ForType(of.of(), &jsonschema.ForOptions{TypeSchemas: types})
			if err != nil {
				panic(fmt.Sprintf("node: schema of %s: %v", of.of(), err))
			}
			types[t] = inner
			return
		}
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if f.IsExported() {
				keptTypes(f.Type, types)
			}
		}
	}
}

func written(kind string, schema *jsonschema.Schema) json.RawMessage {
	raw, err := payload.Encode(schema)
	if err != nil {
		panic(fmt.Sprintf("node: kind %q: write schema: %v", kind, err))
	}
	return raw
}

// refine adds to an inferred schema what the tags and the defaults say. A field is required only if its tag says so.
func (s *shape) refine(kind string, schema *jsonschema.Schema, v reflect.Value) {
	if s.defaults {
		v.Addr().Interface().(interface{ Defaults() }).Defaults()
	}
	schema.Required = nil
	if len(s.needs) > 0 {
		schema.Extra = map[string]any{SchemaNeed: s.needs}
	}
	if s.open {
		schema.AdditionalProperties = nil
	}
	for i := range s.fields {
		f := &s.fields[i]
		p := schema.Properties[f.name]
		if f.required {
			schema.Required = append(schema.Required, f.name)
		}
		f.refine(p)
		if value := v.FieldByIndex(f.index); !value.IsZero() && value.Kind() != reflect.Struct {
			raw, err := payload.Encode(value.Interface())
			if err != nil {
				panic(fmt.Sprintf("node: kind %q: default of %q: %v", kind, f.name, err))
			}
			p.Default = raw
		}
		if f.inner == nil {
			continue
		}
		if p.Items != nil {
			if p = p.Items; slices.Contains(f.takes, takesAny) {
				p.Type, p.Types = "", nil // an object, or something else
			}
		}
		f.inner.refine(kind, p, reflect.New(innerType(f.typ)).Elem())
	}
}

// refine adds what the tags of a field say.
func (f *shapeField) refine(p *jsonschema.Schema) {
	extra := map[string]any{SchemaTakes: f.takes}
	if !f.meaning.IsZero() {
		p.Description = f.meaning.In(text.English)
		extra[SchemaZh] = f.meaning.In("zh")
		if title := shortTitle(f.meaning.Words("zh")); title != "" {
			extra[SchemaTitleZh] = title
		}
	}
	if f.fixed {
		extra[SchemaFixed] = true
	}
	if len(f.older) > 0 {
		extra[SchemaOlderNames] = f.older
	}
	if f.names != "" {
		extra[SchemaNames] = f.names
	}
	if len(f.legacy) > 0 {
		extra[SchemaOlderValues] = f.legacy
	}
	if len(f.with) > 0 {
		with := map[string][]string{}
		for _, c := range f.with {
			with[c.Field] = c.Values
		}
		extra[SchemaWith] = with
	}
	p.Extra = extra
	allowed := p
	if p.Items != nil { // of a list, its items are among them
		allowed = p.Items
	}
	for _, values := range [][]string{f.enum, f.legacy} {
		for _, e := range values {
			allowed.Enum = append(allowed.Enum, e)
		}
	}
	p.Minimum, p.Maximum = f.lo, f.hi
	if types := f.written(); types != nil && p.Items == nil && len(p.Properties) == 0 {
		p.Type, p.Types = "", types
		if len(types) == 1 {
			p.Type, p.Types = types[0], nil
		}
	}
}

// shortTitle is the beginning of a meaning in Chinese, up to its first mark, if that is short enough to stand before a field.
func shortTitle(meaning string) string {
	const (
		most = 14
		ends = ",;:(\uff0c\u3002\uff1a\uff1b\uff08" // also as they are written in Chinese
	)
	title := meaning
	if end := strings.IndexAny(meaning, ends); end >= 0 {
		title = meaning[:end]
	}
	if title = strings.TrimSpace(title); utf8.RuneCountInString(title) > most {
		return ""
	}
	return title
}

// CommonSchema is the JSON Schema of the configuration fields that every kind has.
func CommonSchema() json.RawMessage { return commonSchema.JSON() }

// commonSchema is made when it is asked for first. read-only
var commonSchema = ConfigurationSchema[commonConfig]()

// written are the JSON types of what may be written in a field, nil where the Go type says it all.
func (f *shapeField) written() []string {
	var types []string
	for _, t := range f.takes {
		json, ok := map[string][]string{
			takesText: {"string"}, takesInteger: {"integer"}, takesList: {"array"}, takesObject: {"object"}, takesFile: {"string", "object"},
		}[t]
		if !ok {
			return nil
		}
		types = append(types, json...)
	}
	return types
}
