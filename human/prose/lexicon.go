package prose

import (
	_ "embed" // the words are a file
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// wordText has the words, signs and expressions that the code asks for by name. It is read-only.
//
//go:embed words.txt
var wordText string

// wordFile is what words.txt says, section by section.
type wordFile struct {
	sections map[string]wordSection
	// asked are the sections that were asked for.
	asked map[string]bool
}

// wordSection is a section: its kind, and its lines.
type wordSection struct {
	is    string
	lines []string
}

// parseWords reads the sections of the file, which is part of the program: a mistake in it is one of the program.
func parseWords(text string) *wordFile {
	head := regexp.MustCompile(`^\[([a-z]+) ([a-z ]+)\]$`)
	out := &wordFile{sections: map[string]wordSection{}, asked: map[string]bool{}}
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch found := head.FindStringSubmatch(line); {
		case line == "" || line[0] == '#':
		case found != nil:
			if name = found[2]; out.sections[name].is != "" {
				panic("prose: words.txt has two sections " + name)
			}
			out.sections[name] = wordSection{is: found[1]}
		default:
			section := out.sections[name]
			section.lines = append(section.lines, line)
			out.sections[name] = section
		}
	}
	return out
}

// section are the lines of a section of a kind.
func (w *wordFile) section(is, name string) []string {
	section := w.sections[name]
	if section.is != is || len(section.lines) == 0 {
		panic("prose: words.txt has no section [" + is + " " + name + "]")
	}
	w.asked[name] = true
	return section.lines
}

// list is a section of words or phrases.
func (w *wordFile) list(name string) wordList {
	out := wordList{set: map[string]bool{}}
	for _, line := range w.section("list", name) {
		for _, word := range phraseFields(line) {
			word = unquoted(word)
			out.list, out.set[word] = append(out.list, word), true
		}
	}
	return out
}

// characters is a section of characters.
func (w *wordFile) characters(name string) string {
	return strings.Join(w.section("characters", name), "")
}

// pairs is a section of short forms and what stands for them, in their order.
func (w *wordFile) pairs(name string) (out [][2]string) {
	for _, line := range w.section("pairs", name) {
		for _, pair := range phraseFields(line) {
			short, long, _ := strings.Cut(pair, " = ")
			out = append(out, [2]string{unquoted(short), unquoted(long)})
		}
	}
	return out
}

// longForms is a section of pairs, by the short form.
func (w *wordFile) longForms(name string) map[string]string {
	out := map[string]string{}
	for _, pair := range w.pairs(name) {
		out[pair[0]] = pair[1]
	}
	return out
}

// couples is a section of characters and those that stand for them.
func (w *wordFile) couples(name string) map[rune]rune {
	out := map[rune]rune{}
	for _, line := range w.section("couples", name) {
		for _, couple := range strings.Fields(line) {
			rs := []rune(couple)
			out[rs[0]] = rs[1]
		}
	}
	return out
}

// expression is a section of alternatives.
func (w *wordFile) expression(name string) *regexp.Regexp {
	return w.compiled(strings.Join(w.section("expression", name), "|"))
}

// compiled is an expression in which sections of characters are named.
func (w *wordFile) compiled(expression string) *regexp.Regexp {
	for name, section := range w.sections { // each name once: order does not matter
		if strings.Contains(expression, "{"+name+"}") {
			w.asked[name] = true
			expression = strings.ReplaceAll(expression, "{"+name+"}", strings.Join(section.lines, ""))
		}
	}
	return regexp.MustCompile(expression)
}

// rewriting is an expression, and what is written for what matches.
type rewriting struct {
	short *regexp.Regexp
	long  string
}

// rewrite is a section of what is written in another way, in its order.
func (w *wordFile) rewrite(name string) (out []rewriting) {
	for _, line := range w.section("rewrite", name) {
		at := strings.LastIndex(line, ` -> "`)
		out = append(out, rewriting{w.compiled(line[:at]), unquoted(line[at+len(" -> "):])})
	}
	return out
}

// unquoted is what stands between quotation marks, or between spaces.
func unquoted(text string) string {
	text = strings.TrimSpace(text)
	if inner, err := strconv.Unquote(text); err == nil && text[0] == '"' {
		return inner
	}
	return text
}

// wordList is words or phrases in the order of the file.
type wordList struct {
	list []string
	set  map[string]bool
}

// has says whether a text is in the list.
func (l wordList) has(text string) bool { return l.set[text] }

// within says whether something of the list stands in a text.
func (l wordList) within(text string) bool {
	return slices.ContainsFunc(l.list, func(word string) bool { return strings.Contains(text, word) })
}

// begins is what of the list a text begins with, and what follows.
func (l wordList) begins(text string) (rest string, found bool) {
	for _, word := range l.list {
		if rest, found = strings.CutPrefix(text, word); found {
			return rest, true
		}
	}
	return text, false
}

// starts says whether a text begins with something of the list.
func (l wordList) starts(text string) bool {
	_, found := l.begins(text)
	return found
}

// ends says whether a text ends with something of the list.
func (l wordList) ends(text string) bool {
	return slices.ContainsFunc(l.list, func(word string) bool { return strings.HasSuffix(text, word) })
}

// lexicon is the words and signs that the rules go by, each under the name of its section in words.txt, which says what it is for. It is
// built once and never changes.
type lexicon struct {
	announcements, approving, commonInstructions, contrasts, courteous, destinations, firm, firstPerson, firstPersons, givesIn,
	introducing, introductions, joins, leftovers, noObjections, numbers, numbersOf, plainNo, reasons, suffixes, unturned, wandering,
	yesTo wordList

	boxes, deciding, decorating, joining, telling, vowels string
}

func newLexicon(w *wordFile) *lexicon {
	return &lexicon{
		announcements:      w.list("announcements"),
		approving:          w.list("approving"),
		commonInstructions: w.list("common instructions"),
		contrasts:          w.list("contrasts"),
		courteous:          w.list("courteous"),
		destinations:       w.list("destinations"),
		firm:               w.list("firm"),
		firstPerson:        w.list("first person"),
		firstPersons:       w.list("first persons"),
		givesIn:            w.list("gives in"),
		introducing:        w.list("introducing"),
		introductions:      w.list("introductions"),
		joins:              w.list("joins"),
		leftovers:          w.list("leftovers"),
		noObjections:       w.list("no objections"),
		numbers:            w.list("numbers"),
		numbersOf:          w.list("numbers of"),
		plainNo:            w.list("plain no"),
		reasons:            w.list("reasons"),
		suffixes:           w.list("suffixes"),
		unturned:           w.list("unturned"),
		wandering:          w.list("wandering"),
		yesTo:              w.list("yes to"),

		boxes:      w.characters("boxes"),
		deciding:   w.characters("deciding"),
		decorating: w.characters("decorating"),
		joining:    w.characters("joining"),
		telling:    w.characters("telling"),
		vowels:     w.characters("vowels"),
	}
}
