package node

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
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

// schemaOf is the JSON Schema of a type of input or output, nil when it can be anything.
func schemaOf[T any](kind string) SchemaSource {
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
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[json.Number]():     {Type: "number"},
		reflect.TypeFor[Object]():          {Type: "object"},
		reflect.TypeFor[Words]():           {Type: "string"},
		reflect.TypeFor[Scalar]():          {Types: []string{"string", "number", "boolean"}},
	}})
	if err != nil {
		panic(fmt.Sprintf("node: kind %q: schema of %s: %v", kind, t, err))
	}
	return schema
}

func written(kind string, schema *jsonschema.Schema) json.RawMessage {
	raw, err := Marshal(schema)
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
	for _, f := range s.fields {
		p := schema.Properties[f.name]
		if f.required {
			schema.Required = append(schema.Required, f.name)
		}
		allowed := p
		if p.Items != nil { // of a list, its items are among them
			allowed = p.Items
		}
		for _, e := range f.enum {
			allowed.Enum = append(allowed.Enum, e)
		}
		p.Minimum, p.Maximum = f.lo, f.hi
		if f.inner == nil {
			if value := v.FieldByIndex(f.index); !value.IsZero() {
				raw, err := Marshal(value.Interface())
				if err != nil {
					panic(fmt.Sprintf("node: kind %q: default of %q: %v", kind, f.name, err))
				}
				p.Default = raw
			}
			continue
		}
		inner := f.typ
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			if inner.Kind() == reflect.Slice {
				p = p.Items
			}
			inner = inner.Elem()
		}
		f.inner.refine(kind, p, reflect.New(inner).Elem())
	}
}
