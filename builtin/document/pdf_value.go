package document

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// The values that PDF files are made of: names, strings, numbers, lists, dictionaries, references to objects.

type (
	pdfName   string
	pdfString string
	pdfRef    int
	pdfWord   string // an operator or keyword
	pdfDict   map[pdfName]any
	pdfStream struct {
		dict pdfDict
		raw  []byte
	}
)

// pdfLexer reads values from bytes.
type pdfLexer struct {
	data  []byte
	at    int
	depth int
	// held counts the values in lists and dictionaries: they take ten times the room that they have in the file. One that
	// has maxPDFHeld of them gets no more. A caller that lets go of them may count from zero.
	held *int
}

func newPDFLexer(data []byte, at int, held *int) *pdfLexer {
	if held == nil {
		held = new(int)
	}
	return &pdfLexer{data: data, at: at, held: held}
}

// room counts one more value.
func (l *pdfLexer) room() bool {
	*l.held++
	return *l.held <= maxPDFHeld
}

func pdfSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func pdfDelimiter(c byte) bool { return strings.IndexByte("()<>[]{}/%", c) >= 0 }

func (l *pdfLexer) skip() {
	for l.at < len(l.data) {
		switch c := l.data[l.at]; {
		case pdfSpace(c):
			l.at++
		case c == '%':
			for l.at < len(l.data) && l.data[l.at] != '\n' && l.data[l.at] != '\r' {
				l.at++
			}
		default:
			return
		}
	}
}

// next reads a value or a word; ok is false at the end.
func (l *pdfLexer) next() (v any, ok bool) {
	l.skip()
	if l.at >= len(l.data) {
		return nil, false
	}
	switch c := l.data[l.at]; c {
	case '/':
		l.at++
		return l.name(), true
	case '(':
		return l.literal(), true
	case '<':
		if l.at+1 < len(l.data) && l.data[l.at+1] == '<' {
			l.at += 2
			return l.dict(), true
		}
		return l.hexString(), true
	case '[':
		l.at++
		return l.array(), true
	case ']', '}', '{', ')':
		l.at++
		return pdfWord(c), true
	case '>':
		l.at++
		if l.at < len(l.data) && l.data[l.at] == '>' {
			l.at++
		}
		return pdfWord(">>"), true
	}
	return l.word(), true
}

func (l *pdfLexer) regular() []byte {
	from := l.at
	for l.at < len(l.data) && !pdfSpace(l.data[l.at]) && !pdfDelimiter(l.data[l.at]) {
		l.at++
	}
	return l.data[from:l.at]
}

func (l *pdfLexer) name() pdfName {
	raw := l.regular()
	if bytes.IndexByte(raw, '#') < 0 {
		return pdfName(raw)
	}
	var b []byte
	for i := 0; i < len(raw); i++ {
		if raw[i] == '#' && i+2 < len(raw) {
			if n, err := hex.DecodeString(string(raw[i+1 : i+3])); err == nil {
				b = append(b, n[0])
				i += 2
				continue
			}
		}
		b = append(b, raw[i])
	}
	return pdfName(b)
}

// word reads a number, a reference or a word.
func (l *pdfLexer) word() any {
	raw := string(l.regular())
	if raw == "" {
		l.at++
		return pdfWord("")
	}
	switch raw {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	}
	n, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return pdfWord(raw)
	}
	if n >= 0 && n < maxPDFObjects*10 && n == float64(int(n)) { // "12 0 R"?
		from := l.at
		l.skip()
		if generation := l.regular(); len(generation) > 0 && len(generation) < 6 && allDigits(generation) {
			l.skip()
			if string(l.regular()) == "R" {
				return pdfRef(n)
			}
		}
		l.at = from
	}
	return n
}

func allDigits(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c < '0' || c > '9' })
}

func (l *pdfLexer) literal() pdfString {
	l.at++
	var b []byte
	for depth := 1; l.at < len(l.data); l.at++ {
		switch c := l.data[l.at]; c {
		case '(':
			depth++
			b = append(b, c)
		case ')':
			if depth--; depth == 0 {
				l.at++
				return pdfString(b)
			}
			b = append(b, c)
		case '\\':
			l.at++
			b = l.escape(b)
		default:
			b = append(b, c)
		}
	}
	return pdfString(b)
}

func (l *pdfLexer) escape(b []byte) []byte {
	if l.at >= len(l.data) {
		return b
	}
	switch c := l.data[l.at]; c {
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'b', 'f', '\n':
		return b
	case '\r':
		if l.at+1 < len(l.data) && l.data[l.at+1] == '\n' {
			l.at++
		}
		return b
	default:
		if c < '0' || c > '7' {
			return append(b, c)
		}
		n := 0
		for i := 0; i < 3 && l.at < len(l.data) && l.data[l.at] >= '0' && l.data[l.at] <= '7'; i++ {
			n = n*8 + int(l.data[l.at]-'0')
			l.at++
		}
		l.at--
		return append(b, byte(n))
	}
}

func (l *pdfLexer) hexString() pdfString {
	l.at++
	end := bytes.IndexByte(l.data[l.at:], '>')
	if end < 0 {
		end = len(l.data) - l.at
	}
	raw := l.data[l.at : l.at+end]
	l.at = min(len(l.data), l.at+end+1)
	return pdfString(unhex(raw))
}

func unhex(raw []byte) []byte {
	var out []byte
	half, has := byte(0), false
	for _, c := range raw {
		var n byte
		switch {
		case c >= '0' && c <= '9':
			n = c - '0'
		case c >= 'a' && c <= 'f':
			n = c - 'a' + 10
		case c >= 'A' && c <= 'F':
			n = c - 'A' + 10
		default:
			continue
		}
		if has {
			out = append(out, half<<4|n)
		}
		half, has = n, !has
	}
	if has {
		out = append(out, half<<4)
	}
	return out
}

func (l *pdfLexer) array() []any {
	list := []any{}
	l.depth++
	defer func() { l.depth-- }()
	for l.depth < maxPDFDepth {
		v, ok := l.next()
		if !ok || v == pdfWord("]") {
			break
		}
		if w, isWord := v.(pdfWord); isWord && (w == "endobj" || w == "stream") {
			break
		}
		if !l.room() {
			break
		}
		list = append(list, v)
	}
	return list
}

func (l *pdfLexer) dict() pdfDict {
	d := pdfDict{}
	l.depth++
	defer func() { l.depth-- }()
	for l.depth < maxPDFDepth {
		key, ok := l.next()
		if !ok || key == pdfWord(">>") || key == pdfWord("endobj") {
			break
		}
		name, isName := key.(pdfName)
		if !isName {
			continue
		}
		value, ok := l.next()
		if !ok || value == pdfWord(">>") || value == pdfWord("endobj") || !l.room() {
			break
		}
		d[name] = value
	}
	return d
}
