package human

import (
	"context"
	"fmt"
	"math"

	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/human/prose"
)

// The relevances of a reply in prose.
const (
	Relevant  = "relevant"
	Uncertain = "uncertain"
	Filtered  = "filtered"
)

// Judgement is what a reply in prose was taken for.
type Judgement struct {
	// Relevance follows from Score: relevant from 0.7, filtered up to 0.3, uncertain between.
	Relevance string  `json:"relevance"`
	Score     float64 `json:"score"`
	// Factors are content, pattern, channel, user, timing, quality, thread and keywords, each from 0 to 1.
	Factors map[string]float64 `json:"factors"`
	// Classification is confirmed, rejected or the value of an option that is neither; empty unless the reply is relevant.
	Classification string `json:"classification,omitempty"`
	// Option is the value of the option that was chosen, if one was.
	Option string `json:"option,omitempty"`
	// Value is the text for the only field of a form, if that was asked for.
	Value     string `json:"value,omitempty"`
	Reasoning string `json:"reasoning"`
}

// Text is a reply in prose and what is known about it.
type Text struct {
	Request  Request
	Reply    Reply
	Asked    time.Time
	Received time.Time
	// Listed says that the sender is one who may answer.
	Listed bool
	// Threaded says that the reply was matched by its thread or token.
	Threaded bool
}

// Judge judges a reply by a model.
type Judge func(ctx context.Context, workspace string, t Text) (Judgement, error)

// The factors, and how much each says about whether a reply is an answer.
const (
	factorContent  = "content"
	factorPattern  = "pattern"
	factorChannel  = "channel"
	factorUser     = "user"
	factorTiming   = "timing"
	factorQuality  = "quality"
	factorThread   = "thread"
	factorKeywords = "keywords"
)

func factorWeights() map[string]float64 {
	return map[string]float64{
		factorContent: 0.2, factorPattern: 0.25, factorChannel: 0.05, factorUser: 0.1,
		factorTiming: 0.05, factorQuality: 0.1, factorThread: 0.1, factorKeywords: 0.15,
	}
}

// The bounds of the score.
const (
	relevantFrom = 0.7
	filteredTo   = 0.3
)

// Classify judges a reply by rules and learned weights. It is pure and takes time in proportion to the reply.
//
// A decision needs a clause that approves or refuses, or words that plainly lean to one, and nothing that takes that back: package prose reads what the
// clauses do and how they compare with labelled replies, and here that is compared with what was asked and how the reply came. Remarks may be in any words. Whatever else somebody writes is uncertain, and they are asked back. What no
// person wrote is filtered.
func Classify(t Text) Judgement { return theWording().classify(t) }

func (w *wording) classify(t Text) Judgement {
	r := w.read(t)
	j := Judgement{Factors: w.factors(t, r)}
	r.circumstances(t)
	relevance := Uncertain
	switch {
	case r.automatic && (r.surely || r.strong+r.refusals == 0), !t.Listed && !t.Threaded:
		relevance = Filtered
	case !t.Listed || !t.Threaded || r.automatic || r.has(vetoEarly):
	case t.Request.Type == Input:
		if r.value(t.Request) {
			relevance, j.Classification, j.Value = Relevant, Confirmed, r.clean.text
		}
	default:
		j.Classification, j.Option = w.answer(t.Request, r)
		if j.Classification != "" {
			relevance = Relevant
		} else if r.offTopic() {
			relevance = Filtered
		}
	}
	if relevance != Relevant {
		j.Classification, j.Option = "", ""
	}
	j.Relevance = relevance
	j.Score = inBand(weigh(j.Factors), relevance)
	j.Reasoning = explain(t.Request, relevance, j, r)
	return j
}

// circumstances adds the vetoes that come from how a reply arrived.
func (r *reading) circumstances(t Text) {
	if r.automatic {
		r.veto(vetoAutomatic, "")
	}
	if !t.Listed {
		r.veto(vetoStranger, t.Reply.From)
	}
	if !t.Threaded {
		r.veto(vetoThread, "")
	}
	if _, possible := onTime(t); !possible {
		r.veto(vetoEarly, "")
	}
}

// answer is what a reply to an approval or a selection says.
func (w *wording) answer(q Request, r reading) (classification, option string) {
	if r.has(vetoHidden, vetoStruck, vetoLong) {
		return "", ""
	}
	if o, found := w.chosen(q, r); found {
		return q.classed(o)
	}
	if q.Type != Approval && q.Type != "" {
		return "", ""
	}
	switch w.byActs(r) {
	case prose.Approve:
		return q.onlyOption(Confirmed)
	case prose.Refuse:
		return q.onlyOption(Rejected)
	}
	return "", ""
}

// value says whether a reply can be the value of the only field of a form. A value may be any words; what puts the answer off or asks back is none.
func (r *reading) value(q Request) bool {
	if len(q.Fields) != 1 || q.Fields[0].Type != "" && q.Fields[0].Type != "text" {
		return false
	}
	if len(r.content) == 0 || r.has(vetoHidden, vetoStruck, vetoLong, vetoEmpty) {
		return false
	}
	last := strings.TrimSpace(r.clean.text)
	for _, end := range []string{"?", "？", "吗", "呢"} {
		if strings.HasSuffix(last, end) {
			return false
		}
	}
	for n, clause := range r.content {
		if puttingOff(clause, n == 0) {
			return false
		}
	}
	// A nod is no value, whatever was asked for; a plain yes or no may be one.
	return len(r.content) > 1 || !nodding(r.content[0]) || yesOrNo(r.content[0])
}

// offTopic says whether a reply is plainly about something else.
func (r *reading) offTopic() bool {
	if r.strong+r.weak+r.refusals+r.weakNos+r.known > 0 || !r.has(vetoReference) {
		return false
	}
	for _, v := range r.vetoes {
		if v.why != vetoReference && v.why != "question" {
			return false
		}
	}
	return r.unknowns >= 3
}

// chosen is the option that is the only content of a reply, by its value, its label or, in a selection, its number.
func (w *wording) chosen(q Request, r reading) (Option, bool) {
	texts := []string{w.plain(r.clean.text)}
	if len(r.content) == 1 {
		texts = append(texts, w.plain(r.content[0]))
	}
	for _, text := range texts {
		if text == "" {
			continue
		}
		var found []Option
		for n, o := range q.Options {
			number := ""
			if q.Type == Selection {
				number = strconv.Itoa(n + 1)
			}
			switch text {
			case w.plain(o.Value), w.plain(o.Label):
				found = append(found, o)
			case number, "option " + number, "选项" + number, "选" + number, "第" + number + "个", number + "号", "no " + number, "# " + number:
				if number != "" {
					found = append(found, o)
				}
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], true
		default:
			return Option{}, false
		}
	}
	return w.named(q, r)
}

// named is the option that a reply names in a sentence of choosing, or that it begins with before it says more. An option that confirms has to be the
// only content.
func (w *wording) named(q Request, r reading) (Option, bool) {
	if len(r.content) == 0 || r.strong+r.weak+r.refusals+r.weakNos > 0 {
		return Option{}, false
	}
	said := w.plain(r.content[0])
	alone := len(r.content) == 1
	var found []Option
	for _, o := range q.Options {
		for _, name := range []string{w.plain(o.Value), w.plain(o.Label)} {
			if name == "" || q.outcomeOf(o) == Confirmed {
				continue
			}
			// What is more than one word is not said by accident.
			opens := said == name && q.Type != Selection && (strings.Contains(name, " ") || utf8.RuneCountInString(name) > 3 && len(name) > 6)
			if opens || alone && (q.Type == Selection || q.outcomeOf(o) == Rejected) && choosing(said, name) {
				found = append(found, o)
				break
			}
		}
	}
	if len(found) != 1 || !alone && r.has("question", "hedge", "sarcasm", "instruction", vetoDouble, vetoHesitant, vetoContrast) {
		return Option{}, false
	}
	return found[0], true
}

// choosing says whether a clause is an option and nothing else but words of choosing.
func choosing(clause, name string) bool {
	for _, begin := range []string{"", "i choose ", "i chose ", "i pick ", "i vote for ", "my vote goes to ", "my choice is ", "my vote is ", "let us go with ", "let us do ", "let us take ", "go with ", "i go with ", "definitely ", "please ", "option ", "我选", "选", "我投", "我要", "就", "就选", "我选择", "选择"} {
		rest, ok := strings.CutPrefix(clause, begin)
		if !ok {
			continue
		}
		if rest, ok = strings.CutPrefix(rest, name); !ok {
			continue
		}
		switch rest {
		case "", " please", " for me", " it", " this", " this one", "吧", "了", "好了":
			return true
		}
	}
	return false
}

// puttingOff says whether a clause says that there is no value yet, that the sender has none, or who might. First is the first of a reply; further ones
// may belong to the value, so less is taken for an excuse.
func puttingOff(clause string, first bool) bool {
	for _, part := range []string{"do not know", "no idea", " has it", " knows it", "不知道", "不清楚", "不晓得"} {
		if strings.Contains(clause, part) {
			return true
		}
	}
	for _, begin := range []string{
		"i do not have", "i do not have", "we do not have", "do not have", "do not know", "i have no", "we have no", "no idea", "not sure", "i am not sure", "i can not", "we can not", "i have not", "ask ", "please ask ", "you should ask", "you need to ask", "check with", "please check with", "please contact",
		"不确定", "我不确定", "不记得", "我不记得", "不晓得", "不了解", "没有编号", "没印象", "我没有", "我也没有", "我们没有", "暂无", "问下", "问一下", "问问", "你问", "您问", "去问", "请问", "请联系", "找一下", "ignore ", "忽略", "i refuse", "i would rather not", "不提供", "不方便", "无法提供", "拒绝",
	} {
		if strings.HasPrefix(clause, begin) {
			return true
		}
	}
	if !first {
		return false
	}
	for _, begin := range []string{
		"let me", "i will", "i would", "i have to", "i need to", "i must", "will ", "the usual", "same as", "as usual", "as before", "give me", "wait", "hold on", "noted", "got it", "received", "on it", "get back", "who ", "why ", "what ", "where ", "which ", "how ", "can you", "could you", "do you", "later", "sorry", "thanks", "thank you", "not yet", "nothing yet", "pending",
		"收到", "我看看", "我看一下", "我想想", "我查", "我问", "问", "老样子", "照旧", "跟上次", "和上次", "同上", "稍等", "稍后", "等一下", "等等", "知道了", "回头", "晚点", "还没", "没有", "什么", "哪个", "为什么", "谁", "抱歉", "不好意思", "明天", "你是", "您是",
	} {
		if strings.HasPrefix(clause, begin) {
			return true
		}
	}
	return false
}

// plain is a text as its words, without what stands around them.
func (w *wording) plain(text string) string {
	normal, _ := w.normalise(text)
	var ts []token
	for _, one := range w.tokens(normal) {
		if one.kind != tokenBreak {
			ts = append(ts, one)
		}
	}
	return joined(ts)
}

// outcomeOf is what an option decides.
func (r *Request) outcomeOf(o Option) string {
	if o.Outcome != "" {
		return o.Outcome
	}
	if r.Type == Selection {
		return Neither // the choice itself is the answer
	}
	return outcomeByName(Approval, o.Value)
}

// classed is the classification of a chosen option.
func (r *Request) classed(o Option) (classification, option string) {
	outcome := r.outcomeOf(o)
	switch {
	case r.Type == Selection || outcome == Neither:
		return o.Value, o.Value
	case outcome == Confirmed && r.Risk == "high":
		return "", ""
	}
	return outcome, o.Value
}

// onlyOption is the option that a general yes or no stands for: the only one with that outcome.
func (r *Request) onlyOption(outcome string) (classification, option string) {
	options := r.Options
	if len(options) == 0 {
		options = []Option{{Value: "approve"}, {Value: "reject"}}
	}
	var found []Option
	for _, o := range options {
		if r.outcomeOf(o) == outcome {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return "", ""
	}
	return r.classed(found[0])
}

// factors are the eight scores, as the rules see them.
func (w *wording) factors(t Text, r reading) map[string]float64 {
	f := map[string]float64{factorChannel: 0.8, factorUser: 0, factorThread: 0.2, factorQuality: 1}
	if t.Reply.Channel != "" && t.Request.Channel != "" {
		f[factorChannel] = 0.5
		if t.Reply.Channel == t.Request.Channel {
			f[factorChannel] = 1
		}
	}
	if t.Listed {
		f[factorUser] = 1
	}
	if t.Threaded {
		f[factorThread] = 1
	}
	f[factorTiming], _ = onTime(t)
	switch {
	case r.automatic:
		f[factorQuality] = 0
	case r.has(vetoEmpty, vetoLong, vetoHidden, "instruction"):
		f[factorQuality] = 0.2
	case len(r.vetoes) > 0:
		f[factorQuality] = 0.7
	}
	evidence := r.strong + r.weak + r.refusals + r.weakNos
	read := evidence + r.known + r.fines + r.acks
	f[factorContent] = 0.2
	if read > 0 {
		f[factorContent] = 0.4 + 0.6*float64(read)/float64(read+r.unknowns)
	}
	switch {
	case evidence > 0 && len(r.vetoes) == 0 && r.unknowns == 0:
		f[factorPattern], f[factorKeywords] = 1, 1
	case evidence > 0 && r.has(vetoMixed):
		f[factorPattern], f[factorKeywords] = 0.3, 0.5
	case evidence > 0:
		f[factorPattern], f[factorKeywords] = 0.6, 0.8
	default:
		f[factorPattern], f[factorKeywords] = 0.1, 0
	}
	return f
}

// weigh is the mean of the factors by their weights. The order is fixed, so that the sum is the same every time.
func weigh(f map[string]float64) float64 {
	sum := 0.0
	weights := factorWeights()
	for _, name := range factorNames() {
		sum += weights[name] * f[name]
	}
	return math.Round(sum*1000) / 1000
}

func factorNames() []string {
	return []string{factorContent, factorPattern, factorChannel, factorUser, factorTiming, factorQuality, factorThread, factorKeywords}
}

// inBand moves a score to where the relevance is that was decided.
func inBand(score float64, relevance string) float64 {
	switch relevance {
	case Relevant:
		return max(score, relevantFrom)
	case Filtered:
		return min(score, filteredTo)
	}
	return min(max(score, filteredTo+0.01), relevantFrom-0.01)
}

// relevanceOf is what a score means.
func relevanceOf(score float64) string {
	switch {
	case score >= relevantFrom:
		return Relevant
	case score <= filteredTo:
		return Filtered
	}
	return Uncertain
}

// explain says why, in the language of the request.
func explain(q Request, relevance string, j Judgement, r reading) string {
	zh := q.Language == "zh"
	if relevance == Relevant {
		switch {
		case j.Value != "":
			return byLanguage(zh, "回复即为所填内容", "the reply is what was asked for")
		case r.acts.Learned && j.Classification == Confirmed:
			return fmt.Sprintf(byLanguage(zh, "回复读来是同意：%q；最有分量的词：%s", "the reply reads as an approval: %q; the words that weigh most: %s"), shortened(r.evidence()), r.weighty())
		case r.acts.Learned && j.Classification == Rejected:
			return fmt.Sprintf(byLanguage(zh, "回复读来是拒绝：%q；最有分量的词：%s", "the reply reads as a refusal: %q; the words that weigh most: %s"), shortened(r.evidence()), r.weighty())
		case j.Classification == Confirmed:
			return fmt.Sprintf(byLanguage(zh, "回复明确同意：%q", "the reply clearly approves: %q"), shortened(r.evidence()))
		case j.Classification == Rejected:
			return fmt.Sprintf(byLanguage(zh, "回复明确拒绝：%q", "the reply clearly refuses: %q"), shortened(r.evidence()))
		}
		return fmt.Sprintf(byLanguage(zh, "回复即选项 %q", "the reply is the option %q"), j.Option)
	}
	if len(r.vetoes) > 0 {
		// What happened to the reply weighs more than how it is worded.
		v := r.vetoes[0]
		if r.acts.Why != "" {
			v = veto{r.acts.Why, r.acts.Text}
		}
		for _, one := range r.vetoes {
			switch one.why {
			case vetoAutomatic, vetoStranger, vetoThread, vetoEarly:
				v = one
			}
		}
		return fmt.Sprintf(byLanguage(zh, "不能视为答复（%s）：%q", "not taken for an answer (%s): %q"), v.why, shortened(v.text))
	}
	switch {
	case r.unknowns > 0:
		return fmt.Sprintf(byLanguage(zh, "规则看不懂的内容：%q", "the rules cannot read %q"), shortened(r.strange))
	case r.strong+r.weak+r.refusals+r.weakNos == 0:
		return byLanguage(zh, "回复中没有同意或拒绝", "the reply neither approves nor refuses")
	case q.Risk == "high" && r.refusals+r.weakNos == 0:
		return byLanguage(zh, "高风险的同意不采用文字回复", "an approval of high risk is not taken from prose")
	}
	return byLanguage(zh, "回复与任何选项都不能确切对应", "the reply stands for no single option")
}

// weighty are the words that weighed most, as a person reads them.
func (r *reading) weighty() string {
	var words []string
	for _, word := range r.acts.Words {
		words = append(words, strconv.Quote(word))
	}
	return strings.Join(words, ", ")
}

func byLanguage(zh bool, chinese, english string) string {
	if zh {
		return chinese
	}
	return english
}

func shortened(s string) string {
	if rs := []rune(s); len(rs) > 60 {
		return string(rs[:60]) + "…"
	}
	return s
}
