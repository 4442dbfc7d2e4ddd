package app

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/workflow"
)

// The codes of problems that only kinds report; workflow has those of the format.
const (
	problemUnknownConfiguration = "unknown_configuration"
	problemInlineSecret         = "inline_secret"
	problemDropped              = "dropped_configuration"
	problemNeverChanges         = "condition_never_changes"
	problemDuplicateCase        = "duplicate_case"
	problemInvalidCode          = "invalid_code"
	problemToolEndsTurn         = "tool_ends_turn"
	problemNeedsModel           = "needs_model"
	problemMissingField         = "missing_field"

	problemCredentialMissing = string(fault.CredentialMissing)
	problemUnsupported       = string(fault.Unsupported)
)

// toBeChosen is the value of a credential that is chosen when the workflow is deployed.
const toBeChosen = "{{$placeholder}}"

// config is the configuration of one node while it is checked: the values by name, the problems found so far, and the
// plan that comes of it. Values stay in the order they were written.
type config struct {
	node     *workflow.Node
	shape    *shape
	plan     workflow.Plan
	problems []workflow.Problem

	values map[string]gjson.Result // by name, older spellings resolved; null counts as absent
	paths  map[string]string       // where each value stands
}

// readConfig checks a node's configurations against a shape.
func readConfig(n *workflow.Node, s *shape) *config {
	c := &config{node: n, shape: s}
	root := gjson.ParseBytes(n.Configurations)
	if len(n.Configurations) == 0 || root.Type == gjson.Null {
		root = gjson.Parse("{}")
	}
	if !root.IsObject() {
		c.invalid("configurations", "must be an object")
		root = gjson.Parse("{}")
	}
	c.values, c.paths = c.readObject("configurations", root, s)
	c.checkCredential()
	return c
}

// Bounds of what a hostile file can cost: nobody reads more, and looking for similar names is dear.
const (
	maxProblems    = 1000 // per node
	maxSuggestions = 50   // per node
)

func (c *config) errorf(code, path, format string, args ...any) {
	c.report(workflow.SeverityError, code, path, format, args...)
}

func (c *config) warnf(code, path, format string, args ...any) {
	c.report(workflow.SeverityWarning, code, path, format, args...)
}

func (c *config) report(severity workflow.Severity, code, path, format string, args ...any) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, workflow.Problem{Severity: severity, Code: code, Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

// suggest offers the most similar name, as long as there are not too many problems already.
func (c *config) suggest(name string, candidates []string) string {
	if len(c.problems) >= maxSuggestions {
		return ""
	}
	return suggest(name, candidates)
}

// invalid reports invalid_config; the message begins with the name of what is wrong.
func (c *config) invalid(path, format string, args ...any) {
	c.errorf(workflow.ProblemConfig, path, "%s %s", strconv.Quote(strings.TrimPrefix(path, "configurations.")), fmt.Sprintf(format, args...))
}

// readObject checks one object and returns its members by name.
func (c *config) readObject(path string, object gjson.Result, s *shape) (values map[string]gjson.Result, paths map[string]string) {
	values, paths = map[string]gjson.Result{}, map[string]string{}
	spelled := map[string]string{}
	object.ForEach(func(key, value gjson.Result) bool {
		at := join(path, key.Str)
		name, known := s.resolve(key.Str)
		if !known {
			c.unknown(at, key.Str, value, s, path == "configurations")
			return true
		}
		if before, twice := spelled[name]; twice {
			c.invalid(at, "sets the same as %q; keep one of them", before)
			return true
		}
		spelled[name] = key.Str
		if value.Type == gjson.Null {
			return true
		}
		values[name], paths[name] = value, at
		f, _ := s.field(name)
		c.checkField(at, f, value)
		return true
	})
	// A template brings values of its own, so what is missing here may come from there.
	if _, templated := values["template_id"]; templated {
		return values, paths
	}
	for _, f := range s.fields {
		if _, set := values[f.name]; f.required && !f.hasDef && !set {
			c.invalid(join(path, f.name), "is required; set it to %s", describe(&f))
		}
	}
	for _, names := range s.needs {
		if !slices.ContainsFunc(names, func(n string) bool { _, ok := values[n]; return ok }) {
			c.errorf(workflow.ProblemConfig, path, "one of %s is required", strings.Join(quoteAll(names), ", "))
		}
	}
	return values, paths
}

// resolve finds the field that a key means: by its name, an older spelling, or the camel case of either.
func (s *shape) resolve(key string) (string, bool) {
	for _, k := range []string{key, snake(key)} {
		if _, ok := s.field(k); ok {
			return k, true
		}
		if name, ok := s.older[k]; ok {
			return name, true
		}
	}
	return "", false
}

func (c *config) unknown(path, key string, value gjson.Result, s *shape, top bool) {
	switch {
	case slices.Contains(s.dropped, key):
		c.warnf(problemDropped, path, "%q is no longer used and is ignored; remove it", key)
	case top && secretName(key):
		if text := strings.TrimSpace(value.String()); value.Type == gjson.Null || text == "" || text == toBeChosen {
			c.warnf(problemCredentialMissing, path, "%q is no longer part of a workflow; remove it, create a credential and set credential_id before deploying", key)
			return
		}
		c.errorf(problemInlineSecret, path, "%q holds a secret, which a workflow must not; create a credential with this value, set credential_id to its id and remove %q", key, key)
	case !s.open:
		c.errorf(problemUnknownConfiguration, path, "%s has no configuration %q%s", c.node.Kind(), key, c.suggest(key, s.names()))
	}
}

// secretName recognises the names under which older files carry secrets.
func secretName(key string) bool {
	key = snake(key)
	if slices.Contains([]string{"token", "secret", "password", "api_key", "credentials", "server_config", "connection_string", "database_url"}, key) {
		return true
	}
	return slices.ContainsFunc([]string{"_token", "_secret", "_api_key", "_credentials", "_password"}, func(s string) bool { return strings.HasSuffix(key, s) })
}

func (c *config) checkCredential() {
	if !c.shape.credRequired && c.shape.cred == nil {
		return
	}
	value, set := c.values["credential_id"]
	types := strings.Join(quoteAll(c.shape.cred), " or ")
	switch {
	case set && strings.TrimSpace(value.Str) == toBeChosen:
		c.warnf(problemCredentialMissing, c.paths["credential_id"], "choose a credential of type %s before deploying", types)
	case !set && c.shape.credRequired && !c.has("template_id"):
		c.warnf(problemCredentialMissing, "configurations.credential_id", "%s needs a credential of type %s; set credential_id before deploying", c.node.Kind(), types)
	}
}

// checkField checks one value. A text with a placeholder is unknown until it runs and passes, except where the
// compiler needs the value itself.
func (c *config) checkField(path string, f *field, value gjson.Result) {
	if dynamic(value) && !slices.Contains(f.types, "code") {
		if f.fixed {
			c.invalid(path, "is read when the workflow is saved, so it cannot be a placeholder; write %s", describe(f))
		}
		c.collect(path, f, value)
		return
	}
	if !slices.ContainsFunc(f.types, func(t string) bool { return fits(t, value) }) {
		c.invalid(path, "must be %s, not %s", describe(f), excerpt(value))
		return
	}
	if f.enum != nil && !value.IsObject() {
		items := []gjson.Result{value}
		if value.IsArray() {
			items = value.Array()
		}
		for i, item := range items {
			at := path
			if value.IsArray() {
				at = fmt.Sprintf("%s[%d]", path, i)
			}
			if !dynamic(item) && !slices.ContainsFunc(f.enum, func(e string) bool { return strings.EqualFold(e, item.String()) }) && !slices.Contains(f.older, strings.ToLower(item.String())) {
				c.invalid(at, "must be one of %s, not %s%s", strings.Join(quoteAll(f.enum), ", "), excerpt(item), c.suggest(item.String(), f.enum))
			}
		}
	}
	if n := value.Num; value.Type == gjson.Number && (f.lo != nil && n < *f.lo || f.hi != nil && n > *f.hi) {
		c.invalid(path, "must be %s, not %s", describe(f), excerpt(value))
	}
	if f.inner != nil {
		c.checkInner(path, f, value)
	}
	c.collect(path, f, value)
}

// checkInner checks the object, or each object of the list, against the field's inner shape. Other items of a list
// pass where the type allows them (an option may be a plain text).
func (c *config) checkInner(path string, f *field, value gjson.Result) {
	switch {
	case value.IsObject():
		c.readObject(path, value, f.inner)
	case value.IsArray():
		for i, item := range value.Array() {
			at := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case item.IsObject():
				c.readObject(at, item, f.inner)
			case !slices.Contains(f.types, "any") && !dynamic(item):
				c.invalid(at, "must be an object, not %s", excerpt(item))
			}
		}
	}
}

// collect notes expressions and code for the plan.
func (c *config) collect(path string, f *field, value gjson.Result) {
	if value.Type != gjson.String {
		return
	}
	if slices.Contains(f.types, "expr") {
		c.plan.Expressions = append(c.plan.Expressions, workflow.Expression{Path: path, Source: value.Str})
	}
	if slices.Contains(f.types, "code") {
		c.plan.Shielded = append(c.plan.Shielded, path)
	}
	if slices.Contains(f.types, "sql") {
		c.plan.Bound = append(c.plan.Bound, path)
	}
}

func (c *config) has(name string) bool { _, ok := c.values[name]; return ok }

// at is the path of a field as it was written, or as it would be.
func (c *config) at(name string) string {
	if p, ok := c.paths[name]; ok {
		return p
	}
	return join("configurations", name)
}

// text is a field's text or its default; an enum's value comes in the catalogue's letter case. It is "" when the value
// has a placeholder. A fixed field whose value was refused counts as not set, so that the plan stays usable.
func (c *config) text(name string) string {
	f, ok := c.shape.field(name)
	if !ok {
		panic("catalogue: no field " + name)
	}
	value, set := c.values[name]
	if !set {
		return f.def
	}
	if dynamic(value) {
		if f.fixed {
			return f.def
		}
		return ""
	}
	text := value.String()
	known := slices.Concat(f.enum, f.older)
	if i := slices.IndexFunc(known, func(e string) bool { return strings.EqualFold(e, text) }); i >= 0 {
		return known[i]
	}
	if f.enum != nil && f.fixed {
		return f.def
	}
	return text
}

// choice is text for a field that decides how dangerous a node is: "" also when a template may bring the value, so that
// a default is never taken for what will run.
func (c *config) choice(name string) string {
	if !c.has(name) && c.has("template_id") {
		return ""
	}
	return c.text(name)
}

// listed are the elements of a list field, or of its default. ok is false when they are only known at run time.
func (c *config) listed(name string, fallback ...string) (items []string, ok bool) {
	if !c.has(name) {
		return fallback, !c.has("template_id")
	}
	for _, item := range c.items(name) {
		items = append(items, item.String())
	}
	return items, !c.isDynamic(name)
}

// flag is the value of a bool field or its default.
func (c *config) flag(name string) bool { return c.text(name) == "true" }

// number is the value of a numeric field or its default; ok is false when neither is a number.
func (c *config) number(name string) (n float64, ok bool) {
	n, err := strconv.ParseFloat(c.text(name), 64)
	return n, err == nil
}

// milliseconds turns a field of seconds into milliseconds; an unusable value, which was reported, is the default's.
func (c *config) milliseconds(name string) int64 {
	n, ok := c.number(name)
	f, _ := c.shape.field(name)
	if !ok || f.lo != nil && n < *f.lo || f.hi != nil && n > *f.hi {
		n, _ = strconv.ParseFloat(f.def, 64)
	}
	return int64(math.Round(n * 1000))
}

// items are the elements of a list field, nil when it is none.
func (c *config) items(name string) []gjson.Result {
	if v := c.values[name]; v.IsArray() {
		return v.Array()
	}
	return nil
}

// isDynamic says that a field's value has a placeholder.
func (c *config) isDynamic(name string) bool { return dynamic(c.values[name]) }

func dynamic(v gjson.Result) bool {
	return v.Type == gjson.String && (strings.Contains(v.Str, "{{") || strings.Contains(v.Str, "${"))
}

func fits(typ string, v gjson.Result) bool {
	switch typ {
	case "any":
		return true
	case "str", "tmpl", "sql", "code":
		return v.Type == gjson.String
	case "expr":
		return v.Type == gjson.String || v.Type == gjson.Number || v.IsBool()
	case "int":
		return v.Type == gjson.Number && v.Num == math.Trunc(v.Num)
	case "num":
		return v.Type == gjson.Number
	case "bool":
		return v.IsBool()
	case "obj":
		return v.IsObject()
	case "list":
		return v.IsArray()
	case "file":
		return v.Type == gjson.String || v.IsObject()
	}
	return false
}

// describe says in words what a field takes.
func describe(f *field) string {
	if f.enum != nil && !slices.Contains(f.types, "list") {
		return "one of " + strings.Join(quoteAll(f.enum), ", ")
	}
	var words []string
	for _, t := range f.types {
		words = append(words, map[string]string{
			"str": "a text", "tmpl": "a text", "sql": "an SQL text", "code": "a text of code", "expr": "an expression", "int": "a whole number",
			"num": "a number", "bool": "true or false", "obj": "an object", "list": "a list", "any": "a value", "file": "a file",
		}[t])
	}
	text := strings.Join(slices.Compact(words), " or ")
	switch {
	case f.lo != nil && f.hi != nil:
		text += fmt.Sprintf(" from %s to %s", number(*f.lo), number(*f.hi))
	case f.lo != nil:
		text += fmt.Sprintf(" of at least %s", number(*f.lo))
	case f.hi != nil:
		text += fmt.Sprintf(" of at most %s", number(*f.hi))
	}
	return text
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// excerpt shows a value without flooding the message.
func excerpt(v gjson.Result) string {
	if v.IsObject() {
		return "an object"
	}
	if v.IsArray() {
		return "a list"
	}
	if r := []rune(v.Raw); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return v.Raw
}

func quoteAll(names []string) []string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return quoted
}

// join appends a key to a path; a key that is no plain word is quoted.
func join(path, key string) string {
	plain := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if plain {
		return path + "." + key
	}
	return path + "[" + strconv.Quote(key) + "]"
}

// snake turns camel case into snake case; other names stay as they are.
func snake(name string) string {
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

// suggest is the end of a message that offers the most similar name, or nothing when none is similar.
func suggest(name string, candidates []string) string {
	best := fault.Nearest(name, candidates)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}
