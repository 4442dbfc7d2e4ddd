package slack

import (
	"tandem/human"
	"tandem/text"
)

// words are what the channel itself says; what a message says comes with it, and the words of a form with the form.
type words struct {
	human.ChatWords
	sure, sureText, yes, no, submit, close string
	unknownMail, reply, choose, pick       string
}

func wordsIn(language string) words {
	say := func(t text.Text) string { return t.In(language) }
	return words{
		ChatWords:   human.ChatWordsIn(language),
		sure:        say(text.Of("Are you sure?")),
		sureText:    say(text.Of("The risk of this is high: %s")),
		yes:         say(text.Of("Yes").For("to a warning")),
		no:          say(text.Of("Back")),
		submit:      say(text.Of("Submit")),
		close:       say(text.Of("Close")),
		unknownMail: say(text.Of("Who you are cannot be checked at the moment. Please try again later.")),
		reply:       say(text.Of("Answer").For("a button")),
		choose:      say(text.Of("Choose one")),
		pick:        say(text.Of("Choose one or more")),
	}
}
