package app

import (
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// audited returns the newest entry of the audit log with an action about something.
func (i *Instance) audited(t testing.TB, action, id string) store.AuditEntry {
	t.Helper()
	list, err := i.stores.Audit.List(t.Context(), identity.System(defaultWorkspace), store.AuditQuery{Action: action, ObjectID: id, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatalf("the audit log has no %s of %q", action, id)
	}
	return list[0]
}

// What is done to executions is entered as it is done, also where the execution answers later than it is asked.
func TestAudit_Executions(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, waitFlow)
	x.save(t, askOf("asks", "IN_APP_APPROVAL", `{title: "Pay?", approvers: [operator]}`))
	id := x.waiting(t, "waits")
	if e := x.audited(t, "execution.start", id); e.User == "" || e.Means.Kind != identity.ByToken || e.Address != "127.0.0.1" {
		t.Errorf("the start: %+v", e)
	}
	for _, action := range []string{"pause", "resume"} {
		want[api.ActionResponse](t, x.call(t, "operator", http.MethodPost, "/executions/"+id+"/actions", api.ActionRequest{Action: action, Reason: "why not"}), http.StatusOK)
		if e := x.audited(t, "execution."+action, id); e.User != "operator" || !strings.Contains(string(e.Detail), "why not") {
			t.Errorf("%s: %+v", action, e)
		}
	}
	want[api.ActionResponse](t, x.raw(t, "operator", http.MethodPost, "/executions/"+id+"/input", `{"node_id":"w","input_data":{"signal":"go","payload":{"canary":1}}}`), http.StatusOK)
	if e := x.audited(t, "execution.signal", id); e.User != "operator" || strings.Contains(string(e.Detail), "canary") {
		t.Errorf("a signal: %+v %s", e, e.Detail)
	}
	asking := x.execute(t, "asks", api.ExecuteRequest{})
	x.reaches(t, asking, engine.StatusWaitingForHuman)
	question := x.read(t, asking).Questions[0].InteractionID
	want[api.ActionResponse](t, x.raw(t, "operator", http.MethodPost, "/executions/"+asking+"/input", `{"node_id":"ask","input_data":{"action":"approve"}}`), http.StatusOK)
	if e := x.audited(t, "interaction.respond", question); e.User != "operator" || !strings.Contains(string(e.Detail), "confirmed") {
		t.Errorf("an answer: %+v %s", e, e.Detail)
	}
}

// What is done on the machine is entered as that: the first start, and commands without a server.
func TestAudit_OnTheMachine(t *testing.T) {
	t.Parallel()
	i := openInstance(t, sqlitetest.Dir(t))
	defer i.Close()
	secret, err := i.Bootstrap(t.Context(), "")
	if err != nil || secret == "" {
		t.Fatal(secret, err)
	}
	token, _, err := i.stores.Tokens.Resolve(t.Context(), identity.System(""), identity.HashSecret(secret), 1)
	if err != nil {
		t.Fatal(err)
	}
	for action, id := range map[string]string{"user.create": firstUser, "token.create": token.ID} {
		if e := i.audited(t, action, id); e.User != identity.LocalUser || e.Means.Kind != identity.ByLocal || !strings.HasPrefix(e.Means.Address, "os:") || strings.Contains(string(e.Detail), secret) {
			t.Errorf("%s: %+v", action, e)
		}
	}
	i.saveText(t, doorFlow)
	i.saveText(t, doorFlow) // which changes nothing
	list, err := i.stores.Audit.List(t.Context(), identity.System(defaultWorkspace), store.AuditQuery{Action: "workflow.save"})
	if err != nil || len(list) != 1 {
		t.Errorf("keeping a workflow left %+v, %v", list, err)
	}
}
