package slack

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/store"
	"tandem/text"
)

// The bounds of modals that are not about a form as such; those are in [form.Slack].
const (
	viewTitleMax  = 24
	labelMax      = 2000
	checkboxesMax = 10
	textMax       = 3000
	metadataMax   = 3000
)

const (
	viewAnswer = "answer"
	viewTold   = "told"
)

// modal draws the form of a question; false if Slack cannot show it, and people have to use the link or the inbox. A block is named by the
// path of its entry.
func modal(i store.Interaction, r human.Request, t touch) (slack.ModalViewRequest, bool) {
	f := human.FormOf(i, r)
	entries, ok := medium().Draw(f)
	t.Value = ""
	metadata := t.text()
	if !ok || text.UTF16(metadata) > metadataMax {
		return slack.ModalViewRequest{}, false
	}
	w := wordsIn(r.Language)
	p := page{message: human.Message{Interaction: i, Request: r}}
	blocks := section(nil, "", p.message.Headline())
	for _, n := range entries {
		blocks = append(blocks, input(&f.Entries[n], w))
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

// input draws an entry.
func input(e *form.Entry, w words) slack.Block {
	label := cmp.Or(e.Label, w.reply)
	var hint *slack.TextBlockObject
	if text := strings.TrimSpace(e.About + " " + e.Limits); text != "" {
		hint = plain(text, labelMax)
	}
	b := slack.NewInputBlock(e.Path(), plain(label, labelMax), hint, widget(e, w))
	b.Optional = !e.Required
	return b
}

// widget is what an entry is filled in with; its action is the kind of the entry.
func widget(e *form.Entry, w words) slack.BlockElement {
	action, proposed := string(e.Kind), e.Text(e.Default)
	switch e.Kind {
	case form.Number:
		in := slack.NewNumberInputBlockElement(nil, action, !e.Whole)
		in.InitialValue = proposed
		if e.Min != nil {
			in.MinValue = decimal(*e.Min)
		}
		if e.Max != nil {
			in.MaxValue = decimal(*e.Max)
		}
		return in
	case form.Email:
		in := slack.NewEmailTextInputBlockElement(nil, action)
		in.InitialValue = proposed
		return in
	case form.Date:
		in := slack.NewDatePickerBlockElement(action)
		in.InitialDate = proposed
		return in
	case form.YesNo:
		options, initial := choiceOptions(e)
		in := slack.NewRadioButtonsBlockElement(action, options...)
		if len(initial) > 0 {
			in.InitialOption = initial[0]
		}
		return in
	case form.Tick:
		options, initial := choiceOptions(e)
		in := slack.NewCheckboxGroupsBlockElement(action, options[:1]...) // the other choice is to leave it empty
		if len(initial) > 0 && initial[0] == options[0] {
			in.InitialOptions = initial
		}
		return in
	case form.One:
		options, initial := choiceOptions(e)
		in := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain(w.choose, 150), action, options...)
		if len(initial) > 0 {
			in.InitialOption = initial[0]
		}
		return in
	case form.Some:
		options, initial := choiceOptions(e)
		if len(options) <= checkboxesMax {
			in := slack.NewCheckboxGroupsBlockElement(action, options...)
			in.InitialOptions = initial
			return in
		}
		in := slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, plain(w.pick, 150), action, options...)
		in.InitialOptions = initial
		return in
	}
	in := slack.NewPlainTextInputBlockElement(nil, action)
	in.Multiline, in.MaxLength, in.InitialValue = e.Kind != form.Score, textMax, text.FitUTF16(proposed, textMax)
	return in
}

// choiceOptions are the choices of an entry, and those that are proposed.
func choiceOptions(e *form.Entry) (options, initial []*slack.OptionBlockObject) {
	for _, c := range e.Choices {
		o := slack.NewOptionBlockObject(c.Value, plain(cmp.Or(c.Label, c.Value), optionTextMax), nil)
		if options = append(options, o); e.Picked(c, e.Default) {
			initial = append(initial, o)
		}
	}
	return options, initial
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// state is what was filled in: by block, then by element.
type state map[string]map[string]entered

type entered struct {
	Value    string   `json:"value"`
	Date     string   `json:"selected_date"`
	Selected *picked  `json:"selected_option"`
	Several  []picked `json:"selected_options"`
}

type picked struct {
	Value string `json:"value"`
}

// readForm makes values of what was filled in.
func (s state) readForm(f *form.Form) (form.Values, form.Problems) {
	values := form.Values{}
	var problems form.Problems
	for n := range f.Entries {
		e := &f.Entries[n]
		for _, filled := range s[e.Path()] { // order does not matter: a block has one element
			names := []string{filled.Value, filled.Date}
			if filled.Selected != nil {
				names = append(names, filled.Selected.Value)
			}
			for _, p := range filled.Several {
				names = append(names, p.Value)
			}
			value, wrong := e.Read(strings.Join(names, ""))
			if e.Chosen() {
				value, wrong = e.Choose(names...)
			}
			if wrong != nil {
				problems = append(problems, form.Problem{Path: e.Path(), Text: *wrong})
			}
			values[n] = value
		}
	}
	return values, problems
}

// complaints are the problems of an answer by the blocks of the form that they are about; false if they are about none.
func complaints(e *fault.Error, f *form.Form, language string, s state) (map[string]string, bool) {
	problems := human.ProblemsOf(e)
	if len(problems) == 0 || f == nil {
		return nil, false
	}
	out := map[string]string{}
	for _, p := range problems {
		n := f.About(p.Path)
		if n < 0 {
			return nil, false
		}
		block := f.Entries[n].Path()
		if _, drawn := s[block]; !drawn {
			return nil, false
		}
		if out[block] != "" {
			out[block] += "; "
		}
		out[block] += p.Text.In(language)
	}
	for block, said := range out {
		out[block] = text.FitUTF16(said, labelMax)
	}
	return out, true
}
