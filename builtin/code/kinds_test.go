package code_test

import (
	"sync"
	"testing"

	"tandem/builtin/code"
	"tandem/node/nodetest"
)

// kinds are those of this package with nothing to run them with.
var kinds = sync.OnceValue(func() nodetest.Kinds { return nodetest.Of(code.Kinds(code.Deps{})...) })

func TestKinds(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
}
