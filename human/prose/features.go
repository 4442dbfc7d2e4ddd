package prose

import (
	_ "embed" // the common words are a file
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// commonText are the English words that are common in replies. It is read-only.
//
//go:embed common.txt
var commonText string

// Features are what a reply is compared with labelled ones by: those of the whole, and those of each of its clauses and sentences. A
// feature is known by a number that is made from its text.
type Features struct {
	Whole []uint32
	Parts [][]uint32
}

// What features begin with that are not words alone. The weights go by them.
const (
	featureLetters  = "letters "
	featureBegins   = "begins "
	featureShape    = "shape "
	featureBefore   = "before "
	featureAfter    = "after "
	featureRules    = "<rules "
	featureHolds    = "<holds "
	featureContrast = "<but>"
	featureBut      = "but"
)

// featureSet collects features, each once, in the order in which they are met.
type featureSet struct {
	seen map[uint32]bool
	list []uint32
}

func (s *featureSet) addFeature(texts ...string) {
	id := featureID(texts...)
	if !s.seen[id] {
		s.seen[id] = true
		s.list = append(s.list, id)
	}
}

func newFeatureSet() *featureSet { return &featureSet{seen: map[uint32]bool{}} }

// featureID is the number of a feature.
func featureID(texts ...string) uint32 {
	h := fnv.New32a()
	for _, text := range texts {
		h.Write([]byte(text)) //nolint:errcheck // a hash takes everything
	}
	return h.Sum32()
}

// longestRun is how many words in a row a feature has at most.
const longestRun = 4

// runs adds runs of words, and pairs of words with one between them.
func (s *featureSet) runs(prefix string, words []string, pairs bool) {
	for i := range words {
		for n := 1; n <= longestRun && i+n <= len(words); n++ {
			s.addFeature(prefix, strings.Join(words[i:i+n], " "))
		}
		if pairs && i+2 < len(words) {
			s.addFeature(prefix, words[i], " _ ", words[i+2])
		}
	}
}

// letters adds how words begin, and runs of letters in them, so that endings and slips matter less.
func (s *featureSet) letters(words []string, lengths ...int) {
	for _, word := range words {
		rs := []rune(word)
		if len(rs) < 5 || isHan(rs[0]) {
			continue
		}
		for _, n := range lengths {
			for i := 0; i+n <= len(rs); i++ {
				s.addFeature(featureLetters, string(rs[i:i+n]))
			}
		}
	}
}

// features are those of a reply, from its lines, from what its clauses do and from what the rules make of that.
func (r *Reader) features(lines []string, steps []step, rules Reading) Features {
	words := []string{"^"}
	for _, line := range lines {
		if line == "" {
			continue
		}
		if len(words) > 1 {
			words = append(words, "|")
		}
		words = append(words, wordsOf(line)...)
	}
	whole := newFeatureSet()
	words = append(words, "$")
	whole.runs("", words, true)
	whole.letters(words, 4, 5)
	acts := make([][]string, len(steps))
	for i, s := range steps {
		acts[i] = s.actNames()
	}
	whole.sequence(steps, acts)
	whole.addFeature(featureRules, string(rules.Decision), " ", rules.Why, ">")
	return Features{Whole: whole.list, Parts: r.partFeatures(steps, acts)}
}

// actNames are what a clause does, in brackets.
func (s step) actNames() []string {
	var out []string
	for _, c := range slices.Sorted(maps.Keys(s.does)) {
		if s.does[c] && c != neutral {
			out = append(out, "<"+string(c)+">")
		}
	}
	if s.hold != "" {
		out = append(out, featureHolds+s.hold+">")
	}
	if len(out) == 0 {
		out = append(out, "<>")
	}
	return out
}

// sequence adds what clauses do, alone and with what the clause before does.
func (s *featureSet) sequence(steps []step, acts [][]string) {
	before := []string{"<^>"}
	for i, now := range acts {
		if steps[i].asked {
			now = append(slices.Clone(now), "<?>")
		}
		if steps[i].contrast {
			now = append(slices.Clone(now), featureContrast)
		}
		for n, a := range now {
			s.addFeature(a)
			for _, b := range before {
				s.addFeature(b, " ", a)
			}
			for _, b := range now[n+1:] {
				s.addFeature(a, "+", b)
			}
		}
		before = now
	}
	for _, b := range before {
		s.addFeature(b, " <$>")
	}
}

// partFeatures are the features of each clause, and of each sentence that has several.
func (r *Reader) partFeatures(steps []step, acts [][]string) [][]uint32 {
	var out [][]uint32
	var sentence []string
	from := 0
	for i, s := range steps {
		words := wordsOf(s.text)
		begin, end := bounds(steps, i)
		part := newFeatureSet()
		r.wording(part, slices.Concat([]string{begin}, words, []string{end}))
		for n, a := range acts[i] {
			part.addFeature(a)
			part.addFeature(a, end)
			part.addFeature(begin, a)
			for _, b := range acts[i][n+1:] {
				part.addFeature(a, b)
			}
		}
		part.neighbours(acts, i)
		out = append(out, part.list)
		sentence = append(append(sentence, words...), end)
		if i+1 < len(steps) && steps[i+1].sentence == s.sentence {
			continue
		}
		if i > from {
			part = newFeatureSet()
			r.wording(part, append([]string{"S"}, sentence...))
			for _, a := range slices.Concat(acts[from : i+1]...) {
				part.addFeature("S", a)
			}
			out = append(out, part.list)
		}
		sentence, from = nil, i+1
	}
	return out
}

// bounds are how a clause begins and ends.
func bounds(steps []step, i int) (begin, end string) {
	s := steps[i]
	switch {
	case s.contrast:
		begin = featureBut
	case i == 0:
		begin = "^"
	case steps[i-1].sentence != s.sentence:
		begin = "."
	default:
		begin = ","
	}
	switch {
	case s.asked:
		end = "?"
	case s.labels:
		end = ":"
	case s.trails:
		end = "..."
	case i == len(steps)-1:
		end = "$"
	case steps[i+1].sentence != s.sentence:
		end = "."
	default:
		end = ","
	}
	return begin, end
}

// neighbours adds what the clauses before and after one do.
func (s *featureSet) neighbours(acts [][]string, i int) {
	if i > 0 {
		for _, a := range acts[i-1] {
			s.addFeature(featureBefore, a)
		}
	}
	if i+1 < len(acts) {
		for _, a := range acts[i+1] {
			s.addFeature(featureAfter, a)
		}
	}
}

// wording adds the words of a clause: as they are, with the rare ones replaced by how they end, and their letters.
func (r *Reader) wording(s *featureSet, words []string) {
	s.runs("", words, true)
	shapes := make([]string, len(words))
	for i, word := range words {
		shapes[i] = r.shape(word)
	}
	if !slices.Equal(shapes, words) {
		s.runs(featureShape, shapes, false)
	}
	s.letters(words, 4)
	for _, word := range words {
		if rs := []rune(word); len(rs) >= 5 && !isHan(rs[0]) {
			s.addFeature(featureBegins, string(rs[:4]))
		}
	}
}

// shape is a word that is common, or what kind of word a rare one looks like.
func (r *Reader) shape(word string) string {
	if first := firstRune(word); !unicode.IsLetter(first) || isHan(first) || r.common[word] {
		return word
	}
	for _, ending := range r.lex.suffixes.list {
		if strings.HasSuffix(word, ending) {
			return "X" + ending
		}
	}
	return "X"
}

// wordsOf splits a line into words. A word is
//
//   - a run of Latin letters, in full ("do not" for "don't"),
//   - "#" for whatever has a digit in it, "@" for an address,
//   - one Chinese character,
//   - a mark or a sign.
func wordsOf(line string) []string {
	var words []string
	for _, field := range strings.Fields(line) {
		if strings.Contains(field, "://") || strings.Index(field, "@") > 0 {
			words = append(words, "@")
			continue
		}
		for rs := []rune(field); len(rs) > 0; {
			n, digits := wordLength(rs)
			switch {
			case digits:
				if len(words) == 0 || words[len(words)-1] != "#" {
					words = append(words, "#")
				}
			case n > 0:
				words = append(words, strings.TrimRight(string(rs[:n]), "'"))
			default:
				words = append(words, mark(rs[0]))
				n = 1
			}
			rs = rs[n:]
		}
	}
	return words
}

// wordLength is how long the word is that begins here, and whether it has digits in it.
func wordLength(rs []rune) (n int, digits bool) {
	for n < len(rs) && (unicode.IsDigit(rs[n]) || isLatin(rs[n]) || rs[n] == '\'' && n > 0) {
		digits = digits || unicode.IsDigit(rs[n])
		n++
	}
	return n, digits
}

// mark is a mark or a sign in its Latin form.
func mark(r rune) string {
	const chinese, latin = "。｡，、､！？；：（）", "..,,,!?;:()"
	if at := slices.Index([]rune(chinese), r); at >= 0 {
		return latin[at : at+1]
	}
	return string(r)
}
