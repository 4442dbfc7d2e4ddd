package prose

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Decision is what a reply decides.
type Decision string

// The decisions.
const (
	None    Decision = ""
	Approve Decision = "approve"
	Refuse  Decision = "refuse"
)

// Reading is what a reply says.
type Reading struct {
	Decision Decision
	// Evidence are the clauses that decide.
	Evidence []string
	// Context are all clauses of the sentences in which the deciding ones stand.
	Context []string
	// Explicit says that it decides in words of approving or refusing, not by a yes, a no or an order.
	Explicit bool
	// Present says that somebody only says that they are there, who they are, or that they have heard.
	Present bool
	// Why names what stands against a decision, and Text the clause or the word that does: empty when there is nothing to decide.
	Why, Text string
	// Verdict says that there are words of deciding, whatever stands around them.
	Verdict bool
	// Doubts are all that could speak against an approval, whether or not something approves.
	Doubts []Doubt
}

// Doubt is what a clause does that does not go with an approval.
type Doubt struct{ Why, Text string }

// step is a clause and what it does.
type step struct {
	clause
	does map[class]bool
	// rest is what no class of acts took.
	rest string
	// hold names what in a clause keeps others from deciding; long says that its sentence tells more than a word or two.
	hold string
	long bool
	// name says that it could be somebody's name.
	name bool
}

func (s step) any(cs ...class) bool {
	return slices.ContainsFunc(cs, func(c class) bool { return s.does[c] })
}

// Read reads a reply: lines in lower case and simplified characters, without quotations.
func (r *Reader) Read(lines []string) Reading {
	var steps []step
	for _, c := range r.clauses(lines) {
		s := r.acts.step(c)
		s.name = r.name(s.rest)
		if c.reason && len(steps) > 0 && steps[len(steps)-1].does[past] {
			s.does[past] = true // why it was so
		}
		if s.text != "" || s.asked || s.trails {
			steps = append(steps, s)
		}
	}
	steps = corrected(r.unsigned(steps))
	weigh(steps)
	if at := slices.IndexFunc(steps, func(s step) bool { return s.does[corrects] && s.does[unresolved] }); at >= 0 {
		return Reading{Why: string(corrects), Text: steps[at].text, Doubts: []Doubt{{string(corrects), steps[at].text}}}
	}
	undone(steps)
	out := decide(approval(steps), r.refusal(steps))
	out.Doubts = doubts(steps)
	out.Context = context(steps, out.Evidence)
	out.Verdict = slices.ContainsFunc(steps, func(s step) bool { return r.acts.find(verdicts, s.text) != "" })
	out.Present = slices.ContainsFunc(steps, func(s step) bool { return s.does[present] })
	return out
}

// context are the clauses of the sentences that have evidence in them.
func context(steps []step, evidence []string) []string {
	decides := map[int]bool{}
	for _, s := range steps {
		decides[s.sentence] = decides[s.sentence] || slices.Contains(evidence, s.text)
	}
	var out []string
	for _, s := range steps {
		if decides[s.sentence] {
			out = append(out, s.text)
		}
	}
	return out
}

// Strangers are the words and runs of Chinese characters in a clause that the table does not have. Runs are of two characters or more.
func (r *Reader) Strangers(clause string) []string {
	var out []string
	for _, word := range r.words.FindAllString(clause, -1) {
		if !r.known[word] {
			out = append(out, word)
		}
	}
	var run []rune
	flush := func() {
		if len(run) > 1 {
			out = append(out, string(run))
		}
		run = nil
	}
	rs := []rune(clause)
	for i, c := range rs {
		if !isHan(c) || r.familiar(rs, i) {
			flush()
			continue
		}
		run = append(run, c)
	}
	flush()
	return out
}

// familiar says whether a character forms a word of the table with one of its neighbours, or is one that joins others.
func (r *Reader) familiar(rs []rune, i int) bool {
	if strings.ContainsRune("的了吧啊呀呢哦我你您他她它们这那个就都也还再请给把被让按照从到在于与和及或对为以将是有可以能会要", rs[i]) {
		return true
	}
	return i > 0 && r.known[string(rs[i-1:i+1])] || i+1 < len(rs) && r.known[string(rs[i:i+2])]
}

// doubts are the clauses that do not go with an approval.
func doubts(steps []step) []Doubt {
	var out []Doubt
	for _, s := range steps {
		if s.does[past] {
			continue
		}
		for _, c := range []class{refuses, no, double, asks, condition, defers, hedges, changes, mocks, reports, present, spoils} {
			if s.does[c] && (c != spoils || s.acts()) {
				out = append(out, Doubt{string(c), s.text})
			}
		}
		switch {
		case s.does[negates]:
			out = append(out, Doubt{string(negates), s.text})
		case s.labels && !s.introduces():
			out = append(out, Doubt{string(reports), s.text})
		}
	}
	return out
}

// decide weighs what was found for and against.
func decide(approving, refusing Reading) Reading {
	switch {
	case refusing.Decision != None && approving.Decision != None:
		return Reading{Why: "mixed", Text: refusing.Evidence[0]}
	case refusing.Decision != None:
		return refusing
	case approving.Decision != None || approving.Why != "":
		return approving
	}
	return refusing
}

// step says what a clause does. What one class takes, the following ones do not see.
func (table *table) step(c clause) step {
	t := table.of(c.text)
	s := step{clause: c, does: map[class]bool{}}
	note := func(cs class, found bool) { s.does[cs] = s.does[cs] || found }
	rest, found := t.take(neutral, c.text)
	note(neutral, found)
	note(addresses, t.finds(addresses, c.text))
	note(mocks, t.finds(mocks, c.text))
	note(laughs, t.finds(laughs, c.text))
	note(condition, t.finds(condition, rest))
	asked := c.asked && rest != "◌"
	whole := rest
	rest, found = t.take(fine, rest)
	note(fine, found)
	remark := rest
	note(past, t.finds(past, rest))
	note(double, t.finds(double, rest))
	rest, found = t.take(unable, rest)
	note(defers, found)
	note(asks, asked || t.finds(asks, rest))
	note(suspends, t.finds(suspends, rest))
	note(partly, t.finds(partly, rest))
	rest, found = t.take(no, rest)
	note(no, found)
	rest, found = t.take(refuses, rest)
	note(refuses, found || t.finds(forbids, rest) && !t.finds(idles, rest))
	note(rejects, s.does[refuses] && t.finds(rejects, c.text))
	note(deeds, t.finds(deeds, c.text))
	note(agrees, t.finds(agrees, c.text))
	note(withholds, t.finds(withholds, c.text))
	note(outright, s.does[refuses] && t.finds(outright, c.text))
	note(today, t.finds(today, remark))
	note(turnsNo, t.finds(turnsNo, c.text))
	note(grounds, t.finds(grounds, rest))
	note(own, t.finds(own, rest))
	note(reports, t.finds(reports, rest) && !s.does[own])
	note(undoes, t.finds(undoes, rest) || t.finds(undoes, remark))
	note(reopens, t.finds(reopens, rest))
	if s.does[refuses] {
		rest, _, _ = strings.Cut(rest, "◌") // what follows is what is refused
	}
	before := rest
	if verdict, found := t.verdict(&s, whole); found {
		before, rest = whole, verdict
	}
	// English verdicts have words of doubt in them ("move forward"), Chinese ones take doubts with them.
	doubtful := rest
	if strings.ContainsFunc(rest+before, isHan) {
		doubtful = before
	}
	for _, cs := range []class{hedges, defers, changes, present, times, later} {
		note(cs, t.finds(cs, doubtful))
	}
	if s.any(approves, goes) {
		remark = rest // what a verdict is made of holds nothing back
	}
	note(spoils, t.finds(spoils, rest))
	note(directs, t.finds(tells, rest) && !t.finds(muses, rest))
	for _, cs := range []class{orders, directs} {
		rest, found = t.take(cs, rest)
		note(cs, found)
	}
	note(negates, t.finds(negates, rest))
	note(trails, c.trails)
	note(corrects, t.finds(corrects, c.text))
	note(pauses, t.finds(pauses, c.text))
	note(unresolved, s.does[corrects] && t.finds(unresolved, c.text))
	note(supposes, t.finds(supposes, c.text))
	s.hold = t.hold(c, remark, asked)
	if s.hold == "" && t.finds(strictly, c.text) && !t.finds(invites, c.text) {
		s.hold = string(condition)
	}
	s.rest = bare(rest)
	if s.does[addresses] {
		s.rest = ""
	}
	note(spoils, s.any(approves, goes) && !s.any(orders, directs) && left(s.rest) && !strings.ContainsFunc(c.text, isHan))
	return s
}

// bare is what a clause has beside what was taken from it, without words that only join.
func bare(text string) string {
	words := strings.Fields(strings.ReplaceAll(text, "◌", " "))
	joins := func(word string) bool {
		switch word {
		case "and", "please", "so", "but", "then", "also":
			return true
		}
		return false
	}
	for len(words) > 0 && joins(words[0]) {
		words = words[1:]
	}
	for len(words) > 0 && joins(words[len(words)-1]) {
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
		left, some := t.take(c, text)
		s.does[c] = s.does[c] || some
		text, found = left, found || some
	}
	if !found {
		return text, false
	}
	rest, _ = t.take(fine, text)
	return rest, true
}

// hold names what in the words of a clause keeps others from deciding.
func (t view) hold(c clause, text string, asked bool) string {
	if asked {
		return string(asks)
	}
	for _, cs := range []class{holdsDenies, holdsCondition, holdsAsks, holdsDefers, holdsUnsure, holdsChanges, holdsExcept} {
		if t.finds(cs, text) {
			return strings.TrimPrefix(string(cs), "holds ")
		}
	}
	return ""
}

// left says whether a single word or number is left beside a verdict: it may be about that one, or part of an idiom.
func left(rest string) bool {
	switch rest {
	case "", "just", "kk", "k", "well", "really", "already", "a", "application", "invoice", "order", "purchase", "trip", "leave", "budget", "contract", "plan", "proposal", "change", "release", "deployment", "offer", "refund", "expense", "transfer", "so", "and", "my", "yes", "ok", "okay", "given", "request", "proceed", "payment", "this", "it", "that", "unconditionally", "now", "today", "asap", "please", "immediately", "indeed", "too", "thanks", "thx", "then", "sir", "again", "accordingly", "everyone", "all", "tonight", "happily", "gladly", "everything":
		return false
	}
	return !isHan(firstRune(rest)) && !strings.Contains(rest, " ") && wordRune(firstRune(rest))
}

// unsigned takes away who signed it: a last paragraph of short lines that do nothing, and a name alone on the last line.
func (r *Reader) unsigned(steps []step) []step {
	for len(steps) > 1 {
		end := len(steps) - 1
		from := slices.IndexFunc(steps, func(s step) bool { return s.paragraph == steps[end].paragraph })
		if from == 0 || slices.ContainsFunc(steps[from:], func(s step) bool { return utf8.RuneCountInString(s.text) > 60 || s.tells() }) {
			from = slices.IndexFunc(steps, func(s step) bool { return s.line == steps[end].line })
			if from == 0 || end-from > 2 || slices.ContainsFunc(steps[from:], func(s step) bool { return s.tells() || !r.name(s.text) }) {
				return steps
			}
		}
		steps = steps[:from]
	}
	return steps
}

// tells says whether a clause does something that a signature does not.
func (s step) tells() bool {
	return s.acts() || s.asked || s.hold != "" || s.any(asks, condition, defers, hedges, changes, double, mocks, laughs, negates, corrects, pauses)
}

// name says whether a text could be somebody's name: words that are none of the table's, as one could say them.
func (r *Reader) name(text string) bool {
	words := strings.Fields(strings.NewReplacer(".", " ", "/", " ").Replace(text))
	for _, word := range words {
		if r.known[word] || len(word) > 2 && !strings.ContainsAny(word, "aeiouyáéíóúäöüåøàèçñ") || !unicode.IsLetter(firstRune(word)) || strings.ContainsAny(word, "0123456789=[]") || isHan(firstRune(word)) {
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

// undone takes an order to undo something for what was asked, where a yes stands directly before it; and a no that only goes with "no objections" for
// nothing.
func undone(steps []step) {
	for i := 1; i < len(steps); i++ {
		before, s := steps[i-1], steps[i]
		if before.sentence != s.sentence {
			continue
		}
		if s.does[undoes] && before.does[yes] && !before.asked && !s.contrast {
			s.does[refuses], s.does[no], s.does[directs] = false, false, true
			steps[i].hold = ""
		}
		if before.does[no] && !before.does[refuses] && (s.does[approves] && strings.HasPrefix(s.text, "no ") || strings.HasPrefix(before.text, "算了") && s.any(approves, goes, orders)) {
			before.does[no] = false
		}
	}
}

// corrected takes away what a reply itself takes back, if it decides afterwards. What is taken back without that stays, and keeps it from deciding.
func corrected(steps []step) []step {
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if !s.any(corrects, pauses) || s.any(reports) || slices.ContainsFunc(steps[:i], func(before step) bool {
			return before.sentence == s.sentence && (before.does[supposes] || before.labels && !before.introduces())
		}) {
			continue
		}
		rest := steps[i+1:]
		if s.does[corrects] && s.any(approves, goes, refuses, yes, no) {
			rest = steps[i:]
		}
		if slices.ContainsFunc(rest, func(s step) bool {
			return s.any(approves, goes, refuses) || s.does[orders] || s.any(yes, no) && steps[i].does[corrects]
		}) {
			for n := range rest {
				rest[n].does[corrects] = false
			}
			return rest
		}
	}
	return steps
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

// approval looks for a verdict in favour, or for an order to do it, that nothing stands against.
func approval(steps []step) Reading {
	clean, doubtful := decisions(steps)
	if len(clean) == 0 {
		if len(doubtful) > 0 {
			return Reading{Why: doubtful[0].why, Text: steps[doubtful[0].at].text}
		}
		return nod(steps)
	}
	explicit := slices.ContainsFunc(clean, func(at int) bool { return steps[at].does[approves] })
	for _, d := range doubtful {
		beside := slices.ContainsFunc(clean, func(at int) bool { return steps[at].sentence == steps[d.at].sentence })
		if beside || !explicit {
			return Reading{Why: d.why, Text: steps[d.at].text}
		}
	}
	last := clean[len(clean)-1]
	if why, at := against(steps, last); why != "" {
		return Reading{Why: why, Text: steps[at].text}
	}
	if laugh := slices.IndexFunc(steps, func(s step) bool { return s.does[laughs] }); laugh >= 0 && !explicit {
		return Reading{Why: string(mocks), Text: steps[laugh].text}
	}
	if steps[last].contrast && firm(steps[:last]) {
		return Reading{Why: "contrast", Text: steps[last].text}
	}
	var evidence []string
	for _, at := range clean {
		evidence = append(evidence, steps[at].text)
	}
	return Reading{Decision: Approve, Evidence: evidence, Explicit: explicit}
}

// doubtfulStep is a clause that would decide, and what is against that in its own words.
type doubtfulStep struct {
	at  int
	why string
}

// decisions are the clauses that approve or order, and those that would but for their own words.
func decisions(steps []step) (clean []int, doubtful []doubtfulStep) {
	warm := false // a yes or a favourable remark was made
	lone := !slices.ContainsFunc(steps, func(s step) bool { return !s.does[past] && s.any(yes, fine, approves, goes) })
	for i, s := range steps {
		was := warm
		warm = warm || s.any(yes, fine, approves, goes)
		if s.does[past] || !s.any(approves, goes, orders) && !(s.does[directs] && was) {
			continue
		}
		why := s.doubt()
		if why == "" && lone && (s.does[times] || wanders(s.rest) && !s.does[deeds]) {
			why = "order"
		}
		if why != "" {
			doubtful = append(doubtful, doubtfulStep{i, why})
			continue
		}
		clean = append(clean, i)
	}
	return clean, doubtful
}

// against names what in the clauses around the last verdict in favour stands against it, and where.
func against(steps []step, last int) (why string, at int) {
	turned := false // a "but" stands between a clause and the verdict
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		switch {
		case i > last:
			why = s.againstAfter(steps[last])
		case i < last && s.long && s.sentence < steps[last].sentence:
			why = s.againstStory()
		case i < last:
			why = s.againstBefore(turned, steps[last], i == last-1 && !slices.ContainsFunc(steps[:i], func(s step) bool { return s.does[approves] }))
			if why == "fragment" && i > 0 && steps[i-1].does[neutral] && steps[i-1].sentence == s.sentence {
				why = "" // who is thanked
			}
		}
		if why != "" {
			return why, i
		}
		turned = turned || i <= last && s.contrast
	}
	return "", 0
}

// againstStory names what in a sentence that tells at some length what came before keeps a verdict from holding. Most of what happened does not.
func (s step) againstStory() string {
	for _, c := range []class{refuses, no, mocks} {
		if s.does[c] && !s.any(past, reports) {
			return string(c)
		}
	}
	switch {
	case s.hold == "denies" && !s.does[past]:
		return s.hold
	case s.does[supposes] && !s.does[past]:
		return string(condition)
	case s.labels && !s.introduces():
		return string(reports)
	}
	return ""
}

// wanders says whether an order that stands alone goes on to say more than what is to be done: where to, for whom, which other.
func wanders(rest string) bool {
	words := strings.Fields(rest)
	return len(words) > 4 || slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "to", "from", "at", "by", "my", "me", "us", "other", "with", "in", "on", "into":
			return !strings.Contains(rest, "to production") && !strings.Contains(rest, "to prod")
		}
		return false
	})
}

// nod reads a reply whose only sign of approval is a yes: nothing may stand beside it but courtesy, favourable words and reasons.
func nod(steps []step) Reading {
	at := slices.IndexFunc(steps, func(s step) bool { return s.does[yes] && !s.does[past] })
	if at < 0 {
		return doubted(steps)
	}
	explained := false
	for i, s := range steps {
		why := ""
		switch {
		case i < at && s.long && s.sentence < steps[at].sentence && !s.any(present, reports, asks):
			why = s.againstStory()
		case s.any(refuses, no, mocks, double, present, reports, condition, defers, hedges, changes, trails) && (!s.does[yes] || s.any(mocks, trails)):
			why = s.doubt()
			if why == "" {
				why = string(present)
			}
		case s.hold != "":
			why = s.hold
		case s.labels && !s.introduces():
			why = string(reports)
		case s.does[yes], s.does[past]:
		case s.reason || s.announces():
			explained = true
		case s.rest == "" || s.rest == "and" || s.rest == "so" || explained || s.does[fine] && !s.contrast:
		default:
			why = "remark"
			if i == len(steps)-1 && i > 0 && steps[i-1].does[neutral] && s.name {
				why = "" // who thanks
			}
		}
		if why != "" {
			return Reading{Why: why, Text: s.text}
		}
	}
	return Reading{Decision: Approve, Evidence: []string{steps[at].text}}
}

// announces says whether a clause opens a reason.
func (s step) announces() bool {
	if !s.labels {
		return false
	}
	switch s.text {
	case "reason", "reasons", "because", "why", "background", "context", "理由", "原因":
		return true
	}
	return false
}

// doubted names what keeps words from approving that this table does not know to approve.
func doubted(steps []step) Reading {
	for _, s := range steps {
		for _, c := range []class{reports, mocks, asks, double} {
			if s.does[c] {
				return Reading{Why: string(c), Text: s.text}
			}
		}
	}
	return Reading{}
}

// firm says whether something was decided already.
func firm(steps []step) bool {
	return slices.ContainsFunc(steps, func(s step) bool { return !s.does[past] && s.any(approves, goes, refuses, no) })
}

// againstAfter names what in a clause takes a verdict back that stands before it.
func (s step) againstAfter(verdict step) string {
	for _, c := range []class{refuses, no, mocks} {
		if s.does[c] {
			return string(c)
		}
	}
	switch {
	case s.hold != "":
		return s.hold
	case s.does[grounds] && verdict.does[agrees] && s.sentence == verdict.sentence && !s.reason:
		return string(grounds)
	case verdict.does[agrees] && s.sentence == verdict.sentence && (s.does[present] || s.does[negates] && !isHan(firstRune(s.text))):
		return string(agrees)
	case s.any(present) && !verdict.does[approves]:
		return string(present)
	case s.contrast && s.rest != "":
		return "contrast"
	case s.does[trails]:
		return string(trails)
	case s.fragment() && !s.name:
		return "fragment"
	}
	return ""
}

// againstBefore names what in a clause keeps a verdict from holding that stands after it.
func (s step) againstBefore(turned bool, verdict step, next bool) string {
	over := s.does[past] || turned
	for _, c := range []class{refuses, no, mocks} {
		if s.does[c] && !s.does[past] {
			return string(c)
		}
	}
	switch {
	case s.does[supposes] && !s.does[past] && s.sentence == verdict.sentence:
		return string(condition)
	case s.hold != "" && !over:
		return s.hold
	case s.does[reports] && !over && next && s.sentence == verdict.sentence && !s.any(approves, goes) && !verdict.does[own]:
		return string(reports)
	case s.does[trails] && !over:
		return string(trails)
	case s.labels && !s.introduces():
		return string(reports)
	case s.fragment():
		return "fragment"
	}
	return ""
}

// introduces says whether a clause with a colon announces the sender's own words.
func (s step) introduces() bool {
	if s.any(addresses, reports) {
		return false
	}
	if s.any(refuses, no, approves, goes, yes, neutral, fine) || len(strings.Fields(s.text)) > 3 && !s.does[reports] {
		return true
	}
	for _, own := range []string{"my", "answer", "decision", "verdict", "result", "response", "i", "we", "hi", "hello", "dear", "all", "team", "this", "therefore", "thus", "hence", "so", "result", "conclusion", "short", "summary", "bottom", "final"} {
		if slices.Contains(strings.Fields(s.text), own) {
			return true
		}
	}
	for _, own := range []string{"我", "意见", "结论", "答复", "批复", "回复", "好", "各位", "尊敬的"} {
		if strings.Contains(s.text, own) {
			return true
		}
	}
	return false
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
		return false // numbers are for whoever knows the question
	}
	return !courteous(words[0])
}

// courteous says whether a word alone is one of greeting or thanks.
func courteous(word string) bool {
	switch word {
	case "captain", "boss", "chief", "mate", "buddy", "bro", "hi", "hello", "hey", "dear", "all", "team", "everyone", "folks", "guys", "thanks", "thx", "cheers", "regards", "best", "sir", "madam", "please", "now", "today", "asap", "seriously", "therefore", "thus", "hence", "accordingly", "reviewed", "checked", "read", "seen", "done", "whatever", "anyway", "honestly", "frankly", "obviously", "finally", "actually", "personally", "indeed", "sorry", "fine", "right", "well", "roger", "ack", "noted", "received", "👍", "👌", "✅":
		return true
	}
	return false
}

// refusal looks for a clear no. Its reasons may be in any words that do not leave it open.
func (r *Reader) refusal(steps []step) Reading {
	var evidence []string
	first, suspended, decided := -1, Reading{}, false
	for i, s := range steps {
		if !s.any(refuses, no) || s.does[past] {
			continue
		}
		switch why := r.leftOpen(steps, i); {
		case why != "":
			if suspended.Why == "" {
				suspended = Reading{Why: string(suspends), Text: why}
			}
			continue
		case !s.does[refuses] && alone(steps, i):
			s.does[rejects] = true // a sentence of its own
			fallthrough
		case s.does[refuses], s.contrast, last(steps, i):
			evidence = append(evidence, s.text)
			decided = decided || s.does[rejects] || !s.does[refuses]
		}
		if first < 0 {
			first = i
		}
	}
	switch {
	case first < 0:
		return suspended
	case len(evidence) == 0 && count(steps, no) < 2 && !grounded(steps):
		return Reading{}
	case len(evidence) == 0:
		evidence = []string{steps[first].text}
	case suspended.Why != "" && !decided:
		return suspended
	}
	turn := first // what stands before a "but" does not weigh against what follows it
	for turn > 0 && !steps[turn].contrast {
		turn--
	}
	for i, s := range steps[turn:] {
		i += turn
		why := s.againstRefusal(i-first, steps[first], slices.ContainsFunc(steps[i+1:], func(s step) bool { return s.any(refuses, no) }))
		if s.does[yes] && i > 0 && steps[i-1].labels && i > first {
			why = "mixed" // about one of several
		}
		if why != "" {
			return Reading{Why: why, Text: s.text}
		}
	}
	return Reading{Decision: Refuse, Evidence: evidence, Explicit: slices.ContainsFunc(steps, func(s step) bool { return s.does[rejects] && s.does[refuses] })}
}

// leftOpen is what in a clause that refuses leaves it open.
func (r *Reader) leftOpen(steps []step, i int) string {
	s := steps[i]
	switch {
	case s.any(double, reports, trails) || s.asked || s.any(approves, goes) || s.hold == "denies":
		return s.text
	case labelled(steps[:i], s.sentence), i > 0 && steps[i-1].does[yes] && steps[i-1].sentence == s.sentence && !s.contrast && !s.any(no, turnsNo) && !strings.HasPrefix(s.text, "i ") && !strings.Contains(s.text, "我"):
		return steps[i-1].text
	case s.does[no] && !s.does[refuses] && slices.ContainsFunc(steps, func(s step) bool { return isHan(firstRune(s.rest)) && s.fragment() }):
		return s.text
	case s.does[suspends]:
		return r.acts.find(suspends, s.text)
	case s.does[today] && !s.does[outright] && !(i > 0 && steps[i-1].does[no] && steps[i-1].sentence == s.sentence):
		return r.acts.find(today, s.text)
	}
	return ""
}

// labelled says whether what stands before in a sentence names whose words follow, or which of several they are about.
func labelled(before []step, sentence int) bool {
	return slices.ContainsFunc(before, func(s step) bool { return s.sentence == sentence && s.labels && !s.introduces() })
}

// last says whether a clause is the last word of a reply, after something that leads up to it.
func last(steps []step, i int) bool {
	if i == 0 || slices.ContainsFunc(steps[i+1:], func(s step) bool { return s.rest != "" || s.acts() || s.hold != "" }) {
		return false
	}
	before := steps[i-1]
	return before.labels || before.sentence != steps[i].sentence || steps[i].any(turnsNo) || steps[0].sentence != before.sentence
}

// alone says whether a no is a sentence of its own, and what else is said does not put off or ask.
func alone(steps []step, i int) bool {
	for n, s := range steps {
		if n == i {
			continue
		}
		if s.sentence == steps[i].sentence && (s.rest != "" || s.acts()) {
			return false
		}
		if n > i && (s.hold == "defers" || s.hold == "asks" || s.hold == "unsure" || s.any(present, approves, goes, yes, trails, pauses)) {
			return false
		}
	}
	return true
}

func count(steps []step, c class) (n int) {
	for _, s := range steps {
		if s.does[c] {
			n++
		}
	}
	return n
}

// grounded says whether what stands beside a bare no is nothing but courtesy, or a reason for it.
func grounded(steps []step) bool {
	reasons, other := 0, 0
	first := slices.IndexFunc(steps, func(s step) bool { return s.does[no] })
	for i, s := range steps {
		switch {
		case s.does[no], i < first && s.does[asks] && s.sentence < steps[first].sentence:
		case s.any(fine, yes, present, defers, asks, hedges, double, past, reports):
			return false
		case s.does[grounds]:
			reasons++
		case s.any(condition, changes):
			return false
		case s.rest != "":
			other++
		}
	}
	return reasons > 0 || other == 0
}

// againstRefusal names what in a clause keeps a refusal from holding. Place is where it stands, from the first refusal on; followed says
// that another one follows.
func (s step) againstRefusal(place int, refusal step, followed bool) string {
	if s.any(refuses, no) || s.does[past] {
		return ""
	}
	after := place > 0
	beside := after || s.sentence == refusal.sentence && !refusal.contrast
	switch {
	case s.any(approves, goes) && s.doubt() == "" && (after || !refusal.contrast):
		return "mixed"
	case s.does[orders] && beside && !refusal.does[rejects]:
		return "mixed"
	case s.does[partly] && beside, s.does[directs] && beside && !refusal.does[rejects] && !s.asks():
		return "mixed"
	case s.does[yes] && (after || s.sentence == refusal.sentence && !refusal.any(no, rejects) && !refusal.contrast):
		return "mixed"
	case s.does[double] && !refusal.does[rejects]:
		return string(double)
	case after && s.any(withholds, pauses):
		return string(withholds)
	case after && s.hold == "condition" && s.does[reopens] && !refusal.does[rejects]:
		return s.hold
	case after && (s.hold == "defers" || s.hold == "unsure") && !refusal.does[rejects]:
		return s.hold
	case after && s.hold == "asks" && !followed && !refusal.does[rejects]:
		return string(asks)
	case after && s.any(reopens, trails) && !refusal.does[rejects]:
		return string(reopens)
	case place < 0 && s.does[reopens] && s.sentence == refusal.sentence && !refusal.contrast && !refusal.does[rejects]:
		return string(reopens)
	}
	return ""
}

// asks says whether a clause asks for something else to be done with the request itself: to hand it in again.
func (s step) asks() bool { return s.hold == "changes" }
