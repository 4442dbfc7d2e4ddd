package app

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The configuration of a kind is written in a small notation, so that a kind is read at a glance and added in a few
// lines. Entries are separated by ";":
//
//	name, other*:type{a|b}=default[lo..hi](inner)  fields; every part but the name is optional
//	old, older -> name                             accepted older spellings of a field
//	need a|b                                       at least one of these fields must be set
//	drop a, b                                      older fields that are ignored with a warning
//	cred* smtp/imap                                credential_id and the credential's types
//
// "*" marks a field as required (one with a default is never missing). "!" marks a field that is read when the
// workflow is compiled, so its value cannot be a placeholder. Types are str int num bool obj list any file and four
// sorts of text: tmpl (with placeholders), expr (an expression), sql and code (never searched for placeholders); "/"
// separates alternatives. Without a type the default tells it, else it is str. An enum on a list is that of its items;
// "~" before a value of an enum marks one of older files, which is accepted but not offered.
// "inner" describes the fields of an object or of the objects in a list; "..." in it allows any others.

// field describes one configuration field.
type field struct {
	name     string
	types    []string
	required bool
	fixed    bool
	enum     []string
	older    []string // values of older files that are accepted and not offered
	def      string
	hasDef   bool
	lo, hi   *float64
	inner    *shape
}

// shape is a set of fields: a whole configuration, or an object inside one.
type shape struct {
	fields  []field
	older   map[string]string // older spelling to name
	needs   [][]string
	dropped []string
	open    bool

	cred         []string // types of credential that fit; nil when the kind takes none
	credRequired bool
}

func (s *shape) field(name string) (*field, bool) {
	i := slices.IndexFunc(s.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return nil, false
	}
	return &s.fields[i], true
}

// names lists what a writer may call the fields, for suggestions.
func (s *shape) names() []string {
	var names []string
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	return names
}

// parseShape reads notations one after the other; a field written again replaces the earlier one, so a kind can refine
// what its family has in common. A mistake in a notation is a defect of this program and panics when the catalogue is
// made, which every test does.
func parseShape(notations ...string) *shape {
	s := &shape{older: map[string]string{}}
	for _, notation := range notations {
		for _, entry := range splitTop(notation, ';') {
			if err := s.add(entry); err != nil {
				panic(fmt.Sprintf("catalogue: %q: %v", entry, err))
			}
		}
	}
	for old, name := range s.older {
		if _, ok := s.field(name); !ok {
			panic(fmt.Sprintf("catalogue: %q is an older name of %q, which is no field", old, name))
		}
	}
	return s
}

var fieldName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func (s *shape) add(entry string) error {
	word, rest, _ := strings.Cut(entry, " ")
	switch {
	case entry == "":
		return nil
	case entry == "...":
		s.open = true
		return nil
	case word == "need":
		s.needs = append(s.needs, splitTop(rest, '|'))
		return nil
	case word == "drop":
		s.dropped = append(s.dropped, splitTop(rest, ',')...)
		return nil
	case word == "cred" || word == "cred*":
		s.cred, s.credRequired = splitTop(rest, '/'), word == "cred*"
		return nil
	}
	if olds, name, ok := strings.Cut(entry, "->"); ok && !strings.ContainsAny(olds, ":{=[(") {
		for _, old := range splitTop(olds, ',') {
			s.older[old] = strings.TrimSpace(name)
		}
		return nil
	}
	end := strings.IndexAny(entry, "*!:{=[(")
	if end < 0 {
		end = len(entry)
	}
	template, err := parseField(entry[end:])
	if err != nil {
		return err
	}
	for _, name := range splitTop(entry[:end], ',') {
		if !fieldName.MatchString(name) {
			return fmt.Errorf("%q is no name of a field", name)
		}
		f := template
		f.name = name
		if old, ok := s.field(name); ok {
			*old = f
		} else {
			s.fields = append(s.fields, f)
		}
	}
	return nil
}

// parseField reads what follows the name.
func parseField(text string) (field, error) {
	var f field
	for text != "" {
		switch text[0] {
		case ' ':
			text = text[1:]
		case '*':
			f.required, text = true, text[1:]
		case '!':
			f.fixed, text = true, text[1:]
		case ':':
			end := strings.IndexAny(text, "*{=[(")
			if end < 0 {
				end = len(text)
			}
			if types := strings.TrimSpace(text[1:end]); types != "" {
				f.types = strings.Split(types, "/")
			}
			text = text[end:]
		case '{':
			inside, rest, err := bracketed(text, '{', '}')
			if err != nil {
				return f, err
			}
			for _, value := range strings.Split(inside, "|") {
				if older, ok := strings.CutPrefix(value, "~"); ok {
					f.older = append(f.older, older)
				} else {
					f.enum = append(f.enum, value)
				}
			}
			text = rest
		case '(':
			inside, rest, err := bracketed(text, '(', ')')
			if err != nil {
				return f, err
			}
			f.inner, text = parseShape(inside), rest
		case '=':
			value, rest, err := parseDefault(text[1:])
			if err != nil {
				return f, err
			}
			f.def, f.hasDef, text = value, true, rest
		case '[':
			inside, rest, err := bracketed(text, '[', ']')
			if err != nil {
				return f, err
			}
			if f.lo, f.hi, err = parseRange(inside); err != nil {
				return f, err
			}
			text = rest
		default:
			return f, fmt.Errorf("unexpected %q", text)
		}
	}
	if f.types == nil {
		f.types = []string{typeOfDefault(f)}
	}
	for _, t := range f.types {
		if !slices.Contains([]string{"str", "int", "num", "bool", "obj", "list", "any", "file", "tmpl", "expr", "sql", "code"}, t) {
			return f, fmt.Errorf("unknown type %q", t)
		}
	}
	return f, nil
}

// parseDefault reads a quoted text, a list, or a bare word that ends where a range, an enum or an inner shape begins.
func parseDefault(text string) (value, rest string, err error) {
	switch {
	case strings.HasPrefix(text, `"`):
		end := strings.IndexByte(text[1:], '"')
		if end < 0 {
			return "", "", fmt.Errorf("default %q has no closing quote", text)
		}
		return text[1 : end+1], text[end+2:], nil
	case strings.HasPrefix(text, "["):
		inside, rest, err := bracketed(text, '[', ']')
		return "[" + inside + "]", rest, err
	}
	end := strings.IndexAny(text, "[{(")
	if end < 0 {
		end = len(text)
	}
	return strings.TrimSpace(text[:end]), text[end:], nil
}

func typeOfDefault(f field) string {
	switch {
	case f.inner != nil:
		return "obj"
	case !f.hasDef:
		return "str"
	case f.def == "true" || f.def == "false":
		return "bool"
	case strings.HasPrefix(f.def, "["):
		return "list"
	}
	if _, err := strconv.ParseInt(f.def, 10, 64); err == nil {
		return "int"
	}
	if _, err := strconv.ParseFloat(f.def, 64); err == nil {
		return "num"
	}
	return "str"
}

func parseRange(text string) (lo, hi *float64, err error) {
	from, to, ok := strings.Cut(text, "..")
	if !ok {
		return nil, nil, fmt.Errorf("range %q has no %q", text, "..")
	}
	bound := func(s string) (*float64, error) {
		if s = strings.TrimSpace(s); s == "" {
			return nil, nil
		}
		n, err := strconv.ParseFloat(s, 64)
		return &n, err
	}
	if lo, err = bound(from); err != nil {
		return nil, nil, err
	}
	hi, err = bound(to)
	return lo, hi, err
}

// bracketed returns what stands between the opening bracket that text begins with and its partner.
func bracketed(text string, opening, closing byte) (inside, rest string, err error) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case opening:
			depth++
		case closing:
			if depth--; depth == 0 {
				return text[1:i], text[i+1:], nil
			}
		}
	}
	return "", "", fmt.Errorf("%q has no closing %q", text, closing)
}

// splitTop splits at a separator outside brackets and trims the parts; empty parts are left out.
func splitTop(text string, separator byte) []string {
	var parts []string
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) {
			switch c := text[i]; {
			case c == '(' || c == '[' || c == '{':
				depth++
				continue
			case c == ')' || c == ']' || c == '}':
				depth--
				continue
			case c != separator || depth > 0:
				continue
			}
		}
		if part := strings.TrimSpace(text[start:i]); part != "" {
			parts = append(parts, part)
		}
		start = i + 1
	}
	return parts
}
