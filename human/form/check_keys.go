package form

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/payload"
)

// keys are the keys that an answer to the question may have at its top, the one that decides first; nil: any.
func (q *Question) keys() []string {
	switch q.Purpose {
	case PurposeNode:
		switch q.Type {
		case Input:
			return []string{GroupFields, NameNotes}
		case Selection:
			return []string{NameChosen, NameNotes}
		case Review:
			return []string{GroupScores, GroupEvidence, NameNotes}
		}
		return []string{NameAction, NameNotes}
	case PurposeConfirm:
		return []string{"confirm"}
	case PurposeDrift, PurposeActivation:
		return []string{"accept"}
	case PurposeOutcomeUnknown:
		return []string{NameOutcome, NameResult}
	case PurposeBudget:
		return []string{"raise_by"}
	case PurposeToolApproval:
		return []string{"approved", "confirm", NameAction, "selected_option", "option", NameNotes}
	}
	return nil // parameters are held against their form, and other purposes are read by the part that asks
}

// Unknown tells the keys of an answer that the question has no place for. What somebody writes there would be lost without a word, so an
// answer that has one is refused, and the question stays open.
func (q *Question) Unknown(raw json.RawMessage) Problems {
	var fields map[string]json.RawMessage
	known := q.keys()
	if known == nil || json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	at := "input_data."
	if q.Purpose == PurposeNode {
		at = "response_data."
	}
	var found Problems
	for _, name := range sortedNames(fields) {
		if slices.Contains(known, name) || q.Purpose == PurposeNode && harmless(name, fields[name]) {
			continue
		}
		found.addProblem(at+name, noField(known, q.nearest(name, known)))
	}
	return found
}

// harmless says that nothing is lost with a key: who answers and when is known without being told, and a part of an answer to another type
// of question says nothing when it is null.
func harmless(name string, value json.RawMessage) bool {
	switch name {
	case "user_id", "timestamp":
		return true
	case NameAction, GroupFields, NameChosen, GroupScores, GroupEvidence:
		return payload.IsNull(value)
	}
	return false
}

// besideContent tells what stands beside the content of an answer with parameters and is not a part of one.
func (q *Question) besideContent(fields map[string]json.RawMessage) Problems {
	content, has := fields[GroupContent]
	if !has || !payload.IsNull(content) && content[0] != '{' || q.hasField(GroupContent) ||
		!gjson.GetBytes(q.Schema, "properties").IsObject() {
		return nil // it is a parameter, or may be one
	}
	known := []string{GroupContent, NameDescription}
	var found Problems
	for _, name := range sortedNames(fields) {
		switch {
		case slices.Contains(known, name), name == "confirm":
		case q.hasField(name):
			found.addProblem("input_data."+name, noField(known, GroupContent+"."+name))
		default:
			found.addProblem("input_data."+name, noField(known, fault.Nearest(name, known)))
		}
	}
	return found
}

// nearest is the key that somebody probably meant; empty: there is no telling.
func (q *Question) nearest(name string, known []string) string {
	if q.Purpose == PurposeNode && q.Type == Input && q.hasField(name) {
		return GroupFields + "." + name
	}
	if slices.Contains([]string{NameAction, GroupFields, NameChosen, GroupScores, GroupEvidence}, name) {
		return "" // it belongs to another type of question
	}
	if near := fault.Nearest(name, known); near != "" {
		return near
	}
	remarks := []string{"comment", "comments", "remark", "remarks", "reason", "message", "text", "description", "feedback", "explanation"}
	if slices.Contains(known, NameNotes) && slices.Contains(remarks, strings.ToLower(name)) {
		return NameNotes
	}
	return ""
}

// hasField says that a form has a field of a name.
func (q *Question) hasField(name string) bool {
	if slices.ContainsFunc(q.Fields, func(f Field) bool { return f.Name == name }) {
		return true
	}
	_, has := gjson.GetBytes(q.Schema, "properties").Map()[name]
	return has
}

// noField says that there is no such field, which there are, and which was probably meant.
func noField(known []string, near string) Text {
	names := strings.Join(known, ", ")
	if near == "" {
		return wrongNoFieldOf.With(names)
	}
	return wrongNoFieldNear.With(names, near)
}
