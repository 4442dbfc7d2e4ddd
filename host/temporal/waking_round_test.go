package temporal

import (
	"context"
	"testing"

	"tandem/host/local"
	"tandem/store"
)

// TestWaking_Emptied: who fills a line by pages is told when the page before was taken, and at once if nothing waits.
func TestWaking_Emptied(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	taken, gate := make(chan struct{}), make(chan struct{})
	var late waking
	late.begin(ctx, 1, func(context.Context, store.Ref, *local.Next) error {
		taken <- struct{}{}
		<-gate
		return nil
	})
	<-late.emptied()
	late.Wake(store.Ref{Execution: "a"})
	<-taken
	late.Wake(store.Ref{Execution: "b"})
	late.Wake(store.Ref{Execution: "c"})
	emptied := late.emptied()
	gate <- struct{}{}
	<-taken // c waits
	select {
	case <-emptied:
		t.Error("one that waits is taken for sent")
	default:
	}
	gate <- struct{}{}
	<-taken
	<-emptied
	gate <- struct{}{}
	late.end(stop)
}
