// Package prose reads what the words of a reply do: approve, refuse, or neither. It knows no question and no sender; whoever asks it decides what a
// reading is worth. It is pure, and takes time in proportion to the text.
package prose

import (
	_ "embed" // the expressions are a file
	"maps"
	"regexp"
	"slices"
	"strings"
)

// actText has the expressions of each class of acts. It is read-only.
//
//go:embed acts.txt
var actText string

// class is what a part of a clause does.
type class string

// The classes, by the names of their sections. Acts.txt says what each is for.
const (
	neutral   class = "neutral"
	fine      class = "fine"
	past      class = "past"
	double    class = "double"
	unable    class = "unable"
	forbids   class = "forbids"
	idles     class = "idles"
	asks      class = "asks"
	condition class = "condition"
	defers    class = "defers"
	hedges    class = "hedges"
	changes   class = "changes"
	present   class = "present"
	mocks     class = "mocks"
	refuses   class = "refuses"
	partly    class = "partly"
	no        class = "no"
	reports   class = "reports"
	approves  class = "approves"
	goes      class = "goes"
	orders    class = "orders"
	directs   class = "directs"
	tells     class = "tells"
	muses     class = "muses"
	yes       class = "yes"
	spoils    class = "spoils"
	negates   class = "negates"
	verdicts  class = "verdicts"
	grounds   class = "grounds"
	suspends  class = "suspends"
	reopens   class = "reopens"
	trails    class = "trails" // by its punctuation alone
)

// Reader reads replies. It is built once and never changes, so that any number of goroutines may use it.
type Reader struct {
	acts table
	// contractions are written out before anything is read, so that there is one "not" to look for.
	contractions []contraction
	// turning begins a clause that stands against or follows from the one before it, in the middle of a sentence; quotations are words that are
	// mentioned, not said; stamped is a name and a time, as chats write them above what somebody said.
	turning, quotations, stamped *regexp.Regexp
}

// contraction is a short form and what stands for it.
type contraction struct {
	short *regexp.Regexp
	long  string
}

// New compiles what the file says.
func New() *Reader {
	r := &Reader{
		acts:       parseTable(actText),
		turning:    regexp.MustCompile(`\b(?:but|however|because|since|due to)\b|\bso (?:no|yes|please|i|we|that|the|it|go|let|this|you|do)\b|\band (?:i|we|no|yes|please|do not|that is|this|it is|so)\b|但是|但|不过|可是|然而|所以|因此|因为|由于`),
		quotations: regexp.MustCompile(`"[^"]{1,200}"|“[^”]{1,200}”|「[^」]{1,200}」|『[^』]{1,200}』|《[^》]{1,200}》`),
		stamped:    regexp.MustCompile(`^\[?[\p{Han}a-z. ]{2,20}\s*[0-9]{3,6}\]?$`),
	}
	for _, c := range [][2]string{
		{`\bcan't\b|\bcant\b|\bcannot\b`, "can not"}, {`\bwon't\b|\bwont\b`, "will not"}, {`\bshan't\b`, "shall not"}, {`\bain't\b|\baint\b`, "is not"},
		{`\b(do|does|did|is|are|was|were|has|have|had|would|could|should|must|need|might)n'?t\b`, "$1 not"},
		{`\b(i|you|we|they)'ve\b`, "$1 have"}, {`\bive\b`, "i have"}, {`\bi'?m\b`, "i am"}, {`\b(you|we|they)'re\b`, "$1 are"}, {`\b(\w+)'ll\b`, "$1 will"}, {`\b(\w+)'d\b`, "$1 would"},
		{`\blet'?s\b`, "let us"}, {`\b(it|that|this|he|she|what|who|there|here|where|how|everything|all|one|answer)'s\b`, "$1 is"}, {`\bthats\b`, "that is"}, {`'s\b`, ""}, {`s'(\s|$)`, "s$1"},
		{`\bgonna\b`, "going to"}, {`\bwanna\b`, "want to"}, {`\bgotta\b`, "have to"}, {`&`, " and "}, {`\b(dr|mr|mrs|ms|prof|st|e\.g|i\.e|incl|approx|vs)\. `, "$1 "}, {`\b([a-hj-z])\. ?([a-z]{2,})`, "$1 $2"},
		{`([0-9])[.:,]([0-9])`, "$1$2"}, {`\be-mail`, "email"}, {`([a-z])-([a-z])`, "$1 $2"},
	} {
		r.contractions = append(r.contractions, contraction{regexp.MustCompile(c[0]), c[1]})
	}
	return r
}

// table is the expressions of each class, for what has English letters in it and for the rest.
type table map[class]expressions

type expressions struct{ english, chinese *regexp.Regexp }

// parseTable compiles the expressions. The file is part of the program, so a mistake in it is one of the program.
func parseTable(text string) table {
	parts := map[string]string{}
	english, chinese := map[class][]string{}, map[class][]string{}
	var section class
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch name, rest, isPart := strings.Cut(line, " = "); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = class(strings.Trim(line, "[]"))
		case strings.HasPrefix(line, "en: "):
			english[section] = append(english[section], `(?:^|\b)(?:`+strings.TrimPrefix(line, "en: ")+`)(?:\b|$)`)
		case strings.HasPrefix(line, "zh: "):
			chinese[section] = append(chinese[section], strings.TrimPrefix(line, "zh: "))
		case isPart:
			parts["{"+name+"}"] = rest
		default:
			panic("prose: acts.txt has a line that is neither an expression nor a section: " + line)
		}
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		pairs = append(pairs, name, parts[name])
	}
	begins, fill := regexp.MustCompile(`([^\[\\])\^`), strings.NewReplacer(pairs...)
	compile := func(list []string) *regexp.Regexp {
		if len(list) == 0 {
			return nil
		}
		all := fill.Replace(fill.Replace("(?:" + strings.Join(list, ")|(?:") + ")")) // parts may use parts once
		// What was taken before is not there any more.
		all = begins.ReplaceAllString(all, `$1^(?:◌ ?)*`)
		return regexp.MustCompile(strings.ReplaceAll(all, "$", `(?: ?◌)*$`))
	}
	out := table{}
	for _, list := range []map[class][]string{english, chinese} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			out[name] = expressions{compile(english[name]), compile(chinese[name])}
		}
	}
	return out
}

// of are the expressions of a class that a text could match.
func (t table) of(c class, text string) []*regexp.Regexp {
	var latin, other bool
	for _, r := range text {
		latin = latin || r < 0x80 && r != ' '
		other = other || r >= 0x80 && r != '◌'
	}
	var out []*regexp.Regexp
	if x := t[c].english; latin && x != nil {
		out = append(out, x)
	}
	if x := t[c].chinese; other && x != nil {
		out = append(out, x)
	}
	return out
}

// find is what a text has of a class.
func (t table) find(c class, text string) string {
	for _, x := range t.of(c, text) {
		if found := x.FindString(text); found != "" {
			return found
		}
	}
	return ""
}

// finds says whether a text has something of a class in it.
func (t table) finds(c class, text string) bool {
	return slices.ContainsFunc(t.of(c, text), func(x *regexp.Regexp) bool { return x.MatchString(text) })
}

// take takes what is of a class out of a text.
func (t table) take(c class, text string) (rest string, found bool) {
	for _, x := range t.of(c, text) {
		if x.MatchString(text) {
			text, found = x.ReplaceAllString(text, " ◌ "), true
		}
	}
	if !found {
		return text, false
	}
	return strings.Join(strings.Fields(text), " "), true
}
