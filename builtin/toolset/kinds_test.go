package toolset_test

import (
	"sync"
	"testing"

	"tandem/builtin/toolset"
	"tandem/mcp"
	"tandem/node/nodetest"
)

// kinds are those of this package with nothing to run them with.
var kinds = sync.OnceValue(func() nodetest.Kinds { return nodetest.Of(toolset.Kinds(toolset.Deps{Servers: &mcp.Pool{}})...) })

func TestKinds(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
}
