// Package blobnames finds the names of large values wherever they stand. The rooms of the SQLite store import it.
package blobnames

import "database/sql/driver"

// A value is in use as long as its name stands anywhere: in a row of the database, or in another value that is in use. Which columns and fields name
// values is not known here, and need not be: whatever looks like a name counts as one. So a value may be kept too long and is never removed too early.

// Size is how long the name of a value is.
const Size = 64

// Names is a set of names of values.
type Names map[string]bool

// Find adds what looks like a name in columns of a row.
func (s Names) Find(columns ...driver.Value) {
	for _, c := range columns {
		switch v := c.(type) {
		case []byte:
			eachName(v, func(name []byte) { s[string(name)] = true })
		case string:
			eachName([]byte(v), func(name []byte) { s[string(name)] = true })
		}
	}
}

// FindAmong tells which of a set are named in columns of a row.
func (s Names) FindAmong(found func(name string), columns ...driver.Value) {
	look := func(name []byte) {
		if s[string(name)] { // without a copy
			found(string(name))
		}
	}
	for _, c := range columns {
		switch v := c.(type) {
		case []byte:
			eachName(v, look)
		case string:
			eachName([]byte(v), look)
		}
	}
}

// eachName calls back for each stretch of a text that may be a name. In a longer stretch of such digits every part may be one.
func eachName(text []byte, found func([]byte)) {
	// Whatever holds a name has a digit of it in every stretch of that length: most of a text is passed over.
	for at := Size - 1; at < len(text); at += Size {
		if !isDigit(text[at]) {
			continue
		}
		from, to := at, at+1
		for from > 0 && isDigit(text[from-1]) {
			from--
		}
		for to < len(text) && isDigit(text[to]) {
			to++
		}
		for i := from; i+Size <= to; i++ {
			found(text[i : i+Size])
		}
		at = max(at, to-1)
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }
