package workflow

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// flaw is why a text cannot be read, and where.
type flaw struct {
	code      string
	path      string
	message   string
	line, col int32
}

func (f *flaw) problem() Problem {
	return Problem{Severity: SeverityError, Code: f.code, Path: f.path, Message: f.message, Line: int(f.line), Column: int(f.col)}
}

// limits bound what reading a text may cost.
type limits struct {
	depth  int
	values int
}

// jsonReader reads JSON into values. It is stricter than encoding/json where a definition would otherwise mean
// something else than its author sees: equal keys, unpaired surrogates, NUL.
type jsonReader struct {
	data   string
	pos    int
	line   int32
	start  int // offset of the line's first byte
	wide   int // bytes of the line so far that continue a character
	limits limits
	// repeated are duplicate keys: wrong, but no reason to stop reading.
	repeated []flaw
	trail    trail
}

// trail is the path to the value being read, kept in steps since it is needed only for a flaw.
type trail []step

// step is a key, or an index when the key is that of a list's item.
type step struct {
	key   string
	index int // -1 for a key
}

func (t trail) String() string {
	path := ""
	for _, s := range t {
		if s.index >= 0 {
			path = indexPath(path, s.index)
		} else {
			path = memberPath(path, s.key)
		}
	}
	return path
}

// readJSON reads one value and nothing after it.
func readJSON(data string, limits limits) (root value, repeated []flaw, fault *flaw) {
	r := &jsonReader{data: data, line: 1, limits: limits}
	if fault = r.value(&root, 0); fault != nil {
		return root, nil, fault
	}
	r.space()
	if r.pos < len(r.data) {
		return root, nil, r.flaw("there is something after the end of the definition (%s); remove it", r.here())
	}
	return root, r.repeated, nil
}

func (r *jsonReader) flaw(format string, args ...any) *flaw {
	p := errorAt(ProblemSyntax, r.trail.String(), format, args...)
	line, col := r.place()
	return &flaw{p.Code, p.Path, p.Message, line, col}
}

func (r *jsonReader) place() (line, col int32) { return r.line, int32(r.pos - r.start - r.wide + 1) }

// here names what stands at the position.
func (r *jsonReader) here() string {
	if r.pos >= len(r.data) {
		return "the end of the file"
	}
	c, _ := utf8.DecodeRuneInString(r.data[r.pos:])
	return strconv.QuoteRune(c)
}

func (r *jsonReader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case '\n':
			r.pos++
			r.line++
			r.start, r.wide = r.pos, 0
		case ' ', '\t', '\r':
			r.pos++
		default:
			return
		}
	}
}

func (r *jsonReader) value(v *value, depth int) *flaw {
	r.space()
	v.line, v.col = r.place()
	if r.limits.values--; r.limits.values < 0 {
		return r.tooLarge("the file has too many values; split the workflow into several")
	}
	if depth > r.limits.depth {
		return r.tooLarge("objects and lists stand more than %d deep; flatten them", r.limits.depth)
	}
	if r.pos == len(r.data) {
		return r.flaw("the file ends in the middle of the definition; the rest is missing")
	}
	switch c := r.data[r.pos]; {
	case c == '{':
		return r.object(v, depth)
	case c == '[':
		return r.list(v, depth)
	case c == '"':
		v.kind = kindString
		var fault *flaw
		v.text, fault = r.text()
		return fault
	case c == '-' || c >= '0' && c <= '9':
		v.kind = kindNumber
		var fault *flaw
		v.text, fault = r.number()
		return fault
	}
	for _, word := range [...]struct {
		text string
		kind valueKind
	}{{"true", kindBool}, {"false", kindBool}, {"null", kindNull}} {
		if strings.HasPrefix(r.data[r.pos:], word.text) && !letter(r.data, r.pos+len(word.text)) {
			v.kind, v.text = word.kind, word.text
			r.pos += len(word.text)
			return nil
		}
	}
	return r.flaw("a value was expected, not %s", r.here())
}

func (r *jsonReader) tooLarge(format string, args ...any) *flaw {
	f := r.flaw(format, args...)
	f.code = ProblemTooLarge
	return f
}

func letter(s string, i int) bool {
	return i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || s[i] >= '0' && s[i] <= '9' || s[i] == '_')
}

func (r *jsonReader) list(v *value, depth int) *flaw {
	v.kind, v.inside = kindList, &members{weight: 2}
	r.pos++
	r.space()
	if r.pos < len(r.data) && r.data[r.pos] == ']' {
		r.pos++
		return nil
	}
	for {
		r.trail = append(r.trail, step{index: len(v.inside.items)})
		v.inside.items = append(v.inside.items, value{})
		item := &v.inside.items[len(v.inside.items)-1]
		if fault := r.value(item, depth+1); fault != nil {
			return fault
		}
		r.trail = r.trail[:len(r.trail)-1]
		v.inside.weight += item.weight() + 1
		r.space()
		if done, fault := r.separator(']'); done || fault != nil {
			return fault
		}
	}
}

// separator passes a comma or the closing bracket.
func (r *jsonReader) separator(closing byte) (done bool, fault *flaw) {
	switch {
	case r.pos == len(r.data):
		return false, r.flaw("the file ends in the middle of the definition; a %q is missing", closing)
	case r.data[r.pos] == closing:
		r.pos++
		return true, nil
	case r.data[r.pos] != ',':
		return false, r.flaw("a comma or %q was expected, not %s", closing, r.here())
	}
	r.pos++
	r.space()
	if r.pos < len(r.data) && r.data[r.pos] == closing {
		return false, r.flaw("the comma before this %q is one too many; remove it", closing)
	}
	return false, nil
}

func (r *jsonReader) object(v *value, depth int) *flaw {
	v.kind, v.inside = kindObject, &members{weight: 2}
	r.pos++
	r.space()
	if r.pos < len(r.data) && r.data[r.pos] == '}' {
		r.pos++
		return nil
	}
	seen := keySet{}
	for {
		r.space()
		if r.pos == len(r.data) || r.data[r.pos] != '"' {
			if r.pos == len(r.data) {
				return r.flaw("the file ends in the middle of the definition; the rest is missing")
			}
			return r.flaw("a key in double quotes was expected, not %s", r.here())
		}
		line, col := r.place()
		key, fault := r.text()
		if fault != nil {
			return fault
		}
		r.trail = append(r.trail, step{key, -1})
		if seen.add(v.inside.names, key) && len(r.repeated) <= problemsPerCode {
			r.repeated = append(r.repeated, repeatedKey(r.trail, key, line, col))
		}
		r.space()
		if r.pos == len(r.data) || r.data[r.pos] != ':' {
			return r.flaw("a colon was expected after the key %q, not %s", key, r.here())
		}
		r.pos++
		v.inside.names = append(v.inside.names, name{key, line, col})
		v.inside.items = append(v.inside.items, value{})
		item := &v.inside.items[len(v.inside.items)-1]
		if fault := r.value(item, depth+1); fault != nil {
			return fault
		}
		r.trail = r.trail[:len(r.trail)-1]
		v.inside.weight += item.weight() + int64(len(key)) + 4
		r.space()
		if done, fault := r.separator('}'); done || fault != nil {
			return fault
		}
	}
}

// keySet finds keys that an object has twice: by comparison while they are few, then by a map.
type keySet struct{ keys map[string]struct{} }

// add tells whether the key was there already. names are the keys so far.
func (s *keySet) add(names []name, key string) bool {
	const few = 16
	if s.keys == nil && len(names) < few {
		for i := range names {
			if names[i].text == key {
				return true
			}
		}
		return false
	}
	if s.keys == nil {
		s.keys = make(map[string]struct{}, 2*few)
		for i := range names {
			s.keys[names[i].text] = struct{}{}
		}
	}
	_, there := s.keys[key]
	s.keys[key] = struct{}{}
	return there
}

func repeatedKey(t trail, key string, line, col int32) flaw {
	return flaw{ProblemDuplicateKey, t.String(), "the key " + strconv.Quote(key) +
		" stands twice in one object, so one of the two values would be lost; remove or rename one", line, col}
}

// text reads a string.
func (r *jsonReader) text() (string, *flaw) {
	r.pos++
	start := r.pos
	var built []byte // nil as long as there is no escape
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == '"':
			s := r.data[start:r.pos]
			if built != nil {
				s = string(append(built, s...))
			}
			r.pos++
			return s, nil
		case c == '\\':
			if built == nil {
				built = make([]byte, 0, 2*(r.pos-start)+16)
			}
			built = append(built, r.data[start:r.pos]...)
			var fault *flaw
			if built, fault = r.escape(built); fault != nil {
				return "", fault
			}
			start = r.pos
		case c < 0x20:
			if c == '\n' {
				return "", r.flaw("a string ends before its closing quote; write a line break as \\n")
			}
			return "", r.flaw("a string holds the control character %s; write it as \\u%04x", r.here(), c)
		default:
			if c&0xC0 == 0x80 {
				r.wide++
			}
			r.pos++
		}
	}
	return "", r.flaw("the file ends in the middle of a string; the rest is missing")
}

// escape reads what a backslash begins.
func (r *jsonReader) escape(built []byte) ([]byte, *flaw) {
	if r.pos+1 >= len(r.data) {
		return nil, r.flaw("the file ends in the middle of a string; the rest is missing")
	}
	if c := r.data[r.pos+1]; c != 'u' {
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return nil, r.flaw("%q is no escape of JSON; write a backslash as \\\\", `\`+string(rune(c)))
		}
		r.pos += 2
		return append(built, "\"\\/\b\f\n\r\t"[i]), nil
	}
	unit, ok := r.hex(r.pos)
	size := 6
	switch {
	case !ok:
		return nil, r.flaw("\\u must be followed by four hexadecimal digits")
	case unit == 0:
		return nil, r.flaw("a string holds a NUL character, which cannot be stored; remove it")
	case unit >= 0xD800 && unit < 0xE000:
		low, ok := r.hex(r.pos + 6)
		if unit >= 0xDC00 || !ok || low < 0xDC00 || low >= 0xE000 {
			return nil, r.flaw("%s is half of a character; the other half is missing", r.data[r.pos:r.pos+6])
		}
		unit = (unit-0xD800)<<10 + (low - 0xDC00) + 0x10000
		size = 12
	}
	r.pos += size
	return utf8.AppendRune(built, unit), nil
}

func (r *jsonReader) hex(at int) (rune, bool) {
	if at+6 > len(r.data) || r.data[at] != '\\' || r.data[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(r.data[at+2:at+6], 16, 32)
	return rune(n), err == nil
}

func (r *jsonReader) number() (string, *flaw) {
	start := r.pos
	for r.pos < len(r.data) && strings.IndexByte("+-.eE", r.data[r.pos]) >= 0 || letter(r.data, r.pos) {
		r.pos++
	}
	text := r.data[start:r.pos]
	if !json.Valid([]byte(text)) {
		r.pos = start
		return "", r.flaw("%s is no number of JSON", shortened(text))
	}
	if !finite(text) {
		r.pos = start
		return "", r.flaw("the number %s is beyond what can be reckoned with; write it as a string", shortened(text))
	}
	return text, nil
}

// finite tells whether a number fits the range of a double. Digits beyond its precision are no harm: they are kept.
func finite(text string) bool {
	if len(text) < 300 && !strings.ContainsAny(text, "eE") {
		return true
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// shortened quotes a text for a message, its middle left out when it is long.
func shortened(text string) string {
	const most = 40
	if len(text) > most {
		head, tail := text[:most/2], text[len(text)-most/4:]
		return strconv.Quote(strings.ToValidUTF8(head, "")) + "…" + strconv.Quote(strings.ToValidUTF8(tail, ""))
	}
	return strconv.Quote(text)
}
