package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"unicode/utf8"

	"tandem/api"
	"tandem/fault"
	"tandem/payload"
	"tandem/text"
)

// Bounds of what a task is asked.
const (
	// MaxQuestion is how many characters the question may have; longer texts belong into the documents.
	MaxQuestion = 2_000
	// MaxDocuments is how many documents there may be.
	MaxDocuments = 32
)

// CheckRequest refuses a request that no agent can do anything with, and names the field that is wrong. It takes away the white space
// around the question and fields that are null. Anyone who asks for a task, by the API, a node or a command, is told the same.
func CheckRequest(r *api.TaskRequest) error {
	wrong := func(path string, problem text.Text) error { return wrong(fault.InvalidInput, path, problem) }
	r.Question = strings.TrimSpace(r.Question)
	switch n := utf8.RuneCountInString(r.Question); {
	case n == 0:
		return wrong("question", text.Of("a task needs a question: what is to be done"))
	case n > MaxQuestion:
		return wrong("question", text.Of("it has %d characters, and %d is the most; put long texts into documents", n, MaxQuestion))
	}
	for _, field := range []struct {
		name string
		raw  *json.RawMessage
	}{{"metadata", &r.Metadata}, {"params", &r.Params}} {
		switch {
		case payload.IsNull(*field.raw):
			*field.raw = nil
		case !opens(*field.raw, '{'):
			return wrong(field.name, text.Of("an object was expected; write the values by name"))
		}
	}
	if len(r.Documents) > MaxDocuments {
		return wrong("documents", text.Of("%d are too many; at most %d are taken", len(r.Documents), MaxDocuments))
	}
	for i, raw := range r.Documents {
		if !opens(raw, '{') && !opens(raw, '"') {
			return wrong(fmt.Sprintf("documents[%d]", i), text.Of("a text or an object was expected"))
		}
	}
	return nil
}

// opens says that a value begins with a character.
func opens(raw json.RawMessage, with byte) bool {
	start := strings.TrimLeft(string(raw[:min(len(raw), 64)]), " \t\r\n")
	return len(start) > 0 && start[0] == with
}

// Initial is the initial layer of a task: what steps read by name. It is made of the task's request, which is also what the
// trigger brings: the fields of params, those of metadata over them, and over both what the task itself is about.
func Initial(request json.RawMessage) (json.RawMessage, error) {
	if len(request) == 0 {
		request = json.RawMessage("{}")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(request, &fields); err != nil {
		return nil, fault.New(fault.InvalidInput, "the request of a task is an object; write what it is given by name").WithCause(err)
	}
	layer := map[string]json.RawMessage{}
	for _, name := range []string{"params", "metadata"} {
		var values map[string]json.RawMessage
		if raw, ok := fields[name]; ok {
			if err := json.Unmarshal(raw, &values); err != nil {
				return nil, fault.Newf(fault.InvalidInput, "%s: an object was expected; write the values by name", name).With("path", name).WithCause(err)
			}
		}
		maps.Copy(layer, values)
	}
	for _, name := range askedNames() {
		if raw, ok := fields[name]; ok && string(raw) != "null" {
			layer[name] = raw
		}
	}
	out, err := json.Marshal(layer)
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "the request of a task cannot be kept: %w", err)
	}
	return out, nil
}

// Asked is what a task itself is about, of all that it was asked; the rest is what steps read by name.
type Asked struct {
	Question       string            `json:"question"`
	ConversationID string            `json:"conversation_id"`
	SessionID      string            `json:"session_id"`
	Language       string            `json:"language"`
	Documents      []json.RawMessage `json:"documents"`
}

// askedNames are the names of its fields.
func askedNames() []string {
	fields := reflect.VisibleFields(reflect.TypeFor[Asked]())
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Tag.Get("json")
	}
	return names
}

// ReadAsked reads what a task was asked: as its data begins, else as the trigger brought it. What somebody else wrote there, and cannot be
// read as a request, is passed over.
func ReadAsked(trigger, initial json.RawMessage) Asked {
	var out Asked
	for _, raw := range []json.RawMessage{trigger, initial} {
		var sent Asked
		if len(raw) == 0 || json.Unmarshal(raw, &sent) != nil {
			continue
		}
		out.Question, out.ConversationID = cmp.Or(sent.Question, out.Question), cmp.Or(sent.ConversationID, out.ConversationID)
		out.SessionID, out.Language = cmp.Or(sent.SessionID, out.SessionID), cmp.Or(sent.Language, out.Language)
		if sent.Documents != nil {
			out.Documents = sent.Documents
		}
	}
	return out
}
