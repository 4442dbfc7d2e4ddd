package app

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/workflow"
)

// chain is a workflow of two nodes.
func chain(id string) string {
	return `{"metadata":{"id":"` + id + `","name":"The Chain","description":"two nodes","tags":["x","y"],"settings":{"timeout_seconds":60}},
"nodes":[{"id":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"},
 {"id":"out","description":"d","type":"CALL","subtype":"EMPTY","configurations":{"pass_through":true}}],
"connections":[{"from_node":"start","to_node":"out"}]}`
}

const waitFlow = `
metadata: {id: waits, name: waits, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: w, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: signal, signal_name: go, timeout_seconds: 1000}}
  - {id: out, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: w}
  - {from_node: w, to_node: out, output_key: completed}
`

func TestAPI_Workflows(t *testing.T) {
	t.Parallel()
	x := openSite(t)

	t.Run("CreatesReadsAndLists", func(t *testing.T) {
		t.Parallel()
		saved := x.save(t, chain("made"))
		if saved.Workflow.ID != "made" || saved.Workflow.Revision != 1 || !saved.Created || saved.Workflow.DeploymentStatus != "draft" || saved.Workflow.CreatedBy != "editor" {
			t.Errorf("saved %+v", saved)
		}
		a := x.call(t, "viewer", "GET", "/workflows/made", nil)
		w := want[api.Workflow](t, a, http.StatusOK)
		if len(w.Nodes) != 2 || len(w.Connections) != 1 || w.Metadata.Name != "The Chain" || a.header.Get("ETag") != `"1"` || !strings.Contains(string(w.Metadata.Settings), "60") {
			t.Errorf("read %s, %v", a.body, a.header)
		}
		for query, found := range map[string]bool{
			"?q=made": true, "?q=nothing-like-it": false, "?tags=x,y&q=made": true, "?tags=x&tags=y&q=made": true, "?tags=x,z&q=made": false,
			"?deployment_status=draft&q=made": true, "?deployment_status=deployed&q=made": false, "?q=made&page=2": false, "?q=made&page_size=1": true,
		} {
			list := want[api.Workflows](t, x.call(t, "viewer", "GET", "/workflows"+query, nil), http.StatusOK)
			if len(list.Workflows) != map[bool]int{true: 1}[found] {
				t.Errorf("%s lists %d", query, len(list.Workflows))
			}
		}
		for _, query := range []string{"?page=0", "?page_size=501", "?page_size=x", "?deployment_status=gone", "?unknown=1"} {
			refused(t, x.call(t, "viewer", "GET", "/workflows"+query, nil), http.StatusUnprocessableEntity, "invalid_input")
		}
		refused(t, x.call(t, "viewer", "GET", "/workflows/no-such", nil), http.StatusNotFound, "not_found")
		refused(t, x.call(t, "viewer", "GET", "/workflows/made?revision=9", nil), http.StatusNotFound, "not_found")
	})

	t.Run("MakesIDs", func(t *testing.T) {
		t.Parallel()
		text := "metadata: {name: 'Send the Mail!', description: d}\nnodes: [{id: a, description: d, type: CALL, subtype: EMPTY}]\n"
		first, second := x.save(t, text), x.save(t, text)
		if first.Workflow.ID != "send-the-mail" || second.Workflow.ID != "send-the-mail-2" {
			t.Errorf("ids %q and %q", first.Workflow.ID, second.Workflow.ID)
		}
		if id := x.save(t, "metadata: {name: 发送邮件, description: d}\nnodes: [{id: a, description: d, type: CALL, subtype: EMPTY}]\n").Workflow.ID; !strings.HasPrefix(id, "workflow-") {
			t.Errorf("id %q", id)
		}
		x.save(t, chain("taken"))
		refused(t, x.call(t, "editor", "POST", "/workflows", chain("taken")), http.StatusConflict, "conflict")
		for _, id := range []string{"a/b", "..", "a b", strings.Repeat("x", 200)} {
			if f := refused(t, x.call(t, "editor", "POST", "/workflows", chain(id)), http.StatusUnprocessableEntity, "invalid_input"); !slices.Equal(fields(f), []string{"metadata.id"}) {
				t.Errorf("id %q: %+v", id, f)
			}
		}
	})

	t.Run("RefusesWithEverythingThatIsWrong", func(t *testing.T) {
		t.Parallel()
		broken := "metadata: {name: n, description: d}\nnodes:\n  - {id: a, description: d, type: NOPE, subtype: X}\n  - {id: a, description: d, type: CALL, subtype: EMPTY}\nconnections:\n  - {from_node: a, to_node: gone}\n"
		f := refused(t, x.call(t, "editor", "POST", "/workflows", broken), http.StatusUnprocessableEntity, "invalid")
		if len(f.Errors) < 3 || f.Errors[0].Line != 3 || f.Errors[0].Code == "" || f.Errors[0].Path == "" {
			t.Errorf("problem %+v", f)
		}
		v := want[api.Validation](t, x.call(t, "viewer", "POST", "/workflows/validate", broken), http.StatusOK)
		if v.Valid || len(v.Problems) < 3 {
			t.Errorf("validation %+v", v)
		}
		v = want[api.Validation](t, x.call(t, "viewer", "POST", "/workflows/validate", chain("any")), http.StatusOK)
		if !v.Valid || len(v.Problems) != 0 {
			t.Errorf("validation %+v", v)
		}
		for body, kind := range map[string]string{"a: [": "application/json", chain("any"): "image/png", "{": "application/json", "  ": "application/yaml"} {
			a := x.call(t, "editor", "POST", "/workflows", body, "Content-Type", kind)
			if a.status != http.StatusUnprocessableEntity {
				t.Errorf("%q as %s: %d %s", body, kind, a.status, a.body)
			}
		}
		if a := x.call(t, "editor", "POST", "/workflows", nil); a.status != http.StatusUnprocessableEntity && a.status != http.StatusBadRequest {
			t.Errorf("no body: %d %s", a.status, a.body)
		}
	})

	t.Run("Changes", func(t *testing.T) {
		t.Parallel()
		x.save(t, strings.Replace(waitFlow, "id: waits", "id: changing", 1))
		execution := x.execute(t, "changing", api.ExecuteRequest{})
		x.reaches(t, execution, engine.StatusWaiting)
		text := strings.Replace(strings.Replace(waitFlow, "id: waits", "id: changing", 1), "name: waits", "name: other", 1)
		saved := want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/changing", text, "If-Match", `"1"`), http.StatusOK)
		if saved.Workflow.Revision != 2 || saved.WaitingOnOlder != 1 || !saved.Created || saved.Workflow.UpdatedBy != "editor" {
			t.Errorf("saved %+v", saved)
		}
		if again := want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/changing", text), http.StatusOK); again.Created || again.Workflow.Revision != 2 {
			t.Errorf("the same again: %+v", again)
		}
		refused(t, x.call(t, "editor", "PUT", "/workflows/changing", text, "If-Match", `"1"`), http.StatusConflict, "conflict")
		refused(t, x.call(t, "editor", "PUT", "/workflows/changing", text, "If-Match", "new"), http.StatusUnprocessableEntity, "invalid_input")
		refused(t, x.call(t, "editor", "PUT", "/workflows/no-such", chain("no-such")), http.StatusNotFound, "not_found")
		if f := refused(t, x.call(t, "editor", "PUT", "/workflows/changing", chain("another")), http.StatusUnprocessableEntity, "invalid_input"); !slices.Equal(fields(f), []string{"metadata.id"}) {
			t.Errorf("problem %+v", f)
		}
		revisions := want[api.Revisions](t, x.call(t, "viewer", "GET", "/workflows/changing/revisions?page_size=1", nil), http.StatusOK)
		if revisions.TotalCount != 2 || len(revisions.Revisions) != 1 || revisions.Revisions[0].Revision != 2 {
			t.Errorf("revisions %+v", revisions)
		}
		if old := want[api.Workflow](t, x.call(t, "viewer", "GET", "/workflows/changing?revision=1", nil), http.StatusOK); old.Metadata.Name != "waits" || old.Metadata.Revision != 1 {
			t.Errorf("revision 1: %+v", old.Metadata)
		}
		refused(t, x.call(t, "editor", "DELETE", "/workflows/changing", nil), http.StatusConflict, "conflict")
		want[api.ActionResponse](t, x.act(t, execution, api.ActionRequest{Action: "cancel"}), http.StatusOK)
		x.reaches(t, execution, engine.StatusCanceled)
		if a := x.call(t, "editor", "DELETE", "/workflows/changing", nil); a.status != http.StatusNoContent {
			t.Errorf("delete: %d %s", a.status, a.body)
		}
		refused(t, x.call(t, "viewer", "GET", "/workflows/changing", nil), http.StatusNotFound, "not_found")
		refused(t, x.call(t, "editor", "DELETE", "/workflows/changing", nil), http.StatusNotFound, "not_found")
		refused(t, x.call(t, "viewer", "GET", "/workflows/changing/revisions", nil), http.StatusNotFound, "not_found")
		if e := x.read(t, execution); e.Status != "CANCELED" || e.Revision != 1 { // what ran can still be read
			t.Errorf("execution %+v", e)
		}
	})

	t.Run("Copies", func(t *testing.T) {
		t.Parallel()
		x.save(t, strings.Replace(chain("original"), "The Chain", "The Original", 1))
		first := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows/original/copy", nil), http.StatusCreated)
		if first.Workflow.ParentWorkflow != "original" || first.Workflow.Name != "The Original (copy)" || first.Workflow.ID != "the-original-copy" {
			t.Errorf("copy %+v", first.Workflow)
		}
		named := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows/original/copy", api.CopyRequest{ID: "second", Name: "Second"}), http.StatusCreated)
		if named.Workflow.ID != "second" || named.Workflow.Name != "Second" {
			t.Errorf("copy %+v", named.Workflow)
		}
		refused(t, x.call(t, "editor", "POST", "/workflows/original/copy", api.CopyRequest{ID: "second"}), http.StatusConflict, "conflict")
		refused(t, x.call(t, "editor", "POST", "/workflows/original/copy", `{"unknown":1}`), http.StatusUnprocessableEntity, "invalid_input")
		refused(t, x.call(t, "editor", "POST", "/workflows/no-such/copy", nil), http.StatusNotFound, "not_found")
	})

	t.Run("Deploys", func(t *testing.T) {
		t.Parallel()
		x.save(t, chain("deployed"))
		refused(t, x.call(t, "editor", "POST", "/workflows/deployed/undeploy", nil), http.StatusConflict, "conflict")
		if m := want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/deployed/deploy", nil), http.StatusOK); m.DeploymentStatus != "deployed" {
			t.Errorf("deployed %+v", m)
		}
		if m := want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/deployed/undeploy", nil), http.StatusOK); m.DeploymentStatus != "undeployed" {
			t.Errorf("undeployed %+v", m)
		}
		refused(t, x.call(t, "editor", "POST", "/workflows/deployed/undeploy", nil), http.StatusConflict, "conflict")
		refused(t, x.call(t, "editor", "POST", "/workflows/no-such/deploy", nil), http.StatusNotFound, "not_found")

		clocked := "metadata: {id: clocked, name: clocked, description: d}\nnodes: [{id: s, description: d, type: TRIGGER, subtype: MANUAL}, {id: c, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: resource}}]\nconnections: [{from_node: s, to_node: c}]\n"
		if f := refused(t, x.call(t, "editor", "POST", "/workflows", clocked), http.StatusUnprocessableEntity, "invalid"); !slices.Equal(fields(f), []string{"nodes[1].configurations.wait_type"}) {
			t.Errorf("problem %+v", f)
		}
		older, _ := workflow.Parse([]byte(clocked), workflow.Options{Kinds: x.kinds}) // saved when it was not refused yet
		if _, err := x.Save(t.Context(), identity.Principal{Workspace: "default", User: "editor", Roles: []identity.Role{identity.Editor}}, older.Definition); err != nil {
			t.Fatal(err)
		}
		f := refused(t, x.call(t, "editor", "POST", "/workflows/clocked/deploy", nil), http.StatusUnprocessableEntity, "invalid")
		if !strings.Contains(f.Detail, "wait_type") || !slices.Equal(fields(f), []string{"nodes[1].configurations.wait_type"}) {
			t.Errorf("problem %+v", f)
		}
		w := want[api.Workflow](t, x.call(t, "viewer", "GET", "/workflows/clocked", nil), http.StatusOK)
		if w.Metadata.DeploymentStatus != "failed" || w.Metadata.DeploymentError != f.Detail {
			t.Errorf("metadata %+v", w.Metadata)
		}
		if a := x.call(t, "operator", "POST", "/workflows/clocked/execute", api.ExecuteRequest{}); a.status != http.StatusUnprocessableEntity {
			t.Errorf("what cannot be run was started: %d %s", a.status, a.body)
		}
	})

	t.Run("LetsOnlySomeDoIt", func(t *testing.T) {
		t.Parallel()
		x.save(t, chain("roles"))
		for _, c := range []struct {
			method, path string
			body         any
			roles        string
		}{
			{"GET", "/workflows", nil, "admin editor operator approver viewer"},
			{"GET", "/workflows/roles", nil, "admin editor operator approver viewer"},
			{"GET", "/workflows/roles/revisions", nil, "admin editor operator approver viewer"},
			{"POST", "/workflows/validate", chain("roles"), "admin editor operator approver viewer"},
			{"POST", "/workflows", chain("roles"), "admin editor"},
			{"PUT", "/workflows/roles", chain("roles"), "admin editor"},
			{"POST", "/workflows/roles/copy", nil, "admin editor"},
			{"POST", "/workflows/roles/deploy", nil, "admin editor"},
			{"POST", "/workflows/roles/undeploy", nil, "admin editor"},
			{"POST", "/workflows/roles/execute", api.ExecuteRequest{}, "admin editor operator"},
			{"DELETE", "/workflows/roles-not-there", nil, "admin editor"},
		} {
			for _, role := range []string{"admin", "editor", "operator", "approver", "viewer"} {
				a := x.call(t, role, c.method, c.path, c.body)
				if allowed := slices.Contains(strings.Fields(c.roles), role); allowed == (a.status == http.StatusForbidden) {
					t.Errorf("%s %s as %s: %s", c.method, c.path, role, strconv.Itoa(a.status))
				}
			}
			if a := x.call(t, "nobody", c.method, c.path, c.body); a.status != http.StatusUnauthorized {
				t.Errorf("%s %s without a token: %d", c.method, c.path, a.status)
			}
		}
	})

	t.Run("IsUnknownToAnotherWorkspace", func(t *testing.T) {
		t.Parallel()
		x.save(t, chain("secret"))
		for _, c := range []struct {
			method, path string
			body         any
		}{
			{"GET", "/workflows/secret", nil}, {"PUT", "/workflows/secret", chain("secret")}, {"DELETE", "/workflows/secret", nil}, {"POST", "/workflows/secret/copy", nil},
			{"GET", "/workflows/secret/revisions", nil}, {"POST", "/workflows/secret/deploy", nil}, {"POST", "/workflows/secret/undeploy", nil},
			{"POST", "/workflows/secret/execute", api.ExecuteRequest{}},
		} {
			refused(t, x.call(t, "stranger", c.method, c.path, c.body), http.StatusNotFound, "not_found")
		}
		if list := want[api.Workflows](t, x.call(t, "stranger", "GET", "/workflows?q=secret", nil), http.StatusOK); len(list.Workflows) != 0 {
			t.Errorf("the stranger sees %+v", list)
		}
		if saved := want[api.Saved](t, x.call(t, "stranger", "POST", "/workflows", chain("secret")), http.StatusCreated); saved.Workflow.Revision != 1 {
			t.Errorf("the same id in another workspace: %+v", saved)
		}
	})
}
