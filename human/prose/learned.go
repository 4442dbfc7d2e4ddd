package prose

import (
	"cmp"
	_ "embed" // the weights are a file
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// weightText has the weights of features, as TestClassify_Weights of package human learned them from labelled replies. It is read-only.
//
//go:embed weights.txt
var weightText string

// Weight is how much a feature speaks for an approval and for a refusal, rather than for neither.
type Weight struct{ Approve, Refuse float64 }

// Weights are learned from labelled replies. Bias is what a reply without any known feature leans to.
type Weights struct {
	Of   map[string]Weight
	Bias Weight
}

// Chances are how probably a reply approves or refuses, compared with labelled ones; what is left of one does neither.
type Chances struct{ Approve, Refuse float64 }

// Of is the chance of a decision.
func (c Chances) Of(d Decision) float64 {
	switch d {
	case Approve:
		return c.Approve
	case Refuse:
		return c.Refuse
	}
	return 1 - c.Approve - c.Refuse
}

// Leaning is how a reply compares with labelled replies of other people: by its words alone, and by its words and what its clauses do. The first does
// not know the expressions that the rules go by, so that it can tell where they are mistaken.
type Leaning struct{ ByWords, ByActs Chances }

// Of is how much both comparisons lean to a decision, their geometric mean.
func (l Leaning) Of(d Decision) float64 { return math.Sqrt(l.ByWords.Of(d) * l.ByActs.Of(d)) }

// Chances compares features with labelled replies.
func (w Weights) Chances(features []string) Chances {
	approve, refuse, n := 0.0, 0.0, 0
	for _, f := range features {
		if one, ok := w.Of[f]; ok {
			approve, refuse, n = approve+one.Approve, refuse+one.Refuse, n+1
		}
	}
	// A long reply has more features and is not more certain for that.
	scale := 1 / math.Sqrt(float64(max(n, 1)))
	a, b := math.Exp(w.Bias.Approve+scale*approve), math.Exp(w.Bias.Refuse+scale*refuse)
	return Chances{Approve: a / (a + b + 1), Refuse: b / (a + b + 1)}
}

// Weighing is a reader that goes by other weights; with empty ones it goes by the rules alone.
func (r *Reader) Weighing(words, acts Weights) *Reader {
	other := *r
	other.learned = learned{words: words, acts: acts}
	return &other
}

// learned are both tables of weights. Words has none for what clauses do.
type learned struct{ words, acts Weights }

func (l learned) lean(features []string) Leaning {
	return Leaning{ByWords: l.words.Chances(features), ByActs: l.acts.Chances(features)}
}

// WeightStep is the unit of the weights in the file.
const WeightStep = 1.0 / 16

// parseWeights reads a file of weights: lines that begin with "//" say what it is; on the others stand a feature and its weights in steps, with
// tabulators between them: two by words and two by acts, or only the latter for a feature that says what clauses do. The feature without a name is the
// bias.
func parseWeights(text string) learned {
	l := learned{words: Weights{Of: map[string]Weight{}}, acts: Weights{Of: map[string]Weight{}}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "//") {
			continue
		}
		feature, rest, _ := strings.Cut(line, "\t")
		var ns []float64
		for field := range strings.SplitSeq(rest, "\t") {
			n, err := strconv.Atoi(field)
			if err != nil {
				panic("prose: a weight is not a number: " + line)
			}
			ns = append(ns, float64(n)*WeightStep)
		}
		switch {
		case feature == "" && len(ns) == 4:
			l.words.Bias, l.acts.Bias = Weight{ns[0], ns[1]}, Weight{ns[2], ns[3]}
		case len(ns) == 4:
			l.words.Of[feature], l.acts.Of[feature] = Weight{ns[0], ns[1]}, Weight{ns[2], ns[3]}
		case len(ns) == 2:
			l.acts.Of[feature] = Weight{ns[0], ns[1]}
		default:
			panic("prose: a feature has neither two nor four weights: " + line)
		}
	}
	return l
}

// telling are the words of a reply that weigh most for a decision, the heaviest first.
func (l learned) telling(features []string, d Decision) []string {
	type weighed struct {
		text   string
		weight float64
	}
	var all []weighed
	for _, f := range features {
		w := l.words.Of[f]
		weight := w.Approve - max(w.Refuse, 0)
		if d == Refuse {
			weight = w.Refuse - max(w.Approve, 0)
		}
		if weight > 0 && strings.ContainsFunc(f, unicode.IsLetter) && !strings.ContainsAny(f, "^$|_#@") {
			all = append(all, weighed{shown(f), weight})
		}
	}
	slices.SortStableFunc(all, func(a, b weighed) int { return cmp.Compare(b.weight, a.weight) })
	var out []string
	for _, one := range all {
		if utf8.RuneCountInString(one.text) < 2 || slices.ContainsFunc(out, func(s string) bool { return strings.Contains(s, one.text) || strings.Contains(one.text, s) }) {
			continue
		}
		if out = append(out, one.text); len(out) == 3 {
			break
		}
	}
	return out
}

// shown is a feature as a person writes it.
func shown(feature string) string {
	var b strings.Builder
	last := ' '
	for _, word := range strings.Fields(feature) {
		first := firstRune(word)
		if b.Len() > 0 && !isHan(first) && !isHan(last) && (unicode.IsLetter(first)) {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		last = lastRune(word)
	}
	return strings.TrimFunc(b.String(), func(r rune) bool { return unicode.IsPunct(r) || r == ' ' })
}
