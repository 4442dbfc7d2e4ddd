package sheet

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"tandem/human/form"
	"tandem/human/form/formtest"
	"tandem/text"
)

// What a browser sends of a page is the same answer as everywhere else. The page is read as a browser without scripts does: only what is
// drawn can be filled in.
func TestSheet_Conforms(t *testing.T) {
	t.Parallel()
	pages := NewPages()
	template, err := pages.load()
	if err != nil {
		t.Fatal(err)
	}
	formtest.Run(t, form.Page(), func(t *testing.T, c formtest.Case) formtest.Filled {
		drawn := Draw(c.Form())
		var out bytes.Buffer
		if err := template.ExecuteTemplate(&out, "page.html", &Page{Lang: c.Language, Form: drawn}); err != nil {
			t.Fatal(err)
		}
		b := readPage(t, out.Bytes())
		for n := range drawn.Entries {
			e := &drawn.Entries[n]
			if values, filled := c.Fill[e.Path()]; filled {
				b.enter(t, e, values)
			}
		}
		sent := Draw(c.Form()) // another request, which knows nothing of the first
		sent.Fill(b.values)
		answer, err := sent.Data(b.values.Get(ButtonName))
		filled := formtest.Filled{Drawn: true, Answer: answer}
		if err != nil {
			decision, _ := sent.Decision()
			filled.Wrong = form.Problems{{Path: decision.Path(), Text: form.Undecided()}}
			return filled
		}
		_, refused := c.Question.Read(answer, true)
		problems, _ := refused.(form.Problems)
		if rest := sent.Blame(problems); len(rest) > 0 {
			t.Errorf("%q is told beside no control", rest)
		}
		for _, c := range sent.Controls { // what a reader of the page sees
			if c.Error != "" {
				filled.Wrong = append(filled.Wrong, form.Problem{Path: c.entry.Path(), Text: text.As(c.Error)})
			}
		}
		return filled
	})
}

// browser is a page as a browser has it: what it would send, and what can be filled in under which label.
type browser struct {
	values url.Values
	// labels are the names of controls by their labels, offered the values of those that are chosen from.
	labels  map[string]string
	offered map[string][]string
	buttons []string
}

func readPage(t *testing.T, page []byte) *browser {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{values: url.Values{}, labels: map[string]string{}, offered: map[string][]string{}}
	legend := ""
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		at := map[string]string{}
		for _, a := range n.Attr {
			at[a.Key] = a.Val
		}
		_, checked := at["checked"]
		_, selected := at["selected"]
		switch {
		case n.Data == "script":
			t.Error("the page has a script")
		case n.Data == "fieldset":
			legend = ""
		case n.Data == "legend":
			legend = labelOf(n)
		case n.Data == "label" && at["for"] != "" && !strings.HasSuffix(at["for"], "-other"):
			b.labels[labelOf(n)] = at["for"]
		case n.Data == "input" && (at["type"] == "radio" || at["type"] == "checkbox"):
			if legend == "" { // one box
				legend = labelOf(n.Parent)
			}
			b.labels[legend] = at["name"]
			b.offered[at["name"]] = append(b.offered[at["name"]], at["value"])
			if checked {
				b.values.Add(at["name"], at["value"])
			}
			if at["type"] == "checkbox" && len(b.offered[at["name"]]) == 1 && at["id"] == at["name"] {
				legend = ""
			}
		case n.Data == "input" && at["name"] != "" && at["type"] != "hidden":
			b.values.Set(at["name"], at["value"])
		case n.Data == "textarea":
			b.values.Set(at["name"], strings.TrimPrefix(textIn(n), "\n"))
		case n.Data == "option":
			name := ""
			for _, a := range n.Parent.Attr {
				if a.Key == "name" {
					name = a.Val
				}
			}
			b.offered[name] = append(b.offered[name], at["value"])
			if selected {
				b.values.Set(name, at["value"])
			}
		case n.Data == "button" && at["name"] == ButtonName:
			b.buttons = append(b.buttons, at["value"])
		}
	}
	return b
}

// enter fills in an entry as a person does: it is found by its label, and only what is offered can be chosen.
func (b *browser) enter(t *testing.T, e *form.Entry, values []string) {
	t.Helper()
	if e.Decides && len(b.buttons) > 0 {
		if !slices.Contains(b.buttons, values[0]) {
			t.Fatalf("there is no button %q among %q", values[0], b.buttons)
		}
		b.values.Set(ButtonName, values[0])
		return
	}
	name, ok := b.labels[e.Label]
	if !ok {
		t.Fatalf("nothing is labelled %q: %v", e.Label, b.labels)
	}
	offered, choice := b.offered[name]
	if !choice {
		b.values[name] = values
		return
	}
	b.values.Del(name)
	for _, value := range values {
		_, other := b.values[name+"-other"]
		switch {
		case slices.Contains(offered, value):
			b.values.Add(name, value)
		case other:
			b.values.Set(name+"-other", value)
		case value != "false" || len(offered) != 1: // an empty box is a no
			t.Fatalf("%q is not offered for %q: %q", value, e.Label, offered)
		}
	}
}

// labelOf is the text of a label, without that it is required.
func labelOf(n *html.Node) string {
	text := ""
	for child := range n.Descendants() {
		switch {
		case child.Type != html.TextNode:
		case slices.ContainsFunc(child.Parent.Attr, func(a html.Attribute) bool { return a.Key == "class" && a.Val == "must" }):
		default:
			text += child.Data
		}
	}
	return strings.TrimSpace(text)
}

func textIn(n *html.Node) string {
	text := ""
	for child := range n.Descendants() {
		if child.Type == html.TextNode {
			text += child.Data
		}
	}
	return text
}
