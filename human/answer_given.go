package human

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/node"
)

// readGiven reads an answer to a question of another part. What it hands on is what came, in the form that part reads.
func (r *Request) readGiven(purpose string, raw json.RawMessage) (understood, error) {
	raw = bytes.TrimSpace(raw)
	u := understood{data: raw, kept: raw, outcome: Confirmed}
	var fields map[string]json.RawMessage
	isObject := len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &fields) == nil
	switch purpose {
	case PurposeConfirm:
		_, named := fields["confirm"]
		switch {
		case isObject && !named && len(fields) > 0: // a slip of the pen, and canceling cannot be undone
			return u, wrongAnswer("input_data.confirm", "true was expected, or false to cancel")
		case isNull(raw), isObject && isNull(fields["confirm"]), string(raw) == "false":
			u.data, u.kept, u.outcome = json.RawMessage(`{"confirm":false}`), json.RawMessage(`{"confirm":false}`), Rejected
		case string(fields["confirm"]) == "false":
			u.outcome = Rejected
		case string(fields["confirm"]) != "true":
			return u, wrongAnswer("input_data.confirm", "true was expected, or false to cancel")
		}
	case PurposeOutcomeUnknown:
		return readOutcome(raw, isObject)
	case PurposeBudget:
		var by *float64
		if !isObject || json.Unmarshal(fields["raise_by"], &by) != nil || by == nil || !(*by > 0) {
			return u, wrongAnswer("input_data.raise_by", "a positive number was expected: by how much the budget is raised")
		}
		u.raise = *by
	case PurposeDrift, PurposeActivation:
		switch string(fields["accept"]) {
		case "true":
		case "false":
			u.outcome = Rejected
		default:
			return u, wrongAnswer("input_data.accept", "true or false was expected")
		}
	case PurposeParam:
		return u, r.checkGiven(raw, fields, isObject)
	case PurposeToolApproval:
		return readApproves(raw, fields)
	default:
		if isNull(raw) {
			return u, wrongAnswer("input_data", "the answer is missing")
		}
	}
	return u, nil
}

// readOutcome reads what a person says about an unknown outcome.
func readOutcome(raw json.RawMessage, isObject bool) (understood, error) {
	var d struct {
		Outcome string          `json:"outcome"`
		Result  json.RawMessage `json:"result"`
	}
	u := understood{kept: raw, outcome: Confirmed}
	if !isObject || json.Unmarshal(raw, &d) != nil {
		return u, wrongAnswer("input_data", "an object with an outcome was expected: done, not_done or stop")
	}
	switch d.Outcome {
	case engine.ChoiceDone, engine.ChoiceNotDone:
	case engine.ChoiceStop:
		u.outcome = Rejected
	default:
		return u, wrongAnswer("input_data.outcome", "%q decides nothing; say %s, %s or %s", d.Outcome, engine.ChoiceDone, engine.ChoiceNotDone, engine.ChoiceStop)
	}
	if !isNull(d.Result) {
		if d.Outcome != engine.ChoiceDone {
			return u, wrongAnswer("input_data.result", "only what was done has a result; leave it out")
		}
		u.data = d.Result
	}
	u.choice, u.options = d.Outcome, []string{d.Outcome}
	return u, nil
}

// readApproves reads whether a call of a tool is allowed. It must say so plainly, in all that it says.
func readApproves(raw json.RawMessage, fields map[string]json.RawMessage) (understood, error) {
	u := understood{data: raw, kept: raw, outcome: Confirmed}
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
	for name, value := range fields { // order does not matter: all are counted
		switch name {
		case "approved", "confirm":
			if s := string(value); s != "true" && s != "false" {
				return u, wrongAnswer("input_data."+name, "true or false was expected")
			}
			count(string(value) == "true")
		case "action", "selected_option", "option":
			var text string
			if json.Unmarshal(value, &text) != nil {
				return u, wrongAnswer("input_data."+name, "approve or reject was expected")
			}
			switch strings.ToLower(text) {
			case "approve", "approved":
				count(true)
			case "reject", "rejected", "deny", "no":
				count(false)
			default:
				return u, wrongAnswer("input_data."+name, "%q is neither approve nor reject", text)
			}
		}
	}
	switch {
	case said == 0:
		return u, wrongAnswer("input_data.action", "approve or reject was expected")
	case yes != 0 && yes != said:
		return u, wrongAnswer("input_data", "it says both yes and no")
	case yes == 0:
		u.outcome = Rejected
	}
	return u, nil
}

// checkGiven checks what a person gives for parameters against the form that was shown: {"content": …, "description": …}, or the content by
// itself. A form may be filled in part, but not with what is not in it, and not with nothing at all: the question stays open for that.
func (r *Request) checkGiven(raw json.RawMessage, fields map[string]json.RawMessage, isObject bool) error {
	if !isObject {
		return wrongAnswer("input_data", `an object was expected: {"content": {…}, "description": "…"}`)
	}
	at, content, words := "input_data", fields, ""
	if form, said, inner, ok := givenForm(fields); ok {
		if at, words = "input_data.content", said; form && inner == nil && len(fields) == 1 && !isNull(fields["content"]) {
			return wrongAnswer(at, "an object was expected")
		}
		content = inner
	}
	var found problems
	given := map[string]json.RawMessage{}
	for name, value := range content { // order does not matter: what is wrong is told in the order of the names
		if !isNull(value) { // what a form leaves open
			given[name] = value
		}
	}
	known := gjson.GetBytes(r.Schema, "properties")
	var names []string
	known.ForEach(func(name, _ gjson.Result) bool {
		names = append(names, name.String())
		return true
	})
	if len(given) == 0 && strings.TrimSpace(words) == "" {
		return wrongAnswer(at, "nothing was given; fill in %s, or say in description what you know; to end it, cancel the execution", strings.Join(names, ", "))
	}
	if !known.IsObject() {
		return nil // there was no form
	}
	for _, name := range sortedNames(given) {
		if !slices.Contains(names, name) {
			hint := ""
			if near := fault.Nearest(name, names); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			found.add(at+"."+name, "there is no such field; there are %s%s", strings.Join(names, ", "), hint)
		}
	}
	if len(found) > 0 {
		return found.err()
	}
	without, err := withoutRequired(r.Schema)
	if err != nil {
		return nil // a schema that nobody can use checks nothing
	}
	if _, err := node.CompileSchema(without); err != nil {
		return nil
	}
	(&Request{Schema: without}).checkSchema(at, given, &found)
	return found.err()
}

// givenForm takes an answer apart that has content and description; false: it is the content itself.
func givenForm(fields map[string]json.RawMessage) (named bool, words string, content map[string]json.RawMessage, ok bool) {
	for name, value := range fields { // order does not matter: all must be of the form
		switch {
		case name == "content" && (isNull(value) || value[0] == '{'), name == "description" && (isNull(value) || value[0] == '"'), name == "confirm":
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
