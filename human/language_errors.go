package human

import (
	"errors"

	"tandem/api"
	"tandem/fault"
	"tandem/human/form"
)

// ProblemsOf are what is wrong with the answer that an error refuses, field by field, in words for every reader. An error that knows its
// fields in one language only has them in that one.
func ProblemsOf(err error) form.Problems {
	if problems, ok := errors.AsType[form.Problems](err); ok {
		return problems
	}
	fields, _ := fault.From(err).Details["fields"].([]api.FaultField)
	problems := make(form.Problems, len(fields))
	for n, f := range fields {
		problems[n] = form.Problem{Path: f.Path, Text: form.Text{English: f.Message, Chinese: f.Message}}
		if f.MessageZH != "" {
			problems[n].Text.Chinese, problems[n].Schema = f.MessageZH, true
		}
	}
	return problems
}

// InLanguage is what an error says to a reader of a language.
func InLanguage(language string, e *fault.Error) string {
	if !form.IsChinese(language) {
		return e.Message
	}
	if problems := ProblemsOf(e); len(problems) > 0 {
		return problems.In(language)
	}
	switch {
	case e.Code == fault.Conflict && e.Details["arguments_hash"] != nil:
		return "您看到的内容与所询问的不一致，请重新查看后再答复。"
	case e.Code == fault.Conflict && e.Details["status"] == "pending":
		return "您已经答复过了，还在等待其他人的答复。"
	}
	return e.Message
}
