package form

import (
	"strings"

	"tandem/text"
)

// Text is a text in the languages that people read.
type Text = text.Text

// What forms say. They are read-only.
var (
	wordNotes       = text.Of("Notes (optional)")
	promptNotes     = text.Of("Note")
	wordDescription = text.Of("Note (optional)")
	promptWords     = text.Of("In your own words")
	wordChoose      = text.Of("Choose")
	wordSeveral     = text.Of("You may choose several.")
	wordResult      = text.Of("Result (JSON, optional)")
	promptResult    = text.Of("Its result, as JSON")
	wordOnlyDone    = text.Of("Only with “It was done”: what the step would have returned.")
	wordRaise       = text.Of("Raise the budget by")
	wordAnswer      = text.Of("Answer (JSON)")
	wordObject      = text.Of("A JSON object.")
	promptWhole     = text.Of("The answer, as JSON")
	wordEvidence    = text.Of("Evidence for “%s”")
	promptEvidence  = text.Of("What it rests on")
	promptPasses    = text.Of("%s (does it pass?)")
	promptAbout     = text.Of("%s (%s)")
	promptMail      = text.Of("%s (a mail address)")
	promptDate      = text.Of("%s (a date like 2026-01-31)")
	promptFile      = text.Of("%s (a file)")
	promptScale     = text.Of("%s (%s to %s)")
	promptScore     = text.Of("%s (%s to %s, a letter from A to F, or pass or fail)")
	wordAllow       = text.Of("Allow it?")
	wordGoOn        = text.Of("Go on?")
	wordAccept      = text.Of("Accept it?")
	wordWasDone     = text.Of("Was it done?")
	wordYes         = text.Of("Yes")
	wordNo          = text.Of("No")
	wordConfirm     = text.Of("Confirm")
	wordCancel      = text.Of("Cancel")
	wordAccepts     = text.Of("Accept")
	wordDeclines    = text.Of("Do not accept")
	wordDone        = text.Of("It was done")
	wordNotDone     = text.Of("It was not: do it now")
	wordStop        = text.Of("Stop")
	wordPass        = text.Of("Pass")
	wordFail        = text.Of("Fail")

	limitFromTo      = text.Of("From %s to %s.")
	limitFrom        = text.Of("At least %s.")
	limitTo          = text.Of("At most %s.")
	limitLengths     = text.Of("From %d to %d characters.")
	limitLonger      = text.Of("At least %d characters.")
	limitShorter     = text.Of("At most %d characters.")
	limitItems       = text.Of("Choose at least %d.")
	limitFewer       = text.Of("Choose at most %d.")
	limitItemsFromTo = text.Of("Choose %d to %d.")
	limitScore       = text.Of("From %s to %s, a letter from A to F, or pass or fail.")
	limitDate        = text.Of("Year-month-day, such as 2027-03-31.")
	limitFile        = text.Of("At most 10 MiB.")
	limitYesNo       = text.Of("yes or no")
	limitPassFail    = text.Of("pass or fail")
	limitOneOf       = text.Of("one of: %s")
	limitSomeOf      = text.Of("some of: %s")
)

// What is wrong with an answer. They are read-only.
var (
	wrongRequired     = text.Of("it is required")
	wrongNoEvidence   = text.Of("it is required: say what the score rests on")
	wrongNoChoice     = text.Of("it is missing; choose one of %s")
	wrongNoChoices    = text.Of("it is missing; choose some of %s")
	wrongNoAnswer     = text.Of("the answer is missing")
	wrongNoneOf       = text.Of("%q is none of %s")
	wrongTwice        = text.Of("%q is chosen twice")
	wrongSeveral      = text.Of("only one may be chosen, not %d")
	wrongNumber       = text.Of("a number was expected")
	wrongRange        = text.Of("a number from %s to %s was expected")
	wrongScore        = text.Of("a number from %s to %s, a letter from A to F, true or false was expected")
	wrongLetter       = text.Of("A, B, C, D or F was expected")
	wrongYesNo        = text.Of("true or false was expected")
	wrongYesNoTyped   = text.Of("y or n was expected")
	wrongRaise        = text.Of("a positive number was expected: by how much the budget is raised")
	wrongText         = text.Of("a text was expected")
	wrongConfirm      = text.Of("true was expected, or false to cancel")
	wrongApprove      = text.Of("approve or reject was expected")
	wrongNeither      = text.Of("%q is neither approve nor reject")
	wrongBoth         = text.Of("it says both yes and no")
	wrongNoOutcome    = text.Of("an object with an outcome was expected: done, not_done or stop")
	wrongOutcome      = text.Of("%q decides nothing; say %s")
	wrongResult       = text.Of("only what was done has a result; leave it out")
	wrongObject       = text.Of("an object was expected")
	wrongObjectLike   = text.Of("an object was expected: %s")
	wrongNothing      = text.Of("nothing was given; fill in %s, or say in description what you know; to end it, cancel the execution")
	wrongNoField      = text.Of("there is no such field")
	wrongNoFieldOf    = text.Of("there is no such field; there are %s")
	wrongNoFieldNear  = text.Of("there is no such field; there are %s; did you mean %q?")
	wrongNoCriterion  = text.Of("there is no such criterion")
	wrongNoCriteria   = text.Of("there is nothing to judge by")
	wrongMail         = text.Of("%q is not a mail address")
	wrongDate         = text.Of("%q is not a date like 2006-01-02")
	wrongLess         = text.Of("it is less than %s")
	wrongMore         = text.Of("it is more than %s")
	wrongShort        = text.Of("it has less than %d characters")
	wrongLong         = text.Of("it has more than %d characters")
	wrongPattern      = text.Of("it does not match %q")
	wrongFileSize     = text.Of("the file is larger than %d bytes")
	wrongFile         = text.Of(`a file was expected: {"name", "content_type", "base64"}`)
	wrongStored       = text.Of("%q is not a stored value")
	wrongBase64       = text.Of("it is not base64")
	wrongShape        = text.Of("it has the wrong form: %s")
	wrongUnreadable   = text.Of("it cannot be read: %v")
	wrongSchema       = text.Of("its schema cannot be used: %s")
	wrongRule         = text.Of("its validation cannot be used: %v")
	wrongRepeatedKey  = text.Of("a key stands twice")
	wrongSyntax       = text.Of("it is not valid JSON")
	wrongDocument     = text.Of("it cannot be read")
	wrongTypedJSON    = text.Of("this is not valid JSON")
	wrongTypedTooLong = text.Of("this is too long")
	wrongGone         = text.Of("what was chosen is not an option of this question any more; look at it again")
	wrongNoButton     = text.Of("Answer with one of the buttons.")
)

// captions are what options are called that everybody knows.
func captions() map[string]Text {
	return map[string]Text{
		"approve": text.Of("Approve"), "reject": text.Of("Reject"), "yes": wordYes, "no": wordNo,
		"confirm": wordConfirm, "deny": text.Of("Deny"),
	}
}

// Caption is what an option is called for readers of a language: its label, else words that everybody knows for its value, else the value.
func Caption(o Option, language string) string {
	if o.Label != "" && o.Label != o.Value {
		return o.Label
	}
	if known, ok := captions()[strings.ToLower(o.Value)]; ok {
		return known.In(language)
	}
	return o.Value
}
