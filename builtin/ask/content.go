package ask

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/node"
)

// content is what the question is about: what the configuration says, else what the input calls so, else the input.
func (a *humanAsking) content(in json.RawMessage) json.RawMessage {
	if a.shows() {
		return a.Content
	}
	if given := gjson.GetBytes(in, "content"); given.Exists() {
		return json.RawMessage(given.Raw)
	}
	return in
}

// stamps are the fields that a trigger adds to what it was started with. read-only
var stamps = []string{"trigger_time", "execution_id", "trigger_message", "user_id"}

// chosenContent is what people see where the author has not said what they see: without what the trigger and the nodes on the way have
// added for themselves, however deep it stands by now. What tells is where a value came from, not what it is called: a field of such a name
// with a value of its own is shown.
func chosenContent(call *node.Call, content json.RawMessage) json.RawMessage {
	if !slices.ContainsFunc(append([]string{"condition_result", "delay_info"}, stamps...), func(name string) bool { return bytes.Contains(content, []byte(`"`+name+`"`)) }) {
		return content
	}
	s := startOf(call)
	shown := s.without(content, true)
	if values.IsObject(shown) && len(values.Members(shown)) == 0 && len(values.Members(content)) > 0 {
		return nil
	}
	return shown
}

// start is what an execution's trigger has said of the start.
type start struct {
	call *node.Call
	// said is by field; nil: it is not known, as of an execution without a trigger.
	said map[string]json.RawMessage
}

func startOf(call *node.Call) start {
	s := start{call: call}
	if call.Context == nil {
		return s
	}
	data, err := call.Context()
	if err != nil {
		return s // what cannot be read now is shown by its names
	}
	for _, result := range data.StepResults { // order does not matter: one trigger has started the execution
		if !strings.HasPrefix(result.ToolID, "TRIGGER.") || !result.IsSuccess || !values.IsObject(result.Output) {
			continue
		}
		s.said = map[string]json.RawMessage{}
		for _, m := range values.Members(result.Output) {
			if slices.Contains(stamps, m.Key) {
				s.said[m.Key] = m.Value
			}
		}
	}
	return s
}

// own says that an execution_id is that of the execution. The trigger of a fork has run in the execution that it came of.
func (s start) own(id json.RawMessage) bool {
	return values.Text(id) == s.call.ExecutionID || slices.Contains(s.call.Ancestors, values.Text(id))
}

// starter says that a user_id is that of the user who has started the execution.
func (s start) starter(id json.RawMessage) bool {
	return values.Text(id) == s.call.UserID || len(s.call.Ancestors) > 0 && slices.Contains(s.call.Requesters, values.Text(id))
}

// same says that a field has the value that the trigger gave it.
func (s start) same(m values.Member) bool {
	said, ok := s.said[m.Key]
	return ok && values.Text(said) == values.Text(m.Value)
}

// without is a value without what was added on the way, at every depth. Top says that it is the content itself.
func (s start) without(raw json.RawMessage, top bool) json.RawMessage {
	switch {
	case values.IsList(raw):
		items := values.Elements(raw)
		changed := false
		for n, item := range items {
			items[n] = s.without(item, false)
			changed = changed || len(items[n]) != len(item)
		}
		if !changed {
			return raw
		}
		return values.Array(items)
	case !values.IsObject(raw):
		return raw
	}
	list := values.Members(raw)
	adds := s.additions(list, top)
	kept, changed := make([]values.Member, 0, len(list)), false
	for _, m := range list {
		if adds(m) {
			changed = true
			continue
		}
		inner := s.without(m.Value, false)
		changed = changed || len(inner) != len(m.Value)
		kept = append(kept, values.Member{Key: m.Key, Value: inner})
	}
	if !changed {
		return raw
	}
	return values.Object(kept)
}

// additions tells which fields of an object were added. Who has started the execution, and what nodes on the way note, is an addition only
// in an object that has come from the trigger: elsewhere somebody has put it there.
func (s start) additions(list []values.Member, top bool) func(m values.Member) bool {
	owned := slices.ContainsFunc(list, func(m values.Member) bool { return m.Key == "execution_id" && s.own(m.Value) })
	above := !owned && stampedAbove(list)
	began := func(m values.Member) bool { return above || s.same(m) || s.said == nil && owned }
	passed := above || owned || slices.ContainsFunc(list, func(m values.Member) bool {
		return (m.Key == "trigger_time" || m.Key == "trigger_message") && began(m)
	})
	return func(m values.Member) bool {
		switch m.Key {
		case "trigger_time", "trigger_message":
			return began(m)
		case "execution_id":
			return above || s.own(m.Value)
		case "user_id":
			return passed && s.starter(m.Value)
		case "condition_result":
			return (top || passed) && gjson.ParseBytes(m.Value).IsBool()
		case "delay_info":
			return (top || passed) && values.IsObject(m.Value)
		}
		return false
	}
}

// stampedAbove says that an object has everything that a trigger adds: that of the execution which has started this one handed its payload
// on as a whole.
func stampedAbove(list []values.Member) bool {
	had := 0
	for _, m := range list {
		if m.Key == "trigger_time" || m.Key == "trigger_message" || m.Key == "execution_id" &&
			strings.HasPrefix(values.Text(m.Value), "exec_") {
			had++
		}
	}
	return had == 3
}
