package discord

import "tandem/text"

// words are what the channel itself says; what a message says comes with it, and the words of a form with the form.
type words struct {
	content, arguments, shortened, deadline, quorum, workflow, risk, high, medium string
	choose, recorded, tryAgain, ended                                             string
}

func wordsIn(language string) words {
	say := func(t text.Text) string { return t.In(language) }
	return words{
		content:   say(text.Of("Content")),
		arguments: say(text.Of("Arguments")),
		shortened: say(text.Of(" (shortened)")),
		deadline:  say(text.Of("Until")),
		quorum:    say(text.Of("%d approvals are needed")),
		workflow:  say(text.Of("Workflow")),
		risk:      say(text.Of("Risk")),
		high:      say(text.Of("high")),
		medium:    say(text.Of("medium")),
		choose:    say(text.Of("Choose")),
		recorded:  say(text.Of("Recorded.")),
		tryAgain:  say(text.Of("Your answer could not be recorded. Please try again.")),
		ended:     say(text.Of("This question has ended.")),
	}
}
