package prose

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Message is a reply as it came.
type Message struct {
	Subject, Text string
	// Automatic says that its headers say that no person wrote it.
	Automatic bool
	// Value says that any words may be the answer, because a value was asked for: what they decide is not read.
	Value bool
}

// Reply is what was read in a reply to a question.
type Reply struct {
	Cleaned
	// Reading is what its words decide; Answer also goes by what was asked.
	Reading Reading
	// Against are the reasons not to take it for an answer that do not depend on its words alone.
	Against []Doubt
	// Automatic says that no person wrote it, Surely that this is certain.
	Automatic, Surely bool
	// Clauses are those that are more than courtesy, as their words.
	Clauses []string
	// Words are those that make what else is said doubtful, as far as phrases of the table tell.
	Words []Doubt
	// Elsewhere is the first clause that speaks of something else than the question.
	Elsewhere string

	about matter
}

// The reasons in Reply.Against.
const (
	AgainstLong      = "too_long"
	AgainstHidden    = "hidden_characters"
	AgainstStruck    = "struck_out"
	AgainstEmpty     = "quoted_only"
	AgainstForm      = "unfilled_form"
	AgainstOpen      = "either_or"
	AgainstQuotation = "answers_another"
	AgainstPolarity  = "asked_to_refuse"
	AgainstSubject   = "another_subject"
	AgainstMatter    = "another_matter"
	AgainstInjection = "instruction"
)

// maxNew is how much newly written text an answer may have, in characters: a person who writes an essay means more than yes.
const maxNew = 1500

// arrival is what tells how a reply came.
type arrival struct {
	box, mention, autoSubject, autoSure, autoText *regexp.Regexp
}

func newArrival(w *wordFile) arrival {
	return arrival{
		box:         w.expression("box"),
		mention:     w.expression("mention"),
		autoSubject: w.expression("automatic subject"),
		autoSure:    w.expression("surely automatic"),
		autoText:    w.expression("automatic"),
	}
}

// Clean takes away what the sender of a reply did not write now.
func (r *Reader) Clean(raw string) Cleaned { return r.cleaner.clean(raw) }

// ReadReply reads a reply to a question.
func (r *Reader) ReadReply(q Question, m Message) Reply {
	out := Reply{Cleaned: r.cleaner.clean(m.Text), about: r.asker.matter(q)}
	out.Automatic, out.Surely = r.automatic(m, out.Lines)
	r.condition(&out, m)
	if out.Has(AgainstLong) && !m.Value {
		return out
	}
	for _, line := range out.Lines {
		out.Clauses = append(out.Clauses, r.content(line, &out.about)...)
	}
	if len(out.Clauses) == 0 && strings.TrimSpace(out.Text) == "" {
		out.against(AgainstEmpty, "")
	}
	if m.Value {
		return out
	}
	out.Reading = r.Read(out.Lines)
	r.compare(&out, m)
	if !out.Surely && out.Reading.Explicit {
		out.Automatic = false // somebody writes about being away, and decides
	}
	return out
}

func (x *Reply) against(why, text string) { x.Against = append(x.Against, Doubt{why, text}) }

// Has says whether one of the reasons is against a reply.
func (x *Reply) Has(why ...string) bool {
	return slices.ContainsFunc(x.Against, func(d Doubt) bool { return slices.Contains(why, d.Why) })
}

// condition notes what about the form of a reply keeps it from being understood.
func (r *Reader) condition(x *Reply, m Message) {
	if x.Cut || !m.Value && utf8.RuneCountInString(x.Text) > maxNew {
		x.against(AgainstLong, "")
	}
	if x.Hidden {
		x.against(AgainstHidden, "")
	}
	if x.Struck {
		x.against(AgainstStruck, "")
	}
	if strings.Contains(m.Text, "```") {
		x.against(AgainstInjection, "```")
	}
	for _, line := range x.Lines {
		if strings.ContainsAny(line, r.lex.boxes) && r.arrival.box.MatchString(line) {
			x.against(AgainstForm, line)
		}
		for _, it := range r.phrases.of(line) {
			switch it.is {
			case kindInjection:
				if !r.lex.commonInstructions.has(it.text) {
					x.against(AgainstInjection, it.text)
				}
			case kindAck, kindNegation, kindCondition, kindQuestion, kindHedge, kindFuture, kindIndirect,
				kindChange, kindSarcasm, kindDeferral:
				x.Words = append(x.Words, Doubt{string(it.is), it.text})
			}
		}
	}
}

// compare notes what a reply has against it when it is compared with the question.
func (r *Reader) compare(x *Reply, m Message) {
	about := &x.about
	if about.open || about.negative && !x.Reading.Explicit {
		x.against(AgainstOpen, "")
	}
	if len(x.Quote) > 0 && !r.firmly(x.Reading.Evidence) && !about.answered(x.Quote) && r.asker.disputed(x.Quote) {
		x.against(AgainstQuotation, strings.Join(x.Quote, " "))
	}
	if about.refusing && x.Reading.Decision == Refuse && !r.plainRefusal(x.Reading.Evidence) {
		x.against(AgainstPolarity, x.Reading.Evidence[0])
	}
	if other := r.asker.otherSubject(about, m.Subject); other != "" {
		x.against(AgainstSubject, other)
	}
	if !about.named {
		return
	}
	read := &x.Reading
	if at := slices.IndexFunc(x.Clauses, func(clause string) bool { return r.elsewhere(about, []string{clause}) }); at >= 0 {
		x.Elsewhere = x.Clauses[at]
	}
	misses := false
	switch read.Decision {
	case Refuse:
		misses = r.elsewhere(about, read.Evidence) || r.echoes(about, read.Evidence)
	case Approve:
		misses = r.elsewhere(about, read.Context) || r.another(about, read.Evidence, x.Text) || r.oneOf(about, read.Context)
	}
	if misses {
		x.against(AgainstMatter, read.Evidence[0])
	}
}

// firmly says whether clauses approve or order whatever they follow; others may only agree with what was said before.
func (r *Reader) firmly(clauses []string) bool {
	return slices.ContainsFunc(clauses, func(clause string) bool {
		return r.lex.firm.within(clause) ||
			r.acts.find(goes, clause) != "" || r.acts.find(orders, clause) != ""
	})
}

// Answer is what a reply decides of what was asked.
func (x *Reply) Answer() Decision {
	switch {
	case x.Has(AgainstHidden, AgainstStruck, AgainstLong, AgainstEmpty, AgainstForm, AgainstSubject, AgainstOpen, AgainstInjection,
		AgainstMatter, AgainstPolarity):
		return None
	case x.Reading.Decision == Approve && x.Has(AgainstQuotation):
		return None
	}
	return x.Reading.Decision
}

// content are the clauses of a line that are more than courtesy and names.
func (r *Reader) content(line string, about *matter) []string {
	line = r.arrival.mention.ReplaceAllString(line, "@x")
	var out []string
	for from, ts := 0, r.phrases.tokens(line); from < len(ts); {
		to := from
		for to < len(ts) && ts[to].kind != tokenBreak {
			to++
		}
		if r.says(ts[from:to], about) {
			out = append(out, joined(ts[from:to]))
		}
		from = to + 1
	}
	return out
}

// says says whether a clause has anything but courtesy and names.
func (r *Reader) says(ts []token, about *matter) bool {
	if about.people[strings.ReplaceAll(joined(ts), " ", "")] {
		return false
	}
	return slices.ContainsFunc(r.phrases.items(ts), func(it item) bool {
		return it.is != kindCourtesy && it.is != kindPerson && !r.phrases.names.has(it.text) && !about.people[it.text]
	})
}

// Plain is a text as its words, without what stands around them.
func (r *Reader) Plain(text string) string {
	normal, _ := r.normal.line(text)
	return joined(slices.DeleteFunc(r.phrases.tokens(r.inFull(normal)), func(t token) bool { return t.kind == tokenBreak }))
}

// automatic says whether no person wrote a reply. Sure is false when a person may have written it about being away.
func (r *Reader) automatic(m Message, lines []string) (found, sure bool) {
	subject, _ := r.normal.line(m.Subject)
	if m.Automatic || r.arrival.autoSubject.MatchString(subject) {
		return true, true
	}
	body := clipped(strings.Join(lines, " "), 4<<10)
	if r.arrival.autoSure.MatchString(body) {
		return true, true
	}
	return r.arrival.autoText.MatchString(body), false
}
