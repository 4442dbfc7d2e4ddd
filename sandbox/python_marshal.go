package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"tandem/payload"
)

// Values travel between host and interpreter in Python's own serialised form, marshal: translating JSON here and letting
// the interpreter read marshal takes a fraction of the time in which it reads and writes JSON itself.

// The forms of marshal that requests and plain values consist of.
const (
	marshalTuple         = ')' // with a length of one byte
	marshalLongTuple     = '('
	marshalList          = '['
	marshalDict          = '{' // keys and values, then marshalEnd
	marshalEnd           = '0'
	marshalNone          = 'N'
	marshalTrue          = 'T'
	marshalFalse         = 'F'
	marshalInt           = 'i' // 32 bits
	marshalLong          = 'l' // number of 15-bit digits, negative for negative numbers, and the digits
	marshalFloat         = 'g'
	marshalText          = 'u'
	marshalInterned      = 't'
	marshalASCII         = 'a'
	marshalInternedASCII = 'A'
	marshalShortASCII    = 'z' // with a length of one byte
	marshalShortInterned = 'Z'
	marshalBytes         = 's'
	marshalRef           = 'r' // the number of an earlier value that had marshalShared
	marshalShared        = 0x80
)

// marshalDepth bounds nesting; Python reads and writes some more than this. What is deeper goes as JSON.
const marshalDepth = 200

func appendMarshal(b []byte, form byte, v []byte) []byte {
	b = binary.LittleEndian.AppendUint32(append(b, form), uint32(len(v)))
	return append(b, v...)
}

// appendValue translates one JSON text, which must be valid, into what must be the first to have shared values in its
// stream; seen is room to work in. It is not translated, and ok is false, when it is nested
// too deeply.
func appendValue(b, text []byte, seen map[string]uint32) (out []byte, ok bool) {
	clear(seen)
	t := jsonText{text: text, seen: seen}
	b = t.value(b, 0)
	return b, !t.failed
}

// jsonText reads valid JSON from the front.
type jsonText struct {
	text   []byte
	at     int
	failed bool
	seen   map[string]uint32 // short texts and their numbers, so that repeated keys are one object
}

// next skips white space and returns the byte there, or 0 at the end.
func (t *jsonText) next() byte {
	for ; t.at < len(t.text); t.at++ {
		if c := t.text[t.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

func (t *jsonText) value(b []byte, depth int) []byte {
	if depth > marshalDepth {
		t.failed = true
	}
	if t.failed {
		return b
	}
	switch c := t.next(); c {
	case '{':
		t.at++
		b = append(b, marshalDict)
		for c = t.next(); c != '}' && !t.failed; c = t.next() {
			if c == ',' {
				t.at++
				t.next()
			}
			b = t.string(b)
			if t.next() != ':' {
				t.failed = true
			}
			t.at++
			b = t.value(b, depth+1)
		}
		t.at++
		return append(b, marshalEnd)
	case '[':
		t.at++
		b = append(b, marshalList, 0, 0, 0, 0)
		start, n := len(b), uint32(0)
		for c = t.next(); c != ']' && !t.failed; c = t.next() {
			if c == ',' {
				t.at++
			}
			b = t.value(b, depth+1)
			n++
		}
		t.at++
		binary.LittleEndian.PutUint32(b[start-4:], n)
		return b
	case '"':
		return t.string(b)
	case 't', 'f', 'n':
		t.at += map[byte]int{'t': 4, 'f': 5, 'n': 4}[c]
		return append(b, c-'a'+'A')
	default:
		return t.number(b)
	}
}

func (t *jsonText) string(b []byte) []byte {
	start, plain, ascii := t.at, true, true
	for t.at++; t.at < len(t.text) && t.text[t.at] != '"'; t.at++ {
		switch c := t.text[t.at]; {
		case c == '\\':
			plain = false
			t.at++
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	t.at++
	if t.at > len(t.text) {
		t.failed = true
		return b
	}
	s := t.text[start+1 : t.at-1]
	if !plain {
		var unescaped string
		if err := json.Unmarshal(t.text[start:t.at], &unescaped); err != nil {
			t.failed = true
			return b
		}
		return appendMarshal(b, marshalText, []byte(unescaped))
	}
	if ascii && len(s) < 256 {
		if i, ok := t.seen[string(s)]; ok {
			return binary.LittleEndian.AppendUint32(append(b, marshalRef), i)
		}
		t.seen[string(s)] = uint32(len(t.seen))
		return append(append(b, marshalShortASCII|marshalShared, byte(len(s))), s...)
	}
	if !utf8.Valid(s) {
		s = []byte(string([]rune(string(s))))
	}
	return appendMarshal(b, marshalText, s)
}

func (t *jsonText) number(b []byte) []byte {
	start, whole := t.at, true
scan:
	for ; t.at < len(t.text); t.at++ {
		switch c := t.text[t.at]; {
		case c == '.' || c == 'e' || c == 'E' || c == '+':
			whole = false
		case c != '-' && (c < '0' || c > '9'):
			break scan
		}
	}
	s := string(t.text[start:t.at])
	if !whole {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !math.IsInf(f, 0) { // out of range is infinity, as Python reads it
			t.failed = true
		}
		return binary.LittleEndian.AppendUint64(append(b, marshalFloat), math.Float64bits(f))
	}
	if v, err := strconv.ParseInt(s, 10, 32); err == nil {
		return binary.LittleEndian.AppendUint32(append(b, marshalInt), uint32(v))
	}
	v, ok := new(big.Int).SetString(s, 10)
	if !ok {
		t.failed = true
		return b
	}
	var digits []byte
	n := int32(0)
	for rest, mask, digit := new(big.Int).Abs(v), big.NewInt(1<<15-1), new(big.Int); rest.Sign() > 0; rest.Rsh(rest, 15) {
		digits = binary.LittleEndian.AppendUint16(digits, uint16(digit.And(rest, mask).Uint64()))
		n++
	}
	if v.Sign() < 0 {
		n = -n
	}
	return append(binary.LittleEndian.AppendUint32(append(b, marshalLong), uint32(n)), digits...)
}

// errTooLong says that a value has more JSON than its call may return.
var errTooLong = errors.New("the result is too long") // read-only

// appendJSON translates one marshalled value to at most limit bytes of JSON. The bytes come from an interpreter that has
// run untrusted code: values that refer to others may be written many times over, or without end. An error says what has
// no form in JSON.
func appendJSON(b, value []byte, limit int) ([]byte, error) {
	m := marshalled{b: value, limit: len(b) + limit}
	b = m.value(b, 0)
	if m.err == nil && len(m.b) > 0 {
		m.fail("it is damaged")
	}
	return b, m.err
}

// marshalled reads marshal from the front; after the first error nothing more is read.
type marshalled struct {
	b      []byte
	limit  int
	shared []span // where shared values stand in the output
	err    error
}

// span is a part of the output; its end is 0 while it is being written.
type span struct{ start, end int }

// refer writes a value again that was written before.
func (m *marshalled) refer(b []byte) []byte {
	i := m.length()
	if i < 0 || i >= len(m.shared) {
		m.fail("it is damaged")
		return b
	}
	s := m.shared[i]
	if s.end == 0 {
		m.fail("it holds itself: circular reference")
		return b
	}
	return m.bounded(append(b, b[s.start:s.end]...))
}

func (m *marshalled) bounded(b []byte) []byte {
	if len(b) > m.limit && m.err == nil {
		m.err, m.b = errTooLong, nil
	}
	return b
}

func (m *marshalled) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
	m.b = nil
}

func (m *marshalled) take(n int) []byte {
	if n < 0 || n > len(m.b) {
		m.fail("it is damaged")
		return nil
	}
	v := m.b[:n]
	m.b = m.b[n:]
	return v
}

func (m *marshalled) length() int {
	n := m.take(4)
	if n == nil {
		return 0
	}
	return int(int32(binary.LittleEndian.Uint32(n)))
}

func (m *marshalled) value(b []byte, depth int) []byte {
	form := m.take(1)
	if form == nil || depth > 10*marshalDepth {
		m.fail("it is nested too deeply")
		return b
	}
	if form[0] == marshalRef {
		return m.refer(b)
	}
	shared := -1
	if form[0]&marshalShared != 0 {
		shared = len(m.shared)
		m.shared = append(m.shared, span{start: len(b)})
	}
	switch kind := form[0] &^ marshalShared; kind {
	case marshalDict:
		b = m.dict(b, depth)
	case marshalList, marshalLongTuple, marshalTuple:
		b = m.list(b, kind, depth)
	default:
		b = m.scalar(b, kind)
	}
	if shared >= 0 {
		m.shared[shared].end = len(b)
	}
	return m.bounded(b)
}

func (m *marshalled) list(b []byte, kind byte, depth int) []byte {
	n := 0
	if kind != marshalTuple {
		n = m.length()
	} else if one := m.take(1); one != nil {
		n = int(one[0])
	}
	b = append(b, '[')
	for i := 0; i < n && m.err == nil; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = m.value(b, depth+1)
	}
	return append(b, ']')
}

func (m *marshalled) dict(b []byte, depth int) []byte {
	b = append(b, '{')
	for first := true; m.err == nil; first = false {
		if len(m.b) > 0 && m.b[0] == marshalEnd {
			m.b = m.b[1:]
			break
		}
		if !first {
			b = append(b, ',')
		}
		start := len(b)
		b = m.value(b, depth+1)
		switch {
		case m.err != nil:
			return b
		case b[start] == '[' || b[start] == '{':
			m.fail("keys must be str, int, float, bool or None, not a collection")
			return b
		case b[start] != '"':
			// Others are written in quotes. A later reference to the same value means the bare form, inside the quotes.
			key := string(b[start:])
			if n := len(m.shared); n > 0 && m.shared[n-1].start == start {
				m.shared[n-1].start++
				m.shared[n-1].end++
			}
			b = append(append(append(b[:start], '"'), key...), '"')
		}
		b = m.value(append(b, ':'), depth+1)
	}
	return append(b, '}')
}

func (m *marshalled) scalar(b []byte, form byte) []byte {
	switch form {
	case marshalNone:
		return append(b, "null"...)
	case marshalTrue:
		return append(b, "true"...)
	case marshalFalse:
		return append(b, "false"...)
	case marshalInt:
		return strconv.AppendInt(b, int64(m.length()), 10)
	case marshalLong:
		return m.long(b)
	case marshalFloat:
		if v := m.take(8); v != nil {
			return m.float(b, math.Float64frombits(binary.LittleEndian.Uint64(v)))
		}
		return b
	case marshalText, marshalInterned, marshalASCII, marshalInternedASCII:
		return m.quote(b, m.take(m.length()))
	case marshalShortASCII, marshalShortInterned:
		if n := m.take(1); n != nil {
			return m.quote(b, m.take(int(n[0])))
		}
		return b
	}
	names := map[byte]string{'<': "set", '>': "frozenset", marshalBytes: "bytes", 'y': "complex", '.': "ellipsis", 'c': "code"}
	name := names[form]
	if name == "" {
		name = "another sort"
	}
	m.fail("a value of type %s has no form in JSON", name)
	return b
}

func (m *marshalled) long(b []byte) []byte {
	n := m.length()
	digits := m.take(2 * max(n, -n))
	v := new(big.Int)
	for i := len(digits) - 2; i >= 0; i -= 2 {
		v.Lsh(v, 15).Or(v, big.NewInt(int64(binary.LittleEndian.Uint16(digits[i:]))))
	}
	if n < 0 {
		v.Neg(v)
	}
	return v.Append(b, 10)
}

// float writes a number as Python does: always with a point or an exponent.
func (m *marshalled) float(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		m.fail("JSON has no %s", map[bool]string{true: "NaN", false: "infinity"}[math.IsNaN(f)])
		return b
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	for _, c := range b[start:] {
		if c == '.' {
			return b
		}
	}
	return append(b, '.', '0')
}

func (m *marshalled) quote(b, s []byte) []byte {
	if !utf8.Valid(s) {
		m.fail("text holds half a character (a lone surrogate)")
		return b
	}
	return append(payload.AppendEscaped(append(b, '"'), s), '"')
}
