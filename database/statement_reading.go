package database

import (
	"encoding/json"
	"regexp"
	"strings"
)

// written matches a placeholder of a text as its author wrote it.
var written = regexp.MustCompile(`(?s)\{\{.*?\}\}|\$\{.*?\}`) // read-only

// CheckReading says why a query as its author wrote it, with its placeholders, cannot be run by any of the databases; nil: one of them may
// run it. It is for those who look at a workflow before it runs, and do not know the database yet.
func CheckReading(text string) (wrong error) {
	words := written.Split(text, -1)
	if strings.TrimSpace(words[0]) == "" { // what it does is known only when it runs
		return nil
	}
	t := Text{Words: words, Values: make([]json.RawMessage, len(words)-1)}
	for _, d := range []dialect{postgresDialect, mysqlDialect, sqliteDialect} {
		s, err := parseStatement(d, t)
		if err == nil {
			err = s.checkRead()
		} else if len(words) > 1 {
			continue // the values may be what it lacks
		}
		if err == nil {
			return nil
		}
		wrong = err
	}
	return wrong
}
