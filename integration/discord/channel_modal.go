package discord

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"tandem/human"
	"tandem/human/form"
	"tandem/store"
	"tandem/text"
)

// The bounds of modals that are not about a form as such; those are in [form.Discord].
const (
	modalTitleMax  = 45
	inputLabelMax  = 45
	placeholderMax = 100
	inputMax       = 4000
)

// modal draws the form of a question: a line or paragraph for each entry, which is named by its place. It is false if Discord cannot show
// it, and people have to use the link or the inbox.
func modal(i store.Interaction, r human.Request, t touch) (*discordgo.InteractionResponseData, bool) {
	f := human.FormOf(i, r)
	entries, ok := medium().Draw(f)
	t.do = doSubmit
	if !ok || t.text() == "" {
		return nil, false
	}
	p := page{message: human.Message{Interaction: i, Request: r}}
	data := &discordgo.InteractionResponseData{CustomID: t.text(), Title: text.FitUTF16(p.message.Headline(), modalTitleMax)}
	for _, n := range entries {
		data.Components = append(data.Components, discordgo.ActionsRow{Components: []discordgo.MessageComponent{input(&f.Entries[n], n,
			r.Language)}})
	}
	return data, true
}

// input draws an entry.
func input(e *form.Entry, n int, language string) discordgo.TextInput {
	in := discordgo.TextInput{
		CustomID: strconv.Itoa(n), Label: text.FitUTF16(cmp.Or(strings.TrimSpace(e.Label), wordsIn(language).choose), inputLabelMax),
		Style: discordgo.TextInputShort, Required: e.Required, MaxLength: inputMax,
		Placeholder: text.FitUTF16(strings.TrimSpace(e.About+" "+e.Written(language)), placeholderMax),
		Value:       text.FitUTF16(e.Text(e.Default), inputMax),
	}
	if e.Kind == form.Line || e.Kind == form.Area {
		in.Style = discordgo.TextInputParagraph
	}
	return in
}

// readInputs makes values of what was typed, by the places of the entries.
func readInputs(f *form.Form, typed map[string]string) (form.Values, form.Problems) {
	entries, ok := medium().Draw(f)
	if !ok {
		return nil, form.Problems{{Text: form.Gone()}}
	}
	values := form.Values{}
	var problems form.Problems
	for _, n := range entries {
		e := &f.Entries[n]
		value, wrong := e.Read(strings.TrimSpace(typed[strconv.Itoa(n)]))
		if wrong != nil {
			problems = append(problems, form.Problem{Path: e.Path(), Text: *wrong})
		}
		values[n] = value
	}
	return values, problems
}
