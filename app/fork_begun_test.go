package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/engine"
)

// A fork does not repeat what was under way in its source, and says so: nothing was interrupted.
func TestForkBegun_NamesTheSource(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 2), make(chan struct{})
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-release
		fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(remote.Close)
	x := openSite(t)
	for _, policy := range []string{"ask", "fail"} {
		x.save(t, fmt.Sprintf(`
metadata: {id: %[1]s, name: %[1]s, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: pay, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: POST, url: "%[2]s", on_unknown: %[1]s}}
  - {id: quick, description: d, type: CALL, subtype: EMPTY}
  - {id: after, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: pay}
  - {from_node: start, to_node: quick}
  - {from_node: quick, to_node: after}
`, policy, remote.URL))
	}
	ids := map[string]string{}
	for _, policy := range []string{"ask", "fail"} {
		id := x.execute(t, policy, api.ExecuteRequest{})
		ids[policy] = id
		<-asked
		x.follow(t, "viewer", "/executions/"+id+"/events", "", func(h heard) bool {
			return strings.Contains(h.Data, `"after"`) && strings.Contains(h.Data, "completed")
		})
	}
	running := x.forks(t, "operator", ids["ask"], api.ActionRequest{NodeID: "after"})
	close(release)
	for _, id := range ids {
		x.reaches(t, id, engine.StatusSuccess)
	}
	description := func(fork string) string {
		t.Helper()
		x.reaches(t, fork, engine.StatusWaitingForHuman)
		e := x.read(t, fork)
		if len(e.Questions) != 1 || e.Questions[0].Purpose != "outcome_unknown" {
			t.Fatalf("questions %+v", e.Questions)
		}
		record := want[api.InteractionDetail](t, x.call(t, "operator", "GET", "/interactions/"+e.Questions[0].InteractionID, nil), http.StatusOK)
		return gjson.GetBytes(record.RequestData, "description").Str
	}
	if got := description(running); !strings.Contains(got, ids["ask"]) || !strings.Contains(got, "it is still at work there") || strings.Contains(got, "interrupted") {
		t.Errorf("a fork of what runs asks %q", got)
	}
	if got := description(x.forks(t, "operator", ids["ask"], api.ActionRequest{NodeID: "after"})); !strings.Contains(got, ids["ask"]) || !strings.Contains(got, "the node pay") || !strings.Contains(got, "it has completed there") || strings.Contains(got, "interrupted") {
		t.Errorf("a fork of what has ended asks %q", got)
	}
	failed := x.forks(t, "operator", ids["fail"], api.ActionRequest{NodeID: "after"})
	x.reaches(t, failed, engine.StatusError)
	if e := x.read(t, failed); e.Error == nil || e.Error.ErrorCode != "outcome_unknown" || !strings.Contains(e.Error.ErrorMessage, fmt.Sprintf("was under way in execution %q", ids["fail"])) {
		t.Errorf("it failed with %+v", e.Error)
	}
}
