package sqlite

import (
	"strings"

	"tandem/store/relational"
	"tandem/store/relational/memories"
)

// words is the index of the words of memories: a full-text table of SQLite.
type words struct{}

// Add implements [memories.Index].
func (words) Add(w relational.Transaction, place int64, all memories.Words) error {
	_, err := w.Exec(`INSERT INTO memory_text (rowid, title, content, extra) VALUES (?, ?, ?, ?)`,
		place, strings.Join(all[0], " "), strings.Join(all[1], " "), strings.Join(all[2], " "))
	return err
}

// Remove implements [memories.Index].
func (words) Remove(w relational.Transaction, place int64) error {
	_, err := w.Exec(`DELETE FROM memory_text WHERE rowid = ?`, place)
	return err
}

// RemoveAll implements [memories.Index]. The full-text table does not tell which rows it has.
func (words) RemoveAll(w relational.Transaction, first, last int64) error {
	_, err := w.Exec(`DELETE FROM memory_text WHERE rowid IN (SELECT place FROM memory_records WHERE place > ? AND place <= ? AND searched = 1)`, first, last)
	return err
}

// Places implements [memories.Index].
func (words) Places(q memories.Wanted) (string, []any) {
	return `SELECT 1 FROM memory_text WHERE memory_text MATCH ?`, []any{match(q)}
}

// Best implements [memories.Index].
func (words) Best(q memories.Wanted) (string, []any) {
	text := `SELECT rowid AS place, rank AS rank FROM memory_text WHERE memory_text MATCH ? ORDER BY rank`
	if !q.Ranked {
		text = `SELECT rowid AS place, -rowid AS rank FROM memory_text WHERE memory_text MATCH ? ORDER BY rowid DESC`
	}
	return text, []any{match(q)}
}

// match is what is wanted as a query of the full-text table.
func match(q memories.Wanted) string {
	columns := ""
	for i, name := range []string{"title", "content", "extra"} {
		if q.Columns[i] {
			columns += " " + name
		}
	}
	if columns != "" {
		columns = "{" + columns + "} : "
	}
	terms := make([]string, len(q.Terms))
	for i, t := range q.Terms {
		terms[i] = `"` + strings.ReplaceAll(t.Word, `"`, "") + `"`
		if t.Begins {
			terms[i] += "*"
		}
	}
	return columns + "(" + strings.Join(terms, " OR ") + ")"
}
