package expr

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenNumber
	tokenText
	tokenSign // operators and brackets
	tokenPlaceholder
)

type token struct {
	kind   tokenKind
	text   string // the name, the sign, the digits, or the decoded text
	at     int    // byte offset
	pieces []piece
	index  int // of a placeholder
}

// piece is a part of a text literal that has placeholders: text, or the placeholder with this index if it is not negative.
type piece struct {
	text  string
	index int
}

// signs, read-only, are tried in order, so a sign stands before its prefixes.
var signs = [...]string{"===", "!==", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "=>",
	"<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",", "(", ")", "[", "]", "{", "}"}

const (
	maxDigits      = 400   // of a number literal
	maxPlaceholder = 1_000 // bytes of a placeholder; also keeps the search for its end short
)

type lexer struct {
	source       string
	at           int
	toks         []token
	placeholders []string
	indexes      map[string]int // of placeholders, by their text
}

// lex cuts the source into tokens. Placeholders are recognised here and never become source.
func lex(source string) ([]token, []string, error) {
	l := &lexer{source: source, indexes: map[string]int{}}
	for i, c := range source {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(source[i:]); size == 1 {
				return nil, nil, failAt(source, i, "the source is not valid UTF-8")
			}
		}
		if c == 0 {
			return nil, nil, failAt(source, i, "the source has a NUL character")
		}
	}
	for {
		tok, err := l.next()
		if err != nil {
			return nil, nil, err
		}
		l.toks = append(l.toks, tok)
		if tok.kind == tokenEnd {
			return l.toks, l.placeholders, nil
		}
	}
}

func (l *lexer) next() (token, error) {
	l.at += len(l.source[l.at:]) - len(strings.TrimLeftFunc(l.source[l.at:], unicode.IsSpace))
	rest := l.source[l.at:]
	if rest == "" {
		return token{kind: tokenEnd, at: l.at}, nil
	}
	c, _ := utf8.DecodeRuneInString(rest)
	switch {
	case c == '_' || unicode.IsLetter(c):
		return l.take(tokenName, len(rest)-len(strings.TrimLeftFunc(rest, isNameRune))), nil
	case c >= '0' && c <= '9':
		return l.number(rest)
	case c == '"' || c == '\'':
		return l.textLiteral(byte(c))
	case strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "${"):
		inner, size := scanPlaceholder(rest)
		if size == 0 {
			return token{}, failAt(l.source, l.at, "the placeholder is empty, longer than %d bytes or not closed on its line", maxPlaceholder)
		}
		tok := l.take(tokenPlaceholder, size)
		tok.index = l.placeholder(inner)
		return tok, nil
	}
	for _, sign := range signs {
		if strings.HasPrefix(rest, sign) {
			return l.take(tokenSign, len(sign)), nil
		}
	}
	switch c {
	case '=':
		return token{}, failAt(l.source, l.at, "%q assigns nothing here; compare with ==", "=")
	case '&', '|':
		return token{}, failAt(l.source, l.at, "%q is not an operator; write %q", string(c), string(c)+string(c))
	case ';':
		return token{}, failAt(l.source, l.at, "%q is not allowed: an expression is one value, without statements", ";")
	}
	return token{}, failAt(l.source, l.at, "%q is not part of the language", string(c))
}

func (l *lexer) take(kind tokenKind, size int) token {
	tok := token{kind: kind, text: l.source[l.at : l.at+size], at: l.at}
	l.at += size
	return tok
}

// placeholder returns the index of a placeholder; equal ones share it, so each is resolved once.
func (l *lexer) placeholder(inner string) int {
	i, known := l.indexes[inner]
	if !known {
		i = len(l.placeholders)
		l.indexes[inner] = i
		l.placeholders = append(l.placeholders, inner)
	}
	return i
}

func isNameRune(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

func isDigit(c rune) bool { return c >= '0' && c <= '9' }

// number takes a JSON number, or after a dot just digits, so rows.0.1 is two positions.
func (l *lexer) number(rest string) (token, error) {
	size := len(rest) - len(strings.TrimLeftFunc(rest, isDigit))
	if n := len(l.toks); n == 0 || l.toks[n-1].text != "." && l.toks[n-1].text != "?." || l.toks[n-1].kind != tokenSign {
		size = numberSize(rest)
	}
	if size == 0 {
		return token{}, failAt(l.source, l.at, "a number may not start with a superfluous 0")
	}
	if size > maxDigits {
		return token{}, failAt(l.source, l.at, "the number has %d characters, at most %d are allowed", size, maxDigits)
	}
	if c, _ := utf8.DecodeRuneInString(rest[size:]); isNameRune(c) {
		return token{}, failAt(l.source, l.at, "a number and a name need an operator or a space between them")
	}
	return l.take(tokenNumber, size), nil
}

// numberSize returns the length of the unsigned JSON number that s starts with, or 0.
func numberSize(s string) int {
	digits := func(from int) int {
		for from < len(s) && s[from] >= '0' && s[from] <= '9' {
			from++
		}
		return from
	}
	n := digits(0)
	if n == 0 || n > 1 && s[0] == '0' {
		return 0
	}
	if n < len(s) && s[n] == '.' {
		if m := digits(n + 1); m > n+1 {
			n = m
		}
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if k := digits(m); k > m {
			n = k
		}
	}
	return n
}

// validNumber says whether s is a JSON number, so that hex, underscores, Inf and NaN never become numbers.
func validNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && numberSize(s) == len(s)
}

// literalNumber is the value of a number in the source.
func literalNumber(text string) (any, bool) {
	v, ok := normNumber(json.Number(text))
	if n, big := v.(json.Number); big && !wholeNumber(string(n)) {
		return nil, false // beyond every float
	}
	return v, ok
}

// scanPlaceholder returns the inner text and the whole length of the placeholder s starts with, or a length of 0.
// Inside ["…"] any character may stand; elsewhere braces and line ends may not.
func scanPlaceholder(s string) (string, int) {
	open, end := "{{", "}}"
	switch {
	case strings.HasPrefix(s, "${"):
		open, end = "${", "}"
	case strings.HasPrefix(s, "{{{"):
		open, end = "{{{", "}}}"
	case !strings.HasPrefix(s, "{{"):
		return "", 0
	}
	s = s[:min(len(s), maxPlaceholder)]
	for i := len(open); i < len(s); i++ {
		switch s[i] {
		case '}':
			inner := strings.TrimSpace(s[len(open):i])
			if inner == "" || !strings.HasPrefix(s[i:], end) {
				return "", 0
			}
			return inner, i + len(end)
		case '{', '\n', '\r':
			return "", 0
		case '[':
			if i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\'') {
				if n := strings.Index(s[i+2:], string(s[i+1])+"]"); n >= 0 && !strings.ContainsAny(s[i+2:i+2+n], "\r\n") {
					i += 2 + n + 1
				}
			}
		}
	}
	return "", 0
}

// textLiteral takes a text in quotes and finds the placeholders in it.
func (l *lexer) textLiteral(quote byte) (token, error) {
	var text strings.Builder
	escaped := map[int]bool{} // offsets in text of braces and dollars that were escaped
	start := l.at
	for i := start + 1; i < len(l.source); {
		switch c := l.source[i]; {
		case c == quote:
			l.at = i + 1
			tok := token{kind: tokenText, text: text.String(), at: start}
			tok.pieces = l.pieces(tok.text, escaped)
			return tok, nil
		case c == '\n' || c == '\r':
			return token{}, failAt(l.source, start, "the text is not closed on its line; write a line end as \\n")
		case c == '\\':
			size, ok := l.escape(l.source[i:], &text, escaped)
			if !ok {
				return token{}, failAt(l.source, i, "unknown escape; those of JSON are known, and \\' \\{ \\$")
			}
			i += size
		default:
			text.WriteByte(c)
			i++
		}
	}
	return token{}, failAt(l.source, start, "the text is not closed; %s is missing", string(quote))
}

// escape decodes the escape s starts with and returns its length.
func (l *lexer) escape(s string, text *strings.Builder, escaped map[int]bool) (int, bool) {
	if len(s) < 2 {
		return 0, false
	}
	switch c := s[1]; c {
	case '"', '\'', '\\', '/':
		text.WriteByte(c)
	case 'b', 'f', 'n', 'r', 't':
		text.WriteByte("\b\f\n\r\t"[strings.IndexByte("bfnrt", c)])
	case '$':
		escaped[text.Len()] = true
		text.WriteByte(c)
	case '{': // the escape covers the whole run, so \{{x}} and \{{{x}}} are text
		n := len(s[1:]) - len(strings.TrimLeft(s[1:], "{"))
		for range n {
			escaped[text.Len()] = true
			text.WriteByte('{')
		}
		return 1 + n, true
	case 'u':
		first, ok := hex4(s)
		if !ok {
			return 0, false
		}
		if second, ok := hex4(s[6:]); ok && utf16.IsSurrogate(first) {
			if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
				text.WriteRune(pair)
				return 12, true
			}
		}
		if first == '{' || first == '$' {
			escaped[text.Len()] = true
		}
		text.WriteRune(first) // a lone surrogate becomes U+FFFD, as in encoding/json
		return 6, true
	default:
		return 0, false
	}
	return 2, true
}

// hex4 reads the four digits after \u.
func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// pieces cuts a decoded text at its placeholders; nil if there is none. What looks like one but is not closed is text.
func (l *lexer) pieces(text string, escaped map[int]bool) []piece {
	var out []piece
	from := 0
	for i := 0; i < len(text); {
		size := 0
		var inner string
		if (text[i] == '{' || text[i] == '$') && !escaped[i] {
			inner, size = scanPlaceholder(text[i:])
		}
		if size == 0 {
			i++
			continue
		}
		if from < i {
			out = append(out, piece{text: text[from:i], index: -1})
		}
		out = append(out, piece{index: l.placeholder(inner)})
		i += size
		from = i
	}
	if out != nil && from < len(text) {
		out = append(out, piece{text: text[from:], index: -1})
	}
	return out
}
