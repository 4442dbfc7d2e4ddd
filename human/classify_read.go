package human

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

// tokens splits a normalised line. Contractions are written out, so that the rules see "do not" in every spelling.
func (w *wording) tokens(line string) []token {
	rs := []rune(line)
	var out []token
	latin := func(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Han, r) }
	for i := 0; i < len(rs); {
		r := rs[i]
		switch {
		case r == ' ' || r == '$' || r == '¥' || r == '€' || r == '£' || r == '￥':
			i++
		case unicode.Is(unicode.Han, r):
			out = append(out, token{string(r), tokenHan})
			i++
		case r == '+' && i+1 < len(rs) && rs[i+1] == '1' && !digitsFollow(rs[i+2:]):
			out = append(out, token{"+1", tokenWord})
			i += 2
		case r == '-' && i+1 < len(rs) && rs[i+1] == '1' && i == 0 && !digitsFollow(rs[i+2:]):
			out = append(out, token{"-1", tokenWord})
			i += 2
		case r == '/' && i+1 < len(rs) && rs[i+1] == 's' && (i+2 == len(rs) || !latin(rs[i+2])):
			out = append(out, token{"/s", tokenWord})
			i += 2
		case unicode.IsDigit(r):
			j := i
			var b strings.Builder
			plain := true
			for j < len(rs) && (unicode.IsDigit(rs[j]) || latin(rs[j]) || (rs[j] == ',' || rs[j] == '.') && j+1 < len(rs) && unicode.IsDigit(rs[j+1]) && plain) {
				if rs[j] != ',' {
					b.WriteRune(rs[j])
				}
				plain = plain && !latin(rs[j])
				j++
			}
			out = append(out, token{plainNumber(b.String()), tokenNumber})
			i = j
		case latin(r):
			j := i
			for j < len(rs) && (latin(rs[j]) || unicode.IsDigit(rs[j]) || rs[j] == '\'' && j+1 < len(rs) && latin(rs[j+1])) {
				j++
			}
			out = w.spelled(out, string(rs[i:j]))
			i = j
		case r == '-' && i > 0 && i+1 < len(rs) && alnum(rs[i-1]) && alnum(rs[i+1]):
			i++
		case r == '&':
			out = append(out, token{"and", tokenWord})
			i++
		case r == '.' && i+1 < len(rs) && rs[i+1] == '.' || r == '。' && i+1 < len(rs) && rs[i+1] == '。':
			for i < len(rs) && (rs[i] == '.' || rs[i] == '。') {
				i++
			}
			out = append(out, token{"...", tokenBreak})
		case strings.ContainsRune(".,;:!?()。、，；：！？（）-–—·•【】", r):
			out = append(out, token{string(r), tokenBreak})
			i++
		default:
			out = append(out, token{string(r), tokenSymbol})
			i++
		}
	}
	return out
}

func alnum(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unicode.Is(unicode.Han, r)
}

// digitsFollow says whether a telephone number goes on.
func digitsFollow(rs []rune) bool {
	for _, r := range rs {
		if unicode.IsDigit(r) {
			return true
		}
		if r != ' ' && r != '(' && r != '-' && r != '.' {
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

func (w *wording) spelled(out []token, s string) []token {
	if long, ok := w.contracted[s]; ok {
		for _, f := range strings.Fields(long) {
			out = append(out, token{f, tokenWord})
		}
		return out
	}
	if stem, ok := strings.CutSuffix(s, "n't"); ok {
		return append(out, token{stem, tokenWord}, token{"not", tokenWord})
	}
	if stem, ok := strings.CutSuffix(s, "'s"); ok {
		out = append(out, token{stem, tokenWord})
		switch stem {
		case "one", "this", "everything", "all", "amount", "price", "nothing", "how", "where", "when", "why":
			out = append(out, token{"is", tokenWord})
		}
		return out
	}
	if right, ok := w.misspelt[s]; ok {
		s = right
	}
	return append(out, token{s, tokenWord})
}

// item is a phrase that was found in a clause.
type item struct {
	text string
	is   class
	kind tokenKind
	// mentioned says that only the question makes it known.
	mentioned bool
}

// match finds the longest phrase that begins at a token.
func (w *wording) match(ts []token, i int) (end int, is class) {
	at := w.root
	for j := i; j < len(ts); j++ {
		at = at.next[ts[j].text]
		if at == nil {
			break
		}
		if at.is != saysUnknown {
			end, is = j+1, at.is
		}
	}
	return end, is
}

// items are the phrases of a clause, from left to right, the longest first; what is no phrase is unknown. Phrases are short, so
// this is linear.
func (w *wording) items(ts []token) []item {
	out := make([]item, 0, len(ts))
	for i := 0; i < len(ts); {
		end, is := w.match(ts, i)
		if end == 0 {
			end = i + 1
		}
		out = append(out, item{text: joined(ts[i:end]), is: is, kind: ts[i].kind})
		i = end
	}
	return out
}

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

// answering says whether a line has a word of an answer in it.
func (w *wording) answering(line string) bool {
	for _, it := range w.items(w.tokens(line)) {
		switch it.is {
		case saysApproval, saysVerb, saysEnding, saysGo, saysRefusal:
			return true
		}
	}
	return false
}

// telling says whether a line has a word in it that visiting cards do not have.
func (w *wording) telling(line string) bool {
	for _, it := range w.items(w.tokens(line)) {
		switch it.is {
		case saysUnknown, saysFine, saysDomain, saysCourtesy, saysFiller, saysPerson, saysAck:
			switch it.text {
			case "i", "we", "is", "are", "i am", "good", "all", "我", "我们":
				return true
			}
		case saysObject:
			switch it.text {
			case "plan", "workflow", "application", "task", "操作", "流程", "计划", "方案", "本":
			default:
				return true
			}
		case saysIndirect:
			switch it.text {
			case "manager", "cfo", "ceo", "legal", "cc", "last":
			default:
				return true
			}
		case saysGlue:
			switch it.text {
			case "of", "in", "at", "by", "on", "as", "我", "有", "和", "以", "与", "地", "里", "上", "下", "多", "少", "能", "到", "从":
			default:
				return true
			}
		case saysParticle:
			if it.text != "的" && it.text != "~" {
				return true
			}
		default:
			return true
		}
	}
	return false
}
