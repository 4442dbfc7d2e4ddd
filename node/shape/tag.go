package shape

import (
	"reflect"
	"strconv"
	"strings"
)

// tag is the tag of a field, taken apart: names and values in turns. [reflect.StructTag] looks through all of it for each name, and a field is asked for a
// dozen that it does not have, with its meaning in two languages before them. That was a third of what it takes to make all kinds.
type tag []string

func readTag(raw reflect.StructTag) tag {
	var list tag
	for rest := strings.TrimLeft(string(raw), " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		name, value, ok := strings.Cut(rest, ":")
		if !ok || !strings.HasPrefix(value, `"`) {
			break
		}
		quoted, err := strconv.QuotedPrefix(value)
		if err != nil {
			break
		}
		text, err := strconv.Unquote(quoted)
		if err != nil {
			break
		}
		list, rest = append(list, name, text), value[len(quoted):]
	}
	return list
}

// get is the value of a name; empty: it has none.
func (t tag) get(name string) string {
	for i := 0; i < len(t); i += 2 {
		if t[i] == name {
			return t[i+1]
		}
	}
	return ""
}
