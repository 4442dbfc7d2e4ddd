package workflow

import (
	"fmt"

	"tandem/text"
)

// Severity tells an error, which a workflow must not have to be saved, from a warning.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is one thing that is wrong with a definition.
type Problem struct {
	Severity Severity `json:"severity"`
	// Code is stable, for programs: "unknown_kind".
	Code string `json:"code"`
	// Path is a JSON path into the definition: "nodes[2].configurations.condition_expression".
	Path string `json:"path"`
	// Message says what is wrong and names the remedy.
	Message string `json:"message"`
	// Line and Column are where the path stands in the file, counted from 1; 0 when unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Saving says that it is an error only where a definition is validated, saved or deployed: a revision that is stored already is still
	// run, and a node that cannot use what is written says so when it runs. So a new check does not take away what an older program has let
	// pass.
	Saving bool `json:"-"`
	// Words are the message in the languages of readers; a problem without them has its message only. Set both with [Problem.Saying].
	Words text.Text `json:"-"`
}

// Saying is the problem with a message for readers of every language.
func (p Problem) Saying(words text.Text) Problem {
	p.Words, p.Message = words, words.In(text.English)
	return p
}

// In is the message for a reader of a language.
func (p Problem) In(language string) string {
	if p.Words.IsZero() {
		return p.Message
	}
	return p.Words.In(language)
}

// Says are the words of the message, in English only where it has no others.
func (p Problem) Says() text.Text {
	if p.Words.IsZero() {
		return text.As(p.Message)
	}
	return p.Words
}

// Error makes a problem usable as an error.
func (p Problem) Error() string { return fmt.Sprintf("%s: %s (%s)", p.Path, p.Message, p.Code) }
