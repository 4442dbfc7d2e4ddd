package limits

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tandem/fault"
)

// noPast is a window of a process that nothing came before.
func noPast(limit int) *testWindow {
	w := &testWindow{NewWindow(time.Now), limit}
	w.past = func(context.Context, string, time.Time, time.Time) (map[Starter][]time.Time, error) { return nil, nil }
	return w
}

// testWindow is a window with one bound.
type testWindow struct {
	*Window
	limit int
}

func (w *testWindow) enter(ctx context.Context, who Starter) (func(bool), error) {
	return w.Window.enter(ctx, who, Bound{w.limit, TaskWindow}, "tasks")
}

// start starts something and says whether it was let.
func (w *testWindow) start(t *testing.T, who Starter) bool {
	t.Helper()
	leave, err := w.enter(t.Context(), who)
	if err != nil {
		if fault.CodeOf(err) != fault.RateLimited {
			t.Fatal(err)
		}
		return false
	}
	leave(true)
	return true
}

func TestWindow(t *testing.T) {
	t.Parallel()
	ann, bob := Starter{"w", "ann"}, Starter{"w", "bob"}
	t.Run("Slides", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := noPast(5)
			for range 5 {
				if !w.start(t, ann) {
					t.Fatal("five may be started")
				}
				time.Sleep(time.Second)
			}
			// It is second 5; the first was at 0.
			_, err := w.enter(t.Context(), ann)
			if f := fault.From(err); f.Code != fault.RateLimited || f.Details["retry_after"] != 10 {
				t.Errorf("the sixth: %v %v", err, f.Details)
			}
			if !w.start(t, bob) {
				t.Error("one user waits for another")
			}
			if !w.start(t, Starter{"v", "ann"}) {
				t.Error("users of two workspaces are taken for one")
			}
			time.Sleep(10*time.Second - time.Millisecond)
			if w.start(t, ann) {
				t.Error("a start within 15 seconds of five others")
			}
			time.Sleep(time.Millisecond)
			if !w.start(t, ann) || w.start(t, ann) {
				t.Error("after 15 seconds there is room for one, since only one is older")
			}
		})
	})
	t.Run("OfManyAtOnceFive", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := noPast(5)
			for range 3 {
				var let atomic.Int64
				var all sync.WaitGroup
				for range 200 {
					all.Go(func() {
						leave, err := w.enter(t.Context(), ann)
						if err == nil {
							let.Add(1)
							time.Sleep(time.Second) // the disk
							leave(true)
						}
					})
				}
				all.Wait()
				if n := let.Load(); n != 5 {
					t.Errorf("%d were let in", n)
				}
				if w.start(t, ann) {
					t.Error("a sixth, right after them")
				}
				time.Sleep(TaskWindow)
			}
		})
	})
	t.Run("WhatDoesNotStartDoesNotCount", func(t *testing.T) {
		t.Parallel()
		w := noPast(1)
		leave, err := w.enter(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.enter(t.Context(), ann); fault.CodeOf(err) != fault.RateLimited || fault.From(err).Details["retry_after"] != 1 {
			t.Errorf("while one is on its way: %v", err)
		}
		leave(false)
		if len(w.users) != 0 {
			t.Errorf("%d users are kept", len(w.users))
		}
		if !w.start(t, ann) || w.start(t, ann) {
			t.Error("one may be started")
		}
	})
	t.Run("KeepsNobodyForLong", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := noPast(5)
			for i := range 10_000 {
				w.start(t, Starter{"w", fmt.Sprint(i)})
			}
			time.Sleep(TaskWindow)
			w.start(t, ann)
			if len(w.users) != 1 {
				t.Errorf("%d users are kept", len(w.users))
			}
		})
	})
	t.Run("RemembersTheProcessBefore", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := noPast(5)
			read := 0
			w.past = func(_ context.Context, workspace string, since, before time.Time) (map[Starter][]time.Time, error) {
				read++
				if workspace != "w" || before.Sub(since) != TaskWindow || !before.Equal(w.born) {
					t.Errorf("the past of %q from %v to %v was asked for", workspace, since, before)
				}
				if read == 1 {
					return nil, fault.New(fault.Internal, "no")
				}
				return map[Starter][]time.Time{ann: {before.Add(-time.Second), before.Add(-10 * time.Second), before.Add(-2 * time.Second)}}, nil
			}
			if _, err := w.enter(t.Context(), ann); fault.CodeOf(err) != fault.Internal {
				t.Errorf("with an unreadable past: %v", err)
			}
			for left := 2; left >= 0; left-- {
				if got, want := w.start(t, ann), left > 0; got != want {
					t.Errorf("three were started by the process before: with %d left, %v", left, got)
				}
			}
			if !w.start(t, bob) {
				t.Error("the past of one counts for another")
			}
			time.Sleep(5 * time.Second)
			if !w.start(t, ann) || w.start(t, ann) {
				t.Error("the oldest counts no more")
			}
			time.Sleep(TaskWindow)
			if !w.start(t, Starter{"v", "cid"}) || read != 2 {
				t.Errorf("the past was read %d times", read)
			}
		})
	})
	t.Run("AnyNumber", func(t *testing.T) {
		t.Parallel()
		w := noPast(-1)
		for range 100 {
			if !w.start(t, ann) {
				t.Fatal("there is no limit")
			}
		}
	})
	t.Run("HoldsAgainstAPlainCount", func(t *testing.T) {
		t.Parallel()
		chance := rand.New(rand.NewPCG(1, 2))
		synctest.Test(t, func(t *testing.T) {
			w := noPast(5)
			var let []time.Time
			for range 3000 {
				time.Sleep(time.Duration(chance.IntN(4000)) * time.Millisecond)
				now := time.Now()
				recent := slices.DeleteFunc(slices.Clone(let), func(at time.Time) bool { return now.Sub(at) >= TaskWindow })
				if got, want := w.start(t, ann), len(recent) < 5; got != want {
					t.Fatalf("let in: %v, and there were %d in the last 15 seconds", got, len(recent))
				} else if got {
					let = append(recent, now)
				}
			}
		})
	})
}
