package human

import (
	"strings"
	"sync"
	"unicode"

	"tandem/human/prose"
)

// class is what a word or phrase does to the meaning of a reply.
type class uint8

const (
	saysUnknown class = iota
	// Evidence. A yes says so little that nothing may stand beside it but courtesy; an approval is about doing it. A bare verb of approving becomes a
	// request to somebody else after "please"; an ending one approves only at the end of a clause.
	saysYes
	saysApproval
	saysVerb
	saysEnding
	saysGo
	saysRefusal
	saysNo
	// Harmless.
	saysFiller
	saysObject
	saysDomain // a kind of thing that is approved: harmless when the question is about it
	saysFine   // an observation in favour
	saysCourtesy
	saysPolite
	saysPerson
	saysParticle
	// Said, but no answer.
	saysAck
	// Fits a refusal, and makes an approval doubtful.
	saysRegret
	// What forbids taking a reply for an approval.
	saysNegation
	saysCondition
	saysQuestion
	saysHedge
	saysFuture
	saysIndirect
	saysChange
	saysSarcasm
	saysInjection
	saysDeferral
	saysElsewhere
	// glue are words of sentences that mean nothing here; they only show that a line is no name.
	saysGlue
)

// wording is everything that the rules know: built once, never changed.
type wording struct {
	patterns   patterns
	acts       *prose.Reader
	root       *branch
	names      map[string]bool
	surnames   map[rune]bool
	given      map[rune]bool
	domains    map[string][]int
	contracted map[string]string
	misspelt   map[string]string
	lookalike  map[rune]rune
	simplified map[rune]rune
	shortcodes map[string]string
	faces      [][2]string
}

// branch is a node of the tree of phrases, by token.
type branch struct {
	next map[string]*branch
	is   class
}

// theWording is shared by all. It is read-only.
var theWording = sync.OnceValue(newWording)

func newWording() *wording {
	w := &wording{
		patterns:   compilePatterns(),
		acts:       prose.New(),
		root:       &branch{},
		names:      wordSet(firstNames),
		surnames:   runeSet(hanSurnames),
		given:      runeSet(hanGiven),
		domains:    map[string][]int{},
		contracted: textPairs(contractions),
		lookalike:  runePairs(lookalikes),
		simplified: runePairs(traditional),
		shortcodes: textPairs(shortcodes),
		faces: [][2]string{{":-)", " 😊 "}, {":)", " 😊 "}, {"(:", " 😊 "}, {";-)", " 🙄 "}, {";)", " 🙄 "}, {":-/", " 🙄 "},
			{":-(", " 🙄 "}, {":(", " 🙄 "}, {":-p", " 🙄 "}, {" :p", " 🙄 "}, {"^^", " 😊 "}, {"^_^", " 😊 "}, {"t_t", " 🙄 "}},
	}
	var domains [][]string
	for _, l := range phrases() {
		if l.is == saysDomain {
			domains = append(domains, l.phrases)
			continue
		}
		for _, p := range l.phrases {
			w.add(p, l.is)
		}
	}
	for g, group := range domains {
		for _, p := range group {
			w.addDomain(p, g)
			if r := []rune(p); unicode.Is(unicode.Han, r[0]) && len(r) <= 3 && !doing(p) {
				w.addForbidden(p, g)
			}
		}
		for _, deed := range hanDeeds(group) {
			w.addForbidden(deed, g)
			w.addDomain(deed+"吧", g)
			w.addDomain("可以"+deed, g)
		}
	}
	for _, r := range hanSurnames {
		for _, title := range []string{"总", "经理", "总监", "主任", "老师", "工", "董", "部长", "先生", "女士", "主管", "哥", "姐", "会计", "律师", "医生", "工程师", "助理", "秘书", "店长", "院长", "校长", "处长", "科长", "局长", "组长"} {
			w.add(string(r)+title, saysPerson)
		}
		if !strings.ContainsRune("单成安关包方金全", r) {
			w.add("小"+string(r), saysPerson)
			w.add("老"+string(r), saysPerson)
		}
	}
	for _, please := range []string{"请", "麻烦", "辛苦", "烦请", "劳烦", "请让"} {
		for _, who := range []string{"财务", "财务部", "hr", "财务同事", "人事", "行政", "运维", "采购", "采购部", "相关部门", "相关同事", "同事", "相关人员", "经办人"} {
			for _, deed := range []string{"", "处理", "安排", "办理", "跟进", "落实", "执行", "推进", "尽快", "尽快处理", "尽快安排", "尽快办理", "尽快跟进"} {
				w.add(please+who+deed, saysFiller)
			}
		}
	}
	w.misspelt = w.misspellings(oftenMisspelt)
	return w
}

// addDomain puts a phrase about a kind of thing into the tree. A phrase may be about several.
func (w *wording) addDomain(phrase string, group int) {
	w.add(phrase, saysDomain)
	key := w.key(phrase)
	w.domains[key] = append(w.domains[key], group)
}

// addForbidden adds the ways to forbid a deed.
func (w *wording) addForbidden(deed string, group int) {
	for _, no := range []string{"不", "别", "不要", "不能", "不准", "请不要", "请勿", "不予", "千万别", "千万不要"} {
		w.addDomain(no+deed, group)
	}
}

// misspellings are the usual slips in words that decide: a letter left out, doubled or swapped with the next one, never the first or the last. What is a
// word by itself is none.
func (w *wording) misspellings(words string) map[string]string {
	known := map[string]bool{}
	var walk func(*branch)
	walk = func(b *branch) {
		for word, next := range b.next {
			known[word] = true
			walk(next)
		}
	}
	walk(w.root)
	out := map[string]string{}
	for _, word := range strings.Fields(words) {
		for i := 1; i < len(word)-1; i++ {
			slips := []string{word[:i] + word[i+1:], word[:i] + word[i:i+1] + word[i:]}
			if i+2 < len(word) {
				slips = append(slips, word[:i]+word[i+1:i+2]+word[i:i+1]+word[i+2:])
			}
			for _, slip := range slips {
				if !known[slip] {
					out[slip] = word
				}
			}
		}
	}
	return out
}

// add puts a phrase into the tree. What was added first stays: a duplicate would make the order of the lists matter, so a test looks for them.
func (w *wording) add(phrase string, is class) {
	at := w.root
	for _, t := range w.tokens(phrase) {
		if t.kind == tokenBreak {
			continue
		}
		if at.next == nil {
			at.next = map[string]*branch{}
		}
		n := at.next[t.text]
		if n == nil {
			n = &branch{}
			at.next[t.text] = n
		}
		at = n
	}
	if at.is == saysUnknown {
		at.is = is
	}
}

// key is a phrase as its tokens.
func (w *wording) key(phrase string) string {
	return w.keyOf(w.tokens(phrase))
}

func (w *wording) keyOf(ts []token) string {
	var b strings.Builder
	for _, t := range ts {
		b.WriteString(t.text)
		b.WriteByte(' ')
	}
	return b.String()
}

func phraseFields(list string) []string {
	var out []string
	for _, p := range strings.FieldsFunc(list, func(r rune) bool { return r == '|' || r == '\n' }) {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

func wordSet(list string) map[string]bool {
	out := map[string]bool{}
	for _, s := range strings.Fields(list) {
		out[s] = true
	}
	return out
}

func runeSet(list string) map[rune]bool {
	out := map[rune]bool{}
	for _, r := range list {
		out[r] = true
	}
	return out
}

func textPairs(list string) map[string]string {
	out := map[string]string{}
	for _, line := range phraseFields(list) {
		if from, to, ok := strings.Cut(line, "="); ok {
			out[strings.TrimSpace(from)] = strings.TrimSpace(to)
		}
	}
	return out
}

func runePairs(list string) map[rune]rune {
	out := map[rune]rune{}
	for _, f := range strings.Fields(list) {
		if r := []rune(f); len(r) == 2 {
			out[r[0]] = r[1]
		}
	}
	return out
}
