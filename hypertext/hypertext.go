// Package hypertext says what HTML says to people: [OfPage] for pages of the web, [OfMail] for mails, whose layout means something. It
// renders nothing and fetches nothing, and nothing is too broken for it.
//
// Any package that is given HTML may import it; it imports only package text.
package hypertext

import (
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// writer is told what a document is made of, without the elements that say nothing to readers.
type writer interface {
	words(text string)
	begin(element html.Token)
	end(element atom.Atom)
	// full says that no more is wanted.
	full() bool
}

// reader reads a document to its end and passes over what is inside of hidden elements.
type reader struct {
	to writer
	// hides says that what is inside of an element is not for readers.
	hides func(atom.Atom) bool
	// skipped is the hidden element that is passed over, and depth how deep it is nested in its like; 0: none is.
	skipped atom.Atom
	depth   int
}

// readDocument reads a document, of which no token may be larger than a number of bytes; 0: of any size. What cannot be read ends it.
func (r *reader) readDocument(document io.Reader, largest int) {
	z := html.NewTokenizer(document)
	z.SetMaxBuf(largest)
	for !r.to.full() {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			if r.depth == 0 {
				r.to.words(string(z.Text()))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			r.begin(z.Token())
		case html.EndTagToken:
			r.end(z.Token().DataAtom)
		}
	}
}

func (r *reader) begin(element html.Token) {
	opens := element.Type == html.StartTagToken
	switch {
	case r.depth > 0 && r.skipped == atom.Head && element.DataAtom == atom.Body: // which ends the head, whose own end may be left out
		r.depth = 0
		r.to.begin(element)
	case r.depth > 0:
		if opens && element.DataAtom == r.skipped {
			r.depth++
		}
	case opens && r.hides(element.DataAtom):
		r.skipped, r.depth = element.DataAtom, 1
	default:
		r.to.begin(element)
	}
}

func (r *reader) end(element atom.Atom) {
	switch {
	case r.depth == 0:
		r.to.end(element)
	case element == r.skipped:
		r.depth--
	}
}

// isHidden says that what is inside of an element is never for readers.
func isHidden(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Math, atom.Iframe, atom.Object, atom.Canvas,
		atom.Select, atom.Datalist, atom.Dialog:
		return true
	}
	return false
}

// isBlock says that an element stands on lines of its own.
func isBlock(a atom.Atom) bool {
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Br, atom.Dd, atom.Div, atom.Dl, atom.Dt, atom.Fieldset,
		atom.Figcaption, atom.Figure,
		atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hr, atom.Li, atom.Main,
		atom.Nav, atom.Ol, atom.P, atom.Pre,
		atom.Section, atom.Summary, atom.Table, atom.Title, atom.Tr, atom.Ul:
		return true
	}
	return false
}
