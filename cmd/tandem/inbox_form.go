package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/payload"
)

// question is what somebody is asked, taken apart into the blanks that an answer fills in. Prompts on a terminal and flags fill in the same
// blanks; whether the answer is right is for the server to say.
type question struct {
	api.Interaction
	request human.Request
	task    taskAsked
	blanks  []blank
}

// taskAsked is what the question of a task says besides: which tool is to be called, why that is risky, and what it lacks. Params are all
// parameters of the tool, null for those that are missing.
type taskAsked struct {
	Tool    string                     `json:"tool"`
	Reason  string                     `json:"reason"`
	Warning string                     `json:"warning"`
	Message string                     `json:"message"`
	Params  map[string]json.RawMessage `json:"params"`
}

// toolChanges are how tools differ from what was accepted, when that is what the question is about.
func (q *question) toolChanges() []api.MCPChange {
	var content struct {
		Changes []api.MCPChange `json:"changes"`
	}
	if q.Purpose != human.PurposeDrift || json.Unmarshal(q.request.Content, &content) != nil {
		return nil // it is shown as it is
	}
	return content.Changes
}

// blank is one thing to fill in. Group and name say where it goes in the answer.
type blank struct {
	group, name string
	label       string
	kind        blankKind
	required    bool
	// options are those of a choice, values what they stand for where that is not their text.
	options []human.Option
	values  []json.RawMessage
}

type blankKind int

const (
	blankText blankKind = iota
	blankNumber
	blankYesNo
	// blankDecision is a yes or no that the whole question is about.
	blankDecision
	blankChoice
	blankChoices
	blankFile
	blankJSON
)

// The groups and names of answers that more than one place has to know.
const (
	groupFields   = "field_values"
	groupScores   = "scores"
	groupEvidence = "evidence"
	groupContent  = "content"
	nameAction    = "action"
	nameChosen    = "selected_values"
	nameOutcome   = "outcome"
	nameResult    = "result"
	nameNotes     = "notes"
	// nameDescription is what somebody says about parameters in words.
	nameDescription = "description"
)

func newQuestion(i api.Interaction) (*question, error) {
	q := &question{Interaction: i}
	if err := json.Unmarshal(i.RequestData, &q.request); err != nil {
		return nil, fault.Newf(fault.Unsupported, "question %q cannot be read by this program; a newer one may: %w", i.ID, err)
	}
	if json.Unmarshal(i.RequestData, &q.task) != nil {
		q.task = taskAsked{} // another part's, which has fields of these names for something else
	}
	decide := func(name, label string) {
		q.blanks = []blank{{name: name, label: label, kind: blankDecision, required: true}}
	}
	switch i.Purpose {
	case human.PurposeToolApproval:
		decide("approved", "Allow it?")
	case human.PurposeConfirm:
		decide("confirm", "Go on?")
	case human.PurposeDrift, human.PurposeActivation:
		decide("accept", "Accept it?")
	case human.PurposeBudget:
		q.blanks = []blank{{name: "raise_by", label: "Raise it by", kind: blankNumber, required: true}}
	case human.PurposeOutcomeUnknown:
		q.blanks = []blank{
			{name: nameOutcome, kind: blankChoice, options: q.request.Options, required: true},
			{name: nameResult, label: "Its result, as JSON", kind: blankJSON},
		}
	case human.PurposeParam:
		q.blanks = missingBlanks(q.request.Schema, q.task.Params)
	default:
		q.blanks = nodeBlanks(i.InteractionType, &q.request)
	}
	if len(q.blanks) == 0 { // a question of a sort that is not known here
		q.blanks = []blank{{label: "The answer, as JSON", kind: blankJSON, required: true}}
	}
	return q, nil
}

// nodeBlanks are those of a question that a node asks.
func nodeBlanks(kind string, r *human.Request) []blank {
	note := blank{name: nameNotes, label: "Note"}
	var list []blank
	switch kind {
	case human.Approval:
		list = []blank{{name: nameAction, kind: blankChoice, options: r.Options, required: true}}
	case human.Selection:
		list = []blank{{name: nameChosen, kind: blankChoices, options: r.Options, required: true}}
	case human.Review:
		if r.Review == nil {
			return nil
		}
		for _, name := range r.Review.Criteria {
			list = append(list, scoreBlank(name, r.Review))
			if r.Review.Evidence {
				list = append(list, blank{group: groupEvidence, name: name, label: "What it rests on", required: true})
			}
		}
	case human.Input:
		for _, f := range r.Fields {
			list = append(list, fieldBlank(f))
		}
		if len(r.Fields) == 0 {
			list = schemaBlanks(groupFields, r.Schema)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return append(list, note)
}

func fieldBlank(f human.Field) blank {
	b := blank{group: groupFields, name: f.Name, label: cmp.Or(f.Label, f.Name), required: f.Required, options: f.Options}
	switch f.Type {
	case "number":
		b.kind = blankNumber
	case "boolean":
		b.kind = blankYesNo
	case "select":
		b.kind = blankChoice
	case "file":
		b.kind, b.label = blankFile, b.label+" (a file)"
	case "date":
		b.label += " (a date like 2026-01-31)"
	case "email":
		b.label += " (a mail address)"
	}
	return b
}

func scoreBlank(name string, v *human.ReviewRules) blank {
	b := blank{group: groupScores, name: name, label: name, required: true}
	switch v.Scoring {
	case "numeric_scale":
		b.kind, b.label = blankNumber, fmt.Sprintf("%s (%g to %g)", name, v.Min, v.Max)
	case "letter_grade":
		b.kind = blankChoice
		for _, letter := range []string{"A", "B", "C", "D", "F"} {
			b.options = append(b.options, human.Option{Value: letter})
		}
	case "custom":
		b.kind, b.label = blankJSON, fmt.Sprintf("%s (%g to %g, a letter from A to F, or pass or fail)", name, v.Min, v.Max)
	default:
		b.kind, b.label = blankYesNo, name+" (does it pass?)"
	}
	return b
}

// slot is what is read of the schema of one value.
type slot struct {
	Type        any               `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
}

// schemaBlanks are the properties of a schema, by name.
func schemaBlanks(group string, raw json.RawMessage) []blank {
	var schema struct {
		Properties map[string]slot `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(raw, &schema) != nil { // then it is asked for as a whole
		return nil
	}
	var list []blank
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		s := schema.Properties[name]
		b := blank{group: group, name: name, label: name, required: slices.Contains(schema.Required, name)}
		if about := cmp.Or(s.Description, s.Title); about != "" {
			b.label += " (" + about + ")"
		}
		switch {
		case len(s.Enum) > 0:
			b.kind, b.values = blankChoice, s.Enum
			for _, value := range s.Enum {
				b.options = append(b.options, human.Option{Value: plain(value)})
			}
		case s.Type == "string":
		case s.Type == "number" || s.Type == "integer":
			b.kind = blankNumber
		case s.Type == "boolean":
			b.kind = blankYesNo
		default:
			b.kind = blankJSON
		}
		list = append(list, b)
	}
	return list
}

// missingBlanks are the parameters that a step lacks. What is known is not asked for. Whoever would rather say it in words may.
func missingBlanks(schema json.RawMessage, params map[string]json.RawMessage) []blank {
	list := schemaBlanks(groupContent, schema)
	missing := func(name string) bool { return isNull(params[name]) }
	if len(params) == 0 || !slices.ContainsFunc(slices.Collect(maps.Keys(params)), missing) {
		return list
	}
	list = slices.DeleteFunc(list, func(b blank) bool { _, told := params[b.name]; return !told || !missing(b.name) })
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if missing(name) && !slices.ContainsFunc(list, func(b blank) bool { return b.name == name }) {
			list = append(list, blank{group: groupContent, name: name, label: name, kind: blankJSON, required: true})
		}
	}
	return append(list, blank{name: nameDescription, label: "In your own words"})
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// plain is a JSON value as people write it: a text without its quotes.
func plain(raw json.RawMessage) string {
	return payload.Text(raw)
}

// path is where a blank is in an answer, as problems name it.
func (b *blank) path() string { return strings.Trim(b.group+"."+b.name, ".") }

// read makes a value of what somebody has typed. The error says what was expected.
func (b *blank) read(text string) (json.RawMessage, error) {
	switch b.kind {
	case blankNumber:
		n, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
			return nil, errors.New("a number was expected")
		case json.Valid([]byte(text)):
			return json.RawMessage(text), nil
		}
		return json.Marshal(n) // +1 and 007 are numbers, but not in JSON
	case blankYesNo, blankDecision:
		if yes, ok := yesOrNo(text); ok {
			return json.Marshal(yes)
		}
		return nil, errors.New("y or n was expected")
	case blankChoice:
		n, err := b.option(text)
		if err != nil {
			return nil, err
		}
		if b.values != nil {
			return b.values[n], nil
		}
		return json.Marshal(b.options[n].Value)
	case blankChoices:
		if _, err := b.option(text); err == nil { // a value may have commas of its own
			return b.choices([]string{text})
		}
		return b.choices(strings.Split(text, ","))
	case blankFile:
		return readUpload(strings.TrimPrefix(text, "@"))
	case blankJSON:
		if json.Valid([]byte(text)) {
			return json.RawMessage(text), nil
		}
	}
	return json.Marshal(text)
}

// choices is a list of options.
func (b *blank) choices(texts []string) (json.RawMessage, error) {
	chosen := []string{}
	for _, text := range texts {
		n, err := b.option(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, b.options[n].Value)
	}
	return json.Marshal(chosen)
}

// option finds an option by its value, its label or, where that cannot be meant otherwise, its number.
func (b *blank) option(text string) (int, error) {
	for _, same := range []func(o human.Option) bool{
		func(o human.Option) bool { return o.Value == text },
		func(o human.Option) bool { return strings.EqualFold(o.Value, text) },
		func(o human.Option) bool { return o.Label != "" && strings.EqualFold(o.Label, text) },
	} {
		if n := slices.IndexFunc(b.options, same); n >= 0 {
			return n, nil
		}
	}
	if n, err := strconv.Atoi(text); err == nil && b.numbered() && n >= 1 && n <= len(b.options) {
		return n - 1, nil
	}
	if yes, no, ok := b.eitherOr(); ok {
		if said, ok := yesOrNo(text); ok && said {
			return yes, nil
		} else if ok {
			return no, nil
		}
	}
	return 0, fmt.Errorf("%q is none of %s", text, b.optionNames())
}

// yesOrNo reads a decision in one word.
func yesOrNo(text string) (yes, ok bool) {
	switch strings.ToLower(text) {
	case "y", "yes", "true", "pass", "approve", "是":
		return true, true
	case "n", "no", "false", "fail", "reject", "否":
		return false, true
	}
	return false, false
}

// eitherOr are the option that agrees and the one that does not, where a question has one of each: then a yes or a no is enough.
func (b *blank) eitherOr() (yes, no int, ok bool) {
	agree, refuse := b.meaning(human.Confirmed), b.meaning(human.Rejected)
	if b.name != nameAction || len(agree) != 1 || len(refuse) != 1 {
		return 0, 0, false
	}
	return agree[0], refuse[0], true
}

// meaning are the options with an outcome.
func (b *blank) meaning(outcome string) []int {
	var list []int
	for n, o := range b.options {
		if o.Outcome == outcome {
			list = append(list, n)
		}
	}
	return list
}

// numbered says that options may be chosen by their number: none of them is a number itself.
func (b *blank) numbered() bool {
	return !slices.ContainsFunc(b.options, func(o human.Option) bool {
		_, value := strconv.Atoi(o.Value)
		_, label := strconv.Atoi(o.Label)
		return value == nil || label == nil
	})
}

func (b *blank) optionNames() string {
	names := make([]string, len(b.options))
	for n, o := range b.options {
		names[n] = o.Value
	}
	return strings.Join(names, ", ")
}

// maxUpload is how large a file of an answer may be; the server takes no larger one either.
const maxUpload = 10 << 20

// readUpload reads a file of this machine for a field of a form.
func readUpload(path string) (json.RawMessage, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("a file was expected: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxUpload+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("a file was expected: %w", err)
	case len(data) > maxUpload:
		return nil, fmt.Errorf("%q has more than %d MiB", path, maxUpload>>20)
	}
	return json.Marshal(map[string]string{
		"name": filepath.Base(path), "content_type": cmp.Or(mime.TypeByExtension(filepath.Ext(path)), http.DetectContentType(data)),
		"base64": base64.StdEncoding.EncodeToString(data),
	})
}

// filled are values of blanks, by their index.
type filled map[int]json.RawMessage

// answer puts what was filled in together.
func (q *question) answer(given filled) (json.RawMessage, error) {
	object := map[string]any{}
	groups := map[string]map[string]json.RawMessage{}
	for n, value := range given { // order does not matter: it becomes a map
		b := &q.blanks[n]
		switch {
		case b.name == "":
			return value, nil
		case b.group == "":
			object[b.name] = value
		case groups[b.group] == nil:
			groups[b.group] = map[string]json.RawMessage{b.name: value}
			object[b.group] = groups[b.group]
		default:
			groups[b.group][b.name] = value
		}
	}
	for _, group := range []string{groupFields, groupContent} { // a form where nothing was filled in is one all the same
		if object[group] == nil && slices.ContainsFunc(q.blanks, func(b blank) bool { return b.group == group }) {
			object[group] = struct{}{}
		}
	}
	return json.Marshal(object)
}

// wanted says that a blank is to be filled in, after what the ones before it say.
func (q *question) wanted(n int, given filled) bool {
	return q.blanks[n].name != nameResult || q.Purpose != human.PurposeOutcomeUnknown || string(given[0]) == strconv.Quote(engine.ChoiceDone)
}

// blamed are the blanks that problems are about; all when they are about none in particular.
func (q *question) blamed(problems []api.FaultField) []int {
	var list []int
	for n := range q.blanks {
		path := q.blanks[n].path()
		about := func(p api.FaultField) bool {
			_, at, _ := strings.Cut(p.Path, ".") // after response_data or input_data
			return at == "" || at == path || strings.HasPrefix(at, path+".") || strings.HasPrefix(at, path+"[") || strings.HasPrefix(path, at+".")
		}
		if slices.ContainsFunc(problems, about) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		for n := range q.blanks {
			list = append(list, n)
		}
	}
	return list
}

// decision finds the blank that is a yes or no, or a choice, which the whole question is about; -1 when there is none.
func (q *question) decision() int {
	return slices.IndexFunc(q.blanks, func(b blank) bool {
		return b.group == "" && (b.kind == blankDecision || b.kind == blankChoice || b.kind == blankChoices)
	})
}

// title is what a question is called.
func (q *question) title() string {
	first, _, _ := strings.Cut(strings.TrimSpace(q.request.Description), "\n")
	return oneLine(cmp.Or(q.request.Title, first, q.Purpose))
}
