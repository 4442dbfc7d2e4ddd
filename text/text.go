// Package text is what people read, in their language. Code says it in English, with values for its holes; the words in other languages
// are in one catalogue for each of them (zh.json), by the English. A language more is a file more.
//
// A [Text] is written out where it is shown, by code that knows the language of the reader. Nothing is translated by looking at English
// words: the code that makes a text or an error says what it is made of. Texts that stand beside what they are about, as the meanings of a
// kind's fields do, bring their words with them ([Beside]).
//
// Every package may import text; text imports nothing of Tandem.
package text

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

//go:embed *.json
var files embed.FS

// catalogues are the words of the other languages by the English ones. read-only
var catalogues = load()

// load reads the catalogues. They are part of the program: one that cannot be read is a defect.
func load() map[string]map[string]string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("text: %v", err))
	}
	all := map[string]map[string]string{}
	for _, entry := range entries {
		raw, err := files.ReadFile(entry.Name())
		if err != nil {
			panic(fmt.Sprintf("text: %v", err))
		}
		words := map[string]string{}
		if err := json.Unmarshal(raw, &words); err != nil {
			panic(fmt.Sprintf("text: %s: %v", entry.Name(), err))
		}
		all[strings.TrimSuffix(entry.Name(), ".json")] = words
	}
	return all
}

// Text is one thing that is said to people, in every language. The zero value says nothing.
type Text struct {
	english string
	// context tells texts apart that are the same in English.
	context string
	args    []any
	// own are words that do not come from a catalogue, by language.
	own map[string]string
	// plain texts are the same in all languages, except for texts among their values.
	plain bool
}

// Of is an English text, or a format with values for its verbs. The words in other languages are in the catalogues; a test sees to it that
// they are, so english must be a constant. A value may be a Text, which is told in the same language.
func Of(english string, args ...any) Text { return Text{english: english, args: args} }

// Formatted is [Of] for a format that a function was handed, as those are that report problems of a definition. The test of the catalogues
// knows these functions by their names and reads the formats where they are called.
func Formatted(english string, args ...any) Text {
	return Text{english: english, args: args, plain: english == "%s"}
}

// InTemplate is a text without values that a template of a page says. The test of the catalogues reads it there.
func InTemplate(english string) Text { return Text{english: english} }

// As is a text that is the same in every language: what an author wrote.
func As(words string) Text { return Text{english: words, plain: true} }

// Paragraphs is one text after the other, with an empty line between them. What says nothing is left out.
func Paragraphs(list ...Text) Text {
	var formats []string
	var args []any
	for _, one := range list {
		if !one.IsZero() {
			formats, args = append(formats, "%s"), append(args, one)
		}
	}
	return Text{english: strings.Join(formats, "\n\n"), plain: true, args: args}
}

// Beside is a text that stands in English and in Chinese beside what it is about. Other languages have it in their catalogues.
func Beside(english, chinese string) Text {
	t := Text{english: english}
	if chinese != "" {
		t.own = map[string]string{Chinese: chinese}
	}
	return t
}

// With puts values into the holes of the text in every language. A language may leave out all of them.
func (t Text) With(args ...any) Text {
	t.args = args
	return t
}

// For tells a text apart from others that are the same in English and not in other languages. Catalogues have it behind the English, in
// brackets.
func (t Text) For(context string) Text {
	t.context = " (" + context + ")"
	return t
}

// Saying is the text with words of its own in one language.
func (t Text) Saying(language, words string) Text {
	own := map[string]string{language: words}
	for l, w := range t.own { // order does not matter: each has a place of its own
		if l != language {
			own[l] = w
		}
	}
	t.own = own
	return t
}

// IsZero says that there is no text.
func (t Text) IsZero() bool { return t.english == "" && len(t.own) == 0 }

// Equal says whether two texts say the same in every language.
func (t Text) Equal(other Text) bool {
	return !slices.ContainsFunc(Languages(), func(l string) bool { return t.In(l) != other.In(l) })
}

// String is the text in English, so that it reads well in logs.
func (t Text) String() string { return t.In(English) }

// In is the text in the language of a reader, [Language] of which is taken. What a language has no words for is said in English.
func (t Text) In(language string) string {
	language = Language(language)
	if words := t.Words(language); words != "" {
		return words
	}
	return t.Words(English)
}

// Words are the words of the text in one of [Languages]; empty: it has none in that language.
func (t Text) Words(language string) string {
	if words, own := t.own[language]; own {
		return words
	}
	if t.plain {
		return fill(t.english, t.args, language)
	}
	format := t.english
	if language != English {
		format = catalogues[language][t.english+t.context]
		if format == "" && !strings.ContainsFunc(hole.ReplaceAllString(t.english, ""), unicode.IsLetter) {
			format = t.english // as in "%s (%s)": only its values have words
		}
	}
	return fill(format, t.args, language)
}

// MarshalJSON writes the words of every language, by language.
func (t Text) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, language := range Languages() {
		if i > 0 {
			out = append(out, ',')
		}
		words, err := json.Marshal(t.In(language))
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, '"'), language...), '"', ':')
		out = append(out, words...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Text) UnmarshalJSON(raw []byte) error {
	var own map[string]string
	if err := json.Unmarshal(raw, &own); err != nil {
		return fmt.Errorf("read a text: %w", err)
	}
	*t = Text{english: own[English], own: own}
	return nil
}

// fill puts values into the holes of a format, if it has any. Texts and errors among the values are told in the same language.
func fill(format string, args []any, language string) string {
	if len(args) == 0 || !strings.Contains(format, "%") {
		return format
	}
	told := make([]any, len(args))
	for i, arg := range args {
		switch inner := arg.(type) {
		case Text:
			arg = inner.In(language)
		case Told:
			if language != English { // whose readers see what fault puts into a message
				arg = ErrorIn(language, inner)
			}
		}
		told[i] = arg
	}
	return fmt.Sprintf(strings.ReplaceAll(format, "%w", "%v"), told...) // what an error wraps is told as what it says
}
