package sheet

import (
	"encoding/json"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tandem/fault"
	"tandem/human/form"
	"tandem/text"
)

// Sheet is a form as a page draws it: its controls, and the buttons that send it.
type Sheet struct {
	*form.Form
	Controls []*Control
	Buttons  []Button
	prefix   string
}

// The kinds of controls. What a template shows follows from it.
const (
	controlText    = "text"
	controlArea    = "area"
	controlNumber  = "number"
	controlEmail   = "email"
	controlDate    = "date"
	controlSelect  = "select"
	controlRadio   = "radio"
	controlChecks  = "checks"
	controlChecked = "checked" // one box: true or false
	ControlFile    = "file"
	controlJSON    = "json"
)

// Control is one entry of the form as the page draws it.
type Control struct {
	ID       string
	Kind     string
	Label    string
	Hint     string
	Required bool
	Choices  []Choice
	// Open says that besides the choices something else may be written, which is Other.
	Open  bool
	Other string
	// Value is what was typed; Sealed stands for a file that is kept.
	Value  string
	Sealed string
	Error  string

	// given are the values that were sent for it: a browser sends those of its choices.
	given []string
	entry *form.Entry
	// at is the place of the entry in the form.
	at int
	// File is the file as the answer has it; Upload is it as long as it is not stored.
	File   *File
	Upload *multipart.FileHeader
}

// Described are the ids of what is said about the control.
func (c *Control) Described() string {
	var ids []string
	if c.Hint != "" {
		ids = append(ids, c.ID+"-hint")
	}
	if c.Error != "" {
		ids = append(ids, c.ID+"-error")
	}
	return strings.Join(ids, " ")
}

// Grouped says that it is several inputs under one legend.
func (c *Control) Grouped() bool { return c.Kind == controlRadio || c.Kind == controlChecks }

// Blame is what is wrong with it as a sentence of its own.
func (c *Control) Blame() string {
	first, size := utf8.DecodeRuneInString(c.Error)
	text := string(unicode.ToUpper(first)) + c.Error[size:]
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "。") || strings.HasSuffix(text, "!") ||
		strings.HasSuffix(text, "！") || first > unicode.MaxLatin1 {
		return text
	}
	return text + "."
}

// Short says that its choices have room beside each other.
func (c *Control) Short() bool {
	return !slices.ContainsFunc(c.Choices, func(o Choice) bool { return utf8.RuneCountInString(o.Label) > 8 })
}

// Target is the id of what a link to the control leads to.
func (c *Control) Target() string {
	if c.Grouped() {
		return c.ID + "-0"
	}
	return c.ID
}

// Choice is something to choose.
type Choice struct {
	Value, Label string
	Chosen       bool
}

// Button sends the form; one with a value decides.
type Button struct {
	Value, Label string
	// Tone is good, bad or plain.
	Tone string
	Raw  json.RawMessage
}

// ButtonName is the name under which a browser sends the button, HashName that of what was shown.
const (
	ButtonName = "answer"
	HashName   = "arguments_hash"
)

// Draw draws a form. What the question is about is a button for each choice, except where the choices are for the reader to compare.
func Draw(asked *form.Form) *Sheet { return DrawAs("", asked) }

// DrawAs draws a form beside others: the names of its controls begin with a prefix of its own.
func DrawAs(prefix string, asked *form.Form) *Sheet {
	f := &Sheet{Form: asked, prefix: prefix}
	for n := range asked.Entries {
		e := &asked.Entries[n]
		if !e.Decides || e.Name == form.NameChosen {
			f.draw(e, n)
			continue
		}
		for _, c := range e.Choices {
			tone := map[string]string{form.Confirmed: "good", form.Rejected: "bad"}[c.Outcome]
			if tone == "" || e.Name == form.NameOutcome && tone == "good" { // to say how it was is not to agree
				tone = "plain"
			}
			f.Buttons = append(f.Buttons, Button{Value: c.Value, Label: c.Label, Tone: tone, Raw: c.Raw})
		}
	}
	if len(f.Buttons) == 0 {
		f.Buttons = []Button{{Label: f.Say(text.Of("Send")), Tone: "good"}}
	}
	return f
}

// Say puts a text into the language of the form.
func (f *Sheet) Say(t text.Text) string { return t.In(f.Language) }

// draw adds the control of an entry, with what is filled in already.
func (f *Sheet) draw(e *form.Entry, at int) {
	c := &Control{
		ID: f.prefix + "q" + strconv.Itoa(len(f.Controls)), Kind: controlFor(e), Label: e.Label,
		Hint: strings.TrimSpace(e.About + " " + e.Limits), Required: e.Required,
		Value: e.Text(e.Default), entry: e, at: at,
	}
	if c.Kind == controlChecked {
		if c.Value != "true" {
			c.Value = ""
		}
	} else {
		c.Open = e.Open && len(e.Choices) > 0
		for _, o := range e.Choices {
			c.Choices = append(c.Choices, Choice{Value: o.Value, Label: o.Label, Chosen: e.Picked(o, e.Default)})
		}
	}
	f.Controls = append(f.Controls, c)
}

// controlFor is the kind of control that an entry is drawn as.
func controlFor(e *form.Entry) string {
	switch e.Kind {
	case form.Area:
		return controlArea
	case form.Email:
		return controlEmail
	case form.Date:
		return controlDate
	case form.YesNo:
		return controlRadio
	case form.Tick:
		return controlChecked
	case form.One:
		if e.Decides || e.Group == form.GroupScores {
			return controlRadio
		}
		return controlSelect
	case form.Some:
		return controlChecks
	case form.Number, form.Score:
		switch {
		case len(e.Choices) > 0:
			return controlRadio
		case e.Kind == form.Number:
			return controlNumber
		}
	case form.File:
		return ControlFile
	case form.JSON:
		return controlJSON
	}
	return controlText
}

func (c *Control) mark(values []string) {
	for i := range c.Choices {
		c.Choices[i].Chosen = slices.Contains(values, c.Choices[i].Value)
	}
}

// Unknown refuses what a browser would not send, since the page has no such field: it would be lost. What is empty says nothing. Hidden are
// the names of what the page itself sends along.
func (f *Sheet) Unknown(values url.Values, files *multipart.Form, hidden ...string) error {
	known := map[string]bool{ButtonName: true, HashName: true}
	for _, name := range hidden {
		known[name] = true
	}
	for _, c := range f.Controls {
		known[c.ID], known[c.ID+"-other"], known[c.ID+"-kept"] = true, true, true
	}
	var names []string
	for name, given := range values {
		if !known[name] && strings.TrimSpace(strings.Join(given, "")) != "" {
			names = append(names, name)
		}
	}
	if files != nil {
		for name := range files.File {
			if !known[name] {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	names = names[:min(len(names), 10)]
	return fault.Say(fault.InvalidInput, text.Of("the form has no field %s; nothing was sent: open the page again and fill in what it shows", strings.Join(names, ", ")))
}

// Fill takes what was typed.
func (f *Sheet) Fill(values url.Values) {
	for _, c := range f.Controls {
		given := values[c.ID]
		if c.Open && strings.TrimSpace(values.Get(c.ID+"-other")) != "" {
			c.Other = strings.ToValidUTF8(values.Get(c.ID+"-other"), "\uFFFD")
			given = nil // what is written goes before what was chosen
		}
		c.mark(given)
		c.Value, c.given = "", given
		if len(given) > 0 {
			c.Value = strings.ReplaceAll(strings.ToValidUTF8(given[0], "\uFFFD"), "\r\n", "\n")
		}
	}
}

// Data is the answer: what was typed, and the button that was pressed. What is wrong with a control is said there.
func (f *Sheet) Data(pressed string) (json.RawMessage, error) {
	values := form.Values{}
	for _, c := range f.Controls {
		value, wrong := c.readEntry()
		if wrong != nil && c.Error == "" {
			c.Error = wrong.In(f.Language)
		}
		values[c.at] = value
	}
	decision, at := f.Decision()
	if decision != nil && decision.Name != form.NameChosen {
		n := slices.IndexFunc(f.Buttons, func(b Button) bool { return b.Value == pressed || string(b.Raw) == pressed })
		if n < 0 { // nothing is decided by leaving it open
			return nil, fault.New(fault.InvalidInput, form.Undecided().In(f.Language))
		}
		values[at] = f.Buttons[n].Raw
	}
	f.Blame(f.Missing(values))
	return f.Answer(values), nil
}

// readEntry is what a control adds to the answer; nil: nothing.
func (c *Control) readEntry() (json.RawMessage, *form.Text) {
	switch {
	case c.Kind == ControlFile && c.File == nil:
		return nil, nil
	case c.Kind == ControlFile:
		raw, err := json.Marshal(c.File)
		if err != nil {
			return nil, nil // it has texts and a number: it can always be written
		}
		return raw, nil
	case c.Other != "":
		return c.entry.Read(c.Other)
	case c.Kind == controlChecks:
		var names []string
		for _, o := range c.Choices {
			if o.Chosen {
				names = append(names, o.Value)
			}
		}
		for _, name := range c.given { // what is not one of the choices is refused, not lost
			if !slices.ContainsFunc(c.Choices, func(o Choice) bool { return o.Value == name }) {
				names = append(names, strings.ToValidUTF8(name, "\uFFFD"))
			}
		}
		return c.entry.Choose(names...)
	case c.Kind == controlSelect && len(c.given) > 1:
		return c.entry.Choose(c.given...)
	}
	return c.entry.Read(c.Value)
}

// Blame puts what is wrong with an answer beside the controls it is about. What belongs to none is returned.
func (f *Sheet) Blame(problems form.Problems) (rest []string) {
	for _, p := range problems {
		at := f.About(p.Path)
		n := slices.IndexFunc(f.Controls, func(c *Control) bool { return c.at == at })
		switch text := p.Text.In(f.Language); {
		case n < 0:
			rest = append(rest, text)
		case f.Controls[n].Error == "":
			f.Controls[n].Error = text
		}
	}
	return rest
}

// Wrong says that something is wrong with a control.
func (f *Sheet) Wrong() bool {
	return slices.ContainsFunc(f.Controls, func(c *Control) bool { return c.Error != "" })
}

// Told is what was filled in, as people read it.
func (c *Control) Told(f *Sheet) string {
	var chosen []string
	for _, o := range c.Choices {
		if o.Chosen {
			chosen = append(chosen, o.Label)
		}
	}
	switch {
	case c.Other != "":
		return c.Other
	case len(c.Choices) > 0:
		return strings.Join(chosen, f.Say(text.Of(", ")))
	case c.Kind == ControlFile && c.File != nil:
		return c.File.Name
	case c.Kind == controlChecked && c.Value == "":
		return f.Say(text.Of("No"))
	case c.Kind == controlChecked:
		return f.Say(text.Of("Yes"))
	}
	text, _ := cut(c.Value, 2000)
	return text
}
