package human

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/fault"
)

// settled is a request with its defaults.
func settled(t testing.TB, r Request) Request {
	t.Helper()
	if err := r.settle(nil, asked(t, r)); err != nil {
		t.Fatal(err)
	}
	return r
}

// complaints are the paths and words of what is wrong.
func complaints(err error) []string {
	if err == nil {
		return nil
	}
	fields, _ := fault.From(err).Details["fields"].([]api.FaultField)
	list := []string{}
	for _, f := range fields {
		list = append(list, strings.TrimPrefix(f.Path, "response_data.")+": "+f.Message)
	}
	return list
}

func TestReadAnswer_Form(t *testing.T) {
	t.Parallel()
	form := settled(t, Request{Type: Input, Fields: []Field{
		{Name: "who", Required: true, Validation: json.RawMessage(`"^[a-z]+$"`)},
		{Name: "budget", Type: "number", Required: true, Validation: json.RawMessage(`{"min":1,"max":10,"message":"from 1 to 10"}`)},
		{Name: "mail", Type: "email"}, {Name: "day", Type: "date"}, {Name: "size", Type: "select", Options: []Option{{Value: "s"}, {Value: "l"}}},
		{Name: "sure", Type: "boolean"}, {Name: "long", Validation: json.RawMessage(`{"min_length":2,"max_length":3}`)},
	}})
	for name, c := range map[string]struct {
		values string
		want   []string
		fields string
	}{
		"all":                     {values: `{"who":"bob","budget":2.50,"mail":"a@b.c","day":"2026-02-28","size":"l","sure":false,"long":"世界"}`, fields: `{"who":"bob","budget":2.50,"mail":"a@b.c","day":"2026-02-28","size":"l","sure":false,"long":"世界"}`},
		"texts of a browser":      {values: `{"who":"bob","budget":" 7 ","sure":"on","mail":"","day":null}`, fields: `{"who":"bob","budget":7,"sure":true}`},
		"everything at once":      {values: `{"who":"B0B","mail":"no","day":"2026-02-30","size":"m","sure":"perhaps","long":"1","more":1}`, want: []string{"field_values.more: there is no such field", `field_values.who: it does not match "^[a-z]+$"`, "field_values.budget: it is required", `field_values.mail: "no" is not a mail address`, `field_values.day: "2026-02-30" is not a date like 2006-01-02`, `field_values.size: "m" is none of s, l`, "field_values.sure: true or false was expected", "field_values.long: it has less than 2 characters"}},
		"numbers in range":        {values: `{"who":"b","budget":11,"long":"1234"}`, want: []string{"field_values.budget: from 1 to 10", "field_values.long: it has more than 3 characters"}},
		"no numbers":              {values: `{"who":"b","budget":"0x1p4"}`, want: []string{"field_values.budget: a number was expected"}},
		"not infinite":            {values: `{"who":"b","budget":"inf"}`, want: []string{"field_values.budget: a number was expected"}},
		"a list is not text":      {values: `{"who":["b"],"budget":1}`, want: []string{"field_values.who: a text was expected"}},
		"blank is not filled in":  {values: `{"who":"","budget":1}`, want: []string{"field_values.who: it is required"}},
		"nothing":                 {values: `null`, want: []string{"field_values.who: it is required", "field_values.budget: it is required"}},
		"a name with its address": {values: `{"who":"b","budget":1,"mail":"Bob <b@x.org>"}`, want: []string{`field_values.mail: "Bob <b@x.org>" is not a mail address`}},
	} {
		u, err := form.readByPurpose(PurposeNode, json.RawMessage(`{"notes":"n","field_values":`+c.values+`,"user_id":"eve","timestamp":"never"}`), "ann", "now", Came{})
		if diff := cmp.Diff(c.want, complaints(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err != nil {
			continue
		}
		var want, got any
		for _, one := range []struct {
			raw  string
			into *any
		}{{c.fields, &want}, {gjson.GetBytes(u.data, "field_values").Raw, &got}} {
			if err := json.Unmarshal([]byte(one.raw), one.into); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || u.outcome != Confirmed {
			t.Errorf("%s: %s (-want +got):\n%s", name, u.outcome, diff)
		}
		if gjson.GetBytes(u.data, "user_id").Str != "ann" || gjson.GetBytes(u.data, "timestamp").Str != "now" || gjson.GetBytes(u.data, "notes").Str != "n" {
			t.Errorf("%s: %s says who answered itself", name, u.data)
		}
	}
}

func TestReadAnswer_Schema(t *testing.T) {
	t.Parallel()
	form := settled(t, Request{Type: Input, Schema: json.RawMessage(`{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"string"}}}}`)})
	if u, err := form.readAnswer(json.RawMessage(`{"field_values":{"a":1,"b":["x"]}}`), "ann", "now", Came{}); err != nil || gjson.GetBytes(u.data, "field_values.a").Raw != "1" {
		t.Errorf("%s: %v", u.data, err)
	}
	_, err := form.readAnswer(json.RawMessage(`{"field_values":{"a":"1","b":["x",2]}}`), "ann", "now", Came{})
	if got := complaints(err); len(got) != 2 || !strings.HasPrefix(got[0], "field_values.a: ") || !strings.HasPrefix(got[1], "field_values.b[1]: ") {
		t.Errorf("%q", got)
	}
	if _, err := form.readAnswer(json.RawMessage(`{}`), "ann", "now", Came{}); len(complaints(err)) != 1 {
		t.Errorf("%v", err)
	}
}

func TestReadAnswer_File(t *testing.T) {
	t.Parallel()
	form := settled(t, Request{Type: Input, Fields: []Field{{Name: "f", Type: "file", Required: true}}})
	read := func(value string) (understood, error) {
		return form.readAnswer(json.RawMessage(`{"field_values":{"f":`+value+`}}`), "ann", "now", Came{})
	}
	u, err := read(`{"name":"C:\\x\\a.txt","media_type":"text/plain","size":99,"data":"` + base64.StdEncoding.EncodeToString([]byte("hello")) + `"}`)
	if err != nil {
		t.Fatal(err)
	}
	full, bare := gjson.GetBytes(u.data, "field_values.f"), gjson.GetBytes(u.kept, "field_values.f")
	if full.Get("base64").Str != "aGVsbG8=" || full.Get("name").Str != "a.txt" || full.Get("content_type").Str != "text/plain" || full.Get("size").Int() != 5 {
		t.Errorf("the execution gets %s", full.Raw)
	}
	if bare.Get("base64").Exists() || bare.Get("sha256").Str != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
		t.Errorf("recorded is %s", bare.Raw)
	}
	for _, wrong := range []string{`"secret.txt"`, `{"path":"secret.txt"}`, `{"name":"x"}`, `{"base64":"%"}`, `{"blob":"../x"}`, `7`} {
		if _, err := read(wrong); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%.60s: %v", wrong, err)
		}
	}
}

// An answer that is wrong in very many places is refused in few words.
func TestReadAnswer_IsBounded(t *testing.T) {
	t.Parallel()
	options := make([]Option, 20_000)
	for n := range options {
		options[n].Value = "option " + strconv.Itoa(n)
	}
	r := settled(t, Request{Type: Selection, AllowMultiple: true, Options: options})
	form := settled(t, Request{Type: Input, Fields: []Field{{Name: "a"}}})
	wrong, fields := make([]string, 1000), map[string]string{}
	for n := range wrong {
		wrong[n] = "x" + strconv.Itoa(n)
		fields[wrong[n]] = "x"
	}
	for _, c := range []struct {
		r      Request
		answer any
	}{
		{r, map[string]any{"selected_values": wrong}}, {r, map[string]any{"selected_values": make([]string, 200_000)}}, {form, map[string]any{"field_values": fields}},
	} {
		_, err := c.r.readAnswer(asJSON(t, c.answer), "ann", "", Came{})
		if fault.CodeOf(err) != fault.InvalidInput || len(err.Error()) > 100_000 {
			t.Errorf("an error of %d bytes: %.100v", len(err.Error()), err)
		}
	}
}

func TestReadAnswer_Choices(t *testing.T) {
	t.Parallel()
	approval := settled(t, Request{Options: []Option{{Value: "approve"}, {Value: "No"}, {Value: "需要修改"}, {Value: "later", Outcome: Rejected}}})
	one := settled(t, Request{Type: Selection, Options: []Option{{Value: "a"}, {Value: "b"}}})
	some := settled(t, Request{Type: Selection, AllowMultiple: true, Options: []Option{{Value: "a"}, {Value: "b"}}})
	for _, c := range []struct {
		r       Request
		answer  string
		outcome string
		options []string
		wrong   []string
	}{
		{r: approval, answer: `{"action":"approve"}`, outcome: Confirmed, options: []string{"approve"}},
		{r: approval, answer: `{"action":"APPROVE"}`, outcome: Confirmed, options: []string{"approve"}},
		{r: approval, answer: `{"action":"no"}`, outcome: Rejected, options: []string{"No"}},
		{r: approval, answer: `{"action":"需要修改"}`, outcome: Neither, options: []string{"需要修改"}},
		{r: approval, answer: `{"action":"later"}`, outcome: Rejected, options: []string{"later"}},
		{r: approval, answer: `{"action":"reject"}`, wrong: []string{`action: "reject" is none of approve, No, 需要修改, later`}},
		{r: approval, answer: " \n", wrong: []string{"response_data: an object was expected"}},
		{r: approval, answer: `{}`, wrong: []string{"action: it is missing; choose one of approve, No, 需要修改, later"}},
		{r: approval, answer: `{"action":["approve"]}`, wrong: []string{"action: it has the wrong form: it is a array"}},
		{r: one, answer: `{"selected_values":["b"]}`, outcome: Confirmed, options: []string{"b"}},
		{r: one, answer: `{"selected_values":["a","b"]}`, wrong: []string{"selected_values: only one may be chosen, not 2"}},
		{r: one, answer: `{"selected_values":[]}`, wrong: []string{"selected_values: it is missing; choose one of a, b"}},
		{r: some, answer: `{"selected_values":["b","a"]}`, outcome: Confirmed, options: []string{"b", "a"}},
		{r: some, answer: `{"selected_values":["b","b","c"]}`, wrong: []string{`selected_values[1]: "b" is chosen twice`, `selected_values[2]: "c" is none of a, b`}},
	} {
		u, err := c.r.readAnswer(json.RawMessage(c.answer), "ann", "now", Came{})
		if diff := cmp.Diff(c.wrong, complaints(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.answer, diff)
		}
		if err == nil && (u.outcome != c.outcome || cmp.Diff(c.options, u.options) != "") {
			t.Errorf("%s: %s %q", c.answer, u.outcome, u.options)
		}
	}
	for _, raw := range []string{``, `null`, `[]`, `"approve"`, `{`} {
		if _, err := approval.readAnswer(json.RawMessage(raw), "ann", "now", Came{}); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestReadAnswer_Review(t *testing.T) {
	t.Parallel()
	rules := func(scoring string, evidence bool) Request {
		return settled(t, Request{Type: Review, Review: &ReviewRules{Criteria: []string{"a", "b"}, Scoring: scoring, Threshold: 3, Evidence: evidence}})
	}
	for _, c := range []struct {
		scoring, scores string
		outcome         string
		average         float64
		wrong           []string
	}{
		{scoring: "pass_fail", scores: `{"a":true,"b":"pass"}`, outcome: Confirmed},
		{scoring: "pass_fail", scores: `{"a":true,"b":false}`, outcome: Rejected},
		{scoring: "checklist", scores: `{"a":true,"b":true}`, outcome: Confirmed},
		{scoring: "pass_fail", scores: `{"a":5}`, wrong: []string{"scores.a: true or false was expected", "scores.b: it is required"}},
		{scoring: "numeric_scale", scores: `{"a":1,"b":5}`, outcome: Confirmed, average: 3},
		{scoring: "numeric_scale", scores: `{"a":1,"b":"4"}`, outcome: Rejected, average: 2.5},
		{scoring: "numeric_scale", scores: `{"a":0,"b":6,"c":1}`, wrong: []string{"scores.c: there is no such criterion", "scores.a: a number from 1 to 5 was expected", "scores.b: a number from 1 to 5 was expected"}},
		{scoring: "letter_grade", scores: `{"a":"A","b":"f"}`, outcome: Confirmed, average: 3},
		{scoring: "letter_grade", scores: `{"a":"B","b":"F"}`, outcome: Rejected, average: 2.5},
		{scoring: "letter_grade", scores: `{"a":"G","b":"E"}`, wrong: []string{"scores.a: A, B, C, D or F was expected", "scores.b: A, B, C, D or F was expected"}},
		{scoring: "custom", scores: `{"a":true,"b":2}`, outcome: Confirmed, average: 3.5},
	} {
		r := rules(c.scoring, false)
		u, err := r.readAnswer(json.RawMessage(`{"scores":`+c.scores+`}`), "ann", "now", Came{})
		if diff := cmp.Diff(c.wrong, complaints(err)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.scoring, c.scores, diff)
		}
		if err != nil {
			continue
		}
		average := 0.0
		if u.average != nil {
			average = *u.average
		}
		if u.outcome != c.outcome || average != c.average {
			t.Errorf("%s %s: %s with %g", c.scoring, c.scores, u.outcome, average)
		}
	}
	r := rules("pass_fail", true)
	_, err := r.readAnswer(json.RawMessage(`{"scores":{"a":true,"b":true},"evidence":{"a":" "}}`), "ann", "now", Came{})
	if got := complaints(err); len(got) != 2 || !strings.HasPrefix(got[0], "evidence.a: ") || !strings.HasPrefix(got[1], "evidence.b: ") {
		t.Errorf("without evidence: %q", got)
	}
	if err := r.Check(PurposeNode, json.RawMessage(`{"scores":{"a":true,"b":true}}`)); len(complaints(err)) != 2 {
		t.Errorf("checked without evidence: %v", err)
	}
	if _, err := r.readAnswer(json.RawMessage(`{"scores":{"a":true,"b":true},"evidence":{"a":"x","b":"y"}}`), "ann", "now", Came{}); err != nil {
		t.Errorf("with evidence: %v", err)
	}
}

func TestReadGiven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		purpose, given string
		data           string // what the engine gets; empty: it is refused
		outcome        string
		choice         string
	}{
		{PurposeConfirm, `{"confirm":true}`, `{"confirm":true}`, Confirmed, ""},
		{PurposeConfirm, `{"confirm":true,"x":1}`, ``, "", ""},
		{PurposeConfirm, `{"confirm":false}`, `{"confirm":false}`, Rejected, ""},
		{PurposeConfirm, `null`, `{"confirm":false}`, Rejected, ""},
		{PurposeConfirm, `{}`, `{"confirm":false}`, Rejected, ""},
		{PurposeConfirm, `{"confirm":null}`, `{"confirm":false}`, Rejected, ""},
		{PurposeConfirm, `{"confirmed":true}`, ``, "", ""},
		{PurposeConfirm, `false`, `{"confirm":false}`, Rejected, ""},
		{PurposeConfirm, `{"confirm":"yes"}`, ``, "", ""},
		{PurposeConfirm, `"yes"`, ``, "", ""},
		{PurposeParam, `{"content":{"city":"Rome"},"description":"d"}`, `{"content":{"city":"Rome"},"description":"d"}`, Confirmed, ""},
		{PurposeParam, `{"city":"Rome"}`, `{"city":"Rome"}`, Confirmed, ""},
		{PurposeParam, `{"content":7}`, ``, "", ""},
		{PurposeParam, `"Rome"`, ``, "", ""},
		{PurposeOutcomeUnknown, `{"outcome":"done","result":{"n":1}}`, `{"n":1}`, Confirmed, "done"},
		{PurposeOutcomeUnknown, `{"outcome":"not_done"}`, `-`, Confirmed, "not_done"},
		{PurposeOutcomeUnknown, `{"outcome":"stop"}`, `-`, Rejected, "stop"},
		{PurposeOutcomeUnknown, `{"outcome":"stop","result":1}`, ``, "", ""},
		{PurposeOutcomeUnknown, `{"outcome":"perhaps"}`, ``, "", ""},
		{PurposeOutcomeUnknown, `7`, ``, "", ""},
		{PurposeBudget, `{"raise_by":5}`, `{"raise_by":5}`, Confirmed, ""},
		{PurposeBudget, `{"raise_by":0}`, ``, "", ""},
		{PurposeBudget, `{"raise_by":"5"}`, ``, "", ""},
		{PurposeBudget, `null`, ``, "", ""},
		{PurposeDrift, `{"accept":true}`, `{"accept":true}`, Confirmed, ""},
		{PurposeActivation, `{"accept":false}`, `{"accept":false}`, Rejected, ""},
		{PurposeDrift, `{}`, ``, "", ""},
		{PurposeToolApproval, `true`, `true`, Confirmed, ""},
		{PurposeToolApproval, `{"action":"approve"}`, `{"action":"approve"}`, Confirmed, ""},
		{PurposeToolApproval, `{"approved":true,"option":"approved"}`, `{"approved":true,"option":"approved"}`, Confirmed, ""},
		{PurposeToolApproval, `{"action":"reject"}`, `{"action":"reject"}`, Rejected, ""},
		{PurposeToolApproval, `{"approved":true,"action":"reject"}`, ``, "", ""},
		{PurposeToolApproval, `{"approved":"true"}`, ``, "", ""},
		{PurposeToolApproval, `{}`, ``, "", ""},
		{PurposeToolApproval, `"yes"`, ``, "", ""},
	} {
		r := Request{}
		u, err := r.readByPurpose(c.purpose, json.RawMessage(c.given), "ann", "now", Came{})
		if c.data == "" {
			if fault.CodeOf(err) != fault.InvalidInput {
				t.Errorf("%s %s: %v, want a refusal", c.purpose, c.given, err)
			}
			continue
		}
		if err != nil || strings.Trim(string(u.data), " ") != strings.TrimPrefix(c.data, "-") || u.outcome != c.outcome || u.choice != c.choice {
			t.Errorf("%s %s: %s %s %s (%v)", c.purpose, c.given, u.data, u.outcome, u.choice, err)
		}
	}
}

func TestReadGiven_Parameters(t *testing.T) {
	t.Parallel()
	r := Request{Schema: json.RawMessage(`{"type":"object","required":["rows"],"properties":{"rows":{"type":"integer","minimum":1},"name":{"type":"string"}}}`)}
	for _, c := range []struct {
		given string
		path  string // of what is wrong; empty: it is taken
		says  string
	}{
		{`{"content":{"rows":5}}`, "", ""},
		{`{"rows":5,"name":null}`, "", ""},
		{`{"content":{"name":"x"}}`, "", ""}, // a part of the form
		{`{"content":{},"description":"five of them"}`, "", ""},
		{`{"content":{"rows":"many"}}`, "input_data.content.rows", ""},
		{`{"rows":"many"}`, "input_data.rows", ""},
		{`{"content":{"rows":0},"description":"none"}`, "input_data.content.rows", "less than 1"},
		{`{"content":{"row":5}}`, "input_data.content.row", `did you mean "rows"?`},
		{`{"content":{"rows":5,"x":1}}`, "input_data.content.x", "there are rows, name"},
		{`{"content":{"rows":null}}`, "input_data.content", "nothing was given"},
		{`{"content":null}`, "input_data.content", "nothing was given"},
		{`{"content":{},"description":" "}`, "input_data.content", "nothing was given"},
		{`{}`, "input_data.content", "cancel the execution"},
		{`{"confirm":true}`, "input_data.content", "nothing was given"},
		{`{"content":{"rows":5},"extra":1}`, "input_data.extra", "there are content, description"},
		{`{"content":{},"name":"x"}`, "input_data.name", `did you mean "content.name"?`},
		{`null`, "input_data", "an object"},
		{`"5"`, "input_data", "an object"},
		{`{"content":[5]}`, "input_data.content", "an object"},
	} {
		err := r.Check(PurposeParam, json.RawMessage(c.given))
		if c.path == "" {
			if err != nil {
				t.Errorf("%s: %v", c.given, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), " "+c.path+":") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %s, %q", c.given, err, c.path, c.says)
		}
	}
	if err := (&Request{}).Check(PurposeParam, json.RawMessage(`{"anything":1}`)); err != nil {
		t.Errorf("a question without a form: %v", err)
	}
}
