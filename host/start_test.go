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
			var any Start
			if err := json.Unmarshal(w.raw, &any); err != nil || !reflect.DeepEqual(any, read) {
				t.Errorf("%s is read as %+v, and is %+v, %v", w.raw, read, any, err)
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

func plainStarts() map[string]bool {
	return map[string]bool{
		`{"workflow_id":"w","user_id":"名","token_made_by":"b","language":"zh","initial":{"a":[1, 2.50,null,"\u00e9"]},"trigger":null,"input_rules":1}`: true,
		`{}`: true,
		`{"workflow_id":"a","workflow_id":"b","initial":1,"initial":2}`: true,
		`{"workflow_id":"a\u0062"}`:                                     false,
		`{"workflow_id":null}`:                                          false,
		`{"Workflow_ID":"a"}`:                                           false,
		`{"root":"x"}`:                                                  false,
		`{"input_rules":1.0}`:                                           false,
		`{"input_rules":1e0}`:                                           false,
		`{"workflow_id":"` + "\xff" + `"}`:                              false,
		`{"workflow_id":"a"`:                                            false,
		`[]`:                                                            false,
		`null`:                                                          false,
		``:                                                              false,
	}
}

// samePlainStart checks that what is read plainly is what a reader of any JSON reads.
func samePlainStart(t *testing.T, text string) bool {
	t.Helper()
	got, plain := readPlainStart(json.RawMessage(text))
	if !plain {
		return false
	}
	var want Start
	if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is read as\n%+v\nand is\n%+v, %v", text, got, want, err)
	}
	return true
}

func TestReadPlainStart(t *testing.T) {
	t.Parallel()
	for text, plain := range plainStarts() {
		if got := samePlainStart(t, text); got != plain {
			t.Errorf("%s is read plainly: %v, want %v", text, got, plain)
		}
	}
}

func FuzzReadPlainStart(f *testing.F) {
	for text := range plainStarts() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { samePlainStart(t, text) })
}
