package human

import (
	"cmp"
	"slices"
	"strings"

	"tandem/human/form"
	"tandem/text"
)

// Pages and messages are in the language of the person who reads them: as they have set it, else, of a page, as their browser
// says, else as the question is: that of the execution, of the workflow or of the installation.

// language is what a person has set; empty: nothing, or they are not a user.
func (p *people) language(who somebody) string {
	n, ok := p.byID[cmp.Or(who.user, who.account)]
	if !ok {
		return ""
	}
	return p.users[n].Language()
}

// reads is the language of the person of a seat; empty: it is not set, or the seat is not one person.
func (p *people) reads(seat string) string {
	if seat == "" {
		return ""
	}
	who, err := p.at(seat)
	if err != nil {
		return ""
	}
	return p.language(who)
}

// In returns the question for a reader of a language: the words of Tandem itself are in that language; what an author, a model or a
// tool has written stays as it is. Empty: as it was asked.
func (r Request) In(language, purpose string) Request {
	if language == "" || language == r.Language {
		return r
	}
	texts := r.Texts
	if texts == nil {
		texts = r.textsBefore(purpose)
	}
	r.Language = language
	r.Title = texts.In(form.TitleText, language, r.Title)
	r.Description = texts.In(form.DescriptionText, language, r.Description)
	r.Options = slices.Clone(r.Options)
	for n, o := range r.Options {
		r.Options[n].Label = texts.In(form.OptionText(o.Value), language, o.Label)
	}
	return r
}

// says fills in a text that is still empty, in the language of the question, and keeps it for other languages.
func (r *Request) says(words *string, place string, t text.Text) {
	if *words != "" {
		return
	}
	*words = t.In(r.Language)
	if r.Texts == nil {
		r.Texts = form.Texts{}
	}
	r.Texts[place] = text.Stored{Text: t}
}

// textsBefore finds the texts of Tandem in a question from before questions stored them: those that are exactly as it would have written
// them.
func (r Request) textsBefore(purpose string) form.Texts {
	if purpose == "" || purpose == PurposeNode {
		return nil
	}
	was := Request{Language: r.Language, Begun: r.Begun}
	was.operational(purpose)
	texts := form.Texts{}
	keep := func(place, words, before string) {
		if one, ok := was.Texts[place]; ok && words == before {
			texts[place] = one
		}
	}
	keep(form.TitleText, r.Title, was.Title)
	keep(form.DescriptionText, r.Description, was.Description)
	for n, o := range was.Options {
		if n < len(r.Options) && r.Options[n].Value == o.Value {
			keep(form.OptionText(o.Value), r.Options[n].Label, o.Label)
		}
	}
	if _, known := texts[form.TitleText]; !known && purpose == PurposeOutcomeUnknown {
		if tool, ok := toolBefore(r.Language, r.Title); ok {
			texts[form.TitleText] = text.Stored{Text: wasDone(tool)}
		}
	}
	return texts
}

// wasDone asks whether a tool has done its work.
func wasDone(tool string) text.Text { return text.Of("Was %s done?", tool) }

// toolBefore returns the tool that such a question of an older version is about.
func toolBefore(language, title string) (string, bool) {
	before, after, _ := strings.Cut(wasDone("%s").In(language), "%s")
	if !strings.HasPrefix(title, before) || !strings.HasSuffix(title, after) || len(title) <= len(before)+len(after) {
		return "", false
	}
	return title[len(before) : len(title)-len(after)], true
}
