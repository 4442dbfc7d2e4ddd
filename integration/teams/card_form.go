package teams

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"tandem/human"
	"tandem/human/form"
	"tandem/text"
)

// asked draws the form of a question as inputs and buttons of a card; not ok: it needs the response page.
func asked(m human.Message) (body, actions []any, ok bool) {
	i, r := m.Interaction, m.Request
	f := human.FormOf(i, r)
	submit := func(title, option, style string) object {
		a := object{"type": "Action.Submit", "title": text.Fit(title, maxLabel),
			"data": object{markKey: mark{i.ID, option, i.ArgumentsHash}}}
		if style != "" {
			a["style"] = style
		}
		return a
	}
	entries, ok := medium().Draw(f)
	if !ok {
		return nil, nil, false
	}
	decision, _ := medium().Decides(f)
	for _, n := range entries {
		if e := &f.Entries[n]; decision == nil || !e.Decides {
			body = append(body, input(e))
		}
	}
	if decision == nil {
		return body, []any{submit(text.Of("Submit").In(r.Language), "", "positive")}, true
	}
	for _, c := range decision.Choices {
		actions = append(actions, submit(c.Label, c.Value, map[string]string{human.Confirmed: "positive",
			human.Rejected: "destructive"}[c.Outcome]))
	}
	return body, actions, true
}

// inputID is the name of an entry in what a card sends back. Fields have a prefix, so that none is called like the rest.
func inputID(e *form.Entry) string {
	switch {
	case e.Decides:
		return "choice"
	case e.Group == "" && (e.Name == form.NameNotes || e.Name == form.NameDescription):
		return e.Name
	case e.Group == form.GroupScores:
		return "score." + e.Name
	case e.Group == form.GroupEvidence:
		return "evidence." + e.Name
	}
	return "field." + e.Name
}

// input draws an entry.
func input(e *form.Entry) object {
	in := object{"id": inputID(e), "label": cmp.Or(e.Label, e.Name), "isRequired": e.Required}
	if hint := strings.TrimSpace(e.About + " " + e.Limits); hint != "" && e.Kind != form.Tick {
		in["placeholder"] = hint
	}
	if e.Default != nil {
		in["value"] = e.Text(e.Default)
	}
	switch e.Kind {
	case form.Number:
		in["type"] = "Input.Number"
		if e.Min != nil {
			in["min"] = *e.Min
		}
		if e.Max != nil {
			in["max"] = *e.Max
		}
	case form.Email:
		in["type"], in["style"] = "Input.Text", "Email"
	case form.Date:
		in["type"] = "Input.Date"
	case form.Tick:
		in["type"], in["title"], in["value"] = "Input.Toggle", cmp.Or(e.Label, e.Name), "false"
	case form.YesNo, form.One, form.Some:
		drawChoices(e, in)
	default:
		in["type"], in["isMultiline"] = "Input.Text", e.Kind == form.Area
	}
	return in
}

// drawChoices offers choices by their numbers: values may hold commas, which separate several. A yes or no is not switched on or off, since
// nobody could leave it open then.
func drawChoices(e *form.Entry, in object) {
	var list []any
	var proposed []string
	for n, c := range e.Choices {
		value := strconv.Itoa(n)
		if e.Kind == form.YesNo {
			value = string(c.Raw)
		}
		if list = append(list, object{"title": cmp.Or(c.Label, c.Value), "value": value}); e.Picked(c, e.Default) {
			proposed = append(proposed, value)
		}
	}
	in["type"], in["choices"] = "Input.ChoiceSet", list
	delete(in, "value")
	if len(proposed) > 0 {
		in["value"] = strings.Join(proposed, ",")
	}
	switch e.Kind {
	case form.Some:
		in["isMultiSelect"] = true
	case form.YesNo:
		in["style"] = "expanded"
	default:
		in["style"] = "compact"
	}
}

// submitted reads what a card sent back. Option is what the button stands for; empty: what was chosen or filled in does.
func submitted(values map[string]json.RawMessage, option string) func(f *form.Form) (form.Values, form.Problems) {
	return func(f *form.Form) (form.Values, form.Problems) {
		filled := form.Values{}
		var problems form.Problems
		for n := range f.Entries {
			e := &f.Entries[n]
			raw, sent := values[inputID(e)]
			var value json.RawMessage
			var wrong *form.Text
			switch {
			case e.Decides && option != "":
				value, wrong = e.Choose(option)
			case !sent:
				continue
			case e.Kind == form.One || e.Kind == form.Some:
				value, wrong = e.Choose(chosen(e, textOf(raw))...)
			default:
				value, wrong = e.Read(strings.TrimSpace(textOf(raw)))
			}
			if wrong != nil {
				problems = append(problems, form.Problem{Path: e.Path(), Text: *wrong})
			}
			filled[n] = value
		}
		return filled, problems
	}
}

// chosen are the values of choices that are named by their numbers. What is not one is passed on as it is, for the entry to refuse.
func chosen(e *form.Entry, text string) []string {
	var names []string
	for number := range strings.SplitSeq(text, ",") {
		number = strings.TrimSpace(number)
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < len(e.Choices) {
			number = e.Choices[n].Value
		}
		names = append(names, number)
	}
	return names
}

// textOf is a value as a text: cards send texts, but numbers are taken as well.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if len(raw) > 0 && raw[0] != '{' && raw[0] != '[' && string(raw) != "null" {
		return string(raw)
	}
	return ""
}
