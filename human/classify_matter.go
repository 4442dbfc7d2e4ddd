package human

import (
	"slices"
	"strings"
	"time"

	"tandem/payload"
)

// matter is what a question is about, as far as a reply may mention it.
type matter struct {
	words  map[string]bool
	han    string
	groups map[int]bool
	names  map[string]bool
	// any says that the question is called something, named that it is called something that only it is: not "Please approve".
	any, named bool
	// parts are words and amounts of which the question has several: who repeats one may mean that one alone. hanParts are the sentences that list
	// something, in Chinese.
	parts    map[string]bool
	hanParts string
	// open says that the question is which of two, so that a yes answers nothing; refusing that it asks to refuse or to stop something, so that such a
	// word may mean yes.
	open, refusing bool
	// negative says that it asks for objections: a bare yes or no may mean either.
	negative bool
	// title is what it is called, without spaces.
	title string
}

// general says whether a word stands in every question: what is asked for, not what it is about.
func general(word string) bool {
	switch word {
	case "decide", "decision", "needed", "reply", "respond", "review", "approval", "run", "confirmation", "confirm", "start", "continue", "go", "whether", "want", "human", "test", "hello", "input", "check", "attention", "waiting", "pending", "manual", "gate", "stage", "question", "be", "with", "done", "answer",
		"您", "你", "的", "是", "否", "决", "定", "审", "核", "批", "准", "确", "认", "处", "理", "人", "工", "测", "试", "问", "题", "待", "办", "行", "执", "需", "要", "继", "续", "运", "节", "点", "步", "骤":
		return true
	}
	return false
}

// within says whether a phrase is about the kind of thing that is asked about.
func (m matter) within(groups []int) bool {
	for _, g := range groups {
		if m.groups[g] {
			return true
		}
	}
	return false
}

func (w *wording) matter(t Text) matter {
	m := matter{words: map[string]bool{}, groups: map[int]bool{}, names: map[string]bool{}, parts: map[string]bool{}}
	var hans strings.Builder
	// What kind of thing it is, the title says if it says anything: the rest may be about a part of it.
	headed := false
	for n, part := range []string{t.Request.Title, t.Request.Description, payload.JSON(t.Request.Content), payload.JSON(t.Request.Arguments)} {
		// What it is called may be repeated; of what it contains only numbers may, and what kind of thing it is.
		called := n < 2
		if len(part) > 64<<10 {
			part = strings.ToValidUTF8(part[:64<<10], "")
		}
		normal, _ := w.normalise(part)
		ts := w.tokens(normal)
		for i, one := range ts {
			switch one.kind {
			case tokenNumber:
				m.words[one.text] = true
			case tokenWord:
				if called {
					m.words[one.text] = true
					m.any = true
				}
			case tokenHan:
				if called {
					hans.WriteString(one.text)
					m.any = true
				}
			default:
				hans.WriteByte(' ')
			}
			// Every phrase that begins here counts, since words of a title run into each other.
			at := w.root
			for j := i; j < len(ts); j++ {
				if at = at.next[ts[j].text]; at == nil {
					break
				}
				if at.is == saysDomain && !headed {
					for _, g := range w.domains[w.keyOf(ts[i:j+1])] {
						m.groups[g] = true
					}
				}
			}
		}
		if called && !m.named {
			for _, it := range w.items(ts) {
				m.named = m.named || it.is == saysDomain || it.kind == tokenNumber || it.is == saysUnknown && (it.kind == tokenWord || it.kind == tokenHan) && !general(it.text)
			}
		}
		hans.WriteByte('\n')
		if n == 0 {
			m.title = strings.ReplaceAll(normal, " ", "")
			m.refusing = w.refusing(ts) && !w.patterns.yesNo.MatchString(normal)
			headed = len(m.groups) > 0
		}
		if called {
			w.partsOf(&m, part, n == 0)
			m.open = m.open || w.patterns.either.MatchString(normal) && (n == 0 || strings.HasSuffix(normal, "?")) && !w.patterns.yesNo.MatchString(normal)
			m.negative = m.negative || w.patterns.objections.MatchString(normal) && (n == 0 || strings.Contains(normal, "?") || strings.Contains(normal, "吗"))
		} else if w.patterns.array.MatchString(part) {
			for _, one := range ts {
				if one.kind == tokenNumber {
					m.parts[one.text] = true // of one of its items
				}
			}
		}
	}
	m.han = hans.String()
	local, _, _ := strings.Cut(t.Reply.From, "@")
	for _, part := range []string{t.Reply.Name, local, t.Request.UserMention} {
		normal, _ := w.normalise(part)
		normal = strings.NewReplacer(".", " ", "_", " ").Replace(normal)
		for _, one := range w.tokens(normal) {
			if one.kind == tokenWord {
				m.names[one.text] = true
			}
		}
		if h := strings.ReplaceAll(normal, " ", ""); h != "" {
			m.names[h] = true
		}
	}
	return m
}

// refusing says whether a title asks to refuse or to stop something.
func (w *wording) refusing(ts []token) bool {
	for _, it := range w.items(ts) {
		if it.is == saysRefusal {
			return true
		}
		if it.is == saysNegation {
			switch it.text {
			case "stop", "cancel", "halt", "withdraw", "revoke", "停止", "取消", "撤回", "撤销", "作废", "中止", "终止", "放弃":
				return true
			}
		}
	}
	return false
}

// partsOf finds what a text lists, and the amounts of which it names more than one of a kind.
func (w *wording) partsOf(m *matter, text string, title bool) {
	p := &w.patterns
	var hans strings.Builder
	lines := strings.Count(strings.TrimSpace(text), "\n") > 0
	for _, sentence := range p.sentence.Split(text, -1) {
		normal, _ := w.normalise(sentence)
		listed := ""
		switch {
		case lines || p.list.MatchString(normal) || title && p.titleList.MatchString(normal):
			listed = normal
		case p.becomes.MatchString(normal):
			listed = normal
			if at := strings.Index(normal, " from "); at > 0 {
				listed = normal[at:]
			}
		}
		for _, one := range w.tokens(listed) {
			switch {
			case one.kind == tokenWord, lines && one.kind == tokenNumber:
				m.parts[one.text] = true
			case one.kind == tokenHan:
				hans.WriteString(one.text)
			default:
				hans.WriteByte(' ')
			}
		}
		hans.WriteByte(' ')
		if !strings.ContainsAny(normal, "0123456789") {
			continue
		}
		kinds := map[string][]string{}
		for _, amount := range p.amount.FindAllStringSubmatch(normal, -1) {
			kind := "money"
			if amount[1] == "" && !p.money.MatchString(amount[3]) {
				kind = amount[3]
			}
			kinds[kind] = append(kinds[kind], amount[2], amount[2]+amount[3])
		}
		if p.becomes.MatchString(normal) {
			kinds["becomes"] = p.number.FindAllString(normal, -1)
			kinds["becomes"] = append(kinds["becomes"], kinds["becomes"]...) // each counts as an amount and with its unit, like the others
		}
		for _, amounts := range kinds {
			if len(amounts) < 4 {
				continue
			}
			for _, amount := range amounts {
				for _, one := range w.tokens(amount) {
					if one.kind == tokenNumber {
						m.parts[one.text] = true
					}
				}
			}
		}
	}
	m.hanParts += hans.String()
}

// answered says whether the message that a reply quotes nearest is the question. Who agrees may agree with what somebody else wrote.
func (m matter) answered(quote []string) bool {
	all := strings.ReplaceAll(strings.Join(quote, ""), " ", "")
	return m.title != "" && strings.Contains(all, m.title)
}

// disputed says whether a quotation has something in it that one can agree to without approving: an objection, a doubt, a question.
func (w *wording) disputed(quote []string) bool {
	if slices.ContainsFunc(quote, w.patterns.asksFor.MatchString) {
		return false // the question, in other words
	}
	for _, line := range quote {
		asked := w.patterns.shallI.MatchString(line) // whether to do it
		for _, it := range w.items(w.tokens(line)) {
			switch it.is {
			case saysQuestion, saysCondition:
				if !asked {
					return true
				}
			case saysRefusal, saysNo, saysNegation, saysHedge, saysDeferral, saysChange, saysRegret:
				return true
			}
		}
		if strings.Contains(line, "?") && !asked {
			return true
		}
	}
	return false
}

// subject looks whether a mail has become one about something else.
func (w *wording) subject(r *reading, about matter, t Text) {
	if t.Reply.Subject == "" || !about.any {
		return
	}
	normal, _ := w.normalise(t.Reply.Subject)
	for {
		rest := w.patterns.rePrefix.ReplaceAllString(normal, "")
		if rest == normal {
			break
		}
		normal = rest
	}
	ts := w.tokens(normal)
	shared, others := false, 0
	for i, one := range ts {
		switch one.kind {
		case tokenWord, tokenNumber:
			if about.words[one.text] {
				shared = true
			} else {
				others++
			}
		case tokenHan:
			if i+1 < len(ts) && ts[i+1].kind == tokenHan {
				if strings.Contains(about.han, one.text+ts[i+1].text) {
					shared = true
				} else {
					others++
				}
			}
		}
	}
	generic := strings.Contains(normal, "approv") || strings.Contains(normal, "request") || strings.Contains(normal, "审批") || strings.Contains(normal, "批准") || strings.Contains(normal, "请求") || strings.Contains(normal, "tandem")
	if others > 0 && !shared && !generic {
		r.veto(vetoSubject, normal)
	}
	for _, it := range w.items(ts) {
		if (it.is == saysRefusal || it.is == saysNo) && !about.words[it.text] && !strings.Contains(about.han, it.text) {
			r.veto(vetoSubject, it.text)
		}
	}
}

// automatic says whether no person wrote a reply. Sure is false when a person may have written it about being away.
func (w *wording) automatic(t Text, c cleaned) (found, sure bool) {
	if t.Reply.Automatic {
		return true, true
	}
	subject, _ := w.normalise(t.Reply.Subject)
	if w.patterns.autoSubject.MatchString(subject) {
		return true, true
	}
	body := strings.Join(c.lines, " ")
	if len(body) > 4<<10 {
		body = strings.ToValidUTF8(body[:4<<10], "")
	}
	if w.patterns.autoSure.MatchString(body) {
		return true, true
	}
	return w.patterns.autoText.MatchString(body), false
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
