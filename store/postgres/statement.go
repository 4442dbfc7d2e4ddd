package postgres

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"
)

// statements are the translated texts. A text together with the types of its arguments is one statement: PostgreSQL would guess the
// types, and take a number that is compared with 0 for a small one.
type statements struct {
	mu    sync.RWMutex
	known map[string]map[string]string
}

// maxStatements bounds how many are kept. Some listings have texts of their own; with too many of them all are let go.
const maxStatements = 2000

// find translates a statement of package relational.
func (s *statements) find(text string, args []driver.Value) (string, error) {
	kinds := make([]byte, len(args))
	for i, a := range args {
		switch a.(type) {
		case int64:
			kinds[i] = 'i'
		case string:
			kinds[i] = 's'
		case []byte:
			kinds[i] = 'b'
		case bool:
			kinds[i] = 't'
		case float64:
			kinds[i] = 'f'
		case nil:
			kinds[i] = 'n'
		default:
			return "", fmt.Errorf("argument %d is a %T, which no column takes", i+1, a)
		}
	}
	s.mu.RLock()
	done, ok := s.known[text][string(kinds)]
	s.mu.RUnlock()
	if ok {
		return done, nil
	}
	done = translate(text, string(kinds))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxStatements {
		s.known = map[string]map[string]string{}
	}
	if s.known[text] == nil {
		s.known[text] = map[string]string{}
	}
	s.known[text][string(kinds)] = done
	return done, nil
}

// casts are the types of arguments, by the letters that stand for them.
var casts = map[byte]string{'i': "::bigint", 's': "::text", 'b': "::bytea", 't': "::boolean", 'f': "::double precision", 'n': ""} // read-only

// hints are what tells SQLite's planner how to go about a statement. PostgreSQL's has statistics instead.
var (
	indexHint = regexp.MustCompile(` INDEXED BY \w+`)          // read-only
	plusHint  = regexp.MustCompile(`([( ])\+([a-z_][a-z_.]*)`) // read-only
)

// translate writes a statement as PostgreSQL wants it: its arguments have numbers and types, empty bytes are a text, and what tells
// SQLite's planner how to go about it is left out. A CROSS JOIN with a condition, which SQLite does not turn around, is a JOIN.
func translate(text, kinds string) string {
	text = indexHint.ReplaceAllString(text, "")
	text = plusHint.ReplaceAllString(text, "$1$2")
	text = strings.ReplaceAll(text, "x''", "''::bytea")
	text = strings.ReplaceAll(text, "x'1f'", "chr(31)")
	text = strings.ReplaceAll(text, "CROSS JOIN", "JOIN")
	var out strings.Builder
	next, quoted := 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\'' {
			quoted = !quoted
		}
		if c != '?' || quoted {
			out.WriteByte(c)
			continue
		}
		end := i + 1
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		number := next + 1
		if end > i+1 {
			number, _ = strconv.Atoi(text[i+1 : end]) // digits alone
		}
		next, i = max(next, number), end-1
		out.WriteByte('$')
		out.WriteString(strconv.Itoa(number))
		if number <= len(kinds) {
			out.WriteString(casts[kinds[number-1]])
		}
	}
	return out.String()
}

// Texts of PostgreSQL cannot hold the character NUL. It is kept as two others, and the first of these as two as well; so texts stay
// different, and those that begin alike do.
var (
	hideNUL = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02") // read-only
	showNUL = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01") // read-only
)

// kept is a text as a column has it.
func kept(text string) string { return hideNUL.Replace(text) }

// columns are arguments as PostgreSQL takes them.
func columns(args []driver.Value) []any {
	values := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case string:
			values[i] = kept(v)
		case []byte:
			values[i] = bytes(v) // nil would be NULL
		default:
			values[i] = a
		}
	}
	return values
}

// plain is a value as package relational has them: numbers are int64 or float64, and truth is a number.
func plain(v any) (driver.Value, error) {
	switch x := v.(type) {
	case nil, int64, float64, []byte:
		return x, nil
	case string:
		return showNUL.Replace(x), nil
	case int32:
		return int64(x), nil
	case int16:
		return int64(x), nil
	case bool:
		if x {
			return int64(1), nil
		}
		return int64(0), nil
	case pgtype.Numeric: // a sum
		if n, err := x.Int64Value(); err == nil {
			return n.Int64, nil
		}
		f, err := x.Float64Value()
		return f.Float64, err
	}
	return nil, fmt.Errorf("a column is a %T, which is not expected", v)
}
