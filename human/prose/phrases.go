package prose

import (
	_ "embed" // the phrases are a file
	"regexp"
	"strings"
)

// phraseText has the phrases of each kind. It is read-only.
//
//go:embed phrases.txt
var phraseText string

// kind is what a word or phrase is about: the name of its section in phrases.txt. Unknown is what is in none.
type kind string

// The kinds that are told apart; the file has more.
const (
	unknownKind   kind = ""
	kindAck       kind = "ack"
	kindApproval  kind = "approval"
	kindChange    kind = "change"
	kindCondition kind = "condition"
	kindCourtesy  kind = "courtesy"
	kindDeferral  kind = "deferral"
	kindDomain    kind = "domain" // a kind of thing that is approved; each section is one of its own
	kindElsewhere kind = "elsewhere"
	kindEnding    kind = "ending"
	kindFiller    kind = "filler"
	kindFine      kind = "fine"
	kindFuture    kind = "future"
	kindGlue      kind = "glue"
	kindGo        kind = "go"
	kindHedge     kind = "hedge"
	kindIndirect  kind = "indirect"
	kindInjection kind = "injection"
	kindNegation  kind = "negation"
	kindNo        kind = "no"
	kindObject    kind = "object"
	kindParticle  kind = "particle"
	kindPerson    kind = "person" // not in the file: surnames with what they are called by
	kindQuestion  kind = "question"
	kindRefusal   kind = "refusal"
	kindRegret    kind = "regret"
	kindSarcasm   kind = "sarcasm"
	kindVerb      kind = "verb"
)

// phrases finds phrases of the table in a text. It is built once and never changes.
type phrases struct {
	root *branch
	// groups are the kinds of things that a phrase is about, by number of their section.
	groups     map[string][]int
	contracted map[string]string
	slips      map[string]string
	endings    []rewriting
	ampersand  string
	names      wordList
	surnames   map[rune]bool
	given      map[rune]bool
	// titles are what people are called by after their surname; onCards are the words that lines of visiting cards have too, of kinds that
	// they do not have otherwise; offCards are words that they do not have, of kinds that they do.
	titles, onCards, offCards wordList
}

// branch is a node of the tree of phrases, by token.
type branch struct {
	next map[string]*branch
	is   kind
}

// phraseList is the phrases of one section. Deeds are the short verbs in Chinese for what it is about.
type phraseList struct {
	is          kind
	list, deeds []string
}

// phraseLists reads the sections of the file.
func phraseLists(text string) []phraseList {
	var all []phraseList
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, section := strings.CutPrefix(line, "[")
		switch {
		case line == "" || line[0] == '#':
		case section:
			name, deeds, _ := strings.Cut(strings.TrimSuffix(name, "]"), ": ")
			all = append(all, phraseList{is: kind(name), deeds: strings.Fields(deeds)})
		default:
			last := &all[len(all)-1]
			last.list = append(last.list, phraseFields(line)...)
		}
	}
	return all
}

func newPhrases(w *wordFile) *phrases {
	p := &phrases{
		root: &branch{}, groups: map[string][]int{}, contracted: w.longForms("short forms"), endings: w.rewrite("endings"),
		ampersand: w.list("ampersand").list[0], names: w.list("first names"), surnames: runeSet(w.characters("surnames")),
		given: runeSet(w.characters("given names")), titles: w.list("titles"), onCards: w.list("on cards"), offCards: w.list("off cards"),
	}
	var groups []phraseList
	for _, section := range phraseLists(phraseText) {
		if section.is == kindDomain {
			groups = append(groups, section)
			continue
		}
		for _, phrase := range section.list {
			p.addPhrase(phrase, section.is)
		}
	}
	words := deedWords{w.list("prohibitions"), w.list("permissions"), w.list("permits not"), w.expression("permits")}
	for number, group := range groups {
		p.addGroup(number, group, words)
	}
	p.addPeople(w)
	p.slips = slips(w.list("misspelt"), p.words())
	return p
}

// deedWords are how short verbs are forbidden and permitted in Chinese, and which phrases permit already.
type deedWords struct {
	prohibitions, permissions, permitsNot wordList
	permits                               *regexp.Regexp
}

// addGroup adds the phrases about a kind of thing, and in Chinese the ways to forbid and to permit it.
func (p *phrases) addGroup(number int, group phraseList, words deedWords) {
	for _, phrase := range group.list {
		p.addDomain(phrase, number)
		if rs := []rune(phrase); isHan(rs[0]) && len(rs) <= 3 && (!words.permits.MatchString(phrase) || words.permitsNot.has(phrase)) {
			p.addForbidden(phrase, number, words.prohibitions)
		}
	}
	for _, deed := range group.deeds {
		p.addForbidden(deed, number, words.prohibitions)
		for _, permission := range words.permissions.list {
			p.addDomain(strings.ReplaceAll(permission, "*", deed), number)
		}
	}
}

// addPeople adds surnames with what goes before or after them, and departments that are asked to do something.
func (p *phrases) addPeople(w *wordFile) {
	familiar, unfamiliar := w.list("familiar"), w.characters("unfamiliar")
	for _, surname := range w.characters("surnames") {
		for _, title := range p.titles.list {
			p.addPhrase(string(surname)+title, kindPerson)
		}
		if !strings.ContainsRune(unfamiliar, surname) {
			for _, before := range familiar.list {
				p.addPhrase(before+string(surname), kindPerson)
			}
		}
	}
	departments, errands := w.list("departments"), w.list("errands")
	for _, please := range w.list("requests").list {
		for _, who := range departments.list {
			for _, deed := range errands.list {
				p.addPhrase(please+who+deed, kindFiller)
			}
		}
	}
}

// addDomain adds a phrase about a kind of thing. A phrase may be about several.
func (p *phrases) addDomain(phrase string, group int) {
	p.addPhrase(phrase, kindDomain)
	key := joined(p.tokens(phrase))
	p.groups[key] = append(p.groups[key], group)
}

// addForbidden adds the ways to forbid a deed.
func (p *phrases) addForbidden(deed string, group int, prohibitions wordList) {
	for _, no := range prohibitions.list {
		p.addDomain(no+deed, group)
	}
}

// addPhrase puts a phrase into the tree. What was added first stays.
func (p *phrases) addPhrase(phrase string, is kind) {
	at := p.root
	for _, t := range p.tokens(phrase) {
		if t.kind == tokenBreak {
			continue
		}
		if at.next == nil {
			at.next = map[string]*branch{}
		}
		if at.next[t.text] == nil {
			at.next[t.text] = &branch{}
		}
		at = at.next[t.text]
	}
	if at.is == unknownKind {
		at.is = is
	}
}

// words are all words of the table.
func (p *phrases) words() map[string]bool {
	known := map[string]bool{}
	var walk func(*branch)
	walk = func(b *branch) {
		for word, next := range b.next { // into a set: order does not matter
			known[word] = true
			walk(next)
		}
	}
	walk(p.root)
	return known
}

// item is a phrase that was found in a text, or a token that is in none.
type item struct {
	text string
	is   kind
	kind tokenKind
}

// items are the phrases of a text, from left to right, the longest first. Phrases are short, so this is linear.
func (p *phrases) items(ts []token) []item {
	out := make([]item, 0, len(ts))
	for i := 0; i < len(ts); {
		end, is := i+1, unknownKind
		at := p.root
		for j := i; j < len(ts); j++ {
			if at = at.next[ts[j].text]; at == nil {
				break
			}
			if at.is != unknownKind {
				end, is = j+1, at.is
			}
		}
		out = append(out, item{text: joined(ts[i:end]), is: is, kind: ts[i].kind})
		i = end
	}
	return out
}

// of are the phrases of a normalised text.
func (p *phrases) of(text string) []item { return p.items(p.tokens(text)) }

// answering says whether a line has a word of an answer in it.
func (p *phrases) answering(line string) bool {
	for _, it := range p.of(line) {
		switch it.is {
		case kindApproval, kindVerb, kindEnding, kindGo, kindRefusal:
			return true
		}
	}
	return false
}

// telling says whether a line has a word in it that visiting cards do not have.
func (p *phrases) telling(line string) bool {
	for _, it := range p.of(line) {
		switch it.is {
		case unknownKind, kindFine, kindDomain, kindCourtesy, kindFiller, kindPerson, kindAck:
			if p.offCards.has(it.text) {
				return true
			}
		case kindObject, kindIndirect, kindGlue, kindParticle:
			if !p.onCards.has(it.text) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// nameLine says whether a line below a reply is somebody's name and nothing else.
func (p *phrases) nameLine(line string) bool {
	ts := p.tokens(line)
	if len(ts) == 0 || len(ts) > 3 && !isHan(firstRune(ts[0].text)) || p.telling(line) {
		return false
	}
	for _, it := range p.items(ts) {
		if it.is != unknownKind && it.is != kindPerson {
			return false
		}
	}
	if ts[0].kind == tokenHan {
		return p.hanName([]rune(joined(ts)))
	}
	return p.names.has(ts[0].text) && len(ts) <= 3
}

// hanName says whether characters are a Chinese name, or a surname with a title.
func (p *phrases) hanName(rs []rune) bool {
	if len(rs) < 2 || len(rs) > 5 || !p.surnames[rs[0]] {
		return false
	}
	for n := 1; n < len(rs) && n <= 3; n++ {
		if p.titles.has(string(rs[n:])) {
			return true
		}
	}
	if len(rs) > 3 {
		return false
	}
	for _, r := range rs[1:] {
		if !p.given[r] {
			return false
		}
	}
	return true
}
