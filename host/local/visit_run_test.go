package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tandem/engine"
	"tandem/host/local"
	"tandem/node"
)

// onceHeld is work of which the first run goes on until it is told to stop, and the others do not.
func onceHeld() (work func(context.Context) (node.Outcome, error), stopped <-chan struct{}) {
	first, told := make(chan struct{}, 1), make(chan struct{})
	first <- struct{}{}
	return func(ctx context.Context) (node.Outcome, error) {
		select {
		case <-first:
			<-ctx.Done()
			close(told)
			return nil, context.Cause(ctx)
		default:
			return node.Done{"result": json.RawMessage(`{}`)}, nil
		}
	}, told
}

// TestRun_NewAttemptBesideTheOld has the next attempt come to the process where the one before still runs: that is stopped, then the next
// one runs.
func TestRun_NewAttemptBesideTheOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		work, stopped := onceHeld()
		s := newShop(t, nil, work)
		old := s.run(t.Context(), s.first, s.at, local.WasNothing)
		synctest.Wait()
		lost := <-s.run(t.Context(), s.first, s.at, local.WasBegun) // the carrier has lost sight of it
		if lost.err != nil || len(lost.next.Run) != 1 || lost.next.Run[0].Attempt == s.at {
			t.Fatalf("of a run that was lost follows %+v, %v", lost.next, lost.err)
		}
		began := time.Now()
		again := <-s.run(t.Context(), s.first, lost.next.Run[0].Attempt, local.WasNothing)
		if again.err != nil || again.next.Status != engine.StatusSuccess {
			t.Errorf("the next attempt comes to %+v, %v", again.next, again.err)
		}
		<-stopped
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the old run went on for %s", waited)
		}
		if end := <-old; end.err != nil {
			t.Error(end.err)
		}
	})
}

// TestRun_SameAttemptTwice has an attempt come once more to the process where it runs: it is waited for.
func TestRun_SameAttemptTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, runs := make(chan struct{}), make(chan struct{}, 2)
		s := newShop(t, nil, func(context.Context) (node.Outcome, error) {
			runs <- struct{}{}
			<-release
			return node.Done{"result": json.RawMessage(`{}`)}, nil
		})
		first := s.run(t.Context(), s.first, s.at, local.WasNothing)
		synctest.Wait()
		second := s.run(t.Context(), s.first, s.at, local.WasNothing)
		ctx, stop := context.WithCancel(t.Context())
		third := s.run(ctx, s.first, s.at, local.WasNothing)
		synctest.Wait()
		if len(second)+len(third) > 0 {
			t.Error("a run that goes on is not waited for")
		}
		stop()
		if end := <-third; end.err != nil || len(end.next.Run) > 0 {
			t.Errorf("one that is not wanted any more comes to %+v, %v", end.next, end.err)
		}
		close(release)
		for _, c := range []<-chan ran{first, second} {
			if end := <-c; end.err != nil || end.next.Status != engine.StatusSuccess {
				t.Errorf("it comes to %+v, %v", end.next, end.err)
			}
		}
		if len(runs) != 1 {
			t.Errorf("it ran %d times", len(runs))
		}
	})
}

// TestRun_GivenUp ends a run that the carrier has given up. Nothing is recorded, and the attempt is still to be run.
func TestRun_GivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		work, stopped := onceHeld()
		s := newShop(t, nil, work)
		ctx, stop := context.WithCancelCause(t.Context())
		old := s.run(ctx, s.first, s.at, local.WasNothing)
		synctest.Wait()
		stop(local.ErrGivenUp)
		<-stopped
		if end := <-old; !errors.Is(end.err, local.ErrGivenUp) {
			t.Errorf("it comes to %+v, %v", end.next, end.err)
		}
		if at := s.wanted(s.first); at != s.at {
			t.Errorf("then %v is to be run, not %v", at, s.at)
		}
	})
}

// TestRun_OvertimeOfAnOldAttempt stops a run whose time is up although its attempt is another process's by then.
func TestRun_OvertimeOfAnOldAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		work, stopped := onceHeld()
		s := newShop(t, nil, work)
		old := s.run(t.Context(), s.first, s.at, local.WasNothing)
		synctest.Wait()
		if lost := <-s.run(t.Context(), s.open(), s.at, local.WasBegun); lost.err != nil {
			t.Fatal(lost.err)
		}
		select {
		case <-stopped:
		case <-time.After(time.Minute): // of a clock that costs nothing
			t.Fatal("it goes on after its time")
		}
		if end := <-old; end.err != nil {
			t.Error(end.err)
		}
	})
}
