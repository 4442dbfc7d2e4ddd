package human

import (
	"cmp"
	"time"

	"tandem/text"
)

// words are the texts that people read in messages, besides the question itself. Times are RFC 3339 in UTC, since nobody knows where they
// are read. Channels have the words of their buttons and forms themselves.
type words struct {
	language                       string
	request, reminder, escalation  text.Text
	delegated, asBefore            text.Text // who, what they say
	delegatedFor                   text.Text // who, whose
	overridden                     text.Text // who
	warning, deadline              text.Text // minutes and time, time
	unclear, highRisk, invalid     text.Text
	youWrote                       text.Text // what
	inInbox                        text.Text
	completed, completedBy, result text.Text // -, who, what
	timedOut                       text.Text
	fails, goesOn, takesDefault    text.Text
	cancelled, reason              text.Text // -, why
}

// wordsIn are the words for a reader of a language.
func wordsIn(language string) words {
	return words{
		language:     language,
		request:      text.Of("A question is waiting for your answer."),
		reminder:     text.Of("Reminder: this question is still waiting for your answer."),
		escalation:   text.Of("Nobody has answered this question so far, so you are asked as well."),
		warning:      text.Of("Time left: %d min. This question ends at %s."),
		deadline:     text.Of("Answer by %s."),
		delegated:    text.Of("%s has handed this question on to you."),
		delegatedFor: text.Of("%s, an admin, has handed the answer of %s on to you."),
		overridden:   text.Of("%s, an admin, has decided it in the place of those who were asked."),
		asBefore:     text.Of("They say: %s"),
		unclear:      text.Of("We could not tell what your reply means, so it does not count yet. Please choose one of the options."),
		highRisk:     text.Of("This decision carries a high risk and is not taken from a written reply. Please use the form."),
		invalid:      text.Of("Your reply does not fit the question, so it does not count yet."),
		youWrote:     text.Of("You wrote: “%s”"),
		inInbox:      text.Of("Answer it in your Tandem inbox."),
		completed:    text.Of("This question has been answered; there is nothing left to do."),
		completedBy:  text.Of("Answered by %s."),
		result:       text.Of("Result: %s"),
		timedOut:     text.Of("The time for this question is over; it can no longer be answered."),
		cancelled:    text.Of("This question was withdrawn; no answer is needed any more."),
		reason:       text.Of("Reason: %s"),
		fails:        text.Of("The step fails because of that."),
		goesOn:       text.Of("The workflow goes on without an answer."),
		takesDefault: text.Of("The workflow goes on with the answer that was set for this case."),
	}
}

// lines are what a message says besides the question itself.
func (w words) lines(m Message, about note, now time.Time) []string {
	var list []string
	say := func(t text.Text, args ...any) { list = append(list, t.With(args...).In(w.language)) }
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
		switch about.Reason {
		case reasonHighRisk:
			say(w.highRisk)
		case reasonInvalid:
			say(w.invalid)
		default:
			say(w.unclear)
		}
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
		switch m.Request.TimeoutAction {
		case TimeoutContinue:
			say(w.goesOn)
		case TimeoutDefault:
			say(w.takesDefault)
		default:
			say(w.fails)
		}
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
