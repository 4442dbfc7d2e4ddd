package prose

import (
	"slices"
	"strings"
	"unicode"
)

// elsewhere says whether clauses speak of something else than the question: another kind of thing, another number, or one of several that
// it lists.
func (r *Reader) elsewhere(m *matter, clauses []string) bool {
	return slices.ContainsFunc(clauses, func(clause string) bool {
		items := r.phrases.of(clause)
		for n, it := range items {
			if r.foreign(m, it) || it.is == unknownKind && it.kind != tokenHan && m.parts[it.text] && !r.all(items[:n], it.text) {
				return true
			}
		}
		return m.namesPart(items)
	})
}

// foreign says whether a phrase is about another kind of thing, or a number that the question does not have.
func (r *Reader) foreign(m *matter, it item) bool {
	switch it.is {
	case kindElsewhere:
		return true
	case kindDomain:
		return m.named && !slices.ContainsFunc(r.phrases.groups[it.text], func(g int) bool { return m.groups[g] })
	case unknownKind:
		return it.kind == tokenNumber && m.named && !m.words[it.text]
	}
	return false
}

// all says whether a number is that of all: "all three".
func (r *Reader) all(before []item, number string) bool {
	return len(before) > 0 && r.lex.numbersOf.has(before[len(before)-1].text) && r.lex.numbers.has(number)
}

// namesPart says whether characters that no phrase has repeat something that the question lists.
func (m *matter) namesPart(items []item) bool {
	run := ""
	for _, it := range append(slices.Clone(items), item{kind: tokenBreak}) {
		if it.is == unknownKind && it.kind == tokenHan {
			run += it.text
			continue
		}
		if len([]rune(run)) > 1 && strings.Contains(m.hanParts, run) {
			return true
		}
		run = ""
	}
	return false
}

// another says whether clauses that approve name something that the question does not: a word with a capital letter, or Chinese characters
// that are not words of deciding. Text is the reply in its own spelling.
func (r *Reader) another(m *matter, clauses []string, text string) bool {
	for _, clause := range clauses {
		for _, stranger := range r.strangers(clause) {
			rs := []rune(stranger)
			switch {
			case m.words[stranger] || m.people[stranger]:
			case isHan(rs[0]):
				if !strings.Contains(m.han, stranger) {
					return true
				}
			case strings.Contains(text, " "+string(unicode.ToUpper(rs[0]))+string(rs[1:])):
				return true
			}
		}
	}
	return false
}

// oneOf says whether a yes is to something that has a name of its own.
func (r *Reader) oneOf(m *matter, clauses []string) bool {
	for _, clause := range clauses {
		named, ok := r.lex.yesTo.begins(clause)
		for _, word := range strings.Fields(named) {
			if ok && len(word) > 3 && !m.words[word] {
				return true
			}
		}
	}
	return false
}

// echoes says whether a refusal repeats a word of refusing from the question, so that it may be what was asked for.
func (r *Reader) echoes(m *matter, clauses []string) bool {
	for _, clause := range clauses {
		for _, it := range r.phrases.of(clause) {
			switch it.is {
			case kindRefusal, kindNegation:
				if m.words[it.text] || it.kind == tokenHan && len(it.text) > 3 && strings.Contains(m.han, it.text) {
					return true
				}
			case unknownKind:
				if m.words[it.text] {
					return true
				}
			}
		}
	}
	return false
}

// plainRefusal says whether a refusal names what it refuses as approving: where the question is whether to cancel something, "cancel" does
// not.
func (r *Reader) plainRefusal(evidence []string) bool {
	return !slices.ContainsFunc(evidence, func(clause string) bool {
		return !r.lex.approving.within(clause) && !r.lex.plainNo.has(clause)
	})
}
