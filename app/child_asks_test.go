package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// wraps is a workflow whose only node runs another one.
func wraps(id, inner string) string {
	return `
metadata: {id: ` + id + `, name: ` + id + `, description: d}
nodes:
  - {id: start, name: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: sub, name: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: ` + inner + `, revision: latest}}
connections:
  - {from_node: start, to_node: sub}
`
}

// Executions that wait for one that asks wait for people themselves: with a pause and an event, and the answer may be given to their node.
func TestChildAsks_ParentsWaitForPeople(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, askOf("asks", "IN_APP_APPROVAL", `{title: "Go?", approvers: ["user:approver"]}`, "confirmed"))
	x.save(t, wraps("middle", "asks"))
	x.save(t, wraps("top", "middle"))
	id := x.execute(t, "top", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusWaitingForHuman)
	question := x.opens(t, id, 1)[0]
	e := x.read(t, id)
	if n := e.NodeExecutions["sub"]; n.Status != "waiting_input" || len(e.Questions) != 1 || e.Questions[0].InteractionID != question.ID {
		t.Errorf("the node is %s, questions %+v", n.Status, e.Questions)
	}
	if got := x.pausesOf(t, id); !slices.Equal(got, []string{"sub human active "}) {
		t.Errorf("pauses %q", got)
	}
	asked := false
	list, _ := x.follow(t, "viewer", "/executions/"+id+"/events", "", func(h heard) bool { return h.Name == "execution_paused" })
	for _, h := range list {
		var frame struct {
			Data api.ExecutionUpdate `json:"data"`
		}
		if err := json.Unmarshal([]byte(h.Data), &frame); err != nil {
			t.Fatal(err)
		}
		if q := frame.Data.UserInputRequest; h.Name == "user_input_required" && frame.Data.NodeID == "sub" && q != nil && q.InteractionID == question.ID && q.Title == "Go?" && q.ExecutionID == question.ExecutionID {
			asked = true
		}
	}
	if !asked {
		t.Errorf("nobody is told of the question: %+v", list)
	}
	refused(t, x.call(t, "operator", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "sub", InputData: json.RawMessage(`{"action":"approve"}`)}), http.StatusForbidden, "forbidden")
	want[api.ActionResponse](t, x.call(t, "approver", "POST", "/executions/"+id+"/input", api.InputRequest{NodeID: "sub", InputData: json.RawMessage(`{"action":"approve"}`)}), http.StatusOK)
	x.reaches(t, id, engine.StatusSuccess)
	e = x.read(t, id)
	if waited := x.interaction(t, question.ID); e.DurationMS > e.EndTime-e.StartTime-(waited.Updated-waited.Created)/2 {
		t.Errorf("it took %d ms of %d, and waited for %d", e.DurationMS, e.EndTime-e.StartTime, waited.Updated-waited.Created)
	}
	if got := x.pausesOf(t, id); !slices.Equal(got, []string{"sub human resumed human_response"}) {
		t.Errorf("pauses %q", got)
	}
}

// A parent whose child no longer asks, because it was canceled or skipped, does not wait for people any more.
func TestChildAsks_EndsWithTheWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action string
		status engine.Status
		pause  string
	}{{"cancel", engine.StatusCanceled, "sub human canceled canceled"}, {"skip_node", engine.StatusSuccess, "sub human canceled canceled"}} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			x := openSite(t)
			x.save(t, askOf("asks", "IN_APP_APPROVAL", `{title: "Go?"}`, "confirmed"))
			x.save(t, wraps("top", "asks"))
			id := x.execute(t, "top", api.ExecuteRequest{})
			x.reaches(t, id, engine.StatusWaitingForHuman)
			r := api.ActionRequest{Action: c.action}
			if c.action == "skip_node" {
				r.NodeID = "sub"
			}
			want[api.ActionResponse](t, x.act(t, id, r), http.StatusOK)
			x.reaches(t, id, c.status)
			if got := strings.Join(x.pausesOf(t, id), ", "); got != c.pause {
				t.Errorf("pauses %q", got)
			}
		})
	}
}
