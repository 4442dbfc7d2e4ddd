package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/identity"
	"tandem/store"
)

// keep makes a credential and returns its id.
func (x *site) keep(t testing.TB, name, kind, data string) string {
	t.Helper()
	return want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"`+name+`","type":"`+kind+`","data":`+data+`}`), http.StatusCreated).ID
}

// keyedCall is a workflow with one node, which calls an address with a credential.
func keyedCall(id, url, credential string) string {
	return fmt.Sprintf(`
metadata: {id: %s, name: %[1]s}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: d}
  - {id: call, type: ACTION, subtype: HTTP_REQUEST, description: d, configurations: {url: %q, credential_id: %q}}
connections: [{from_node: start, to_node: call}]
`, id, url, credential)
}

// puts puts a revision in force, whatever it lacks.
func (x *site) puts(t *testing.T, workflow string, revision int64) {
	t.Helper()
	p := identity.System("default")
	r, err := x.stores.Workflows.Revision(t.Context(), p, workflow, revision)
	if err != nil {
		t.Fatal(err)
	}
	d := store.Deployment{WorkflowID: workflow, Revision: revision, Hash: r.Hash, Time: 1}
	if err := errors.Join(x.stores.Triggers.Prepare(t.Context(), p, d), x.stores.Triggers.PutInForce(t.Context(), p, d)); err != nil {
		t.Fatal(err)
	}
}

// A node finds its credential by its id and by its name; of one that is not there it says what is similar.
func TestCredentials_ByName(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	seen := make(chan string, 4)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") }))
	t.Cleanup(service.Close)
	id := x.keep(t, "Shop key", "http_auth", `{"scheme":"bearer","token":"0123456789abcdef"}`)
	for flow, credential := range map[string]string{"by_id": id, "by_name": "Shop key"} {
		saved := x.save(t, keyedCall(flow, service.URL, credential))
		if slices.ContainsFunc(saved.Problems, func(p api.Problem) bool { return strings.HasPrefix(p.Code, "unknown_") }) {
			t.Errorf("%s: %+v", flow, saved.Problems)
		}
		x.reaches(t, x.execute(t, flow, api.ExecuteRequest{}), engine.StatusSuccess)
		if got := <-seen; got != "Bearer 0123456789abcdef" {
			t.Errorf("%s: the service saw %q", flow, got)
		}
	}
	saved := x.save(t, keyedCall("by_none", service.URL, "Shop kay"))
	if !warned(saved.Problems, "unknown_credential", "nodes[1].configurations.credential_id", `did you mean "Shop key"?`) {
		t.Errorf("%+v", saved.Problems)
	}
	failed := x.execute(t, "by_none", api.ExecuteRequest{})
	x.reaches(t, failed, engine.StatusError)
	if e := x.read(t, failed).Error; e == nil || e.ErrorCode != string(fault.CredentialMissing) || !strings.Contains(e.ErrorMessage, `did you mean "Shop key"?`) {
		t.Errorf("%+v", e)
	}
	// The id of one cannot be the name of another, and names are unique.
	for _, name := range []string{id, "Shop key"} {
		refused(t, x.call(t, "admin", "POST", "/credentials", `{"name":"`+name+`","type":"http_auth","data":{"scheme":"bearer","token":"t"}}`), http.StatusConflict, "conflict")
	}
	// The routes take both, too.
	for _, name := range []string{id, "Shop%20key"} {
		if got := want[api.Credential](t, x.call(t, "editor", "GET", "/credentials/"+name, nil), http.StatusOK); got.ID != id {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if f := refused(t, x.call(t, "editor", "GET", "/credentials/shop_key", nil), http.StatusNotFound, "not_found"); !strings.Contains(f.Detail, `did you mean "Shop key"?`) {
		t.Errorf("%+v", f)
	}
}

// A question that names its credential by name is called back, and told apart from others, by the id.
func TestPeopleSecurity_CredentialByName(t *testing.T) {
	t.Parallel()
	const secret = "7b1f0c9e-4d-hook-by-name"
	g, service := openGuarded(t), newHook(t)
	id := g.keep(t, "the hook", "webhook_secret", `{"secret":"`+secret+`"}`)
	i := g.question(t, `, approvers: ["user:approver"], channel_type: webhook, webhook_url: "`+service.URL+`", credential_id: "the hook"`)
	to := service.next(t).Get("callback_url").Str
	if !strings.HasSuffix(to, "/"+id) {
		t.Errorf("it is called back at %q", to)
	}
	body := `{"interaction_id":"` + i.ID + `","responder":"user:approver","response_data":` + approved + `}`
	if got := callback(t, to, secret, time.Now(), body); got.status != http.StatusOK {
		t.Errorf("answer %d %s", got.status, got.body)
	}
	if got := g.interaction(t, i.ID); got.Status != "completed" {
		t.Errorf("%+v", got)
	}
}

// What uses a credential is listed, and keeps it and its name.
func TestCredentials_Uses(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	id := x.keep(t, "model key", "openai", `{"api_key":"0123456789abcdef"}`)
	other := x.keep(t, "box", "imap", `{"host":"h","username":"u","password":"0123456789abcdef"}`)
	uses := func(name string) (list []string) {
		t.Helper()
		for _, u := range want[api.CredentialUses](t, x.call(t, "editor", "GET", "/credentials/"+name+"/uses", nil), http.StatusOK).Uses {
			list = append(list, fmt.Sprint(u.Kind, " ", u.ID, " ", u.Revision, " ", u.Deployed, " ", u.ByName, " ", strings.Join(u.Paths, ",")))
		}
		return list
	}
	if got := uses(id); len(got) > 0 {
		t.Errorf("a new one is used by %q", got)
	}
	x.save(t, keyedCall("gone", "http://127.0.0.1/", id))
	want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/gone", keyedCall("gone", "http://127.0.0.1/", "something else"), "Content-Type", "application/yaml"), http.StatusOK)
	x.save(t, keyedCall("named", "http://127.0.0.1/", "model key"))
	x.save(t, keyedCall("numbered", "http://127.0.0.1/", id))
	refused(t, x.call(t, "editor", "POST", "/workflows/numbered/deploy", nil), http.StatusUnprocessableEntity, "invalid") // a key of a model is not for calls
	x.puts(t, "numbered", 1)
	x.save(t, askFlow("asks", `  - {id: ask, type: HUMAN_IN_THE_LOOP, subtype: GMAIL_INTERACTION, description: d, configurations: {title: Q, recipient_emails: [a@x.org], credential_id: "{{which}}", imap_credential_id: box}}`+"\n"))
	want[api.NodeTemplate](t, x.call(t, "editor", "POST", "/node-templates", `{"id":"caller","kind":"ACTION.HTTP_REQUEST","name":"t","known_params":{"credential_id":"model key"}}`), http.StatusCreated)
	want[api.Profile](t, x.call(t, "editor", "PUT", "/llm/profiles/m", `{"provider":"openai","model":"m","credential_id":"model key"}`), http.StatusOK)
	want[api.MCPServer](t, x.call(t, "admin", "PUT", "/mcp/servers/tools", `{"transport":"http","url":"https://example.com/mcp","headers":{"X-Key":{"credential_id":"model key","field":"api_key"}}}`), http.StatusOK)
	wanted := []string{
		"mcp_server tools 0 false false headers.X-Key.credential_id", "node_template caller 0 false true credential_id", "profile m 0 false false credential_id",
		"workflow named 1 false true nodes[1].configurations.credential_id", "workflow numbered 1 true false nodes[1].configurations.credential_id",
	}
	if got := uses(id); !slices.Equal(got, wanted) {
		t.Errorf("got %q", got)
	}
	want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/numbered", keyedCall("numbered", "http://127.0.0.1/", "something else"), "Content-Type", "application/yaml"), http.StatusOK)
	if got := uses(id); !slices.Equal(got, wanted) { // the deployed revision is still in force
		t.Errorf("after another revision was saved: %q", got)
	}
	if got := uses("box"); !slices.Equal(got, []string{"workflow asks 1 false true nodes[1].configurations.imap_credential_id"}) {
		t.Errorf("got %q", got)
	}
	refused(t, x.call(t, "operator", "GET", "/credentials/box/uses", nil), http.StatusForbidden, "forbidden")

	// Another name breaks what has the name; another secret does not.
	renamed := `{"name":"key of models","type":"openai"}`
	f := refused(t, x.call(t, "admin", "PUT", "/credentials/"+id, renamed), http.StatusConflict, "conflict")
	if !strings.Contains(f.Detail, `workflow "named"; node template "caller"`) || strings.Contains(f.Detail, "numbered") || strings.Contains(f.Detail, "tools") || f.Details["uses"] == nil {
		t.Errorf("%+v", f)
	}
	want[api.Credential](t, x.call(t, "admin", "PUT", "/credentials/"+id, `{"name":"model key","type":"openai","data":{"api_key":"another-0123456789"}}`), http.StatusOK)
	want[api.Credential](t, x.call(t, "admin", "PUT", "/credentials/"+id+"?force=true", renamed), http.StatusOK)
	if got := uses(id); len(got) != 3 {
		t.Errorf("got %q", got)
	}
	f = refused(t, x.call(t, "admin", "DELETE", "/credentials/"+id, nil), http.StatusConflict, "conflict")
	if !strings.Contains(f.Detail, `workflow "numbered"; profile "m"; mcp server "tools"`) {
		t.Errorf("%+v", f)
	}
	if a := x.call(t, "admin", "DELETE", "/credentials/"+id+"?force=true", nil); a.status != http.StatusNoContent {
		t.Errorf("%d %s", a.status, a.body)
	}
	refused(t, x.call(t, "admin", "DELETE", "/credentials/"+other, nil), http.StatusConflict, "conflict")
	// Another workspace has nothing of it.
	if _, err := x.vault.Opener(identity.System("elsewhere"))(t.Context(), "box"); fault.CodeOf(err) != fault.CredentialMissing || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}
