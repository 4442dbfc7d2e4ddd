package slot_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/dataflow"
	"tandem/fault"
	"tandem/node/slot"
)

func slots(t *testing.T, schemas ...string) *slot.Schema {
	t.Helper()
	var raw []json.RawMessage
	for _, s := range schemas {
		raw = append(raw, json.RawMessage(s))
	}
	s, _, err := slot.Read(raw...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// equal compares JSON.
func equal(t *testing.T, got json.RawMessage, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 {
		got = json.RawMessage("null")
	}
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

const parcel = `{"type":"object","required":["to","size"],"properties":{
	"to":{"type":"object","required":["name","city"],"properties":{"name":{"type":"string"},"city":{"type":"string"},"zip":{"type":"string"}}},
	"size":{"$ref":"#/$defs/size"},"note":{"type":["string","null"]},"fast":{"type":"boolean"}},
	"$defs":{"size":{"type":"integer","minimum":1}}}`

func TestSlotSchema_Remaining(t *testing.T) {
	t.Parallel()
	s := slots(t, parcel)
	for data, want := range map[string]string{
		`{"to":{"name":"a","city":"b"},"size":1}`:      `null`,
		`{"to":{"name":"a","city":"b"},"size":"huge"}`: `null`, // wrong is not missing: that is for the check
		`{"to":{"name":"a","city":"b"}}`:               `{"type":"object","required":["size"],"properties":{"size":{"$ref":"#/$defs/size"}},"$defs":{"size":{"type":"integer","minimum":1}}}`,
		`{"to":{"name":"a","city":null},"size":null}`:  `{"type":"object","required":["size","to"],"properties":{"size":{"$ref":"#/$defs/size"},"to":{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}},"$defs":{"size":{"type":"integer","minimum":1}}}`,
	} {
		got, err := s.Remaining(json.RawMessage(data))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, got, want)
	}
	if _, err := s.Remaining(json.RawMessage(`[]`)); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("a list: %v", err)
	}
}

func TestSlotSchema_Take(t *testing.T) {
	t.Parallel()
	s := slots(t, parcel)
	for _, c := range []struct {
		name, data, answer, want string
		fields, unsaid           []string
		problems                 int
	}{
		{"TakesWhatIsMissing", `{"n":1.50}`, `{"to":{"name":"a","city":"b"},"size":3,"else":1}`, `{"n":1.50,"to":{"name":"a","city":"b"},"size":3}`, []string{"size", "to"}, nil, 0},
		{"KeepsWhatIsThere", `{"to":{"name":"a","x":1},"size":3,"note":null}`, `{"to":{"name":"other","city":"b"},"size":9,"note":"n"}`, `{"to":{"name":"a","x":1,"city":"b"},"size":3,"note":null}`, []string{"to"}, nil, 0},
		{"LeavesOutWhatDoesNotFit", `{}`, `{"to":{"name":"a"},"size":0,"fast":true}`, `{"fast":true}`, []string{"fast"}, nil, 2},
		{"NullIsNotKnown", `{}`, `{"size":null}`, `{}`, []string{}, []string{"to"}, 0},
		{"KnowsReferences", `{"to":{"name":"a","city":"b"}}`, `{"size":"1"}`, `{"to":{"name":"a","city":"b"}}`, []string{}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := s.Take(json.RawMessage(c.data), json.RawMessage(c.answer))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, got.Data, c.want)
			if !slices.Equal(got.Fields, c.fields) || !slices.Equal(got.Unsaid, c.unsaid) || len(got.Problems) != c.problems {
				t.Errorf("took %v, unsaid %v, problems %q", got.Fields, got.Unsaid, got.Problems)
			}
		})
	}
}

func TestSlotSchema_Found(t *testing.T) {
	t.Parallel()
	s := slots(t, `{"required":["a","b","c","d","e"],"properties":{"a":{"type":"string"},"b":{"type":"integer"},"opt":{"type":"string"},"item":{}}}`)
	raw := func(text string) map[string]json.RawMessage {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	c := dataflow.Context{
		Variables: raw(`{"item":5}`), RuntimeMetadata: raw(`{"a":"runtime","b":"not a number"}`), InitialMetadata: raw(`{"a":"initial","b":2,"opt":"found","c":null}`),
		StepResults: map[string]dataflow.StepResult{
			"one": {StepID: "one", Output: json.RawMessage(`{"c":"old","d":1}`), IsSuccess: true, Ordinal: 1},
			"two": {StepID: "two", Output: json.RawMessage(`{"c":"new"}`), IsSuccess: true, Ordinal: 2},
			"bad": {StepID: "bad", Output: json.RawMessage(`{"c":"failed","e":1}`), Ordinal: 3},
		},
	}
	got, err := s.Found(json.RawMessage(`{"a":"given"}`), c)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, `{"b":2,"opt":"found","c":"new","d":1,"item":5}`)
	if got, err = s.Found(json.RawMessage(`{}`), c); err != nil {
		t.Fatal(err)
	}
	equal(t, got, `{"a":"runtime","b":2,"opt":"found","c":"new","d":1,"item":5}`)
}

func TestReadSlots(t *testing.T) {
	t.Parallel()
	_, whole, err := slot.Read(json.RawMessage(`{"title":"t","required":["a"],"properties":{"a":{"type":"string"},"b":{}}}`), nil, json.RawMessage(`null`),
		json.RawMessage(`{"title":"u","required":["b","a"],"properties":{"a":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, whole, `{"title":"u","required":["a","b"],"properties":{"a":{"type":"integer"},"b":{}}}`)
	for _, schema := range []string{`[]`, `{"properties":[]}`, `{"required":{}}`, `{"properties":{"a":{"type":"nothing"}}}`, `{"properties":{"a":{"$ref":"http://elsewhere"}}}`} {
		if _, _, err := slot.Read(json.RawMessage(schema)); fault.CodeOf(err) != fault.InvalidConfig {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestSlotSchema_MissingError(t *testing.T) {
	t.Parallel()
	err := slots(t, parcel).MissingError(json.RawMessage(`{"size":1}`))
	f := fault.From(err)
	if f.Code != fault.ParameterMissing || !cmp.Equal(f.Details["missing_fields"], []string{"to"}) {
		t.Errorf("%v, %v", err, f.Details)
	}
}
