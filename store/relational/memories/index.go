package memories

import (
	"strconv"

	"tandem/store"
	"tandem/store/relational"
)

// Index finds records by their words. Each database has one of its own kind; the words come taken apart, each with the number of its
// scope before it, so that a search looks at its own scope only.
type Index interface {
	// Add enters the words of a record, and Remove takes a record out; RemoveAll does that for all with a place after first, up to and
	// with last.
	Add(w relational.Transaction, place int64, words Words) error
	Remove(w relational.Transaction, place int64) error
	RemoveAll(w relational.Transaction, first, last int64) error
	// Places is a statement that reads the places of what is wanted, and its arguments. Best reads them as "place", with a number as
	// "rank": the best first, which has the least. More statement may follow.
	Places(q Wanted) (text string, args []any)
	Best(q Wanted) (text string, args []any)
}

// Words are those of a record, of its title, its content and the rest.
type Words [3][]string

// Counts say how often a record has a word, in its title, its content and the rest.
type Counts [3]int

// Columns says which of these three are looked at; when none is, all are.
type Columns [3]bool

// Term is a word that is looked for.
type Term struct {
	Word string
	// Begins says that longer words which begin with it are meant as well.
	Begins bool
	// Records is how many have it.
	Records int
}

// Wanted is what is looked for: the records that have one of the words in one of the columns.
type Wanted struct {
	Terms   []Term
	Columns Columns
	// Documents is how many are searched. Ranked says that the best are those that have more of the rare words; else they are the newest.
	Documents int
	Ranked    bool
}

// prefix is what stands before every word of a scope, in letters and digits only: a word of one scope is never the
// beginning of a word of another.
func (m *memoryScope) prefix() string { return "s" + strconv.FormatInt(m.n, 10) + "x" }

// indexed is a text as the index has it.
func (m *memoryScope) indexed(text *store.MemoryText) (words Words) {
	prefix := m.prefix()
	for i, part := range []string{text.Title, text.Content, text.Extra} {
		list := store.Words(part)
		for n := range list {
			list[n] = prefix + list[n]
		}
		words[i] = list
	}
	return words
}

// term is a word as a query has it.
func (m *memoryScope) term(word string) Term {
	return Term{Word: m.prefix() + word, Begins: store.LoneCharacter(word)}
}
