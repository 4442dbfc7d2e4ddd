package dify

import (
	"fmt"
	"regexp"
	"strings"

	"tandem/payload"
)

// jinjaOpening is what the programs of templates begin with: values as templates see them.
const jinjaOpening = `import json

class _Value(dict):
    def __getattr__(self, name):
        return _wrap(self.get(name))
    def __getitem__(self, name):
        return _wrap(self.get(name))

class _Loop:
    def __init__(self, index, length):
        self.index, self.index0, self.first, self.last, self.length = index + 1, index, index == 0, index == length - 1, length

def _wrap(value):
    if isinstance(value, dict):
        return _Value(value)
    if isinstance(value, list):
        return [_wrap(one) for one in value]
    return value

def _text(value):
    if value is None:
        return ""
    if isinstance(value, (dict, list, tuple)):
        return str(json.loads(json.dumps(value))) if not isinstance(value, tuple) else str(value)
    return str(value)

def _each(value):
    value = list(value or [])
    return [(one, _Loop(i, len(value))) for i, one in enumerate(value)]

def _filter(name, value, *rest):
    if name in ("default", "d"):
        return rest[0] if value is None or (len(rest) > 1 and rest[1] and not value) else value
    if name == "length" or name == "count":
        return len(value or [])
    if name == "join":
        return (rest[0] if rest else "").join(_text(one) for one in value or [])
    if name == "tojson":
        return json.dumps(value, ensure_ascii=False)
    if name in ("upper", "lower", "title", "capitalize"):
        return getattr(_text(value), name)()
    if name == "trim":
        return _text(value).strip()
    if name == "replace":
        return _text(value).replace(_text(rest[0]), _text(rest[1]))
    if name == "first":
        return value[0] if value else None
    if name == "last":
        return value[-1] if value else None
    if name == "int":
        return int(float(value or 0))
    if name == "float":
        return float(value or 0)
    if name == "string":
        return _text(value)
    if name == "list":
        return list(value or [])
    if name == "sort":
        return sorted(value or [])
    if name == "reverse":
        return list(reversed(value or []))
    if name == "unique":
        return list(dict.fromkeys(value or []))
    if name == "sum":
        return sum(value or [])
    if name == "round":
        return round(value, *rest)
    if name == "abs":
        return abs(value)
    if name in ("safe", "escape", "e"):
        return value
    raise ValueError("templates know no filter " + name)

def main(**given):
    given = {name: _wrap(value) for name, value in given.items()}
    out = []
`

// The parts of a template. read-only
var (
	jinjaPart = regexp.MustCompile(`(?s)\{\{-?(.*?)-?\}\}|\{%-?(.*?)-?%\}|\{#.*?#\}`)
	jinjaFor  = regexp.MustCompile(`(?s)^for\s+([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s+in\s+(.+)$`)
	jinjaSet  = regexp.MustCompile(`(?s)^set\s+([A-Za-z_]\w*)\s*=\s*(.+)$`)
	jinjaName = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// jinja translates a template of Jinja2 into a program: texts, values with filters, for, if and set. Anything else is an error that names it.
func jinja(template string) (string, error) {
	var b strings.Builder
	b.WriteString(jinjaOpening)
	j := &jinjaWriter{out: &b, known: map[string]bool{}}
	for template != "" {
		m := jinjaPart.FindStringSubmatchIndex(template)
		if m == nil {
			j.words(template)
			break
		}
		before, part := template[:m[0]], template[m[0]:m[1]]
		if strings.HasPrefix(part, "{%-") || strings.HasPrefix(part, "{{-") {
			before = strings.TrimRight(before, " \t\r\n")
		}
		j.words(before)
		template = template[m[1]:]
		if strings.HasSuffix(part, "-%}") || strings.HasSuffix(part, "-}}") {
			template = strings.TrimLeft(template, " \t\r\n")
		}
		var err error
		if m[2] >= 0 {
			err = j.value(strings.Trim(strings.TrimSuffix(strings.TrimPrefix(part, "{{"), "}}"), "- \t\r\n"))
		} else if m[4] >= 0 {
			err = j.statement(strings.Trim(strings.TrimSuffix(strings.TrimPrefix(part, "{%"), "%}"), "- \t\r\n"))
		}
		if err != nil {
			return "", err
		}
	}
	if len(j.open) > 0 {
		return "", fmt.Errorf("%s without an end", j.open[len(j.open)-1])
	}
	b.WriteString("    return \"\".join(out)\n")
	return b.String(), nil
}

// jinjaWriter writes the program.
type jinjaWriter struct {
	out *strings.Builder
	// open are the statements that have not ended.
	open []string
	// known are the names that the template itself sets.
	known map[string]bool
}

func (j *jinjaWriter) line(format string, args ...any) {
	j.out.WriteString(strings.Repeat("    ", len(j.open)+1))
	fmt.Fprintf(j.out, format+"\n", args...)
}

func (j *jinjaWriter) words(s string) {
	if s != "" {
		j.line("out.append(%s)", payload.Quote(s))
	}
}

func (j *jinjaWriter) value(s string) error {
	code, err := j.expression(s)
	if err == nil {
		j.line("out.append(_text(%s))", code)
	}
	return err
}

// statement writes a statement.
func (j *jinjaWriter) statement(s string) error {
	word, rest, _ := strings.Cut(s, " ")
	switch word {
	case "for":
		m := jinjaFor.FindStringSubmatch(s)
		if m == nil {
			return fmt.Errorf("%q", s)
		}
		code, err := j.expression(m[2])
		if err != nil {
			return err
		}
		names := strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")
		for _, name := range names {
			j.known[name] = true
		}
		j.known["loop"] = true
		target := names[0]
		if len(names) > 1 {
			target = "(" + strings.Join(names, ", ") + ")"
		}
		j.line("for %s, loop in _each(%s):", target, code)
		j.open = append(j.open, "for")
		j.line("pass")
	case "if", "elif":
		code, err := j.expression(rest)
		if err != nil {
			return err
		}
		if word == "elif" {
			if len(j.open) == 0 || j.open[len(j.open)-1] != "if" {
				return fmt.Errorf("%q", s)
			}
			j.open = j.open[:len(j.open)-1]
		}
		j.line("%s %s:", word, code)
		j.open = append(j.open, "if")
		j.line("pass")
	case "else":
		if len(j.open) == 0 || j.open[len(j.open)-1] != "if" {
			return fmt.Errorf("%q", s)
		}
		j.open = j.open[:len(j.open)-1]
		j.line("else:")
		j.open = append(j.open, "if")
		j.line("pass")
	case "endfor", "endif":
		if len(j.open) == 0 || "end"+j.open[len(j.open)-1] != word {
			return fmt.Errorf("%q", s)
		}
		j.open = j.open[:len(j.open)-1]
	case "set":
		m := jinjaSet.FindStringSubmatch(s)
		if m == nil {
			return fmt.Errorf("%q", s)
		}
		code, err := j.expression(m[2])
		if err != nil {
			return err
		}
		j.known[m[1]] = true
		j.line("%s = %s", m[1], code)
	default:
		return fmt.Errorf("%q", s)
	}
	return nil
}

// expression translates an expression: names that are not set in the template are variables, filters are calls.
func (j *jinjaWriter) expression(s string) (string, error) {
	parts := cutOutside(s, '|')
	code := j.names(parts[0])
	for _, filter := range parts[1:] {
		filter = strings.TrimSpace(filter)
		name := jinjaName.FindString(filter)
		rest := strings.TrimSpace(filter[len(name):])
		if name == "" || !strings.HasPrefix(filter, name) || rest != "" && !(strings.HasPrefix(rest, "(") && strings.HasSuffix(rest, ")")) {
			return "", fmt.Errorf("%q", s)
		}
		code = fmt.Sprintf("_filter(%q, %s", name, code)
		if rest != "" && rest != "()" {
			code += ", " + j.names(rest[1:len(rest)-1])
		}
		code += ")"
	}
	if strings.TrimSpace(code) == "" {
		return "", fmt.Errorf("%q", s)
	}
	return code, nil
}

// names puts the names of variables where they are given; texts stay as they are.
func (j *jinjaWriter) names(s string) string {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
			b.WriteByte(c)
			i++
		case c == '"' || c == '\'':
			quote = c
			b.WriteByte(c)
			i++
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			name := jinjaName.FindString(s[i:])
			after := i > 0 && (s[i-1] == '.' || s[i-1] >= '0' && s[i-1] <= '9')
			switch {
			case after || j.known[name]:
				b.WriteString(name)
			case name == "true" || name == "false" || name == "none":
				b.WriteString(strings.ToUpper(name[:1]) + name[1:])
			case name == "and" || name == "or" || name == "not" || name == "in" || name == "is" || name == "if" || name == "else" || name == "True" || name == "False" || name == "None" || name == "range":
				b.WriteString(name)
			case name == "defined":
				b.WriteString("not None")
			default:
				b.WriteString("given.get(\"" + name + "\")")
			}
			i += len(name)
		default:
			b.WriteByte(c)
			i++
		}
	}
	return strings.TrimSpace(b.String())
}

// cutOutside cuts a text at a letter that stands outside of quotation marks and brackets.
func cutOutside(s string, at byte) []string {
	var parts []string
	depth, quote, begin := 0, byte(0), 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case c == at && depth == 0:
			parts = append(parts, s[begin:i])
			begin = i + 1
		}
	}
	return append(parts, s[begin:])
}
