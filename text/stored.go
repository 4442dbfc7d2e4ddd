package text

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Stored is a [Text] in the form in which it is kept, in a journal or a row of a database: the English by which the catalogues know it and
// the values of its holes, so that it can be told in any language later, also in one that comes with a newer version. A catalogue that no
// longer knows the English leaves it as it is.
//
// The zero value is a text that says nothing.
type Stored struct{ Text }

// storedForm is what a text is made of, as JSON. What is empty is left out.
type storedForm struct {
	English string            `json:"text"`
	Context string            `json:"context,omitempty"`
	Args    []json.RawMessage `json:"args,omitempty"`
	Words   map[string]string `json:"words,omitempty"`
	Plain   bool              `json:"plain,omitempty"`
}

// MarshalJSON writes what the text is made of.
func (s Stored) MarshalJSON() ([]byte, error) {
	form := storedForm{English: s.english, Context: contextOf(s.context), Words: s.own, Plain: s.plain}
	numbers := numbered(s.english)
	for n, arg := range s.args {
		raw, err := storedValue(arg, n < len(numbers) && numbers[n])
		if err != nil {
			return nil, err
		}
		form.Args = append(form.Args, raw)
	}
	return json.Marshal(form)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Stored) UnmarshalJSON(raw []byte) error {
	var form storedForm
	if err := json.Unmarshal(raw, &form); err != nil {
		return fmt.Errorf("read a stored text: %w", err)
	}
	t := Text{english: form.English, own: form.Words, plain: form.Plain}
	if form.Context != "" {
		t = t.For(form.Context)
	}
	for _, one := range form.Args {
		value, err := readValue(one)
		if err != nil {
			return fmt.Errorf("read a value of the stored text %q: %w", form.English, err)
		}
		t.args = append(t.args, value)
	}
	s.Text = t
	return nil
}

// Stored is the text as it is kept with an error or another record.
func (t Text) Stored() json.RawMessage {
	raw, err := Stored{t}.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("text: %v", err)) // it is made of texts and numbers alone, which JSON has a form for
	}
	return raw
}

// Read is a text in the form of [Text.Stored].
func Read(raw []byte) (Text, error) {
	var s Stored
	err := s.UnmarshalJSON(raw)
	return s.Text, err
}

// Told is an error that is told to people in their language, as those of package fault are.
type Told interface {
	// English is what it says in English.
	English() string
	// Words are what it says in every language, in the form of [Text.Stored]; empty: it has no words of its own.
	Words() json.RawMessage
	// MadeOf is the format of what it says in English, and the values in it.
	MadeOf() (format string, values []any)
}

// ErrorIn is what an error says to a reader of a language: by its own words, else by the format that it was made of. Readers of English are
// told what it says in English, which may be more; so is everybody else if there are no words in their language.
func ErrorIn(language string, e Told) string {
	if Language(language) == English {
		return e.English()
	}
	var t Text
	if words := e.Words(); len(words) > 0 {
		var err error
		if t, err = Read(words); err != nil || t.In(language) == t.In(English) {
			return e.English()
		}
		return t.In(language)
	}
	format, values := e.MadeOf()
	if t = Formatted(format, values...); t.In(English) != e.English() {
		return e.English() // it was changed since
	}
	return t.In(language)
}

// OfError is what an error says, as a text that can be part of another.
func OfError(e Told) Text {
	return Settled(func(language string) string { return ErrorIn(language, e) })
}

// Settled is a text from words that are known in every language at once, as a list is that is put together in each of them.
func Settled(in func(language string) string) Text {
	t := Text{english: in(English), own: map[string]string{}}
	for _, language := range Languages() {
		t.own[language] = in(language)
	}
	return t
}

func contextOf(behind string) string {
	return strings.TrimSuffix(strings.TrimPrefix(behind, " ("), ")")
}

// hole is a verb of a format, perhaps with the number of its value.
var hole = regexp.MustCompile(`%(?:\[(\d+)\])?[-+# 0-9.]*([a-zA-Z%])`)

// numbered says for each value of a format whether its hole takes a number, and nothing else.
func numbered(format string) []bool {
	var list []bool
	for _, m := range hole.FindAllStringSubmatch(format, -1) {
		if m[2] == "%" {
			continue
		}
		n := len(list)
		if at, err := strconv.Atoi(m[1]); err == nil && at > 0 {
			n = at - 1
		}
		for len(list) <= n {
			list = append(list, false)
		}
		list[n] = !strings.Contains("sqv", m[2])
	}
	return list
}

// storedValue writes one value: a text with what it is made of, a number as such where its hole takes nothing else, anything else in words.
// Whole numbers are written without a point and others with one, so that each comes back as what it was.
func storedValue(arg any, number bool) (json.RawMessage, error) {
	if inner, ok := arg.(Text); ok {
		return Stored{inner}.MarshalJSON()
	}
	v := reflect.ValueOf(arg)
	switch {
	case number && v.CanInt():
		return json.Marshal(v.Int())
	case number && v.CanUint():
		return json.Marshal(v.Uint())
	case number && v.CanFloat() && !math.IsInf(v.Float(), 0) && !math.IsNaN(v.Float()):
		written := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if !strings.ContainsAny(written, ".e") {
			written += ".0"
		}
		return json.RawMessage(written), nil
	}
	return json.Marshal(fmt.Sprint(arg))
}

// readValue reads what storedValue writes.
func readValue(raw json.RawMessage) (any, error) {
	if len(raw) > 0 && raw[0] == '{' {
		var inner Stored
		err := inner.UnmarshalJSON(raw)
		return inner.Text, err
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, nil
	}
	if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil { // more than an int64 holds
		return n, nil
	}
	var value any
	err := json.Unmarshal(raw, &value)
	return value, err
}
