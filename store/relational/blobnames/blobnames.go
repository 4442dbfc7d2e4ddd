// Package blobnames finds the names of large values wherever they stand. Stores import it.
package blobnames

import (
	"bufio"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
)

// A value is in use as long as its name stands anywhere: in a row of the database, or in another value that is in use. Which columns and
// fields name values is not known here, and need not be: whatever looks like a name counts as one. So a value may be kept too long and is
// never removed too early.

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

// EachPiece hands over a value piece by piece, if it is JSON; others name nothing. A name that stands in it is whole in one of the pieces.
func EachPiece(ctx context.Context, r io.Reader, each func(text []byte)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	if first, err := in.Peek(1); err != nil || !strings.ContainsRune(`{["`, rune(first[0])) {
		return nil // empty, or what is not JSON
	}
	piece := make([]byte, 256<<10)
	held := 0 // the end of the piece before, which may be the beginning of a name
	for {
		n, err := io.ReadFull(in, piece[held:])
		each(piece[:held+n])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		held = copy(piece, piece[held+n-Size+1:held+n])
	}
}
