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
	r := &jinjaReader{s: s, known: j.known}
	code := r.all("")
	if r.wrong || strings.TrimSpace(code) == "" || r.at < len(s) {
		return "", fmt.Errorf("%q", s)
	}
	return strings.TrimSpace(code), nil
}

// jinjaReader reads an expression.
type jinjaReader struct {
	s     string
	at    int
	known map[string]bool
	wrong bool
}

// all translates up to one of the letters that end it.
func (r *jinjaReader) all(until string) string {
	var b strings.Builder
	for r.at < len(r.s) && !strings.ContainsRune(until, rune(r.s[r.at])) {
		c := r.s[r.at]
		switch {
		case c == '"' || c == '\'' || c == '(' || c == '[' || c == '{' || c >= '0' && c <= '9':
			b.WriteString(r.filtered(r.primary()))
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if word := jinjaName.FindString(r.s[r.at:]); operator(word) != "" {
				r.at += len(word)
				b.WriteString(operator(word))
				continue
			}
			b.WriteString(r.filtered(r.primary()))
		case c == '~':
			r.at++
			b.WriteString("+")
		case c == ')' || c == ']' || c == '}':
			r.wrong = true
			return ""
		default:
			b.WriteByte(c)
			r.at++
		}
	}
	return b.String()
}

// operator is a word that is not a value, in Python; empty: it is one.
func operator(word string) string {
	switch word {
	case "and", "or", "not", "in", "is", "if", "else":
		return word
	case "defined":
		return "not None"
	}
	return ""
}

// primary is one value, with the fields, places and calls behind it.
func (r *jinjaReader) primary() string {
	begin := r.at
	code := ""
	switch c := r.s[r.at]; {
	case c == '"' || c == '\'':
		end := strings.IndexByte(r.s[r.at+1:], c)
		if end < 0 {
			r.wrong, r.at = true, len(r.s)
			return ""
		}
		r.at += end + 2
		code = r.s[begin:r.at]
	case c == '(' || c == '[' || c == '{':
		code = r.bracket()
	case c >= '0' && c <= '9':
		for r.at < len(r.s) && (r.s[r.at] >= '0' && r.s[r.at] <= '9' || r.s[r.at] == '.') {
			r.at++
		}
		return r.s[begin:r.at]
	default:
		code = r.name()
	}
	for r.at < len(r.s) {
		switch r.s[r.at] {
		case '.':
			word := jinjaName.FindString(r.s[r.at+1:])
			if word == "" || !strings.HasPrefix(r.s[r.at+1:], word) {
				r.wrong, r.at = true, len(r.s)
				return ""
			}
			code += "." + word
			r.at += 1 + len(word)
		case '[', '(':
			code += r.bracket()
		default:
			return code
		}
	}
	return code
}

// bracket is what stands in brackets, with them.
func (r *jinjaReader) bracket() string {
	open := r.s[r.at]
	end := map[byte]string{'(': ")", '[': "]", '{': "}"}[open]
	r.at++
	inner := r.all(end)
	if r.at >= len(r.s) {
		r.wrong = true
		return ""
	}
	r.at++
	return string(open) + inner + end
}

// name is a variable, or a word of the language.
func (r *jinjaReader) name() string {
	word := jinjaName.FindString(r.s[r.at:])
	r.at += len(word)
	switch {
	case r.known[word] || word == "range" || word == "True" || word == "False" || word == "None":
		return word
	case word == "true" || word == "false" || word == "none":
		return strings.ToUpper(word[:1]) + word[1:]
	}
	return "given.get(\"" + word + "\")"
}

// filtered is a value with the filters behind it.
func (r *jinjaReader) filtered(code string) string {
	for {
		rest := strings.TrimLeft(r.s[r.at:], " \t\r\n")
		if !strings.HasPrefix(rest, "|") || strings.HasPrefix(rest, "||") {
			return code
		}
		rest = strings.TrimLeft(rest[1:], " \t\r\n")
		word := jinjaName.FindString(rest)
		if word == "" || !strings.HasPrefix(rest, word) {
			r.wrong, r.at = true, len(r.s)
			return ""
		}
		r.at = len(r.s) - len(rest) + len(word)
		code = fmt.Sprintf("_filter(%q, %s", word, code)
		if r.at < len(r.s) && r.s[r.at] == '(' {
			if args := r.bracket(); len(args) > 2 {
				code += ", " + args[1:len(args)-1]
			}
		}
		code += ")"
	}
}
