package slack

import "tandem/text"

// words are what the channel itself says; what a message says comes with it, and the words of a form with the form.
type words struct {
	content, arguments, shortened, deadline, quorum, workflow, risk, high, medium string
	sure, sureText, yes, no, submit, close                                        string
	recorded, tryAgain, ended, unknownMail, reply, choose, pick                   string
}

func wordsIn(language string) words {
	say := func(t text.Text) string { return t.In(language) }
	return words{
		content:     say(text.Of("Content")),
		arguments:   say(text.Of("Arguments")),
		shortened:   say(text.Of(" (shortened)")),
		deadline:    say(text.Of("Until")),
		quorum:      say(text.Of("%d approvals are needed")),
		workflow:    say(text.Of("Workflow")),
		risk:        say(text.Of("Risk")),
		high:        say(text.Of("high")),
		medium:      say(text.Of("medium")),
		sure:        say(text.Of("Are you sure?")),
		sureText:    say(text.Of("The risk of this is high: %s")),
		yes:         say(text.Of("Yes").For("to a warning")),
		no:          say(text.Of("Back")),
		submit:      say(text.Of("Submit")),
		close:       say(text.Of("Close")),
		recorded:    say(text.Of("Recorded.")),
		tryAgain:    say(text.Of("Your answer could not be recorded. Please try again.")),
		ended:       say(text.Of("This question has ended.")),
		unknownMail: say(text.Of("Who you are cannot be checked at the moment. Please try again later.")),
		reply:       say(text.Of("Answer").For("a button")),
		choose:      say(text.Of("Choose one")),
		pick:        say(text.Of("Choose one or more")),
	}
}
