package respond

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
	"tandem/human"
	"tandem/human/form"
	"tandem/store"
	"tandem/text"
)

// answerForm draws the form of a question on a page: its controls, and the buttons that send it.
type answerForm struct {
	*form.Form
	Controls []*control
	Buttons  []button
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
	controlFile    = "file"
	controlJSON    = "json"
)

// control is one entry of the form as the page draws it.
type control struct {
	ID       string
	Kind     string
	Label    string
	Hint     string
	Required bool
	Choices  []choice
	// Open says that besides the choices something else may be written, which is Other.
	Open  bool
	Other string
	// Value is what was typed; Sealed stands for a file that is kept.
	Value  string
	Sealed string
	Error  string

	entry *form.Entry
	// at is the place of the entry in the form.
	at int
	// file is the file as the answer has it; upload is it as long as it is not stored.
	file   *AnswerFile
	upload *multipart.FileHeader
}

// Described are the ids of what is said about the control.
func (c *control) Described() string {
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
func (c *control) Grouped() bool { return c.Kind == controlRadio || c.Kind == controlChecks }

// Blame is what is wrong with it as a sentence of its own.
func (c *control) Blame() string {
	first, size := utf8.DecodeRuneInString(c.Error)
	text := string(unicode.ToUpper(first)) + c.Error[size:]
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "。") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "！") || first > unicode.MaxLatin1 {
		return text
	}
	return text + "."
}

// Short says that its choices have room beside each other.
func (c *control) Short() bool {
	return !slices.ContainsFunc(c.Choices, func(o choice) bool { return utf8.RuneCountInString(o.Label) > 8 })
}

// Target is the id of what a link to the control leads to.
func (c *control) Target() string {
	if c.Grouped() {
		return c.ID + "-0"
	}
	return c.ID
}

// choice is something to choose.
type choice struct {
	Value, Label string
	Chosen       bool
}

// button sends the form; one with a value decides.
type button struct {
	Value, Label string
	// Tone is good, bad or plain.
	Tone string
	raw  json.RawMessage
}

// buttonName is the name under which a browser sends the button.
const buttonName = "answer"

func newForm(lang string, i store.Interaction, r human.Request) *answerForm {
	r.Language = lang
	return drawForm(human.FormOf(i, r))
}

// drawForm draws a form. What the question is about is a button for each choice, except where the choices are for the reader to compare.
func drawForm(asked *form.Form) *answerForm {
	f := &answerForm{Form: asked}
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
			f.Buttons = append(f.Buttons, button{Value: c.Value, Label: c.Label, Tone: tone, raw: c.Raw})
		}
	}
	if len(f.Buttons) == 0 {
		f.Buttons = []button{{Label: f.say(text.Of("Send")), Tone: "good"}}
	}
	return f
}

// say puts a text into the language of the form.
func (f *answerForm) say(t text.Text) string { return t.In(f.Language) }

// draw adds the control of an entry, with what is filled in already.
func (f *answerForm) draw(e *form.Entry, at int) {
	c := &control{
		ID: "q" + strconv.Itoa(len(f.Controls)), Kind: controlFor(e), Label: e.Label, Hint: strings.TrimSpace(e.About + " " + e.Limits), Required: e.Required,
		Value: e.Text(e.Default), entry: e, at: at,
	}
	if c.Kind == controlChecked {
		if c.Value != "true" {
			c.Value = ""
		}
	} else {
		c.Open = e.Open && len(e.Choices) > 0
		for _, o := range e.Choices {
			c.Choices = append(c.Choices, choice{Value: o.Value, Label: o.Label, Chosen: e.Picked(o, e.Default)})
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
		return controlFile
	case form.JSON:
		return controlJSON
	}
	return controlText
}

func (c *control) mark(values []string) {
	for i := range c.Choices {
		c.Choices[i].Chosen = slices.Contains(values, c.Choices[i].Value)
	}
}

// fill takes what was typed.
func (f *answerForm) fill(values url.Values) {
	for _, c := range f.Controls {
		given := values[c.ID]
		if c.Open && strings.TrimSpace(values.Get(c.ID+"-other")) != "" {
			c.Other = strings.ToValidUTF8(values.Get(c.ID+"-other"), "\uFFFD")
			given = nil // what is written goes before what was chosen
		}
		c.mark(given)
		c.Value = ""
		if len(given) > 0 {
			c.Value = strings.ReplaceAll(strings.ToValidUTF8(given[0], "\uFFFD"), "\r\n", "\n")
		}
	}
}

// data is the answer: what was typed, and the button that was pressed. What is wrong with a control is said there.
func (f *answerForm) data(pressed string) (json.RawMessage, error) {
	values := form.Values{}
	for _, c := range f.Controls {
		value, wrong := c.read()
		if wrong != nil && c.Error == "" {
			c.Error = wrong.In(f.Language)
		}
		values[c.at] = value
	}
	decision, at := f.Decision()
	if decision != nil && decision.Name != form.NameChosen {
		n := slices.IndexFunc(f.Buttons, func(b button) bool { return b.Value == pressed || string(b.raw) == pressed })
		if n < 0 { // nothing is decided by leaving it open
			return nil, fault.New(fault.InvalidInput, form.Undecided().In(f.Language))
		}
		values[at] = f.Buttons[n].raw
	}
	f.blame(f.Missing(values))
	return f.Answer(values), nil
}

// read is what a control adds to the answer; nil: nothing.
func (c *control) read() (json.RawMessage, *form.Text) {
	switch {
	case c.Kind == controlFile && c.file == nil:
		return nil, nil
	case c.Kind == controlFile:
		raw, err := json.Marshal(c.file)
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
		return c.entry.Choose(names...)
	}
	return c.entry.Read(c.Value)
}

// blame puts what is wrong with an answer beside the controls it is about. What belongs to none is returned.
func (f *answerForm) blame(problems form.Problems) (rest []string) {
	for _, p := range problems {
		at := f.About(p.Path)
		n := slices.IndexFunc(f.Controls, func(c *control) bool { return c.at == at })
		switch text := p.Text.In(f.Language); {
		case n < 0:
			rest = append(rest, text)
		case f.Controls[n].Error == "":
			f.Controls[n].Error = text
		}
	}
	return rest
}

// wrong says that something is wrong with a control.
func (f *answerForm) wrong() bool {
	return slices.ContainsFunc(f.Controls, func(c *control) bool { return c.Error != "" })
}

// told is what was filled in, as people read it.
func (c *control) told(f *answerForm) string {
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
		return strings.Join(chosen, f.say(text.Of(", ")))
	case c.Kind == controlFile && c.file != nil:
		return c.file.Name
	case c.Kind == controlChecked && c.Value == "":
		return f.say(text.Of("No"))
	case c.Kind == controlChecked:
		return f.say(text.Of("Yes"))
	}
	text, _ := cut(c.Value, 2000)
	return text
}
