package app

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"tandem/api"
	"tandem/human"
	"tandem/store"
	"tandem/store/sqlite/datadir"
	"tandem/store/sqlite/sqlitetest"
)

// A data directory of a version that kept no questions: what was asked then is asked again, under the id that it would have
// had, and can be answered.
func TestPeople_AsksAgainAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	i := openInstance(t, dir)
	i.saveText(t, askOf("older", "IN_APP_APPROVAL", `{title: Refund, description: 'Refund {{customer}}?', timeout_seconds: 3600, timeout_action: continue}`))
	events, _, stop := i.desk.Watch("default")
	execution := i.startText(t, "older", `{"customer":"Ann"}`)
	before := (<-events).Interaction
	stop()
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, datadir.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"hil_interactions", "hil_approvers", "workflow_execution_pauses"} {
		if _, err := db.Exec("DELETE FROM " + table); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	i = openInstance(t, dir)
	defer func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}()
	events, _, stop = i.desk.Watch("default")
	defer stop()
	after, err := i.stores.Interactions.Get(t.Context(), user, before.ID)
	if err != nil { // it is asked right now
		after = (<-events).Interaction
	}
	if after.ID != before.ID || after.Execution != execution || after.Status != store.InteractionPending || after.Request == nil {
		t.Fatalf("asked again: %+v", after)
	}
	if _, err := i.desk.Respond(t.Context(), user, before.ID, human.Submission{Data: []byte(`{"action":"approve"}`)}); err != nil {
		t.Fatal(err)
	}
	i.ends(t, execution, "SUCCESS")
}

// Who is asked may answer wherever questions are answered, whatever their role; that gives no right to signal nodes.
func TestPeople_AViewerAnswers(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	execution, _ := x.askedIn(t, askOf("viewers", "IN_APP_APPROVAL", `{title: "?", approvers: ["user:viewer"]}`), `{}`)
	answer := api.InputRequest{NodeID: "ask", InputData: json.RawMessage(`{"action":"approve"}`)}
	refused(t, x.call(t, "approver", "POST", "/executions/"+execution+"/input", answer), http.StatusForbidden, "forbidden")
	want[api.ActionResponse](t, x.call(t, "viewer", "POST", "/executions/"+execution+"/input", answer), http.StatusOK)
	waits := x.execute(t, x.save(t, `metadata: {id: waits, name: waits, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: w, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go}}
connections:
  - {from_node: start, to_node: w}
`).Workflow.ID, api.ExecuteRequest{})
	refused(t, x.call(t, "viewer", "POST", "/executions/"+waits+"/input", api.InputRequest{NodeID: "w", InputData: json.RawMessage(`{"signal":"go"}`)}), http.StatusForbidden, "forbidden")
}
