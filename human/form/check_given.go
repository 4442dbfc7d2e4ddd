package form

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/payload"
	"tandem/workflow"
)

// The choices of a question about an unknown outcome.
const (
	choiceDone    = workflow.ChoiceDone
	choiceNotDone = workflow.ChoiceNotDone
	choiceStop    = workflow.ChoiceStop
)

// readGiven reads an answer to a question of another part. What it hands on is what came, in the form that part reads.
func (q *Question) readGiven(raw json.RawMessage) (Reading, error) {
	raw = bytes.TrimSpace(raw)
	got := Reading{Data: raw, Kept: raw, Outcome: Confirmed}
	var fields map[string]json.RawMessage
	isObject := len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &fields) == nil
	switch q.Purpose {
	case PurposeConfirm:
		return readConfirm(got, fields, isObject)
	case PurposeOutcomeUnknown:
		return readOutcome(raw, isObject)
	case PurposeBudget:
		var by *float64
		if !isObject || json.Unmarshal(fields["raise_by"], &by) != nil || by == nil || !(*by > 0) {
			return got, wrongAt("input_data.raise_by", wrongRaise)
		}
		got.Raise = *by
	case PurposeDrift, PurposeActivation:
		switch string(fields["accept"]) {
		case "true":
		case "false":
			got.Outcome = Rejected
		default:
			return got, wrongAt("input_data.accept", wrongYesNo)
		}
	case PurposeParam:
		return got, q.checkParams(fields, isObject)
	case PurposeToolApproval:
		return readApproves(raw, fields)
	default:
		if payload.IsNull(raw) {
			return got, wrongAt("input_data", wrongNoAnswer)
		}
	}
	return got, nil
}

func readConfirm(got Reading, fields map[string]json.RawMessage, isObject bool) (Reading, error) {
	_, named := fields["confirm"]
	switch {
	case isObject && !named && len(fields) > 0: // a slip of the pen, and canceling cannot be undone
		return got, wrongAt("input_data.confirm", wrongConfirm)
	case payload.IsNull(got.Data), isObject && payload.IsNull(fields["confirm"]), string(got.Data) == "false":
		got.Data, got.Outcome = json.RawMessage(`{"confirm":false}`), Rejected
		got.Kept = got.Data
	case string(fields["confirm"]) == "false":
		got.Outcome = Rejected
	case string(fields["confirm"]) != "true":
		return got, wrongAt("input_data.confirm", wrongConfirm)
	}
	return got, nil
}

// readOutcome reads what a person says about an unknown outcome.
func readOutcome(raw json.RawMessage, isObject bool) (Reading, error) {
	var d struct {
		Outcome string          `json:"outcome"`
		Result  json.RawMessage `json:"result"`
	}
	got := Reading{Kept: raw, Outcome: Confirmed}
	if !isObject || json.Unmarshal(raw, &d) != nil {
		return got, wrongAt("input_data", wrongNoOutcome)
	}
	switch d.Outcome {
	case choiceDone, choiceNotDone:
	case choiceStop:
		got.Outcome = Rejected
	default:
		return got, wrongAt("input_data.outcome", wrongOutcome.With(d.Outcome, choiceDone+", "+choiceNotDone+" or "+choiceStop))
	}
	if !payload.IsNull(d.Result) {
		if d.Outcome != choiceDone {
			return got, wrongAt("input_data.result", wrongResult)
		}
		got.Data = d.Result
	}
	got.Unknown, got.Options = d.Outcome, []string{d.Outcome}
	return got, nil
}

// readApproves reads whether a call of a tool is allowed. It must say so plainly, in all that it says.
func readApproves(raw json.RawMessage, fields map[string]json.RawMessage) (Reading, error) {
	got := Reading{Data: raw, Kept: raw, Outcome: Confirmed}
	said, yes := 0, 0
	count := func(approves bool) {
		said++
		if approves {
			yes++
		}
	}
	switch string(raw) {
	case "true", "false":
		count(string(raw) == "true")
	}
	for _, name := range sortedNames(fields) {
		value := fields[name]
		switch name {
		case "approved", "confirm":
			if s := string(value); s != "true" && s != "false" {
				return got, wrongAt("input_data."+name, wrongYesNo)
			}
			count(string(value) == "true")
		case "action", "selected_option", "option":
			var text string
			if json.Unmarshal(value, &text) != nil {
				return got, wrongAt("input_data."+name, wrongApprove)
			}
			approves, ok := acted.decided(text)
			if !ok {
				return got, wrongAt("input_data."+name, wrongNeither.With(text))
			}
			count(approves)
		}
	}
	switch {
	case said == 0:
		return got, wrongAt("input_data.action", wrongApprove)
	case yes != 0 && yes != said:
		return got, wrongAt("input_data", wrongBoth)
	case yes == 0:
		got.Outcome = Rejected
	}
	return got, nil
}

// checkParams checks what a person gives for parameters against the form that was shown: {"content": …, "description": …}, or the content
// by itself. A form may be filled in part, but not with what is not in it, and not with nothing at all: the question stays open for that.
func (q *Question) checkParams(fields map[string]json.RawMessage, isObject bool) error {
	if !isObject {
		return wrongAt("input_data", wrongObjectLike.With(`{"content": {…}, "description": "…"}`))
	}
	if beside := q.besideContent(fields); len(beside) > 0 {
		return beside
	}
	at, content, words := "input_data", fields, ""
	if form, said, inner, ok := contentOf(fields); ok {
		if at, words = "input_data.content", said; form && inner == nil && len(fields) == 1 && !payload.IsNull(fields["content"]) {
			return wrongAt(at, wrongObject)
		}
		content = inner
	}
	given := map[string]json.RawMessage{}
	for name, value := range content { // order does not matter: what is wrong is told in the order of the names
		if !payload.IsNull(value) { // what a form leaves open
			given[name] = value
		}
	}
	known := gjson.GetBytes(q.Schema, "properties")
	var names []string
	known.ForEach(func(name, _ gjson.Result) bool {
		names = append(names, name.String())
		return true
	})
	if len(given) == 0 && strings.TrimSpace(words) == "" {
		return wrongAt(at, wrongNothing.With(strings.Join(names, ", ")))
	}
	if !known.IsObject() {
		return nil // there was no form
	}
	var found Problems
	for _, name := range sortedNames(given) {
		if slices.Contains(names, name) {
			continue
		}
		found.addProblem(at+"."+name, noField(names, fault.Nearest(name, names)))
	}
	if len(found) > 0 {
		return found
	}
	without, err := withoutRequired(q.Schema)
	if err != nil {
		return nil // a schema that nobody can use checks nothing
	}
	if _, err := payload.CompileSchema(without); err != nil {
		return nil
	}
	checkSchema(without, at, given, &found)
	return found.err()
}

// contentOf takes an answer apart that has content and description; false: it is the content itself.
func contentOf(fields map[string]json.RawMessage) (named bool, words string, content map[string]json.RawMessage, ok bool) {
	for name, value := range fields { // order does not matter: all must be of the form
		switch {
		case name == "content" && (payload.IsNull(value) || value[0] == '{'), name == "description" && (payload.IsNull(value) || value[0] == '"'), name == "confirm":
		case name == "content" && len(fields) == 1:
			return true, "", nil, true
		default:
			return false, "", nil, false
		}
	}
	if len(fields) == 0 {
		return false, "", nil, true
	}
	if json.Unmarshal(fields["content"], &content) != nil {
		content = nil // there is none
	}
	if json.Unmarshal(fields["description"], &words) != nil {
		words = ""
	}
	return true, words, content, true
}

// withoutRequired is a schema of an object that does not have to be complete.
func withoutRequired(schema json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(schema, &fields); err != nil {
		return nil, err
	}
	delete(fields, "required")
	return json.Marshal(fields)
}
