package prose

import "slices"

// The bars that a leaning has to reach for a decision. They were chosen by cross-validation on the corpora that the weights were learned from
// (TestClassify_Folds of package human), for as few false decisions as possible first and then for what is found.
const (
	// approvesFrom and refusesFrom are how much the words have to lean to what the rules read. A false refusal does less harm.
	// Where they lean to it less, what the clauses do has to lean to it by actsFrom.
	approvesFrom, refusesFrom, actsFrom = 0.15, 0.1, 0.9
	// sureFrom is how much both comparisons have to lean to a decision where the rules find none, heldFrom where they find one that something beside it
	// leaves open, though not always.
	sureFrom, heldFrom = 0.92, 0.8
)

// combined is what a reply decides by the rules and by its leaning: what both say, or what one is sure of while the other finds nothing against it.
func (r *Reader) combined(rules Reading, steps []step) Reading {
	switch rules.Decision {
	case Approve, Refuse:
		bar := approvesFrom
		if rules.Decision == Refuse {
			bar = refusesFrom
		}
		if rules.Leaning.ByWords.Of(rules.Decision) < bar && rules.Leaning.ByActs.Of(rules.Decision) < actsFrom {
			rules.Why, rules.Text = "unlike", rules.Evidence[0]
			rules.Decision, rules.Evidence, rules.Context, rules.Explicit = None, nil, nil, false
		}
		return rules
	}
	for _, d := range []Decision{Approve, Refuse} {
		bar := sureFrom
		if rules.Why != "" {
			bar = heldFrom
		}
		if rules.Leaning.Of(d) < bar || !mayYield(rules, steps, d) {
			continue
		}
		rules.Decision, rules.Learned, rules.Why, rules.Text = d, true, "", ""
		rules.Evidence = r.leaningSentences(steps, d)
		rules.Context = rules.Evidence
		rules.Words = r.learned.telling(rules.Features, d)
		return rules
	}
	return rules
}

// mayYield says whether nothing that the rules find stands against a decision, or only what they are often wrong about: remarks of which they do not
// know what they do, and for a refusal questions and words in favour, which it may answer.
func mayYield(rules Reading, steps []step, d Decision) bool {
	var yields, stands []class
	if d == Approve {
		yields = []class{"", "remark", "order", spoils}
		stands = []class{condition, asks, defers, changes, mocks, reports, present, refuses, double}
		if slices.ContainsFunc(steps, func(s step) bool { return s.hold != "" && s.hold != "unsure" && !s.does[past] }) {
			return false
		}
	} else {
		yields = []class{"", "mixed", asks, refuses, no, reopens}
		stands = []class{condition, reports, present, double}
	}
	if d == Approve && rules.Why == "remark" && words(rules.Text) < 3 {
		return false // a word that nobody knows may be anything
	}
	return slices.Contains(yields, class(rules.Why)) && !slices.ContainsFunc(rules.Doubts, func(d Doubt) bool { return slices.Contains(stands, class(d.Why)) })
}

// leaningSentences are the clauses of the sentences that lean to a decision; all, if none does by itself.
func (r *Reader) leaningSentences(steps []step, d Decision) []string {
	var out, all []string
	for from := 0; from < len(steps); {
		to := from
		var texts []string
		for ; to < len(steps) && steps[to].sentence == steps[from].sentence; to++ {
			texts = append(texts, steps[to].text)
		}
		if c := r.learned.words.Chances(features(texts)); c.Of(d) > c.Of(None) {
			out = append(out, texts...)
		}
		all = append(all, texts...)
		from = to
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// words counts the words of a clause; two Chinese characters are one.
func words(clause string) (n int) {
	hans := 0
	for _, word := range appendWords([]string{""}, clause)[1:] {
		if isHan(firstRune(word)) {
			hans++
		} else {
			n++
		}
	}
	return n + hans/2
}
