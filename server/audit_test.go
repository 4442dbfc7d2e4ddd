package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/human"
	"tandem/human/replies"
	"tandem/identity"
	"tandem/llm"
	"tandem/route"
	"tandem/store"
)

// keptModels keeps profiles in the store and knows every budget.
type keptModels struct {
	stores store.Stores
}

func (keptModels) Providers() []llm.About { return []llm.About{{Name: "scripted", Scripted: true}} }

func (m keptModels) Profiles(ctx context.Context, p identity.Principal) ([]store.Profile, error) {
	return m.stores.Profiles.List(ctx, p)
}

func (m keptModels) SaveProfile(ctx context.Context, p identity.Principal, profile llm.Profile) error {
	body, err := json.Marshal(profile)
	if err != nil {
		return err
	}
	return m.stores.Profiles.Put(ctx, p, store.Profile{ID: profile.ID, Body: body, Created: 1, Updated: 1})
}

func (m keptModels) DeleteProfile(ctx context.Context, p identity.Principal, id string) error {
	return m.stores.Profiles.Delete(ctx, p, id)
}

func (keptModels) TryProfile(context.Context, identity.Principal, llm.Profile, string) (api.ProfileTest, error) {
	return api.ProfileTest{OK: true}, nil
}

func (keptModels) Budgets(_ context.Context, _ identity.Principal, q api.BudgetQuery) (api.Budgets, error) {
	return api.Budgets{Budgets: []api.Budget{{Budget: q.Budget}}}, nil
}

// brokenAudit refuses entries that are written by themselves, so that only those get in that commit with their change.
type brokenAudit struct {
	store.Audit
	broken *atomic.Bool
}

func (a brokenAudit) Enter(ctx context.Context, p identity.Principal, e store.AuditEntry) error {
	if a.broken.Load() {
		return errors.New("there is no room for an entry")
	}
	return a.Audit.Enter(ctx, p, e)
}

// auditWorld is a server on which every operation can succeed.
func auditWorld(t *testing.T) (w *world, broken *atomic.Bool) {
	t.Helper()
	broken = &atomic.Bool{}
	var tools *fewTools
	w = setup(t, func(o *Options) {
		o.Stores.Audit = brokenAudit{o.Stores.Audit, broken}
		o.Models = keptModels{stores: o.Stores}
		o.Workspace = "a"
		o.TaskStarts = -1
		o.Raise = func(ctx context.Context, p identity.Principal, id, budget string, by float64) error {
			_, err := o.Stores.Budgets.Raise(ctx, p, id, store.Raise{Budget: budget, Tokens: int64(by)}, 1)
			return err
		}
		tools = o.Tools.(*fewTools)
	})
	tools.offer("read", "Reads")
	return w, broken
}

// auditCase is a call that succeeds, and what the log says then.
type auditCase struct {
	// prepare makes what the call needs and returns its path and its body.
	prepare func(w *world, n int) (path, body string)
	// token is whose call it is; nil: the admin's.
	token func(w *world) string
	// action is what the entry says; apart says that it cannot commit with the change, since there is none in the store or it is made
	// elsewhere.
	action string
	apart  bool
}

// fixed is a call that needs nothing before.
func fixed(path, body string) func(*world, int) (string, string) {
	return func(_ *world, n int) (string, string) {
		return strings.ReplaceAll(path, "{n}", fmt.Sprint(n)), strings.ReplaceAll(body, "{n}", fmt.Sprint(n))
	}
}

// after makes something with a call of the admin first.
func after(method, path, body, then, thenBody string) func(*world, int) (string, string) {
	return func(w *world, n int) (string, string) {
		w.t.Helper()
		in := func(text string) string { return strings.ReplaceAll(text, "{n}", fmt.Sprint(n)) }
		if got := w.admin(method, route.Prefix+in(path), in(body)); got.status >= 300 {
			w.t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
		}
		return in(then), in(thenBody)
	}
}

// asked is a question to the approver, started by the viewer.
func asked(then, body string, change ...func(*human.Request)) func(*world, int) (string, string) {
	return func(w *world, _ int) (string, string) {
		r := approval("approver-user", "admin-user")
		r.AllowDelegation = true
		for _, f := range change {
			f(&r)
		}
		i := w.asks("viewer-user", human.PurposeNode, r)
		return "/interactions/" + i.ID + then, body
	}
}

func asApprover(w *world) string { return w.tokens[identity.Approver] }

const auditFlow = `{"metadata":{"id":"w{n}","name":"w{n}","description":"d"},"nodes":[{"id":"start","name":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"},{"id":"next","name":"next","description":"d","type":"CALL","subtype":"EMPTY"}],"connections":[{"from_node":"start","to_node":"next"}]}`

// ended is an execution that has ended.
func ended(w *world, n int) string {
	w.t.Helper()
	w.admin("POST", route.Prefix+"/workflows", strings.ReplaceAll(auditFlow, "{n}", fmt.Sprint(n)))
	got := read[api.ExecuteResponse](w.t, w.admin("POST", route.Prefix+fmt.Sprintf("/workflows/w%d/execute", n), `{"wait_seconds":30}`).want(w.t, 200))
	return got.ExecutionID
}

// waitingFor makes an execution that waits, written by hand: nothing of it runs.
func (w *world) memory(n int) string {
	w.t.Helper()
	id := fmt.Sprintf("mem%d", n)
	_, err := w.stores.Memories.Change(w.t.Context(), identity.Principal{Workspace: "a", User: "admin-user"}, store.MemoryChange{
		Scope: store.MemoryScope{ID: id, User: "admin-user", Kind: "k"}, Time: 1, Put: []store.MemoryRecord{{Sort: "s", ID: "r", Body: []byte(`"x"`)}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// auditCases has one for every operation that changes something, by method and path as they are documented.
func auditCases() map[string]auditCase {
	server := `{"transport":"stdio","command":"npx"}`
	session := func(w *world) string {
		s := read[api.Session](w.t, w.admin("POST", route.Prefix+"/sessions", "").want(w.t, 201))
		return s.ID
	}
	return map[string]auditCase{
		"POST /workflows":              {prepare: fixed("/workflows", auditFlow), action: "workflow.create"},
		"PUT /workflows/{id}":          {prepare: after("POST", "/workflows", auditFlow, "/workflows/w{n}", strings.Replace(auditFlow, `"description":"d"`, `"description":"other"`, 1)), action: "workflow.update"},
		"DELETE /workflows/{id}":       {prepare: after("POST", "/workflows", auditFlow, "/workflows/w{n}", ""), action: "workflow.delete"},
		"POST /workflows/{id}/copy":    {prepare: after("POST", "/workflows", auditFlow, "/workflows/w{n}/copy", `{}`), action: "workflow.create"},
		"POST /import":                 {prepare: fixed("/import", `{"files":[{"name":"f","content":"{\"metadata\":{\"id\":\"i{n}\",\"name\":\"n\",\"description\":\"d\"},\"nodes\":[{\"id\":\"start\",\"description\":\"d\",\"type\":\"TRIGGER\",\"subtype\":\"MANUAL\"}]}"}]}`), action: "workflow.create"},
		"POST /workflows/{id}/deploy":  {prepare: after("POST", "/workflows", auditFlow, "/workflows/w{n}/deploy", ""), action: "workflow.deploy"},
		"POST /workflows/test":         {prepare: fixed("/workflows/test", `{"definition":{"metadata":{"id":"t{n}","name":"n"},"nodes":[{"id":"start","description":"d","type":"TRIGGER","subtype":"MANUAL"}]}}`), action: "execution.test"},
		"POST /workflows/{id}/execute": {prepare: after("POST", "/workflows", auditFlow, "/workflows/w{n}/execute", `{"inputs":{}}`), action: "execution.start"},
		"POST /workflows/{id}/undeploy": {prepare: func(w *world, n int) (string, string) {
			path, _ := after("POST", "/workflows", auditFlow, "/workflows/w{n}", "")(w, n)
			w.admin("POST", route.Prefix+path+"/deploy", "").want(w.t, 200)
			return path + "/undeploy", ""
		}, action: "workflow.undeploy"},
		"POST /executions/{id}/actions": {prepare: func(w *world, n int) (string, string) {
			return "/executions/" + ended(w, n) + "/actions", `{"action":"fork","node_id":"next"}`
		}, action: "execution.fork"},
		"DELETE /executions/{id}":  {prepare: func(w *world, n int) (string, string) { return "/executions/" + ended(w, n), "" }, action: "execution.delete"},
		"PUT /limits":              {prepare: fixed("/limits", `{"running":{n}}`), action: "limits.update"},
		"POST /limits/tidy":        {prepare: fixed("/limits/tidy", ""), action: "limits.tidy", apart: true},
		"POST /agents":             {prepare: after("PUT", "/llm/profiles/main", `{"provider":"scripted"}`, "/agents", `{"id":"a{n}","name":"A","llm_profile":"main"}`), action: "agent.put"},
		"PUT /agents/{id}":         {prepare: after("PUT", "/llm/profiles/main", `{"provider":"scripted"}`, "/agents/a{n}", `{"name":"A","llm_profile":"main"}`), action: "agent.put"},
		"DELETE /agents/{id}":      {prepare: agentThen("/agents/a{n}", ""), action: "agent.delete"},
		"POST /agents/{id}/tasks":  {prepare: agentThen("/agents/a{n}/tasks", `{"question":"why?"}`), action: "execution.start"},
		"POST /budgets/raise":      {prepare: fixed("/budgets/raise", `{"budget":"main/day/2026-11-16","raise_by":5}`), action: "budget.raise"},
		"POST /credentials":        {prepare: fixed("/credentials", `{"name":"c{n}","type":"slack_bot","data":{"token":"canary-secret"}}`), action: "credential.create"},
		"PUT /credentials/{id}":    {prepare: credentialThen(`{"name":"d{n}","type":"slack_bot","data":{"token":"canary-secret"}}`), action: "credential.update"},
		"DELETE /credentials/{id}": {prepare: credentialThen(""), action: "credential.delete"},

		"POST /interactions/{id}/respond":  {prepare: asked("/respond", `{"response_data":{"action":"approve","notes":"canary-notes"}}`), action: "interaction.respond", token: asApprover},
		"POST /interactions/{id}/cancel":   {prepare: asked("/cancel", `{"reason":"late"}`), action: "interaction.cancel"},
		"POST /interactions/{id}/delegate": {prepare: asked("/delegate", `{"to":"operator-user"}`), action: "interaction.delegate", token: asApprover},
		"POST /interactions/{id}/override": {prepare: asked("/override", `{"response_data":{"action":"reject"},"reason":"because"}`), action: "interaction.override"},
		"POST /interactions/{id}/link":     {prepare: asked("/link", `{"recipient":"user:approver-user"}`), action: "interaction.link", token: asApprover},
		"POST /interactions/{id}/remind": {prepare: asked("/remind", "", func(r *human.Request) {
			r.Channel, r.Approvers = "knock", []string{"knock:u1"}
		}), action: "interaction.remind"},
		"POST /interactions/{id}/responses/{response_id}/overrule": {prepare: func(w *world, n int) (string, string) {
			i := w.asks("viewer-user", human.PurposeNode, approval("admin-user", "approver-user"))
			id := fmt.Sprintf("r%d", n)
			if err := w.stores.Interactions.Change(w.t.Context(), identity.System("a"), store.InteractionChange{Interaction: i, Responses: []store.Response{
				{ID: id, User: "approver-user", Channel: "email", Raw: "yes", Relevance: replies.Relevant, Accepted: false, Factors: []byte(`{}`)},
			}}); err != nil {
				w.t.Fatal(err)
			}
			return "/interactions/" + i.ID + "/responses/" + id + "/overrule", `{"reason":"she meant it","response_data":{"action":"approve"}}`
		}, action: "interaction.overrule"},

		"POST /llm/profiles":           {prepare: fixed("/llm/profiles", `{"id":"p{n}","provider":"scripted"}`), action: "profile.put"},
		"PUT /llm/profiles/{id}":       {prepare: fixed("/llm/profiles/p{n}", `{"provider":"scripted"}`), action: "profile.put"},
		"DELETE /llm/profiles/{id}":    {prepare: after("PUT", "/llm/profiles/p{n}", `{"provider":"scripted"}`, "/llm/profiles/p{n}", ""), action: "profile.delete"},
		"POST /llm/profiles/{id}/test": {prepare: after("PUT", "/llm/profiles/p{n}", `{"provider":"scripted"}`, "/llm/profiles/p{n}/test", ""), action: "profile.test", apart: true},

		"POST /mcp/servers":               {prepare: fixed("/mcp/servers", `{"id":"s{n}","transport":"stdio","command":"npx","args":["canary-secret"]}`), action: "mcp_server.put"},
		"PUT /mcp/servers/{id}":           {prepare: fixed("/mcp/servers/s{n}", server), action: "mcp_server.put"},
		"DELETE /mcp/servers/{id}":        {prepare: after("PUT", "/mcp/servers/s{n}", server, "/mcp/servers/s{n}", ""), action: "mcp_server.delete"},
		"POST /mcp/servers/{id}/activate": {prepare: after("PUT", "/mcp/servers/s{n}", server, "/mcp/servers/s{n}/activate", `{}`), action: "mcp_server.activate"},
		"DELETE /mcp/servers/{id}/activate": {prepare: func(w *world, n int) (string, string) {
			path, _ := after("PUT", "/mcp/servers/s{n}", server, "/mcp/servers/s{n}/activate", "")(w, n)
			w.admin("POST", route.Prefix+path, `{}`).want(w.t, 200)
			return path, ""
		}, action: "mcp_server.deactivate"},
		"POST /mcp/servers/{id}/accept": {prepare: func(w *world, n int) (string, string) {
			path, _ := after("PUT", "/mcp/servers/s{n}", server, "/mcp/servers/s{n}", "")(w, n)
			if err := w.stores.MCPServers.Activate(w.t.Context(), identity.Principal{Workspace: "a", User: "admin-user"}, store.MCPActivation{Server: fmt.Sprintf("s%d", n), User: "admin-user", AcceptedBy: "admin-user"}, store.MCPDecided{}); err != nil {
				w.t.Fatal(err)
			}
			tools := read[api.MCPTools](w.t, w.admin("GET", route.Prefix+path+"/tools", "").want(w.t, 200))
			return path + "/accept", `{"changes":[{"tool":"read","after":` + string(tools.Changes[0].After) + `}]}`
		}, action: "mcp_server.accept"},
		"POST /mcp/servers/{id}/authorize": {prepare: after("PUT", "/mcp/servers/s{n}", server, "/mcp/servers/s{n}/authorize", ""), action: "mcp_server.authorize", apart: true},
		"POST /mcp/servers/{id}/restart":   {prepare: after("PUT", "/mcp/servers/s{n}", server, "/mcp/servers/s{n}/restart", ""), action: "mcp_server.restart", apart: true},
		"PUT /mcp/servers/{id}/policies": {prepare: func(w *world, n int) (string, string) {
			path, _ := after("PUT", "/mcp/servers/s{n}", server, "/mcp/servers/s{n}", "")(w, n)
			w.admin("POST", route.Prefix+path+"/activate", `{}`).want(w.t, 200)
			return path + "/policies", `{"policies":{"read":{"policy":"ask"}}}`
		}, action: "mcp_server.set_policies"},

		"DELETE /memory/{id}": {prepare: func(w *world, n int) (string, string) { return "/memory/" + w.memory(n), "" }, action: "memory.forget"},
		"DELETE /memory/{id}/records/{sort}/{record}": {prepare: func(w *world, n int) (string, string) {
			return "/memory/" + w.memory(n) + "/records/s/r", ""
		}, action: "memory.delete_record"},
		"POST /node-templates":        {prepare: fixed("/node-templates", `{"id":"t{n}","kind":"CALL.EMPTY","name":"t"}`), action: "node_template.put"},
		"PUT /node-templates/{id}":    {prepare: fixed("/node-templates/t{n}", `{"kind":"CALL.EMPTY","name":"t"}`), action: "node_template.put"},
		"DELETE /node-templates/{id}": {prepare: after("PUT", "/node-templates/t{n}", `{"kind":"CALL.EMPTY","name":"t"}`, "/node-templates/t{n}", ""), action: "node_template.delete"},

		"POST /users":             {prepare: fixed("/users", `{"id":"u{n}","name":"U","roles":["viewer"]}`), action: "user.create"},
		"POST /workspaces":        {prepare: fixed("/workspaces", `{"id":"made{n}","admin":{"id":"ann"}}`), action: "workspace.create"},
		"PATCH /workspaces/{id}":  {prepare: after("POST", "/workspaces", `{"id":"made{n}"}`, "/workspaces/made{n}", `{"name":"Other"}`), action: "workspace.update"},
		"DELETE /workspaces/{id}": {prepare: after("POST", "/workspaces", `{"id":"made{n}"}`, "/workspaces/made{n}", ""), action: "workspace.delete"},
		"PATCH /users/me":         {prepare: fixed("/users/me", `{"language":"zh"}`), action: "user.update"},
		"PUT /users/{id}":         {prepare: after("POST", "/users", `{"id":"u{n}","name":"U","roles":["viewer"]}`, "/users/u{n}", `{"name":"V","roles":["editor"]}`), action: "user.update"},
		"DELETE /users/{id}":      {prepare: after("POST", "/users", `{"id":"u{n}","name":"U","roles":["viewer"]}`, "/users/u{n}", ""), action: "user.delete"},
		"POST /users/{id}/tokens": {prepare: fixed("/users/me/tokens", `{"name":"t"}`), action: "token.create"},
		"DELETE /users/{id}/tokens/{token}": {prepare: func(w *world, _ int) (string, string) {
			made := read[api.NewToken](w.t, w.admin("POST", route.Prefix+"/users/me/tokens", `{"name":"t"}`).want(w.t, 201))
			return "/users/me/tokens/" + made.Token.ID, ""
		}, action: "token.delete"},
		"PUT /contact-channels/{name}":    {prepare: fixed("/contact-channels/door{n}", `{"channel_type":"knock"}`), action: "contact_channel.put"},
		"DELETE /contact-channels/{name}": {prepare: after("PUT", "/contact-channels/door{n}", `{"channel_type":"knock"}`, "/contact-channels/door{n}", ""), action: "contact_channel.delete"},
		"PUT /users/{id}/reach": {prepare: func(w *world, n int) (string, string) {
			after("PUT", "/contact-channels/door{n}", `{"channel_type":"knock"}`, "", "")(w, n)
			return after("POST", "/users", `{"id":"u{n}","name":"U","roles":["viewer"]}`, "/users/u{n}/reach", `{"contacts":[{"channel":"door{n}","address":"u{n}"}]}`)(w, n)
		}, action: "user.update"},
		"POST /users/me/addresses": {prepare: after("PUT", "/contact-channels/door{n}", `{"channel_type":"knock"}`, "/users/me/addresses", `{"channel":"door{n}","address":"a{n}"}`), action: "user.prove_address", token: asApprover},
		"POST /users/me/addresses/confirm": {prepare: func(w *world, n int) (string, string) {
			return "/users/me/addresses/confirm", fmt.Sprintf(`{"address":"c%d","code":"%s"}`, n, w.code(w.tokens[identity.Editor], fmt.Sprint("c", n)))
		}, action: "user.update", token: func(w *world) string { return w.tokens[identity.Editor] }},
		"DELETE /users/me/addresses/{address}": {prepare: func(w *world, n int) (string, string) {
			token, address := w.tokens[identity.Operator], fmt.Sprint("d", n)
			w.call(token, "POST", route.Prefix+"/users/me/addresses/confirm", fmt.Sprintf(`{"address":"%s","code":"%s"}`, address, w.code(token, address))).want(w.t, 200)
			return "/users/me/addresses/knock:" + address, ""
		}, action: "user.update", token: func(w *world) string { return w.tokens[identity.Operator] }},
		"POST /invitations": {prepare: fixed("/invitations", `{"email":"new@example.com","roles":["viewer"]}`), action: "invitation.create"},
		"DELETE /invitations/{id}": {prepare: func(w *world, _ int) (string, string) {
			made := read[api.NewInvitation](w.t, w.admin("POST", route.Prefix+"/invitations", `{"email":"new@example.com","roles":["viewer"]}`).want(w.t, 201))
			return "/invitations/" + made.Invitation.ID, ""
		}, action: "invitation.delete"},
		"POST /sessions":                        {prepare: fixed("/sessions", ""), action: "login.succeed"},
		"DELETE /users/{id}/sessions":           {prepare: func(w *world, _ int) (string, string) { session(w); return "/users/me/sessions", "" }, action: "session.end_all"},
		"DELETE /users/{id}/sessions/{session}": {prepare: func(w *world, _ int) (string, string) { return "/users/me/sessions/" + session(w), "" }, action: "session.end"},
		"DELETE /sessions/current":              {prepare: fixed("/sessions/current", ""), token: func(*world) string { return "" }, action: "session.end"},
	}
}

// agentThen makes an agent and its profile first.
func agentThen(then, body string) func(*world, int) (string, string) {
	return func(w *world, n int) (string, string) {
		after("PUT", "/llm/profiles/main", `{"provider":"scripted"}`, "", "")(w, n)
		return after("PUT", "/agents/a{n}", `{"name":"A","llm_profile":"main"}`, then, body)(w, n)
	}
}

// credentialThen makes a credential first.
func credentialThen(body string) func(*world, int) (string, string) {
	return func(w *world, n int) (string, string) {
		made := read[api.Credential](w.t, w.admin("POST", route.Prefix+"/credentials", fmt.Sprintf(`{"name":"c%d","type":"slack_bot","data":{"token":"canary-secret"}}`, n)).want(w.t, 201))
		return "/credentials/" + made.ID, strings.ReplaceAll(body, "{n}", fmt.Sprint(n))
	}
}

// log is the audit log of workspace "a", the newest first.
func (w *world) log() []store.AuditEntry {
	w.t.Helper()
	list, err := w.stores.Audit.List(w.t.Context(), identity.System("a"), store.AuditQuery{Limit: 500})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// TestAudit_EveryChangeLeavesAnEntry calls every operation that is not a GET. Each leaves one entry with the action, who, by what and from
// where; and where the store can do it the entry commits with the change, which is shown by refusing all others.
func TestAudit_EveryChangeLeavesAnEntry(t *testing.T) {
	t.Parallel()
	w, broken := auditWorld(t)
	cases := auditCases()
	// These take an execution that waits, a task that an agent has done, a delivery and an authorization server: see TestAudit_Executions,
	// TestFreeze, TestTriggers_DeliveryIDs, TestAccount and TestCredentialTest in package app. A token of another workspace is made on the
	// machine alone: TestWorkspaces_Token.
	elsewhere := []string{"POST /executions/{id}/input", "POST /executions/{id}/freeze", "POST /deliveries/{id}/replay", "POST /credentials/{id}/authorize", "POST /credentials/{id}/test", "POST /examples/{name}", "POST /workspaces/{id}/tokens"}
	n := 0
	for _, op := range operations(w.server) {
		name := op.Method + " " + strings.TrimPrefix(op.Path, route.Prefix)
		if !route.Audits(op) {
			if op.Method != http.MethodGet && !slices.Contains([]string{"POST /workflows/validate", "POST /workflows/evaluate", "POST /mcp", "DELETE /mcp"}, name) {
				t.Errorf("%s is said to change nothing; list it here if that is so", name)
			}
			continue
		}
		c, ok := cases[name]
		delete(cases, name)
		if !ok {
			if !slices.Contains(elsewhere, name) {
				t.Errorf("%s has no case: write one, so that it is shown to leave an entry", name)
			}
			continue
		}
		for _, alone := range []bool{false, true} { // the second time nothing is entered but what commits with the change
			n++
			path, body := c.prepare(w, n)
			token := w.tokens[identity.Admin]
			if c.token != nil {
				token = c.token(w)
			}
			cookie := ""
			if token == "" {
				cookie, _, _ = strings.Cut(w.admin("POST", route.Prefix+"/sessions", "").want(t, 201).header.Get("Set-Cookie"), ";")
			}
			before := w.log()[0].Seq
			broken.Store(alone)
			got := w.ask(token, op.Method, route.Prefix+path, strings.NewReader(body), func(r *http.Request) {
				r.Header.Set("User-Agent", "audit-test")
				r.Header.Set("Cookie", cookie)
			})
			broken.Store(false)
			if alone && c.apart {
				if got.status < 500 {
					t.Errorf("%s: %d although it could not be entered", name, got.status)
				}
				continue
			}
			if got.status >= 300 {
				t.Errorf("%s: %d %s", name, got.status, got.body)
				continue
			}
			fresh := slices.DeleteFunc(w.log(), func(e store.AuditEntry) bool { return e.Seq <= before })
			if len(fresh) != 1 {
				t.Errorf("%s left %d entries: %+v", name, len(fresh), fresh)
				continue
			}
			e := fresh[0]
			if e.Action != c.action || e.User == "" || e.Means.Kind == "" || e.Address != "127.0.0.1" || e.Agent != "audit-test" || e.Outcome != store.AuditDone || e.Time == 0 || e.Object == "" {
				t.Errorf("%s left %+v; want the action %q with all about who and from where", name, e, c.action)
			}
			if e.ObjectID == "" {
				t.Errorf("%s does not say what was changed: %+v", name, e)
			}
		}
	}
	for name := range cases {
		t.Errorf("%s has a case and is not an operation", name)
	}
	for _, e := range w.log() {
		if text := fmt.Sprintf("%+v %s", e, e.Detail); strings.Contains(text, "canary") || strings.Contains(text, "tdm_") {
			t.Errorf("the log holds what nobody may read there: %s", text)
		}
	}
}

// TestAudit_Strangers: what people and services do who have no token is entered as theirs.
func TestAudit_Strangers(t *testing.T) {
	t.Parallel()
	w, _ := auditWorld(t)
	_, open := w.server.Patterns()
	seen := map[string]bool{}
	last := func(pattern, action, user string, kind identity.MeansKind) {
		t.Helper()
		seen[pattern] = true
		e := w.log()[0]
		if e.Action != action || e.User != user || e.Means.Kind != kind || e.Address != "127.0.0.1" {
			t.Errorf("%s left %+v; want %s of %q by %q", pattern, e, action, user, kind)
		}
	}
	i := w.asks("viewer-user", human.PurposeNode, approval("approver-user"))
	link := w.link(i, "user:approver-user")
	w.submit(link, url.Values{"answer": {"approve"}}).want(t, 200)
	last("POST /respond/{token}", "interaction.respond", "approver-user", identity.ByLink)

	if err := w.stores.Credentials.Create(t.Context(), identity.System("a"), store.Credential{ID: "cred", Name: "bot", Type: "slack_bot", Sealed: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	r := approval("knock:U1")
	r.Channel, r.Credential = "knock", "cred"
	i = w.asks("viewer-user", human.PurposeNode, r)
	w.ask("", "POST", "/channels/knock/a/cred", strings.NewReader(i.ID), func(r *http.Request) { r.Header.Set("X-Word", "sesame") }).want(t, 200)
	last("POST /channels/{channel}/{workspace}/{credential}", "interaction.respond", "knock:U1", identity.ByChannel)

	invited := read[api.NewInvitation](t, w.admin("POST", route.Prefix+"/invitations", `{"email":"New.One@example.com","roles":["operator"]}`).want(t, 201))
	w.ask("", "POST", strings.TrimPrefix(invited.URL, w.server.o.PublicURL), strings.NewReader(""), nil).want(t, 200)
	last("POST /join/{token}", "login.succeed", "new-one", identity.BySession)
	if e := w.log()[1]; e.Action != "invitation.accept" || e.User != "new-one" {
		t.Errorf("accepting left %+v", e)
	}
	w.ask("", "POST", "/login", strings.NewReader(url.Values{"token": {w.tokens[identity.Viewer]}}.Encode()), nil)
	last("POST /login", "login.succeed", "viewer-user", identity.BySession)
	w.call("tdm_wrong", "GET", route.Prefix+"/users/me", "").want(t, 401)
	if e := w.log()[0]; e.Action != "login.refuse" || e.Outcome != store.AuditRefused || e.User != "" {
		t.Errorf("a wrong token left %+v", e)
	}
	for _, pattern := range open {
		// A node has to wait for a callback: see TestCallback in package app. What comes to a trigger is a delivery, which has a history of
		// its own; answers in a chat and what people start on a page are shown by TestVisitors_Chat and TestVisitors_Run there.
		if slices.ContainsFunc([]string{" /callbacks/", " /hooks/", " /forms/", " /chat/", " /run/"}, func(path string) bool { return strings.Contains(pattern, path) }) {
			continue
		}
		if !strings.HasPrefix(pattern, "GET ") && !seen[pattern] {
			t.Errorf("%s takes what could change something, and is not shown to leave an entry", pattern)
		}
	}
}

// TestAudit_LongAgent: of a long name of a program whole characters are kept.
func TestAudit_LongAgent(t *testing.T) {
	t.Parallel()
	w, _ := auditWorld(t)
	w.ask("tdm_wrong", "GET", route.Prefix+"/users/me", nil, func(r *http.Request) { r.Header.Set("User-Agent", "a"+strings.Repeat("é", 150)) }).want(t, 401)
	if e := w.log()[0]; e.Agent != "a"+strings.Repeat("é", 99) {
		t.Errorf("%d bytes are kept: %q", len(e.Agent), e.Agent)
	}
}

// TestAudit_ActionsCommitWithTheirRow: a pause, which is written elsewhere than where it was asked for, commits with its entry.
func TestAudit_ActionsCommitWithTheirRow(t *testing.T) {
	t.Parallel()
	w, broken := auditWorld(t)
	id := ended(w, 1)
	broken.Store(true)
	// The node is tried again in a fork that fails: the entry of the action comes with its row, and nothing is left of a refusal.
	w.admin("POST", route.Prefix+"/executions/"+id+"/actions", `{"action":"cancel"}`).want(t, http.StatusConflict)
	if e := w.log()[0]; e.Action == "execution.cancel" {
		t.Errorf("a refusal was entered: %+v", e)
	}
	failed := read[api.ExecuteResponse](t, w.admin("POST", route.Prefix+"/workflows/w1/execute", `{"inputs":{"break":true},"wait_seconds":30}`).want(t, 200))
	if failed.Status != string(engine.StatusError) {
		t.Fatalf("it has ended with %s", failed.Status)
	}
	w.admin("POST", route.Prefix+"/executions/"+failed.ExecutionID+"/actions", `{"action":"retry_node","node_id":"next","reason":"again"}`).want(t, 200)
	if e := w.log()[0]; e.Action != "execution.retry_node" || e.ObjectID != failed.ExecutionID || !strings.Contains(string(e.Detail), "again") {
		t.Errorf("the retry left %+v", e)
	}
}

// TestAudit_ListAndExport: admins read it, page by page and as lines.
func TestAudit_ListAndExport(t *testing.T) {
	t.Parallel()
	w, _ := auditWorld(t)
	for n := range 5 {
		w.admin("PUT", route.Prefix+fmt.Sprintf("/node-templates/t%d", n), `{"kind":"CALL.EMPTY","name":"t"}`).want(t, 200)
	}
	page := read[api.AuditEntries](t, w.admin("GET", route.Prefix+"/audit?page_size=3&action=node_template.", "").want(t, 200))
	if len(page.Entries) != 3 || page.NextBefore == 0 || page.Entries[0].ObjectID != "t4" || page.Entries[0].Means.Token != "tok_aadmin-user" {
		t.Errorf("page 1: %+v", page)
	}
	page = read[api.AuditEntries](t, w.admin("GET", route.Prefix+fmt.Sprintf("/audit?page_size=3&action=node_template.&before=%d", page.NextBefore), "").want(t, 200))
	if len(page.Entries) != 2 || page.NextBefore != 0 {
		t.Errorf("page 2: %+v", page)
	}
	got := w.admin("GET", route.Prefix+"/audit/export?object=node_template", "").want(t, 200)
	lines := strings.Split(strings.TrimSpace(got.body), "\n")
	var first api.AuditEntry
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 5 || first.ObjectID != "t0" || got.header.Get("Content-Type") != "application/jsonl" {
		t.Errorf("export: %v, %s", err, got.body)
	}
	if e := w.log()[0]; e.Action != "audit.export" || e.User != "admin-user" {
		t.Errorf("who exported is not entered: %+v", e)
	}
	if other := read[api.AuditEntries](t, w.call(w.other, "GET", route.Prefix+"/audit", "").want(t, 200)); len(other.Entries) != 0 {
		t.Errorf("another workspace reads %+v", other)
	}
}
