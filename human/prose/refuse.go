package prose

import (
	"slices"
)

// refusal looks for a clear no. Its reasons may be in any words that do not leave it open.
func (r *Reader) refusal(steps []step) Reading {
	found := r.refusals(steps)
	switch {
	case found.first < 0:
		return found.suspended
	case len(found.evidence) == 0 && count(steps, no) < 2 && !grounded(steps):
		return Reading{}
	case len(found.evidence) == 0:
		found.evidence = []string{steps[found.first].text}
	case found.suspended.Why != "" && !found.decided:
		return found.suspended
	}
	turn := found.first // what stands before a "but" does not weigh against what follows it
	for turn > 0 && !steps[turn].contrast {
		turn--
	}
	for i := turn; i < len(steps); i++ {
		s := steps[i]
		why := s.againstRefusal(i-found.first, steps[found.first],
			slices.ContainsFunc(steps[i+1:], func(s step) bool { return s.any(refuses, no) }))
		if s.does[yes] && i > found.first && steps[i-1].labels {
			why = whyMixed // about one of several
		}
		if why != "" {
			return Reading{Why: why, Text: s.text}
		}
	}
	return Reading{Decision: Refuse, Evidence: found.evidence,
		Explicit: slices.ContainsFunc(steps, func(s step) bool { return s.does[rejects] && s.does[refuses] })}
}

// foundRefusals are the clauses of a reply that refuse.
type foundRefusals struct {
	// first is where the first one stands; -1: nowhere.
	first    int
	evidence []string
	// decided says that one of them leaves no doubt; suspended is what leaves another one open.
	decided   bool
	suspended Reading
}

func (r *Reader) refusals(steps []step) foundRefusals {
	out := foundRefusals{first: -1}
	for i, s := range steps {
		if !s.any(refuses, no) || s.does[past] {
			continue
		}
		if open := r.leftOpen(steps, i); open != "" {
			if out.suspended.Why == "" {
				out.suspended = Reading{Why: string(suspends), Text: open}
			}
			continue
		}
		if !s.does[refuses] && alone(steps, i) {
			s.does[rejects] = true // a sentence of its own
		}
		if s.any(refuses, rejects) || s.contrast || last(steps, i) {
			out.evidence = append(out.evidence, s.text)
			out.decided = out.decided || s.does[rejects] || !s.does[refuses]
		}
		if out.first < 0 {
			out.first = i
		}
	}
	return out
}

// leftOpen is what in a clause that refuses leaves it open.
func (r *Reader) leftOpen(steps []step, i int) string {
	s := steps[i]
	switch {
	case s.any(double, reports, trails) || s.asked || s.any(approves, goes) || s.hold == holdDenies:
		return s.text
	case labelled(steps[:i], s.sentence), i > 0 && steps[i-1].does[yes] && steps[i-1].sentence == s.sentence && !s.contrast &&
		!s.any(no, turnsNo) && !s.speaksForSelf():
		return steps[i-1].text
	case s.does[no] && !s.does[refuses] && slices.ContainsFunc(steps,
		func(s step) bool { return isHan(firstRune(s.rest)) && s.fragment() }):
		return s.text
	case s.does[suspends]:
		return r.acts.find(suspends, s.text)
	case s.does[today] && !s.does[outright] && !(i > 0 && steps[i-1].does[no] && steps[i-1].sentence == s.sentence):
		return r.acts.find(today, s.text)
	}
	return ""
}

// speaksForSelf says whether a clause is about the sender.
func (s step) speaksForSelf() bool {
	return s.lex.firstPerson.starts(s.text) || s.lex.firstPersons.within(s.text)
}

// labelled says// labelled says whether what stands before in a sentence names whose words follow, or which of several they are about.
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
		if n > i && (s.hold == string(defers) || s.hold == string(asks) || s.hold == holdUnsure ||
			s.any(present, approves, goes, yes, trails, pauses)) {
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
	if s.any(refuses, no, past) {
		return ""
	}
	if s.mixes(place > 0, refusal) {
		return whyMixed
	}
	if place > 0 {
		return s.reopensAfter(refusal, followed)
	}
	switch {
	case refusal.does[rejects]:
		return ""
	case s.does[double]:
		return string(double)
	case place < 0 && s.does[reopens] && s.sentence == refusal.sentence && !refusal.contrast:
		return string(reopens)
	}
	return ""
}

// mixes says whether a clause approves, orders or agrees beside a refusal. What stands before a "but", or a yes that only shows that
// somebody has heard, does not.
func (s step) mixes(after bool, refusal step) bool {
	same := s.sentence == refusal.sentence && !refusal.contrast
	switch {
	case s.any(approves, goes) && s.doubt() == "":
		return after || !refusal.contrast
	case s.does[partly] && (after || same):
		return true
	case s.does[orders] || s.does[directs] && s.hold != string(changes): // but to hand it in again
		return (after || same) && !refusal.does[rejects]
	case s.does[yes]:
		return after || same && !refusal.any(no, rejects)
	}
	return false
}

// reopensAfter names what in a clause after a refusal leaves it open.
func (s step) reopensAfter(refusal step, followed bool) string {
	switch {
	case s.any(withholds, pauses):
		return string(withholds)
	case refusal.does[rejects]:
		return ""
	case s.does[double]:
		return string(double)
	case s.hold == string(condition) && s.does[reopens], s.hold == string(defers), s.hold == holdUnsure,
		s.hold == string(asks) && !followed:
		return s.hold
	case s.any(reopens, trails):
		return string(reopens)
	}
	return ""
}
