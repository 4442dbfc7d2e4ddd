package app

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"tandem/api"
)

// testedFlow are tests of trialFlow, and some that must not pass.
const testedFlow = `tests:
  - name: large totals are asked about
    inputs: {name: Ada}
    pinned: {fetch: {result: {total: 20}}, ask: {approve: {}}, write: {result: {done: true}}, each: {result: {}}}
    expect: {outputs: {big: {"true": {}}, sum: {result: {who: Ada, twice: 20}}, write: {result: {done: true}}}}
  - name: approved and not pinned
    inputs: {name: Ada}
    pinned: {fetch: {result: {total: 20}}, ask: {approve: {}}, each: {result: {}}}
  - name: comes to a question
    inputs: {name: Ada}
    pinned: {fetch: {result: {total: 20}}, each: {result: {}}}
    expect: {error_code: not_pinned}
  - name: other values
    node: sum
    pinned: {start: {result: {name: Bo}}, fetch: {result: {total: 1}}, big: {"true": {}}}
    expect: {outputs: {sum: {result: {who: Bo, total: 2}}, after: {result: {}}}}
  - name: runs what has effects
    node: write
`

// TestFileTests runs the tests of a definition by their names: without effects, and compared with what they expect.
func TestFileTests(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	def, err := json.Marshal(strings.Replace(trialFlow, `"(("`, `"true"`, 1) + testedFlow)
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, name string, status int) api.TestResponse {
		return want[api.TestResponse](t, x.call(t, "editor", "POST", "/workflows/test", api.TestRequest{Definition: def, Test: name}), status)
	}
	for name, says := range map[string]string{
		"large totals are asked about": "",
		"comes to a question":          "",
		"approved and not pinned":      `status: expected "SUCCESS", got "ERROR" (not_pinned: "write" has effects and is not pinned`,
		"other values":                 "after: it has not run to its end\nsum: result.total: expected 2, got 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, name, http.StatusOK)
			var lines []string
			for _, d := range got.Differences {
				lines = append(lines, d.String())
			}
			if told := strings.Join(lines, "\n"); got.Passed == nil || *got.Passed != (says == "") || !strings.HasPrefix(told, says) || says == "" && told != "" {
				t.Errorf("%+v: %s", got, told)
			}
			e := x.read(t, got.ExecutionID)
			if e.Test == nil || e.Test.Name != name || e.TriggerInfo.TriggerType != "TEST" {
				t.Errorf("it is told as %+v", e.Test)
			}
		})
	}
	t.Run("NothingIsWritten", func(t *testing.T) {
		t.Parallel()
		if got := x.call(t, "editor", "POST", "/workflows/test", api.TestRequest{Definition: def, Test: "runs what has effects"}); got.status != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), "has effects, and a test in a file has none") {
			t.Errorf("%d %s", got.status, got.body)
		}
		if got := x.call(t, "editor", "POST", "/workflows/test", api.TestRequest{Definition: def, Test: "large totals"}); got.status != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), "no test") {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	t.Run("NotInTime", func(t *testing.T) {
		t.Parallel()
		slow, err := json.Marshal("metadata: {id: slow, name: slow}\nnodes:\n  - {id: wait, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 3600}}\ntests: [{name: ends}]\n")
		if err != nil {
			t.Fatal(err)
		}
		got := want[api.TestResponse](t, x.call(t, "editor", "POST", "/workflows/test", api.TestRequest{Definition: slow, Test: "ends", WaitSeconds: 0.2}), http.StatusAccepted)
		if got.Passed == nil || *got.Passed || len(got.Differences) != 1 || !strings.Contains(got.Differences[0].String(), "not ended in time") {
			t.Errorf("%+v", got)
		}
		if e := x.read(t, got.ExecutionID); e.Status != "CANCELED" {
			t.Errorf("it is left as %s", e.Status)
		}
	})
}

// TestFileTests_Kept keeps tests with the workflow, and tells them.
func TestFileTests_Kept(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	raw, err := os.ReadFile("../examples/parcels.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	got := want[api.TestResponse](t, x.call(t, "editor", "POST", "/workflows/test", api.TestRequest{Definition: text, Test: "heavy and light parcels are summed up apart"}), http.StatusOK)
	if got.Passed == nil || !*got.Passed {
		t.Errorf("%+v", got.Differences)
	}
	kept := x.save(t, string(raw)).Workflow.ID
	if w := want[api.Workflow](t, x.call(t, "viewer", "GET", "/workflows/"+kept, nil), http.StatusOK); len(w.Tests) != 2 || !strings.Contains(string(w.Tests[1]), `"node":"is_heavy"`) {
		t.Errorf("its tests are told as %s", w.Tests)
	}
	got = want[api.TestResponse](t, x.call(t, "editor", "POST", "/workflows/test", api.TestRequest{WorkflowID: kept, Test: "a parcel of 30 kg is not heavy"}), http.StatusOK)
	if got.Passed == nil || !*got.Passed {
		t.Errorf("%+v", got.Differences)
	}
}
