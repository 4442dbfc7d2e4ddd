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
		problems[n] = form.Problem{Path: f.Path, Text: f.Text(), Schema: f.MessageZH != ""}
	}
	return problems
}

// InLanguage is the message of an error in a language; for an answer that is refused, what is wrong with it, field by field.
func InLanguage(language string, e *fault.Error) string {
	if problems := ProblemsOf(e); len(problems) > 0 && text.Language(language) != text.English {
		return problems.In(language)
	}
	return text.ErrorIn(language, e)
}
