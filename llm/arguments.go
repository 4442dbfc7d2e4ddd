package llm

import (
	"bytes"
	"encoding/json"
)

// ArgumentObject is what a model wrote as the arguments of a call, as the object that services want. A text that is not an object is shown
// to the model in one, so that it sees what it did.
func ArgumentObject(text string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(text))
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	if raw[0] == '{' && json.Valid(raw) {
		return raw
	}
	wrapped, err := json.Marshal(map[string]string{"malformed_arguments": text})
	if err != nil {
		panic(err) // a map of texts can always be written
	}
	return wrapped
}
