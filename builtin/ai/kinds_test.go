package ai_test

import (
	"sync"
	"testing"

	"tandem/builtin/ai"
	"tandem/builtin/models"
	"tandem/node/nodetest"
)

// kinds are those of this package with nothing to run them with.
var kinds = sync.OnceValue(func() nodetest.Kinds { return nodetest.Of(ai.Kinds(ai.Deps{Models: &models.Models{}})...) })

func TestKinds(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
}
