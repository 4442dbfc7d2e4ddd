package node

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"tandem/node/shape"
	"tandem/workflow"
)

// readObject checks one object and returns its members by name.
func (p *Planning) readObject(path string, object gjson.Result, s *shape.Shape) (values map[string]gjson.Result, paths map[string]string) {
	values, paths = map[string]gjson.Result{}, map[string]string{}
	spelled := map[string]string{}
	object.ForEach(func(key, value gjson.Result) bool {
		at := Under(path, key.Str)
		i := s.Find(key.Str)
		if i < 0 {
			p.unknown(at, key.Str, value, s, path == "configurations")
			return true
		}
		f := &s.Fields[i]
		if before, twice := spelled[f.Name]; twice {
			p.Invalid(at, "sets the same as %q; keep one of them", before)
			return true
		}
		spelled[f.Name] = key.Str
		if value.Type == gjson.Null {
			return true
		}
		values[f.Name], paths[f.Name] = value, at
		if f.Lacks(value) {
			p.Saving(func() { p.lacks(at, f) })
			return true
		}
		p.checkField(at, f, value)
		return true
	})
	for _, names := range s.Either {
		written := slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := values[n]; return !ok })
		if len(written) > 1 {
			p.Invalid(paths[written[1]], "says the same as %q in another way; keep one of them", written[0])
		}
	}
	// A template brings values of its own, so what is missing here may come from there.
	if _, templated := values["template_id"]; templated {
		return values, paths
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if _, set := values[f.Name]; f.Required && f.Usual == "" && !set {
			p.Invalid(Under(path, f.Name), "is required; set it to %s", f.Words())
		}
	}
	for _, names := range s.Needs {
		missing := func() {
			p.Refuse(workflow.ProblemConfig, path, "one of %s is required", strings.Join(shape.QuoteAll(names), ", "))
		}
		written := slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := values[n]; return !ok })
		if len(written) == 0 {
			missing()
		} else if !slices.ContainsFunc(written, func(n string) bool { return !shape.Empty(values[n]) }) {
			p.Saving(missing)
		}
	}
	return values, paths
}

// lacks reports a text that is empty.
func (p *Planning) lacks(path string, f *shape.Field) {
	if f.Required && f.Usual == "" {
		p.Invalid(path, "must not be empty; set it to %s", f.Words())
		return
	}
	p.Invalid(path, "must not be empty; leave it out, or set it to %s", f.Words())
}

func (p *Planning) unknown(path, key string, value gjson.Result, s *shape.Shape, top bool) {
	switch {
	case slices.Contains(s.Dropped, key):
		p.Warn(ProblemDropped, path, "%q is no longer used and is ignored; remove it", key)
	case top && secretName(key):
		if text := strings.TrimSpace(value.String()); value.Type == gjson.Null || text == "" || text == ToBeChosen {
			p.Warn(ProblemCredentialMissing, path, "%q is no longer part of a workflow; remove it, create a credential and set credential_id before deploying", key)
			return
		}
		p.Refuse(ProblemInlineSecret, path, "%q holds a secret, which a workflow must not; create a credential with this value, set credential_id to its name and remove %q", key, key)
	case s.Open && !top:
		p.Warn(ProblemDropped, path, "%q is not known here and is ignored; remove it%s", key, p.Suggest(key, s.NamesOf()))
	case !s.Open:
		p.Refuse(ProblemUnknownConfiguration, path, "%s has no configuration %q%s", p.node.Kind(), key, p.Suggest(key, s.NamesOf()))
	}
}

// secretName recognises the names under which older files carry secrets.
func secretName(key string) bool {
	key = shape.Snake(key)
	if slices.Contains([]string{"token", "secret", "password", "api_key", "credentials", "server_config",
		"connection_string", "database_url"}, key) {
		return true
	}
	return slices.ContainsFunc([]string{"_token", "_secret", "_api_key", "_credentials", "_password"},
		func(s string) bool { return strings.HasSuffix(key, s) })
}

// checkField checks one value. A text with a placeholder is unknown until the node runs and is accepted, except where the compiler
// needs the value itself.
func (p *Planning) checkField(path string, f *shape.Field, value gjson.Result) {
	if shape.Dynamic(value) && !slices.Contains(f.Takes, shape.TakesCode) {
		if f.Fixed {
			p.Invalid(path, "is read when the workflow is saved, so it cannot be a placeholder; write %s", f.Words())
		}
		p.collect(path, f, value)
		return
	}
	if !slices.ContainsFunc(f.Takes, func(t string) bool { return shape.Fits(t, value) }) {
		p.Invalid(path, "must be %s, not %s", f.Words(), shape.Excerpt(value))
		return
	}
	if f.Enum != nil && !value.IsObject() {
		p.checkEnum(path, f, value)
	}
	if n := value.Num; value.Type == gjson.Number && !f.Holds(n) {
		p.Invalid(path, "must be %s, not %s", f.Words(), shape.Excerpt(value))
	}
	switch {
	case f.Later:
	case f.Inner != nil:
		p.checkInner(path, f, value)
	case f.Enum == nil && value.IsArray():
		p.checkItems(path, f, value)
	}
	p.collect(path, f, value)
}

func (p *Planning) checkEnum(path string, f *shape.Field, value gjson.Result) {
	items := []gjson.Result{value}
	if value.IsArray() {
		items = value.Array()
	}
	for i, item := range items {
		at := path
		if value.IsArray() {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if _, ok := f.Known(item.String()); !ok && !shape.Dynamic(item) {
			p.Invalid(at, "must be one of %s, not %s%s", strings.Join(shape.QuoteAll(f.Enum), ", "), shape.Excerpt(item),
				p.Suggest(item.String(), f.Enum))
		}
	}
}

// checkInner checks the object, or each object of the list, against the field's inner shape. Other items of a list pass where the field
// takes anything (an option may be a plain text).
func (p *Planning) checkInner(path string, f *shape.Field, value gjson.Result) {
	switch {
	case value.IsObject():
		p.readObject(path, value, f.Inner)
	case value.IsArray():
		for i, item := range value.Array() {
			at := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case item.IsObject():
				p.readObject(at, item, f.Inner)
			case !slices.Contains(f.Takes, shape.TakesAny) && !shape.Dynamic(item):
				p.Invalid(at, "must be an object, not %s", shape.Excerpt(item))
			}
		}
	}
}

// checkItems checks the items of a list of texts, numbers or objects.
func (p *Planning) checkItems(path string, f *shape.Field, value gjson.Result) {
	if f.Type.Kind() != reflect.Slice || !slices.Equal(f.Takes, []string{shape.TakesList}) {
		return
	}
	item := shape.Field{Takes: shape.TakesOfType(f.Type.Elem())}
	if f.Type.Elem() == reflect.TypeFor[Scalar]() {
		item.Takes = []string{shape.TakesText, shape.TakesNumber, shape.TakesFlag}
	}
	for i, one := range value.Array() {
		if !shape.Dynamic(one) && !slices.ContainsFunc(item.Takes, func(t string) bool { return shape.Fits(t, one) }) {
			p.Invalid(fmt.Sprintf("%s[%d]", path, i), "must be %s, not %s", item.Words(), shape.Excerpt(one))
		}
	}
}

// Inside visits what is written in an object field, by the names of its fields; unknown names are left out.
func (p *Planning) Inside(name string, visit func(field, key string, value gjson.Result)) {
	f := &p.shape.Fields[p.shape.Find(name)]
	p.values[name].ForEach(func(key, value gjson.Result) bool {
		if i := f.Inner.Find(key.Str); i >= 0 {
			visit(f.Inner.Fields[i].Name, key.Str, value)
		}
		return true
	})
}

// Written says whether a field with this name is written.
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
	all := shape.New(reflect.TypeFor[T]())
	inner := &shape.Shape{}
	for _, f := range all.Fields {
		if f.Required = slices.Contains(only.Required, f.Name); f.Required || slices.Contains(only.Optional, f.Name) {
			inner.Fields = append(inner.Fields, f)
		}
	}
	if len(only.OneOf) > 0 {
		inner.Needs = [][]string{only.OneOf}
	}
	p.checkInner(p.At(name), &shape.Field{Takes: []string{shape.TakesList}, Inner: inner}, p.values[name])
}

// collect notes expressions, SQL and code for the plan.
func (p *Planning) collect(path string, f *shape.Field, value gjson.Result) {
	if value.Type != gjson.String {
		return
	}
	switch {
	case slices.Contains(f.Takes, shape.TakesExpr):
		p.AddExpression(path, value.Str)
	case slices.Contains(f.Takes, shape.TakesCode):
		p.Shielded = append(p.Shielded, path)
	case slices.Contains(f.Takes, shape.TakesSQL):
		p.Bound = append(p.Bound, path)
	}
}

// AddExpression notes an expression that validation parses.
func (p *Planning) AddExpression(path, source string) {
	p.Expressions = append(p.Expressions, workflow.Expression{Path: path, Source: source})
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
