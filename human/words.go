package human

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// words are the texts that people read in messages, besides the question itself. Times are RFC 3339 in UTC, since nobody knows where they
// are read. Channels have the words of their buttons and forms themselves.
type words struct {
	request, reminder, escalation  string
	delegated, asBefore            string // who, what they say
	delegatedFor                   string // who, whose
	overridden                     string // who
	warning, deadline              string // minutes and time, time
	unclear, highRisk, invalid     string
	youWrote                       string // what
	inInbox                        string
	completed, completedBy, result string // -, who, what
	timedOut                       string
	fails, goesOn, takesDefault    string
	cancelled, reason              string // -, why
}

// wordsIn are the words of a language: Chinese for zh and its kinds, English for all else.
func wordsIn(language string) words {
	if strings.HasPrefix(strings.ToLower(language), "zh") {
		return words{
			request: "有一个问题等待您答复。", reminder: "提醒：这个问题仍在等待您答复。", escalation: "此问题一直无人答复，现在也请您答复。",
			warning: "还剩 %d 分钟：此问题将于 %s 截止。", deadline: "截止时间：%s",
			delegated: "%s 已将此问题委托给您。", delegatedFor: "管理员 %s 已将 %s 的答复委托给您。", overridden: "管理员 %s 已代替被询问的人作出决定。", asBefore: "留言：%s",
			unclear:  "我们没能确定您的回复是什么意思，因此尚未计入。请明确选择一个选项。",
			highRisk: "这是高风险的决定，不能用文字回复来作出。请使用表单。",
			invalid:  "您的回复不符合此问题的要求，因此尚未计入。",
			youWrote: "您写的是：“%s”", inInbox: "请在 Tandem 的收件箱中答复。",
			completed: "此问题已有答复，无需再做任何事。", completedBy: "由 %s 答复。", result: "结果：%s",
			timedOut: "此问题已超时，不能再答复。", cancelled: "此问题已撤回，不需要答复了。", reason: "原因：%s",
			fails: "这一步因此失败。", goesOn: "流程在没有答复的情况下继续。", takesDefault: "流程使用预设的答复继续。",
		}
	}
	return words{
		request: "A question is waiting for your answer.", reminder: "Reminder: this question is still waiting for your answer.",
		escalation: "Nobody has answered this question so far, so you are asked as well.",
		warning:    "Time left: %d min. This question ends at %s.", deadline: "Answer by %s.",
		delegated: "%s has handed this question on to you.", delegatedFor: "%s, an admin, has handed the answer of %s on to you.", overridden: "%s, an admin, has decided it in the place of those who were asked.", asBefore: "They say: %s",
		unclear:  "We could not tell what your reply means, so it does not count yet. Please choose one of the options.",
		highRisk: "This decision carries a high risk and is not taken from a written reply. Please use the form.",
		invalid:  "Your reply does not fit the question, so it does not count yet.",
		youWrote: "You wrote: “%s”", inInbox: "Answer it in your Tandem inbox.",
		completed: "This question has been answered; there is nothing left to do.", completedBy: "Answered by %s.", result: "Result: %s",
		timedOut: "The time for this question is over; it can no longer be answered.", cancelled: "This question was withdrawn; no answer is needed any more.", reason: "Reason: %s",
		fails: "The step fails because of that.", goesOn: "The workflow goes on without an answer.", takesDefault: "The workflow goes on with the answer that was set for this case.",
	}
}

// lines are what a message says besides the question itself.
func (w words) lines(m Message, about note, now time.Time) []string {
	var list []string
	say := func(text string, args ...any) {
		if len(args) > 0 {
			text = fmt.Sprintf(text, args...)
		}
		list = append(list, text)
	}
	i := m.Interaction
	until := time.UnixMilli(i.TimeoutAt).UTC().Format(time.RFC3339)
	switch m.Kind {
	case KindRequest:
		if about.By == "" {
			say(w.request)
			break
		}
		if about.Of == "" {
			say(w.delegated, about.By)
		} else {
			say(w.delegatedFor, about.By, about.Of)
		}
		if about.Reason != "" {
			say(w.asBefore, about.Reason)
		}
	case KindReminder:
		say(w.reminder)
	case KindEscalation:
		say(w.escalation)
	case KindWarning:
		say(w.warning, minutesLeft(i, now), until)
	case KindAskBack:
		say(cmp.Or(map[string]string{reasonHighRisk: w.highRisk, reasonInvalid: w.invalid}[about.Reason], w.unclear))
		if about.Said != "" {
			say(w.youWrote, about.Said)
		}
	case KindCompleted:
		say(w.completed)
		switch {
		case about.Override:
			say(w.overridden, about.By)
			say(w.reason, about.Reason)
		case about.By != "":
			say(w.completedBy, about.By)
		}
		if about.As != "" {
			say(w.result, label(m.Request, about.As))
		}
	case KindTimeout:
		say(w.timedOut)
		say(cmp.Or(map[string]string{TimeoutContinue: w.goesOn, TimeoutDefault: w.takesDefault}[m.Request.TimeoutAction], w.fails))
	case KindCancelled:
		say(w.cancelled)
		if about.Reason != "" {
			say(w.reason, about.Reason)
		}
	}
	if wantsAnswer(m.Kind) {
		list = append(list, AgainLines(m.Request.Language, m.Request.Again)...)
		list = append(list, ForkLines(m.Request.Language, m.Request.Fork)...)
		if i.TimeoutAt > 0 && m.Kind != KindWarning {
			say(w.deadline, until)
		}
		if m.Link == "" && m.Kind == KindAskBack { // there is no form to send them to
			say(w.inInbox)
		}
	}
	return list
}

// label is what people call an option.
func label(r Request, value string) string {
	for _, o := range r.Options {
		if o.Value == value {
			return cmp.Or(o.Label, o.Value)
		}
	}
	return value
}
