package human

import (
	"slices"
	"strings"
	"unicode"

	"tandem/human/prose"
)

// byActs reads what a reply does where its words alone do not prove it: its clauses may say anything, as long as one of them decides and none takes
// that back. What is against a reply as a whole stays against it, and what it speaks of has to be what was asked.
func (w *wording) byActs(r reading) prose.Decision {
	if r.has(vetoHidden, vetoStruck, vetoLong, vetoEmpty, vetoForm, vetoSubject, vetoEarly) || r.about.open || r.instructs() {
		return prose.None
	}
	read := r.acts
	switch {
	case r.about.refusing && read.Decision == prose.Refuse && !plainly(read.Evidence), r.about.negative && !read.Explicit:
		return prose.None
	case read.Decision == prose.Refuse && r.about.named && (w.foreign(r, read.Evidence, saysElsewhere) || w.echoes(r, read.Evidence)):
		return prose.None
	case read.Decision != prose.Approve:
		return read.Decision
	case r.has(vetoQuotation):
		return prose.None
	case r.about.named && (w.foreign(r, read.Context, saysElsewhere) || w.another(r, read.Evidence) || r.oneOf(read.Context)):
		return prose.None
	}
	return read.Decision
}

// plainly says whether a refusal names what it refuses as approving: where the question is whether to cancel something, "cancel" does not.
func plainly(evidence []string) bool {
	return !slices.ContainsFunc(evidence, func(clause string) bool {
		for _, own := range []string{"approv", "agree", "accept", "同意", "批", "准"} {
			if strings.Contains(clause, own) {
				return false
			}
		}
		return clause != "no" && clause != "nope" && clause != "不"
	})
}

// instructs says whether a reply tells whoever reads it how to. Some words of such texts are common in others.
func (r *reading) instructs() bool {
	for _, v := range r.vetoes {
		if v.why != saysInjection.vetoName() {
			continue
		}
		switch v.text {
		case "relevant", "ignore", "return", "system", "begin", "admin", "model", "output", "token", "返回", "系统", "模型":
		default:
			return true
		}
	}
	return false
}

// foreign says whether the clauses that decide have words of the given classes in them. An approval has to be about what was asked entirely; a refusal
// only must not be about something else.
func (w *wording) foreign(r reading, evidence []string, classes ...class) bool {
	for _, clause := range evidence {
		for _, it := range w.settle(w.items(w.tokens(clause)), r.about, clausePlace{}) {
			if slices.Contains(classes, it.is) {
				return true
			}
		}
	}
	return false
}

// another says whether the clauses that approve name something that the question does not: a word with a capital letter, or Chinese characters that are
// no words of deciding.
func (w *wording) another(r reading, evidence []string) bool {
	for _, clause := range evidence {
		for _, stranger := range w.acts.Strangers(clause) {
			rs := []rune(stranger)
			switch {
			case r.about.words[stranger] || r.about.names[stranger]:
			case unicode.Is(unicode.Han, rs[0]):
				if !strings.Contains(r.about.han, stranger) {
					return true
				}
			case strings.Contains(r.clean.text, " "+string(unicode.ToUpper(rs[0]))+string(rs[1:])):
				return true
			}
		}
	}
	return false
}

// oneOf says whether a yes is to something that has a name of its own.
func (r *reading) oneOf(context []string) bool {
	for _, clause := range context {
		named, ok := strings.CutPrefix(clause, "yes to the ")
		for _, word := range strings.Fields(named) {
			if ok && len(word) > 3 && !r.about.words[word] {
				return true
			}
		}
	}
	return false
}

// echoes says whether a refusal repeats a word of refusing from the question, so that it may be what was asked for.
func (w *wording) echoes(r reading, evidence []string) bool {
	for _, clause := range evidence {
		for _, it := range w.items(w.tokens(clause)) {
			if (it.is == saysRefusal || it.is == saysNegation || it.is == saysUnknown) && (r.about.words[it.text] || it.kind == tokenHan && len(it.text) > 3 && it.is != saysUnknown && strings.Contains(r.about.han, it.text)) {
				return true
			}
		}
	}
	return false
}
