package human

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// veto is a reason not to take a reply for an answer, with the words that gave it.
type veto struct {
	why  string
	text string
}

// The vetoes that are not a class of words.
const (
	vetoMixed     = "mixed"
	vetoDouble    = "double_negation"
	vetoHesitant  = "hesitation"
	vetoReference = "another_matter"
	vetoEmpty     = "quoted_only"
	vetoHidden    = "hidden_characters"
	vetoStruck    = "struck_out"
	vetoLong      = "too_long"
	vetoAutomatic = "automatic"
	vetoSubject   = "another_subject"
	vetoEarly     = "before_the_question"
	vetoStranger  = "not_an_approver"
	vetoThread    = "not_in_the_thread"
	vetoForm      = "unfilled_form"
	vetoRegret    = "regret"
)

// vetoName names a class of words that forbids an approval; empty: it does not.
func (c class) vetoName() string {
	switch c {
	case saysNegation:
		return "negation"
	case saysCondition:
		return "condition"
	case saysQuestion:
		return "question"
	case saysHedge:
		return "hedge"
	case saysFuture:
		return "future"
	case saysIndirect:
		return "indirect_speech"
	case saysChange:
		return "change_request"
	case saysSarcasm:
		return "sarcasm"
	case saysInjection:
		return "instruction"
	case saysDeferral:
		return "deferral"
	case saysElsewhere:
		return vetoReference
	}
	return ""
}

// maxNew is how much newly written text an approval may have, in characters: who writes an essay means more than yes.
const maxNew = 1500

// reading is what the rules found in a reply.
type reading struct {
	clean  cleaned
	vetoes []veto
	// automatic says that no person wrote it, surely that this is certain.
	automatic, surely bool
	// strong, weak and acks count words for it; refusals and weakNos those against it that stand in a clause of their own.
	strong, weak, acks, refusals, weakNos int
	// fines are observations in favour, unknowns what the rules cannot read; known is how much is about the matter.
	fines, unknowns, known int
	// verdicts counts the weak words that say that it is good, not only that it was heard.
	verdicts int
	// clear counts the words for it that stand in a clause without anything unknown.
	clear int
	// first is the first piece of evidence, strange the first unknown word.
	first, strange string
	// bare says that a clause consists of doubt alone; it is about what stands beside it.
	bare bool
	// content are the clauses that are more than courtesy, as written.
	content []string
}

func (r *reading) veto(why, text string) { r.vetoes = append(r.vetoes, veto{why, text}) }

func (r *reading) has(why ...string) bool {
	for _, v := range r.vetoes {
		for _, w := range why {
			if v.why == w {
				return true
			}
		}
	}
	return false
}

// read reads a reply.
func (w *wording) read(t Text) reading {
	r := reading{clean: w.cleanReply(t.Reply.Text)}
	about := w.matter(t)
	switch {
	case r.clean.cut:
		r.veto(vetoLong, "")
	case r.clean.hidden:
		r.veto(vetoHidden, "")
	}
	if r.clean.struck {
		r.veto(vetoStruck, "")
	}
	if t.Request.Type != Input && utf8.RuneCountInString(r.clean.text) > maxNew {
		r.veto(vetoLong, "")
		r.automatic, r.surely = w.automatic(t, r.clean)
		return r
	}
	if strings.Contains(t.Reply.Text, "```") {
		r.veto(saysInjection.vetoName(), "```")
	}
	said := false
	for n, line := range r.clean.lines {
		if line == "" {
			continue
		}
		if strings.ContainsAny(line, "([☐□○◯") && w.patterns.box.MatchString(line) {
			r.veto(vetoForm, "")
		}
		line = w.mentions(line, about)
		ts := w.tokens(line)
		from := 0
		for i := 0; i <= len(ts); i++ {
			if i < len(ts) && ts[i].kind != tokenBreak && !reason(ts, i) {
				continue
			}
			if i < len(ts) {
				switch ts[i].text {
				case "...":
					r.veto(vetoHesitant, "...")
				}
			}
			if i > from {
				whole := from == 0 && i >= len(ts)-1
				dashed := from == 1 && strings.ContainsAny(ts[0].text, "-–—") && i >= len(ts)-1
				w.clause(&r, about, ts[from:i], clausePlace{first: !said, line: whole || dashed, later: n > 0 && said, asked: i < len(ts) && (ts[i].text == "?" || ts[i].text == "？")})
				said = true
			}
			from = i + 1
		}
		if len(r.vetoes) > 64 {
			break // it will not be understood any more
		}
	}
	if len(r.content) == 0 && r.strong+r.weak+r.refusals+r.weakNos+r.unknowns+r.acks == 0 && len(r.vetoes) == 0 {
		r.veto(vetoEmpty, "")
	}
	if r.strong+r.weak > 0 && r.refusals+r.weakNos > 0 {
		r.veto(vetoMixed, r.first)
	}
	w.subject(&r, about, t)
	r.automatic, r.surely = w.automatic(t, r.clean)
	return r
}

// clausePlace is where a clause stands.
type clausePlace struct {
	// first is the first of the reply; line fills its line; later is below another.
	first, line, later bool
	// asked ends with a question mark.
	asked bool
}

// reason says whether a token begins the reason for what stands before it.
func reason(ts []token, i int) bool {
	switch ts[i].text {
	case "because", "since", "due":
		return i > 0
	case "因", "由":
		return i > 0 && i+1 < len(ts) && (ts[i+1].text == "为" || ts[i+1].text == "于")
	}
	return false
}

// mentions writes what stands for the matter or for a person as the rules can read it.
func (w *wording) mentions(line string, about matter) string {
	if !strings.ContainsAny(line, "<\"“「『《【") {
		return line
	}
	line = w.patterns.mention.ReplaceAllString(line, "@x")
	return w.patterns.quotation.ReplaceAllStringFunc(line, func(q string) string {
		inner := strings.Trim(q, `"“”「」『』《》【】`)
		if inner = strings.TrimSpace(inner); inner == "" {
			return q
		}
		for _, one := range w.tokens(inner) {
			if one.kind == tokenHan && !strings.Contains(about.han, inner) || (one.kind == tokenWord || one.kind == tokenNumber) && !about.words[one.text] || one.kind == tokenSymbol {
				return q
			}
		}
		return " this "
	})
}

// clause reads one clause.
func (w *wording) clause(r *reading, about matter, ts []token, at clausePlace) {
	items := w.items(ts)
	if at.name(w, about, ts, items) {
		return
	}
	items = w.settle(items, about, at)
	var strong, weak, against, weakNo, negations, unknowns, courtesies, persons int
	var evidence, strange, regret string
	asks, firstPerson, hanPerson := false, false, false
	started := len(r.vetoes)
	if at.asked {
		r.veto(saysQuestion.vetoName(), "?")
	}
	for n, it := range items {
		switch it.is {
		case saysYes, saysApproval, saysVerb, saysEnding:
			if why := misled(items, n, asks && !firstPerson); why != "" {
				r.veto(why, joined(ts))
			}
		}
		switch it.is {
		case saysYes:
			weak++
			evidence = it.text
			if !nodding(it.text) {
				r.verdicts++
			}
		case saysApproval, saysGo:
			if persons > 0 {
				r.veto(saysIndirect.vetoName(), joined(ts))
			}
			strong++
			evidence = it.text
		case saysVerb, saysEnding:
			switch {
			case persons > 0:
				r.veto(saysIndirect.vetoName(), joined(ts))
			case it.is == saysEnding && !onlyParticles(items[n+1:]):
				unknowns++
				strange = it.text
			default:
				strong++
				evidence = it.text
			}
		case saysRegret:
			regret = it.text
		case saysRefusal:
			if it.kind == tokenSymbol && (against > 0 || weakNo > 0) {
				continue // a sign beside the word
			}
			if n > 0 && items[0].is == saysRefusal && items[0].kind == tokenSymbol {
				against = 0
			}
			if persons > 0 {
				r.veto(saysIndirect.vetoName(), joined(ts))
			}
			against++
			evidence = it.text
		case saysNo:
			weakNo++
			evidence = it.text
		case saysFine:
			r.fines++
		case saysCourtesy:
			courtesies++
		case saysPerson:
			persons++
			hanPerson = hanPerson || it.kind == tokenHan && courtesies == 0
		case saysPolite:
			asks = true
		case saysAck:
			r.acks++
		case saysFiller:
			if it.text == "i" || it.text == "we" || strings.HasPrefix(it.text, "我") {
				firstPerson = true
			}
			if n == 0 && (it.text == "is" || it.text == "are") {
				r.veto(saysQuestion.vetoName(), joined(ts))
			}
		case saysObject, saysDomain, saysParticle:
			r.known++
		case saysUnknown, saysGlue:
			unknowns++
			strange = it.text
		case saysNegation:
			negations++
			r.veto(it.is.vetoName(), it.text)
		default:
			r.veto(it.is.vetoName(), it.text)
		}
	}
	framed := frame(joined(ts)) && strong+weak+against+weakNo == 0 && len(r.vetoes) == started && len(ts) <= 16
	if framed {
		unknowns = 0 // what somebody is thanked or wished for
	} else if regret != "" && against+weakNo == 0 {
		r.veto(vetoRegret, regret)
	}
	if hanPerson && strong+weak+against+weakNo > 0 {
		r.veto(saysIndirect.vetoName(), joined(ts)) // whose opinion it is
	}
	for _, v := range r.vetoes[started:] {
		switch v.why {
		case "hedge", "deferral", "question", "condition", "future":
			r.bare = r.bare || unknowns == 0 || len(ts) <= 3
		}
	}
	r.unknowns += unknowns
	if r.strange == "" {
		r.strange = strange
	}
	if courtesies+persons < len(items) {
		r.content = append(r.content, joined(ts))
	}
	if r.first == "" && evidence != "" {
		r.first = evidence
	}
	switch {
	case against+weakNo > 0 && (negations > 0 || against+weakNo > 1 || strong+weak > 0):
		r.veto(vetoDouble, joined(ts))
	case against > 0 && unknowns == 0 && len(r.vetoes) == started:
		r.refusals++
	case weakNo > 0 && unknowns == 0 && len(r.vetoes) == started:
		r.weakNos++
	case against+weakNo > 0:
		r.veto(saysNegation.vetoName(), evidence)
	default:
		// A weak word among unknown ones is a coincidence; one for going ahead is not.
		// What is negated is neither.
		if unknowns == 0 && negations == 0 {
			r.weak += weak
		}
		if negations == 0 {
			r.strong += strong
		}
		if unknowns == 0 && len(r.vetoes) == started {
			r.clear += strong + weak
		}
	}
}

// settle says what the words are that only the question or their place explains.
func (w *wording) settle(items []item, about matter, at clausePlace) []item {
	greeting := len(items) > 0 && at.first && items[0].is == saysCourtesy
	for n := range items {
		it := &items[n]
		switch {
		case it.is == saysDomain && about.groups[w.domains[w.keyOf(w.tokens(it.text))]]:
			if doing(it.text) {
				it.is = saysGo
			}
		case it.is == saysDomain:
			it.is = saysElsewhere
		case it.is != saysUnknown:
		case it.kind == tokenSymbol && it.text == "@" && n == 0:
			it.is = saysPolite
			if n+1 < len(items) && items[n+1].kind == tokenWord {
				items[n+1].is = saysPolite
			}
		case it.kind == tokenNumber && !about.words[it.text]:
			it.is = saysElsewhere
		case it.kind == tokenNumber:
			it.is = saysObject
		case it.kind == tokenWord && (about.names[it.text] || w.names[it.text]):
			it.is = saysPerson
		case it.kind == tokenWord && len(it.text) > 1 && about.words[it.text]:
			it.is = saysObject
			it.mentioned = true
		case it.kind == tokenWord && greeting && len(items) <= 4:
			it.is = saysPerson
		}
	}
	for n := range items {
		next := saysUnknown
		if n+1 < len(items) {
			next = items[n+1].is
		}
		it := &items[n]
		switch {
		case it.is == saysGlue && (it.text == "to" || it.text == "给" || it.text == "到" || it.text == "at") && (next == saysObject || next == saysDomain || next == saysGo),
			it.text == "with" && n > 0 && (items[n-1].is == saysGo || strings.HasSuffix(items[n-1].text, "agree")) && (next == saysObject || next == saysDomain || next == saysFiller && n+2 < len(items) && (items[n+2].is == saysObject || items[n+2].is == saysDomain)),
			it.is == saysGlue && it.text == "of" && next == saysObject && n > 0 && (items[n-1].is == saysObject || items[n-1].is == saysDomain):
			it.is = saysFiller
		case (next == saysDomain || next == saysGo) && forbids(it.text):
			it.is = saysRefusal
			items[n+1].is = saysObject
		case it.is == saysYes && it.kind == tokenHan && utf8.RuneCountInString(it.text) == 1 && (n > 0 || !onlyParticles(items[1:])):
			it.is = saysUnknown // part of another word
		}
	}
	// Runs of unknown characters that stand in the question.
	for i := 0; i < len(items); i++ {
		j := i
		var b strings.Builder
		for j < len(items) && items[j].is == saysUnknown && items[j].kind == tokenHan {
			b.WriteString(items[j].text)
			j++
		}
		if j-i >= 2 && strings.Contains(about.han, b.String()) {
			for k := i; k < j; k++ {
				items[k].is = saysObject
				items[k].mentioned = true
			}
		}
		if j > i {
			i = j
		}
	}
	return items
}

// misled says why a word of approving does not approve where it stands.
func misled(items []item, n int, asked bool) string {
	it := items[n]
	var before, after item
	if n > 0 {
		before = items[n-1]
	}
	if n+1 < len(items) {
		after = items[n+1]
	}
	past := strings.ContainsAny(it.text, "我已了") || it.kind == tokenWord && it.text != "approve" && it.text != "accept" && it.text != "authorize" && it.text != "authorise" && it.text != "confirm"
	switch {
	case asked && it.is != saysYes && !past:
		return saysIndirect.vetoName() // "please approve": somebody else should
	case before.mentioned:
		return saysIndirect.vetoName() // "Acme approved": somebody else did
	case (before.is == saysObject || before.is == saysDomain) && it.is == saysApproval && (after.text == "it" || after.text == "this" || after.text == "that" || after.text == "them"):
		return saysIndirect.vetoName()
	case it.kind == tokenHan && (before.text == "申请" || before.text == "请求" || before.text == "请示" || before.text == "计划" || before.text == "审批"):
		return saysIndirect.vetoName() // asked for
	case it.is == saysApproval && (before.text == "the" || before.text == "a" || before.text == "an"):
		return vetoReference // "the approved list"
	case it.is == saysApproval && it.kind == tokenWord && !strings.Contains(it.text, " ") && bareNoun(after):
		return vetoReference // "approved amount"
	case it.kind == tokenHan && checking(after.text), it.is == saysYes && it.kind == tokenHan && (after.text == "申请" || after.text == "请求" || after.text == "计划"):
		return saysDeferral.vetoName() // "同意复核": to do something else first
	}
	return ""
}

// bareNoun says whether an item is a thing without anything that says which.
func bareNoun(it item) bool {
	switch it.text {
	case "this", "that", "these", "them", "above", "all", "both", "everything":
		return false
	}
	return (it.is == saysObject || it.is == saysFine) && it.kind == tokenWord && !it.mentioned && !strings.Contains(it.text, " ")
}

func checking(text string) bool {
	switch text {
	case "审核", "审阅", "核对", "核实", "复核", "检查", "审批", "回复", "答复":
		return true
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
	return strings.HasPrefix(text, "好") || strings.HasPrefix(text, "行") || strings.HasPrefix(text, "是") || strings.HasPrefix(text, "对") || strings.HasPrefix(text, "成") || strings.HasPrefix(text, "妥")
}

// frame says whether a clause begins with thanks, an excuse or a wish.
func frame(clause string) bool {
	for _, p := range []string{"thanks", "thank you", "many thanks", "thx", "tks", "appreciate ", "i appreciate ", "sorry for ", "apologies for ", "have a ", "enjoy ", "谢谢", "感谢", "辛苦", "非常感谢", "多谢", "抱歉", "祝"} {
		if strings.HasPrefix(clause, p) {
			return true
		}
	}
	return false
}

// doing says whether a phrase about a kind of thing tells to do it.
func doing(phrase string) bool {
	for _, p := range []string{"可以", "同意", "请", "准假", "please ", "good to "} {
		if strings.HasPrefix(phrase, p) && phrase != "请假" && phrase != "请假申请" {
			return true
		}
	}
	for _, s := range []string{"吧", " it", " this", " them"} {
		if strings.HasSuffix(phrase, s) {
			return true
		}
	}
	return false
}

// forbids says whether a negation before a deed forbids it; others only tell that it was not done.
func forbids(text string) bool {
	switch text {
	case "do not", "please do not", "不", "不要", "请不要", "别", "勿", "请勿", "不能", "不得", "不予", "禁止", "停止":
		return true
	}
	return false
}

func onlyParticles(items []item) bool {
	for _, it := range items {
		if it.is != saysParticle && it.is != saysCourtesy {
			return false
		}
	}
	return true
}

// name says whether a clause is a name and nothing else: a salutation or a signature.
func (at clausePlace) name(w *wording, about matter, ts []token, items []item) bool {
	text := joined(ts)
	for _, it := range items {
		if it.is >= saysAck && it.is < saysGlue || it.is == saysRefusal || it.is == saysNo || it.is == saysApproval || it.is == saysVerb || it.is == saysGo {
			return false
		}
	}
	if about.names[text] || about.names[strings.ReplaceAll(text, " ", "")] {
		return true
	}
	if ts[0].kind == tokenHan {
		rs := []rune(strings.TrimSuffix(strings.TrimSuffix(text, "您好"), "好"))
		if len(rs) < 2 || len(rs) > 5 || !w.surnames[rs[0]] {
			return false
		}
		if rest := string(rs[1:]); hanTitle(rest) || len(rs) > 2 && hanTitle(string(rs[2:])) || len(rs) > 3 && hanTitle(string(rs[3:])) {
			return true
		}
		if len(rs) > 3 {
			return false
		}
		for _, c := range rs[1:] {
			if !w.given[c] {
				return false
			}
		}
		return true
	}
	if !at.line || !at.later || len(ts) > 3 {
		return false
	}
	for _, it := range items {
		if it.is != saysUnknown || it.kind != tokenWord {
			return false
		}
	}
	// Below a reply: a known first name, with whatever follows it, or initials.
	return w.names[ts[0].text] || len(ts) == 1 && len(ts[0].text) <= 3
}

func hanTitle(s string) bool {
	switch s {
	case "总", "经理", "总监", "主任", "老师", "工", "董", "部长", "处长", "科长", "局长", "院长", "校长", "同学", "先生", "女士", "小姐", "哥", "姐", "总经理", "副总", "主管", "组长", "老板", "董事长", "会计", "律师", "工程师":
		return true
	}
	return false
}

// compileMore are the expressions of the rules.
func (p *patterns) compileMore() {
	p.mention = regexp.MustCompile(`<@[a-z0-9|_.-]+>|<at>[^<]{1,60}</at>`)
	p.box = regexp.MustCompile(`\(\s*\)|\[\s*\]|[☐□○◯]`)
	p.dated = regexp.MustCompile(`^(?:于|於)?\s*\d{4}\s*[-/.年]\s*\d{1,2}`)
	p.quotation = regexp.MustCompile(`"[^"]{1,200}"|“[^”]{1,200}”|「[^」]{1,200}」|『[^』]{1,200}』|《[^》]{1,200}》|【[^】]{1,200}】`)
	p.rePrefix = regexp.MustCompile(`^(?:re|fw|fwd|aw|sv|回复|答复|转发|回覆|答覆|reminder|提醒)\s*(?:\[\d+\])?\s*[:：]\s*|^\[[^\]]{1,40}\]\s*`)
	p.autoSubject = regexp.MustCompile(`^(?:re:\s*|回复:\s*)*(?:automatic reply|auto[- ]?reply|auto[- ]?response|autoreply|out of (?:the )?office|ooo\b|undeliverable|undelivered mail|delivery status notification|mail delivery (?:failed|failure|subsystem)|returned mail|failure notice|delivery failure|read:|not read:|read receipt|delivered:|accepted:|declined:|tentative:|自动回复|自动答复|不在办公室|休假|外出|退信|系统退信|未送达|已读:|回执|邮件投递失败|递送失败)`)
	p.autoSure = regexp.MustCompile(`^\W*(?:this is an? (?:automatic|automated|auto)|(?:auto(?:mated|matic)?[- ]?(?:reply|response|message))|automatic reply|out of office\b|您好.{0,10}这是.{0,6}自动回复|\W*(?:【|\[)?自动回复|这是一封自动|本邮件为(?:系统)?自动|delivery (?:has failed|status notification)|your message (?:to .{0,80} )?(?:couldn't|could not|was not|wasn't) be? ?delivered|undeliverable)|this is an automated (?:message|response|reply)|i am (?:currently )?(?:out of (?:the )?office|on (?:annual |parental |maternity |sick )?leave|on vacation|ooo)\b|i'm (?:currently )?(?:out of (?:the )?office|on (?:annual |parental |maternity |sick )?leave|on vacation|ooo)\b|i will be (?:out of (?:the )?office|on leave|on vacation)|limited access to (?:my )?e-?mail|your message was read|mailer-daemon|此为自动回复|系统自动(?:回复|发送)|自动回复|我(?:正在|目前)?(?:休假|休年假|外出|出差|不在办公室)(?:中|期间|,|。|，)|将于.{0,20}(?:返回|回来|回到)(?:办公室|公司|岗位)|您的邮件(?:我)?已(?:经)?收到.{0,30}(?:尽快|稍后).{0,10}(?:回复|处理)|邮件(?:无法|未能)(?:投递|送达)`)
	p.autoText = regexp.MustCompile(`out of (?:the )?office|on vacation|annual leave|parental leave|maternity leave|limited access to e-?mail|away from my desk|will respond when i return|upon my return|when i am back|back in the office|ooo\b|do not reply to this|no-?reply|休假|不在办公室|出差期间|外出期间|紧急事宜请联系|如有急事|急事请联系|请联系我的同事|返回后(?:会|将)|尽快回复您`)
}
