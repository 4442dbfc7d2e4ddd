package hypertext

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// OfMail is what a mail says to people, laid out as in plain text: quotations get the mark that they have there, items of lists a dash, and
// empty lines stay. What is hidden says nothing.
func OfMail(page string) string {
	w := &mailWriter{blank: true}
	hides := func(a atom.Atom) bool { return isHidden(a) || a == atom.Head || a == atom.Title }
	(&reader{to: w, hides: hides}).readDocument(strings.NewReader(page), 0)
	w.flush(false)
	return w.out.String()
}

const (
	// maxOpen is how many elements are remembered that are open.
	maxOpen = 500
	// maxQuotes is how many marks a line of a quotation gets.
	maxQuotes = 20
)

// mailWriter writes a line after the other.
type mailWriter struct {
	out  strings.Builder
	line []byte
	// blank says that the last line was empty, or that there is none.
	blank bool
	// open are the elements around.
	open []openElement
	// quotes, preformatted and hidden count those of them that are so.
	quotes, preformatted, hidden int
}

type openElement struct {
	atom   atom.Atom
	hidden bool
}

func (w *mailWriter) full() bool { return false }

// flush ends the line. Without force, an empty one is none.
func (w *mailWriter) flush(force bool) {
	said := strings.TrimRight(string(w.line), " ")
	w.line = w.line[:0]
	if said == "" && (!force || w.blank) {
		return
	}
	w.blank = said == ""
	w.out.WriteString(strings.Repeat("> ", min(w.quotes, maxQuotes)))
	w.out.WriteString(said)
	w.out.WriteByte('\n')
}

func (w *mailWriter) words(said string) {
	switch {
	case w.hidden > 0 || said == "":
	case w.preformatted > 0:
		for i, part := range strings.Split(strings.ReplaceAll(said, "\r\n", "\n"), "\n") {
			if i > 0 {
				w.flush(true)
			}
			w.line = append(w.line, part...)
		}
	default:
		for i, word := range strings.FieldsFunc(said, isSpace) {
			if i > 0 || isSpace(rune(said[0])) {
				w.space()
			}
			w.line = append(w.line, word...)
		}
		if isSpace(rune(said[len(said)-1])) {
			w.space()
		}
	}
}

// space puts one between words.
func (w *mailWriter) space() {
	if n := len(w.line); n > 0 && w.line[n-1] != ' ' {
		w.line = append(w.line, ' ')
	}
}

func (w *mailWriter) begin(element html.Token) {
	a := element.DataAtom
	if isBlock(a) && w.hidden == 0 {
		w.flush(a == atom.Br)
	}
	if element.Type == html.SelfClosingTagToken || isVoid(a) || len(w.open) >= maxOpen {
		return
	}
	w.count(openElement{a, hasHidden(element)}, 1)
	if a == atom.Li && w.hidden == 0 {
		w.line = append(w.line, "- "...)
	}
}

// count remembers an element that opens (by 1), or forgets one (by -1).
func (w *mailWriter) count(one openElement, by int) {
	if by > 0 {
		w.open = append(w.open, one)
	}
	if one.hidden {
		w.hidden += by
	}
	switch one.atom {
	case atom.Blockquote:
		w.quotes += by
	case atom.Pre:
		w.preformatted += by
	}
}

func (w *mailWriter) end(element atom.Atom) {
	if isBlock(element) && element != atom.Br && w.hidden == 0 {
		w.flush(false)
	}
	at := len(w.open) - 1
	for at >= 0 && w.open[at].atom != element {
		at--
	}
	if at < 0 {
		return
	}
	for _, one := range w.open[at:] { // elements that were left open end with the one around them
		w.count(one, -1)
	}
	w.open = w.open[:at]
	if element == atom.Td || element == atom.Th {
		w.line = append(w.line, ' ')
	}
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\f' }

// isVoid says that an element has no end.
func isVoid(a atom.Atom) bool {
	switch a {
	case atom.Br, atom.Img, atom.Hr, atom.Meta, atom.Link, atom.Input, atom.Wbr, atom.Col, atom.Base, atom.Area, atom.Source,
		atom.Track, atom.Embed, atom.Param:
		return true
	}
	return false
}

// hasHidden says that an element is hidden by what it says of itself.
func hasHidden(element html.Token) bool {
	for _, a := range element.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "style":
			if hidesBy(strings.ToLower(strings.Join(strings.Fields(a.Val), ""))) {
				return true
			}
		}
	}
	return false
}

// hidesBy says that a style, in lower case and without blanks, hides what it is for.
func hidesBy(style string) bool {
	if strings.HasSuffix(style, "font-size:0") {
		return true
	}
	for _, way := range []string{"display:none", "visibility:hidden", "font-size:0;", "mso-hide:all"} {
		if strings.Contains(style, way) {
			return true
		}
	}
	return false
}
