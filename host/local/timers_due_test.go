package local

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tandem/engine"
	"tandem/store"
)

// Only so many timers are on their way to executions: the next one waits until one was dealt with, or refused.
func TestHost_FiresSoManyTimersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &Host{ctx: t.Context(), owners: map[store.Ref]*owner{}, firing: make(chan struct{}, 2)}
		ref := store.Ref{Workspace: "w", Execution: "x"}
		o := h.newOwner(ref, nil)
		h.owners[ref] = o
		var fired atomic.Int64
		go func() {
			for _, id := range []engine.TimerID{"a#1", "b#1", "c#1", "d#1", "e#1"} {
				h.due(ref, id)
				fired.Add(1)
			}
		}()
		fires := func(want int64) {
			t.Helper()
			if synctest.Wait(); fired.Load() != want {
				t.Fatalf("%d were fired, want %d", fired.Load(), want)
			}
		}
		fires(2)
		first := o.takeAll()
		dealtWith(first)
		dealtWith(first) // once more says nothing new
		fires(4)
		refuse(o.takeAll(), errors.New("the execution cannot be read"))
		fires(5)
		if left := o.takeAll(); len(left) != 1 || left[0].(timerDue).id != "e#1" {
			t.Errorf("left are %v", left)
		}
	})
}
