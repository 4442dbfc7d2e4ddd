package story

import (
	"encoding/json"
	"testing"

	"tandem/api"
)

// What an attached node did in another iteration is not told as this one's.
func TestAttachedExecutions(t *testing.T) {
	t.Parallel()
	detail := json.RawMessage(`{"attached_node":"web"}`)
	all := map[string]api.NodeExecution{
		"agent":          {ActivationID: "each[5]/agent"},
		"agent.call_1_1": {ActivationID: "each[5]/agent[0]/call_1_1", ExecutionDetails: detail},
		"agent.call_2_1": {ActivationID: "each[4]/agent[0]/call_2_1", ExecutionDetails: detail},
	}
	if got := attachedExecutions("agent", all)["web"]; len(got) != 1 || got[0].ActivationID != "each[5]/agent[0]/call_1_1" {
		t.Errorf("attached %+v", got)
	}
}
