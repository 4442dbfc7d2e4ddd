package agent

import (
	"encoding/json"
	"testing"

	"tandem/fault"
)

func TestInitial(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		``:   `{}`,
		`{}`: `{}`,
		`{"params":{"a":1,"b":1,"question":"p"},"metadata":{"b":2,"language":"fr"},"question":"q","language":"en"}`: `{"a":1,"b":2,"language":"en","question":"q"}`,
		`{"question":"q","conversation_id":"c","session_id":"s","documents":["d"],"auto_execute":false}`:            `{"conversation_id":"c","documents":["d"],"question":"q","session_id":"s"}`,
		`{"question":"q","params":null,"metadata":{"language":"zh"},"language":null}`:                               `{"language":"zh","question":"q"}`,
		`{"metadata":{"big":12345678901234567890}}`:                                                                 `{"big":12345678901234567890}`,
	} {
		got, err := Initial(json.RawMessage(request))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", request, got, err, want)
		}
	}
	for request, path := range map[string]any{`[]`: nil, `{"metadata":[1]}`: "metadata", `{"params":"x"}`: "params"} {
		if _, err := Initial(json.RawMessage(request)); fault.CodeOf(err) != fault.InvalidInput || fault.From(err).Details["path"] != path {
			t.Errorf("%s: %v", request, err)
		}
	}
}
