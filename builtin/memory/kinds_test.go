package memory_test

import (
	"sync"
	"testing"

	family "tandem/builtin/memory"
	"tandem/memory"
	"tandem/node/nodetest"
)

// kinds are those of this package with nothing to run them with.
var kinds = sync.OnceValue(func() nodetest.Kinds {
	return nodetest.Of(family.Kinds(family.Deps{Memories: memory.New(memory.Options{})})...)
})

func TestKinds(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
}
