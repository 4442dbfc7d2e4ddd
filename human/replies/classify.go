// Package replies says what a reply in prose means for a question: whether it is an answer, and which, by rules over what package prose
// reads in it, or by what a model has said, where the rules find nothing against that.
//
// It is told what was asked and what came back, and knows neither who may answer nor how replies arrive: package human does.
package replies

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"tandem/human/form"
	"tandem/human/prose"
	"tandem/payload"
	"tandem/text"
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

// theReader is shared by all. It is read-only, and built when the first reply is read.
var theReader = sync.OnceValue(prose.New)

// OwnWords are what of a message was written now: without quoted mail and signatures.
func OwnWords(text string) string { return theReader().Clean(text).Text }

// Classify judges a reply by its words: package prose reads what they decide and whether that is about what was asked. Whatever else
// somebody writes is uncertain, and they are asked back. What no person wrote is filtered. It is pure and takes time in proportion to the
// reply.
func Classify(t Text) Judgement { return classify(theReader(), t) }

func classify(p *prose.Reader, t Text) Judgement {
	r := read(p, t)
	j := r.judgement(t)
	j.Reasoning = r.explain(t.Request, j)
	return j
}

// judgement is what a reply is taken for, without the reasons.
func (r *reading) judgement(t Text) Judgement {
	j := Judgement{Factors: r.factors(t)}
	relevance := Uncertain
	switch {
	case r.Automatic && (r.Surely || r.Reading.Decision == prose.None), !t.Listed && !t.Threaded:
		relevance = Filtered
	case !t.Listed || !t.Threaded || r.Automatic || r.Has(againstEarly):
	case t.Request.Type == form.Input:
		if r.value(t.Request) {
			relevance, j.Classification, j.Value = Relevant, form.Confirmed, r.Text
		}
	default:
		j.Classification, j.Option = r.answer(t.Request)
		if j.Classification != "" {
			relevance = Relevant
		} else if r.offTopic(t.Request) {
			relevance = Filtered
		}
	}
	if relevance != Relevant {
		j.Classification, j.Option = "", ""
	}
	j.Relevance = relevance
	j.Score = inBand(weigh(j.Factors), relevance)
	return j
}

// reading is what was read in a reply, and who read it.
type reading struct {
	prose.Reply
	reader *prose.Reader
}

// What about how a reply arrived is against taking it for an answer.
const (
	againstAutomatic = "automatic"
	againstEarly     = "before_the_question"
	againstStranger  = "not_an_approver"
	againstThread    = "not_in_the_thread"
)

// read reads a reply, and notes what is against it from how it arrived.
func read(p *prose.Reader, t Text) reading {
	local, _, _ := strings.Cut(t.Reply.From, "@")
	r := reading{reader: p, Reply: p.ReadReply(prose.Question{
		Title: t.Request.Title, Description: t.Request.Description,
		Data:   []string{payload.JSON(t.Request.Content), payload.JSON(t.Request.Arguments)},
		People: []string{t.Reply.Name, local, t.Request.UserMention},
	}, prose.Message{Subject: t.Reply.Subject, Text: t.Reply.Text, Automatic: t.Reply.Automatic, Value: t.Request.Type == form.Input})}
	if r.Automatic {
		r.against(againstAutomatic, "")
	}
	if !t.Listed {
		r.against(againstStranger, t.Reply.From)
	}
	if !t.Threaded {
		r.against(againstThread, "")
	}
	if _, possible := onTime(t); !possible {
		r.against(againstEarly, "")
	}
	return r
}

func (r *reading) against(why, text string) {
	r.Against = append(r.Against, prose.Doubt{Why: why, Text: text})
}

// answer is what a reply to an approval or a selection says.
func (r *reading) answer(q Request) (classification, option string) {
	if r.Has(prose.AgainstHidden, prose.AgainstStruck, prose.AgainstLong) {
		return "", ""
	}
	if o, found := r.chosen(q); found {
		return q.classed(o)
	}
	if q.Type != form.Approval && q.Type != "" {
		return "", ""
	}
	if r.Reading.Learned && q.offersMore() {
		return "", "" // it may mean one of the others
	}
	switch r.Answer() {
	case prose.Approve:
		return q.onlyOption(form.Confirmed)
	case prose.Refuse:
		return q.onlyOption(form.Rejected)
	}
	return "", ""
}

// value says whether a reply can be the value of the only field of a form. A value may be any words; what puts the answer off or asks back
// is none.
func (r *reading) value(q Request) bool {
	if len(q.Fields) != 1 || q.Fields[0].Type != "" && q.Fields[0].Type != "text" {
		return false
	}
	if len(r.Clauses) == 0 || r.Has(prose.AgainstHidden, prose.AgainstStruck, prose.AgainstLong, prose.AgainstEmpty) {
		return false
	}
	last := strings.TrimSpace(r.Text)
	for _, end := range []string{"?", "？", "吗", "呢"} {
		if strings.HasSuffix(last, end) {
			return false
		}
	}
	for n, clause := range r.Clauses {
		if puttingOff(clause, n == 0) {
			return false
		}
	}
	// A nod is not a value, whatever was asked for; a plain yes or no may be one.
	return len(r.Clauses) > 1 || !nodding(r.Clauses[0]) || yesOrNo(r.Clauses[0])
}

// offTopic says whether a reply is plainly about something else.
func (r *reading) offTopic(q Request) bool {
	if r.Elsewhere == "" || r.Reading.Verdict || r.objection().Why != "" || r.Reading.Leaning.Of(prose.None) < 0.9 {
		return false
	}
	return !q.offersMore()
}

// chosen is the option that is the only content of a reply, by its value, its label or, in a selection, its number.
func (r *reading) chosen(q Request) (form.Option, bool) {
	if len(q.Options) == 0 {
		return form.Option{}, false
	}
	texts := []string{r.reader.Plain(r.Text)}
	if len(r.Clauses) == 1 {
		texts = append(texts, r.Clauses[0])
	}
	for _, text := range texts {
		if text == "" {
			continue
		}
		switch found := r.optionsCalled(q, text); len(found) {
		case 0:
		case 1:
			return found[0], true
		default:
			return form.Option{}, false
		}
	}
	return r.named(q)
}

// optionsCalled are the options that a text is the value, the label or, in a selection, the number of.
func (r *reading) optionsCalled(q Request, text string) []form.Option {
	var found []form.Option
	for n, o := range q.Options {
		names := []string{r.reader.Plain(o.Value), r.reader.Plain(o.Label)}
		if q.Type == form.Selection {
			number := strconv.Itoa(n + 1)
			names = append(names, number, "option "+number, "选项"+number, "选"+number, "第"+number+"个", number+"号", "no "+number, "# "+number)
		}
		if slices.Contains(names, text) {
			found = append(found, o)
		}
	}
	return found
}

// named is the option that a reply names in a sentence of choosing, or that it begins with before it says more. An option that confirms has
// to be the only content.
func (r *reading) named(q Request) (form.Option, bool) {
	if len(r.Clauses) == 0 || r.Answer() != prose.None {
		return form.Option{}, false
	}
	alone := len(r.Clauses) == 1
	var found []form.Option
	for _, o := range q.Options {
		if q.outcomeOf(o) != form.Confirmed && slices.ContainsFunc([]string{o.Value, o.Label},
			func(name string) bool { return r.names(q, o, r.reader.Plain(name), alone) }) {
			found = append(found, o)
		}
	}
	if len(found) != 1 || !alone && len(r.Reading.Doubts) > 0 {
		return form.Option{}, false
	}
	return found[0], true
}

// names says whether the first clause of a reply names an option. What is more than one word is not said by accident.
func (r *reading) names(q Request, o form.Option, name string, alone bool) bool {
	if name == "" {
		return false
	}
	if alone && (q.Type == form.Selection || q.outcomeOf(o) == form.Rejected) && choosing(r.Clauses[0], name) {
		return true
	}
	return r.Clauses[0] == name && q.Type != form.Selection &&
		(strings.Contains(name, " ") || utf8.RuneCountInString(name) > 3 && len(name) > 6)
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

// puttingOff says whether a clause says that there is no value yet, that the sender has none, or who might. First is the first of a reply;
// further ones may belong to the value, so less is taken for an excuse.
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

// nodding says whether a yes may be no more than a sign of having listened.
func nodding(text string) bool {
	switch text {
	case "yes", "yeah", "yep", "yup", "yea", "aye", "ok", "okay", "okey", "okie", "sure", "sure thing", "alright", "all right", "y", "of course", "certainly", "absolutely", "definitely", "affirmative",
		"👍", "✅", "✔", "☑", "👌", "🆗", "🟢", "当然", "可", "可以了", "ok的", "okay的", "ok了", "okk", "必须的":
		return true
	}
	first, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune("好行是对成妥", first)
}

// yesOrNo says whether a nod is one that may be asked for by itself.
func yesOrNo(text string) bool {
	switch text {
	case "yes", "no", "y", "n", "是", "否", "是的", "对":
		return true
	}
	return false
}

// outcomeOf is what an option decides.
func (r *Request) outcomeOf(o form.Option) string {
	if o.Outcome != "" {
		return o.Outcome
	}
	if r.Type == form.Selection {
		return form.Neither // the choice itself is the answer
	}
	return form.OutcomeOf(form.Approval, o.Value)
}

// offersMore says whether something else can be chosen than to confirm or to reject.
func (r *Request) offersMore() bool {
	return slices.ContainsFunc(r.Options, func(o form.Option) bool { return r.outcomeOf(o) == form.Neither })
}

// classed is the classification of a chosen option.
func (r *Request) classed(o form.Option) (classification, option string) {
	outcome := r.outcomeOf(o)
	switch {
	case r.Type == form.Selection || outcome == form.Neither:
		return o.Value, o.Value
	case outcome == form.Confirmed && r.Risk == "high":
		return "", ""
	}
	return outcome, o.Value
}

// onlyOption is the option that a general yes or no stands for: the only one with that outcome.
func (r *Request) onlyOption(outcome string) (classification, option string) {
	options := r.Options
	if len(options) == 0 {
		options = []form.Option{{Value: "approve"}, {Value: "reject"}}
	}
	var found []form.Option
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

// factors are the eight scores, as the reader sees them.
func (r *reading) factors(t Text) map[string]float64 {
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
	case r.Automatic:
		f[factorQuality] = 0
	case r.Has(prose.AgainstEmpty, prose.AgainstLong, prose.AgainstHidden, prose.AgainstInjection):
		f[factorQuality] = 0.2
	case len(r.Against) > 0:
		f[factorQuality] = 0.7
	}
	// How much it is about the question is how little it leans to neither; what it decides and says are its pattern and keywords.
	f[factorContent] = math.Round(1000*(1-0.8*r.Reading.Leaning.Of(prose.None))) / 1000
	switch {
	case r.Answer() != prose.None:
		f[factorPattern], f[factorKeywords] = 1, 1
	case r.Reading.Decision != prose.None:
		f[factorPattern], f[factorKeywords] = 0.6, 0.8
	case r.Reading.Verdict:
		f[factorPattern], f[factorKeywords] = 0.3, 0.5
	default:
		f[factorPattern], f[factorKeywords] = 0.1, 0
	}
	return f
}

// onTime says how plausible the time of a reply is, and whether it is possible at all.
func onTime(t Text) (score float64, possible bool) {
	if t.Asked.IsZero() || t.Received.IsZero() {
		return 0.8, true
	}
	took := t.Received.Sub(t.Asked)
	switch {
	case took < -5*time.Minute: // clocks differ, but not by so much
		return 0, false
	case t.Request.TimeoutSeconds > 0 && took > time.Duration(t.Request.TimeoutSeconds)*time.Second:
		return 0.3, true
	}
	return 1, true
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
func (r *reading) explain(q Request, j Judgement) string {
	language := q.Language
	if j.Relevance == Relevant {
		return r.explainAnswer(language, j)
	}
	if why := r.objection(); why.Why != "" {
		return text.Of("not taken for an answer (%s): %q", why.Why, shortened(why.Text)).In(language)
	}
	switch {
	case r.Reading.Decision == prose.None:
		return text.Of("the reply neither approves nor refuses plainly").In(language)
	case q.Risk == "high" && r.Reading.Decision == prose.Approve:
		return text.Of("an approval of high risk is not taken from prose").In(language)
	}
	return text.Of("the reply stands for no single option").In(language)
}

// explainAnswer says why a reply is an answer.
func (r *reading) explainAnswer(language string, j Judgement) string {
	said := shortened(r.evidence())
	switch {
	case j.Value != "":
		return text.Of("the reply is what was asked for").In(language)
	case r.Answer() == prose.None || j.Classification != form.Confirmed && j.Classification != form.Rejected:
		return text.Of("the reply is the option %q", j.Option).In(language)
	case r.Reading.Learned && j.Classification == form.Confirmed:
		return text.Of("the reply reads as an approval: %q; the words that weigh most: %s", said, r.weighty()).In(language)
	case r.Reading.Learned:
		return text.Of("the reply reads as a refusal: %q; the words that weigh most: %s", said, r.weighty()).In(language)
	case j.Classification == form.Confirmed:
		return text.Of("the reply clearly approves: %q", said).In(language)
	}
	return text.Of("the reply clearly refuses: %q", said).In(language)
}

// objection is what weighs most against taking a reply for an answer: how it came, then what it says, then what else is against it.
func (r *reading) objection() prose.Doubt {
	for _, d := range r.Against {
		switch d.Why {
		case againstAutomatic, againstStranger, againstThread, againstEarly:
			return d
		}
	}
	if r.Reading.Why != "" {
		return prose.Doubt{Why: r.Reading.Why, Text: r.Reading.Text}
	}
	if len(r.Against) > 0 {
		return r.Against[0]
	}
	if r.Reading.Decision == prose.None && len(r.Reading.Doubts) > 0 {
		return r.Reading.Doubts[0]
	}
	return prose.Doubt{}
}

// evidence is what a decision goes by; clauses that are not beside each other are put together.
func (r *reading) evidence() string {
	if len(r.Reading.Evidence) > 0 {
		return strings.Join(r.Reading.Evidence, ", ")
	}
	return r.quotable()
}

// quotable is the first of what a decision goes by, in the words of the reply.
func (r *reading) quotable() string {
	switch {
	case len(r.Reading.Evidence) > 0:
		return r.Reading.Evidence[0]
	case len(r.Clauses) > 0:
		return r.Clauses[0]
	}
	return ""
}

// weighty are the words that weighed most, as a person reads them.
func (r *reading) weighty() string {
	var words []string
	for _, word := range r.reader.Telling(r.Reading) {
		words = append(words, strconv.Quote(word))
	}
	return strings.Join(words, ", ")
}

// shortened is so much of a reply as a reason quotes.
func shortened(s string) string { return text.Clip(s, 60) }
