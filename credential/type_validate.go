package credential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"tandem/fault"
	"tandem/identity"
	"tandem/payload"
	"tandem/text"
)

// Problem is one thing that is wrong with a credential's data. It never holds a value: what stands in the wrong field
// may be a secret.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	// Words are the message in the languages of readers.
	Words text.Text `json:"-"`
}

// problemOf makes a problem of what is said about a field.
func problemOf(field string, words text.Text) Problem {
	return Problem{Field: field, Message: words.In(text.English), Words: words}
}

// maxShownName bounds the unknown names that a problem quotes.
const maxShownName = 64

// Validate checks the data of a credential and reports everything that is wrong with it at once: as Invalid, with the
// fact "problems", a list of [Problem].
func (t Type) Validate(data json.RawMessage) error {
	if len(data) > MaxSize {
		return fault.Newf(fault.TooLarge, "a credential of %d bytes is too large; the limit is %d", len(data), MaxSize)
	}
	values, err := decodeObject(data)
	if err != nil {
		return err
	}
	problems := t.check(values, "")
	if len(problems) == 0 {
		return nil
	}
	all := problems[0].Words
	for _, p := range problems[1:] {
		all = text.Of("%s; %s", all, p.Words)
	}
	return fault.Newf(fault.Invalid, "credential of type %q: %s", t.Name, all).With("problems", problems)
}

// Secrets returns the secret values of a credential and the secret parts of those that are made of several, such as the
// password in a data source name: what a [Redactor] has to hold while it is in use.
func (t Type) Secrets(data json.RawMessage) ([]string, error) {
	values, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	return t.secrets(values), nil
}

// decodeObject never repeats what it read; a parser's message might.
func decodeObject(data json.RawMessage) (map[string]json.RawMessage, error) {
	var values map[string]json.RawMessage
	switch err := payload.Read(data, &values); {
	case payload.Follows(err):
		return nil, fault.New(fault.Invalid, "the data of a credential must be one JSON object, and something follows it")
	case err != nil || values == nil:
		return nil, fault.New(fault.Invalid, "the data of a credential must be a JSON object with the fields of its type")
	}
	return values, nil
}

// check reports what is wrong, in the order of the type's fields; prefix is put before names.
func (t Type) check(values map[string]json.RawMessage, prefix string) []Problem {
	var problems []Problem
	add := func(field string, problem text.Text) {
		name := prefix + field
		problems = append(problems, problemOf(name, text.Formatted("%s %s", quoteName(name), problem)))
	}
	var names []string
	for _, f := range t.Fields {
		names = append(names, f.Name)
		raw := values[f.Name]
		if absent(raw) {
			if f.Required {
				add(f.Name, text.Of("is missing"))
			}
			continue
		}
		if f.Format == FormatAuth {
			problems = append(problems, f.checkInner(raw, prefix+f.Name)...)
		} else if problem := f.checkValue(raw); !problem.IsZero() {
			add(f.Name, problem)
		}
	}
	var unknown []string
	for name := range values {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		add(name, text.Of("is not a field of %q%s", t.Name, hint(name, names)))
	}
	if field, problem := t.checkAlternatives(values, prefix); !problem.IsZero() {
		problems = append(problems, problemOf(field, problem))
	}
	return problems
}

// checkAlternatives says which fields are missing, going by the alternative that was begun, or names all of them.
func (t Type) checkAlternatives(values map[string]json.RawMessage, prefix string) (field string, problem text.Text) {
	var selected string
	if t.Selector != "" && json.Unmarshal(values[t.Selector], &selected) != nil {
		return "", text.Text{} // the selector itself was reported
	}
	var ways []text.Text
	var begun []string // what is missing in the first alternative that has a field of its own set
	open := false      // an alternative that asks for nothing; it counts only if no other was begun
	for _, a := range t.Alternatives {
		if a.When != "" && a.When != selected {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(a.Requires), func(name string) bool { return !absent(values[name]) })
		switch {
		case len(a.Requires) == 0:
			open = true
		case len(missing) == 0:
			return "", text.Text{}
		case len(missing) < len(a.Requires) && begun == nil:
			begun = missing
		}
		ways = append(ways, allOf(quoteAll(a.Requires, prefix)))
	}
	switch {
	case begun != nil && len(ways) > 1 && !open:
		return prefix + begun[0], text.Of("%s (a %s needs %s)", areMissing(begun, prefix), t.Name, oneOf(ways))
	case begun != nil:
		return prefix + begun[0], areMissing(begun, prefix)
	case open || len(ways) == 0:
		return "", text.Text{}
	case len(ways) == 1 && t.Selector != "":
		return prefix + t.Selector, text.Of("%s %q needs %s", t.Selector, selected, ways[0])
	default:
		return "", text.Of("a %s needs %s", t.Name, oneOf(ways))
	}
}

func areMissing(names []string, prefix string) text.Text {
	if len(names) == 1 {
		return text.Of("%s is missing", quoteName(prefix+names[0])).For("a field")
	}
	return text.Of("%s are missing", allOf(quoteAll(names, prefix)))
}

// allOf names what is needed together.
func allOf(quoted []string) text.Text {
	var all text.Text
	for i, one := range quoted {
		if i == 0 {
			all = text.As(one)
		} else {
			all = text.Of("%s and %s", all, one)
		}
	}
	return all
}

// oneOf names what is needed, one way or another.
func oneOf(ways []text.Text) text.Text {
	all := ways[0]
	for _, one := range ways[1:] {
		all = text.Of("%s, or %s", all, one)
	}
	return all
}

// inner is the type of an object inside another, which has the address itself.
func (f Field) inner() Type {
	t := *f.Of
	t.Fields = slices.DeleteFunc(slices.Clone(t.Fields), func(f Field) bool { return f.Name == addressField })
	return t
}

func (f Field) checkInner(raw json.RawMessage, name string) []Problem {
	values, err := decodeObject(raw)
	if err != nil {
		return []Problem{problemOf(name, text.Of("%s must be an object with the fields of %s", quoteName(name), f.Of.Name))}
	}
	return f.inner().check(values, name+".")
}

// absent values are the missing ones, null, and empty text.
func absent(raw json.RawMessage) bool {
	written := string(bytes.TrimSpace(raw))
	return written == "" || written == "null" || written == `""`
}

// checkValue returns what is wrong with a value, if anything is.
func (f Field) checkValue(raw json.RawMessage) text.Text {
	switch f.Format {
	case FormatPort:
		var port int
		if json.Unmarshal(raw, &port) != nil || port < 1 || port > 65535 {
			return text.Of("must be a whole number from 1 to 65535")
		}
		return text.Text{}
	case FormatTexts:
		var list []string
		if json.Unmarshal(raw, &list) != nil {
			return text.Of("must be a list of texts")
		}
		for _, line := range list {
			if problem := checkLine(line); !problem.IsZero() {
				return text.Of("has an entry that %s", problem)
			}
		}
		return text.Text{}
	case FormatObjects:
		var list []map[string]json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 ||
			slices.ContainsFunc(list, func(o map[string]json.RawMessage) bool { return o == nil }) {
			return text.Of("must be a list of objects with at least one")
		}
		return text.Text{}
	case FormatDocument:
		return f.checkDocument(raw)
	}
	var value string
	if json.Unmarshal(raw, &value) != nil {
		return text.Of("must be text")
	}
	if problem := checkLine(value); !problem.IsZero() {
		return problem
	}
	if why := identity.Weakness(value); f.Chosen && !why.IsZero() {
		return text.Of("%s, so it can be guessed and calls forged; %s", why, identity.ChooseSecret())
	}
	switch f.Format {
	case FormatChoice:
		if !slices.Contains(f.Choices, value) {
			// Only a word that is nearly right is worth a hint, and the hint holds no part of the value.
			return text.Of("must be one of %s%s", strings.Join(f.Choices, ", "), hint(value, f.Choices))
		}
	case FormatURL:
		return f.checkURL(value)
	}
	return text.Text{}
}

// checkLine refuses what a paste brings along unseen, and what could end a header early.
func checkLine(line string) text.Text {
	switch {
	case len(line) > MaxSecret:
		return text.Of("is longer than %d bytes", MaxSecret)
	case strings.TrimSpace(line) == "":
		return text.Of("is only space")
	case strings.TrimSpace(line) != line:
		return text.Of("begins or ends with space or a line break; paste it without")
	case strings.ContainsFunc(line, unicode.IsControl):
		return text.Of("has a line break or another control character in it; paste it as one line")
	}
	return text.Text{}
}

func (f Field) checkURL(address string) text.Text {
	schemes := f.Schemes
	if schemes == nil {
		schemes = []string{"http", "https"}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return text.Of("must be an absolute address such as %s://host/path", schemes[len(schemes)-1])
	case !slices.Contains(schemes, u.Scheme):
		return text.Of("must begin with one of %s://", strings.Join(schemes, "://, "))
	case u.User != nil && !f.Secret:
		return text.Of("must not hold a user name or password; they have fields of their own")
	}
	return text.Text{}
}

// document reads an object, or an object written as text; nil if it is neither.
func document(raw json.RawMessage) map[string]json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	return object
}

// checkDocument says what is wrong with a document.
func (f *Field) checkDocument(raw json.RawMessage) text.Text {
	object := document(raw)
	switch {
	case object == nil && f.YAML && mapping(raw):
	case object == nil && f.YAML:
		return text.Of("must be a JSON object, or one as text in JSON or YAML")
	case object == nil:
		return text.Of("must be a JSON object, or one as text")
	}
	for _, member := range f.Members {
		if len(object[member]) > MaxSecret {
			return text.Of("has a member %q that is longer than %d bytes", member, MaxSecret)
		}
	}
	return text.Text{}
}

// mapping says that a value is a text in YAML with names and values.
func mapping(raw json.RawMessage) bool {
	var text string
	var names map[string]yaml.Node
	return json.Unmarshal(raw, &text) == nil && yaml.Unmarshal([]byte(text), &names) == nil && len(names) > 0
}

// secrets collects the secret values; values of the wrong shape give what text they have.
func (t Type) secrets(values map[string]json.RawMessage) []string {
	var out []string
	for _, f := range t.Fields {
		raw := values[f.Name]
		if !f.Secret || absent(raw) {
			continue
		}
		switch f.Format {
		case FormatAuth:
			if inside, err := decodeObject(raw); err == nil {
				out = append(out, f.inner().secrets(inside)...)
			}
		case FormatDocument:
			object := document(raw)
			for _, member := range f.Members {
				var text string
				if json.Unmarshal(object[member], &text) == nil {
					out = append(out, text)
				}
			}
		default:
			var text string
			if json.Unmarshal(raw, &text) == nil {
				out = append(out, text)
				out = append(out, secretParts(text)...)
				if u, err := url.Parse(text); err == nil && f.Format == FormatURL && len(u.RequestURI()) > 1 {
					out = append(out, u.RequestURI()) // what a request line shows
				}
			}
		}
	}
	return out
}

// secretParts finds the secrets inside an address, a data source name, a connection string or a query: programs print
// them apart from what they were given in.
func secretParts(text string) []string {
	var out []string
	if u, err := url.Parse(text); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok {
			out = append(out, password)
		}
	}
	// user:password@tcp(host)/database
	if before, _, ok := cutLast(text, "@"); ok && !strings.Contains(text, "://") {
		if _, password, ok := strings.Cut(before, ":"); ok {
			out = append(out, password)
		}
	}
	for _, found := range secretPart.FindAllStringSubmatch(text, -1) {
		value := found[1]
		if value[:1] == "'" || value[:1] == `"` {
			value = unescapeQuoted.ReplaceAllString(strings.TrimSuffix(value[1:], value[:1]), "$1")
		}
		out = append(out, value)
		if plain, err := url.QueryUnescape(value); err == nil && plain != value {
			out = append(out, plain)
		}
	}
	return out
}

// secretPart is name=value or name='value' for the names under which connection strings and queries hold secrets.
var secretPart = regexp.MustCompile(`(?i)(?:^|[\s;&?])(?:password|pwd|sslpassword|sig|accountkey|sharedaccesskey|sharedaccesssignature)\s*=\s*('(?:[^'\\]|\\.)*'|"[^"]*"|[^\s;&]+)`)

// unescapeQuoted is what a backslash in a quoted value does.
var unescapeQuoted = regexp.MustCompile(`\\(.)`)

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

func hint(name string, known []string) text.Text {
	if near := fault.Nearest(name, known); near != "" {
		return text.Of("; did you mean %q?", near)
	}
	return text.Text{}
}

func quoteName(name string) string {
	if len(name) > maxShownName {
		name = name[:maxShownName]
		for !utf8.ValidString(name) && name != "" {
			name = name[:len(name)-1]
		}
		name += "…"
	}
	return fmt.Sprintf("%q", name)
}

func quoteAll(names []string, prefix string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = quoteName(prefix + name)
	}
	return out
}
