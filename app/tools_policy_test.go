package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/fault"
	"tandem/human"
	"tandem/identity"
)

// wipe is a tool of which its server says nothing.
func wipe() toolDefinition {
	return toolDefinition{Name: "wipe", Description: "deletes the production database for ever", Unclassed: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"n":{"type":"integer"}}}`)}
}

// What nobody has classed is asked about, whatever a model says of it and whatever runs by itself.
func TestTask_UnclassedToolIsAskedAbout(t *testing.T) {
	t.Parallel()
	b := newToolbox(t, nil, wipe())
	x := openTasks(t, newMind(t, []string{"box/wipe"}, inCity), b)
	x.auto()
	e := x.ask(api.TaskRequest{})
	if q := x.question(e, "confirm"); q.Risk != "medium" || len(b.made()) > 0 {
		t.Errorf("it is asked with risk %q after %q", q.Risk, b.made())
	}
	tools, err := x.as(taskUser).MCPTools(t.Context(), "box")
	if err != nil || tools.Tools[0].Class != "unclassed" || tools.Tools[0].Decision != "destructive" || tools.Tools[0].DecisionFrom != "nobody" || tools.Tools[0].Suggestion.Policy != "ask" {
		t.Fatalf("told %+v, %v", tools.Tools, err)
	}
	x.ended(x.say(e.ExecutionID, `{"confirm":true}`), engine.StatusSuccess)
	// The user knows better, and is asked no more.
	if _, err := x.as(taskUser).SetMCPPolicies(t.Context(), "box", api.MCPPolicies{Policies: map[string]api.MCPToolPolicy{"wipe": {Policy: "read_only", Hash: tools.Tools[0].Hash}}}); err != nil {
		t.Fatal(err)
	}
	x.ended(x.ask(api.TaskRequest{}), engine.StatusSuccess)
	agrees(t, "calls", len(b.made()), 2)
}

// A turn of a model asks where the policy of a tool wants that, or where it may destroy and the author of the workflow has said nothing.
func TestTools_PoliciesInATurn(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
			return chatReply{text: []string{"got " + last.text()}}
		}
		return chatReply{calls: []chatCall{chatCallOf(0, "box__wipe", `{"n":1}`)}}
	})
	x.saveProfile(t, model.profile("main"))
	box := newToolbox(t, nil, wipe())
	if err := x.stores.MCPServers.Put(t.Context(), identity.System("default"), box.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	want[api.MCPTools](t, x.call(t, "operator", "POST", "/mcp/servers/box/activate", nil), http.StatusOK)
	const never = `, tool_approval: never`
	rule := func(policy string) string {
		return `{"policies":{"wipe":{"policy":"ask","rules":[{"argument":"n","equals":1,"policy":"` + policy + `"}]}}}`
	}
	calls := 0
	for i, c := range []struct{ name, approval, policies, want string }{
		{"nobody has said anything", "", "", "asks"},
		{"the author does not want to be asked", never, "", "runs"},
		{"the user knows that it reads", "", `{"policies":{"wipe":{"policy":"read_only"}}}`, "runs"},
		{"the author wants to be asked", ", tool_approval: always", "", "asks"},
		{"the user wants to be asked", never, `{"policies":{"wipe":{"policy":"ask"}}}`, "asks"},
		{"an argument lets it run", never, rule("read_only"), "runs"},
		{"an argument does not", never, rule("never"), "refused"},
		{"it is never called", never, `{"policies":{"wipe":{"policy":"never"}}}`, "refused"},
	} {
		if c.policies != "" {
			want[api.MCPPolicyList](t, x.call(t, "operator", "PUT", "/mcp/servers/box/policies", c.policies), http.StatusOK)
		}
		flow := fmt.Sprint("talk", i)
		x.save(t, strings.Replace(agentFlow(`{profile_id: main, user_prompt: "{{question}}"`+c.approval+`}`, "tools", `  - {id: tools, name: tools, description: tools, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box}}
`), "id: talk", "id: "+flow, 1))
		id := x.execute(t, flow, api.ExecuteRequest{Inputs: json.RawMessage(`{"question":"wipe it"}`)})
		if c.want == "asks" {
			if asked := x.opens(t, id, 1); asked[0].Purpose != human.PurposeToolApproval || len(box.made()) != calls {
				t.Fatalf("%s: asked %+v after %v", c.name, asked, box.made())
			}
			want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+id+"/input", map[string]any{
				"node_id": x.read(t, id).Questions[0].NodeID, "input_data": map[string]any{"approved": true},
			}), http.StatusOK)
		}
		x.reaches(t, id, engine.StatusSuccess)
		if c.want != "refused" {
			calls++
		}
		if made := box.made(); len(made) != calls {
			t.Fatalf("%s: calls %v, want %d", c.name, made, calls)
		}
	}
}

// The list of tools that need an approval may name them by any of their names; a name that stands for no tool stops the node, because
// its author wants to be asked and would not be.
func TestTools_ApprovalByName(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
			return chatReply{text: []string{"done"}}
		}
		return chatReply{calls: []chatCall{chatCallOf(0, "box__wipe", `{"n":1}`)}}
	})
	x.saveProfile(t, model.profile("main"))
	box := newToolbox(t, nil, wipe())
	if err := x.stores.MCPServers.Put(t.Context(), identity.System("default"), box.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	want[api.MCPTools](t, x.call(t, "operator", "POST", "/mcp/servers/box/activate", `{"policies":{"wipe":{"policy":"read_only"}}}`), http.StatusOK)
	for i, c := range []struct{ names, want string }{
		{`["box/wipe"]`, "asks"}, {`["wipe"]`, "asks"}, {`["box__wipe"]`, "asks"}, {`["box/*"]`, "asks"}, {`["tools/wipe"]`, "asks"}, {`["box__wype", "wipe"]`, `did you mean "box__wipe"`}, {`["wypa"]`, `no attached node offers`}, {`[]`, "runs"},
	} {
		flow := fmt.Sprint("talk", i)
		x.save(t, strings.Replace(agentFlow(`{profile_id: main, user_prompt: go, tool_approval: `+c.names+`}`, "tools", `  - {id: tools, name: tools, description: tools, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box}}
`), "id: talk", "id: "+flow, 1))
		calls := len(box.made())
		id := x.execute(t, flow, api.ExecuteRequest{})
		switch c.want {
		case "asks":
			if asked := x.opens(t, id, 1); asked[0].Purpose != human.PurposeToolApproval || len(box.made()) != calls {
				t.Errorf("%s: asked %+v after %v", c.names, asked, box.made())
			}
		case "runs":
			if x.reaches(t, id, engine.StatusSuccess); len(box.made()) != calls+1 {
				t.Errorf("%s: calls %v", c.names, box.made())
			}
		default:
			x.reaches(t, id, engine.StatusError)
			if e := x.read(t, id).Error; e == nil || e.ErrorCode != "invalid_config" || !strings.Contains(e.ErrorMessage, c.want) || len(box.made()) != calls {
				t.Errorf("%s: %+v, calls %v", c.names, e, box.made())
			}
		}
	}
}

// What a user accepts of a change counts for that user; what an admin accepts, for everybody. Both are on record with the difference.
func TestTools_WhoAcceptsDrift(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	box := newToolbox(t, nil, wipe())
	if err := x.stores.MCPServers.Put(t.Context(), identity.System("default"), box.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	x.save(t, toolFlow("alone", `{server_id: box, tool_name: wipe}`))
	for _, user := range []string{"operator", "editor", "admin"} {
		want[api.MCPTools](t, x.call(t, user, "POST", "/mcp/servers/box/activate", nil), http.StatusOK)
	}
	change := func(description string) {
		t.Helper()
		d := wipe()
		d.Description = description
		box.change(d)
		want[struct{}](t, x.call(t, "admin", "POST", "/mcp/servers/box/restart", nil), http.StatusNoContent)
	}
	changes := func(user string) []api.MCPChange {
		t.Helper()
		return want[api.MCPTools](t, x.call(t, user, "GET", "/mcp/servers/box/tools", nil), http.StatusOK).Changes
	}
	accept := func(user, scope string) answer {
		t.Helper()
		one := changes(user)[0]
		return x.call(t, user, "POST", "/mcp/servers/box/accept", map[string]any{"scope": scope, "changes": []any{map[string]any{"tool": one.Tool, "after": one.After}}})
	}
	left := func() (list []string) {
		t.Helper()
		for _, user := range []string{"operator", "editor", "admin"} {
			if len(changes(user)) > 0 {
				list = append(list, user)
			}
		}
		return list
	}
	change("deletes it all")
	if a := accept("operator", "workspace"); a.status != http.StatusForbidden {
		t.Errorf("a user accepts for everybody: %+v", a)
	}
	want[api.MCPTools](t, accept("operator", "user"), http.StatusOK)
	agrees(t, "locked after a user has accepted", left(), []string{"editor", "admin"})
	// The editor's call stays locked, and asks the editor or an admin; the operator cannot answer for the editor.
	e := want[api.ExecuteResponse](t, x.call(t, "editor", "POST", "/workflows/alone/execute", nil), http.StatusAccepted).ExecutionID
	q := x.opens(t, e, 1)[0]
	if q.Purpose != human.PurposeDrift || len(box.made()) > 0 {
		t.Fatalf("asked %+v after %v", q, box.made())
	}
	if a := x.respond(t, "operator", q.ID, `{"accept":true}`); a.status < 400 {
		t.Errorf("somebody else has accepted for the editor: %+v", a)
	}
	// An admin answers: that counts for everybody.
	want[api.Interaction](t, x.respond(t, "admin", q.ID, `{"accept":true}`), http.StatusOK)
	x.reaches(t, e, engine.StatusSuccess)
	if n := len(left()); n != 0 || len(box.made()) != 1 {
		t.Errorf("locked for %v, calls %v", left(), box.made())
	}
	change("deletes everything")
	want[api.MCPTools](t, accept("admin", "user"), http.StatusOK)
	agrees(t, "locked after an admin has accepted for themselves", left(), []string{"operator", "editor"})
	records := want[api.MCPAcceptances](t, x.call(t, "admin", "GET", "/mcp/servers/box/acceptances", nil), http.StatusOK).Acceptances
	var told []string
	for _, r := range records {
		told = append(told, strings.Join([]string{r.AcceptedBy, r.Scope, r.User, r.ExecutionID, strings.Join(r.Difference, "|")}, " "))
	}
	agrees(t, "the record", told, []string{
		"admin user admin  description|  - deletes it all|  + deletes everything",
		"admin workspace  " + e + " description|  - deletes the production database for ever|  + deletes it all",
		"operator user operator  description|  - deletes the production database for ever|  + deletes it all",
	})
	if mine := want[api.MCPAcceptances](t, x.call(t, "editor", "GET", "/mcp/servers/box/acceptances", nil), http.StatusOK).Acceptances; len(mine) != 1 || mine[0].Scope != "workspace" {
		t.Errorf("the editor sees %+v", mine)
	}
	// What is decided with a token that somebody else has made says so.
	lent, _ := x.madeFor(t, "admin", "operator")
	want[api.MCPTools](t, accept(lent, "user"), http.StatusOK)
	if r := want[api.MCPAcceptances](t, x.call(t, "operator", "GET", "/mcp/servers/box/acceptances", nil), http.StatusOK).Acceptances[0]; r.AcceptedBy != "operator" || r.TokenMadeBy != "admin" {
		t.Errorf("recorded %+v", r)
	}
	want[api.MCPPolicyList](t, x.call(t, lent, "PUT", "/mcp/servers/box/policies", `{"policies":{"wipe":{"policy":"ask"}}}`), http.StatusOK)
	list := want[api.MCPPolicyList](t, x.call(t, "operator", "GET", "/mcp/servers/box/policies", nil), http.StatusOK)
	if one := list.Policies["wipe"]; one.SetBy != "operator" || one.TokenMadeBy != "admin" {
		t.Errorf("the policy tells %+v", one)
	}
}

// What an admin has decided for everybody a user cannot loosen; what is set is about the tool as it was shown.
func TestTools_PoliciesOfTheWorkspace(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	box := newToolbox(t, nil, wipe())
	if err := x.stores.MCPServers.Put(t.Context(), identity.System("default"), box.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	x.save(t, toolFlow("alone", `{server_id: box, tool_name: wipe}`))
	refused := func(a answer, status int, code fault.Code, about string) {
		t.Helper()
		if a.status != status || !strings.Contains(string(a.body), string(code)) || !strings.Contains(string(a.body), about) {
			t.Errorf("got %d %s, want %d about %q", a.status, a.body, status, about)
		}
	}
	set := func(user, body string) answer { return x.call(t, user, "PUT", "/mcp/servers/box/policies", body) }
	refused(set("operator", `{"policies":{"wipe":{"policy":"ask"}}}`), 403, fault.Forbidden, "not activated")
	refused(x.call(t, "operator", "POST", "/mcp/servers/box/activate", `{"workspace_policies":{"wipe":{"policy":"never"}}}`), 403, fault.Forbidden, "workspace_policies")
	done := want[api.MCPTools](t, x.call(t, "operator", "POST", "/mcp/servers/box/activate", `{"policies":{"wipe":{"policy":"read_only"}}}`), http.StatusOK)
	if one := done.Tools[0]; one.Decision != "read_only" || one.DecisionFrom != "policy" || one.Policy == nil || one.Policy.SetBy != "operator" || one.Policy.SetTime == 0 {
		t.Errorf("told %+v", done.Tools)
	}
	want[api.MCPTools](t, x.call(t, "admin", "POST", "/mcp/servers/box/activate", `{"workspace_policies":{"wipe":{"policy":"never"}}}`), http.StatusOK)
	tools := want[api.MCPTools](t, x.call(t, "operator", "GET", "/mcp/servers/box/tools", nil), http.StatusOK)
	if one := tools.Tools[0]; one.Decision != "never" || one.DecisionFrom != "workspace_policy" || one.WorkspacePolicy.SetBy != "admin" || one.Policy.Policy != "read_only" {
		t.Errorf("told %+v", one)
	}
	id := x.execute(t, "alone", api.ExecuteRequest{})
	x.reaches(t, id, engine.StatusError)
	if len(box.made()) != 0 {
		t.Errorf("calls %v", box.made())
	}
	refused(set("operator", `{"policies":{"wipe":{"policy":"ask"}}}`), 403, fault.Forbidden, "policies.wipe")
	refused(set("operator", `{"scope":"workspace","remove":["wipe"]}`), 403, fault.Forbidden, "scope")
	refused(set("operator", `{"policies":{"wipe":{"policy":"never","hash":"another"}}}`), 409, fault.Conflict, "not what was shown")
	refused(set("operator", `{"policies":{"wipe":{}}}`), 422, fault.InvalidInput, "policies.wipe")
	refused(set("operator", `{"policies":{"wipe":{"policy":"sometimes"}}}`), 422, fault.InvalidInput, "policy")
	refused(set("operator", `{"policies":{"wipe":{"rules":[{"argument":"n","policy":"ask"}]}}}`), 422, fault.Invalid, "policies.wipe.rules[0]")
	refused(set("operator", `{}`), 422, fault.InvalidInput, "policies")
	want[api.MCPPolicyList](t, set("admin", `{"scope":"workspace","remove":["wipe"]}`), http.StatusOK)
	if list := want[api.MCPPolicyList](t, set("operator", `{"remove":["wipe"]}`), http.StatusOK); len(list.Policies)+len(list.WorkspacePolicies) != 0 {
		t.Errorf("left %+v", list)
	}
}
