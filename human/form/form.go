// Package form is the one model of a question to a person: what there is to fill in, with which labels, choices, defaults and limits, in
// the language of the reader, and the answer that the filled values make. Response pages, the terminal, the MCP gateway, Slack, Discord,
// Teams and Telegram draw a [Form] and hand the values back; what a medium cannot draw is said in one place, see [Medium].
//
// It also says whether an answer fits the question ([Question.Read]), and names every field that does not, in both languages. The package
// is pure: no clock, no I/O.
package form

import (
	"encoding/json"

	"tandem/fault"
)

// The types of questions.
const (
	Approval  = "approval"
	Input     = "input"
	Selection = "selection"
	Review    = "review"
)

// The purposes of questions: who asks them and what the answer is about.
const (
	PurposeNode           = "human_node"
	PurposeConfirm        = "confirm"
	PurposeParam          = "param"
	PurposeToolApproval   = "tool_approval"
	PurposeOutcomeUnknown = "outcome_unknown"
	PurposeBudget         = "budget"
	PurposeDrift          = "drift"
	PurposeActivation     = "activation"
)

// What an answer decides.
const (
	Confirmed = "confirmed"
	Rejected  = "rejected"
	// Neither is the outcome of an option that decides nothing by itself.
	Neither = "none"
)

// Question is what is asked, as far as its form and the rules of its answer depend on it.
type Question struct {
	Purpose string
	// Type is approval, input, selection or review; empty is approval.
	Type string
	// Options are those of an approval or a selection; Multiple says that several of them may be chosen.
	Options  []Option
	Multiple bool
	Fields   []Field
	// Schema is a JSON Schema of an object, instead of Fields or besides them.
	Schema json.RawMessage
	Review *Rules
	// Params are the parameters that a step wants, null for those that it lacks. What has a value is known and need not be filled in.
	Params map[string]json.RawMessage
}

// Option is something to choose. One that is written as a text is its own value and label.
type Option struct {
	Value string `json:"value"`
	Label string `json:"label,omitempty"`
	// Outcome is confirmed, rejected or none; empty: what the value says by its name.
	Outcome string `json:"outcome,omitempty"`
}

// UnmarshalJSON reads both ways of writing an option.
func (o *Option) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &o.Value)
	}
	type plain Option
	if err := json.Unmarshal(raw, (*plain)(o)); err != nil {
		return fault.Newf(fault.Invalid, "an option is a text or an object with a value: %w", err)
	}
	return nil
}

// Field is a field that an author has configured.
type Field struct {
	Name     string   `json:"name"`
	Label    string   `json:"label,omitempty"`
	Type     string   `json:"type,omitempty"` // text, number, email, date, select, boolean, file; empty is text
	Required bool     `json:"required,omitempty"`
	Options  []Option `json:"options,omitempty"`
	// Validation is a regular expression as a text, or {pattern, min, max, min_length, max_length, message}.
	Validation json.RawMessage `json:"validation,omitempty"`
}

// Rules say how a review is judged.
type Rules struct {
	Type      string   `json:"review_type,omitempty"`
	Criteria  []string `json:"criteria"`
	Scoring   string   `json:"scoring_system,omitempty"` // pass_fail, numeric_scale, letter_grade, checklist, custom
	Min       float64  `json:"min"`
	Max       float64  `json:"max"`
	Threshold float64  `json:"passing_threshold"`
	Evidence  bool     `json:"require_evidence,omitempty"`
	Consensus bool     `json:"consensus_required,omitempty"`
}

// Form is what is to be filled in, in the order in which it is shown.
type Form struct {
	Purpose  string
	Language string
	Entries  []Entry
}

// Kind says what is filled in, and so how a medium draws it.
type Kind string

// The kinds of entries.
const (
	// Line is a text of one line, Area one of several.
	Line   Kind = "line"
	Area   Kind = "area"
	Number Kind = "number"
	Email  Kind = "email"
	// Date is a day like 2027-03-31.
	Date Kind = "date"
	// YesNo is true or false; its two choices say what they are called. Tick is the same with one box: what is not ticked is false.
	YesNo Kind = "yes_no"
	Tick  Kind = "tick"
	// One is one of the choices, Some are several of them.
	One  Kind = "one"
	Some Kind = "some"
	// Score is a number, a letter from A to F, or pass or fail.
	Score Kind = "score"
	File  Kind = "file"
	// JSON is any value, written as JSON.
	JSON Kind = "json"
)

// The groups and names of answers, as POST /interactions/{id}/respond takes them.
const (
	GroupFields   = "field_values"
	GroupScores   = "scores"
	GroupEvidence = "evidence"
	GroupContent  = "content"

	NameAction      = "action"
	NameChosen      = "selected_values"
	NameOutcome     = "outcome"
	NameResult      = "result"
	NameNotes       = "notes"
	NameDescription = "description"
)

// Entry is one thing to fill in.
type Entry struct {
	// Group and Name say where the value stands in the answer: under Name, within Group if there is one. Both are empty where the answer is
	// one value as a whole.
	Group, Name string
	Kind        Kind
	// Label is what it is called, About what its author says of it, Limits what may be filled in, as a sentence; any of the last two may be
	// empty.
	Label, About, Limits string
	// Prompt is how it is asked for where the entries come one after the other.
	Prompt   string
	Required bool
	Choices  []Choice
	// Open says that besides the choices other values may be written.
	Open bool
	// Min, Max, MinLength, MaxLength, MinItems and MaxItems bound the value; nil: nothing does. Whole says that a number has no fraction.
	Min, Max             *float64
	MinLength, MaxLength *int
	MinItems, MaxItems   *int
	Whole                bool
	// Default is what is filled in unless somebody changes it. Known says that it is not only proposed: the step has this value already.
	Default json.RawMessage
	Known   bool
	// Decides says that the question as a whole is about it: a medium may show each of its choices as a button that answers.
	Decides bool
	// Schema is the author's JSON Schema of the value, where there is one: what it says may be more than an entry shows.
	Schema json.RawMessage
	// OnlyWith is the value of the deciding entry with which this one makes sense; empty: any.
	OnlyWith string

	// list says that the answer has a list where one thing is chosen; anything that what is not JSON is a text.
	list, anything bool
}

// Choice is something to choose.
type Choice struct {
	// Value names it, Label is what people read. Raw is its value in the answer.
	Value, Label string
	Raw          json.RawMessage
	// Outcome is confirmed, rejected or none: what choosing it decides.
	Outcome string
}

// Path is where the value of an entry stands in an answer, as problems name it.
func (e *Entry) Path() string {
	if e.Group == "" {
		return e.Name
	}
	return e.Group + "." + e.Name
}

// Chosen says that the entry is filled in by choosing and by nothing else.
func (e *Entry) Chosen() bool { return e.Kind == One || e.Kind == Some || e.Kind == YesNo }

// Listed says that the answer has a list where one thing is chosen.
func (e *Entry) Listed() bool { return e.list }

// TakesText says that what is written and does not begin like JSON is a text.
func (e *Entry) TakesText() bool { return e.anything }

// Decision is the entry that the whole question is about, and its place; nil and -1 when there is none.
func (f *Form) Decision() (*Entry, int) {
	for n := range f.Entries {
		if f.Entries[n].Decides {
			return &f.Entries[n], n
		}
	}
	return nil, -1
}

// Wanted says that an entry makes sense after what the others say.
func (f *Form) Wanted(n int, values Values) bool {
	only := f.Entries[n].OnlyWith
	if only == "" {
		return true
	}
	decision, at := f.Decision()
	if decision == nil {
		return true
	}
	for _, c := range decision.Choices {
		if c.Value == only {
			return string(values[at]) == string(c.Raw)
		}
	}
	return false
}

// Outcome are the choices of an entry that decide one way.
func (e *Entry) Outcome(outcome string) []Choice {
	var list []Choice
	for _, c := range e.Choices {
		if c.Outcome == outcome {
			list = append(list, c)
		}
	}
	return list
}
