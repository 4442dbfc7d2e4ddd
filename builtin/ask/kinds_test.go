package ask_test

import (
	"sync"
	"testing"

	"tandem/builtin/ask"
	"tandem/node/nodetest"
)

// kinds are those of this package with nothing to run them with.
var kinds = sync.OnceValue(func() nodetest.Kinds { return nodetest.Of(ask.Kinds(ask.Deps{})...) })

func TestKinds(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
}
