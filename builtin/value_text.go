package builtin

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/payload"
)

// plainText is a text as it is and anything else as compact JSON.
func plainText(raw json.RawMessage) string {
	if isNull(raw) {
		return ""
	}
	return payload.Text(raw)
}

func textOf(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case json.Number:
		return string(x)
	}
	return payload.JSON(encode(v))
}

// scalarText writes a value as a text, if it is one value.
func scalarText(raw json.RawMessage) (string, bool) {
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

// readable is the beginning of a body for an error message.
func readable(data []byte, limit int) string {
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

// shorten cuts a text to so many characters.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:max(most-1, 0)]) + "…"
}

func excerpt(text string) string {
	const most = 2000
	for i := range text {
		if i > most {
			return fmt.Sprintf("%s… (%d bytes)", text[:i], len(text))
		}
	}
	return text
}

func joinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// eachText visits the fields of an object as texts; of a list, each element. Null is absent.
func eachText(what string, raw json.RawMessage, code fault.Code, visit func(name, value string)) error {
	if isNull(raw) {
		return nil
	}
	if !isObject(raw) {
		return fault.Newf(code, "%q must be an object", what).With("path", what)
	}
	for _, m := range members(raw) {
		if isNull(m.value) {
			continue
		}
		each := []json.RawMessage{m.value}
		if isList(m.value) {
			each = elements(m.value)
		}
		for _, v := range each {
			text, ok := scalarText(v)
			if !ok {
				return fault.Newf(code, "%q must be a text, a number or a boolean, or a list of them, not %s", what+"."+m.key, short(v)).With("path", what+"."+m.key)
			}
			visit(m.key, text)
		}
	}
	return nil
}

// short shows a value in a message.
func short(raw json.RawMessage) string {
	switch {
	case isObject(raw):
		return "an object"
	case isList(raw):
		return "a list"
	case isNull(raw):
		return "null"
	}
	return readable(raw, 60)
}
