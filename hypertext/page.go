package hypertext

import (
	"bytes"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"tandem/text"
)

// maxToken bounds what the reader of a page holds at once.
const maxToken = 1 << 20

// OfPage reduces a page to its text, at most limit bytes of it: what a reader would see, a line for each block, without markup, scripts and
// styles.
func OfPage(page []byte, limit int) string {
	w := &pageWriter{limit: limit}
	(&reader{to: w, hides: isHidden}).read(bytes.NewReader(page), maxToken)
	return text.Head(w.b.String(), limit)
}

// pageWriter joins white space and keeps lines apart.
type pageWriter struct {
	b     strings.Builder
	limit int
	// space and line are what stands before the next character.
	space, line bool
}

func (w *pageWriter) full() bool { return w.b.Len() > w.limit }

func (w *pageWriter) begin(element html.Token) {
	switch a := element.DataAtom; {
	case a == atom.Td || a == atom.Th:
		w.space = true
	case isBlock(a):
		w.line = true
	}
}

func (w *pageWriter) end(element atom.Atom) {
	if isBlock(element) {
		w.line = true
	}
}

func (w *pageWriter) words(said string) {
	for _, r := range strings.ToValidUTF8(said, "\uFFFD") {
		switch {
		case w.full():
			return
		case unicode.IsSpace(r):
			w.space = true
		case !unicode.IsControl(r):
			w.character(r)
		}
	}
}

func (w *pageWriter) character(r rune) {
	switch {
	case w.b.Len() == 0:
	case w.line:
		w.b.WriteByte('\n')
	case w.space:
		w.b.WriteByte(' ')
	}
	w.line, w.space = false, false
	w.b.WriteRune(r)
}
