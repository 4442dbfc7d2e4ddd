package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"tandem/payload"
	"tandem/store"
)

// A rule looks at one argument, and the server at all of them, with a decoder of its own. So a rule only decides where both must see the
// same: whatever could be read in another way is unclear, and what is unclear is asked.

// sortedNames are the names in a map, in order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// declared are the arguments that the schema of a tool names.
func declared(t Tool) map[string]bool {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	names := map[string]bool{}
	if json.Unmarshal(t.InputSchema, &schema) != nil {
		return names
	}
	for name := range schema.Properties { // order does not matter
		names[name] = true
	}
	return names
}

// readArguments takes arguments apart. Unclear says why they might be read in another way than they are here: members of one name, or of
// names that some decoders take for one, and members that the tool does not declare.
func readArguments(t Tool, raw json.RawMessage) (given map[string]json.RawMessage, unclear string) {
	given = map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return given, ""
	}
	if !utf8.Valid(raw) {
		return nil, "the arguments are not UTF-8"
	}
	object, err := payload.Normalize(raw, payload.Limits{})
	switch {
	case err != nil:
		return nil, "the arguments cannot be read"
	case object[0] != '{':
		return nil, "the arguments are not an object"
	}
	known, folded := declared(t), map[string]bool{}
	payload.EachField(object, func(key, value []byte) bool {
		name := payload.Unquote(key)
		fold := strings.ToLower(norm.NFKC.String(name))
		switch {
		case folded[fold]:
			unclear = "two arguments are called " + strconv.Quote(name) + ", or nearly so"
		case !known[name]:
			unclear = "the tool does not declare the argument " + strconv.Quote(name)
		}
		folded[fold], given[name] = true, value
		return unclear == ""
	})
	if unclear != "" {
		return nil, unclear
	}
	return given, ""
}

// fulfils says whether arguments fulfil a rule, or why that is unclear.
func fulfils(r store.MCPRule, given map[string]json.RawMessage) (yes bool, unclear string) {
	raw, there := given[r.Argument]
	isNull := string(raw) == "null"
	switch {
	case r.Absent && isNull:
		return false, "it is null, which may mean that it is not there"
	case r.Absent:
		return !there, ""
	case !there || isNull:
		return false, "it is not there, and what the tool takes in its place is not known"
	case len(r.Equals) > 0:
		return equals(r.Equals, raw)
	}
	var text string
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return false, "it is not a text"
	}
	if why := ambiguous(raw, text); why != "" {
		return false, why
	}
	if strings.TrimSpace(text) != text {
		return false, "it has space around it"
	}
	if r.Under != "" {
		return under(r.Under, text)
	}
	return matches(r.Pattern, text)
}

// ambiguous says why a text may be another one to the program that reads it next.
func ambiguous(raw json.RawMessage, text string) string {
	for _, r := range text {
		if r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) {
			return "it holds characters that cannot be seen"
		}
	}
	if strings.Contains(string(raw), `\u0000`) || !norm.NFKC.IsNormalString(text) {
		return "it is written in a way that can be read as another text"
	}
	return ""
}

// equals compares scalars of one type.
func equals(want, got json.RawMessage) (yes bool, unclear string) {
	a, wrong := payload.Decode(want)
	b, err := payload.Decode(got)
	if wrong != nil || err != nil {
		return false, "it cannot be read"
	}
	switch wanted := a.(type) {
	case bool:
		is, ok := b.(bool)
		if !ok {
			return false, "it is not true or false"
		}
		return is == wanted, ""
	case json.Number:
		is, ok := b.(json.Number)
		if !ok {
			return false, "it is not a number"
		}
		if is == wanted {
			return true, ""
		}
		x, xerr := strconv.ParseFloat(string(wanted), 64)
		y, yerr := strconv.ParseFloat(string(is), 64)
		if xerr != nil || yerr != nil || x == y {
			return false, "it is a number that may be taken for " + string(wanted)
		}
		return false, ""
	case string:
		is, ok := b.(string)
		switch {
		case !ok:
			return false, "it is not a text"
		case ambiguous(got, is) != "":
			return false, ambiguous(got, is)
		case is == wanted:
			return true, ""
		case strings.EqualFold(strings.TrimSpace(is), strings.TrimSpace(wanted)):
			return false, "it differs from " + strconv.Quote(wanted) + " in case or space only"
		}
		return false, ""
	}
	return false, "it cannot be compared"
}

// climbs finds what leads up out of a directory, also where it is encoded. read-only
var climbs = regexp.MustCompile(`(?i)(^|[/\\])\.\.([/\\]|$)|%2e|%2f|%5c|%00|%25`)

// matches holds a whole text against a pattern.
func matches(pattern, text string) (yes bool, unclear string) {
	if climbs.MatchString(text) {
		return false, "it leads up out of a directory, or hides a part of itself"
	}
	whole, err := regexp.Compile(`^(?:` + pattern + `)$`)
	loose, looseErr := regexp.Compile(`(?i)^(?:` + pattern + `)$`)
	switch {
	case err != nil || looseErr != nil:
		return false, "the pattern cannot be used"
	case whole.MatchString(text):
		return true, ""
	case loose.MatchString(text):
		return false, "it fits but for its case"
	}
	return false, ""
}

// scheme is how an address begins. read-only
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// under says that a text names a directory or an address, or something below it. Links in a file system are not looked through.
func under(dir, text string) (yes bool, unclear string) {
	if climbs.MatchString(text) || strings.ContainsAny(text, `\%`) {
		return false, "it leads up out of a directory, or hides a part of itself"
	}
	dir = strings.TrimSuffix(dir, "/")
	if begins := scheme.FindString(dir); begins != "" {
		if !strings.HasPrefix(text, begins) {
			return false, "it is not an address that begins with " + begins
		}
	} else if !strings.HasPrefix(text, "/") {
		return false, "it is not a path that begins with a slash"
	}
	plain := text[len(scheme.FindString(text)):]
	if strings.Contains(plain, "//") || strings.Contains(plain, "/./") || strings.HasSuffix(plain, "/.") {
		return false, "it is a path that is not written plainly"
	}
	address := plain != text
	if host, _, _ := strings.Cut(plain, "/"); address && strings.ContainsAny(host, "@:") {
		return false, "it is an address with more than a host"
	}
	if text == dir || strings.HasPrefix(text, dir+"/") {
		return true, ""
	}
	if len(text) >= len(dir) && strings.EqualFold(text[:len(dir)], dir) && (address || len(text) == len(dir) || text[len(dir)] == '/') {
		return false, "it is nearly " + dir
	}
	return false, ""
}
