package prose

import (
	_ "embed" // the phrases are a file
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
	names      map[string]bool
	surnames   map[rune]bool
	given      map[rune]bool
}

// branch is a node of the tree of phrases, by token.
type branch struct {
	next map[string]*branch
	is   kind
}

// phraseList is the phrases of one section.
type phraseList struct {
	is   kind
	list []string
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
			all = append(all, phraseList{is: kind(strings.TrimSuffix(name, "]"))})
		default:
			last := &all[len(all)-1]
			last.list = append(last.list, phraseFields(line)...)
		}
	}
	return all
}

func newPhrases() *phrases {
	p := &phrases{
		root: &branch{}, groups: map[string][]int{}, contracted: textPairs(contractions),
		names: wordSet(firstNames), surnames: runeSet(hanSurnames), given: runeSet(hanGiven),
	}
	var groups [][]string
	for _, section := range phraseLists(phraseText) {
		if section.is == kindDomain {
			groups = append(groups, section.list)
			continue
		}
		for _, phrase := range section.list {
			p.addPhrase(phrase, section.is)
		}
	}
	for number, group := range groups {
		p.addGroup(number, group)
	}
	p.addPeople()
	p.slips = slips(p.words())
	return p
}

// addGroup adds the phrases about a kind of thing, and in Chinese the ways to forbid and to permit it.
func (p *phrases) addGroup(number int, group []string) {
	for _, phrase := range group {
		p.addDomain(phrase, number)
		if rs := []rune(phrase); isHan(rs[0]) && len(rs) <= 3 && !permits(phrase) {
			p.addForbidden(phrase, number)
		}
	}
	for _, deed := range hanDeeds(group[0]) {
		p.addForbidden(deed, number)
		p.addDomain(deed+"吧", number)
		p.addDomain("可以"+deed, number)
	}
}

// permits says whether a Chinese phrase about a kind of thing tells to do it.
func permits(phrase string) bool {
	for _, begin := range []string{"可以", "同意", "请", "准假"} {
		if strings.HasPrefix(phrase, begin) && phrase != "请假" && phrase != "请假申请" {
			return true
		}
	}
	return strings.HasSuffix(phrase, "吧")
}

// addPeople adds surnames with what goes before or after them, and departments that are asked to do something.
func (p *phrases) addPeople() {
	for _, surname := range hanSurnames {
		for _, title := range strings.Fields(hanTitles) {
			p.addPhrase(string(surname)+title, kindPerson)
		}
		if !strings.ContainsRune("单成安关包方金全", surname) {
			p.addPhrase("小"+string(surname), kindPerson)
			p.addPhrase("老"+string(surname), kindPerson)
		}
	}
	for _, please := range []string{"请", "麻烦", "辛苦", "烦请", "劳烦", "请让"} {
		for _, who := range []string{"财务", "财务部", "hr", "财务同事", "人事", "行政", "运维", "采购", "采购部", "相关部门", "相关同事", "同事", "相关人员", "经办人"} {
			for _, deed := range []string{"", "处理", "安排", "办理", "跟进", "落实", "执行", "推进", "尽快", "尽快处理", "尽快安排", "尽快办理", "尽快跟进"} {
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
func (p *phrases) addForbidden(deed string, group int) {
	for _, no := range []string{"不", "别", "不要", "不能", "不准", "请不要", "请勿", "不予", "千万别", "千万不要"} {
		p.addDomain(no+deed, group)
	}
}

// hanDeeds are the short verbs for what a group is about, by its first phrase.
func hanDeeds(first string) []string {
	switch first {
	case "deploy":
		return []string{"上"}
	case "invoice":
		return []string{"付"}
	case "expense":
		return []string{"报"}
	case "purchase":
		return []string{"买"}
	case "contract":
		return []string{"签", "盖"}
	case "refund":
		return []string{"退"}
	case "access":
		return []string{"给", "开"}
	case "hire":
		return []string{"录"}
	case "email", "post":
		return []string{"发"}
	case "delete":
		return []string{"删"}
	}
	return nil
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

// onCards are the words that lines of visiting cards have too, of kinds that they do not have otherwise; offCards are words that they do
// not have, of kinds that they do.
const (
	onCards  = ` plan workflow application task manager cfo ceo legal cc last of in at by on as 操作 流程 计划 方案 本 我 有 和 以 与 地 里 上 下 多 少 能 到 从 的 ~ `
	offCards = ` i we is are i_am good all 我 我们 `
)

// telling says whether a line has a word in it that visiting cards do not have.
func (p *phrases) telling(line string) bool {
	for _, it := range p.of(line) {
		word := " " + strings.ReplaceAll(it.text, " ", "_") + " "
		switch it.is {
		case unknownKind, kindFine, kindDomain, kindCourtesy, kindFiller, kindPerson, kindAck:
			if it.text != "" && strings.Contains(offCards, word) {
				return true
			}
		case kindObject, kindIndirect, kindGlue, kindParticle:
			if !strings.Contains(onCards, word) {
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
	return p.names[ts[0].text] && len(ts) <= 3
}

// hanName says whether characters are a Chinese name, or a surname with a title.
func (p *phrases) hanName(rs []rune) bool {
	if len(rs) < 2 || len(rs) > 5 || !p.surnames[rs[0]] {
		return false
	}
	for n := 1; n < len(rs) && n <= 3; n++ {
		if strings.Contains(" "+hanTitles+" ", " "+string(rs[n:])+" ") {
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

// hanTitles are what people are called by after their surname.
const hanTitles = `总 经理 总监 主任 老师 工 董 部长 先生 女士 主管 哥 姐 会计 律师 医生 工程师 助理 秘书 店长 院长 校长 处长 科长 局长 组长 同学 小姐 总经理 副总 老板 董事长`
