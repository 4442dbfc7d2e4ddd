// Package shape reads what people write in the configuration of a node: what the tags of a Go struct say of its fields, values of JSON as
// such a struct, and the JSON Schema of it. Package node says which tags there are.
package shape

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// Shape is what the tags of a struct say.
type Shape struct {
	Fields []Field
	// Needs are groups of fields, one of each of which must be set; of Either only one of each may be.
	Needs, Either [][]string
	// Dropped are names of older files that are ignored.
	Dropped []string
	// Open says that further names are left out instead of refused.
	Open bool

	defaults bool
	// further is where a struct has its [Settings]; nil: it has none.
	further []int
}

// Field is one field, embedded structs flattened.
type Field struct {
	Name string
	// Older are accepted older spellings of the name; Enum are the values of a text, and Legacy those that only older files have.
	Older, Enum, Legacy []string
	// Min and Max are the bounds of a number; nil: none.
	Min, Max                *float64
	Required, Prompt, Fixed bool
	// filled says that an empty text is refused although the field may be left out; blank that one means something although there is a
	// default.
	filled, blank bool
	// Later says that the plan checks what is inside.
	Later bool
	// Names says which records it names, With are the values of other fields beside which it is looked at.
	Names   RecordSort
	With    []Condition
	Meaning text.Text
	// Takes is what may be written, Usual the default as text; empty: there is none.
	Takes []string
	Usual string
	Type  reflect.Type
	Index []int
	// setting says that it is one of the [Settings], which are at the index.
	setting bool
	// Inner is the shape of a struct, or of the structs of a list.
	Inner *Shape
}

// New reads the tags of a struct. A type that no configuration can have is a defect of its kind and panics.
func New(t reflect.Type) *Shape {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("node: configuration type %s is not a struct", t))
	}
	s := &Shape{defaults: reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ Defaults() }]())}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || f.Name == "_" || f.Name == "" {
			continue
		}
		if f.Type == reflect.TypeFor[Settings]() {
			s.further = f.Index
			continue
		}
		tag := readTag(f.Tag)
		name, _, _ := strings.Cut(tag.get("json"), ",")
		if name == "" || !f.IsExported() {
			panic(fmt.Sprintf("node: configuration field %s.%s has no name for JSON", t, f.Name))
		}
		field := Field{
			Name: name, Required: tag.get("required") == "true", filled: tag.get("filled") == "true",
			blank: tag.get("blank") == "true", Prompt: tag.get("prompt") == "true", Fixed: tag.get("fixed") == "true",
			Later:   tag.get("checked") == "plan",
			Meaning: text.Beside(tag.get("doc"), tag.get(text.Chinese)), With: conditions(tag.get("with")),
			Type: f.Type, Index: f.Index,
			Names: RecordSort(tag.get("names")),
		}
		if field.Names != "" && !slices.Contains(recordSorts(), field.Names) {
			panic(fmt.Sprintf("node: configuration field %s.%s names %q, which is not a sort of records", t, f.Name, field.Names))
		}
		if older := tag.get("older"); older != "" {
			field.Older = strings.Split(older, ",")
		}
		if enum := tag.get("enum"); enum != "" {
			field.Enum = strings.Split(enum, "|")
		}
		if legacy := tag.get("legacy"); legacy != "" {
			field.Legacy = strings.Split(legacy, "|")
		}
		field.Min, field.Max = bounds(tag.get("range"))
		if inner := innerType(f.Type); inner != nil {
			field.Inner = New(inner)
			field.Inner.Open = tag.get("open") == "true"
		}
		field.Takes = takesOf(f.Type, tag)
		s.Fields = append(s.Fields, field)
	}
	s.together(t)
	s.CheckConditions(t)
	s.usuals(t)
	return s
}

// usuals notes the defaults.
func (s *Shape) usuals(t reflect.Type) {
	v := reflect.New(t)
	if s.defaults {
		v.Interface().(interface{ Defaults() }).Defaults()
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		switch value := v.Elem().FieldByIndex(f.Index); {
		case value.IsZero():
		case value.Kind() == reflect.String:
			f.Usual = value.String()
		case value.Kind() != reflect.Struct:
			raw, err := payload.Encode(value.Interface())
			if err != nil {
				panic(fmt.Sprintf("node: the default of %s of %s cannot be written: %v", f.Name, t, err))
			}
			f.Usual = string(raw)
		}
	}
}

// innerType is the struct that a field has as an object, or as the objects of a list; nil: there is none.
func innerType(t reflect.Type) reflect.Type {
	for {
		if of, ok := reflect.Zero(t).Interface().(interface{ of() reflect.Type }); ok {
			return of.of()
		}
		if t.Kind() != reflect.Pointer && t.Kind() != reflect.Slice {
			break
		}
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return t
	}
	return nil
}

// together reads the tags that are about several fields, those of embedded structs first.
func (s *Shape) together(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			s.together(f.Type)
		}
		if f.Name != "_" {
			continue
		}
		if need := f.Tag.Get("need"); need != "" {
			s.Needs = append(s.Needs, strings.Split(need, "|"))
		}
		if either := f.Tag.Get("either"); either != "" {
			s.Either = append(s.Either, strings.Split(either, "|"))
		}
		if f.Tag.Get("empty") == "absent" {
			for i := range s.Fields {
				s.Fields[i].blank = true
			}
		}
		if dropped := f.Tag.Get("dropped"); dropped != "" {
			s.Dropped = append(s.Dropped, strings.Split(dropped, ",")...)
		}
		if must := f.Tag.Get("must"); must != "" {
			for _, name := range strings.Split(must, ",") {
				s.Fields[s.Index(t, name)].Required = true
			}
		}
	}
	for _, names := range slices.Concat(s.Needs, s.Either) {
		for _, name := range names {
			s.Index(t, name)
		}
	}
}

// Index finds a field that a tag names; a name that does not exist is a defect and panics.
func (s *Shape) Index(t reflect.Type, name string) int {
	i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("node: a tag of %s names %q, which is not a field of it", t, name))
	}
	return i
}

// At finds a field by its path: channels.type is that of the objects in a list. One that is not there is a defect of the kind, and
// panics.
func (s *Shape) At(t reflect.Type, path string) *Field {
	name, rest, deeper := strings.Cut(path, ".")
	f := &s.Fields[s.Index(t, name)]
	if !deeper {
		return f
	}
	if f.Inner == nil {
		panic(fmt.Sprintf("node: %q of %s has no fields of its own", name, t))
	}
	return f.Inner.At(innerType(f.Type), rest)
}

// Prompts says of a key whether it is a field that models read.
func (s *Shape) Prompts(key string) bool {
	i := s.Find(key)
	return i >= 0 && s.Fields[i].Prompt
}

// PromptInputs are the fields of an input type that models read.
func PromptInputs(t reflect.Type) []string {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && f.Tag.Get("prompt") == "true" {
			names = append(names, name)
		}
	}
	return names
}

// Scalar is a text that may also be written as a number or a boolean: an expression such as true, a template whose
// placeholder stands alone.
type Scalar string

// Words are a text that people or models read: whatever value stands there, such as that of a placeholder alone, is read as text.
type Words string

// Template is a text with placeholders. What a placeholder that stands alone brings may also be a number or a boolean, which is read as
// text.
type Template string

// Expr is an expression, which the kind evaluates with [Call.Eval]. It may also be written as a number or a boolean.
type Expr string

// SQL is a statement. Placeholders in it become values beside it ([Call.Bind]); nothing is ever spliced into it.
type SQL string

// Source is the source of a program. It is never searched for placeholders.
type Source string

// Of is a value that is kept as it was written and read by the kind itself, later. T says what an object there may have.
type Of[T any] json.RawMessage

func (Of[T]) of() reflect.Type { return reflect.TypeFor[T]() }

// MarshalJSON writes the value as it is, null when there is none.
func (v Of[T]) MarshalJSON() ([]byte, error) { return Object(v).MarshalJSON() }

// Object is a JSON object whose fields keep the order in which they were written.
type Object json.RawMessage

// MarshalJSON writes the object as it is, null when there is none.
func (o Object) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("null"), nil
	}
	return o, nil
}

// Each visits the fields in order.
func (o Object) Each(visit func(key string, value json.RawMessage) error) error {
	var err error
	gjson.ParseBytes(o).ForEach(func(key, value gjson.Result) bool {
		err = visit(key.Str, json.RawMessage(value.Raw))
		return err == nil
	})
	return err
}

func invalidConfig(path, format string, args ...any) error {
	return fault.Newf(fault.InvalidConfig, "%q %s", path, fmt.Sprintf(format, args...)).With("path", "configurations."+path)
}

// Read reads an object into a struct of the shape. Names for which passed is true are not the struct's and are passed over; it may be nil.
func (s *Shape) Read(object gjson.Result, v reflect.Value, passed func(key string) bool) error {
	return s.readObject("", object, v, passed)
}

func (s *Shape) readObject(path string, object gjson.Result, v reflect.Value, passed func(key string) bool) error {
	if s.defaults {
		v.Addr().Interface().(interface{ Defaults() }).Defaults()
	}
	var err error
	set := make([]bool, len(s.Fields))
	object.ForEach(func(key, value gjson.Result) bool {
		at := under(path, key.Str)
		i := s.Find(key.Str)
		switch {
		case i < 0 && passed != nil && passed(key.Str):
			return true
		case i < 0 && (s.Open || slices.Contains(s.Dropped, key.Str)):
			return true
		case i < 0:
			err = invalidConfig(at, "is not a configuration of this kind%s", s.nearest(key.Str))
		case value.Type == gjson.Null:
			return true
		case set[i]:
			err = invalidConfig(at, "sets the same as another spelling of %q; keep one of them", s.Fields[i].Name)
		default:
			set[i] = true
			err = s.Fields[i].readInto(at, value, v)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	for i := range s.Fields {
		if f := &s.Fields[i]; f.Required && !set[i] && v.FieldByIndex(f.Index).IsZero() {
			return invalidConfig(under(path, f.Name), "is required; set it to %s", f.describe(f.Type))
		}
	}
	return nil
}

func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (f *Field) readValue(at string, value gjson.Result, v reflect.Value) error {
	if _, ok := v.Interface().(interface{ of() reflect.Type }); ok {
		v.SetBytes([]byte(value.Raw))
		return nil
	}
	if done, err := f.readNamed(at, value, v); done {
		return err
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return f.readValue(at, value, v.Elem())
	case reflect.Slice:
		return f.readList(at, value, v)
	case reflect.Struct:
		if !value.IsObject() {
			return f.wrong(at, value, v)
		}
		return f.Inner.readObject(at, value, v, nil)
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		if !f.readPlain(value, v) {
			return f.wrong(at, value, v)
		}
		return nil
	}
	return fmt.Errorf("configuration field %q has the type %s, which no configuration can have", at, v.Type())
}

// wrong is the error of a value that is not what the field wants.
func (f *Field) wrong(at string, value gjson.Result, v reflect.Value) error {
	return invalidConfig(at, "must be %s, not %s", f.describe(v.Type()), Excerpt(value))
}

// readNamed reads into the types that this package has names for, and into those that read themselves. It is not done for others.
func (f *Field) readNamed(at string, value gjson.Result, v reflect.Value) (done bool, err error) {
	switch target := v.Addr().Interface().(type) {
	case *json.RawMessage:
		*target = json.RawMessage(value.Raw)
	case *Object:
		if !value.IsObject() {
			return true, f.wrong(at, value, v)
		}
		*target = Object(value.Raw)
	case *Scalar, *Template, *Expr:
		if value.Type != gjson.String && value.Type != gjson.Number && !value.IsBool() {
			return true, f.wrong(at, value, v)
		}
		v.SetString(value.Raw)
		if value.Type == gjson.String {
			v.SetString(value.Str)
		}
	case *Words:
		*target = Words(payload.Text([]byte(value.Raw)))
	case *any:
		return true, payload.Read([]byte(value.Raw), target)
	case json.Unmarshaler:
		if err := target.UnmarshalJSON([]byte(value.Raw)); err != nil {
			return true, invalidConfig(at, "cannot be read: %v", err)
		}
	default:
		return false, nil
	}
	return true, nil
}

// readPlain reads a text, a boolean or a number. It is false for what is not one that the field can have.
func (f *Field) readPlain(value gjson.Result, v reflect.Value) bool {
	number := value.Type == gjson.Number && !math.IsInf(value.Num, 0) && f.Holds(value.Num)
	switch v.Kind() {
	case reflect.String:
		return f.readText(value, v)
	case reflect.Bool:
		if value.IsBool() {
			v.SetBool(value.Bool())
		}
		return value.IsBool()
	case reflect.Float64:
		if number {
			v.SetFloat(value.Num)
		}
		return number
	}
	whole := number && value.Num == math.Trunc(value.Num) && math.Abs(value.Num) <= 1<<53
	if whole {
		v.SetInt(int64(value.Num))
	}
	return whole
}

// readText reads a text, which is one of the known ones where there are such.
func (f *Field) readText(value gjson.Result, v reflect.Value) bool {
	if value.Type != gjson.String {
		return false
	}
	text := value.Str
	if f.Enum != nil {
		known, ok := f.Known(text)
		if !ok {
			return false
		}
		text = known
	}
	v.SetString(text)
	return true
}

// readList reads each item of a list.
func (f *Field) readList(at string, value gjson.Result, v reflect.Value) error {
	if !value.IsArray() {
		return f.wrong(at, value, v)
	}
	items := value.Array()
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if err := f.readValue(fmt.Sprintf("%s[%d]", at, i), item, list.Index(i)); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

// Known is a value of the field's enum as it is written there, those of older files included.
func (f *Field) Known(text string) (string, bool) {
	for _, values := range [][]string{f.Enum, f.Legacy} {
		if i := slices.IndexFunc(values, func(e string) bool { return strings.EqualFold(e, text) }); i >= 0 {
			return values[i], true
		}
	}
	return "", false
}

// Has says that a key means one of the fields.
func (s *Shape) Has(key string) bool { return s.Find(key) >= 0 }

// Find finds the field that a key means, -1 when there is none.
func (s *Shape) Find(key string) int {
	find := func(name string) int {
		return slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name || slices.Contains(f.Older, name) })
	}
	if i := find(key); i >= 0 {
		return i
	}
	return find(Snake(key))
}

// Holds says that a number is within the bounds of the field.
func (f *Field) Holds(n float64) bool {
	return (f.Min == nil || n >= *f.Min) && (f.Max == nil || n <= *f.Max)
}

func bounds(text string) (lo, hi *float64) {
	from, to, _ := strings.Cut(text, "..")
	bound := func(s string) *float64 {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil // left out
		}
		return &n
	}
	return bound(from), bound(to)
}

// describe says in words what a value of type t takes in this field.
func (f *Field) describe(t reflect.Type) string {
	if f.Enum != nil && t.Kind() != reflect.Slice {
		return `one of "` + strings.Join(f.Enum, `", "`) + `"`
	}
	word := WordOf(t).String()
	switch t {
	case reflect.TypeFor[Scalar](), reflect.TypeFor[Words](), reflect.TypeFor[Template](), reflect.TypeFor[Expr]():
		word = "a text"
	case reflect.TypeFor[Object]():
		word = "an object"
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]():
		word = "a value"
	}
	return f.inRange(text.As(word)).String()
}

// nearest offers the field most like a name, or all of them when none is like it.
func (s *Shape) nearest(name string) string {
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	best := fault.Nearest(name, names)
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(names) == 0:
		return "; it has none of its own"
	}
	return "; it has " + strings.Join(names, ", ")
}

// NamesOf lists what a writer may call the fields, for suggestions.
func (s *Shape) NamesOf() []string {
	names := make([]string, len(s.Fields))
	for i := range s.Fields {
		names[i] = s.Fields[i].Name
	}
	return names
}

// ReadKnown reads what is known of a configuration before it runs.
func (s *Shape) ReadKnown(values map[string]gjson.Result, v reflect.Value) {
	if s.defaults {
		v.Addr().Interface().(interface{ Defaults() }).Defaults()
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		value, set := values[f.Name]
		if !set {
			continue
		}
		to := v.FieldByIndex(f.Index)
		usual := reflect.New(to.Type()).Elem()
		if f.Fixed {
			usual.Set(to) // a fixed field whose value was refused counts as not set, so that the plan stays usable
		}
		if Dynamic(value) && !slices.Contains(f.Takes, TakesCode) || f.readValue(f.Name, value, to) != nil {
			to.Set(usual)
		}
	}
}

// With are the fields of a shape and those of another one behind them.
func (s *Shape) With(other *Shape) *Shape {
	if other == nil {
		return s
	}
	whole := *other
	whole.Fields = slices.Concat(s.Fields, other.Fields)
	return &whole
}
