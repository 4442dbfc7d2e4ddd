package document

import (
	"bytes"
	"io"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"tandem/text"
)

// The text of a page, for people and models: what a reader would see, without markup, scripts and styles.

// hiddenElement says that what is inside of an element is not for readers.
func hiddenElement(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Math, atom.Iframe, atom.Object, atom.Canvas, atom.Select, atom.Datalist, atom.Dialog:
		return true
	}
	return false
}

// blockElement says that an element stands on lines of its own.
func blockElement(a atom.Atom) bool {
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Br, atom.Dd, atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure,
		atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hr, atom.Li, atom.Main, atom.Nav, atom.Ol, atom.P, atom.Pre,
		atom.Section, atom.Summary, atom.Table, atom.Title, atom.Tr, atom.Ul:
		return true
	}
	return false
}

// maxToken bounds what the reader of a page holds at once.
const maxToken = 1 << 20

// htmlText reduces a page to its text, at most limit bytes of it. Nothing is too broken for it: what cannot be read ends it.
func htmlText(page []byte, limit int) string {
	z := html.NewTokenizer(bytes.NewReader(page))
	z.SetMaxBuf(maxToken)
	w := &textWriter{limit: limit}
	var inside atom.Atom // the hidden element that is skipped, and how deep it is nested in its like
	depth := 0
	for !w.full() {
		switch z.Next() {
		case html.ErrorToken:
			return w.text()
		case html.TextToken:
			if depth == 0 {
				w.write(string(z.Text()))
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			switch {
			case depth > 0:
				if a == inside {
					depth++
				}
			case hiddenElement(a):
				inside, depth = a, 1
			case a == atom.Td || a == atom.Th:
				w.write(" ")
			case blockElement(a):
				w.line()
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			switch {
			case depth > 0:
				if a == inside {
					depth--
				}
			case blockElement(a):
				w.line()
			}
		case html.SelfClosingTagToken:
			name, _ := z.TagName()
			if depth == 0 && blockElement(atom.Lookup(name)) {
				w.line()
			}
		}
	}
	return w.text()
}

// textWriter joins white space and keeps lines apart.
type textWriter struct {
	b     strings.Builder
	limit int
	space bool
	lines int
}

func (w *textWriter) full() bool { return w.b.Len() > w.limit }

func (w *textWriter) line() { w.lines = 1 }

func (w *textWriter) write(text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for _, r := range text {
		switch {
		case w.full():
			return
		case unicode.IsSpace(r):
			w.space = true
			continue
		case unicode.IsControl(r):
			continue
		}
		if w.b.Len() > 0 {
			if w.lines > 0 {
				w.b.WriteByte('\n')
			} else if w.space {
				w.b.WriteByte(' ')
			}
		}
		w.lines, w.space = 0, false
		w.b.WriteRune(r)
	}
}

func (w *textWriter) text() string { return text.Head(w.b.String(), w.limit) }

// PageText reads a body as text: a page reduced to what it says, other text as it is. Ok is false for what is no text.
func PageText(contentType string, body io.Reader, limit int) (said string, page, ok bool, err error) {
	mediaType, parameters, perr := mime.ParseMediaType(contentType)
	if perr != nil {
		mediaType = ""
	}
	if BinaryType(mediaType) {
		return "", false, false, nil
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return "", false, false, err
	}
	if mediaType == "" && !utf8.Valid(data) {
		return "", false, false, nil
	}
	plain := DecodeText(data, parameters["charset"])
	if mediaType == "text/html" || mediaType == "application/xhtml+xml" || mediaType == "" && looksLikePage(plain) {
		return htmlText([]byte(plain), limit), true, true, nil
	}
	return text.Head(plain, limit), false, true, nil
}

func looksLikePage(text string) bool {
	begin := strings.ToLower(strings.TrimSpace(text[:min(len(text), 512)]))
	return strings.HasPrefix(begin, "<!doctype html") || strings.HasPrefix(begin, "<html")
}
