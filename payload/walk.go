package payload

import (
	"bytes"
	"encoding/json"
	"slices"
)

// The functions of this file take JSON apart without decoding it, so that values keep their digits and objects the order of their
// fields. They are for JSON that has been checked. Of anything else they tell some of what is there.

// blank returns the first place from i on that is not white space.
func blank(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// skip returns the end of the value that starts at i.
func skip(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; i < len(b); {
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
		return len(b)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// skipString finds the end of the string that starts at i. Long strings are searched many bytes at a time; no byte is searched twice for
// the same thing, whatever stands in them.
func skipString(b []byte, i int) int {
	quote := i
	for i++; i < len(b); {
		if quote < i {
			next := bytes.IndexByte(b[i:], '"')
			if next < 0 {
				return len(b)
			}
			quote = i + next
		}
		slash := bytes.IndexByte(b[i:quote], '\\')
		if slash < 0 {
			return quote + 1
		}
		i += slash + 2
	}
	return len(b)
}

// EachField calls f with every key (as written, without quotes) and value of an object, in order, until f says false. What is not an
// object has none.
func EachField(object []byte, f func(key, value []byte) bool) {
	i := blank(object, 0)
	if i == len(object) || object[i] != '{' {
		return
	}
	for i = blank(object, i+1); i < len(object) && object[i] != '}'; i = blank(object, i) {
		if object[i] == ',' {
			i = blank(object, i+1)
		}
		if i == len(object) || object[i] != '"' {
			return
		}
		keyEnd := skipString(object, i)
		start := blank(object, blank(object, keyEnd)+1)
		if start >= len(object) {
			return
		}
		end := skip(object, start)
		if !f(object[i+1:keyEnd-1], object[start:end:end]) {
			return
		}
		i = end
	}
}

// EachItem calls f with every item of a list, in order, until f says false. What is not a list has none.
func EachItem(list []byte, f func(value []byte) bool) {
	i := blank(list, 0)
	if i == len(list) || list[i] != '[' {
		return
	}
	for i = blank(list, i+1); i < len(list) && list[i] != ']'; i = blank(list, i) {
		if list[i] == ',' {
			i = blank(list, i+1)
		}
		if i == len(list) {
			return
		}
		end := skip(list, i)
		if end == i || !f(list[i:end:end]) {
			return
		}
		i = end
	}
}

// Field returns the value of a key. Of equal keys the last one counts, as it does for encoding/json.
func Field(object []byte, key string) (value json.RawMessage, ok bool) {
	EachField(object, func(written, v []byte) bool {
		if sameKey(written, key) {
			value, ok = v, true
		}
		return true
	})
	return value, ok
}

// Item returns an item of a list.
func Item(list []byte, index int) (value json.RawMessage, ok bool) {
	n := 0
	EachItem(list, func(v []byte) bool {
		if ok = n == index; ok {
			value = v
		}
		n++
		return !ok
	})
	return value, ok
}

// Items returns the items of a list.
func Items(list []byte) []json.RawMessage {
	items := []json.RawMessage{}
	EachItem(list, func(value []byte) bool {
		items = append(items, value)
		return true
	})
	return items
}

func sameKey(written []byte, key string) bool {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written) == key
	}
	return Unquote(written) == key
}

// Unquote returns the words of a string as it is written in JSON, given without its quotes.
func Unquote(written []byte) string {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written)
	}
	quoted := make([]byte, 0, len(written)+2)
	quoted = append(append(append(quoted, '"'), written...), '"')
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return string(written) // cannot happen: it was checked
	}
	return text
}

// Member is one field of an object.
type Member struct {
	Key   string
	Value json.RawMessage
}

// manyBytes is from which size on the fields of an object are counted before they are taken apart, so that there is room for just as many.
const manyBytes = 16 << 10

// usualFields is how many fields of a small object there is room for before more is made.
const usualFields = 4

// Members splits an object into its fields in the order they were written; a repeated key stays where it stood first
// and has its last value.
func Members(object []byte) []Member {
	const few = 16 // up to here looking through them is cheaper than a map
	var members []Member
	var seen map[string]int
	count := 0
	if len(object) > manyBytes {
		EachField(object, func(_, _ []byte) bool { count++; return true })
		members = make([]Member, 0, count)
	}
	EachField(object, func(key, value []byte) bool {
		k := Unquote(key)
		at := -1
		if seen != nil {
			if i, ok := seen[k]; ok {
				at = i
			}
		} else {
			at = slices.IndexFunc(members, func(m Member) bool { return m.Key == k })
		}
		if at >= 0 {
			members[at].Value = value
			return true
		}
		if members == nil {
			members = make([]Member, 0, usualFields)
		}
		members = append(members, Member{k, value})
		if seen != nil {
			seen[k] = len(members) - 1
		} else if len(members) > few {
			seen = make(map[string]int, count)
			for i, m := range members {
				seen[m.Key] = i
			}
		}
		return true
	})
	return members
}

// WithField is an object with a field: in the place of the one that it has of that name, or behind the others.
func WithField(object []byte, key string, value json.RawMessage) json.RawMessage {
	members := Members(object)
	if at := slices.IndexFunc(members, func(m Member) bool { return m.Key == key }); at >= 0 {
		members[at].Value = value
	} else {
		members = append(members, Member{key, value})
	}
	return AppendObject(make([]byte, 0, len(object)+len(key)+len(value)+4), members)
}

// AppendObject writes fields as an object.
func AppendObject(dst []byte, members []Member) []byte {
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendText(dst, m.Key), ':')
		dst = append(dst, m.Value...)
	}
	return append(dst, '}')
}

// AppendList writes values as a list.
func AppendList[V ~[]byte](dst []byte, items []V) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, item...)
	}
	return append(dst, ']')
}
