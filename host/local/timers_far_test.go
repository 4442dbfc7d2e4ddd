package local

import (
	"testing"
	"time"

	"tandem/engine"
	"tandem/store"
)

func TestTimers_AFarDayIsNotDueNow(t *testing.T) {
	t.Parallel()
	timers := newTimers(func(store.Ref, engine.TimerID) { t.Error("a timer has fired") }, nil)
	timers.start()
	defer timers.close()
	now := time.Now().Add(time.Hour).UnixMilli()             // so that nothing is due by the real clock
	timers.setTimer(store.Ref{}, "far", 253_370_764_800_000) // the year 9999: more nanoseconds away than can be counted
	if due, next := timers.takeDue(now); len(due) > 0 || next != longestNap {
		t.Errorf("%d timers are due, the next in %v", len(due), next)
	}
	timers.setTimer(store.Ref{}, "near", now+50)
	if _, next := timers.takeDue(now); next != 50*time.Millisecond {
		t.Errorf("the next is due in %v", next)
	}
	timers.clear(store.Ref{}, "near")
}
