package app

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
	"tandem/workflow"
)

// TestInventory_Settings shows of every setting of a workflow what it changes; see inventory_test.go.
func TestInventory_Settings(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const names = `{id: n, name: n, description: d, type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {x: "a {{nothing}}"}}`
	const naps = `{id: n, name: n, description: d, type: FLOW, subtype: DELAY, configurations: {duration_seconds: 1}}`
	proofs := map[string]struct{ node, one, other, shown string }{
		"timeout_seconds":            {node: naps, one: "0.05", other: "60"},
		"on_unresolved":              {node: names, one: "keep", other: "error"},
		"error_workflow":             {shown: "TestSettings_ErrorWorkflow"},
		"max_concurrent_activations": {shown: "TestSettings_MaxConcurrentActivations"},
		"language":                   {shown: "TestLanguage_OfQuestionsAndSteps"},
	}
	for field := range reflect.TypeFor[workflow.Settings]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p, ok := proofs[name]
		if !ok {
			t.Errorf("nothing shows what the setting %s does; add an entry", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if p.shown != "" {
				if !hasTest(t, p.shown) {
					t.Errorf("there is no test %s, which is to show what %s does", p.shown, name)
				}
				return
			}
			ends := func(value string) string {
				id := fmt.Sprintf("%s_%s", name, strings.ReplaceAll(value, ".", ""))
				x.save(t, fmt.Sprintf(`{metadata: {id: %s, name: n, description: d, settings: {%s: %s}}, nodes: [{id: start, name: start, description: d, type: TRIGGER, subtype: MANUAL}, %s], connections: [{from_node: start, to_node: n}]}`, id, name, value, p.node))
				return x.outcome(t, x.execute(t, id, api.ExecuteRequest{Inputs: json.RawMessage(`{}`)}))
			}
			if one, other := ends(p.one), ends(p.other); one == other {
				t.Errorf("with %s and with %s it ends with %s", p.one, p.other, one)
			}
		})
	}
}

// outcome waits for the end of an execution and tells how it has ended.
func (x *site) outcome(t *testing.T, id string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sub := x.hub.Subscribe(host.Ref{Workspace: "default", Execution: id})
	defer sub.Close()
	for {
		e := x.read(t, id)
		if engine.Status(e.Status).Final() {
			return e.Status + " " + string(e.NodeExecutions["n"].OutputData["result"])
		}
		list, more, behind := sub.Next()
		if len(list) > 0 || behind {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("execution %q is %s", id, e.Status)
		}
	}
}
