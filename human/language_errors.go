package human

import (
	"errors"

	"tandem/api"
	"tandem/fault"
	"tandem/human/form"
	"tandem/text"
)

// ProblemsOf returns what is wrong with the answer that an error refuses, field by field, in every language. An error with texts in one
// language only has them in that one.
func ProblemsOf(err error) form.Problems {
	if problems, ok := errors.AsType[form.Problems](err); ok {
		return problems
	}
	fields, _ := fault.From(err).Details["fields"].([]api.FaultField)
	problems := make(form.Problems, len(fields))
	for n, f := range fields {
		problems[n] = form.Problem{Path: f.Path, Text: text.As(f.Message)}
		if f.MessageZH != "" {
			problems[n].Text, problems[n].Schema = text.Beside(f.Message, f.MessageZH), true
		}
	}
	return problems
}

// InLanguage is the message of an error in a language; for an answer that is refused, what is wrong with it, field by field.
func InLanguage(language string, e *fault.Error) string {
	if problems := ProblemsOf(e); len(problems) > 0 && text.Language(language) != text.English {
		return problems.In(language)
	}
	return sayError(language, e)
}

// sayError puts an error into words for a reader of a language. If the stored words cannot be read, it returns the message in English.
func sayError(language string, e *fault.Error) string {
	words, err := text.Read(e.Words())
	if err != nil || words.In(language) == words.In(text.English) {
		return e.Message // which may say more
	}
	return words.In(language)
}
