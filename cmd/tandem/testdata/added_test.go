package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
)

// TestAdded is compiled into the tests of package app by TestAdding of the command, with what that adds. All of it is known, told of and used.
func TestAdded(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	kinds := want[api.NodeKinds](t, x.call(t, "viewer", "GET", "/node-kinds", nil), http.StatusOK).NodeKinds
	for name, parts := range map[string][]string{
		"FLOW.ECHO":                         {"应答。", "是否应答。", "Says what it is told."},
		"HUMAN_IN_THE_LOOP.IN_APP_APPROVAL": {"pigeon"},
		"AI_AGENT.MACAW":                    {"How freely it speaks.", "The model profile"},
	} {
		at := slices.IndexFunc(kinds, func(k api.NodeKind) bool { return k.Name == name })
		if at < 0 {
			t.Errorf("there is no %s", name)
			continue
		}
		for _, part := range parts {
			if told := fmt.Sprintf("%s %+v", kinds[at].ConfigSchema, kinds[at]); !strings.Contains(told, part) {
				t.Errorf("%s does not tell of %q: %s", name, part, told)
			}
		}
	}
	x.putProfile(t, "bird", `{"provider":"parrot","model":"grey"}`)
	if got := want[api.ProfileTest](t, x.call(t, "editor", "POST", "/llm/profiles/bird/test", nil), http.StatusOK); got.Reply != "Pieces of eight!" {
		t.Errorf("the provider says %+v", got)
	}
	x.deploys(t, "door", "metadata: {id: door, name: door, description: d}\nnodes:\n  - {id: bell, description: d, type: TRIGGER, subtype: DOORBELL, configurations: {name_plate: Ann}}\n"+
		"  - {id: echo, description: d, type: FLOW, subtype: ECHO, configurations: {loud: true}}\nconnections:\n  - {id: c1, from_node: bell, to_node: echo}\n")
	list := want[api.Triggers](t, x.call(t, "viewer", "GET", "/workflows/door/triggers", nil), http.StatusOK).Triggers
	if len(list) != 1 || list[0].Kind != "TRIGGER.DOORBELL" || !strings.HasSuffix(list[0].Address, "/hooks/door/ring") || fmt.Sprint(list[0].Methods) != "[POST]" {
		t.Errorf("the bell is at %+v", list)
	}
	e, _ := x.startedBy(t, x.hooked(t, "POST", "door/ring", `{}`))
	if said := string(e.NodeExecutions["echo"].OutputData["result"]); !strings.Contains(said, `"bell":"Ann"`) {
		t.Errorf("the echo says %s", said)
	}
}
