package database

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"tandem/fault"
)

// Text is one SQL statement as its author wrote it, with the values that stand in it. Value i stands between Words i and
// Words i+1; nothing of a value ever becomes part of the statement.
type Text struct {
	Words  []string
	Values []json.RawMessage
	// Parameters are the values of ?, $1 and :name: a list or an object, or nothing.
	Parameters json.RawMessage
}

// marker stands for a value while a text is read. No text has it: it is refused before.
const marker = '\x00'

// tokenKind is what a piece of a statement is.
type tokenKind uint8

const (
	tokenSpace    tokenKind = iota // white space and comments
	tokenWord                      // an identifier or a keyword without quotes
	tokenQuoted                    // an identifier in quotes
	tokenString                    // a text in quotes
	tokenNumber                    //
	tokenSymbol                    // an operator or a bracket, one character
	tokenValue                     // a value of the text, by its number
	tokenTemplate                  // a text in quotes with values in it: it becomes one parameter
	tokenPosition                  // $1, ?1: by its number from 1
	tokenNext                      // ?
	tokenName                      // :name
)

// token is a piece of a statement. Text is as written; of a name without the colon.
type token struct {
	kind   tokenKind
	text   string
	number int
	// parts and numbers are those of a template: the words and the values between them.
	parts   []string
	numbers []int
}

// statement is one SQL statement, taken apart.
type statement struct {
	dialect dialect
	tokens  []token
	text    Text
	// keyword is its first word in upper case, what decides which sort of statement it is.
	keyword string
}

func wrongStatement(format string, args ...any) *fault.Error {
	return fault.Newf(fault.InvalidConfig, "the statement "+format, args...)
}

// parseStatement takes a text apart. Several statements are refused; a semicolon at the end is not one.
func parseStatement(d dialect, t Text) (*statement, error) {
	if len(t.Words) != len(t.Values)+1 {
		return nil, fault.Newf(fault.Internal, "a statement of %d pieces has %d values", len(t.Words), len(t.Values))
	}
	for _, words := range t.Words {
		if strings.IndexByte(words, marker) >= 0 {
			return nil, wrongStatement("has a NUL character in it; remove it")
		}
		if !utf8.ValidString(words) {
			return nil, wrongStatement("is not UTF-8")
		}
	}
	s := &scanner{dialect: d, text: strings.Join(t.Words, string(rune(marker)))}
	if err := s.scan(); err != nil {
		return nil, err
	}
	out := &statement{dialect: d, tokens: s.tokens, text: t}
	return out, out.trim()
}

// trim drops what follows a last semicolon and finds the first word.
func (s *statement) trim() error {
	for i, t := range s.tokens {
		if t.kind == tokenSymbol && t.text == ";" {
			for _, later := range s.tokens[i+1:] {
				if later.kind != tokenSpace && (later.kind != tokenSymbol || later.text != ";") {
					return fault.New(fault.InvalidInput, "the text has several statements; give one, or use the operation \"transaction\" with a list of them")
				}
			}
			s.tokens = s.tokens[:i]
			break
		}
	}
	for _, t := range s.tokens {
		switch {
		case t.kind == tokenSpace || t.kind == tokenSymbol && t.text == "(":
			continue
		case t.kind == tokenWord:
			s.keyword = strings.ToUpper(t.text)
			return nil
		case t.kind == tokenValue || t.kind == tokenTemplate:
			return wrongStatement("begins with a placeholder; a placeholder is a value, never SQL, so write the statement itself")
		}
		return wrongStatement("begins with %q, which is not SQL", t.text)
	}
	return wrongStatement("is empty; write one")
}

// has says whether a bare word stands in the statement, not as the name of a column or a function.
func (s *statement) has(word string) bool {
	for i, t := range s.tokens {
		if t.kind != tokenWord || !strings.EqualFold(t.text, word) {
			continue
		}
		before, after := s.beside(i, -1), s.beside(i, 1)
		if before.kind == tokenSymbol && before.text == "." || after.kind == tokenSymbol &&
			(after.text == "." || after.text == "(" && word != "INTO" && word != "RETURNING") {
			continue
		}
		return true
	}
	return false
}

// beside is the next token in a direction that is not space.
func (s *statement) beside(i, step int) token {
	for i += step; i >= 0 && i < len(s.tokens); i += step {
		if s.tokens[i].kind != tokenSpace {
			return s.tokens[i]
		}
	}
	return token{}
}

type scanner struct {
	dialect dialect
	text    string
	at      int
	value   int // how many markers have been passed
	depth   int // of square brackets
	tokens  []token
}

func (s *scanner) addToken(kind tokenKind, text string) {
	s.tokens = append(s.tokens, token{kind: kind, text: text})
}

// last is the last token that is not space.
func (s *scanner) last() token {
	for i := len(s.tokens) - 1; i >= 0; i-- {
		if s.tokens[i].kind != tokenSpace {
			return s.tokens[i]
		}
	}
	return token{kind: tokenSymbol}
}

func (s *scanner) peek(n int) byte {
	if s.at+n < len(s.text) && s.at+n >= 0 {
		return s.text[s.at+n]
	}
	return 0
}

func (s *scanner) starts(prefix string) bool { return strings.HasPrefix(s.text[s.at:], prefix) }

func (s *scanner) scan() error {
	for s.at < len(s.text) {
		if err := s.token(); err != nil {
			return err
		}
	}
	return nil
}

// token takes the next token: what is quoted or a comment as one, since nothing in it counts.
func (s *scanner) token() error {
	c := s.text[s.at]
	if quoted, err := s.quoted(c); quoted {
		return err
	}
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
		s.addToken(tokenSpace, s.text[s.at:s.at+1])
		s.at++
		return nil
	case c == marker:
		return s.placeholder()
	case c == '$':
		return s.dollar()
	case c == ':':
		return s.colon()
	case c == '?':
		return s.question()
	case c == '@' && s.dialect == mysqlDialect:
		s.addToken(tokenSymbol, "@")
		s.at++
		return nil
	case c >= '0' && c <= '9':
		return s.number()
	case wordStart(s.text[s.at:]):
		return s.word()
	}
	switch c {
	case '[':
		s.depth++
	case ']':
		s.depth--
	}
	_, size := utf8.DecodeRuneInString(s.text[s.at:])
	s.addToken(tokenSymbol, s.text[s.at:s.at+size])
	s.at += size
	return nil
}

// quoted takes a comment, a quoted text or a quoted name, if one begins here with c.
func (s *scanner) quoted(c byte) (taken bool, err error) {
	switch {
	case s.starts("--") && s.dashComment():
		return true, s.lineComment()
	case c == '#' && s.dialect == mysqlDialect:
		return true, s.lineComment()
	case s.starts("/*"):
		return true, s.blockComment()
	case c == '\'':
		return true, s.quotedText(false)
	case c == '"' && s.dialect == mysqlDialect:
		return true, s.quotedText(false) // a text, unless the server was told otherwise; either way nothing in it counts
	case c == '"':
		return true, s.quotedName('"')
	case c == '`' && s.dialect != postgresDialect:
		return true, s.quotedName('`')
	case c == '[' && s.dialect == sqliteDialect:
		return true, s.quotedName(']')
	}
	return false, nil
}

func wordStart(text string) bool {
	c := text[0]
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func wordPart(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func (s *scanner) word() error {
	end := s.at
	for end < len(s.text) && wordPart(s.text[end]) {
		end++
	}
	word := s.text[s.at:end]
	if end < len(s.text) && s.text[end] == '\'' && strings.ContainsAny(word, "eEnNbBxXuU_") {
		// E'…', N'…', X'…', B'…', _utf8'…': the word belongs to the text.
		if len(word) == 1 || word[0] == '_' && s.dialect == mysqlDialect {
			s.addToken(tokenWord, word)
			s.at = end
			return s.quotedText(strings.EqualFold(word, "e"))
		}
	}
	if end < len(s.text) && s.text[end] == marker {
		return touching(word)
	}
	s.addToken(tokenWord, word)
	s.at = end
	return nil
}

func touching(word string) error {
	return wrongStatement("has a placeholder right beside %q; a placeholder is a value and cannot be part of a name, so set it apart, or write the name itself", word)
}

func (s *scanner) number() error {
	end := s.at
	for end < len(s.text) && (wordPart(s.text[end]) || s.text[end] == '.') {
		end++
	}
	if end < len(s.text) && s.text[end] == marker {
		return touching(s.text[s.at:end])
	}
	s.addToken(tokenNumber, s.text[s.at:end])
	s.at = end
	return nil
}

func (s *scanner) placeholder() error {
	if wordPart(s.peek(1)) {
		return touching(string(s.peek(1)))
	}
	s.tokens = append(s.tokens, token{kind: tokenValue, number: s.value})
	s.value++
	s.at++
	return nil
}

// dashComment says whether -- begins a comment: MySQL wants a space after it.
func (s *scanner) dashComment() bool {
	c := s.peek(2)
	return s.dialect != mysqlDialect || c <= ' ' && c != marker || s.at+2 >= len(s.text)
}

// space adds a comment as a space: values in it do not count.
func (s *scanner) space(end int) {
	s.value += strings.Count(s.text[s.at:end], string(rune(marker)))
	s.addToken(tokenSpace, " ")
	s.at = end
}

func (s *scanner) lineComment() error {
	end := strings.IndexAny(s.text[s.at:], "\n\r")
	if end < 0 {
		s.space(len(s.text))
		return nil
	}
	s.space(s.at + end)
	return nil
}

// blockComment passes a comment over. Those of PostgreSQL contain others; those that MySQL would execute are refused.
func (s *scanner) blockComment() error {
	if s.dialect == mysqlDialect && (s.starts("/*!") || s.starts("/*M!")) {
		return wrongStatement("has a comment that the server would execute; write its content as SQL, or remove it")
	}
	depth := 0
	for i := s.at; i+1 < len(s.text); i++ {
		switch s.text[i : i+2] {
		case "/*":
			if depth == 0 || s.dialect == postgresDialect {
				depth++
				i++
			}
		case "*/":
			if depth--; depth == 0 {
				s.space(i + 2)
				return nil
			}
			i++
		}
	}
	if s.dialect == sqliteDialect {
		s.space(len(s.text)) // it may end without an end
		return nil
	}
	return wrongStatement("has a comment that does not end; close it with */")
}

// quotedText reads a text in single quotes, in MySQL also in double ones. One with values in it becomes a parameter.
func (s *scanner) quotedText(escapes bool) error {
	quote := s.text[s.at]
	backslash := escapes && s.dialect == postgresDialect || s.dialect == mysqlDialect
	var plain strings.Builder // the words since the last value
	out := token{kind: tokenString}
	escaped := false
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '\\' && backslash:
			escaped = true
			if i++; i < len(s.text) && s.text[i] == marker {
				return wrongStatement("has a placeholder after a backslash; remove the backslash")
			}
		case c == quote && i+1 < len(s.text) && s.text[i+1] == quote:
			plain.WriteByte(quote)
			i++
		case c == quote:
			out.text = s.text[s.at : i+1]
			s.at = i + 1
			if out.numbers == nil {
				s.tokens = append(s.tokens, out)
				return nil
			}
			before := s.last()
			if escaped || escapes || before.kind == tokenWord && strings.HasSuffix(s.text[:s.at-len(out.text)], before.text) {
				return wrongStatement("has a placeholder inside a text with escapes or a prefix; give the whole text as a parameter")
			}
			out.kind, out.parts = tokenTemplate, append(out.parts, plain.String())
			s.tokens = append(s.tokens, out)
			return nil
		case c == marker:
			out.parts, out.numbers = append(out.parts, plain.String()), append(out.numbers, s.value)
			plain.Reset()
			s.value++
		default:
			plain.WriteByte(c)
		}
	}
	return wrongStatement("has a text that does not end; close it with %c", quote)
}

// quotedName reads a name in quotes. Nothing may stand in it: a value is never a name.
func (s *scanner) quotedName(closing byte) error {
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == marker:
			return wrongStatement("has a placeholder inside a name in quotes; a placeholder is a value, so write the name itself")
		case c == closing && closing != ']' && i+1 < len(s.text) && s.text[i+1] == closing:
			i++
		case c == closing:
			s.addToken(tokenQuoted, s.text[s.at:i+1])
			s.at = i + 1
			return nil
		}
	}
	return wrongStatement("has a name in quotes that does not end; close it with %c", closing)
}

// dollar reads $1, or a text of PostgreSQL between dollars.
func (s *scanner) dollar() error {
	end := s.at + 1
	for end < len(s.text) && s.text[end] >= '0' && s.text[end] <= '9' {
		end++
	}
	if digits := s.text[s.at+1 : end]; digits != "" {
		return s.position(digits, end)
	}
	if s.dialect == postgresDialect {
		for end < len(s.text) && s.text[end] != '$' && wordPart(s.text[end]) {
			end++
		}
		if end < len(s.text) && s.text[end] == '$' {
			tag := s.text[s.at : end+1]
			body := strings.Index(s.text[end+1:], tag)
			if body < 0 {
				return wrongStatement("has a text that does not end; close it with %s", tag)
			}
			if strings.IndexByte(s.text[end+1:end+1+body], marker) >= 0 {
				return wrongStatement("has a placeholder between %s and %s; give it as a parameter", tag, tag)
			}
			s.addToken(tokenString, s.text[s.at:end+1+body+len(tag)])
			s.at = end + 1 + body + len(tag)
			return nil
		}
	}
	s.addToken(tokenSymbol, "$")
	s.at++
	return nil
}

func (s *scanner) position(digits string, end int) error {
	n := 0
	for _, c := range digits {
		if n = n*10 + int(c-'0'); n > maxParameters {
			return wrongStatement("asks for parameter %s; at most %d are taken", digits, maxParameters)
		}
	}
	if n == 0 {
		return wrongStatement("asks for parameter 0; they are counted from 1")
	}
	if end < len(s.text) && (wordPart(s.text[end]) || s.text[end] == marker) {
		return wrongStatement("has something right beside the parameter %q; set it apart", s.text[s.at:end])
	}
	s.tokens = append(s.tokens, token{kind: tokenPosition, text: s.text[s.at:end], number: n})
	s.at = end
	return nil
}

// colon reads :name. A cast (::), an assignment (:=) and the slice of an array are none.
func (s *scanner) colon() error {
	next := s.peek(1)
	switch {
	case next == ':' || next == '=':
		s.addToken(tokenSymbol, s.text[s.at:s.at+2])
		s.at += 2
		return nil
	case next == 0 || next == marker || !wordStart(s.text[s.at+1:]), s.depth > 0 && s.dialect == postgresDialect &&
		operand(s.last()) && !isSpace(s.peek(-1)):
		s.addToken(tokenSymbol, ":")
		s.at++
		return nil
	}
	end := s.at + 1
	for end < len(s.text) && wordPart(s.text[end]) && s.text[end] != '$' {
		end++
	}
	if end < len(s.text) && s.text[end] == marker {
		return touching(s.text[s.at:end])
	}
	s.addToken(tokenName, s.text[s.at+1:end])
	s.at = end
	return nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// question reads ?. In PostgreSQL ? is also an operator on JSON: it is one where an operand has just been read, and
// where it is written twice, as other drivers want it. ?| and ?& always are.
func (s *scanner) question() error {
	if s.dialect == postgresDialect {
		two, three := s.peek(1), s.peek(2)
		switch {
		case two == '?':
			s.addToken(tokenSymbol, "?")
			s.at += 2
			return nil
		case two == '&', two == '|' && three != '|', s.peek(-1) == '@', operand(s.last()):
			s.addToken(tokenSymbol, "?")
			s.at++
			return nil
		}
	}
	if s.dialect == sqliteDialect {
		end := s.at + 1
		for end < len(s.text) && s.text[end] >= '0' && s.text[end] <= '9' {
			end++
		}
		if digits := s.text[s.at+1 : end]; digits != "" {
			return s.position(digits, end)
		}
	}
	if wordPart(s.peek(1)) || s.at+1 < len(s.text) && s.text[s.at+1] == marker {
		return wrongStatement("has something right after a ?; set it apart")
	}
	s.addToken(tokenNext, "?")
	s.at++
	return nil
}

// operand says that a token ends a value, so that an operator follows.
func operand(t token) bool {
	switch t.kind {
	case tokenQuoted, tokenString, tokenNumber, tokenValue, tokenTemplate, tokenPosition, tokenNext, tokenName:
		return true
	case tokenSymbol:
		return t.text == ")" || t.text == "]"
	case tokenWord:
		return !beforeOperand(strings.ToUpper(t.text))
	}
	return false
}

// beforeOperand lists the keywords that a value follows.
func beforeOperand(word string) bool {
	switch word {
	case "SELECT", "DISTINCT", "ALL", "WHERE", "AND", "OR", "NOT", "ON", "HAVING", "BY", "LIMIT", "OFFSET",
		"FIRST", "NEXT", "VALUES", "SET",
		"IN", "LIKE", "ILIKE", "BETWEEN", "SIMILAR", "TO", "ESCAPE", "IS", "FROM", "CASE", "WHEN", "THEN", "ELSE", "RETURNING", "USING",
		"INTERVAL", "ANY", "SOME", "AS", "DEFAULT", "WITH", "OVERLAPS", "CALL", "FOR", "ROWS", "RANGE", "ZONE",
		"SYMMETRIC", "REGEXP", "RLIKE":
		return true
	}
	return false
}
