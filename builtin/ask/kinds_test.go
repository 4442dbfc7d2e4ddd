package ask_test

import (
	"context"
	"sync"
	"testing"

	"tandem/builtin/ask"
	"tandem/human"
	"tandem/node/nodetest"
)

// hook is a channel to programs, as far as kinds know it.
type hook struct{}

func (hook) Name() string { return "webhook" }

func (hook) Send(context.Context, human.Message) (human.Receipt, error) { return human.Receipt{}, nil }

func (hook) Traits() human.Traits {
	return human.Traits{Credentials: []string{"webhook_secret"}, TakesURL: true, NeedsURL: true}
}

// kinds are those of this package with nothing to run them with.
var kinds = sync.OnceValue(func() nodetest.Kinds {
	return nodetest.Of(ask.Kinds(ask.Deps{Channels: []human.Channel{hook{}}})...)
})

func TestKinds(t *testing.T) {
	t.Parallel()
	nodetest.Conform(t, kinds())
}
