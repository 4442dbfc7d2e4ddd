package prose

import (
	"cmp"
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
	// Context are all clauses of the sentences in which the deciding ones stand.
	Context []string
	// Explicit says that it decides in words of approving or refusing, not by a yes, a no or an order.
	Explicit bool
	// Why names what stands against a decision, and Text the clause or the word that does: empty when there is nothing to decide.
	Why, Text string
	// Verdict says that there are words of deciding, whatever stands around them.
	Verdict bool
	// Leaning is how it compares with labelled replies, and Features by what.
	Leaning  Chances
	Features Features
	// Learned says that it decides by that alone; Evidence and Context are the clauses that lean so.
	Learned bool
	// Doubts are all that could speak against an approval, whether or not something approves.
	Doubts []Doubt
}

// Doubt is what a clause does that does not go with an approval.
type Doubt struct{ Why, Text string }

// Read reads a reply: lines in lower case and simplified characters, without quotations.
func (r *Reader) Read(lines []string) Reading {
	written := make([]string, len(lines))
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			written[i] = r.writtenOut(line)
		}
	}
	steps := r.steps(written)
	out := r.decided(steps)
	out.Features = r.features(written, steps, out)
	out.Leaning = chances(r.nets, out.Features)
	if len(r.nets) == 0 {
		return out
	}
	return r.combined(out, steps)
}

// Weighing is a reader that goes by other networks; without any it goes by the rules alone.
func (r *Reader) Weighing(nets ...*Net) *Reader {
	other := *r
	other.nets = nets
	return &other
}

// steps are the clauses of a reply and what they do.
func (r *Reader) steps(lines []string) []step {
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
	return steps
}

// decided is what clauses decide.
func (r *Reader) decided(steps []step) Reading {
	steps = corrected(r.unsigned(steps))
	weigh(steps)
	if at := slices.IndexFunc(steps, func(s step) bool { return s.does[corrects] && s.does[unresolved] }); at >= 0 {
		return Reading{Why: string(corrects), Text: steps[at].text, Doubts: []Doubt{{string(corrects), steps[at].text}}}
	}
	undone(steps)
	out := decide(approval(steps), r.refusal(steps))
	out.Doubts = doubts(steps)
	out.Context = context(steps, out.Evidence)
	out.Verdict = slices.ContainsFunc(steps, func(s step) bool { return s.verdict })
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

// strangers are the words and runs of Chinese characters in a clause that the table does not have. Runs are of two characters or more.
func (r *Reader) strangers(clause string) []string {
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
	if strings.ContainsRune(r.lex.joining, rs[i]) {
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
				out = append(out, Doubt{string(c), cmp.Or(s.text, "?")})
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
		return Reading{Why: whyMixed, Text: refusing.Evidence[0]}
	case refusing.Decision != None:
		return refusing
	case approving.Decision != None || approving.Why != "":
		return approving
	}
	return refusing
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

// undone takes an order to undo something for what was asked, where a yes stands directly before it; and a no that only goes with "no
// objections" for nothing.
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
		if before.does[no] && !before.does[refuses] && (s.does[approves] && s.lex.noObjections.starts(s.text) ||
			s.lex.givesIn.starts(before.text) && s.any(approves, goes, orders)) {
			before.does[no] = false
		}
	}
}

// corrected takes away what a reply itself takes back, if it decides afterwards. What is taken back without that stays, and keeps it from
// deciding.
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
