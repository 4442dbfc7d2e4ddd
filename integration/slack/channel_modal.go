package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"tandem/api"
	"tandem/fault"
	"tandem/human"
	"tandem/store"
)

// The bounds of forms.
const (
	viewTitleMax  = 24
	viewBlocksMax = 100
	blockIDMax    = 255
	labelMax      = 2000
	checkboxesMax = 10
	textMax       = 3000
	metadataMax   = 3000
)

// A block of a form is named by what it asks for, and its element by how its value is read. So an answer can be read without
// the question.
const (
	blockField    = "field:"
	blockScore    = "score:"
	blockEvidence = "evidence:"
	blockChosen   = "chosen"
	blockNotes    = "notes"

	readText    = "text"
	readNumber  = "number"
	readBoolean = "boolean"
	readDate    = "date"
	readOne     = "one"
	readMany    = "many"

	viewAnswer = "answer"
	viewTold   = "told"
)

// modal is the form of a question; false if Slack cannot show it, and people have to use the link or the inbox.
func modal(i store.Interaction, r human.Request, t touch) (slack.ModalViewRequest, bool) {
	w := wordsIn(r.Language)
	f := form{words: w, language: r.Language, good: true}
	options := human.Choices(i, r)
	fields, isForm := human.Form(i, r)
	switch {
	case isForm:
		for _, field := range fields {
			f.field(field)
		}
	case r.Type == human.Review && r.Review != nil:
		f.review(*r.Review)
	case r.Type == human.Selection && r.AllowMultiple:
		f.several(r.Options)
	case len(options) > 0:
		f.one(blockChosen, w.reply, true, options)
	}
	if len(f.blocks) == 0 {
		return slack.ModalViewRequest{}, false
	}
	if !slices.Contains([]string{human.PurposeBudget, human.PurposeParam, human.PurposeConfirm, human.PurposeDrift, human.PurposeActivation, human.PurposeOutcomeUnknown}, t.Purpose) {
		f.add(blockNotes, w.notes, false, multiline(readText))
	}
	p := page{message: human.Message{Interaction: i, Request: r}}
	blocks := append(section(nil, "", p.message.Headline()), f.blocks...)
	t.Value = ""
	metadata := t.text()
	if !f.good || len(blocks) > viewBlocksMax || size(metadata) > metadataMax {
		return slack.ModalViewRequest{}, false
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: viewAnswer, PrivateMetadata: metadata, Blocks: slack.Blocks{BlockSet: blocks},
		Title: plain(w.reply, viewTitleMax), Submit: plain(w.submit, viewTitleMax), Close: plain(w.close, viewTitleMax),
	}, true
}

// told is what a form becomes when it was sent.
func told(w words, text string) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: viewTold, Blocks: slack.Blocks{BlockSet: section(nil, "", text)},
		Title: plain(w.reply, viewTitleMax), Close: plain(w.close, viewTitleMax),
	}
}

// form collects the blocks of a modal. It is not good any more when something of it is more than Slack can show.
type form struct {
	words    words
	language string
	blocks   []slack.Block
	good     bool
}

func (f *form) add(id, label string, required bool, element slack.BlockElement) {
	if size(id) > blockIDMax {
		f.good = false
		return
	}
	b := slack.NewInputBlock(id, plain(label, labelMax), nil, element)
	b.Optional = !required
	f.blocks = append(f.blocks, b)
}

func multiline(action string) *slack.PlainTextInputBlockElement {
	e := slack.NewPlainTextInputBlockElement(nil, action)
	e.Multiline, e.MaxLength = true, textMax
	return e
}

func (f *form) field(field human.Field) {
	id, label := blockField+field.Name, cmp.Or(field.Label, field.Name)
	switch field.Type {
	case "", "text":
		f.add(id, label, field.Required, multiline(readText))
	case "number":
		f.add(id, label, field.Required, slack.NewNumberInputBlockElement(nil, readNumber, true))
	case "email":
		f.add(id, label, field.Required, slack.NewEmailTextInputBlockElement(nil, readText))
	case "date":
		f.add(id, label, field.Required, slack.NewDatePickerBlockElement(readDate))
	case "boolean":
		f.yesNo(id, label, field.Required, f.words.trueWord, f.words.falseWord)
	case "select":
		f.one(id, label, field.Required, field.Options)
	default: // files need the response page
		f.good = false
	}
}

func (f *form) yesNo(id, label string, required bool, yes, no string) {
	f.add(id, label, required, slack.NewRadioButtonsBlockElement(readBoolean,
		slack.NewOptionBlockObject("true", plain(yes, optionTextMax), nil), slack.NewOptionBlockObject("false", plain(no, optionTextMax), nil)))
}

// options are those of a menu.
func (f *form) options(list []human.Option) []*slack.OptionBlockObject {
	if len(list) == 0 || len(list) > optionsMax {
		f.good = false
		return nil
	}
	out := make([]*slack.OptionBlockObject, len(list))
	for n, o := range list {
		if o.Value == "" || size(o.Value) > optionValueMax {
			f.good = false
		}
		out[n] = slack.NewOptionBlockObject(o.Value, plain(cmp.Or(o.Label, o.Value), optionTextMax), nil)
	}
	return out
}

func (f *form) one(id, label string, required bool, list []human.Option) {
	f.add(id, label, required, slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain(f.words.choose, 150), readOne, f.options(list)...))
}

func (f *form) several(list []human.Option) {
	options := f.options(list)
	if len(list) <= checkboxesMax {
		f.add(blockChosen, f.words.pick, true, slack.NewCheckboxGroupsBlockElement(readMany, options...))
		return
	}
	f.add(blockChosen, f.words.pick, true, slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, plain(f.words.pick, 150), readMany, options...))
}

func (f *form) review(rules human.ReviewRules) {
	for _, criterion := range rules.Criteria {
		id := blockScore + criterion
		switch rules.Scoring {
		case "", "pass_fail", "checklist":
			f.yesNo(id, criterion, true, f.words.pass, f.words.fail)
		case "letter_grade":
			f.one(id, criterion, true, []human.Option{{Value: "A"}, {Value: "B"}, {Value: "C"}, {Value: "D"}, {Value: "F"}})
		default:
			e := slack.NewNumberInputBlockElement(nil, readNumber, true)
			if rules.Max > rules.Min {
				e.MinValue, e.MaxValue = strconv.FormatFloat(rules.Min, 'f', -1, 64), strconv.FormatFloat(rules.Max, 'f', -1, 64)
			}
			f.add(id, criterion, true, e)
		}
		if rules.Evidence {
			f.add(blockEvidence+criterion, fmt.Sprintf(f.words.evidence, criterion), true, multiline(readText))
		}
	}
}

// state is what was filled in: by block, then by element.
type state map[string]map[string]struct {
	Value    string   `json:"value"`
	Date     string   `json:"selected_date"`
	Selected *picked  `json:"selected_option"`
	Several  []picked `json:"selected_options"`
}

type picked struct {
	Value string `json:"value"`
}

// answer reads a form that was sent.
func (s state) answer(t touch) *human.Answer {
	fields, scores := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	evidence := map[string]string{}
	var chosen []string
	notes := ""
	for block, elements := range s { // order does not matter: each block has its own place
		for how, e := range elements {
			var value any
			switch how {
			case readNumber:
				value = number(e.Value)
			case readBoolean:
				if e.Selected != nil {
					value = e.Selected.Value == "true"
				}
			case readDate:
				value = textOrNil(e.Date)
			case readOne:
				if e.Selected != nil {
					value = e.Selected.Value
				}
			case readMany:
				list := []string{}
				for _, p := range e.Several {
					list = append(list, p.Value)
				}
				value = list
			default:
				value = textOrNil(e.Value)
			}
			if value == nil {
				continue // left out
			}
			raw, _ := json.Marshal(value) // texts, numbers, booleans
			switch {
			case strings.HasPrefix(block, blockField):
				fields[block[len(blockField):]] = raw
			case strings.HasPrefix(block, blockScore):
				scores[block[len(blockScore):]] = raw
			case strings.HasPrefix(block, blockEvidence):
				evidence[block[len(blockEvidence):]], _ = value.(string)
			case block == blockNotes:
				notes, _ = value.(string)
			case block == blockChosen:
				if list, many := value.([]string); many {
					chosen = list
				} else if one, ok := value.(string); ok {
					chosen = []string{one}
				}
			}
		}
	}
	var a *human.Answer
	switch {
	case chosen != nil:
		a = human.Chosen(t.Type, t.Purpose, chosen...)
	case len(scores) > 0:
		a = &human.Answer{Scores: scores}
		if len(evidence) > 0 {
			a.Evidence = evidence
		}
	default:
		a = human.Filled(t.Purpose, fields)
	}
	a.Notes = notes
	return a
}

func textOrNil(text string) any {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return text
}

// number keeps the digits as they were typed where that is JSON. What is no number stays a text, for the rules of the question to refuse.
func number(text string) any {
	text = strings.TrimSpace(text)
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		return nil
	case err == nil && json.Valid([]byte(text)):
		return json.RawMessage(text)
	case err == nil && json.Valid([]byte(strconv.FormatFloat(f, 'f', -1, 64))):
		return f
	}
	return text
}

// complaints are the problems of an answer by the blocks of the form that they are about; false if they are about none.
func complaints(e *fault.Error, language string, s state) (map[string]string, bool) {
	raw, err := json.Marshal(e.Details["fields"])
	var fields []api.FaultField
	if err != nil || json.Unmarshal(raw, &fields) != nil || len(fields) == 0 {
		return nil, false
	}
	out := map[string]string{}
	for _, f := range fields {
		block := blockAt(f.Path, s)
		if block == "" {
			return nil, false
		}
		if out[block] != "" {
			out[block] += "; "
		}
		out[block] += human.FieldIn(language, f)
	}
	for block, text := range out {
		out[block] = clip(text, labelMax)
	}
	return out, true
}

// blockAt finds the block that a path of an answer is about: the longest name that the path ends with wins.
func blockAt(path string, s state) string {
	best := ""
	for block := range s {
		name := block
		for prefix, part := range map[string]string{blockField: "field_values.", blockScore: "scores.", blockEvidence: "evidence."} {
			if rest, ok := strings.CutPrefix(block, prefix); ok {
				name = part + rest
			}
		}
		if block == blockChosen {
			name = "selected_values"
		}
		ends := func(name string) bool { return path == name || strings.HasSuffix(path, "."+name) }
		bare, isField := strings.CutPrefix(block, blockField)
		hit := ends(name) || isField && path == bare || block == blockChosen && (strings.Contains(path, "selected_values") || ends("action"))
		if hit && len(block) > len(best) {
			best = block
		}
	}
	return best
}
