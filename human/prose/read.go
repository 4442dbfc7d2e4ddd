package prose

import (
	"slices"
	"strings"
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
}

func (s step) any(cs ...class) bool {
	return slices.ContainsFunc(cs, func(c class) bool { return s.does[c] })
}

// Read reads a reply: lines in lower case and simplified characters, without quotations.
func (r *Reader) Read(lines []string) Reading {
	var steps []step
	for _, c := range r.clauses(lines) {
		s := r.acts.step(c)
		if c.reason && len(steps) > 0 && steps[len(steps)-1].does[past] {
			s.does[past] = true // why it was so
		}
		if s.text != "" || s.asked || s.trails {
			steps = append(steps, s)
		}
	}
	steps = unsigned(steps)
	out := decide(approval(steps), r.refusal(steps))
	out.Doubts = doubts(steps)
	out.Verdict = slices.ContainsFunc(steps, func(s step) bool { return r.acts.finds(verdicts, s.text) })
	out.Present = slices.ContainsFunc(steps, func(s step) bool { return s.does[present] })
	return out
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
func (t table) step(c clause) step {
	s := step{clause: c, does: map[class]bool{}}
	note := func(cs class, found bool) { s.does[cs] = s.does[cs] || found }
	rest, found := t.take(neutral, c.text)
	note(neutral, found)
	note(mocks, t.finds(mocks, c.text))
	note(condition, t.finds(condition, rest))
	asked := c.asked && rest != "◌"
	rest, found = t.take(fine, rest)
	note(fine, found)
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
	note(grounds, t.finds(grounds, rest))
	note(reports, t.finds(reports, rest))
	note(reopens, t.finds(reopens, rest))
	if s.does[refuses] {
		rest, _, _ = strings.Cut(rest, "◌") // what follows is what is refused
	}
	before := rest
	for _, cs := range []class{yes, approves, goes} {
		rest, found = t.take(cs, rest)
		note(cs, found)
	}
	// English verdicts have words of doubt in them ("move forward"), Chinese ones take doubts with them.
	doubtful := rest
	if strings.ContainsFunc(rest+before, isHan) {
		doubtful = before
	}
	for _, cs := range []class{hedges, defers, changes, present} {
		note(cs, t.finds(cs, doubtful))
	}
	note(spoils, t.finds(spoils, rest))
	note(directs, t.finds(tells, rest) && !t.finds(muses, rest))
	for _, cs := range []class{orders, directs} {
		rest, found = t.take(cs, rest)
		note(cs, found)
	}
	note(negates, t.finds(negates, rest))
	note(trails, c.trails)
	s.rest = strings.TrimSpace(strings.ReplaceAll(rest, "◌", ""))
	note(spoils, s.any(approves, goes) && !s.any(orders, directs) && left(s.rest))
	return s
}

// left says whether a single word or number is left beside a verdict: it may be about that one, or part of an idiom.
func left(rest string) bool {
	switch rest {
	case "", "a", "application", "invoice", "order", "purchase", "trip", "leave", "budget", "contract", "plan", "proposal", "change", "release", "deployment", "offer", "refund", "expense", "transfer", "so", "and", "my", "yes", "ok", "okay", "given", "request", "proceed", "payment", "this", "it", "that", "unconditionally", "now", "today", "asap", "please", "immediately", "indeed", "too", "thanks", "thx", "then", "sir", "again", "accordingly", "everyone", "all", "tonight", "happily", "gladly", "everything":
		return false
	}
	return !isHan(firstRune(rest)) && !strings.Contains(rest, " ") && wordRune(firstRune(rest))
}

// unsigned takes away a last paragraph of short lines that do nothing: who signed it.
func unsigned(steps []step) []step {
	if len(steps) == 0 {
		return steps
	}
	last := steps[len(steps)-1].paragraph
	from := slices.IndexFunc(steps, func(s step) bool { return s.paragraph == last })
	if from == 0 {
		return steps
	}
	for _, s := range steps[from:] {
		if utf8.RuneCountInString(s.text) > 40 || s.acts() || s.any(asks, condition, defers, hedges, changes, double, mocks, negates) {
			return steps
		}
	}
	return steps[:from]
}

// acts says whether a clause decides something, or tries to.
func (s step) acts() bool {
	return s.any(refuses, no, approves, goes, orders, directs, yes)
}

// doubt names what makes a clause that acts doubtful.
func (s step) doubt() string {
	for _, c := range []class{refuses, no, past, double, asks, condition, hedges, reports, defers, changes, mocks, spoils, trails} {
		if s.does[c] {
			return string(c)
		}
	}
	return ""
}

// approval looks for a verdict in favour, or for an order to do it, that nothing stands against.
func approval(steps []step) Reading {
	last := -1
	warm := false // a yes or a favourable remark was made
	lone := !slices.ContainsFunc(steps, func(s step) bool { return !s.does[past] && s.any(yes, fine, approves, goes) })
	var evidence []string
	for i, s := range steps {
		was := warm
		warm = warm || s.any(yes, fine, approves, goes)
		if s.does[past] || !s.any(approves, goes, orders, directs) {
			continue
		}
		if s.any(approves, goes, orders) || was {
			why := s.doubt()
			if why == "" && lone && wanders(s.rest) {
				why = "order"
			}
			if why != "" {
				return Reading{Why: why, Text: s.text}
			}
			last = i
			evidence = append(evidence, s.text)
		}
	}
	if last < 0 {
		return doubted(steps)
	}
	turned := false // a "but" stands between a clause and the verdict
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		why := ""
		switch {
		case i > last:
			why = s.againstAfter()
		case i < last:
			why = s.againstBefore(turned, steps[last])
			if why == "fragment" && i > 0 && steps[i-1].does[neutral] && steps[i-1].sentence == s.sentence {
				why = "" // who is thanked
			}
		}
		if why != "" {
			return Reading{Why: why, Text: s.text}
		}
		turned = turned || i <= last && s.contrast
	}
	if steps[last].contrast && firm(steps[:last]) {
		return Reading{Why: "contrast", Text: steps[last].text}
	}
	return Reading{Decision: Approve, Evidence: evidence}
}

// wanders says whether an order that stands alone goes on to say more than what is to be done: where to, for whom, which other.
func wanders(rest string) bool {
	words := strings.Fields(rest)
	return len(words) > 4 || slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "to", "from", "at", "by", "my", "me", "us", "other", "with", "in", "on", "into":
			return true
		}
		return false
	})
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
func (s step) againstAfter() string {
	for _, c := range []class{refuses, no, asks, condition, defers, hedges, changes, double, mocks, reports, present, negates, grounds, trails} {
		if s.does[c] {
			return string(c)
		}
	}
	switch {
	case s.contrast && s.rest != "":
		return "contrast"
	case s.fragment():
		return "fragment"
	}
	return ""
}

// againstBefore names what in a clause keeps a verdict from holding that stands after it.
func (s step) againstBefore(turned bool, verdict step) string {
	over := s.does[past] || turned
	for _, c := range []class{refuses, no, mocks, asks, trails, changes} {
		if s.does[c] && !s.does[past] {
			return string(c)
		}
	}
	for _, c := range []class{double, condition, defers} {
		if s.does[c] && !over {
			return string(c)
		}
	}
	if s.any(reports, hedges) && !over && s.sentence == verdict.sentence {
		return string(hedges)
	}
	switch {
	case s.labels && !s.introduces():
		return string(reports)
	case s.fragment():
		return "fragment"
	}
	return ""
}

// introduces says whether a clause with a colon announces the sender's own words.
func (s step) introduces() bool {
	if s.acts() || s.any(neutral, fine) {
		return true
	}
	for _, own := range []string{"my", "answer", "decision", "verdict", "result", "response", "i", "we", "hi", "hello", "dear", "all", "team"} {
		if slices.Contains(strings.Fields(s.text), own) {
			return true
		}
	}
	for _, own := range []string{"我", "意见", "结论", "答复", "批复", "回复", "好", "各位", "结果", "尊敬的"} {
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
	if len(words) > 1 {
		return false
	}
	return !courteous(words[0])
}

// courteous says whether a word alone is one of greeting or thanks.
func courteous(word string) bool {
	switch word {
	case "hi", "hello", "hey", "dear", "all", "team", "everyone", "folks", "guys", "thanks", "thx", "cheers", "regards", "best", "sir", "madam", "please", "now", "today", "asap", "seriously", "roger", "ack", "noted", "received", "👍", "👌", "✅":
		return true
	}
	return false
}

// refusal looks for a clear no. Its reasons may be in any words that do not leave it open.
func (r *Reader) refusal(steps []step) Reading {
	first, nos := -1, 0
	var evidence []string
	for i, s := range steps {
		if !s.any(refuses, no) || s.does[past] {
			continue
		}
		if s.any(double, suspends, reports, trails) || s.asked || s.any(approves, goes) {
			text := s.text
			if s.does[suspends] {
				text = r.acts.find(suspends, text)
			}
			return Reading{Why: string(suspends), Text: text}
		}
		if s.does[no] {
			nos++
		}
		if first < 0 {
			first = i
		}
		if s.does[refuses] || s.contrast {
			evidence = append(evidence, s.text)
		}
	}
	if first < 0 || len(evidence) == 0 && nos < 2 && !grounded(steps) {
		return Reading{}
	}
	if len(evidence) == 0 {
		evidence = []string{steps[first].text}
	}
	turn := first // what stands before a "but" does not weigh against what follows it
	for turn > 0 && !steps[turn].contrast {
		turn--
	}
	for i, s := range steps {
		if i < turn {
			continue
		}
		why := s.againstRefusal(i-first, steps[first], slices.ContainsFunc(steps[i+1:], func(s step) bool { return s.any(refuses, no) }))
		if s.does[yes] && i > 0 && steps[i-1].labels {
			why = "mixed" // about one of several
		}
		if why != "" {
			return Reading{Why: why, Text: s.text}
		}
	}
	return Reading{Decision: Refuse, Evidence: evidence}
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
	if s.any(refuses, no) {
		return ""
	}
	switch {
	case s.does[past]:
		return ""
	case s.any(approves, goes, orders):
		return "mixed"
	case s.any(directs, partly) && (place > 0 || s.sentence == refusal.sentence && !refusal.contrast):
		return "mixed"
	case s.does[yes] && (place > 0 || s.sentence == refusal.sentence && !refusal.does[no] && !refusal.contrast):
		return "mixed"
	case s.does[double]:
		return string(double)
	case place > 0 && s.does[asks] && !followed:
		return string(asks)
	case place > 0 && s.any(reopens, trails):
		return string(reopens)
	case place < 0 && s.does[reopens] && s.sentence == refusal.sentence && !refusal.contrast:
		return string(reopens)
	}
	return ""
}
