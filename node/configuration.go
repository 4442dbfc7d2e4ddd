package node

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/node/shape"
)

// Configuration reads a kind's own fields. The fields of a struct are named by their json tags; further tags say what
// a Go type cannot:
//
//	doc:"…" zh:"…"          what the field means, in English and in Chinese
//	older:"condition,cond"  accepted older spellings
//	enum:"a|b|c"            the values of a text, accepted in any letter case and read as written here
//	legacy:"d|e"            further values that older files have: accepted, and not offered
//	range:"0..100"          the bounds of a number; either end may be left out
//	required:"true"         absent, null and the empty text are refused
//	filled:"true"           it may be left out, and the empty text is refused; so it is for every text with a default
//	blank:"true"            the empty text means something besides the default
//	fixed:"true"            it is read when the workflow is compiled, so a placeholder is refused
//	whole:"true"            a number as it is written must be whole, although one that a placeholder brings need not be
//	takes:"text|list"       what may be written where the Go type takes more: text, integer, list, object, file
//	with:"mode=a|b,flag=true"  it is only looked at beside these values of other fields; a warning says so where it is not
//	checked:"plan"          the kind's plan checks what stands in it
//	open:"true"             an object that may have further names, which are left out
//	names:"profile"         it names records of the workspace: one of the [RecordSort]s
//	prompt:"true"           a model reads it: placeholders in it that nothing answers to stay as written, with a warning
//
// Fields called _ have tags that are about several fields: need:"a|b" (one of them must be set), either:"a|b" (only one of them may be),
// must:"a,b" (what an embedded struct does not require), dropped:"a,b" (names of older files that are ignored, with a warning when the
// workflow is saved), empty:"absent" (empty texts count as not written).
//
// Null counts as absent. A camel-cased spelling means its snake_case. A type with a method Defaults() on its pointer
// sets its defaults there, before it is read; structs inside it are read by the same rules. What all kinds have in
// common (timeout, on_error and so on) is not a kind's business and is passed over; any other unknown name is refused.
// Errors are invalid_config and name the field.
func Configuration[C any](raw json.RawMessage) (C, error) {
	return configuration[C](shape.New(reflect.TypeFor[C]()), raw)
}

// configuration is Configuration for a type whose shape is known, so that kinds compute it once.
func configuration[C any](s *shape.Shape, raw json.RawMessage) (C, error) {
	var cfg C
	root := gjson.ParseBytes(raw)
	if len(raw) == 0 || root.Type == gjson.Null {
		root = gjson.Parse("{}")
	}
	if !root.IsObject() {
		return cfg, fault.New(fault.InvalidConfig, "the configurations must be an object")
	}
	err := s.Read(root, reflect.ValueOf(&cfg).Elem(), commonShape.Has)
	return cfg, err
}

// The types of configuration fields whose values are more than Go types can say. Package shape has what each of them means.
type (
	Scalar    = shape.Scalar
	Words     = shape.Words
	Template  = shape.Template
	Expr      = shape.Expr
	SQL       = shape.SQL
	Source    = shape.Source
	Object    = shape.Object
	Of[T any] = shape.Of[T]

	Condition    = shape.Condition
	Settings     = shape.Settings
	Setting      = shape.Setting
	RecordSort   = shape.RecordSort
	Mention      = shape.Mention
	SchemaSource = shape.SchemaSource
)

// shapeFor is the shape of a kind's configuration, with what the kind says about its fields besides their tags.
func shapeFor[C any](about About) *shape.Shape {
	t := reflect.TypeFor[C]()
	s := shape.New(t)
	for name, settings := range about.Settings { // order does not matter: each is about a field of its own
		s.Extend(t, name, settings)
	}
	for name, values := range about.Values { // order does not matter: each is about a field of its own
		s.At(t, name).Enum = slices.Clone(values)
	}
	for name, values := range about.Legacy { // order does not matter either
		s.Fields[s.Index(t, name)].Legacy = slices.Clone(values)
	}
	for name, with := range about.Beside { // order does not matter: each is about a field of its own
		s.Fields[s.Index(t, name)].With = slices.Clone(with)
	}
	s.CheckConditions(t)
	return s
}

// commonShape is the shape of the fields that every kind has; the runtime reads them. read-only
var commonShape = shape.New(reflect.TypeFor[commonConfig]())

// Mentions finds the records of a sort that a configuration of the kind names, alone or in lists, except those that are known only when the
// node runs.
func (k Kind) Mentions(config json.RawMessage, sort RecordSort) []Mention {
	root := gjson.ParseBytes(config)
	return append(k.config.Mentions(root, "", sort), commonShape.Mentions(root, "", sort)...)
}

// ConfigurationSchema is the JSON Schema of what [Configuration] reads into a type.
func ConfigurationSchema[C any]() SchemaSource {
	t := reflect.TypeFor[C]()
	return shape.SchemaOfConfig[C](t.String(), shape.New(t))
}

// SchemaOf is the JSON Schema of a type of input or output, nil when it can be anything.
func SchemaOf[T any](kind string) SchemaSource { return shape.SchemaOfType[T](kind) }

// CommonSchema is the JSON Schema of the configuration fields that every kind has.
func CommonSchema() json.RawMessage { return commonSchema.JSON() }

// commonSchema is made when it is asked for first. read-only
var commonSchema = ConfigurationSchema[commonConfig]()

// Dynamic says whether a value is a text with a placeholder, so that it is known only when the node runs.
func Dynamic(v gjson.Result) bool { return shape.Dynamic(v) }

// Excerpt returns a value, shortened for a message.
func Excerpt(v gjson.Result) string { return shape.Excerpt(v) }
