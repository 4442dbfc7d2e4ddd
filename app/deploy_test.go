package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
)

// lacksAll names one of everything that is not there, and a node that is switched off.
const lacksAll = `
metadata: {id: lacks, name: lacks, description: d, settings: {error_workflow: cleanup}}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: calls, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {credential_id: cred_none, url: "http://127.0.0.1/"}}
  - {id: chosen, description: d, type: ACTION, subtype: DATABASE_QUERY, configurations: {credential_id: "{{$placeholder}}", query: "select 1"}}
  - {id: unset, description: d, type: ACTION, subtype: DATABASE_QUERY, configurations: {query: "select 1"}}
  - {id: unfit, description: d, type: ACTION, subtype: DATABASE_QUERY, configurations: {credential_id: %s, query: "select 1"}}
  - {id: waits, description: d, type: FLOW, subtype: WAIT, configurations: {wait_type: database_change, credential_id: %s, database_config: {query: "select 1"}}}
  - {id: model, description: d, type: AI_AGENT, subtype: LLM, configurations: {profile_id: none, user_prompt: q, tools: [nobox/put]}}
  - {id: tool, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: nobox, tool_name: put}}
  - {id: child, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: nowhere}}
  - {id: draft, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: kid}}
  - {id: number, description: d, type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: kid, revision: 9}}
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "Go?", approvers: [nobody], escalation: {after_seconds: 60, to: [boss]}, ai_analysis_model: none}}
  - {id: slack, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "Go?", channel_type: slack}}
  - {id: filled, description: d, type: CALL, subtype: EMPTY, configurations: {template_id: none}}
  - {id: clerk, description: d, type: AI_AGENT, subtype: MCP_AGENT, configurations: {agent_id: none, question: q}}
  - {id: off, description: d, type: ACTION, subtype: HTTP_REQUEST, configurations: {enabled: false, credential_id: cred_none, url: "http://127.0.0.1/"}}
  - {id: later, description: d, type: TOOL, subtype: MCP_TOOL, configurations: {server_id: "{{server}}", tool_name: put}}
  - {id: other, description: d, type: AI_AGENT, subtype: GOOGLE_GEMINI, configurations: {llm_profile: claude, fallback_profiles: [claude], filling_profile: claude, user_prompt: q}}
  - {id: same, description: d, type: AI_AGENT, subtype: ANTHROPIC_CLAUDE, configurations: {profile_id: claude, user_prompt: q}}
  - {id: stand_in, description: d, type: AI_AGENT, subtype: GOOGLE_GEMINI, configurations: {profile_id: scripted, user_prompt: q}}
connections:
  - {from_node: start, to_node: calls}
  - {from_node: start, to_node: chosen}
  - {from_node: start, to_node: unset}
  - {from_node: start, to_node: unfit}
  - {from_node: start, to_node: waits}
  - {from_node: start, to_node: model}
  - {from_node: start, to_node: tool}
  - {from_node: start, to_node: child}
  - {from_node: start, to_node: draft}
  - {from_node: start, to_node: number}
  - {from_node: start, to_node: ask}
  - {from_node: start, to_node: slack}
  - {from_node: start, to_node: filled}
  - {from_node: start, to_node: clerk}
  - {from_node: start, to_node: off}
  - {from_node: start, to_node: later}
  - {from_node: start, to_node: other}
  - {from_node: start, to_node: same}
  - {from_node: start, to_node: stand_in}
`

// A workflow that needs what is not there is not deployed, and all of it is told at once, with the node, the field and the remedy.
func TestDeploy_NamesAllThatIsMissing(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, strings.ReplaceAll(twoNodes, "ID", "kid"))
	token := x.keepCredential(t, "Shop", "openai", "0123456789abcdef")
	x.putProfile(t, "claude", `{"provider":"anthropic","model":"m"}`)
	x.putProfile(t, "scripted", `{"provider":"scripted","script":{"rules":[{"reply":"hi"}]}}`)
	saved := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows", fmt.Sprintf(lacksAll, token, token)), http.StatusCreated)
	if !warned(saved.Problems, "workflow_not_deployed", "nodes[9].configurations.workflow_id", `deploy it`) || !warned(saved.Problems, "unfit_profile", "nodes[17].configurations.llm_profile", `speaks with "gemini"`) {
		t.Errorf("when it is saved: %+v", saved.Problems)
	}
	for _, p := range saved.Problems {
		if p.Severity != "warning" {
			t.Errorf("it is more than a warning when it is saved: %+v", p)
		}
	}
	f := refused(t, x.call(t, "editor", "POST", "/workflows/lacks/deploy", nil), http.StatusUnprocessableEntity, "invalid")
	var got []string
	for _, e := range f.Errors {
		got = append(got, e.Code+" "+e.Path)
		if e.Severity != "error" {
			t.Errorf("%+v is not an error", e)
		}
	}
	slices.Sort(got)
	wanted := []string{
		"credential_missing nodes[1].configurations.credential_id",
		"credential_missing nodes[12].configurations.credential_id",
		"credential_missing nodes[2].configurations.credential_id",
		"credential_missing nodes[3].configurations.credential_id",
		"unfit_credential nodes[4].configurations.credential_id",
		"unfit_credential nodes[5].configurations.credential_id",
		"unfit_profile nodes[17].configurations.llm_profile",
		"unknown_agent nodes[14].configurations.agent_id",
		"unknown_approver nodes[11].configurations.approvers[0]",
		"unknown_approver nodes[11].configurations.escalation.to[0]",
		"unknown_profile nodes[11].configurations.ai_analysis_model",
		"unknown_profile nodes[6].configurations.profile_id",
		"unknown_server nodes[6].configurations.tools[0]",
		"unknown_server nodes[7].configurations.server_id",
		"unknown_template nodes[13].configurations.template_id",
		"unknown_workflow metadata.settings.error_workflow",
		"unknown_workflow nodes[8].configurations.workflow_id",
		"workflow_not_deployed nodes[10].configurations.workflow_id",
		"workflow_not_deployed nodes[9].configurations.workflow_id",
	}
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
	for path, part := range map[string]string{
		"nodes[1].configurations.credential_id": `node "calls": the credential "cred_none" does not exist`, "nodes[9].configurations.workflow_id": `deploy it, or set revision to "latest"`,
		"nodes[4].configurations.credential_id": "is of the type openai, and the node needs sql", "metadata.settings.error_workflow": "save it, or name another one",
	} {
		if !slices.ContainsFunc(f.Errors, func(e api.FaultField) bool { return e.Path == path && strings.Contains(e.Message, part) }) {
			t.Errorf("%s does not say %q: %+v", path, part, f.Errors)
		}
	}
	w := want[api.Workflow](t, x.call(t, "viewer", "GET", "/workflows/lacks", nil), http.StatusOK)
	if w.Metadata.DeploymentStatus != "failed" || !strings.Contains(w.Metadata.DeploymentError, `node "calls"`) || !strings.Contains(w.Metadata.DeploymentError, "and 9 more") {
		t.Errorf("metadata %+v", w.Metadata)
	}
}

// A question that names nobody is put to whoever has started the execution: behind a trigger there is nobody, which is found when it is
// deployed.
func TestDeploy_NobodyToAsk(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	asks := func(id, trigger, config string) string {
		return `
metadata: {id: ` + id + `, name: ` + id + `, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, ` + trigger + `}
  - {id: other, description: d, type: CALL, subtype: EMPTY}
  - {id: ask, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: t` + config + `}}
connections:
  - {from_node: start, to_node: other}
  - {from_node: other, to_node: ask}
`
	}
	const hook, hourly = `subtype: WEBHOOK, configurations: {webhook_path: /in}`, `subtype: CRON, configurations: {cron_expression: "@hourly"}`
	for id, trigger := range map[string]string{"hook": hook, "hourly": hourly} {
		x.save(t, asks(id, trigger, ""))
		f := refused(t, x.call(t, "editor", "POST", "/workflows/"+id+"/deploy", nil), http.StatusUnprocessableEntity, "invalid")
		if len(f.Errors) != 1 || f.Errors[0].Code != "unknown_approver" || f.Errors[0].Path != "nodes[2].configurations.approvers" {
			t.Errorf("%s: %+v", id, f.Errors)
		}
		for name, config := range map[string]string{id + "-off": ", enabled: false", id + "-named": `, approvers: ["{{who}}"]`} {
			x.save(t, asks(name, trigger, config))
			want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/"+name+"/deploy", nil), http.StatusOK)
		}
	}
	x.save(t, asks("manual", "subtype: MANUAL", ""))
	want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/manual/deploy", nil), http.StatusOK)
}

// twoNodes is a workflow of two nodes.
const twoNodes = `
metadata: {id: ID, name: ID, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: out, description: d, type: CALL, subtype: EMPTY}
connections:
  - {from_node: start, to_node: out}
`

// What is made later lets the workflow be deployed; a missing credential alone goes by its own code, and two workflows that start each
// other can be deployed.
func TestDeploy_WhenEverythingIsThere(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	calls := func(id, other string) string {
		return strings.Replace(strings.ReplaceAll(twoNodes, "ID", id), "type: CALL, subtype: EMPTY", "type: FLOW, subtype: SUB_WORKFLOW, configurations: {workflow_id: "+other+"}", 1)
	}
	deploy := func(id string) answer { return x.call(t, "editor", "POST", "/workflows/"+id+"/deploy", nil) }
	x.save(t, calls("parent", "child"))
	x.save(t, strings.ReplaceAll(twoNodes, "ID", "child"))
	if f := refused(t, deploy("parent"), http.StatusUnprocessableEntity, "invalid"); !strings.Contains(f.Detail, `"child" is not deployed`) {
		t.Errorf("problem %+v", f)
	}
	want[api.WorkflowMetadata](t, deploy("child"), http.StatusOK)
	want[api.WorkflowMetadata](t, deploy("parent"), http.StatusOK)

	x.save(t, calls("ping", "pong"))
	x.save(t, calls("pong", "ping"))
	x.save(t, calls("itself", "itself"))
	for _, id := range []string{"ping", "pong", "itself"} {
		want[api.WorkflowMetadata](t, deploy(id), http.StatusOK)
	}

	reads := strings.Replace(strings.ReplaceAll(twoNodes, "ID", "reads"), "type: CALL, subtype: EMPTY", `type: ACTION, subtype: HTTP_REQUEST, configurations: {credential_id: none, url: "http://127.0.0.1/"}`, 1)
	x.save(t, reads)
	refused(t, deploy("reads"), http.StatusUnprocessableEntity, "credential_missing")
	made := want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", `{"name":"Shop","type":"http_auth","data":{"scheme":"bearer","token":"0123456789abcdef","allowed_hosts":["127.0.0.1"]}}`), http.StatusCreated).ID
	want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/reads", strings.Replace(reads, "credential_id: none", "credential_id: "+made, 1)), http.StatusOK)
	if m := want[api.WorkflowMetadata](t, deploy("reads"), http.StatusOK); m.DeploymentStatus != "deployed" || len(m.Warnings) > 0 {
		t.Errorf("metadata %+v", m)
	}
}
