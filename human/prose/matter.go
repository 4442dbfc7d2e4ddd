package prose

import (
	"regexp"
	"slices"
	"strings"
)

// Question is what was asked, as far as it takes to see what a reply speaks of.
type Question struct {
	Title, Description string
	// Data are further texts of the question. Of what they contain only numbers may be repeated.
	Data []string
	// People are the names of those who answer.
	People []string
}

// matter is what a question is about, as far as a reply may mention it.
type matter struct {
	words  map[string]bool
	han    string
	groups map[int]bool
	people map[string]bool
	// any says that the question is called something, named that it is called something that only it is: not "Please approve".
	any, named bool
	// parts are words and amounts of which the question has several: who repeats one may mean that one alone. hanParts are the sentences
	// that list something, in Chinese.
	parts    map[string]bool
	hanParts string
	// open says that the question is which of two, so that a yes answers nothing; refusing that it asks to refuse or to stop something, so
	// that such a word may mean yes.
	open, refusing bool
	// negative says that it asks for objections: a bare yes or no may mean either.
	negative bool
	// title is what it is called, without spaces.
	title string
}

// asker reads questions.
type asker struct {
	normal  *normalizer
	phrases *phrases

	anySubject, asking, from, general, stopping wordList

	list, titleList, sentence, becomes, array, amount, money, number *regexp.Regexp
	either, yesNo, objections, asksFor, shallI, rePrefix             *regexp.Regexp
}

func newAsker(w *wordFile, n *normalizer, p *phrases) *asker {
	return &asker{
		normal: n, phrases: p,

		anySubject: w.list("any subject"),
		asking:     w.list("asking"),
		from:       w.list("from here"),
		general:    w.list("general"),
		stopping:   w.list("stopping"),

		list:      w.expression("list"),
		titleList: w.expression("title list"),
		sentence:  w.expression("sentence"),
		becomes:   w.expression("becomes"),
		array:     w.expression("array"),
		amount:    w.expression("amount"),
		money:     w.expression("money"),
		number:    w.expression("number"),

		either:     w.expression("either"),
		yesNo:      w.expression("yes or no"),
		objections: w.expression("objections"),
		asksFor:    w.expression("asks for"),
		shallI:     w.expression("shall i"),
		rePrefix:   w.expression("subject prefix"),
	}
}

// maxAsked is how much of a text of a question is looked at, in bytes.
const maxAsked = 64 << 10

// matter is what a question is about.
func (a *asker) matter(q Question) matter {
	m := matter{words: map[string]bool{}, groups: map[int]bool{}, people: map[string]bool{}, parts: map[string]bool{}}
	title := a.called(&m, q.Title, true)
	m.title = strings.ReplaceAll(title, " ", "")
	m.refusing = a.refusing(title) && !a.yesNo.MatchString(title)
	// What kind of thing it is, the title says if it says anything: the rest may be about a part of it.
	headed := len(m.groups) > 0
	a.called(&m, q.Description, !headed)
	for _, text := range q.Data {
		a.contained(&m, text, !headed)
	}
	for _, name := range q.People {
		a.person(&m, name)
	}
	return m
}

// called notes what a question calls itself, which may be repeated. Grouped says that it tells what kind of thing it is about.
func (a *asker) called(m *matter, text string, grouped bool) (normal string) {
	text = clipped(text, maxAsked)
	first := m.title == "" && m.han == "" // the title
	normal, _ = a.normal.line(text)
	ts := a.phrases.tokens(normal)
	for _, one := range ts {
		switch one.kind {
		case tokenNumber:
			m.words[one.text] = true
		case tokenWord:
			m.words[one.text], m.any = true, true
		case tokenHan:
			m.han += one.text
			m.any = true
		default:
			m.han += " "
		}
	}
	m.han += "\n"
	if grouped {
		a.group(m, ts)
	}
	for _, it := range a.phrases.items(ts) {
		m.named = m.named || it.is == kindDomain || it.kind == tokenNumber || it.is == unknownKind &&
			(it.kind == tokenWord || it.kind == tokenHan) && !a.general.has(it.text)
	}
	a.listed(m, text, first)
	m.open = m.open || a.either.MatchString(normal) && (first || strings.HasSuffix(normal, "?")) && !a.yesNo.MatchString(normal)
	m.negative = m.negative || a.objections.MatchString(normal) && (first || strings.Contains(normal, "?") || a.asking.within(normal))
	return normal
}

// contained notes what a question contains.
func (a *asker) contained(m *matter, text string, grouped bool) {
	text = clipped(text, maxAsked)
	normal, _ := a.normal.line(text)
	ts := a.phrases.tokens(normal)
	several := a.array.MatchString(text)
	for _, one := range ts {
		if one.kind == tokenNumber {
			m.words[one.text] = true
			m.parts[one.text] = m.parts[one.text] || several // of one of its items
		}
	}
	if grouped {
		a.group(m, ts)
	}
}

// group notes what kinds of things are named. Every phrase that begins somewhere counts, since words of a title run into each other.
func (a *asker) group(m *matter, ts []token) {
	for i := range ts {
		at := a.phrases.root
		for j := i; j < len(ts); j++ {
			if at = at.next[ts[j].text]; at == nil {
				break
			}
			if at.is == kindDomain {
				for _, g := range a.phrases.groups[joined(ts[i:j+1])] {
					m.groups[g] = true
				}
			}
		}
	}
}

// person notes somebody's name.
func (a *asker) person(m *matter, name string) {
	normal, _ := a.normal.line(name)
	normal = strings.NewReplacer(".", " ", "_", " ").Replace(normal)
	for _, one := range a.phrases.tokens(normal) {
		if one.kind == tokenWord {
			m.people[one.text] = true
		}
	}
	if whole := strings.ReplaceAll(normal, " ", ""); whole != "" {
		m.people[whole] = true
	}
}

// clipped is at most the first bytes of a text.
func clipped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// refusing says whether a title asks to refuse or to stop something.
func (a *asker) refusing(title string) bool {
	for _, it := range a.phrases.of(title) {
		if it.is == kindRefusal || it.is == kindNegation && a.stopping.has(it.text) {
			return true
		}
	}
	return false
}

// listed finds what a text lists, and the amounts of which it names more than one of a kind.
func (a *asker) listed(m *matter, text string, title bool) {
	lines := strings.Count(strings.TrimSpace(text), "\n") > 0
	for _, sentence := range a.sentence.Split(text, -1) {
		normal, _ := a.normal.line(sentence)
		switch {
		case lines || a.list.MatchString(normal) || title && a.titleList.MatchString(normal):
			a.addParts(m, normal, lines)
		case a.becomes.MatchString(normal):
			if at := strings.Index(normal, a.from.list[0]); at > 0 {
				a.addParts(m, normal[at:], lines)
			} else {
				a.addParts(m, normal, lines)
			}
		}
		if strings.ContainsAny(normal, "0123456789") {
			a.addAmounts(m, normal)
		}
	}
}

// addParts notes the words of a list as parts.
func (a *asker) addParts(m *matter, list string, numbers bool) {
	for _, one := range a.phrases.tokens(list) {
		switch {
		case one.kind == tokenWord, numbers && one.kind == tokenNumber:
			m.parts[one.text] = true
		case one.kind == tokenHan:
			m.hanParts += one.text
		default:
			m.hanParts += " "
		}
	}
	m.hanParts += " "
}

// The names of what amounts have in common that need no unit for it: that they are money, or become one another.
const (
	unitMoney   = "money"
	unitBecomes = "becomes"
)

// addAmounts notes the amounts of which a sentence has several of a kind.
func (a *asker) addAmounts(m *matter, sentence string) {
	kinds := map[string][]string{}
	for _, amount := range a.amount.FindAllStringSubmatch(sentence, -1) {
		unit := unitMoney
		if amount[1] == "" && !a.money.MatchString(amount[3]) {
			unit = amount[3]
		}
		kinds[unit] = append(kinds[unit], amount[2]+" "+amount[2]+amount[3])
	}
	if a.becomes.MatchString(sentence) {
		kinds[unitBecomes] = a.number.FindAllString(sentence, -1)
	}
	for _, amounts := range kinds { // into a set: order does not matter
		if len(amounts) < 2 {
			continue
		}
		for _, one := range a.phrases.tokens(strings.Join(amounts, " ")) {
			if one.kind == tokenNumber {
				m.parts[one.text] = true
			}
		}
	}
}

// answered says whether the message that a reply quotes nearest is the question. Who agrees may agree with what somebody else wrote.
func (m *matter) answered(quote []string) bool {
	all := strings.ReplaceAll(strings.Join(quote, ""), " ", "")
	return m.title != "" && strings.Contains(all, m.title)
}

// disputed says whether a quotation has something in it that one can agree to without approving: an objection, a doubt, a question.
func (a *asker) disputed(quote []string) bool {
	if slices.ContainsFunc(quote, a.asksFor.MatchString) {
		return false // the question, in other words
	}
	for _, line := range quote {
		asked := a.shallI.MatchString(line) // whether to do it
		if strings.Contains(line, "?") && !asked {
			return true
		}
		for _, it := range a.phrases.of(line) {
			switch it.is {
			case kindQuestion, kindCondition:
				if !asked {
					return true
				}
			case kindRefusal, kindNo, kindNegation, kindHedge, kindDeferral, kindChange, kindRegret:
				return true
			}
		}
	}
	return false
}

// otherSubject is what in the subject of a mail says that it has become one about something else, or decides by itself.
func (a *asker) otherSubject(m *matter, subject string) string {
	if subject == "" || !m.any {
		return ""
	}
	normal, _ := a.normal.line(subject)
	for rest := a.rePrefix.ReplaceAllString(normal, ""); rest != normal; rest = a.rePrefix.ReplaceAllString(normal, "") {
		normal = rest
	}
	ts := a.phrases.tokens(normal)
	if shared, others := m.shares(ts); others && !shared && !a.anySubject.within(normal) {
		return normal
	}
	for _, it := range a.phrases.items(ts) {
		if (it.is == kindRefusal || it.is == kindNo) && !m.words[it.text] && !strings.Contains(m.han, it.text) {
			return it.text
		}
	}
	return ""
}

// shares says whether words are among those of a question, and whether there are others.
func (m *matter) shares(ts []token) (shared, others bool) {
	for i, one := range ts {
		var known bool
		switch {
		case one.kind == tokenWord || one.kind == tokenNumber:
			known = m.words[one.text]
		case one.kind == tokenHan && i+1 < len(ts) && ts[i+1].kind == tokenHan:
			known = strings.Contains(m.han, one.text+ts[i+1].text)
		default:
			continue
		}
		shared, others = shared || known, others || !known
	}
	return shared, others
}
