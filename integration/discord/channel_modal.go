package discord

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"tandem/human"
	"tandem/store"
)

// The bounds of forms.
const (
	modalTitleMax  = 45
	inputLabelMax  = 45
	placeholderMax = 100
	inputsMax      = 5
	inputMax       = 4000
)

// input is one line or paragraph of a form, and where its value belongs.
type input struct {
	name     string
	place    string // field, score, evidence or notes
	label    string
	hint     string
	required bool
	long     bool
	// read turns what was typed into a value.
	read func(text string) json.RawMessage
}

// inputs are those of a question; false if they are more than a form can have, and people have to use the link or the inbox.
func inputs(i store.Interaction, r human.Request) ([]input, bool) {
	w := wordsIn(r.Language)
	var list []input
	if fields, ok := human.Form(i, r); ok {
		for _, f := range fields {
			in := input{name: f.Name, place: "field", label: cmp.Or(f.Label, f.Name), required: f.Required, read: readText}
			switch f.Type {
			case "", "text":
				in.long = true
			case "email":
			case "number":
				in.read = readNumber
			case "date":
				in.hint = w.date
			case "boolean":
				in.hint, in.read = w.yesNo, readYes
			case "select":
				in.hint, in.read = fmt.Sprintf(w.oneOf, names(f.Options)), func(text string) json.RawMessage { return readOption(text, f.Options) }
			default: // files need the response page
				return nil, false
			}
			list = append(list, in)
		}
	} else if r.Review != nil && cmp.Or(r.Type, i.Type) == human.Review {
		for _, c := range r.Review.Criteria {
			in := input{name: c, place: "score", label: c, required: true}
			switch r.Review.Scoring {
			case "", "pass_fail", "checklist":
				in.hint, in.read = w.passFail, readYes
			case "letter_grade":
				in.hint, in.read = "A, B, C, D, F", func(text string) json.RawMessage { return readText(strings.ToUpper(text)) }
			default:
				in.hint, in.read = fmt.Sprintf(w.from, decimal(r.Review.Min), decimal(r.Review.Max)), readNumber
			}
			list = append(list, in)
			if r.Review.Evidence {
				list = append(list, input{name: c, place: "evidence", label: fmt.Sprintf(w.evidence, c), required: true, long: true, read: readText})
			}
		}
		if len(list) > 0 && len(list) < inputsMax {
			list = append(list, input{place: "notes", label: w.notes, long: true, read: readText})
		}
	}
	return list, len(list) > 0 && len(list) <= inputsMax
}

// modal is the form of a question.
func modal(i store.Interaction, r human.Request, t touch) (*discordgo.InteractionResponseData, bool) {
	list, ok := inputs(i, r)
	t.do = doSubmit
	if !ok || t.text() == "" {
		return nil, false
	}
	p := page{message: human.Message{Interaction: i, Request: r}}
	data := &discordgo.InteractionResponseData{CustomID: t.text(), Title: clip(p.message.Headline(), modalTitleMax)}
	for n, in := range list {
		style := discordgo.TextInputShort
		if in.long {
			style = discordgo.TextInputParagraph
		}
		data.Components = append(data.Components, discordgo.ActionsRow{Components: []discordgo.MessageComponent{discordgo.TextInput{
			CustomID: strconv.Itoa(n), Label: cmp.Or(clip(in.label, inputLabelMax), "-"), Style: style, Placeholder: clip(in.hint, placeholderMax), Required: in.required, MaxLength: inputMax,
		}}})
	}
	return data, true
}

// answer reads a form that was sent, by the numbers of its inputs.
func answer(i store.Interaction, r human.Request, typed map[string]string) (*human.Answer, bool) {
	list, ok := inputs(i, r)
	if !ok {
		return nil, false
	}
	fields, scores := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	evidence := map[string]string{}
	notes := ""
	for n, in := range list {
		text := strings.TrimSpace(typed[strconv.Itoa(n)])
		switch {
		case text == "": // left out
		case in.place == "field":
			fields[in.name] = in.read(text)
		case in.place == "score":
			scores[in.name] = in.read(text)
		case in.place == "evidence":
			evidence[in.name] = text
		default:
			notes = text
		}
	}
	if list[0].place == "field" {
		return human.Filled(i.Purpose, fields), true
	}
	a := &human.Answer{Scores: scores, Notes: notes}
	if len(evidence) > 0 {
		a.Evidence = evidence
	}
	return a, true
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func names(options []human.Option) string {
	list := make([]string, len(options))
	for n, o := range options {
		list[n] = cmp.Or(o.Label, o.Value)
	}
	return strings.Join(list, ", ")
}

func readText(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a text can always be written
	return raw
}

// readNumber keeps the digits as they were typed where that is JSON. What is no number stays a text, for the rules of the question to refuse.
func readNumber(text string) json.RawMessage {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && json.Valid([]byte(text)):
		return json.RawMessage(text)
	case err == nil && json.Valid([]byte(decimal(f))):
		return json.RawMessage(decimal(f))
	}
	return readText(text)
}

// readYes reads a plain yes or no. Anything else stays a text, for the rules of the question to refuse.
func readYes(text string) json.RawMessage {
	switch strings.ToLower(text) {
	case "yes", "y", "true", "pass", "passed", "是", "通过":
		return json.RawMessage("true")
	case "no", "n", "false", "fail", "failed", "否", "不通过":
		return json.RawMessage("false")
	}
	return readText(text)
}

// readOption takes an option by its value or its label.
func readOption(text string, options []human.Option) json.RawMessage {
	for _, same := range []func(human.Option) bool{
		func(o human.Option) bool { return o.Value == text },
		func(o human.Option) bool { return strings.EqualFold(o.Value, text) },
		func(o human.Option) bool { return strings.EqualFold(o.Label, text) },
	} {
		for _, o := range options {
			if same(o) {
				return readText(o.Value)
			}
		}
	}
	return readText(text)
}
