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

	"tandem/text"
	"tandem/workflow"
)

// What may be written in a field, as messages and the tag "takes" have it.
const (
	takesText    = "text"
	takesExpr    = "expression"
	takesSQL     = "sql"
	takesCode    = "code"
	takesInteger = "integer"
	takesNumber  = "number"
	takesFlag    = "flag"
	takesObject  = "object"
	takesList    = "list"
	takesFile    = "file"
	takesAny     = "any"
)

// takesOf is what may be written in a field: what its tag says, else what its Go type can only mean.
func takesOf(f reflect.StructField) []string {
	if takes := f.Tag.Get("takes"); takes != "" {
		return strings.Split(takes, "|")
	}
	takes := takesOfType(f.Type)
	if f.Tag.Get("whole") == "true" {
		return []string{takesInteger}
	}
	return takes
}

func takesOfType(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]():
		return []string{takesAny}
	case reflect.TypeFor[Object]():
		return []string{takesObject}
	case reflect.TypeFor[Expr]():
		return []string{takesExpr}
	case reflect.TypeFor[SQL]():
		return []string{takesSQL}
	case reflect.TypeFor[Source]():
		return []string{takesCode}
	case reflect.TypeFor[Scalar]():
		return []string{takesText, takesInteger}
	}
	if innerType(t) != nil && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return []string{takesObject} // an Of
	}
	switch t.Kind() {
	case reflect.Pointer:
		return takesOfType(t.Elem())
	case reflect.String:
		return []string{takesText}
	case reflect.Bool:
		return []string{takesFlag}
	case reflect.Int, reflect.Int64:
		return []string{takesInteger}
	case reflect.Float64:
		return []string{takesNumber}
	case reflect.Slice:
		return []string{takesList}
	case reflect.Struct:
		return []string{takesObject}
	}
	return []string{takesAny}
}

// readObject checks one object and returns its members by name.
func (p *Planning) readObject(path string, object gjson.Result, s *shape) (values map[string]gjson.Result, paths map[string]string) {
	values, paths = map[string]gjson.Result{}, map[string]string{}
	spelled := map[string]string{}
	object.ForEach(func(key, value gjson.Result) bool {
		at := Under(path, key.Str)
		i := s.field(key.Str)
		if i < 0 {
			p.unknown(at, key.Str, value, s, path == "configurations")
			return true
		}
		f := &s.fields[i]
		if before, twice := spelled[f.name]; twice {
			p.Invalid(at, "sets the same as %q; keep one of them", before)
			return true
		}
		spelled[f.name] = key.Str
		if value.Type == gjson.Null {
			return true
		}
		values[f.name], paths[f.name] = value, at
		p.checkField(at, f, value)
		return true
	})
	for _, names := range s.either {
		written := slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := values[n]; return !ok })
		if len(written) > 1 {
			p.Invalid(paths[written[1]], "says the same as %q in another way; keep one of them", written[0])
		}
	}
	// A template brings values of its own, so what is missing here may come from there.
	if _, templated := values["template_id"]; templated {
		return values, paths
	}
	for i := range s.fields {
		f := &s.fields[i]
		if _, set := values[f.name]; f.required && f.usual == "" && !set {
			p.Invalid(Under(path, f.name), "is required; set it to %s", f.words())
		}
	}
	for _, names := range s.needs {
		if !slices.ContainsFunc(names, func(n string) bool { _, ok := values[n]; return ok }) {
			p.Refuse(workflow.ProblemConfig, path, "one of %s is required", strings.Join(quoteAll(names), ", "))
		}
	}
	return values, paths
}

func (p *Planning) unknown(path, key string, value gjson.Result, s *shape, top bool) {
	switch {
	case slices.Contains(s.dropped, key):
		p.Warn(ProblemDropped, path, "%q is no longer used and is ignored; remove it", key)
	case top && secretName(key):
		if text := strings.TrimSpace(value.String()); value.Type == gjson.Null || text == "" || text == ToBeChosen {
			p.Warn(ProblemCredentialMissing, path, "%q is no longer part of a workflow; remove it, create a credential and set credential_id before deploying", key)
			return
		}
		p.Refuse(ProblemInlineSecret, path, "%q holds a secret, which a workflow must not; create a credential with this value, set credential_id to its name and remove %q", key, key)
	case s.open && !top:
		p.Warn(ProblemDropped, path, "%q is not known here and is ignored; remove it%s", key, p.Suggest(key, s.names()))
	case !s.open:
		p.Refuse(ProblemUnknownConfiguration, path, "%s has no configuration %q%s", p.node.Kind(), key, p.Suggest(key, s.names()))
	}
}

// names lists what a writer may call the fields, for suggestions.
func (s *shape) names() []string {
	names := make([]string, len(s.fields))
	for i := range s.fields {
		names[i] = s.fields[i].name
	}
	return names
}

// secretName recognises the names under which older files carry secrets.
func secretName(key string) bool {
	key = snake(key)
	if slices.Contains([]string{"token", "secret", "password", "api_key", "credentials", "server_config", "connection_string", "database_url"}, key) {
		return true
	}
	return slices.ContainsFunc([]string{"_token", "_secret", "_api_key", "_credentials", "_password"}, func(s string) bool { return strings.HasSuffix(key, s) })
}

// checkField checks one value. A text with a placeholder is unknown until it runs and passes, except where the compiler needs the value itself.
func (p *Planning) checkField(path string, f *shapeField, value gjson.Result) {
	if dynamic(value) && !slices.Contains(f.takes, takesCode) {
		if f.fixed {
			p.Invalid(path, "is read when the workflow is saved, so it cannot be a placeholder; write %s", f.words())
		}
		p.collect(path, f, value)
		return
	}
	if !slices.ContainsFunc(f.takes, func(t string) bool { return fits(t, value) }) {
		p.Invalid(path, "must be %s, not %s", f.words(), Excerpt(value))
		return
	}
	if f.enum != nil && !value.IsObject() {
		p.checkEnum(path, f, value)
	}
	if n := value.Num; value.Type == gjson.Number && !f.holds(n) {
		p.Invalid(path, "must be %s, not %s", f.words(), Excerpt(value))
	}
	switch {
	case f.later:
	case f.inner != nil:
		p.checkInner(path, f, value)
	case f.enum == nil && value.IsArray():
		p.checkItems(path, f, value)
	}
	p.collect(path, f, value)
}

func (p *Planning) checkEnum(path string, f *shapeField, value gjson.Result) {
	items := []gjson.Result{value}
	if value.IsArray() {
		items = value.Array()
	}
	for i, item := range items {
		at := path
		if value.IsArray() {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if _, ok := f.known(item.String()); !ok && !dynamic(item) {
			p.Invalid(at, "must be one of %s, not %s%s", strings.Join(quoteAll(f.enum), ", "), Excerpt(item), p.Suggest(item.String(), f.enum))
		}
	}
}

// checkInner checks the object, or each object of the list, against the field's inner shape. Other items of a list pass where the field takes
// anything (an option may be a plain text).
func (p *Planning) checkInner(path string, f *shapeField, value gjson.Result) {
	switch {
	case value.IsObject():
		p.readObject(path, value, f.inner)
	case value.IsArray():
		for i, item := range value.Array() {
			at := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case item.IsObject():
				p.readObject(at, item, f.inner)
			case !slices.Contains(f.takes, takesAny) && !dynamic(item):
				p.Invalid(at, "must be an object, not %s", Excerpt(item))
			}
		}
	}
}

// checkItems checks the items of a list of texts, numbers or objects.
func (p *Planning) checkItems(path string, f *shapeField, value gjson.Result) {
	if f.typ.Kind() != reflect.Slice || !slices.Equal(f.takes, []string{takesList}) {
		return
	}
	item := shapeField{takes: takesOfType(f.typ.Elem())}
	if f.typ.Elem() == reflect.TypeFor[Scalar]() {
		item.takes = []string{takesText, takesNumber, takesFlag}
	}
	for i, one := range value.Array() {
		if !dynamic(one) && !slices.ContainsFunc(item.takes, func(t string) bool { return fits(t, one) }) {
			p.Invalid(fmt.Sprintf("%s[%d]", path, i), "must be %s, not %s", item.words(), Excerpt(one))
		}
	}
}

// Inside visits what is written in an object field, by the names of its fields; what is not known is left out.
func (p *Planning) Inside(name string, visit func(field, key string, value gjson.Result)) {
	f := &p.shape.fields[p.shape.field(name)]
	p.values[name].ForEach(func(key, value gjson.Result) bool {
		if i := f.inner.field(key.Str); i >= 0 {
			visit(f.inner.fields[i].name, key.Str, value)
		}
		return true
	})
}

// Written says whether a name is that of a field of the kind which is written.
func (p *Planning) Written(name string) bool { _, ok := p.values[name]; return ok }

// Only narrows the fields of an object down, where another field decides which of them it has.
type Only struct {
	Required, Optional []string
	// OneOf are fields of which at least one must be set.
	OneOf []string
}

// CheckItems checks the objects of a list as objects of type T with only some of its fields. It is for a field with the tag checked:"plan",
// which is not checked otherwise.
func CheckItems[T any](p *Planning, name string, only Only) {
	all := shapeOf(reflect.TypeFor[T]())
	inner := &shape{}
	for _, f := range all.fields {
		if f.required = slices.Contains(only.Required, f.name); f.required || slices.Contains(only.Optional, f.name) {
			inner.fields = append(inner.fields, f)
		}
	}
	if len(only.OneOf) > 0 {
		inner.needs = [][]string{only.OneOf}
	}
	p.checkInner(p.At(name), &shapeField{takes: []string{takesList}, inner: inner}, p.values[name])
}

// collect notes expressions, SQL and code for the plan.
func (p *Planning) collect(path string, f *shapeField, value gjson.Result) {
	if value.Type != gjson.String {
		return
	}
	switch {
	case slices.Contains(f.takes, takesExpr):
		p.AddExpression(path, value.Str)
	case slices.Contains(f.takes, takesCode):
		p.Shielded = append(p.Shielded, path)
	case slices.Contains(f.takes, takesSQL):
		p.Bound = append(p.Bound, path)
	}
}

// AddExpression notes an expression that validation parses.
func (p *Planning) AddExpression(path, source string) {
	p.Expressions = append(p.Expressions, workflow.Expression{Path: path, Source: source})
}

// Dynamic says that a value is a text with a placeholder, so that it is known only when the node runs.
func Dynamic(v gjson.Result) bool { return dynamic(v) }

func dynamic(v gjson.Result) bool {
	return v.Type == gjson.String && (strings.Contains(v.Str, "{{") || strings.Contains(v.Str, "${"))
}

func fits(takes string, v gjson.Result) bool {
	switch takes {
	case takesAny:
		return true
	case takesText, takesSQL, takesCode:
		return v.Type == gjson.String
	case takesExpr:
		return v.Type == gjson.String || v.Type == gjson.Number || v.IsBool()
	case takesInteger:
		return v.Type == gjson.Number && v.Num == math.Trunc(v.Num)
	case takesNumber:
		return v.Type == gjson.Number
	case takesFlag:
		return v.IsBool()
	case takesObject:
		return v.IsObject()
	case takesList:
		return v.IsArray()
	case takesFile:
		return v.Type == gjson.String || v.IsObject()
	}
	return false
}

// words say what a field takes.
func (f *shapeField) words() text.Text {
	if f.enum != nil && !slices.Contains(f.takes, takesList) {
		return text.Of("one of %s", strings.Join(quoteAll(f.enum), ", "))
	}
	var words []text.Text
	for _, t := range f.takes {
		if one := takesWords(t); !slices.ContainsFunc(words, one.Equal) {
			words = append(words, one)
		}
	}
	return f.inRange(either(words))
}

// takesWords say what may be written, by one of the words of the tag "takes".
func takesWords(takes string) text.Text {
	switch takes {
	case takesText:
		return text.Of("a text")
	case takesSQL:
		return text.Of("an SQL text")
	case takesCode:
		return text.Of("a text of code")
	case takesExpr:
		return text.Of("an expression")
	case takesInteger:
		return text.Of("a whole number")
	case takesNumber:
		return text.Of("a number")
	case takesFlag:
		return text.Of("true or false")
	case takesObject:
		return text.Of("an object")
	case takesList:
		return text.Of("a list")
	case takesFile:
		return text.Of("a file")
	}
	return text.Of("a value")
}

// inRange adds the range of a number to what a field takes.
func (f *shapeField) inRange(words text.Text) text.Text {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch {
	case f.lo != nil && f.hi != nil:
		return text.Of("%s from %s to %s", words, number(*f.lo), number(*f.hi))
	case f.lo != nil:
		return text.Of("%s of at least %s", words, number(*f.lo))
	case f.hi != nil:
		return text.Of("%s of at most %s", words, number(*f.hi))
	}
	return words
}

// either lists what there is a choice of, texts or plain names.
func either[T any](list []T) text.Text {
	var words text.Text
	for i, one := range list {
		if i == 0 {
			words = text.As("%s").With(one)
			continue
		}
		words = text.Of("%s or %s", words, one)
	}
	return words
}

func quoteAll(names []string) []string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return quoted
}

// Under appends a key to a path; a key that is not a plain word is quoted.
func Under(path, key string) string {
	plain := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if plain {
		return path + "." + key
	}
	return path + "[" + strconv.Quote(key) + "]"
}
