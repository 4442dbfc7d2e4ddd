package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/builtin/flow"
	"tandem/builtin/models/modelstest"
	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/node/nodetest"
)

func TestSwitch_LetsAModelChoose(t *testing.T) {
	t.Parallel()
	const config = `{"propose": "the printer is on fire", "llm_profile": "m", "choices": [{"branch": "urgent", "description": "at once"}, {"branch": "later", "description": "some day"}]}`
	choose := func(rules ...llm.Rule) (node.Outcome, error) {
		call := nodetest.NewCall(t, config, `{"id": 7}`)
		call.Used, call.Detail = func(node.Usage) {}, func(map[string]any) {}
		return nodetest.Of(flow.Kinds(flow.Deps{Models: modelstest.Scripted(rules...)})...).Kind(t, "FLOW.SWITCH").Run(t.Context(), call)
	}
	out, err := choose(
		llm.Rule{Contains: "cannot be used", JSON: json.RawMessage(`{"branch":"urgent"}`)},
		llm.Rule{System: "urgent: at once", Contains: "on fire", Reply: "now!"},
	)
	if done, ok := out.(node.Done); err != nil || !ok || !strings.Contains(string(done["urgent"]), `"branch_id":"urgent"`) || !strings.Contains(string(done["urgent"]), `"id":7`) {
		t.Errorf("got %v, %v", out, err)
	}
	if out, err := choose(llm.Rule{JSON: json.RawMessage(`{"branch":"never"}`)}); err != nil || out.(node.Done)["default"] == nil {
		t.Errorf("no usable answer: %v, %v", out, err)
	}
	if _, err := choose(llm.Rule{Fail: string(fault.RateLimited)}); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("a model that cannot be reached: %v", err)
	}
}
