package app

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tandem/builtin/models"
	"tandem/mcp"
	"tandem/memory"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

// A name that is only reserved can be read, is in no list, is looked through for secrets, and is refused when a workflow is checked, with the
// place where it stands.
func TestKinds_ReservedName(t *testing.T) {
	t.Parallel()
	var kinds node.Registry
	register(&kinds, builtIn(outbound.Options{}, kindDeps{Models: &models.Models{}, Memories: memory.New(memory.Options{}), Tools: &mcp.Pool{}, Agents: agents{}}))
	kinds.Reserve(node.About{Name: "EXTERNAL_ACTION.SOMEDAY"})
	if slices.Contains(kinds.Names(), "EXTERNAL_ACTION.SOMEDAY") {
		t.Error("it is listed")
	}
	k, ok := kinds.Kind("EXTERNAL_ACTION.SOMEDAY")
	if !ok {
		t.Fatal("it is not known")
	}
	plan := func(config string) (workflow.Plan, []workflow.Problem) {
		return k.Plan(&workflow.Node{ID: "n", Name: "n", Type: "EXTERNAL_ACTION", Subtype: "SOMEDAY", Configurations: json.RawMessage(config)})
	}
	if p, problems := plan(`{"anything": 1, "credential_id": "c"}`); p.Keys != nil || p.Effect != workflow.Once || len(problems) > 0 {
		t.Errorf("plan %+v, problems %v", p, problems)
	}
	if _, problems := plan(`{"board": "a", "bot_token": "xoxb-1", "credential_id": "c"}`); !slices.Equal(told(problems), []string{"inline_secret configurations.bot_token"}) {
		t.Errorf("with a secret: %v", problems)
	}
	_, problems := check([]byte("metadata: {id: f, name: f}\nnodes: [{id: n, type: EXTERNAL_ACTION, subtype: SOMEDAY}]\n"), &kinds, nil)
	i := slices.Index(told(problems), "unsupported nodes[0].subtype")
	if i < 0 || !strings.Contains(problems[i].Message, "cannot be run by this version") || problems[i].Line == 0 {
		t.Errorf("problems %+v", problems)
	}
}
