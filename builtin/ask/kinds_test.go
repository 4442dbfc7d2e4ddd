package ask_test

import (
	"sync"
	"testing"

	"tandem/builtin/ask"
	"tandem/human"
	"tandem/node/nodetest"
)

// kinds are those of this package with nothing to run them with.
var kinds = sync.OnceValue(func() nodetest.Kinds {
	return nodetest.Of(ask.Kinds(ask.Deps{Channels: []human.Channel{human.NewWebhook(nil)}})...)
})

func TestKinds(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
}
