package hypertext

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// Document is a page whose elements can be looked for.
type Document struct {
	elements []*html.Node
}

// Element is one element of a page.
type Element struct{ node *html.Node }

const (
	// MaxElements is how many elements a page may have whose elements are looked for.
	MaxElements = 50_000
	// maxSelector is how many bytes a selector may have, and maxCostly how many parts that look at many other elements for each one.
	maxSelector = 500
	maxCostly   = 2
)

// Parse reads a page. Broken HTML is read as browsers read it.
func Parse(page []byte) (*Document, error) {
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, fmt.Errorf("the page cannot be read: %w", err)
	}
	d := &Document{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if d.elements = append(d.elements, n); len(d.elements) > MaxElements {
			return nil, fmt.Errorf("the page has more than %d elements", MaxElements)
		}
	}
	return d, nil
}

// Selector is a CSS selector.
type Selector struct{ matcher cascadia.SelectorGroup }

// ParseSelector reads a CSS selector, or several with commas between them. How much work it can make for each element is bounded.
func ParseSelector(text string) (Selector, error) {
	if len(text) > maxSelector {
		return Selector{}, fmt.Errorf("it has %d bytes, more than %d", len(text), maxSelector)
	}
	costly := 0
	for _, part := range []string{"~", ":has", ":contains", ":matches", ":nth", ":only", ":last", ":first"} {
		costly += strings.Count(strings.ReplaceAll(text, "~=", ""), part)
	}
	if costly > maxCostly {
		return Selector{}, fmt.Errorf("it has %d parts that compare elements with others (~ and pseudo-classes), more than %d", costly, maxCostly)
	}
	matcher, err := cascadia.ParseGroup(text)
	if err != nil {
		return Selector{}, errors.New(strings.TrimPrefix(err.Error(), "cascadia: "))
	}
	return Selector{matcher}, nil
}

// Find lists the elements that a selector names, in their order, at most so many. Ended is asked at every element, and ends it with its
// error.
func (d *Document) Find(s Selector, most int, ended func() error) ([]Element, error) {
	var found []Element
	for _, n := range d.elements {
		if err := ended(); err != nil {
			return nil, err
		}
		if !s.matcher.Match(n) {
			continue
		}
		if found = append(found, Element{n}); len(found) == most {
			break
		}
	}
	return found, nil
}

// Text is what an element says to readers.
func (e Element) Text(limit int) (string, error) {
	page, err := e.Outer()
	return OfPage([]byte(page), limit), err
}

// Outer is the element as HTML, Inner what is inside of it.
func (e Element) Outer() (string, error) { return rendered(e.node) }

// Inner is what is inside of an element, as HTML.
func (e Element) Inner() (string, error) {
	var all strings.Builder
	for child := range e.node.ChildNodes() {
		part, err := rendered(child)
		if err != nil {
			return "", err
		}
		all.WriteString(part)
	}
	return all.String(), nil
}

func rendered(n *html.Node) (string, error) {
	var b strings.Builder
	err := html.Render(&b, n)
	return b.String(), err
}

// Attribute is an attribute of an element, and whether it has it.
func (e Element) Attribute(name string) (string, bool) {
	for _, a := range e.node.Attr {
		if a.Namespace == "" && strings.EqualFold(a.Key, name) {
			return a.Val, true
		}
	}
	return "", false
}
