package human

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"tandem/human/prose"
)

// sample is a labelled reply as the trainer sees it: 0 approves, 1 refuses, 2 does neither.
type sample struct {
	features []string
	want     int
}

// The parameters of training; the file of weights names them.
const (
	trainRounds = 14
	trainRate   = 0.5
	trainDecay  = 1e-4
	trainLeast  = 2     // replies that a feature has to be in
	trainMost   = 14000 // features that are kept
	trainSeed   = 1
)

// train learns the weights of the features that weigh most, of words alone and of words and acts.
func train(samples []sample) (words, acts prose.Weights) {
	count := map[string]int{}
	for _, s := range samples {
		for _, f := range s.features {
			count[f]++
		}
	}
	var names []string
	for f, n := range count {
		if n >= trainLeast {
			names = append(names, f)
		}
	}
	slices.Sort(names)
	acts = trainOn(samples, names)
	if len(names) > trainMost {
		weighs := func(f string) float64 {
			w := acts.Of[f]
			return math.Sqrt(float64(count[f])) * (math.Abs(w.Approve) + math.Abs(w.Refuse) + math.Abs(w.Approve-w.Refuse))
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(weighs(b), weighs(a)), cmp.Compare(a, b)) })
		names = names[:trainMost]
		slices.Sort(names)
		acts = trainOn(samples, names)
	}
	return trainOn(samples, slices.DeleteFunc(names, ofActs)), acts
}

// ofActs says whether a feature is about what clauses do.
func ofActs(feature string) bool { return strings.HasPrefix(feature, "<") && len(feature) > 1 }

// trainOn learns the weights of the named features. The order of the replies follows from the seed alone.
func trainOn(samples []sample, names []string) prose.Weights {
	at := make(map[string]int, len(names))
	for i, f := range names {
		at[f] = i + 1 // the first is the bias
	}
	rows := make([][]int, len(samples))
	for i, s := range samples {
		for _, f := range s.features {
			if n, ok := at[f]; ok {
				rows[i] = append(rows[i], n)
			}
		}
	}
	weights, squares, sums := make([][3]float64, len(names)+1), make([][3]float64, len(names)+1), make([][3]float64, len(names)+1)
	order := make([]int, len(samples))
	for i := range order {
		order[i] = i
	}
	random := rand.New(rand.NewPCG(trainSeed, trainSeed))
	for round := range trainRounds {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			scale := 1 / math.Sqrt(float64(max(len(rows[i]), 1)))
			p := weights[0]
			for c := range p {
				for _, f := range rows[i] {
					p[c] += scale * weights[f][c]
				}
			}
			top, sum := max(p[0], p[1], p[2]), 0.0
			for c := range p {
				p[c] = math.Exp(p[c] - top)
				sum += p[c]
			}
			for c := range p {
				g := p[c] / sum
				if c == samples[i].want {
					g--
				}
				if math.Abs(g) < 1e-4 {
					continue
				}
				step := func(f int, g float64) {
					squares[f][c] += g * g
					weights[f][c] -= trainRate * g / math.Sqrt(squares[f][c]+1e-6)
				}
				step(0, g)
				for _, f := range rows[i] {
					step(f, g*scale+trainDecay*weights[f][c])
				}
			}
		}
		if round >= trainRounds/2 {
			for f := range weights {
				for c := range weights[f] {
					sums[f][c] += weights[f][c] / float64(trainRounds-trainRounds/2)
				}
			}
		}
	}
	out := prose.Weights{Of: make(map[string]prose.Weight, len(names)), Bias: prose.Weight{Approve: sums[0][0] - sums[0][2], Refuse: sums[0][1] - sums[0][2]}}
	for i, f := range names {
		out.Of[f] = prose.Weight{Approve: sums[i+1][0] - sums[i+1][2], Refuse: sums[i+1][1] - sums[i+1][2]}
	}
	return out
}

// conditioned are replies that approve, put under a condition, with an exception or into somebody else's mouth, so that they do neither: approvals alone
// would teach that whatever stands beside one is harmless. Every other short approval is turned once. TestClassify_Turned has other words for it.
func conditioned(corpus []free) (out []free) {
	forms := map[string][]string{
		"en": {"%s when the client has signed.", "As soon as IT confirms, %s", "%s, apart from the second line.", "Tom says %s", "%s after the audit is through.", "Should the board agree, %s", "%s, but swap the venue first.", "%s, though only half of it.", "%s, excluding the bar bill.", "%s, on condition that HR signs too.", "%s, minus the travel part.", "Finance replied: %s", "%s, only if it stays below budget."},
		"zh": {"假如客户签字了，%s", "%s，第三条除外", "%s，不过先把日期改了", "小李的意思是%s", "等审计结束，%s", "%s，条件是法人签字", "%s，只批一半", "验收合格的话，%s", "%s，但得先补材料", "一旦预算下来，%s", "%s，扣掉差旅那部分", "财务回复：%s"},
	}
	n := 0
	for i, f := range corpus {
		text := strings.TrimRight(f.Text, ".!。！ ")
		if f.Want != "approve" || i%2 != 0 || len([]rune(text)) > 80 || strings.Contains(text, "\n") {
			continue
		}
		some := forms[f.freely("").Request.Language]
		out = append(out, free{Text: fmt.Sprintf(some[n%len(some)], text), Want: "unclear"})
		n++
	}
	return out
}
