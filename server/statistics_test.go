package server

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"tandem/api"
	"tandem/identity"
	"tandem/route"
)

// TestStatistics tells how the executions of a workspace went, and nothing of those of another.
func TestStatistics(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const flow = `{"metadata":{"id":"flow","name":"Flow"},"nodes":[{"id":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"},{"id":"next","description":"d","type":"CALL","subtype":"EMPTY"}],"connections":[{"from_node":"start","to_node":"next"}]}`
	w.admin(http.MethodPost, route.Prefix+"/workflows", flow).want(t, 201)
	begin := time.Now().UnixMilli()
	for _, inputs := range []string{`{}`, `{}`, `{"break":true}`} {
		w.admin(http.MethodPost, route.Prefix+"/workflows/flow/execute", `{"wait_seconds":20,"inputs":`+inputs+`}`).want(t, 200)
	}
	get := func(token, query string) api.Overview {
		t.Helper()
		return read[api.Overview](t, w.call(token, http.MethodGet, route.Prefix+"/statistics"+query, "").want(t, 200))
	}
	for of, parts := range map[string]int{"hour": 12, "day": 24, "week": 28} {
		got := get(w.tokens[identity.Viewer], "?range="+of+"&workflow_id=flow&runs_of=flow,none&runs=2")
		var sum api.OverviewBucket
		for _, b := range got.Buckets {
			sum.Started, sum.Succeeded, sum.Failed = sum.Started+b.Started, sum.Succeeded+b.Succeeded, sum.Failed+b.Failed
		}
		if len(got.Buckets) != parts || sum.Started != 3 || sum.Succeeded != 2 || sum.Failed != 1 || got.Counts["SUCCESS"] != 2 || got.Counts["ERROR"] != 1 {
			t.Errorf("%s: %+v", of, got)
		}
		if len(got.Failures) != 1 || got.Failures[0].NodeID != "next" || got.Failures[0].Code == "" || got.Failures[0].Message == "" || got.Failures[0].WorkflowName != "Flow" || got.Failures[0].Time < begin {
			t.Errorf("%s: failures %+v", of, got.Failures)
		}
		if runs := got.Runs["flow"]; len(runs) != 2 || runs[0].Status != "ERROR" || runs[1].Status != "SUCCESS" || got.Runs["none"] == nil || runs[0].ExecutionID != got.Failures[0].ExecutionID {
			t.Errorf("%s: runs %+v", of, got.Runs)
		}
	}
	if other := get(w.other, "?runs_of=flow"); len(other.Counts) != 0 || len(other.Failures) != 0 || len(other.Runs["flow"]) != 0 {
		t.Errorf("another workspace sees %+v", other)
	}
	list := func(query string) int {
		t.Helper()
		return read[api.Executions](t, w.call(w.tokens[identity.Viewer], http.MethodGet, route.Prefix+"/executions"+query, "").want(t, 200)).TotalCount
	}
	later := time.Now().Add(time.Hour).UnixMilli()
	for query, n := range map[string]int{
		"?user_id=admin-user": 3, "?user_id=viewer-user": 0, "?user_id=me": 0, "?started_after=" + stamp(begin) + "&status=ERROR": 1, "?started_after=" + stamp(later): 0, "?started_before=" + stamp(later) + "&workflow_id=flow": 3,
	} {
		if got := list(query); got != n {
			t.Errorf("%s lists %d, want %d", query, got, n)
		}
	}
	w.admin(http.MethodGet, route.Prefix+"/executions?started_after=5&started_before=4", "").want(t, 422)
	pages := func(query string) (ids []string) {
		t.Helper()
		page := read[api.Executions](t, w.admin(http.MethodGet, route.Prefix+"/executions"+query, "").want(t, 200))
		for i := range page.Executions {
			ids = append(ids, page.Executions[i].ExecutionID)
		}
		return ids
	}
	all := pages("")
	for query, want := range map[string][]string{
		"?older_than=" + all[0]: all[1:], "?newer_than=" + all[2] + "&page_size=1": all[1:2], "?newer_than=" + all[2] + "&page_size=1&page=2": all[:1], "?older_than=" + all[2]: nil,
	} {
		if got := pages(query); !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", query, got, want)
		}
	}
	w.admin(http.MethodGet, route.Prefix+"/executions?older_than=nothing", "").want(t, 404)
	w.admin(http.MethodGet, route.Prefix+"/executions?older_than="+all[0]+"&newer_than="+all[1], "").want(t, 422)
	w.admin(http.MethodGet, route.Prefix+"/statistics?range=year", "").want(t, 422)
}

func stamp(ms int64) string { return strconv.FormatInt(ms, 10) }
