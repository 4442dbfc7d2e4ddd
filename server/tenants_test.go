package server

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

// madeUp is the name of something that there is in no workspace.
const madeUp = "made-up-777"

// volatile is what differs from one answer to the next: times and ids that are made by chance.
var volatile = regexp.MustCompile(`\b[0-9]{13}\b|\b(tok|exec|conv|user|inv|ses|cred|tdm)_[A-Za-z0-9_-]+`) // read-only

// TestTenants_ForeignIsMissing tries every operation that names something with the ids of another workspace: nothing is read, nothing is
// written, and the answer is that to an id which there is nowhere.
func TestTenants_ForeignIsMissing(t *testing.T) {
	t.Parallel()
	w, _ := auditWorld(t)
	// The ids of workspace "a", by the path up to their place.
	ids := map[string]string{}
	bodies := map[string]string{}
	learn := func(template, path string) {
		names, parts := strings.Split(template, "/"), strings.Split(path, "/")
		for n, name := range names {
			if strings.HasPrefix(name, "{") && n < len(parts) {
				if parts[n] == "me" {
					parts[n] = "admin-user"
				}
				ids[strings.Join(names[:n+1], "/")] = parts[n]
			}
		}
	}
	n := 1000
	for name, c := range auditCases() { // order does not matter: each makes its own
		if strings.Contains(name, "/sessions/current") {
			continue // it names nothing
		}
		n++
		path, body := c.prepare(w, n)
		_, template, _ := strings.Cut(name, " ")
		learn(template, path)
		bodies[name] = body
	}
	ids["/executions/{id}"] = ended(w, 9999)
	ids["/workspaces/{id}"] = "a"
	if err := w.stores.Triggers.Record(t.Context(), identity.System("a"), store.TriggerDelivery{Workspace: "a", ID: "dlv_of_a", WorkflowID: "w", Node: "start", Kind: "TRIGGER.WEBHOOK", Decision: store.DeliveryIgnored}, nil); err != nil {
		t.Fatal(err)
	}
	ids["/deliveries/{id}"] = "dlv_of_a"
	learn("/users/{id}/tokens/{token}", "/users/admin-user/tokens/tok_aadmin-user")
	before := w.log()[0].Seq
	tried := 0
	for _, op := range operations(w.server) {
		template := strings.TrimPrefix(op.Path, route.Prefix)
		if !strings.Contains(template, "{") || !strings.HasPrefix(op.Path, route.Prefix) {
			continue
		}
		foreign, missing := strings.Split(template, "/"), strings.Split(template, "/")
		var named []string
		for i, part := range foreign {
			if !strings.HasPrefix(part, "{") {
				continue
			}
			id := ids[strings.Join(strings.Split(template, "/")[:i+1], "/")]
			if id == "" && (part == "{hash}" || part == "{name}" || part == "{activation...}" || part == "{node}" || part == "{revision}" || part == "{kind}") {
				id = "x" // of something that is foreign itself
			}
			if id == "" {
				t.Errorf("%s %s: there is no id to try it with", op.Method, op.Path)
			}
			named = append(named, id)
			foreign[i], missing[i] = id, madeUp
		}
		body := bodies[op.Method+" "+template]
		if body == "" && op.Method != http.MethodGet {
			body = "{}"
		}
		say := func(parts []string) string {
			got := w.call(w.other, op.Method, route.Prefix+strings.Join(parts, "/"), body)
			text := got.body
			for _, id := range append(named, madeUp) {
				if len(id) > 1 {
					text = strings.ReplaceAll(text, id, "ID")
				}
			}
			return http.StatusText(got.status) + " " + volatile.ReplaceAllString(text, "#")
		}
		if slices.Contains([]string{"list-node-kinds", "get-node-kind", "add-example", "get-workflow-template"}, op.OperationID) {
			continue // they are the same for everybody
		}
		tried++
		if a, b := say(foreign), say(missing); a != b {
			t.Errorf("%s %s tells a foreign id from a missing one:\n%s\n%s", op.Method, op.Path, a, b)
		}
	}
	if tried < 50 {
		t.Errorf("only %d operations were tried", tried)
	}
	if fresh := w.log()[0]; fresh.Seq != before {
		t.Errorf("something was changed in workspace a: %+v", fresh)
	}
	if me := read[api.User](t, w.call(w.tokens[identity.Admin], "GET", route.Prefix+"/users/me", "").want(t, 200)); me.ID != "admin-user" {
		t.Errorf("the admin of workspace a is %+v", me)
	}
}
