package node

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// Configuration reads a kind's own fields. The fields of a struct are named by their json tags; further tags say what
// a Go type cannot:
//
//	doc:"…" zh:"…"          what the field means, in English and in Chinese
//	older:"condition,cond"  accepted older spellings
//	enum:"a|b|c"            the values of a text, accepted in any letter case and read as written here
//	legacy:"d|e"            further values that older files have: accepted, and not offered
//	range:"0..100"          the bounds of a number; either end may be left out
//	required:"true"         absent and null are refused
//	fixed:"true"            it is read when the workflow is compiled, so a placeholder is refused
//	whole:"true"            a number as it is written must be whole, although one that a placeholder brings need not be
//	takes:"text|list"       what may be written where the Go type takes more: text, integer, list, object, file
//	with:"mode=a|b,flag=true"  it is only looked at beside these values of other fields; a warning says so where it is not
//	checked:"plan"          the kind's plan checks what stands in it
//	open:"true"             an object that may have further names, which are left out
//	names:"profile"         it names records of the workspace: one of the [RecordSort]s
//	prompt:"true"           a model reads it: placeholders in it that nothing answers to stay as written, with a warning
//
// Fields called _ have tags that are about several fields: need:"a|b" (one of them must be set), either:"a|b" (only one of them may be), must:"a,b" (what an embedded struct
// does not require), dropped:"a,b" (names of older files that are ignored, with a warning when the workflow is saved).
//
// Null counts as absent. A camel-cased spelling means its snake_case. A type with a method Defaults() on its pointer
// sets its defaults there, before it is read; structs inside it are read by the same rules. What all kinds have in
// common (timeout, on_error and so on) is not a kind's business and is passed over; any other unknown name is refused.
// Errors are invalid_config and name the field.
func Configuration[C any](raw json.RawMessage) (C, error) {
	return configuration[C](shapeOf(reflect.TypeFor[C]()), raw)
}

// configuration is Configuration for a type whose shape is known: kinds find theirs out once.
func configuration[C any](s *shape, raw json.RawMessage) (C, error) {
	var cfg C
	root := gjson.ParseBytes(raw)
	if len(raw) == 0 || root.Type == gjson.Null {
		root = gjson.Parse("{}")
	}
	if !root.IsObject() {
		return cfg, fault.New(fault.InvalidConfig, "the configurations must be an object")
	}
	err := s.read("", root, reflect.ValueOf(&cfg).Elem())
	return cfg, err
}

// shape is what the tags of a struct say.
type shape struct {
	fields   []shapeField
	defaults bool
	needs    [][]string
	either   [][]string
	dropped  []string
	open     bool
}

// shapeField is one field, embedded structs flattened.
type shapeField struct {
	name     string
	older    []string
	enum     []string
	legacy   []string
	lo, hi   *float64
	required bool
	prompt   bool
	fixed    bool
	later    bool // the plan checks what is inside
	names    RecordSort
	with     []Condition
	meaning  Text
	// takes is what may be written, usual the default as text; empty: there is none.
	takes []string
	usual string
	typ   reflect.Type
	index []int
	inner *shape // of a struct, or of the structs of a list
}

// shapeOf reads the tags of a struct. A type that no configuration can have is a defect of its kind and panics.
func shapeOf(t reflect.Type) *shape {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("node: configuration type %s is no struct", t))
	}
	s := &shape{defaults: reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ Defaults() }]())}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || f.Name == "_" || f.Name == "" {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || !f.IsExported() {
			panic(fmt.Sprintf("node: configuration field %s.%s has no name for JSON", t, f.Name))
		}
		field := shapeField{
			name: name, required: f.Tag.Get("required") == "true", prompt: f.Tag.Get("prompt") == "true", fixed: f.Tag.Get("fixed") == "true", later: f.Tag.Get("checked") == "plan",
			meaning: text.Beside(f.Tag.Get("doc"), f.Tag.Get("zh")), with: conditions(f.Tag.Get("with")), typ: f.Type, index: f.Index, names: RecordSort(f.Tag.Get("names")),
		}
		if field.names != "" && !slices.Contains(recordSorts(), field.names) {
			panic(fmt.Sprintf("node: configuration field %s.%s names %q, which is not a sort of records", t, f.Name, field.names))
		}
		if older := f.Tag.Get("older"); older != "" {
			field.older = strings.Split(older, ",")
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			field.enum = strings.Split(enum, "|")
		}
		if legacy := f.Tag.Get("legacy"); legacy != "" {
			field.legacy = strings.Split(legacy, "|")
		}
		field.lo, field.hi = bounds(f.Tag.Get("range"))
		if inner := innerType(f.Type); inner != nil {
			field.inner = shapeOf(inner)
			field.inner.open = f.Tag.Get("open") == "true"
		}
		field.takes = takesOf(f)
		s.fields = append(s.fields, field)
	}
	s.together(t)
	s.checkConditions(t)
	s.usuals(t)
	return s
}

// shapeFor is the shape of a kind's configuration, with what the kind says of its fields besides their tags.
func shapeFor[C any](about About) *shape {
	t := reflect.TypeFor[C]()
	s := shapeOf(t)
	for name, values := range about.Values { // order does not matter: each is about a field of its own
		s.fields[s.index(t, name)].enum = slices.Clone(values)
	}
	for name, values := range about.Legacy { // order does not matter either
		s.fields[s.index(t, name)].legacy = slices.Clone(values)
	}
	for name, with := range about.Beside { // order does not matter: each is about a field of its own
		s.fields[s.index(t, name)].with = slices.Clone(with)
	}
	s.checkConditions(t)
	return s
}

// usuals notes the defaults.
func (s *shape) usuals(t reflect.Type) {
	v := reflect.New(t)
	if s.defaults {
		v.Interface().(interface{ Defaults() }).Defaults()
	}
	for i := range s.fields {
		f := &s.fields[i]
		switch value := v.Elem().FieldByIndex(f.index); {
		case value.IsZero():
		case value.Kind() == reflect.String:
			f.usual = value.String()
		case value.Kind() != reflect.Struct:
			raw, err := payload.Encode(value.Interface())
			if err != nil {
				panic(fmt.Sprintf("node: the default of %s of %s cannot be written: %v", f.name, t, err))
			}
			f.usual = string(raw)
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
func (s *shape) together(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			s.together(f.Type)
		}
		if f.Name != "_" {
			continue
		}
		if need := f.Tag.Get("need"); need != "" {
			s.needs = append(s.needs, strings.Split(need, "|"))
		}
		if either := f.Tag.Get("either"); either != "" {
			s.either = append(s.either, strings.Split(either, "|"))
		}
		if dropped := f.Tag.Get("dropped"); dropped != "" {
			s.dropped = append(s.dropped, strings.Split(dropped, ",")...)
		}
		if must := f.Tag.Get("must"); must != "" {
			for _, name := range strings.Split(must, ",") {
				s.fields[s.index(t, name)].required = true
			}
		}
	}
	for _, names := range slices.Concat(s.needs, s.either) {
		for _, name := range names {
			s.index(t, name)
		}
	}
}

// index finds a field that a tag names; a name that there is not is a defect and panics.
func (s *shape) index(t reflect.Type, name string) int {
	i := slices.IndexFunc(s.fields, func(f shapeField) bool { return f.name == name })
	if i < 0 {
		panic(fmt.Sprintf("node: a tag of %s names %q, which is not a field of it", t, name))
	}
	return i
}

// promptFields says of a key whether it is a field that models read.
func (s *shape) promptFields(key string) bool {
	i := s.field(key)
	return i >= 0 && s.fields[i].prompt
}

// promptInputs are the fields of an input type that models read.
func promptInputs(t reflect.Type) []string {
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

// Template is a text with placeholders. What a placeholder that stands alone brings may also be a number or a boolean, which is read as text.
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

// commonShape is that of the fields of every kind; the runtime reads them. read-only
var commonShape = shapeOf(reflect.TypeFor[commonConfig]())

func invalidConfig(path, format string, args ...any) error {
	return fault.Newf(fault.InvalidConfig, "%q %s", path, fmt.Sprintf(format, args...)).With("path", "configurations."+path)
}

func (s *shape) read(path string, object gjson.Result, v reflect.Value) error {
	if s.defaults {
		v.Addr().Interface().(interface{ Defaults() }).Defaults()
	}
	var err error
	set := make([]bool, len(s.fields))
	object.ForEach(func(key, value gjson.Result) bool {
		at := under(path, key.Str)
		i := s.field(key.Str)
		switch {
		case i < 0 && path == "" && commonShape.field(key.Str) >= 0:
			return true
		case i < 0 && (s.open || slices.Contains(s.dropped, key.Str)):
			return true
		case i < 0:
			err = invalidConfig(at, "is no configuration of this kind%s", s.nearest(key.Str))
		case value.Type == gjson.Null:
			return true
		case set[i]:
			err = invalidConfig(at, "sets the same as another spelling of %q; keep one of them", s.fields[i].name)
		default:
			set[i] = true
			err = s.fields[i].read(at, value, v.FieldByIndex(s.fields[i].index))
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	for i := range s.fields {
		if f := &s.fields[i]; f.required && !set[i] && v.FieldByIndex(f.index).IsZero() {
			return invalidConfig(under(path, f.name), "is required; set it to %s", f.describe(f.typ))
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

func (f *shapeField) read(at string, value gjson.Result, v reflect.Value) error {
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
		return f.read(at, value, v.Elem())
	case reflect.Slice:
		return f.readList(at, value, v)
	case reflect.Struct:
		if !value.IsObject() {
			return f.wrong(at, value, v)
		}
		return f.inner.read(at, value, v)
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		if !f.readPlain(value, v) {
			return f.wrong(at, value, v)
		}
		return nil
	}
	return fmt.Errorf("configuration field %q has the type %s, which no configuration can have", at, v.Type())
}

// wrong is the error of a value that is not what the field wants.
func (f *shapeField) wrong(at string, value gjson.Result, v reflect.Value) error {
	return invalidConfig(at, "must be %s, not %s", f.describe(v.Type()), Excerpt(value))
}

// readNamed reads into the types that this package has names for, and into those that read themselves. It is not done for others.
func (f *shapeField) readNamed(at string, value gjson.Result, v reflect.Value) (done bool, err error) {
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
func (f *shapeField) readPlain(value gjson.Result, v reflect.Value) bool {
	number := value.Type == gjson.Number && !math.IsInf(value.Num, 0) && f.holds(value.Num)
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
func (f *shapeField) readText(value gjson.Result, v reflect.Value) bool {
	if value.Type != gjson.String {
		return false
	}
	text := value.Str
	if f.enum != nil {
		known, ok := f.known(text)
		if !ok {
			return false
		}
		text = known
	}
	v.SetString(text)
	return true
}

// readList reads each item of a list.
func (f *shapeField) readList(at string, value gjson.Result, v reflect.Value) error {
	if !value.IsArray() {
		return f.wrong(at, value, v)
	}
	items := value.Array()
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if err := f.read(fmt.Sprintf("%s[%d]", at, i), item, list.Index(i)); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

// known is a value of the field's enum as it is written there, those of older files included.
func (f *shapeField) known(text string) (string, bool) {
	for _, values := range [][]string{f.enum, f.legacy} {
		if i := slices.IndexFunc(values, func(e string) bool { return strings.EqualFold(e, text) }); i >= 0 {
			return values[i], true
		}
	}
	return "", false
}

// field finds the field that a key means, -1 when there is none.
func (s *shape) field(key string) int {
	find := func(name string) int {
		return slices.IndexFunc(s.fields, func(f shapeField) bool { return f.name == name || slices.Contains(f.older, name) })
	}
	if i := find(key); i >= 0 {
		return i
	}
	return find(snake(key))
}

func (f *shapeField) holds(n float64) bool {
	return (f.lo == nil || n >= *f.lo) && (f.hi == nil || n <= *f.hi)
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
func (f *shapeField) describe(t reflect.Type) string {
	if f.enum != nil && t.Kind() != reflect.Slice {
		return `one of "` + strings.Join(f.enum, `", "`) + `"`
	}
	word := wordOf(t)
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

// Excerpt shows a value without flooding the message.
func Excerpt(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "a list"
	}
	if r := []rune(v.Raw); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return v.Raw
}

// snake turns camel case into snake case; other names stay as they are.
func snake(name string) string {
	if strings.IndexFunc(name, unicode.IsUpper) < 0 {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) {
			if i > 0 {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// nearest offers the field most like a name, or all of them when none is like it.
func (s *shape) nearest(name string) string {
	var names []string
	for _, f := range s.fields {
		names = append(names, f.name)
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
