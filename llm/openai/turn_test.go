package openai_test

import (
	"testing"

	"tandem/builtin/ai"
	"tandem/builtin/models"
	"tandem/builtin/turn"
	"tandem/llm/openai"
	"tandem/node/nodetest"
	"tandem/plug"
)

// The kind with turns of this provider is one that the family of turns can make, and does what every kind must.
func TestTurns(t *testing.T) {
	t.Parallel()
	turns := map[string]turn.Kind{}
	for _, p := range openai.Extension(plug.Deps{}).Providers {
		turns[p.Name] = p.Turns
	}
	kinds := ai.Kinds(ai.Deps{Models: &models.Models{}, Turns: turns})
	nodetest.Conform(t, nodetest.Of(kinds...))
	if name := kinds[0].About.Name; name != turns[openai.Name].Name {
		t.Errorf("the first kind is %s", name)
	}
}
