package server

import (
	"strings"
	"testing"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

// The admins of the first workspace make others, whose admins have nothing to do with it.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	w, _ := auditWorld(t) // its first workspace is a
	const path = route.Prefix + "/workspaces"
	made := read[api.NewWorkspace](t, w.admin("POST", path, `{"id":"sales","name":"Sales","admin":{"id":"ann","email":"ann@example.com"}}`).want(t, 201))
	if made.Workspace.ID != "sales" || made.Workspace.Name != "Sales" || made.User.ID != "ann" || made.User.Workspace != "sales" || made.Token.MadeBy != "admin-user" || made.Secret == "" {
		t.Errorf("%+v", made)
	}
	me := read[api.User](t, w.call(made.Secret, "GET", route.Prefix+"/users/me", "").want(t, 200))
	users := read[api.Users](t, w.call(made.Secret, "GET", route.Prefix+"/users", "").want(t, 200))
	if me.Workspace != "sales" || strings.Join(me.Roles, ",") != "admin" || len(users.Users) != 1 || users.Users[0].ID != "ann" {
		t.Errorf("me %+v, users %+v", me, users)
	}
	// What was done stands in both logs, and nobody of the new workspace reads the other.
	if e := w.log()[0]; e.Action != "workspace.create" || e.ObjectID != "sales" || e.User != "admin-user" {
		t.Errorf("the log of the first workspace says %+v", e)
	}
	list, err := w.stores.Audit.List(t.Context(), identity.System("sales"), store.AuditQuery{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range list {
		actions = append(actions, e.Action+" of "+e.User)
	}
	if strings.Join(actions, "; ") != "token.create of admin-user; user.create of admin-user" {
		t.Errorf("the log of the new workspace says %q", actions)
	}

	// Others make none, see their own alone, and learn nothing of which there are.
	for _, body := range []string{`{"id":"a"}`, `{"id":"sales"}`, `{"id":"fresh"}`} {
		for _, token := range []string{w.other, made.Secret} {
			w.call(token, "POST", path, body).problem(t, 403, fault.Forbidden)
		}
	}
	w.call(w.tokens[identity.Editor], "POST", path, `{"id":"fresh"}`).problem(t, 403, fault.Forbidden)
	w.call(w.tokens[identity.Editor], "GET", path, "").problem(t, 403, fault.Forbidden)
	names := func(token string) string {
		var ids []string
		for _, one := range read[api.Workspaces](t, w.call(token, "GET", path, "").want(t, 200)).Workspaces {
			ids = append(ids, one.ID)
		}
		return strings.Join(ids, " ")
	}
	if all, own := names(w.tokens[identity.Admin]), names(made.Secret); all != "a b sales" || own != "sales" {
		t.Errorf("the first sees %q, another %q", all, own)
	}
	w.admin("POST", path, `{"id":"sales"}`).problem(t, 409, fault.Conflict)
	for _, body := range []string{`{"id":"Sales!"}`, `{"id":""}`, `{}`, `{"id":"x","admin":{"id":"me"}}`, `{"id":"x","admin":{"id":"ann","email":"nowhere"}}`, `{"id":"x","name":"` + strings.Repeat("n", 201) + `"}`} {
		w.admin("POST", path, body).problem(t, 422, fault.InvalidInput)
	}
	if all := names(w.tokens[identity.Admin]); all != "a b sales" {
		t.Errorf("there are %q", all)
	}
}

// Only somebody who has the machine can make a token of another workspace.
func TestWorkspaces_Token(t *testing.T) {
	t.Parallel()
	w, _ := auditWorld(t)
	w.admin("POST", route.Prefix+"/workspaces/b/tokens", `{}`).problem(t, 403, fault.Forbidden)
	w.call(w.other, "POST", route.Prefix+"/workspaces/a/tokens", `{}`).problem(t, 403, fault.Forbidden)
}

// A workspace is renamed by its admins and by those of the first, and deleted by the latter once it holds nothing; nobody gets in
// afterwards.
func TestWorkspaces_RenameAndDelete(t *testing.T) {
	t.Parallel()
	w, _ := auditWorld(t)
	const path = route.Prefix + "/workspaces"
	made := read[api.NewWorkspace](t, w.admin("POST", path, `{"id":"sales","admin":{"id":"ann"}}`).want(t, 201))
	if got := read[api.Workspace](t, w.call(made.Secret, "PATCH", path+"/sales", `{"name":" Ours "}`).want(t, 200)); got.Name != "Ours" || got.ID != "sales" {
		t.Errorf("%+v", got)
	}
	w.admin("PATCH", path+"/sales", `{"name":"Theirs"}`).want(t, 200)
	if e := w.log()[0]; e.Action != "workspace.update" || e.ObjectID != "sales" {
		t.Errorf("the log says %+v", e)
	}
	for _, id := range []string{"a", "b", "nowhere"} { // nobody else's, and no telling which there are
		w.call(made.Secret, "PATCH", path+"/"+id, `{"name":"x"}`).problem(t, 404, fault.NotFound)
		w.call(made.Secret, "DELETE", path+"/"+id, "").problem(t, 404, fault.NotFound)
	}
	w.call(made.Secret, "DELETE", path+"/sales", "").problem(t, 403, fault.Forbidden)
	w.call(w.tokens[identity.Editor], "PATCH", path+"/a", `{"name":"x"}`).problem(t, 403, fault.Forbidden)
	for _, body := range []string{`{}`, `{"name":""}`, `{"name":"  "}`, `{"name":"x","id":"y"}`, `{"name":"` + strings.Repeat("n", 201) + `"}`} {
		w.admin("PATCH", path+"/sales", body).problem(t, 422, fault.InvalidInput)
	}

	w.admin("DELETE", path+"/a", "").problem(t, 409, fault.Conflict) // the first one
	w.call(made.Secret, "POST", route.Prefix+"/credentials", `{"name":"c","type":"slack_bot","data":{"token":"t"}}`).want(t, 201)
	if p := w.admin("DELETE", path+"/sales", "").problem(t, 409, fault.Conflict); !strings.Contains(p.Detail, "1 credentials") {
		t.Errorf("it is refused with %q", p.Detail)
	}
	w.call(made.Secret, "GET", route.Prefix+"/users/me", "").want(t, 200)
	w.call(made.Secret, "DELETE", route.Prefix+"/credentials/c", "").want(t, 204)
	w.admin("DELETE", path+"/sales", "").want(t, 204)
	w.call(made.Secret, "GET", route.Prefix+"/users/me", "").problem(t, 401, fault.Unauthorized)
	w.admin("DELETE", path+"/sales", "").problem(t, 404, fault.NotFound)
	w.admin("POST", path, `{"id":"sales"}`).problem(t, 409, fault.Conflict)
	for _, one := range read[api.Workspaces](t, w.admin("GET", path, "").want(t, 200)).Workspaces {
		if one.ID == "sales" {
			t.Error("it is listed")
		}
	}
	// Its log is the record of what was done in it.
	if list, err := w.stores.Audit.List(t.Context(), identity.System("sales"), store.AuditQuery{Limit: 10}); err != nil || len(list) == 0 {
		t.Errorf("its log has %d entries, %v", len(list), err)
	}
}

// The numbers of a tenant are its own.
func TestWorkspaces_Metrics(t *testing.T) {
	t.Parallel()
	w, _ := auditWorld(t)
	ended(w, 1)
	all, own := w.admin("GET", "/metrics", "").want(t, 200).body, w.call(w.other, "GET", "/metrics", "").want(t, 200).body
	wantText(t, all, "tandem_http_request_duration_seconds")
	wantText(t, own, `tandem_executions{status="RUNNING"} 0`)
	for line := range strings.Lines(own) {
		if !strings.HasPrefix(line, "tandem_executions{") && !strings.HasPrefix(line, "#") {
			t.Errorf("another workspace is told %s", line)
		}
	}
}
