package node_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"tandem/node"
	"tandem/node/shape"
)

// A configuration names records where the tags of its kind say so: at any depth, in lists, under older names; a placeholder names nothing
// yet.
func TestKind_Mentions(t *testing.T) {
	t.Parallel()
	type step struct {
		Asks []string `json:"asks" names:"person"`
	}
	type config struct {
		Profile string  `json:"llm_profile" names:"profile" older:"profile_id"`
		More    []any   `json:"more" names:"profile"`
		Steps   []step  `json:"steps"`
		Next    *step   `json:"next"`
		Other   string  `json:"other"`
		Count   float64 `json:"count"`
	}
	kind := node.Define(node.About{Name: "CALL.NAMES"}, func(context.Context, *node.Call, config, json.RawMessage) (node.Outcome, error) { return nil, nil })
	raw := json.RawMessage(`{"profileId":"a","more":["b","{{c}}",3],"steps":[{"asks":["ann"]},{"asks":["bob","${who}"]}],"next":{"asks":["cy"]},"other":"x","filling_profile":"d","template_id":"t"}`)
	for sort, want := range map[node.RecordSort][]node.Mention{
		shape.NamesProfile:  {{Text: "a", Path: "profileId"}, {Text: "b", Path: "more[0]"}, {Text: "d", Path: "filling_profile"}},
		shape.NamesPerson:   {{Text: "ann", Path: "steps[0].asks[0]"}, {Text: "bob", Path: "steps[1].asks[0]"}, {Text: "cy", Path: "next.asks[0]"}},
		shape.NamesTemplate: {{Text: "t", Path: "template_id"}},
		shape.NamesAgent:    nil,
	} {
		if got := kind.Mentions(raw, sort); !slices.Equal(got, want) {
			t.Errorf("%s: %v; want %v", sort, got, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a tag names a sort of records that there is not, and nobody notices")
		}
	}()
	node.ConfigurationSchema[struct {
		A string `json:"a" names:"profil"`
	}]()
}
