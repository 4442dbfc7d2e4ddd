package values

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/payload"
)

// Text is a text as it is and anything else as compact JSON.
func Text(raw json.RawMessage) string {
	if IsNull(raw) {
		return ""
	}
	return payload.Text(raw)
}

// TextOf writes a value as a text: a text as it is, nothing for null, anything else as JSON.
func TextOf(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case json.Number:
		return string(x)
	}
	return payload.JSON(Encode(v))
}

// Scalar writes a value as a text, if it is one value.
func Scalar(raw json.RawMessage) (string, bool) {
	v := gjson.ParseBytes(raw)
	switch {
	case v.Type == gjson.String:
		return v.Str, true
	case v.Type == gjson.Number:
		return v.Raw, true
	case v.IsBool():
		return strconv.FormatBool(v.Bool()), true
	}
	return "", false
}

// Readable is the beginning of a body for an error message.
func Readable(data []byte, limit int) string {
	if json.Valid(data) {
		data = payload.Readable(data)
	}
	cut := data[:min(len(data), limit)]
	text := strings.ToValidUTF8(string(cut), "")
	text = strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if len(cut) < len(data) {
		text += "…"
	}
	return text
}

// Excerpt is the beginning of a text, about 2000 bytes, and how long all of it is.
func Excerpt(text string) string {
	const most = 2000
	for i := range text {
		if i > most {
			return fmt.Sprintf("%s… (%d bytes)", text[:i], len(text))
		}
	}
	return text
}

// JoinTexts is one text after the other, with an empty line between them; of which one may be empty.
func JoinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// EachText visits the fields of an object as texts; of a list, each element. Null is absent.
func EachText(what string, raw json.RawMessage, code fault.Code, visit func(name, value string)) error {
	if IsNull(raw) {
		return nil
	}
	if !IsObject(raw) {
		return fault.Newf(code, "%q must be an object", what).With("path", what)
	}
	for _, m := range Members(raw) {
		if IsNull(m.Value) {
			continue
		}
		each := []json.RawMessage{m.Value}
		if IsList(m.Value) {
			each = Elements(m.Value)
		}
		for _, v := range each {
			text, ok := Scalar(v)
			if !ok {
				return fault.Newf(code, "%q must be a text, a number or a boolean, or a list of them, not %s", what+"."+m.Key, Short(v)).With("path", what+"."+m.Key)
			}
			visit(m.Key, text)
		}
	}
	return nil
}

// Short shows a value in a message.
func Short(raw json.RawMessage) string {
	switch {
	case IsObject(raw):
		return "an object"
	case IsList(raw):
		return "a list"
	case IsNull(raw):
		return "null"
	}
	return Readable(raw, 60)
}
