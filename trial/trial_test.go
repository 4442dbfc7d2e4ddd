package trial_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/trial"
	"tandem/workflow"
)

// TestCompare holds the rule: what is written must be there, an object may have more, a list may not.
func TestCompare(t *testing.T) {
	t.Parallel()
	failed := &api.ExecutionError{ErrorCode: "timeout", ErrorMessage: "too slow"}
	for name, c := range map[string]struct {
		expect  workflow.Expectation
		outcome trial.Outcome
		want    []string
	}{
		"NothingExpected":     {outcome: trial.Outcome{Status: "SUCCESS"}},
		"Failed":              {outcome: trial.Outcome{Status: "ERROR", Error: failed}, want: []string{`status: expected "SUCCESS", got "ERROR" (timeout: too slow)`}},
		"FailsAsExpected":     {expect: workflow.Expectation{ErrorCode: "timeout"}, outcome: trial.Outcome{Status: "ERROR", Error: failed}},
		"FailsOtherwise":      {expect: workflow.Expectation{ErrorCode: "code_error"}, outcome: trial.Outcome{Status: "ERROR", Error: failed}, want: []string{`error_code: expected "code_error", got "timeout" (too slow)`}},
		"DoesNotFail":         {expect: workflow.Expectation{ErrorCode: "code_error"}, outcome: trial.Outcome{Status: "SUCCESS"}, want: []string{`status: expected "ERROR", got "SUCCESS"`, `error_code: expected "code_error", got nothing`}},
		"MoreFields":          {expect: outputs(`{"a":{"result":{"x":{"y":1}}}}`), outcome: ended(`{"a":{"result":{"x":{"y":1.0,"z":2},"w":3},"other":1}}`)},
		"MissingField":        {expect: outputs(`{"a":{"result":{"x y":null}}}`), outcome: ended(`{"a":{"result":{}}}`), want: []string{`a: result["x y"]: expected null, got nothing`}},
		"OtherValue":          {expect: outputs(`{"a":{"result":{"x":[{"y":1}]}}}`), outcome: ended(`{"a":{"result":{"x":[{"y":"1"}]}}}`), want: []string{`a: result.x[0].y: expected 1, got "1"`}},
		"LongerList":          {expect: outputs(`{"a":{"result":[1]}}`), outcome: ended(`{"a":{"result":[1,2]}}`), want: []string{`a: result: expected [1], got [1,2]`}},
		"EmptyList":           {expect: outputs(`{"a":{"result":[]}}`), outcome: ended(`{"a":{"result":[1]}}`), want: []string{`a: result: expected [], got [1]`}},
		"AnotherOrder":        {expect: outputs(`{"a":{"result":[1,2]}}`), outcome: ended(`{"a":{"result":[2,1]}}`), want: []string{`a: result[0]: expected 1, got 2`, `a: result[1]: expected 2, got 1`}},
		"AnotherKey":          {expect: outputs(`{"a":{"true":{}}}`), outcome: ended(`{"a":{"false":{}}}`), want: []string{`a: true: expected {}, got nothing (it went by "false")`}},
		"HasNotRun":           {expect: outputs(`{"a":{"result":{}}}`), outcome: ended(`{}`), want: []string{`a: it has not run to its end`}},
		"LargeNumbersDiffer":  {expect: outputs(`{"a":{"result":9007199254740993}}`), outcome: ended(`{"a":{"result":9007199254740992}}`), want: []string{`a: result: expected 9007199254740993, got 9007199254740992`}},
		"ObjectIsNoText":      {expect: outputs(`{"a":{"result":{}}}`), outcome: ended(`{"a":{"result":"{}"}}`), want: []string{`a: result: expected {}, got "{}"`}},
		"ManyAreCounted":      {expect: outputs(`{"a":{"result":[` + strings.Repeat("1,", 24) + `1]}}`), outcome: ended(`{"a":{"result":[` + strings.Repeat("2,", 24) + `2]}}`), want: append(numbered(20), "outputs: 5 more places differ")},
		"LongValuesAreCut":    {expect: outputs(`{"a":{"result":1}}`), outcome: ended(`{"a":{"result":"` + strings.Repeat("x", 600) + `"}}`), want: []string{`a: result: expected 1, got "\"` + strings.Repeat("x", 499) + `… (602 bytes)"`}},
		"StatusAsItIsWritten": {expect: workflow.Expectation{Status: "TIMEOUT"}, outcome: trial.Outcome{Status: "TIMEOUT", Error: failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := trial.Compare(&workflow.Test{Expect: c.expect}, c.outcome)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range list {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func outputs(raw string) workflow.Expectation {
	return workflow.Expectation{Outputs: json.RawMessage(raw)}
}

func ended(raw string) trial.Outcome {
	o := trial.Outcome{Status: "SUCCESS"}
	if err := json.Unmarshal([]byte(raw), &o.Outputs); err != nil {
		panic(err)
	}
	return o
}

func numbered(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("a: result[%d]: expected 1, got 2", i))
	}
	return lines
}

// TestRequest finds a test by its name, and lets nobody say otherwise beside it.
func TestRequest(t *testing.T) {
	t.Parallel()
	def := &workflow.Definition{Tests: []workflow.Test{{Name: "big orders", From: "b", Inputs: json.RawMessage(`{"n":1}`), Pinned: json.RawMessage(`{"a":{"result":1}}`)}}}
	want := api.TestRequest{Test: "big orders"}
	test, runs, err := trial.Request(def, &want)
	if err != nil || test != &def.Tests[0] || !runs.WithoutEffects || runs.From != "b" || string(runs.Pinned["a"]["result"]) != "1" || string(want.Inputs) != `{"n":1}` || want.WaitSeconds != trial.Patience {
		t.Errorf("%+v, %+v, %v", runs, want, err)
	}
	for says, r := range map[string]api.TestRequest{
		`did you mean "big orders"`: {Test: "big order"},
		"node: ":                    {Test: "big orders", Node: "a"},
		"inputs: ":                  {Test: "big orders", Inputs: json.RawMessage(`{"n":2}`)},
		"pinned: ":                  {Test: "big orders", Pinned: map[string]map[string]json.RawMessage{"a": {}}},
	} {
		if _, _, err := trial.Request(def, &r); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, which does not say %q", err, says)
		}
	}
	if _, runs, err := trial.Request(def, &api.TestRequest{Node: "a"}); err != nil || runs.WithoutEffects {
		t.Errorf("%+v, %v", runs, err)
	}
}
