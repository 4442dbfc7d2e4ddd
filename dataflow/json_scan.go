package dataflow

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"tandem/payload"
)

// The limits on JSON that comes in, be it a template or a payload.
const (
	// MaxDepth is how deep lists and objects may nest.
	MaxDepth = payload.MaxDepth
	// MaxNumber is how many characters a number may have.
	MaxNumber = payload.MaxNumber
)

// normalize checks that raw is exactly one JSON value within the limits and returns it without insignificant white
// space. Everything behind this door may be walked without further checks. The result shares memory with raw.
func normalize(raw []byte) (json.RawMessage, error) { return payload.Normalize(raw, payload.Limits{}) }

// The functions below read normalized JSON only; on anything else they may panic.

// skip returns the end of the value that starts at i.
func skip(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; ; i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// eachField calls f with every key (as written, without quotes) and value of an object, in order, until f says false.
func eachField(object []byte, f func(key, value []byte) bool) {
	for i := 1; object[i] != '}'; {
		if object[i] == ',' {
			i++
		}
		keyEnd := skipString(object, i)
		valueEnd := skip(object, keyEnd+1)
		if !f(object[i+1:keyEnd-1], object[keyEnd+1:valueEnd:valueEnd]) {
			return
		}
		i = valueEnd
	}
}

// eachItem calls f with every item of a list, in order, until f says false.
func eachItem(list []byte, f func(value []byte) bool) {
	for i := 1; list[i] != ']'; {
		if list[i] == ',' {
			i++
		}
		end := skip(list, i)
		if !f(list[i:end:end]) {
			return
		}
		i = end
	}
}

// fieldOf returns the value of a key. Of equal keys the last one counts, as it does for encoding/json.
func fieldOf(object []byte, key string) (value []byte, ok bool) {
	for i := 1; object[i] != '}'; {
		if object[i] == ',' {
			i++
		}
		keyEnd := skipString(object, i)
		valueEnd := skip(object, keyEnd+1)
		if sameKey(object[i+1:keyEnd-1], key) {
			value, ok = object[keyEnd+1:valueEnd:valueEnd], true
		}
		i = valueEnd
	}
	return value, ok
}

func itemOf(list []byte, index int) (value []byte, ok bool) {
	n := 0
	for i := 1; list[i] != ']'; n++ {
		if list[i] == ',' {
			i++
		}
		end := skip(list, i)
		if n == index {
			return list[i:end:end], true
		}
		i = end
	}
	return nil, false
}

func sameKey(written []byte, key string) bool {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written) == key
	}
	return unquote(written) == key
}

// unquote returns the text of a string token without its quotes.
func unquote(written []byte) string {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written)
	}
	quoted := make([]byte, 0, len(written)+2)
	quoted = append(append(append(quoted, '"'), written...), '"')
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return string(written) // cannot happen: the token was checked on the way in
	}
	return text
}

// appendEscaped appends text as it stands inside a JSON string, without the quotes.
func appendEscaped(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, text[start:]...)
}

func appendQuoted(dst []byte, text string) []byte {
	return append(appendEscaped(append(dst, '"'), strings.ToValidUTF8(text, "\uFFFD")), '"')
}

// member is one field of an object.
type member struct {
	key   string
	value json.RawMessage
}

// membersOf splits an object into its fields in the order they were written; a repeated key stays where it stood first
// and has its last value.
func membersOf(object []byte) []member {
	const few = 16 // up to here looking through them is cheaper than a map
	var members []member
	var seen map[string]int
	eachField(object, func(key, value []byte) bool {
		k := unquote(key)
		at := -1
		if seen != nil {
			if i, ok := seen[k]; ok {
				at = i
			}
		} else {
			at = slices.IndexFunc(members, func(m member) bool { return m.key == k })
		}
		if at >= 0 {
			members[at].value = value
			return true
		}
		members = append(members, member{k, value})
		if seen != nil {
			seen[k] = len(members) - 1
		} else if len(members) > few {
			seen = map[string]int{}
			for i, m := range members {
				seen[m.key] = i
			}
		}
		return true
	})
	return members
}

func sortMembers(members []member) []member {
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	return members
}

// find looks a key up in sorted members.
func find(members []member, key string) (json.RawMessage, bool) {
	at, ok := slices.BinarySearchFunc(members, key, func(m member, k string) int { return strings.Compare(m.key, k) })
	if !ok {
		return nil, false
	}
	return members[at].value, true
}

func appendObject(dst []byte, members []member) []byte {
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, m.key), ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}
