package prose

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// bars are what the chance of a decision has to reach, by what the rules make of a reply and by how long it is. They were chosen by what
// networks that were learned without a writer make of the replies of that writer, and raised since by four corpora that nothing was learned
// from. As few false decisions as possible come first, then what is found.
type bars struct {
	// brief holds where the rules decide the same and a word or two is all that is said, explicit where they do in so many words, agreed in
	// others.
	brief, explicit, agreed float64
	// silent holds where the rules find neither a decision nor anything against one, in a short and in a long reply. A short one approves
	// nothing then: the networks have seen too few of all that a few words may mean.
	silent, silentLong float64
	// soft holds where they find something against it that is nothing more often than not.
	soft float64
	// held holds where they find more. Words that stand against a decision often do so about something else, which the networks tell.
	held, heldLong float64
}

// barsOf are the bars of a decision.
func barsOf(d Decision) bars {
	if d == Approve {
		return bars{brief: 0.93, explicit: 0.95, agreed: 0.95, silent: never, silentLong: 0.997, soft: 0.998, held: 0.999, heldLong: 0.998}
	}
	return bars{brief: 0.9, explicit: 0.9, agreed: 0.98, silent: 0.9985, silentLong: 0.993, soft: never, held: 0.999, heldLong: 0.995}
}

// The lengths from which a reply is more than brief, and long for an approval or a refusal, in words.
const (
	briefTo      = 4
	longApproval = 6
	longRefusal  = 8
)

// Unlike is the reason where the words decide by the rules, and compare with replies that do not.
const Unlike = "unlike"

// combined is what a reply decides by the rules and by its leaning: what both say, or what the leaning is sure of while nothing that the
// rules find stands against it.
func (r *Reader) combined(rules Reading, steps []step) Reading {
	for _, d := range []Decision{Approve, Refuse} {
		if rules.Leaning.Of(d) < bar(rules, steps, d) || d == Approve && (rules.Decision != d && !r.aside(steps) || r.attends(steps)) {
			continue
		}
		if rules.Decision == d {
			return rules
		}
		rules.Decision, rules.Learned, rules.Why, rules.Text, rules.Explicit = d, true, "", "", false
		rules.Evidence = r.leaning(steps, d)
		rules.Context = context(steps, rules.Evidence)
		return rules
	}
	if rules.Decision != None {
		rules.Why, rules.Text = Unlike, rules.Evidence[0]
		rules.Decision, rules.Evidence, rules.Context, rules.Explicit = None, nil, nil, false
	}
	return rules
}

// attends says whether a yes may only say that somebody is there, or who they are: beside it they speak of themselves, and of nothing else.
// Such a yes is asked back, however the two are joined.
func (r *Reader) attends(steps []step) bool {
	nods, speaks := false, false
	for _, s := range steps {
		if !s.does[past] && s.any(approves, goes, orders, directs, fine) {
			return false
		}
		self := r.acts.find(attends, s.text) != ""
		switch {
		case self && (s.reason || s.announces()), !self && !s.any(yes, neutral) && s.rest != "" && !s.name:
			return false // they say more
		}
		nods, speaks = nods || s.does[yes], speaks || self
	}
	return nods && speaks
}

// never is a bar that nothing reaches.
const never = 2

// bar is how much a reply has to lean to a decision.
func bar(rules Reading, steps []step, d Decision) float64 {
	bars, length := barsOf(d), length(steps)
	long := d == Approve && length >= longApproval || d == Refuse && length >= longRefusal
	switch {
	case rules.Decision == d && length < briefTo:
		return bars.brief
	case rules.Decision == d && rules.Explicit:
		return bars.explicit
	case rules.Decision == d:
		return bars.agreed
	case rules.Decision != None:
		return never
	case rules.Why == "" && len(rules.Doubts) == 0:
		return either(long, bars.silentLong, bars.silent)
	case rules.soft(d):
		return either(long || rules.Why != "", bars.soft, bars.silent)
	case rules.stands(d):
		return never
	}
	return either(long, bars.heldLong, bars.held)
}

func either(is bool, a, b float64) float64 {
	if is {
		return a
	}
	return b
}

// length is how many words the clauses of a reply have. Two Chinese characters are one.
func length(steps []step) int {
	halves := 0
	for _, s := range steps {
		for _, word := range wordsOf(s.text) {
			switch first := firstRune(word); {
			case isHan(first):
				halves++
			case unicode.IsLetter(first) || first == '#':
				halves += 2
			}
		}
	}
	return halves / 2
}

// soft says whether what the rules find against an approval is nothing more often than not: remarks of which they do not know what they do,
// and orders that say more.
func (r Reading) soft(d Decision) bool {
	if d == Refuse {
		return false
	}
	switch class(r.Why) {
	case whyRemark:
		if len(spoken(r.Text)) < 3 {
			return false // a word that nobody knows may be anything
		}
	case "", whyOrder, spoils:
	default:
		return false
	}
	return !slices.ContainsFunc(r.Doubts, func(d Doubt) bool {
		return slices.Contains([]class{condition, asks, defers, changes, mocks, reports, present, refuses, no, double}, class(d.Why))
	})
}

// stands says whether what the rules find against a decision stands, however much a reply leans to it.
func (r Reading) stands(d Decision) bool {
	if d == Refuse {
		return slices.Contains([]class{condition, present, double}, class(r.Why))
	}
	return slices.Contains([]class{no, double, corrects, trails, grounds, withholds, suspends, reopens, whyMixed, holdDenies}, class(r.Why))
}

// aside says whether everything that leaves open what stands beside it, such as a condition, an exception or somebody else's words, stands
// in a long sentence that does not approve: in a story, not beside what decides. A doubt that has a line of its own is meant for all of the
// reply.
func (r *Reader) aside(steps []step) bool {
	steps = slices.Clone(steps)
	weigh(steps)
	sentences, lines := map[int][]string{}, map[int]int{}
	for _, s := range steps {
		sentences[s.sentence] = append(sentences[s.sentence], s.text)
		lines[s.line]++
	}
	return !slices.ContainsFunc(steps, func(s step) bool {
		against := s.binding() || r.acts.find(binds, s.text) != "" || len(lines) > 1 && lines[s.line] == 1 && s.doubts()
		return against && !s.does[past] && (!s.long || r.decidesBeside(sentences[s.sentence], s.text))
	})
}

// decidesBeside says whether a sentence could approve, or would without one of its clauses.
func (r *Reader) decidesBeside(sentence []string, clause string) bool {
	rest := slices.DeleteFunc(slices.Clone(sentence), func(text string) bool { return text == clause })
	return r.alone(sentence).Of(Approve) > 0.1 || len(rest) > 0 && r.alone(rest).Of(Approve) > 0.5
}

// binding says whether a clause says outright that nothing is approved, or only under a condition.
func (s step) binding() bool {
	return s.hold == holdDenies || s.any(supposes, double) || s.does[refuses] && s.does[rejects]
}

// doubts says whether a clause does something that does not go with an approval, or is a word that nobody knows.
func (s step) doubts() bool {
	return s.hold != "" || s.any(condition, asks, defers, changes, mocks, reports, present, refuses, no, double) ||
		s.fragment() && !isHan(firstRune(s.rest))
}

// leaning are the clauses that lean to a decision by themselves; all, if none does.
func (r *Reader) leaning(steps []step, d Decision) []string {
	var out, all []string
	for _, s := range steps {
		if s.text == "" {
			continue
		}
		all = append(all, s.text)
		if r.alone([]string{s.text}).Of(d) > 0.5 {
			out = append(out, s.text)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// alone is what a reply of the given clauses would lean to.
func (r *Reader) alone(clauses []string) Chances {
	steps := r.steps(clauses)
	return chances(r.nets, r.features(clauses, steps, r.decided(slices.Clone(steps))))
}

// mostTelling is how many words are named.
const mostTelling = 3

// Telling are the words without which the clauses that decide would lean to what they decide least, the weightiest first. Each is tried, so
// this takes longer than to read a reply.
func (r *Reader) Telling(read Reading) []string {
	clauses, d := read.Evidence, read.Decision
	type weighed struct {
		text   string
		weight float64
	}
	var found []weighed
	for _, clause := range clauses[:min(len(clauses), mostTelling)] {
		words := spoken(clause)
		whole := r.alone([]string{clause}).Of(d)
		for i, word := range words {
			without := slices.Delete(slices.Clone(words), i, i+1)
			found = append(found, weighed{word, whole - r.alone([]string{joinWords(without)}).Of(d)})
		}
	}
	slices.SortStableFunc(found, func(a, b weighed) int { return cmp.Compare(b.weight, a.weight) })
	var out []string
	for _, one := range found {
		if len(out) < mostTelling && one.weight > 0 && !slices.Contains(out, one.text) {
			out = append(out, one.text)
		}
	}
	if len(out) == 0 && len(clauses) > 0 {
		return clauses[:1]
	}
	return out
}

// mostSpoken is how many words of a clause are tried.
const mostSpoken = 24

// spoken are the words of a clause: of English each, of Chinese two characters at a time.
func spoken(clause string) []string {
	var out []string
	for _, word := range wordsOf(clause) {
		last := len(out) - 1
		if last >= 0 && isHan(firstRune(word)) && isHan(firstRune(out[last])) && len([]rune(out[last])) == 1 {
			out[last] += word
			continue
		}
		if unicode.IsLetter(firstRune(word)) {
			out = append(out, word)
		}
	}
	return out[:min(len(out), mostSpoken)]
}

// joinWords writes words as a clause.
func joinWords(words []string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 && !isHan(firstRune(word)) && !isHan(firstRune(words[i-1])) {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}
