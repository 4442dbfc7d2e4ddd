package agent

import (
	"encoding/json"
	"maps"

	"tandem/fault"
)

// MaxQuestion is how many characters the question of a task may have; longer texts belong into its documents.
const MaxQuestion = 2_000

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
	for _, name := range []string{"question", "conversation_id", "session_id", "language", "documents"} {
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
