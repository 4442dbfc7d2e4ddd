package temporal

import (
	"context"
	"fmt"
	"testing"

	"tandem/host/local"
	"tandem/store"
)

// TestWaking_LateOnesDelayNobody: wake-ups of a sweep that cannot be sent keep no fresh one waiting.
func TestWaking_LateOnesDelayNobody(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sent := make(chan string, 10)
	send := func(ctx context.Context, ref store.Ref, _ *local.Next) error {
		if ref.Workspace == "late" {
			<-ctx.Done() // the server takes its time
			return ctx.Err()
		}
		sent <- ref.Execution
		return nil
	}
	var fresh, late waking
	fresh.begin(ctx, wakers, send)
	late.begin(ctx, lateWakers, send)
	for i := range 1000 {
		late.Wake(store.Ref{Workspace: "late", Execution: fmt.Sprint(i)})
	}
	fresh.Wake(store.Ref{Workspace: "fresh", Execution: "x"})
	if got := <-sent; got != "x" {
		t.Errorf("sent was %q", got)
	}
	fresh.end(stop)
	late.end(stop)
}
