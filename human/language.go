package human

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tandem/text"
)

// Pages and messages are in the language of who reads them: as they have set it, else, of a page, as their browser says, else as the
// question is: that of the execution, of the workflow or of the installation.

// language is what a person has set; empty: nothing, or they are not a user.
func (p *people) language(who somebody) string {
	n, ok := p.byID[cmp.Or(who.user, who.account)]
	if !ok {
		return ""
	}
	return p.users[n].Language()
}

// reads is the language of the person of a seat; empty: they have not said, or it is not one person.
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

// In is the question for a reader of a language: what Tandem itself asks and calls the choices is in that language; what an author, a
// model or a tool has written stays as it is. Empty: as it was asked.
func (r Request) In(language, purpose string) Request {
	if language == "" || language == r.Language {
		return r
	}
	from := r.Language
	r.Language = language
	if purpose == "" || purpose == PurposeNode {
		return r
	}
	// What it would have been asked as without words of its own, in both languages.
	was, is := Request{Language: from, Begun: r.Begun}, Request{Language: language, Begun: r.Begun}
	was.operational(purpose)
	is.operational(purpose)
	if r.Title == was.Title {
		r.Title = is.Title
	} else if tool, ok := toolIn(from, r.Title); ok && purpose == PurposeOutcomeUnknown {
		r.Title = fmt.Sprintf(wasDone(language), tool)
	}
	if r.Description == was.Description {
		r.Description = is.Description
	}
	r.Options = slices.Clone(r.Options)
	for n := range r.Options {
		if n < len(was.Options) && n < len(is.Options) && r.Options[n].Value == was.Options[n].Value && r.Options[n].Label == was.Options[n].Label {
			r.Options[n].Label = is.Options[n].Label
		}
	}
	return r
}

// wasDone asks whether a tool has done its work.
func wasDone(language string) string {
	return text.Of("Was %s done?").In(language)
}

// toolIn is the tool that such a question is about.
func toolIn(language, title string) (string, bool) {
	before, after, _ := strings.Cut(wasDone(language), "%s")
	if !strings.HasPrefix(title, before) || !strings.HasSuffix(title, after) || len(title) <= len(before)+len(after) {
		return "", false
	}
	return title[len(before) : len(title)-len(after)], true
}
