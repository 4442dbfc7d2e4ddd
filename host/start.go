package host

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/fault"
	"tandem/payload"
)

// Start is what an execution's data begins with. It is part of the first row, before its facts.
type Start struct {
	WorkflowID string `json:"workflow_id"`
	// UserID is who started it, or made the fork; everything is done in their name. Requesters are the other users who have
	// started, retried, skipped or edited something that led to it.
	UserID     string   `json:"user_id,omitempty"`
	Requesters []string `json:"requesters,omitempty"`
	// TokenMadeBy is who made the token that it was started with, if it was somebody else than the user.
	TokenMadeBy string          `json:"token_made_by,omitempty"`
	Language    string          `json:"language,omitempty"`
	Initial     json.RawMessage `json:"initial,omitempty"`
	Trigger     json.RawMessage `json:"trigger,omitempty"`
	// ExternalRequest is the sender's id of the request that started it.
	ExternalRequest string `json:"external_request_id,omitempty"`
	// Outputs are the nodes whose outputs are the execution's; none means its last nodes.
	Outputs []string `json:"outputs,omitempty"`
	// Root is the execution at the top of the tree that it belongs to; empty: this one.
	Root string `json:"root,omitempty"`
	// Ancestors are the executions whose past it shares; the last is the one it was forked from.
	Ancestors []string `json:"ancestors,omitempty"`
	// ErrorOf is the execution whose failure it, or an execution above it, was started for.
	ErrorOf string `json:"error_of,omitempty"`
	// InputRules is the version of the rules by which its inputs are built; executions that are older than rules have none.
	InputRules int `json:"input_rules,omitempty"`
	// Forks say how it was forked from them, the last one last. Forks of older versions are missing.
	Forks []Fork `json:"forks,omitempty"`
	// Above are the forks of the executions above it.
	Above []Fork `json:"above,omitempty"`
	// Test says that it is a test, and of what; nil: it is not a test.
	Test *Test `json:"test,omitempty"`
	// Given says, of one that is kept, that initial and trigger are the next value of its row.
	Given bool `json:"given,omitempty"`
	// rest and beside are what it begins with, taken apart, where large fields of that are kept beside it.
	rest   json.RawMessage
	beside []payload.Part
}

// Test says which part of a definition a test runs.
type Test struct {
	// Name is the name of the test in the definition; empty: it is not one of these.
	Name string `json:"name,omitempty"`
	// Node is the only one that runs, From the first; neither: the whole does.
	Node string `json:"node,omitempty"`
	From string `json:"from,omitempty"`
	// Pinned are the nodes that do not run and have outputs that By has given, in order.
	Pinned []string `json:"pinned,omitempty"`
	By     string   `json:"by,omitempty"`
}

// Told are the forks that people see, the last one last.
func (s Start) Told() []Fork { return slices.Concat(s.Above, s.Forks) }

// Level is the level of the execution's own values.
func (s Start) Level() int { return len(s.Ancestors) }

// owner returns the execution in whose journal a value is.
func (s Start) owner(self string, p Place) (string, error) {
	switch {
	case p.Level == len(s.Ancestors):
		return self, nil
	case p.Level < len(s.Ancestors):
		return s.Ancestors[p.Level], nil
	}
	return "", fault.Newf(fault.Internal, "%q is a value of level %d, and execution %q is at level %d", p.Ref(), p.Level, self, len(s.Ancestors))
}

// WrittenStart is a start as it is stored, and as it is read again.
type WrittenStart struct {
	raw  json.RawMessage
	read Start
	// known says that read is there, so that it need not be read.
	known bool
}

// WriteStart encodes a start.
func WriteStart(s Start) (WrittenStart, error) {
	if len(s.beside) > 0 {
		return writeGiven(s)
	}
	raw, err := s.encode()
	if err != nil || !s.plainLists() {
		return WrittenStart{raw: raw}, err
	}
	// Encoding may write the JSON in it in another way than it was given.
	s.Initial, s.Trigger = member(raw, "initial"), member(raw, "trigger")
	s.Requesters, s.Outputs, s.Ancestors, s.Forks, s.Above = nil, nil, nil, nil, nil // none are read as nil
	return WrittenStart{raw, s, true}, nil
}

// encode is the encoding of json.Marshal. That of most starts is written without looking at types.
func (s *Start) encode() ([]byte, error) {
	if !s.plain() {
		return json.Marshal(s)
	}
	initial, err := payload.Normalize(s.Initial, payload.Limits{})
	trigger := initial
	if err == nil && !bytes.Equal(s.Initial, s.Trigger) { // mostly they are the same
		trigger, err = payload.Normalize(s.Trigger, payload.Limits{})
	}
	if err != nil {
		return json.Marshal(s) // which takes more, or says what is wrong
	}
	out := make([]byte, 0, 128+len(s.WorkflowID)+len(s.UserID)+len(s.TokenMadeBy)+len(initial)+len(trigger))
	out = engine.AppendText(append(out, `{"workflow_id":`...), s.WorkflowID)
	for _, field := range []struct{ name, text string }{{`,"user_id":`, s.UserID}, {`,"token_made_by":`, s.TokenMadeBy}, {`,"language":`, s.Language}} {
		if field.text != "" {
			out = engine.AppendText(append(out, field.name...), field.text)
		}
	}
	out = append(append(out, `,"initial":`...), initial...)
	out = append(append(out, `,"trigger":`...), trigger...)
	for _, field := range []struct{ name, text string }{{`,"external_request_id":`, s.ExternalRequest}, {`,"root":`, s.Root}, {`,"error_of":`, s.ErrorOf}} {
		if field.text != "" {
			out = engine.AppendText(append(out, field.name...), field.text)
		}
	}
	if s.InputRules != 0 {
		out = strconv.AppendInt(append(out, `,"input_rules":`...), int64(s.InputRules), 10)
	}
	return append(out, '}'), nil
}

// plain says whether a start has only the most common fields, and no data that json.Marshal would write in another way.
func (s *Start) plain() bool {
	if !s.plainLists() {
		return false
	}
	for _, data := range []json.RawMessage{s.Initial, s.Trigger} {
		if len(data) == 0 {
			return false
		}
		for _, escaped := range []byte{'<', '>', '&', lineBreak} {
			if bytes.IndexByte(data, escaped) >= 0 {
				return false
			}
		}
	}
	return true
}

// plainLists says whether a start was simply requested, for a whole execution.
func (s *Start) plainLists() bool {
	return len(s.Requesters)+len(s.Outputs)+len(s.Ancestors)+len(s.Forks)+len(s.Above) == 0 && s.Test == nil
}

// lineBreak is the first byte of the line breaks that JSON may have as they are and JavaScript had not.
const lineBreak = 0xe2

// member returns a member of an object as it stands there, nil if there is none.
func member(object json.RawMessage, name string) json.RawMessage {
	var found json.RawMessage
	payload.EachField(object, func(key, value []byte) bool {
		if string(key) == name {
			found = value
		}
		return found == nil
	})
	return found
}

// PutStart is Put for what the execution is started with.
func (t *Turn) PutStart(w WrittenStart) engine.Ref {
	ref := t.Put(w.raw)
	if len(w.read.beside) > 0 {
		t.PutBeside(w.read.rest, w.read.beside...)
	}
	if w.known {
		t.started = &w.read
	}
	return ref
}

func readStart(execution string, raw json.RawMessage) (start Start, err error) {
	if start, ok := readPlainStart(raw); ok {
		return start, nil
	}
	if err := json.Unmarshal(raw, &start); err != nil {
		return start, fault.Newf(fault.Unreadable, "the start of execution %q cannot be read: %w", execution, err)
	}
	return start, nil
}

// readPlainStart reads a start that has what most have and no escapes in its texts, with less effort than a reader of any JSON needs.
// It leaves anything unusual to readStart. Both give the same result.
func readPlainStart(raw json.RawMessage) (start Start, ok bool) {
	if len(raw) > maxPlainRow || !utf8.Valid(raw) || !gjson.ValidBytes(raw) {
		return Start{}, false
	}
	text := gjson.ParseBytes(raw)
	ok = text.IsObject()
	text.ForEach(func(key, value gjson.Result) bool {
		switch key.Raw {
		case `"workflow_id"`:
			ok = plainText(value, &start.WorkflowID)
		case `"user_id"`:
			ok = plainText(value, &start.UserID)
		case `"token_made_by"`:
			ok = plainText(value, &start.TokenMadeBy)
		case `"language"`:
			ok = plainText(value, &start.Language)
		case `"initial"`:
			start.Initial = json.RawMessage(value.Raw)
		case `"trigger"`:
			start.Trigger = json.RawMessage(value.Raw)
		case `"input_rules"`:
			n, err := strconv.ParseInt(value.Raw, 10, 32)
			start.InputRules, ok = int(n), err == nil
		default:
			ok = false
		}
		return ok
	})
	return start, ok
}
