package agent_test

import (
	"testing"

	"tandem/agent"
)

func TestPartOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]agent.Part{
		"flow_name": {Kind: agent.KindFlowName}, "flow_risk": {Kind: agent.KindFlowRisk}, "confirm_flow": {Kind: agent.KindConfirmFlow}, "summary": {Kind: agent.KindSummary},
		"plan_3": {Kind: agent.KindPlan, Place: 3}, "confirm_12_2": {Kind: agent.KindConfirm, Place: 12}, "risk_1": {Kind: agent.KindToolRisk, Place: 1},
		"ask_2_3": {Kind: agent.KindAskParams, Place: 2}, "step_1": {Kind: agent.KindCall, Place: 1, Step: "step_1"}, "step_1_2": {Kind: agent.KindCall, Place: 1, Step: "step_1_2"},
		"step_1_2_try_3": {Kind: agent.KindCall, Place: 1, Step: "step_1_2"}, "step_10_try_2": {Kind: agent.KindCall, Place: 10, Step: "step_10"},
	} {
		if got := agent.PartOf(name); got != want {
			t.Errorf("%q is %+v, want %+v", name, got, want)
		}
	}
	for _, place := range []int{1, 12} {
		for n := range 3 {
			if id := agent.StepID(place, n+1); agent.PartOf(id) != (agent.Part{Kind: agent.KindCall, Place: place, Step: id}) {
				t.Errorf("the step %q is read as %+v", id, agent.PartOf(id))
			}
		}
	}
}
