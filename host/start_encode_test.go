package host

import (
	"encoding/json"
	"testing"
)

// What is written by hand is what encoding/json would write: executions of other versions are read in the same way.
func TestStart_EncodesAsJSON(t *testing.T) {
	t.Parallel()
	data := func(text string) json.RawMessage { return json.RawMessage(text) }
	plain := 0
	for name, s := range map[string]Start{
		"usual":       {WorkflowID: "w", UserID: "u", Initial: data(`{"a":1}`), Trigger: data(`{"a":1}`), InputRules: 3},
		"all texts":   {WorkflowID: "w", UserID: "u", TokenMadeBy: "m", Language: "en", Initial: data(`{"a":1.50}`), Trigger: data(`{"b":"é 中"}`)},
		"white space": {WorkflowID: "w", Initial: data(` { "a" : [ 1 , "b c" ] } `), Trigger: data("{}\n")},
		"quotes":      {WorkflowID: `w"<&>`, UserID: "用户", Initial: data(`{"a":"\"\u00e9"}`), Trigger: data(`{}`)},
		"escaped":     {WorkflowID: "w", Initial: data(`{"a":"<b>&"}`), Trigger: data(`{"a":"<b>&"}`)},
		"line breaks": {WorkflowID: "w", Initial: data("{\"a\":\"\u2028\u2029\"}"), Trigger: data(`{}`)},
		"no data":     {WorkflowID: "w"},
		"no trigger":  {WorkflowID: "w", Initial: data(`{}`)},
		"more":        {WorkflowID: "w", Initial: data(`{}`), Trigger: data(`{}`), Root: "r", Requesters: []string{"a"}},
		"a child":     {WorkflowID: "w", Initial: data(`{}`), Trigger: data(`{"a":1}`), ExternalRequest: "x", Root: `r"`, ErrorOf: "e", InputRules: 2},
		"a test":      {WorkflowID: "w", Initial: data(`{}`), Trigger: data(`{}`), Test: &Test{Name: "t"}},
		"external":    {WorkflowID: "w", Initial: data(`{}`), Trigger: data(`{}`), ExternalRequest: "x", ErrorOf: "e", Outputs: []string{"o"}},
	} {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.encode(); err != nil || string(got) != string(want) {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
		if s.plain() {
			plain++
		}
	}
	if plain != 5 {
		t.Errorf("%d of the starts are written by hand, want 5", plain)
	}
	if _, err := (&Start{Initial: data(`{"a":}`), Trigger: data(`{}`)}).encode(); err == nil {
		t.Error("data that is not JSON was written")
	}
}
