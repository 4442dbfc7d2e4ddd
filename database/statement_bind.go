package database

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
)

// maxParameters is how many values one statement may have; SQLite takes the fewest.
const maxParameters = 32766

// bound is a statement as a server gets it: its text with the server's own marks, and a value for each of them.
type bound struct {
	sql    string
	values []json.RawMessage
	// keyword is the first word, returns that rows may come back.
	keyword string
	returns bool
	// escapes says that a text in it has a backslash, which servers of MySQL read in more than one way.
	escapes bool
}

// arguments are the values as drivers of database/sql take them.
func (b *bound) arguments() ([]any, error) {
	args := make([]any, len(b.values))
	for i, raw := range b.values {
		data, isBytes, err := bytesOf(gjson.ParseBytes(raw))
		switch {
		case err != nil:
			return nil, err
		case isBytes:
			args[i] = data
		default:
			args[i] = argument(raw)
		}
	}
	return args, nil
}

// bind puts the server's marks in the place of all values.
func (s *statement) bind() (bound, error) {
	b := binder{statement: s, numbers: map[string]int{}}
	if err := b.parameters(); err != nil {
		return bound{}, err
	}
	for i, t := range s.tokens {
		if err := b.token(i, t); err != nil {
			return bound{}, err
		}
		if len(b.values) > maxParameters {
			return bound{}, fault.Newf(fault.TooLarge, "the statement has more than %d values; give fewer", maxParameters)
		}
	}
	if n := len(b.list); b.next > 0 && b.next != n {
		return bound{}, wrongParameters("are %d and the statement has %d marks (?)", n, b.next)
	}
	if n := len(b.list); b.next == 0 && b.highest < n {
		return bound{}, wrongParameters("are %d and the statement uses %d of them; remove the rest", n, b.highest)
	}
	sql := strings.TrimSpace(b.out.String())
	return bound{sql: sql, values: b.values, keyword: s.keyword, returns: s.returns(), escapes: s.escapes()}, nil
}

// escapes says whether a text has a backslash in it.
func (s *statement) escapes() bool {
	return slices.ContainsFunc(s.tokens, func(t token) bool { return t.kind == tokenString && strings.ContainsRune(t.text, '\\') })
}

// returns says whether rows may come back.
func (s *statement) returns() bool {
	switch s.keyword {
	case "SELECT", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC", "PRAGMA", "CALL", "ANALYZE", "CHECK":
		return true
	case "WITH":
		return s.has("RETURNING") || !s.has("INSERT") && !s.has("UPDATE") && !s.has("DELETE") && !s.has("REPLACE") && !s.has("MERGE")
	}
	return s.has("RETURNING")
}

func wrongParameters(format string, args ...any) *fault.Error {
	return fault.Newf(fault.InvalidConfig, "the parameters "+format, args...).With("path", "configurations.parameters")
}

type binder struct {
	statement *statement
	out       strings.Builder
	values    []json.RawMessage
	// list and object are the parameters, whichever there are.
	list   []json.RawMessage
	object map[string]json.RawMessage
	names  []string
	// numbers are the marks of PostgreSQL that stand for the same parameter each time it is written.
	numbers map[string]int
	next    int // how many ? there were
	highest int // of the positions that were used
	// marked says that a mark was written last.
	marked bool
}

func (b *binder) parameters() error {
	raw := bytes.TrimSpace(b.statement.text.Parameters)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	switch v := gjson.ParseBytes(raw); {
	case v.IsArray():
		for _, item := range v.Array() {
			b.list = append(b.list, json.RawMessage(item.Raw))
		}
	case v.IsObject():
		b.object = map[string]json.RawMessage{}
		v.ForEach(func(key, value gjson.Result) bool {
			b.object[key.Str] = json.RawMessage(value.Raw)
			b.names = append(b.names, key.Str)
			return true
		})
	default:
		return wrongParameters("must be a list or an object")
	}
	return nil
}

func (b *binder) token(i int, t token) error {
	switch t.kind {
	case tokenValue:
		return b.value(i, "", b.statement.text.Values[t.number])
	case tokenTemplate:
		var text strings.Builder
		for n, part := range t.parts {
			text.WriteString(part)
			if n < len(t.numbers) {
				text.WriteString(plainText(b.statement.text.Values[t.numbers[n]]))
			}
		}
		raw, err := json.Marshal(text.String())
		if err != nil {
			return err
		}
		return b.value(i, "", raw)
	case tokenNext:
		if b.object != nil {
			return wrongParameters("have names and the statement counts them with ?; give them as a list, or write :name")
		}
		if b.highest > b.next {
			return wrongStatement("mixes ? with numbered parameters; use one of them")
		}
		b.next++
		return b.position(i, "?", b.next)
	case tokenPosition:
		if b.object != nil {
			return wrongParameters("have names and the statement counts them with %s; give them as a list, or write :name", t.text)
		}
		if b.next > 0 {
			return wrongStatement("mixes ? with numbered parameters; use one of them")
		}
		b.highest = max(b.highest, t.number)
		return b.position(i, t.text, t.number)
	case tokenName:
		return b.name(i, t.text)
	}
	b.apart(false, t.text[0])
	b.out.WriteString(t.text)
	return nil
}

// apart writes a space where a mark and what is beside it would become one word.
func (b *binder) apart(mark bool, next byte) {
	joins := func(c byte) bool { return wordPart(c) || c == '?' }
	if text := b.out.String(); (mark || b.marked) && text != "" && joins(text[len(text)-1]) && joins(next) {
		b.out.WriteByte(' ')
	}
	b.marked = mark
}

func (b *binder) position(i int, mark string, n int) error {
	b.highest = max(b.highest, n)
	if n > len(b.list) {
		return wrongParameters("are %d and the statement asks for number %d (%s); give them all", len(b.list), n, mark)
	}
	key := "$" + strconv.Itoa(n)
	if mark == "?" {
		key = "" // every mark is a parameter of its own
	}
	return b.value(i, key, b.list[n-1])
}

func (b *binder) name(i int, name string) error {
	value, ok := b.object[name]
	switch {
	case ok:
		return b.value(i, ":"+name, value)
	case b.list != nil:
		return wrongParameters("are a list and the statement names one (:%s); give them as an object, or write ?", name)
	}
	hint := "; add it"
	if near := fault.Nearest(name, b.names); near != "" {
		hint = "; did you mean :" + near + "?"
	}
	return wrongParameters("do not have %q, which the statement asks for as :%s%s", name, name, hint)
}

// value writes a mark for a value. A list right inside IN (…) becomes as many marks as it has items.
func (b *binder) value(i int, key string, raw json.RawMessage) error {
	if v := gjson.ParseBytes(raw); v.IsArray() && b.insideIn(i) {
		items := v.Array()
		if len(items) == 0 {
			if b.negated(i) {
				return fault.New(fault.InvalidInput, "the list of NOT IN is empty, and SQL has no empty list; leave the condition out, or give at least one value")
			}
			b.out.WriteString("NULL") // equals nothing
			return nil
		}
		for n, item := range items {
			if n > 0 {
				b.out.WriteString(", ")
			}
			b.mark("", json.RawMessage(item.Raw))
		}
		return nil
	}
	b.mark(key, raw)
	return nil
}

func (b *binder) mark(key string, raw json.RawMessage) {
	b.apart(true, '$')
	if b.statement.dialect != postgresDialect {
		b.values = append(b.values, raw)
		b.out.WriteByte('?')
		return
	}
	n, ok := b.numbers[key]
	if !ok || key == "" {
		b.values = append(b.values, raw)
		n = len(b.values)
		b.numbers[key] = n
	}
	b.out.WriteString("$" + strconv.Itoa(n))
}

// around lists the last tokens before i that are not space, nearest first.
func (b *binder) around(i, count int) []token {
	var found []token
	for i--; i >= 0 && len(found) < count; i-- {
		if t := b.statement.tokens[i]; t.kind != tokenSpace {
			found = append(found, t)
		}
	}
	return found
}

func (b *binder) insideIn(i int) bool {
	before, after := b.around(i, 2), b.statement.beside(i, 1)
	return len(before) == 2 && before[0].text == "(" && before[1].kind == tokenWord && strings.EqualFold(before[1].text, "in") &&
		after.kind == tokenSymbol && after.text == ")"
}

func (b *binder) negated(i int) bool {
	before := b.around(i, 3)
	return slices.ContainsFunc(before, func(t token) bool { return t.kind == tokenWord && strings.EqualFold(t.text, "not") })
}

// plainText writes a value as it stands inside a text.
func plainText(raw json.RawMessage) string {
	if v := gjson.ParseBytes(raw); v.Type == gjson.String {
		return v.Str
	}
	return string(raw)
}
