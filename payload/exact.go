package payload

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Exact reads JSON that is written in one certain way, as our own writers write it, with less effort than a reader of any JSON needs.
// It is for what is read again and again. When OK is false the text is written in another way or is not JSON, and has to be read with care.
type Exact struct {
	// Left is what was not read yet.
	Left string
	OK   bool
}

// ReadExact begins to read a text.
func ReadExact(text string) Exact { return Exact{text, true} }

// May reads something if it comes next, and says whether it does.
func (e *Exact) May(what string) bool {
	left, found := strings.CutPrefix(e.Left, what)
	e.Left = left
	return found
}

// Must reads something that has to come next.
func (e *Exact) Must(what string) { e.OK = e.May(what) && e.OK }

// Text reads a string without escapes.
func (e *Exact) Text() string {
	if !e.May(`"`) {
		e.OK = false
		return ""
	}
	ascii := true
	for i := range len(e.Left) {
		switch c := e.Left[i]; {
		case c == '"':
			text := e.Left[:i]
			e.Left, e.OK = e.Left[i+1:], e.OK && (ascii || utf8.ValidString(text))
			return text
		case c < ' ' || c == '\\':
			e.OK = false
			return ""
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	e.OK = false
	return ""
}

// Number reads a whole number that is not negative and has at most so many bits.
func (e *Exact) Number(bits int) uint64 {
	end := 0
	for end < len(e.Left) && '0' <= e.Left[end] && e.Left[end] <= '9' {
		end++
	}
	n, err := strconv.ParseUint(e.Left[:end], 10, bits)
	e.OK = e.OK && err == nil && (end == 1 || e.Left[0] != '0')
	e.Left = e.Left[end:]
	return n
}

// Value reads any value, which is returned as it is written.
func (e *Exact) Value() string {
	end := valueEnd(e.Left)
	value := e.Left[:end]
	e.Left, e.OK = e.Left[end:], e.OK && end > 0 && value[0] > ' ' && value[end-1] > ' ' && gjson.Valid(value)
	return value
}

// valueEnd is where the value ends that a text begins with, if it is one.
func valueEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i >= len(text) {
				return len(text)
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // of what is around it
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}
