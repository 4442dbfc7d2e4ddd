package console

import (
	"strings"
	"testing"

	"tandem/api"
)

// A list says of a question that it is asked in a fork, since that is not what somebody started.
func TestListedTitle(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"title":"Pay?","interaction_type":"approval"}`:                                                         "Pay?",
		`{"title":"Pay?","interaction_type":"approval","fork":{"execution_id":"x","edits":[{"name":"amount"}]}}`: "Pay? (a fork, 1 edited)",
		`{"title":"Pay?","interaction_type":"approval","fork":{"execution_id":"x","edits":[]}}`:                  "Pay? (a fork)",
	} {
		if got := listedTitle(&api.Interaction{Purpose: "human_node", InteractionType: "approval", RequestData: []byte(data)}); !strings.HasSuffix(got, want) {
			t.Errorf("%s is listed as %q, want %q", data, got, want)
		}
	}
}
