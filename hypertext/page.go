package hypertext

import (
	"bytes"
	"slices"
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
	said, _ := Outlined(page, limit)
	return said
}

// Heading is a heading of a page: what it says, its level from 1 to 6, and where it begins in the text of the page, in bytes.
type Heading struct {
	Title string
	Level int
	At    int
}

// Outlined is the text of a page as [OfPage] has it, with the headings that stand in it.
func Outlined(page []byte, limit int) (string, []Heading) {
	w := &pageWriter{limit: limit}
	(&reader{to: w, hides: isHidden}).readDocument(bytes.NewReader(page), maxToken)
	return text.Head(w.b.String(), limit), w.headings
}

// headingLevel is the level of a heading; 0: the element is something else.
func headingLevel(a atom.Atom) int {
	return slices.Index([]atom.Atom{0, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}, a)
}

// pageWriter joins white space and keeps lines apart.
type pageWriter struct {
	b     strings.Builder
	limit int
	// space and line are what stands before the next character.
	space, line bool

	headings []Heading
	// level is that of the heading that is open, 0 for none; begun is where its text begins, -1 while it has none.
	level, begun int
}

func (w *pageWriter) full() bool { return w.b.Len() > w.limit }

func (w *pageWriter) begin(element html.Token) {
	if level := headingLevel(element.DataAtom); level > 0 {
		w.level, w.begun = level, -1
	}
	switch a := element.DataAtom; {
	case a == atom.Td || a == atom.Th:
		w.space = true
	case isBlock(a):
		w.line = true
	}
}

func (w *pageWriter) end(element atom.Atom) {
	if headingLevel(element) > 0 && w.level > 0 {
		if w.begun >= 0 {
			w.headings = append(w.headings, Heading{Title: w.b.String()[w.begun:], Level: w.level, At: w.begun})
		}
		w.level = 0
	}
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
	if w.level > 0 && w.begun < 0 {
		w.begun = w.b.Len()
	}
	w.b.WriteRune(r)
}
