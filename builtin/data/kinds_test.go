package data_test

import (
	"sync"
	"testing"

	"tandem/builtin/data"
	"tandem/node/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m) }

// kinds are those of this package with nothing to run them with.
var kinds = sync.OnceValue(func() nodetest.Kinds { return nodetest.Of(data.Kinds(data.Deps{})...) })

func TestKinds(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
}
