package payload

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Encode writes a value as compact JSON with every character as it is; json.Marshal would escape what HTML minds. JSON inside the value
// is written as it is, without white space.
func Encode(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case json.RawMessage:
		if v == nil {
			return json.RawMessage("null"), nil
		}
		return v, nil
	case string:
		if plain(v) {
			return append(append(append(make([]byte, 0, len(v)+2), '"'), v...), '"'), nil
		}
	}
	return encode(v, "")
}

// EncodeIndented writes a value with a line for each part of it, and a line's end.
func EncodeIndented(v any) ([]byte, error) {
	raw, err := encode(v, "  ")
	if err != nil {
		return nil, err
	}
	return append(raw, '\n'), nil
}

func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// plain says that a text stands in JSON as it is.
func plain(text string) bool {
	ascii := true
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.ValidString(text) && !strings.ContainsAny(text, "\u2028\u2029")
}

// Marshal is [Encode] for people and models: JSON inside the value is made readable too.
func Marshal(v any) (json.RawMessage, error) {
	raw, err := Encode(v)
	if err != nil {
		return nil, err
	}
	return Readable(raw), nil
}

// Quote writes a text as JSON.
func Quote(text string) json.RawMessage { return AppendText(make([]byte, 0, len(text)+2), text) }

// AppendText writes a text as JSON, with the fewest escapes. What is not UTF-8 becomes the replacement character.
func AppendText(dst []byte, text string) []byte {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return append(AppendEscaped(append(dst, '"'), text), '"')
}

// AppendEscaped writes a text as it stands inside a string of JSON, without the quotes.
func AppendEscaped[T ~string | ~[]byte](dst []byte, text T) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i := range len(text) {
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
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, text[start:]...)
}

// Canonical writes a value in one way only: members sorted, no white space, numbers as they were written. It is what hashes are made of.
func Canonical(raw []byte) (json.RawMessage, error) {
	v, err := Decode(raw)
	if err != nil {
		return nil, err
	}
	return encode(v, "")
}

// Same says whether two values are the same, however their members are ordered and spaced.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := Decode(a)
	if err != nil {
		return false
	}
	y, err := Decode(b)
	return err == nil && reflect.DeepEqual(x, y)
}

// SameValue is [Same] where it does not matter either how a number is written: 1, 1.0 and 1e0 are one, as [SameNumber] says.
func SameValue(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := Decode(a)
	if err != nil {
		return false
	}
	y, err := Decode(b)
	return err == nil && sameValue(x, y)
}

func sameValue(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for key, value := range x { // order does not matter: all must be the same
			if other, ok := y[key]; !ok || !sameValue(value, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, sameValue)
	case json.Number:
		y, ok := b.(json.Number)
		return ok && SameNumber(x, y)
	}
	return a == b
}
