package shape

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

// SchemaOfConfig is the JSON Schema of a configuration, with what the tags say.
func SchemaOfConfig[C any](kind string, s *Shape) SchemaSource {
	return sync.OnceValue(func() json.RawMessage {
		schema := inferred(kind, reflect.TypeFor[C]())
		s.refine(kind, schema, reflect.New(reflect.TypeFor[C]()).Elem())
		return written(kind, schema)
	})
}

// SchemaOfType is the JSON Schema of a type of input or output, nil when it can be anything.
func SchemaOfType[T any](kind string) SchemaSource {
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
func (s *Shape) refine(kind string, schema *jsonschema.Schema, v reflect.Value) {
	if s.defaults {
		v.Addr().Interface().(interface{ Defaults() }).Defaults()
	}
	schema.Required = nil
	if len(s.Needs) > 0 {
		schema.Extra = map[string]any{SchemaNeed: s.Needs}
	}
	if s.Open {
		schema.AdditionalProperties = nil
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		p := f.property(schema)
		if f.Required {
			schema.Required = append(schema.Required, f.Name)
		}
		f.refine(p)
		if value := v.FieldByIndex(f.Index); !value.IsZero() && value.Kind() != reflect.Struct {
			raw, err := payload.Encode(value.Interface())
			if err != nil {
				panic(fmt.Sprintf("node: kind %q: default of %q: %v", kind, f.Name, err))
			}
			p.Default = raw
		}
		if f.Inner == nil {
			continue
		}
		if p.Items != nil {
			if p = p.Items; slices.Contains(f.Takes, TakesAny) {
				p.Type, p.Types = "", nil // an object, or something else
			}
		}
		f.Inner.refine(kind, p, reflect.New(innerType(f.Type)).Elem())
	}
}

// refine adds what the tags of a field say.
func (f *Field) refine(p *jsonschema.Schema) {
	extra := map[string]any{SchemaTakes: f.Takes}
	if !f.Meaning.IsZero() {
		p.Description = f.Meaning.In(text.English)
		extra[SchemaZh] = f.Meaning.In(text.Chinese)
		if title := shortTitle(f.Meaning.Words(text.Chinese)); title != "" {
			extra[SchemaTitleZh] = title
		}
	}
	if f.Fixed {
		extra[SchemaFixed] = true
	}
	if len(f.Older) > 0 {
		extra[SchemaOlderNames] = f.Older
	}
	if f.Names != "" {
		extra[SchemaNames] = f.Names
	}
	if len(f.Legacy) > 0 {
		extra[SchemaOlderValues] = f.Legacy
	}
	if len(f.With) > 0 {
		with := map[string][]string{}
		for _, c := range f.With {
			with[c.Field] = c.Values
		}
		extra[SchemaWith] = with
	}
	p.Extra = extra
	allowed := p
	if p.Items != nil { // of a list, its items are among them
		allowed = p.Items
	}
	for _, values := range [][]string{f.Enum, f.Legacy} {
		for _, e := range values {
			allowed.Enum = append(allowed.Enum, e)
		}
	}
	p.Minimum, p.Maximum = f.Min, f.Max
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

// written are the JSON types of what may be written in a field, nil where the Go type says it all.
func (f *Field) written() []string {
	var types []string
	for _, t := range f.Takes {
		json, ok := map[string][]string{
			TakesText: {"string"}, TakesInteger: {"integer"}, TakesList: {"array"}, TakesObject: {"object"},
			TakesFile: {"string", "object"},
		}[t]
		if !ok {
			return nil
		}
		types = append(types, json...)
	}
	return types
}
