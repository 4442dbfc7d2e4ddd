package form

import (
	"encoding/json"
	"strings"

	"tandem/text"
)

// Problem is one thing that is wrong with an answer: where, and what, in the languages that people read. Without a path it is about all of
// it.
type Problem struct {
	Path string
	Text Text
	// Schema says that a JSON Schema refuses it.
	Schema bool
}

// Name is the last part of the path: the field, as people know it.
func (p Problem) Name() string { return p.Path[strings.LastIndexByte(p.Path, '.')+1:] }

// Problems are everything that is wrong with an answer, so that a person hears of it at once. They are an error.
type Problems []Problem

// maxProblems is how many of them anybody reads. An answer can be wrong in more places than there is memory to say so.
const maxProblems = 100

func (p *Problems) addProblem(path string, t Text) {
	if len(*p) < maxProblems {
		*p = append(*p, Problem{Path: path, Text: t})
	}
}

// Error is all problems in English, each with its path.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for n, one := range p {
		texts[n] = strings.TrimPrefix(one.Path+": "+one.Text.In(text.English), ": ")
	}
	return strings.Join(texts, "; ")
}

// In is all problems in a language, each with the name of its field.
func (p Problems) In(language string) string {
	if text.Language(language) == text.English { // programs read it too: with whole paths
		return p.Error()
	}
	texts := make([]string, len(p))
	for n, one := range p {
		if texts[n] = one.Text.In(language); one.Name() != "" {
			texts[n] = text.Of("%s: %s", one.Name(), one.Text).In(language)
		}
	}
	return strings.Join(texts, " ")
}

// Stored is the form in which an error keeps them: in words, in every language.
func (p Problems) Stored() json.RawMessage { return text.Settled(p.In).Stored() }

// err is nil when there are none.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
