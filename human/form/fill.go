package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tandem/payload"
)

// Values are what was filled in, by the place of the entry. An entry that is there with nothing was left empty; one that is not there was
// not shown.
type Values map[int]json.RawMessage

// maxTyped is how much one entry may hold.
const maxTyped = 256 << 10

// Read makes a value of what somebody has typed or, of a choice, of the name, label or value of what was chosen. Nil: nothing was filled
// in. The text says what is wrong with it; whether the value fits the question is for [Question.Read] to say.
func (e *Entry) Read(text string) (value json.RawMessage, wrong *Text) {
	typed := strings.TrimSpace(text)
	switch {
	case len(text) > maxTyped:
		return nil, because(wrongTypedTooLong)
	case typed == "":
		return nil, nil
	}
	switch e.Kind {
	case Area:
		return payload.Quote(text), nil
	case Number:
		if n, ok := typedNumber(typed); ok {
			return n, nil
		}
		return nil, because(wrongNumber)
	case YesNo, Tick:
		if c, ok := e.find(typed); ok {
			return c.Raw, nil
		}
		return nil, because(wrongYesNoTyped)
	case One:
		return e.Choose(typed)
	case Some:
		if _, ok := e.find(typed); ok { // a value may have commas of its own
			return e.Choose(typed)
		}
		return e.Choose(strings.FieldsFunc(typed, func(r rune) bool { return r == ',' || r == '，' || r == '、' })...)
	case Score:
		return e.score(typed)
	case JSON:
		return e.document(typed)
	}
	return payload.Quote(typed), nil
}

// Choose makes a value of the names, labels or values of what was chosen.
func (e *Entry) Choose(names ...string) (value json.RawMessage, wrong *Text) {
	list := []json.RawMessage{}
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		c, ok := e.find(name)
		if !ok && e.Open {
			return e.Read(name)
		}
		if !ok {
			return nil, because(wrongNoneOf.With(name, e.ChoiceNames()))
		}
		list = append(list, c.Raw)
	}
	switch {
	case e.Kind == Some || e.list && len(list) > 0:
		if len(list) == 0 && !e.list {
			return nil, nil
		}
		return json.RawMessage("[" + string(bytes.Join(bytesOf(list), []byte(","))) + "]"), nil
	case len(list) == 0:
		return nil, nil
	case len(list) > 1:
		return nil, because(wrongSeveral.With(len(list)))
	}
	return list[0], nil
}

func because(t Text) *Text { return &t }

func bytesOf(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for n, raw := range list {
		out[n] = raw
	}
	return out
}

// find finds a choice by its value, its label or, where one of the choices agrees and one does not, by a yes or a no.
func (e *Entry) find(text string) (Choice, bool) {
	for _, same := range []func(c Choice) bool{
		func(c Choice) bool { return c.Value == text },
		func(c Choice) bool { return strings.EqualFold(c.Value, text) },
		func(c Choice) bool { return strings.EqualFold(c.Label, text) },
		func(c Choice) bool { return string(c.Raw) == text },
	} {
		if n := slices.IndexFunc(e.Choices, same); n >= 0 {
			return e.Choices[n], true
		}
	}
	if agree, refuse, ok := e.EitherOr(); ok {
		switch yes, said := typed.decided(text); {
		case said && yes:
			return agree, true
		case said:
			return refuse, true
		}
	}
	return Choice{}, false
}

// EitherOr are the choice that agrees and the one that does not, where a decision has one of each: then a yes or a no is enough.
func (e *Entry) EitherOr() (agree, refuse Choice, ok bool) {
	yes, no := e.Outcome(Confirmed), e.Outcome(Rejected)
	if len(yes) != 1 || len(no) != 1 || e.Kind != YesNo && e.Kind != Tick && e.Name != NameAction {
		return Choice{}, Choice{}, false
	}
	return yes[0], no[0], true
}

// ChoiceNames are the values of the choices, for people.
func (e *Entry) ChoiceNames() string {
	options := make([]Option, len(e.Choices))
	for n, c := range e.Choices {
		options[n].Value = c.Value
	}
	return namesOf(options)
}

// typedNumber is a number as it was typed where that is JSON, else written as JSON: +1 and 007 are numbers, too.
func typedNumber(text string) (json.RawMessage, bool) {
	n, ok := readNumber(json.RawMessage(text), "")
	switch {
	case !ok:
		return nil, false
	case json.Valid([]byte(text)):
		return json.RawMessage(text), true
	}
	return json.RawMessage(strconv.FormatFloat(n, 'g', -1, 64)), true
}

// score reads a number, a letter, or pass or fail.
func (e *Entry) score(text string) (json.RawMessage, *Text) {
	if n, ok := typedNumber(text); ok {
		return n, nil
	}
	if slices.Contains(letters(), strings.ToUpper(text)) {
		return payload.Quote(strings.ToUpper(text)), nil
	}
	if yes, ok := typed.decided(text); ok {
		return json.RawMessage(strconv.FormatBool(yes)), nil
	}
	return nil, because(wrongScore.With(number(e.Min), number(e.Max)))
}

// document reads JSON. Where a text may stand as well, what does not begin like JSON of several parts is one.
func (e *Entry) document(text string) (json.RawMessage, *Text) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err == nil {
		return compact.Bytes(), nil
	}
	if e.anything && !strings.ContainsAny(text[:1], `{["`) {
		return payload.Quote(text), nil
	}
	return nil, because(wrongTypedJSON)
}

// Written says how the value is written where everything is a text: what the label does not say, in a few words; empty: nothing.
func (e *Entry) Written(language string) string {
	labels := make([]string, len(e.Choices))
	for n, c := range e.Choices {
		labels[n] = c.Label
	}
	all := strings.Join(labels, ", ")
	switch {
	case e.Kind == One:
		return limitOneOf.With(all).In(language)
	case e.Kind == Some:
		return limitSomeOf.With(all).In(language)
	case (e.Kind == YesNo || e.Kind == Tick) && e.Group == GroupScores:
		return limitPassFail.In(language)
	case e.Kind == YesNo || e.Kind == Tick:
		return limitYesNo.In(language)
	}
	return strings.TrimSuffix(strings.TrimSuffix(e.Limits, "."), "。")
}

// Text is a value of an entry as somebody would type it: the default of a field that is a text.
func (e *Entry) Text(value json.RawMessage) string {
	if payload.IsNull(value) {
		return ""
	}
	if e.Kind == JSON {
		return payload.JSON(value)
	}
	if c, ok := e.choiceOf(value); ok {
		return c.Value
	}
	if e.Kind == Some {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) == nil {
			var names []string
			for _, one := range list {
				if c, ok := e.choiceOf(one); ok {
					names = append(names, c.Value)
				}
			}
			return strings.Join(names, ", ")
		}
	}
	return payload.Text(value)
}

// Picked says that a choice is part of a value.
func (e *Entry) Picked(c Choice, value json.RawMessage) bool {
	if payload.IsNull(value) {
		return false
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		list = []json.RawMessage{value}
	}
	return slices.ContainsFunc(list, func(raw json.RawMessage) bool { return sameJSON(raw, c.Raw) })
}

func (e *Entry) choiceOf(value json.RawMessage) (Choice, bool) {
	n := slices.IndexFunc(e.Choices, func(c Choice) bool { return sameJSON(c.Raw, value) })
	if n < 0 {
		return Choice{}, false
	}
	return e.Choices[n], true
}

func sameJSON(a, b json.RawMessage) bool {
	return payload.JSON(a) == payload.JSON(b)
}

// Answer puts what was filled in together. What a step knows already stands beside what somebody gives; by itself it is not an answer.
func (f *Form) Answer(values Values) json.RawMessage {
	top := map[string]any{}
	groups := map[string]map[string]json.RawMessage{}
	given := f.gives(values)
	for n := range f.Entries {
		e := &f.Entries[n]
		value, shown := values[n]
		switch {
		case e.Kind == Tick && payload.IsNull(value):
			value = json.RawMessage("false")
		case e.Known && !shown && given:
			value = e.Default
		case e.Known && !given:
			value = nil
		}
		if e.Group != "" && groups[e.Group] == nil {
			groups[e.Group] = map[string]json.RawMessage{}
			if e.Group != GroupEvidence {
				top[e.Group] = groups[e.Group] // where nothing was filled in it is a form all the same
			}
		}
		switch {
		case payload.IsNull(value):
		case e.Path() == "":
			return value
		case e.Group == "":
			top[e.Name] = value
		default:
			top[e.Group] = groups[e.Group]
			groups[e.Group][e.Name] = value
		}
	}
	raw, err := json.Marshal(top)
	if err != nil {
		return json.RawMessage("{}") // it is JSON already
	}
	return raw
}

// gives says that somebody has given something besides what is known.
func (f *Form) gives(values Values) bool {
	for n := range f.Entries {
		if e := &f.Entries[n]; !payload.IsNull(values[n]) && !(e.Known && sameJSON(values[n], e.Default)) {
			return true
		}
	}
	return false
}

// Missing are the entries of a question for parameters that have to be filled in and are not. The answer may leave them out, so nobody but
// the form says so. Of other questions the answer is refused without them.
func (f *Form) Missing(values Values) Problems {
	var list Problems
	for n := range f.Entries {
		if e := &f.Entries[n]; f.Purpose == PurposeParam && e.Required && payload.IsNull(values[n]) {
			list.addProblem("input_data."+e.Path(), wrongRequired)
		}
	}
	return list
}

// Gone is what is wrong with an answer that was chosen from a form that the question has no more.
func Gone() Text { return wrongGone }

// Undecided is what is wrong with an answer in which nothing of what a question is about was chosen by a button.
func Undecided() Text { return wrongNoButton }

// About is the entry that a problem of an answer is about: its place, or -1. Of entries within each other it is the innermost.
func (f *Form) About(path string) int {
	if _, rest, ok := strings.Cut(path, "."); ok && (strings.HasPrefix(path, "response_data.") || strings.HasPrefix(path, "input_data.")) {
		path = rest
	}
	best, length := -1, 0
	for n := range f.Entries {
		own := f.Entries[n].Path()
		if own != "" && (path == own || strings.HasPrefix(path, own+".") || strings.HasPrefix(path, own+"[")) && len(own) > length {
			best, length = n, len(own)
		}
	}
	return best
}

// String is for logs and tests.
func (e *Entry) String() string { return fmt.Sprintf("%s %s", e.Path(), e.Kind) }
