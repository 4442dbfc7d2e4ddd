package workflow

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// yamlToken is a word of YAML with its place. Scalars have their content, unescaped and folded.
type yamlToken struct {
	kind tokenKind
	text string
	// line and col are where it begins, end is the line it ends on.
	line, col, end int32
}

type tokenKind uint8

const (
	tokenPlain  tokenKind = iota
	tokenQuoted           // in single or double quotes
	tokenBlock            // after | or >
	tokenDash
	tokenQuestion
	tokenColon
	tokenComma
	tokenListOpen
	tokenListClose
	tokenObjectOpen
	tokenObjectClose
	tokenAnchor
	tokenAlias
	tokenTag
	tokenDirective
	tokenDocument    // ---
	tokenDocumentEnd // ...
)

// yamlScanner cuts YAML into tokens in one pass, each byte looked at a bounded number of times.
type yamlScanner struct {
	data  string
	pos   int
	line  int32
	start int // offset of the line's first byte
	wide  int // bytes of the line so far that continue a character
	flow  int // brackets open
	// parent is the column of the last block key or dash, from 0: what continues on further lines must stand right of
	// it. It is -1 before the first.
	parent int
	tokens []yamlToken
}

func scanYAML(data string, limits limits) ([]yamlToken, *flaw) {
	if strings.Contains(data, "\r") {
		data = strings.ReplaceAll(strings.ReplaceAll(data, "\r\n", "\n"), "\r", "\n")
	}
	s := &yamlScanner{data: data, line: 1, parent: -1, tokens: make([]yamlToken, 0, len(data)/6+16)}
	for {
		if fault := s.blank(); fault != nil || s.pos == len(s.data) {
			return s.tokens, fault
		}
		// Brackets and the number of tokens are bounded here already, before anything is built of them.
		line, col := s.line, s.col()
		if fault := s.token(); fault != nil {
			return nil, fault
		}
		var message string
		if s.flow > limits.depth {
			message = fmt.Sprintf("objects and lists stand more than %d deep; flatten them", limits.depth)
		} else if len(s.tokens) > 2*limits.values {
			message = "the file has too many values; split the workflow into several"
		}
		if message != "" {
			return nil, &flaw{ProblemTooLarge, "", message, line, col}
		}
	}
}

func (s *yamlScanner) flaw(format string, args ...any) *flaw {
	p := errorAt(ProblemSyntax, "", format, args...)
	return &flaw{p.Code, "", p.Message, s.line, s.col()}
}

func (s *yamlScanner) col() int32 { return int32(s.pos - s.start - s.wide + 1) }

// at is the byte so far ahead, a line break at the end of the text.
func (s *yamlScanner) at(ahead int) byte {
	if s.pos+ahead < len(s.data) {
		return s.data[s.pos+ahead]
	}
	return '\n'
}

// advance passes n bytes of one line.
func (s *yamlScanner) advance(n int) {
	for i := s.pos; i < s.pos+n; i++ {
		if s.data[i]&0xC0 == 0x80 {
			s.wide++
		}
	}
	s.pos += n
}

// newline passes a line break.
func (s *yamlScanner) newline() {
	s.pos++
	s.line++
	s.start, s.wide = s.pos, 0
}

// blank passes white space, comments and line breaks.
func (s *yamlScanner) blank() *flaw {
	indent := s.pos == s.start
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '\n':
			s.newline()
			indent = true
		case c == ' ':
			s.pos++
		case c == '\t':
			begin, rest := s.pos, s.pos+1
			for rest < len(s.data) && (s.data[rest] == ' ' || s.data[rest] == '\t') {
				rest++
			}
			if indent && s.flow == 0 && rest < len(s.data) && s.data[rest] != '\n' && s.data[rest] != '#' {
				s.pos = begin
				return s.flaw("a tab cannot indent in YAML; use spaces")
			}
			s.pos = rest
		case c == '#' && (s.pos == s.start || s.data[s.pos-1] == ' ' || s.data[s.pos-1] == '\t'):
			s.comment()
		default:
			return nil
		}
	}
	return nil
}

// comment passes the rest of the line.
func (s *yamlScanner) comment() {
	n := strings.IndexByte(s.data[s.pos:], '\n')
	if n < 0 {
		n = len(s.data) - s.pos
	}
	s.pos += n
}

func ends(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

func isFlowMark(c byte) bool { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}' }

// token reads what begins at the position, which is not blank.
func (s *yamlScanner) token() *flaw {
	c, next := s.data[s.pos], s.at(1)
	first := s.pos == s.start
	switch {
	case first && (s.marker("---") || s.marker("...")):
		kind := tokenDocument
		if c == '.' {
			kind = tokenDocumentEnd
		}
		s.parent, s.flow = -1, 0
		s.emit(kind, 3)
	case first && c == '%' && (len(s.tokens) == 0 || s.tokens[len(s.tokens)-1].kind == tokenDirective):
		tk := yamlToken{kind: tokenDirective, line: s.line, col: 1, end: s.line}
		s.comment()
		s.tokens = append(s.tokens, tk)
	case c == '-' && ends(next):
		if s.flow > 0 {
			return s.flaw("a dash cannot begin an item inside brackets; separate items by commas")
		}
		s.parent = int(s.col()) - 1
		s.emit(tokenDash, 1)
	case c == '?' && ends(next):
		s.emit(tokenQuestion, 1)
	case c == ':' && s.isColon(next):
		s.colon()
	case c == ',' && s.flow > 0:
		s.emit(tokenComma, 1)
	case c == '[' || c == '{':
		s.flow++
		s.emit(map[byte]tokenKind{'[': tokenListOpen, '{': tokenObjectOpen}[c], 1)
	case (c == ']' || c == '}') && s.flow > 0:
		s.flow--
		s.emit(map[byte]tokenKind{']': tokenListClose, '}': tokenObjectClose}[c], 1)
	case c == '&' || c == '*':
		return s.label(map[byte]tokenKind{'&': tokenAnchor, '*': tokenAlias}[c])
	case c == '!':
		n := s.word(1)
		s.tokens = append(s.tokens, yamlToken{tokenTag, s.data[s.pos : s.pos+n], s.line, s.col(), s.line})
		s.advance(n)
	case (c == '|' || c == '>') && s.flow == 0:
		return s.block()
	case c == '"':
		return s.doubleQuoted()
	case c == '\'':
		return s.singleQuoted()
	case strings.IndexByte(",[]{}#|>@`%", c) >= 0:
		return s.flaw("%s cannot begin a value; put the value in quotes", strconv.QuoteRune(rune(c)))
	default:
		s.plain()
	}
	return nil
}

// marker tells whether a mark of a document stands at the position.
func (s *yamlScanner) marker(mark string) bool {
	return strings.HasPrefix(s.data[s.pos:], mark) && ends(s.at(3))
}

func (s *yamlScanner) emit(kind tokenKind, n int) {
	s.tokens = append(s.tokens, yamlToken{kind, s.data[s.pos : s.pos+n], s.line, s.col(), s.line})
	s.advance(n)
}

// isColon tells whether the colon at the position separates a key from its value: white space follows, or it stands in
// brackets before a bracket or directly after a quoted key.
func (s *yamlScanner) isColon(next byte) bool {
	if ends(next) || s.flow > 0 && isFlowMark(next) {
		return true
	}
	if s.flow == 0 || len(s.tokens) == 0 {
		return false
	}
	before := s.tokens[len(s.tokens)-1].kind
	return before == tokenQuoted || before == tokenListClose || before == tokenObjectClose
}

// colon marks the key before it as the parent of what follows.
func (s *yamlScanner) colon() {
	if n := len(s.tokens); s.flow == 0 && n > 0 && s.tokens[n-1].end == s.line {
		s.parent = int(s.tokens[n-1].col) - 1
	}
	s.emit(tokenColon, 1)
}

// word is the length of what runs to the next white space or, in brackets, to the next of their signs.
func (s *yamlScanner) word(from int) int {
	n := from
	for !ends(s.at(n)) && (s.flow == 0 || !isFlowMark(s.at(n))) {
		n++
	}
	return n
}

func (s *yamlScanner) label(kind tokenKind) *flaw {
	n := s.word(1)
	if n == 1 {
		return s.flaw("an anchor or alias needs a name directly after %q; put the value in quotes if it is a text", s.data[s.pos:s.pos+1])
	}
	text := s.data[s.pos+1 : s.pos+n]
	s.tokens = append(s.tokens, yamlToken{kind, text, s.line, s.col(), s.line})
	s.advance(n)
	return nil
}

// plain reads a scalar without quotes, over several lines if they are indented further than its parent.
func (s *yamlScanner) plain() {
	tk := yamlToken{kind: tokenPlain, line: s.line, col: s.col()}
	text := s.plainLine()
	var more []byte
	for s.pos < len(s.data) && s.data[s.pos] == '\n' {
		breaks, next := 0, s.pos
		lineStart := s.pos
		for next < len(s.data) && ends(s.data[next]) {
			if s.data[next] == '\n' {
				breaks++
				lineStart = next + 1
			}
			next++
		}
		if next == len(s.data) || s.data[next] == '#' || s.flow == 0 && next-lineStart <= s.parent ||
			s.flow > 0 && isFlowMark(s.data[next]) {
			break
		}
		if rest := s.data[next:]; next == lineStart && (strings.HasPrefix(rest, "---") || strings.HasPrefix(rest, "...")) {
			break
		}
		if c := s.data[next]; c == ':' && (next+1 == len(s.data) || ends(s.data[next+1])) ||
			s.flow == 0 && strings.IndexByte(s.data[lineStart:next], '\t') >= 0 {
			break
		}
		if more == nil {
			more = append(more, text...)
		}
		if breaks == 1 {
			more = append(more, ' ')
		}
		for range breaks - 1 {
			more = append(more, '\n')
		}
		s.line += int32(breaks)
		s.pos, s.start, s.wide = next, lineStart, 0
		more = append(more, s.plainLine()...)
	}
	if more != nil {
		text = string(more)
	}
	tk.text, tk.end = text, s.line
	s.tokens = append(s.tokens, tk)
}

// plainLine reads what of a plain scalar stands on one line, and stops before the white space after it when the line
// ends there.
func (s *yamlScanner) plainLine() string {
	n, last := 0, 0 // last is the end of the text without trailing white space
	for {
		c := s.at(n)
		if c == '\n' || s.flow > 0 && isFlowMark(c) {
			break
		}
		if c == ':' && (ends(s.at(n+1)) || s.flow > 0 && isFlowMark(s.at(n+1))) {
			break
		}
		if c == '#' && n > 0 && (s.at(n-1) == ' ' || s.at(n-1) == '\t') {
			break
		}
		n++
		if c != ' ' && c != '\t' {
			last = n
		}
	}
	text := s.data[s.pos : s.pos+last]
	if s.at(n) != '\n' {
		n = last
	}
	s.advance(n)
	return text
}

// fold passes the line breaks at the position, and the white space around them, in a quoted scalar: one is a space, more
// are one line break less.
func (s *yamlScanner) fold(out []byte, keep int) []byte {
	for len(out) > keep && (out[len(out)-1] == ' ' || out[len(out)-1] == '\t') {
		out = out[:len(out)-1]
	}
	breaks := s.breaks()
	if breaks == 1 {
		return append(out, ' ')
	}
	for range breaks - 1 {
		out = append(out, '\n')
	}
	return out
}

// breaks passes white space and counts the line breaks in it.
func (s *yamlScanner) breaks() int {
	n := 0
	for s.pos < len(s.data) && ends(s.data[s.pos]) {
		if s.data[s.pos] == '\n' {
			n++
			s.newline()
		} else {
			s.pos++
		}
	}
	return n
}

func (s *yamlScanner) singleQuoted() *flaw {
	tk := yamlToken{kind: tokenQuoted, line: s.line, col: s.col()}
	begin := s.flaw("the quote that opens here is never closed")
	s.pos++
	var out []byte
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '\'' && s.at(1) == '\'':
			out = append(out, c)
			s.pos += 2
		case c == '\'':
			s.pos++
			tk.text, tk.end = string(out), s.line
			s.tokens = append(s.tokens, tk)
			return nil
		case c == '\n':
			out = s.fold(out, 0)
		default:
			out = append(out, c)
			s.advance(1)
		}
	}
	return begin
}

func (s *yamlScanner) doubleQuoted() *flaw {
	tk := yamlToken{kind: tokenQuoted, line: s.line, col: s.col()}
	begin := s.flaw("the quote that opens here is never closed")
	s.pos++
	var out []byte
	keep := 0 // white space up to here was written as an escape, and stays
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			tk.text, tk.end = string(out), s.line
			s.tokens = append(s.tokens, tk)
			return nil
		case c == '\n':
			out = s.fold(out, keep)
		case c == '\\':
			var fault *flaw
			if out, fault = s.escape(out); fault != nil {
				return fault
			}
			keep = len(out)
		default:
			out = append(out, c)
			s.advance(1)
		}
	}
	return begin
}

// escape reads what a backslash begins in double quotes.
func (s *yamlScanner) escape(out []byte) ([]byte, *flaw) {
	c := s.at(1)
	if i := strings.IndexByte("0abtnvfre \"/\\\t", c); i >= 0 {
		s.pos += 2
		return append(out, "\x00\a\b\t\n\v\f\r\x1b \"/\\\t"[i]), nil
	}
	digits := 0
	switch c {
	case '\n':
		s.pos++
		for range s.breaks() - 1 {
			out = append(out, '\n')
		}
		return out, nil
	case 'N', '_', 'L', 'P':
		s.pos += 2
		return utf8.AppendRune(out, map[byte]rune{'N': 0x85, '_': 0xA0, 'L': 0x2028, 'P': 0x2029}[c]), nil
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return nil, s.flaw("%s is no escape of YAML; write a backslash as \\\\, or use single quotes", shortened(s.data[s.pos:min(s.pos+2, len(s.data))]))
	}
	code, ok := s.hex(0, digits)
	size := 2 + digits
	if ok && c == 'u' && code >= 0xD800 && code < 0xDC00 { // as in JSON: two halves of a character
		low, there := s.hex(size, digits)
		ok = there && s.at(size) == '\\' && s.at(size+1) == 'u' && low >= 0xDC00 && low < 0xE000
		code = (code-0xD800)<<10 + (low - 0xDC00) + 0x10000
		size *= 2
	}
	if !ok || !utf8.ValidRune(code) {
		return nil, s.flaw("\\%c must be followed by %d hexadecimal digits of a character", c, digits)
	}
	s.pos += size
	return utf8.AppendRune(out, code), nil
}

// hex reads the digits of an escape that begins so far ahead.
func (s *yamlScanner) hex(ahead, digits int) (rune, bool) {
	from := s.pos + ahead + 2
	if from+digits > len(s.data) {
		return 0, false
	}
	n, err := strconv.ParseUint(s.data[from:from+digits], 16, 32)
	return rune(n), err == nil && n <= utf8.MaxRune
}
