// Package payload is the one reader of JSON that comes from outside: from callers of the API, people, services, models, code
// and files. What has passed it can be kept in a journal, read again and handed on without further checks.
package payload

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits that always hold, unless others are named.
const (
	// MaxDepth is how deep lists and objects may nest.
	MaxDepth = 1000
	// DoorDepth is how deep what somebody sends to a node may nest: the node lays the rest around it when it hands it on.
	DoorDepth = MaxDepth - 20
	// MaxNumber is how many characters a number may have.
	MaxNumber = 1000
)

// Limits bound a text. Its zero value stands for [MaxDepth] and [MaxNumber], any number of keys and any size.
type Limits struct {
	// MaxBytes bounds the text as a whole; 0: it is not bounded.
	MaxBytes int
	// MaxDepth bounds how deep lists and objects nest; 0 means [MaxDepth].
	MaxDepth int
	// MaxNumber bounds the characters of a number; 0 means [MaxNumber].
	MaxNumber int
	// MaxKeys bounds the keys of all objects together; 0: they are not bounded.
	MaxKeys int
	// Unique refuses an object with a key that stands in it twice: readers differ in which one counts, so that a person could be shown
	// one value while another one is used. It is for what comes in; what was kept before is read without it.
	Unique bool
	// Finite refuses a number that is beyond what computers reckon with (about 1.8e308): most readers of JSON, expressions and code cannot
	// take it. It is for what comes in, as Unique is.
	Finite bool
}

// Door are the limits for whatever comes from outside and is kept.
func Door() Limits { return Limits{Unique: true, Finite: true} }

// Error says what is wrong with a text.
type Error struct {
	// Path is where: keys and numbers of items, the outermost few of them. It is empty for the text as a whole.
	Path string
	// Reason is what is wrong, with the place in bytes.
	Reason string
	// Syntax says that the text is not JSON at all; otherwise it is not UTF-8, beyond the limits, or has a key twice.
	Syntax bool
	// Repeated says that a key stands twice.
	Repeated bool
	// Cut says that the text ends within a value that is right so far.
	Cut bool
}

// Error implements error.
func (e *Error) Error() string { return e.Reason }

// Field is the path below a field of a request, for errors that name it.
func (e *Error) Field(field string) string { return JoinPath(field, e.Path) }

// Check says what keeps a text from being taken: it is not exactly one JSON value, not UTF-8, or beyond the limits. The error is an
// [*Error]. Of equal keys the last one counts, unless the limits refuse them.
func Check(raw []byte, limits Limits) error {
	_, _, err := check(raw, limits)
	return err
}

// Normalize checks a text and returns it without insignificant white space. The result shares memory with the text.
func Normalize(raw []byte, limits Limits) (json.RawMessage, error) {
	value, spaced, err := check(raw, limits)
	switch {
	case err != nil:
		return nil, err
	case spaced:
		return compact(value), nil
	}
	return value, nil
}

// Prefix reads the one value at the beginning of a text, whatever follows it, and returns how many bytes were read: up to the end of the
// value, or to where it goes wrong. The text must be UTF-8. A number at the end of the text counts as whole: whether digits are missing
// cannot be seen.
func Prefix(raw []byte, limits Limits) (end int, err error) {
	c := checker{data: raw, limits: limits.filled(), bad: -1}
	c.space()
	err = c.value(1)
	return c.pos, err
}

// filled puts the usual limits where none are named.
func (l Limits) filled() Limits {
	if l.MaxDepth == 0 {
		l.MaxDepth = MaxDepth
	}
	if l.MaxNumber == 0 {
		l.MaxNumber = MaxNumber
	}
	return l
}

func check(raw []byte, limits Limits) (value []byte, spaced bool, err error) {
	if limits.MaxBytes > 0 && len(raw) > limits.MaxBytes {
		return nil, false, &Error{Reason: fmt.Sprintf("it has %d bytes; at most %d are taken", len(raw), limits.MaxBytes)}
	}
	c := checker{data: raw, limits: limits.filled(), bad: -1}
	if !utf8.Valid(raw) {
		c.bad = firstBad(raw)
	}
	c.space()
	start := c.pos
	if err := c.value(1); err != nil {
		return nil, false, err
	}
	end := c.pos
	spaced = c.spaced
	c.space()
	if c.pos != len(raw) {
		return nil, false, c.fail("something follows the value")
	}
	return raw[start:end:end], spaced, nil
}

// firstBad is where the first byte stands that is not UTF-8.
func firstBad(raw []byte) int {
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// compact removes the white space outside strings from valid JSON.
func compact(valid []byte) json.RawMessage {
	out := make([]byte, 0, len(valid))
	for i := 0; i < len(valid); {
		switch c := valid[i]; c {
		case ' ', '\t', '\n', '\r':
			i++
		case '"':
			start := i
			for i++; valid[i] != '"'; i++ {
				if valid[i] == '\\' {
					i++
				}
			}
			i++
			out = append(out, valid[start:i]...)
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// checker validates JSON strictly. It recurses, as many levels as its limits allow.
type checker struct {
	data   []byte
	pos    int
	limits Limits
	keys   int
	// names are the keys of the objects that are open, as written and without quotes, if they are to be unique.
	names [][]byte
	// bad is where the first byte stands that is not UTF-8, -1 when there is none.
	bad int
	// spaced is set once white space was seen inside the value.
	spaced bool
}

func (c *checker) fail(reason string) error {
	return &Error{Reason: fmt.Sprintf("it is not valid JSON: %s at byte %d", reason, c.pos), Syntax: true, Cut: c.pos >= len(c.data)}
}

func (c *checker) space() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
			c.spaced = true
		default:
			return
		}
	}
}

func (c *checker) peek() byte {
	if c.pos < len(c.data) {
		return c.data[c.pos]
	}
	return 0
}

func (c *checker) value(depth int) error {
	if depth == 1 {
		c.spaced = false // white space before the value is cut off by the caller
	}
	if depth > c.limits.MaxDepth {
		return &Error{Reason: fmt.Sprintf("it is nested more than %d levels deep at byte %d", c.limits.MaxDepth, c.pos)}
	}
	switch b := c.peek(); {
	case c.pos >= len(c.data):
		return c.fail("it ends too early")
	case b == '"':
		return c.str()
	case b == '{':
		return c.container('}', depth, true)
	case b == '[':
		return c.container(']', depth, false)
	case b == '-' || b >= '0' && b <= '9':
		return c.number()
	case b == 't':
		return c.word("true")
	case b == 'f':
		return c.word("false")
	case b == 'n':
		return c.word("null")
	case b == 0:
		return c.fail("a NUL byte stands")
	default:
		return c.fail("a value was expected")
	}
}

func (c *checker) word(w string) error {
	rest := c.data[c.pos:]
	if !bytes.HasPrefix(rest, []byte(w)) {
		err := c.fail("a value was expected").(*Error)
		err.Cut = strings.HasPrefix(w, string(rest[:min(len(rest), len(w))]))
		return err
	}
	c.pos += len(w)
	return nil
}

func (c *checker) container(end byte, depth int, keyed bool) error {
	c.pos++
	c.space()
	if c.peek() == end {
		c.pos++
		return nil
	}
	var seen keySet
	if keyed && c.limits.Unique {
		seen.first = len(c.names)
		defer func() { c.names = c.names[:seen.first] }()
	}
	for n := 0; ; n++ {
		start := c.pos
		if keyed {
			if c.peek() != '"' {
				return c.fail("a key in double quotes was expected")
			}
			if c.keys++; c.limits.MaxKeys > 0 && c.keys > c.limits.MaxKeys {
				return &Error{Reason: fmt.Sprintf("its objects have more than %d keys", c.limits.MaxKeys)}
			}
			if err := c.str(); err != nil {
				return err
			}
			if c.limits.Unique && seen.again(c, c.data[start+1:c.pos-1]) {
				return c.inside(&Error{Reason: fmt.Sprintf("the key stands twice in one object, the second time at byte %d; keep one of them", start), Repeated: true}, depth, start, n, true)
			}
			c.space()
			if c.peek() != ':' {
				return c.fail("a colon was expected")
			}
			c.pos++
			c.space()
		}
		if err := c.value(depth + 1); err != nil {
			return c.inside(err, depth, start, n, keyed)
		}
		c.space()
		switch c.peek() {
		case ',':
			c.pos++
			c.space()
		case end:
			c.pos++
			return nil
		default:
			return c.fail(fmt.Sprintf("a comma or %q was expected", end))
		}
	}
}

// maxPath is how many names the path of an error has, and maxName how long each is.
const (
	maxPath = 4
	maxName = 64
)

// inside adds to an error in which member of a container it is.
func (c *checker) inside(err error, depth, start, n int, keyed bool) error {
	e, ok := err.(*Error)
	if !ok || depth > maxPath {
		return err
	}
	segment := "[" + strconv.Itoa(n) + "]"
	if keyed {
		k := checker{data: c.data, pos: start, bad: -1}
		if k.str() != nil {
			return err
		}
		var name string
		if json.Unmarshal(c.data[start:k.pos], &name) != nil {
			return err
		}
		if segment = name; len(segment) > maxName {
			segment = strings.ToValidUTF8(segment[:maxName], "") + "…"
		}
	}
	e.Path = e.Field(segment)
	return e
}

func (c *checker) str() error {
	start := c.pos
	for c.pos++; c.pos < len(c.data); c.pos++ {
		for c.pos+8 <= len(c.data) && ordinary(binary.LittleEndian.Uint64(c.data[c.pos:])) {
			c.pos += 8
		}
		if c.pos == len(c.data) {
			break
		}
		switch b := c.data[c.pos]; {
		case b == '"':
			c.pos++
			if c.bad >= start && c.bad < c.pos {
				return &Error{Reason: fmt.Sprintf("it is not valid UTF-8 at byte %d", c.bad)}
			}
			return nil
		case b == '\\':
			c.pos++
			switch c.peek() {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					c.pos++
					if !isHex(c.peek()) {
						return c.fail("four hexadecimal digits were expected")
					}
				}
			default:
				return c.fail("an unknown escape stands")
			}
		case b == 0:
			return c.fail("a NUL byte stands in a string")
		case b < 0x20:
			return c.fail("an unescaped control character stands in a string")
		}
	}
	return c.fail("a string does not end")
}

// ordinary says that none of eight bytes of a string is a quote, a backslash or a control character. It may also say no when none is.
func ordinary(b uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := b^each*'"', b^each*'\\'
	return ((b-each*0x20)&^b|(quote-each)&^quote|(slash-each)&^slash)&high == 0
}

func (c *checker) number() error {
	start := c.pos
	if c.peek() == '-' {
		c.pos++
	}
	switch {
	case c.peek() == '0':
		c.pos++
	case c.digits() == 0:
		return c.fail("a digit was expected")
	}
	if c.peek() == '.' {
		c.pos++
		if c.digits() == 0 {
			return c.fail("a digit was expected")
		}
	}
	if c.peek() == 'e' || c.peek() == 'E' {
		c.pos++
		if c.peek() == '+' || c.peek() == '-' {
			c.pos++
		}
		if c.digits() == 0 {
			return c.fail("a digit was expected")
		}
	}
	if c.pos-start > c.limits.MaxNumber {
		c.pos = start
		return &Error{Reason: fmt.Sprintf("a number has more than %d characters at byte %d", c.limits.MaxNumber, start)}
	}
	if number := c.data[start:c.pos]; c.limits.Finite && tooLarge(number) {
		c.pos = start
		return &Error{Reason: fmt.Sprintf("a number is too large to reckon with at byte %d; send it as a text", start)}
	}
	return nil
}

// tooLarge says that a number is beyond the range of a float64. Only one with an exponent or very many digits is looked at closely.
func tooLarge(number []byte) bool {
	if len(number) < 300 && !bytes.ContainsAny(number, "eE") {
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err != nil
}

func (c *checker) digits() int {
	start := c.pos
	for c.peek() >= '0' && c.peek() <= '9' {
		c.pos++
	}
	return c.pos - start
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

// IsNull says that a value is missing or null.
func IsNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}
