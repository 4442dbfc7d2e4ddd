package payload

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Writer writes JSON part by part, without looking at types, which is most of what encoding costs. The bytes are those of [Encode].
type Writer struct{ Out []byte }

// Begin begins an object.
func (w *Writer) Begin() { w.Out = append(w.Out, '{') }

// End ends an object.
func (w *Writer) End() { w.Out = append(w.Out, '}') }

// Name writes the name of a member, which is given as it is written: `"name":`.
func (w *Writer) Name(name string) {
	if w.Out[len(w.Out)-1] != '{' {
		w.Out = append(w.Out, ',')
	}
	w.Out = append(w.Out, name...)
}

// Int writes a number.
func (w *Writer) Int(n int64) { w.Out = strconv.AppendInt(w.Out, n, 10) }

// IntIfAny writes a member, unless it is zero.
func (w *Writer) IntIfAny(name string, n int64) {
	if n != 0 {
		w.Name(name)
		w.Int(n)
	}
}

// Float writes a number, quickly if it is zero.
func (w *Writer) Float(f float64) {
	if f == 0 && !math.Signbit(f) {
		w.Out = append(w.Out, '0')
		return
	}
	w.Other(f)
}

// Text writes a text.
func (w *Writer) Text(text string) {
	if !plain(text) {
		w.Other(text)
		return
	}
	w.Out = append(w.Out, '"')
	w.Out = append(w.Out, text...)
	w.Out = append(w.Out, '"')
}

// TextIfAny writes a member, unless it is empty.
func (w *Writer) TextIfAny(name, text string) {
	if text != "" {
		w.Name(name)
		w.Text(text)
	}
}

// Texts writes a list of texts; nil is null.
func (w *Writer) Texts(list []string) {
	if list == nil {
		w.Out = append(w.Out, "null"...)
		return
	}
	w.Out = append(w.Out, '[')
	for i, text := range list {
		if i > 0 {
			w.Out = append(w.Out, ',')
		}
		w.Text(text)
	}
	w.Out = append(w.Out, ']')
}

// Raw writes a value that is JSON already, without white space.
func (w *Writer) Raw(value json.RawMessage) {
	if !compactJSON(value) || !gjson.ValidBytes(value) {
		w.Other(&value)
		return
	}
	w.Out = append(w.Out, value...)
}

// compactJSON says that a value, if it is JSON, has no spaces between its parts, and no characters that are written in another way.
func compactJSON(value []byte) bool {
	inside := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			inside = !inside
		case c == '\\':
			i++
		case c <= ' ' && !inside, c >= utf8.RuneSelf && !inside:
			return false
		}
	}
	return true
}

// RawIfAny writes a member, unless it is empty.
func (w *Writer) RawIfAny(name string, value json.RawMessage) {
	if len(value) > 0 {
		w.Name(name)
		w.Raw(value)
	}
}

// Other writes anything, as [Encode] does. It panics if the value cannot be written, which is a defect.
func (w *Writer) Other(v any) {
	body, err := Encode(v)
	if err != nil {
		panic(err)
	}
	w.Out = append(w.Out, body...)
}
