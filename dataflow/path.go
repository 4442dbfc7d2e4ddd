package dataflow

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxPlaceholder is how many bytes the text between a placeholder's brackets may have.
const maxPlaceholder = 1024

// segment is one step of a path: a key of an object, and an index of a list if it is written like one.
type segment struct {
	key   string
	index int // -1 when key cannot be an index
	// bracketed is an index written [0]: it is never the second half of a name.
	bracketed bool
}

func keySegment(key string) segment { return segment{key: key, index: indexOf(key)} }

// indexOf reads a canonical decimal index; anything else, also one too large for any list, is -1.
func indexOf(key string) int {
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

// scanPath reads a path that starts at s[i] and returns where it ends: at the first character that cannot go on. A
// problem is told as words that fit behind "it", with end meaningless.
func scanPath(s string, i int) (path []segment, end int, problem string) {
	limit := min(len(s), i+maxPlaceholder)
	for {
		switch {
		case i < limit && s[i] == '[':
			seg, next, problem := scanBracket(s[:limit], i)
			if problem != "" {
				return nil, 0, problem
			}
			path, i = append(path, seg), next
		default:
			start := i
			for i < limit && isBare(s[i]) {
				i++
			}
			if i == start {
				if len(path) == 0 {
					return nil, 0, "does not begin with a name"
				}
				return nil, 0, "has a dot that no name follows"
			}
			path = append(path, keySegment(s[start:i]))
		}
		switch {
		case i < limit && s[i] == '.':
			i++
			if i < limit && s[i] == '[' {
				return nil, 0, "has a dot before a bracket"
			}
		case i < limit && s[i] == '[':
		case i >= limit && limit < len(s):
			return nil, 0, "is longer than " + strconv.Itoa(maxPlaceholder) + " bytes"
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

// scanBracket reads [0], ["key"] or ['key'].
func scanBracket(s string, i int) (seg segment, end int, problem string) {
	i = skipBlank(s, i+1)
	if i >= len(s) {
		return segment{}, 0, "has a bracket that does not end"
	}
	if quote := s[i]; quote == '"' || quote == '\'' {
		key, next, problem := scanQuoted(s, i)
		if problem != "" {
			return segment{}, 0, problem
		}
		seg, i = keySegment(key), next
	} else {
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if i == start {
			return segment{}, 0, "has a bracket with neither an index nor a quoted key"
		}
		seg = keySegment(s[start:i])
		seg.bracketed = true
	}
	i = skipBlank(s, i)
	if i >= len(s) || s[i] != ']' {
		return segment{}, 0, "has a bracket that does not end"
	}
	return seg, i + 1, ""
}

// scanQuoted reads a key in quotes of either kind; a backslash escapes as in JSON, and either quote.
func scanQuoted(s string, i int) (key string, end int, problem string) {
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
		default:
			i++
			if i >= len(s) {
				return "", 0, "has a quoted key that does not end"
			}
			switch s[i] {
			case '"', '\'', '\\', '/':
				b.WriteByte(s[i])
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			case 'b':
				b.WriteByte('\b')
			case 'f':
				b.WriteByte('\f')
			case 'u':
				if i+4 >= len(s) {
					return "", 0, "has an unknown escape in a quoted key"
				}
				r, err := strconv.ParseUint(s[i+1:i+5], 16, 32)
				if err != nil || !utf8.ValidRune(rune(r)) {
					return "", 0, "has an unknown escape in a quoted key"
				}
				b.WriteRune(rune(r))
				i += 4
			default:
				return "", 0, "has an unknown escape in a quoted key"
			}
		}
	}
	return "", 0, "has a quoted key that does not end"
}

func skipBlank(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// walk follows a path into normalized JSON. A missing step is no value, which is not the same as null.
func walk(raw []byte, path []segment) ([]byte, bool) {
	for _, s := range path {
		var ok bool
		switch raw[0] {
		case '{':
			raw, ok = fieldOf(raw, s.key)
		case '[':
			if s.index >= 0 {
				raw, ok = itemOf(raw, s.index)
			}
		}
		if !ok {
			return nil, false
		}
	}
	return raw, true
}

// appendKey appends a key to a path as a user would write it.
func appendKey(path, key string) string {
	bare := key != ""
	for i := 0; i < len(key) && bare; i++ {
		bare = isBare(key[i])
	}
	switch {
	case !bare:
		return path + "[" + string(appendQuoted(nil, key)) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

func formatPath(path []segment) string {
	text := ""
	for _, s := range path {
		if s.bracketed {
			text += "[" + s.key + "]"
		} else {
			text = appendKey(text, s.key)
		}
	}
	return text
}
