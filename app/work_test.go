package app

import (
	"context"
	"errors"
	"testing"

	"tandem/store"
)

// endingHost is a host that may fail, endingStore a store that may stop.
type endingHost struct {
	Host
	failed chan error
}

// Failed is told why it has failed.
func (h endingHost) Failed() <-chan error { return h.failed }

type endingStore struct {
	Store
	broken chan struct{}
}

// Broken implements Store.
func (s endingStore) Broken() <-chan struct{} { return s.broken }

// Err implements Store.
func (endingStore) Err() error { return store.ErrBroken }

// TestWork_Ends lets a worker end: when it is told to without an error, and with the reason when it cannot go on, so that its supervisor starts it again.
func TestWork_Ends(t *testing.T) {
	t.Parallel()
	refused := errors.New("the namespace is gone")
	for name, c := range map[string]struct {
		happens func(h endingHost, s endingStore, stop context.CancelFunc)
		want    error
	}{
		"Told":    {func(_ endingHost, _ endingStore, stop context.CancelFunc) { stop() }, nil},
		"Refused": {func(h endingHost, _ endingStore, _ context.CancelFunc) { h.failed <- refused }, refused},
		"Stopped": {func(_ endingHost, s endingStore, _ context.CancelFunc) { close(s.broken) }, store.ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			h, s := endingHost{failed: make(chan error, 1)}, endingStore{broken: make(chan struct{})}
			ended := make(chan error, 1)
			go func() { ended <- (&Instance{host: h, db: s}).awaitEnd(ctx) }()
			c.happens(h, s, stop)
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("it ends with %v, want %v", err, c.want)
			}
		})
	}
}
