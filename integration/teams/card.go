package teams

import (
	"encoding/json"
	"strconv"
	"strings"

	"tandem/human"
	"tandem/payload"
	"tandem/store"
)

const (
	cardType = "application/vnd.microsoft.card.adaptive"
	// maxCard is how many bytes a card may have; the service refuses larger messages.
	maxCard = 28 << 10
	// maxButtons is how many actions a card shows.
	maxButtons  = 6
	maxTitle    = 256
	maxLabel    = 80
	maxAbstract = 1000
)

// The names of what a card sends back. Fields have a prefix, so that none is called like the rest.
const (
	markKey     = "tandem"
	choiceInput = "choice"
	notesInput  = "notes"
	fieldInput  = "field."
)

// mark is what a button brings back of its question.
type mark struct {
	Interaction string `json:"interaction"`
	// Option is what the button stands for; empty: what was chosen or filled in does.
	Option string `json:"option,omitempty"`
	Hash   string `json:"arguments_hash,omitempty"`
}

// object is a part of a card.
type object = map[string]any

// plain is a text that is shown as it is. Other blocks would read it as markup, with links that are not what they say.
func plain(text string, run object) object {
	if run == nil {
		run = object{}
	}
	run["type"], run["text"] = "TextRun", text
	return object{"type": "RichTextBlock", "inlines": []any{run}}
}

// paragraphs are the question and what is to be said besides.
func paragraphs(m human.Message, whole bool) []any {
	var body []any
	add := func(text string, most int, run object) {
		if text = strings.TrimSpace(text); text != "" {
			body = append(body, plain(clip(text, most), run))
		}
	}
	most := maxCard
	if !whole {
		most = maxAbstract
	}
	add(m.Request.UserMention, maxTitle, nil)
	add(m.Request.Title, maxTitle, object{"weight": "Bolder", "size": "Medium"})
	add(m.Request.Description, most, nil)
	if whole {
		text, code := content(m.Request.Content)
		if code {
			add(text, most, object{"fontType": "Monospace"})
		} else {
			add(text, most, nil)
		}
	}
	for _, line := range m.Lines {
		add(line, most, object{"isSubtle": true})
	}
	return body
}

func card(body, actions []any) object {
	c := object{"type": "AdaptiveCard", "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "version": "1.4", "body": body}
	if len(actions) > 0 {
		c["actions"] = actions
	}
	return c
}

// question is the card that asks. One that is too large, and one that nobody could hear the buttons of, only links to the
// response page.
func question(m human.Message, buttons bool) (object, error) {
	if buttons {
		if body, actions, ok := asked(m); ok {
			whole := card(append(paragraphs(m, true), body...), append(actions, links(m)...))
			raw, err := json.Marshal(whole)
			if err != nil || len(raw) <= maxCard {
				return whole, err
			}
		}
	}
	body := paragraphs(m, true)
	if raw, err := json.Marshal(body); err != nil {
		return nil, err
	} else if len(raw) > maxCard-(4<<10) {
		body = paragraphs(m, false)
	}
	if m.Link == "" {
		body = append(body, plain(pick(m.Request.Language, "请在收件箱中回答。", "Please answer it in the inbox."), nil))
	}
	return card(body, links(m)), nil
}

// notice is a card that asks nothing: what became of a question, or that it is still open.
func notice(m human.Message, whole bool) (object, error) {
	body := paragraphs(m, whole)
	if raw, err := json.Marshal(body); err != nil {
		return nil, err
	} else if len(raw) > maxCard-(4<<10) {
		body = paragraphs(m, false)
	}
	return card(body, links(m)), nil
}

func links(m human.Message) []any {
	if m.Link == "" {
		return nil
	}
	return []any{object{"type": "Action.OpenUrl", "title": pick(m.Request.Language, "打开回复页面", "Open the response page"), "url": m.Link}}
}

// asked are the inputs and buttons of a question; not ok: it needs the response page.
func asked(m human.Message) (body, actions []any, ok bool) {
	i, r := m.Interaction, m.Request
	submit := func(title, option, style string) object {
		a := object{"type": "Action.Submit", "title": clip(title, maxLabel), "data": object{markKey: mark{i.ID, option, i.ArgumentsHash}}}
		if style != "" {
			a["style"] = style
		}
		return a
	}
	send := pick(r.Language, "提交", "Submit")
	if first(r.Type, i.Type) == human.Selection && r.AllowMultiple {
		return []any{choiceSet(choiceInput, "", r.Options, true, true)}, []any{submit(send, "", "positive")}, len(r.Options) > 0
	}
	if options := human.Choices(i, r); len(options) > maxButtons {
		return []any{choiceSet(choiceInput, "", options, false, true)}, []any{submit(send, "", "positive")}, true
	} else if len(options) > 0 {
		for _, o := range options {
			style := map[string]string{human.Confirmed: "positive", human.Rejected: "destructive"}[o.Outcome]
			actions = append(actions, submit(o.Label, o.Value, style))
		}
		if first(r.Type, i.Type) == human.Approval && i.Purpose == human.PurposeNode {
			body = append(body, object{"type": "Input.Text", "id": notesInput, "isMultiline": true, "placeholder": pick(r.Language, "备注（可不填）", "Notes (optional)")})
		}
		return body, actions, true
	}
	fields, ok := human.Form(i, r)
	if !ok || len(fields) == 0 {
		return nil, nil, false
	}
	for _, f := range fields {
		in, ok := input(f)
		if !ok {
			return nil, nil, false
		}
		body = append(body, in)
	}
	return body, []any{submit(send, "", "positive")}, true
}

// choiceSet offers options by their numbers: values may hold commas, which separate several.
func choiceSet(id, title string, options []human.Option, several, required bool) object {
	var list []any
	for n, o := range options {
		list = append(list, object{"title": first(o.Label, o.Value), "value": strconv.Itoa(n)})
	}
	set := object{"type": "Input.ChoiceSet", "id": id, "choices": list, "isRequired": required}
	if title != "" {
		set["label"] = title
	}
	if several {
		set["isMultiSelect"] = true
	} else {
		set["style"] = "compact"
	}
	return set
}

// input is what a field is filled in with. Files cannot be sent from a card.
func input(f human.Field) (object, bool) {
	title := first(f.Label, f.Name)
	in := object{"id": fieldInput + f.Name, "label": title, "isRequired": f.Required}
	switch f.Type {
	case "", "text":
		in["type"] = "Input.Text"
	case "email":
		in["type"], in["style"] = "Input.Text", "Email"
	case "number":
		in["type"] = "Input.Number"
	case "date":
		in["type"] = "Input.Date"
	case "boolean":
		in["type"], in["title"], in["value"] = "Input.Toggle", title, "false"
		delete(in, "isRequired") // it would have to be switched on
	case "select":
		return choiceSet(fieldInput+f.Name, title, f.Options, false, f.Required), true
	default:
		return nil, false
	}
	return in, true
}

// content is what the question is about, as people read it; code says that it is not prose.
func content(raw json.RawMessage) (text string, code bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", false
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, false
	}
	return payload.Indented(raw), true
}

// submitted is what a card sent back, read against its question. Numbers that are none and numbers of options that do not
// exist are passed on as they are, for the question's own rules to refuse.
func submitted(values map[string]json.RawMessage, option string, i store.Interaction, r human.Request) *human.Answer {
	kind := first(r.Type, i.Type)
	var answer *human.Answer
	switch fields, form := human.Form(i, r); {
	case option != "":
		answer = human.Chosen(kind, i.Purpose, option)
	case form:
		filled := map[string]json.RawMessage{}
		for _, f := range fields {
			if v, ok := field(f, values[fieldInput+f.Name]); ok {
				filled[f.Name] = v
			}
		}
		answer = human.Filled(i.Purpose, filled)
	default:
		options := human.Choices(i, r)
		if kind == human.Selection && r.AllowMultiple {
			options = r.Options
		}
		var chosen []string
		for n := range strings.SplitSeq(textOf(values[choiceInput]), ",") {
			if n = strings.TrimSpace(n); n != "" {
				chosen = append(chosen, valueOf(options, n))
			}
		}
		answer = human.Chosen(kind, i.Purpose, chosen...)
	}
	answer.Notes = strings.TrimSpace(textOf(values[notesInput]))
	return answer
}

// valueOf is the value of the option of a number.
func valueOf(options []human.Option, number string) string {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(options) {
		return number
	}
	return options[n].Value
}

// field is the value of a field as its type wants it; cards send texts. Not ok: nothing was filled in.
func field(f human.Field, raw json.RawMessage) (json.RawMessage, bool) {
	text := textOf(raw)
	if strings.TrimSpace(text) == "" {
		return nil, false
	}
	switch f.Type {
	case "number", "boolean":
		if v := json.RawMessage(strings.TrimSpace(text)); json.Valid(v) {
			return v, true
		}
	case "select":
		text = valueOf(f.Options, text)
	}
	return quote(text), true
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

func quote(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a text can always be written
	return raw
}
