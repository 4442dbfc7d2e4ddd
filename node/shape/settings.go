package shape

import (
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/tidwall/gjson"

	"tandem/text"
)

// Settings are further texts of an object, by their names. Which there are is said by parts of the program that its Go type does not know.
type Settings map[string]string

// Setting is one of them.
type Setting struct {
	Name    string
	Meaning text.Text
}

// Extend adds settings to the objects of a field, behind the fields that they have. An object that has no place for them, or a field of the
// same name, is a defect of the kind, and panics.
func (s *Shape) Extend(t reflect.Type, path string, settings []Setting) {
	inner := s.At(t, path).Inner
	if inner == nil || inner.further == nil {
		panic(fmt.Sprintf("node: %q of %s has no place for settings", path, t))
	}
	for _, one := range settings {
		if inner.Has(one.Name) {
			panic(fmt.Sprintf("node: %q of %s has the field %q already", path, t, one.Name))
		}
		inner.Fields = append(inner.Fields, Field{
			Name: one.Name, Meaning: one.Meaning, Takes: []string{TakesText}, Type: reflect.TypeFor[string](),
			Index: inner.further, setting: true,
		})
	}
}

// readInto reads a value into the field of an object.
func (f *Field) readInto(at string, value gjson.Result, object reflect.Value) error {
	to := object.FieldByIndex(f.Index)
	if !f.setting {
		return f.readValue(at, value, to)
	}
	one := reflect.New(f.Type).Elem()
	if err := f.readValue(at, value, one); err != nil {
		return err
	}
	if to.IsNil() {
		to.Set(reflect.MakeMap(to.Type()))
	}
	to.SetMapIndex(reflect.ValueOf(f.Name), one)
	return nil
}

// property is the schema of the field in that of its object. A Go type does not tell of settings, so they are added.
func (f *Field) property(object *jsonschema.Schema) *jsonschema.Schema {
	if f.setting {
		object.Properties[f.Name] = &jsonschema.Schema{Type: "string"}
		object.PropertyOrder = append(object.PropertyOrder, f.Name)
	}
	return object.Properties[f.Name]
}
