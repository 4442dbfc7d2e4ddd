package form

import "strings"

// place is where a yes or a no is said.
type place uint8

// The places; a word may be known in several.
const (
	typed  place = 1 << iota // by a person who fills in a form
	scored                   // as the score of a review
	ticked                   // as the value of a field that is true or false
	named                    // as the name of an option of an approval
	acted                    // as the action of an answer that is given as a whole
)

// decision is what a word means, and where.
type decision struct {
	yes bool
	in  place
}

// decisions are the words for yes and no, in small letters. read-only
var decisions = map[string]decision{
	"yes":      {true, typed | scored | ticked | named},
	"true":     {true, typed | scored | ticked},
	"on":       {true, typed | ticked},
	"y":        {true, typed},
	"是":        {true, typed | scored},
	"通过":       {true, typed | scored},
	"pass":     {true, typed | scored},
	"passed":   {true, typed | scored},
	"approve":  {true, typed | named | acted},
	"approved": {true, acted},
	"confirm":  {true, named},

	"no":       {false, typed | scored | ticked | named | acted},
	"false":    {false, typed | scored | ticked},
	"off":      {false, typed | ticked},
	"n":        {false, typed},
	"否":        {false, typed | scored},
	"不通过":      {false, typed | scored},
	"fail":     {false, typed | scored},
	"failed":   {false, typed | scored},
	"reject":   {false, typed | named | acted},
	"rejected": {false, acted},
	"deny":     {false, named | acted},
}

// decided reads a decision in one word; ok is false where the word means neither in that place.
func (p place) decided(word string) (yes, ok bool) {
	d, known := decisions[strings.ToLower(word)]
	if !known || d.in&p == 0 {
		return false, false
	}
	return d.yes, true
}

// Words are the words for pass and fail that a person may type as the score of a review, in small letters; none for other entries. Programs
// that draw the form read them by it.
func (e *Entry) Words() map[string]bool {
	if e.Kind != Score {
		return nil
	}
	words := map[string]bool{}
	for word, d := range decisions { // order does not matter: it becomes a map
		if d.in&typed != 0 {
			words[word] = d.yes
		}
	}
	return words
}
