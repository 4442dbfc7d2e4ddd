package human

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/engine"
	"tandem/human/lineage"
)

// A question where a fork with edits begins names the values that it shows as they were: nobody has computed them from the edited ones.
func TestShowFork_Kept(t *testing.T) {
	t.Parallel()
	fork := api.Fork{ExecutionID: "e", ActivationID: "ask", NodeID: "ask", By: "editor", Edits: []api.ForkEdit{{Name: "amount", Original: json.RawMessage("99999"), Edited: json.RawMessage("1")}}}
	request := func(f api.Fork, asks engine.ActivationID) Request {
		r := Request{}
		r.Content = json.RawMessage(`{"amount":1,"total":119998.8,"to":"account-1"}`)
		r.showFork(&f, asks)
		return r
	}
	begins := request(fork, "ask")
	if !slices.Equal(begins.Fork.Kept, []string{"total", "to"}) || fork.Kept != nil {
		t.Errorf("the question names %q", begins.Fork.Kept)
	}
	for language, line := range map[string]string{"en": "Not edited, and not computed again from what was: total, to", "zh": "没有修改、也没有根据修改后的值重新计算：total, to"} {
		if lines := lineage.ForkLines(language, begins.Fork); !slices.Contains(lines, line) {
			t.Errorf("the lines are %q", lines)
		}
	}
	later := request(fork, "later")
	if lines := strings.Join(lineage.ForkLines("en", later.Fork), "\n"); later.Fork.Kept != nil || !strings.Contains(lines, "What was computed before node ask was not computed again from the edited values.") {
		t.Errorf("a later question says %s", lines)
	}
	fork.Edits = nil
	plain := request(fork, "ask")
	if lines := strings.Join(lineage.ForkLines("en", plain.Fork), "\n"); plain.Fork.Kept != nil || strings.Contains(lines, "computed") {
		t.Errorf("a fork without edits says %s", lines)
	}
}
