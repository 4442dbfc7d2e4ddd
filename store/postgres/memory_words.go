package postgres

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tandem/store/relational"
	"tandem/store/relational/memories"
)

// words is the index of the words of memories: text search of PostgreSQL. The columns of a record are weights.
type words struct{}

// weights are those of title, content and the rest.
const weights = "ABC"

// What a row of the index takes is bounded by PostgreSQL: about 1 MiB, and 255 places of a word. The places are counts here.
const (
	maxWords  = 256 << 10
	maxPlaces = 80 // of a word, in each of three columns
)

// Add implements [memories.Index].
func (words) Add(w relational.Transaction, place int64, all memories.Words) error {
	counts := map[string]memories.Counts{}
	for column, list := range all {
		for _, word := range list {
			n := counts[word]
			n[column]++
			counts[word] = n
		}
	}
	for part, vector := range WordVectors(counts) {
		if _, err := w.Exec(`INSERT INTO memory_text (place, part, words) VALUES (?, ?, ?::tsvector)`, place, int64(part+1), vector); err != nil {
			return err
		}
	}
	return nil
}

// WordVectors are the rows of the index for a record, by how often it has each word.
func WordVectors(counts map[string]memories.Counts) (vectors []string) {
	var vector strings.Builder
	for _, word := range slices.Sorted(maps.Keys(counts)) { // in order, so that the same text makes the same rows
		vector.WriteString(quoted(word))
		separator, at := byte(':'), 0
		for column, n := range counts[word] {
			for range min(n, maxPlaces) {
				at++
				vector.WriteByte(separator)
				vector.WriteString(strconv.Itoa(at))
				vector.WriteByte(weights[column])
				separator = ','
			}
		}
		vector.WriteByte(' ')
		if vector.Len() > maxWords {
			vectors = append(vectors, vector.String())
			vector.Reset()
		}
	}
	if vector.Len() > 0 {
		vectors = append(vectors, vector.String())
	}
	return vectors
}

// doubled doubles what has a meaning between quotes. read-only
var doubled = strings.NewReplacer(`\`, `\\`, "'", "''")

// quoted is a word as vectors and queries have it.
func quoted(word string) string { return "'" + doubled.Replace(word) + "'" }

// Remove implements [memories.Index].
func (words) Remove(w relational.Transaction, place int64) error {
	_, err := w.Exec(`DELETE FROM memory_text WHERE place = ?`, place)
	return err
}

// RemoveAll implements [memories.Index].
func (words) RemoveAll(w relational.Transaction, first, last int64) error {
	_, err := w.Exec(`DELETE FROM memory_text WHERE place > ? AND place <= ?`, first, last)
	return err
}

// Places implements [memories.Index].
func (words) Places(q memories.Wanted) (string, []any) {
	return `SELECT DISTINCT place FROM memory_text WHERE words @@ ?::tsquery`, []any{anyOf(q)}
}

// Best implements [memories.Index]. A word counts for the more the fewer records have it.
func (words) Best(q memories.Wanted) (string, []any) {
	if !q.Ranked {
		return `SELECT DISTINCT place, -place AS rank FROM memory_text WHERE words @@ ?::tsquery ORDER BY place DESC`, []any{anyOf(q)}
	}
	type weighed struct {
		Query  string  `json:"query"`
		Weight float64 `json:"weight"`
	}
	list := make([]weighed, len(q.Terms))
	for i, t := range q.Terms {
		list[i] = weighed{asked(t, q.Columns), math.Log(1 + (float64(max(q.Documents-t.Records, 0))+0.5)/(float64(t.Records)+0.5))}
	}
	terms, err := json.Marshal(list)
	if err != nil {
		terms = []byte("[]") // texts and numbers are always JSON
	}
	return `SELECT t.place, -sum((SELECT sum(i.weight * ts_rank('{1,1,1,1}', t.words, i.query::tsquery))
			FROM jsonb_to_recordset(?::jsonb) AS i(query text, weight double precision))) AS rank
		FROM memory_text t WHERE t.words @@ ?::tsquery GROUP BY t.place ORDER BY rank, t.place`, []any{string(terms), anyOf(q)}
}

// anyOf is a query for all that is wanted.
func anyOf(q memories.Wanted) string {
	terms := make([]string, len(q.Terms))
	for i, t := range q.Terms {
		terms[i] = asked(t, q.Columns)
	}
	return strings.Join(terms, " | ")
}

// asked is a word as a query of PostgreSQL.
func asked(t memories.Term, columns memories.Columns) string {
	options := ""
	if t.Begins {
		options = "*"
	}
	for i, wanted := range columns {
		if wanted {
			options += weights[i : i+1]
		}
	}
	if options != "" {
		options = ":" + options
	}
	return quoted(t.Word) + options
}
