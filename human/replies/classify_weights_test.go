package replies

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tandem/human/form"
	"tandem/human/prose"
)

var crossValidate = flag.Bool("writers", false, "measure what the reader makes of each writer's replies when it has learned from the others; takes minutes")

// weightsFile is where the weights are.
const weightsFile = "../prose/weights.bin"

// trainedOn are the corpora that the weights are learned from, each of one writer or several. Those named unseen never are.
func trainedOn() []string {
	return []string{
		"replies_free.jsonl", "replies_more.jsonl", "replies_other.jsonl", "replies_wild.jsonl", "replies_short.jsonl", "replies_plain.jsonl", "replies_persons.jsonl",
		"replies_everyday.jsonl", "replies_hard.jsonl", "replies_voices_en.jsonl", "replies_voices_zh.jsonl", "replies_voices_trades.jsonl", "replies_voices_letters.jsonl",
		"replies_office.jsonl", "replies_messages.jsonl", "replies_business.jsonl", "replies_services.jsonl", "replies_households.jsonl", "replies_misleading.jsonl", "replies_consents.jsonl", "replies_trades.jsonl",
		"replies_small_firms.jsonl", "replies_departments.jsonl", "replies_texting.jsonl", "replies_neighbours.jsonl",
		"replies_exam_first.jsonl", "replies_exam_second.jsonl", "replies_near_misses.jsonl", "replies_private.jsonl", "replies_engineers.jsonl", "replies_ranks.jsonl",
		"replies_lengths.jsonl", "replies_regions.jsonl", "replies_general.jsonl",
	}
}

// weightsHead says what the weights were learned from and how.
func weightsHead(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	for _, name := range append(trainedOn(), "replies.jsonl", "requests.json") {
		raw, err := os.ReadFile(filepath.Join("..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(raw), raw)
		if strings.HasPrefix(name, "replies_") {
			fmt.Fprintf(sum, "%q\n", varied(readFree(t, name)))
		}
	}
	return fmt.Sprintf("How much features of replies weigh (see net.go), written by: go test ./human/replies -run TestClassify_Weights -update\ncorpora %x\nrounds %d and %d rate %g decay %g drop %g least %d most %d width %d nets %d\n\n",
		sum.Sum(nil), trainFirst, trainRounds, trainRate, trainDecay, trainDrop, trainLeast, trainMost, trainWidth, trainNets)
}

func samplesOf(p *prose.Reader, corpus []free) []sample {
	samples := make([]sample, len(corpus))
	atOnce(len(corpus), func(i int) {
		samples[i] = sample{read(p, corpus[i].freely("")).Reading.Features, slices.Index([]string{"approve", "reject", "unclear"}, corpus[i].Want)}
	})
	return samples
}

// atOnce does something for each of a number of things, several at a time.
func atOnce(n int, do func(int)) {
	var working sync.WaitGroup
	const workers = 4
	for w := range workers {
		working.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	working.Wait()
}

// askedSamples are the replies of the corpus with questions that can be understood without them: what is not an answer because it is about
// something else, or because of how it came, would teach nothing about words.
func askedSamples(t *testing.T) []sample {
	t.Helper()
	rules := theReader().Weighing() // what is learned must not depend on what was learned before
	var out []sample
	for _, l := range readCorpus(t) {
		want := slices.Index([]string{form.Confirmed, form.Rejected, "none"}, l.Label)
		if want < 0 || l.Subject != "" || l.Automatic || l.Listed != nil || l.Threaded != nil || l.question != nil && l.question.Type != form.Approval {
			continue
		}
		if r := read(rules, l.asText()); r.Elsewhere == "" && len(r.Against) == 0 {
			out = append(out, sample{r.Reading.Features, want})
		}
	}
	return out
}

// TestClassify_Weights fails when the weights were learned from other corpora or in another way than the repository has; with -update they
// are learned anew.
func TestClassify_Weights(t *testing.T) {
	head := weightsHead(t)
	if *updateConfusion {
		samples := askedSamples(t)
		for _, name := range trainedOn() {
			corpus := readFree(t, name)
			samples = append(samples, samplesOf(theReader().Weighing(), slices.Concat(corpus, varied(corpus)))...)
		}
		if err := os.WriteFile(weightsFile, append([]byte(head), prose.FormatNets(train(samples))...), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("learned from %d replies", len(samples))
	}
	raw, err := os.ReadFile(weightsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(raw, []byte(head)) {
		t.Fatalf("%s was not learned from the corpora and with the parameters that are here; run go test ./human/replies -run TestClassify_Weights -update", weightsFile)
	}
	if len(raw) > 3<<20 {
		t.Errorf("%s has %d bytes; it should stay small", weightsFile, len(raw))
	}
	if nets := prose.ParseNets(raw); len(nets) != trainNets || len(nets[0].Index) > trainMost {
		t.Errorf("%s has %d networks, the first with %d features", weightsFile, len(nets), len(nets[0].Index))
	}
}

// writersAside is into how many parts the writers are divided: what is learned from all but one part is measured on that part.
const writersAside = 8

// TestClassify_Writers measures what the reader makes of the replies of each writer when its weights were learned without them, three or
// four writers at a time.
func TestClassify_Writers(t *testing.T) {
	if !*crossValidate {
		t.Skip("it only measures, and learns from nearly all replies again and again, which takes minutes; run it with -writers")
	}
	asked := askedSamples(t)
	samples := map[string][]sample{}
	for _, name := range trainedOn() {
		corpus := readFree(t, name)
		samples[name] = samplesOf(theReader().Weighing(), slices.Concat(corpus, varied(corpus)))
	}
	for part := range writersAside {
		var aside []string
		learn := slices.Clone(asked)
		for i, name := range trainedOn() {
			if i%writersAside == part {
				aside = append(aside, name)
			} else {
				learn = append(learn, samples[name]...)
			}
		}
		p := theReader().Weighing(prose.ParseNets(append([]byte("\n\n"), prose.FormatNets(train(learn))...))...)
		for _, writer := range aside {
			corpus := readFree(t, writer)
			count, right, wrong := confusion(t, p, corpus, "", len(corpus))
			t.Logf("%s: approvals %d of %d, refusals %d of %d, false %d", writer, right["approve"], count["approve"], right["reject"], count["reject"], wrong)
		}
	}
}
