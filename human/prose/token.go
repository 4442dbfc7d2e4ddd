package prose

import (
	"strings"
	"unicode"
)

// tokenKind tells tokens apart.
type tokenKind uint8

const (
	tokenWord tokenKind = iota // Latin letters, perhaps with digits
	tokenNumber
	tokenHan    // one character
	tokenSymbol // an emoji or any other sign
	tokenBreak  // between clauses
)

type token struct {
	text string
	kind tokenKind
}

// scanner splits a normalised line.
type scanner struct {
	phrases *phrases
	rs      []rune
	at      int
	out     []token
}

// tokens splits a normalised line. Contractions are written out, so that there is "do not" in every spelling.
func (p *phrases) tokens(line string) []token {
	s := scanner{phrases: p, rs: []rune(line)}
	for s.at < len(s.rs) {
		switch r := s.rs[s.at]; {
		case strings.ContainsRune(" $¥€£￥", r):
			s.at++
		case isHan(r):
			s.take(string(r), tokenHan, 1)
		case s.vote():
			s.take(string(s.rs[s.at:s.at+2]), tokenWord, 2)
		case unicode.IsDigit(r):
			s.number()
		case isLatin(r):
			s.word()
		case r == '-' && s.at > 0 && s.at+1 < len(s.rs) && wordRune(s.rs[s.at-1]) && wordRune(s.rs[s.at+1]):
			s.at++ // within a word
		case r == '&':
			s.take(s.phrases.ampersand, tokenWord, 1)
		case s.dots() > 1:
			s.take("...", tokenBreak, s.dots())
		case strings.ContainsRune(".,;:!?()。、，；：！？（）-–—·•【】", r):
			s.take(string(r), tokenBreak, 1)
		default:
			s.take(string(r), tokenSymbol, 1)
		}
	}
	return s.out
}

func isLatin(r rune) bool { return unicode.IsLetter(r) && !isHan(r) }

// take adds a token that is n characters long.
func (s *scanner) take(text string, kind tokenKind, n int) {
	s.out = append(s.out, token{text, kind})
	s.at += n
}

// vote says whether "+1", "-1" or the mark of irony "/s" stands here.
func (s *scanner) vote() bool {
	if s.at+1 >= len(s.rs) {
		return false
	}
	rest := s.rs[s.at+2:]
	switch string(s.rs[s.at : s.at+2]) {
	case "+1":
		return !digitsFollow(rest)
	case "-1":
		return s.at == 0 && !digitsFollow(rest)
	case "/s":
		return len(rest) == 0 || !isLatin(rest[0])
	}
	return false
}

// dots counts the points that stand here.
func (s *scanner) dots() (n int) {
	for s.at+n < len(s.rs) && (s.rs[s.at+n] == '.' || s.rs[s.at+n] == '。') {
		n++
	}
	return n
}

// number takes a number, with its unit if that is written without a space.
func (s *scanner) number() {
	var b strings.Builder
	j, digitsOnly := s.at, true
	for ; j < len(s.rs); j++ {
		r := s.rs[j]
		mark := (r == ',' || r == '.') && j+1 < len(s.rs) && unicode.IsDigit(s.rs[j+1]) && digitsOnly
		if !unicode.IsDigit(r) && !isLatin(r) && !mark {
			break
		}
		if r != ',' {
			b.WriteRune(r)
		}
		digitsOnly = digitsOnly && !isLatin(r)
	}
	s.take(plainNumber(b.String()), tokenNumber, j-s.at)
}

// word takes a word of Latin letters.
func (s *scanner) word() {
	j := s.at
	for j < len(s.rs) && (isLatin(s.rs[j]) || unicode.IsDigit(s.rs[j]) || s.rs[j] == '\'' && j+1 < len(s.rs) && isLatin(s.rs[j+1])) {
		j++
	}
	for _, word := range s.phrases.writtenOut(string(s.rs[s.at:j])) {
		s.out = append(s.out, token{word, tokenWord})
	}
	s.at = j
}

// digitsFollow says whether a telephone number goes on.
func digitsFollow(rs []rune) bool {
	for _, r := range rs {
		if unicode.IsDigit(r) {
			return true
		}
		if !strings.ContainsRune(" (-.", r) {
			return false
		}
	}
	return false
}

// plainNumber writes a number without what does not change it.
func plainNumber(s string) string {
	if whole, part, ok := strings.Cut(s, "."); ok && strings.Trim(part, "0") == "" {
		return whole
	}
	return s
}

// writtenOut is a word without short forms and slips.
func (p *phrases) writtenOut(word string) []string {
	if long, ok := p.contracted[word]; ok {
		return strings.Fields(long)
	}
	if strings.Contains(word, "'") {
		for _, ending := range p.endings {
			if ending.short.MatchString(word) {
				return strings.Fields(ending.short.ReplaceAllString(word, ending.long))
			}
		}
	}
	if right, ok := p.slips[word]; ok {
		return []string{right}
	}
	return []string{word}
}

// joined writes tokens as one text.
func joined(ts []token) string {
	var b strings.Builder
	for i, t := range ts {
		if i > 0 && t.kind != tokenHan && ts[i-1].kind != tokenHan {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}
