package form

import "tandem/text"

// Texts are what Tandem itself says in a question, by where that stands in the request: title, description, or [OptionText] of an option.
type Texts map[string]text.Stored

// The places of texts.
const (
	TitleText       = "title"
	DescriptionText = "description"
)

// OptionText is where the label of an option stands.
func OptionText(value string) string { return "options." + value }

// In is the text of a place in a language. A place without one keeps the words that it has.
func (t Texts) In(place, language, words string) string {
	if one, ok := t[place]; ok {
		return one.In(language)
	}
	return words
}

// Say writes what Tandem says into a request that a kind makes: in a language, and in a form in which it can be told in others.
func Say(request map[string]any, language, place string, t text.Text) {
	request[place] = t.In(language)
	texts, ok := request["texts"].(Texts)
	if !ok {
		texts = Texts{}
		request["texts"] = texts
	}
	texts[place] = text.Stored{Text: t}
}
