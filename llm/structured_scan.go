package llm

import "strings"

// scanEnd is how a scan ended.
type scanEnd int8

const (
	// scanWhole: a value ended.
	scanWhole scanEnd = iota
	// scanBroken: what follows is no JSON.
	scanBroken
	// scanCut: the text ended within a value that is right so far.
	scanCut
)

// maxScanDepth is how deep values may lie in each other; deeper ones are taken for no JSON.
const maxScanDepth = 500

// scanJSON reads the one JSON value at the beginning of a text and returns how many bytes were read. The decoder of
// encoding/json cannot say whether a text is wrong or only cut, and is slow to start at every brace of a text.
func scanJSON(text string) (int, scanEnd) {
	s := scanner{text: text}
	end := s.value(0)
	return s.at, end
}

type scanner struct {
	text string
	at   int
}

// space skips white space. It returns the next byte; false at the end of the text.
func (s *scanner) space() (byte, bool) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c, true
		}
	}
	return 0, false
}

func (s *scanner) value(depth int) scanEnd {
	c, ok := s.space()
	switch {
	case !ok:
		return scanCut
	case depth > maxScanDepth:
		return scanBroken
	case c == '{':
		return s.items(depth, '}', true)
	case c == '[':
		return s.items(depth, ']', false)
	case c == '"':
		return s.quoted()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// items reads an object or an array, from its opening bracket.
func (s *scanner) items(depth int, closing byte, keyed bool) scanEnd {
	s.at++
	for first := true; ; first = false {
		c, ok := s.space()
		switch {
		case !ok:
			return scanCut
		case first && c == closing:
			s.at++
			return scanWhole
		}
		if keyed {
			if c != '"' {
				return scanBroken
			}
			if end := s.quoted(); end != scanWhole {
				return end
			}
			if c, ok = s.space(); !ok {
				return scanCut
			} else if c != ':' {
				return scanBroken
			}
			s.at++
		}
		if end := s.value(depth + 1); end != scanWhole {
			return end
		}
		if c, ok = s.space(); !ok {
			return scanCut
		}
		switch c {
		case ',':
			s.at++
		case closing:
			s.at++
			return scanWhole
		default:
			return scanBroken
		}
	}
}

// quoted reads a string, from its first quote.
func (s *scanner) quoted() scanEnd {
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return scanWhole
		case c < ' ':
			return scanBroken
		case c == '\\':
			s.at++
			if s.at >= len(s.text) {
				return scanCut
			}
			if s.text[s.at] == 'u' {
				for range 4 {
					s.at++
					if s.at >= len(s.text) {
						return scanCut
					}
					if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s.text[s.at])) {
						return scanBroken
					}
				}
			} else if !strings.ContainsRune(`"\/bfnrt`, rune(s.text[s.at])) {
				return scanBroken
			}
		}
	}
	return scanCut
}

func (s *scanner) word(w string) scanEnd {
	rest := s.text[s.at:]
	switch {
	case strings.HasPrefix(rest, w):
		s.at += len(w)
		return scanWhole
	case strings.HasPrefix(w, rest):
		s.at = len(s.text)
		return scanCut
	}
	return scanBroken
}

// digits skips digits and returns whether there were any.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

// number reads a number. At the end of the text it counts as whole: whether digits are missing cannot be seen.
func (s *scanner) number() scanEnd {
	one := func(set string) bool {
		if s.at < len(s.text) && strings.IndexByte(set, s.text[s.at]) >= 0 {
			s.at++
			return true
		}
		return false
	}
	missing := func() scanEnd {
		if s.at >= len(s.text) {
			return scanCut
		}
		return scanBroken
	}
	one("-")
	if !one("0") && !s.digits() {
		return missing()
	}
	if one(".") && !s.digits() {
		return missing()
	}
	if one("eE") {
		one("+-")
		if !s.digits() {
			return missing()
		}
	}
	return scanWhole
}
