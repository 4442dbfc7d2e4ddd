package n8n

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tandem/importer"
	"tandem/payload"
)

// shape is where the data of an output is found: by placeholders, and on the connections that carry it.
type shape struct {
	// head is how placeholders begin, "fetch.outputs" or "item"; path is where the data is below it.
	head string
	path []string
	// rename has the names of fields that are called otherwise here.
	rename map[string]string
	// many says that it is a list of items.
	many bool
	// flow is where the data is in the payload of a connection.
	flow []string
	// unknown says that nothing arrives.
	unknown bool
}

// at is the placeholder path of a field.
func (s shape) at(steps []string) string {
	if len(steps) > 1 && s.rename[steps[0]+"."+steps[1]] != "" {
		steps = slices.Concat(strings.Split(s.rename[steps[0]+"."+steps[1]], "."), steps[2:])
	} else if len(steps) > 0 && s.rename[steps[0]] != "" {
		steps = slices.Concat(strings.Split(s.rename[steps[0]], "."), steps[1:])
	}
	return s.head + pathText(slices.Concat(s.path, steps))
}

// whole is everything, as a value of parameters.
func (s shape) whole() any {
	if s.unknown {
		return map[string]any{}
	}
	if len(s.rename) == 0 {
		return "{{" + s.at(nil) + "}}"
	}
	fields := map[string]any{}
	for name := range s.rename {
		deep(fields, strings.Split(name, "."), "{{"+s.at(strings.Split(name, "."))+"}}")
	}
	return fields
}

// conversion is the expression that takes the data out of the payload of a connection; empty: it is the payload.
func (s shape) conversion() string {
	if len(s.rename) > 0 {
		var parts []string
		for name, here := range s.rename { // sorted below
			if strings.Contains(name, ".") {
				continue // another name of a field that is there
			}
			parts = append(parts, string(payload.Quote(name))+": value"+pathText(append(slices.Clone(s.flow), strings.Split(here, ".")...)))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	}
	if len(s.flow) == 0 {
		return ""
	}
	return strings.TrimPrefix(pathText(s.flow), ".")
}

// plain is a step of a path that needs no brackets. read-only
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// pathText writes steps of a path.
func pathText(steps []string) string {
	var b strings.Builder
	for _, s := range steps {
		if _, err := strconv.Atoi(s); err == nil {
			fmt.Fprintf(&b, "[%s]", s)
		} else if plain.MatchString(s) {
			b.WriteString("." + s)
		} else {
			b.WriteString("[" + string(payload.Quote(s)) + "]")
		}
	}
	return b.String()
}

// reading is what the expressions of a node are read in.
type reading struct {
	f *flow
	n *node
	// json is what $json is; inLoop says that the node runs for each of many items.
	json   shape
	inLoop bool
	// values is the node that computes what no placeholder can say; calc are its expressions.
	values string
	calc   []string
}

// value translates a parameter, with all that is in it.
func (r *reading) value(v importer.Value) any {
	switch x := v.Any().(type) {
	case string:
		return r.words(x)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = r.value(importer.ValueOf(x[i]))
		}
		return out
	case map[string]any:
		if found := locator(v); found.Any() != nil && v.At("__rl").Exists() {
			return r.value(found)
		}
		out := make(map[string]any, len(x))
		for name, inner := range x {
			out[name] = r.value(importer.ValueOf(inner))
		}
		return out
	}
	return v.Any()
}

// bare is an expression without the sign that makes it one, as in files that were edited by hand. read-only
var bare = regexp.MustCompile(`\{\{\s*\$(env|json|node|input|now|today|vars|workflow|execution|credentials|\()`)

// words translates a text.
func (r *reading) words(s string) any {
	body, isExpression := strings.CutPrefix(s, "=")
	if !isExpression {
		if !bare.MatchString(s) {
			return escaped(s)
		}
		body = s
	}
	parts := segments(body)
	if len(parts) == 1 && parts[0].code {
		return r.typed(parts[0].text)
	}
	var b strings.Builder
	for _, p := range parts {
		if !p.code {
			b.WriteString(escaped(p.text))
		} else if value, ok := r.typed(p.text).(string); ok {
			b.WriteString(value)
		} else {
			b.WriteString("{{" + r.computed(p.text) + "}}")
		}
	}
	return b.String()
}

// text is a parameter as a text.
func (r *reading) text(v importer.Value) string {
	if s, ok := r.value(locator(v)).(string); ok {
		return s
	}
	return importer.ValueOf(r.value(locator(v))).Written()
}

// escaped is a text in which nothing is a placeholder.
func escaped(s string) string {
	s = strings.ReplaceAll(s, "{{", `\{{`)
	return strings.ReplaceAll(s, "${", `\${`)
}

// typed is the value of one expression: a placeholder, which keeps its type.
func (r *reading) typed(code string) any {
	code = strings.TrimSpace(code)
	if at, ok := r.simple(code); ok {
		if at == "" {
			return r.json.whole()
		}
		return "{{" + at + "}}"
	}
	if literal, err := payload.Decode([]byte(code)); err == nil {
		if s, ok := literal.(string); ok {
			return escaped(s)
		}
		return literal
	}
	return "{{" + r.computed(code) + "}}"
}

// computed lets the node of values compute an expression, and returns where it is.
func (r *reading) computed(code string) string {
	if r.values == "" {
		r.values = r.f.ID(r.n.id + "_values")
	}
	i := slices.Index(r.calc, code)
	if i < 0 {
		i, r.calc = len(r.calc), append(r.calc, code)
	}
	return fmt.Sprintf("%s.outputs.result.v%d", r.values, i+1)
}

// segment is a stretch of a template.
type segment struct {
	text string
	code bool
}

// segments splits a template into words and code. Braces inside of texts of the code do not end it.
func segments(s string) []segment {
	var out []segment
	for s != "" {
		begin := strings.Index(s, "{{")
		if begin < 0 {
			return append(out, segment{text: s})
		}
		end := closing(s[begin+2:])
		if end < 0 {
			return append(out, segment{text: s})
		}
		if begin > 0 {
			out = append(out, segment{text: s[:begin]})
		}
		out = append(out, segment{text: s[begin+2 : begin+2+end], code: true})
		s = s[begin+2+end+2:]
	}
	return out
}

// closing is where the code of a template ends.
func closing(s string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}' && i+1 < len(s) && s[i+1] == '}':
			return i
		}
	}
	return strings.Index(s, "}}") // a stray quotation mark, as in a sentence
}

// The beginnings of expressions that only read. read-only
var (
	ownItem   = regexp.MustCompile(`^\$(?:json|input\s*\.\s*(?:item|first\(\)|last\(\))\s*\??\.\s*json)`)
	firstItem = regexp.MustCompile(`^\$input\s*\.\s*all\(\)\s*\[\s*0\s*\]\s*\.\s*json`)
	ofNode    = regexp.MustCompile(`^\$\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*\)\s*\.\s*(item|first\(\)|last\(\)|all\(\)\s*\[\s*0\s*\])\s*\??\.\s*json`)
	oldNode   = regexp.MustCompile(`^\$node\s*(?:\[\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*\]|\.\s*([A-Za-z_]\w*))\s*\.\s*json`)
	itemsOf   = regexp.MustCompile(`^\$items\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*(?:,[^)]*)?\)\s*\[\s*0\s*\]\s*\.\s*json`)
	envName   = regexp.MustCompile(`^\$env\s*\.\s*([A-Za-z_]\w*)$`)
)

// simple is the path of an expression that only reads a field; the empty path is the whole of $json.
func (r *reading) simple(code string) (string, bool) {
	switch code {
	case "$execution.id":
		return "execution.id", true
	case "$workflow.id":
		return "workflow.id", true
	case "$itemIndex":
		if r.inLoop {
			return "index", true
		}
	}
	if m := envName.FindStringSubmatch(code); m != nil {
		return "env." + m[1], true
	}
	for _, form := range []*regexp.Regexp{ownItem, firstItem} {
		if m := form.FindString(code); m != "" {
			steps, ok := stepsOf(code[len(m):])
			if !ok || r.json.many || r.json.unknown {
				return "", false
			}
			if len(steps) == 0 {
				return "", true
			}
			return r.json.at(steps), true
		}
	}
	for _, form := range []*regexp.Regexp{ofNode, oldNode, itemsOf} {
		if m := form.FindStringSubmatch(code); m != nil {
			return r.named(m, code[len(m[0]):])
		}
	}
	return "", false
}

// named is the path of a field that another node has made.
func (r *reading) named(m []string, rest string) (string, bool) {
	name := unescaped(m[1] + m[2])
	if len(m) > 3 && strings.HasPrefix(m[0], "$node") {
		name += m[3]
	}
	other := r.f.byName[name]
	steps, ok := stepsOf(rest)
	if other == nil || !ok {
		return "", false
	}
	s := r.f.shapeOf(other, 0)
	if s.many { // which of the items is meant, code says
		first := strings.Contains(m[0], "first()") || strings.Contains(m[0], "all()") || strings.HasPrefix(m[0], "$items")
		if !first || len(s.rename) > 0 {
			return "", false
		}
		steps = append([]string{"0"}, steps...)
	}
	if len(steps) == 0 && len(s.rename) > 0 || s.unknown {
		return "", false
	}
	return s.at(steps), true
}

// unescaped is the content of a text of JavaScript.
func unescaped(s string) string {
	return strings.NewReplacer(`\'`, `'`, `\"`, `"`, `\\`, `\`).Replace(s)
}

// step is one step of a path in JavaScript. read-only
var step = regexp.MustCompile(`^\s*(?:\??\.\s*([A-Za-z_$][\w$]*)|(?:\?\.)?\[\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\d+))\s*\])`)

// stepsOf reads a path that is the rest of an expression; false: there is more than a path.
func stepsOf(s string) ([]string, bool) {
	var steps []string
	for strings.TrimSpace(s) != "" {
		m := step.FindStringSubmatch(s)
		if m == nil || m[1] == "length" || strings.HasPrefix(strings.TrimSpace(s[len(m[0]):]), "(") {
			return nil, false
		}
		steps = append(steps, unescaped(m[1]+m[2]+m[3]+m[4]))
		s = s[len(m[0]):]
	}
	return steps, true
}

// operand is a parameter as a part of an expression of ours.
func (r *reading) operand(v importer.Value) string {
	switch x := r.value(v).(type) {
	case string:
		if s, ok := strings.CutPrefix(x, "{{"); ok && strings.HasSuffix(s, "}}") && strings.Count(x, "{{") == 1 {
			return importer.InExpression(strings.TrimSuffix(s, "}}"))
		}
		return string(payload.Quote(x))
	case json.Number:
		return x.String()
	case nil:
		return "null"
	default:
		return importer.ValueOf(x).Written()
	}
}
