// Package prose reads replies: what of a message its sender wrote now, what their words decide (approve, refuse or neither), and whether
// that is about what was asked. Its words, expressions, phrases and weights are files. It is pure, and takes time in proportion to the
// text.
package prose

import (
	"cmp"
	_ "embed" // the expressions are a file
	"maps"
	"regexp"
	"regexp/syntax"
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
	attends   class = "attends"
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
	corrects  class = "corrects"
	pauses    class = "pauses"
	laughs    class = "laughs"
	undoes    class = "undoes"
	own       class = "own"
	rejects   class = "rejects"
	today     class = "today"
	outright  class = "outright"
	withholds class = "withholds"
	addresses class = "addresses"
	deeds     class = "deeds"
	times     class = "times"
	later     class = "later"
	strictly  class = "strictly"
	invites   class = "invites"
	supposes  class = "supposes"
	agrees    class = "agrees"
	// unresolved is a correction that says of the sender's own words that they were not meant.
	unresolved class = "unresolved"
	turnsNo    class = "turns no"
	// binds leaves open whatever stands beside it. It is not among what a clause does: only combined asks for it.
	binds class = "binds"
)

// holding is the first word of the sections of what keeps others from deciding.
const holding = "holds "

// What keeps others from deciding that is no class of its own.
const (
	holdDenies = "denies"
	holdUnsure = "unsure"
)

// Reasons against a decision that are no class.
const (
	whyContrast = "contrast" // a "but"
	whyFragment = "fragment" // a word alone, of which nothing is known
	whyMixed    = "mixed"    // words for it and against it
	whyOrder    = "order"    // an order that may be about something else
	whyRemark   = "remark"   // something beside a yes, of which nothing is known
)

// What keeps others from deciding, in clauses that decide nothing. Their names are those of the sections without the first word.
const (
	holdsCondition class = "holds condition"
	holdsAsks      class = "holds asks"
	holdsDefers    class = "holds defers"
	holdsUnsure    class = "holds unsure"
	holdsChanges   class = "holds changes"
	holdsExcept    class = "holds except"
	holdsDenies    class = "holds denies"
)

// Reader reads replies. It is built once and never changes, so that any number of goroutines may use it.
type Reader struct {
	acts table
	// nets were learned from labelled replies; common are the words that they know as words.
	nets   []*Net
	common map[string]bool
	lex    *lexicon
	// What a reply is cleaned and compared with its question by.
	normal  *normalizer
	phrases *phrases
	cleaner *cleaner
	asker   *asker
	arrival arrival
	// contractions are written out before anything is read, so that there is one "not" to look for.
	contractions []rewriting
	// known are the English words of the table, and its pairs of Chinese characters; slips are words that decide with a letter left out,
	// doubled or swapped.
	known map[string]bool
	slips map[string]string
	// turning begins a clause that stands against or follows from the one before it, in the middle of a sentence; quotations are words that
	// are mentioned, not said; stamped is a name and a time, as chats write them above what somebody said.
	turning, quotations, stamped, words *regexp.Regexp
}

// New compiles what the files say.
func New() *Reader { return newReader(parseWords(wordText)) }

func newReader(w *wordFile) *Reader {
	normal, found, lex := newNormalizer(w), newPhrases(w), newLexicon(w)
	r := &Reader{
		acts:         parseTable(actText, lex),
		nets:         ParseNets(weightData),
		common:       wordSet(commonText),
		lex:          lex,
		normal:       &normal,
		contractions: w.rewrite("contractions"),
		phrases:      found,
		cleaner:      newCleaner(w, &normal, found),
		asker:        newAsker(w, &normal, found),
		arrival:      newArrival(w),
		turning:      w.expression("turning"),
		quotations:   w.expression("quotations"),
		words:        regexp.MustCompile(`[a-z]{3,}`),
		stamped:      w.expression("stamped"),
	}
	r.known = map[string]bool{}
	for _, word := range regexp.MustCompile(`[a-z]+`).FindAllString(actText, -1) {
		r.known[word] = true
	}
	for _, run := range regexp.MustCompile(`\p{Han}{2,}`).FindAllString(actText, -1) {
		for rs := []rune(run); len(rs) > 1; rs = rs[1:] {
			r.known[string(rs[:2])] = true
		}
	}
	r.slips = slips(w.list("misspelt"), r.known)
	return r
}

// slips are the usual ones in words that decide: a letter left out, doubled or swapped with the next one, never the first or the last. What
// is a word of the table is none.
func slips(misspelt wordList, known map[string]bool) map[string]string {
	out := map[string]string{}
	for _, word := range misspelt.list {
		for i := 1; i < len(word)-1; i++ {
			found := []string{word[:i] + word[i+1:], word[:i] + word[i:i+1] + word[i:]}
			if i+2 < len(word) {
				found = append(found, word[:i]+word[i+1:i+2]+word[i:i+1]+word[i+2:])
			}
			for _, slip := range found {
				if !known[slip] {
					out[slip] = word
				}
			}
		}
	}
	return out
}

// table is the expressions of all classes, and which of them a text could match at all.
type table struct {
	lex     *lexicon
	classes map[class][]*regexp.Regexp
	// always are the expressions without letters that every match has; by has the others by the first bytes of what a match has to have in
	// it.
	always []entry
	by     map[string][]entry
}

// entry is an expression of a class.
type entry struct {
	class class
	at    int
}

// view is the part of the table that a text, or what is left of it, could match.
type view map[class][]*regexp.Regexp

// What an expression begins with: the language that it is in.
const (
	inEnglish = "en: "
	inChinese = "zh: "
)

// keyLength is how many bytes of a literal the index goes by: one Chinese character, or three letters.
const keyLength = 3

// parseTable compiles the expressions. The file is part of the program, so a mistake in it is one of the program.
func parseTable(text string, lex *lexicon) table {
	parts := map[string]string{}
	lines := map[class][]string{}
	var section class
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch name, rest, isPart := strings.Cut(line, " = "); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = class(strings.Trim(line, "[]"))
		case strings.HasPrefix(line, inEnglish), strings.HasPrefix(line, inChinese):
			lines[section] = append(lines[section], line)
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
	fill := strings.NewReplacer(pairs...)
	beginning := regexp.MustCompile(`([^\[\\])\^`) // where an expression wants the beginning of a text
	out := table{lex: lex, classes: map[class][]*regexp.Regexp{}, by: map[string][]entry{}}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		for _, line := range lines[name] {
			english := strings.HasPrefix(line, inEnglish)
			for _, one := range alternatives(fill.Replace(fill.Replace(line[len(inEnglish):]))) { // parts may use parts once
				out.addPattern(name, one, english, beginning)
			}
		}
	}
	return out
}

// addPattern compiles an alternative. English ones match whole words.
func (t *table) addPattern(name class, one string, english bool, beginning *regexp.Regexp) {
	if english {
		one = `(?:^|\b)(?:` + one + `)(?:\b|$)`
	}
	one = "(?:" + one + ")"
	needs := literals(one)
	// What was taken before is not there any more.
	one = beginning.ReplaceAllString(one, `$1^(?:◌ ?)*`)
	one = strings.ReplaceAll(one, "$", `(?: ?◌)*$`)
	e := entry{name, len(t.classes[name])}
	t.classes[name] = append(t.classes[name], regexp.MustCompile(one))
	if len(needs) == 0 {
		t.always = append(t.always, e)
		return
	}
	for _, need := range needs {
		key := need[:min(len(need), keyLength)]
		if at := t.by[key]; len(at) == 0 || at[len(at)-1] != e {
			t.by[key] = append(at, e)
		}
	}
}

// alternatives splits an expression where it offers a choice that is not within brackets.
func alternatives(expression string) []string {
	var out []string
	depth, from, class := 0, 0, false
	for i := 0; i < len(expression); i++ {
		switch c := expression[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			out = append(out, expression[from:i])
			from = i + 1
		}
	}
	return append(out, expression[from:])
}

// literals are texts of which every match has at least one in it; none if that cannot be said.
func literals(expression string) []string {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		panic("prose: acts.txt: " + err.Error())
	}
	return required(re.Simplify())
}

func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCharClass:
		var out []string
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i+1]-re.Rune[i] > 16 || len(out) > 64 {
				return nil
			}
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				out = append(out, string(r))
			}
		}
		return out
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if one := required(sub); len(one) > 0 && (best == nil || shortest(one) > shortest(best) ||
				shortest(one) == shortest(best) && len(one) < len(best)) {
				best = one
			}
		}
		return best
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			one := required(sub)
			if len(one) == 0 {
				return nil
			}
			out = append(out, one...)
		}
		return out
	}
	return nil
}

// shortest is how much of a text the index can go by.
func shortest(texts []string) int {
	n := keyLength
	for _, one := range texts {
		n = min(n, len(one))
	}
	return n
}

// of is what a text could match, in the order of the table.
func (t *table) of(text string) view {
	found := slices.Clone(t.always)
	seen := map[string]bool{}
	for i := range len(text) {
		for n := 1; n <= keyLength && i+n <= len(text); n++ {
			if key := text[i : i+n]; !seen[key] {
				seen[key] = true
				found = append(found, t.by[key]...)
			}
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.at, b.at)) })
	out := view{}
	for _, e := range slices.Compact(found) {
		out[e.class] = append(out[e.class], t.classes[e.class][e.at])
	}
	return out
}

// find is what a text has of a class.
func (t *table) find(c class, text string) string {
	for _, x := range t.of(text)[c] {
		if found := x.FindString(text); found != "" {
			return found
		}
	}
	return ""
}

// finds says whether a text has something of a class in it.
func (v view) finds(c class, text string) bool {
	return slices.ContainsFunc(v[c], func(x *regexp.Regexp) bool { return x.MatchString(text) })
}

// takeClass takes what is of a class out of a text: what stands first, and of that the longest.
func (v view) takeClass(c class, text string) (rest string, found bool) {
	candidates := slices.Clone(v[c])
	var b strings.Builder
	for len(candidates) > 0 {
		from, to := -1, -1
		for i := 0; i < len(candidates); i++ {
			at := candidates[i].FindStringIndex(text)
			if at == nil || at[0] == at[1] {
				candidates = slices.Delete(candidates, i, i+1)
				i--
				continue
			}
			if from < 0 || at[0] < from || at[0] == from && at[1] > to {
				from, to = at[0], at[1]
			}
		}
		if from < 0 {
			break
		}
		found = true
		b.WriteString(text[:from])
		b.WriteString(" ◌ ")
		text = text[to:]
	}
	if !found {
		return text, false
	}
	b.WriteString(text)
	return strings.Join(strings.Fields(b.String()), " "), true
}
