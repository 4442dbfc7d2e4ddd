package shape

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"tandem/text"
)

// What may be written in a field, as messages and the tag "takes" have it.
const (
	TakesText    = "text"
	TakesExpr    = "expression"
	TakesSQL     = "sql"
	TakesCode    = "code"
	TakesInteger = "integer"
	TakesNumber  = "number"
	TakesFlag    = "flag"
	TakesObject  = "object"
	TakesList    = "list"
	TakesFile    = "file"
	TakesAny     = "any"
)

// takesOf is what may be written in a field: what its tag says, else what its Go type can only mean.
func takesOf(t reflect.Type, tag tag) []string {
	if takes := tag.get("takes"); takes != "" {
		return strings.Split(takes, "|")
	}
	if tag.get("whole") == "true" {
		return []string{TakesInteger}
	}
	return TakesOfType(t)
}

// TakesOfType is what a Go type can only mean.
func TakesOfType(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]():
		return []string{TakesAny}
	case reflect.TypeFor[Object]():
		return []string{TakesObject}
	case reflect.TypeFor[Expr]():
		return []string{TakesExpr}
	case reflect.TypeFor[SQL]():
		return []string{TakesSQL}
	case reflect.TypeFor[Source]():
		return []string{TakesCode}
	case reflect.TypeFor[Scalar]():
		return []string{TakesText, TakesInteger}
	}
	if innerType(t) != nil && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return []string{TakesObject} // an Of
	}
	switch t.Kind() {
	case reflect.Pointer:
		return TakesOfType(t.Elem())
	case reflect.String:
		return []string{TakesText}
	case reflect.Bool:
		return []string{TakesFlag}
	case reflect.Int, reflect.Int64:
		return []string{TakesInteger}
	case reflect.Float64:
		return []string{TakesNumber}
	case reflect.Slice:
		return []string{TakesList}
	case reflect.Struct:
		return []string{TakesObject}
	}
	return []string{TakesAny}
}

// Dynamic says that a value is a text with a placeholder, so that it is known only when the node runs.
func Dynamic(v gjson.Result) bool {
	return v.Type == gjson.String && (strings.Contains(v.Str, "{{") || strings.Contains(v.Str, "${"))
}

// Fits says that a value is what one of the words of the tag "takes" allows.
func Fits(takes string, v gjson.Result) bool {
	switch takes {
	case TakesAny:
		return true
	case TakesText, TakesSQL, TakesCode:
		return v.Type == gjson.String
	case TakesExpr:
		return v.Type == gjson.String || v.Type == gjson.Number || v.IsBool()
	case TakesInteger:
		return v.Type == gjson.Number && v.Num == math.Trunc(v.Num)
	case TakesNumber:
		return v.Type == gjson.Number
	case TakesFlag:
		return v.IsBool()
	case TakesObject:
		return v.IsObject()
	case TakesList:
		return v.IsArray()
	case TakesFile:
		return v.Type == gjson.String || v.IsObject()
	}
	return false
}

// Empty says that a value is a text with nothing in it.
func Empty(v gjson.Result) bool { return v.Type == gjson.String && strings.TrimSpace(v.Str) == "" }

// Lacks says that a value is an empty text where the field must have one: it is required, or has a default that the empty text would take
// the place of.
func (f *Field) Lacks(v gjson.Result) bool {
	return Empty(v) && f.Type.Kind() == reflect.String && f.Enum == nil && !f.blank && (f.Required || f.filled || f.Usual != "")
}

// Words say what a field takes.
func (f *Field) Words() text.Text {
	if f.Enum != nil && !slices.Contains(f.Takes, TakesList) {
		return text.Of("one of %s", strings.Join(QuoteAll(f.Enum), ", "))
	}
	var words []text.Text
	for _, t := range f.Takes {
		if one := takesWords(t); !slices.ContainsFunc(words, one.Equal) {
			words = append(words, one)
		}
	}
	return f.inRange(Either(words))
}

// takesWords say what may be written, by one of the words of the tag "takes".
func takesWords(takes string) text.Text {
	switch takes {
	case TakesText:
		return text.Of("a text")
	case TakesSQL:
		return text.Of("an SQL text")
	case TakesCode:
		return text.Of("a text of code")
	case TakesExpr:
		return text.Of("an expression")
	case TakesInteger:
		return text.Of("a whole number")
	case TakesNumber:
		return text.Of("a number")
	case TakesFlag:
		return text.Of("true or false")
	case TakesObject:
		return text.Of("an object")
	case TakesList:
		return text.Of("a list")
	case TakesFile:
		return text.Of("a file")
	}
	return text.Of("a value")
}

// inRange adds the range of a number to what a field takes.
func (f *Field) inRange(words text.Text) text.Text {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch {
	case f.Min != nil && f.Max != nil:
		return text.Of("%s from %s to %s", words, number(*f.Min), number(*f.Max))
	case f.Min != nil:
		return text.Of("%s of at least %s", words, number(*f.Min))
	case f.Max != nil:
		return text.Of("%s of at most %s", words, number(*f.Max))
	}
	return words
}

// Either lists what there is a choice of, texts or plain names.
func Either[T any](list []T) text.Text {
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

// QuoteAll puts each name into quotation marks.
func QuoteAll(names []string) []string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return quoted
}

// WordOf says in words what a Go type takes.
func WordOf(t reflect.Type) text.Text {
	switch t.Kind() {
	case reflect.String:
		return text.Of("a text")
	case reflect.Bool:
		return text.Of("true or false")
	case reflect.Slice, reflect.Array:
		return text.Of("a list")
	case reflect.Map, reflect.Struct:
		return text.Of("an object")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return text.Of("a whole number")
	case reflect.Float32, reflect.Float64:
		return text.Of("a number")
	}
	return text.Of("another value")
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

// Snake turns camel case into snake case; other names stay as they are.
func Snake(name string) string {
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
