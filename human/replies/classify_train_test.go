package replies

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"tandem/human/prose"
)

// sample is a labelled reply as the trainer sees it: 0 approves, 1 refuses, 2 does neither.
type sample struct {
	features prose.Features
	want     int
}

// The parameters of training; the file of weights names them.
const (
	trainRounds = 12
	trainFirst  = 4 // rounds after which it is seen which features weigh most
	trainRate   = 0.1
	trainDecay  = 1e-5
	trainDrop   = 0.3   // of the features, anew in each round, so that none is relied on alone
	trainLeast  = 4     // replies that a feature has to be in
	trainMost   = 48000 // features that are kept
	trainWidth  = 16
	trainNets   = 3
)

// train learns networks that differ by their seed. Only the features that weigh most are kept, which takes learning twice.
func train(samples []sample) []*prose.Net {
	count := map[uint32]int{}
	for _, s := range samples {
		seen := map[uint32]bool{}
		for _, features := range append(s.features.Parts, s.features.Whole) {
			for _, f := range features {
				if !seen[f] {
					seen[f] = true
					count[f]++
				}
			}
		}
	}
	maps.DeleteFunc(count, func(_ uint32, n int) bool { return n < trainLeast })
	all := slices.Sorted(maps.Keys(count))
	nets := make([]*prose.Net, trainNets)
	var learning sync.WaitGroup
	for i := range nets {
		learning.Go(func() {
			first := trainOn(samples, all, uint64(i+1), trainFirst)
			nets[i] = trainOn(samples, weightiest(first, all, count), uint64(i+1), trainRounds)
		})
	}
	learning.Wait()
	return nets
}

// weightiest are the features that weigh most in a network, by how often they are met.
func weightiest(n *prose.Net, all []uint32, count map[uint32]int) []uint32 {
	if len(all) <= trainMost {
		return all
	}
	weight := make(map[uint32]float64, len(all))
	for _, f := range all {
		at, sum := n.Index[f], 0.0
		for _, w := range n.Parts[at*n.Width : (at+1)*n.Width] {
			sum += float64(w * w)
		}
		for _, w := range n.Whole[at*prose.Outcomes : (at+1)*prose.Outcomes] {
			sum += float64(w * w)
		}
		weight[f] = math.Sqrt(sum * float64(count[f]))
	}
	kept := slices.Clone(all)
	slices.SortFunc(kept, func(a, b uint32) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) })
	kept = kept[:trainMost]
	slices.Sort(kept)
	return kept
}

// learner learns a network step by step. Each weight has its own rate, which falls with what it has moved (Adagrad).
type learner struct {
	*prose.Net
	parts, whole, partBias, out []float32
	bias                        [prose.Outcomes]float32
}

// trainOn learns the weights of the given features. The order of the replies, where the weights start and what is dropped follow from the
// seed alone.
func trainOn(samples []sample, features []uint32, seed uint64, rounds int) *prose.Net {
	random := rand.New(rand.NewPCG(seed, 7))
	n := prose.NewNet(trainWidth, features)
	for i := range n.Parts {
		n.Parts[i] = float32(random.NormFloat64() * 0.1)
	}
	for i := range n.Out {
		n.Out[i] = float32(random.NormFloat64() * 0.3)
	}
	l := learner{Net: n, parts: make([]float32, len(n.Parts)), whole: make([]float32, len(n.Whole)), partBias: make([]float32, n.Width), out: make([]float32, len(n.Out))}
	rows := make([]struct {
		whole prose.Known
		parts []prose.Known
	}, len(samples))
	for i, s := range samples {
		rows[i].whole = n.Known(s.features.Whole)
		for _, part := range s.features.Parts {
			rows[i].parts = append(rows[i].parts, n.Known(part))
		}
	}
	some := func(all prose.Known) prose.Known {
		out := prose.Known{At: make([]int, 0, len(all.At)), Share: all.Share / float32(math.Sqrt(1-trainDrop))}
		for _, f := range all.At {
			if random.Float32() >= trainDrop {
				out.At = append(out.At, f)
			}
		}
		return out
	}
	order := random.Perm(len(samples))
	for range rounds {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			parts := make([]prose.Known, len(rows[i].parts))
			for p := range parts {
				parts[p] = some(rows[i].parts[p])
			}
			l.learn(some(rows[i].whole), parts, samples[i].want)
		}
	}
	return n
}

// moved changes a weight against its gradient.
func moved(weight, squares *float32, gradient float32) {
	*squares += gradient * gradient
	*weight -= trainRate * gradient / float32(math.Sqrt(float64(*squares+1e-6)))
}

// learn moves all weights towards what a reply is labelled as.
func (l *learner) learn(whole prose.Known, parts []prose.Known, want int) {
	p := l.Forward(whole, parts)
	gradient := p.Outcome
	gradient[want]--
	for c, g := range gradient {
		moved(&l.Bias[c], &l.bias[c], g)
	}
	for _, f := range whole.At {
		weights, squares := l.Whole[f*prose.Outcomes:(f+1)*prose.Outcomes], l.whole[f*prose.Outcomes:(f+1)*prose.Outcomes]
		for c, g := range gradient {
			moved(&weights[c], &squares[c], g*whole.Share+trainDecay*weights[c])
		}
	}
	if len(parts) == 0 {
		return
	}
	strongest, mean := make([]float32, l.Width), make([]float32, l.Width)
	for j := range l.Width {
		for c, g := range gradient {
			at := c*2*l.Width + j
			strongest[j] += g * l.Out[at]
			mean[j] += g * l.Out[at+l.Width]
			moved(&l.Out[at], &l.out[at], g*p.Acts[p.Strongest[j]][j]+trainDecay*l.Out[at])
			moved(&l.Out[at+l.Width], &l.out[at+l.Width], g*p.Mean[j]+trainDecay*l.Out[at+l.Width])
		}
	}
	component := make([]float32, l.Width)
	for i, part := range parts {
		for j, act := range p.Acts[i] {
			g := mean[j] / float32(len(parts))
			if p.Strongest[j] == i {
				g += strongest[j]
			}
			g *= 1 - act*act
			moved(&l.PartBias[j], &l.partBias[j], g)
			component[j] = g * part.Share
		}
		for _, f := range part.At {
			weights, squares := l.Parts[f*l.Width:(f+1)*l.Width], l.parts[f*l.Width:(f+1)*l.Width]
			for j, g := range component {
				moved(&weights[j], &squares[j], g+trainDecay*weights[j])
			}
		}
	}
}

// varied are replies of a corpus as others might have put them. A decision that is put under a condition, put off, limited, or told of
// somebody else is none any more: approvals and refusals alone would teach that whatever stands beside one is harmless. With small talk
// around it a reply means what it meant. Short replies are varied once or twice, in turn. TestClassify_Turned has other words for it.
func varied(corpus []free) (out []free) {
	n := 0
	for i, f := range corpus {
		text := strings.TrimRight(f.Text, ".!。！ ")
		if len([]rune(text)) > 80 || strings.Contains(text, "\n") {
			continue
		}
		language := f.freely("").Request.Language
		fill := func(forms []string) string {
			n++
			form := forms[n%len(forms)]
			form = strings.ReplaceAll(form, "WHO", peopleSpokenOf(language)[n/3%len(peopleSpokenOf(language))])
			return strings.ReplaceAll(form, "%s", text)
		}
		if f.Want != "unclear" && i%2 == 0 {
			forms := undeciding(language)
			if f.Want == "approve" {
				forms = append(forms, leavingOpen(language)...)
			}
			out = append(out, free{Text: fill(forms), Want: "unclear"})
		}
		if i%3 != 1 {
			out = append(out, free{Text: fill(smallTalk(language)), Want: f.Want})
		}
	}
	return out
}

// undeciding are forms that leave open what is put into them.
func undeciding(language string) []string {
	if language == "zh" {
		return strings.Fields("假如客户签字了，%s %s，第三条除外 %s，不过先把日期改了 WHO的意思是%s 等审计结束，%s %s，条件是法人签字 %s，只批一半 验收合格的话，%s %s，但得先补材料 一旦预算下来，%s %s，扣掉差旅那部分 WHO回复：%s WHO说%s WHO跟我讲“%s” 我听WHO说，%s WHO估计会说%s 上回WHO也是这么写的：%s 要是下雨，%s %s？我还没想好 %s……还是等WHO看了再说 %s，不过最后WHO拍板 %s，但英文版先放一放 一部分%s，一部分再看 我倾向于%s，明天答复你 %s，这话是WHO说的，不是我 如果WHO不反对，%s 上一份我写的是%s，这份还没看 %s的前提是WHO到场 我要是你，我就写%s 我差点就回%s了，先让我看完")
	}
	return strings.Split("%s when the client has signed.|As soon as IT confirms, %s|%s, apart from the second line.|WHO says %s|%s after the audit is through.|Should the board agree, %s|%s, but swap the venue first.|%s, though only half of it.|%s, excluding the bar bill.|%s, on condition that HR signs too.|%s, minus the travel part.|WHO replied: %s|%s, only if it stays below budget.|WHO told me: %s|According to WHO, %s|WHO wrote \"%s\" and I have not read it yet.|I heard WHO say %s|Supposing WHO can be there, %s|Depending on the weather, %s|%s? I have not made up my mind.|%s... let me ask WHO first.|%s, but WHO has the last word.|For the first batch: %s. For the second I need to think.|I am leaning towards: %s. Tomorrow I will tell you.|%s, that is what WHO wants, not what I said.|Barring any objection from WHO, %s|Last time I wrote: %s. This one I have not seen.|If I were you I would write: %s|I nearly answered: %s. Let me read to the end first.|WHO is happy. WHO always writes: %s|Half of me says %s, the other half does not.|Once WHO is back, %s", "|")
}

// leavingOpen are forms that leave an approval open; a refusal in them would stay one.
func leavingOpen(language string) []string {
	if language == "zh" {
		return strings.Fields("%s，就差WHO的章了 %s。最后由WHO定。 %s。只等WHO一句话。 %s，不过这事WHO说了算，我已经抄送他了 %s，就是运费谁出没写清楚 我这边%s，WHO那边还没签 概念上%s，合同另说 %s，只是附件好像缺了一页，你补一下 %s，发现一处数字对不上，你核对下 WHO签完我就回你：%s 差点意思，要不然我就%s了 %s，这是对上一单说的，这单是啥 让WHO把欠的单子清了，%s")
	}
	return strings.Split("%s from our side. Over to WHO for the decision.|%s. Now we are waiting for WHO to give the word.|%s to the idea. The order itself needs a separate decision.|%s, bar the bank guarantee, please chase it.|%s. Have you noticed that the terms have changed?|Send me the two references and then it is: %s|%s. That was for the one on Tuesday. The one you ask about today is new to me.|%s, that is what I would write were it my budget.|I am pleased to say that the papers have come. WHO will say whether it is %s|%s, with pleasure, I will take a look this evening.|Make the heading bigger and then %s|%s. One of the attachments does not open, send it once more.|%s. I ought to stay out of this one though, ask WHO.|%s. The third point I want to go through with WHO.", "|")
}

// smallTalk are forms that change nothing about what is put into them.
func smallTalk(language string) []string {
	if language == "zh" {
		return strings.Fields("刚开完会。%s。 %s。晚上一起吃饭啊。 早上好！%s。 %s。辛苦大家了。 路上信号不好，简单回一下：%s。 WHO你好，%s。 %s。孩子还好吧？ 我在机场。%s。 昨晚看了两遍。%s。 %s。周末愉快！ 今天真热。%s。 %s。替我向WHO问好。 抱歉回晚了，%s。 材料收到了，也看完了。%s。 %s。我先去接孩子了。 想了一夜。%s。 %s。下次早点提。 %s。回头请你吃饭。 %s。明天见。 %s。到时候我也去看看。 %s，别再催我啦。 长话短说：%s。 %s。不用再问别人了。 都等了半年了。%s。 贵是贵了点。%s。 %s。改天来家里坐坐。 一句话：%s。 %s。有人问起就说是我说的。")
	}
	return strings.Split("Just back from lunch. %s.|%s. See you on Friday.|Hi WHO, %s.|%s. Hope the kids are well.|Sorry for the late answer. %s.|On the train, so in short: %s.|%s. Say hello to WHO from me.|I read it twice last night. %s.|%s. Time for a coffee.|Good morning! %s.|What a week. %s.|%s. Have a lovely weekend, all.|Dear WHO, thank you for sending this over. %s.|I slept on it. %s.|%s. The dog wants out, so I must run.|It has been raining here for days. %s.|%s. Next time ask me a day earlier.|%s. Speak soon.|%s. I will be in on Monday anyway.|I moaned about this at the meeting, I know. %s.|%s. And tell WHO to stop asking.|Bit late in the day, but here goes: %s.|%s. If anyone asks, I said so.|We have been waiting for months. %s.|Long story short: %s.|Painful price, but there it is. %s.|%s. Drop in when you are next in town.|Where were we? Right. %s.|%s. Mind how you go, will you.", "|")
}

// peopleSpokenOf are people who are spoken of.
func peopleSpokenOf(language string) []string {
	if language == "zh" {
		return strings.Fields("小李 财务 老板 我爱人 客户 王工 法务 我妈 刘总 校长 老孙 房东 他们 护士长 董事会")
	}
	return strings.Split("Tom|finance|my boss|the client|Granny|the vicar|legal|Dr Osei|the landlord|our accountant|Priya|the committee|they|the coach|my wife", "|")
}
