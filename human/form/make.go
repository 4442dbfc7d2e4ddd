package form

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"tandem/payload"
	"tandem/text"
)

// New makes the form of a question for a reader of a language.
func New(q Question, language string) *Form {
	f := &Form{Purpose: q.Purpose, Language: text.Language(language)}
	switch q.Purpose {
	case PurposeConfirm:
		f.decide("confirm", wordGoOn, Choice{Value: "confirm", Label: f.say(wordConfirm)},
			Choice{Value: "cancel", Label: f.say(wordCancel)})
	case PurposeDrift, PurposeActivation:
		f.decide("accept", wordAccept, Choice{Value: "accept", Label: f.say(wordAccepts)},
			Choice{Value: "decline", Label: f.say(wordDeclines)})
	case PurposeOutcomeUnknown:
		f.outcome()
	case PurposeBudget:
		f.addEntry(Entry{Name: "raise_by", Kind: Number, Label: f.say(wordRaise), Required: true})
	case PurposeParam:
		f.params(q)
	default:
		f.byType(q)
	}
	if len(f.Entries) == 0 { // a question of a sort that is not known here
		f.addEntry(Entry{Kind: JSON, Label: f.say(wordAnswer), Prompt: f.say(promptWhole), Limits: f.say(wordObject), Required: true})
	}
	return f
}

func (f *Form) say(t Text) string { return t.In(f.Language) }

// addEntry adds an entry. Unless something else is said, it is asked for by its label with what is known of it.
func (f *Form) addEntry(e Entry) {
	if e.Prompt == "" {
		e.Prompt = e.Label
		switch {
		case e.About != "":
			e.Prompt = f.say(promptAbout.With(e.Label, e.About))
		case e.Kind == Email:
			e.Prompt = f.say(promptMail.With(e.Label))
		case e.Kind == Date:
			e.Prompt = f.say(promptDate.With(e.Label))
		case e.Kind == File:
			e.Prompt = f.say(promptFile.With(e.Label))
		}
	}
	f.Entries = append(f.Entries, e)
}

// decide adds an entry that is true or false and that the whole question is about.
func (f *Form) decide(name string, ask Text, yes, no Choice) {
	yes.Raw, yes.Outcome, no.Raw, no.Outcome = json.RawMessage("true"), Confirmed, json.RawMessage("false"), Rejected
	f.addEntry(Entry{Name: name, Kind: YesNo, Label: f.say(ask), Required: true, Decides: true, Choices: []Choice{yes, no}})
}

func (f *Form) outcome() {
	e := Entry{Name: NameOutcome, Kind: One, Label: f.say(wordWasDone), Required: true, Decides: true}
	for _, c := range []struct {
		value   string
		label   Text
		outcome string
	}{{choiceDone, wordDone, Confirmed}, {choiceNotDone, wordNotDone, Neither}, {choiceStop, wordStop, Rejected}} {
		e.Choices = append(e.Choices, Choice{Value: c.value, Label: f.say(c.label), Raw: payload.Quote(c.value), Outcome: c.outcome})
	}
	f.addEntry(e)
	f.addEntry(Entry{Name: NameResult, Kind: JSON, Label: f.say(wordResult), About: f.say(wordOnlyDone), Prompt: f.say(promptResult),
		OnlyWith: choiceDone, anything: true})
}

// byType makes the form of a question that a node asks, or of whether a tool may be called.
func (f *Form) byType(q Question) {
	switch kind := cmp.Or(q.Type, Approval); {
	case q.Purpose == PurposeToolApproval:
		f.decide("approved", wordAllow, Choice{Value: "approve", Label: f.say(captions()["approve"])},
			Choice{Value: "reject", Label: f.say(captions()["reject"])})
	case kind == Approval:
		f.addEntry(Entry{Name: NameAction, Kind: One, Required: true, Decides: true, Choices: f.options(Approval, q.approves())})
	case kind == Selection && len(q.Options) > 0:
		e := Entry{Name: NameChosen, Kind: One, Label: f.say(wordChoose), Required: true, Decides: true,
			Choices: f.options(Selection, q.Options), list: true}
		if q.Multiple {
			e.Kind, e.Limits = Some, f.say(wordSeveral)
		}
		f.addEntry(e)
	case kind == Review && q.Review != nil:
		f.review(q.Review)
	case kind == Input:
		for _, field := range q.Fields {
			f.field(field)
		}
		if len(q.Fields) == 0 {
			f.schema(q.Schema, GroupFields, nil)
		}
	}
	if len(f.Entries) > 0 {
		f.addEntry(Entry{Name: NameNotes, Kind: Area, Label: f.say(wordNotes), Prompt: f.say(promptNotes)})
	}
}

// options are choices that an author wrote.
func (f *Form) options(kind string, list []Option) []Choice {
	choices := make([]Choice, len(list))
	for n, o := range list {
		choices[n] = Choice{Value: o.Value, Label: Caption(o, f.Language), Raw: payload.Quote(o.Value),
			Outcome: cmp.Or(o.Outcome, OutcomeOf(kind, o.Value))}
	}
	return choices
}

// OutcomeOf is what an option of a question of a type decides by its name. Whatever is selected confirms.
func OutcomeOf(kind, value string) string {
	if kind != Approval {
		return Confirmed
	}
	switch yes, ok := named.decided(strings.TrimSpace(value)); {
	case !ok:
		return Neither
	case yes:
		return Confirmed
	}
	return Rejected
}

func (f *Form) yesNo(yes, no Text) []Choice {
	return []Choice{{Value: "true", Label: f.say(yes), Raw: json.RawMessage("true"), Outcome: Confirmed},
		{Value: "false", Label: f.say(no), Raw: json.RawMessage("false"), Outcome: Rejected}}
}

// field adds a field that an author has configured.
func (f *Form) field(field Field) {
	e := Entry{Group: GroupFields, Name: field.Name, Kind: Line, Label: cmp.Or(field.Label, field.Name), Required: field.Required}
	rule, err := ReadRule(field.Validation)
	if err == nil { // what cannot be used is told of the answer
		e.Min, e.Max, e.MinLength, e.MaxLength = rule.Min, rule.Max, rule.MinLength, rule.MaxLength
	}
	switch field.Type {
	case "number":
		e.Kind, e.MinLength, e.MaxLength = Number, nil, nil
	case "email":
		e.Kind = Email
	case "date":
		e.Kind = Date
	case "select":
		e.Kind, e.Choices = One, f.options(Selection, field.Options)
	case "boolean":
		e.Kind, e.Choices = YesNo, f.yesNo(wordYes, wordNo)
	case "file":
		e.Kind = File
	}
	if e.Kind != Number {
		e.Min, e.Max = nil, nil
	}
	if e.Kind != Line && e.Kind != Email {
		e.MinLength, e.MaxLength = nil, nil
	}
	f.limit(&e)
	f.addEntry(e)
}

// limit puts the limits of an entry into words.
func (f *Form) limit(e *Entry) {
	between := func(low, high bool, both, from, to Text, least, most any) string {
		switch {
		case low && high:
			return f.say(both.With(least, most))
		case low:
			return f.say(from.With(least))
		case high:
			return f.say(to.With(most))
		}
		return ""
	}
	switch e.Kind {
	case Number:
		e.Limits = between(e.Min != nil, e.Max != nil, limitFromTo, limitFrom, limitTo, number(e.Min), number(e.Max))
	case Date:
		e.Limits = f.say(limitDate)
	case File:
		e.Limits = f.say(limitFile)
	case Some:
		if e.Limits = between(e.MinItems != nil, e.MaxItems != nil, limitItemsFromTo, limitItems, limitFewer, count(e.MinItems),
			count(e.MaxItems)); e.Limits == "" {
			e.Limits = f.say(wordSeveral)
		}
	case Line, Area, Email:
		e.Limits = between(e.MinLength != nil, e.MaxLength != nil, limitLengths, limitLonger, limitShorter,
			count(e.MinLength), count(e.MaxLength))
	}
}

func number(n *float64) string {
	if n == nil {
		return ""
	}
	return decimal(*n)
}

func count(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// decimal is a number as people write it.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// letters are those of a grade, the best first.
func letters() []string { return []string{"A", "B", "C", "D", "F"} }

// review adds a score for each criterion, and what it rests on where that is wanted.
func (f *Form) review(rules *Rules) {
	for _, criterion := range rules.Criteria {
		e := Entry{Group: GroupScores, Name: criterion, Label: criterion, Required: true}
		switch rules.Scoring {
		case "numeric_scale":
			e.Kind, e.Min, e.Max, e.Choices, e.Open = Number, &rules.Min, &rules.Max, scale(rules), true
			f.limit(&e)
			e.Prompt = f.say(promptScale.With(criterion, decimal(rules.Min), decimal(rules.Max)))
		case "letter_grade":
			e.Kind, e.Choices = One, grades()
		case "custom":
			e.Kind, e.Min, e.Max, e.Open = Score, &rules.Min, &rules.Max, true
			e.Limits = f.say(limitScore.With(decimal(rules.Min), decimal(rules.Max)))
			e.Prompt = f.say(promptScore.With(criterion, decimal(rules.Min), decimal(rules.Max)))
			if few := scale(rules); few != nil {
				e.Choices = slices.Concat(few, grades(), f.yesNo(wordPass, wordFail))
			}
		case "checklist":
			e.Kind, e.Required, e.Prompt, e.Choices = Tick, false, f.say(promptPasses.With(criterion)), f.yesNo(wordPass, wordFail)
		default:
			e.Kind, e.Prompt, e.Choices = YesNo, f.say(promptPasses.With(criterion)), f.yesNo(wordPass, wordFail)
		}
		f.addEntry(e)
		if rules.Evidence {
			f.addEntry(Entry{Group: GroupEvidence, Name: criterion, Kind: Area, Label: f.say(wordEvidence.With(criterion)),
				Prompt: f.say(promptEvidence), Required: true})
		}
	}
}

func grades() []Choice {
	var list []Choice
	for _, letter := range letters() {
		list = append(list, Choice{Value: letter, Label: letter, Raw: payload.Quote(letter), Outcome: Neither})
	}
	return list
}

// scale are the whole numbers of a scale that has few of them.
func scale(rules *Rules) []Choice {
	if rules.Min != math.Trunc(rules.Min) || rules.Max != math.Trunc(rules.Max) || rules.Max-rules.Min > 10 || rules.Max <= rules.Min {
		return nil
	}
	var list []Choice
	for n := rules.Min; n <= rules.Max; n++ {
		list = append(list, Choice{Value: decimal(n), Label: decimal(n), Raw: json.RawMessage(decimal(n)), Outcome: Neither})
	}
	return list
}

// params adds the parameters that a step lacks and those that it has, and what somebody would rather say in words.
func (f *Form) params(q Question) {
	var missing []string
	for name, value := range q.Params { // order does not matter: sorted below
		if payload.IsNull(value) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	known := q.Params
	if len(missing) == 0 { // it does not say what it lacks
		known = nil
	}
	f.schema(q.Schema, GroupContent, func(e *Entry) {
		value, told := known[e.Name]
		switch {
		case known == nil:
		case !told: // nobody asks for it
			e.Required, e.Known = false, true
		case !payload.IsNull(value):
			e.Default, e.Known, e.Required = value, true, false
		}
	})
	whole := len(f.Entries) == 1 && f.Entries[0].Group == ""
	for _, name := range missing {
		if !slices.ContainsFunc(f.Entries, func(e Entry) bool { return e.Name == name }) {
			if whole { // there was no form to begin with
				f.Entries, whole = nil, false
			}
			f.addEntry(Entry{Group: GroupContent, Name: name, Kind: JSON, Label: name, Required: true, anything: true})
		}
	}
	f.addEntry(Entry{Name: NameDescription, Kind: Area, Label: f.say(wordDescription), Prompt: f.say(promptWords)})
}
