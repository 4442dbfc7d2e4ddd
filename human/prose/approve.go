package prose

import (
	"cmp"
	"slices"
	"strings"
)

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
		if beside || !explicit && (d.at > clean[len(clean)-1] || steps[d.at].asked || !passing(d.why)) {
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
		return Reading{Why: whyContrast, Text: steps[last].text}
	}
	var evidence []string
	for _, at := range clean {
		evidence = append(evidence, steps[at].text)
	}
	return Reading{Decision: Approve, Evidence: evidence, Explicit: explicit}
}

// passing says whether what made one clause doubtful is settled by another one that decides after it.
func passing(why string) bool {
	switch class(why) {
	case hedges, reports, later, spoils:
		return true
	}
	return false
}

// doubtfulStep is a clause that would decide, and what is against that in its own words.
type doubtfulStep struct {
	at  int
	why string
}

// decisions are the clauses that approve or order, and those that would, were it not for their own words.
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
		if why == "" && lone && (s.does[times] || s.wanders() && !s.does[deeds]) {
			why = whyOrder
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
			why = s.againstBefore(turned, steps[last], i == last-1 &&
				!slices.ContainsFunc(steps[:i], func(s step) bool { return s.does[approves] }))
			if why == whyFragment && i > 0 && steps[i-1].does[neutral] && steps[i-1].sentence == s.sentence {
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

// againstStory names what in a sentence that tells at some length what came before keeps a verdict from holding. Most of what happened does
// not.
func (s step) againstStory() string {
	for _, c := range []class{refuses, no, mocks} {
		if s.does[c] && !s.any(past, reports) {
			return string(c)
		}
	}
	switch {
	case s.hold == holdDenies && !s.does[past]:
		return s.hold
	case s.does[supposes] && !s.does[past]:
		return string(condition)
	case s.labels && !s.introduces():
		return string(reports)
	}
	return ""
}

// wanders says whether an order that stands alone goes on to say more than what is to be done: where to, for whom, which other.
func (s step) wanders() bool {
	words := strings.Fields(s.rest)
	return len(words) > 4 || slices.ContainsFunc(words, s.lex.wandering.has) && !s.lex.destinations.within(s.rest)
}

// nod reads a reply whose only sign of approval is a yes: nothing may stand beside it but courtesy, favourable words and reasons.
func nod(steps []step) Reading {
	at := slices.IndexFunc(steps, func(s step) bool { return s.does[yes] && !s.does[past] })
	if at < 0 {
		return doubted(steps)
	}
	explained := false
	for i, s := range steps {
		explained = explained || s.reason || s.announces()
		var why string
		if i < at && s.long && s.sentence < steps[at].sentence && !s.any(present, reports, asks) {
			why = s.againstStory()
		} else {
			why = s.againstNod(explained)
		}
		if why == whyRemark && i == len(steps)-1 && i > 0 && steps[i-1].does[neutral] && s.name {
			why = "" // who thanks
		}
		if why != "" {
			return Reading{Why: why, Text: s.text}
		}
	}
	return Reading{Decision: Approve, Evidence: []string{steps[at].text}}
}

// againstNod names what in a clause keeps a yes from being an approval. Explained says that reasons are being given.
func (s step) againstNod(explained bool) string {
	switch {
	case s.any(mocks, trails), !s.does[yes] && s.any(refuses, no, double, present, reports, condition, defers, hedges, changes):
		return cmp.Or(s.doubt(), string(present))
	case s.hold != "":
		return s.hold
	case s.labels && !s.introduces() && !s.announces():
		return string(reports)
	case s.any(yes, past), s.rest == "", explained, s.does[fine] && !s.contrast, s.labels && len(strings.Fields(s.text)) == 1:
		return ""
	}
	return whyRemark
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
		return whyContrast
	case s.does[trails]:
		return string(trails)
	case s.fragment() && !s.name:
		return whyFragment
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
	case s.hold == holdUnsure && s.does[yes] && verdict.does[approves]:
		return "" // a yes with a sigh, before one in so many words
	case s.hold != "" && !over:
		return s.hold
	case s.does[reports] && !over && next && s.sentence == verdict.sentence && !s.any(approves, goes) && !verdict.does[own]:
		return string(reports)
	case s.does[trails] && !over:
		return string(trails)
	case s.labels && !s.introduces():
		return string(reports)
	case s.fragment():
		return whyFragment
	}
	return ""
}
