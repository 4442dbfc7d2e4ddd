package app

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
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
      approvers: [operator, "user:viewerr", "ann@example.com", "role:editor", "{{who}}", "slack:U1", local]
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

// What a workflow names and the workspace does not have is told when it is validated on a server, saved, copied and deployed.
func TestAbsent_IsToldWhenSaved(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	checked := want[api.Validation](t, x.call(t, "editor", "POST", "/workflows/validate", asksPeople, "Content-Type", "application/yaml"), http.StatusOK)
	saved := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows", asksPeople, "Content-Type", "application/yaml"), http.StatusCreated)
	again := want[api.Saved](t, x.call(t, "editor", "PUT", "/workflows/asks", asksPeople, "Content-Type", "application/yaml"), http.StatusOK)
	copied := want[api.Saved](t, x.call(t, "editor", "POST", "/workflows/asks/copy", api.CopyRequest{ID: "copy"}), http.StatusCreated)
	deployed := want[api.WorkflowMetadata](t, x.call(t, "editor", "POST", "/workflows/asks/deploy", nil), http.StatusOK)
	for name, list := range map[string][]api.Problem{"validate": checked.Problems, "create": saved.Problems, "update": again.Problems, "copy": copied.Problems, "deploy": deployed.Warnings} {
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
