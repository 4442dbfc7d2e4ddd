package host

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestWriteStart: what is known of a start without reading it is what reading it tells.
func TestWriteStart(t *testing.T) {
	t.Parallel()
	text := json.RawMessage(`{"a": "<b> & \u00e9\u2028", "initial": {"trigger": [1, 2]},"n":1.50}`)
	for name, s := range map[string]Start{
		"Nothing":  {},
		"Texts":    {WorkflowID: `w"1`, UserID: "ann", TokenMadeBy: "bob", Language: "zh", ExternalRequest: "r", Root: "x", ErrorOf: "y", InputRules: 1},
		"Spaces":   {WorkflowID: "w", Initial: text, Trigger: json.RawMessage(` {"b" : null} `)},
		"Null":     {WorkflowID: "w", Initial: json.RawMessage("null"), Trigger: json.RawMessage("null")},
		"NoObject": {WorkflowID: "w", Initial: json.RawMessage(`[1, "]"]`), Trigger: json.RawMessage(`"a , }"`)},
		"Lists":    {WorkflowID: "w", Initial: text, Requesters: []string{"ann"}, Outputs: []string{"n"}, Above: []Fork{{}}},
		"NoLists":  {WorkflowID: "w", Trigger: text, Requesters: []string{}, Outputs: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := WriteStart(s)
			if err != nil {
				t.Fatal(err)
			}
			read, err := readStart("x", w.raw)
			if err != nil {
				t.Fatal(err)
			}
			if w.known == (len(s.Above) > 0) {
				t.Errorf("it is known: %v", w.known)
			}
			if w.known && !reflect.DeepEqual(w.read, read) {
				t.Errorf("it is taken for %+v, and reading it gives %+v", w.read, read)
			}
		})
	}
	if _, err := WriteStart(Start{Initial: json.RawMessage(`{"a":`)}); err == nil {
		t.Error("half an object is written down")
	}
}
