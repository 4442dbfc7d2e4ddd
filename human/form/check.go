package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/payload"
	"tandem/text"
)

// Reading is an answer that fits its question.
type Reading struct {
	// Action, Chosen, Fields, Scores, Evidence and Notes are those of a node's question. Bare are the fields without the content of files.
	Action       string
	Chosen       []string
	Fields, Bare map[string]json.RawMessage
	Scores       map[string]json.RawMessage
	Evidence     map[string]string
	Notes        string

	// Data is what is handed on to the part that asks a question of another purpose, Kept what is recorded of it.
	Data, Kept json.RawMessage
	// Outcome is confirmed, rejected or none; Options are what was chosen.
	Outcome string
	Options []string
	// Average is that of a review with numbers.
	Average *float64
	// Unknown is what was said about an unknown outcome, Raise by how much a budget is raised.
	Unknown string
	Raise   float64
}

// maxAnswerDepth is how deep an answer may nest: what is recorded of it stands inside a record and must not be too deep with it.
const maxAnswerDepth = payload.MaxDepth - 10

// Read reads an answer. Given says that somebody gave it: then a review needs what its scores rest on, and keys that mean nothing are
// refused. A default that stands for an answer has no evidence, and its keys are checked with [Question.Unknown] before the question is
// asked. What is wrong is an error of type [Problems].
func (q *Question) Read(raw json.RawMessage, given bool) (Reading, error) {
	at := "response_data"
	if q.Purpose != PurposeNode {
		at = "input_data"
	}
	if err := checkJSON(at, raw); err != nil {
		return Reading{}, err
	}
	got, err := q.readAs(raw, given)
	found, told := errors.AsType[Problems](err)
	if !given || err != nil && !told {
		return got, err
	}
	// A key that means nothing goes first: it is often why another is missing.
	return got, slices.Concat(q.Unknown(raw), found).err()
}

func (q *Question) readAs(raw json.RawMessage, given bool) (Reading, error) {
	if q.Purpose != PurposeNode {
		return q.readGiven(raw)
	}
	return q.readAnswer(raw, given)
}

// checkJSON refuses an answer that could not be kept or read again. That there is no answer is said by its reader.
func checkJSON(at string, raw json.RawMessage) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	err := payload.Check(raw, payload.Limits{MaxDepth: maxAnswerDepth, Unique: true, Finite: true})
	wrong, ok := errors.AsType[*payload.Error](err)
	if !ok {
		return err
	}
	words := wrongDocument
	switch {
	case wrong.Repeated:
		words = wrongRepeatedKey
	case wrong.Syntax:
		words = wrongSyntax
	}
	return wrongAt(wrong.Field(at), words.Saying(text.English, wrong.Reason))
}

func wrongAt(path string, t Text) error { return Problems{{Path: path, Text: t}} }

// readAnswer reads the answer to a question of a node.
func (q *Question) readAnswer(raw json.RawMessage, evidence bool) (Reading, error) {
	var a struct {
		Action   string                     `json:"action"`
		Fields   map[string]json.RawMessage `json:"field_values"`
		Chosen   []string                   `json:"selected_values"`
		Scores   map[string]json.RawMessage `json:"scores"`
		Evidence map[string]string          `json:"evidence"`
		Notes    string                     `json:"notes"`
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return Reading{}, wrongAt("response_data", wrongObject)
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return Reading{}, wrongAt(wrongPath(err), wrongShape.With(plainError(err)))
	}
	var found Problems
	got := Reading{Outcome: Confirmed, Notes: a.Notes}
	switch q.Type {
	case Input:
		got.Fields, got.Bare = q.readFields(a.Fields, &found)
	case Selection:
		got.Chosen = q.readChosen(a.Chosen, &found)
		if got.Options = got.Chosen; len(got.Chosen) == 1 {
			got.Outcome = q.Option(got.Chosen[0]).Outcome
		}
	case Review:
		got.Scores, got.Evidence = a.Scores, a.Evidence
		var passed bool
		if passed, got.Average = q.readScores(a.Scores, a.Evidence, evidence, &found); !passed {
			got.Outcome = Rejected
		}
	default:
		options := q.approves()
		o := optionOf(options, a.Action)
		switch {
		case a.Action == "":
			found.addProblem("response_data.action", wrongNoChoice.With(namesOf(options)))
		case o.Value == "":
			found.addProblem("response_data.action", wrongNoneOf.With(a.Action, namesOf(options)))
		}
		got.Action, got.Outcome, got.Options = o.Value, o.Outcome, []string{o.Value}
	}
	return got, found.err()
}

// wrongPath is where JSON has a value of the wrong type.
func wrongPath(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return "response_data." + wrong.Field
	}
	return "response_data"
}

func plainError(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "it is a " + wrong.Value
	}
	return err.Error()
}

// Option finds an option by its value, in whatever case it is written.
func (q *Question) Option(value string) Option { return optionOf(q.Options, value) }

// approves are the options of an approval.
func (q *Question) approves() []Option {
	if len(q.Options) == 0 {
		return []Option{{Value: "approve", Outcome: Confirmed}, {Value: "reject", Outcome: Rejected}}
	}
	return q.Options
}

func optionOf(options []Option, value string) Option {
	for _, o := range options {
		if o.Value == value {
			return o
		}
	}
	for _, o := range options {
		if value != "" && strings.EqualFold(o.Value, value) {
			return o
		}
	}
	return Option{}
}

// maxNamed is how many options are named to somebody who chose none of them.
const maxNamed = 50

func namesOf(options []Option) string {
	var names []string
	for _, o := range options[:min(len(options), maxNamed)] {
		names = append(names, o.Value)
	}
	if len(options) > maxNamed {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func (q *Question) readChosen(chosen []string, found *Problems) []string {
	const at = "response_data.selected_values"
	var list []string
	names := namesOf(q.Options)
	known, seen := map[string]string{}, map[string]bool{} // both lists may be long
	for _, o := range slices.Backward(q.Options) {
		known[strings.ToLower(o.Value)] = o.Value
	}
	for _, o := range q.Options { // as it is written goes first
		known[o.Value] = o.Value
	}
	for n, value := range chosen {
		o, ok := known[value]
		if !ok {
			o = known[strings.ToLower(value)]
		}
		switch {
		case o == "":
			found.addProblem(fmt.Sprintf("%s[%d]", at, n), wrongNoneOf.With(value, names))
		case seen[o]:
			found.addProblem(fmt.Sprintf("%s[%d]", at, n), wrongTwice.With(o))
		default:
			list, seen[o] = append(list, o), true
		}
	}
	switch {
	case len(chosen) == 0 && q.Multiple:
		found.addProblem(at, wrongNoChoices.With(names))
	case len(chosen) == 0:
		found.addProblem(at, wrongNoChoice.With(names))
	case len(chosen) > 1 && !q.Multiple:
		found.addProblem(at, wrongSeveral.With(len(chosen)))
	}
	return list
}

// readFields reads the values of a form; bare are the same without the content of files.
func (q *Question) readFields(given map[string]json.RawMessage, found *Problems) (values, bare map[string]json.RawMessage) {
	const at = "response_data.field_values"
	values, bare = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(q.Fields) == 0 {
		checkSchema(q.Schema, at, given, found)
		if given == nil {
			return values, bare
		}
		return given, given
	}
	for _, name := range sortedNames(given) {
		if !slices.ContainsFunc(q.Fields, func(f Field) bool { return f.Name == name }) {
			found.addProblem(at+"."+name, wrongNoField)
		}
	}
	for _, f := range q.Fields {
		path := at + "." + f.Name
		raw := bytes.TrimSpace(given[f.Name])
		if payload.IsNull(raw) || string(raw) == `""` {
			if f.Required {
				found.addProblem(path, wrongRequired)
			}
			continue
		}
		before := len(*found)
		value, without := f.readFilled(path, raw, found)
		if len(*found) > before {
			continue
		}
		values[f.Name], bare[f.Name] = value, value
		if without != nil {
			bare[f.Name] = without
		}
	}
	if !payload.IsNull(q.Schema) && len(*found) == 0 {
		checkSchema(q.Schema, at, values, found)
	}
	return values, bare
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checkSchema checks values against a JSON Schema, which names what is wrong with each.
func checkSchema(raw json.RawMessage, at string, values map[string]json.RawMessage, found *Problems) {
	schema, err := payload.CompileSchema(raw)
	if err != nil {
		found.addProblem(at, wrongSchema.With(err))
		return
	}
	if values == nil {
		values = map[string]json.RawMessage{}
	}
	var decoded any
	whole, err := payload.Encode(values)
	if err == nil {
		decoded, err = payload.Decode(whole)
	}
	if err != nil {
		found.addProblem(at, wrongUnreadable.With(err))
		return
	}
	for _, p := range schema.Problems(at, decoded) {
		if p.Rule == "required" && p.Path == at { // it names them all at once, and each has a place of its own
			for _, name := range gjson.GetBytes(raw, "required").Array() {
				if _, given := values[name.String()]; !given {
					found.addProblem(at+"."+name.String(), wrongRequired)
				}
			}
			continue
		}
		before := len(*found)
		found.addProblem(p.Path, SchemaWords(p))
		if len(*found) > before {
			(*found)[before].Schema = true
		}
	}
}

// readScores reads a review: does it pass, and what are its scores on average, if they are numbers.
func (q *Question) readScores(scores map[string]json.RawMessage, evidence map[string]string, needsEvidence bool,
	found *Problems) (passed bool, average *float64) {
	rules := q.Review
	if rules == nil {
		found.addProblem("response_data.scores", wrongNoCriteria)
		return false, nil
	}
	for _, name := range sortedNames(scores) {
		if !slices.Contains(rules.Criteria, name) {
			found.addProblem("response_data.scores."+name, wrongNoCriterion)
		}
	}
	counts := rules.Scoring == "numeric_scale" || rules.Scoring == "letter_grade" || rules.Scoring == "custom"
	passed = true
	sum := 0.0
	for _, name := range rules.Criteria {
		path := "response_data.scores." + name
		raw := bytes.TrimSpace(scores[name])
		if payload.IsNull(raw) {
			found.addProblem(path, wrongRequired)
			continue
		}
		score, pass, wrong := rules.score(raw)
		if wrong != nil {
			found.addProblem(path, *wrong)
			continue
		}
		sum += score
		passed = passed && pass
	}
	for _, name := range rules.Criteria {
		if needsEvidence && rules.Evidence && strings.TrimSpace(evidence[name]) == "" {
			found.addProblem("response_data.evidence."+name, wrongNoEvidence)
		}
	}
	if !counts || len(*found) > 0 {
		return passed, nil
	}
	mean := sum / float64(len(rules.Criteria))
	return mean >= rules.Threshold, &mean
}

// Average is that of the scores of a review; nil: they have none.
func (q *Question) Average(scores map[string]json.RawMessage) *float64 {
	var ignored Problems
	_, average := q.readScores(scores, nil, false, &ignored)
	return average
}

// score reads one score: as a number where scores are counted, else whether it passes.
func (v *Rules) score(raw json.RawMessage) (score float64, pass bool, wrong *Text) {
	text := strings.ToUpper(strings.TrimSpace(strings.Trim(string(raw), `"`)))
	passes, said := scored.decided(text)
	number, isNumber := readNumber(raw, strings.Trim(string(raw), `"`))
	inRange := isNumber && number >= v.Min && number <= v.Max
	letter := gradeOf(text)
	switch v.Scoring {
	case "numeric_scale":
		if !inRange {
			return 0, false, because(wrongRange.With(decimal(v.Min), decimal(v.Max)))
		}
		return number, true, nil
	case "letter_grade":
		if letter == 0 {
			return 0, false, because(wrongLetter)
		}
		return letter, true, nil
	case "custom":
		switch {
		case inRange:
			return number, true, nil
		case said && passes:
			return v.Max, true, nil
		case said:
			return v.Min, true, nil
		case letter != 0:
			return letter, true, nil
		}
		return 0, false, because(wrongScore.With(decimal(v.Min), decimal(v.Max)))
	}
	if !said {
		return 0, false, because(wrongYesNo)
	}
	return 0, passes, nil
}

// gradeOf is what a letter counts: five for the best, one for the last; 0: it is not a grade.
func gradeOf(letter string) float64 {
	n := slices.Index(letters(), letter)
	if n < 0 {
		return 0
	}
	return float64(len(letters()) - n)
}
