package app

import (
	"context"
	"testing"

	"tandem/engine"
	"tandem/host"
	"tandem/host/local"
	"tandem/store"
	"tandem/store/sqlite/sqlitetest"
)

// TestInstance_EmittedEnds: a host tells an instance what a run hands out, and that nothing more comes of it. Then the instance lets go of it, also
// when no row that it has recorded itself has ended the run: on a worker another process may have done that.
func TestInstance_EmittedEnds(t *testing.T) {
	t.Parallel()
	var told local.Options
	i, err := Open(t.Context(), Options{Dir: sqlitetest.Dir(t), Host: func(ctx context.Context, o local.Options) (Host, error) {
		told = o
		return newLocalHost(ctx, o)
	}})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, i)
	ref := store.Ref{Workspace: "default", Execution: "x"}
	first, second := engine.Attempt{Activation: "say", Attempt: 1}, engine.Attempt{Activation: "say", Attempt: 2}
	held := func() (texts []string) {
		sub := i.hub.Subscribe(host.Ref(ref))
		defer sub.Close()
		_, outputs, _ := sub.Sync()
		for _, o := range outputs {
			texts = append(texts, o.Text)
		}
		return texts
	}
	told.Emitted(ref, first, "Once ")
	told.Emitted(ref, first, "upon ")
	if got := held(); len(got) != 1 || got[0] != "Once upon " {
		t.Errorf("while it speaks %q is held", got)
	}
	told.Emitted(ref, first, nil)
	if got := held(); len(got) != 0 {
		t.Errorf("after its end %q is held", got)
	}
	told.Emitted(ref, second, "Twice ")
	told.Emitted(ref, first, nil) // which ends later than another has begun
	if got := held(); len(got) != 1 || got[0] != "Twice " {
		t.Errorf("of the attempt that goes on %q is held", got)
	}
}
