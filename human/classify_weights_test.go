package human

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tandem/human/prose"
)

var crossValidate = flag.Bool("folds", false, "measure what the reader makes of replies that its weights were not learned from; takes a minute")

// weightsFile is where the weights are.
const weightsFile = "prose/weights.txt"

// trainedOn are the corpora that the weights are learned from. Those named unseen never are. How often one counts: what clauses do looks better in the
// first ones than it is, because the rules have been improved by them.
func trainedOn() []struct {
	name  string
	times int
} {
	return []struct {
		name  string
		times int
	}{{"replies_free.jsonl", 1}, {"replies_more.jsonl", 1}, {"replies_other.jsonl", 1}, {"replies_wild.jsonl", 1}, {"replies_short.jsonl", 1}, {"replies_plain.jsonl", 2}, {"replies_persons.jsonl", 2}}
}

// weightsHead says what the weights were learned from and how.
func weightsHead(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	for _, c := range trainedOn() {
		raw, err := os.ReadFile(filepath.Join("testdata", c.name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %d %d\n%s%q\n", c.name, c.times, len(raw), raw, conditioned(readFree(t, c.name)))
	}
	for _, name := range []string{"replies.jsonl", "requests.json"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(raw), raw)
	}
	return fmt.Sprintf("// How much features of replies weigh: the feature, then for an approval and for a refusal, by words and by acts (see learned.go).\n// Written by: go test ./human -run TestClassify_Weights -update\n// corpora %x\n// rounds %d rate %g decay %g least %d most %d seed %d step %g\n",
		sum.Sum(nil), trainRounds, trainRate, trainDecay, trainLeast, trainMost, trainSeed, prose.WeightStep)
}

// freeSamples are the replies of a corpus that names no questions.
func freeSamples(t *testing.T, name string) (corpus []free, samples []sample) {
	t.Helper()
	corpus = readFree(t, name)
	return corpus, samplesOf(corpus)
}

func samplesOf(corpus []free) (samples []sample) {
	w := theWording()
	for _, f := range corpus {
		samples = append(samples, sample{w.read(f.freely("")).acts.Features, slices.Index([]string{"approve", "reject", "unclear"}, f.Want)})
	}
	return samples
}

// askedSamples are the replies of the corpus with questions that can be understood without them: what is no answer because it is about something else,
// or because of how it came, would teach nothing about words.
func askedSamples(t *testing.T) []sample {
	t.Helper()
	w := theWording()
	var out []sample
	for _, l := range readCorpus(t) {
		want := slices.Index([]string{Confirmed, Rejected, "none"}, l.Label)
		if want < 0 || l.Subject != "" || l.Automatic || l.Listed != nil || l.Threaded != nil || l.question != nil && l.question.Type != Approval {
			continue
		}
		if r := w.read(l.asText()); !r.has(vetoReference) {
			out = append(out, sample{r.acts.Features, want})
		}
	}
	return out
}

// TestClassify_Weights fails when the weights were learned from other corpora or in another way than the repository has; with -update they are learned
// anew.
func TestClassify_Weights(t *testing.T) {
	head := weightsHead(t)
	if *updateConfusion {
		samples := askedSamples(t)
		for _, c := range trainedOn() {
			corpus, some := freeSamples(t, c.name)
			for range c.times {
				samples = append(samples, some...)
			}
			samples = append(samples, samplesOf(conditioned(corpus))...)
		}
		words, acts := train(samples)
		if err := os.WriteFile(weightsFile, []byte(head+weightsTable(words, acts)), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("learned %d features from %d replies", len(acts.Of), len(samples))
	}
	raw, err := os.ReadFile(weightsFile)
	if err != nil {
		t.Fatal(err)
	}
	table, ok := strings.CutPrefix(string(raw), head)
	if !ok {
		t.Fatalf("%s was not learned from the corpora and with the parameters that are here; run go test ./human -run TestClassify_Weights -update", weightsFile)
	}
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	if len(raw) > 400<<10 || len(lines) > trainMost+1 {
		t.Errorf("%s has %d bytes and %d features; it should stay small", weightsFile, len(raw), len(lines))
	}
	if !slices.IsSorted(lines) {
		t.Errorf("%s is not sorted", weightsFile)
	}
}

// weightsTable is the file without its head.
func weightsTable(words, acts prose.Weights) string {
	steps := func(w prose.Weight) string {
		return fmt.Sprintf("\t%d\t%d", int(math.Round(w.Approve/prose.WeightStep)), int(math.Round(w.Refuse/prose.WeightStep)))
	}
	lines := []string{steps(words.Bias) + steps(acts.Bias)}
	for f := range maps.Keys(acts.Of) {
		line := f
		if w, ok := words.Of[f]; ok {
			line += steps(w)
		}
		lines = append(lines, line+steps(acts.Of[f]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// weighing is the wording with other weights.
func (w *wording) weighing(words, acts prose.Weights) *wording {
	other := *w
	other.acts = w.acts.Weighing(words, acts)
	return &other
}

// TestClassify_Folds measures what the reader makes of replies whose weights were learned without them, a fifth of every corpus at a time, beside the
// rules alone. The bars were chosen by this.
func TestClassify_Folds(t *testing.T) {
	if !*crossValidate {
		t.Skip("it only measures, and learns from all replies five times, which takes minutes; run it with -folds")
	}
	const folds = 5
	asked := askedSamples(t)
	corpora, samples := map[string][]free{}, map[string][]sample{}
	for _, c := range trainedOn() {
		corpora[c.name], samples[c.name] = freeSamples(t, c.name)
	}
	all, rules, combined := map[string]map[string]int{}, map[string]map[string]int{}, map[string]map[string]int{}
	wrong := map[string][2]int{}
	alone := map[string][2]int{}
	for fold := range folds {
		learn := slices.Clone(asked)
		for _, c := range trainedOn() {
			var others []free
			for i, s := range samples[c.name] {
				if i%folds == fold {
					continue
				}
				others = append(others, corpora[c.name][i])
				for range c.times {
					learn = append(learn, s)
				}
			}
			learn = append(learn, samplesOf(conditioned(others))...)
		}
		w := theWording().weighing(train(learn))
		ruled := theWording().weighing(prose.Weights{}, prose.Weights{})
		for _, c := range trainedOn() {
			var some []free
			for i, f := range corpora[c.name] {
				if i%folds != fold {
					continue
				}
				some = append(some, f)
				lean := w.read(f.freely("")).acts.Leaning
				best := slices.MaxFunc([]prose.Decision{prose.None, prose.Approve, prose.Refuse}, func(a, b prose.Decision) int { return cmp.Compare(lean.Of(a), lean.Of(b)) })
				n := alone[c.name]
				n[1]++
				if map[prose.Decision]string{prose.None: "unclear", prose.Approve: "approve", prose.Refuse: "reject"}[best] == f.Want {
					n[0]++
				}
				alone[c.name] = n
			}
			n := wrong[c.name]
			a, byRules, m := confusion(t, ruled, some, "", len(some))
			n[0] += m
			_, byBoth, m := confusion(t, w, some, "", len(some))
			n[1] += m
			wrong[c.name] = n
			for sum, one := range map[*map[string]map[string]int]map[string]int{&all: a, &rules: byRules, &combined: byBoth} {
				if (*sum)[c.name] == nil {
					(*sum)[c.name] = map[string]int{}
				}
				for k, v := range one {
					(*sum)[c.name][k] += v
				}
			}
		}
	}
	for _, c := range trainedOn() {
		a := all[c.name]
		percent := func(found map[string]int) string {
			return fmt.Sprintf("%.1f %% and %.1f %%", 100*float64(found["approve"])/float64(a["approve"]), 100*float64(found["reject"])/float64(a["reject"]))
		}
		t.Logf("%s: rules alone %s, %d false; combined %s, %d false; leaning alone is right about %d of %d", c.name, percent(rules[c.name]), wrong[c.name][0], percent(combined[c.name]), wrong[c.name][1], alone[c.name][0], alone[c.name][1])
	}
}
