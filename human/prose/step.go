package prose

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// step is a clause and what it does.
type step struct {
	clause
	lex  *lexicon
	does map[class]bool
	// rest is what no class of acts took.
	rest string
	// hold names what in a clause keeps others from deciding; long says that its sentence tells more than a word or two.
	hold string
	long bool
	// name says that it could be somebody's name, verdict that it has words of deciding.
	name, verdict bool
}

func (s step) any(cs ...class) bool {
	return slices.ContainsFunc(cs, func(c class) bool { return s.does[c] })
}

// step says what a clause does. What one class takes, the following ones do not see.
func (table *table) step(c clause) step {
	t := table.of(c.text)
	s := step{clause: c, lex: table.lex, does: map[class]bool{trails: c.trails}, verdict: t.finds(verdicts, c.text)}
	t.note(&s, c.text, addresses, mocks, laughs, deeds, agrees, withholds, turnsNo, corrects, pauses, supposes)
	whole := t.takes(&s, neutral, c.text)
	asked := c.asked && whole != "◌"
	t.note(&s, whole, condition)
	remark := t.takes(&s, fine, whole)
	t.note(&s, remark, past, double, today, undoes)
	rest := t.refusing(&s, remark)
	s.does[asks] = s.does[asks] || asked
	before := rest
	if verdict, found := t.verdict(&s, whole); found {
		before, rest = whole, verdict
	}
	// English verdicts have words of doubt in them ("move forward"), Chinese ones take doubts with them.
	doubtful := rest
	if strings.ContainsFunc(rest+before, isHan) {
		doubtful = before
	}
	t.note(&s, doubtful, hedges, defers, changes, present, times, later)
	if s.any(approves, goes) {
		remark = rest // what a verdict is made of holds nothing back
	}
	t.note(&s, rest, spoils)
	s.does[directs] = t.finds(tells, rest) && !t.finds(muses, rest)
	rest = t.takes(&s, directs, t.takes(&s, orders, rest))
	t.note(&s, rest, negates)
	s.does[unresolved] = s.does[corrects] && t.finds(unresolved, c.text)
	s.hold = t.hold(c, remark, asked)
	s.rest = table.lex.bare(rest)
	if s.does[addresses] {
		s.rest = ""
	}
	if s.any(approves, goes) && !s.any(orders, directs) && table.lex.left(s.rest) && !strings.ContainsFunc(c.text, isHan) {
		s.does[spoils] = true
	}
	return s
}

// note notes which classes a text has something of.
func (t view) note(s *step, text string, classes ...class) {
	for _, c := range classes {
		s.does[c] = s.does[c] || t.finds(c, text)
	}
}

// takes notes whether a text has something of a class, and takes it out.
func (t view) takes(s *step, c class, text string) string {
	rest, found := t.takeClass(c, text)
	s.does[c] = s.does[c] || found
	return rest
}

// refusing looks for words against, and says what is left beside them.
func (t view) refusing(s *step, text string) (rest string) {
	rest, found := t.takeClass(unable, text)
	s.does[defers] = found
	t.note(s, rest, asks, suspends, partly)
	rest = t.takes(s, no, rest)
	rest = t.takes(s, refuses, rest)
	if t.finds(forbids, rest) && !t.finds(idles, rest) {
		s.does[refuses] = true
	}
	t.note(s, rest, grounds, own, reopens, undoes)
	s.does[reports] = t.finds(reports, rest) && !s.does[own]
	if s.does[refuses] {
		t.note(s, s.text, rejects, outright)
		rest, _, _ = strings.Cut(rest, "◌") // what follows is what is refused
	}
	return rest
}

// bare is what a clause has beside what was taken from it, without words that only join.
func (x *lexicon) bare(text string) string {
	words := strings.Fields(strings.ReplaceAll(text, "◌", " "))
	for len(words) > 0 && x.joins.has(words[0]) {
		words = words[1:]
	}
	for len(words) > 0 && x.joins.has(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}

// verdict looks for words in favour, and says what is left beside them.
func (t view) verdict(s *step, text string) (rest string, found bool) {
	if s.any(refuses, no) {
		return text, false
	}
	for _, c := range []class{yes, approves, goes} {
		left, some := t.takeClass(c, text)
		s.does[c] = s.does[c] || some
		text, found = left, found || some
	}
	if !found {
		return text, false
	}
	rest, _ = t.takeClass(fine, text)
	return rest, true
}

// hold names what in the words of a clause keeps others from deciding.
func (t view) hold(c clause, text string, asked bool) string {
	if asked {
		return string(asks)
	}
	for _, cs := range []class{holdsDenies, holdsCondition, holdsAsks, holdsDefers, holdsUnsure, holdsChanges, holdsExcept} {
		if t.finds(cs, text) {
			return strings.TrimPrefix(string(cs), holding)
		}
	}
	if t.finds(strictly, c.text) && !t.finds(invites, c.text) {
		return string(condition)
	}
	return ""
}

// left says whether a single word or number is left beside a verdict: it may be about that one, or part of an idiom.
func (x *lexicon) left(rest string) bool {
	return rest != "" && !x.leftovers.has(rest) && !isHan(firstRune(rest)) &&
		!strings.Contains(rest, " ") && wordRune(firstRune(rest))
}

// tells says whether a clause does something that a signature does not.
func (s step) tells() bool {
	return s.acts() || s.asked || s.hold != "" || s.any(asks, condition, defers, hedges, changes, double, mocks,
		laughs, negates, corrects, pauses)
}

// name says whether a text could be somebody's name: words that are not in the table, as one could say them.
func (r *Reader) name(text string) bool {
	words := strings.Fields(strings.NewReplacer(".", " ", "/", " ").Replace(text))
	for _, word := range words {
		if r.known[word] || len(word) > 2 && !strings.ContainsAny(word, r.lex.vowels) ||
			!unicode.IsLetter(firstRune(word)) || strings.ContainsAny(word, "0123456789=[]") || isHan(firstRune(word)) {
			return false
		}
	}
	return len(words) > 0 && len(words) <= 3
}

// weigh says which sentences tell a story.
func weigh(steps []step) {
	words := map[int]int{}
	for _, s := range steps {
		for _, word := range strings.Fields(s.text) {
			words[s.sentence] += 2
			if isHan(firstRune(word)) {
				words[s.sentence] += utf8.RuneCountInString(word) - 2
			}
		}
	}
	for i := range steps {
		steps[i].long = words[steps[i].sentence] >= 12
	}
}

// acts says whether a clause decides something, or tries to.
func (s step) acts() bool {
	return s.any(refuses, no, approves, goes, orders, directs, yes)
}

// doubt names what makes a clause that acts doubtful.
func (s step) doubt() string {
	for _, c := range []class{refuses, no, past, double, condition, hedges, reports, mocks, spoils, trails} {
		if s.does[c] {
			return string(c)
		}
	}
	switch {
	case s.asked, s.does[asks] && strings.ContainsFunc(s.text, func(r rune) bool { return r >= 0x80 }):
		return string(asks)
	case s.does[later] && !s.does[approves]:
		return string(later)
	case s.does[changes]:
		return string(changes)
	case s.hold != "" && s.hold != string(changes):
		return s.hold
	}
	if s.does[laughs] && !s.does[approves] {
		return string(mocks)
	}
	return ""
}

// announces says whether a clause opens a reason.
func (s step) announces() bool {
	return s.labels && s.lex.announcements.has(s.text)
}

// introduces says whether a clause with a colon announces the sender's own words.
func (s step) introduces() bool {
	if s.any(addresses, reports) {
		return false
	}
	if s.any(refuses, no, approves, goes, yes, neutral, fine) || len(strings.Fields(s.text)) > 3 && !s.does[reports] {
		return true
	}
	return slices.ContainsFunc(strings.Fields(s.text), s.lex.introductions.has) || s.lex.introducing.within(s.text)
}

// fragment says whether a clause is a word or a number that stands for nothing the table knows.
func (s step) fragment() bool {
	if s.acts() || s.any(neutral, fine, present) || s.rest == "" {
		return false
	}
	if isHan(firstRune(s.rest)) {
		return utf8.RuneCountInString(s.rest) == 1
	}
	words := strings.Fields(s.rest)
	if len(words) > 1 || unicode.IsDigit(firstRune(s.rest)) {
		return false // numbers are for code that knows the question
	}
	return !s.lex.courteous.has(words[0])
}
