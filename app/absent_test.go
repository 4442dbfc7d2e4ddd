package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/identity"
	"tandem/store/sqlite/sqlitetest"
)

// asksPeople is a workflow that names people and a workflow who are there, and others who are not.
const asksPeople = `
metadata: {id: asks, name: asks, description: d, settings: {error_workflow: cleanup}}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - id: ask
    description: d
    type: HUMAN_IN_THE_LOOP
    subtype: IN_APP_APPROVAL
    configurations:
      title: Go?
      approvers: [operator, "user:viewerr", "role:editor", "{{who}}", local]
      escalation: {after_seconds: 60, to: [boss]}
connections:
  - {from_node: start, to_node: ask}
`

// warned finds the warning of a code at a path.
func warned(list []api.Problem, code, path, says string) bool {
	return slices.ContainsFunc(list, func(p api.Problem) bool {
		return p.Code == code && p.Path == path && p.Severity == "warning" && strings.Contains(p.Message, says)
	})
}

// What a workflow names and the workspace does not have is told when it is validated on a server, saved and copied; to be deployed it must
// be there.
func TestAbsent_IsToldWhenSaved(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	checked := want[api.Validation](t, x.call(t, "editor", "POST", "/workflows/validate", asksPeople, "Content-Type", "application/yaml"), http.StatusOK)
	saved := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows", asksPeople, "Content-Type", "application/yaml"), http.StatusCreated)
	again := want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/asks", asksPeople, "Content-Type", "application/yaml"), http.StatusOK)
	copied := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows/asks/copy", api.CopyRequest{ID: "copy"}), http.StatusCreated)
	refused(t, x.call(t, "editor", "POST", "/workflows/asks/deploy", nil), http.StatusUnprocessableEntity, "invalid") // where it is an error
	for name, list := range map[string][]api.Problem{"validate": checked.Problems, "create": saved.Problems, "update": again.Problems, "copy": copied.Problems} {
		if len(list) != 3 || !warned(list, "unknown_workflow", "metadata.settings.error_workflow", `"cleanup" does not exist`) ||
			!warned(list, "unknown_approver", "nodes[1].configurations.approvers[1]", `did you mean "viewer"`) ||
			!warned(list, "unknown_approver", "nodes[1].configurations.escalation.to[0]", `"boss"`) {
			t.Errorf("%s: %+v", name, list)
		}
	}
	if !checked.Valid || len(checked.Problems) < 2 || checked.Problems[0].Line == 0 || checked.Problems[1].Node != "ask" {
		t.Errorf("problems %+v", checked)
	}

	x.save(t, strings.ReplaceAll(strings.Split(asksPeople, "  - id: ask")[0], "asks", "cleanup"))
	x.addUser(t, "default", "boss")
	x.addUser(t, "default", "viewerr")
	if r := want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/asks/deploy", nil), http.StatusOK); len(r.Warnings) > 0 {
		t.Errorf("everything is there: %+v", r.Warnings)
	}
	if r := Validate("f.yaml", []byte(asksPeople)); len(r.Problems) > 0 {
		t.Errorf("a file alone cannot know: %+v", r.Problems)
	}
}

// A node that asks says who of those whom it names is not there, those of placeholders too.
func TestAbsent_IsToldWhenAsked(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, asksPeople)
	r := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/asks/execute", `{"inputs": {"who": "nobody"}}`), http.StatusAccepted)
	x.reaches(t, r.ExecutionID, engine.StatusWaitingForHuman)
	e := want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID, nil), http.StatusOK).Execution
	var got []string
	for _, w := range e.NodeExecutions["ask"].Warnings {
		got = append(got, w.Path+" "+w.Message)
	}
	if len(got) != 3 || !strings.HasPrefix(got[0], `configurations.approvers "user:viewerr"`) || !strings.HasPrefix(got[1], `configurations.approvers "nobody"`) || !strings.HasPrefix(got[2], `configurations.escalation.to "boss"`) {
		t.Errorf("warnings %q", got)
	}
}

// asksAddresses is a workflow that names addresses: of a question in the app, and of one that is asked by mail.
const asksAddresses = `
metadata: {id: addresses, name: addresses, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: Go, approvers: [operator, "ann@example.com", "slack:U1", "mail:Bob@example.com"]}}
  - {id: mail, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: Go, channel_type: email, credential_id: post, approvers: ["ann@example.com"]}}
connections:
  - {from_node: start, to_node: ask}
  - {from_node: ask, to_node: mail}
`

// Nobody is told of a question in the app by an address, so that only a user who has the address can answer it: who has none is told of,
// when the workflow is saved and when it asks.
func TestAbsent_AddressesInTheApp(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	bob := identity.User{Workspace: "default", ID: "viewer", Name: "viewer", Roles: []identity.Role{identity.Viewer}, Email: "bob@example.com"}
	if err := x.stores.Users.Update(t.Context(), identity.System("default"), bob); err != nil {
		t.Fatal(err)
	}
	saved := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows", asksAddresses, "Content-Type", "application/yaml"), http.StatusCreated)
	var found []string
	for _, p := range saved.Problems {
		if strings.HasSuffix(p.Code, "_approver") {
			found = append(found, p.Code+" "+p.Severity+" "+p.Path)
		}
	}
	if want := []string{"unreached_approver warning nodes[1].configurations.approvers[1]", "unreached_approver warning nodes[1].configurations.approvers[2]"}; !slices.Equal(found, want) {
		t.Errorf("problems %q, want %q", found, want)
	}
	if !warned(saved.Problems, "unreached_approver", "nodes[1].configurations.approvers[1]", "channel_type") {
		t.Errorf("the remedy is not told: %+v", saved.Problems)
	}
	r := want[api.ExecuteResponse](t, x.call(t, "operator", "POST", "/workflows/addresses/execute", `{}`), http.StatusAccepted)
	x.reaches(t, r.ExecutionID, engine.StatusWaitingForHuman)
	e := want[api.GetExecution](t, x.call(t, "viewer", "GET", "/executions/"+r.ExecutionID, nil), http.StatusOK).Execution
	if list := e.NodeExecutions["ask"].Warnings; len(list) != 2 || !strings.HasPrefix(list[0].Message, `"ann@example.com" cannot answer: `) {
		t.Errorf("warnings %+v", list)
	}
}

// A run in a directory without users says so too, in the words of a server.
func TestAbsent_IsToldByARun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "asks.yaml")
	if err := os.WriteFile(file, []byte(asksPeople), 0o600); err != nil {
		t.Fatal(err)
	}
	var checked Report
	_, _, err := RunFile(t.Context(), Run{File: file, Dir: sqlitetest.Dir(t), Inputs: json.RawMessage(`{"who": "local"}`), Checked: func(r Report) { checked = r }})
	if !errors.Is(err, ErrAsked) && err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, p := range checked.Problems {
		if p.Code == "unknown_approver" {
			told = append(told, p.Path+" "+p.Message)
		}
	}
	if len(told) != 2 || told[0] != `nodes[1].configurations.approvers[1] "user:viewerr" cannot answer: user "viewerr" is not in this workspace; create them, or name somebody else` ||
		!strings.HasPrefix(told[1], `nodes[1].configurations.escalation.to[0] "boss" cannot answer`) {
		t.Errorf("told %q", told)
	}
}

// usesServers names a tool server that is registered and others that are not, in all the ways in which nodes name them.
const usesServers = `
metadata: {id: uses, name: uses, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: known, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box, tool_name: put}}
  - {id: later, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: "{{server}}", tool_name: put}}
  - {id: near, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: boxx, tool_name: put}}
  - {id: agent, description: d, type: AI_AGENT, subtype: MCP_AGENT, configurations: {llm_profile: main, mcp_servers: [box, mailer], question: q}}
  - {id: model, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: main, user_prompt: q, tools: [box/put, files/read]}}
connections:
  - {from_node: start, to_node: near}
  - {from_node: start, to_node: known}
  - {from_node: start, to_node: later}
  - {from_node: start, to_node: agent}
  - {from_node: start, to_node: model}
`

// A tool server that nobody has registered is told of when a workflow is saved, with how it is registered.
func TestAbsent_ToolServers(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.useBox(t, newToolbox(t, nil, toolDefinition{Name: "put", Schema: json.RawMessage(`{"type":"object"}`)}))
	saved := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows", usesServers, "Content-Type", "application/yaml"), http.StatusCreated)
	var list []api.Problem
	for _, p := range saved.Problems {
		if p.Code == "unknown_server" {
			list = append(list, p)
		}
	}
	if len(list) != 3 || !warned(list, "unknown_server", "nodes[3].configurations.server_id", `did you mean "box"?`) ||
		!warned(list, "unknown_server", "nodes[4].configurations.mcp_servers[1]", `"mailer" is not registered, so that its tools cannot be used; an administrator registers it with PUT /api/v1/mcp/servers/{id}`) ||
		!warned(list, "unknown_server", "nodes[5].configurations.tools[1]", `"files" is not registered`) {
		t.Errorf("%+v", saved.Problems)
	}
}

// usesRecords names a record of each kind that is there and one that is not.
const usesRecords = `
metadata: {id: uses_records, name: uses records, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: filled, description: d, type: CALL, subtype: EMPTY, configurations: {template_id: standrd}}
  - {id: known_filled, description: d, type: CALL, subtype: EMPTY, configurations: {template_id: standard}}
  - {id: model, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: demo, fallback_profiles: [demo, other], user_prompt: q}}
  - {id: calls, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {credential_id: Shpo, url: "http://127.0.0.1/"}}
  - {id: known_calls, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {credential_id: %s, url: "http://127.0.0.1/"}}
  - {id: child, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: nowhere}}
  - {id: itself, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: uses_records}}
  - {id: later, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: "{{which}}"}}
  - {id: clerk, description: d, type: AI_AGENT, subtype: MCP_AGENT, configurations: {agent_id: clerk, question: q}}
connections:
  - {from_node: start, to_node: filled}
  - {from_node: start, to_node: known_filled}
  - {from_node: start, to_node: model}
  - {from_node: start, to_node: calls}
  - {from_node: start, to_node: known_calls}
  - {from_node: start, to_node: child}
  - {from_node: start, to_node: itself}
  - {from_node: start, to_node: later}
  - {from_node: start, to_node: clerk}
`

// Whatever record a node names and nobody has made is told of when the workflow is saved, with what it means and how it is made.
func TestAbsent_Records(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	want[api.NodeTemplate](t, x.call(t, "editor", "POST", "/node-templates", api.NodeTemplate{ID: "standard", Kind: "CALL.EMPTY", Name: "t"}), http.StatusCreated)
	shop := want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"Shop","type":"http_auth","data":{"scheme":"bearer","token":"0123456789abcdef","allowed_hosts":["127.0.0.1"]}}`), http.StatusCreated).ID
	saved := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows", fmt.Sprintf(usesRecords, shop), "Content-Type", "application/yaml"), http.StatusCreated)
	var list []api.Problem
	for _, p := range saved.Problems {
		if strings.HasPrefix(p.Code, "unknown_") {
			list = append(list, p)
		}
	}
	if len(list) != 5 || !warned(list, "unknown_template", "nodes[1].configurations.template_id", `did you mean "standard"?`) ||
		!warned(list, "unknown_profile", "nodes[3].configurations.fallback_profiles[1]", `"tandem profiles set"`) ||
		!warned(list, "unknown_credential", "nodes[4].configurations.credential_id", `did you mean "Shop"?`) ||
		!warned(list, "unknown_workflow", "nodes[6].configurations.workflow_id", `cannot be started`) ||
		!warned(list, "unknown_agent", "nodes[9].configurations.agent_id", `"tandem agent set"`) {
		t.Errorf("%+v", saved.Problems)
	}
	seen := x.call(t, "viewer", "POST", "/workflows/validate", fmt.Sprintf(usesRecords, shop), "Content-Type", "application/yaml")
	if text := string(seen.body); !strings.Contains(text, "unknown_credential") || strings.Contains(text, "did you mean") {
		t.Errorf("who may not list records is told their names: %s", text)
	}
}

// Nobody is asked to activate a tool server that is not registered: the node fails and says so, alone and with a model.
func TestTools_NotRegistered(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, toolFlow("use", `{server_id: nowhere, tool_name: put}`))
	x.putProfile(t, "scripted", `{"provider":"scripted","script":{"rules":[{"reply":"hi"}]}}`)
	x.save(t, `
metadata: {id: model, name: model, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: use, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: scripted, user_prompt: q}, attached_nodes: [tools]}
  - {id: tools, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: nowhere}}
connections:
  - {from_node: start, to_node: use}
`)
	x.save(t, `
metadata: {id: listed, name: listed, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: use, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: scripted, user_prompt: q, tools: [nowhere/put]}}
connections:
  - {from_node: start, to_node: use}
`)
	for _, id := range []string{"use", "model", "listed"} {
		execution := x.execute(t, id, api.ExecuteRequest{})
		x.reaches(t, execution, engine.StatusError)
		if failed := x.read(t, execution).NodeExecutions["use"].Error; failed == nil || !strings.Contains(failed.ErrorMessage, `tool server "nowhere": it is not registered in this workspace; an administrator registers it with`) {
			t.Errorf("%s: %+v", id, failed)
		}
	}
}

// A tool that a node names of a server, and that nobody has accepted, is told of when the workflow is saved; of a server that nobody uses
// yet nothing is known.
func TestAbsent_Tools(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	box := newToolbox(t, nil, wipe())
	if err := x.stores.MCPServers.Put(t.Context(), identity.System("default"), box.server(t, "box").WithDefaults()); err != nil {
		t.Fatal(err)
	}
	const named = `
metadata: {id: names_tools, name: names_tools, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: model, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: demo, user_prompt: q, tools: [box/wipe, box/wpie, "box/*"]}}
  - {id: wrong, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box, tool_name: wiped, available_tools: [wipe, box/wyped, "w*"]}}
  - {id: right, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box, tool_name: my_wipe, tool_prefix: my_, available_tools: [box/wipe, box__wipe]}}
  - {id: later, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: box, tool_name: "{{which}}"}}
connections:
  - {from_node: start, to_node: model}
  - {from_node: start, to_node: wrong}
  - {from_node: start, to_node: right}
  - {from_node: start, to_node: later}
`
	told := func() (list []api.Problem) {
		for _, p := range want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/names_tools", named, "Content-Type", "application/yaml"), http.StatusOK).Problems {
			if p.Code == "unknown_tool" {
				list = append(list, p)
			}
		}
		return list
	}
	x.save(t, named)
	if list := told(); len(list) > 0 {
		t.Errorf("of a server that nobody uses: %+v", list)
	}
	want[api.MCPTools](t, x.call(t, "operator", "POST", "/mcp/servers/box/activate", nil), http.StatusOK)
	if list := told(); len(list) != 3 || !warned(list, "unknown_tool", "nodes[1].configurations.tools[1]", `did you mean "wipe"?`) ||
		!warned(list, "unknown_tool", "nodes[2].configurations.available_tools[1]", `"wyped"`) || !warned(list, "unknown_tool", "nodes[2].configurations.tool_name", `"wiped"`) {
		t.Errorf("%+v", list)
	}
}
