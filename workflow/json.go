package workflow

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tandem/payload"
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

// What both readers say about them.
const (
	emptyFile     = "the file is empty; a workflow has at least one node"
	tooManyValues = "the file has too many values; split the workflow, or keep large data outside of it"
	tooDeep       = "objects and lists stand more than %d deep; flatten them"
)

// jsonReader reads JSON into values. It is stricter than encoding/json where a definition would otherwise mean
// something else than its author sees: equal keys, unpaired surrogates, NUL.
type jsonReader struct {
	data   string
	pos    int
	line   int32
	start  int // offset of the line's first byte
	wide   int // bytes of the line so far that continue a character
	limits limits
	// skim says that only the flaws are wanted: all values are read into passed, one over the other.
	skim   bool
	passed value
	// empty is inside every list and object that has nothing inside.
	empty *members
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
			path = payload.JoinIndex(path, s.index)
		} else {
			path = payload.JoinKey(path, s.key)
		}
	}
	return path
}

// readJSON reads one value and nothing after it.
func readJSON(data string, limits limits) (root value, repeated []flaw, fault *flaw) {
	r := newJSONReader(data, limits)
	fault = r.document(&root)
	return root, r.repeated, fault
}

func newJSONReader(data string, limits limits) *jsonReader {
	return &jsonReader{data: data, line: 1, limits: limits, empty: &members{weight: 2}}
}

func (r *jsonReader) document(root *value) *flaw {
	if fault := r.value(root, 0); fault != nil {
		return fault
	}
	r.space()
	if r.pos < len(r.data) {
		return r.flaw("there is something after the end of the definition (%s); remove it", r.here())
	}
	return nil
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
		return r.tooLarge(tooManyValues)
	}
	if depth > r.limits.depth {
		return r.tooLarge(tooDeep, r.limits.depth)
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
	return r.flaw("a value was expected, not %s; write one, a text in double quotes", r.here())
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
	v.kind, v.inside = kindList, r.empty
	r.pos++
	r.space()
	if r.pos < len(r.data) && r.data[r.pos] == ']' {
		r.pos++
		return nil
	}
	in := r.empty
	if !r.skim {
		in = &members{weight: 2}
		v.inside = in
	}
	for i := 0; ; i++ {
		r.trail = append(r.trail, step{index: i})
		item := r.item(in)
		if fault := r.value(item, depth+1); fault != nil {
			return fault
		}
		r.trail = r.trail[:len(r.trail)-1]
		if !r.skim {
			in.weight += item.weight() + 1
		}
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
		return false, r.flaw("a comma or %q was expected, not %s; write what is missing", closing, r.here())
	}
	r.pos++
	r.space()
	if r.pos < len(r.data) && r.data[r.pos] == closing {
		return false, r.flaw("the comma before this %q is one too many; remove it", closing)
	}
	return false, nil
}

func (r *jsonReader) object(v *value, depth int) *flaw {
	v.kind, v.inside = kindObject, r.empty
	r.pos++
	r.space()
	if r.pos < len(r.data) && r.data[r.pos] == '}' {
		r.pos++
		return nil
	}
	in := &members{weight: 2}
	v.inside = in
	for {
		r.space()
		if r.pos == len(r.data) || r.data[r.pos] != '"' {
			if r.pos == len(r.data) {
				return r.flaw("the file ends in the middle of the definition; the rest is missing")
			}
			return r.flaw("a key in double quotes was expected, not %s; write one", r.here())
		}
		line, col := r.place()
		key, fault := r.text()
		if fault != nil {
			return fault
		}
		r.trail = append(r.trail, step{key, -1})
		r.space()
		if r.pos == len(r.data) || r.data[r.pos] != ':' {
			return r.flaw("a colon was expected after the key %s, not %s; write it", shortened(key), r.here())
		}
		r.pos++
		in.names = append(in.names, name{key, line, col})
		item := r.item(in)
		if fault := r.value(item, depth+1); fault != nil {
			return fault
		}
		r.trail = r.trail[:len(r.trail)-1]
		if !r.skim {
			in.weight += item.weight() + int64(len(key)) + 4
		}
		r.space()
		if done, fault := r.separator('}'); done || fault != nil {
			r.repeated = appendRepeated(r.repeated, in.names, r.trail)
			return fault
		}
	}
}

// item is the place of the next item of a list or an object.
func (r *jsonReader) item(in *members) *value {
	if r.skim {
		return &r.passed
	}
	in.items = append(in.items, value{})
	return &in.items[len(in.items)-1]
}

// appendRepeated adds a flaw for each key that an object has twice. Keys are compared pairwise while they are few, then
// by sorting, which takes less memory than a set of them.
func appendRepeated(flaws []flaw, names []name, at trail) []flaw {
	const few = 16
	again := func(i int) {
		if len(flaws) <= problemsPerCode {
			n := &names[i]
			flaws = append(flaws, flaw{ProblemDuplicateKey, payload.JoinKey(at.String(), n.text), "the key " + shortened(n.text) +
				" stands twice in one object, so one of the two values would be lost; remove or rename one", n.line, n.col})
		}
	}
	if len(names) <= few {
		for i := range names {
			if slices.ContainsFunc(names[:i], func(n name) bool { return n.text == names[i].text }) {
				again(i)
			}
		}
		return flaws
	}
	sorted := make([]int32, len(names))
	for i := range sorted {
		sorted[i] = int32(i)
	}
	slices.SortFunc(sorted, func(a, b int32) int {
		return cmp.Or(strings.Compare(names[a].text, names[b].text), cmp.Compare(a, b))
	})
	second := sorted[:0] // in place: never ahead of what is read
	for i, last := 1, sorted[0]; i < len(sorted); i++ {
		at := sorted[i]
		if names[at].text == names[last].text {
			second = append(second, at)
		}
		last = at
	}
	slices.Sort(second)
	for _, i := range second {
		again(int(i))
	}
	return flaws
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
			return nil, r.flaw("%q is not an escape of JSON; write a backslash as \\\\", `\`+string(rune(c)))
		}
		r.pos += 2
		return append(built, "\"\\/\b\f\n\r\t"[i]), nil
	}
	unit, ok := r.hex(r.pos)
	size := 6
	switch {
	case !ok:
		return nil, r.flaw("\\u must be followed by four hexadecimal digits; write them, or the character itself")
	case unit == 0:
		return nil, r.flaw("a string holds a NUL character, which cannot be stored; remove it")
	case unit >= 0xD800 && unit < 0xE000:
		low, ok := r.hex(r.pos + 6)
		if unit >= 0xDC00 || !ok || low < 0xDC00 || low >= 0xE000 {
			return nil, r.flaw("%s is half of a character; write the other half after it, or the character itself", r.data[r.pos:r.pos+6])
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
		return "", r.flaw("%s is not a number of JSON; write plain digits, or put it in double quotes", shortened(text))
	}
	if !finite(text) {
		r.pos = start
		return "", r.flaw("the number %s is beyond what can be reckoned with; write it as a string", shortened(text))
	}
	return text, nil
}

// finite tells whether a number fits the range of a double. Digits beyond its precision do no harm: they are kept.
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
