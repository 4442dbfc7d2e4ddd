package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
)

// guardFlow is a workflow of nodes written as "id TYPE.SUBTYPE {configurations}" and connections written as "from to key".
func guardFlow(id, more string, nodes, links []string) string {
	var b strings.Builder
	b.WriteString("metadata: {id: " + id + ", name: " + id + ", description: d}\n" + more + "nodes:\n")
	for _, n := range nodes {
		name, rest, _ := strings.Cut(n, " ")
		kind, config, _ := strings.Cut(rest, " ")
		family, subtype, _ := strings.Cut(kind, ".")
		if config == "" {
			config = "{}"
		}
		b.WriteString("  - {id: " + name + ", description: d, type: " + family + ", subtype: " + subtype + ", configurations: " + config + "}\n")
	}
	b.WriteString("connections:\n")
	for _, l := range links {
		parts := strings.Fields(l)
		b.WriteString("  - {from_node: " + parts[0] + ", to_node: " + parts[1])
		if len(parts) > 2 {
			b.WriteString(", output_key: " + parts[2])
		}
		b.WriteString("}\n")
	}
	return b.String()
}

const (
	guardStart = "start TRIGGER.MANUAL"
	guardAsk   = `HUMAN_IN_THE_LOOP.IN_APP_APPROVAL {title: Q, approvers: ["user:approver"]}`
	guardPay   = "pay CALL.EMPTY"
)

// Nobody gets to what questions guard: not by triggers that cannot start the workflow, not where one of several questions is asked
// on each way, and not by a workflow that only a run tells.
func TestPeopleGuard_Start(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	line := []string{"start ask", "ask pay confirmed"}
	x.save(t, guardFlow("g_off", "", []string{guardStart, "t2 TRIGGER.MANUAL {enabled: false}", "ask " + guardAsk, guardPay}, append([]string{"t2 pay"}, line...)))
	x.save(t, guardFlow("g_unlisted", "triggers: [start]\n", []string{guardStart, "t2 TRIGGER.MANUAL", "ask " + guardAsk, guardPay}, append([]string{"t2 pay"}, line...)))
	x.save(t, guardFlow("g_orphan", "", []string{guardStart, "o CALL.EMPTY", "ask " + guardAsk, guardPay}, append([]string{"o pay"}, line...)))
	branches := []string{guardStart, `if FLOW.IF {condition_expression: "1 < 2"}`, "a1 " + guardAsk, "a2 " + guardAsk, "m FLOW.MERGE", guardPay}
	x.save(t, guardFlow("g_branches", "", branches, []string{"start if", "if a1 true", "if a2 false", "a1 m confirmed", "a2 m confirmed", "m pay"}))
	x.save(t, guardFlow("g_one_branch", "", append(branches[:3:3], "lo CALL.EMPTY"), []string{"start if", "if a1 true", "if lo false"}))
	x.save(t, guardFlow("g_free", "", []string{guardStart, branches[1], "a1 " + guardAsk, "m FLOW.MERGE", guardPay}, []string{"start if", "if a1 true", "if m false", "a1 m confirmed", "m pay"}))
	calls := func(config string) []string {
		return []string{guardStart, "call FLOW.SUB_WORKFLOW " + config, guardPay}
	}
	called := []string{"start call", "call pay"}
	x.save(t, guardFlow("g_computed", "", calls(`{workflow_id: "{{which}}", revision: latest}`), called))
	x.save(t, guardFlow("g_child_branches", "", calls(`{workflow_id: g_branches, revision: latest}`), called))
	x.save(t, guardFlow("g_child_free", "", calls(`{workflow_id: g_one_branch, revision: latest}`), called))
	for name, c := range map[string]struct {
		workflow, at string
		status       int
		code         string // "": it begins
		asks         int
	}{
		"behind, with a trigger that is off":         {"g_off", "pay", 0, "", 1},
		"at a trigger that is off":                   {"g_off", "t2", http.StatusUnprocessableEntity, "invalid_input", 0},
		"behind, with a trigger that is not listed":  {"g_unlisted", "pay", 0, "", 1},
		"at a trigger that is not listed":            {"g_unlisted", "t2", http.StatusConflict, "approval_required", 0},
		"behind, with a node nothing leads to":       {"g_orphan", "pay", 0, "", 1},
		"at a node that nothing leads to":            {"g_orphan", "o", http.StatusConflict, "approval_required", 0},
		"behind a question on each way":              {"g_branches", "pay", http.StatusConflict, "approval_required", 0},
		"where the ways meet":                        {"g_branches", "m", http.StatusConflict, "approval_required", 0},
		"at one of the questions":                    {"g_branches", "a2", 0, "", 1},
		"before them":                                {"g_branches", "if", 0, "", 1},
		"behind a question that can be avoided":      {"g_free", "pay", 0, "", 0},
		"behind a workflow that is computed":         {"g_computed", "pay", http.StatusConflict, "approval_required", 0},
		"behind a workflow that asks on each way":    {"g_child_branches", "pay", http.StatusConflict, "approval_required", 0},
		"behind a workflow that can do without":      {"g_child_free", "pay", 0, "", 0},
		"at the node that runs a workflow that asks": {"g_computed", "call", 0, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := x.call(t, "operator", "POST", "/workflows/"+c.workflow+"/execute", api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":7,"which":"g_branches"}`), StartFromNode: c.at})
			if c.code != "" {
				refused(t, r, c.status, c.code)
				return
			}
			id := want[api.ExecuteResponse](t, r, http.StatusAccepted).ExecutionID
			if c.asks == 0 {
				x.reaches(t, id, engine.StatusSuccess)
				return
			}
			x.opens(t, id, c.asks)
			if pay := x.read(t, id).NodeExecutions["pay"]; pay.Status == "completed" {
				t.Error("it has paid")
			}
		})
	}
}

// What has run may not be gone on with behind such questions either, and nobody gives the output of what asks.
func TestPeopleGuard_Go(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.save(t, guardFlow("asking", "", []string{guardStart, `if FLOW.IF {condition_expression: "1 < 2"}`, "a1 " + guardAsk, "a2 " + guardAsk, "m FLOW.MERGE", guardPay},
		[]string{"start if", "if a1 true", "if a2 false", "a1 m confirmed", "a2 m confirmed", "m pay"}))
	x.save(t, guardFlow("sometimes", "", []string{guardStart, `if FLOW.IF {condition_expression: "1 < 2"}`, "a1 " + guardAsk}, []string{"start if", "if a1 true"}))
	inputs := func(which string) api.ExecuteRequest {
		return api.ExecuteRequest{Inputs: json.RawMessage(`{"amount":7,"which":"` + which + `"}`)}
	}
	run := func(t *testing.T, workflow, which string) string {
		t.Helper()
		id := x.execute(t, workflow, inputs(which))
		want[api.Interaction](t, x.respond(t, "approver", x.opens(t, id, 1)[0].ID, approved), http.StatusOK)
		x.reaches(t, id, engine.StatusSuccess)
		return id
	}
	cannot := func(t *testing.T, execution string, r api.ActionRequest) {
		t.Helper()
		refused(t, x.call(t, "operator", "POST", "/executions/"+execution+"/actions", r), http.StatusConflict, "approval_required")
	}
	t.Run("Branches", func(t *testing.T) {
		t.Parallel()
		id := run(t, "asking", "")
		for _, node := range []string{"m", "pay"} {
			cannot(t, id, api.ActionRequest{Action: "fork", NodeID: node})
			cannot(t, id, api.ActionRequest{Action: "fork", NodeID: node, Input: json.RawMessage(`{"amount":9}`)})
		}
	})
	for _, which := range []string{"asking", "sometimes"} {
		for name, config := range map[string]string{"computed": `{workflow_id: "{{which}}", revision: latest}`, "literal": `{workflow_id: ` + which + `, revision: latest}`} {
			t.Run(which+"_"+name, func(t *testing.T) {
				t.Parallel()
				flow := "runs_" + which + "_" + name
				x.save(t, guardFlow(flow, "", []string{guardStart, "call FLOW.SUB_WORKFLOW " + config, guardPay}, []string{"start call", "call pay"}))
				id := x.execute(t, flow, inputs(which))
				x.opens(t, id, 1)
				cannot(t, id, api.ActionRequest{Action: "skip_node", NodeID: "call", Output: json.RawMessage(`{"result":{"ok":1}}`)})
				if name == "computed" {
					cannot(t, run(t, flow, which), api.ActionRequest{Action: "fork", NodeID: "pay"})
				}
			})
		}
	}
}

// on_error is not an approval: neither a question that somebody withdraws nor one that nobody is asked lets what it guards run.
func TestPeopleGuard_OnError(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const (
		defaults = `on_error: default_output, default_output: {ok: 1}`
		nobody   = `, approvers: ["user:operator"], exclude_requester: true`
	)
	asks := func(config string) string {
		if !strings.HasPrefix(config, nobody) {
			config = `, approvers: ["user:approver"]` + config
		}
		return "ask HUMAN_IN_THE_LOOP.IN_APP_APPROVAL {title: Q" + config + "}"
	}
	x.save(t, guardFlow("withdrawn_child", "", []string{guardStart, asks("")}, []string{"start ask"}))
	for name, c := range map[string]struct {
		nodes, links []string
		late         bool // nobody can be asked
		child        bool // the execution that asks is cancelled
		status       engine.Status
		runs         string // the node that runs all the same
	}{
		"continue": {nodes: []string{guardStart, asks(", on_error: continue"), guardPay}, links: []string{"start ask", "ask pay error"}, status: engine.StatusError},
		"around it": {nodes: []string{guardStart, "to FLOW.TIMEOUT {timeout_seconds: 600, " + defaults + "}", asks(""), guardPay},
			links: []string{"start to", "to ask body", "to pay result"}, status: engine.StatusError},
		"above it": {nodes: []string{guardStart, "call FLOW.SUB_WORKFLOW {workflow_id: withdrawn_child, revision: latest, " + defaults + "}", guardPay},
			links: []string{"start call", "call pay"}, status: engine.StatusError},
		"the execution that asks": {nodes: []string{guardStart, "call FLOW.SUB_WORKFLOW {workflow_id: withdrawn_child, revision: latest, " + defaults + "}", guardPay},
			links: []string{"start call", "call pay"}, child: true, status: engine.StatusError},
		"nobody, continue": {nodes: []string{guardStart, asks(nobody + ", on_error: continue"), guardPay, "tell CALL.EMPTY"},
			links: []string{"start ask", "ask pay", "ask tell error"}, late: true, status: engine.StatusSuccess, runs: "tell"},
		"nobody, around it": {nodes: []string{guardStart, "to FLOW.TIMEOUT {timeout_seconds: 600, " + defaults + "}", asks(nobody), guardPay},
			links: []string{"start to", "to ask body", "to pay result"}, late: true, status: engine.StatusSuccess},
		"advisory": {nodes: []string{guardStart, asks(", advisory: true, " + defaults), guardPay}, links: []string{"start ask", "ask pay"}, status: engine.StatusSuccess, runs: "pay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flow := strings.NewReplacer(" ", "_", ",", "").Replace("w_" + name)
			x.save(t, guardFlow(flow, "", c.nodes, c.links))
			id := x.execute(t, flow, api.ExecuteRequest{})
			if !c.late {
				q := x.opens(t, id, 1)[0]
				if c.child {
					want[api.ActionResponse](t, x.call(t, "operator", "POST", "/executions/"+q.ExecutionID+"/actions", api.ActionRequest{Action: "cancel"}), http.StatusOK)
				} else {
					want[api.Interaction](t, x.call(t, "operator", "POST", "/interactions/"+q.ID+"/cancel", `{"reason":"no"}`), http.StatusOK)
				}
			}
			x.reaches(t, id, c.status)
			for _, node := range []string{"pay", "tell"} {
				if ran := x.read(t, id).NodeExecutions[node].Status == "completed"; ran != (node == c.runs) {
					t.Errorf("%s ran: %v", node, ran)
				}
			}
		})
	}
}
