package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/store/sqlite/sqlitetest"
)

// largeText is a JSON object of exactly so many bytes.
func largeText(size int) string {
	return `{"t":"` + strings.Repeat("a", size-len(`{"t":""}`)) + `"}`
}

// What a row brings is handed on however large it is: the values of a row that is being made are never let go, and those of
// one that has been written are found on disk.
func TestLarge_ValuesOfOneRow(t *testing.T) {
	t.Parallel()
	big := largeText(4_300_000)
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		size := 9 << 20
		if r.URL.Path == "/above" {
			size = 10<<20 + 1
		}
		if _, err := w.Write([]byte(largeText(size))); err != nil {
			t.Log(err) // the reader has had enough
		}
	}))
	defer remote.Close()
	x := openSite(t)
	converted := func(id, conversion string) string {
		return fmt.Sprintf(`
metadata: {id: %s, name: %s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: out, conversion_function: %q}
`, id, id, conversion)
	}
	x.save(t, converted("by_expression", "{'n': 1}"))
	x.save(t, converted("joined", "{'a': t + t}"))
	x.save(t, converted("whole", "{'a': t, 'b': t, 'c': t}"))
	x.save(t, converted("by_javascript", "function convert(input_data) { return {n: 1, t: input_data.t.slice(0, 100)} }"))
	x.save(t, strings.Replace(callFlow("by_http", "GET", remote.URL+"/{{path}}"), ", input_params: {who: ann}", "", 1))
	x.save(t, `
metadata: {id: kid, name: kid, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: out}
`)
	x.save(t, `
metadata: {id: parent, name: parent, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: kid, revision: latest}}
  - {id: out, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: sub}
  - {from_node: sub, to_node: out, conversion_function: "{'n': 1}"}
`)
	for _, c := range []struct {
		name, workflow, inputs string
		status                 engine.Status
		reason                 string
	}{
		{"Expression", "by_expression", big, engine.StatusSuccess, ""},
		{"JavaScript", "by_javascript", big, engine.StatusSuccess, ""},
		{"Answer", "by_http", `{"path":"below"}`, engine.StatusSuccess, ""},
		{"AnswerAboveTheLimit", "by_http", `{"path":"above"}`, engine.StatusError, "too_large"},
		{"Child", "parent", big, engine.StatusSuccess, ""},
		// The body of the request has 10 MiB at most; this is what is left of it for the inputs.
		{"AtTheLimit", "by_expression", largeText(10<<20 - len(`{"inputs":}`)), engine.StatusSuccess, ""},
		{"ExpressionAboveItsLimit", "joined", big, engine.StatusError, "makes more data than its limit"},
		{"ResultAboveItsLimit", "whole", big, engine.StatusError, "larger result than its limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := x.call(t, "operator", "POST", "/workflows/"+c.workflow+"/execute", `{"inputs":`+c.inputs+`}`)
			id := want[api.ExecuteResponse](t, a, http.StatusAccepted).ExecutionID
			x.reaches(t, id, c.status)
			if e := x.read(t, id); c.reason != "" && (e.Error == nil || !strings.Contains(fmt.Sprintf("%+v", *e.Error), c.reason)) {
				t.Errorf("error %+v; want %q", e.Error, c.reason)
			}
		})
	}
	t.Run("AboveTheLimit", func(t *testing.T) {
		a := x.call(t, "operator", "POST", "/workflows/by_expression/execute", `{"inputs":`+largeText(10<<20-len(`{"inputs":}`)+1)+`}`)
		refused(t, a, http.StatusRequestEntityTooLarge, "too_large")
	})
	t.Run("ForkedWithALargeInput", func(t *testing.T) {
		a := x.call(t, "operator", "POST", "/workflows/by_expression/execute", `{"inputs":`+big+`}`)
		id := want[api.ExecuteResponse](t, a, http.StatusAccepted).ExecutionID
		x.reaches(t, id, engine.StatusSuccess)
		fork := want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/actions", `{"action":"fork","node_id":"out","input":`+big+`}`), http.StatusOK)
		x.reaches(t, fork.ExecutionID, engine.StatusSuccess)
	})
}

// An execution whose payload and result are large together goes on after a restart, in the middle of which it may stand.
func TestLarge_ValuesAfterARestart(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	i.saveText(t, `
metadata: {id: naps, name: naps, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: nap, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 1}}
  - {id: out, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: nap}
  - {from_node: nap, to_node: out, conversion_function: "{'n': 1}"}
`)
	id := i.startText(t, "naps", largeText(5<<20))
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	i = openInstance(t, dir)
	defer i.Close()
	i.ends(t, id, engine.StatusSuccess)
}
