package human

import (
	"cmp"
	"time"

	"tandem/human/lineage"
	"tandem/text"
)

// words are the texts that people read in messages, besides the question itself. Times are RFC 3339 in UTC, since the reader's time zone
// is not known. Channels have the words of their buttons and forms themselves.
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
	said := &saying{language: w.language}
	until := time.UnixMilli(m.Interaction.TimeoutAt).UTC().Format(time.RFC3339)
	switch m.Kind {
	case KindRequest:
		w.requested(said, about)
	case KindReminder:
		said.say(w.reminder)
	case KindEscalation:
		said.say(w.escalation)
	case KindWarning:
		said.say(w.warning, minutesLeft(m.Interaction, now), until)
	case KindAskBack:
		w.askedBack(said, about)
	case KindCompleted:
		w.ended(said, m.Request, about)
	case KindTimeout:
		said.say(w.timedOut)
		said.say(w.afterTimeout(m.Request.TimeoutAction))
	case KindCancelled:
		said.say(w.cancelled)
		said.sayIf(w.reason, about.Reason)
	}
	if !wantsAnswer(m.Kind) {
		return said.list
	}
	said.list = append(said.list, lineage.AgainLines(m.Request.Language, m.Request.Again)...)
	said.list = append(said.list, lineage.ForkLines(m.Request.Language, m.Request.Fork)...)
	if m.Interaction.TimeoutAt > 0 && m.Kind != KindWarning {
		said.say(w.deadline, until)
	}
	if m.Link == "" && m.Kind == KindAskBack { // there is no form to send them to
		said.say(w.inInbox)
	}
	return said.list
}

// saying collects lines in a language.
type saying struct {
	language string
	list     []string
}

func (s *saying) say(t text.Text, args ...any) {
	s.list = append(s.list, t.With(args...).In(s.language))
}

// sayIf adds a line about a value unless it is empty.
func (s *saying) sayIf(t text.Text, value string) {
	if value != "" {
		s.say(t, value)
	}
}

// requested says who asks: the workflow, somebody who hands a question on, or an admin who hands on another's.
func (w words) requested(said *saying, about note) {
	switch {
	case about.By == "":
		said.say(w.request)
		return
	case about.Of == "":
		said.say(w.delegated, about.By)
	default:
		said.say(w.delegatedFor, about.By, about.Of)
	}
	said.sayIf(w.asBefore, about.Reason)
}

// askedBack says why a reply does not count yet.
func (w words) askedBack(said *saying, about note) {
	switch about.Reason {
	case reasonHighRisk:
		said.say(w.highRisk)
	case reasonInvalid:
		said.say(w.invalid)
	default:
		said.say(w.unclear)
	}
	said.sayIf(w.youWrote, about.Said)
}

// ended says who has answered, and what.
func (w words) ended(said *saying, r Request, about note) {
	said.say(w.completed)
	switch {
	case about.Override:
		said.say(w.overridden, about.By)
		said.say(w.reason, about.Reason)
	case about.By != "":
		said.say(w.completedBy, about.By)
	}
	if about.As != "" {
		said.say(w.result, label(r, about.As))
	}
}

// afterTimeout says how the workflow goes on when no one has answered.
func (w words) afterTimeout(action string) text.Text {
	switch action {
	case TimeoutContinue:
		return w.goesOn
	case TimeoutDefault:
		return w.takesDefault
	}
	return w.fails
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
