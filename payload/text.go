package payload

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// This file is the one place where a value becomes text that people or models read. JSON may be written with escapes
// ("\u5f20", "\u003c") or without them; programs write them, and nobody wants to read them.

// Text is a value as people and models read it: the words of a string, anything else as compact, readable JSON. What is not JSON
// comes back as it is.
func Text(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		if bytes.IndexByte(raw, '\\') < 0 && len(raw) >= 2 {
			return string(raw[1 : len(raw)-1])
		}
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return text
		}
		return string(raw)
	}
	return JSON(raw)
}

// Shown is a value as messages show it: the words of a string, anything else with a line for each value, which code says. Nothing and
// null show nothing.
func Shown(raw []byte) (text string, code bool) {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0 || string(raw) == "null":
		return "", false
	case raw[0] == '"':
		return Text(raw), false
	}
	return Indented(raw), true
}

// Readable is the same value with characters in the place of their escapes. What would not be seen, or would be taken for JSON's own, stays
// escaped: control characters, quotes, backslashes, halves of surrogate pairs, and characters that turn the direction of others. The result
// shares memory with raw when there is nothing to change.
func Readable(raw []byte) json.RawMessage {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' { // which stands in strings only
			out = append(out, raw[i])
			i++
			continue
		}
		r, size := escape(raw[i:])
		if r != 0 {
			out = utf8.AppendRune(out, r)
		} else {
			out = append(out, raw[i:i+size]...)
		}
		i += size
	}
	return out
}

// JSON is a value as people and models read JSON: compact, and a string with its quotes.
// What is not JSON comes back as it is.
func JSON(raw []byte) string {
	readable := Readable(raw)
	if !spaced(readable) {
		return string(readable)
	}
	var short bytes.Buffer
	if json.Compact(&short, readable) != nil {
		return string(raw)
	}
	return short.String()
}

// Indented is readable JSON with a line for each value. What is not JSON comes back as it is.
func Indented(raw []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, Readable(raw), "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// spaced says that a text has white space outside of strings.
func spaced(raw []byte) bool {
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c <= ' ':
			return true
		}
	}
	return false
}

// escape reads the escape that a text begins with. The character is 0 when the escape has to stay; size is never more than the text has.
func escape(text []byte) (r rune, size int) {
	if len(text) < 2 {
		return 0, len(text)
	}
	if text[1] == '/' {
		return '/', 2
	}
	if text[1] != 'u' {
		return 0, 2
	}
	if len(text) < 6 {
		return 0, len(text)
	}
	if r, size = unit(text), 6; utf16.IsSurrogate(r) {
		both := utf16.DecodeRune(r, unit(text[6:]))
		if both == unicode.ReplacementChar {
			return 0, 6
		}
		r, size = both, 12
	}
	if r == '"' || r == '\\' || !seen(r) {
		return 0, size
	}
	return r, size
}

// unit is the number of a \u escape at the beginning of a text, 0 when there is none.
func unit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// seen says that a character shows, or joins others that do.
func seen(r rune) bool { return unicode.IsGraphic(r) || r == 0x200c || r == 0x200d }
