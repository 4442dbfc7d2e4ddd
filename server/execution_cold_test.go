package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

// BenchmarkGet_NotReadBefore is the cost of reading an execution that has ended and of which nothing is kept, without a network: a
// trigger and five nodes that do nothing, of 4,000 such executions another one each time.
func BenchmarkGet_NotReadBefore(b *testing.B) {
	w := setup(b)
	nodes, links := `{"id":"start","name":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"}`, ""
	for n, before := 0, "start"; n < 5; n++ {
		id := fmt.Sprintf("n%d", n)
		nodes += `,{"id":"` + id + `","name":"` + id + `","description":"d","type":"CALL","subtype":"EMPTY"}`
		links += `,{"from_node":"` + before + `","to_node":"` + id + `"}`
		before = id
	}
	w.admin("POST", route.Prefix+"/workflows", `{"metadata":{"id":"m","name":"m","description":"ABOUT"},"nodes":[`+nodes+`],"connections":[`+strings.TrimPrefix(links, ",")+`]}`).want(b, 201)
	first := read[api.ExecuteResponse](b, w.admin("POST", route.Prefix+"/workflows/m/execute", `{"inputs":{"customer":"c-1042","amount":129.5,"note":"please deliver in the morning"},"wait_seconds":30}`).want(b, 200)).ExecutionID
	const executions = 4000
	ids := copies(b, w.stores, first, executions)

	handler := w.server.Handler()
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		r, answer := httptest.NewRequest(http.MethodGet, route.Prefix+"/executions/"+ids[n*1009%executions], http.NoBody), httptest.NewRecorder()
		n++
		r.Header.Set("Authorization", "Bearer "+w.tokens[identity.Admin])
		if handler.ServeHTTP(answer, r); answer.Code != 200 {
			b.Fatal(answer.Body)
		}
	}
}

// copies appends the rows of an execution that has ended under other ids.
func copies(t testing.TB, stores store.Stores, of string, count int) (ids []string) {
	t.Helper()
	p := identity.System("a")
	summary, err := stores.Executions.Get(t.Context(), p, of)
	if err != nil || summary.Status != engine.StatusSuccess {
		t.Fatalf("the execution is %+v: %v", summary, err)
	}
	var rows []store.Row
	for row, err := range stores.Journal.Rows(t.Context(), p, of, 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	for n := range count {
		created := summary
		created.ID, created.Status = fmt.Sprintf("exec_copy%022d", n), engine.StatusRunning
		var list []*store.Append
		for _, row := range rows {
			list = append(list, &store.Append{Execution: created.ID, After: row.Seq - 1, Time: row.Time, Body: bytes.ReplaceAll(row.Body, []byte(of), []byte(created.ID))})
		}
		list[0].Create = &created
		list[len(list)-1].Change = &store.Change{Status: summary.Status, Started: summary.Started, Ended: summary.Ended, DurationMS: summary.DurationMS, Credits: summary.Credits}
		if err := stores.Journal.Append(t.Context(), p, list...); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, created.ID)
	}
	return ids
}
