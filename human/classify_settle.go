package human

import (
	"strings"
	"unicode/utf8"
)

// settle says what the words are that only the question or their place explains.
func (w *wording) settle(items []item, about matter, at clausePlace) []item {
	greeting := len(items) > 0 && at.first && items[0].is == saysCourtesy
	for n := range items {
		it := &items[n]
		switch {
		case it.is == saysDomain && (!about.named || about.within(w.domains[w.keyOf(w.tokens(it.text))])):
			if forbidden(it.text) {
				it.is = saysRefusal
			} else if doing(it.text) {
				it.is = saysGo
			}
		case it.is == saysDomain:
			it.is = saysElsewhere
		case it.is == saysDeferral && (it.kind == tokenHan && strings.HasSuffix(it.text, "月") && strings.Contains(about.han, it.text) || month(it.text) && about.words[it.text] && !about.parts[it.text]):
			it.is = saysObject // when it is asked for, not when it is put off to
		case it.is != saysUnknown:
		case it.kind != tokenHan && about.parts[it.text] && !wholly(items[:n], it.text):
			it.is = saysElsewhere // one of several
		case it.kind == tokenSymbol && it.text == "@" && n == 0:
			it.is = saysPolite
			if n+1 < len(items) && items[n+1].kind == tokenWord {
				items[n+1].is = saysPolite
			}
		case it.kind == tokenNumber && !about.named:
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
			(it.text == "with" || it.text == "to" && strings.HasSuffix(items[max(n-1, 0)].text, "agree")) && n > 0 && (items[n-1].is == saysGo || strings.HasSuffix(items[n-1].text, "agree")) && (next == saysObject || next == saysDomain || next == saysFiller && n+2 < len(items) && (items[n+2].is == saysObject || items[n+2].is == saysDomain)),
			it.is == saysGlue && it.text == "of" && next == saysObject && n > 0 && (items[n-1].is == saysObject || items[n-1].is == saysDomain):
			it.is = saysFiller
		case (next == saysDomain || next == saysGo) && forbids(it.text):
			it.is = saysRefusal
			items[n+1].is = saysObject
			if n+2 < len(items) && (items[n+2].text == "anything" || items[n+2].text == "any") {
				items[n+2].is = saysObject
			}
		case it.is == saysNegation && next == saysVerb && declines(it.text, items[n+1].text):
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
			is := saysObject
			if strings.Contains(about.hanParts, b.String()) {
				is = saysElsewhere
			}
			for k := i; k < j; k++ {
				items[k].is = is
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
	case before.mentioned && !wholeNumber(items[:n], it.text):
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

// wholeNumber says whether what stands before an approval is how many there are, all of them.
func wholeNumber(before []item, approval string) bool {
	n := len(before)
	if before[n-1].kind == tokenWord {
		return n == 2 && before[0].text == "all" && countWord(before[1].text)
	}
	if !strings.HasPrefix(approval, "都") && !strings.HasPrefix(approval, "均") && !strings.HasPrefix(approval, "全部") || n < 2 || n > 3 {
		return false
	}
	number, of := before[n-2], before[n-1]
	return strings.Contains("两二三四五六七八九十", number.text) && strings.Contains("笔项个条份张单件", of.text) && (n == 2 || before[0].text == "这" || before[0].text == "以上")
}

// wholly says whether a number before which the others stand is that of all.
func wholly(before []item, number string) bool {
	return len(before) > 0 && before[len(before)-1].text == "all" && countWord(number)
}

func countWord(s string) bool {
	switch s {
	case "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten":
		return true
	}
	return false
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

// yesOrNo says whether a nod is one that may be asked for by itself.
func yesOrNo(text string) bool {
	switch text {
	case "yes", "no", "y", "n", "是", "否", "是的", "对":
		return true
	}
	return false
}

// firm says whether a word approves whatever it follows; others may only agree with what was said before.
func firm(text string) bool {
	return strings.Contains(text, "approv") || strings.Contains(text, "authori") || strings.Contains(text, "批") || strings.Contains(text, "核准") || strings.Contains(text, "通过") || strings.Contains(text, "green light")
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

// forbidden says whether a phrase about a kind of thing tells not to do it.
func forbidden(phrase string) bool {
	for _, p := range []string{"不", "别", "请不", "请勿", "千万", "no ", "not "} {
		if strings.HasPrefix(phrase, p) {
			return true
		}
	}
	return false
}

// declines says whether a negation before a verb of approving refuses. Not to be able to confirm something is no refusal.
func declines(not, verb string) bool {
	switch not {
	case "不予", "不能", "无法", "没法", "恕难", "碍难", "不便", "不得", "不会":
		return verb != "确认" && verb != "准"
	}
	return false
}

// contrasting says whether a word turns from courtesies to the answer.
func contrasting(text string) bool {
	switch text {
	case "but", "however", "但", "但是", "不过", "可是", "然而":
		return true
	}
	return false
}

func month(text string) bool {
	switch text {
	case "january", "february", "april", "june", "july", "august", "september", "october", "november", "december":
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
