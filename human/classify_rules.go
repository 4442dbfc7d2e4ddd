package human

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"tandem/human/prose"
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
	vetoContrast  = "contrast"
	vetoOpen      = "either_or"
	vetoQuotation = "answers_another"
	vetoPolarity  = "asked_to_refuse"
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
	// firm counts the words that approve, whatever was said before.
	firm int
	// first is the first piece of evidence, strange the first unknown word.
	first, strange string
	// content are the clauses that are more than courtesy, as written.
	content []string
	// about is what the question is about.
	about matter
	// acts is what its clauses do.
	acts prose.Reading
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
	r.about = about
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
	if t.Request.Type != Input {
		r.acts = w.acts.Read(r.clean.lines)
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
			turn := i < len(ts) && i > from && turns(ts, i)
			if i < len(ts) && ts[i].kind != tokenBreak && !turn && !reason(ts, i) {
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
				w.clause(&r, about, ts[from:i], clausePlace{first: !said, line: whole || dashed, later: n > 0 && said, asked: i < len(ts) && (ts[i].text == "?" || ts[i].text == "？"), colon: i+1 < len(ts) && strings.Contains(":-–—", ts[i].text)})
				said = true
			}
			from = i + 1
			if turn {
				from = i // the clause begins with it
			}
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
	if about.open {
		r.veto(vetoOpen, t.Request.Title)
	}
	if r.firm == 0 && len(r.clean.quote) > 0 && !about.answered(r.clean.quote) && w.disputed(r.clean.quote) {
		r.veto(vetoQuotation, shortened(strings.Join(r.clean.quote, " ")))
	}
	if about.negative && r.strong+r.refusals == 0 {
		r.veto(vetoOpen, t.Request.Title)
	}
	if about.refusing && r.refusals > 0 && !strings.Contains(r.first, "approv") && !strings.Contains(r.first, "agree") && !strings.Contains(r.first, "同意") && !strings.Contains(r.first, "批") {
		r.veto(vetoPolarity, r.first)
	}
	w.subject(&r, about, t)
	r.automatic, r.surely = w.automatic(t, r.clean)
	if !r.surely && r.acts.Explicit {
		r.automatic = false // somebody writes about being away, and decides
	}
	return r
}

// clausePlace is where a clause stands.
type clausePlace struct {
	// first is the first of the reply; line fills its line; later is below another.
	first, line, later bool
	// asked ends with a question mark, colon with a colon or a dash that more follows in its line.
	asked, colon bool
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

// turns says whether a token begins a clause that turns from what stands before it.
func turns(ts []token, i int) bool {
	switch ts[i].text {
	case "but", "however":
		return true
	case "但":
		return ts[i-1].text != "不"
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
		if at.colon && !about.names[strings.ReplaceAll(joined(ts), " ", "")] {
			r.veto(saysIndirect.vetoName(), joined(ts)) // what somebody said
		}
		return
	}
	items = w.settle(items, about, at)
	var strong, weak, against, weakNo, negations, unknowns, courtesies, persons int
	var evidence, strange, regret string
	asks, firstPerson, hanPerson := false, false, false
	if len(items) > 1 && contrasting(items[0].text) {
		// Before the answer it only ends the courtesies; after it, it takes something back.
		if r.strong+r.weak+r.refusals+r.weakNos == 0 {
			r.veto(vetoContrast, items[0].text)
		} else {
			r.veto(saysCondition.vetoName(), items[0].text)
		}
		items = items[1:]
	}
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
		case saysApproval, saysGo:
			if persons > 0 {
				r.veto(saysIndirect.vetoName(), joined(ts))
			}
			strong++
			evidence = it.text
			if it.is == saysGo || firm(it.text) {
				r.firm++
			}
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
				if firm(it.text) {
					r.firm++
				}
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
			if against > 0 && items[0].is == saysRefusal && items[0].kind == tokenSymbol {
				against = 0 // a sign beside the word
			}
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
	r.unknowns += unknowns
	if r.strange == "" && unknowns > 0 {
		r.strange = strange
	}
	if at.colon && persons > 0 && persons == len(items) {
		r.veto(saysIndirect.vetoName(), joined(ts)) // what somebody said
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
	}
}

// compileMore are the expressions of the rules.
func (p *patterns) compileMore() {
	// What a question lists, and what it weighs against each other.
	p.sentence = regexp.MustCompile(`[.!?。！？] |[.!?。！？]?\n`)
	p.list = regexp.MustCompile(`[;、]|\band\b|\bor\b|&|和|以及|及|或|还是|,[^,]{1,40},`)
	p.titleList = regexp.MustCompile(`,\s*[a-z\p{Han}]| / |\+`)
	p.array = regexp.MustCompile(`\}\s*,\s*\{|\[[^\[\]]*,[^\[\]]*\]`)
	p.objections = regexp.MustCompile(`\b(?:objections?|object|concerns?|concerned|against|problems?|issues?|oppose|opposed|mind if|reservations|doubts)\b.*\?|异议|反对|(?:意见|问题|顾虑|疑问|介意).{0,8}(?:吗|么|\?)|有(?:没有|无)(?:意见|问题|顾虑)`)
	p.amount = regexp.MustCompile(`([$¥€£]|\b(?:usd|eur|gbp|hkd|cny|rmb)\s?)?(\d[\d,.]*)\s?(mg|g|kg|ml|tb|gb|k|m|%|percent|usd|eur|gbp|euros?|dollars?|days?|weeks?|months?|hours?|nights?|seats?|people|元|万|块|天|周|个月|小时|台|人|份|件)?`)
	p.money = regexp.MustCompile(`^(?:usd|eur|gbp|euros?|dollars?|k|m|元|万|块)$`)
	p.becomes = regexp.MustCompile(`\bfrom\b.*\bto\b|->|→|改为|改成|调整为|调为|调至|升至|降至|提高到|降低到|变更为`)
	p.number = regexp.MustCompile(`\d[\d,.]*[a-z]*`)
	p.asksFor = regexp.MustCompile(`\bdo you approve\b|\bshall i (?:release|pay|send|proceed|approve|go|continue|execute|start|book|order|deploy|publish|sign)\b|\breply (?:yes|approve|with)\b|^>* ?请审批|\b(?:please|reply|kindly)\b.{0,30}\bapprov|\bapproved? or |(?:是否|请).{0,6}(?:批准|审批|同意|回复)|回复.{0,6}同意`)
	p.shallI = regexp.MustCompile(`^(?:\d+[.)]\s*.*|(?:shall|should|may|can|could) (?:i|we)\b.*|.*\bapprove|please confirm.*|.*(?:是否|可否|能否|请问).*)\?$`)
	p.either = regexp.MustCompile(`\bor\b|还是|或者|要么`)
	p.yesNo = regexp.MustCompile(`(?:approve|accept|confirm|yes|agree|go)\W{1,3}or\W{1,3}(?:reject|decline|deny|no|disagree)|whether or not|or not\b|(?:同意|批准|通过)\W?(?:还是|或者?)\W?(?:不|拒绝|驳回)`)
	p.mention = regexp.MustCompile(`<@[a-z0-9|_.-]+>|<at>[^<]{1,60}</at>`)
	p.box = regexp.MustCompile(`\(\s*\)|\[\s*\]|[☐□○◯]`)
	p.dated = regexp.MustCompile(`^(?:于|於)?\s*\d{4}\s*[-/.年]\s*\d{1,2}`)
	p.quotation = regexp.MustCompile(`"[^"]{1,200}"|“[^”]{1,200}”|「[^」]{1,200}」|『[^』]{1,200}』|《[^》]{1,200}》|【[^】]{1,200}】`)
	p.rePrefix = regexp.MustCompile(`^(?:re|fw|fwd|aw|sv|回复|答复|转发|回覆|答覆|reminder|提醒)\s*(?:\[\d+\])?\s*[:：]\s*|^\[[^\]]{1,40}\]\s*`)
	p.autoSubject = regexp.MustCompile(`^(?:re:\s*|回复:\s*)*(?:automatic reply|auto[- ]?reply|auto[- ]?response|autoreply|out of (?:the )?office|ooo\b|undeliverable|undelivered mail|delivery status notification|mail delivery (?:failed|failure|subsystem)|returned mail|failure notice|delivery failure|read:|not read:|read receipt|delivered:|accepted:|declined:|tentative:|自动回复|自动答复|不在办公室|休假|外出|退信|系统退信|未送达|已读:|回执|邮件投递失败|递送失败)`)
	p.autoSure = regexp.MustCompile(`^\W*(?:this is an? (?:automatic|automated|auto)|(?:auto(?:mated|matic)?[- ]?(?:reply|response|message))|automatic reply|out of office\b|您好.{0,10}这是.{0,6}自动回复|\W*(?:【|\[)?自动回复|这是一封自动|本邮件为(?:系统)?自动|delivery (?:has failed|status notification)|your message (?:to .{0,80} )?(?:couldn't|could not|was not|wasn't) be? ?delivered|undeliverable)|this is an automated (?:message|response|reply)|i am (?:currently )?(?:out of (?:the )?office|on (?:annual |parental |maternity |sick )?leave|on vacation|ooo)\b|i'm (?:currently )?(?:out of (?:the )?office|on (?:annual |parental |maternity |sick )?leave|on vacation|ooo)\b|i will be (?:out of (?:the )?office|on leave|on vacation)|limited access to (?:my )?e-?mail|your message was read|mailer-daemon|此为自动回复|系统自动(?:回复|发送)|自动回复|我(?:正在|目前)?(?:休假|休年假|外出|出差|不在办公室)(?:中|期间|,|。|，)|将于.{0,20}(?:返回|回来|回到)(?:办公室|公司|岗位)|您的邮件(?:我)?已(?:经)?收到.{0,30}(?:尽快|稍后).{0,10}(?:回复|处理)|邮件(?:无法|未能)(?:投递|送达)`)
	p.autoText = regexp.MustCompile(`out of (?:the )?office|on vacation|annual leave|parental leave|maternity leave|limited access to e-?mail|away from my desk|will respond when i return|upon my return|when i am back|back in the office|ooo\b|do not reply to this|no-?reply|(?:正在|我在|目前|处于|本人).{0,4}休假|休假(?:中|期间|至|到)|不在办公室|出差期间|外出期间|紧急事宜请联系|如有急事|急事请联系|请联系我的同事|返回后(?:会|将)|尽快回复您`)
}
