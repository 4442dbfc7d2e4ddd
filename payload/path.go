package payload

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxPath is how many bytes a path may have that stands inside other text.
const MaxPath = 1024

// Path is where a value stands inside another: a.b.0.c, a[0].b, a["odd key"].
type Path []Step

// Step is one step of a path: a key of an object, and an index of a list if it is written like one.
type Step struct {
	Key   string
	Index int // -1 when Key cannot be an index
	// Bracketed is an index written [0]: it is never the second half of a name.
	Bracketed bool
}

// KeyStep is the step to a key.
func KeyStep(key string) Step { return Step{Key: key, Index: Index(key)} }

// ParsePath reads a text that is a path and nothing else. A name in it may have any sign but a dot and a bracket. The error says what
// the path does wrong, as words that fit behind "it"; the steps before that come with it.
func ParsePath(text string) (Path, error) {
	s := pathScanner{text: text, loose: true}
	path, end, problem := s.path(0)
	switch {
	case problem != "":
		return path, errors.New(problem)
	case end < len(text):
		return path, errors.New("has something behind a bracket that is neither a dot nor a bracket")
	}
	return path, nil
}

// Index reads a canonical decimal index; anything else, also one too large for any list, is -1.
func Index(key string) int {
	if key == "" || len(key) > 9 || len(key) > 1 && key[0] == '0' {
		return -1
	}
	for i := range len(key) {
		if key[i] < '0' || key[i] > '9' {
			return -1
		}
	}
	n, err := strconv.Atoi(key)
	if err != nil {
		return -1
	}
	return n
}

// ScanPath reads a path that starts at s[i], inside other text, and returns where it ends: at the first character that cannot go on. Blanks
// around it are skipped. A
// problem is told as words that fit behind "it", with end meaningless.
func ScanPath(s string, i int) (path Path, end int, problem string) {
	scan := pathScanner{text: s}
	if path, end, problem = scan.path(skipBlank(s, i)); problem == "" {
		end = skipBlank(s, end)
	}
	return path, end, problem
}

// pathScanner reads a path. A loose one reads a text that is nothing else: its names end at dots and brackets only, it is as long as it is.
type pathScanner struct {
	text  string
	loose bool
}

func (p *pathScanner) path(i int) (path Path, end int, problem string) {
	s, limit := p.text, len(p.text)
	if !p.loose {
		limit = min(limit, i+MaxPath)
	}
	for {
		switch {
		case i < limit && s[i] == '[':
			step, next, problem := p.bracket(s[:limit], i)
			if problem != "" {
				return path, 0, problem
			}
			path, i = append(path, step), next
		default:
			start := i
			for i < limit && (isBare(s[i]) || p.loose && s[i] != '.' && s[i] != '[') {
				i++
			}
			if i == start {
				if len(path) == 0 {
					return path, 0, "does not begin with a name"
				}
				return path, 0, "has a dot that no name follows"
			}
			path = append(path, KeyStep(s[start:i]))
		}
		switch {
		case i < limit && s[i] == '.':
			i++
			if i < limit && s[i] == '[' {
				return path, 0, "has a dot before a bracket"
			}
		case i < limit && s[i] == '[':
		case i >= limit && limit < len(s):
			return path, 0, "is longer than " + strconv.Itoa(MaxPath) + " bytes"
		default:
			return path, i, ""
		}
	}
}

// isBare says which bytes a name may have without quotes. Bytes above ASCII are letters of some language.
func isBare(b byte) bool {
	switch b {
	case '.', '[', ']', '{', '}', '"', '\'', '`', 0x7f:
		return false
	}
	return b > ' '
}

// bracket reads [0], ["key"] or ['key'].
func (p *pathScanner) bracket(s string, i int) (step Step, end int, problem string) {
	i = skipBlank(s, i+1)
	if i >= len(s) {
		return Step{}, 0, "has a bracket that does not end"
	}
	if quote := s[i]; quote == '"' || quote == '\'' {
		key, next, problem := p.quoted(s, i)
		if problem != "" {
			return Step{}, 0, problem
		}
		step, i = KeyStep(key), next
	} else {
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if i == start {
			return Step{}, 0, "has a bracket with neither an index nor a quoted key"
		}
		step = KeyStep(s[start:i])
		step.Bracketed = true
	}
	i = skipBlank(s, i)
	if i >= len(s) || s[i] != ']' {
		return Step{}, 0, "has a bracket that does not end"
	}
	return step, i + 1, ""
}

// quoted reads a key in quotes of either kind; a backslash escapes as in JSON, and either quote. In a loose path a backslash before
// anything else stands for itself.
func (p *pathScanner) quoted(s string, i int) (key string, end int, problem string) {
	quote := s[i]
	var b strings.Builder
	for i++; i < len(s); i++ {
		c := s[i]
		switch {
		case c == quote:
			return b.String(), i + 1, ""
		case c < ' ':
			return "", 0, "has a control character in a quoted key"
		case c != '\\':
			b.WriteByte(c)
			continue
		}
		if i++; i >= len(s) {
			break
		}
		r, size, ok := keyEscape(s[i:])
		switch {
		case ok:
			b.WriteRune(r)
			i += size - 1
		case p.loose:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		default:
			return "", 0, "has an unknown escape in a quoted key"
		}
	}
	return "", 0, "has a quoted key that does not end"
}

// keyEscape reads what follows a backslash in a quoted key.
func keyEscape(s string) (r rune, size int, ok bool) {
	switch s[0] {
	case '"', '\'', '\\', '/':
		return rune(s[0]), 1, true
	case 'n':
		return '\n', 1, true
	case 'r':
		return '\r', 1, true
	case 't':
		return '\t', 1, true
	case 'b':
		return '\b', 1, true
	case 'f':
		return '\f', 1, true
	case 'u':
		if len(s) < 5 {
			return 0, 0, false
		}
		n, err := strconv.ParseUint(s[1:5], 16, 32)
		return rune(n), 5, err == nil && utf8.ValidRune(rune(n))
	}
	return 0, 0, false
}

func skipBlank(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// In follows the path into JSON that was checked. A missing step gives no value, which is not the same as null.
func (p Path) In(raw []byte) (json.RawMessage, bool) {
	for _, s := range p {
		var ok bool
		switch i := blank(raw, 0); {
		case i == len(raw):
		case raw[i] == '{':
			raw, ok = Field(raw, s.Key)
		case raw[i] == '[' && s.Index >= 0:
			raw, ok = Item(raw, s.Index)
		}
		if !ok {
			return nil, false
		}
	}
	return raw, true
}

// String writes the path as people do.
func (p Path) String() string {
	text := ""
	for _, s := range p {
		if s.Bracketed {
			text += "[" + s.Key + "]"
		} else {
			text = JoinKey(text, s.Key)
		}
	}
	return text
}

// JoinKey appends a key to a path as people write it; one that is not a plain name stands in quotes.
func JoinKey(path, key string) string {
	bare := key != ""
	for i := 0; i < len(key) && bare; i++ {
		bare = isBare(key[i])
	}
	switch {
	case !bare:
		return path + "[" + string(Quote(key)) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// JoinIndex appends the number of an item to a path.
func JoinIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// JoinPath puts a path behind another.
func JoinPath(path, rest string) string {
	if path == "" || rest == "" || rest[0] == '[' {
		return path + rest
	}
	return path + "." + rest
}
