package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// damage appends a row to the journal of an execution that waits, as no Tandem would write it. It is running then, so a
// process that starts takes it up.
func damage(t *testing.T, i *Instance, execution, body string) {
	t.Helper()
	p, last := identity.System("default"), uint64(0)
	for row, err := range i.stores.Journal.Rows(t.Context(), p, execution, 0) {
		if err != nil {
			t.Fatal(err)
		}
		last = row.Seq
	}
	if err := i.stores.Journal.Append(t.Context(), p, &store.Append{
		Execution: execution, After: last, Time: 1, Body: []byte(body), Change: &store.Change{Status: engine.StatusRunning, Started: 1},
	}); err != nil {
		t.Fatal(err)
	}
}

// poisoned is a row whose value no reader of JSON takes.
func poisoned(t *testing.T, seq uint64, node string) string {
	t.Helper()
	row := host.Row{
		Seq: seq, Values: []json.RawMessage{json.RawMessage("{\"a\":\"\xff\"}")},
		Facts: []engine.Fact{
			engine.SignalReceived{Node: node, Name: "go"},
			engine.NodeCompleted{Attempt: engine.Attempt{Activation: engine.ActivationID(node), Attempt: 1}, Outputs: []engine.Output{{Key: "completed", Ref: host.Place{Seq: seq}.Ref()}}},
		},
	}
	body, err := row.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestUnreadable_EndsWithTheReason(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, waitFlow)
	for _, c := range []struct{ name, body, reason string }{
		{"ARowThatIsNotJSON", `{"facts":[`, "cannot be read"},
		{"ARowThatIsTooDeep", `{"facts":[],"values":[` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `]}`, "cannot be read"},
		{"AValueThatIsNotUTF8", "", "UTF-8"},
		{"AFactThatCannotFollow", `{"facts":[{"type":"timer_fired","fact":{"timer":"nobody"}}]}`, "row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			id := x.waiting(t, "waits")
			body := c.body
			if body == "" {
				body = poisoned(t, x.seq(t, id)+1, "w")
			}
			damage(t, x.Instance, id, body)
			// The caller who wakes it gets an error, and it has ended by then.
			woken := x.act(t, id, api.ActionRequest{Action: "pause"})
			for strings.Contains(string(woken.body), "somebody else has gone on with it") { // it was still in memory, as it was before the damage
				woken = x.act(t, id, api.ActionRequest{Action: "pause"})
			}
			f := refused(t, woken, http.StatusConflict, "unreadable")
			if !strings.Contains(f.Detail, c.reason) {
				t.Errorf("refused with %q; want %q", f.Detail, c.reason)
			}
			x.reaches(t, id, engine.StatusError)
			e := x.read(t, id)
			if e.Status != "ERROR" || e.Error == nil || e.Error.ErrorCode != "unreadable" || !strings.Contains(e.Error.ErrorMessage, c.reason) || e.EndTime == 0 || len(e.CurrentNodeIDs) != 0 {
				t.Errorf("it reads as %+v, %+v", e, e.Error)
			}
			list := want[api.Executions](t, x.call(t, "viewer", "GET", "/executions?status=ERROR&page_size=100", nil), http.StatusOK)
			if n := slices.IndexFunc(list.Executions, func(s api.ExecutionSummary) bool { return s.ExecutionID == id }); n < 0 || !strings.Contains(list.Executions[n].ErrorSummary, "cannot be read") {
				t.Errorf("it is not listed as failed: %+v", list)
			}
			acts := want[api.Activations](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations", nil), http.StatusOK)
			if len(acts.Activations) != 2 {
				t.Errorf("activations %+v", acts)
			}
			want[api.NodeExecution](t, x.call(t, "viewer", "GET", "/executions/"+id+"/activations/w", nil), http.StatusOK)
			for words, end := range map[string]string{"execution": "cannot be read", "flow": `"flow.failed"`} {
				events, status := x.follow(t, "viewer", "/executions/"+id+"/events?vocabulary="+words, "", nil)
				if last := len(events) - 1; status != http.StatusOK || last < 1 || !strings.Contains(events[last].Data, end) {
					t.Errorf("%s: the stream answers %d and says %+v", words, status, events)
					t.Logf("%s", x.call(t, "viewer", "GET", "/executions/"+id+"/events?vocabulary="+words, nil).body)
				}
			}
			// It is final: nothing is appended any more, whatever is tried.
			before := e.Seq
			for _, action := range []api.ActionRequest{{Action: "cancel"}, {Action: "retry_node", NodeID: "w"}, {Action: "skip_node", NodeID: "w"}} {
				if a := x.act(t, id, action); a.status != http.StatusConflict {
					t.Errorf("%s: %d %s", action.Action, a.status, a.body)
				}
			}
			if after := x.seq(t, id); after != before {
				t.Errorf("the journal went from %d to %d", before, after)
			}
		})
	}
}

// What a newer version of Tandem has written is not unreadable: nothing is ended for it.
func TestUnreadable_NotForANewerVersion(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, waitFlow)
	id := x.waiting(t, "waits")
	damage(t, x.Instance, id, `{"facts":[{"type":"something_new","fact":{}}]}`)
	f := refused(t, x.act(t, id, api.ActionRequest{Action: "cancel"}), http.StatusInternalServerError, "internal")
	if !strings.Contains(f.Detail, "newer version") {
		t.Errorf("refused with %q", f.Detail)
	}
	if e := x.read(t, id); engine.Status(e.Status).Final() {
		t.Errorf("it was ended: %+v", e.Error)
	}
}

// A process that starts ends what it cannot read, once; and a parent that waits learns of it.
func TestUnreadable_AfterARestart(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	i.saveText(t, waitFlow)
	i.saveText(t, `
metadata: {id: parent, name: parent, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: sub, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: waits, revision: latest}}
connections:
  - {from_node: start, to_node: sub}
`)
	parent := i.startText(t, "parent", `{}`)
	x := &site{Instance: i}
	x.reaches(t, parent, engine.StatusWaiting)
	if _, err := i.host.Act(t.Context(), user, host.Request{Execution: parent, Action: host.ActionLook}); err != nil { // it has started its child by then
		t.Fatal(err)
	}
	page, err := i.stores.Executions.List(t.Context(), identity.System("default"), store.ExecutionQuery{Parent: parent})
	if err != nil || len(page.Executions) != 1 {
		t.Fatalf("children %+v, %v", page, err)
	}
	child := page.Executions[0].ID
	x.reaches(t, child, engine.StatusWaiting)
	other := i.startText(t, "waits", `{}`)
	x.reaches(t, other, engine.StatusWaiting)
	damage(t, i, child, `{"facts":[`)
	damage(t, i, other, poisoned(t, 4, "w"))
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	ends := map[string]string{}
	for range 2 {
		i = openInstance(t, dir)
		for _, id := range []string{child, other, parent} {
			e := i.ends(t, id, engine.StatusError)
			if !strings.Contains(e.Error, "cannot be read") {
				t.Errorf("execution %q ended with %q", id, e.Error)
			}
			rows := 0
			for _, err := range i.stores.Journal.Rows(t.Context(), user, id, 0) {
				if err != nil {
					t.Fatal(err)
				}
				rows++
			}
			if end := fmt.Sprint(e.Ended, rows); ends[id] != "" && ends[id] != end {
				t.Errorf("execution %q was ended twice: %s, then %s", id, ends[id], end)
			} else {
				ends[id] = end
			}
		}
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
